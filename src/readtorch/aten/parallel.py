"""Sharing the work of one operator among threads: `parallel_for`, and how many threads it may use.

Note [ One pool ]
Two pools of threads on the same cores disturb each other: after a product BLAS's idle threads keep spinning for a while,
and the next task waits for a core (a small GPT takes ten times as long). So there is one pool, this one. BLAS is set to use one
thread, NumPy's products included, and a large product is cut into pieces here, each a BLAS call of its own. The pool's
threads are Python's: a compiled kernel releases the interpreter's lock, so they run side by side, and handing over a piece
costs some ten microseconds. That is why `grain` must be large. After a fork the child makes a new pool.

In PyTorch: `aten/src/ATen/Parallel.h`, `ParallelOpenMP.h`.
"""

import ctypes
import os
import threading
from queue import SimpleQueue


def _default():
    given = os.environ.get("OMP_NUM_THREADS", "")
    return int(given) if given.isdigit() and int(given) else os.cpu_count() or 1


_num_threads = _default()
_num_interop_threads = None  # what set_num_interop_threads said


def get_num_threads():
    """The number of threads that one operator may use: by default OMP_NUM_THREADS, or the number of cores."""
    return _num_threads


def set_num_threads(n):
    """Let one operator use `n` threads. Raises RuntimeError unless `n` is a positive int."""
    global _num_threads
    _num_threads = _positive(n, "set_num_threads")


def get_num_interop_threads():
    """The number of threads for operators that run beside each other."""
    # in PyTorch: the pool that torch.jit.fork and the engine use. The threads here are the caller's own.
    return _num_interop_threads or _default()


def set_num_interop_threads(n):
    """Set that number, once. Raises RuntimeError the second time."""
    global _num_interop_threads
    _positive(n, "set_num_interop_threads")
    if _num_interop_threads is not None:
        raise RuntimeError(
            "Error: cannot set number of interop threads after parallel work has started or "
            "set_num_interop_threads called"
        )
    _num_interop_threads = n


def _positive(n, caller):
    if type(n) is not int:
        raise RuntimeError(f"{caller} expects an int, but got {type(n).__name__}")
    if n <= 0:
        raise RuntimeError(f"{caller} expects a positive integer")
    return n


def claim_cores():
    """Limit every BLAS that is loaded by now to one thread. See Note [ One pool ]. Whoever loads one calls this."""
    import threadpoolctl

    threadpoolctl.threadpool_limits(1, user_api="blas")


class Region(threading.local):
    """Whether this thread is working on a piece. A loop inside a piece is not cut again."""

    inside = False


_region = Region()


def in_parallel_region():
    return _region.inside


def parallel_for(begin, end, grain, body):
    """`body(b, e)` for pieces that cover begin … end, each of at least `grain` steps, side by side.

    `body` is a compiled kernel that releases the lock, with everything but the range filled in. It must not call
    operators. Too little work for two threads, or a call from inside a piece, is `body(begin, end)` itself.
    """
    if end - begin < 2 * grain or (threads := min(_num_threads, (end - begin) // grain)) < 2 or _region.inside:
        if begin < end:
            body(begin, end)
        return
    size = -(-(end - begin) // threads)
    starts = range(begin + size, end, size)
    finished = SimpleQueue()
    for worker, start in zip(workers(len(starts)), starts):
        worker.take((body, start, min(start + size, end), finished))
    errors = [work_on(body, begin, begin + size), *[finished.get() for _ in starts]]
    for error in filter(None, errors):
        raise error


def work_on(body, begin, end):
    """One piece. Returns the error that it raised, or None."""
    _region.inside = True
    try:
        body(begin, end)
    except BaseException as error:
        return error
    finally:
        _region.inside = False


class Worker:
    """A thread that waits for pieces.

    Note [ A core of its own ]
    Linux likes to wake a thread on the core of the one that woke it, where it would have to wait for the very work that it
    should share. So before a piece is handed over, the worker's affinity excludes the core that its caller runs on.
    """

    def __init__(self):
        self.pieces = SimpleQueue()
        self.keeps_off = None
        thread = threading.Thread(target=self.serve, name="readtorch worker", daemon=True)
        thread.start()
        self.id = thread.native_id

    def take(self, piece):
        core = current_core()
        if core != self.keeps_off and len(_cores) > 1:
            os.sched_setaffinity(self.id, _cores - {core})
            self.keeps_off = core
        self.pieces.put(piece)

    def serve(self):
        while True:
            body, begin, end, finished = self.pieces.get()
            finished.put(work_on(body, begin, end))
            del body, finished  # nothing of the last call stays alive while the thread waits


_workers = []


def workers(count):
    """`count` threads beside the caller's own, made when first needed. See Note [ One pool ]."""
    if not _workers:
        claim_cores()
    while len(_workers) < count:
        _workers.append(Worker())
    return _workers[:count]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_workers.clear)

if hasattr(os, "sched_setaffinity") and hasattr(ctypes.CDLL(None), "sched_getcpu"):
    _cores, current_core = os.sched_getaffinity(0), ctypes.CDLL(None).sched_getcpu
else:
    _cores, current_core = set(), lambda: None
