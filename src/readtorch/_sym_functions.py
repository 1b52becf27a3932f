"""Functions of numbers that a trace may leave open. They ask for no value, so no guard is noted.

In PyTorch: `torch/__init__.py`.
"""

from .c10.sym_int import SymBool, SymFloat, SymInt
from .csrc.utils.disable_torch_function import handle_torch_function, has_torch_function


def sym_float(a):
    """a as a float, which a SymInt stays symbolic through."""
    if has_torch_function((a,)):
        return handle_torch_function(sym_float, (a,), a)
    return a.__sym_float__() if isinstance(a, SymInt) else a if isinstance(a, SymFloat) else float(a)


def sym_int(a):
    """a as an int, rounded towards 0."""
    if has_torch_function((a,)):
        return handle_torch_function(sym_int, (a,), a)
    return a.__sym_int__() if isinstance(a, (SymInt, SymFloat)) else int(a)


def sym_max(a, b):
    """The larger of two numbers."""
    if has_torch_function((a, b)):
        return handle_torch_function(sym_max, (a, b), a, b)
    return _extreme("__sym_max__", max, a, b)


def sym_min(a, b):
    """The smaller of two numbers."""
    if has_torch_function((a, b)):
        return handle_torch_function(sym_min, (a, b), a, b)
    return _extreme("__sym_min__", min, a, b)


def _extreme(method, choose, a, b):
    for one, other in ((a, b), (b, a)):
        if isinstance(one, (SymInt, SymFloat)):
            return getattr(one, method)(other)
    return choose(a, b)


def sym_not(a):
    """not a."""
    if has_torch_function((a,)):
        return handle_torch_function(sym_not, (a,), a)
    return a.__sym_not__() if isinstance(a, SymBool) else not a


def sym_ite(b, t, f):
    """t if b else f. A condition that is still open is decided, and noted as a guard. Raises AssertionError for mixed types."""
    if has_torch_function((b, t, f)):
        return handle_torch_function(sym_ite, (b, t, f), b, t, f)
    if not isinstance(b, (SymBool, bool)):
        raise AssertionError(f"expected SymBool or bool, got {type(b)}")
    if type(t) is not type(f):
        raise AssertionError(f"type mismatch: {type(t)} vs {type(f)}")
    return t if b else f


def sym_sum(*args):
    """The sum of numbers, which may be given as one list."""
    if len(args) == 1 and isinstance(args[0], (list, tuple)):
        args = args[0]
    if has_torch_function(args):
        return handle_torch_function(sym_sum, args, args)
    return sum(args)


for _function in (sym_float, sym_int, sym_ite, sym_max, sym_min, sym_not, sym_sum):
    _function.__module__ = "readtorch"  # as graphs name them
