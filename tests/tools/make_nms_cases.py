#!/usr/bin/env python3
"""Writes tests/data/nms/*.json: what the second half of YOLOv5 v7.0's detection answers, computed without ferry.

    python3 tests/tools/make_nms_cases.py [--golden FOLDER]        needs NumPy; with torch and torchvision it also
                                                                   compares itself with torchvision.ops.nms

`reference` says in NumPy what utils/general.py's non_max_suppression means: objectness above the threshold, then
objectness x class above it (each class, or the best), the class filter, at most 30000 by falling confidence (equal
ones in row order), boxes moved by 7680 a class, IoU strictly above the threshold suppresses, at most max_det stay.
All in fp32. Input rows are [cx, cy, w, h, objectness, classes...].

A case's rows are given ("rows"), made by a formula that C++ repeats ("formula", see `formula_rows`), or read from a
golden file of decoded outputs ("golden", only written with --golden).
"""
import argparse
import json
import os

import numpy as np

try:
    import torch
    import torchvision
except ImportError:
    torch = None

F = np.float32
OUT = os.path.join(os.path.dirname(__file__), "..", "data", "nms")


def unit_noise(rows, columns, seed):
    """[rows, columns] in [0, 1), multiples of 2^-24, so exact in fp32."""
    r, c = np.meshgrid(np.arange(rows, dtype=np.uint32), np.arange(columns, dtype=np.uint32), indexing="ij")
    v = r * np.uint32(2654435761) + c * np.uint32(2246822519) + np.uint32(seed * 3266489917 % 2**32)
    v ^= v >> np.uint32(15)
    v *= np.uint32(2246822519)
    v ^= v >> np.uint32(13)
    v *= np.uint32(3266489917)
    v ^= v >> np.uint32(16)
    return (v >> np.uint32(8)).astype(F) * F(2.0**-24)


def formula_rows(rows, classes, seed, spread):
    """Boxes near the points of an 8 x 8 grid, `spread` pixels about; sides below 128."""
    u = unit_noise(rows, 5 + classes + 2, seed)
    out = u[:, : 5 + classes].copy()
    for axis in (0, 1):
        out[:, axis] = np.floor(u[:, axis] * F(8)) * F(64) + u[:, 5 + classes + axis] * F(spread)
    out[:, 2:4] = u[:, 2:4] * F(128)
    return out


def nms(boxes, scores, iou_threshold):
    """torchvision.ops.nms of boxes that stand in falling order of score."""
    x1, y1, x2, y2 = boxes.T
    area = (x2 - x1) * (y2 - y1)
    alive = np.ones(len(boxes), bool)
    keep = []
    for i in range(len(boxes)):
        if not alive[i]:
            continue
        keep.append(i)
        w = np.maximum(F(0), np.minimum(x2[i], x2) - np.maximum(x1[i], x1))
        h = np.maximum(F(0), np.minimum(y2[i], y2) - np.maximum(y1[i], y1))
        inter = w * h
        with np.errstate(invalid="ignore", divide="ignore"):
            alive &= ~((inter / (area[i] + area - inter)).astype(np.float64) > iou_threshold)
    if torch is not None:
        theirs = torchvision.ops.nms(torch.from_numpy(boxes), torch.from_numpy(scores), iou_threshold).tolist()
        # Equal scores may come in another order there, but not with a stable sort.
        assert theirs == keep, "torchvision disagrees"
    return np.array(keep, int)


def reference(rows, conf_threshold=0.25, iou_threshold=0.45, multi_label=False, agnostic=False, classes=None,
              max_det=300, max_nms=30000):
    count = rows.shape[1] - 5
    conf = F(conf_threshold)
    x = rows[rows[:, 4] > conf]
    score = x[:, 5:] * x[:, 4:5]
    half = x[:, 2:4] / F(2)
    box = np.concatenate([x[:, :2] - half, x[:, :2] + half], 1)
    if multi_label and count > 1:
        i, j = np.nonzero(score > conf)
        box, score, label = box[i], score[i, j], j
    elif len(x):
        label = score.argmax(1)
        score = score[np.arange(len(x)), label]
        above = score > conf
        box, score, label = box[above], score[above], label[above]
    else:
        score = label = np.zeros(0, F)
    if classes is not None:
        wanted = np.isin(label, classes)
        box, score, label = box[wanted], score[wanted], label[wanted]
    order = np.argsort(-score, kind="stable")[:max_nms]
    box, score, label = box[order], score[order], label[order]
    moved = box + label[:, None].astype(F) * F(0 if agnostic else 7680)
    keep = nms(moved, score, iou_threshold)[:max_det]
    return [[*map(float, box[k]), float(score[k]), int(label[k])] for k in keep]


