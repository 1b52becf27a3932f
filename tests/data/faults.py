"""Loader runs with random faults: each must end with the right error or the right data, in time, and leave
nothing.

    python -m tests.data.faults                 # 300 runs
    python -m tests.data.faults --runs 40 --seed 7

A run takes a random loader and a random fault out of `FAULTS`. Afterwards there must be no child process,
thread, descriptor, shared mapping or named segment that was not there before.
"""

import argparse
import collections
import contextlib
import dataclasses
import faulthandler
import gc
import os
import random
import re
import signal
import sys
import threading
import time
import traceback
import warnings

import readtorch as rt
from readtorch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info
from readtorch.utils.data._utils import worker, worker_pool

PATIENCE = 1.0  # in place of MP_STATUS_CHECK_INTERVAL: how long the loader waits for a worker to end
LONGEST_RUN = 60  # seconds; on a loaded machine most of it is waiting for the processor
LENGTH = 24
FAULTS = [
    "none",
    "kill itself",
    "killed",
    "raise in dataset",
    "raise in collate",
    "raise in worker_init_fn",
    "hang",
    "break",
    "interrupt",
    "raise in consumer",
    "exit",
    "unpicklable",
]


class Oops(Exception):
    pass


@dataclasses.dataclass
class Plan:
    """What is run, drawn from a seed."""

    seed: int
    fault: str
    at: int  # the sample at which it happens
    delay: float  # seconds after which it happens, if it comes from outside
    batch_size: int
    num_workers: int
    prefetch_factor: int
    persistent: bool
    iterable: bool
    in_order: bool
    strategy: str
    method: str
    payload: int  # elements a sample
    pause: float  # seconds a sample
    as_tensors: bool

    @classmethod
    def draw(cls, seed):
        r = random.Random(seed)
        return cls(
            seed,
            fault=FAULTS[seed % len(FAULTS)],
            at=r.randrange(LENGTH),
            delay=r.random() ** 2 * 0.15,
            batch_size=r.choice([1, 2, 3, 5]),
            num_workers=r.choice([1, 2, 2, 3]),
            prefetch_factor=r.choice([1, 2, 5]),
            persistent=r.random() < 0.3,
            iterable=r.random() < 0.3,
            in_order=r.random() < 0.8,
            strategy=r.choice(["file_descriptor"] * 4 + ["file_system"]),
            method=r.choice(["fork"] * 19 + ["spawn"]),
            payload=r.choice([1, 10, 1000, 50_000]),
            pause=r.choice([0, 0.005]),
            as_tensors=r.random() < 0.7,
        )


# What runs in the workers


@dataclasses.dataclass
class Faulty:
    plan: Plan

    def sample(self, i):
        if i == self.plan.at:
            self.fail(i)
        time.sleep(self.plan.pause)
        make = rt.full if self.plan.as_tensors else lambda size, value: [value] * size[0]
        return i, make((self.plan.payload,), i)

    def fail(self, i):
        match self.plan.fault:
            case "kill itself":
                os.kill(os.getpid(), signal.SIGKILL)
            case "exit":
                os._exit(i % 2)
            case "hang":
                time.sleep(10_000)
            case "raise in dataset":
                raise Oops(f"sample {i}")

    def collate(self, samples):
        if self.plan.fault == "raise in collate" and any(i == self.plan.at for i, _ in samples):
            raise Oops("collate")
        if self.plan.fault == "unpicklable" and any(i == self.plan.at for i, _ in samples):
            return lambda: None
        return [i for i, _ in samples], [payload for _, payload in samples]

    def init(self, worker_id):
        if self.plan.fault == "raise in worker_init_fn" and worker_id == 0:
            raise Oops("init")


class Mapped(Faulty, Dataset):
    def __len__(self):
        return LENGTH

    def __getitem__(self, i):
        return self.sample(i)


class Streamed(Faulty, IterableDataset):
    def __iter__(self):
        info = get_worker_info()
        return map(self.sample, range(info.id, LENGTH, info.num_workers))


# What runs in the main process


class InConsumer(Exception):
    pass


def consume(plan, seen):
    """Go through the loader twice if its workers stay, else once; the samples go to `seen`."""
    dataset = (Streamed if plan.iterable else Mapped)(plan)
    loader = DataLoader(
        dataset,
        plan.batch_size,
        num_workers=plan.num_workers,
        collate_fn=dataset.collate,
        worker_init_fn=dataset.init,
        persistent_workers=plan.persistent,
        in_order=plan.in_order,
        prefetch_factor=plan.prefetch_factor,
        multiprocessing_context=plan.method,
        timeout=1.5 if plan.fault == "hang" else 0,
    )
    for _ in range(1 + plan.persistent):
        seen.clear()
        iterator = iter(loader)
        with killer(plan, iterator):
            for indices, payloads in iterator:
                check_payloads(indices, payloads, plan)
                seen.extend(indices)
                if plan.at in indices and plan.fault == "break":
                    return
                if plan.at in indices and plan.fault == "raise in consumer":
                    raise InConsumer


def check_payloads(indices, payloads, plan):
    for i, payload in zip(indices, payloads, strict=True):
        values = payload.tolist() if plan.as_tensors else payload
        assert values == [i] * plan.payload, "wrong data"


