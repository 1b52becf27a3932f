"""Ten pointwise operators in a row: PyTorch eager, torch.jit, torch.compile and our compile, interleaved, one thread.

    python -m benchmarks.fusion [sizes …]

torch.compile needs a C++ compiler. Times are medians of processor seconds.
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


def medians(functions, n, samples=9):
    """Microseconds a call, every function once in each round."""
    operands = {lib: (lib.randn(n), lib.rand(n)) for lib in (torch, readtorch)}
    calls = max(1, 100_000 // n)
    for function, lib in functions.values():
        for _ in range(3):
            function(*operands[lib])
    times = {name: [] for name in functions}
    for _ in range(samples):
        for name, (function, lib) in functions.items():
            x, y = operands[lib]
            start = time.process_time_ns()
            for _ in range(calls):
                function(x, y)
            times[name].append((time.process_time_ns() - start) / calls / 1000)
    return {name: statistics.median(each) for name, each in times.items()}


def main(sizes):
    torch.set_num_threads(1)
    readtorch.set_num_threads(1)
    functions, rows = contestants(), []
    for n in sizes:
        found = medians(functions, n)
        eager = found["torch eager"]
        ratios = "  ".join(f"{name} {value / eager:.3f}" for name, value in found.items() if name != "torch eager")
        print(f"{n:>10,} elements: torch eager {eager:.1f} us; over it: {ratios}", flush=True)
        rows.append({"elements": n} | {name: round(value, 2) for name, value in found.items()})
    record.write("fusion", rows)


if __name__ == "__main__":
    main([int(size) for size in sys.argv[1:]] or SIZES)
