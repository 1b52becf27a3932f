"""Ranks that are killed, stopped, that leave, do something else, or have numbers that do not fit.

    python -m tests.attack.ranks --count 40 --report tests/attack/results/ranks.json

Every rank that survives must get an error, in time, that names the culprit; where a rank stops in the middle of its data, at least
the rank that was waited for. Cases of collectives are those of
`tests.distributed.faults`, in threads and in processes.
"""

import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from datetime import timedelta

import readtorch
from readtorch import distributed as dist
from readtorch.csrc.distributed import full_mesh
from readtorch.csrc.distributed.store import HashStore
from readtorch.distributed.run import free_port
from tests.attack import record
from tests.distributed import faults
from tests.distributed.launch import ROOT, environment

LIMIT = 4.0  # seconds that a collective may take
LATE = 8.0  # seconds that a busy machine may be late
PLACES = {
    "out of range": lambda size, rng: (rng.choice([size, size + 4, -1, -7, 10**12]), size),
    "twice": lambda size, rng: (rng.randrange(1, size - 1), size),
    "another world size": lambda size, rng: (size - 1, size + rng.choice([-1, 1, 100])),
}


def attack(seed, number):
    rng = random.Random(f"{seed} {number}")
    kind = ["threads", "numbers", "threads", "numbers in threads", "threads", "tcp", "threads", "stopped"][number % 8]
    if kind in ("threads", "tcp"):
        return of_faults(seed * 1000 + number, kind)
    if kind == "stopped":
        return stopped(rng, number)
    return numbers(rng, kind, number // 4)


def of_faults(seed, backend):
    plan = faults.draw(seed, [backend])
    found = faults.problems(plan)
    name = f"{backend}, {plan['program']}, {plan['kind']}"
    return f"BAD {name}: {found} {plan}" if found else name


# -- numbers that do not fit ----------------------------------------------------------------------


def numbers(rng, kind, number):
    size, fault = rng.choice([3, 4]), list(PLACES)[number % len(PLACES)]
    places = [(rank, size) for rank in range(size - 1)] + [PLACES[fault](size, rng)]
    rng.shuffle(places)
    began = time.monotonic()
    said = meet_in_threads(places) if kind == "numbers in threads" else meet_in_processes(places)
    seconds = time.monotonic() - began
    words = {
        "out of range": "there is a rank .* in a world of",
        "twice": "there are two processes with rank",
        "another world size": "(says that there are|there is a rank .* in a world of)",
    }[fault]
    if kind == "numbers in threads" and seconds > LATE or not all(re.search(words, text) for text in said):
        return f"BAD {kind}, {fault}: {places} {seconds:.1f} s {said}"
    return f"{kind}, {fault}"


def meet_in_threads(places):
    store, said = HashStore(), [""] * len(places)

    def one(i):
        try:
            full_mesh.check_in(store, *places[i], 20)
        except dist.DistError as error:
            said[i] = str(error)

    threads = [threading.Thread(target=one, args=(i,)) for i in range(len(places))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return said


def meet_in_processes(places):
    """By hand, with env://."""
    shared = environment() | {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    command = [sys.executable, "-m", "tests.attack.ranks", "--as-rank", "meet"]
    ranks = [
        subprocess.Popen(
            command,
            env=shared | {"RANK": str(rank), "WORLD_SIZE": str(size)},
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank, size in places
    ]
    return [rank.communicate(timeout=60)[0] for rank in ranks]


def as_rank_that_meets():
    try:
        dist.init_process_group(timeout=timedelta(seconds=30))
        print("joined")
    except dist.DistError as error:
        print(error)


# -- a rank that stops in the middle of its data ------------------------------------------------------


def stopped(rng, number):
    """Two or three ranks, and one of them stops while tens of megabytes are under way: after how long do the others know?"""
    size = rng.choice([2, 3])
    plan = {
        "culprit": rng.randrange(size),
        "delay": rng.random() * 0.2,
        "collective": ["all_reduce", "broadcast", "all_gather"][number % 3],
    }
    shared = environment() | {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": str(size)}
    command = [sys.executable, "-m", "tests.attack.ranks", "--as-rank", json.dumps(plan)]
    ranks = [
        subprocess.Popen(command, env=shared | {"RANK": str(rank)}, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        for rank in range(size)
    ]
    name, faults_ = f"stopped in {plan['collective']}", []
    for rank, process in enumerate(ranks):
        if rank == plan["culprit"]:
            continue
        try:
            text = process.communicate(timeout=90)[0]
        except subprocess.TimeoutExpired:
            text = "hangs"
            process.kill()
        match = re.match(r"(\d+\.\d) (.*)", text)
        if not match or float(match[1]) > LIMIT + LATE or not re.search(f"rank [^{rank}]", match[2]):
            faults_.append(f"rank {rank}: {text}")
    ranks[plan["culprit"]].kill()
    ranks[plan["culprit"]].communicate()
    return f"BAD {name}: {faults_} {plan}" if faults_ else name


def as_rank_that_works(plan):
    dist.init_process_group(timeout=timedelta(seconds=30))
    dist.group.WORLD.set_timeout(timedelta(seconds=LIMIT))
    rank, size = dist.get_rank(), dist.get_world_size()
    data = readtorch.ones(15_000_000)
    parts = [readtorch.empty(15_000_000) for _ in range(size)] if plan["collective"] == "all_gather" else None
    dist.barrier()
    if rank == plan["culprit"]:
        threading.Timer(plan["delay"], os.kill, (os.getpid(), signal.SIGSTOP)).start()
    while True:
        began = time.monotonic()
        try:
            if plan["collective"] == "all_reduce":
                dist.all_reduce(data)
            elif plan["collective"] == "broadcast":
                dist.broadcast(data, 0)
            else:
                dist.all_gather(parts, data)
        except dist.DistError as error:
            print(f"{time.monotonic() - began:.1f} {error}", flush=True)
            return


if __name__ == "__main__":
    if sys.argv[1:2] == ["--as-rank"]:
        as_rank_that_meets() if sys.argv[2] == "meet" else as_rank_that_works(json.loads(sys.argv[2]))
        os._exit(0)
    sys.exit(record.main(__doc__, attack, 40))
