// The passes: each takes a verified graph and leaves a verified graph that computes the same
// outputs, under the same names, for every input size and batch that the graph accepts. The number
// returned counts rewrites: 0, nothing changed. A pass that has run finds nothing left to do when
// it runs again. Their order is pipeline.cc's.
#pragma once

#include "base/result.h"
#include "graph/graph.h"

namespace ferry::passes {

// f(constants) = constant. Results that would be much larger than what they come from stay
// computed.
Result<int> fold_constants(graph::Graph& graph);

// identity(x) = x, and so for reshapes to the same shape, transposes that cancel, x * 1, x + 0,
// pools of one pixel, …
Result<int> remove_no_ops(graph::Graph& graph);

// concat(concat(a, b), c) = concat(a, b, c); concat(split(x)) = x; split(concat(a, b)) = a, b.
Result<int> flatten_concat(graph::Graph& graph);

// f(x), f(x) = f(x) twice used. Equal constants become one, too.
Result<int> share_duplicates(graph::Graph& graph);

// x * sigmoid(x) = silu(x), and so for hardswish, hardsigmoid, mish, gelu, relu and relu6 spelled
// out by exporters.
Result<int> recognise_activations(graph::Graph& graph);

// concat of the four strided slices of a Focus layer = space_to_depth(x).
Result<int> recognise_focus(graph::Graph& graph);

// f(concat(conv(x), conv(y))) = concat(f(conv(x)), f(conv(y))), f a batch norm or an activation, so
// that each f can be folded into its convolution.
Result<int> distribute_over_concat(graph::Graph& graph);

// batch_norm(conv(x)) = conv'(x), conv(batch_norm(x)) = conv'(x) without padding, and so for
// factors and offsets per channel. A batch norm that no convolution takes becomes a depthwise 1x1
// convolution.
Result<int> fold_batch_norm(graph::Graph& graph);

// conv k x k(space_to_depth(x)) = conv 2k x 2k with twice the stride and padding.
Result<int> focus_to_conv(graph::Graph& graph);

// max_pool 9x9(x) = max_pool 5x5(max_pool 5x5(x)), where that inner pool exists anyway: SPP becomes
// SPPF.
Result<int> chain_max_pools(graph::Graph& graph);

// act(conv(x)) = conv[activation=act](x), and so for every op that has an `activation`.
Result<int> fuse_activation(graph::Graph& graph);

// conv 1x1(x), conv' 1x1(x) = split([conv; conv'](x)): x is read once.
Result<int> merge_siblings(graph::Graph& graph);

// conv 1x1(concat(up2(a), b)) = conv_b(b) + up2(conv_a(a)): a's part is computed on a quarter of
// the pixels.
Result<int> fold_upsample(graph::Graph& graph);

// conv(x) + r = conv[residual](x, r).
Result<int> fuse_residual(graph::Graph& graph);

// Nodes and constants that no output needs.
Result<int> remove_dead(graph::Graph& graph);

}  // namespace ferry::passes
