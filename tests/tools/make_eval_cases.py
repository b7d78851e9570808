#!/usr/bin/env python3
"""Writes tests/data/eval/coco_*.json: hostile truths and detections, and what pycocotools says of them.

    pip install pycocotools numpy
    python3 tests/tools/make_eval_cases.py

Each file: {"classes", "images": [{"id", "truths": [[class, x, y, w, h, area, crowd]], "detections": [[class, x, y, w,
h, score]]}], "expected": {"AP", …, "class_ap": […]}}. Nothing in it comes from ferry. tests/eval/coco_test.py makes
more of them, afresh each time it runs.
"""
import contextlib
import io
import json
import pathlib

import numpy as np
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

STATS = ["AP", "AP50", "AP75", "APs", "APm", "APl", "AR1", "AR10", "AR100", "ARs", "ARm", "ARl"]


def odd_box(random):
    """Sides at the ends of the ranges of areas and beyond, places outside of the picture."""
    side = random.choice([0, 0.01, 1, 32, 96, 100, 5000, 2e5])
    other = random.choice([side, 32, 96, 0.5])
    return (*random.choice([-50, 0, 0.5, 100], 2), side, other)


def make(seed, images, classes, most_truths, most_detections, crowd, ties, odd=0.0):
    """Random boxes; detections are shaken truths and noise; scores are few when `ties`; `odd` is the share of
    odd_box."""
    random = np.random.default_rng(seed)
    made = []
    for image_id in random.permutation(images * 3)[:images] + 1:
        truths, detections = [], []
        for _ in range(random.integers(0, most_truths + 1)):
            x, y = random.uniform(0, 500, 2)
            w, h = np.exp(random.uniform(np.log(3), np.log(300), 2))
            if random.random() < odd:
                x, y, w, h = odd_box(random)
            area = w * h * random.choice([1.0, 0.6])
            truths.append([int(random.integers(classes)), *(round(float(v), 2) for v in (x, y, w, h, area)),
                           int(random.random() < crowd)])
        for _ in range(random.integers(0, most_detections + 1)):
            if truths and random.random() < 0.7:
                c, x, y, w, h = truths[random.integers(len(truths))][:5]
                if random.random() > odd:  # else exactly the truth's
                    x, y, w, h = np.array([x, y, w, h]) + random.normal(0, 0.08, 4) * max(w, h)
                if random.random() < 0.1:
                    c = int(random.integers(classes))
            elif random.random() < odd:
                c = int(random.integers(classes))
                x, y, w, h = odd_box(random)
            else:
                c = int(random.integers(classes))
                x, y = random.uniform(0, 500, 2)
                w, h = random.uniform(0, 200, 2)
            score = random.choice([0.1, 0.5, 0.9]) if ties else random.random()
            detections.append([c, *(round(float(v), 2) for v in (x, y, max(w, 0), max(h, 0))), round(float(score), 4)])
        made.append({"id": int(image_id), "truths": truths, "detections": detections})
    return made


def edges():
    """Both truths overlap as much with the first detection; what it takes decides whether the second finds one."""
    left, right = [0, 0, 0, 10, 10, 100, 0], [0, 4, 0, 10, 10, 100, 0]
    detections = [[0, 2, 0, 10, 10, 0.9], [0, 4, 0, 10, 10, 0.8]]
    return [{"id": 1, "truths": [left, right], "detections": detections},
            {"id": 2, "truths": [right, left], "detections": detections},
            {"id": 3, "truths": [[0, 0, 0, 10, 10, 100, 0]], "detections": [[0, 0, 0, 10, 5, 0.7]]}]  # IoU 0.5


def coco_files(images, category_ids):
    """The same as COCO's annotation file and results file. Class i is category_ids[i]."""
    annotations, results = [], []
    for image in images:
        for c, x, y, w, h, area, crowd in image["truths"]:
            annotations.append({"id": len(annotations) + 1, "image_id": image["id"], "category_id": category_ids[c],
                                "bbox": [x, y, w, h], "area": area, "iscrowd": crowd})
        for c, x, y, w, h, score in image["detections"]:
            results.append({"image_id": image["id"], "category_id": category_ids[c], "bbox": [x, y, w, h],
                            "score": score})
    return {"info": {}, "images": [{"id": i["id"]} for i in images], "annotations": annotations,
            "categories": [{"id": c, "name": str(c)} for c in category_ids]}, results


def expected(annotations, results):
    """pycocotools' twelve numbers, and AP by class."""
    with contextlib.redirect_stdout(io.StringIO()):
        coco = COCO()
        coco.dataset = annotations
        coco.createIndex()
        judge = COCOeval(coco, coco.loadRes(results) if results else COCO(), "bbox")
        judge.evaluate()
        judge.accumulate()
        judge.summarize()
    precision = judge.eval["precision"][:, :, :, 0, 2]  # IoU, recall, class
    by_class = [float(p[p > -1].mean()) if (p > -1).any() else -1.0 for p in np.moveaxis(precision, 2, 0)]
    return {**{name: float(value) for name, value in zip(STATS, judge.stats)}, "class_ap": by_class}


CASES = {  # seed, images, classes, truths, detections, crowd, ties
    "plain": (1, 12, 4, 6, 20, 0.0, False),
    "crowd": (2, 12, 3, 8, 25, 0.3, False),
    "ties": (3, 15, 3, 6, 25, 0.1, True),
    "many": (4, 3, 1, 30, 180, 0.05, False),       # more than 100 detections a class
    "empty_classes": (5, 6, 12, 2, 4, 0.1, False),  # classes without truths, pictures without anything
    "odd": (6, 15, 3, 8, 25, 0.2, True, 0.4),      # sides of 0, areas at the ends of the ranges and beyond
}

if __name__ == "__main__":
    folder = pathlib.Path(__file__).resolve().parent.parent / "data" / "eval"
    folder.mkdir(exist_ok=True)
    made = {name: (rest[1], make(seed, *rest)) for name, (seed, *rest) in CASES.items()}
    for name, (classes, images) in {**made, "edges": (1, edges())}.items():
        case = {"classes": classes, "images": images, "expected": expected(*coco_files(images, range(1, classes + 1)))}
        (folder / f"coco_{name}.json").write_text(json.dumps(case) + "\n", encoding="utf-8")
