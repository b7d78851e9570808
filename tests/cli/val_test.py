#!/usr/bin/env python3
"""`ferry val` as its users call it: figures equal to Ultralytics' on COCO128, files, bad datasets.

Environment: FERRY, the program; FERRY_DATA and FERRY_GOLDEN, which the comparison with Ultralytics needs.
"""
import csv
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.append("tools")
import unittest_main

ROOT = pathlib.Path(__file__).resolve().parents[2]
FERRY = str(pathlib.Path(os.environ.get("FERRY", ROOT / "build/ferry")).resolve())
DATA = pathlib.Path(os.environ.get("FERRY_DATA", ROOT / "../shared/data")).resolve()
GOLDEN = pathlib.Path(os.environ.get("FERRY_GOLDEN", ROOT / "../shared/golden")).resolve()
SANITIZED = bool(os.environ.get("FERRY_SANITIZED"))
SIDE = 96 if SANITIZED else 320  # of the input, where figures do not matter
NETS = ("yolov5n_v61_coco80", "yolov5n_exp7_dwconv_coco80")

needs_data = unittest.skipUnless(DATA.is_dir() and GOLDEN.is_dir(), f"no data in {DATA} or {GOLDEN}: nothing compared")


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.at = pathlib.Path(self.folder.name)
        self.addCleanup(self.folder.cleanup)

    def val(self, *arguments, code=0):
        environment = {**os.environ, "XDG_CACHE_HOME": str(self.at / "cache")}
        done = subprocess.run([FERRY, "val", *map(str, arguments)], cwd=self.at, env=environment, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=300, check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done


@needs_data
class Coco128(Case):
    def figures(self, weights, *arguments):
        self.val("--weights", DATA / f"weights/{weights}.pt", "--data", DATA / "coco128/data.yaml", "--json", "o.json",
                 *arguments)
        return json.loads((self.at / "o.json").read_text(encoding="utf-8"))

    @unittest.skipIf(SANITIZED, "a sanitized program is a hundred times slower; the release build compares the figures")
    def test_figures_equal_ultralytics(self):
        golden = json.loads((GOLDEN / "val_coco128.json").read_text(encoding="utf-8"))
        for net in NETS:
            for rect, flag in ((True, "--rect"), (False, "--no-rect")):
                with self.subTest(net=net, rect=rect):
                    want, got = golden[f"{net} train128 rect={rect}"], self.figures(net, flag, "--no-plots")
                    self.assertEqual((got["images"], got["instances"]), (want["images"], want["instances"]))
                    for ours, theirs in (("precision", "P"), ("recall", "R"), ("map50", "mAP50"), ("map50_95", "mAP50-95")):
                        self.assertAlmostEqual(got[ours], want[theirs], delta=0.002, msg=ours)
                    classes = {str(c["class_id"]): c for c in got["per_class"]}
                    self.assertEqual(set(classes), set(want["per_class"]))
                    near = [abs(classes[c]["map50"] - v["ap50"]) < 0.01 and abs(classes[c]["map50_95"] - v["ap50-95"]) < 0.01
                            for c, v in want["per_class"].items()]
                    self.assertGreaterEqual(sum(near), 0.9 * len(near))

    def test_leaves_its_files(self):
        result = self.val("--weights", DATA / f"weights/{NETS[0]}.pt", "--data",
                          DATA / "coco128/train128/instances_train128.json", "--imgsz", SIDE, "--save-json", "--save-txt",
                          "--save-conf", "--verbose")
        run = self.at / "runs/val/exp"
        names = {p.name for p in run.iterdir()}
        self.assertLessEqual({"PR_curve.png", "P_curve.png", "R_curve.png", "F1_curve.png", "confusion_matrix.png",
                              "val_batch0_labels.jpg", "val_batch0_pred.jpg", "val_batch2_pred.jpg", "results.csv",
                              "results.json", "predictions.json", "labels"}, names)
        self.assertIn("10 crowds", result.stdout)  # SOURCES.md: 939 annotations, 10 of them crowd
        self.assertRegex(result.stdout, r"Class\s+Images\s+Instances\s+P\s+R\s+mAP50\s+mAP50-95\n\s+all\s+128\s+929 ")
        self.assertRegex(result.stdout, r"\n\s+person\s+128\s+254 ")  # 254 persons in COCO128
        predictions = json.loads((run / "predictions.json").read_text(encoding="utf-8"))
        self.assertEqual(set(predictions[0]), {"image_id", "category_id", "bbox", "score"})
        self.assertIn(90, {p["category_id"] for p in predictions})  # COCO's ids, not classes: toothbrush is 90
        rows = list(csv.DictReader((run / "results.csv").read_text(encoding="utf-8").splitlines()))
        self.assertEqual((rows[0]["class"], len(rows)), ("all", 72))  # 71 classes have objects
        labels = list((run / "labels").iterdir())
        self.assertEqual(len(labels), 128)
        self.assertTrue(all(len(line.split()) == 6 for p in labels[:5] for line in p.read_text().splitlines()))

    def test_json_on_standard_output_is_alone(self):
        done = self.val("--weights", DATA / f"weights/{NETS[0]}.pt", "--data", DATA / "coco128/data.yaml", "--imgsz", min(SIDE, 160),
                        "--no-plots", "--json", "-", "--task", "train")
        figures = json.loads(done.stdout)
        self.assertLessEqual({"images", "instances", "precision", "recall", "map50", "map50_95", "coco", "per_class",
                              "speed_ms"}, set(figures))
        self.assertLessEqual({"AP", "AP50", "AP75", "APs", "APm", "APl", "AR1", "AR10", "AR100"}, set(figures["coco"]))
        self.assertLessEqual({"preprocess", "inference", "nms"}, set(figures["speed_ms"]))

    def test_one_class_and_some_classes(self):
        single = self.figures(NETS[0], "--imgsz", SIDE, "--single-cls", "--no-plots")
        self.assertEqual([c["class_name"] for c in single["per_class"]], ["item"])
        self.assertEqual(single["instances"], 929)
        some = self.figures(NETS[0], "--imgsz", SIDE, "--classes", 0, "--no-plots")
        self.assertEqual([(c["class_id"], c["instances"]) for c in some["per_class"]], [(0, 254)])

    def test_a_dataset_of_other_classes_is_refused(self):
        done = self.val("--weights", DATA / f"weights/{NETS[0]}.pt", "--data", DATA / "helmet/data.yaml", code=1)
        self.assertRegex(done.stderr, r"80 classes, .*helmet/data.yaml has 4")

    def test_bad_pictures_and_rows_are_reported_and_the_rest_counts(self):
        (self.at / "set/images").mkdir(parents=True)
        (self.at / "set/labels").mkdir()
        good = sorted((DATA / "coco128/train128/images").iterdir())[:2]
        for picture in good:
            shutil.copy(picture, self.at / "set/images")
            shutil.copy(DATA / f"coco128/train128/labels/{picture.stem}.txt", self.at / "set/labels")
        rows = (self.at / f"set/labels/{good[0].stem}.txt").read_text().splitlines()
        with (self.at / f"set/labels/{good[0].stem}.txt").open("a", encoding="utf-8") as file:
            file.write("80 .5 .5 .1 .1\n0 .5 .5 .1\n0 nan .5 .1 .1\n")
        (self.at / "set/images/broken.jpg").write_bytes(b"\xff\xd8\xff\xe0 this is no picture")
        names = json.dumps([f"c{i}" for i in range(80)])
        (self.at / "d.yaml").write_text(f"path: set\ntrain: images\nval: images\nnames: {names}\n", encoding="utf-8")
        done = self.val("--weights", DATA / f"weights/{NETS[0]}.pt", "--data", "d.yaml", "--imgsz", min(SIDE, 160))
        for number, words in ((len(rows) + 1, "class 80"), (len(rows) + 2, "4 columns"), (len(rows) + 3, "nan")):
            self.assertRegex(done.stderr, rf"{re.escape(good[0].stem)}\.txt:{number}: bad row: .*{words}")
        self.assertIn("broken.jpg", done.stderr)
        self.assertIn("2 images, 0 backgrounds, 1 corrupt", done.stdout)


class Usage(Case):
    def test_says_what_is_missing(self):
        self.assertIn("--data is required", self.val(code=2).stderr)
        self.assertIn("no such file", self.val("--data", "nowhere.yaml", code=1).stderr)
        self.val("--data", "x.yaml", "--task", "sleep", code=2)

    def test_a_yaml_that_is_none_is_refused(self):
        for text in ("", "- 1\n- 2\n", "train: [", "names: [a]\nval: nowhere\n", "names: 3\nval: .\n", "nc: 2\nnames: [a]\nval: .\n"):
            with self.subTest(text=text):
                (self.at / "d.yaml").write_text(text, encoding="utf-8")
                self.assertIn("d.yaml", self.val("--data", "d.yaml", code=1).stderr)


if __name__ == "__main__":
    unittest_main.main()
