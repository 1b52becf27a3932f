"""Losses for classification: nll_loss and the cross entropy that is built on it.

In PyTorch: `aten/src/ATen/native/LossNLL.cpp`, `LossNLL2d.cpp`. Explained in the chapter "One training
step, end to end".
"""

import functools
import math

import numpy as np

from readtorch.aten.functions import at
from readtorch.aten.native_function import native_function
from readtorch.aten.tensor_meta import TensorMeta
from readtorch.aten.tensor_utils import check_dim_sizes
from readtorch.c10.scalar_type import SCALAR_TYPE_NAMES
from readtorch.c10.tensor_impl import dtype_of, wrap

from .binary_ops.arithmetic import add_scalar, div_scalar, mul_scalar
from .loss import MEAN, NONE, SUM
from .softmax import FROM_SIZE, _log_softmax
from .tensor_iterator import F4

_INPUTS = "Tensor self, Tensor target, Tensor? weight"
_PUBLIC = f"({_INPUTS}=None, int reduction=Mean, SymInt ignore_index=-100) -> Tensor"
_FORWARD = f"({_INPUTS}, int reduction, SymInt ignore_index) -> (Tensor output, Tensor total_weight)"
_BACKWARD = f"(Tensor grad_output, {_INPUTS}, int reduction, SymInt ignore_index, Tensor total_weight) -> Tensor"

nll_loss_forward = native_function(f"nll_loss_forward{_FORWARD}", module="nn")
nll_loss_backward = native_function(f"nll_loss_backward{_BACKWARD}", module="nn")
nll_loss2d_forward = native_function(f"nll_loss2d_forward{_FORWARD}", module="nn")
nll_loss2d_backward = native_function(f"nll_loss2d_backward{_BACKWARD}", module="nn")


def pick(x, target, ignore_index):
    """The index of each loss in `x`, an array (N, C, …), and which losses count (None if all do).

    Raises IndexError for a class that does not exist.
    """
    places = np.indices(target.shape, sparse=True) if target.ndim > 1 else (np.arange(target.size),)
    if target.size == 0 or target.min() >= 0 > ignore_index and target.max() < x.shape[1]:
        return (places[0], target, *places[1:]), None
    counted = target != ignore_index
    classes = np.where(counted, target, 0)
    wrong = (classes < 0) | (classes >= x.shape[1])
    if wrong.any():
        raise IndexError(f"Target {classes[wrong][0]} is out of bounds.")
    return (places[0], classes, *places[1:]), counted


def weights_of(x, index, counted, weight):
    """The weight of each loss: its class's, and 0 if it does not count. None stands for 1 everywhere."""
    if weight is None:
        return None if counted is None else counted.astype(x.dtype)
    weights = weight[index[1]]
    return weights if counted is None else np.where(counted, weights, x.dtype.type(0))


def forward(x, target, weight, reduction, ignore_index):
    """The losses or their weighted mean or sum, and the sum of the weights; all computed in float32 at least."""
    index, counted = pick(x, target, ignore_index)
    weights = weights_of(x, index, counted, weight)
    losses = -x[index]
    if weights is not None:
        losses = np.where(weights == 0, 0, losses * weights)
    if reduction == NONE:
        return losses, np.zeros((), x.dtype)
    loss, total = losses.sum(), x.dtype.type(target.size) if weights is None else weights.sum()
    return (loss / total if reduction == MEAN else loss), total


def backward(grad, x, target, weight, reduction, ignore_index, total_weight):
    """Zero except at the targets."""
    index, counted = pick(x, target, ignore_index)
    weights = weights_of(x, index, counted, weight)
    share = -(grad / total_weight if reduction == MEAN else grad)
    result = np.zeros(x.shape, x.dtype)
    picked = share if weights is None else weights * share
    result[index] = picked if counted is None else np.where(counted, picked, 0)  # not 0 · nan
    return result


def as_batch(self, target):
    """Arrays with a batch dimension: a single example counts as a batch of one."""
    x, t = self._array, target._array
    return (x[None], t.reshape(1)) if x.ndim == 1 else (x, t)


def wide(array):
    return array if array is None or array.dtype.itemsize > 2 else array.astype(np.float32)


