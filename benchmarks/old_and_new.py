"""python -m benchmarks.old_and_new COMMIT: this checkout and an earlier commit of it in turns. Did a change cost speed?

    … --only add mlp   cases whose name or group contains one of these words      --runs 5   --rounds 9   --seconds 0.01

Each run starts both anew, in processes of their own, and numbers the types anew: Note [ A cache of attributes ] in worker.py.
Within a run samples are taken in turns. The figure of a case is the median over the runs of new / old. Both are readtorch, with the same malloc, the same BLAS and the cases of this checkout.
"""

import argparse
import math
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks import record, report
from benchmarks.__main__ import Peer, stay_on_cores, take_samples
from benchmarks.cases import CASES, GROUPS
from benchmarks.contestants import ROOT

OLD, NEW = "old", "new"


def checkout(commit, folder):
    """The package as it was at a commit."""
    packed = subprocess.run(["git", "archive", commit, "src"], cwd=ROOT, capture_output=True, check=True).stdout
    subprocess.run(["tar", "-x", "-C", folder], input=packed, check=True)
    return Path(folder) / "src"


def one_run(names, sources, options, number):
    """{case: new / old} of a fresh pair of processes for each number of threads"""
    found = {}
    for threads in sorted({GROUPS[CASES[name].group].threads for name in names}):
        peers = {
            side: Peer("readtorch", options.seconds, threads, source, types=number) for side, source in sources.items()
        }
        for name in names:
            if GROUPS[CASES[name].group].threads == threads:
                found[name] = one_case(name, peers, options.rounds)
        for peer in peers.values():
            peer.close()
    stay_on_cores(1)
    return found


def one_case(name, peers, rounds):
    for side, peer in peers.items():
        answer = peer.ask(do="prepare", case=name)
        if "error" in answer:
            raise RuntimeError(f"{name}, {side}: {answer['error']}")
    samples = take_samples(peers, rounds)
    return statistics.median(report.ratios(samples[NEW], samples[OLD]))


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks.old_and_new")
    parser.add_argument("commit")
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=0.01)
    options = parser.parse_args()
    words = [word.lower() for word in options.only]
    names = [n for n in CASES if not words or any(word in f"{CASES[n].group}: {n}".lower() for word in words)]
    with tempfile.TemporaryDirectory() as folder:
        sources = {OLD: checkout(options.commit, folder), NEW: ROOT / "src"}
        runs = []
        for i in range(options.runs):
            runs.append(one_run(names, sources, options, number=i))
            print(f"run {i + 1}: geometric mean {mean(runs[-1].values()):.3f}", flush=True)
    ratios = {name: statistics.median(run[name] for run in runs) for name in names}
    for name, ratio in ratios.items():
        low, high = min(run[name] for run in runs), max(run[name] for run in runs)
        print(f"{ratio:6.3f}  ({low:.3f} to {high:.3f})  {name}")
    print(f"{mean(ratios.values()):6.3f}  geometric mean of {len(ratios)}")
    print(f"written to {write(options, runs, ratios)}")


def mean(values):
    values = list(values)
    return math.exp(statistics.fmean(map(math.log, values)))


def write(options, runs, ratios):
    commit = subprocess.run(["git", "rev-parse", "--short", options.commit], cwd=ROOT, capture_output=True, text=True)
    rows = [{"case": name, "ratio": ratio, "runs": [run[name] for run in runs]} for name, ratio in ratios.items()]
    return record.write("old_and_new", rows, old=commit.stdout.strip(), mean=mean(ratios.values()))


if __name__ == "__main__":
    sys.exit(main())
