"""What compare.py knows of the machine: its processor, its peak, and who else is using it."""

import os
import subprocess
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
FLAGS = ("avx2", "avx_vnni", "avx512f", "avx512_vnni", "avx512_bf16", "avx512_fp16",
         "amx_tile", "amx_bf16", "amx_int8")


def cpu():
    """Model name and the vector extensions that matter to a detector."""
    info = Path("/proc/cpuinfo").read_text().splitlines()
    name = next((line.partition(": ")[2] for line in info if line.startswith("model name")), "?")
    have = next((line.split() for line in info if line.startswith("flags")), [])
    return f"{name} ({' '.join(flag for flag in FLAGS if flag in have)})"


def ticks():
    """(busy, stolen) ticks of all cores since boot."""
    user, nice, system, _, _, irq, softirq, steal, *_ = map(
        int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:])
    return user + nice + system + irq + softirq, steal


def ticks_of(pid):
    """CPU ticks used so far by all threads of a process, and by this one."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    times = os.times()
    return int(fields[11]) + int(fields[12]) + (times.user + times.system) * TICKS_PER_SECOND


def wait_until_quiet(quiet, limit_s):
    """Returns once other processes use at most `quiet` cores; the engines are idle meanwhile."""
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        busy = ticks()[0]
        time.sleep(0.5)
        if ticks()[0] - busy <= max(1, quiet * 0.5 * TICKS_PER_SECOND):
            return


class Peak:
    """peak.cc, built for this run; keeps the best rates it has seen."""

    def __init__(self, folder):
        self.binary = os.path.join(folder, "peak")
        self.best = {}  # (isa, threads): GFLOP/s
        subprocess.run([os.environ.get("CXX", "g++"), "-O2", "-pthread", HERE / "peak.cc", "-o",
                        self.binary], check=True)

    def probe(self, seconds, threads):
        """(GFLOP/s now, nanoseconds of a round trip between two cores or None)"""
        out = subprocess.check_output([self.binary, str(seconds)], text=True)
        now, trip = 0.0, None
        for words in map(str.split, out.splitlines()):
            if words[0] == "pingpong":
                trip = float(words[2])
            else:
                key, rate = (words[1], int(words[2])), float(words[3])
                self.best[key] = max(self.best.get(key, 0.0), rate)
                now = max(now, rate if key[1] == threads else 0.0)
        return now, trip

    def of(self, threads):
        return max((rate for key, rate in self.best.items() if key[1] == threads), default=0.0)
