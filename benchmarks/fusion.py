"""Ten pointwise operators in a row: PyTorch eager, torch.jit, torch.compile and our compile, interleaved, one thread.

    python -m benchmarks.fusion [sizes …]              forward, without a graph
    python -m benchmarks.fusion --backward [sizes …]   forward and backward, for both operands

torch.compile needs a C++ compiler. Times are medians of processor seconds; a ratio is the median of the ratios
of the rounds, in each of which everybody runs once: what disturbs a round disturbs both sides of its ratio.
"""
import os

os.environ.update(OMP_NUM_THREADS="1", NUMBA_NUM_THREADS="1")

import statistics  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402
import warnings  # noqa: E402

import readtorch  # noqa: E402
import torch  # noqa: E402

from benchmarks import record  # noqa: E402
from benchmarks.cases import chain_of_pointwise  # noqa: E402

SIZES = [100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000]


def there(x, y):
    return chain_of_pointwise(torch, x, y)


def here(x, y):
    return chain_of_pointwise(readtorch, x, y)


def contestants():
    """name -> (function, library)"""
    warnings.simplefilter("ignore", DeprecationWarning)
    example = torch.rand(8), torch.rand(8)
    torch._dynamo.config.recompile_limit = 100
    return {"torch eager": (there, torch), "torch.jit": (torch.jit.trace(there, example), torch),
            "torch.compile": (torch.compile(there, dynamic=False), torch),
            "readtorch.compile": (readtorch.compile(here), readtorch)}


def forward(function, x, y, gradient):
    function(x, y)


def forward_and_backward(function, x, y, gradient):
    function(x, y).backward(gradient)
    x.grad = y.grad = None


def rounds(functions, n, run, samples=11):
    """name -> microseconds a call, one number a round."""
    learns = run is forward_and_backward
    operands = {lib: (lib.randn(n).requires_grad_(learns), lib.rand(n).requires_grad_(learns), lib.ones(n))
                for lib in (torch, readtorch)}
    calls = max(1, 100_000 // n)
    for function, lib in functions.values():
        for _ in range(3):
            run(function, *operands[lib])
    times = {name: [] for name in functions}
    for _ in range(samples):
        for name, (function, lib) in functions.items():
            start = time.process_time_ns()
            for _ in range(calls):
                run(function, *operands[lib])
            times[name].append((time.process_time_ns() - start) / calls / 1000)
    return times


def main(sizes, run=forward):
    torch.set_num_threads(1)
    readtorch.set_num_threads(1)
    functions, rows = contestants(), []
    for n in sizes:
        times = rounds(functions, n, run)
        eager = times["torch eager"]
        found = {name: statistics.median(each) for name, each in times.items()}
        ratios = {name: statistics.median(t / e for t, e in zip(each, eager)) for name, each in times.items()}
        shown = "  ".join(f"{name} {ratio:.3f}" for name, ratio in ratios.items() if name != "torch eager")
        print(f"{n:>10,} elements: torch eager {found['torch eager']:.1f} us; over it: {shown}", flush=True)
        rows.append({"elements": n} | {name: round(value, 2) for name, value in found.items()})
    record.write("fusion" if run is forward else "fusion_backward", rows)


if __name__ == "__main__":
    backward = "--backward" in sys.argv
    given = [int(size) for size in sys.argv[1:] if size != "--backward"]
    main(given or SIZES, forward_and_backward if backward else forward)