def case(name, source, rows, **options):
    expect = reference(rows, **options)
    return {"name": name, **source, "options": options,
            "expect": [[float(f"{v:.9g}") for v in row[:5]] + [row[5]] for row in expect]}


def inline(name, rows, **options):
    return case(name, {"rows": rows}, np.array(rows, F).reshape(len(rows), -1), **options)


def formula(name, rows, class_count, seed, spread, **options):
    source = {"formula": {"rows": rows, "classes": class_count, "seed": seed, "spread": spread}}
    return case(name, source, formula_rows(rows, class_count, seed, spread), **options)


def write(name, cases):
    with open(os.path.join(OUT, name), "w") as f:
        f.write("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]\n")


def edge_cases():
    box = [100, 100, 40, 40]
    return [
        inline("identical boxes: one of a class stays, the first of equal confidence", [
            box + [0.5, 0.75, 0.25], box + [0.5, 0.75, 0.25], box + [0.5, 0.25, 0.75]]),
        inline("identical boxes of two classes, agnostic", [
            box + [0.5, 0.75, 0.25], box + [1.0, 0.25, 0.75]], agnostic=True),
        inline("equal class scores: the first class", [box + [1.0, 0.5, 0.75, 0.75]]),
        inline("an IoU of one third in fp32 is above one third in fp64", [
            [50, 50, 100, 100, 1.0, 1.0], [100, 50, 100, 100, 0.75, 1.0]], iou_threshold=1 / 3),
        inline("an IoU of a half against a half", [
            [50, 50, 100, 100, 1.0, 1.0], [50, 25, 100, 50, 0.75, 1.0]], iou_threshold=0.5),
        inline("an IoU of a half against a little less", [
            [50, 50, 100, 100, 1.0, 1.0], [50, 25, 100, 50, 0.75, 1.0]], iou_threshold=0.4999999),
        inline("IoU threshold 0: touching edges stay, any overlap goes", [
            [50, 50, 100, 100, 1.0, 1.0], [150, 50, 100, 100, 0.9, 1.0], [149, 150, 100, 101, 0.8, 1.0]],
            iou_threshold=0.0),
        inline("IoU threshold 1: identical boxes all stay", [box + [0.5, 1.0], box + [0.75, 1.0]], iou_threshold=1.0),
        inline("boxes without area never suppress", [[10, 10, 0, 0, 0.5, 1.0], [10, 10, 0, 0, 0.75, 1.0]]),
        inline("a confidence equal to the threshold is not above it", [box + [0.25, 1.0], box + [0.5, 0.5]]),
        inline("confidence threshold 0 passes everything but 0", [
            box + [0.0, 1.0], [300, 300, 9, 9, 0.5, 0.0], [200, 200, 9, 9, 1e-30, 1.0]], conf_threshold=0.0),
        inline("confidence threshold 1 passes nothing", [box + [1.0, 1.0]], conf_threshold=1.0),
        inline("several labels of one box", [box + [1.0, 0.5, 0.125, 0.75]], multi_label=True),
        inline("one class: multi-label means nothing", [box + [1.0, 0.5]], multi_label=True),
        inline("the class filter looks at the best class only", [box + [1.0, 0.5, 0.75]], classes=[0]),
        inline("the class filter with several labels", [box + [1.0, 0.5, 0.75]], classes=[0], multi_label=True),
        inline("no detection allowed", [box + [1.0, 1.0]], max_det=0),
        inline("one detection allowed", [box + [0.5, 1.0], [300, 300, 9, 9, 0.75, 1.0]], max_det=1),
        inline("class 0: an IoU just above one half", [
            [100.640625, 101.71875, 3.8125, 3.296875, 0.9, 1.0],
            [100.015625, 101.28125, 3.46875, 4.90625, 0.8, 1.0]], iou_threshold=0.5),
        inline("class 79: the same boxes, moved so far that bits are lost, are below one half", [
            [100.640625, 101.71875, 3.8125, 3.296875, 0.9] + [0.0] * 79 + [1.0],
            [100.015625, 101.28125, 3.46875, 4.90625, 0.8] + [0.0] * 79 + [1.0]], iou_threshold=0.5),
    ]


