#!/usr/bin/env python3
"""tools/fetch_demo_files.sh against a network that is not there, lies, or works: curl is replaced by a script."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.append("tools")
import unittest_main

SCRIPT = pathlib.Path("tools/fetch_demo_files.sh").resolve()
CURL = """#!/usr/bin/env bash
echo "$@" >> "$CALLS"
[[ $* == *"--proto =https"* ]] || exit 9
while (($#)); do [[ $1 != --output ]] || out=$2; url=$1; shift; done
[[ -f $SITE/${url##*/} ]] || exit 22
cp "$SITE/${url##*/}" "$out"
"""


class FetchDemoFiles(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="ferry demo ")
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.cache, self.site, self.calls = self.folder / "cache", self.folder / "site", self.folder / "calls"
        self.site.mkdir()
        (self.folder / "bin").mkdir()
        curl = self.folder / "bin/curl"
        curl.write_text(CURL)
        curl.chmod(0o755)

    def fetch(self, script=SCRIPT):
        environment = {**os.environ, "PATH": f"{self.folder}/bin:{os.environ['PATH']}", "SITE": str(self.site),
                       "CALLS": str(self.calls)}
        return subprocess.run([script, self.cache], env=environment, capture_output=True, text=True)

    def script_that_expects(self, weights, picture):
        """The script with the digests of these contents, in a tree of its own."""
        tools = self.folder / "tree/tools"
        tools.mkdir(parents=True)
        (tools / "lib.sh").write_text(SCRIPT.with_name("lib.sh").read_text())
        text = SCRIPT.read_text()
        for name, content in (("weights", weights), ("picture", picture)):
            digest = subprocess.run(["sha256sum"], input=content, capture_output=True, check=True).stdout[:64].decode()
            text = re.sub(rf"(?m)^{name}_sha256=\w+$", f"{name}_sha256={digest}", text)
        copy = tools / SCRIPT.name
        copy.write_text(text)
        copy.chmod(0o755)
        return copy

    def test_without_a_network_it_says_which_file_belongs_where(self):
        done = self.fetch()
        self.assertEqual(done.returncode, 1)
        for text in ("releases/download/v6.1/yolov5n.pt", "4f180cf23ba0717a", f"{self.cache}/yolov5n.pt",
                     f"{self.cache}/bus.jpg", "build/ferry detect --weights"):
            self.assertIn(text, done.stderr)

    def test_a_file_with_another_digest_is_not_kept(self):
        (self.site / "yolov5n.pt").write_text("<html>moved</html>")
        (self.site / "bus.jpg").write_text("not a bus")
        done = self.fetch()
        self.assertEqual(done.returncode, 1)
        self.assertIn("is another file than expected (9 bytes)", done.stderr)
        self.assertEqual(list(self.cache.iterdir()), [])

    def test_right_files_are_kept_and_not_fetched_again(self):
        (self.site / "yolov5n.pt").write_bytes(b"weights")
        (self.site / "bus.jpg").write_bytes(b"picture")
        script = self.script_that_expects(b"weights", b"picture")
        self.assertEqual(self.fetch(script).returncode, 0)
        self.assertEqual((self.cache / "yolov5n.pt").read_bytes(), b"weights")
        self.assertEqual((self.cache / "bus.jpg").read_bytes(), b"picture")
        self.assertEqual(len(self.calls.read_text().splitlines()), 2)
        self.assertEqual(self.fetch(script).returncode, 0)
        self.assertEqual(len(self.calls.read_text().splitlines()), 2)


if __name__ == "__main__":
    unittest_main.main()
