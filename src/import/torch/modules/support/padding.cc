#include "import/torch/modules/support/padding.h"

namespace ferry::import::torch {

Result<graph::Shape> conv_pads(const Module& module, int64_t kh, int64_t kw,
                               const graph::Shape& dilations) {
  FERRY_TRY(mode, module.string_attribute("padding_mode", "zeros"));
  if (mode != "zeros") return error(Code::kUnsupported, "padding mode '{}'; zeros is known", mode);
  const Value* padding = module.attribute("padding");
  if (padding != nullptr && padding->is_string()) {
    if (padding->text == "valid") return graph::Shape{0, 0, 0, 0};
    if (padding->text != "same") return error(Code::kInvalid, "padding is {}", describe(*padding));
    // 'same' puts the odd pixel behind.
    const int64_t rows = dilations[0] * (kh - 1), columns = dilations[1] * (kw - 1);
    return graph::Shape{rows / 2, columns / 2, rows - rows / 2, columns - columns / 2};
  }
  FERRY_TRY(both, module.ints_attribute("padding", 2, {0, 0}));
  return graph::Shape{both[0], both[1], both[0], both[1]};
}

}  // namespace ferry::import::torch
