"""Margins between the scores of one sample: of the right class, or of several right classes, against all others.

In PyTorch: `aten/src/ATen/native/LossMultiMargin.cpp`, `aten/src/ATen/native/LossMultiLabelMargin.cpp`.
"""

import numpy as np

from readtorch.aten.dispatcher import NOT_IMPLEMENTED
from readtorch.aten.native_function import native_function
from readtorch.aten.tensor_meta import TensorMeta
from readtorch.c10.tensor_impl import dtype_of, type_name, wrap

from .loss import MEAN, NONE
from .tensor_iterator import not_implemented

multi_margin_loss = native_function(
    "multi_margin_loss(Tensor self, Tensor target, Scalar p=1, Scalar margin=1, Tensor? weight=None, "
    "int reduction=Mean) -> Tensor",
    module="nn",
    out=True,
    direct=True,
)
multi_margin_loss_backward = native_function(
    "multi_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, Scalar p, Scalar margin, "
    "Tensor? weight=None, int reduction=Mean) -> Tensor",
    "",
)
multilabel_margin_loss = native_function(
    "multilabel_margin_loss(Tensor self, Tensor target, int reduction=Mean) -> Tensor",
    module="nn",
    out=True,
    direct=True,
)
multilabel_margin_loss_forward = native_function(
    "multilabel_margin_loss_forward(Tensor self, Tensor target, int reduction) -> (Tensor output, Tensor is_target)", ""
)
multilabel_margin_loss_backward = native_function(
    "multilabel_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, Tensor is_target) "
    "-> Tensor",
    "",
)


def rows_of(self):
    """The shape of the scores as a matrix: a vector is one sample, a number one sample of one class."""
    shape = self._array.shape
    if len(shape) > 2 or not all(shape[len(shape) == 2 :]):
        raise RuntimeError(
            f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(shape)}"
        )
    return (1,) * (2 - len(shape)) + shape


def check_types(self, target, kernel_name, weight=None):
    """The refusals of the kernels, which shape rules know nothing of."""
    if dtype_of(self).name not in ("float32", "float64"):
        raise not_implemented(kernel_name)(dtype_of(self))
    if target._array.dtype != np.int64:
        raise RuntimeError(f"expected scalar type Long but found {type_name(target)}")
    if weight is not None and dtype_of(weight) is not dtype_of(self):
        raise RuntimeError(f"expected scalar type {type_name(self)} but found {type_name(weight)}")


def losses_meta(self, reduction, has_batch):
    """A loss for each sample, or a single number."""
    return TensorMeta(rows_of(self)[:1] if has_batch and reduction == NONE else (), dtype_of(self))


def reduced(losses, reduction, has_batch):
    if reduction == NONE:
        return losses if has_batch else losses.reshape(())
    count = losses.dtype.type(max(losses.size, 1))
    return np.asarray(losses.sum() / count if reduction == MEAN else losses.sum())


def shares(grad, count, reduction):
    """How much of `grad` belongs to each of `count` losses: a column."""
    each = np.broadcast_to(grad.reshape(-1, 1), (count, 1))
    return each / each.dtype.type(count) if reduction == MEAN else each


# -------------------------------------------------------------------------------------------- one right class


def check_multi_margin(self, target, p, weight):
    if p not in (1, 2):
        raise RuntimeError("only p == 1 and p == 2 supported")
    (samples, classes), labels = rows_of(self), target._array
    if labels.ndim > 1 or labels.size != samples:
        raise RuntimeError(
            "multi_margin_loss: target tensor should be 1-D with size equal to the number of input "
            f"samples (batch size). Expected target size [{samples}], but got "
            f"{list(labels.shape)}. Input has shape {list(self._array.shape)}."
        )
    if weight is not None and (weight._array.ndim > 1 or weight._array.size != classes):
        raise RuntimeError(f"inconsistent weight size, expected {classes} but got {list(weight._array.shape)}")


@multi_margin_loss.meta
def multi_margin_loss_meta(self, target, p, margin, weight, reduction):
    check_multi_margin(self, target, p, weight)
    return losses_meta(self, reduction, target._array.ndim > 0)


@multi_margin_loss.kernel
def multi_margin_loss_cpu(self, target, p, margin, weight, reduction):
    """Σ over the wrong classes of max(0, margin + score - the right class's score)^p · weight, over their number."""
    x, labels, weights = multi_margin_arguments(self, target, p, weight)
    z = gaps(x, labels, margin)
    losses = (z if p == 1 else z * z).sum(1) * weights / x.dtype.type(x.shape[1])
    return wrap(reduced(losses, reduction, target._array.ndim > 0))


def multi_margin_arguments(self, target, p, weight):
    """The scores as rows, the right class of each, the weight of each."""
    check_multi_margin(self, target, p, weight)
    check_types(self, target, "multi_margin_loss_cpu_kernel", weight)
    x, labels = self._array.reshape(rows_of(self)), target._array.reshape(-1)
    if labels.size and (labels.min() < 0 or labels.max() >= x.shape[1]):
        raise RuntimeError("target out of range")
    return x, labels, x.dtype.type(1) if weight is None else weight._array.reshape(-1)[labels]


