"""Runs one peer engine as a long-lived process, told what to do line by line on stdin.

    python run_peer.py --engine openvino --model yolov5n.onnx --threads 2

Requests, one a line, and their answers, one JSON object a line on stdout:

    info         {"engine": .., "version": .., "threads": .., "precision": .., "load_ms": ..}
    run K        {"times_ms": [..]}       K inferences, each from a ready input to its output
    output PATH  {"output": PATH, ..}     writes the output of the one fixed input as .npy
    rss          {"rss_mb": .., "peak_rss_mb": .., "python_mb": ..}  python_mb: before the engine
    quit         ends the process; so does the end of stdin

The input is the same in every engine, `test_input` below, simple enough to be written in any
language. It is laid out before the clock starts; the clock stops when the output lies in memory
that Python can read.

ncnn reads its own format: the .ncnn.param and .ncnn.bin that pnnx writes, looked for beside the
ONNX file or in a folder `ncnn` there. All of ncnn's fp16 and bf16 options are off, and OpenVINO is
told f32: both would otherwise compute in 16 bits on processors that can, and the table is of fp32.
"""

import argparse
import json
import os
import sys
import time

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # or numpy's idle threads spin beside the engine's

import numpy as np  # noqa: E402


def test_input(shape):
    """Element i is a hash of i in [0, 1): 24 bits, exact in a float."""
    h = np.arange(np.prod(shape), dtype=np.uint32) * np.uint32(2654435761)
    h = (h ^ (h >> np.uint32(15))) * np.uint32(2246822519)
    h ^= h >> np.uint32(13)
    return ((h >> np.uint32(8)) * np.float32(2.0**-24)).astype(np.float32).reshape(shape)


class Onnxruntime:
    def __init__(self, args):
        import onnxruntime as ort
        options = ort.SessionOptions()
        options.intra_op_num_threads = args.threads
        options.inter_op_num_threads = 1
        options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
        if args.option == "nospin":
            options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self.session = ort.InferenceSession(args.model, options, ["CPUExecutionProvider"])
        self.version = ort.__version__
        self.precision = "f32"
        self.name = self.session.get_inputs()[0].name
        self.shape = self.session.get_inputs()[0].shape

    def prepare(self, x):
        self.feed = {self.name: x}

    def infer(self):
        return self.session.run(None, self.feed)[0]


class Openvino:
    def __init__(self, args):
        import openvino as ov
        core = ov.Core()
        config = {
            "PERFORMANCE_HINT": "LATENCY",
            "NUM_STREAMS": 1,
            "INFERENCE_NUM_THREADS": args.threads,
            "INFERENCE_PRECISION_HINT": "f32",
        }
        if args.option in ("pin", "nopin"):
            config["ENABLE_CPU_PINNING"] = args.option == "pin"
        self.compiled = core.compile_model(args.model, "CPU", config)
        self.request = self.compiled.create_infer_request()
        self.version = ov.__version__
        self.precision = self.compiled.get_property("INFERENCE_PRECISION_HINT").get_type_name()
        threads = self.compiled.get_property("INFERENCE_NUM_THREADS")
        if self.precision != "f32" or threads != args.threads:
            raise SystemExit(f"openvino runs {self.precision} on {threads} threads")
        self.shape = list(self.compiled.input(0).shape)
        self.ov = ov

    def prepare(self, x):
        self.tensor = self.ov.Tensor(x, shared_memory=True)
        self.request.set_input_tensor(self.tensor)

    def infer(self):
        self.request.infer()
        return self.request.get_output_tensor(0).data


class Ncnn:
    def __init__(self, args):
        import ncnn
        base = os.path.splitext(args.model)[0]
        nested = os.path.join(os.path.dirname(base), "ncnn", os.path.basename(base))
        base = next((b for b in (base, nested) if os.path.exists(b + ".ncnn.param")), None)
        if base is None:
            raise SystemExit(f"ncnn: no .ncnn.param beside {args.model}; see README.md")
        self.ncnn = ncnn
        self.net = ncnn.Net()
        options = self.net.opt
        options.num_threads = args.threads
        options.use_vulkan_compute = False
        for name in ("use_fp16_packed", "use_fp16_storage", "use_fp16_arithmetic",
                     "use_bf16_packed", "use_bf16_storage"):
            if hasattr(options, name):
                setattr(options, name, False)
        # As ncnn's own benchmark does: without pools each blob is mapped and faulted in anew.
        self.pools = ncnn.UnlockedPoolAllocator(), ncnn.PoolAllocator()
        if args.option != "nopool":
            options.blob_allocator, options.workspace_allocator = self.pools
        if args.option == "nowinograd":
            options.use_winograd_convolution = False
        if self.net.load_param(base + ".ncnn.param") or self.net.load_model(base + ".ncnn.bin"):
            raise SystemExit(f"ncnn: cannot load {base}")
        self.version = ncnn.__version__
        self.precision = "f32"
        self.shape = list(args.shape)
        self.input_name = self.net.input_names()[0]
        self.output_name = self.net.output_names()[0]

    def prepare(self, x):
        self.x = x  # the Mat borrows its memory
        self.mat = self.ncnn.Mat(x[0])

    def infer(self):
        extractor = self.net.create_extractor()
        extractor.input(self.input_name, self.mat)
        status, out = extractor.extract(self.output_name)
        if status:
            raise SystemExit("ncnn: extract failed")
        self.out = out  # the array borrows its memory
        return np.asarray(out)[np.newaxis]


ENGINES = {"onnxruntime": Onnxruntime, "openvino": Openvino, "ncnn": Ncnn}


def rss():
    """(resident now, highest) in MB. Not ru_maxrss, which exec inherits from the driver."""
    with open("/proc/self/status") as f:
        fields = dict(line.split(":", 1) for line in f)
    return [round(int(fields[key].split()[0]) / 1024, 1) for key in ("VmRSS", "VmHWM")]


def serve(engine, info):
    """Answers requests until the end of stdin."""
    for line in sys.stdin:
        words = line.split()
        if not words:
            continue
        if words[0] == "run":
            times = []
            for _ in range(int(words[1])):
                start = time.perf_counter()
                engine.infer()
                times.append(round((time.perf_counter() - start) * 1e3, 4))
            answer = {"times_ms": times}
        elif words[0] == "output":
            np.save(words[1], np.array(engine.infer()))
            answer = {"output": words[1]}
        elif words[0] == "rss":
            now, peak = rss()
            answer = {"rss_mb": now, "peak_rss_mb": peak, "python_mb": info["python_mb"]}
        elif words[0] == "info":
            answer = info
        elif words[0] == "quit":
            break
        else:
            answer = {"error": f"unknown request: {line.strip()}"}
        print(json.dumps(answer), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--engine", choices=ENGINES, required=True)
    parser.add_argument("--model", required=True, help="ONNX file")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--shape", type=int, nargs=4, default=(1, 3, 640, 640),
                        help="input shape, for ncnn, whose files do not say it")
    parser.add_argument("--option", default="",
                        help="nospin (onnxruntime); pin, nopin (openvino); "
                             "nowinograd, nopool (ncnn)")
    args = parser.parse_args()

    python_mb = rss()[1]
    start = time.perf_counter()
    engine = ENGINES[args.engine](args)
    load_ms = round((time.perf_counter() - start) * 1e3, 1)
    engine.prepare(test_input(engine.shape))
    serve(engine, {"engine": args.engine, "version": engine.version, "threads": args.threads,
                   "precision": engine.precision, "load_ms": load_ms, "python_mb": python_mb})


if __name__ == "__main__":
    main()
