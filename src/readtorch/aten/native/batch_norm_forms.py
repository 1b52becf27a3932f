"""Batch normalization under its other schemas: those say which arguments are written to.

In PyTorch: `aten/src/ATen/native/Normalization.cpp`: the same kernels again, for `torch.export`.
"""
import numpy as np

from ...c10.scalar_type import SCALAR_TYPE_NAMES
from ...c10.tensor_impl import dtype_of, wrap
from ..native_function import native_function, write_out
from .normalization import (
    NativeBatchNormBackward0,
    double_backward,
    forward,
    native_batch_norm,
    native_batch_norm_backward,
)

_AFFINE = "Tensor input, Tensor? weight, Tensor? bias"
_STATISTICS = "Tensor? running_mean, Tensor? running_var"
_WRITTEN_STATISTICS = "Tensor(a!) running_mean, Tensor(b!) running_var"
_NUMBERS = "bool training, float momentum, float eps"
_OUTPUTS = ("out", "save_mean", "save_invstd")

_native_batch_norm_legit = native_function(
    f"_native_batch_norm_legit({_AFFINE}, {_WRITTEN_STATISTICS}, {_NUMBERS}) -> (Tensor, Tensor, Tensor)",
    out=_OUTPUTS)
_native_batch_norm_legit_no_stats = native_function(
    f"_native_batch_norm_legit.no_stats({_AFFINE}, {_NUMBERS}) -> (Tensor, Tensor, Tensor)", out=_OUTPUTS)
_native_batch_norm_legit_no_training = native_function(
    f"_native_batch_norm_legit_no_training({_AFFINE}, Tensor running_mean, Tensor running_var, "
    "float momentum, float eps) -> (Tensor, Tensor, Tensor)")


# in PyTorch: these, too, leave the version counters of the running statistics as they are.
_native_batch_norm_legit.kernel(forward)


@_native_batch_norm_legit_no_stats.kernel
def native_batch_norm_legit_no_stats_cpu(input, weight, bias, training, momentum, eps):
    return forward(input, weight, bias, None, None, training, momentum, eps)


@_native_batch_norm_legit_no_training.kernel
def native_batch_norm_legit_no_training_cpu(input, weight, bias, running_mean, running_var, momentum, eps):
    return forward(input, weight, bias, running_mean, running_var, False, momentum, eps)


def compute_then_write(*arguments):
    """The `out=` form. Statistics that were not computed are not written, but their outputs must be vectors."""
    arguments, outs = arguments[:-3], arguments[-3:]
    for out in outs:
        if out._array.dtype is not arguments[0]._array.dtype:
            raise RuntimeError(f"expected scalar type {SCALAR_TYPE_NAMES[dtype_of(arguments[0])]} but found "
                               f"{SCALAR_TYPE_NAMES[dtype_of(out)]}")
    results = native_batch_norm.call(*arguments)
    if arguments[5]:
        return write_out(results, outs)
    for out in outs[1:]:
        if out._array.ndim != 1:
            raise RuntimeError(f"TensorAccessor expected 1 dims but tensor has {out._array.ndim}")
    write_out(results[0], outs[:1])
    return outs


@_native_batch_norm_legit_no_stats.out.kernel
def no_stats_compute_then_write(input, weight, bias, training, momentum, eps, out, save_mean, save_invstd):
    return compute_then_write(
        input, weight, bias, None, None, training, momentum, eps, out, save_mean, save_invstd)


native_batch_norm.out.kernel(compute_then_write)
_native_batch_norm_legit.out.kernel(compute_then_write)


@_native_batch_norm_legit.backward
class NativeBatchNormLegitBackward0:
    output_differentiability = [True, False, False]
    input__weight__bias = NativeBatchNormBackward0.input__weight__bias


@_native_batch_norm_legit_no_stats.backward
class NativeBatchNormLegitBackward1:
    output_differentiability = [True, False, False]

    def input__weight__bias(grad, input, weight, result1, result2, training, eps, grad_input_mask):
        return native_batch_norm_backward.call(
            grad, input, weight, None, None, result1, result2, training, eps, grad_input_mask)


@_native_batch_norm_legit_no_training.backward
class NativeBatchNormLegitNoTrainingBackward0:
    output_differentiability = [True, False, False]

    def input__weight__bias(
            grad, input, weight, running_mean, running_var, result1, result2, eps, grad_input_mask):
        return native_batch_norm_backward.call(
            grad, input, weight, running_mean, running_var, result1, result2, False, eps, grad_input_mask)


# ------------------------------------------- with a fourth result: what cuDNN would keep for backward

_batch_norm_with_update = native_function(
    f"_batch_norm_with_update({_AFFINE}, {_WRITTEN_STATISTICS}, float momentum, float eps) -> "
    "(Tensor, Tensor, Tensor, Tensor)")
_batch_norm_no_update = native_function(
    f"_batch_norm_no_update({_AFFINE}, {_STATISTICS}, float momentum, float eps) -> "
    "(Tensor, Tensor, Tensor, Tensor)")
batch_norm_backward = native_function(
    f"batch_norm_backward(Tensor grad_out, Tensor input, Tensor weight, {_STATISTICS}, Tensor? save_mean, "
    "Tensor? save_var, bool update, float eps, bool[3] output_mask, Tensor reserve) -> "
    "(Tensor, Tensor, Tensor)")


def reserve():
    """Nothing: only cuDNN keeps something."""
    return wrap(np.empty(0, np.uint8))


@_batch_norm_with_update.kernel
def batch_norm_with_update_cpu(input, weight, bias, running_mean, running_var, momentum, eps):
    return (*forward(input, weight, bias, running_mean, running_var, True, momentum, eps), reserve())


@_batch_norm_no_update.kernel
def batch_norm_no_update_cpu(input, weight, bias, running_mean, running_var, momentum, eps):
    return (*forward(input, weight, bias, running_mean, running_var, False, momentum, eps), reserve())


@batch_norm_backward.kernel
def batch_norm_backward_cpu(
        grad_out, input, weight, running_mean, running_var, save_mean, save_var, update, eps, output_mask,
        reserve):
    return native_batch_norm_backward.call(
        grad_out, input, weight, running_mean, running_var, save_mean, save_var, update, eps, output_mask)


@_batch_norm_with_update.backward
class BatchNormWithUpdateBackward0:
    output_differentiability = [True, False, False, False]

    def input__weight__bias(
            grad, input, weight, running_mean, running_var, result1, result2, result3, eps, grad_input_mask):
        return batch_norm_backward.call(
            grad, input, weight, running_mean, running_var, result1, result2, True, eps, grad_input_mask,
            result3)


@_batch_norm_no_update.backward
class BatchNormNoUpdateBackward0:
    output_differentiability = [True, False, False, False]

    def input__weight__bias(
            grad, input, weight, running_mean, running_var, result1, result2, result3, eps, grad_input_mask):
        return batch_norm_backward.call(
            grad, input, weight, running_mean, running_var, result1, result2, False, eps, grad_input_mask,
            result3)


@batch_norm_backward.backward
class BatchNormBackwardBackward0:
    def grad_out__input__weight(
            grads, grad_out, input, weight, running_mean, running_var, save_mean, save_var, update, eps):
        return double_backward(
            grads, grad_out, input, weight, running_mean, running_var, save_mean, save_var, update, eps)