def formula_cases():
    return [
        formula("best class at 0.25", 400, 5, 1, 8),
        formula("several labels at 0.25", 400, 5, 2, 8, multi_label=True),
        formula("agnostic", 400, 5, 3, 16, agnostic=True),
        formula("agnostic, several labels, low thresholds", 300, 8, 4, 16, agnostic=True, multi_label=True,
                conf_threshold=0.001, iou_threshold=0.2, max_det=60),
        formula("some classes", 600, 10, 5, 8, classes=[2, 7, 9]),
        formula("80 classes, validation settings: more than 30000 candidates", 500, 80, 6, 8, multi_label=True,
                conf_threshold=0.001, iou_threshold=0.6, max_det=100),
        formula("the cap on candidates decides", 500, 80, 7, 4, multi_label=True, agnostic=True,
                conf_threshold=0.001, iou_threshold=0.05, max_det=300),
        formula("few candidates allowed", 400, 5, 8, 8, max_nms=37, iou_threshold=0.9),
        formula("one class", 500, 1, 9, 4, iou_threshold=0.3),
    ]


def head_cases():
    """Raw maps to detections: YOLOv5's Detect in NumPy (fp64, then rounded), then `reference`.

    Logit v of anchor a at (x, y) of map m is noise * 16 - 8, the noise's row counting maps, anchors, y, x as the
    decoded tensor does, seed 11.
    """
    maps = [{"width": 12, "height": 8, "stride": 8, "anchors": [[10, 13], [16, 30], [33, 23]]},
            {"width": 6, "height": 4, "stride": 16, "anchors": [[30, 61], [62, 45], [59, 119]]},
            {"width": 3, "height": 2, "stride": 32, "anchors": [[116, 90], [156, 198], [373, 326]]}]
    nc = 4
    total = sum(m["width"] * m["height"] * 3 for m in maps)
    s = 1 / (1 + np.exp(-(unit_noise(total, 5 + nc, 11) * F(16) - F(8)).astype(np.float64)))
    rows, at = s.copy(), 0
    for m in maps:
        for anchor in m["anchors"]:
            for y in range(m["height"]):
                for x in range(m["width"]):
                    rows[at, :2] = (2 * s[at, :2] - 0.5 + [x, y]) * m["stride"]
                    rows[at, 2:4] = (2 * s[at, 2:4]) ** 2 * anchor
                    at += 1
    rows = rows.astype(F)
    sample = {str(r): [float(f"{v:.9g}") for v in rows[r]] for r in (0, 1, 100, 287, 288, 360, total - 1)}
    source = {"head": {"maps": maps, "classes": nc, "seed": 11, "decoded": sample}}
    return [case("raw maps, best class", source, rows),
            case("raw maps, several labels", source, rows, multi_label=True, conf_threshold=0.4, max_det=40),
            case("raw maps, low threshold", source, rows, conf_threshold=0.001, iou_threshold=0.6, max_det=60)]


def golden_cases(folder):
    cases = []
    for stem in ("yolov5n_v61_coco80", "yolov5n_exp7_dwconv_coco80"):
        name = f"{stem}_formula320_output.npy"
        rows = np.load(os.path.join(folder, name))[0].astype(F)
        for label, options in (("at 0.1", dict(conf_threshold=0.1)),
                               ("validation settings", dict(conf_threshold=0.001, iou_threshold=0.6,
                                                            multi_label=True, max_det=80)),
                               ("agnostic", dict(conf_threshold=0.01, agnostic=True))):
            cases.append(case(f"{stem} {label}", {"golden": name}, rows, **options))
    return cases


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--golden", help="folder with *_formula320_output.npy")
    arguments = parser.parse_args()
    os.makedirs(OUT, exist_ok=True)
    write("edge.json", edge_cases())
    write("formula.json", formula_cases())
    write("head.json", head_cases())
    if arguments.golden:
        write("golden.json", golden_cases(arguments.golden))
    print("compared with torchvision" if torch is not None else "torch is not here: NumPy alone")


if __name__ == "__main__":
    main()
