"""Written in the chapter "The tensor as an object": its cells are this file, put together by `tools/mini.py`."""

import numpy as np

from .tensor import Tensor

# Keys: facts about a tensor, one bit each.
# (1 << 1 is left for a key of chapter 5.)
CPU, CONJUGATE = 1 << 0, 1 << 2
ADINPLACEORVIEW, AUTOGRAD = 1 << 3, 1 << 4


class AutogradMeta:
    """What autograd knows of a tensor; most tensors have none."""

    def __init__(self):
        self.requires_grad = False
        self.grad = self.grad_fn = None


class Tensor(Tensor):
    """It counts writes, has keys, and knows autograd."""

    def __init__(self, *parts):
        super().__init__(*parts)
        self.counter = [0]
        self.keys = CPU | ADINPLACEORVIEW | AUTOGRAD
        self.meta = None

    @classmethod
    def of(cls, data, dtype=None):
        made = super().of(data, dtype)
        made.counter[0] = 0  # the first filling is no change
        return made

    def as_strided(self, *layout):
        view = super().as_strided(*layout)
        view.counter, view.keys = self.counter, self.keys
        return view

    def detach(self):
        return self.as_strided(self.shape, self.strides)

    def conj(self):
        if self.dtype.kind != "c":
            return self
        view = self.as_strided(self.shape, self.strides)
        view.keys ^= CONJUGATE
        return view

    def read(self):
        values = super().read()
        if self.keys & CONJUGATE:
            values = np.conj(values)
        return values

    def write(self, values):
        if self.keys & CONJUGATE:
            values = np.conj(values)
        super().write(values)
        self.counter[0] += 1
        return self

    @property
    def requires_grad(self):
        return bool(self.meta and self.meta.requires_grad)

    def requires_grad_(self, flag=True):
        if flag and self.meta is None:
            self.meta = AutogradMeta()
        if self.meta is not None:
            self.meta.requires_grad = flag
        return self
