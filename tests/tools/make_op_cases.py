#!/usr/bin/env python3
"""Makes tests/data/ops/*.json: single ONNX nodes and what ONNX Runtime answers for them.

Each case is one node with its inputs (some constant), attributes, opset and expected outputs. src/ops/onnx_cases_test.cc
converts the node with the op's own converter, runs the reference loops and compares. Where ONNX Runtime lacks a type or
an opset, the reference evaluator of the `onnx` package answers instead; each case says which did.

  pip install onnx onnxruntime numpy
  python3 tests/tools/make_op_cases.py tests/data/ops
"""

import json
import pathlib
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

NAMES = {np.dtype(np.float32): "f32", np.dtype(np.int64): "i64", np.dtype(np.int32): "i32", np.dtype(np.uint8): "u8",
         np.dtype(np.int8): "i8", np.dtype(bool): "bool"}
rng = np.random.default_rng(7)
groups = {}


def real(*shape, low=-2.0, high=2.0):
    return rng.uniform(low, high, shape).astype(np.float32).round(3)


def ints(*values, dtype=np.int64):
    return np.array(values, dtype=dtype)


def as_json(array):
    array = np.asarray(array)
    values = array.flatten().tolist()
    if array.dtype == np.float32:
        values = [float(f"{v:.9g}") for v in values]
    return {"dtype": NAMES[array.dtype], "shape": list(array.shape), "data": values}


class Const:
    """An input that is an initializer."""

    def __init__(self, array):
        self.array = np.asarray(array)


def run(model, feeds):
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        return "onnxruntime " + onnxruntime.__version__, session.run(None, feeds)
    except Exception as error:  # noqa: BLE001: any refusal of the engine
        print("  not in onnxruntime:", str(error).splitlines()[0][:120])
        return "onnx " + onnx.__version__, ReferenceEvaluator(model).run(None, feeds)


