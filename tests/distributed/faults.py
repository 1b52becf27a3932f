"""Ranks that fail on purpose: does every other rank get an error in time, and one that says who and where?

    python -m tests.distributed.faults              100 runs, by seed: threads, sockets and MPI, 2 to 4 ranks
    … --runs N  --seed S  --backends threads tcp

A run is a program of random collectives, or a training with DistributedDataParallel. At a random step one rank, the
culprit, raises, is killed, returns, hangs, or runs another collective than the others. Each rank notes how it ended.
"""

import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path

import readtorch
from readtorch import distributed as dist
from readtorch.csrc.distributed.process_group_mpi import is_available as mpi_is_available
from readtorch.csrc.distributed.process_group_wrapper import GRACE
from tests.distributed.launch import ROOT, environment, mpirun, readtorchrun

LEAVES = ("exception", "killed", "returns", "hangs")  # the culprit does not come
DEVIATES = ("shape", "dtype", "another collective", "reduce op", "root", "one too many")  # it comes with something else
TIMEOUT = {"threads": 0.4, "tcp": 3.0, "mpi": 3.0}
SLACK = 4.0  # seconds that a busy machine may be late
COLLECTIVES = ("all_reduce", "broadcast", "all_gather", "reduce_scatter", "all_to_all", "barrier")
NAMED = re.compile(r"(all_reduce|broadcast|all_gather|reduce_scatter|all_to_all|reduce|barrier) no\. \d+")


class Culprit(Exception):
    """What the culprit raises."""


# -- one run, drawn from a seed -----------------------------------------------------------------


def draw(seed, backends):
    """What happens in run number `seed`."""
    rng = random.Random(seed)
    backend = rng.choices(backends, [{"threads": 6, "tcp": 2, "mpi": 2}[b] for b in backends])[0]
    ranks = rng.choice([2, 3, 4])
    program = rng.choice(["collectives", "collectives", "training"])
    kinds = LEAVES + (DEVIATES if program == "collectives" else ("one too many",))
    return {
        "seed": seed,
        "backend": backend,
        "ranks": ranks,
        "program": program,
        "kind": rng.choice(kinds),
        "culprit": rng.randrange(ranks),
        "step": rng.randrange(1, 6),
    }


def steps(plan):
    """The collectives of a run, the same on all ranks: (name, elements, root)"""
    rng = random.Random(plan["seed"] + 1)
    drawn = [
        [rng.choice(COLLECTIVES), plan["ranks"] * rng.randrange(1, 50), rng.randrange(plan["ranks"])] for _ in range(8)
    ]
    if plan["kind"] in ("shape", "dtype", "reduce op"):
        drawn[plan["step"]][0] = "all_reduce"  # a barrier has no shape
    if plan["kind"] == "root":
        drawn[plan["step"]][0] = "broadcast"
    return drawn