@contextlib.contextmanager
def killer(plan, iterator):
    """Kills a worker from outside, after a while."""
    if plan.fault != "killed":
        yield
        return
    victim = random.Random(plan.seed).choice(iterator._workers).pid
    timer = threading.Timer(plan.delay, kill, (victim,))
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


def kill(pid):
    with contextlib.suppress(ProcessLookupError):  # it may have ended before
        os.kill(pid, signal.SIGKILL)


@contextlib.contextmanager
def interrupter(plan):
    """Ctrl-C after a while."""
    if plan.fault != "interrupt":
        yield
        return
    timer = threading.Timer(plan.delay, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        yield
    finally:
        timer.join()
        time.sleep(0.02)  # the handler runs here at the latest


def run(plan):
    """The outcome in a few words. AssertionError for a wrong one."""
    seen = []
    rt.multiprocessing.set_sharing_strategy(plan.strategy)
    try:
        with interrupter(plan):
            consume(plan, seen)
        error = None
    except BaseException as e:
        error = f"{type(e).__name__}: {e}"
        if isinstance(e, AssertionError):
            raise
    check_outcome(plan, seen, error)
    return (error or "data").split("\n")[0].split("(")[0]


def check_outcome(plan, seen, error):
    complete = sorted(seen) == list(range(LENGTH))
    if plan.in_order and not plan.iterable:
        assert seen == list(range(len(seen))), "wrong order"
    assert len(set(seen)) == len(seen), "twice"
    match plan.fault:
        case "none":
            assert error is None and complete
        case "kill itself":
            assert error and names_a_dead_worker(error)
        case "exit":
            assert error and names_a_dead_worker(error)
        case "killed":
            assert names_a_dead_worker(error) if error else complete
        case "raise in dataset" | "raise in collate":
            where = "sample" if plan.fault == "raise in dataset" else "collate"
            assert error.startswith("Oops: Caught Oops in DataLoader worker process ")
            assert f"Oops: {where}" in error
        case "raise in worker_init_fn":
            assert error.startswith("Oops: Caught Oops in DataLoader worker process 0.")
            assert "Oops: init" in error
        case "hang":
            assert error.startswith("RuntimeError: DataLoader timed out after 1.5 seconds")
        case "break":
            assert error is None and plan.at in seen
        case "raise in consumer":
            assert error.startswith("InConsumer")
        case "interrupt":
            assert error is None and complete or error.startswith("KeyboardInterrupt")
        case "unpicklable":
            assert "Can't pickle" in error or "cannot pickle" in error, error


def names_a_dead_worker(error):
    return re.match(
        r"RuntimeError: DataLoader worker \(pid(\(s\))? [\d, ]+\) "
        "(exited unexpectedly|is killed by signal)",
        error,
    )


# What is left


def holdings():
    """Everything that a loader could leave behind."""
    pid = os.getpid()
    children = open(f"/proc/self/task/{pid}/children").read().split()
    return {
        "processes": len(children) - keeps_tracker(),
        "threads": threading.active_count(),
        "descriptors": sum(map(is_open, os.listdir("/proc/self/fd"))),  # less that of the listing
        "mappings": sum(map(is_shared_mapping, open("/proc/self/maps"))),
        "segments": sum(name.startswith("readtorch_") for name in os.listdir("/dev/shm")),
    }


def is_shared_mapping(line):
    return "memfd:readtorch" in line or "/readtorch_" in line


def is_open(fd):
    try:
        os.fstat(int(fd))
        return True
    except OSError:
        return False


def keeps_tracker():
    """multiprocessing's resource tracker stays until the end, by design."""
    from multiprocessing.resource_tracker import _resource_tracker

    return _resource_tracker._pid is not None


def leaks(before):
    """What there is more than before, if it does not go within two seconds."""
    for _ in range(20):
        gc.collect()
        now = holdings()
        more = {name: (before[name], count) for name, count in now.items() if count > before[name]}
        if not more:
            return {}
        time.sleep(0.1)
    return more


# All runs


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0, help="the first run's")
    parser.add_argument(
        "--fork-only", action="store_true", help="leave out the start methods that import everything again"
    )
    parser.add_argument("-v", action="store_true")
    options = parser.parse_args()
    warnings.filterwarnings("ignore", message="This DataLoader will create")
    worker_pool.MP_STATUS_CHECK_INTERVAL = worker.MP_STATUS_CHECK_INTERVAL = PATIENCE
    rt.multiprocessing.set_sharing_strategy("file_system")  # starts the tracker
    run(Plan.draw(0))
    before, outcomes, failures, longest = holdings(), collections.Counter(), 0, 0.0
    for seed in range(options.seed, options.seed + options.runs):
        plan = Plan.draw(seed)
        if options.fork_only:
            plan.method = "fork"
        faulthandler.dump_traceback_later(LONGEST_RUN, exit=True)
        began = time.monotonic()
        try:
            outcomes[plan.fault, run(plan)] += 1
            left = leaks(before)
            assert not left, f"left behind: {left}"
        except AssertionError:
            failures += 1
            print(plan)
            traceback.print_exc()
            before = holdings()
        faulthandler.cancel_dump_traceback_later()
        took = time.monotonic() - began
        longest = max(longest, took)
        if options.v:
            print(seed, plan.fault, f"{took:.2f} s", flush=True)
    for (fault, outcome), count in sorted(outcomes.items()):
        print(f"{count:4} {fault:24} -> {outcome}")
    print(f"{options.runs} runs, {failures} failures, longest run {longest:.1f} s")
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
