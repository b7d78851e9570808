"""Compares detector engines on one machine, side by side, and prints a Markdown table.

    python compare.py --ours build/bench/net_bench --models yolov5n.onnx yolov5s.onnx

Every engine is one long-lived process that speaks the line protocol of run_peer.py: `run K`,
`output PATH`, `rss`, and for a good caption `info`. `--ours` is a command that speaks it too; it
is given `--model FILE --threads N`. The engines of a row take turns (A B C, then C B A), K runs a
turn, so that what the machine does meets all alike, and ratios are formed round by round.

No engine is timed before its output agrees with the first peer's. A round starts when other
processes are quiet, after `--wait` seconds at the latest; one they disturbed is repeated, up to
`--patience` times the rounds asked for. The table is made of the least disturbed rounds, and says
how disturbed those were, and what a burst of multiply-adds reached of the peak beside them.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx

import machine

HERE = Path(__file__).resolve().parent
SCORE_LIMIT = 1e-3  # relative; fp32 engines differ by 1e-4, bf16 ones by 1e-2
BOX_LIMIT = 0.05    # pixels; fp32 engines differ by 1e-3, bf16 ones by 1 and more
SETTLE_S = 0.05     # lets the last engine's threads stop spinning

CAPTION = """\
Batch 1, fp32, network only. Ratio: the first engine's time over this one's, by rounds (range).
Of peak: multiply-adds of the convolutions over the time, at the median and at the minimum.
Differs: from the first peer, largest relative score and largest box coordinate in pixels.

| row | engine | median ms | min ms | p10-p90 | ratio | of peak | peak RSS MB | differs |
|---|---|---|---|---|---|---|---|---|"""


class Engine:
    """A child process and the times it reported, one list a round."""

    def __init__(self, name, command):
        self.name = name
        self.rounds = []
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)

    def ask(self, request):
        try:
            self.process.stdin.write(request + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise SystemExit(f"{self.name}: ended without an answer to '{request}'")
        return json.loads(line)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def conv_macs(path):
    """Multiply-adds of the model's convolutions."""
    graph = onnx.shape_inference.infer_shapes(onnx.load(path)).graph
    dims = {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim]
            for v in [*graph.value_info, *graph.output]}
    weights = {w.name: int(np.prod(w.dims)) for w in graph.initializer}
    return sum(weights[n.input[1]] * int(np.prod(dims[n.output[0]][2:]))
               for n in graph.node if n.op_type == "Conv")


def disagreement(output, reference):
    """(largest relative score difference, largest box difference in pixels)"""
    if output.shape != reference.shape:
        raise SystemExit(f"output shape {output.shape}, reference {reference.shape}")
    score, want = output[..., 4:], reference[..., 4:]
    return (float(np.max(np.abs(score - want) / (np.abs(want) + 1e-6))),
            float(np.max(np.abs(output[..., :4] - reference[..., :4]))))


def start_engines(args, model, threads):
    common = ["--model", str(model), "--threads", str(threads)]
    engines = [Engine("ours", shlex.split(args.ours) + common)] if args.ours else []
    for name in args.engines:
        engine, _, option = name.partition(":")
        engines.append(Engine(name, [sys.executable, str(HERE / "run_peer.py"), "--engine", engine]
                              + common + (["--option", option] if option else [])))
    return engines


def check_outputs(engines, folder):
    """Asks each for its memory, then for its output; the first peer's output is the reference."""
    order = [e for e in engines if e.name != "ours"] + [e for e in engines if e.name == "ours"]
    reference = None
    for e in order:
        e.info = e.ask("info")
        e.ask("run 3")
        e.memory = e.ask("rss")
        path = os.path.join(folder, "output.npy")
        e.ask(f"output {path}")
        output = np.load(path)
        reference = output if reference is None else reference
        e.differs = score, box = disagreement(output, reference)
        if not (score <= SCORE_LIMIT and box <= BOX_LIMIT):
            raise SystemExit(f"{e.name} differs from {order[0].name}: scores by {score:.2g} "
                             f"(relative), boxes by {box:.2g} pixels")


def play_round(engines, number, per_round):
    """One turn for each engine; returns (cores that others used meanwhile, share stolen)."""
    wall = others = stolen = 0
    for e in engines if number % 2 == 0 else engines[::-1]:
        time.sleep(SETTLE_S)
        e.ask("run 1")  # its weights and threads come back
        start = time.monotonic()
        busy, steal = machine.ticks()
        own = machine.ticks_of(e.process.pid)
        e.rounds.append(e.ask(f"run {per_round}")["times_ms"])
        own = machine.ticks_of(e.process.pid) - own
        after = machine.ticks()
        wall += (time.monotonic() - start) * machine.TICKS_PER_SECOND
        others += after[0] - busy - own
        stolen += after[1] - steal
    return max(0, others) / wall, stolen / wall


