"""quantile and nanquantile: the value below which a share of the elements lies.

In PyTorch: `aten/src/ATen/native/Sorting.cpp` (`quantile_compute`).
"""
import numpy as np

from ...c10.scalar_type import int64
from ...c10.wrap_dim import wrap_dim
from ..functions import at
from ..native_function import native_function
from .copy import constant_beside
from .exact_out import exact_out

BOTH = "function, method"
INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def check(name, self, q, interpolation):
    if self._array.size == 0:
        raise RuntimeError(f"{name}() input tensor must be non-empty")
    if q._array.ndim > 1:
        raise RuntimeError(f"{name}() q must be a scalar or 1D tensor")
    if self._array.dtype.char not in "fd":
        raise RuntimeError(f"{name}() input tensor must be either float or double dtype")
    if self._array.dtype != q._array.dtype:
        raise RuntimeError(f"{name}() q tensor must be same dtype as the input tensor")
    if interpolation not in INTERPOLATIONS:
        raise RuntimeError(f"{name}() interpolation must be one of linear, lower, higher, midpoint or "
                           "nearest, but "
                           f"got {interpolation}")
    if not ((q._array >= 0) & (q._array <= 1)).all():
        raise RuntimeError(f"{name}() q values must be in the range [0, 1]")


def ranks_of(q, ranked, ignores_nan):
    """The place of each quantile in the sorted rows, as a fraction; a row with nan gives the place of the
    nan.
    """
    unknown = ranked.isnan()
    if ignores_nan:
        return (q * (unknown.logical_not().sum(-1, True) - 1)).clamp_min(0)
    last = ranked._array.shape[-1] - 1
    return (q * last).expand(*ranked._array.shape[:-1], -1).masked_fill(unknown.any(-1, True), last)


def between(ranked, ranks, interpolation):
    """The elements at those places; between two of them as `interpolation` says."""
    rounded = {"lower": at.floor, "higher": at.ceil, "nearest": at.round}.get(interpolation)
    if rounded is not None:
        ranks = rounded(ranks)
    below = ranks.to(int64)
    values = ranked.gather(-1, below)
    if rounded is not None:
        return values
    weights = at.full_like(ranks, 0.5) if interpolation == "midpoint" else ranks - below
    return at.lerp(values, ranked.gather(-1, ranks.ceil().to(int64)), weights)


def compute_quantile(name, self, q, dim, keepdim, interpolation):
    check(name, self, q, interpolation)
    ndim = self._array.ndim
    shape = self._array.shape
    if dim is None or ndim == 0:
        rows, kept = self.flatten(), (1,) * ndim if keepdim else ()
    else:
        dim = wrap_dim(dim, ndim)
        rows = self if dim == ndim - 1 else self.unsqueeze(-1).transpose(dim, -1)
        kept = (*shape[:dim], *((1,) if keepdim else ()), *shape[dim + 1:])
    ranked = rows.sort(-1)[0]
    ranked = ranked.view((*kept, ranked._array.shape[-1]))
    values = between(ranked, ranks_of(q.reshape(-1), ranked, name == "nanquantile"), interpolation)
    if not q._array.ndim:
        return values.squeeze_(-1)
    return values.unsqueeze_(0).transpose_(0, -1).squeeze_(-1)


def overloads(name):
    rest = "int? dim=None, bool keepdim=False, *, str interpolation='linear') -> Tensor"
    general = native_function(f"{name}(Tensor self, Tensor q, {rest}", BOTH, out=True)
    of_number = native_function(f"{name}.scalar(Tensor self, float q, {rest}", BOTH, out=True)
    for operator in (general, of_number):
        exact_out(operator, lambda *_: "quantile() out tensor must be same dtype as the input tensor")

    @general.compose
    def quantile_composite(self, q, dim, keepdim, interpolation):
        return compute_quantile(name, self, q, dim, keepdim, interpolation)

    @of_number.compose
    def quantile_of_number(self, q, dim, keepdim, interpolation):
        if not 0 <= q <= 1:
            raise RuntimeError(f"{name}() q must be in the range [0, 1] but got {q:g}")
        share = constant_beside(self, np.array(q, self._array.dtype if self._array.dtype.kind == "f" else np.float32))
        return general.call(self, share, dim, keepdim, interpolation)


overloads("quantile")
overloads("nanquantile")
