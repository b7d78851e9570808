"""unittest.main() that also reports to tools/test.py, in the form that GoogleTest programs do.

With GTEST_OUTPUT=xml:FOLDER/ in the environment, FOLDER/<script>.xml names every test and how it ended.
"""
import os
import pathlib
import sys
import unittest
import xml.etree.ElementTree as xml


class _Result(unittest.TextTestResult):
    """Remembers how each test ended: "" or what to write under its name."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.ended = {}

    def startTest(self, test):
        super().startTest(test)
        self.ended[test.id()] = None

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.ended[test.id()] = ("failure", str(err[1]))

    addError = addFailure

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.ended[test.id()] = ("failure", str(err[1]))

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.ended[test.id()] = ("skipped", reason)


def _write(ended, path):
    suite = xml.Element("testsuite")
    for name, how in ended.items():
        _, group, test = name.rsplit(".", 2)
        case = xml.SubElement(suite, "testcase", classname=group, name=test, status="run")
        if how is not None:
            xml.SubElement(case, how[0], message=how[1])
    path.parent.mkdir(parents=True, exist_ok=True)
    xml.ElementTree(suite).write(path, encoding="utf-8")


def main():
    program = unittest.main(testRunner=unittest.TextTestRunner(resultclass=_Result), exit=False)
    output = os.environ.get("GTEST_OUTPUT", "")
    if output.startswith("xml:") and output.endswith("/"):
        script = pathlib.Path(sys.argv[0]).stem
        _write(program.result.ended, pathlib.Path(output.removeprefix("xml:")) / f"{script}.xml")
    sys.exit(not program.result.wasSuccessful())
