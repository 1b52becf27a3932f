"""Settings as attributes of a module: asked for, and checked when they are set.

In PyTorch: `ContextProp`, `PropModule` and `_FP32Precision` in `torch/backends/__init__.py`.
"""

import contextlib
import types

from readtorch.aten.context import check_bool, context
from readtorch.aten.float32_precision import float32_precision


class Frozen:
    """Whether settings may be changed by `with flags(…)` alone: a test suite that forgets none wants that."""

    frozen = False


def disable_global_flags():
    """From now on settings of `backends` may be changed by `with ….flags(…)` alone."""
    Frozen.frozen = True


@contextlib.contextmanager
def allow_nonbracketed_mutation():
    """Inside, settings may be changed by assignment, frozen or not."""
    before, Frozen.frozen = Frozen.frozen, False
    try:
        yield
    finally:
        Frozen.frozen = before


def flags_frozen():
    """Whether `disable_global_flags` was called."""
    return Frozen.frozen


class ContextProp:
    """An attribute of a module: `getter()` gives it, `setter(value)` changes it. RuntimeError while settings are frozen."""

    def __init__(self, getter, setter):
        self.getter, self.setter = getter, setter

    def __get__(self, module, kind):
        return self.getter()

    def __set__(self, module, value):
        if Frozen.frozen:
            name = module.__name__.replace("readtorch", "torch", 1)
            raise RuntimeError(
                f"not allowed to set {name} flags after disable_global_flags; please use flags() context manager instead"
            )
        self.setter(value)


class PropModule(types.ModuleType):
    """A module with such attributes."""


def setting(name, setter_says):
    """The attribute for a bool of the context."""

    def change(value):
        check_bool(value, setter_says)
        setattr(context, name, value)

    return ContextProp(lambda: getattr(context, name), change)


def precision(backend, op):
    """The attribute `fp32_precision`."""
    get = lambda: float32_precision.get(backend, op)
    return ContextProp(get, lambda value: set_precision(backend, op, value))


def set_precision(backend, op, value):
    if not isinstance(value, str):
        raise TypeError(
            "_set_fp32_precision_setter(): incompatible function arguments. The following argument types are supported:\n"
            "    1. (arg0: str, arg1: str, arg2: str) -> str\n\n"
            f"Invoked with: {backend!r}, {op!r}, {value!r}"
        )
    float32_precision.set(backend, op, value)


class FP32Precision:
    """An object with the one attribute `fp32_precision`: "none", "ieee", "tf32" or "bf16"."""

    def __init__(self, backend, op):
        vars(self).update(backend=backend, op=op)

    def __setattr__(self, name, value):
        if name != "fp32_precision":
            raise AttributeError("Unknown attribute " + name)
        set_precision(self.backend, self.op, value)

    def __getattr__(self, name):
        if name != "fp32_precision":
            raise AttributeError("Unknown attribute " + name)
        return float32_precision.get(self.backend, self.op)


def changed(module, **values):
    """Set attributes of a module, frozen or not; what they were. None stands for one that stays as it is."""
    before = {name: getattr(module, name) for name in values}
    was, Frozen.frozen = Frozen.frozen, False
    try:
        for name, value in values.items():
            if value is not None:
                setattr(module, name, value)
    finally:
        Frozen.frozen = was
    return before


@contextlib.contextmanager
def flags_of(module, **values):
    """`with flags(…):` of a module: these values inside, and those of before after it."""
    before = changed(module, **values)
    try:
        yield
    finally:
        changed(module, **before)
