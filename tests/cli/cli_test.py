#!/usr/bin/env python3
"""ferry as its users call it: help, exit codes, inspect and detect on real files. FERRY is the program to test."""
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

FERRY = os.environ.get("FERRY", "build/ferry")
DATA = pathlib.Path(os.environ.get("FERRY_DATA", "../shared/data"))
GOLDEN = pathlib.Path(os.environ.get("FERRY_GOLDEN", "../shared/golden"))
YOLOV5N = DATA / "weights/yolov5n_v61_coco80.pt"
BUS = DATA / "images/bus.jpg"
STREET = DATA / "video/street_pedestrians_1080p25_h264.mp4"
TS = DATA / "video/derived/street_360p.ts"

# YOLOv5 v6.0's models: the same layers, scaled by depth and width.
MODEL_YAML = """
nc: 80
depth_multiple: {depth}
width_multiple: {width}
anchors:
  - [10,13, 16,30, 33,23]
  - [30,61, 62,45, 59,119]
  - [116,90, 156,198, 373,326]
backbone:
  [[-1, 1, Conv, [64, 6, 2, 2]], [-1, 1, Conv, [128, 3, 2]], [-1, 3, C3, [128]], [-1, 1, Conv, [256, 3, 2]],
   [-1, 6, C3, [256]], [-1, 1, Conv, [512, 3, 2]], [-1, 9, C3, [512]], [-1, 1, Conv, [1024, 3, 2]],
   [-1, 3, C3, [1024]], [-1, 1, SPPF, [1024, 5]]]
head:
  [[-1, 1, Conv, [512, 1, 1]], [-1, 1, nn.Upsample, [None, 2, 'nearest']], [[-1, 6], 1, Concat, [1]],
   [-1, 3, C3, [512, False]], [-1, 1, Conv, [256, 1, 1]], [-1, 1, nn.Upsample, [None, 2, 'nearest']],
   [[-1, 4], 1, Concat, [1]], [-1, 3, C3, [256, False]], [-1, 1, Conv, [256, 3, 2]], [[-1, 14], 1, Concat, [1]],
   [-1, 3, C3, [512, False]], [-1, 1, Conv, [512, 3, 2]], [[-1, 10], 1, Concat, [1]], [-1, 3, C3, [1024, False]],
   [[17, 20, 23], 1, Detect, [nc, anchors]]]
"""


def ferry(*arguments, stdin="", cwd=None):
    program = FERRY if cwd is None else str(pathlib.Path(FERRY).resolve())
    return subprocess.run([program, *map(str, arguments)], input=stdin, capture_output=True, text=True, timeout=300, cwd=cwd)


def needs(*files):
    """Skips a test, and says what was not there, when a real file is absent."""
    absent = [str(f) for f in files if not f.exists()]
    return unittest.skipIf(absent, f"{', '.join(absent)} absent; set FERRY_DATA and FERRY_GOLDEN to the folders of real files")


class Scratch(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="ferry cli ")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def fails(self, done, code, *texts):
        """The command ended with `code` and said these texts on standard error, and nothing of a crash."""
        self.assertEqual(done.returncode, code, done.stderr)
        for text in texts:
            self.assertIn(text, done.stderr)