def run_forward(self, x, target, weight, reduction, ignore_index):
    w = None if weight is None else wide(weight._array)
    loss, total = forward(wide(x), target, w, reduction, ignore_index)
    return wrap(np.asarray(loss, self._array.dtype)), wrap(np.asarray(total, self._array.dtype))


def run_backward(grad, self, x, target, weight, reduction, ignore_index, total_weight):
    w = None if weight is None else wide(weight._array)
    result = backward(wide(grad), wide(x), target, w, reduction, ignore_index, wide(total_weight._array))
    return wrap(result.astype(self._array.dtype, copy=False).reshape(self._array.shape))


# ---------------------------------------------------------------------------------------- one loss an example

I8, U1 = np.dtype(np.int64), np.dtype(np.uint8)


def check_types(self, target, weight):
    """The refusals of the kernels, which shape rules know nothing of."""
    if target._array.dtype not in (I8, U1):
        raise RuntimeError(f"expected target dtype to be Long or Byte, but got {SCALAR_TYPE_NAMES[dtype_of(target)]}")
    if weight is not None and weight._array.dtype != self._array.dtype:
        raise RuntimeError(
            f"expected scalar type {SCALAR_TYPE_NAMES[dtype_of(self)]} but found {SCALAR_TYPE_NAMES[dtype_of(weight)]}"
        )


def check_nll_loss(self, target, weight):
    x, t = self._array, target._array
    if not 0 < x.ndim <= 2:
        raise RuntimeError("input tensor should be 1D or 2D")
    if t.ndim > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if not (x.ndim == 1 and t.size == 1) and x.shape[0] != t.shape[0]:
        raise RuntimeError(f"size mismatch (got input: {list(x.shape)}, target: {list(t.shape)})")
    if weight is not None and weight._array.shape != x.shape[-1:]:
        raise RuntimeError(
            f"weight tensor should be defined either for all {x.shape[-1]} classes or no classes but got "
            f"weight tensor of shape: {list(weight._array.shape)}"
        )


@nll_loss_forward.meta
def nll_loss_forward_meta(self, target, weight, reduction, ignore_index):
    check_nll_loss(self, target, weight)
    has_each = reduction == NONE and self._array.ndim == 2
    return TensorMeta(target._array.shape if has_each else (), dtype_of(self)), TensorMeta((), dtype_of(self))


@nll_loss_forward.kernel
def nll_loss_forward_cpu(self, target, weight, reduction, ignore_index):
    check_nll_loss(self, target, weight)
    check_types(self, target, weight)
    x, t = self._array, target._array
    if weight is None and reduction != NONE and is_for_loops(x):
        return by_loops(x, t, reduction, ignore_index)
    batch, classes = as_batch(self, target)
    output, total = run_forward(self, batch, classes, weight, reduction, ignore_index)
    if reduction == NONE and x.ndim == 1:
        output._array = output._array.reshape(())
    return output, total


@functools.cache
def loops():
    """The compiled loops; imported when first needed."""
    from .cpu import loss_nll

    return loss_nll


def is_for_loops(x):
    """Whether the loops of `cpu/loss_nll.py` serve `x`, the scores of a batch."""
    return x.size >= FROM_SIZE and x.dtype is F4 and x.ndim == 2 and x.flags.c_contiguous


def check_row(target, wrong_row):
    if wrong_row >= 0:
        raise IndexError(f"Target {target[wrong_row]} is out of bounds.")


def by_loops(x, target, reduction, ignore_index):
    """What `run_forward` does, for the training step of a classifier: one pass over the labels."""
    total, count, wrong_row = loops().nll_sum(x, target, ignore_index)
    check_row(target, wrong_row)
    if reduction == MEAN:
        total = total / count if count else math.nan
    return wrap(np.array(total, x.dtype)), wrap(np.array(count, x.dtype))


def check_gradient(grad_output, losses, total_weight):
    """Raises RuntimeError unless these have the sizes of forward's results, the `losses` and a number."""
    grad, total = grad_output._array, total_weight._array
    if total.size != 1:
        raise RuntimeError(
            f"expected total_weight to be a  single element tensor, got: {list(total.shape)} ({total.size} elements)"
        )
    if losses.shape:
        check_dim_sizes(grad_output, losses.shape)
    elif grad.ndim > 1 or grad.size != 1:
        raise RuntimeError(f"Expected a single element grad_output tensor, but got: {list(grad.shape)}")


