"""Binary search in sorted sequences: searchsorted and bucketize.

In PyTorch: `aten/src/ATen/native/Bucketization.cpp`.
"""

import numpy as np

from readtorch.aten.native_function import native_function
from readtorch.aten.register_dispatch_key import any_device, write_out
from readtorch.c10.scalar_type import SCALAR_TYPE_NAMES
from readtorch.c10.tensor_impl import dtype_of, wrap, wrap_result

from .reduce_ops.min_max import comparable
from .tensor_iterator import scalar_tensor

# ------------------------------------------------------------------------------------ searchsorted, bucketize

searchsorted = native_function(
    "searchsorted.Tensor(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, bool right=False, str? "
    "side=None, Tensor? sorter=None) -> Tensor",
    out=True,
)
searchsorted_number = native_function(
    "searchsorted.Scalar(Tensor sorted_sequence, Scalar self, *, bool out_int32=False, bool right=False, str? "
    "side=None, Tensor? sorter=None) -> Tensor",
    out=True,
)
bucketize = native_function(
    "bucketize.Tensor(Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor", out=True
)
bucketize_number = native_function(
    "bucketize.Scalar(Scalar self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor", out=True
)


def check_found_type(operator):
    """The out= form writes int64, or int32 if asked to."""

    @operator.out.kernel
    @any_device
    def compute_then_copy(*arguments):
        result, out = operator.call(*arguments[:-1]), arguments[-1]
        if result._array.dtype != out._array.dtype:
            raise RuntimeError(
                "torch.searchsorted(): output tensor's dtype is wrong, it can only be Int(int32) or Long(int64) "
                "depending on whether out_int32 flag is True, but we got output tensor's dtype "
                f"{SCALAR_TYPE_NAMES[dtype_of(out)]} and out_int32 flag is {result._array.itemsize == 4}"
            )
        return write_out(result, (out,))


for _operator in (searchsorted, searchsorted_number, bucketize, bucketize_number):
    check_found_type(_operator)


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


def check_sorter(sequence, sorter, where):
    if sorter._array.shape != sequence.shape:
        raise RuntimeError(
            f"{where}boundary and sorter must have the same size, but got boundary tensor "
            f"{list(sequence.shape)}and got sorter tensor {list(sorter._array.shape)}"
        )
    if sorter._array.dtype != np.int64:
        raise RuntimeError(
            f"{where}sorter must be a tensor of long dtype but got dtype {SCALAR_TYPE_NAMES[dtype_of(sorter)]}"
        )
    if sorter._array.size and not (0 <= sorter._array.min() and sorter._array.max() < sequence.shape[-1]):
        raise RuntimeError(f"{where}sorter index out of range")


@searchsorted.kernel
def searchsorted_cpu(sorted_sequence, self, out_int32, right, side, sorter):
    sequence, values = sorted_sequence._array, self._array
    check_search(sequence, values, right, side, sorter)
    side = side or ("right" if right else "left")
    dtype = np.int32 if out_int32 else np.int64
    if sorter is not None:
        sequence = np.take_along_axis(sequence, sorter._array, -1)
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
        raise RuntimeError(f"boundaries tensor must be 1 dimension, but got dim({boundaries._array.ndim})")
    return searchsorted_cpu(boundaries, self, out_int32, right, None, None)


@bucketize_number.kernel
def bucketize_number_cpu(self, boundaries, out_int32, right):
    return bucketize_cpu(scalar_tensor(self), boundaries, out_int32, right)
