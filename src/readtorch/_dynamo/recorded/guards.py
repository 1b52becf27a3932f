"""When a graph may run: conditions on what the function gets and reads, as one Python expression.

    type(x0) is T1 and x0._array.dtype is D2 and … and type(v := H3["steps"]) is int and v == 2 and H4.cell_contents is P5

Guards on arguments: tensors by type, dtype, device, requires_grad, number of dimensions, and shape if the trace has read
sizes; numbers, strings and the like by type and value. Guards on the rest are asked for by `reads.py`, which finds all that
the function may read: each value has one, by value if it is plain or a nest of plain values, by identity if it is a tensor,
a function or a module.

In PyTorch: `torch/_dynamo/guards.py`, checked in C++.
"""

import math

from readtorch.aten.codegen import compile_function
from readtorch.c10 import scalar_type
from readtorch.c10.device import device
from readtorch.c10.dispatch_key import BACKENDS, HISTORY, MATH_BITS
from readtorch.c10.local_dispatch_key_set import DEFAULT_MASK, threads_with_modes, tls
from readtorch.c10.size import Size
from readtorch.c10.tensor_impl import TensorImpl

SIMPLE = (bool, int, float, complex, str, bytes, type(None))  # guarded by type and value
EQUAL = (device, Size, range, slice)  # the same; they are made anew each time
NESTS = (list, tuple, dict, set, frozenset)


def parts_of(value):
    """What a loop over it yields, and for a dictionary the values as well; None if it is not a container."""
    kind = type(value)
    if kind is dict:
        return [*value, *value.values()]
    if kind in (range, slice):  # equal ones may have other ends, or 1.0 for 1
        return value.start, value.stop, value.step
    return value if kind in NESTS else None


def snapshot(value):
    """A nest of plain values with new containers, to be compared by `unchanged`."""
    parts = parts_of(value)
    return type(value), value if parts is None else [snapshot(part) for part in parts]


def unchanged(value, before):
    """Whether `value` is what `snapshot` has seen: plain values by type and value, the others by identity."""
    kind, then = before
    if type(value) is not kind:
        return False
    parts = parts_of(value)
    if parts is not None:
        return len(parts) == len(then) and all(map(unchanged, parts, then))
    if kind in EQUAL:
        return value == then
    return same_number(value, then) if kind in SIMPLE else value is then


def same_number(a, b):
    """Equal values of one type, 0.0 and -0.0 are different."""
    return a == b and (type(a) is not float or a != 0 or math.copysign(1, a) == math.copysign(1, b))


COMMON = {
    "unchanged": unchanged,
    "same_number": same_number,
    "tls": tls,
    "threads_with_modes": threads_with_modes,
    "DEFAULT_MASK": DEFAULT_MASK,
}


class Guards:
    """texts: the conditions; names: what they refer to. explain: the same for a reader."""

    def __init__(self, names=()):
        self.texts, self.explain = [], []
        self.names = dict(names) or dict(COMMON)
        self.known = {}  # id -> name

    def name(self, value, prefix):
        if id(value) not in self.known:
            self.known[id(value)] = name = f"{prefix}{len(self.names)}"
            self.names[name] = value
        return self.known[id(value)]

    def add(self, text, shown):
        self.texts.append(text)
        self.explain.append(shown)

    # ---------------------------------------------------------------------------------------------- arguments

    def argument(self, path, shown, value, static):
        """path: the expression that gives it inside the check."""
        if isinstance(value, TensorImpl):
            self.tensor(path, shown, value, static)
        else:
            self.plain(path, shown, value)

    def tensor(self, path, shown, t, static):
        array = t._array
        self.add(f"type({path}) is {self.name(type(t), 'T')}", f"type({shown}) is {type(t).__name__}")
        self.add(f"{path}._array.dtype is {self.name(array.dtype, 'D')}", f"{shown}.dtype is {t.dtype}")
        if static:
            self.add(f"{path}._array.shape == {array.shape}", f"{shown}.shape == {list(array.shape)}")
        else:
            self.add(f"{path}._array.ndim == {array.ndim}", f"{shown}.dim() == {array.ndim}")
        kept = BACKENDS | HISTORY | MATH_BITS
        self.add(
            f"{path}._keys & {kept} == {t._keys & kept}", f"{shown}: device {t.device}, requires_grad {t.requires_grad}"
        )

    # ----------------------------------------------------------------------------------------- any other value

    def plain(self, path, shown, value):
        """By identity what there is only one of, by type and value what is a number, a string and the like."""
        kind = type(value)
        if value is None or kind is bool:
            self.add(f"{path} is {value}", f"{shown} == {value!r}")
        elif kind in (int, str):
            self.add(f"type(v := {path}) is {kind.__name__} and v == {value!r}", f"{shown} == {value!r}")
        elif kind in SIMPLE:
            v = self.name(value, "V")
            self.add(f"type(v := {path}) is {kind.__name__} and same_number(v, {v})", f"{shown} == {value!r}")
        elif kind in (device, Size):
            self.add(
                f"type(v := {path}) is {self.name(kind, 'T')} and v == {self.name(value, 'V')}", f"{shown} == {value!r}"
            )
        elif (
            kind in (range, slice)
            or kind in NESTS
            and not (kind is tuple and all(type(part) in SIMPLE for part in value))
        ):
            self.names[before := f"N{len(self.names)}"] = snapshot(value)
            self.add(f"unchanged({path}, {before})", f"{shown} holds what it held")
        else:
            self.add(f"{path} is {self.name(value, 'V')}", f"{shown} is the same {kind.__name__}")

    def read(self, source):
        """The expression that reads a source."""
        return source.text(self.name(source.holder, "H"))

    def value(self, source, value):
        """The value of a source is `value` itself."""
        self.plain(self.read(source), source.name, value)

    def same_tensor(self, source, tensor):
        self.add(f"{self.read(source)} is {self.name(tensor, 'P')}", f"{source.name} is the same tensor")

    def absent(self, name, holder, key):
        self.add(f"{key!r} not in {self.name(holder, 'H')}", f"{name} is no other")

    # ---------------------------------------------------------------------------------------------- the thread

    def modes(self):
        """Grad mode, and what else a thread may have switched on."""
        self.add(f"(tls.mask if threads_with_modes else DEFAULT_MASK) == {tls.mask}", f"grad mode is {tls.grad_mode}")

    def defaults(self):
        """The dtype and device of tensors for which none is named."""
        module = self.name(scalar_type, "H")
        self.add(
            f"{module}._default is {self.name(scalar_type.get_default_dtype(), 'V')}", "the default dtype is the same"
        )

    def expression(self):
        return " and ".join(f"({text})" if " and " in text else text for text in self.texts) or "True"

    def function(self):
        """A function without arguments that says whether all hold."""
        source = (
            f"def holds():\n    try:\n        return {self.expression()}\n    except Exception:\n        return False\n"
        )
        return compile_function("holds", source, dict(self.names))

    def first_that_fails(self, **arguments):
        """What is reported of the first condition that does not hold; None if all hold."""
        for text, shown in zip(self.texts, self.explain):
            try:
                if not eval(text, {**self.names, **arguments}):
                    return shown
            except Exception:
                return shown
        return None
