#!/usr/bin/env python3
"""Measures the table of docs/performance.md, row by row, and writes it anew: `make bench-table`.

    bench/run_table.py                                  what is missing for this commit
    bench/run_table.py --models n --threads 1 --again   these rows once more

Every row, a model, batch and number of threads, is added to the results as soon as it is measured;
a second call goes on where the first one stopped. Run it on a machine that does nothing else.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
GENERATED = (":!bench/results", ":!docs/performance.md")


def commit():
    """What `git describe` says, with -dirty for changes other than those made here."""
    def git(*words):
        return subprocess.run(["git", "-C", ROOT, *words], capture_output=True, text=True,
                              check=True).stdout.strip()
    changed = git("status", "--porcelain", "-uno", "--", ".", *GENERATED)
    return git("describe", "--always") + ("-dirty" if changed else "")


def rows_of(path):
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines() if line.strip()]


def is_done(record, version, model, batch, threads, peers):
    row = record["row"]
    timed = {e["name"].partition(":")[0] for e in row["engines"] if "refused" not in e}
    wanted = {"ferry again" if peer == "ferry" else peer.partition(":")[0] for peer in peers}
    return (record["commit"] == version and record["machine"]["kernel"].endswith(os.uname().release)
            and row["model"] == model and row["batch"] == batch and row["threads"] == threads
            and row["streams"] == 1 and wanted <= timed)


def numbers(text):
    return [int(word) for word in text.split(",")]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ferry", default=ROOT / "build/ferry", type=Path)
    parser.add_argument("--models", default="n,s,m", help="sizes of YOLOv5")
    parser.add_argument("--batches", default="1,8", type=numbers)
    parser.add_argument("--threads", default="1,2", type=numbers)
    parser.add_argument("--peers", default="ferry,onnxruntime,openvino,ncnn,torch")
    parser.add_argument("--rounds", default=6, type=int)
    parser.add_argument("--duration", default=4, type=float, help="seconds an engine and row")
    parser.add_argument("--patience", default=1.25, type=float)
    parser.add_argument("--python", help="the Python that has the peers")
    parser.add_argument("--results", default=ROOT / "bench/results/peers.jsonl", type=Path)
    parser.add_argument("--commit", help="what to call this version; default: git describe")
    parser.add_argument("--again", action="store_true", help="also rows that are there already")
    args = parser.parse_args()

    version = args.commit or commit()
    peers = args.peers.split(",")
    start, failed = time.monotonic(), False
    for size in args.models.split(","):
        model = f"yolov5{size}"
        for batch in args.batches:
            done = [] if args.again else rows_of(args.results)
            threads = [t for t in args.threads
                       if not any(is_done(r, version, model, batch, t, peers) for r in done)]
            if not threads:
                print(f"{model}, batch {batch}: there already", flush=True)
                continue
            command = [args.ferry, "bench", "--weights", ROOT / f"bench/models/{model}.yaml",
                       "--batch-size", str(batch), "--threads", ",".join(map(str, threads)),
                       "--peers", args.peers, "--rounds", str(args.rounds),
                       "--duration", str(args.duration), "--patience", str(args.patience),
                       "--commit", version, "--record", args.results]
            if args.python:
                command += ["--python", args.python]
            failed |= subprocess.run(list(map(str, command))).returncode != 0
            print(f"-- {model}, batch {batch}: {time.monotonic() - start:.0f} s so far\n", flush=True)
    if args.results.resolve().parent == ROOT / "bench/results":
        subprocess.run([sys.executable, ROOT / "bench/write_performance.py"], check=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
