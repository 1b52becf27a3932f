"""A kernel's function, made anew so that the name `cuda` in it means something else.

Note [ Whose cuda ] A kernel is a plain Python function that says `cuda.threadIdx.x`, where `cuda` is numba's
module. Nothing in the function is bound to that module but the name. So the very same code object runs with
other globals: there `cuda` is the simulator's `Language`, `math` computes in the argument's own precision,
and the device functions that the kernel calls, also through a module or a closure, are remade in the same
way. What numba compiles and what is simulated is one text.

A function that numba makes by other means (an intrinsic, which writes LLVM instructions) names its plain
Python counterpart in the attribute `simulated`.
"""

import functools
import math
import types

import numpy as np

from readtorch.c10.global_names import names_in

from .arithmetic import device_float, device_math

PASSED_ON = {"numpy", "builtins", "operator"}  # modules whose functions mean the same here


def plain(function):
    """The Python function inside what `@cuda.jit` made, or the function itself."""
    return getattr(function, "py_func", function)


class Rebuilder:
    """Remakes one kernel and everything that it reaches, for one launch."""

    def __init__(self, language, wrap_array):
        self.language = language
        self.wrap_array = wrap_array
        self.done = {}

    def function(self, original):
        if original in self.done:
            return self.done[original]
        names = {"__builtins__": {**vars(__import__("builtins")), "float": device_float}}
        remade = types.FunctionType(
            with_device_floats(original.__code__),
            names,
            original.__name__,
            original.__defaults__,
            tuple(types.CellType() for _ in original.__closure__ or ()) or None,
        )
        remade.__kwdefaults__ = original.__kwdefaults__
        self.done[original] = remade  # before looking inside: functions may call one another
        for name in names_in(original.__code__) & original.__globals__.keys():
            names[name] = self.value(name, original.__globals__[name])
        names.setdefault("cuda", self.language)
        for cell, old, name in zip(remade.__closure__ or (), original.__closure__ or (), original.__code__.co_freevars):
            cell.cell_contents = self.value(name, old.cell_contents)
        return remade

    def value(self, name, value):
        """What stands for a global value inside the simulation."""
        if isinstance(value, types.ModuleType):
            return self.module(value)
        if hasattr(value, "simulated"):
            return self.value(name, value.simulated)
        if isinstance(plain(value), types.FunctionType):
            return self.function(plain(value))
        if isinstance(value, np.ndarray):
            return self.wrap_array(value, name, "constant")
        return value

    def module(self, module):
        if module.__name__ == "numba.cuda":
            return self.language
        if module is math:
            return device_math
        return module if module.__name__.split(".")[0] in PASSED_ON else Attributes(self, module)


class Attributes:
    """A module of device functions, seen from inside the simulation."""

    def __init__(self, rebuilder, module):
        self.__dict__.update(_rebuilder=rebuilder, _module=module)

    def __getattr__(self, name):
        value = self._rebuilder.value(name, getattr(self._module, name))
        self.__dict__[name] = value
        return value


@functools.lru_cache(1024)
def with_device_floats(code):
    """The same code, where 2.0 is a float64 as for numba: NumPy would let it be as narrow as its partner."""
    return code.replace(co_consts=tuple(map(device_constant, code.co_consts)))


def device_constant(const):
    if isinstance(const, float):
        return np.float64(const)
    if isinstance(const, tuple):
        return tuple(map(device_constant, const))
    return with_device_floats(const) if isinstance(const, types.CodeType) else const
