"""python -m benchmarks.gpu_host COMMIT: what a launch costs the host, beside an earlier commit of this checkout.

    … --rounds 7      --only "x + y"

Both are asked in turns, each in a process of its own, for the CPU time of the same calls; a row is the median of each, and
the median over the rounds of new / old. The device's work does not count: without a GPU the fake one of `tests/gpu` will do, with its
kernels off (FAKE_GPU_RUN=0 FAKE_GPU_POISON=0 python -m tests.gpu python -m benchmarks.gpu_host COMMIT). "replay" is the replay of the captured training step, beside the older commit's step; "first
step" is the time, by the clock, from the start of a second process to the end of its first training step.

Bars: `x + y` at most 0.4 of the launch path before the first one of our own (commit 0ca3faf2~1), fused AdamW of 64 tensors 0.12,
the training step of GPT (benchmarks/gpu.py) 0.35, its replay 0.02; a second process's first step at most 3 s.
"""

import argparse
import datetime
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

from benchmarks.contestants import ROOT
from benchmarks.old_and_new import NEW, OLD, checkout

BARS = {"x + y": 0.4, "AdamW of 64 tensors": 0.12, "GPT step": 0.35, "replay": 0.02}
FIRST_STEP = 3.0  # seconds
RESULTS = ROOT / "benchmarks" / "results" / "gpu" / "host.json"
CALLS = {"x + y": 500, "AdamW of 64 tensors": 20, "GPT step": 1, "replay": 20}


# -------------------------------------------------------------------------------------- in a process of its own


def prepared(rt, case):
    """A function that does what is measured."""
    if case == "x + y":
        x, y = rt.ones(1024, device="cuda"), rt.ones(1024, device="cuda")
        return lambda: x + y
    if case == "AdamW of 64 tensors":
        return adamw(rt)
    from benchmarks.gpu import training_step

    step = training_step(rt, "GPT")
    if case == "GPT step":
        return step
    for _ in range(2):  # what is made at the first call is no part of a graph
        step()
    graph = rt.cuda.CUDAGraph()
    with rt.cuda.graph(graph):
        step()
    return graph.replay


def adamw(rt):
    params = [rt.ones(1000 + i, device="cuda", requires_grad=True) for i in range(64)]
    for p in params:
        p.grad = rt.ones_like(p)
    return rt.optim.AdamW(params, lr=1e-3, fused=True).step


def sample(rt, run, calls):
    """Microseconds of CPU time for one call."""
    rt.cuda.synchronize()
    began = time.process_time()
    for _ in range(calls):
        run()
    rt.cuda.synchronize()
    return (time.process_time() - began) / calls * 1e6


def work():
    """Answer with a sample of the case that a line names."""
    import readtorch as rt

    runs = {}
    for line in sys.stdin:
        case = line.strip()
        if case not in runs:
            runs[case] = prepared(rt, case)
            for _ in range(3):
                runs[case]()
        print(json.dumps(sample(rt, runs[case], CALLS[case])), flush=True)


def first_step():
    import readtorch as rt
    from benchmarks.gpu import training_step

    training_step(rt, "GPT")()
    rt.cuda.synchronize()


# ------------------------------------------------------------------------------------------------ the comparison


def process(source, *arguments, cache=None, **options):
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join([str(source), os.environ.get("PYTHONPATH", "")]))
    if cache is not None:
        environment["NUMBA_CACHE_DIR"] = cache
    command = [sys.executable, "-m", "benchmarks.gpu_host", "--worker", *arguments]
    return subprocess.Popen(command, cwd=ROOT, env=environment, text=True, stdout=subprocess.PIPE, **options)


def asked(peer, case):
    peer.stdin.write(case + "\n")
    peer.stdin.flush()
    return json.loads(peer.stdout.readline())


def compare(sources, cases, rounds):
    """{case: {old, new: µs, ratio, bar, reached}}"""
    peers = {side: process(source, stdin=subprocess.PIPE) for side, source in sources.items()}
    rows = {}
    for case in cases:
        found = {OLD: [], NEW: []}
        for _ in range(rounds):
            for side, peer in peers.items():
                found[side].append(asked(peer, "GPT step" if (case, side) == ("replay", OLD) else case))
        ratio = statistics.median(new / old for new, old in zip(found[NEW], found[OLD]))
        rows[case] = {side: round(statistics.median(samples), 1) for side, samples in found.items()}
        rows[case] |= {"ratio": round(ratio, 4), "bar": BARS[case], "reached": ratio <= BARS[case]}
        print(case, rows[case], flush=True)
    for peer in peers.values():
        peer.stdin.close()
        peer.wait()
    return rows


def seconds_to_first_step(source):
    """Of the second of two processes that share a new cache of kernels."""
    with tempfile.TemporaryDirectory() as cache:
        for _ in range(2):
            began = time.perf_counter()
            if process(source, "--first", cache=cache).wait():
                raise RuntimeError("the first step failed")
        return time.perf_counter() - began


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu_host")
    parser.add_argument("commit", nargs="?")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", nargs="+", default=[*BARS, "first step"])
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--first", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        return first_step() if options.first else work()
    with tempfile.TemporaryDirectory() as folder:
        sources = {OLD: checkout(options.commit, folder), NEW: ROOT / "src"}
        rows = compare(sources, [case for case in BARS if case in options.only], options.rounds)
        if "first step" in options.only:
            seconds = {side: seconds_to_first_step(source) for side, source in sources.items()}
            rows["first step"] = {side: round(s, 2) for side, s in seconds.items()}
            rows["first step"] |= {"bar": FIRST_STEP, "reached": seconds[NEW] <= FIRST_STEP}
            print("first step", rows["first step"])
    if options.only == parser.get_default("only"):
        write(options.commit, rows)


def write(commit, rows):
    import readtorch as rt

    RESULTS.write_text(json.dumps({"about": about(rt, commit), "rows": rows}, indent=1) + "\n")


def about(rt, commit):
    """On what it was measured. load: of the machine, a minute's average at the end."""
    import numba_cuda

    return {
        "device": rt.cuda.get_device_name()
        + (" (the fake GPU of tests/gpu, kernels off)" if os.environ.get("FAKE_GPU_RUN") == "0" else ""),
        "date": datetime.date.today().isoformat(),
        "old": commit,
        "load": round(os.getloadavg()[0], 1),
        "python": sys.version.split()[0],
        "numba-cuda": numba_cuda.__version__,
        "unit": "µs of the host's CPU time for one call; first step: seconds",
    }


if __name__ == "__main__":
    main()
