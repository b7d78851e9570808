"""Writes YOLOv5 (v6/v7 architecture) as ONNX with seeded random weights.

Speed does not depend on what a network has learnt, so the speed table needs no download: this
script lays out the same nodes as upstream's own export of a fused fp32 model (SiLU as Sigmoid and
Mul, nearest Upsample as Resize, the Detect tail decoded to boxes) and fills the convolutions with
noise of a variance that keeps activations near one. It needs `onnx` and `numpy` only.

    python make_yolov5_onnx.py --size n --output yolov5n.onnx
"""

import argparse
import math

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

SIZES = {  # name: (depth multiple, width multiple)
    "n": (0.33, 0.25),
    "s": (0.33, 0.50),
    "m": (0.67, 0.75),
    "l": (1.00, 1.00),
    "x": (1.33, 1.25),
}
PUBLISHED = {  # parameters after BN folding, 80 classes
    "n": 1867405, "s": 7225885, "m": 21172173, "l": 46533693, "x": 86705005,
}
ANCHORS = {  # stride: anchor boxes in pixels
    8: [(10, 13), (16, 30), (33, 23)],
    16: [(30, 61), (62, 45), (59, 119)],
    32: [(116, 90), (156, 198), (373, 326)],
}
# About one over the standard deviation of SiLU(x) for x ~ N(0, 1) (0.56), a little less so that
# deep networks do not grow: activations keep to 0.1 to 1 from n to x.
SILU_GAIN = 1.65


