"""Written in the chapter "Forward mode, vmap and torch.func": its cells are this file, put together by `tools/mini.py`."""

import numpy as np

from .dispatcher import KEYS, Guard, Tensor, add, fallbacks, mul, thread
from .modes import innermost

TRANSFORM = 1 << 6
KEYS.insert(0, TRANSFORM)
levels = []  # transforms under way, the last opened last


class Box(Tensor):
    """A tensor as one level sees it: a value, and a note."""

    def __init__(self, level, value, note, shape):
        self.level, self.value, self.note = level, value, note
        self.shape, self.dtype = shape, value.dtype
        self.keys = value.keys

    def __repr__(self):
        kind = type(self.level).__name__
        parts = [t.tolist() if type(t) is Tensor else t
                 for t in (self.value, self.note)]
        return f"{kind}{tuple(parts)}"


class Level:
    def __enter__(self):
        levels.append(self)
        self.guard = Guard(include=TRANSFORM)
        self.guard.__enter__()
        return self

    def __exit__(self, *error):
        self.guard.__exit__()
        levels.pop()

    def open(self, t):
        """The value in a box of this level, and its note."""
        if isinstance(t, Box) and t.level is self:
            return t.value, t.note
        return t, None


def transform(op, keys, *args):
    """The last level answers; it is off the stack then."""
    with innermost(levels) as level, Guard():
        if not levels:
            thread.included &= ~TRANSFORM
        opened = [level.open(a) for a in args]
        if all(note is None for value, note in opened):
            return op(*args)
        return level.rule(op, *opened)


fallbacks[TRANSFORM] = transform


class Forward(Level):
    """Notes the tangent of each value."""

    def box(self, value, tangent):
        return Box(self, value, tangent, value.shape)

    def rule(self, op, a, b):
        (a, da), (b, db) = [(v, zeros(v) if dv is None else dv)
                            for v, dv in (a, b)]
        if op is add:
            return self.box(add(a, b), add(da, db))
        if op is mul:
            return self.box(mul(a, b),
                            add(mul(da, b), mul(a, db)))
        raise NotImplementedError(f"{op.name} has no rule")


def zeros(t):
    return Tensor.of(np.zeros(t.shape, t.dtype))


def jvp(f, x, tangent):
    with Forward() as level:
        out = f(level.box(x, tangent))
    value, moved = level.open(out)
    return value, zeros(value) if moved is None else moved


class Batch(Level):
    """Notes that dimension 0 of a value is the batch."""

    def box(self, value):
        return Box(self, value, 0, value.shape[1:])

    def rule(self, op, *opened):
        rank = max(len(value.shape) - (note == 0)
                   for value, note in opened)
        return self.box(op(*[
            value if note is None else padded(value, rank)
            for value, note in opened]))


def padded(t, rank):
    """Ones behind dimension 0: `rank` others follow it."""
    ones = (1,) * (1 + rank - len(t.shape))
    return reshaped(t, (t.shape[0], *ones, *t.shape[1:]))


def reshaped(t, shape):
    """A view of another shape, in every box."""
    if not isinstance(t, Box):
        return t.view(*shape)
    if isinstance(t.level, Forward):
        return t.level.box(reshaped(t.value, shape),
                           reshaped(t.note, shape))
    whole = (t.value.shape[0], *shape)
    return t.level.box(reshaped(t.value, whole))


def vmap(f):
    def mapped(x):
        with Batch() as level:
            out = f(level.box(x))
        value, note = level.open(out)
        return value if note == 0 else repeated(value, x.shape[0])
    return mapped


def repeated(t, size):
    """The same for each sample: broadcast with zeros."""
    shape = (size, *[1] * len(t.shape))
    return add(t, Tensor.of(np.zeros(shape, t.dtype)))
