"""The cross product of vectors with three elements.

In PyTorch: `aten/src/ATen/native/Cross.cpp`.
"""

import numpy as np

from readtorch.aten.expand_utils import broadcast_shape
from readtorch.aten.native_function import BOTH, native_function
from readtorch.aten.tensor_meta import TensorMeta
from readtorch.c10.exception import warn_once
from readtorch.c10.tensor_impl import wrap
from readtorch.c10.wrap_dim import wrap_dim

from .exact_out import exact_out
from .tensor_iterator import compute, conj, result_type

# ---------------------------------------------------------------------------------------------- cross, vecdot

linalg_cross = native_function(
    "linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor", module="linalg", name="cross", out=exact_out()
)
cross = native_function("cross(Tensor self, Tensor other, int? dim=None) -> Tensor", BOTH, out=exact_out())


@linalg_cross.meta
def linalg_cross_meta(self, other, dim):
    x, y = self._array, other._array
    if x.ndim != y.ndim:
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    axis = wrap_dim(dim, x.ndim)
    if x.shape[axis] != 3 or y.shape[axis] != 3:
        raise RuntimeError(
            f"linalg.cross: inputs dimension {dim} must have length 3. Got {x.shape[axis]} and {y.shape[axis]}"
        )
    return TensorMeta(broadcast_shape(x.shape, y.shape), result_type(self, other))


@linalg_cross.kernel
def linalg_cross_cpu(self, other, dim):
    common = linalg_cross_meta(self, other, dim).dtype
    x, y, axis = self._array, other._array, wrap_dim(dim, self._array.ndim)
    if common.itemsize == 2:  # PyTorch rounds each step of this one to 16 bits
        return wrap(np.ascontiguousarray(np.cross(x.astype(common.numpy), y.astype(common.numpy), axis=axis)))
    return wrap(np.ascontiguousarray(compute(lambda x, y: np.cross(x, y, axis=axis), (x, y), common)))


@linalg_cross.backward
class LinalgCrossBackward0:
    def self(grad, other, dim):
        return linalg_cross.call(conj(other), grad, dim)

    def other(grad, self, dim):
        return linalg_cross.call(grad, conj(self), dim)

    def result(self_p, self_t, other_p, other_t, dim):
        return linalg_cross.call(self_t, other_p, dim) + linalg_cross.call(self_p, other_t, dim)


@cross.compose
def cross_composite(self, other, dim):
    """Without `dim` it looks for the first dimension of size 3."""
    if dim is None:
        warn_once(
            "Using torch.cross without specifying the dim arg is deprecated.\nPlease either pass the dim "
            "explicitly or simply use torch.linalg.cross.\nThe default value of dim will change to agree "
            "with that of linalg.cross in a future release.",
            stacklevel=3,
        )
        dim = next((d for d, n in enumerate(self._array.shape) if n == 3), None)
        if dim is None:
            raise RuntimeError("no dimension of size 3 in input")
    return linalg_cross.call(self, other, dim)
