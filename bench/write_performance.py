#!/usr/bin/env python3
"""Writes docs/performance.md from the lines of bench/results: the newest of each row.

    bench/write_performance.py            writes the page
    bench/write_performance.py --check    fails when the page is not what would be written
"""

import argparse
import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEAD = """\
# Performance

Written by `bench/write_performance.py` from the measurements in `bench/results`; do not edit.
`make bench-table` measures again; [bench.md](bench.md) says how, and how it is kept fair.
"""
NONE = """
Nothing is measured yet.
"""
SPEED = """
Median milliseconds of ferry, and the time of each other engine as a multiple of it: above 1, ferry
is faster. In brackets the spread, 8 of 10 rounds. *ferry again* is ferry against itself: what it
differs from 1 by, chance makes.
"""
MEMORY = """
Highest resident memory in MB, after loading and running; of the peers' figures, Python and numpy
are about {python:.0f}.
"""
EVERYTHING = """
Every engine, fp32, milliseconds. Of peak: multiply-adds of the model over what the machine's best
instruction could do in the time. Differs: largest relative difference of a score and of a box
coordinate in pixels from ferry's.
"""
CONDITIONS = """
What else happened on the machine:
"""


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def key_of(row):
    return (row["work"], row["model"], row["height"], row["width"], row["batch"], row["threads"],
            row["streams"])


def order_of(row):
    sizes = "nsmlx"
    last = row["model"][-1:]
    return (row["work"], sizes.find(last) if last in sizes else 9, row["model"], row["batch"],
            row["threads"], row["streams"])


def label(row):
    text = [row["model"], str(row["batch"]), str(row["threads"])]
    if row["streams"] > 1:
        text[2] += f" x {row['streams']} streams"
    return text


def timed(row):
    return {e["name"]: e for e in row["engines"] if "refused" not in e}


def ratio(engine):
    r = engine["ratio"]
    return f"{r['median']:.2f} ({r['low']:.2f}-{r['high']:.2f})"


def percent(value):
    return f"{100 * value:.0f} %" if value > 0 else "-"


def conditions(record):
    row = record["row"]
    rounds, peak = row["rounds"], row["peak"]["f32_gflops"]
    others = sorted(r["others_cores"] for r in rounds)
    bursts = [r["burst_gflops"] / peak for r in rounds]
    model, batch, threads = label(row)
    text = (f"- {model}, batch {batch}, {threads} threads ({record['date'][:10]}, "
            f"{record['commit'] or 'commit unknown'}): others used "
            f"{others[len(others) // 2]:.2f} processors (at most {others[-1]:.2f}), stolen at most "
            f"{max(r['steal_percent'] for r in rounds):.1f} %, bursts "
            f"{100 * min(bursts):.0f}-{100 * max(bursts):.0f} % of peak, "
            f"{len(rounds)} of {row['rounds_played']} rounds kept.\n")
    refused = [f"  - Not timed: {e['refused'].splitlines()[0]}\n"
               for e in row["engines"] if "refused" in e]
    return text + "".join(refused + [f"  - {warning}\n" for warning in row["warnings"]])


def section(records):
    machine, rows = records[-1]["machine"], [r["row"] for r in records]
    names = list(dict.fromkeys(n for row in rows for n in timed(row)))
    others = [n for n in names if n != "ferry"]
    parts = [f"\n## {machine['cpu']}, {machine['cores']} cores\n\n"
             f"{machine['kernel']}{', under ' + machine['virtualisation'] if machine['virtualisation'] else ''}"
             f"{', governor ' + machine['governor'] if machine['governor'] else ''}; "
             f"{' '.join(machine['flags'])}.\n"]
    peaks = {row["peak"]["threads"]: row["peak"] for row in rows}
    for threads, p in sorted(peaks.items()):
        parts.append(f"Peak of {threads} thread{'s' if threads > 1 else ''}: {p['f32_gflops']:.0f} "
                     f"GFLOP/s fp32 ({p['isa']}), {p['bf16_gflops']:.0f} bf16, "
                     f"{p['int8_gops']:.0f} int8; memory {p['memory_gb_s']:.1f} GB/s.\n")
    versions = {n: e["version"] for row in rows for n, e in timed(row).items()}
    parts.append("Versions: " + ", ".join(f"{n} {versions[n]}" for n in names
                                          if n != "ferry again") + ".\n")

    parts += [SPEED, "\n", table(
        ["model", "batch", "threads", "ferry ms", "of peak", *others],
        [[*label(row), f"{timed(row)['ferry']['latency_ms']['median']:.1f}",
          percent(timed(row)["ferry"]["of_peak"]["median"]),
          *(ratio(timed(row)[n]) if n in timed(row) else "-" for n in others)] for row in rows])]
    python = max([e["memory"]["python_mb"] for row in rows for e in timed(row).values()])
    in_memory = [n for n in names if n != "ferry again"]
    parts += [MEMORY.format(python=python), "\n", table(
        ["model", "batch", "threads", *in_memory],
        [[*label(row), *(f"{timed(row)[n]['memory']['peak_rss_mb']:.0f}" if n in timed(row) else "-"
                         for n in in_memory)] for row in rows])]
    parts += [EVERYTHING, "\n", table(
        ["model", "batch", "threads", "engine", "min", "median", "p90", "p99", "images/s",
         "of peak: median, fastest", "load ms", "differs"],
        [[*label(row), e["name"], *(f"{e['latency_ms'][k]:.1f}"
                                    for k in ("min", "median", "p90", "p99")),
          f"{e['images_per_s']:.1f}",
          f"{percent(e['of_peak']['median'])}, {percent(e['of_peak']['fastest'])}",
          f"{e['load_ms']:.0f}",
          f"{e['differs']['scores']:.0e}, {e['differs']['boxes']:.0e}" if "differs" in e else ""]
         for row in rows for e in timed(row).values()])]
    return "".join([*parts, CONDITIONS, "\n", *map(conditions, records)])


def page(folder):
    newest = {}  # later lines and later dates win
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text().splitlines():
            if not line.strip():
                continue
            record = json.loads(line)
            machine = record["machine"]
            key = (machine["cpu"], machine["cores"]), key_of(record["row"])
            if key not in newest or newest[key]["date"] <= record["date"]:
                newest[key] = record
    machines = {}
    for (machine, _), record in newest.items():
        machines.setdefault(machine, []).append(record)
    sections = [section(sorted(records, key=lambda r: order_of(r["row"])))
                for _, records in sorted(machines.items())]
    return HEAD + ("".join(sections) or NONE)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", default=ROOT / "bench/results", type=Path)
    parser.add_argument("--output", default=ROOT / "docs/performance.md", type=Path)
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    text = page(args.results)
    if not args.check:
        args.output.write_text(text)
    elif not args.output.exists() or args.output.read_text() != text:
        print(f"{args.output} is not what bench/write_performance.py writes: run it",
              file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
