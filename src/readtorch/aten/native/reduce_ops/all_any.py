"""Truth values reduced: all, any, count_nonzero.

In PyTorch: `aten/src/ATen/native/ReduceOps.cpp`.
"""

import numpy as np

from readtorch.aten.native.reduce_ops_utils import axes_along, reduced_axes, reduction_meta
from readtorch.aten.native.tensor_iterator import wrap_reduced
from readtorch.aten.native_function import BOTH, native_function
from readtorch.c10 import scalar_type
from readtorch.c10.tensor_impl import dtype_of, type_name

from .sum import add_up

# -------------------------------------------------------------------------------------------- all, any, count


def truth_of(name, ufunc):
    """Declare all or any: over everything, one dim, or several dims.

    uint8 answers in uint8, the rest in bool.
    """
    of_all = native_function(f"{name}(Tensor self) -> Tensor", BOTH, out=True)
    of_dim = native_function(f"{name}.dim(Tensor self, int dim, bool keepdim=False) -> Tensor", BOTH, out=True)
    of_dims = native_function(
        f"{name}.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor", BOTH, out=True
    )

    def truth_meta(self, axes, keepdim):
        return reduction_meta(
            self, axes, keepdim, scalar_type.uint8 if self._array.dtype == np.uint8 else scalar_type.bool
        )

    of_all.meta(lambda self: truth_meta(self, axes_along(self, None), False))
    of_dim.meta(lambda self, dim, keepdim: truth_meta(self, axes_along(self, dim), keepdim))
    of_dims.meta(lambda self, dim, keepdim: truth_meta(self, axes_of(self, dim), keepdim))

    def reduce(self, axes, keepdim):
        x = self._array
        truth = ufunc.reduce(x if x.dtype.kind != "V" else x != 0, axes, np.bool_, None, keepdim)
        return wrap_reduced(truth.astype(np.uint8) if x.dtype == np.uint8 else truth)

    of_all.kernel(lambda self: reduce(self, None, False))
    of_dim.kernel(lambda self, dim, keepdim: reduce(self, axes_along(self, dim), keepdim))
    of_dims.kernel(lambda self, dim, keepdim: reduce(self, axes_of(self, dim), keepdim))

    def must_be_bool(i, out, result, inputs):
        if dtype_of(out) not in (scalar_type.bool, scalar_type.uint8):
            raise RuntimeError(f"{name} only supports bool tensor for result, got: {type_name(out)}")

    of_all.out_check = of_dim.out_check = of_dims.out_check = must_be_bool


def axes_of(t, dim):
    """Unlike for a sum, no dims are none."""
    return () if dim is not None and not dim else reduced_axes(t, dim)


truth_of("all", np.logical_and)
truth_of("any", np.logical_or)

count_nonzero = native_function("count_nonzero(Tensor self, int? dim=None) -> Tensor", BOTH)
count_nonzero_dims = native_function("count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor", BOTH)


@count_nonzero_dims.meta
def count_nonzero_meta(self, dim):
    return reduction_meta(self, reduced_axes(self, dim), False, scalar_type.int64)


@count_nonzero_dims.kernel
def count_nonzero_dims_cpu(self, dim):
    return wrap_reduced(add_up(self._array != 0, reduced_axes(self, dim), np.int64))


@count_nonzero.meta
def count_nonzero_along_meta(self, dim):
    return reduction_meta(self, axes_along(self, dim), False, scalar_type.int64)


@count_nonzero.kernel
def count_nonzero_cpu(self, dim):
    return count_nonzero_dims_cpu(self, () if dim is None else (dim,))
