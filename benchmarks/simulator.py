"""python -m benchmarks.simulator: our kernel simulator against numba's, in turns.

A block reduction (256 threads, nine barriers) and a product of 32×32 matrices in tiles of 16×16 (1024
threads, four barriers). Each simulator runs in a process of its own, since numba's is chosen by an
environment variable; they take turns, and the fastest of nine runs are compared, in seconds of the
processor: what other programs do meanwhile does not count.
Target: at least 20 times as fast, with every index checked.
"""

import subprocess
import sys
import time

import numpy as np

from benchmarks import record
from benchmarks.__main__ import ROOT, environment

ROUNDS, TARGET = 9, 20


def cases():
    """name -> (kernel, grid, block, arguments)"""
    from tests.cuda import simulated_kernels as kernels

    random = np.random.default_rng(0)
    x, a, b = (random.standard_normal(shape).astype(np.float32) for shape in (256, (32, 32), (32, 32)))
    return {
        "block reduction": (kernels.block_sum, 1, 256, (x, np.zeros(1, np.float32))),
        "tiled matmul 32x32": (kernels.tiled_matmul, (2, 2), (16, 16), (a, b, np.zeros_like(a))),
    }


def launchers():
    from numba import cuda

    from readtorch.c10.cuda import simulator

    return {
        "numba": lambda kernel, grid, block, arguments: cuda.jit(kernel)[grid, block](*arguments),
        "readtorch": lambda kernel, grid, block, arguments: simulator.launch(kernel, grid, block, *arguments),
    }


def serve(whose):
    """For each line on stdin, the name of a case: the CPU seconds that a launch takes."""
    launch = launchers()[whose]
    for name in sys.stdin:
        case = cases()[name.strip()]
        began = time.process_time()
        launch(*case)
        print(time.process_time() - began, flush=True)


def peer(whose):
    extra = {"NUMBA_ENABLE_CUDASIM": "1"} if whose == "numba" else {}
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", "benchmarks.simulator", whose],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**environment(), **extra},
    )


def ask(process, name):
    process.stdin.write(name + "\n")
    process.stdin.flush()
    return float(process.stdout.readline())


def measure(name, peers):
    for process in peers.values():
        ask(process, name)  # the first launch imports
    samples = {whose: [] for whose in peers}
    for _ in range(ROUNDS):
        for whose, process in peers.items():
            samples[whose].append(ask(process, name))
    return {whose: min(seconds) for whose, seconds in samples.items()}


def main():
    peers = {whose: peer(whose) for whose in ("numba", "readtorch")}
    rows = {}
    for name in cases():
        rows[name] = fastest = measure(name, peers)
        fastest["times as fast"] = round(fastest["numba"] / fastest["readtorch"], 1)
        print(
            f"{name:20} numba {fastest['numba'] * 1e3:7.0f} ms   "
            f"readtorch {fastest['readtorch'] * 1e3:6.1f} ms   "
            f"{fastest['times as fast']:5.0f} times as fast (target {TARGET})"
        )
    for process in peers.values():
        process.stdin.close()
        process.wait()
    record.write(
        "simulator",
        [
            record.row(f"{name}: times as fast as numba's simulator", fastest["times as fast"], "×", TARGET, True)
            for name, fastest in rows.items()
        ],
    )


if __name__ == "__main__":
    serve(sys.argv[1]) if len(sys.argv) > 1 else main()
