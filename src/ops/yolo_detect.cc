// yolo_detect: YOLOv5's Detect layer in evaluation mode, behind its last convolutions (upstream
// models/yolo.py, v3 to v7): raw maps [N, na*(5+nc), h, w], one a level, become [N, sum of na*h*w,
// 5+nc] rows of
//
//   s = sigmoid(raw);  x, y = (2 s - 0.5 + cell) * stride;  w, h = (2 s)^2 * anchor;  objectness,
//   classes = s
//
// in pixels of the network's input, ordered by level, anchor, row, column.
#include <cmath>

#include "ops/support/check.h"

namespace ferry::ops {

using namespace graph;

namespace {

const AttrDef kAttrs[] = {
    {"anchors", Floats{}, "width, height in pixels: [level][anchor][2], flattened", true},
    {"strides", Floats{}, "pixels of one cell, a level each", true},
    {"classes", int64_t{80}, "number of classes", true},
};

// Anchors of a level; checks everything that eval relies on.
Result<int64_t> anchors_per_level(const Node& node, size_t levels) {
  const auto numbers = attr<Floats>(node, "anchors").size();
  const auto strides = attr<Floats>(node, "strides").size();
  const int64_t classes = attr<int64_t>(node, "classes");
  if (strides != levels) {
    return error(Code::kInvalid, "has {} inputs and {} strides", levels, strides);
  }
  if (numbers == 0 || numbers % (2 * levels) != 0) {
    return error(Code::kInvalid, "{} anchor numbers do not divide into {} levels of pairs", numbers,
                 levels);
  }
  if (classes < 0 || classes > 1'000'000) return error(Code::kInvalid, "classes is {}", classes);
  return static_cast<int64_t>(numbers / (2 * levels));
}

Result<Types> infer(const InferArgs& args) {
  FERRY_CHECK_OK(need_f32(args));
  FERRY_TRY(anchors, anchors_per_level(args.node, args.inputs.size()));
  const int64_t row = 5 + attr<int64_t>(args.node, "classes");
  int64_t rows = 0;
  for (size_t level = 0; level < args.inputs.size(); ++level) {
    if (args.inputs[level] == nullptr) return error(Code::kInvalid, "input {} is absent", level);
    FERRY_CHECK_OK(need_rank(args, level, 4, "a level"));
    const Shape& x = args.inputs[level]->shape;
    if (x[0] != args.inputs[0]->shape[0] || x[1] != saturating_product(anchors, row)) {
      return error(Code::kInvalid, "level {} is {}, needs batch {} and {} x {} channels", level,
                   shape_text(x), args.inputs[0]->shape[0], anchors, row);
    }
    FERRY_CHECK_OK(check_shape({anchors, x[2], x[3]}, DType::kF32));
    rows += anchors * x[2] * x[3];
  }
  return one_output(DType::kF32, {args.inputs[0]->shape[0], rows, row});
}

float sigmoid(float x) { return 1.0f / (1.0f + std::exp(-x)); }

Status eval(const EvalArgs& args) {
  FERRY_TRY(anchors, anchors_per_level(args.node, args.inputs.size()));
  const Floats& sizes = attr<Floats>(args.node, "anchors");
  const Floats& strides = attr<Floats>(args.node, "strides");
  const int64_t numbers = 5 + attr<int64_t>(args.node, "classes");
  float* y = args.outputs[0]->mut<float>().data();
  for (int64_t n = 0; n < args.outputs[0]->shape()[0]; ++n) {
    for (size_t level = 0; level < args.inputs.size(); ++level) {
      const Shape& in = args.inputs[level]->shape();
      const float* x = args.inputs[level]->as<float>().data() + n * in[1] * in[2] * in[3];
      const auto stride = static_cast<float>(strides[level]);
      for (int64_t a = 0; a < anchors; ++a) {
        const size_t pair = 2 * (level * static_cast<size_t>(anchors) + static_cast<size_t>(a));
        const float anchor[2] = {static_cast<float>(sizes[pair]),
                                 static_cast<float>(sizes[pair + 1])};
        for (int64_t h = 0; h < in[2]; ++h) {
          for (int64_t w = 0; w < in[3]; ++w, y += numbers) {
            for (int64_t k = 0; k < numbers; ++k) {
              y[k] = sigmoid(x[((a * numbers + k) * in[2] + h) * in[3] + w]);
            }
            y[0] = (y[0] * 2 - 0.5f + static_cast<float>(w)) * stride;
            y[1] = (y[1] * 2 - 0.5f + static_cast<float>(h)) * stride;
            y[2] = y[2] * 2 * (y[2] * 2) * anchor[0];
            y[3] = y[3] * 2 * (y[3] * 2) * anchor[1];
          }
        }
      }
    }
  }
  return {};
}

const OpCase kCases[] = {
    {R"(graph {
      input p3: f32[2,14,4,6]
      input p4: f32[2,14,2,3]
      y = yolo_detect(p3, p4) anchors=[10,13,16,30,30,61,62,45] strides=[8,16] classes=2
      output y
    })",
     1e-4},
};

}  // namespace

extern const OpDef op_yolo_detect;
const OpDef op_yolo_detect = {
    .name = "yolo_detect",
    .summary = "YOLOv5's Detect layer: raw head maps become boxes and scores",
    .min_inputs = 1,
    .max_inputs = 8,
    .attrs = kAttrs,
    .infer = infer,
    .eval = eval,
    .cases = kCases,
};

}  // namespace ferry::ops
