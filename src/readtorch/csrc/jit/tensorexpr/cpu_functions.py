"""The scalar functions as CPU kernels call them.

`from .cpu_functions import tanh` gives the function `tanh` of `aten/native/math.py`, compiled to
be put in place of its call, with `aten/cpu/vec/vector_math.py` as its `math`. The text is the same for both
machines.

PyTorch has no such file: the same expression is emitted by `torch/csrc/jit/tensorexpr/llvm_codegen.cpp` for the CPU and
printed by `torch/csrc/jit/tensorexpr/cuda_codegen.cpp` for the GPU.
"""

import functools
import types

import numpy as np
from numba import njit

from readtorch.aten.cpu import vec
from readtorch.aten.cpu.compile import kernel
from readtorch.aten.cpu.vec import vector_math
from readtorch.aten.cpu.vec.interleave import interleave  # noqa: F401
from readtorch.aten.native import math as functions
from readtorch.aten.native.cpu.sum_kernel import sum_of  # noqa: F401
from readtorch.c10.cuda.compile import Intrinsic
from readtorch.c10.global_names import names_in

STEP = 1024  # so many elements of a row lie in the cache between the pointwise part and the reduction


@functools.cache
def cpu_form(function):
    """`function`, and what it calls, for compiled loops."""
    used = names_in(function.__code__) & function.__globals__.keys()
    names = {name: _value(function.__globals__[name]) for name in used}
    remade = types.FunctionType(function.__code__, names, function.__name__, function.__defaults__)
    remade.__module__ = __name__
    return njit(forceinline=True, error_model="numpy", fastmath={"contract"})(remade)


def _value(value):
    if value is functions.math:
        return vector_math
    if value is functions.logistic:
        return vec.sigmoid  # with a quicker exp: 1 + eˣ feels no difference
    if isinstance(value, Intrinsic):
        return value.simulated  # a function of NumPy
    return cpu_form(value) if isinstance(value, types.FunctionType) else value


def __getattr__(name):
    """The CPU form of the scalar function `name`."""
    function = getattr(functions, name, None)
    if not isinstance(function, types.FunctionType):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return cpu_form(function)


@kernel
def greatest_of(x):
    """The greatest number, a nan if there is one."""
    most, nans = x[0], 0
    for i in range(x.size):
        most = vec.greater(most, x[i])
        nans += x[i] != x[i]
    return x.dtype.type(np.nan) if nans else most
