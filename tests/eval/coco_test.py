#!/usr/bin/env python3
"""Our COCO numbers equal pycocotools', from PyPI, on the same files, to 1e-6.

Environment: COCO_EVAL, the program of coco_eval_main.cc; COCO_VENV, a folder for a virtual environment, made once. Where
PyPI cannot be reached (or venv is not installed) nothing is compared, the test says so and exits with 77, which CTest
shows as skipped; with FERRY_REQUIRE_PYPI=1 it fails. Cases that pycocotools answered before are checked by eval_test
in any case.
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

PACKAGES = ["numpy", "pycocotools>=2.0.8,<2.1"]
TOLERANCE = 1e-6
TOOLS = pathlib.Path(__file__).resolve().parent.parent / "tools"


class Coco(unittest.TestCase):
    def compare(self, images, category_ids):
        import make_eval_cases as cases

        annotations, results = cases.coco_files(images, category_ids)
        with tempfile.TemporaryDirectory() as folder:
            paths = [pathlib.Path(folder) / name for name in ("annotations.json", "predictions.json")]
            for path, content in zip(paths, (annotations, results)):
                path.write_text(json.dumps(content), encoding="utf-8")
            run = subprocess.run([os.environ["COCO_EVAL"], *map(str, paths)], capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 0, run.stderr)
        ours, theirs = json.loads(run.stdout), cases.expected(annotations, results)
        for name in cases.STATS:
            self.assertAlmostEqual(ours[name], theirs[name], delta=TOLERANCE, msg=name)
        self.assertEqual(len(ours["class_ap"]), len(theirs["class_ap"]))
        for category, a, b in zip(category_ids, ours["class_ap"], theirs["class_ap"]):
            self.assertAlmostEqual(a, b, delta=TOLERANCE, msg=f"AP of category {category}")
        return theirs

    def test_hostile_pictures(self):
        import make_eval_cases as cases

        for seed in range(100, 160):
            with self.subTest(seed=seed):
                random = cases.np.random.default_rng(seed)
                classes = int(random.choice([1, 3, 20]))
                images = cases.make(seed, int(random.integers(1, 25)), classes, int(random.choice([1, 5, 20])),
                                    int(random.choice([1, 20, 60, 150])), float(random.choice([0, 0.2])),
                                    bool(random.integers(2)), float(random.choice([0, 0.3])))
                if not any(image["detections"] for image in images):
                    continue  # pycocotools cannot load an empty list of results
                category_ids = sorted(int(c) + 1 for c in random.permutation(90)[:classes])  # with gaps, as COCO's
                self.compare(images, category_ids)

    def test_many_pictures(self):
        import make_eval_cases as cases

        numbers = self.compare(cases.make(7, 300, 80, 12, 100, 0.02, False), list(range(1, 81)))
        self.assertGreater(numbers["AP"], 0.01)


if __name__ == "__main__":
    if "--inside" in sys.argv:
        sys.argv.remove("--inside")
        sys.path.insert(0, str(TOOLS))
        unittest.main()
    sys.exit(pypi_venv.run_inside(os.environ["COCO_VENV"], PACKAGES, __file__, "COCO's numbers against pycocotools"))
