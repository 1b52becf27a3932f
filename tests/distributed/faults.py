"""Ranks that fail on purpose: does every other rank get an error in time, and one that says who and where?

    python -m tests.distributed.faults              200 runs, by seed: threads, sockets and MPI, 2 to 4 ranks
    … --runs N  --seed S  --backends threads tcp

A run is a program of random collectives, or a training with DistributedDataParallel. At a random step one rank, the
culprit, raises, is killed, returns, hangs, or runs another collective than the others; over sockets it is also stopped (SIGSTOP) or
loses its connections. Each rank notes how it ended. Or a stranger sends random bytes to whatever listens, and nobody may notice.
Afterwards nothing may be left: no process, and where ranks are threads no thread and no open file.
"""

import argparse
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from datetime import timedelta
from pathlib import Path

import readtorch
from readtorch import distributed as dist
from readtorch.csrc.distributed.process_group_mpi import is_available as mpi_is_available
from readtorch.csrc.distributed.process_group_wrapper import GRACE
from tests.distributed.launch import ROOT, environment, mpirun, readtorchrun

LEAVES = ("exception", "killed", "returns", "hangs")  # the culprit does not come
SOCKETS = ("stopped", "cut off", "stranger")  # only where there are processes and sockets of ours
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
    kinds += SOCKETS * 2 if backend == "tcp" and program == "collectives" else ()
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
    if plan["kind"] == "stopped":
        os.kill(os.getpid(), signal.SIGSTOP)
    if plan["kind"] == "cut off":
        for connection in open_sockets():
            if not is_listening(connection):
                connection.shutdown(socket.SHUT_RDWR)
    if plan["kind"] == "stranger":
        for address in [s.getsockname() for s in open_sockets() if is_listening(s)] + [master()]:
            send_garbage(address, plan["seed"])
    if plan["kind"] == "hangs":
        time.sleep(TIMEOUT[plan["backend"]] + 2 * GRACE + 1)


def open_sockets():
    """Copies of all internet sockets of this process."""
    for name in os.listdir("/proc/self/fd"):
        try:
            found = socket.socket(fileno=os.dup(int(name)))
        except OSError:
            continue  # no socket, or closed by now
        if found.family in (socket.AF_INET, socket.AF_INET6):
            yield found


def is_listening(s):
    return bool(s.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))


def master():
    return os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])


def send_garbage(address, seed):
    """What somebody who does not know the group's secret may send: random bytes, a huge length, nothing at all."""
    rng = random.Random(seed)
    for message in (rng.randbytes(rng.randrange(1, 5000)), b"\xff" * 64, b"GET / HTTP/1.1\r\n\r\n", b""):
        with socket.create_connection(address[:2], timeout=5) as stranger:
            try:
                stranger.sendall(message)
            except OSError:
                pass  # they have hung up


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
    """(outcomes, None, what is left)"""
    outcomes = []
    before = set(threading.enumerate()), open_files()
    try:
        dist.run_threads(noted, plan["ranks"], (plan, outcomes.append), timeout=timedelta(seconds=TIMEOUT["threads"]))
    except BaseException:
        pass  # the outcomes say it all
    give_up = time.monotonic() + SLACK + 2 * GRACE
    while (left := left_by_threads(*before)) and time.monotonic() < give_up:
        time.sleep(0.05)
    return outcomes, None, left


def open_files():
    return len(os.listdir("/proc/self/fd"))


def left_by_threads(threads, files):
    """The watchdog stays: a process has one, from its first collective on."""
    left = [f"thread {t.name} is left" for t in threading.enumerate() if t not in threads and t.name != "watchdog"]
    return left + [f"{open_files() - files} files are open"] * (open_files() > files)


def left_by_processes(session):
    """The processes of a session that are still there."""
    left = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = stat.read_text().rpartition(")")
        except OSError:
            continue  # it has ended
        state, _, _, its_session = rest.split()[:4]
        if int(its_session) == session and state != "Z":
            left.append(f"process {name}) is left")
    return left


def run_in_processes(plan):
    with tempfile.TemporaryDirectory() as folder:
        launch = mpirun if plan["backend"] == "mpi" else readtorchrun
        command = launch(plan["ranks"], "-m", "tests.distributed.faults", "--rank", json.dumps(plan), folder)
        launched = subprocess.Popen(
            command,
            env=environment(),
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            code = launched.wait(timeout=60)
        except subprocess.TimeoutExpired:
            os.killpg(launched.pid, signal.SIGKILL)
            code = "the launcher did not end"
        outcomes = [json.loads(file.read_text()) for file in Path(folder).glob("*.json")]
        return outcomes, code, left_by_processes(launched.pid)


def as_rank(plan, folder):
    """A process of `run_in_processes`."""
    dist.init_process_group(plan["backend"], timeout=timedelta(seconds=TIMEOUT[plan["backend"]]))
    rank = dist.get_rank()
    dist.barrier()
    noted(rank, plan, lambda outcome: (Path(folder) / f"{rank}.json").write_text(json.dumps(outcome)))


# -- judging it ---------------------------------------------------------------------------------


def problems(plan):
    """What was not as it should be in one run."""
    outcomes, code, found = run_in_threads(plan) if plan["backend"] == "threads" else run_in_processes(plan)
    if plan["kind"] == "stranger":
        return found + [str(o) for o in outcomes if o["error"]] + [f"exit status {code}"] * (code != 0)
    if isinstance(code, str):
        found.append(code)
    if code == 0:
        found.append("the launcher ended as if all were well")
    if plan["backend"] == "mpi" and plan["kind"] == "killed":
        return found  # mpirun kills the others: nobody is left to ask
    by_rank = {outcome["rank"]: outcome for outcome in outcomes}
    for rank in range(plan["ranks"]):
        survives = rank != plan["culprit"] or plan["kind"] in (*DEVIATES, "cut off")
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
    parser.add_argument("--runs", type=int, default=200)
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
