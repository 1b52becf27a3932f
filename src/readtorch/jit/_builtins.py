"""Which Python functions are operators: `readtorch.relu` in a program is `aten::relu` in its graph.

In PyTorch: `torch/jit/_builtins.py`. Explained in the chapter "JIT: scripting".
"""

import cmath
import math
import warnings
from collections import OrderedDict
from functools import cache

import readtorch
from readtorch import _C, nn
from readtorch._ops import OpOverloadPacket
from readtorch.nn.modules import utils

_MATH = (
    "ceil copysign erf erfc exp expm1 fabs floor gamma lgamma log log10 log1p pow sqrt isnan asinh atanh "
    "cosh sinh tanh "
    "acos asin atan atan2 cos sin tan acosh fmod modf factorial frexp isinf isfinite degrees radians ldexp "
    "gcd"
).split()
_CMATH = ("isnan isfinite isinf log log10 sqrt exp sin tan cos asin acos atan sinh tanh cosh asinh acosh atanh").split()
# PyTorch has these in Python, too.
_IN_PYTHON = {
    "unique",
    "cdist",
    "no_grad",
    "enable_grad",
    "set_grad_enabled",
    "inference_mode",
    "autocast",
    "unravel_index",
}


def _pairs():
    """(function, name of the operator)"""
    for name in _MATH:
        yield getattr(math, name), f"aten::{name}"
    for name in _CMATH:
        yield getattr(cmath, name), f"aten::{name}"
    yield from [
        (cmath.phase, "aten::angle"),
        (cmath.rect, "aten::polar"),
        (OrderedDict, "aten::dict"),
        (dict, "aten::dict"),
        (warnings.warn, "aten::warn"),
        (utils._single, "aten::_single"),
        (utils._pair, "aten::_pair"),
        (utils._triple, "aten::_triple"),
        (utils._quadruple, "aten::_quadruple"),
        (utils._list_with_default, "aten::list_with_default"),
        (nn.functional.bilinear, "aten::bilinear"),
        (readtorch.jit.is_scripting, "aten::is_scripting"),
        (_C._has_torch_function, "aten::has_torch_function"),
        (_C._has_torch_function_unary, "aten::has_torch_function"),
        (_C._has_torch_function_variadic, "aten::has_torch_function"),
        (readtorch.jit.wait, "aten::wait"),
        (readtorch.autograd.backward, "aten::backward"),
        (readtorch.autograd.grad, "aten::grad"),
    ]
    for name in dir(readtorch):
        value = getattr(readtorch, name)
        if callable(value) and name not in _IN_PYTHON and not isinstance(value, type(readtorch)):
            yield value, f"aten::{name}"
    for module, prefix in (
        (_C._nn, ""),
        (_C._linalg, "linalg_"),
        (readtorch.fft, "fft_"),
        (readtorch.special, "special_"),
    ):
        for name, value in vars(module).items():
            if callable(value) and not name.startswith("__"):
                yield value, f"aten::{prefix}{name.removeprefix(prefix)}"


@cache
def _table():
    found = {}
    for function, name in _pairs():
        found.setdefault(id(function), (name, function))
    return found


def find_builtin(function):
    """The name of the operator that a Python function is, or None."""
    if isinstance(function, OpOverloadPacket):
        return function._qualified_op_name
    name, known = _table().get(id(function), (None, None))
    return name if known is function else None
