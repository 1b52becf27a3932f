"""python -m benchmarks: readtorch and its reference in turns, with the same number of threads on the same cores and the same
malloc; what each is given stands in `contestants.py`.

    python -m benchmarks                   all cases; the table goes to benchmarks/results/cpu.md and .json
    python -m benchmarks --only add mlp    cases whose name or group contains one of these words
    python -m benchmarks --quick           fewer and shorter samples: a first impression
    … --rounds N   --seconds S (length of a sample)   --no-import   --name NAME (of the results)
"""

import argparse
import importlib.metadata
import json
import os
import statistics
import subprocess
import sys
import time

from benchmarks import report
from benchmarks.cases import CASES, GROUPS
from benchmarks.contestants import CONTESTANTS, ROOT, environment


class Peer:
    """The driver's end of a worker process. source: the folder that readtorch is imported from, if not this checkout's. types: how
    many types are made before it: Note [ A cache of attributes ] in worker.py.
    """

    def __init__(self, contestant, seconds, threads, source=None, types=0):
        implementation, keeps_memory = CONTESTANTS[contestant]
        command = [sys.executable, "-m", "benchmarks.worker", implementation, str(seconds), str(threads), str(types)]
        stay_on_cores(threads)
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment(threads, keeps_memory, source),
        )

    def ask(self, **request):
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
            return json.loads(self.process.stdout.readline())
        except (BrokenPipeError, json.JSONDecodeError):  # an empty answer is the end of the pipe
            return {"error": "the process died"}

    def close(self):
        self.process.terminate()
        self.process.communicate()


CORES = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_setaffinity") else []


def stay_on_cores(count):
    """The workers inherit it: both get the same cores, and taking turns never compete for them."""
    if CORES:
        os.sched_setaffinity(0, CORES[-count:])


def time_case(name, peers, rounds):
    """One row of the table."""
    for implementation, peer in peers.items():
        answer = peer.ask(do="prepare", case=name)
        if "error" in answer:
            return {"case": name, "group": CASES[name].group, "error": f"{implementation}: {answer['error']}"}
    return report.summarize(name, take_samples(peers, rounds))


def take_samples(peers, rounds):
    """{name of the peer: seconds} of what they have prepared, in turns; who begins a round alternates. A slow case gets fewer
    rounds."""
    samples = {implementation: [] for implementation in peers}
    began, least = time.monotonic(), min(rounds, 9)
    for i in range(rounds):
        for implementation in list(peers)[:: 1 if i % 2 == 0 else -1]:
            samples[implementation].append(peers[implementation].ask(do="sample")["seconds"])
        if i + 1 >= least and time.monotonic() - began > MOST_SECONDS:
            break
    return samples


MOST_SECONDS = 15


def time_imports(rounds):
    """Seconds to start Python and import; the bare interpreter is listed for comparison."""
    statements = {"(nothing)": "pass", "readtorch": "import readtorch", "torch": "import torch"}
    taken = {name: [] for name in statements}
    for _ in range(rounds + 1):  # the first round only warms the disk's cache
        for name, statement in statements.items():
            began = time.perf_counter()
            done = subprocess.run([sys.executable, "-c", statement], env=environment(), capture_output=True)
            if done.returncode == 0:
                taken[name].append(time.perf_counter() - began)
    return {name: statistics.median(seconds[1:]) for name, seconds in taken.items() if seconds[1:]}


def parse():
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", default=[], help="words; a case runs if its name or group contains one")
    parser.add_argument("--rounds", type=int, default=41)
    parser.add_argument("--seconds", type=float, default=0.01, help="length of one sample")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--no-import", action="store_true")
    parser.add_argument("--name", default="cpu")
    options = parser.parse_args()
    if options.quick:
        options.rounds, options.seconds = 7, 0.004
    return options


def versions():
    return {name: importlib.metadata.version(name) for name in ("torch", "numpy", "numba")}


def main():
    options = parse()
    names = [
        n for n in CASES if not options.only or any(w.lower() in f"{CASES[n].group}: {n}".lower() for w in options.only)
    ]
    rows = []
    print(report.HEADER)
    for threads in sorted({GROUPS[CASES[name].group].threads for name in names}):
        peers = {contestant: Peer(contestant, options.seconds, threads) for contestant in CONTESTANTS}
        for name in names:
            if GROUPS[CASES[name].group].threads == threads:
                rows.append(time_case(name, peers, options.rounds))
                print(report.row_text(rows[-1]), flush=True)
        for peer in peers.values():
            peer.close()
    stay_on_cores(1)
    imports = {} if options.no_import or options.only else time_imports(3 if options.quick else 7)
    about = report.about_this_machine(versions(), options.rounds)
    path = report.write(rows, imports, about, options.name)
    print()
    for what, ratio, target in report.verdicts(rows):
        print(f"{'reached' if ratio <= target else 'MISSED '}  {ratio:.2f} (target {target})  {what}")
    for module, seconds in imports.items():
        print(f"import {module}: {seconds:.2f} s")
    print(f"written to {path.relative_to(ROOT)} and .json")
    return sum("error" in row for row in rows)


if __name__ == "__main__":
    sys.exit(min(main(), 100))
