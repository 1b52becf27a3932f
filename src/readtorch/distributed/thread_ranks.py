"""Ranks that are threads of one process: for notebooks and tests.

In PyTorch: `MultiThreadedTestCase` in `torch/testing/_internal/common_distributed.py`.
"""

import threading
import time
from datetime import timedelta

from readtorch.csrc.distributed.multi_threaded_pg import ThreadWorld
from readtorch.csrc.generator import default_generator, random_numbers_of_thread
from readtorch.distributed.distributed_c10d import (
    World,
    current,
    destroy_process_group,
    init_process_group,
    is_initialized,
)


def run_threads(fn, world_size, args=(), timeout=timedelta(seconds=60), network=None):
    """Call `fn(rank, *args)` in `world_size` threads that form a process group; returns what they return, as
    a list.

    timeout: how long a collective may take. network: a `Network` to simulate, or None.
    A rank that raises lets the others fail too, in the next collective that they need it for; the exception
    of the first one is raised here, with a note that says which rank it was; a rank that hangs in its own
    code does not keep that back for more than `timeout`. Each rank begins with the random numbers of the
    caller.
    """
    ranks = _Ranks(fn, world_size, args, timeout, network)
    for thread in ranks.threads:
        thread.start()
    ranks.wait()
    if ranks.failures:
        rank, error = ranks.failures[0]
        error.add_note(
            f"raised on rank {rank} of {world_size}"
            + "".join(f"\nthen on rank {other}: {type(e).__name__}: {e}" for other, e in ranks.failures[1:])
            + "".join(f"\nrank {other} is still running" for other in ranks.running())
        )
        raise error
    return ranks.results


class _Ranks:
    def __init__(self, fn, world_size, args, timeout, network):
        self.fn = fn
        self.args = args
        self.timeout = timeout
        self.world = ThreadWorld(world_size, network)
        self.results = [None] * world_size
        self.failures = []  # (rank, exception), in the order in which they happened
        self.generators = [default_generator.clone_state() for _ in range(world_size)]
        self.threads = [
            threading.Thread(target=self.run, args=(rank,), name=f"rank {rank}", daemon=True)
            for rank in range(world_size)
        ]

    def wait(self):
        """Until all have ended, or after a failure for at most `timeout`."""
        deadline = None
        while self.running() and (deadline is None or time.monotonic() < deadline):
            if self.failures and deadline is None:
                deadline = time.monotonic() + self.timeout.total_seconds() + 1
            self.threads[self.running()[0]].join(0.02)

    def running(self):
        return [rank for rank, thread in enumerate(self.threads) if thread.is_alive()]

    def run(self, rank):
        """The life of one rank."""
        why = "its function has returned"
        current.world, current.threads, current.rank = World(), self.world, rank
        random_numbers_of_thread(self.generators[rank])
        try:
            init_process_group("threads", timeout=self.timeout)
            self.results[rank] = self.fn(rank, *self.args)
        except BaseException as error:
            why = f"it failed with {type(error).__name__}: {error}"
            self.failures.append((rank, error))
        finally:
            self.world.leave(rank, why)
            if is_initialized():
                destroy_process_group()
            random_numbers_of_thread(None)
