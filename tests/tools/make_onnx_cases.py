#!/usr/bin/env python3
"""Makes tests/data/onnx: tiny YOLOv5-like detectors as the exporters of several years write them.

One network with random weights, three levels and two classes, is written over and over: for each
opset, and with every spelling of the Detect tail that exporters have used. `cases.json` says what
an importer must find in each file; `NAME.bin` is what ONNX Runtime answers (float32, the first
output that is kept) for the picture that `picture()` makes. src/import/onnx/cases_test.cc reads all
of it.

  pip install onnx onnxruntime numpy
  python3 tests/tools/make_onnx_cases.py tests/data/onnx
"""

import json
import pathlib
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

HEIGHT, WIDTH, CLASSES = 32, 64, 2
ROW = 5 + CLASSES
STRIDES = [8, 16, 32]
ANCHORS = np.array([[10, 13, 16, 30, 33, 23], [30, 61, 62, 45, 59.5, 119], [116, 90, 156, 198, 373, 326]],
                   np.float32).reshape(3, 3, 2)
NAMES = ["hard hat", "it's bare"]


def picture(batch, height, width):
    """Numbers in 0..1 that C++ makes as easily: multiplicative hashing of the index."""
    index = np.arange(batch * 3 * height * width, dtype=np.uint64)
    bits = (index * np.uint64(2654435761)) & np.uint64(0xFFFFFFFF)
    values = (bits >> np.uint64(8)).astype(np.float32) / np.float32(1 << 24)
    return values.reshape(batch, 3, height, width)


