"""Runs one peer engine as a long-lived process, told what to do line by line on stdin.

    python run_peer.py --engine openvino --model yolov5n.onnx --threads 2

Requests, one a line, and their answers, one JSON object a line on stdout:

    info         {"engine": .., "version": .., "threads": .., "precision": .., "load_ms": ..}
    run K        {"times_ms": [..]}       K inferences, each from a ready input to its output
    output PATH  {"output": PATH}         writes the output of the one fixed input as .npy
    rss          {"rss_mb": .., "peak_rss_mb": .., "python_mb": ..}  python_mb: before the engine
    quit         ends the process; so does the end of stdin

The input is the same in every engine, `test_input` below, simple enough to be written in any
language. It is laid out before the clock starts; the clock stops when the output lies in memory
that Python can read.

ncnn and PyTorch do not read ONNX: `--convert` makes what they read, with pnnx, beside the model,
and ends. (For the others it only sees whether the engine is there.) ncnn has no batches, so its
model is the one of `--single`, batch 1, run as often as the batch has pictures. All of ncnn's fp16
and bf16 options are off, and OpenVINO is told f32: both would otherwise compute in 16 bits on
processors that can, and the comparison is of fp32.
"""

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import time
from pathlib import Path

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # or numpy's idle threads spin beside the engine's

# Libraries print what they like on stdout; the answers have it for themselves.
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)

import numpy as np  # noqa: E402


def test_input(shape):
    """Element i is a hash of i in [0, 1): 24 bits, exact in a float."""
    h = np.arange(np.prod(shape), dtype=np.uint32) * np.uint32(2654435761)
    h = (h ^ (h >> np.uint32(15))) * np.uint32(2246822519)
    h ^= h >> np.uint32(13)
    return ((h >> np.uint32(8)) * np.float32(2.0**-24)).astype(np.float32).reshape(shape)


def input_shape(model):
    """Of an ONNX file; only for conversions, because it reads all weights."""
    import onnx
    dims = onnx.load(model, load_external_data=False).graph.input[0].type.tensor_type.shape.dim
    return [d.dim_value for d in dims]


def pnnx(model):
    """Runs pnnx on an ONNX file, once; it leaves its files beside it."""
    if Path(model).with_suffix(".pnnx.bin").exists():
        return
    tool = Path(sys.executable).with_name("pnnx")
    shape = ",".join(map(str, input_shape(model)))
    subprocess.run([str(tool) if tool.exists() else "pnnx", os.path.basename(model),
                    f"inputshape=[{shape}]", "fp16=0"],
                   check=True, cwd=os.path.dirname(os.path.abspath(model)))


class Onnxruntime:
    module = "onnxruntime"

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
    module = "openvino"

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
    module = "ncnn"

    @staticmethod
    def convert(args):
        pnnx(args.single or args.model)

    def __init__(self, args):
        import ncnn
        base = os.path.splitext(args.single or args.model)[0]
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
            raise SystemExit(f"ncnn: cannot load {base}.ncnn.param")
        self.version = ncnn.__version__
        self.precision = "f32"
        self.shape = [args.batch, 3, *args.size]
        self.input_name = self.net.input_names()[0]
        self.output_name = self.net.output_names()[0]

    def prepare(self, x):
        self.x = x  # the Mats borrow its memory
        self.mats = [self.ncnn.Mat(image) for image in x]

    def infer(self):
        self.outs = []  # the arrays borrow their memory
        for mat in self.mats:
            extractor = self.net.create_extractor()
            extractor.input(self.input_name, mat)
            status, out = extractor.extract(self.output_name)
            if status:
                raise SystemExit("ncnn: extract failed")
            self.outs.append(out)
        return [np.asarray(out) for out in self.outs]


