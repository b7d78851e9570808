#!/usr/bin/env python3
"""Runs the project's checks, one after the other, and ends with the line `N passed, N failed, N skipped`.

    test.py [release] [headers] [format] [asan] [tsan] [install]      default: all of them

Every step builds what it needs and leaves its whole output in build/test/<step>.log; what fails is shown. A GoogleTest
program counts as its tests, every other check as one. What was skipped, and why, is said before the last line.
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as xml

ROOT = pathlib.Path(__file__).resolve().parent.parent
LOGS = ROOT / "build" / "test"
DATA = pathlib.Path(os.environ.get("FERRY_DATA", ROOT / "../shared/data"))
# The programs that hold more than one thread, and what they are called in ctest.
THREADED = ["base", "runtime"]


class StepFailed(Exception):
    """A step cannot go on; its log says why."""


class Step:
    """One step: its log, and what it counted."""

    def __init__(self, name):
        self.name, self.passed, self.failed, self.skipped = name, 0, [], {}
        self.log_path = LOGS / f"{name}.log"
        self.log = open(self.log_path, "w", encoding="utf-8")

    def run(self, *command, env=None, check=True):
        """Runs a command; its output goes to the log, and to the screen when it fails."""
        self.log.write(f"\n$ {' '.join(map(str, command))}\n")
        self.log.flush()
        start = self.log.tell()
        done = subprocess.run(list(map(str, command)), cwd=ROOT, stdin=subprocess.DEVNULL, stdout=self.log,
                              stderr=subprocess.STDOUT, env={**os.environ, **(env or {})})
        if done.returncode != 0 and check:
            self.show(start)
            raise StepFailed(f"{' '.join(map(str, command[:4]))} …")
        return done.returncode

    def show(self, start=0, lines=80):
        """The last lines of the log from byte `start` on."""
        self.log.flush()
        with open(self.log_path, encoding="utf-8", errors="replace") as log:
            log.seek(start)
            print(*log.read().splitlines()[-lines:], sep="\n", flush=True)

    def check(self, what, *command, env=None):
        """A check that counts as one."""
        start = self.log.tell()
        if self.run(*command, env=env, check=False) == 0:
            self.passed += 1
        else:
            self.show(start)
            self.failed.append(what)

    def skip(self, what, why):
        self.skipped.setdefault(why, []).append(what)

    def ctest(self, preset, *arguments):
        """Runs tests of a preset, and counts those inside the GoogleTest programs."""
        with tempfile.TemporaryDirectory() as folder:
            results, programs = pathlib.Path(folder) / "ctest.xml", pathlib.Path(folder) / "gtest"
            start = self.log.tell()
            code = self.run("ctest", "--preset", preset, "-j", jobs(), "--output-junit", results, *arguments,
                            env={"GTEST_OUTPUT": f"xml:{programs}/"}, check=False)
            if code != 0:
                self.show(start, 200)
            if not results.exists():
                raise StepFailed(f"ctest --preset {preset} wrote no results")
            inside = {p.stem.removesuffix("_test"): xml.parse(p).getroot() for p in programs.glob("*.xml")}
            for case in xml.parse(results).getroot().iter("testcase"):
                self.count(case.get("name"), case, inside.get(case.get("name")))

    def count(self, name, case, program):
        tests = list(program.iter("testcase")) if program is not None else []
        for test in tests:
            full = f"{name}: {test.get('classname')}.{test.get('name')}"
            skipped = test.find("skipped")
            if test.find("failure") is not None:
                self.failed.append(full)
            elif skipped is not None or test.get("result") == "skipped":
                self.skip(full, ((skipped.get("message") if skipped is not None else None) or "no reason given").strip())
            elif test.get("status") == "run":
                self.passed += 1
        if case.get("status") == "run" and case.find("failure") is None:
            self.passed += not tests
        elif case.find("skipped") is not None or case.get("status") in ("disabled", "notrun"):
            self.skip(name, "not run by ctest; see the log")
        elif not any(f.startswith(f"{name}: ") for f in self.failed):
            self.failed.append(f"{name}: the program failed as a whole (crash, sanitizer, time limit)")


def jobs():
    return subprocess.run(["bash", "-c", "source tools/lib.sh && jobs_here"], cwd=ROOT, capture_output=True, text=True,
                          check=True).stdout.strip()


def build(step, preset, *targets):
    step.run("tools/build.sh", preset, *targets)


def release(step):
    """release build, unit tests, layers, commands"""
    build(step, "release", "all")
    step.ctest("release")


def headers(step):
    """every header compiles alone"""
    build(step, "release", "all_verify_interface_header_sets")
    step.passed += 1


def formatted(step):
    """clang-format finds nothing to change"""
    step.check("format: run `make format`", "tools/format.sh", "--check")


def asan(step):
    """unit tests and fuzz corpora under AddressSanitizer and UndefinedBehaviorSanitizer"""
    build(step, "asan", "all")
    # What compares figures with other programs' did so above, and ran little code of its own.
    step.ctest("asan", "-E", "^(coco|export_onnxruntime)$")


def tsan(step):
    """tests where threads meet, under ThreadSanitizer"""
    build(step, "tsan", *(f"{name}_test" for name in THREADED))
    step.ctest("tsan", "-R", f"^({'|'.join(THREADED)})$")


def install(step):
    """an example builds against the installed package and runs"""
    build(step, "release", "all")
    with tempfile.TemporaryDirectory(prefix="ferry test ") as folder:
        prefix, example = pathlib.Path(folder) / "prefix", pathlib.Path(folder) / "example"
        step.run("cmake", "--install", "build", "--prefix", prefix)
        step.check("install: the installed program runs", prefix / "bin/ferry", "--version")
        step.check("install: backend.h is C", "gcc", "-std=gnu11", "-Wall", "-Wextra", "-Wpedantic", "-Werror",
                   "-fsyntax-only", "-x", "c", prefix / "include/ferry/backend.h")
        step.run("cmake", "-S", "examples", "-B", example, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}",
                 "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Wpedantic")
        step.check("install: examples/ builds against the package", "cmake", "--build", example)
        weights, picture = DATA / "weights/yolov5n_v61_coco80.pt", DATA / "images/bus.jpg"
        if weights.exists() and picture.exists():
            step.check("install: the example finds boxes", "bash", "-c",
                       '"$1" "$2" "$3" | grep -q "^person "', "_", example / "detect_picture", weights, picture)
        else:
            step.skip("install: the example finds boxes", f"{weights} or {picture} is absent; set FERRY_DATA")


STEPS = {"release": release, "headers": headers, "format": formatted, "asan": asan, "tsan": tsan, "install": install}


def run_step(name, number, total):
    step, started = Step(name), time.monotonic()
    print(f"[{number}/{total}] {name}: {STEPS[name].__doc__}", flush=True)
    try:
        STEPS[name](step)
    except StepFailed as why:
        step.failed.append(f"{name}: {why} failed")
    counts = f"{step.passed} passed, {len(step.failed)} failed, {sum(map(len, step.skipped.values()))} skipped"
    print(f"      {counts} ({time.monotonic() - started:.0f} s; {step.log_path.relative_to(ROOT)})", flush=True)
    return step


def main(names):
    unknown = [name for name in names if name not in STEPS]
    if unknown:
        print(f"test.py: there is no step {unknown[0]}; there are {', '.join(STEPS)}", file=sys.stderr)
        return 2
    names = names or list(STEPS)
    LOGS.mkdir(parents=True, exist_ok=True)
    steps = [run_step(name, i + 1, len(names)) for i, name in enumerate(names)]

    failed = [f"{step.name}: {what}" for step in steps for what in step.failed]
    skipped = {}
    for step in steps:
        for why, what in step.skipped.items():
            skipped.setdefault(why, []).extend(f"{step.name}: {test}" for test in what)
    for why, what in skipped.items():
        print(f"\nNOT CHECKED ({len(what)}): {why}\n  {what[0]}" + (f" and {len(what) - 1} more" if what[1:] else ""))
    if failed:
        print("\nFAILED:", *failed, sep="\n  ")
    print(f"\n{sum(step.passed for step in steps)} passed, {len(failed)} failed, "
          f"{sum(map(len, skipped.values()))} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
