// recognise_activations: activations that exporters spell out become one node.
//
//   x * sigmoid(x)                   silu            x * hardsigmoid(x)               hardswish
//   x * relu6(x + 3) / 6             hardswish       relu6(x + 3) / 6                 hardsigmoid
//   x * tanh(softplus(x))            mish            x * (1 + erf(x / sqrt(2))) / 2   gelu
//   clip(x, 0, 6), clip(x, 0, inf)   relu6, relu
//
// A product is looked at as a whole, so the order of factors, and a division in place of a factor,
// do not matter.
#include <array>
#include <cmath>
#include <limits>

#include "passes/passes.h"
#include "passes/support.h"

namespace ferry::passes {

using namespace graph;

namespace {

// Constants that went through half precision are off by 2^-11.
bool near(double value, double wanted) {
  return std::fabs(value - wanted) <= 1e-3 * std::fabs(wanted);
}

// factor * terms[0] * terms[1] …
struct Product {
  double factor = 1;
  std::vector<ValueId> terms;
};

constexpr size_t kMostTerms = 3;
constexpr int kDeepest = 6;  // factors written one by one; a chain in a hostile file is longer

// Multiplies what `id` is into the product; looks `depth` levels into products and quotients that
// nobody else reads.
void multiply(const Editor& edit, ValueId id, int depth, Product& product) {
  if (product.terms.size() > kMostTerms) return;
  if (const auto value = uniform_value(edit.graph(), id)) {
    product.factor *= *value;
    return;
  }
  const int n = depth > 0 ? edit.producer(id) : -1;
  const auto open = [&](ValueId input) {
    multiply(edit, input, edit.only_user(input) == n ? depth - 1 : 0, product);
  };
  if (edit.is(n, "mul")) {
    for (const ValueId input : edit.node(n).inputs) open(input);
    return;
  }
  if (edit.is(n, "div")) {
    if (const auto divisor = uniform_value(edit.graph(), edit.node(n).inputs[1])) {
      product.factor /= *divisor;
      open(edit.node(n).inputs[0]);
      return;
    }
  }
  product.terms.push_back(id);
}

Product product_of(const Editor& edit, ValueId id) {
  Product product;
  multiply(edit, id, kDeepest, product);
  return product;
}

// `x` of x + addend; kNone when the value is no such sum.
ValueId sum_of(const Editor& edit, ValueId id, double addend) {
  const int n = edit.producer_if(id, "add");
  if (n < 0 || !is_linear(edit.node(n))) return kNone;
  for (size_t i = 0; i < 2; ++i) {
    const auto value = uniform_value(edit.graph(), edit.node(n).inputs[i]);
    if (value && near(*value, addend)) return edit.node(n).inputs[1 - i];
  }
  return kNone;
}

// f(x) of the table below: what f is called, the number that x * f(x) is multiplied by, and x.
struct Gate {
  std::string_view whole{};  // the name of x * f(x) * factor
  double factor = 1;
  ValueId x = kNone;
};

// relu6(x) or clip(x, 0, 6)
ValueId relu6_of(const Editor& edit, ValueId id);

Gate gate_of(const Editor& edit, ValueId id) {
  const auto input = [&](int n) { return edit.node(n).inputs[0]; };
  if (const int n = edit.producer_if(id, "sigmoid"); n >= 0) return {"silu", 1, input(n)};
  if (const int n = edit.producer_if(id, "hardsigmoid"); n >= 0) return {"hardswish", 1, input(n)};
  if (const int n = edit.producer_if(id, "tanh"); n >= 0) {
    if (const int p = edit.producer_if(input(n), "softplus"); p >= 0) return {"mish", 1, input(p)};
  }
  if (const ValueId shifted = relu6_of(edit, id); shifted != kNone) {
    if (const ValueId x = sum_of(edit, shifted, 3); x != kNone) return {"hardswish", 1.0 / 6, x};
  }
  if (const int n = edit.producer_if(sum_of(edit, id, 1), "erf"); n >= 0) {
    const Product argument = product_of(edit, input(n));
    if (argument.terms.size() == 1 && near(argument.factor, std::sqrt(0.5))) {
      return {"gelu", 0.5, argument.terms[0]};
    }
  }
  return {};
}

ValueId relu6_of(const Editor& edit, ValueId id) {
  const int n = edit.producer_if(id, "relu6");
  return n < 0 ? kNone : edit.node(n).inputs[0];
}

// The name and input of the activation that this node completes.
struct Found {
  std::string_view name;
  ValueId x = kNone;
};

Found find(const Editor& edit, int n) {
  const ValueId out = edit.node(n).outputs[0];
  if (edit.is(n, "clip")) {
    const double low = attr<double>(edit.node(n), "low"), high = attr<double>(edit.node(n), "high");
    if (low == 0 && high == 6) return {"relu6", edit.node(n).inputs[0]};
    if (low == 0 && high >= std::numeric_limits<float>::max())
      return {"relu", edit.node(n).inputs[0]};
    return {};
  }
  if (!edit.is(n, "mul") && !edit.is(n, "div")) return {};
  const Product product = product_of(edit, out);
  if (product.terms.size() == 1) {
    const Gate gate = gate_of(edit, product.terms[0]);
    if (gate.x != kNone && gate.whole == "hardswish" && near(gate.factor, 1.0 / 6) &&
        near(product.factor, 1.0 / 6)) {
      return {"hardsigmoid", gate.x};
    }
  }
  if (product.terms.size() == 2) {
    for (size_t i = 0; i < 2; ++i) {
      const Gate gate = gate_of(edit, product.terms[i]);
      if (gate.x != kNone && gate.x == product.terms[1 - i] && near(product.factor, gate.factor)) {
        return {gate.whole, gate.x};
      }
    }
  }
  return {};
}

}  // namespace

Result<int> recognise_activations(Graph& graph) {
  Editor edit(graph);
  int rewrites = 0;
  const int nodes = edit.size();
  for (int n = 0; n < nodes; ++n) {
    if (!edit.alive(n)) continue;
    const Found found = find(edit, n);
    const ValueId out = edit.node(n).outputs[0];
    if (found.x == kNone || graph.value(found.x).type != graph.value(out).type ||
        graph.value(out).type.dtype != DType::kF32) {
      continue;
    }
    const std::string name = edit.node(n).name;
    FERRY_TRY(made, edit.insert_op(n, found.name, name, {found.x}));
    edit.take_output(edit.producer(made), 0, out);
    ++rewrites;
  }
  FERRY_CHECK_OK(edit.finish());
  return rewrites;
}

}  // namespace ferry::passes
