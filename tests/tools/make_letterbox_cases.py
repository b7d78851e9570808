#!/usr/bin/env python3
"""Writes tests/data/letterbox/cases.txt: what OpenCV answers for the letterbox of formula pictures.

    pip install opencv-python-headless numpy
    python3 tests/tools/make_letterbox_cases.py > tests/data/letterbox/cases.txt

The scaled pixels are cv2.resize's (INTER_LINEAR), the border is cv2.copyMakeBorder's; nothing here comes from
ferry. A line is

    mode picture_w picture_h aim_w aim_h scale_up  input_w input_h pad_left pad_top scaled_w scaled_h  fnv

where fnv is FNV-1a (64 bits, hexadecimal) over the bytes of the letterboxed picture, red first, interleaved.
"""
import numpy as np
import cv2

CASES = [  # mode, picture w h, aim w h, scale_up
    ("rect", 810, 1080, 640, 640, 1), ("square", 810, 1080, 640, 640, 1),
    ("rect", 1280, 720, 640, 640, 1), ("square", 1280, 720, 640, 640, 1),   # ratio 2: OpenCV's area path
    ("rect", 1920, 1080, 640, 640, 1), ("square", 1920, 1080, 640, 640, 1),  # ratio 3: one tap
    ("rect", 3840, 2160, 640, 640, 1), ("rect", 7680, 4320, 640, 640, 1),    # ratios 6 and 12
    ("rect", 640, 640, 640, 640, 1), ("rect", 640, 480, 640, 640, 1), ("square", 640, 427, 640, 640, 1),
    ("rect", 100, 75, 640, 640, 1), ("square", 100, 75, 640, 640, 0), ("rect", 33, 57, 320, 320, 1),
    ("square", 1, 1, 64, 64, 1), ("square", 1, 1, 64, 64, 0), ("square", 2, 3, 96, 64, 1),
    ("square", 7, 5, 96, 64, 1), ("rect", 3, 2000, 640, 640, 1), ("rect", 4000, 40, 640, 640, 1),
    ("square", 500, 375, 640, 384, 1), ("rect", 375, 500, 384, 640, 1), ("rect", 1001, 777, 416, 416, 1),
    ("square", 641, 643, 640, 640, 1), ("square", 1279, 721, 641, 353, 1), ("square", 21, 22, 20, 20, 1),
    ("stretch", 810, 1080, 640, 640, 1), ("stretch", 333, 100, 64, 640, 1), ("stretch", 64, 64, 21, 1, 1),
    ("square", 22, 40, 11, 20, 1), ("square", 50, 20, 17, 9, 1), ("square", 2048, 1536, 512, 512, 1),
]


def picture(w, h):
    """Noise that C++ computes too: [h, w, 3] in RGB order."""
    y, x, c = np.meshgrid(np.arange(h, dtype=np.uint32), np.arange(w, dtype=np.uint32),
                          np.arange(3, dtype=np.uint32), indexing="ij")
    v = x * np.uint32(2654435761) + y * np.uint32(2246822519) + c * np.uint32(3266489917)
    v ^= v >> np.uint32(15)
    v *= np.uint32(2246822519)
    v ^= v >> np.uint32(13)
    return (v & np.uint32(255)).astype(np.uint8)


def fnv(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return value


def letterbox(image, mode, aim_w, aim_h, scale_up, stride=32):
    h, w = image.shape[:2]
    ratio = min(aim_h / h, aim_w / w)
    if not scale_up:
        ratio = min(ratio, 1.0)
    new_w, new_h = int(round(w * ratio)), int(round(h * ratio))
    border_x, border_y = aim_w - new_w, aim_h - new_h
    if mode == "rect":
        border_x, border_y = border_x % stride, border_y % stride
    elif mode == "stretch":
        border_x = border_y = 0
        new_w, new_h = aim_w, aim_h
    if (new_w, new_h) != (w, h):
        image = cv2.resize(image, (new_w, new_h), interpolation=cv2.INTER_LINEAR)
    top, bottom = int(round(border_y / 2 - 0.1)), int(round(border_y / 2 + 0.1))
    left, right = int(round(border_x / 2 - 0.1)), int(round(border_x / 2 + 0.1))
    image = cv2.copyMakeBorder(image, top, bottom, left, right, cv2.BORDER_CONSTANT, value=(114, 114, 114))
    return image, left, top, new_w, new_h


def main():
    print(f"# OpenCV {cv2.__version__}, NumPy {np.__version__}; made by tests/tools/make_letterbox_cases.py")
    for mode, w, h, aim_w, aim_h, scale_up in CASES:
        out, left, top, new_w, new_h = letterbox(picture(w, h), mode, aim_w, aim_h, scale_up)
        print(mode, w, h, aim_w, aim_h, scale_up, " ", out.shape[1], out.shape[0], left, top, new_w, new_h, " ",
              f"{fnv(out.tobytes()):016x}")


if __name__ == "__main__":
    main()
