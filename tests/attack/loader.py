"""A loader whose workers die, hang, write into its sockets, or lie.

    python -m tests.attack.loader --count 60 --report tests/attack/results/loader.json

Every other case is a run of `tests.data.faults`; in the rest a dataset writes into descriptors that are not its own, closes them,
reads from them, or stops its worker. Each case runs in a process of its own, with a time limit. It must end with the right error,
or the right data, within the loader's time limit.
"""

import os
import random
import re
import signal
import sys
import time
import warnings

import readtorch as rt
from readtorch.utils.data import DataLoader
from readtorch.utils.data._utils import worker, worker_pool
from readtorch.utils.data._utils.connection import _BEGIN, _HEADER
from tests.attack import limits, record
from tests.data import faults

SECONDS = 40  # for one case; on a busy machine most of it is waiting
TIMEOUT = 4  # of the loaders


def sockets():
    for fd in range(3, 256):
        try:
            if os.readlink(f"/proc/self/fd/{fd}").startswith("socket:"):
                yield fd
        except OSError:
            pass


def write(data):
    for fd in sockets():
        try:
            os.write(fd, data)
        except OSError:
            pass


class Hostile:
    """A dataset that does something at one of its samples."""

    def __init__(self, act, at, large):
        self.act, self.at, self.large = act, at, large

    def __len__(self):
        return 12

    def __getitem__(self, i):
        if i == self.at:
            self.act()
        return rt.full((20_000 if self.large else 1,), i)


def writes_noise(rng):
    data = rng.randbytes(rng.choice([1, 3, 16, 17, 18, 500, 20_000]))
    return lambda: write(data)


def writes_text(rng):
    return lambda: write(b"warning: something is deprecated\n" * rng.choice([1, 100]))


def writes_headers(rng):
    header = _HEADER.pack(
        rng.choice([_BEGIN, b"abcd"]),
        rng.choice([0, 10, 2**14, 2**32 - 1]),
        rng.choice([0, 3, 2**20, 2**32 - 1]),
        rng.choice([0, 1]),
        rng.randrange(2**32),
    )
    return lambda: write(header + rng.randbytes(rng.choice([0, 10])))


def writes_half_a_header(rng):
    return lambda: write(_BEGIN[: rng.randrange(1, 4)])


def writes_and_hangs(rng):
    def act():
        write(_BEGIN + b"\x05")
        time.sleep(1000)

    return act


def writes_and_stops(rng):
    def act():
        write(_BEGIN + b"\x05")
        os.kill(os.getpid(), signal.SIGSTOP)

    return act


def closes(rng):
    return lambda: [os.close(fd) for fd in list(sockets())]


def reads(rng):
    """Takes the loader's messages away."""

    def act():
        for fd in sockets():
            os.set_blocking(fd, False)
            try:
                os.read(fd, rng.choice([1, 10, 100_000]))
            except OSError:
                pass
            os.set_blocking(fd, True)

    return act


KINDS = [
    writes_noise,
    writes_text,
    writes_headers,
    writes_half_a_header,
    writes_and_hangs,
    writes_and_stops,
    closes,
    reads,
]
ENDS = "sent something that is no message|exited unexpectedly|is killed by signal|timed out after|Bad file descriptor"


def hostile(rng, kind):
    loader = DataLoader(
        Hostile(kind(rng), rng.randrange(12), rng.random() < 0.3),
        batch_size=rng.choice([1, 2]),
        timeout=TIMEOUT,
        num_workers=rng.choice([1, 2]),
        persistent_workers=rng.random() < 0.3,
    )
    try:
        came = [x for batch in loader for x in batch[:, 0].tolist()]
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        found = re.search(ENDS, text)
        return found[0] if found else f"BAD {text}"
    return "data" if came == list(range(12)) else f"BAD wrong data {came}"


def of_faults(seed):
    plan = faults.Plan.draw(seed)
    plan.method = "fork"
    rt.multiprocessing.set_sharing_strategy("file_system")  # starts the tracker, which stays
    faults.run(faults.Plan.draw(0))
    before = faults.holdings()
    try:
        outcome = faults.run(plan)
    except AssertionError as error:
        return f"BAD {error}"
    left = faults.leaks(before)
    return f"BAD left behind: {left}" if left else outcome


def one(seed, number):
    warnings.simplefilter("ignore")
    sys.stderr = open(os.devnull, "w")
    os.dup2(sys.stderr.fileno(), 2)  # the workers' tracebacks
    worker_pool.MP_STATUS_CHECK_INTERVAL = worker.MP_STATUS_CHECK_INTERVAL = faults.PATIENCE
    rng = random.Random(f"{seed} {number}")
    return hostile(rng, KINDS[number // 2 % len(KINDS)]) if number % 2 else of_faults(seed * 1000 + number // 2)


def attack(seed, number):
    kind = (
        KINDS[number // 2 % len(KINDS)].__name__.replace("_", " ")
        if number % 2
        else faults.FAULTS[number // 2 % len(faults.FAULTS)]
    )
    end = limits.alone(lambda: one(seed, number), seconds=SECONDS)
    outcome = end.get("result", f"BAD {end}")
    return f"BAD {kind}: {outcome}" if outcome.startswith("BAD") else f"{kind} -> {outcome}"


if __name__ == "__main__":
    sys.exit(record.main(__doc__, attack, 60))
