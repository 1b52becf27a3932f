"""Written in the chapter "One operator call": its cells are this file, put together by `tools/mini.py`."""

import functools
import threading

import numpy as np

from .tensor import infer_size
from .tensor_impl import ADINPLACEORVIEW, AUTOGRAD, CONJUGATE, CPU, Tensor

# A key that no tensor carries: a thread adds it.
TRACER = 1 << 5
KEYS = [TRACER, AUTOGRAD, ADINPLACEORVIEW, CONJUGATE, CPU]


def below(key):
    """All keys of lower priority."""
    return key - 1


class Thread(threading.local):
    """What is added to the keys of each call, and taken away."""

    included = excluded = 0


thread = Thread()


class Guard:
    """Other sets for the thread, for the length of a `with`."""

    def __init__(self, include=0, exclude=0):
        self.include, self.exclude = include, exclude

    def __enter__(self):
        self.before = thread.included, thread.excluded
        thread.included |= self.include
        thread.excluded |= self.exclude

    def __exit__(self, *error):
        thread.included, thread.excluded = self.before


# key: kernel(operator, keys, *args), for operators without one
fallbacks = {}


def fallthrough(*args):
    """An entry that is never called: go on to the next key."""


class Operator:
    def __init__(self, name):
        self.name, self.kernels = name, {}

    def impl(self, key):
        """Registers kernel(keys, *args) for a key."""
        def register(kernel):
            self.kernels[key] = kernel
            return kernel
        return register

    def entry(self, key):
        kernel = self.kernels.get(key)
        if kernel is None and key in fallbacks:
            kernel = fallbacks[key]
            if kernel is not fallthrough:
                kernel = functools.partial(kernel, self)
        return kernel

    def mask(self):
        """The keys at which there is something to call."""
        entries = {key: self.entry(key) for key in KEYS}
        return sum(key for key, kernel in entries.items()
                   if kernel is not fallthrough)

    def __call__(self, *args):
        keys = thread.included
        for a in args:
            keys |= a.keys
        keys = keys & ~thread.excluded & self.mask()
        return self.redispatch(keys, *args)

    def redispatch(self, keys, *args):
        highest = 1 << keys.bit_length() >> 1
        kernel = self.entry(highest)
        if kernel is None:
            raise RuntimeError(f"Could not run '{self.name}' "
                               f"with the key {highest}")
        return kernel(keys, *args)


def numbers(t):
    """What the memory holds, whatever the keys say."""
    return t.storage.bytes.view(t.dtype)[t.places()]


def put(t, values):
    t.storage.bytes.view(t.dtype)[t.places()] = values
    return t


def lined_up(a, b, shape):
    if a.dtype != b.dtype:
        raise TypeError(f"{a.dtype} and {b.dtype}: not in mini")
    return [numbers(t.expand(*shape)) for t in (a, b)]


def arithmetic(name, function):
    """An operator and its in-place form, for the CPU."""
    op, op_ = Operator(name), Operator(f"{name}_")

    @op.impl(CPU)
    def make(keys, a, b):
        shape = infer_size(a.shape, b.shape)
        return Tensor.of(function(*lined_up(a, b, shape)))

    @op_.impl(CPU)
    def write(keys, a, b):
        return put(a, function(*lined_up(a, b, a.shape)))

    @op_.impl(ADINPLACEORVIEW)
    def count(keys, a, b):
        op_.redispatch(keys & below(ADINPLACEORVIEW), a, b)
        a.counter[0] += 1
        return a

    return op, op_


add, add_ = arithmetic("add", np.add)
mul, mul_ = arithmetic("mul", np.multiply)


def materialize(op, keys, *args):
    """Lazy conjugates become numbers; the call goes on."""
    plain = [Tensor.of(a.read()) if a.keys & CONJUGATE else a
             for a in args]
    made = op.redispatch(keys & below(CONJUGATE), *plain)
    if op.name.endswith("_") and args[0].keys & CONJUGATE:
        made = put(args[0], np.conj(numbers(made)))
    return made


fallbacks[CONJUGATE] = materialize
fallbacks[ADINPLACEORVIEW] = fallthrough
fallbacks[AUTOGRAD] = fallthrough


class Tensor(Tensor):
    """Its arithmetic goes through the dispatcher."""

    def other(self, b):
        if isinstance(b, Tensor):
            return b
        return Tensor.of(b, np.result_type(self.dtype, b))

    def __add__(self, b):
        return add(self, self.other(b))

    def __mul__(self, b):
        return mul(self, self.other(b))

    def __iadd__(self, b):
        return add_(self, self.other(b))

    def __imul__(self, b):
        return mul_(self, self.other(b))
