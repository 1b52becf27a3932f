"""What all normalizations share: which types may be mixed, and the second derivative.

Note [ Normalizations ]
Every one of them is y = (x - mean) · rstd · weight + bias, where rstd = 1 / √(variance + eps). They differ in
what shares a mean: the elements of a channel (batch norm), of a channel of one example (instance norm), of a
group of channels (group norm), of the last dimensions (layer norm). With x̂ = (x - mean) · rstd, the gradient
for x is

    rstd · (g - mean of g - x̂ · mean of (g · x̂))        where g = the gradient for y, times weight

which is g without what would only move the mean or the deviation: those are fixed again in the next forward.

In PyTorch: `aten/src/ATen/native/cpu/mixed_data_type.h`, `torch/csrc/autograd/FunctionsManual.cpp`.
Explained in the chapter on normalization.
"""
import numpy as np

from ...c10.scalar_type import SCALAR_TYPE_NAMES
from ...c10.tensor_impl import TensorImpl, dtype_of
from .tensor_iterator import F4, F8, WIDENED

# Compiled loops serve from so many numbers on: fewer are not worth loading the compiler for.
FROM_SIZE = 256
# So many numbers are work enough for a thread.
PIECE = 65536


def loops_serve(x, *parameters):
    """Whether the loops in `cpu/` can take these arrays (None for one that is not there)."""
    if x.size < FROM_SIZE or x.dtype is not F4 and x.dtype is not F8:
        return False
    for p in parameters:
        if p is not None and (p.dtype is not x.dtype or not p.flags.c_contiguous):
            return False
    return True


def filled(parameter, number, like, size):
    """A weight or bias as a vector: one that is not there is 1 or 0 everywhere."""
    return np.full(size, number, like.dtype) if parameter is None else parameter.reshape(-1)


def are_plain(input, weight, bias, sizes, eps):
    """Whether these arguments need no conversion, so that a call may skip the argument parser."""
    return (isinstance(input, TensorImpl) and (weight is None or isinstance(weight, TensorImpl))
            and (bias is None or isinstance(bias, TensorImpl)) and type(eps) is float
            and type(sizes) is tuple and all([type(n) is int for n in sizes]))


def statistics_type(input, *parameters):
    """The NumPy dtype of mean and rstd: the input's, but float32 where a 16-bit input has float32 parameters.

    Raises RuntimeError for any other mixture.
    """
    own = input._array.dtype
    for p in parameters:
        if p is not None and p._array.dtype is not own:
            return type_of_mixture(input, [p for p in parameters if p is not None])
    return own


def type_of_mixture(input, given):
    own = input._array.dtype
    if given[0]._array.dtype is not own:
        if any([p._array.dtype is not F4 for p in given]):
            raise RuntimeError("mixed dtype (CPU): expect parameter to have scalar type of Float")
        if own not in WIDENED:
            raise RuntimeError("mixed dtype (CPU): all inputs must share same datatype.")
        return F4
    other = next(p for p in given if p._array.dtype is not own)
    raise RuntimeError(f"expected scalar type {SCALAR_TYPE_NAMES[dtype_of(input)]} but found "
                       f"{SCALAR_TYPE_NAMES[dtype_of(other)]}")


def without_projections(v, xhat, mean):
    """v without its component along (1, …, 1) and along x̂. See Note [ Normalizations ]."""
    return v - mean(v) - xhat * mean(v * xhat)


def plus(a, b):
    return b if a is None else a + b


class SecondDerivative:
    """The gradients of a normalization's backward: dx = P(dy · w), dw = Σ dy · x̂, db = Σ dy.

    P v is rstd · v without its projections; it is its own transpose. `mean`, `rstd`, `weight` and the
    gradients `to_dw` and `to_db` of dw and db must broadcast against `input`. over: the dimensions that share
    a mean; None if the mean was given, so that P v is rstd · v. rows: those over which dw and db are sums.
    """

    def __init__(self, dy, input, mean, rstd, weight, over, rows):
        self.dy, self.rstd, self.weight, self.over, self.rows = dy, rstd, weight, over, rows
        self.xhat = (input - mean) * rstd

    def mean(self, v):
        return v.mean(self.over, True)

    def project(self, v):
        return self.rstd * (v if self.over is None else without_projections(v, self.xhat, self.mean))

    def scale(self, v):
        return v if self.weight is None else v * self.weight

    def through_dx(self, to_dx):
        """What flows back to dy, the input and the weight, if `to_dx` is the gradient of dx."""
        projected = self.project(to_dx)
        for_weight = None if self.weight is None else self.sum(self.dy * projected)
        for_input = None if self.over is None else self.through_statistics(to_dx)
        return self.scale(projected), for_input, for_weight

    def through_statistics(self, to_dx):
        """P itself depends on the input, through x̂ and rstd."""
        a, g, xhat = to_dx, self.scale(self.dy), self.xhat
        c, d = self.mean(g * xhat), self.mean(a * xhat)
        agreement = self.mean(a * g) - self.mean(a) * self.mean(g) - c * d
        return -self.project(self.rstd * (g * d + a * c)) - self.rstd * self.rstd * xhat * agreement

    def sum(self, v):
        return v.sum(self.rows) if self.rows else v

    def gradients(self, to_dx, to_dw, to_db):
        """For dy, the input, the weight; each None if nothing flows there."""
        for_dy = for_input = for_weight = None
        if to_dx is not None:
            for_dy, for_input, for_weight = self.through_dx(to_dx)
        if to_dw is not None:
            for_dy = plus(for_dy, self.xhat * to_dw)
            for_input = plus(for_input, self.project(to_dw * self.dy))
        if to_db is not None:
            for_dy = plus(for_dy, to_db.expand(self.dy.shape))
        return for_dy, for_input, for_weight
