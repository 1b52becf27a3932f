"""Truth values reduced: all, any, count_nonzero.

In PyTorch: `aten/src/ATen/native/ReduceOps.cpp`.
"""

import numpy as np

from readtorch.aten.native.tensor_iterator import wrap_reduced
from readtorch.aten.native_function import BOTH, native_function
from readtorch.aten.register_dispatch_key import any_device, write_out
from readtorch.c10 import scalar_type
from readtorch.c10.scalar_type import SCALAR_TYPE_NAMES
from readtorch.c10.tensor_impl import dtype_of

from .sum import add_up, reduced_axes

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

    def reduce(self, axes, keepdim):
        x = self._array
        truth = ufunc.reduce(x if x.dtype.kind != "V" else x != 0, axes, np.bool_, None, keepdim)
        return wrap_reduced(truth.astype(np.uint8) if x.dtype == np.uint8 else truth)

    @of_all.kernel
    def reduce_all(self):
        return reduce(self, None, False)

    @of_dim.kernel
    def reduce_dim(self, dim, keepdim):
        return reduce(self, reduced_axes(self, (dim,)), keepdim)

    @of_dims.kernel
    def reduce_dims(self, dim, keepdim):
        return reduce(self, () if dim is not None and not dim else reduced_axes(self, dim), keepdim)

    for operator in (of_all, of_dim, of_dims):
        out_must_be_bool(operator, name)


def out_must_be_bool(operator, name):
    @operator.out.kernel
    @any_device
    def compute_then_copy(*arguments):
        out = arguments[-1]
        have = dtype_of(out)
        if have not in (scalar_type.bool, scalar_type.uint8):
            raise RuntimeError(f"{name} only supports bool tensor for result, got: {SCALAR_TYPE_NAMES[have]}")
        return write_out(operator.call(*arguments[:-1]), (out,))


truth_of("all", np.logical_and)
truth_of("any", np.logical_or)

count_nonzero = native_function("count_nonzero(Tensor self, int? dim=None) -> Tensor", BOTH)
count_nonzero_dims = native_function("count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor", BOTH)


@count_nonzero_dims.kernel
def count_nonzero_dims_cpu(self, dim):
    return wrap_reduced(add_up(self._array != 0, reduced_axes(self, dim), np.int64))


@count_nonzero.kernel
def count_nonzero_cpu(self, dim):
    return count_nonzero_dims_cpu(self, () if dim is None else (dim,))
