"""Whether arithmetic takes denormal numbers for zero: a mode of the processor, which each thread has for itself.

In PyTorch: `aten/src/ATen/cpu/FlushDenormal.cpp`.
"""

import ctypes
import platform

from readtorch.aten.context import check_bool

_FLUSH = 1 << 15 | 1 << 6  # bits of the MXCSR register: for results (FTZ), for operands (DAZ)


class _Environment(ctypes.Structure):
    """`fenv_t` of the GNU C library on x86-64: the environment of the x87 unit, then the MXCSR of the vector units."""

    _fields_ = [("x87", ctypes.c_uint32 * 7), ("mxcsr", ctypes.c_uint32)]


def set_flush_denormal(mode):
    """Have this thread's arithmetic on the CPU take denormal numbers for zero, or not. Returns whether it can.

    It can on x86-64 with the GNU C library. Raises RuntimeError unless `mode` is a bool.
    """
    check_bool(mode, "flush_denormal")
    if platform.machine() not in ("x86_64", "AMD64") or platform.libc_ver()[0] != "glibc":
        return False  # in PyTorch: on AArch64, too
    library, environment = ctypes.CDLL("libm.so.6"), _Environment()
    library.fegetenv(ctypes.byref(environment))
    environment.mxcsr = environment.mxcsr | _FLUSH if mode else environment.mxcsr & ~_FLUSH
    return library.fesetenv(ctypes.byref(environment)) == 0
