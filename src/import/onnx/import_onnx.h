// ONNX files, opset 9 and newer, as exporters write YOLO models.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "import/model.h"

namespace ferry::import {

// Do the bytes begin as an ONNX file does (a protobuf message with a small IR version)? A guess:
// the importer decides.
bool looks_like_onnx(std::span<const std::byte> file);

// The model at `path`; external data is looked for in its folder, never outside of it.
//
// The graph computes in f32 whatever the file stores. A Detect tail is recognised, verified and
// replaced by yolo_detect; then `detector.head` is kYolov5, output 0 holds the rows, and outputs
// that only repeat its raw heads are dropped (with a warning). Raw heads without a tail get
// yolo_detect when the metadata names anchors. Everything else stays a plain graph, head kNone.
//
// Static models also take another size or batch than they were exported for when a Detect tail was
// recognised and nothing else in the graph fixes the shape; otherwise that is an error that says
// so.
Result<Model> import_onnx(const std::string& path, const ImportOptions& options = {});

// The same for bytes in memory; `owner` keeps them alive as long as the model's constants, which
// view them. Models with external data are refused.
Result<Model> import_onnx(std::span<const std::byte> file, std::shared_ptr<const void> owner,
                          const ImportOptions& options = {});

}  // namespace ferry::import