def measure(args, engines, threads, peak):
    """Plays rounds, keeps the least disturbed, and returns what is known of those."""
    notes = []
    for number in range(args.rounds * args.patience):
        machine.wait_until_quiet(args.quiet, args.wait)
        rate, trip = peak.probe(0.01, threads)
        other, steal = play_round(engines, number, args.per_round)
        notes.append({"other": other, "steal": steal, "gflops": rate, "trip_ns": trip})
        if sum(note["other"] <= args.quiet for note in notes) >= args.rounds:
            break
    best = sorted(range(len(notes)), key=lambda i: notes[i]["other"])[:args.rounds]
    for e in engines:
        e.rounds = [e.rounds[i] for i in best]
    return {"played": len(notes), "rounds": [notes[i] for i in best]}


def machine_row(row, peak):
    """The conditions of a row: what else happened on the machine."""
    other, steal, rate, trip = (
        [r[k] for r in row["note"]["rounds"]] for k in ("other", "steal", "gflops", "trip_ns"))
    text = (f"others used {np.median(other):.2f} cores (at most {max(other):.2f}), stolen "
            f"{max(steal):.1%}, burst {min(rate) / peak:.0%}-{max(rate) / peak:.0%} of peak")
    if row["threads"] > 1 and None not in trip:
        text += f", round trip {min(trip):.0f}-{max(trip):.0f} ns"
    return f"| {row['label']} | *machine* | {text}; {row['note']['played']} rounds |" + " |" * 6


def engine_rows(row, peak):
    first = row["engines"][0]
    base = [np.median(r) for r in first["rounds_ms"]]
    flops = 2e-6 * row["macs"] / peak
    for e in row["engines"]:
        times = np.concatenate(e["rounds_ms"])
        median, least = float(np.median(times)), float(times.min())
        low, high = np.percentile(times, (10, 90))
        ratios = [b / np.median(r) for b, r in zip(base, e["rounds_ms"])]
        ratio = f"{np.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})"
        differs = f"{e['differs'][0]:.0e}, {e['differs'][1]:.0e}" if any(e["differs"]) else "0"
        yield (f"| {row['label']} | {e['name']} | {median:.1f} | {least:.1f} | "
               f"{low:.1f}-{high:.1f} | {'1' if e is first else ratio} | "
               f"{flops / median:.0%}, {flops / least:.0%} | "
               f"{e['memory']['peak_rss_mb']:.0f} | {differs} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ours", help="command that speaks run_peer.py's protocol")
    parser.add_argument("--models", nargs="+", type=Path, required=True, help="ONNX files")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--engines", default="onnxruntime,openvino,ncnn",
                        help="NAME or NAME:OPTION, see run_peer.py --option")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--per-round", type=int, default=5)
    parser.add_argument("--quiet", type=float, default=0.05, help="cores others may use")
    parser.add_argument("--wait", type=float, default=5, help="seconds to wait for quiet, a round")
    parser.add_argument("--patience", type=int, default=3)
    parser.add_argument("--json", type=Path, help="also writes every time here")
    args = parser.parse_args()
    args.engines = [name for name in args.engines.split(",") if name]

    rows = []
    with tempfile.TemporaryDirectory() as folder:
        peak = machine.Peak(folder)
        peak.probe(0.5, 1)
        for model in args.models:
            for threads in map(int, args.threads.split(",")):
                engines = start_engines(args, model, threads)
                check_outputs(engines, folder)
                note = measure(args, engines, threads, peak)
                rows.append({
                    "label": f"{model.stem} {threads}t", "threads": threads, "note": note,
                    "macs": conv_macs(model), "engines": [
                        {"name": e.name, "info": e.info, "memory": e.memory, "differs": e.differs,
                         "rounds_ms": e.rounds} for e in engines]})
                for e in engines:
                    e.close()
                print(rows[-1]["label"], "done", file=sys.stderr)
    if args.json:
        args.json.write_text(json.dumps({"cpu": machine.cpu(), "rows": rows}, indent=1))

    rates = ", ".join(f"{isa} {t}t {rate:.0f}" for (isa, t), rate in peak.best.items())
    versions = {e["name"]: e["info"].get("version", "?") for row in rows for e in row["engines"]}
    print(f"{machine.cpu()}; fp32 peak GFLOP/s: {rates}. "
          f"Versions: {', '.join(f'{n} {v}' for n, v in versions.items())}.\n\n" + CAPTION)
    for row in rows:
        best = peak.of(row["threads"]) or float("nan")
        print("\n".join([*engine_rows(row, best), machine_row(row, best)]))


if __name__ == "__main__":
    main()
