"""What formulas of derivatives share.

In PyTorch: `torch/csrc/autograd/FunctionsManual.cpp`. Explained in the chapter "Forward mode, vmap and torch.func".
"""

from readtorch.aten.functions import at
from readtorch.aten.native.reduce_ops_utils import unreduce


def scaled_by(t, factor):
    """`factor * t`. In PyTorch: `maybe_multiply`."""
    return t if factor == 1 else t * factor


def as_numbers_of(result, t):
    """The real part of `t` if `result` is real, else `t`. In PyTorch: `handle_r_to_c`."""
    return at.real(t) if t.dtype.is_complex and not result.dtype.is_complex else t


# ---------------------------------------------------------------------------------------- elements that are chosen


def gathered(t, dim, indices, keepdim=True):
    """What the tangent `t` has at the places that an operator chose along `dim`."""
    if keepdim or not t._array.ndim:
        return t.gather(dim, indices)
    return t.gather(dim, indices.unsqueeze(dim)).squeeze(dim)


def evenly_read(self_t, self_p, result):
    """The mean tangent of the elements that are equal to the result."""
    mask = self_p == result
    return (mask * (self_t / mask.sum())).sum()


def evenly_read_along(self_p, self_t, result, dim, keepdim):
    """The same for a reduction of some dimensions. In PyTorch: `amaxamin_jvp`."""
    mask = self_p == unreduce(result, self_p._array.shape, dim, keepdim)
    return (at.where(mask, self_t, 0) / mask.sum(dim, True)).sum(dim, keepdim)


# ------------------------------------------------------------------------------------------ logarithms of sums


def logsumexp_jvp(self_p, self_t, dim, keepdim):
    """The mean of the tangents, weighted with the exponentials; these are taken relative to the largest."""
    largest = at.amax(at.real(self_p) if self_p.dtype.is_complex else self_p, dim, True)
    largest = largest.masked_fill(largest.abs() == float("inf"), 0)
    weights = (self_p - largest).exp()
    return (weights * self_t).sum(dim, keepdim) / weights.sum(dim, keepdim)