class Builder:
    """Collects nodes and initializers; every method returns the name of the value it made."""

    def __init__(self, opset, seed):
        self.opset = opset
        self.rng = np.random.default_rng(seed)
        self.nodes = []
        self.initializers = []
        self.channels = {}  # value name -> channels
        self.parameters = 0
        self.macs = 0

    def constant(self, name, array):
        self.initializers.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def node(self, op, inputs, name, outputs=None, **attrs):
        outputs = outputs or [name + "_output_0"]
        self.nodes.append(helper.make_node(op, inputs, outputs, name=name, **attrs))
        return outputs[0]

    def conv2d(self, x, path, c_out, k, s, p, spatial, gain=1.0, bias=None):
        """A bare convolution; `spatial` is the output's (height, width), for the MAC count."""
        c_in = self.channels[x]
        std = gain / math.sqrt(c_in * k * k)
        weight = self.rng.normal(0.0, std, (c_out, c_in, k, k)).astype(np.float32)
        # SiLU's outputs have a positive mean, which would grow from layer to layer: filters that
        # sum to zero do not see it.
        weight -= weight.mean(axis=(1, 2, 3), keepdims=True)
        if bias is None:
            bias = self.rng.normal(0.0, 0.2, c_out).astype(np.float32)
        self.parameters += weight.size + bias.size
        self.macs += weight.size * spatial[0] * spatial[1]
        prefix = path.strip("/").replace("/", ".")
        y = self.node("Conv", [x, self.constant(prefix + ".weight", weight),
                               self.constant(prefix + ".bias", bias)], path + "/Conv",
                      dilations=[1, 1], group=1, kernel_shape=[k, k], pads=[p] * 4, strides=[s, s])
        self.channels[y] = c_out
        return y

    def conv(self, x, path, c_out, k, s, spatial, p=None, gain=SILU_GAIN):
        """Upstream's Conv: convolution, (folded) BN, SiLU."""
        p = k // 2 if p is None else p
        y = self.conv2d(x, path + "/conv", c_out, k, s, p, spatial, gain)
        gate = self.node("Sigmoid", [y], path + "/act/Sigmoid")
        z = self.node("Mul", [y, gate], path + "/act/Mul")
        self.channels[z] = c_out
        return z

    def concat(self, xs, path):
        y = self.node("Concat", xs, path + "/Concat", axis=1)
        self.channels[y] = sum(self.channels[x] for x in xs)
        return y

    def c3(self, x, path, c_out, repeats, spatial, shortcut):
        hidden = c_out // 2
        a = self.conv(x, path + "/cv1", hidden, 1, 1, spatial)
        for i in range(repeats):
            block = f"{path}/m/m.{i}"
            b = self.conv(a, block + "/cv1", hidden, 1, 1, spatial)
            # A residual branch adds to its input: half the gain keeps the sum from growing.
            b = self.conv(b, block + "/cv2", hidden, 3, 1, spatial,
                          gain=SILU_GAIN * (0.5 if shortcut else 1.0))
            a = self.node("Add", [a, b], block + "/Add") if shortcut else b
            self.channels[a] = hidden
        b = self.conv(x, path + "/cv2", hidden, 1, 1, spatial)
        return self.conv(self.concat([a, b], path), path + "/cv3", c_out, 1, 1, spatial)

    def sppf(self, x, path, c_out, spatial):
        x = self.conv(x, path + "/cv1", self.channels[x] // 2, 1, 1, spatial)
        pools = [x]
        for i in range(3):
            y = self.node("MaxPool", [pools[-1]], f"{path}/m{f'_{i}' if i else ''}/MaxPool",
                          ceil_mode=0, kernel_shape=[5, 5], pads=[2] * 4, strides=[1, 1])
            self.channels[y] = self.channels[x]
            pools.append(y)
        return self.conv(self.concat(pools, path), path + "/cv2", c_out, 1, 1, spatial)

    def upsample(self, x, path):
        prefix = path.strip("/")
        roi = ""
        if self.opset < 13:  # required there, though unused
            roi = self.constant(prefix + ".roi", np.zeros(0, np.float32))
        scales = self.constant(prefix + ".scales", np.array([1, 1, 2, 2], np.float32))
        y = self.node("Resize", [x, roi, scales], path + "/Resize", mode="nearest",
                      coordinate_transformation_mode="asymmetric", nearest_mode="floor",
                      cubic_coeff_a=-0.75)
        self.channels[y] = self.channels[x]
        return y

    def detect(self, levels, path, nc):
        """Upstream's Detect in export mode; `levels` is (value, stride, height, width) a scale."""
        no, rows = nc + 5, []
        two = self.constant("model.24.two", np.array(2, np.float32))
        flat = self.constant("model.24.rows", np.array([1, -1, no], np.int64))
        split = {"split": [2, 2, nc + 1]}
        split_input = []
        if self.opset >= 13:
            split_input = [self.constant("model.24.split", np.array(split.pop("split"), np.int64))]
        for i, (x, stride, h, w) in enumerate(levels):
            tag = f"_{i}" if i else ""
            bias = np.zeros((3, no), np.float32)  # upstream's priors: about 8 objects an image
            bias[:, 4] = math.log(8 / (640 / stride) ** 2)
            bias[:, 5:] = math.log(0.6 / (nc - 0.99999)) if nc > 1 else 0.0
            y = self.conv2d(x, f"{path}/m.{i}", 3 * no, 1, 1, 0, (h, w), SILU_GAIN,
                            bias.reshape(-1))
            shape = self.constant(f"model.24.shape.{i}", np.array([1, 3, no, h, w], np.int64))
            y = self.node("Reshape", [y, shape], f"{path}/Reshape{tag}")
            y = self.node("Transpose", [y], f"{path}/Transpose{tag}", perm=[0, 1, 3, 4, 2])
            y = self.node("Sigmoid", [y], f"{path}/Sigmoid{tag}")
            parts = [f"{path}/Split{tag}_output_{k}" for k in range(3)]
            self.node("Split", [y] + split_input, f"{path}/Split{tag}", parts, axis=4, **split)
            gx, gy = np.meshgrid(np.arange(w), np.arange(h))
            grid = np.stack([gx, gy], -1).astype(np.float32) - 0.5
            grid = np.broadcast_to(grid, (1, 3, h, w, 2))
            boxes = np.array(ANCHORS[stride], np.float32).reshape(1, 3, 1, 1, 2)
            boxes = np.broadcast_to(boxes, (1, 3, h, w, 2))
            xy = self.node("Mul", [parts[0], two], f"{path}/xy2{tag}")
            cells = self.constant(f"model.24.grid.{i}", grid)
            xy = self.node("Add", [xy, cells], f"{path}/Add{tag}")
            pixels = self.constant(f"model.24.stride.{i}", np.array(stride, np.float32))
            xy = self.node("Mul", [xy, pixels], f"{path}/xy{tag}")
            wh = self.node("Mul", [parts[1], two], f"{path}/wh2{tag}")
            wh = self.node("Pow", [wh, two], f"{path}/Pow{tag}")
            anchors = self.constant(f"model.24.anchor_grid.{i}", boxes)
            wh = self.node("Mul", [wh, anchors], f"{path}/wh{tag}")
            y = self.node("Concat", [xy, wh, parts[2]], f"{path}/Concat{tag}", axis=4)
            rows.append(self.node("Reshape", [y, flat], f"{path}/rows{tag}"))
        self.node("Concat", rows, f"{path}/Concat_{len(levels)}", ["output0"], axis=1)


def build(size, height, width, nc, seed, opset):
    """Returns (ModelProto, parameters, multiply-adds of one image)."""
    depth, multiple = SIZES[size]
    b = Builder(opset, seed)

    def ch(c):  # upstream's make_divisible
        return math.ceil(c * multiple / 8) * 8

    def n(repeats):
        return max(round(repeats * depth), 1)

    def at(stride):
        return height // stride, width // stride

    b.channels["images"] = 3
    x = b.conv("images", "/model.0", ch(64), 6, 2, at(2), p=2)
    x = b.conv(x, "/model.1", ch(128), 3, 2, at(4))
    x = b.c3(x, "/model.2", ch(128), n(3), at(4), True)
    x = b.conv(x, "/model.3", ch(256), 3, 2, at(8))
    p3 = b.c3(x, "/model.4", ch(256), n(6), at(8), True)
    x = b.conv(p3, "/model.5", ch(512), 3, 2, at(16))
    p4 = b.c3(x, "/model.6", ch(512), n(9), at(16), True)
    x = b.conv(p4, "/model.7", ch(1024), 3, 2, at(32))
    x = b.c3(x, "/model.8", ch(1024), n(3), at(32), True)
    x = b.sppf(x, "/model.9", ch(1024), at(32))
    top = b.conv(x, "/model.10", ch(512), 1, 1, at(32))
    x = b.concat([b.upsample(top, "/model.11"), p4], "/model.12")
    x = b.c3(x, "/model.13", ch(512), n(3), at(16), False)
    middle = b.conv(x, "/model.14", ch(256), 1, 1, at(16))
    x = b.concat([b.upsample(middle, "/model.15"), p3], "/model.16")
    small = b.c3(x, "/model.17", ch(256), n(3), at(8), False)
    x = b.conv(small, "/model.18", ch(256), 3, 2, at(16))
    x = b.concat([x, middle], "/model.19")
    medium = b.c3(x, "/model.20", ch(512), n(3), at(16), False)
    x = b.conv(medium, "/model.21", ch(512), 3, 2, at(32))
    x = b.concat([x, top], "/model.22")
    large = b.c3(x, "/model.23", ch(1024), n(3), at(32), False)
    b.detect([(small, 8, *at(8)), (medium, 16, *at(16)), (large, 32, *at(32))], "/model.24", nc)

    rows = 3 * sum(h * w for h, w in map(at, (8, 16, 32)))
    graph = helper.make_graph(
        b.nodes, f"yolov5{size}",
        [helper.make_tensor_value_info("images", TensorProto.FLOAT, [1, 3, height, width])],
        [helper.make_tensor_value_info("output0", TensorProto.FLOAT, [1, rows, nc + 5])],
        b.initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)],
                              producer_name="make_yolov5_onnx")
    model.ir_version = 7 if opset < 15 else 8
    onnx.checker.check_model(model)
    return model, b.parameters, b.macs


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", choices=SIZES, required=True)
    parser.add_argument("--imgsz", type=int, nargs=2, default=(640, 640), metavar=("H", "W"))
    parser.add_argument("--nc", type=int, default=80, help="classes")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--opset", type=int, default=12)
    parser.add_argument("--output", help="default: yolov5<size>.onnx")
    args = parser.parse_args()
    if any(v <= 0 or v % 32 for v in args.imgsz):
        parser.error("--imgsz must be positive multiples of 32")

    model, parameters, macs = build(args.size, *args.imgsz, args.nc, args.seed, args.opset)
    if args.nc == 80 and parameters != PUBLISHED[args.size]:
        raise SystemExit(f"yolov5{args.size}: {parameters} parameters, "
                         f"upstream publishes {PUBLISHED[args.size]}")
    path = args.output or f"yolov5{args.size}.onnx"
    onnx.save(model, path)
    print(f"{path}: {parameters} parameters, {macs / 1e9:.3f} GMAC")


if __name__ == "__main__":
    main()
