"""python -m benchmarks.distributed: process groups under MPI, with several processes on this machine.

Held to: an all-reduce of 25 million float32 gradients takes at most 1.5 times as long as mpi4py's own of the same buffer;
DistributedDataParallel hides at least half of its communication behind backward. The table goes to
benchmarks/results/distributed.md, the timeline of one iteration, as the chapter shows it, to distributed.json.

    … --ranks 4   --rounds 9
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import record
from benchmarks.__main__ import ROOT, environment
from benchmarks.record import RESULTS

ELEMENTS = 25_000_000
RATIO, SHARE = 1.5, 0.5
MPI_SETTINGS = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "OMPI_MCA_hwloc_base_binding_policy": "none",
}


# -- what each rank does ------------------------------------------------------------------------


def all_reduces(rounds):
    """Seconds of ours and of mpi4py's, in turns: {name: [a round …]}, of the slowest rank."""
    import numpy as np
    from mpi4py import MPI

    import readtorch

    ours, theirs = readtorch.ones(ELEMENTS), np.ones(ELEMENTS, np.float32)
    calls = {
        "readtorch": lambda: readtorch.distributed.all_reduce(ours),
        "mpi4py": lambda: MPI.COMM_WORLD.Allreduce(MPI.IN_PLACE, theirs, MPI.SUM),
    }
    seconds = {name: [] for name in calls}
    for i in range(rounds + 1):
        for name, call in calls.items():
            MPI.COMM_WORLD.Barrier()
            began = time.perf_counter()
            call()
            slowest = MPI.COMM_WORLD.allreduce(time.perf_counter() - began, MPI.MAX)
            if i:  # the first warms up
                seconds[name].append(slowest)
            ours.fill_(1)
            theirs.fill(1)
    return seconds


def small_all_reduces(count=300):
    """Seconds of one of 10 elements: what the round of checks costs."""
    import readtorch

    t = readtorch.zeros(10)
    began = time.perf_counter()
    for _ in range(count):
        readtorch.distributed.all_reduce(t)
    return (time.perf_counter() - began) / count


def model():
    from readtorch import nn

    layers = [layer for _ in range(6) for layer in (nn.Linear(1024, 1024), nn.ReLU())]
    return nn.Sequential(*layers, nn.Linear(1024, 10))


def overlap(rounds):
    """(share of communication behind backward, timeline) of each round on this rank."""
    import readtorch
    from readtorch import distributed as dist

    wrapped = readtorch.nn.parallel.DistributedDataParallel(model(), bucket_cap_mb=4)
    step = readtorch.optim.SGD(wrapped.parameters(), lr=0.01)
    x, y = readtorch.randn(256, 1024), readtorch.randint(0, 10, (256,))
    seen = []
    for _ in range(rounds + 2):
        dist.barrier()
        recording = dist.Timeline(dist.get_rank())
        with dist.record_timeline(recording):
            step.zero_grad()
            readtorch.nn.functional.cross_entropy(wrapped(x), y).backward()
            with recording.span("step"):
                step.step()
        exported = recording.export()
        seen.append((dist.hidden_share(exported), exported))
    return seen[2:]  # buckets are made anew in the second


def as_rank(folder, rounds):
    import readtorch

    readtorch.distributed.init_process_group("mpi")
    measured = {"all_reduce": all_reduces(rounds), "small": small_all_reduces(), "overlap": overlap(rounds)}
    (Path(folder) / f"{readtorch.distributed.get_rank()}.json").write_text(json.dumps(measured))
    readtorch.distributed.destroy_process_group()


# -- the table ----------------------------------------------------------------------------------


def measure(ranks, rounds):
    launcher = shutil.which("mpirun")
    if launcher is None:
        raise SystemExit("there is no mpirun here: nothing was measured")
    with tempfile.TemporaryDirectory() as folder:
        command = [launcher, "-n", str(ranks), sys.executable, "-m", "benchmarks.distributed", "--rank", folder]
        subprocess.run([*command, "--rounds", str(rounds)], env=environment() | MPI_SETTINGS, cwd=ROOT, check=True)
        return [json.loads((Path(folder) / f"{rank}.json").read_text()) for rank in range(ranks)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--rank", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.rank:
        return as_rank(options.rank, options.rounds)
    measured = measure(options.ranks, options.rounds)
    medians = {name: statistics.median(seconds) for name, seconds in measured[0]["all_reduce"].items()}
    ratio = medians["readtorch"] / medians["mpi4py"]
    shares = [statistics.median(share for share, _ in rank["overlap"]) for rank in measured]
    lines = [
        f"# Process groups under MPI: {options.ranks} processes on {os.cpu_count()} processors",
        "",
        "| | | held to |",
        "|---|---:|---:|",
        f"| all-reduce of 25 million float32, ms | {medians['readtorch'] * 1e3:.0f} | |",
        f"| the same with mpi4py alone, ms | {medians['mpi4py'] * 1e3:.0f} | |",
        f"| ratio | {ratio:.2f} | {RATIO} |",
        f"| all-reduce of 10 float32 with its check, µs | {measured[0]['small'] * 1e6:.0f} | |",
        f"| communication behind backward, least of the ranks | {min(shares):.0%} | {SHARE:.0%} |",
        "",
    ]
    (RESULTS / "distributed.md").write_text("\n".join(lines))
    typical = sorted(range(options.rounds), key=lambda i: measured[0]["overlap"][i][0])[options.rounds // 2]
    timelines = [rank["overlap"][typical][1] for rank in measured]
    record.write(
        "distributed",
        [
            record.row(
                f"all-reduce of 25 million float32, {options.ranks} MPI processes: time over mpi4py's own",
                round(ratio, 3),
                "",
                RATIO,
            ),
            record.row(
                "communication that DDP hides behind backward, least of the ranks",
                round(min(shares), 3),
                "",
                SHARE,
                True,
            ),
        ],
        ranks=timelines,
    )
    print("\n".join(lines))
    return ratio > RATIO or min(shares) < SHARE


if __name__ == "__main__":
    sys.exit(main())