@nll_loss_backward.meta
def nll_loss_backward_meta(grad_output, self, target, weight, reduction, ignore_index, total_weight):
    check_gradient(grad_output, nll_loss_forward_meta(self, target, weight, reduction, ignore_index)[0], total_weight)
    return TensorMeta(self._array.shape, dtype_of(self))


@nll_loss_backward.kernel
def nll_loss_backward_cpu(grad_output, self, target, weight, reduction, ignore_index, total_weight):
    if weight is None and reduction != NONE and is_for_loops(self._array):
        share = grad_output._array / total_weight._array if reduction == MEAN else grad_output._array
        result = np.zeros(self._array.shape, self._array.dtype)
        wrong_row = loops().nll_sum_backward(-share[()], target._array, ignore_index, result)
        check_row(target._array, wrong_row)
        return wrap(result)
    if not grad_output._array.size == 1 == total_weight._array.size:
        nll_loss_backward_meta(grad_output, self, target, weight, reduction, ignore_index, total_weight)
    batch, classes = as_batch(self, target)
    return run_backward(grad_output._array, self, batch, classes, weight, reduction, ignore_index, total_weight)


@nll_loss_forward.backward
class NllLossBackward0:
    output_differentiability = [True, False]

    def self(grad, self, target, weight, reduction, ignore_index, total_weight):
        return nll_loss_backward.call(grad, self, target, weight, reduction, ignore_index, total_weight)

    def output(self_t, target, weight, reduction, ignore_index):
        return nll_loss_forward.call(self_t, target, weight, reduction, ignore_index)[0]


@nll_loss_backward.backward
class NllLossBackwardBackward0:
    def grad_output(grad, target, weight, reduction, ignore_index):
        return nll_loss.call(grad, target, weight, reduction, ignore_index)

    def self(grad):
        return at.zeros_like(grad)

    def result(grad_output_t, self_p, target, weight, reduction, ignore_index, total_weight):
        return nll_loss_backward.call(grad_output_t, self_p, target, weight, reduction, ignore_index, total_weight)


# ----------------------------------------------------------------------------- one loss a pixel: (N, C, H, W)


@nll_loss2d_forward.meta
def nll_loss2d_forward_meta(self, target, weight, reduction, ignore_index):
    x, t = self._array, target._array
    if t.ndim != 3:
        raise RuntimeError(
            f"only batches of spatial targets supported (3D tensors) but got targets of dimension: {t.ndim}"
        )
    if x.ndim != 4:
        raise RuntimeError(
            f"only batches of spatial inputs supported (4D tensors), but got input of dimension: {x.ndim}"
        )
    if weight is not None and weight._array.size != x.shape[1]:
        raise RuntimeError("weight tensor should be defined either for all or no classes")
    if (x.shape[0], *x.shape[2:]) != t.shape:
        raise RuntimeError(f"size mismatch (got input: {list(x.shape)} , target: {list(t.shape)}")
    return TensorMeta(t.shape if reduction == NONE else (), dtype_of(self)), TensorMeta((), dtype_of(self))


@nll_loss2d_forward.kernel
def nll_loss2d_forward_cpu(self, target, weight, reduction, ignore_index):
    nll_loss2d_forward_meta(self, target, weight, reduction, ignore_index)
    check_types(self, target, None)
    x, t = self._array, target._array
    if x.dtype.itemsize == 2 and reduction != NONE:
        return in_16_bits(self, x, t, weight, reduction, ignore_index)
    return run_forward(self, x, t, weight, reduction, ignore_index)


def in_16_bits(self, x, target, weight, reduction, ignore_index):
    """PyTorch adds up the pixels of 16-bit images in 16 bits."""
    losses = run_forward(self, x, target, weight, NONE, ignore_index)[0]._array
    index, counted = pick(x, target, ignore_index)
    weights = weights_of(x, index, counted, None if weight is None else weight._array)
    loss = cascade_sum(losses)
    total = cascade_sum(np.ones(losses.shape, x.dtype) if weights is None else weights.astype(x.dtype))
    return wrap(np.asarray(loss / total if reduction == MEAN else loss)), wrap(np.asarray(total))