def collective(name, elements, root, dtype=None, op=dist.ReduceOp.SUM):
    t, size = readtorch.ones(elements, dtype=dtype), dist.get_world_size()
    if name == "all_reduce":
        dist.all_reduce(t, op)
    elif name == "broadcast":
        dist.broadcast(t, root)
    elif name == "all_gather":
        dist.all_gather([readtorch.empty(elements) for _ in range(size)], t)
    elif name == "reduce_scatter":
        dist.reduce_scatter_tensor(readtorch.empty(elements // size), t)
    elif name == "all_to_all":
        dist.all_to_all_single(readtorch.empty(elements), t)
    else:
        dist.barrier()


def deviate(kind, name, elements, root, size):
    """The culprit's collective, in place of the one that the others run."""
    if kind == "shape":
        collective(name, elements + size, root)
    elif kind == "dtype":
        collective(name, elements, root, dtype=readtorch.float64)
    elif kind == "reduce op":
        collective(name, elements, root, op=dist.ReduceOp.MAX)
    elif kind == "root":
        collective(name, elements, (root + 1) % size)
    elif kind == "another collective":
        collective("broadcast" if name != "broadcast" else "all_gather", elements, root)
    else:
        collective("all_reduce", 7919, root)
        collective(name, elements, root)


def leave(plan):
    """The culprit does not come to the others' next collective."""
    if plan["kind"] == "exception":
        raise Culprit("on purpose")
    if plan["kind"] == "killed":
        if plan["backend"] == "threads":
            raise SystemExit("killed")  # the end of a thread
        os.kill(os.getpid(), signal.SIGKILL)
    if plan["kind"] == "hangs":
        time.sleep(TIMEOUT[plan["backend"]] + 2 * GRACE + 1)


def program(rank, plan):
    """What a rank does."""
    if plan["program"] == "training":
        return training(rank, plan)
    for number, step in enumerate(steps(plan)):
        if rank == plan["culprit"] and number == plan["step"]:
            if plan["kind"] == "returns":
                return
            leave(plan)
            if plan["kind"] in DEVIATES:
                deviate(plan["kind"], *step, plan["ranks"])
                continue
        collective(*step)


def training(rank, plan):
    """The culprit fails in the middle of backward."""
    model = readtorch.nn.Sequential(*[readtorch.nn.Linear(8, 8) for _ in range(4)])
    model = readtorch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=1e-4)
    for number in range(7):
        loss = model(readtorch.ones(2, 8)).sum()
        if rank == plan["culprit"] and number == plan["step"]:
            if plan["kind"] == "returns":
                return
            if plan["kind"] == "one too many":
                dist.all_reduce(readtorch.ones(7919))
            hook = model.module[2].weight.register_hook(lambda g: leave(plan))
        loss.backward()
        if rank == plan["culprit"] and number == plan["step"]:
            hook.remove()


# -- carrying it out ----------------------------------------------------------------------------


def noted(rank, plan, note):
    """Run the program; `note(outcome)` how it ended on this rank."""
    began, text = time.monotonic(), None
    try:
        program(rank, plan)
    except BaseException as error:
        text = f"{type(error).__name__}: {error}"
        raise
    finally:
        note({"rank": rank, "error": text, "seconds": time.monotonic() - began})


def run_in_threads(plan):
    outcomes = []
    try:
        dist.run_threads(noted, plan["ranks"], (plan, outcomes.append), timeout=timedelta(seconds=TIMEOUT["threads"]))
    except BaseException:
        pass  # the outcomes say it all
    return outcomes, None


def run_in_processes(plan):
    with tempfile.TemporaryDirectory() as folder:
        launch = mpirun if plan["backend"] == "mpi" else readtorchrun
        command = launch(plan["ranks"], "-m", "tests.distributed.faults", "--rank", json.dumps(plan), folder)
        done = subprocess.run(command, env=environment(), cwd=ROOT, capture_output=True, text=True, timeout=60)
        outcomes = [json.loads(file.read_text()) for file in Path(folder).glob("*.json")]
        return outcomes, done.returncode


def as_rank(plan, folder):
    """A process of `run_in_processes`."""
    dist.init_process_group(plan["backend"], timeout=timedelta(seconds=TIMEOUT[plan["backend"]]))
    rank = dist.get_rank()
    dist.barrier()
    noted(rank, plan, lambda outcome: (Path(folder) / f"{rank}.json").write_text(json.dumps(outcome)))


# -- judging it ---------------------------------------------------------------------------------


def problems(plan):
    """What was not as it should be in one run."""
    outcomes, code = run_in_threads(plan) if plan["backend"] == "threads" else run_in_processes(plan)
    found = []
    if code == 0:
        found.append("the launcher ended as if all were well")
    if plan["backend"] == "mpi" and plan["kind"] == "killed":
        return found  # mpirun kills the others: nobody is left to ask
    by_rank = {outcome["rank"]: outcome for outcome in outcomes}
    for rank in range(plan["ranks"]):
        survives = rank != plan["culprit"] or plan["kind"] in DEVIATES
        if survives:
            found += [f"rank {rank}: {p}" for p in problems_of(by_rank.get(rank), plan)]
    return found


def problems_of(outcome, plan):
    """What was wrong with the end of a surviving rank."""
    if outcome is None:
        return ["ended without a word"]
    error = outcome["error"]
    if error is None:
        return ["noticed nothing"]
    found = []
    if outcome["seconds"] > TIMEOUT[plan["backend"]] + 2 * GRACE + SLACK:
        found.append(f"error after {outcome['seconds']:.1f} s")
    if NAMED.search(error) is None:
        found.append(f"no collective is named: {error}")
    others = set(re.findall(r"(?i)ranks? (\d+)", error)) - {str(outcome["rank"])}
    if plan["culprit"] != outcome["rank"] and str(plan["culprit"]) not in others:
        found.append(f"the culprit is not named: {error}")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--backends", nargs="+", default=["threads", "tcp"] + ["mpi"] * mpi_is_available())
    parser.add_argument("--rank", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.rank:
        return as_rank(json.loads(options.rank[0]), options.rank[1])
    bad = 0
    for seed in range(options.seed, options.seed + options.runs):
        plan = draw(seed, options.backends)
        began = time.time()
        found = problems(plan)
        bad += bool(found)
        print(f"{'BAD ' if found else 'good'} {time.time() - began:5.1f} s  {plan}", *found, sep="\n    ", flush=True)
    print(f"{options.runs - bad} of {options.runs} runs ended with an error on every surviving rank, in time")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
