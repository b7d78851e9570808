// The ONNX messages (onnx.proto, IR version 7 and 8) around the forms.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "export/onnx/forms.h"
#include "export/onnx/wire_writer.h"

namespace ferry::exporter::onnx {

struct ModelText {
  int64_t opset = 12;
  bool dynamic =
      false;  // batch, height and width of the first input, batch of the outputs, are open
  std::string producer_version;
  std::vector<std::pair<std::string, std::string>> metadata = {};
};

// The whole file. Weights are borrowed: `forms` must outlive it.
Message model_proto(const Forms& forms, const ModelText& text);

}  // namespace ferry::exporter::onnx