def cascade_sum(array):
    """The sum of all elements, rounded after every step: of each 16 in a row, of 16 such sums, and so on.

    What is left over of each kind is added last, and the first element, which PyTorch's loop sets aside, after it.
    """
    first, sums = array.reshape(-1)[:1], array.reshape(-1)[1:]
    left_over = []
    while sums.size:
        whole = sums.size // 16 * 16
        left_over.append(sequential_sum(sums[whole:]))
        sums = np.add.accumulate(sums[:whole].reshape(-1, 16), 1, array.dtype)[:, -1]
    return sequential_sum(np.array([*left_over, *first], array.dtype))


def sequential_sum(array):
    return np.add.accumulate(array, 0, array.dtype)[-1] if array.size else array.dtype.type(0)


@nll_loss2d_backward.meta
def nll_loss2d_backward_meta(grad_output, self, target, weight, reduction, ignore_index, total_weight):
    check_gradient(grad_output, nll_loss2d_forward_meta(self, target, weight, reduction, ignore_index)[0], total_weight)
    return TensorMeta(self._array.shape, dtype_of(self))


@nll_loss2d_backward.kernel
def nll_loss2d_backward_cpu(grad_output, self, target, weight, reduction, ignore_index, total_weight):
    nll_loss2d_backward_meta(grad_output, self, target, weight, reduction, ignore_index, total_weight)
    return run_backward(
        grad_output._array, self, self._array, target._array, weight, reduction, ignore_index, total_weight
    )


@nll_loss2d_forward.backward
class NllLoss2DBackward0:
    output_differentiability = [True, False]

    def self(grad, self, target, weight, reduction, ignore_index, total_weight):
        return nll_loss2d_backward.call(grad, self, target, weight, reduction, ignore_index, total_weight)

    def output(self_t, target, weight, reduction, ignore_index):
        return nll_loss2d_forward.call(self_t, target, weight, reduction, ignore_index)[0]


@nll_loss2d_backward.backward
class NllLoss2DBackwardBackward0:
    def grad_output(grad, target, weight, reduction, ignore_index):
        return nll_loss2d.call(grad, target, weight, reduction, ignore_index)

    def self(grad):
        return at.zeros_like(grad)

    def result(grad_output_t, self_p, target, weight, reduction, ignore_index, total_weight):
        return nll_loss2d_backward.call(grad_output_t, self_p, target, weight, reduction, ignore_index, total_weight)


# -------------------------------------------------------------------------------------------- what users call

nll_loss = native_function(f"nll_loss{_PUBLIC}", module="nn", out=True)
nll_loss2d = native_function(f"nll_loss2d{_PUBLIC}", module="nn", out=True)
nll_loss_nd = native_function(f"nll_loss_nd{_PUBLIC}", module="nn", direct=True)


@nll_loss.compose
def nll_loss_composite(self, target, weight, reduction, ignore_index):
    return nll_loss_forward.call(self, target, weight, reduction, ignore_index)[0]


@nll_loss2d.compose
def nll_loss2d_composite(self, target, weight, reduction, ignore_index):
    return nll_loss2d_forward.call(self, target, weight, reduction, ignore_index)[0]


@nll_loss_nd.compose
def nll_loss_nd_composite(self, target, weight, reduction, ignore_index):
    """(C), (N, C), (N, C, H, W); any other number of dimensions is folded into (N, C, 1, rest)."""
    shape, wanted = self._array.shape, target._array.shape
    if len(shape) < 1:
        raise ValueError(f"Expected 1 or more dimensions (got {len(shape)})")
    if len(shape) != 1 and (not wanted or shape[0] != wanted[0]):
        raise ValueError(
            f"Expected input batch_size ({shape[0]}) to match target batch_size ({wanted[0] if wanted else 0})."
        )
    if len(shape) in (1, 2):
        return nll_loss.call(self, target, weight, reduction, ignore_index)
    if len(shape) == 4:
        return nll_loss2d.call(self, target, weight, reduction, ignore_index)
    n, c, rest = shape[0], shape[1], shape[2:]
    if wanted[1:] != rest:
        raise RuntimeError(f"Expected target size {[n, *rest]}, got {list(wanted)}")
    folded = (n, c, 1, math.prod(rest)) if math.prod(shape) else (n, c, 0, 0)
    pixels = (n, *folded[2:])
    self = self.contiguous().view(folded)
    target = target.contiguous().view(pixels)
    result = nll_loss2d.call(self, target, weight, reduction, ignore_index)
    return result.view((n, *rest)) if reduction == NONE else result


