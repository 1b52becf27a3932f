"""How a loop becomes a kernel: numba compiles it for this machine when it is first called, and keeps the result on disk.

Note [ Waiting for the compiler ]
A kernel is compiled once for each combination of argument types, by the first call on a machine, and kept in the
user's cache directory (c10/cache_dir_utils.py says which). Importing compiles nothing. If compilation takes longer than
two seconds in one process, a line on stderr says so, once (not if READTORCH_QUIET is set, as the book's build does).

In PyTorch: compiled ahead, three times over, by `aten/src/ATen/native/DispatchStub.h` (plain, AVX2, AVX-512).
"""

import contextlib
import functools
import os
import pathlib
import sys
import threading

from numba import njit
from numba.core import event

from readtorch.c10.codecache import file_digest, keep
from readtorch.c10.python_builtins import pythons_own

# Sums may be taken in any order and a * b + c rounded once; nan, infinities and the sign of zero keep their meaning.
# (Could the sign of zero be lost, LLVM would also drop the c of (x + c) - c, by which vec/ rounds.)
REORDER = {"reassoc", "contract", "arcp"}

COMMON = dict(nogil=True, error_model="numpy")


def kernel(function=None, *, fastmath=False):
    """Compile the loop `function` when it is called. It releases Python's lock, and divides as C does."""
    if function is None:
        return functools.partial(kernel, fastmath=fastmath)
    # A kernel is compiled anew when its own file has changed, or one of those beside this file, which it may call.
    return keep(njit(fastmath=fastmath, **COMMON)(function), shared_stamp)


fast_kernel = functools.partial(kernel, fastmath=REORDER)

# A function of one element, to be called in a kernel's loop. Its body is put in place of the call.
scalar = functools.partial(njit, inline="always", error_model="numpy", fastmath={"contract"})


@functools.cache
def shared_stamp():
    """Changes when a file of this room does."""
    files = sorted(pathlib.Path(__file__).parent.rglob("*.py"))
    return tuple((file.name, file_digest(file)) for file in files)


class Progress(event.Listener):
    """Reports a long wait; compiles with Python's own builtins. See Note [ Waiting for the compiler ]."""

    PATIENCE = 2.0

    def __init__(self):
        self.depth = 0
        self.timer = None
        self.during = contextlib.ExitStack()

    def on_start(self, event):
        self.depth += 1
        if self.depth == 1:
            self.during.enter_context(pythons_own())
        function = event.data["dispatcher"].py_func
        ours = (function.__module__ or "").startswith(("readtorch.", "fused_"))  # the second: the fuser's kernels
        if self.depth == 1 and ours and not os.environ.get("READTORCH_QUIET"):
            self.timer = threading.Timer(self.PATIENCE, self.report, (function.__name__,))
            self.timer.daemon = True
            self.timer.start()

    def on_end(self, event):
        self.depth -= 1
        if self.depth == 0:
            self.during.close()
        if self.depth == 0 and self.timer is not None:
            self.timer.cancel()
            self.timer = None

    @staticmethod
    def report(name):
        print(f"readtorch: compiling the kernel {name} for this machine; it is kept for the next time", file=sys.stderr)


event.register("numba:compile", Progress())
