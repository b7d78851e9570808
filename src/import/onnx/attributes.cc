#include "import/onnx/attributes.h"

#include <set>

namespace ferry::import::onnx {

Result<Attributes> read_attributes(const Node& node) {
  Attributes out;
  std::set<std::string_view> names;
  for (const ByteSpan message : node.attributes) {
    FERRY_TRY(attribute, read_attribute(message));
    const std::string name(attribute.name.substr(0, 200));
    if (!names.insert(attribute.name).second) {
      return error(Code::kInvalid, "has two attributes '{}'", name);
    }
    if (!attribute.ref_attr_name.empty()) {
      return error(Code::kInvalid, "attribute '{}' refers to a function's, outside of one", name);
    }
    switch (static_cast<AttributeType>(attribute.type)) {
      case AttributeType::kFloat:
        out.plain[name] = attribute.f;
        break;
      case AttributeType::kInt:
        out.plain[name] = attribute.i;
        break;
      case AttributeType::kString:
        out.plain[name] = std::string(attribute.s);
        break;
      case AttributeType::kFloats:
        out.plain[name] = std::move(attribute.floats);
        break;
      case AttributeType::kInts:
        out.plain[name] = std::move(attribute.ints);
        break;
      case AttributeType::kTensor:
        out.tensors[attribute.name] = attribute.message;
        break;
      case AttributeType::kGraph:
        out.graphs[attribute.name] = attribute.message;
        break;
      case AttributeType::kSparseTensor:
        return error(Code::kUnsupported,
                     "attribute '{}' is a sparse tensor: export the model with dense ones", name);
      case AttributeType::kUndefined:
        return error(Code::kInvalid, "attribute '{}' has no type", name);
      case AttributeType::kStrings:
        break;
    }
  }
  return out;
}

}  // namespace ferry::import::onnx
