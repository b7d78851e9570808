#!/usr/bin/env python3
"""check_layers.py on small trees, one rule each."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

import unittest_main

CHECKER = pathlib.Path(__file__).with_name("check_layers.py")
TABLE = """
any     |               | fmt/       | gtest/
include/ferry | ferry/  |            |
low     |               |            |
high    | low           | zlib.h     | special/
test-only: */test_*.h
"""


def check(files, table=TABLE):
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "include/ferry").mkdir(parents=True)
        for path, text in {"cmake/layers.txt": table, "src/low/a.h": "", "src/high/b.h": "", **files}.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        done = subprocess.run([sys.executable, CHECKER, "--root", root], capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr


class CheckLayers(unittest.TestCase):
    def accepts(self, files):
        self.assertEqual(check(files), (0, ""))

    def refuses(self, files, line):
        self.assertEqual(check(files), (1, line + "\n"))

    def test_a_folder_may_include_itself_and_what_its_row_names(self):
        self.accepts({"src/high/x.cc": '#include "high/b.h"\n#include "low/a.h"\n#include <zlib.h>\n#include <vector>\n'})

    def test_a_lower_folder_may_not_include_a_higher_one(self):
        self.refuses({"src/low/x.cc": '\n#include "high/b.h"\n'},
                     'src/low/x.cc:2: low may not include high ("high/b.h")')

    def test_a_library_belongs_to_the_folders_that_name_it(self):
        self.refuses({"src/low/x.cc": "#include <zlib.h>\n"},
                     "src/low/x.cc:1: low may not include the library header <zlib.h>")

    def test_a_library_that_no_row_names_is_refused(self):
        self.refuses({"src/high/x.h": "#  include <boost/asio.hpp>\n"},
                     "src/high/x.h:1: high may not include the library header <boost/asio.hpp>")

    def test_tests_may_include_more(self):
        self.accepts({"src/high/x_test.cc": "#include <gtest/gtest.h>\n#include <special/s.h>\n"})
        self.refuses({"src/high/x.cc": "#include <gtest/gtest.h>\n"},
                     "src/high/x.cc:1: high may not include the library header <gtest/gtest.h>")

    def test_test_helpers_are_for_tests(self):
        self.accepts({"src/low/test_help.h": "#include <gtest/gtest.h>\n", "src/low/x_test.cc": '#include "low/test_help.h"\n'})
        self.refuses({"src/low/test_help.h": "", "src/low/x.cc": '#include "low/test_help.h"\n'},
                     'src/low/x.cc:1: "low/test_help.h" is for tests only')

    def test_includes_are_full_paths_of_headers_that_exist(self):
        self.refuses({"src/low/x.cc": '#include "a.h"\n'}, 'src/low/x.cc:1: "a.h": includes are full paths from src/')
        self.refuses({"src/low/x.cc": '#include "low/gone.h"\n'}, 'src/low/x.cc:1: "low/gone.h" does not exist')

    def test_public_headers_see_only_each_other(self):
        self.refuses({"include/ferry/f.h": '#include "low/a.h"\n'},
                     'include/ferry/f.h:1: include/ferry may not include low ("low/a.h")')

    def test_a_folder_without_a_row_is_refused(self):
        self.refuses({"src/new/x.cc": ""}, "src/new/x.cc:1: no row of cmake/layers.txt covers this folder")

    def test_the_table_itself_may_not_point_upwards(self):
        code, said = check({}, TABLE.replace("low     |  ", "low     | high"))
        self.assertEqual(code, 1)
        self.assertIn("low may not name high", said)


if __name__ == "__main__":
    unittest_main.main()
