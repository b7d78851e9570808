#!/usr/bin/env python3
"""Writes tests/data/eval/argsort.txt: numpy's default argsort of values with many ties.

    pip install 'numpy<1.25'
    python3 tests/tools/make_argsort_cases.py > tests/data/eval/argsort.txt

A line is `count kinds fnv`: values are i * i * 7919 % 65521 % kinds for i in 0..count-1, and fnv is FNV-1a (64 bits)
over the indices as decimal text, each followed by a space.
"""
import numpy as np

CASES = [(1, 1), (2, 1), (16, 3), (17, 1), (17, 5), (18, 2), (64, 4), (128, 9), (500, 6), (1000, 1), (5000, 40), (5000, 1)]

if __name__ == "__main__":
    print(f"# NumPy {np.__version__}; made by tests/tools/make_argsort_cases.py")
    for count, kinds in CASES:
        values = np.array([i * i * 7919 % 65521 % kinds for i in range(count)], dtype=float)
        value = 0xCBF29CE484222325
        for byte in "".join(f"{i} " for i in values.argsort()).encode():
            value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
        print(count, kinds, f"{value:016x}")
