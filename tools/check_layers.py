#!/usr/bin/env python3
"""Checks every #include under src/ and include/ against cmake/layers.txt; prints file:line: why, exits 1 on any.

    check_layers.py [--root FOLDER]

It also refuses includes that are not full paths from src/, headers that do not exist, and folders without a row.
What CMake links is not looked at: a header that may not be included is of no use to link.
"""
import argparse
import fnmatch
import pathlib
import re
import sys

INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^>"]+)[>"]')
SUFFIXES = {".h", ".cc", ".c", ".inc"}
PUBLIC = "include/ferry"


class Layers:
    """The table: what a folder's code, and its tests, may include."""

    def __init__(self, text):
        self.ours, self.libraries, self.tests = {}, {}, {}
        self.test_only = []
        for number, line in enumerate(text.splitlines(), 1):
            line = line.split("#")[0].strip()
            if line.startswith("test-only:"):
                self.test_only += line.removeprefix("test-only:").split()
            elif line:
                self._row(number, [cell.split() for cell in line.split("|")])

    def _row(self, number, cells):
        if len(cells) != 4 or len(cells[0]) != 1:
            raise SystemExit(f"layers.txt:{number}: a row is `folder | ours | libraries | tests`")
        folder = cells[0][0]
        self.ours[folder], self.libraries[folder], self.tests[folder] = cells[1:]
        for other in cells[1]:
            if not other.startswith("ferry/") and other not in self.ours:
                raise SystemExit(f"layers.txt:{number}: {folder} may not name {other}, which stands below it or nowhere")

    def folder_of(self, path):
        """The row of `path` (relative to src/); the longest that fits, so that backends/cpu is not backends."""
        fitting = [folder for folder in self.ours if path.startswith(folder + "/")]
        return max(fitting, key=len, default=None)

    def is_test_only(self, path):
        return any(fnmatch.fnmatch(path, pattern) for pattern in self.test_only)

    def may_include(self, folder, header, is_library, is_test):
        allowed = list(self.libraries["any"] + self.libraries[folder]) if is_library else list(self.ours[folder])
        if is_test:
            allowed += self.tests["any"] + self.tests[folder]
        if is_library or header.startswith("ferry/"):
            return any(header == a or (a.endswith("/") and header.startswith(a)) for a in allowed)
        target = self.folder_of(header)
        return target == folder or target in allowed


def why_not(layers, root, folder, header, bracket, is_test):
    """Why this include is wrong, or None."""
    if bracket == "<":
        standard = "/" not in header and "." not in header
        if standard or layers.may_include(folder, header, True, is_test):
            return None
        return f"{folder} may not include the library header <{header}>"
    if "/" not in header:
        return f'"{header}": includes are full paths from src/'
    if not (root / "src" / header).is_file() and not (root / "include" / header).is_file():
        return f'"{header}" does not exist'
    if layers.is_test_only(header) and not is_test:
        return f'"{header}" is for tests only'
    if layers.may_include(folder, header, False, is_test):
        return None
    return f'{folder} may not include {layers.folder_of(header) or header} ("{header}")'


def complaints(root):
    layers = Layers((root / "cmake/layers.txt").read_text())
    for file in sorted([*(root / "src").rglob("*"), *(root / PUBLIC).rglob("*")]):
        if file.suffix not in SUFFIXES or not file.is_file():
            continue
        path = file.relative_to(root).as_posix()
        inside = path.removeprefix("src/")
        folder = layers.folder_of(inside)
        if folder is None:
            yield f"{path}:1: no row of cmake/layers.txt covers this folder"
            continue
        is_test = inside.endswith("_test.cc") or layers.is_test_only(inside)
        for number, line in enumerate(file.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
            found = INCLUDE.match(line)
            why = found and why_not(layers, root, folder, found[2], found[1], is_test)
            if why:
                yield f"{path}:{number}: {why}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    lines = list(complaints(parser.parse_args().root))
    print(*lines, sep="\n", end="\n" if lines else "")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
