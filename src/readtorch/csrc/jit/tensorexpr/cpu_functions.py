"""The scalar functions as CPU kernels call them.

`from .cpu_functions import tanh` gives the function `tanh` of `aten/native/math.py`, compiled to
be put in place of its call: `cpu_form` in `aten/native/cpu/loops.py`. The text is the same for both machines.

PyTorch has no such file: the same expression is emitted by `torch/csrc/jit/tensorexpr/llvm_codegen.cpp` for the CPU and
printed by `torch/csrc/jit/tensorexpr/cuda_codegen.cpp` for the GPU.
"""

import types

import numpy as np
from numba import njit

from readtorch.aten.cpu import vec
from readtorch.aten.cpu.compile import kernel
from readtorch.aten.cpu.vec.interleave import interleave  # noqa: F401
from readtorch.aten.native import math as functions
from readtorch.aten.native.cpu.loops import cpu_form
from readtorch.aten.native.cpu.sum_kernel import sum_of  # noqa: F401
from readtorch.c10.codecache import keep

from .llvm_codegen import cache_directory, functions_stamp

STEP = 1024  # so many elements of a row lie in the cache between the pointwise part and the reduction


def inlined_by_llvm(function):
    """A function to be put in place of its call by LLVM: of many functions in one loop numba's own way, which does it with the text, loses
    track of names. It is kept, so that the next kernel that calls it need not compile it.
    """
    made = njit(function, forceinline=True, error_model="numpy", fastmath={"contract"})
    return keep(made, functions_stamp, cache_directory)


def __getattr__(name):
    """The CPU form of the scalar function `name`."""
    function = getattr(functions, name, None)
    if not isinstance(function, types.FunctionType):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return cpu_form(function, inlined_by_llvm)


@kernel
def greatest_of(x):
    """The greatest number, a nan if there is one."""
    most, nans = x[0], 0
    for i in range(x.size):
        most = vec.greater(most, x[i])
        nans += x[i] != x[i]
    return x.dtype.type(np.nan) if nans else most
