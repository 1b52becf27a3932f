"""Kernels for real GPUs: plain functions handed to numba, with what they call.

Note [ One text, two machines ]
A kernel is a plain function. numba wants every function that it calls to be
marked as a device function; so a kernel is remade with other globals, as for the simulator (Note [ Whose cuda ] in
simulator/rebuild.py): plain functions become `cuda.jit(device=True)`. A function of which Python and the GPU need
different forms is an `Intrinsic`.

numba-cuda compiles to PTX without a GPU; `ptx` is for tests and for reading.

PyTorch has no such file: nvcc compiles its kernels when the library is built.
"""

import functools
import types

from readtorch.c10.global_names import names_in

from .cuda_device_assertion import KernelAssertion


class Intrinsic:
    """A function that exists twice: `simulated` in Python, `device()` as numba makes instructions of it."""

    def __init__(self, simulated, make):
        self.simulated, self.make, self.device = simulated, make, functools.cache(make)
        self.__doc__ = simulated.__doc__


class DeviceFunctions:
    """The functions that one kernel calls, each remade once."""

    def __init__(self):
        self.done = {}

    def remade(self, original):
        """The function with everything that it reaches made fit for numba."""
        names = dict(original.__globals__)
        for name in names_in(original.__code__) & names.keys():
            names[name] = self.value(names[name], original)
        cells = tuple(types.CellType(self.value(cell.cell_contents, original)) for cell in original.__closure__ or ())
        function = types.FunctionType(original.__code__, names, original.__name__, original.__defaults__, cells or None)
        function.__module__ = original.__module__
        return function

    def value(self, value, user):
        """What stands for a value that the function `user` names."""
        if isinstance(value, KernelAssertion):
            return value.within(user.__code__)
        if isinstance(value, Intrinsic):
            return value.device()
        if isinstance(value, types.FunctionType):
            return self.device_function(value)
        return value

    def device_function(self, function):
        from numba import cuda

        if function not in self.done:
            self.done[function] = cuda.jit(device=True, inline="always")(self.remade(function))
        return self.done[function]


@functools.cache
def for_numba(kernel):
    """The kernel as numba can compile it."""
    return DeviceFunctions().remade(kernel)


def bounds_of(kernel):
    """(threads of a block, blocks that a multiprocessor shall hold), if the kernel has that attribute: it is what
    the compiler divides the registers by. In PyTorch: `C10_LAUNCH_BOUNDS`."""
    return getattr(kernel, "launch_bounds", None)


@functools.cache
def compiled(kernel):
    """numba's dispatcher for the kernel: it compiles for each combination of argument types."""
    from numba import cuda

    return cuda.jit(for_numba(kernel), launch_bounds=bounds_of(kernel))


def signature_of(arguments):
    """numba's types of a launch's arguments. A number that is bfloat16 becomes float32: numba takes no other."""
    import ml_dtypes
    import numba
    import numpy as np
    from numba.cuda.np.numpy_support import from_dtype

    def one(value):
        if isinstance(value, np.ndarray):
            layout = "C" if value.flags.c_contiguous else "A"
            return numba.types.Array(from_dtype(value.dtype), value.ndim, layout)
        if isinstance(value, tuple):
            return numba.types.BaseTuple.from_types(tuple(map(one, value)))
        return numba.float32 if isinstance(value, ml_dtypes.bfloat16) else numba.typeof(value)

    return tuple(map(one, arguments))


def ptx(kernel, signature, capability):
    """PTX for a GPU of this compute capability, (8, 0) for example. Needs numba-cuda, no GPU."""
    from numba import cuda

    text, _ = cuda.compile_ptx(for_numba(kernel), signature, cc=capability, launch_bounds=bounds_of(kernel))
    return text
