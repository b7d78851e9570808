#!/usr/bin/env python3
"""Writes tests/data/eval/ultralytics_*.json: hostile truths and detections, and what YOLOv5 v7.0 says of them.

    git clone --branch v7.0 https://github.com/ultralytics/yolov5 /tmp/yolov5
    pip install numpy
    python3 tests/tools/make_ultralytics_cases.py /tmp/yolov5

Runs upstream's own functions (val.py: process_batch; utils/metrics.py: ap_per_class, compute_ap, smooth, box_iou,
ConfusionMatrix), taken out of its files at run time, on numpy: the few calls of torch among them are answered by
`Torch` below, in fp32 (checked: torch 1.13 and 2.15 in its place give the same files, up to the order of equals). What
upstream leaves to numpy's sort is fixed: every argsort is stable.

Each file: {"classes", "images": [{"truths": [[class, x1, y1, x2, y2]], "detections": [[class, confidence, x1, y1, x2,
y2]]}], "expected": {...}}; all numbers are fp32 and stand here exactly. Curves are kept at every STEPth point.
The confusion matrix is [predicted][true]; upstream leaves out false positives of pictures where nothing matched, and
ferry counts them, so they are added here.
"""
import ast
import json
import pathlib
import sys

import numpy as np

STEP = 37


class Tensor(np.ndarray):
    """An fp32 array with the methods of torch.Tensor that upstream's metrics call."""

    device = None

    def cpu(self):
        return self

    def numpy(self):
        return self

    def int(self):
        return self.astype(np.int64)

    def unsqueeze(self, axis):
        return np.expand_dims(self, axis)

    def chunk(self, parts, axis):
        return np.split(self, parts, axis)

    def clamp(self, low):
        return np.maximum(self, np.float32(low))

    def argsort(self, *_, **__):
        return np.argsort(np.asarray(self), kind="stable")


def tensor(rows, columns):
    return np.array(rows, np.float32).reshape(-1, columns).view(Tensor)


class Torch:
    bool = bool
    min, max = staticmethod(np.minimum), staticmethod(np.maximum)
    where = staticmethod(lambda mask: tuple(i.view(Tensor) for i in np.nonzero(np.asarray(mask))))
    stack = staticmethod(lambda parts, axis: np.stack(parts, axis).view(Tensor))
    cat = staticmethod(lambda parts, axis: np.concatenate(parts, axis).astype(np.float32).view(Tensor))
    tensor = staticmethod(lambda values, **_: values)


class Numpy:
    """numpy, with a stable argsort and the trapz that numpy 2 renamed."""

    def __getattr__(self, name):
        return getattr(np, {"trapz": "trapezoid" if hasattr(np, "trapezoid") else "trapz"}.get(name, name))

    @staticmethod
    def argsort(values):
        return np.argsort(values, kind="stable")


def upstream(root):
    """Upstream's functions by name, and what ap_per_class hands to its plots."""
    plots = {}
    scope = {"np": Numpy(), "torch": Torch, "Path": pathlib.PurePosixPath, "TryExcept": lambda _: lambda f: f,
             "plot_pr_curve": lambda px, py, ap, path, names: plots.update(pr=np.array(py)),
             "plot_mc_curve": lambda px, y, path, names, ylabel: plots.update({ylabel: y})}
    wanted = {"utils/metrics.py": ["smooth", "ap_per_class", "compute_ap", "ConfusionMatrix", "box_iou"],
              "val.py": ["process_batch"]}
    for file, names in wanted.items():
        tree = ast.parse((root / file).read_text(encoding="utf-8"))
        tree.body = [node for node in tree.body if getattr(node, "name", None) in names]
        assert len(tree.body) == len(names), f"{file} has not all of {names}"
        exec(compile(tree, file, "exec"), scope)  # noqa: S102
    return scope, plots


def thresholds():
    """torch.linspace(0.5, 0.95, 10): fp32, from both ends."""
    low, high = np.float32(0.5), np.float32(0.95)
    step = (high - low) / np.float32(9)
    return np.array([low + step * np.float32(i) if i < 5 else high - step * np.float32(9 - i) for i in range(10)],
                    np.float32).view(Tensor)


def make(seed, images, classes, most_truths, most_detections, ties, found=1.0):
    """Random boxes; detections are shaken truths, their copies, and noise; confidences and boxes are few when `ties`."""
    random = np.random.default_rng(seed)
    made = []
    for _ in range(images):
        truths, detections = [], []
        for _ in range(random.integers(0, most_truths + 1)):
            x, y = random.uniform(0, 500, 2)
            w, h = np.exp(random.uniform(np.log(5), np.log(300), 2))
            if ties:
                x, y, w, h = (round(v / 40) * 40 for v in (x, y, w + 40, h + 40))
            truths.append([int(random.integers(classes)), x, y, x + w, y + h])
        for _ in range(random.integers(0, most_detections + 1)):
            c = int(random.integers(classes + 1))  # one class has no truths
            if truths and random.random() < 0.75 * found:
                truth = truths[random.integers(len(truths))]
                shake = 0 if ties and random.random() < 0.5 else random.choice([0.01, 0.05, 0.2]) * random.normal(size=4)
                box = np.array(truth[1:]) + shake * (truth[3] - truth[1])
                c = truth[0] if random.random() < 0.9 else c
            else:
                x, y, w, h = random.uniform(0, 500, 4)
                box = np.array([x, y, x + w, y + h])
            confidence = random.choice([0.1, 0.25, 0.5, 0.9]) if ties else random.random() ** 2
            detections.append([c, confidence, *box])
            if ties and random.random() < 0.4:  # the same box as another class
                detections.append([int(random.integers(classes)), random.choice([0.3, 0.5, 0.9]), *box])
        detections.sort(key=lambda d: -d[1])
        made.append({"truths": [[t[0], *map(float, np.float32(t[1:]))] for t in truths],
                     "detections": [[d[0], *map(float, np.float32(d[1:]))] for d in detections]})
    return made


