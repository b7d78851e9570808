#!/usr/bin/env python3
"""ferry bench as its users call it. FERRY is the program to test. How fast anything is, no test here asks; the other
engines are ferry itself behind a script that stands for run_peer.py."""
import csv
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.append("tools")
import unittest_main

FERRY = str(pathlib.Path(os.environ.get("FERRY", "build/ferry")).resolve())
TINY = pathlib.Path("tests/data/checkpoints/tiny.pt").resolve()
MODEL = pathlib.Path("bench/models/yolov5n.yaml").resolve()
QUICK = {"--duration": 0.02, "--rounds": 2, "--warmup": 0, "--patience": 1, "--wait": 0, "--peak-seconds": 0, "--threads": 1,
         "--imgsz": 64}

# Speaks for any engine: becomes ferry's own worker, or fails as the engine's name says.
PEER = """
import argparse, os, sys, time
p = argparse.ArgumentParser()
for name in ("engine", "model", "single", "threads", "batch", "option"):
    p.add_argument("--" + name)
p.add_argument("--size", nargs=2)
p.add_argument("--convert", action="store_true")
a = p.parse_args()
assert a.model.endswith(".onnx") and os.path.exists(a.model), a.model
assert a.batch == "1" or os.path.exists(a.single), a.single
if a.engine == "absent":
    raise SystemExit("no Python package 'absent'")
if a.convert:
    sys.exit()
if a.engine == "dying":
    raise SystemExit("it was too much")
if a.engine == "hanging":
    time.sleep(1000)
print(os.getpid(), file=open(os.environ["PIDS"], "a"))
model = a.model if a.engine != "other" else os.environ["OTHER_MODEL"]
os.execv(os.environ["FERRY_PROGRAM"], ["ferry", "bench", "--worker", "--weights", model, "--threads", a.threads,
                                       "--batch-size", a.batch])
"""


def ferry(*arguments, **environment):
    return subprocess.run([FERRY, *map(str, arguments)], capture_output=True, text=True, timeout=300,
                          env={**os.environ, **environment})


def quick(*arguments):
    """The arguments, and QUICK's where they name others."""
    return [*arguments, *(word for flag, value in QUICK.items() if flag not in arguments for word in (flag, value))]


def is_alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


