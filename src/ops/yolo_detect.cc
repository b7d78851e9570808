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
#include "ops/support/onnx_form.h"

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

// --- as ONNX: the nodes that upstream's export (v7) has ---

// Cells of a map that is open in height and width, row by row: f32[h*w, 2] of x, y.
Ref open_cells(OnnxForm& form, size_t level) {
  const Ref shape = form.add("Shape", {form.input(level)});
  const Ref picture = form.add("Slice", {shape, form.ints({2}), form.ints({4}), form.ints({0})});
  const auto axis = [&](int64_t which, const Ints& placed) {
    const Ref count =
        form.add("Gather", {shape, form.exact(Tensor::scalar(which))}, {{"axis", int64_t{0}}});
    const Ref numbers = form.add("Range", {form.exact(Tensor::scalar(int64_t{0})), count,
                                           form.exact(Tensor::scalar(int64_t{1}))});
    const Ref floats = form.add("Cast", {numbers}, {{"to", onnx_number(DType::kF32)}});
    const Ref line = form.add("Reshape", {floats, form.ints(placed)});
    const Ref all = form.add("Expand", {line, picture});
    return form.add("Reshape", {all, form.ints({-1, 1})});
  };
  const Ref x = axis(3, {1, -1}), y = axis(2, {-1, 1});
  return form.add("Concat", {x, y}, {{"axis", int64_t{1}}});
}

// The same for a map of known size, 0.5 subtracted: f32[1, 1, h, w, 2].
Tensor fixed_cells(int64_t height, int64_t width) {
  std::vector<float> cells;
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      cells.push_back(static_cast<float>(x) - 0.5f);
      cells.push_back(static_cast<float>(y) - 0.5f);
    }
  }
  return Tensor::of<float>({1, 1, height, width, 2}, std::move(cells));
}

// One level's rows. A map of known size goes through [n, anchors, h, w, numbers]; an open one
// through [n, anchors, h*w, numbers], which needs no dimension but -1.
Ref level_to_onnx(OnnxForm& form, size_t level, int64_t anchors) {
  const bool open = form.target().dynamic;
  const Shape& map = form.shape(level);
  const int64_t numbers = 5 + attr<int64_t>(form.node(), "classes"), last = open ? 3 : 4;
  const Ints apart =
      open ? Ints{0, anchors, numbers, -1} : Ints{map[0], anchors, numbers, map[2], map[3]};
  const Ints together =
      open ? Ints{0, -1, numbers} : Ints{map[0], anchors * map[2] * map[3], numbers};
  Shape per_anchor(static_cast<size_t>(last + 1), 1);
  per_anchor[1] = anchors;
  per_anchor.back() = 2;
  std::vector<float> sizes;
  const Floats& all_sizes = attr<Floats>(form.node(), "anchors");
  for (size_t i = 0; i < 2 * static_cast<size_t>(anchors); ++i) {
    sizes.push_back(static_cast<float>(all_sizes[2 * level * static_cast<size_t>(anchors) + i]));
  }
  const Ref two = form.number(2);
  const Ref stride = form.number(attr<Floats>(form.node(), "strides")[level]);

  const Ref split = form.add("Reshape", {form.input(level), form.ints(apart)});
  const Ref raw =
      form.add("Transpose", {split}, {{"perm", open ? Ints{0, 1, 3, 2} : Ints{0, 1, 3, 4, 2}}});
  const Ref s = form.add("Sigmoid", {raw});
  const Ref parts = add_split(form, s, last, {2, 2, numbers - 4});

  const Ref cells = open ? form.add("Sub", {open_cells(form, level), form.number(0.5)})
                         : form.constant(fixed_cells(map[2], map[3]));
  const Ref offset = form.add("Mul", {parts, two});
  const Ref place = form.add("Add", {offset, cells});
  const Ref xy = form.add("Mul", {place, stride});

  const Ref root = form.add("Mul", {parts + 1, two});
  const Ref factor = form.add("Pow", {root, two});
  const Ref anchor = form.constant(Tensor::of<float>(per_anchor, std::move(sizes)));
  const Ref wh = form.add("Mul", {factor, anchor});

  const Ref boxes = form.add("Concat", {xy, wh, parts + 2}, {{"axis", last}});
  return form.add("Reshape", {boxes, form.ints(together)});
}

Status to_onnx(OnnxForm& form) {
  form.compute_in_f32();  // f16 has steps of half a pixel from 512 on
  FERRY_TRY(anchors, anchors_per_level(form.node(), form.node().inputs.size()));
  std::vector<Ref> rows;
  for (size_t level = 0; level < form.node().inputs.size(); ++level) {
    rows.push_back(level_to_onnx(form, level, anchors));
  }
  form.add("Concat", std::move(rows), {{"axis", int64_t{1}}});
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
    .to_onnx = to_onnx,
    .cases = kCases,
};

}  // namespace ferry::ops