def case(family, op_type, inputs, opset=13, outputs=1, op=None, **attrs):
    names, feeds, graph_inputs, initializers, recorded = [], {}, [], [], []
    for i, given in enumerate(inputs):
        if given is None:
            names.append("")
            recorded.append(None)
            continue
        array = given.array if isinstance(given, Const) else np.asarray(given)
        name = f"i{i}"
        names.append(name)
        recorded.append({**as_json(array), "constant": isinstance(given, Const)})
        if isinstance(given, Const):
            initializers.append(numpy_helper.from_array(array, name))
        else:
            graph_inputs.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape))
            feeds[name] = array
    outs = [f"o{i}" for i in range(outputs)]
    node = helper.make_node(op_type, names, outs, **attrs)
    graph = helper.make_graph([node], "g", graph_inputs,
                              [helper.make_tensor_value_info(o, TensorProto.UNDEFINED, None) for o in outs], initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    try:
        model = onnx.shape_inference.infer_shapes(model)
    except Exception:  # noqa: BLE001: only a help
        pass
    print(family, op_type, opset)
    engine, results = run(model, feeds)
    kept = {k: (v.tolist() if isinstance(v, np.ndarray) else v) for k, v in attrs.items()}
    groups.setdefault(family, []).append({"op_type": op_type, "opset": opset, "op": op or "", "attrs": kept, "engine": engine,
                                         "inputs": recorded, "outputs": [as_json(r) for r in results]})


def convolutions():
    g = "convolutions"
    x, w = real(1, 4, 6, 7), real(6, 2, 3, 3)
    case(g, "Conv", [x, Const(w), Const(real(6))], group=2, pads=[1, 0, 2, 1], strides=[2, 1], op="conv2d")
    case(g, "Conv", [real(1, 3, 7, 8), Const(real(2, 3, 2, 3))], auto_pad="SAME_UPPER", strides=[2, 2], opset=9)
    case(g, "Conv", [real(1, 3, 7, 8), Const(real(2, 3, 2, 3))], auto_pad="SAME_LOWER", strides=[2, 3], opset=11)
    case(g, "Conv", [real(2, 2, 7, 7), Const(real(2, 1, 3, 2))], group=2, dilations=[2, 3])
    case(g, "ConvTranspose", [real(1, 3, 3, 4), Const(real(3, 2, 2, 2)), Const(real(2))], strides=[2, 2], op="conv_transpose2d")
    case(g, "ConvTranspose", [real(2, 4, 3, 3), Const(real(4, 1, 4, 3))], group=4, strides=[2, 3], pads=[1, 1, 2, 0],
         output_padding=[1, 2])
    case(g, "ConvTranspose", [real(1, 4, 4, 3), Const(real(4, 2, 3, 2))], group=2, dilations=[2, 1], pads=[1, 0, 1, 1])
    case(g, "BatchNormalization", [real(2, 3, 2, 2), Const(real(3)), Const(real(3)), Const(real(3)), Const(real(3, low=0.1))],
         epsilon=1e-3, opset=9, op="batch_norm")
    case(g, "BatchNormalization", [real(2, 3, 4), Const(real(3)), Const(real(3)), Const(real(3)), Const(real(3, low=0.1))], opset=15)
    case(g, "LayerNormalization", [real(2, 3, 6), Const(real(6)), Const(real(6))], opset=17, op="layer_norm")
    case(g, "LayerNormalization", [real(2, 3, 4), Const(real(3, 4))], opset=17, axis=1, epsilon=0.01)
    case(g, "InstanceNormalization", [real(2, 3, 2, 3), Const(real(3)), Const(real(3))], epsilon=1e-3, op="group_norm")
    case(g, "GroupNormalization", [real(2, 6, 2, 2), Const(real(6)), Const(real(6))], opset=21, num_groups=3)
    case(g, "Gemm", [real(3, 5), Const(real(4, 5)), Const(real(4))], transB=1, op="linear")
    case(g, "Gemm", [real(5, 3), Const(real(4, 5)), Const(real(3, 1))], transA=1, transB=1, alpha=0.5, beta=1.5, op="gemm")
    case(g, "Gemm", [real(3, 4), Const(real(4, 2))])
    case(g, "MatMul", [real(2, 3, 4, 5), real(3, 5, 2)], op="matmul")
    case(g, "MatMul", [real(4), real(2, 4, 3)])
    case(g, "MatMul", [real(2, 3, 4), real(4)])


def pools():
    g = "pools"
    x = real(1, 2, 7, 8)
    case(g, "MaxPool", [x], kernel_shape=[5, 5], pads=[2, 2, 2, 2], op="max_pool2d", opset=12)
    case(g, "MaxPool", [x], kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 1, 1], dilations=[1, 2], ceil_mode=1)
    case(g, "MaxPool", [real(1, 1, 5, 6)], kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1, opset=10)
    case(g, "MaxPool", [real(1, 1, 5, 5)], kernel_shape=[2, 2], strides=[2, 2], auto_pad="SAME_UPPER")
    case(g, "AveragePool", [x], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], op="avg_pool2d")
    case(g, "AveragePool", [x], kernel_shape=[3, 2], strides=[2, 3], pads=[1, 1, 1, 1], count_include_pad=1)
    case(g, "AveragePool", [real(1, 1, 6, 7)], kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1, opset=19)
    case(g, "AveragePool", [real(1, 1, 6, 7)], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 0, 0], ceil_mode=1,
         count_include_pad=1, opset=19)
    case(g, "GlobalAveragePool", [real(2, 3, 4, 5)], op="global_avg_pool")


def activations():
    g = "activations"
    x = np.concatenate([real(10, low=-8, high=8), np.array([0, -0.0, 3, -3, 6, 30, -30, 88, -88], np.float32)])
    for op_type, name, opset in [("Sigmoid", "sigmoid", 13), ("Relu", "relu", 13), ("Tanh", "tanh", 13), ("Softplus", "softplus", 1),
                                 ("HardSwish", "hardswish", 14), ("Mish", "mish", 18), ("Elu", "elu", 6), ("Gelu", "gelu", 20),
                                 ("LeakyRelu", "leaky_relu", 6), ("HardSigmoid", "clipped_line", 6)]:
        case(g, op_type, [x], opset=max(opset, 9), op=name)
    case(g, "LeakyRelu", [x], alpha=0.1)
    case(g, "Elu", [x], alpha=0.5)
    case(g, "HardSigmoid", [x], alpha=1 / 6, beta=0.5, op="hardsigmoid")
    case(g, "HardSigmoid", [x], alpha=0.3, beta=0.4, op="clipped_line")
    case(g, "Clip", [x, Const(np.float32(0)), Const(np.float32(6))], op="relu6")
    case(g, "Clip", [x, Const(np.float32(0))], op="relu")
    case(g, "Clip", [x, None, Const(np.float32(2.5))], op="clip")
    case(g, "Clip", [x], opset=9, min=-1.5, max=2.0, op="clip")
    case(g, "Clip", [ints(-5, 0, 5, 100), Const(np.int64(-2)), Const(np.int64(50))], op="clip")
    case(g, "Softmax", [real(2, 3, 4)], axis=1, op="softmax")
    case(g, "Softmax", [real(2, 3, 4)])
    case(g, "Softmax", [real(2, 3, 4)], opset=11)
    case(g, "Softmax", [real(2, 3, 4)], opset=9, axis=2)