def gaps(x, labels, margin):
    """By how much each wrong class comes too close to the right one; 0 for the right one."""
    rows = np.arange(labels.size)
    z = np.maximum(x.dtype.type(margin) - x[rows, labels][:, None] + x, 0)
    z[rows, labels] = 0
    return z


@multi_margin_loss.backward
class MultiMarginLossBackward0:
    def self(grad, self, target, p, margin, weight, reduction):
        return multi_margin_loss_backward.call(grad, self, target, p, margin, weight, reduction)


@multi_margin_loss_backward.meta
def multi_margin_loss_backward_meta(grad_output, self, target, p, margin, weight, reduction):
    check_multi_margin(self, target, p, weight)
    return TensorMeta(self._array.shape, dtype_of(self))


@multi_margin_loss_backward.kernel
def multi_margin_loss_backward_cpu(grad_output, self, target, p, margin, weight, reduction):
    x, labels, weights = multi_margin_arguments(self, target, p, weight)
    z = gaps(x, labels, margin)
    slope = (z > 0).astype(x.dtype) if p == 1 else 2 * z
    slope *= np.reshape(weights, (-1, 1)) / x.dtype.type(x.shape[1])
    slope[np.arange(labels.size), labels] = -slope.sum(1)
    result = slope * shares(grad_output._array, labels.size, reduction)
    return wrap(result.reshape(self._array.shape))


multi_margin_loss_backward.backward(NOT_IMPLEMENTED)


# -------------------------------------------------------------------------------------- several right classes


@multilabel_margin_loss.compose
def multilabel_margin_loss_composite(self, target, reduction):
    return multilabel_margin_loss_forward.call(self, target, reduction)[0]


def check_multilabel(self, target):
    rows_of(self)
    if target._array.shape != self._array.shape:
        raise RuntimeError(
            f"inconsistent target size: {list(target._array.shape)} for input of size: {list(self._array.shape)}"
        )


@multilabel_margin_loss_forward.meta
def multilabel_margin_loss_forward_meta(self, target, reduction):
    check_multilabel(self, target)
    is_target = TensorMeta(target._array.shape, dtype_of(self))
    return losses_meta(self, reduction, target._array.ndim > 1), is_target


@multilabel_margin_loss_forward.kernel
def multilabel_margin_loss_forward_cpu(self, target, reduction):
    """Σ over right and wrong classes of max(0, 1 - right score + wrong score), over the number of classes.

    The right classes stand at the beginning of each row of the target; the first -1 ends them.
    """
    x, labels, listed = multilabel_arguments(self, target)
    is_target = mark(x, labels, listed)
    losses = violations(x, labels, listed, is_target).sum((1, 2)) / x.dtype.type(x.shape[1])
    output = reduced(losses, reduction, target._array.ndim > 1)
    return wrap(output), wrap(is_target.astype(x.dtype).reshape(target._array.shape))


def multilabel_arguments(self, target):
    """The scores and the labels as rows, and which labels are listed before the first -1."""
    check_multilabel(self, target)
    check_types(self, target, "multilabel_margin_loss_forward_out_frame")
    x = self._array.reshape(rows_of(self))
    labels = target._array.reshape(x.shape)
    if ((labels < -1) | (labels >= x.shape[1])).any():
        raise RuntimeError("argument #2 'target' is out of range")
    return x, labels, np.logical_and.accumulate(labels >= 0, 1)


def mark(x, labels, listed):
    is_target = np.zeros(x.shape, bool)
    rows, places = np.nonzero(listed)
    is_target[rows, labels[rows, places]] = True
    return is_target


def violations(x, labels, listed, is_target):
    """max(0, 1 - x[n, labels[n, i]] + x[n, j]) as an array (n, i, j); 0 where i is not listed or j is a right class."""
    right = np.take_along_axis(x, np.maximum(labels, 0), 1)
    z = np.maximum(1 - right[:, :, None] + x[:, None, :], 0)
    return np.where(listed[:, :, None] & ~is_target[:, None, :], z, 0).astype(x.dtype, copy=False)


@multilabel_margin_loss_forward.backward
class MultilabelMarginLossBackward0:
    output_differentiability = [True, False]

    def self(grad, self, target, reduction, is_target):
        return multilabel_margin_loss_backward.call(grad, self, target, reduction, is_target)


@multilabel_margin_loss_backward.meta
def multilabel_margin_loss_backward_meta(grad_output, self, target, reduction, is_target):
    check_multilabel(self, target)
    return TensorMeta(self._array.shape, dtype_of(self))


@multilabel_margin_loss_backward.kernel
def multilabel_margin_loss_backward_cpu(grad_output, self, target, reduction, is_target):
    x, labels, listed = multilabel_arguments(self, target)
    marked = is_target._array.reshape(x.shape) != 0
    violated = (violations(x, labels, listed, marked) > 0).astype(x.dtype)
    slope = violated.sum(1)
    np.subtract.at(slope, (np.arange(x.shape[0])[:, None], np.maximum(labels, 0)), violated.sum(2))
    result = slope / x.dtype.type(x.shape[1]) * shares(grad_output._array, x.shape[0], reduction)
    return wrap(result.reshape(self._array.shape))


multilabel_margin_loss_backward.backward(NOT_IMPLEMENTED)
