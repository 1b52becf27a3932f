"""python -m benchmarks.gpu: how fast the CUDA kernels are on a real GPU, next to what the device can do.

Bandwidths are compared with that of a copy from device to device, the product of matrices and the training
steps with PyTorch if it is there and was built for CUDA. Each number is the median of several runs, timed by
events of the device, which has so much to do before the first event that the host does not count; what a call
costs the host stands beside it. The results go to benchmarks/results/gpu/benchmarks.json. No run has been
recorded yet: see the README.md there.

Bars: pointwise, copies and reductions at 2^26 float32 reach 85 % of the copy's bandwidth, softmax and
layer_norm 80 %; float32 matmul of 4096³ half of cuBLAS's speed (without TF32); training steps of GPT (6
layers, d = 384) and of ResNet-18 take at most 3 times PyTorch's; memory through numba's plug-in comes at
least 20 times as fast as numba's own.
"""

import argparse
import datetime
import json
import pathlib
import statistics
import subprocess
import sys
import time

RESULTS = pathlib.Path(__file__).parent / "results" / "gpu" / "benchmarks.json"
COUNT = 1 << 26
ROUNDS = 20


def milliseconds(T, run, rounds, ahead=lambda: None):
    """The median time of `run` on the device, by events of library T.

    Between two events lies also the time that the device waits for the host. `ahead` puts so much work on the stream before
    that the host is done when the device comes to the first event.
    """
    for _ in range(3):
        run()
    times = []
    for _ in range(rounds):
        start, end = T.cuda.Event(enable_timing=True), T.cuda.Event(enable_timing=True)
        ahead()
        start.record()
        run()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end))
    return statistics.median(times)


def copies(T, count=8):
    """Work for `ahead`: at 3 TB/s, some 0.2 ms each."""
    a, b = T.empty(COUNT, device="cuda"), T.empty(COUNT, device="cuda")

    def copy():
        for _ in range(count):
            a.copy_(b)

    return copy


def host_microseconds(T, run, rounds):
    """The median time that the host needs for `run`, while the device does not keep it waiting."""
    times = []
    for _ in range(rounds):
        T.cuda.synchronize()
        began = time.perf_counter()
        run()
        times.append((time.perf_counter() - began) * 1e6)
    return statistics.median(times)


# ------------------------------------------------------------------------------------------------------
# bandwidth


def copy_bandwidth(rt, rounds, ahead):
    """GB/s of the driver's own copy on the device."""
    from readtorch.c10.cuda.device_memory import copy_bytes

    a, b = rt.empty(COUNT, device="cuda"), rt.empty(COUNT, device="cuda")
    run = lambda: copy_bytes(a.device, b._array, a._array, 4 * COUNT)
    return 8 * COUNT / milliseconds(rt, run, rounds, ahead) / 1e6


def memory_bound(rt):
    """name -> (function, bytes that it must move, share of the copy's bandwidth that is the bar)."""
    from readtorch.nn import functional as F

    x, y = rt.randn(COUNT, device="cuda"), rt.randn(COUNT, device="cuda")
    out = rt.empty(COUNT, device="cuda")
    rows, square = x.view(-1, 1024), x.view(8192, 8192)
    weight, bias = rt.ones(1024, device="cuda"), rt.zeros(1024, device="cuda")
    one = 4 * COUNT
    return {
        "add": (lambda: rt.add(x, y, out=out), 3 * one, 0.85),
        "mul_": (lambda: out.mul_(x), 3 * one, 0.85),
        "exp": (lambda: x.exp(), 2 * one, 0.85),
        "gelu": (lambda: F.gelu(x), 2 * one, 0.85),
        "copy": (lambda: out.copy_(x), 2 * one, 0.85),
        "transpose": (lambda: square.t().contiguous(), 2 * one, 0.85),
        "sum": (lambda: x.sum(), one, 0.85),
        "sum of rows": (lambda: rows.sum(1), one, 0.85),
        "sum of columns": (lambda: rows.sum(0), one, 0.85),
        "amax": (lambda: x.amax(), one, 0.85),
        "softmax": (lambda: rows.softmax(1), 2 * one, 0.80),
        "layer_norm": (lambda: F.layer_norm(rows, (1024,), weight, bias), 2 * one, 0.80),
    }


def bandwidth_rows(rt, rounds):
    ahead = copies(rt)
    best = copy_bandwidth(rt, rounds, ahead)
    rows = {"device to device": {"GB/s": best}}
    for name, (run, nbytes, bar) in memory_bound(rt).items():
        speed = nbytes / milliseconds(rt, run, rounds, ahead) / 1e6
        rows[name] = {"GB/s": speed, "of the copy": speed / best, "bar": bar, "reached": speed >= bar * best}
        rows[name]["host, µs"] = host_microseconds(rt, run, rounds)
    return rows


