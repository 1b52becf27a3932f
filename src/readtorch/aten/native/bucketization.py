"""Binary search in sorted sequences: searchsorted and bucketize.

In PyTorch: `aten/src/ATen/native/Bucketization.cpp`.
"""

import numpy as np

from readtorch.aten.native_function import native_function
from readtorch.aten.tensor_meta import TensorMeta
from readtorch.c10.exception import warn_once
from readtorch.c10.scalar_type import int32, int64
from readtorch.c10.tensor_impl import type_name, wrap, wrap_result

from .exact_out import exact_out
from .reduce_ops.min_max import comparable
from .tensor_iterator import scalar_tensor

# ------------------------------------------------------------------------------------ searchsorted, bucketize


def type_not_asked_for(out, result, *_):
    return (
        "torch.searchsorted(): output tensor's dtype is wrong, it can only be Int(int32) or Long(int64) depending on "
        f"whether out_int32 flag is True, but we got output tensor's dtype {type_name(out)} and out_int32 flag is "
        f"{result._array.itemsize == 4}"
    )


searchsorted = native_function(
    "searchsorted.Tensor(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, bool right=False, str? "
    "side=None, Tensor? sorter=None) -> Tensor",
    out=exact_out(type_not_asked_for),
)
searchsorted_number = native_function(
    "searchsorted.Scalar(Tensor sorted_sequence, Scalar self, *, bool out_int32=False, bool right=False, str? "
    "side=None, Tensor? sorter=None) -> Tensor",
    out=exact_out(type_not_asked_for),
)
bucketize = native_function(
    "bucketize.Tensor(Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor",
    out=exact_out(type_not_asked_for),
)
bucketize_number = native_function(
    "bucketize.Scalar(Scalar self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor",
    out=exact_out(type_not_asked_for),
)


@searchsorted.meta
def searchsorted_meta(sorted_sequence, self, out_int32, right, side, sorter):
    check_search(sorted_sequence._array, self._array, right, side, sorter)
    return TensorMeta(self._array.shape, int32 if out_int32 else int64)


@searchsorted_number.meta
def searchsorted_number_meta(sorted_sequence, self, out_int32, right, side, sorter):
    return searchsorted_meta(sorted_sequence, scalar_tensor(self), out_int32, right, side, sorter)


@bucketize.meta
def bucketize_meta(self, boundaries, out_int32, right):
    if boundaries._array.ndim != 1:
        raise RuntimeError(f"boundaries tensor must be 1 dimension, but got dim({boundaries._array.ndim})")
    return TensorMeta(self._array.shape, int32 if out_int32 else int64)


@bucketize_number.meta
def bucketize_number_meta(self, boundaries, out_int32, right):
    return bucketize_meta(scalar_tensor(self), boundaries, out_int32, right)


def check_search(sequence, values, right, side, sorter):
    where = "torch.searchsorted(): "
    if side is not None and side not in ("left", "right"):
        raise RuntimeError(f"{where}side can only be 'left' or 'right' but got {side}")
    if side == "left" and right:
        raise RuntimeError(f"{where}side and right can't be set to opposites, got side of left while right was True")
    if sequence.ndim == 0:
        raise RuntimeError(f"{where}boundaries tensor should have positive dimension, but got 0 dimension")
    if values.ndim == 0 and sequence.ndim != 1:
        raise RuntimeError(
            f"{where}input value can be a scalar only when boundaries tensor dimension is 1, but we got "
            f"boundaries tensor dim({sequence.ndim}) and input value's dim({values.ndim}) "
            f"numel({values.size})"
        )
    if sequence.ndim != 1 and sequence.shape[:-1] != values.shape[:-1]:
        raise RuntimeError(
            f"{where}boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries "
            "tensor and input value tensor must match, but we got boundaries tensor "
            f"{list(sequence.shape)} and input value tensor {list(values.shape)}"
        )
    if sorter is not None:
        check_sorter(sequence, sorter, where)


def warn_of_gaps(sequence, values, sorter):
    """Warn, once a program of each of the three, where elements do not lie one after another and are copied."""
    if not values.flags.c_contiguous:
        warn_once(_of_gaps("input value"), stacklevel=6)
    if not sequence.flags.c_contiguous:
        warn_once(_of_gaps("boundary"), stacklevel=6)
    if sorter is not None and not sorter._array.flags.c_contiguous:
        warn_once(_of_gaps("sorter"), stacklevel=6)


def _of_gaps(which):
    return (
        f"torch.searchsorted(): {which} tensor is non-contiguous, this will lower the performance due to extra data copy when converting "
        f"non-contiguous tensor to contiguous, please use contiguous {which} tensor if possible. This message will only appear once per "
        "program."
    )


def check_sorter(sequence, sorter, where):
    if sorter._array.shape != sequence.shape:
        raise RuntimeError(
            f"{where}boundary and sorter must have the same size, but got boundary tensor "
            f"{list(sequence.shape)}and got sorter tensor {list(sorter._array.shape)}"
        )
    if sorter._array.dtype != np.int64:
        raise RuntimeError(f"{where}sorter must be a tensor of long dtype but got dtype {type_name(sorter)}")


@searchsorted.kernel
def searchsorted_cpu(sorted_sequence, self, out_int32, right, side, sorter):
    sequence, values = sorted_sequence._array, self._array
    check_search(sequence, values, right, side, sorter)
    warn_of_gaps(sequence, values, sorter)
    side = side or ("right" if right else "left")
    dtype = np.int32 if out_int32 else np.int64
    if sorter is not None:
        order = sorter._array
        if order.size and not (0 <= order.min() and order.max() < sequence.shape[-1]):
            raise RuntimeError("torch.searchsorted(): sorter index out of range")
        sequence = np.take_along_axis(sequence, order, -1)
    sequence, values = comparable(sequence), comparable(values)
    if sequence.ndim == 1:
        return wrap_result(np.asarray(np.searchsorted(sequence, values, side)).astype(dtype))
    found = np.empty(values.shape, dtype)
    for row in np.ndindex(sequence.shape[:-1]):
        found[row] = np.searchsorted(sequence[row], values[row], side)
    return wrap(found)


@searchsorted_number.kernel
def searchsorted_number_cpu(sorted_sequence, self, out_int32, right, side, sorter):
    return searchsorted_cpu(sorted_sequence, scalar_tensor(self), out_int32, right, side, sorter)


@bucketize.kernel
def bucketize_cpu(self, boundaries, out_int32, right):
    if boundaries._array.ndim != 1:
        bucketize_meta(self, boundaries, out_int32, right)
    return searchsorted_cpu(boundaries, self, out_int32, right, None, None)


@bucketize_number.kernel
def bucketize_number_cpu(self, boundaries, out_int32, right):
    return bucketize_cpu(scalar_tensor(self), boundaries, out_int32, right)