def resizes():
    g = "resizes"
    x = real(1, 2, 3, 4)
    scales = Const(np.array([1, 1, 2, 2], np.float32))
    odd = Const(np.array([1, 1, 1.7, 2.4], np.float32))
    down = Const(np.array([1, 1, 0.6, 0.5], np.float32))
    case(g, "Upsample", [x, scales], opset=9, mode="nearest", op="resize")
    case(g, "Upsample", [x, scales], opset=9, mode="linear")
    case(g, "Resize", [x, scales], opset=10, mode="nearest")
    case(g, "Resize", [x, scales], opset=10, mode="linear")
    case(g, "Resize", [x, Const(np.zeros(0, np.float32)), scales], opset=11, mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    for mode in ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"]:
        for factor in [odd, down]:
            case(g, "Resize", [x, None, factor], mode="linear", coordinate_transformation_mode=mode)
        for nearest in ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]:
            case(g, "Resize", [x, None, scales], mode="nearest", coordinate_transformation_mode=mode, nearest_mode=nearest)
    case(g, "Resize", [x, None, None, Const(ints(1, 2, 5, 3))], mode="linear", coordinate_transformation_mode="align_corners")
    case(g, "Resize", [x, None, None, Const(ints(1, 2, 6, 7))], mode="nearest", coordinate_transformation_mode="asymmetric",
         nearest_mode="floor")
    case(g, "Resize", [x, None, Const(np.array([2, 3], np.float32))], opset=18, mode="nearest", axes=[2, 3])
    case(g, "Resize", [x, None, Const(np.array([1.5, 0.8], np.float32))], opset=19, mode="linear", axes=[3, 2],
         coordinate_transformation_mode="half_pixel_symmetric")


