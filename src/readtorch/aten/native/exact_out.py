"""out= forms that accept no other dtype than the result's.

Pointwise operators cast their result to the dtype of `out`. Matrix products and decompositions do not: a library
routine writes straight into the output's memory.

PyTorch has no such file: each family checks for itself, in the meta functions of its structured kernels.
"""

import numpy as np

from readtorch.aten.native_function import any_device, resize_output, write_out
from readtorch.c10.dispatch_key import CPU
from readtorch.c10.scalar_type import C_TYPE_NAMES
from readtorch.c10.tensor_impl import dtype_of, storage_impl, type_name


def c_name(t):
    return C_TYPE_NAMES[dtype_of(t)]


def expected_dtype(out, result, *arguments):
    return f"Expected out tensor to have dtype {c_name(result)}, but got {c_name(out)} instead"


def check_expected_dtype(out, result):
    if out._array.dtype != result._array.dtype:
        raise RuntimeError(expected_dtype(out, result))


def found_dtype(out, result, *arguments):
    return f"Found dtype {type_name(out)} but expected {type_name(result)}"


def keeps_apart(operator, grows=False):
    """Make `operator.out` also refuse an output that shares memory with an input.

    grows: the result has at least as many elements as each input, so a smaller output will be resized, maybe into one.
    """
    write = operator.out.kernels[CPU]
    count = len(operator.schema.returns)

    @operator.out.kernel
    @any_device
    def check_then_write(*arguments):
        inputs, outs = arguments[:-count], arguments[-count:]
        for t in inputs[0] if isinstance(inputs[0], (list, tuple)) else inputs:
            if hasattr(t, "_array") and any(t is out or shares_memory(t, out, grows) for out in outs):
                raise RuntimeError(
                    "unsupported operation: some elements of the input tensor and the written-to tensor "
                    "refer to a single memory location. Please clone() the tensor before performing the "
                    "operation."
                )
        return write(*arguments)


def shares_memory(t, out, grows):
    if grows and out._array.size < t._array.size and storage_impl(t) is storage_impl(out):
        return True
    return np.may_share_memory(t._array, out._array)


def exact_out(operator, *messages, row_major=False):
    """Make `operator.out` refuse an output of another dtype, with the message
    `message(out, result, *arguments)`.

    messages: one for each output; by default `expected_dtype` for all.
    row_major: whether an output that must be resized gets this order, whatever the result's is.
    """
    count = len(operator.schema.returns)
    messages = messages or (expected_dtype,) * count

    @operator.out.kernel
    @any_device
    def compute_then_copy(*arguments):
        arguments, outs = arguments[:-count], arguments[-count:]
        results = operator.call(*arguments)
        for out, result, message in zip(outs, (results,) if count == 1 else results, messages):
            if out._array.dtype != result._array.dtype:
                raise RuntimeError(message(out, result, *arguments))
            if row_major and out._array.shape != result._array.shape:
                resize_output(out, result._array.shape)
        return write_out(results, outs)