def expected(images, classes, scope, plots):
    """What val.py's run() makes of these pictures."""
    matrix = scope["ConfusionMatrix"](classes)
    stats, forgotten = [], np.zeros(classes)
    for image in images:
        labels = tensor(image["truths"], 5)
        detections = tensor([[*d[2:], d[1], d[0]] for d in image["detections"]], 6)
        correct = np.zeros((len(detections), 10), bool)
        matched = False
        if len(labels) and len(detections):
            correct = scope["process_batch"](detections, labels, thresholds())
            before = matrix.matrix.copy()
            matrix.process_batch(detections, labels)
            matched = (matrix.matrix - before)[:-1, :-1].any()
        elif len(labels):
            matrix.process_batch(None, labels[:, 0])
        if not matched:
            for d in detections[detections[:, 4] > 0.25]:
                forgotten[int(d[5])] += 1
        stats.append((correct, detections[:, 4], detections[:, 5], labels[:, 0]))
    confusion = matrix.matrix.copy()
    confusion[:-1, -1] += forgotten
    result = {"confusion": confusion.astype(int).tolist()}
    columns = [np.asarray(np.concatenate(c)) for c in zip(*stats)]
    if not columns[0].any():
        return result
    names = {c: str(c) for c in range(classes)}
    tp, fp, p, r, f1, ap, ids = scope["ap_per_class"](*columns, plot=True, names=names)
    map50, mean_ap = float(ap[:, 0].mean()), float(ap.mean(1).mean())
    best = int(scope["smooth"](plots["F1"].mean(0), 0.1).argmax())
    curves = {k: plots[k][:, ::STEP].tolist() for k in ("Precision", "Recall", "F1")}
    found = [i for i, c in enumerate(ids) if (columns[2] == c).any()]  # upstream has no PR curve for the others
    curves["PR"] = {str(ids[i]): plots["pr"][k][::STEP].tolist() for k, i in enumerate(found)}
    return {**result, "ids": ids.tolist(), "tp": tp.tolist(), "fp": fp.tolist(), "p": p.tolist(), "r": r.tolist(),
            "f1": f1.tolist(), "ap": ap.tolist(), "mp": float(p.mean()), "mr": float(r.mean()), "map50": map50,
            "map": mean_ap, "fitness": 0.1 * map50 + 0.9 * mean_ap, "best": best / 999, "step": STEP,
            "curves": curves}


def edges():
    """Where rounding and equality decide; made by hand."""
    pictures = [
        # Both truths are as far from the first detection; what it takes decides whether the second finds one.
        ([[0, 0, 0, 10, 10], [0, 4, 0, 14, 10]], [[0, 0.9, 2, 0, 12, 10], [0, 0.8, 4, 0, 14, 10]]),
        ([[0, 4, 0, 14, 10], [0, 0, 0, 10, 10]], [[0, 0.9, 2, 0, 12, 10], [0, 0.8, 4, 0, 14, 10]]),
        # IoU of exactly 0.5 and 0.75; of 0.45 and just above, for the confusion matrix.
        ([[1, 0, 0, 10, 10]], [[1, 0.7, 0, 0, 10, 5]]),
        ([[1, 0, 0, 16, 16]], [[1, 0.6, 0, 0, 16, 12]]),
        ([[2, 0, 0, 20, 20]], [[2, 0.5, 0, 0, 20, 9]]),
        ([[2, 0, 0, 20, 20]], [[2, 0.4, 0, 0, 20, 9.001]]),
        # So small that the epsilon in the union counts; without any area.
        ([[3, 0, 0, 0.001, 0.001]], [[3, 0.3, 0, 0, 0.001, 0.001]]),
        ([[3, 5, 5, 5, 5]], [[3, 0.2, 5, 5, 5, 5]]),
        # Confidences on the confusion matrix' threshold.
        ([[0, 0, 0, 9, 9]], [[0, 0.25, 0, 0, 9, 9]]),
    ]
    return [{"truths": [[t[0], *map(float, np.float32(t[1:]))] for t in truths],
             "detections": [[d[0], *map(float, np.float32(d[1:]))] for d in detections]}
            for truths, detections in pictures]


CASES = {  # seed, images, classes, truths, detections, ties
    "plain": (1, 12, 4, 6, 20, False),
    "ties": (2, 12, 3, 6, 25, True),
    "crowded": (3, 3, 2, 30, 120, False),
    "sparse": (4, 8, 12, 2, 4, False),         # classes without detections, pictures without anything
    "nothing_found": (5, 4, 3, 2, 6, False, 0.0),
}

if __name__ == "__main__":
    folder = pathlib.Path(__file__).resolve().parent.parent / "data" / "eval"
    folder.mkdir(exist_ok=True)
    functions, plotted = upstream(pathlib.Path(sys.argv[1]))
    made = {name: (rest[1] + 1, make(seed, *rest)) for name, (seed, *rest) in CASES.items()}
    for name, (classes, pictures) in {**made, "edges": (5, edges())}.items():
        case = {"classes": classes, "images": pictures, "expected": expected(pictures, classes, functions, plotted)}
        (folder / f"ultralytics_{name}.json").write_text(json.dumps(case) + "\n", encoding="utf-8")
