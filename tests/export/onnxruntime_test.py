#!/usr/bin/env python3
"""ONNX's checker accepts what `ferry export` writes, and ONNX Runtime computes from it what ferry computes.

Environment: FERRY and EXPORT_TEST, the programs; EXPORT_VENV, a folder for a virtual environment with onnx and onnxruntime
from PyPI, made once. Where PyPI cannot be reached (or venv is not installed) nothing is compared, the test says so and
exits with 77, which CTest shows as skipped; with FERRY_REQUIRE_PYPI=1 it fails. That ferry reads its own files back is
checked by export_test in any case.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.append("tools")
import pypi_venv

PACKAGES = ["numpy", "onnx>=1.16,<2", "onnxruntime>=1.18,<2", "pillow"]
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DATA = pathlib.Path(os.environ.get("FERRY_DATA", ROOT.parent / "shared/data"))
GOLDEN = pathlib.Path(os.environ.get("FERRY_GOLDEN", ROOT.parent / "shared/golden"))
CHECKPOINTS = ROOT / "tests/data/checkpoints"
SIZE = (64, 96)  # height, width of the small detectors' pictures


def run(*arguments):
    done = subprocess.run([str(a) for a in arguments], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def session(path):
    """ONNX Runtime's session of a file that ONNX's own checker has accepted, shapes included."""
    import onnx
    import onnxruntime

    onnx.checker.check_model(str(path), full_check=True)
    onnx.shape_inference.infer_shapes(onnx.load(path), strict_mode=True, data_prop=True)
    onnxruntime.set_default_logger_severity(3)
    return onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])


def boxes(rows, conf_thres=0.25, iou_thres=0.45):
    """Ultralytics' non_max_suppression with one class a box: class, confidence, x1, y1, x2, y2, best first."""
    import numpy as np

    rows = rows[rows[:, 4] > conf_thres]
    scores = rows[:, 5:] * rows[:, 4:5]
    classes, best = scores.argmax(1), scores.max(1)
    corners = np.concatenate([rows[:, :2] - rows[:, 2:4] / 2, rows[:, :2] + rows[:, 2:4] / 2], 1)
    order = [i for i in np.argsort(-best, kind="stable") if best[i] > conf_thres]
    kept = []
    for i in order:
        def overlap(k):
            if classes[i] != classes[k]:
                return 0
            low, high = np.maximum(corners[i, :2], corners[k, :2]), np.minimum(corners[i, 2:], corners[k, 2:])
            both = np.prod(np.maximum(high - low, 0))
            area = lambda j: np.prod(corners[j, 2:] - corners[j, :2])
            return both / (area(i) + area(k) - both)
        if all(overlap(k) <= iou_thres for k in kept):
            kept.append(i)
    return [(int(classes[i]), float(best[i]), *map(float, corners[i])) for i in kept]