def moves():
    g = "moves"
    x = real(2, 3, 4)
    case(g, "Concat", [x, real(2, 1, 4), x], axis=1, op="concat")
    case(g, "Concat", [ints(1, 2), ints(3)], axis=0)
    case(g, "Split", [real(2, 7)], outputs=3, axis=1, split=[2, 1, 4], opset=11, op="split")
    case(g, "Split", [real(2, 7), Const(ints(2, 1, 4))], outputs=3, axis=-1)
    case(g, "Split", [real(2, 6)], outputs=3, axis=1)
    case(g, "Split", [real(2, 7)], outputs=3, axis=1, opset=18, num_outputs=3)
    case(g, "Slice", [real(1, 2, 5, 6)], opset=9, starts=[0, 1], ends=[2147483647, 5], axes=[2, 3], op="slice")
    case(g, "Slice", [real(5, 6), Const(ints(1, -1)), Const(ints(2**63 - 1, -(2**63) + 1)), Const(ints(0, 1)), Const(ints(2, -2))])
    case(g, "Slice", [real(5, 6), Const(ints(-100, 3)), Const(ints(100, -1))])
    case(g, "Slice", [ints(4, 5, 6, 7), Const(ints(1)), Const(ints(3)), Const(ints(0))])
    case(g, "Reshape", [x, Const(ints(0, -1))], op="reshape")
    case(g, "Reshape", [x, Const(ints(4, 3, -1, 1))])
    case(g, "Reshape", [np.zeros((0, 3), np.float32), Const(ints(3, 0))], opset=14, allowzero=1)
    case(g, "Transpose", [x], op="transpose")
    case(g, "Transpose", [real(1, 2, 3, 2, 2)], perm=[0, 1, 3, 4, 2])
    case(g, "Flatten", [real(2, 3, 2, 2)], op="flatten")
    case(g, "Flatten", [real(2, 3, 2)], axis=-1)
    case(g, "Flatten", [real(2, 3)], axis=0)
    case(g, "Squeeze", [real(1, 3, 1)], opset=11, axes=[-1], op="squeeze")
    case(g, "Squeeze", [real(1, 3, 1), Const(ints(0))])
    case(g, "Squeeze", [real(1, 3, 1)])
    case(g, "Unsqueeze", [real(3, 2)], opset=11, axes=[0, 3], op="unsqueeze")
    case(g, "Unsqueeze", [real(3, 2), Const(ints(-1, 1))])
    case(g, "Expand", [real(3, 1), Const(ints(2, 1, 4))], op="expand")
    case(g, "Tile", [real(2, 3), Const(ints(2, 3))], op="tile")
    case(g, "Pad", [real(1, 2, 3)], opset=9, pads=[0, 1, 0, 0, 0, 2], value=0.5, op="pad")
    case(g, "Pad", [real(4, 3), Const(ints(1, 2, 3, 1))], mode="reflect")
    case(g, "Pad", [real(4, 3), Const(ints(1, 2, 3, 1))], mode="edge")
    case(g, "Pad", [real(4, 3), Const(ints(-1, 2, 3, -1)), Const(np.float32(7))])
    case(g, "Pad", [real(2, 4, 3), Const(ints(1, 2)), Const(np.float32(3)), Const(ints(-1))], opset=18)
    case(g, "Gather", [real(3, 4, 2), Const(ints(0, -1, 2))], axis=1, op="gather")
    case(g, "Gather", [ints(2, 3, 640, 480), Const(np.int64(-1))], axis=0)
    case(g, "Gather", [real(3, 4), Const(np.array([[0, 2], [1, 1]], np.int32))])
    case(g, "ScatterND", [real(3, 4), Const(ints([2], [0])), real(2, 4)], op="scatter_nd")
    case(g, "ScatterND", [real(3, 4), Const(ints([2, 3], [0, 1])), real(2)])
    case(g, "DepthToSpace", [real(1, 8, 2, 3)], blocksize=2, mode="DCR", op="depth_to_space")
    case(g, "DepthToSpace", [real(1, 9, 2, 2)], blocksize=3, mode="CRD")
    case(g, "SpaceToDepth", [real(1, 2, 4, 6)], blocksize=2, op="space_to_depth")
    case(g, "Identity", [real(2)], op="identity")
    case(g, "Dropout", [real(2, 3), Const(np.float32(0.4))], op="identity")
    case(g, "Cast", [np.array([-1.7, 0, 2.9, 200], np.float32)], to=TensorProto.INT64, op="cast")
    case(g, "Cast", [ints(-3, 0, 5)], to=TensorProto.BOOL)
    case(g, "Cast", [ints(-3, 0, 5, dtype=np.int32)], to=TensorProto.FLOAT)
    case(g, "CastLike", [ints(-3, 0, 5), Const(np.float32(1))], opset=15)
    case(g, "Shape", [real(2, 3, 4)], op="shape")
    case(g, "Shape", [real(2, 3, 4)], opset=15, start=-2)
    case(g, "Shape", [real(2, 3, 4)], opset=15, start=0, end=-1)
    case(g, "Size", [real(2, 3, 4)], op="size")
    case(g, "Range", [Const(np.int64(2)), Const(np.int64(11)), Const(np.int64(4))], op="range")
    case(g, "Range", [Const(np.float32(1)), Const(np.float32(-0.5)), Const(np.float32(-0.4))])