class CommandLine(Scratch):
    def test_every_command_answers_help(self):
        done = ferry("--help")
        self.assertEqual(done.returncode, 0)
        commands = re.findall(r"^  (\w+) +\w", done.stdout, re.M)
        self.assertIn("detect", commands)
        self.assertIn("inspect", commands)
        for command in commands:
            for flag in ("-h", "--help"):
                with self.subTest(command=command, flag=flag):
                    done = ferry(command, flag)
                    self.assertEqual((done.returncode, done.stderr), (0, ""))
                    self.assertIn("--help", done.stdout)

    def test_the_version_is_three_numbers(self):
        self.assertRegex(ferry("--version").stdout, r"^ferry \d+\.\d+\.\d+\n$")

    def test_no_command_is_wrong_usage_and_shows_the_list(self):
        self.fails(ferry(), 2, "detect", "inspect")

    def test_a_misspelt_command_gets_a_suggestion(self):
        self.fails(ferry("inspct"), 2, "'inspct' is not a command; did you mean inspect?")

    def test_a_misspelt_flag_gets_a_suggestion(self):
        self.fails(ferry("detect", "--conf-tres", "0.3"), 2, "--conf-tres", "did you mean --conf-thres?")

    def test_values_outside_their_range_are_wrong_usage(self):
        for arguments in (["--conf-thres", "2"], ["--iou-thres", "-1"], ["--max-det", "0"], ["--imgsz", "many"],
                          ["--batch-size", "0"], ["--imgsz"], ["--imgsz", "0"], ["--imgsz", "-1"], ["--conf-thres", "nan"],
                          ["--disable-pass", "nope"], ["--classes", "-1"], ["--cfg", "nowhere.yaml"]):
            with self.subTest(arguments=arguments):
                self.fails(ferry("detect", "--source", "x.jpg", *arguments), 2, "ferry detect: ")

    def test_output_that_does_not_arrive_is_a_failure_and_no_crash(self):
        for arguments in (["--help"], ["--version"], ["detect", "--help"], ["detect", "--disable-pass", "help"]):
            with self.subTest(arguments=arguments), open("/dev/full", "w", encoding="utf-8") as full:
                done = subprocess.run([FERRY, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
                self.fails(done, 1, "cannot write to standard output")

    def test_underscores_stand_for_dashes_in_flags(self):
        self.fails(ferry("detect", "--conf_thres", "2"), 2, "--conf-thres")

    def test_inspect_needs_a_file(self):
        self.fails(ferry("inspect"), 2, "ferry inspect: ")
        self.fails(ferry("inspect", "x.pt", "--json", "--graph"), 2, "ferry inspect: ")

    def test_what_is_not_there_is_named(self):
        self.fails(ferry("inspect", "nowhere/x.pt"), 1, "ferry inspect: ", "nowhere/x.pt")
        self.fails(ferry("detect", "--source", "nowhere/*.jpg"), 1, "ferry detect: ", "nowhere/*.jpg")
        self.fails(ferry("inspect", self.folder), 1, "ferry inspect: ", str(self.folder))


class Inspect(Scratch):
    def model(self, *arguments):
        done = ferry("inspect", "--json", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    @needs(YOLOV5N, GOLDEN / "yolov5n_v61_coco80.json")
    def test_the_official_yolov5n_is_described_as_its_authors_do(self):
        golden = json.loads((GOLDEN / "yolov5n_v61_coco80.json").read_text())
        model = self.model(YOLOV5N)
        self.assertEqual(model["sha256"], golden["sha256"])
        self.assertEqual(model["bytes"], 4062133)
        self.assertEqual(model["names"], list(golden["names"].values()))
        self.assertEqual((model["classes"], model["head"]), (80, "yolov5"))
        self.assertEqual(model["strides"], [8, 16, 32])
        self.assertEqual(model["anchors"], [[[10, 13], [16, 30], [33, 23]], [[30, 61], [62, 45], [59, 119]],
                                            [[116, 90], [156, 198], [373, 326]]])
        self.assertEqual(model["inputs"], [{"name": "images", "dtype": "f32", "shape": [1, 3, 640, 640]}])
        self.assertEqual(model["totals"]["params_stored"], 1872157)
        self.assertEqual(sum(node["params"] for node in model["nodes"]), model["totals"]["params"])
        self.assertEqual(f"{model['totals']['gflops']:.1f}", "4.5")

    @needs(YOLOV5N)
    def test_the_text_says_the_same(self):
        done = ferry("inspect", YOLOV5N)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for text in ("YOLOv5", "4062133 bytes", "80: person, bicycle,", "10x13 16x30 33x23", "1872157 parameters",
                     "4.5 GFLOPs at 640x640", "conv2d"):
            self.assertIn(text, done.stdout)

    @needs(YOLOV5N)
    def test_the_graph_form_leaves_weights_out(self):
        done = ferry("inspect", YOLOV5N, "--graph")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(done.stdout.startswith("graph {"))
        self.assertIn("yolo_detect", done.stdout)
        self.assertLess(len(done.stdout), 200_000)

    @needs(YOLOV5N)
    def test_imgsz_sets_the_input(self):
        self.assertEqual(self.model(YOLOV5N, "--imgsz", 320, 448)["inputs"][0]["shape"], [1, 3, 320, 448])

    def test_models_made_from_a_yaml_have_the_published_sizes(self):
        # Ultralytics' README of v6.0 and later: parameters and GFLOPs at 640.
        for name, depth, width, params, gflops in (("n", 0.33, 0.25, 1872157, "4.5"), ("s", 0.33, 0.50, 7235389, "16.5"),
                                                   ("m", 0.67, 0.75, 21190557, "49.0")):
            with self.subTest(model=name):
                path = self.folder / f"yolov5{name}.yaml"
                path.write_text(MODEL_YAML.format(depth=depth, width=width))
                totals = self.model(path)["totals"]
                self.assertEqual(totals["params"], params)
                self.assertEqual(f"{totals['gflops']:.1f}", gflops)

    def test_files_that_are_no_models_say_why(self):
        for name, content, why in (("empty.pt", b"", "empty"), ("page.pt", b"<!DOCTYPE html><html></html>", "web page"),
                                   ("text.onnx", b"hello world\n" * 20, "text.onnx"), ("noise.pt", bytes(range(256)) * 9, "noise.pt")):
            with self.subTest(file=name):
                (self.folder / name).write_bytes(content)
                done = ferry("inspect", self.folder / name, "--json")
                self.fails(done, 1, why)
                report = json.loads(done.stdout)
                self.assertEqual(report["bytes"], len(content))
                self.assertIn(why, report["error"])

    @needs(DATA / "weights/negative")
    def test_real_files_that_do_not_open_say_why(self):
        for name, *why in (("html_404_page.pt", "web page"), ("zero_bytes.pt", "empty"),
                           ("truncated_1835008_yolov5s.pt", "1835008"), ("lite_s_shuffleblock_coco80.pt", "Shuffle_Block"),
                           ("yolov8_ghost_not_v5.pt", "YOLOv8")):
            with self.subTest(file=name):
                self.fails(ferry("inspect", DATA / "weights/negative" / name), 1, name, *why)


class Detect(Scratch):
    def detect(self, *arguments, code=0, **options):
        done = ferry("detect", "--weights", YOLOV5N, "--project", self.folder / "runs", *arguments, **options)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    @needs(YOLOV5N, BUS)
    def test_every_form_of_output_tells_of_the_same_boxes(self):
        self.detect("--source", BUS, "--save-txt", "--save-conf", "--save-crop", "--save-csv", "--json", self.folder / "bus.json")
        run = self.folder / "runs/exp"
        [picture] = json.loads((self.folder / "bus.json").read_text())
        self.assertEqual((picture["image"], picture["width"], picture["height"]), (str(BUS), 810, 1080))
        names = sorted(d["class_name"] for d in picture["detections"])
        rows = [list(map(float, line.split())) for line in (run / "labels/bus.txt").read_text().splitlines()]
        with open(run / "predictions.csv", newline="", encoding="utf-8") as file:
            predictions = list(csv.DictReader(file))
        self.assertGreater(len(names), 3)
        self.assertEqual(len(rows), len(names))
        self.assertEqual(sorted(p["Prediction"] for p in predictions), names)
        self.assertEqual(len(list((run / "crops").rglob("*.jpg"))), len(names))
        self.assertTrue((run / "bus.jpg").read_bytes().startswith(b"\xff\xd8"))
        for row in rows:
            self.assertEqual(len(row), 6)
            self.assertTrue(all(0 <= v <= 1 for v in row[1:]), row)

    @needs(YOLOV5N, BUS)
    def test_one_bad_picture_is_reported_and_the_rest_go_on(self):
        (self.folder / "in").mkdir()
        (self.folder / "in/a.jpg").write_bytes(b"\xff\xd8 no picture")
        (self.folder / "in/b.jpg").write_bytes(BUS.read_bytes())
        done = self.detect("--source", self.folder / "in", "--nosave", "--json", "-", code=1)
        self.assertEqual([pathlib.Path(p["image"]).name for p in json.loads(done.stdout)], ["b.jpg"])
        self.assertIn("a.jpg", done.stderr)
        self.assertIn("1 of 2 inputs failed", done.stderr)

    @needs(YOLOV5N, BUS)
    def test_a_list_on_standard_input_is_a_source(self):
        done = self.detect("--source", "-", "--nosave", "--json", "-", stdin=f"{BUS}\n{BUS}\n")
        self.assertEqual(len(json.loads(done.stdout)), 2)

    @needs(YOLOV5N, BUS)
    def test_runs_are_numbered_unless_the_same_folder_may_be_used_again(self):
        for arguments in ([], [], ["--exist-ok"]):
            self.detect("--source", BUS, *arguments)
        self.assertEqual(sorted(p.name for p in (self.folder / "runs").iterdir()), ["exp", "exp2"])

    @needs(YOLOV5N, BUS)
    def test_class_filters_and_thresholds_act(self):
        def classes(*arguments):
            done = self.detect("--source", BUS, "--nosave", "--json", "-", *arguments)
            return [d["class_name"] for d in json.loads(done.stdout)[0]["detections"]]
        self.assertEqual(set(classes("--classes", 5)), {"bus"})
        self.assertEqual(len(classes("--max-det", 2)), 2)
        self.assertEqual(classes("--conf-thres", 1), [])

    @needs(YOLOV5N, BUS)
    def test_a_class_that_the_model_has_not_is_an_error(self):
        self.assertIn("classes 0 to 79", self.detect("--source", BUS, "--classes", 80, code=1).stderr)

    @needs(YOLOV5N, BUS)
    def test_a_folder_that_cannot_be_written_is_an_error(self):
        (self.folder / "runs").write_text("a file")
        self.assertIn("runs", self.detect("--source", BUS, code=1).stderr)

    @needs(YOLOV5N, BUS)
    def test_what_is_read_is_never_replaced(self):
        weights = self.folder / "w.pt"
        shutil.copy(YOLOV5N, weights)
        before = weights.read_bytes()
        self.fails(ferry("detect", "--weights", weights, "--source", BUS, "--nosave", "--json", weights), 2, "would replace")
        picture = self.folder / "bus.jpg"
        shutil.copy(BUS, picture)
        done = ferry("detect", "--weights", weights, "--imgsz", 64, "--source", "bus.jpg", "--project", ".", "--name", ".",
                     "--exist-ok", cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual((weights.read_bytes(), picture.read_bytes()), (before, BUS.read_bytes()))
        self.assertTrue((self.folder / "bus_2.jpg").exists())

    @needs(YOLOV5N, BUS)
    def test_a_pipe_stays_a_pipe(self):
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        with subprocess.Popen(["timeout", "60", "cat", str(pipe)], stdout=subprocess.PIPE, text=True) as reader:
            done = ferry("detect", "--weights", YOLOV5N, "--imgsz", 64, "--source", BUS, "--nosave", "--json", pipe)
            text = reader.communicate(timeout=60)[0]
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(text)[0]["image"], str(BUS))
        self.assertTrue(pipe.is_fifo())

    @needs(YOLOV5N, BUS)
    def test_a_reader_that_leaves_does_not_cost_the_results(self):
        program = [str(pathlib.Path(FERRY).resolve()), "detect", "--weights", str(YOLOV5N.resolve()), "--imgsz", "64", "--source",
                   str(BUS.resolve()), "--json", "o.json"]
        with subprocess.Popen(program, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
            running.stdout.close()
            errors = running.stderr.read()
            self.assertEqual(running.wait(timeout=120), 1, errors)
        self.assertIn("cannot write to standard output", errors)
        self.assertEqual(len(json.loads((self.folder / "o.json").read_text(encoding="utf-8"))), 1)

    @needs(YOLOV5N, TS)
    def test_a_video_that_names_other_files_is_refused(self):
        target = TS.resolve()
        playlist = self.folder / "evil.mp4"
        playlist.write_text(f"#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:9\n#EXTINF:3.8,\nfile://{target}\n#EXT-X-ENDLIST\n",
                            encoding="utf-8")
        self.fails(ferry("detect", "--weights", YOLOV5N, "--imgsz", 64, "--source", playlist, "--nosave"), 1, "playlist")

    @needs(YOLOV5N, STREET)
    def test_frames_are_counted_as_upstream_counts_them(self):
        video = STREET.resolve()
        done = ferry("detect", "--weights", YOLOV5N.resolve(), "--imgsz", 320, "--source", video, "--vid-stride", 40, "--save-txt",
                     "--nosave", "--json", "v.json", cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        frames = json.loads((self.folder / "v.json").read_text(encoding="utf-8"))
        self.assertEqual([f["frame"] for f in frames], [39, 79])  # 96 frames
        labels = {p.stem for p in (self.folder / "runs/detect/exp/labels").iterdir()}
        self.assertLessEqual(labels, {f"{STREET.stem}_1", f"{STREET.stem}_2"})
        self.assertTrue(labels)


if __name__ == "__main__":
    unittest_main.main()
