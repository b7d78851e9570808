#!/usr/bin/env python3
"""ferry export as its users call it. FERRY is the program to test; what ONNX Runtime makes of the files is the affair of
tests/export/onnxruntime_test.py."""
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.append("tools")
import unittest_main

FERRY = os.environ.get("FERRY", "build/ferry")
TINY = pathlib.Path("tests/data/checkpoints/tiny.pt").resolve()
PLAIN = pathlib.Path("tests/data/checkpoints/v7_cross_repacked.pt").resolve()


def ferry(*arguments, cwd=None):
    return subprocess.run([str(pathlib.Path(FERRY).resolve()), *map(str, arguments)], capture_output=True, text=True,
                          timeout=300, cwd=cwd)


class Export(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="ferry export ")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.output = self.folder / "model.onnx"

    def export(self, *arguments, weights=TINY):
        done = ferry("export", "--weights", weights, "--output", self.output, *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def fails(self, code, *arguments, text, weights=TINY, output=None):
        done = ferry("export", "--weights", weights, "--output", output or self.output, *arguments)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertIn(text, done.stderr)
        self.assertEqual(list(self.folder.iterdir()), [], "something was left behind")

    def inspect(self):
        done = ferry("inspect", self.output, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_says_what_was_written_and_what_to_do_with_it(self):
        text = self.export("--imgsz", 64, 96)
        self.assertRegex(text, re.escape(f"{TINY}: YOLOv5 v6.2 or v7, 1 class, ") + r"\d+ parameters \(0\.0 MB\)\n")
        self.assertRegex(text, r"ONNX: opset 12, \d+ nodes, f32\n")
        self.assertIn("in   images f32[1,3,64,96]\n", text)
        self.assertIn("out  output0 f32[1,", text)
        self.assertIn(f"ferry detect --weights {shlex.quote(str(self.output))} --source PICTURE\n", text)
        self.assertIn(f"ferry inspect {shlex.quote(str(self.output))}\n", text)

    def test_what_was_written_is_the_same_detector(self):
        self.export()
        names = [json.loads(ferry("inspect", file, "--json").stdout)["names"] for file in (TINY, self.output)]
        self.assertEqual(names[0], names[1])

    def test_the_file_stands_beside_the_weights_unless_told_otherwise(self):
        weights = self.folder / "best.pt"
        shutil.copy(TINY, weights)
        done = ferry("export", "--weights", weights)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue((self.folder / "best.onnx").exists())

    def test_a_model_is_not_written_over_itself(self):
        self.export()
        before = self.output.read_bytes()
        done = ferry("export", "--weights", self.output)
        self.assertEqual(done.returncode, 1)
        self.assertIn("is what is exported: name another file with --output", done.stderr)
        self.assertEqual(self.output.read_bytes(), before)

    def test_ultralytics_spellings_of_the_flags(self):
        for arguments in (["--include", "onnx"], ["--format", "onnx"], ["--img-size", "64"], ["--batch_size", "2"],
                          ["--simplify"], ["--no-simplify"], ["--half"], ["--dynamic"], ["--raw_heads"], ["--opset", "17"]):
            with self.subTest(arguments):
                self.export(*arguments)

    def test_size_batch_and_opset_are_in_the_file(self):
        text = self.export("--imgsz", 64, "--batch-size", 3, "--opset", 17)
        self.assertIn("opset 17", text)
        self.assertIn("in   images f32[3,3,64,64]\n", text)
        self.assertIn("opset 17", self.inspect()["format"])

    def test_raw_heads(self):
        text = self.export("--raw-heads", "--imgsz", 64, weights=PLAIN)
        self.assertRegex(text, r"out  output0 f32\[1,\d+,\d+,\d+\], output1 f32\[1,\d+,\d+,\d+\]")

    def test_an_onnx_file_and_a_yaml_are_exported_too(self):
        self.export("--opset", 13, weights=pathlib.Path("tests/data/onnx/dynamic17.onnx").resolve())
        self.output.unlink()
        self.export("--imgsz", 64, weights=pathlib.Path("tests/data/checkpoints/v7_plain.yaml").resolve())

    def test_missing_weights(self):
        self.fails(1, weights=self.folder / "absent.pt", text="absent.pt")

    def test_a_file_that_is_no_model(self):
        self.fails(1, weights=pathlib.Path(__file__).resolve(),
                   text="neither a PyTorch checkpoint nor an ONNX file nor a model yaml")

    def test_an_output_that_cannot_be_written(self):
        self.fails(1, output=self.folder / "no such folder" / "model.onnx", text="no such folder/model.onnx")

    def test_a_size_that_is_no_multiple_of_the_stride(self):
        self.fails(1, "--imgsz", 100, text="100 is not a multiple of the model's largest stride 8")

    def test_opsets_that_are_not_written(self):
        for opset in (11, 18, "x"):
            with self.subTest(opset):
                self.fails(2, "--opset", opset, text="--opset")

    def test_other_formats_are_refused_by_name(self):
        self.fails(1, "--include", "engine", text="format 'engine' is not supported, only onnx")


if __name__ == "__main__":
    unittest_main.main()