def arithmetic():
    g = "arithmetic"
    a, b = real(2, 3, 2), real(3, 1)
    for op_type, name in [("Add", "add"), ("Sub", "sub"), ("Mul", "mul"), ("Div", "div")]:
        case(g, op_type, [a, b], op=name)
        case(g, op_type, [ints(7, -7, 9, -9), ints(2, 2, -4, 3)])
        case(g, op_type, [ints(7, -7, dtype=np.int32), ints(2, dtype=np.int32)])
    case(g, "Sum", [a, b], op="add")
    case(g, "Pow", [a, Const(np.float32(2))], op="pow")
    case(g, "Pow", [a, Const(ints(3))])
    case(g, "Pow", [ints(2, -3, 5), Const(ints(3))])
    case(g, "Mod", [ints(-7, 7, -7, 7), ints(3, 3, -3, -3)], op="mod")
    case(g, "Mod", [ints(-7, 7, -7, 7), ints(3, 3, -3, -3)], fmod=1)
    case(g, "Mod", [real(6, low=-5, high=5), Const(np.array([1.5], np.float32))], fmod=1)
    for op_type, name in [("Min", "min"), ("Max", "max")]:
        case(g, op_type, [a, b], op=name)
        case(g, op_type, [ints(3, 9, 1), ints(4), ints(2, 5, 6)])
        case(g, op_type, [a])
    positive = real(2, 3, low=0.1, high=4)
    for op_type, name, x in [("Sqrt", "sqrt", positive), ("Exp", "exp", a), ("Log", "log", positive), ("Reciprocal", "reciprocal", positive),
                             ("Erf", "erf", a), ("Neg", "neg", a), ("Abs", "abs", a), ("Floor", "floor", a), ("Ceil", "ceil", a)]:
        case(g, op_type, [x], op=name)
    case(g, "Round", [np.array([-2.5, -1.5, -0.4, 0.5, 1.5, 2.5, 2.51], np.float32)], op="round")
    case(g, "Neg", [ints(3, -4)])
    case(g, "Abs", [ints(3, -4)])
    for op_type, name, opset in [("Equal", "equal", 13), ("Greater", "greater", 13), ("Less", "less", 13),
                                 ("GreaterOrEqual", "greater_or_equal", 16), ("LessOrEqual", "less_or_equal", 16)]:
        case(g, op_type, [ints(1, 2, 3), ints(2)], opset=opset, op=name)
        case(g, op_type, [np.array([[1], [2.5]], np.float32), np.array([1, 2.5, 3], np.float32)], opset=opset)
    flags, more = np.array([True, True, False, False]), np.array([True, False, True, False])
    case(g, "And", [flags, more], op="and")
    case(g, "Or", [flags, more], op="or")
    case(g, "Xor", [flags, more], op="xor")
    case(g, "Not", [flags], op="not")
    case(g, "Equal", [flags, more])
    case(g, "Where", [np.array([[True], [False]]), real(2, 3), real(3)], op="where")
    case(g, "Where", [flags, ints(1, 2, 3, 4), ints(9)], op="where")
    x = real(2, 3, 4)
    for op_type, name in [("ReduceMean", "reduce_mean"), ("ReduceSum", "reduce_sum"), ("ReduceMax", "reduce_max"),
                          ("ReduceMin", "reduce_min"), ("ReduceProd", "reduce_prod")]:
        case(g, op_type, [x], opset=11, axes=[1, -1], op=name)
        case(g, op_type, [x], opset=11, keepdims=0)
        case(g, op_type, [x, Const(ints(2))], opset=18, keepdims=0)
        case(g, op_type, [ints([3, -4, 5], [7, 8, -9])], opset=11, axes=[1])
    case(g, "ReduceMean", [x], opset=18, noop_with_empty_axes=1, op="identity")
    case(g, "ArgMax", [ints([1, 5, 5], [9, 2, 9])], axis=1, op="argmax")
    case(g, "ArgMax", [ints([1, 5, 5], [9, 2, 9])], axis=-1, select_last_index=1, keepdims=0)
    case(g, "ArgMax", [real(2, 3, 4)], axis=0)


def quantised():
    g = "quantised"
    x = np.array([[-300, -1.5, -0.5, 0], [0.5, 1.5, 2.5, 300]], np.float32)
    case(g, "QuantizeLinear", [x, Const(np.float32(1)), Const(np.uint8(3))], op="quantize_linear", opset=10)
    case(g, "QuantizeLinear", [x, Const(np.float32(0.5)), Const(np.int8(-3))])
    case(g, "QuantizeLinear", [x, Const(np.float32(2))])
    case(g, "QuantizeLinear", [x, Const(np.array([1, 0.25], np.float32)), Const(np.array([0, 5], np.int8))], axis=0)
    case(g, "QuantizeLinear", [x, Const(np.float32(0.5))], opset=21, output_dtype=TensorProto.INT8)
    q = np.array([[-128, -1, 0], [1, 5, 127]], np.int8)
    case(g, "DequantizeLinear", [q, Const(np.float32(0.25)), Const(np.int8(4))], op="dequantize_linear", opset=10)
    case(g, "DequantizeLinear", [q, Const(np.array([1, 0.5, 2], np.float32)), Const(np.array([0, 1, -2], np.int8))])
    case(g, "DequantizeLinear", [q.view(np.uint8), Const(np.float32(0.25))])
    case(g, "DequantizeLinear", [Const(ints(-70000, 9, dtype=np.int32)), Const(np.array([0.5, 0.25], np.float32))], axis=0)


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for make in (convolutions, pools, activations, resizes, moves, arithmetic, quantised):
        make()
    for name, cases in groups.items():
        lines = ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases)
        (folder / f"{name}.json").write_text(f"[\n{lines}\n]\n")
    print(sum(len(c) for c in groups.values()), "cases")


if __name__ == "__main__":
    main()