class Builder:
    """Collects nodes and initializers. Methods return the name of the value they make."""

    def __init__(self, opset, dtype=np.float32):
        self.opset, self.dtype = opset, dtype
        self.nodes, self.initializers = [], []
        self.rng = np.random.default_rng(5)

    def const(self, array, as_node=False):
        array = np.asarray(array)
        if array.dtype == np.float32:
            array = array.astype(self.dtype)
        name = f"c{len(self.initializers) + len(self.nodes)}"
        tensor = numpy_helper.from_array(array, name)
        if as_node:
            self.nodes.append(helper.make_node("Constant", [], [name], value=tensor))
        else:
            self.initializers.append(tensor)
        return name

    def ints(self, *values):
        return self.const(np.array(values, np.int64))

    def node(self, op, inputs, outputs=1, name=None, **attrs):
        base = name or f"n{len(self.nodes)}"
        names = [base] if outputs == 1 else [f"{base}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, names, name=f"/{base}/{op}", **attrs))
        return names[0] if outputs == 1 else names

    # Ops whose arguments moved from attributes to inputs over the years.
    def unsqueeze(self, x, axis):
        if self.opset >= 13:
            return self.node("Unsqueeze", [x, self.ints(axis)])
        return self.node("Unsqueeze", [x], axes=[axis])

    def split(self, x, sizes, axis):
        if self.opset >= 13:
            return self.node("Split", [x, self.ints(*sizes)], len(sizes), axis=axis)
        return self.node("Split", [x], len(sizes), axis=axis, split=sizes)

    def slice(self, x, start, end, axis):
        if self.opset >= 10:
            return self.node("Slice", [x, self.ints(start), self.ints(end), self.ints(axis), self.ints(1)])
        return self.node("Slice", [x], starts=[start], ends=[end], axes=[axis])

    def upsample(self, x, by_sizes=None):
        scales = np.array([1, 1, 2, 2], np.float32)
        if self.opset < 10:
            return self.node("Upsample", [x, self.const(scales)], mode="nearest")
        if self.opset == 10:
            return self.node("Resize", [x, self.const(scales)], mode="nearest")
        attrs = dict(mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")
        keep, self.dtype = self.dtype, np.float32  # Resize takes its scales in f32 always
        roi = "" if self.opset >= 13 else self.const(np.zeros(0, np.float32))
        scale_name = self.const(scales)
        self.dtype = keep
        if by_sizes:
            empty = "" if self.opset >= 13 else self.const(np.zeros(0, np.float32))
            return self.node("Resize", [x, roi, empty, self.ints(*by_sizes)], **attrs)
        return self.node("Resize", [x, roi, scale_name], **attrs)

    def conv(self, x, c_in, c_out, k, stride, pad, gain=1.5):
        weight = self.rng.normal(0, gain / np.sqrt(c_in * k * k), (c_out, c_in, k, k)).astype(np.float32)
        bias = self.rng.normal(0, 0.3, c_out).astype(np.float32)
        return self.node("Conv", [x, self.const(weight), self.const(bias)], kernel_shape=[k, k],
                         strides=[stride, stride], pads=[pad] * 4, dilations=[1, 1], group=1)

    def silu(self, x):
        return self.node("Mul", [x, self.node("Sigmoid", [x])])


def backbone(b, x, batch, sizes):
    """Three maps of stride 8, 16 and 32 with the raw heads' channels."""
    p2 = b.silu(b.conv(x, 3, 4, 4, 4, 0))
    p3 = b.silu(b.conv(p2, 4, 4, 3, 2, 1))
    p4 = b.silu(b.conv(p3, 4, 4, 3, 2, 1))
    p5 = b.silu(b.conv(p4, 4, 4, 3, 2, 1))
    up = b.upsample(p5, [batch, 4, HEIGHT // 16, WIDTH // 16] if sizes else None)
    n4 = b.node("Concat", [up, p4], axis=1)
    n3 = b.node("Concat", [b.upsample(n4, [batch, 8, HEIGHT // 8, WIDTH // 8] if sizes else None), p3], axis=1)
    return [b.conv(n3, 12, 3 * ROW, 1, 1, 0, 3), b.conv(n4, 8, 3 * ROW, 1, 1, 0, 3),
            b.conv(p5, 4, 3 * ROW, 1, 1, 0, 3)]


def grid_of(b, shape_of, h, w, computed):
    """[1, 3, h, w, 2] of (x, y) - 0.5: stored, or computed from the map's own size."""
    if not computed:
        x, y = np.meshgrid(np.arange(w), np.arange(h))
        grid = np.stack([x, y], -1).astype(np.float32) - 0.5
        return b.const(np.broadcast_to(grid, (1, 3, h, w, 2)), as_node=True)

    def axis(i):
        size = b.node("Gather", [shape_of, b.const(np.int64(i))], axis=0)
        steps = b.node("Range", [b.const(np.int64(0)), size, b.const(np.int64(1))])
        return b.node("Cast", [steps], to=TensorProto.FLOAT), b.unsqueeze(size, 0)

    (y, height), (x, width) = axis(2), axis(3)
    plane = b.node("Concat", [height, width], axis=0)
    xs = b.node("Expand", [b.unsqueeze(x, 0), plane])
    ys = b.node("Expand", [b.unsqueeze(y, 1), plane])
    grid = b.node("Concat", [b.unsqueeze(xs, -1 if b.opset >= 11 else 2), b.unsqueeze(ys, -1 if b.opset >= 11 else 2)],
                  axis=-1 if b.opset >= 11 else 2)
    grid = b.unsqueeze(b.unsqueeze(grid, 0), 0)
    shape = b.node("Concat", [b.ints(1), b.ints(3), height, width, b.ints(2)], axis=0)
    return b.node("Sub", [b.node("Expand", [grid, shape]), b.const(np.float32(0.5))])


def boxes(b, s, grid, anchors, stride, square, parts):
    """Sigmoids [batch, 3, h, w, ROW] to rows in pixels."""
    two = b.const(np.array([2], np.float32), as_node=True)
    if parts == "split":
        xy, wh, rest = b.split(s, [2, 2, ROW - 4], 4)
    else:
        xy, wh, rest = b.slice(s, 0, 2, 4), b.slice(s, 2, 4, 4), b.slice(s, 4, 2**63 - 1, 4)
    xy = b.node("Mul", [b.node("Add", [b.node("Mul", [xy, two]), grid]), b.const(np.float32(stride))])
    wh = b.node("Mul", [wh, two])
    wh = b.node("Pow", [wh, two]) if square == "pow" else b.node("Mul", [wh, wh])
    wh = b.node("Mul", [wh, anchors])
    if parts != "scatter":
        return b.node("Concat", [xy, wh, rest], axis=4)

    def put(into, start, values):
        """into[..., start:start + 2] = values, as ScatterND with every index listed."""
        shape = [1, 3, HEIGHT // stride, WIDTH // stride, 2]
        index = np.stack(np.meshgrid(*[np.arange(n) for n in shape], indexing="ij"), -1)
        index[..., 4] += start
        return b.node("ScatterND", [into, b.const(index.astype(np.int64)), values])

    return put(put(s, 0, xy), 2, wh)


def detect(b, heads, o):
    outputs, views = [], []
    for level, head in enumerate(heads):
        stride, h, w = STRIDES[level], HEIGHT // STRIDES[level], WIDTH // STRIDES[level]
        shape_of = b.node("Shape", [head])
        if o["dynamic"]:
            dims = [b.unsqueeze(b.node("Gather", [shape_of, b.const(np.int64(i))], axis=0), 0) for i in (0, 2, 3)]
            five = b.node("Concat", [dims[0], b.ints(3), b.ints(ROW), dims[1], dims[2]], axis=0)
            three = b.node("Concat", [dims[0], b.ints(-1), b.ints(ROW)], axis=0)
        else:
            five, three = b.ints(o["batch"], 3, ROW, h, w), b.ints(o["batch"], -1, ROW)
        x = b.node("Transpose", [b.node("Reshape", [head, five])], perm=[0, 1, 3, 4, 2])
        views.append(x)
        if o["sigmoid_first"]:  # on the map, before it is reshaped
            b.nodes = b.nodes[:-2]
            s = b.node("Sigmoid", [head])
            s = b.node("Transpose", [b.node("Reshape", [s, five])], perm=[0, 1, 3, 4, 2])
        else:
            s = b.node("Sigmoid", [x])
        anchors = ANCHORS[level].reshape(1, 3, 1, 1, 2)
        if o["full_anchors"]:
            anchors = np.broadcast_to(anchors, (1, 3, h, w, 2))
        y = boxes(b, s, grid_of(b, shape_of, h, w, o["grid"] == "computed"), b.const(anchors), stride, o["square"],
                  o["parts"])
        outputs.append(b.node("Reshape", [y, three]))
    if o["reversed"]:
        outputs.reverse()
    return b.node("Concat", outputs, axis=1, name="output"), views


DEFAULTS = dict(opset=12, batch=1, parts="split", square="pow", grid="stored", dynamic=False, full_anchors=False,
                reversed=False, sigmoid_first=False, sizes=False, extra=False, dtype=np.float32, unsorted=False,
                raw=None, names="dict", conditional=False)
CASES = []


def build(o):
    b = Builder(o["opset"], o["dtype"])
    half = o["dtype"] == np.float16
    x = b.node("Cast", ["images"], to=TensorProto.FLOAT16) if half else "images"
    heads = backbone(b, x, o["batch"], o["sizes"])
    outputs = []
    if o["raw"]:
        outputs = heads
    else:
        rows, views = detect(b, heads, o)
        if o["conditional"]:  # torch's squeeze: If on what is known, the branches from outside
            equal = b.node("Equal", [b.const(np.int64(1)), b.const(np.int64(1))])
            branches = [helper.make_graph([helper.make_node(op, [rows], [f"{rows}_{op}"])], op, [],
                                          [helper.make_tensor_value_info(f"{rows}_{op}", TensorProto.FLOAT, None)])
                        for op in ("Identity", "Neg")]
            rows = b.node("If", [equal], then_branch=branches[0], else_branch=branches[1])
        if half:
            rows = b.node("Cast", [rows], to=TensorProto.FLOAT)
        outputs = [rows] + (views if o["extra"] else [])
    if o["unsorted"]:
        b.nodes = b.nodes[::-1]
    dims = ["batch", 3, "height", "width"] if o["dynamic"] else [o["batch"], 3, HEIGHT, WIDTH]
    graph = helper.make_graph(
        b.nodes, "detector", [helper.make_tensor_value_info("images", TensorProto.FLOAT, dims)],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs], b.initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", o["opset"])], producer_name="ferry")
    model.ir_version = 4 if o["opset"] < 10 else 8 if o["opset"] < 21 else 10
    texts = {"dict": str(dict(enumerate(NAMES))), "list": str(NAMES), "json": json.dumps({str(i): n for i, n in enumerate(NAMES)})}
    metadata = {"stride": "32", "names": texts[o["names"]]}
    if o["raw"] == "anchors":
        metadata["anchors"] = str(ANCHORS.flatten().tolist())
    helper.set_model_props(model, metadata)
    return model


def answer(model, o):
    """What ONNX Runtime says; sorted first, because it does not take unsorted nodes."""
    model = onnx.ModelProto.FromString(model.SerializeToString())
    if o["unsorted"]:
        nodes = list(model.graph.node)[::-1]
        del model.graph.node[:]
        model.graph.node.extend(nodes)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, {"images": picture(o["batch"], HEIGHT, WIDTH)})


def detect_rows(heads):
    """The Detect layer in numpy, for raw heads."""
    levels = []
    for head, stride, anchors in zip(heads, STRIDES, ANCHORS):
        n, _, h, w = head.shape
        s = 1 / (1 + np.exp(-head.reshape(n, 3, ROW, h, w).transpose(0, 1, 3, 4, 2).astype(np.float64)))
        x, y = np.meshgrid(np.arange(w), np.arange(h))
        s[..., 0:2] = (s[..., 0:2] * 2 - 0.5 + np.stack([x, y], -1)) * stride
        s[..., 2:4] = (s[..., 2:4] * 2) ** 2 * anchors.reshape(1, 3, 1, 1, 2)
        levels.append(s.reshape(n, -1, ROW))
    return np.concatenate(levels, 1).astype(np.float32)


def case(folder, name, tolerance=2e-5, head=True, model=None, external=False, **options):
    o = {**DEFAULTS, **options}
    model = model or build(o)
    path = folder / f"{name}.onnx"
    expected = answer(model, o)
    if external:
        onnx.save(model, path, save_as_external_data=True, location=f"{name}.weights", size_threshold=64)
    else:
        onnx.save(model, path)
    rows = detect_rows(expected) if o["raw"] == "anchors" else expected[0]
    rows.astype("<f4").tofile(folder / f"{name}.bin")
    order = slice(None, None, -1 if o["reversed"] else 1)
    CASES.append({"name": name, "batch": o["batch"], "height": HEIGHT, "width": WIDTH, "shape": list(rows.shape),
                  "tolerance": tolerance, "head": head,
                  "strides": STRIDES[order] if head else [], "anchors": ANCHORS[order].flatten().tolist() if head else [],
                  "any_size": head and not o["sizes"]})


class Pictures(CalibrationDataReader):
    def __init__(self):
        self.left = 2

    def get_next(self):
        self.left -= 1
        return {"images": picture(1, HEIGHT, WIDTH)} if self.left >= 0 else None


def quantized(folder):
    """Convolutions only, as one quantizes a detector: the tail stays in f32."""
    source, target = folder / "float.onnx", folder / "quantized.onnx"
    onnx.save(build({**DEFAULTS, "opset": 13}), source)
    quantize_static(source, target, Pictures(), quant_format=QuantFormat.QDQ, per_channel=True,
                    activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8, op_types_to_quantize=["Conv"])
    source.unlink()
    return onnx.load(target)


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    for opset in (9, 10, 11, 13, 16, 18, 21):
        case(folder, f"opset{opset}", opset=opset)
    case(folder, "opset9_slices", opset=9, parts="slice", square="mul", names="list")
    case(folder, "slices", parts="slice", square="mul", full_anchors=True)
    case(folder, "scatter", parts="scatter", names="json")
    case(folder, "dynamic11", opset=11, dynamic=True, grid="computed")
    case(folder, "dynamic17", opset=17, dynamic=True, grid="computed", parts="slice", square="mul")
    case(folder, "sigmoid_first", sigmoid_first=True)
    case(folder, "reversed_levels", reversed=True)
    case(folder, "resize_sizes", opset=13, sizes=True)
    case(folder, "extra_outputs", extra=True, names="list")
    case(folder, "batch2", batch=2)
    case(folder, "half", dtype=np.float16, tolerance=5e-3)
    case(folder, "unsorted", unsorted=True)
    case(folder, "conditional", opset=13, conditional=True)
    case(folder, "external", external=True)
    case(folder, "raw_heads", raw="plain", head=False)
    case(folder, "raw_heads_with_anchors", raw="anchors")
    # One step of the quantizer may fall the other way where two engines round differently.
    case(folder, "qdq", model=quantized(folder), opset=13, tolerance=2e-2)
    (folder / "quantized.onnx").unlink()
    (folder / "cases.json").write_text(json.dumps({"names": NAMES, "classes": CLASSES, "cases": CASES}, indent=1) + "\n")
    total = sum(f.stat().st_size for f in folder.iterdir())
    print(f"{len(CASES)} cases, {total} bytes")


if __name__ == "__main__":
    main()
