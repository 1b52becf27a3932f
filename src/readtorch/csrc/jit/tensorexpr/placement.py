"""How operands of any shape and strides are laid over the loop.

A flat loop wants arrays of one shape without gaps. For anything else the result's dimensions are cut in
two, outer ones and inner ones, so that each operand is

    full      as large as the result             row       the same for all outer positions (a bias)
    one       a single element                   column    the same for all inner positions (a scale a row)

and the loop is two loops. An operand that is none of these is copied to full size first.

PyTorch has no such file: its fuser computes an offset from sizes and strides for every element
(`torch/csrc/jit/tensorexpr/kernel.cpp`).
"""

import math

import numpy as np


def memory_order(array):
    """The dimensions of an array, the one with the largest stride first; equal strides keep their order."""
    return sorted(range(array.ndim), key=lambda d: -array.strides[d] if array.shape[d] != 1 else -math.inf)


class Placement:
    """shape: the result's. order: its dimensions as they lie in memory. cut: how many are outer ones."""

    def __init__(self, shape, order, cut, shapes):
        self.shape, self.order = shape, order
        permuted = [shape[d] for d in order]
        self.rows, self.n = math.prod(permuted[:cut]), math.prod(permuted[cut:])
        self.permuted = permuted
        self.inverse = np.argsort(order).tolist() if len(order) else []
        self.plain = list(order) == sorted(order)
        self.kinds = [self._kind(self._aligned(s), cut) for s in shapes]

    def _aligned(self, shape):
        """An operand's sizes, in the result's order."""
        padded = (1,) * (len(self.shape) - len(shape)) + tuple(shape)
        return [padded[d] for d in self.order]

    def _kind(self, sizes, cut):
        outer, inner = sizes[:cut], sizes[cut:]
        if sizes == self.permuted:
            return "full"
        if all(n == 1 for n in sizes):
            return "one"
        if all(n == 1 for n in outer) and inner == self.permuted[cut:]:
            return "row"
        if all(n == 1 for n in inner) and outer == self.permuted[:cut]:
            return "column"
        return "copied"

    def copies(self):
        return self.kinds.count("copied")

    def is_flat(self):
        return self.rows == 1 and all(kind in ("full", "row", "one") for kind in self.kinds)

    def place(self, array, kind):
        """The operand as the loop takes it: contiguous, with two, one or no dimensions."""
        if kind == "one":
            return array.reshape(())
        if not self.plain or kind == "copied":
            array = array.reshape((1,) * (len(self.shape) - array.ndim) + array.shape)
            if kind == "copied":
                array = np.broadcast_to(array, self.shape)
            array = array.transpose(self.order)
        target = {"row": (self.n,), "column": (self.rows,)}.get(kind, (self.rows, self.n))
        return np.ascontiguousarray(array.reshape(target))

    def restore(self, result):
        """A full result of the loop in the shape and memory order that the operator gives it."""
        if self.plain:
            return result.reshape(self.shape)
        return result.reshape(self.permuted).transpose(self.inverse)


def best_placement(shape, order, shapes, cut=None):
    """The Placement with the fewest copies, then the longest rows. cut: the only one that will do."""
    cuts = range(max(len(shape), 1)) if cut is None else [cut]
    return min((Placement(shape, order, c, shapes) for c in cuts), key=lambda p: (p.copies(), p.rows))
