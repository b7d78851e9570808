#!/usr/bin/env python3
"""`ferry dataset` as its users call it: check, stats, convert, there and back, exit codes.

Environment: FERRY, the program; FERRY_DATA for the real datasets.
"""
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree
import zlib

sys.path.append("tools")
import unittest_main

ROOT = pathlib.Path(__file__).resolve().parents[2]
FERRY = str(pathlib.Path(os.environ.get("FERRY", ROOT / "build/ferry")).resolve())
DATA = pathlib.Path(os.environ.get("FERRY_DATA", ROOT / "../shared/data")).resolve()

needs_data = unittest.skipUnless(DATA.is_dir(), f"no data in {DATA}: real datasets not checked")


def png(width, height):
    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    rows = (b"\0" + b"\x80" * 3 * width) * height
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="ferry dataset ")
        self.addCleanup(folder.cleanup)
        self.at = pathlib.Path(folder.name)

    def dataset(self, *arguments, code=0):
        environment = {**os.environ, "XDG_CACHE_HOME": str(self.at / "cache")}
        done = subprocess.run([FERRY, "dataset", *map(str, arguments)], cwd=self.at, env=environment, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=300, check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def write(self, name, content):
        path = self.at / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def make_yolo(self, rows="0 0.5 0.5 0.25 0.5\n1 0.25 0.25 0.125 0.25 0.5 0.75\n"):
        for split in ("train", "val"):
            self.write(f"set/images/{split}/{split}1.png", png(40, 20))
            self.write(f"set/labels/{split}/{split}1.txt", rows)
        return self.write("set/data.yaml", "path: .\ntrain: images/train\nval: images/val\nnames: [cat, dog]\n")


class Check(Case):
    def test_a_sound_dataset(self):
        done = self.dataset("check", self.make_yolo())
        self.assertEqual(done.stdout,
                         "train: yolo, 1 pictures, 1 sound, 2 boxes of 2 classes\n         1 outlines made boxes\n"
                         "val: yolo, 1 pictures, 1 sound, 2 boxes of 2 classes\n         1 outlines made boxes\n"
                         "no problems found\n")
        self.assertEqual(done.stderr, "")
        self.dataset("check", "set", "--strict", "--split", "val")

    def test_bad_rows_are_named_and_fail_only_when_strict(self):
        self.make_yolo("0 0.5 0.5 0.25 0.5\r\n5 0.5 0.5 0.1 0.1\r\n0 0.5 0.5 0.25 0.5\r\n\x1b[31m 1 1 1 1\n")
        done = self.dataset("check", "set/data.yaml", "--split", "val", "--json", "found.json")
        self.assertIn("labels/val/val1.txt:2: bad row: class 5, but the classes are 0 to 1\n", done.stdout)
        self.assertIn("labels/val/val1.txt:3: duplicate: the same box again\n", done.stdout)
        self.assertNotIn("\x1b", done.stdout)  # a label file does not colour the terminal
        self.dataset("check", "set/data.yaml", "--strict", code=1)
        found = json.loads((self.at / "found.json").read_text(encoding="utf-8"))[0]
        self.assertEqual((found["split"], found["pictures"], found["boxes"], found["bad_rows"], found["duplicates"],
                          found["windows_text"]), ("val", 1, 1, 2, 1, 1))
        self.assertEqual(len(found["problems"]), 3)

    def test_twenty_problems_are_printed_and_all_when_verbose(self):
        self.make_yolo("9 0.5 0.5 0.1 0.1\n" * 50)
        short = self.dataset("check", "set", "--split", "val").stdout
        self.assertEqual(short.count("bad row:"), 20)
        self.assertIn("and 30 more; --verbose lists them", short)
        self.assertEqual(self.dataset("check", "set", "--split", "val", "--verbose").stdout.count("bad row:"), 50)

    def test_what_is_no_dataset_is_refused(self):
        self.assertIn("no such file or folder", self.dataset("check", "nowhere", code=1).stderr)
        self.write("a.json", "{}")
        self.assertIn("not COCO instances", self.dataset("check", "a.json", code=1).stderr)
        self.write("empty/.keep", "")
        self.assertIn("no sound picture", self.dataset("check", "empty", code=1).stderr)
        self.dataset("mend", "a.json", code=2)
        self.dataset("check", code=2)

    @needs_data
    def test_real_datasets(self):
        self.assertIn("1 boxes without area", self.dataset("check", DATA / "bccd", "--split", "train").stdout)
        self.assertIn("no problems found", self.dataset("check", DATA / "helmet/data.yaml").stdout)
        coco = self.dataset("check", DATA / "coco128/data.yaml", "--split", "val").stdout
        self.assertRegex(coco, r"128 pictures, 128 sound, 929 boxes of 80 classes\n")
        self.assertRegex(coco, r" 2 labels without a picture\n")


class Stats(Case):
    def test_tables_json_and_plot(self):
        self.make_yolo()
        done = self.dataset("stats", "set", "--split", "val", "--json", "-")
        stats = json.loads(done.stdout)[0]
        self.assertEqual((stats["pictures"], stats["boxes"], stats["most_boxes"]), (1, 2, 2))
        self.assertEqual(stats["by_area"], {"small": 2, "medium": 0, "large": 0})
        self.assertEqual(stats["classes"][1], {"class_id": 1, "class_name": "dog", "boxes": 1, "pictures": 1})
        self.assertRegex(done.stderr, r"cat +1 +1 +50.0%")
        if "warning" not in done.stderr:  # no font is installed
            self.assertEqual((self.at / "runs/dataset/exp/labels_val.jpg").read_bytes()[:2], b"\xff\xd8")


class Convert(Case):
    def test_the_four_ways(self):
        self.make_yolo("0 0.5 0.5 0.25 0.5\n")
        done = self.dataset("convert", "set", "--to", "coco")
        self.assertIn("2 pictures, 2 boxes written to runs/dataset/exp/set_coco as coco\n", done.stdout)
        coco = json.loads((self.at / "runs/dataset/exp/set_coco/annotations/instances_val.json").read_text("utf-8"))
        self.assertEqual(coco["annotations"][0]["bbox"], [15, 5, 10, 10])  # of 40 x 20
        self.assertEqual(coco["categories"], [{"id": 1, "name": "cat"}, {"id": 2, "name": "dog"}])
        self.dataset("convert", "runs/dataset/exp/set_coco", "--to", "voc", "--output", "voc")
        box = xml.etree.ElementTree.parse(self.at / "voc/Annotations/val1.xml").find("object/bndbox")
        self.assertEqual([v.text for v in box], ["15", "5", "25", "15"])
        self.dataset("convert", "voc", "--to", "yolo", "--output", "yolo", "--copy")
        self.assertEqual((self.at / "yolo/labels/train/train1.txt").read_text("utf-8"), "0 0.5 0.5 0.25 0.5\n")
        self.assertEqual((self.at / "yolo/images/val/val1.png").read_bytes(), png(40, 20))
        self.dataset("check", "yolo", "--strict")

    def test_what_a_form_cannot_hold_is_said(self):
        self.make_yolo()
        done = self.dataset("convert", "set", "--to", "voc", "--output", "voc")
        self.assertIn(" 2 outlines written as boxes", done.stdout)

    def test_a_folder_with_files_is_left_alone(self):
        self.make_yolo()
        self.write("out/precious.txt", "mine")
        self.assertIn("out exists and is not empty", self.dataset("convert", "set", "--to", "voc", "--output", "out",
                                                                 code=1).stderr)
        self.assertEqual(os.listdir(self.at / "out"), ["precious.txt"])
        self.dataset("convert", "set", "--to", "voc", "--output", "out", "--exist-ok")
        self.assertEqual((self.at / "out/precious.txt").read_text("utf-8"), "mine")
        self.assertIn("needs --to", self.dataset("convert", "set", code=2).stderr)

    def test_the_original_is_never_written_into(self):
        self.make_yolo()
        before = {p: p.read_bytes() for p in (self.at / "set").rglob("*") if p.is_file()}
        self.assertIn("is the dataset itself", self.dataset("convert", "set", "--to", "yolo", "--output", "set",
                                                            "--exist-ok", code=1).stderr)
        self.assertEqual(before, {p: p.read_bytes() for p in (self.at / "set").rglob("*") if p.is_file()})

    @needs_data
    def test_bccd_there_and_back(self):
        def boxes(folder):
            return {path.name: sorted((o.find("name").text, *(float(v.text) for v in o.find("bndbox")))
                                      for o in xml.etree.ElementTree.parse(path).iter("object"))
                    for path in (folder / "Annotations").iterdir()}

        whole = boxes(DATA / "bccd")
        for name in ("BloodImage_00338.xml", "BloodImage_00343.xml"):  # SOURCES.md: a box without area in each
            whole[name] = [b for b in whole[name] if b[3] > b[1] and b[4] > b[2]]
        for form in ("yolo", "coco"):
            self.dataset("convert", DATA / "bccd", "--to", form, "--output", form)
            self.dataset("convert", form, "--to", "voc", "--output", f"voc from {form}")
            self.assertEqual(boxes(self.at / f"voc from {form}"), whole)

    @needs_data
    def test_helmet_there_and_back(self):
        def rows(folder):
            return {path.name: [[float(v) for v in line.split()] for line in path.read_text("utf-8").splitlines()]
                    for path in folder.iterdir()}

        self.dataset("convert", DATA / "helmet", "--to", "coco", "--output", "coco")
        self.dataset("convert", "coco", "--to", "yolo", "--output", "yolo")
        for split, original in (("train", "train"), ("val", "valid")):
            want, got = rows(DATA / f"helmet/{original}/labels"), rows(self.at / f"yolo/labels/{split}")
            self.assertEqual(want.keys(), got.keys())
            for name, lines in want.items():
                self.assertEqual([len(r) for r in lines], [len(r) for r in got[name]])
                for a, b in zip(sum(lines, []), sum(got[name], [])):
                    self.assertAlmostEqual(a, b, delta=1e-10)


if __name__ == "__main__":
    unittest_main.main()