class OnnxRuntime(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.model = self.folder / "model.onnx"

    def export(self, weights, *arguments):
        run(os.environ["FERRY"], "export", "--weights", weights, "--output", self.model, *arguments)
        return session(self.model)

    def noise(self, batch=1, height=SIZE[0], width=SIZE[1]):
        import numpy as np

        return np.random.default_rng(7).random((batch, 3, height, width), np.float32)

    def near(self, got, wanted, tolerance):
        import numpy as np

        self.assertEqual(got.shape, wanted.shape)
        self.assertEqual(got.dtype, wanted.dtype)
        np.testing.assert_allclose(got, wanted, tolerance, tolerance)

    def test_every_case_of_every_op_at_every_opset(self):
        import numpy as np

        types = {"f32": np.float32, "i64": np.int64, "i32": np.int32, "u8": np.uint8, "i8": np.int8, "bool": np.bool_}
        run("env", f"FERRY_EXPORT_DUMP={self.folder}", os.environ["EXPORT_TEST"], "--gtest_filter=*OpCases*")
        files = sorted(self.folder.glob("*.onnx"))
        self.assertGreater(len(files), 1200)
        for file in files:
            with self.subTest(file.name):
                case = json.loads(file.with_suffix(".json").read_text())
                tensor = lambda t: np.array(t["data"], types[t["dtype"]]).reshape(t["shape"])
                floats = 5e-3 if file.stem.endswith("_half") else 1e-4
                outputs = session(file).run(None, {name: tensor(t) for name, t in case["inputs"].items()})
                for got, wanted in zip(outputs, map(tensor, case["outputs"]), strict=True):
                    self.near(got, wanted, floats if got.dtype == np.float32 else 0)

    def test_every_small_checkpoint_the_same_however_it_is_written(self):
        for weights in sorted(CHECKPOINTS.glob("v*.pt")):
            if "weights" in weights.name or "classification" in weights.name or "segmentation" in weights.name:
                continue
            size = ["--imgsz", *SIZE]
            plain = self.export(weights, *size, "--no-simplify").run(None, {"images": self.noise()})[0]
            for options in (["--opset", 12], ["--opset", 13], ["--opset", 17], ["--dynamic"]):
                with self.subTest(weights=weights.name, options=options):
                    got = self.export(weights, *size, *options).run(None, {"images": self.noise()})[0]
                    self.near(got, plain, 5e-3 if "attention" in weights.name else 1e-3)

    def test_dynamic_axes_take_another_batch_and_size(self):
        weights = CHECKPOINTS / "v7_cross_repacked.pt"
        picture = self.noise(2, 96, 160)
        fixed = self.export(weights, "--imgsz", 96, 160, "--batch-size", 2).run(None, {"images": picture})[0]
        self.near(self.export(weights, "--imgsz", 64, "--dynamic").run(None, {"images": picture})[0], fixed, 1e-4)

    def test_half_keeps_its_ports_and_its_boxes(self):
        import onnx

        weights = CHECKPOINTS / "v7_cross_repacked.pt"
        full = self.export(weights, "--imgsz", *SIZE).run(None, {"images": self.noise()})[0]
        self.near(self.export(weights, "--imgsz", *SIZE, "--half").run(None, {"images": self.noise()})[0], full, 3e-2)
        stored = {t.data_type for t in onnx.load(self.model).graph.initializer if len(t.dims) == 4}
        self.assertEqual(stored, {onnx.TensorProto.FLOAT16})

    def test_metadata_are_those_of_ultralytics(self):
        self.export(CHECKPOINTS / "tiny.pt")
        import ast

        meta = session(self.model).get_modelmeta().custom_metadata_map
        self.assertEqual(meta["stride"], "8")
        self.assertEqual(ast.literal_eval(meta["names"]), {0: "kind 0"})
        self.assertEqual(session(self.model).get_modelmeta().producer_name, "ferry")

    def test_real_checkpoints_give_what_pytorch_gives(self):
        import numpy as np

        channel, y, x = np.meshgrid(np.arange(3), np.arange(320), np.arange(320), indexing="ij")
        picture = (((7 * y + 13 * x + 29 * channel + y * x % 31) % 256).astype(np.float32) / np.float32(255))[None]
        for name in ("yolov5n_v61_coco80", "yolov5n_exp7_dwconv_coco80"):
            weights, answer = DATA / f"weights/{name}.pt", GOLDEN / f"{name}_formula320_output.npy"
            if not (weights.exists() and answer.exists()):
                self.skipTest(f"{weights} or {answer} absent; set FERRY_DATA and FERRY_GOLDEN to the folders of real files")
            wanted = np.load(answer)
            for options in ([], ["--opset", 17], ["--dynamic"], ["--no-simplify"]):
                with self.subTest(name, options=options):
                    got = self.export(weights, "--imgsz", 320, *options).run(None, {"images": picture})[0]
                    np.testing.assert_allclose(got[..., :4], wanted[..., :4], atol=4e-3)  # pixels, of up to 1500
                    np.testing.assert_allclose(got[..., 4:], wanted[..., 4:], atol=1e-5)

    def test_a_foreign_file_written_anew_computes_the_same(self):
        import numpy as np

        source = DATA / "weights/shuffle_landmark_rawheads_320x640.onnx"
        if not source.exists():
            self.skipTest(f"{source} absent; set FERRY_DATA to the folder of real files")
        original = session(source)
        port = original.get_inputs()[0]
        picture = np.random.default_rng(3).random(port.shape, np.float32)
        wanted = original.run(None, {port.name: picture})
        for options in ([], ["--opset", 17], ["--no-simplify"]):
            with self.subTest(options=options):
                got = self.export(source, *options).run(None, {port.name: picture})
                for a, b in zip(got, wanted, strict=True):
                    self.near(a, b, 1e-3)

    def test_boxes_are_those_of_ferry_detect(self):
        import numpy as np
        from PIL import Image

        weights, jpeg = DATA / "weights/yolov5n_v61_coco80.pt", DATA / "images/bus.jpg"
        if not (weights.exists() and jpeg.exists()):
            self.skipTest(f"{weights} or {jpeg} absent; set FERRY_DATA to the folder of real files")
        picture = self.folder / "picture.png"  # of the network's own size: nothing is letterboxed
        pixels = Image.open(jpeg).convert("RGB").resize((480, 640))
        pixels.save(picture)
        rows = self.export(weights, "--imgsz", 640, 480).run(
            None, {"images": np.asarray(pixels, np.float32).transpose(2, 0, 1)[None] / 255})[0]
        wanted = boxes(rows[0])
        self.assertGreater(len(wanted), 3)
        for file in (weights, self.model):
            found = json.loads(run(os.environ["FERRY"], "detect", "--weights", file, "--source", picture, "--imgsz", 640,
                                   "--nosave", "--quiet", "--json", "-", "--project", self.folder / "runs"))
            found = [(d["class_id"], d["confidence"], *d["box"]) for d in found[0]["detections"]]
            self.assertEqual([b[0] for b in found], [b[0] for b in wanted])
            # scores to 1e-4, corners to a hundredth of a pixel
            np.testing.assert_allclose([b[1] for b in found], [b[1] for b in wanted], atol=1e-4)
            inside_picture = np.clip([b[2:] for b in wanted], 0, [480, 640, 480, 640])
            np.testing.assert_allclose([b[2:] for b in found], inside_picture, atol=0.01)


if __name__ == "__main__":
    if "--inside" not in sys.argv:
        sys.exit(pypi_venv.run_inside(os.environ["EXPORT_VENV"], PACKAGES, __file__, "exported files against ONNX Runtime"))
    sys.argv.remove("--inside")
    sys.path.append(str(ROOT / "tools"))
    import unittest_main

    unittest_main.main()
