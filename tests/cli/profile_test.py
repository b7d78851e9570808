#!/usr/bin/env python3
"""ferry profile as its users call it. FERRY is the program to test. How long anything takes, no test here asks."""
import csv
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.append("tools")
import unittest_main

FERRY = str(pathlib.Path(os.environ.get("FERRY", "build/ferry")).resolve())
DATA = pathlib.Path(os.environ.get("FERRY_DATA", "../shared/data")).resolve()
TINY = pathlib.Path("tests/data/checkpoints/tiny.pt").resolve()
MODEL = pathlib.Path("bench/models/yolov5n.yaml").resolve()
DOCS = pathlib.Path("docs/profile.md").resolve()
YOLOV5N, BUS = DATA / "weights/yolov5n_v61_coco80.pt", DATA / "images/bus.jpg"
VIDEO = DATA / "video/persons_one_by_one_768x432p10_h264.mp4"
QUICK = {"--runs": 2, "--warmup": 1, "--peak-seconds": 0, "--threads": 1, "--imgsz": 64}


def needs(*files):
    """Skips a test, and says what was not there, when a real file is absent."""
    absent = [str(f) for f in files if not f.exists()]
    return unittest.skipIf(absent, f"{', '.join(absent)} absent; set FERRY_DATA to the folder of real files")


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="ferry profile ")
        self.addCleanup(folder.cleanup)
        self.at = pathlib.Path(folder.name)

    def profile(self, *words, code=0, **changed):
        """One quick profile of a model that is tiny, unless `changed` says otherwise: imgsz=320 is --imgsz 320."""
        flags = {"--weights": TINY, **QUICK, **{"--" + k.replace("_", "-"): v for k, v in changed.items()}}
        command = [FERRY, "profile", *(str(w) for flag in flags.items() for w in flag), *map(str, words)]
        done = subprocess.run(command, cwd=self.at, text=True, capture_output=True, timeout=300, check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def json_of(self, *words, **changed):
        return json.loads(self.profile(*words, json="-", **changed).stdout)


class Figures(Case):
    def test_shares_add_up_to_the_whole(self):
        p = self.json_of(weights=MODEL)
        for rows in (p["stages"], p["nodes"], p["by_op"], p["by_kernel"]):
            self.assertGreater(len(rows), 0)
            self.assertAlmostEqual(sum(row["share"] for row in rows), 1, places=9)
        self.assertAlmostEqual(sum(n["median_ms"] for n in p["nodes"]), p["network"]["nodes_ms"], places=9)
        self.assertAlmostEqual(p["network"]["nodes_ms"] / p["network"]["plain_ms"]["median"] - 1, p["network"]["difference"])
        self.assertEqual(sum(n["macs"] for n in p["nodes"]), p["network"]["macs"])
        for group in ("by_op", "by_kernel"):
            self.assertEqual(sum(row["count"] for row in p[group]), len(p["nodes"]))

    def test_every_node_says_what_computes_it(self):
        p = self.json_of(weights=MODEL)
        for node in p["nodes"]:
            for key in ("node", "op", "kernel", "shapes"):
                self.assertTrue(node[key], node)
            self.assertEqual(node["precision"], "f32")
            self.assertGreater(node["bytes"], 0)
            self.assertLessEqual(node["min_ms"], node["median_ms"])
        self.assertEqual(p["nodes"][0]["shapes"].split(" -> ")[0], "1x3x64x64")

    def test_there_are_as_many_runs_as_asked_for(self):
        p = self.json_of(runs=5, warmup=2)
        self.assertEqual((p["network"]["plain_ms"]["count"], p["network"]["timed_ms"]["count"], p["warmup"]), (5, 5, 2))

    def test_a_duration_still_has_a_few_runs_of_each_kind(self):
        p = self.json_of(runs=0, duration=0.001)
        self.assertEqual(p["network"]["plain_ms"]["count"], p["network"]["timed_ms"]["count"])
        self.assertGreaterEqual(p["network"]["plain_ms"]["count"], 5)

    def test_a_batch_is_one_run_of_several_pictures(self):
        one, four = self.json_of(), self.json_of(batch_size=4)
        self.assertEqual(four["batch"], 4)
        self.assertEqual(four["network"]["macs"], 4 * one["network"]["macs"])

    def test_with_a_peak_every_node_has_a_roof(self):
        p = self.json_of(weights=MODEL, peak_seconds=0.05)
        self.assertGreater(p["machine"]["peak"]["f32_gflops"], 0)
        for node in p["nodes"]:
            self.assertIn(node["bound"], ("compute", "memory"))
            self.assertAlmostEqual(node["of_roof"], node["roof_ms"] / node["median_ms"])

    def test_a_model_off_the_fast_path_is_told_so(self):
        p = self.json_of(weights=TINY.parent / "v7_attention_cuda.pt")
        slow = [n for n in p["nodes"] if n["kernel"] == "reference"]
        self.assertGreater(len(slow), 0)
        self.assertTrue(all("fast kernel" in n["why_slow"] for n in slow))
        self.assertIn("slow-path", [a["rule"] for a in p["advice"]])


class Sources(Case):
    def test_a_made_up_picture_is_not_decoded_and_it_says_so(self):
        p = self.json_of()
        self.assertTrue(p["source"]["made_up"])
        self.assertEqual([s["stage"] for s in p["stages"]], ["letterbox", "network", "head", "nms", "draw"])
        self.assertIn("nothing is decoded", self.profile().stdout)

    @needs(YOLOV5N, BUS)
    def test_a_picture_goes_through_all_stages(self):
        p = self.json_of(weights=YOLOV5N, source=BUS, imgsz=640)
        self.assertEqual([s["stage"] for s in p["stages"]], ["decode", "letterbox", "network", "head", "nms", "draw"])
        self.assertEqual((p["width"], p["height"]), (480, 640))  # as detect's --rect
        self.assertEqual(p["source"]["boxes"], 5)  # four persons and a bus, as PyTorch finds
        whole = self.json_of("--no-rect", weights=YOLOV5N, source=BUS, imgsz=640)
        self.assertEqual((whole["width"], whole["height"]), (640, 640))

    @needs(VIDEO)
    def test_a_video_gives_its_frames(self):
        p = self.json_of(source=VIDEO)
        self.assertEqual((p["source"]["width"], p["source"]["height"]), (768, 432))

    @needs(BUS)
    def test_a_broken_picture_in_a_folder_is_left_out_with_a_warning(self):
        (self.at / "in").mkdir()
        (self.at / "in/a.jpg").write_bytes(BUS.read_bytes())
        (self.at / "in/b.jpg").write_text("no picture")
        done = self.profile(source="in")
        self.assertIn("b.jpg", done.stderr)

    def test_what_cannot_be_read_is_named(self):
        (self.at / "b.jpg").write_text("no picture")
        self.assertIn("b.jpg", self.profile(source="b.jpg", code=1).stderr)
        self.assertIn("absent.jpg", self.profile(source="absent.jpg", code=1).stderr)
        self.assertIn("absent.pt", self.profile(weights="absent.pt", code=1).stderr)
        self.assertIn("recording", self.profile(source="rtsp://camera/1", code=1).stderr)


class Files(Case):
    def test_a_trace_nests_nodes_in_stages_in_runs(self):
        self.profile(trace="t.json", trace_runs=1, weights=MODEL)
        trace = json.loads((self.at / "t.json").read_text())
        events = trace["traceEvents"]
        self.assertEqual({e["ph"] for e in events}, {"M", "X", "C"})
        spans = {kind: [e for e in events if e.get("cat") == kind] for kind in ("run", "stage", "node")}
        self.assertTrue(all(spans.values()))
        for inner, outer in (("stage", "run"), ("node", "stage")):
            for e in spans[inner]:
                inside = [o for o in spans[outer] if o["ts"] <= e["ts"] + 1e-3 and e["ts"] + e["dur"] <= o["ts"] + o["dur"] + 1e-3]
                self.assertTrue(inside, e)
        self.assertEqual({(e["pid"], e["tid"]) for e in events if e["ph"] == "X"}, {(1, 1)})

    def test_csv_has_a_line_for_each_node(self):
        self.profile(csv="p.csv", json="p.json")
        rows = list(csv.DictReader((self.at / "p.csv").open()))
        nodes = json.loads((self.at / "p.json").read_text())["nodes"]
        self.assertEqual([r["node"] for r in rows], [n["node"] for n in nodes])
        self.assertAlmostEqual(sum(float(r["share"]) for r in rows), 1, places=3)

    def test_a_file_that_cannot_be_written_fails_and_leaves_nothing(self):
        done = self.profile(trace="absent/t.json", code=1)
        self.assertIn("absent/t.json", done.stderr)
        self.assertEqual(list(self.at.iterdir()), [])

    def test_only_one_file_can_go_to_standard_output(self):
        self.assertIn("only one", self.profile(trace="-", json="-", code=2).stderr)
        self.assertEqual(json.loads(self.profile(trace="-").stdout)["displayTimeUnit"], "ms")

    def test_the_model_is_never_overwritten(self):
        model = self.at / "m.pt"
        model.write_bytes(TINY.read_bytes())
        self.assertIn("would replace", self.profile(weights=model, json=model, code=2).stderr)
        self.assertEqual(model.read_bytes(), TINY.read_bytes())


class Text(Case):
    def test_top_leaves_rows_out_and_all_brings_them_back(self):
        self.assertIn("more; --all shows them", self.profile(top=2, weights=MODEL).stdout)
        self.assertNotIn("more; --all", self.profile("--all", weights=MODEL).stdout)

    def test_rows_are_nodes_ops_or_kernels(self):
        self.assertRegex(self.profile(by="op", weights=MODEL).stdout, r"nodes  op\n")
        self.assertRegex(self.profile(by="kernel", weights=MODEL).stdout, r"nodes  kernel\n")
        self.assertRegex(self.profile(sort="order", weights=MODEL).stdout, r"node, shapes\n.*1x3x64x64")

    def test_wrong_values_are_wrong_usage(self):
        for flag, value in (("by", "layer"), ("sort", "name"), ("runs", -1), ("conf_thres", 2), ("batch_size", 0)):
            with self.subTest(flag=flag):
                self.profile(code=2, **{flag: value})

    def test_the_rules_are_those_of_the_documentation(self):
        done = subprocess.run([FERRY, "profile", "--rules"], text=True, capture_output=True, timeout=60, check=True)
        docs = DOCS.read_text(encoding="utf-8")
        rules = [line.split()[0] for line in done.stdout.splitlines()]
        self.assertGreater(len(rules), 10)
        for rule in rules:
            self.assertIn(f"`{rule}`", docs)


if __name__ == "__main__":
    unittest_main.main()