cross_entropy_loss = native_function(
    f"cross_entropy_loss({_INPUTS}=None, int reduction=Mean, SymInt ignore_index=-100, float "
    f"label_smoothing=0.0) -> Tensor",
    module="nn",
    direct=True,
)


@cross_entropy_loss.compose
def cross_entropy_loss_composite(self, target, weight, reduction, ignore_index, label_smoothing):
    """A target of the input's shape holds probabilities, any other one class indices."""
    if self._array.shape == target._array.shape:
        return of_probabilities(self, target, weight, reduction, label_smoothing, ignore_index)
    class_dim = 0 if self._array.ndim == 1 else 1
    scores = log_softmax(self, class_dim)
    if label_smoothing > 0:
        return of_smoothed_labels(scores, target, weight, reduction, ignore_index, label_smoothing)
    return nll_loss_nd.call(scores, target, weight, reduction, ignore_index)


def log_softmax(self, dim):
    return _log_softmax.call(self, dim, False)


def check_smoothing(label_smoothing):
    if not 0 <= label_smoothing <= 1:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing:g}")


def weight_for_channels(weight, scores, class_dim):
    """`weight` shaped to stand beside `scores`: (C) or (1, C, 1, …)."""
    return weight.view([weight._array.size if d == class_dim else 1 for d in range(scores._array.ndim)])


def of_probabilities(self, target, weight, reduction, label_smoothing, ignore_index):
    class_dim = 0 if self._array.ndim == 1 else 1
    classes = self._array.shape[class_dim] if self._array.ndim else 1
    if not target.dtype.is_floating_point:
        raise RuntimeError(
            "Expected floating point type for target with class probabilities, got "
            f"{SCALAR_TYPE_NAMES[dtype_of(target)]}"
        )
    if ignore_index >= 0:
        raise RuntimeError("ignore_index is not supported for floating point target")
    if weight is not None and (weight._array.ndim != 1 or weight._array.size != classes):
        raise RuntimeError(
            f"cross_entropy: weight tensor should be defined either for all {classes} classes or no "
            f"classes but got weight tensor of shape: {list(weight._array.shape)}"
        )
    scores = log_softmax(self, class_dim)
    if label_smoothing > 0:
        check_smoothing(label_smoothing)
        target = add_scalar.call(mul_scalar.call(target, 1 - label_smoothing), label_smoothing / classes, 1)
    products = scores * target
    if weight is not None:
        products = products * weight_for_channels(weight, scores, class_dim)
    if reduction == NONE:
        return -products.sum(class_dim)
    total = -products.sum()
    return total if reduction == SUM else div_scalar.call(total, scores._array.size // classes or 1)


def of_smoothed_labels(scores, target, weight, reduction, ignore_index, label_smoothing):
    """(1 - ε) of the weight on the label, ε distributed evenly over all classes."""
    check_smoothing(label_smoothing)
    class_dim = 0 if scores._array.ndim == 1 else 1
    classes = scores._array.shape[class_dim]
    nll = nll_loss_nd.call(scores, target, weight, reduction, ignore_index)
    even = -(scores if weight is None else scores * weight_for_channels(weight, scores, class_dim)).sum(class_dim)
    ignored = target == ignore_index
    even = even.masked_fill(ignored, 0)
    if reduction == SUM:
        even = even.sum()
    elif reduction == MEAN and weight is None:
        even = even.sum() / (target._array.size - ignored.sum())
    elif reduction == MEAN:
        counted = weight.gather(0, target.masked_fill(ignored, 0).flatten())
        even = even.sum() / counted.masked_fill(ignored.flatten(), 0).sum()
    return mul_scalar.call(nll, 1 - label_smoothing) + mul_scalar.call(even, label_smoothing / classes)