# ------------------------------------------------------------------------------------------- next to PyTorch


def teraflops(T, rounds, n=4096):
    a, b = (T.randn(n, n, device="cuda") for _ in range(2))
    return 2 * n**3 / milliseconds(T, lambda: T.mm(a, b), rounds, copies(T)) / 1e9


def training_step(T, name):
    """One whole step, on batches made beforehand."""
    from tests.training import models, tasks

    if name == "GPT":
        model, batch = models.gpt(T, layers=6, d=384, heads=6, context=256), tasks.texts(T, 16, 256)
    else:
        model, batch = models.resnet18(T), tasks.images(T, 64, 3, 32)
    loss_of = tasks.language_loss if name == "GPT" else tasks.classification_loss
    model, batch = model.to("cuda"), [t.to("cuda") for t in batch]
    optimizer = T.optim.AdamW(model.parameters(), lr=1e-3, fused=True)

    def step():
        optimizer.zero_grad()
        loss_of(T, model, *batch).backward()
        optimizer.step()

    return step


def beside(ours, reference, bar, more_is_better):
    """A row of the results; `reference` is None without PyTorch, and nothing is said about the bar then."""
    row = {"readtorch": ours, "PyTorch": reference, "bar": bar}
    if reference is not None:
        row["ratio"] = ours / reference
        row["reached"] = row["ratio"] >= bar if more_is_better else row["ratio"] <= bar
    return row


def comparison_rows(rt, torch, rounds):
    ours, theirs = (T and teraflops(T, rounds) for T in (rt, torch))
    rows = {"matmul 4096 float32, TFLOP/s": beside(ours, theirs, 0.5, True)}
    for name in ("GPT", "ResNet-18"):
        ours, theirs = (T and milliseconds(T, training_step(T, name), min(rounds, 10)) for T in (rt, torch))
        rows[f"{name} training step, ms"] = beside(ours, theirs, 3.0, False)
    return rows


# --------------------------------------------------------------------------------------------- numba's memory

ALLOCATIONS = """
import sys, time
if sys.argv[1] == "ours":
    import readtorch
    readtorch.cuda.init()
from numba import cuda
cuda.device_array(1 << 20)
began = time.perf_counter()
for _ in range(1000):
    cuda.device_array(1 << 20)
print((time.perf_counter() - began) * 1000)
"""


def allocation_row():
    """Microseconds for one `numba.cuda.device_array` of 8 MiB, in a process each."""
    times = {}
    for whose in ("numba", "ours"):
        done = subprocess.run([sys.executable, "-c", ALLOCATIONS, whose], capture_output=True, text=True, check=True)
        times[whose] = float(done.stdout)
    ratio = times["numba"] / times["ours"]
    return {
        "numba, µs": times["numba"],
        "with our allocator, µs": times["ours"],
        "times as fast": ratio,
        "bar": 20,
        "reached": ratio >= 20,
    }


# --------------------------------------------------------------------------------------------------------
# report


def reference():
    """PyTorch, if it can use the device."""
    try:
        import torch
    except ImportError:
        return None
    if not torch.cuda.is_available():
        return None
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    return torch


def about(rt, torch):
    import numba
    import numpy

    return {
        "device": rt.cuda.get_device_name(),
        "capability": list(rt.cuda.get_device_capability()),
        "date": datetime.date.today().isoformat(),
        "python": sys.version.split()[0],
        "numpy": numpy.__version__,
        "numba": numba.__version__,
        "torch": None if torch is None else torch.__version__,
    }


def main():
    import readtorch as rt

    parser = argparse.ArgumentParser()
    parser.add_argument("--results", type=pathlib.Path, default=RESULTS, help="the file that they are written to")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="a number is the median of so many")
    options = parser.parse_args()

    if not rt.cuda.is_available() or rt.cuda.get_device_properties(0).simulated:
        print("There is no GPU here; nothing was measured.")
        return
    began, torch = time.time(), reference()
    results = {
        "about": about(rt, torch),
        "allocation": allocation_row(),
        "bandwidth": bandwidth_rows(rt, options.rounds),
        "beside PyTorch": comparison_rows(rt, torch, options.rounds),
    }
    options.results.parent.mkdir(parents=True, exist_ok=True)
    options.results.write_text(json.dumps(results, indent=1) + "\n")
    print(json.dumps(results, indent=1))
    print(f"{time.time() - began:.0f} s; written to {options.results}")


if __name__ == "__main__":
    main()
