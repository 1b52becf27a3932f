"""How many threads a kernel may use.

Two libraries have threads of their own: BLAS, and numba for kernels that are written as parallel loops. A number that
is set before a library is loaded is remembered and handed over when it is: `import readtorch` loads neither.

In PyTorch: `aten/src/ATen/Parallel.h`, `ParallelThreadPoolNative.cpp`.
"""
import os
import sys

_chosen = None  # what set_num_threads said; None: every library keeps its own default
_chosen_interop = None


def get_num_threads():
    """The number of threads that one operator may use: by default OMP_NUM_THREADS, or the number of cores."""
    return _chosen or _default()


def set_num_threads(n):
    """Let one operator use `n` threads. Raises RuntimeError unless `n` is a positive int."""
    global _chosen
    _chosen = _positive(n, "set_num_threads")
    library_loaded()


def get_num_interop_threads():
    """The number of threads for operators that run beside each other."""
    # in PyTorch: the pool that torch.jit.fork and the engine use. The threads here are the caller's own.
    return _chosen_interop or _default()


def set_num_interop_threads(n):
    """Set that number, once. Raises RuntimeError the second time."""
    global _chosen_interop
    _positive(n, "set_num_interop_threads")
    if _chosen_interop is not None:
        raise RuntimeError("Error: cannot set number of interop threads after parallel work has started or "
                           "set_num_interop_threads called")
    _chosen_interop = n


def library_loaded():
    """Hand the chosen number to the libraries that are loaded by now; whoever loads one calls this."""
    if _chosen is None:
        return
    import threadpoolctl
    threadpoolctl.threadpool_limits(_chosen, user_api="blas")
    numba = sys.modules.get("numba")
    if numba is not None:
        numba.set_num_threads(min(_chosen, numba.config.NUMBA_NUM_THREADS))


def _default():
    given = os.environ.get("OMP_NUM_THREADS", "")
    return int(given) if given.isdigit() and int(given) else os.cpu_count() or 1


def _positive(n, caller):
    if type(n) is not int:
        raise RuntimeError(f"{caller} expects an int, but got {type(n).__name__}")
    if n <= 0:
        raise RuntimeError(f"{caller} expects a positive integer")
    return n