class Bench(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="ferry bench ")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "run_peer.py").write_text(PEER)
        self.environment = {"FERRY_PEERS": str(self.folder), "FERRY_PEERS_PYTHON": sys.executable,
                            "FERRY_PROGRAM": FERRY, "PIDS": str(self.folder / "pids"), "TMPDIR": str(self.folder)}

    def bench(self, *arguments, code=0, weights=TINY):
        done = ferry("bench", "--weights", weights, *quick(*arguments), **self.environment)
        self.assertEqual(done.returncode, code, done.stderr + done.stdout)
        return done

    def test_alone_it_says_machine_speed_memory_and_load(self):
        text = self.bench().stdout
        for part in ("machine  ", "model    ", "== tiny 64x64, batch 1, 1 thread ==", "throughput  ", "latency ms  min ",
                     "memory      peak RSS ", "weights ", "arena ", "load ", "conditions: others used"):
            self.assertIn(part, text)

    def test_the_peak_is_measured_and_compared_with(self):
        text = self.bench("--peak-seconds", "0.05", weights=MODEL).stdout
        self.assertRegex(text, r"peak     1 thread: \d+ GFLOP/s f32")
        self.assertRegex(text, r"of peak     \d+ % at the median")

    def test_every_batch_meets_every_number_of_threads(self):
        out = self.folder / "rows.json"
        text = self.bench("--batch-size", "1,3", "--threads", "1,2", "--iterations", "4", "--json", out).stdout
        rows = json.loads(out.read_text())["rows"]
        self.assertEqual([(r["batch"], r["threads"]) for r in rows], [(1, 1), (1, 2), (3, 1), (3, 2)])
        for row in rows:
            self.assertEqual(row["engines"][0]["latency_ms"]["count"], 4)
            self.assertGreater(row["macs"], 0)
        self.assertEqual(rows[2]["macs"], 3 * rows[0]["macs"])
        self.assertIn("images/s", text)

    def test_streams_run_side_by_side(self):
        out = self.folder / "rows.json"
        self.bench("--streams", "2", "--iterations", "6", "--json", out)
        row = json.loads(out.read_text())["rows"][0]
        self.assertEqual(row["streams"], 2)
        self.assertEqual(row["engines"][0]["latency_ms"]["count"], 12)

    def test_files_hold_the_same_row(self):
        paths = [self.folder / name for name in ("a.json", "a.csv", "a.md")]
        self.bench("--json", paths[0], "--csv", paths[1], "--markdown", paths[2], "--commit", "abc1234")
        report = json.loads(paths[0].read_text())
        engine = report["rows"][0]["engines"][0]
        self.assertEqual(report["commit"], "abc1234")
        self.assertEqual(sum(map(len, engine["rounds_ms"])), engine["latency_ms"]["count"])
        row, = csv.DictReader(paths[1].read_text().splitlines())
        self.assertEqual((row["model"], row["engine"], row["batch"]), ("tiny", "ferry", "1"))
        self.assertAlmostEqual(float(row["median_ms"]), engine["latency_ms"]["median"], places=3)
        self.assertIn("| tiny | 1 | 1 | 1 | ferry ", paths[2].read_text())

    def test_a_dash_prints_the_file_and_nothing_else(self):
        report = json.loads(self.bench("--json", "-").stdout)
        self.assertEqual(len(report["rows"]), 1)

    def test_records_grow_by_a_line_a_row(self):
        path = self.folder / "results.jsonl"
        for _ in range(2):
            self.bench("--record", path, "--commit", "v1", "--batch-size", "1,2")
        records = [json.loads(line) for line in path.read_text().splitlines()]
        self.assertEqual([r["row"]["batch"] for r in records], [1, 2, 1, 2])
        self.assertEqual(records[0]["commit"], "v1")
        self.assertTrue(records[0]["machine"]["cpu"])
        page = self.folder / "page.md"
        script = [sys.executable, "bench/write_performance.py", "--results", self.folder, "--output", page]
        subprocess.run(script, check=True)
        self.assertIn("| tiny | 2 | 1 | ", page.read_text())
        subprocess.run([*script, "--check"], check=True)
        page.write_text("old")
        self.assertEqual(subprocess.run([*script, "--check"], capture_output=True).returncode, 1)

    def test_the_page_of_the_repository_is_what_its_results_say(self):
        subprocess.run([sys.executable, "bench/write_performance.py", "--check"], check=True)

    def test_ours_against_ours_computes_the_same_and_has_a_ratio(self):
        out = self.folder / "rows.json"
        text = self.bench("--peers", "ferry", "--json", out, weights=MODEL).stdout
        again = json.loads(out.read_text())["rows"][0]["engines"][1]
        self.assertEqual(again["name"], "ferry again")
        self.assertEqual(again["differs"], {"scores": 0, "boxes": 0})
        self.assertLessEqual(again["ratio"]["low"], again["ratio"]["median"])
        self.assertLessEqual(again["ratio"]["median"], again["ratio"]["high"])
        self.assertRegex(text, r"ratio       [\d.]+ times the time of ferry \([\d.]+ to [\d.]+ in 8 of 10 rounds")

    def test_peers_are_given_the_model_of_every_batch(self):
        out = self.folder / "rows.json"
        self.bench("--peers", "one,two:fast", "--batch-size", "1,2", "--json", out)
        rows = json.loads(out.read_text())["rows"]
        for row in rows:
            self.assertEqual([e["name"] for e in row["engines"]], ["ferry", "one", "two:fast"])
            self.assertNotIn("refused", row["engines"][2])

    def test_a_peer_that_cannot_run_is_left_out_and_the_code_says_so(self):
        for peer, why in (("absent", "no Python package 'absent'"), ("dying", "it was too much")):
            with self.subTest(peer):
                out = self.folder / f"{peer}.json"
                done = self.bench("--peers", f"{peer},good", "--json", out, code=1)
                self.assertIn(why, done.stderr)
                refused = {e["name"]: "refused" in e for e in json.loads(out.read_text())["rows"][0]["engines"]}
                self.assertEqual(refused, {"ferry": False, peer: True, "good": False})

    def test_a_peer_that_hangs_is_ended(self):
        done = self.bench("--peers", "hanging", "--timeout", "3", code=1)
        self.assertIn("hanging: gave no answer within 3 s", done.stderr)

    def test_a_peer_that_computes_something_else_is_not_timed(self):
        other = self.folder / "other.onnx"
        made = ferry("export", "--weights", TINY, "--imgsz", 128, "--output", other)
        self.assertEqual(made.returncode, 0, made.stderr)
        self.environment["OTHER_MODEL"] = str(other)
        done = self.bench("--peers", "other", code=1)
        self.assertIn("its output is [1, ", done.stderr)

    def test_missing_peers_say_what_to_do(self):
        self.environment["FERRY_PEERS"] = "/nowhere"
        self.assertIn("run_peer.py is not found in /nowhere", self.bench("--peers", "ncnn", code=1).stderr)
        self.environment |= {"FERRY_PEERS": str(self.folder), "FERRY_PEERS_PYTHON": "/nowhere/python"}
        self.assertIn("cannot start '/nowhere/python'", self.bench("--peers", "ncnn", code=1).stderr)

    def test_what_cannot_be_measured_is_refused(self):
        self.assertIn("comes with INT8", self.bench("--precision", "int8", code=1).stderr)
        self.assertIn("--peers compares", self.bench("--peers", "ferry", "--streams", "2", code=1).stderr)
        self.assertIn("need each other", self.bench("--end-to-end", code=1).stderr)
        self.assertIn("/nowhere.pt", self.bench(weights="/nowhere.pt", code=1).stderr)
        self.bench("--threads", "0", code=2)
        self.bench("--batch-size", "1,x", code=2)

    def test_a_failed_run_leaves_no_file(self):
        out = self.folder / "rows.json"
        self.bench("--json", out, "--source", "/nowhere.jpg", "--end-to-end", code=1)
        self.assertFalse(out.exists())

    def test_what_is_read_is_never_written(self):
        weights = self.folder / "copy.pt"
        weights.write_bytes(TINY.read_bytes())
        for flag in ("--json", "--record"):
            self.assertIn("is read", self.bench(flag, weights, weights=weights, code=1).stderr)
        self.assertEqual(weights.read_bytes(), TINY.read_bytes())

    def start(self):
        """ferry comparing for ten minutes, and the processes of its peer."""
        words = quick("--weights", TINY, "--duration", 600, "--peers", "one")
        process = subprocess.Popen([FERRY, "bench", *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True, env={**os.environ, **self.environment})
        self.addCleanup(process.kill)
        pids = self.folder / "pids"
        for _ in range(600):
            if pids.exists() and pids.read_text().strip():
                return process, pids.read_text().split()
            time.sleep(0.1)
        self.fail("no peer was started")

    def test_ctrl_c_ends_every_process(self):
        process, pids = self.start()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1)
        self.assertIn("interrupted", errors)
        for pid in pids:
            self.assertFalse(is_alive(pid), f"process {pid} outlived ferry")

    def test_nothing_outlives_ferry_that_is_killed(self):
        process, pids = self.start()
        process.kill()
        process.communicate(timeout=60)
        for _ in range(300):
            if not any(map(is_alive, pids)):
                return
            time.sleep(0.1)
        self.fail(f"{pids} outlived ferry")


if __name__ == "__main__":
    unittest_main.main()
