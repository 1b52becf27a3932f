"""out= forms that accept no other dtype than the result's.

Pointwise operators cast their result to the dtype of `out`. Matrix products and decompositions do not: a library
routine writes straight into the output's memory.

PyTorch has no such file: each family checks for itself, in the meta functions of its structured kernels.
"""

import numpy as np

from readtorch.aten.empty_tensor import empty_meta
from readtorch.aten.tensor_meta import TensorMeta
from readtorch.c10.scalar_type import C_TYPE_NAMES
from readtorch.c10.tensor_impl import dtype_of, storage_impl, type_name


def c_name(t):
    return C_TYPE_NAMES[dtype_of(t)]


def expected_dtype(out, result, *arguments):
    return expected(dtype_of(result), out)


def expected(dtype, out):
    return f"Expected out tensor to have dtype {C_TYPE_NAMES[dtype]}, but got {c_name(out)} instead"


def check_expected_dtype(out, result):
    if out._array.dtype != result._array.dtype:
        raise RuntimeError(expected_dtype(out, result))


def found_dtype(out, result, *arguments):
    return f"Found dtype {type_name(out)} but expected {type_name(result)}"


def keeps_apart(operator, grows=False):
    """Make `operator.out` also refuse an output that shares memory with an input.

    grows: the result has at least as many elements as each input, so a smaller output will be resized, maybe into one.
    """
    operator.out_shares_memory = lambda t, out: t is out or shares_memory(t, out, grows)


def shares_memory(t, out, grows):
    if grows and out._array.size < t._array.size and storage_impl(t) is storage_impl(out):
        return True
    return np.may_share_memory(t._array, out._array)


def exact_out(*messages, names=True, row_major=False):
    """For the declaration of an operator: its `out=` form refuses an output of another dtype than the result's.

        mm = native_function("mm(Tensor self, Tensor mat2) -> Tensor", BOTH, out=exact_out())

    messages: one for each output, `message(out, result, *arguments)`; by default `expected_dtype` for all.
    names: the outputs', where the schema gives none.
    row_major: whether an output that must be resized gets this order, whatever the result's is.
    """

    def refuse_other_dtypes(operator):
        def check(i, out, result, arguments):
            is_described = type(result) is TensorMeta
            if out._array.dtype != (result.dtype.numpy if is_described else result._array.dtype):
                if is_described:  # messages speak of tensors
                    result = empty_meta(TensorMeta((), result.dtype))
                message = messages[i] if messages else expected_dtype
                raise RuntimeError(message(out, result, *arguments))

        operator.out_check, operator.out_is_row_major = check, row_major
        return names

    return refuse_other_dtypes
