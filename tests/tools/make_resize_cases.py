#!/usr/bin/env python3
"""Writes tests/data/letterbox/resize.txt: what OpenCV's resize answers for formula pictures.

    pip install opencv-python-headless numpy
    python3 tests/tools/make_resize_cases.py > tests/data/letterbox/resize.txt

A line is `area|linear picture_w picture_h width height fnv`, where fnv is FNV-1a over the bytes of the result, red first.
"""
import cv2
import numpy as np

from make_letterbox_cases import fnv, picture

AREA = [  # picture w h, result w h
    (1280, 720, 640, 360), (1280, 960, 640, 480),             # 2 x 2: its own rounding
    (1920, 1080, 640, 360), (96, 60, 24, 20), (64, 90, 32, 30),  # whole ratios
    (810, 1080, 480, 640), (1000, 667, 640, 427), (1333, 800, 640, 385), (641, 480, 640, 480),
    (3000, 17, 640, 4), (37, 2000, 12, 640), (99, 77, 98, 76), (50, 50, 1, 1), (7, 3, 5, 2), (640, 481, 640, 480),
]

LINEAR = [(500, 375, 640, 480), (33, 57, 371, 640), (640, 480, 320, 240), (5, 3, 4, 9)]

if __name__ == "__main__":
    print(f"# OpenCV {cv2.__version__}, NumPy {np.__version__}; made by tests/tools/make_resize_cases.py")
    for how, cases, flag in (("area", AREA, cv2.INTER_AREA), ("linear", LINEAR, cv2.INTER_LINEAR)):
        for w, h, new_w, new_h in cases:
            result = cv2.resize(picture(w, h), (new_w, new_h), interpolation=flag)
            print(how, w, h, new_w, new_h, f"{fnv(result.tobytes()):016x}")
