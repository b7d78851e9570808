"""For tests that compare with packages from PyPI: a virtual environment, made once.

Where PyPI cannot be reached (or venv is not installed) nothing is compared; the test says so and exits with 77, which CTest
shows as skipped. With FERRY_REQUIRE_PYPI=1 it fails.
"""
import os
import pathlib
import subprocess
import sys

SKIPPED = 77


def run_inside(venv, packages, script, what):
    """Runs `script --inside` with a Python that has `packages`, in the folder `venv`; returns its exit status."""
    venv = pathlib.Path(venv)
    python, ready = venv / "bin" / "python", venv / "ready"
    if not ready.exists():
        steps = [[sys.executable, "-m", "venv", "--clear", str(venv)],
                 [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages]]
        for step in steps:
            made = subprocess.run(step, capture_output=True, text=True, check=False)
            if made.returncode != 0:
                print(f"NOT CHECKED: {what}. `{' '.join(step)}` failed:\n{made.stdout}{made.stderr}\nOn Debian, venv needs "
                      "the package python3-venv.", file=sys.stderr)
                return 1 if os.environ.get("FERRY_REQUIRE_PYPI") == "1" else SKIPPED
        ready.touch()
    return subprocess.run([str(python), script, "--inside"], check=False).returncode