class Torch:
    """The module that pnnx writes, traced and frozen; channels last unless told otherwise."""
    module = "torch"

    @staticmethod
    def convert(args):
        pnnx(args.model)

    def __init__(self, args):
        import torch
        torch.set_num_threads(args.threads)
        torch.set_num_interop_threads(1)
        path = Path(args.model).with_suffix("")
        spec = importlib.util.spec_from_file_location(
            "converted", path.with_name(path.name.replace(".", "_") + "_pnnx.py"))
        converted = importlib.util.module_from_spec(spec)
        here = os.getcwd()
        os.chdir(path.parent)  # the module names its weights without a folder
        spec.loader.exec_module(converted)
        model = converted.Model().eval()
        os.chdir(here)
        self.torch = torch
        self.shape = [args.batch, 3, *args.size]
        self.last = args.option not in ("eager", "planar")
        if self.last:
            for weights in model.parameters():
                if weights.dim() == 4:
                    weights.data = weights.data.contiguous(memory_format=torch.channels_last)
        if args.option != "eager":
            x = self.laid_out(torch.zeros(self.shape))
            with torch.inference_mode():
                model = torch.jit.freeze(torch.jit.trace(model, x, check_trace=False))
        self.model = model
        self.version = torch.__version__
        self.precision = "f32"

    def laid_out(self, x):
        return x.contiguous(memory_format=self.torch.channels_last) if self.last else x

    def prepare(self, x):
        self.x = self.laid_out(self.torch.from_numpy(x))
        with self.torch.inference_mode():
            for _ in range(3):  # the tracer profiles two runs, then compiles
                self.model(self.x)

    def infer(self):
        with self.torch.inference_mode():
            return self.model(self.x).numpy()


ENGINES = {"onnxruntime": Onnxruntime, "openvino": Openvino, "ncnn": Ncnn, "torch": Torch}


def rss():
    """(resident now, highest) in MB. Not ru_maxrss, which exec inherits from the driver."""
    with open("/proc/self/status") as f:
        fields = dict(line.split(":", 1) for line in f)
    return [round(int(fields[key].split()[0]) / 1024, 1) for key in ("VmRSS", "VmHWM")]


def answer_to(words, engine, info):
    if words[0] == "run":
        times = []
        for _ in range(int(words[1])):
            start = time.perf_counter()
            engine.infer()
            times.append(round((time.perf_counter() - start) * 1e3, 4))
        return {"times_ms": times}
    if words[0] == "output":
        np.save(words[1], np.array(engine.infer(), dtype=np.float32))
        return {"output": words[1]}
    if words[0] == "rss":
        now, peak = rss()
        return {"rss_mb": now, "peak_rss_mb": peak, "python_mb": info["python_mb"]}
    if words[0] == "info":
        return info
    return {"error": f"unknown request: {' '.join(words)}"}


def serve(engine, info):
    """Answers requests until the end of stdin."""
    for line in sys.stdin:
        words = line.strip().split(maxsplit=1)
        if words and words[0] == "quit":
            return
        if words:
            print(json.dumps(answer_to(words, engine, info)), file=answers, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--engine", choices=ENGINES, required=True)
    parser.add_argument("--model", required=True, help="ONNX file, of the batch that is run")
    parser.add_argument("--single", help="the same of batch 1, for engines without batches")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--size", type=int, nargs=2, default=(640, 640),
                        help="height and width, for engines whose files do not say them")
    parser.add_argument("--option", default="",
                        help="nospin (onnxruntime); pin, nopin (openvino); "
                             "nowinograd, nopool (ncnn); eager, planar (torch)")
    parser.add_argument("--convert", action="store_true",
                        help="make what the engine reads beside the model, and end")
    args = parser.parse_args()
    kind = ENGINES[args.engine]
    if importlib.util.find_spec(kind.module) is None:
        raise SystemExit(f"no Python package '{kind.module}' in {sys.prefix}: "
                         "`make bench-peers` installs it")
    if args.convert:
        if hasattr(kind, "convert"):
            kind.convert(args)
        return

    python_mb = rss()[1]
    start = time.perf_counter()
    engine = kind(args)
    engine.prepare(test_input(engine.shape))
    engine.infer()
    load_ms = round((time.perf_counter() - start) * 1e3, 1)
    serve(engine, {"engine": args.engine, "version": engine.version, "threads": args.threads,
                   "precision": engine.precision, "load_ms": load_ms, "python_mb": python_mb})


if __name__ == "__main__":
    main()
