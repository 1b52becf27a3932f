"""Eight pointwise operators: PyTorch eager, torch.jit, torch.compile and our compile, in turns, one thread.

    python -m benchmarks.fusion [sizes …]              forward, without a graph
    python -m benchmarks.fusion --backward [sizes …]   forward and backward, for both operands

Each way has a process of its own, and all have the same malloc, but for one that is there to show the difference: see
Note [ The same malloc ] in contestants.py. All take turns on one core. Times are medians of processor seconds; a ratio is the median of the ratios of
the rounds, in each of which everybody runs once: what disturbs a round disturbs both sides of its ratio.
torch.compile needs a C++ compiler.
"""

import os

os.environ.update(OMP_NUM_THREADS="1", NUMBA_NUM_THREADS="1")

import importlib
import multiprocessing
import statistics
import sys
import time
import warnings

from benchmarks import record
from benchmarks.__main__ import stay_on_cores
from benchmarks.cases import CHAINS
from benchmarks.contestants import environment, libraries

SIZES = [100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000]
ROUNDS = 15


def eager(torch, chain):
    return chain


def ours(readtorch, chain):
    return readtorch.compile(chain)


def traced(torch, chain):
    warnings.simplefilter("ignore", DeprecationWarning)
    return torch.jit.trace(chain, (torch.rand(8), torch.rand(8)))


def compiled(torch, chain):
    torch._dynamo.config.recompile_limit = 100
    return torch.compile(chain, dynamic=False)


WAYS = {
    "torch eager": ("torch", eager),
    "torch eager, glibc's malloc": ("torch", eager),
    "torch.jit": ("torch", traced),
    "torch.compile": ("torch", compiled),
    "readtorch.compile": ("readtorch", ours),
}


class Contestant:
    """The driver's end of a process that times one way: its name, the library, what is done to a function, and what prepares a run."""

    def __init__(self, way, library, make, prepare):
        self.connection, theirs = multiprocessing.Pipe()
        self.process = multiprocessing.Process(target=serve, args=(library, make, prepare, theirs), daemon=True)
        replace_environment(environment(keeps_memory="glibc" not in way))
        self.process.start()

    def ask(self, *request):
        self.connection.send(request)
        return self.connection.recv()


def replace_environment(variables):
    """For processes that are spawned from now on: malloc and the libraries read it when they start."""
    os.environ.clear()
    os.environ.update(variables)


def serve(library, make, prepare, connection):
    """Answer ("prepare", what to run …) and ("sample",), until ("stop",)."""
    api = importlib.import_module(library)
    api.set_num_threads(1)
    while (request := connection.recv()) != ("stop",):
        if request[0] == "prepare":
            run, calls = prepare(api, make, *request[1:])
            connection.send(None)
        else:
            connection.send(microseconds(run, calls))


def prepared(api, make, name, n, backward):
    """The function to time, and how many calls make a sample."""
    function = CHAINS[name]
    chain = make(api, lambda x, y: function(api, x, y))
    x, y, ones = api.randn(n, requires_grad=backward), api.rand(n, requires_grad=backward), api.ones(n)

    def forward_and_backward():
        x.grad = y.grad = None
        chain(x, y).backward(ones)

    run = forward_and_backward if backward else lambda: chain(x, y)
    for _ in range(3):
        run()
    return run, max(1, 100_000 // n)


def microseconds(run, calls):
    """Of the processor, a call."""
    start = time.process_time_ns()
    for _ in range(calls):
        run()
    return (time.process_time_ns() - start) / calls / 1000


def measured(contestants, *what):
    """Way -> microseconds, and way -> the ratio to PyTorch eager."""
    for contestant in contestants.values():
        contestant.ask("prepare", *what)
    times = {way: [] for way in contestants}
    for _ in range(ROUNDS):
        for way, contestant in contestants.items():
            times[way].append(contestant.ask("sample"))
    eager = times["torch eager"]
    ratios = {way: statistics.median(t / e for t, e in zip(each, eager)) for way, each in times.items()}
    return {w: round(statistics.median(t), 2) for w, t in times.items()}, ratios


def main(sizes, backward):
    stay_on_cores(1)
    contestants, rows = {way: Contestant(way, *how, prepared) for way, how in WAYS.items()}, []
    for name in CHAINS:
        for n in sizes:
            times, ratios = measured(contestants, name, n, backward)
            shown = "  ".join(f"{way} {ratio:.3f}" for way, ratio in ratios.items() if way != "torch eager")
            print(f"{name}, {n:>10,} elements: torch eager {times['torch eager']:.1f} us; over it: {shown}", flush=True)
            rows.append({"chain": name, "elements": n} | times)
    for contestant in contestants.values():
        contestant.connection.send(("stop",))
    record.write("fusion_backward" if backward else "fusion", rows, libraries=libraries())


if __name__ == "__main__":
    multiprocessing.set_start_method("spawn")
    given = [int(size) for size in sys.argv[1:] if size != "--backward"]
    main(given or SIZES, "--backward" in sys.argv)
