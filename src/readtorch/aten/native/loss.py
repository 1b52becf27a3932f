"""Losses that compare two tensors element by element, binary cross entropy, the Kullback-Leibler divergence, and losses
that ask for a margin.

In PyTorch: `aten/src/ATen/native/Loss.cpp`.
Explained in the chapters "One training step, end to end" and "Layers: convolution, embedding, recurrence".
"""

import math

import numpy as np

from readtorch.aten.expand_utils import broadcast_error, broadcast_shape
from readtorch.aten.functions import at
from readtorch.aten.native_function import below_autograd, native_function
from readtorch.aten.register_dispatch_key import any_device
from readtorch.aten.tensor_meta import TensorMeta, broadcast
from readtorch.aten.tensor_utils import check_broadcasts
from readtorch.c10.scalar_type import SCALAR_TYPE_NAMES
from readtorch.c10.tensor_impl import dtype_of, wrap_result

from .binary_ops.arithmetic import add_scalar, div_scalar, mul_scalar, sub_scalar
from .tensor_iterator import compute, computing, not_implemented, result_type, wrap_reduced

# What becomes of the losses of the single elements (`at::Reduction`).
NONE, MEAN, SUM = range(3)


def apply_loss_reduction(unreduced, reduction):
    if reduction == MEAN:
        return unreduced.mean()
    return unreduced.sum() if reduction == SUM else unreduced


def loss_meta(self, target, reduction, *parameters):
    """The shape rule of these losses: one for each pair of elements, or a single number."""
    losses = broadcast(result_type(self, target), self, target)
    return losses if reduction == NONE else TensorMeta((), losses.dtype)


def loss_backward_meta(grad_output, self, target, reduction, *parameters):
    """A gradient lies row by row, however the loss's operands lie."""
    tensors = self, target, grad_output
    return TensorMeta(broadcast_shape(*[t._array.shape for t in tensors]), result_type(*tensors))


def loss_kernel(function, kernel_name):
    """A CPU kernel (self, target, reduction, *parameters) from `function(x, target, *parameters)`."""

    def kernel(self, target, reduction, *parameters):
        common = result_type(self, target)
        if not (common.is_floating_point or common.is_complex and kernel_name == "mse_cpu"):
            raise not_implemented(kernel_name)(common)

        def reduced(x, target):
            losses = function(x, target, *parameters)
            return losses if reduction == NONE else losses.mean() if reduction == MEAN else losses.sum()

        if kernel_name == "mse_cpu" and common.itemsize == 2:  # PyTorch rounds each step of this one to 16 bits
            with below_autograd():
                difference = self - target
                return apply_loss_reduction(difference * difference, reduction)
        return computing(reduced, self, target, common=common)

    return kernel


def loss_backward_kernel(function):
    """A CPU kernel for `function(x, target, *parameters)`, the slope of one loss: scaled by grad, and 1/numel
    for a mean."""

    def kernel(grad_output, self, target, reduction, *parameters):
        def backward(x, t, g):
            slope = function(x, t, *parameters)
            return slope * (g / slope.dtype.type(slope.size) if reduction == MEAN else g)

        tensors = self, target, grad_output
        arrays = [t._array for t in tensors]
        try:
            return wrap_reduced(compute(backward, arrays, result_type(*tensors)))
        except ValueError:
            raise broadcast_error(*[a.shape for a in arrays]) from None

    return kernel


def declare_backward(name, parameters=""):
    operator = native_function(
        f"{name}_backward(Tensor grad_output, Tensor self, Tensor target, int reduction{parameters}) -> Tensor",
        module="nn",
    )
    operator.meta(loss_backward_meta)
    return operator


def scaled(grad, numel, reduction):
    """`grad / numel` for a mean: each element's share of the gradient."""
    return div_scalar.call(grad, numel) if reduction == MEAN else grad


# ------------------------------------------------------------------------------------------------- mse and l1

mse_loss = native_function(
    "mse_loss(Tensor self, Tensor target, int reduction=Mean) -> Tensor", module="nn", out=True, direct=True
)
mse_loss_backward = declare_backward("mse_loss")


def squared_error(x, t):
    difference = x - t
    return np.multiply(difference, difference, out=difference) if difference.ndim else difference * difference


mse_loss.meta(loss_meta)
mse_loss.kernel(loss_kernel(squared_error, "mse_cpu"))
mse_loss_backward.kernel(loss_backward_kernel(lambda x, t: 2 * (x - t)))


@mse_loss.backward
class MseLossBackward0:
    def self(grad, self, target, reduction):
        return mse_loss_backward.call(grad, self, target, reduction)

    def target(grad, self, target, reduction):
        return mse_loss_backward.call(grad, target, self, reduction)

    def result(self_p, self_t, target_p, target_t, reduction):
        by_self = mse_loss_backward.call(self_t, self_p, target_p, NONE)
        by_target = mse_loss_backward.call(target_t, target_p, self_p, NONE)
        return apply_loss_reduction(by_self + by_target, reduction)


@mse_loss_backward.backward
class MseLossBackwardBackward0:
    def grad_output(grad, self, target, reduction):
        return mse_loss_backward.call(grad, self, target, reduction)

    def self(grad, grad_output, self_sym_sizes, reduction):
        return scaled(2 * (grad * grad_output), numel_of(self_sym_sizes), reduction)

    def target(grad, grad_output, target_sym_sizes, reduction):
        return -scaled(2 * (grad * grad_output), numel_of(target_sym_sizes), reduction)

    def result(grad_output_p, grad_output_t, self_p, self_t, target_p, target_t, reduction):
        bend = scaled(2 * ((self_t - target_t) * grad_output_p), self_p._array.size, reduction)
        return bend + mse_loss_backward.call(grad_output_t, self_p, target_p, reduction)


def numel_of(sizes):
    count = 1
    for n in sizes:
        count *= n
    return count


l1_loss = native_function("l1_loss(Tensor self, Tensor target, int reduction=Mean) -> Tensor", module="nn")


@l1_loss.compose
def l1_loss_composite(self, target, reduction):
    return apply_loss_reduction((self - target).abs(), reduction)


# ---------------------------------------------------------------------------------------- smooth l1 and huber

smooth_l1_loss = native_function(
    "smooth_l1_loss(Tensor self, Tensor target, int reduction=Mean, float beta=1.0) -> Tensor", module="nn", out=True
)
smooth_l1_loss_backward = declare_backward("smooth_l1_loss", ", float beta")
huber_loss = native_function(
    "huber_loss(Tensor self, Tensor target, int reduction=Mean, float delta=1.0) -> Tensor", module="nn", out=True
)
huber_loss_backward = declare_backward("huber_loss", ", float delta")


def smooth_l1(x, t, beta):
    """A parabola within `beta` of the target, |x - t| outside."""
    distance = np.abs(x - t)
    return np.where(distance < beta, 0.5 * distance * distance / beta, distance - 0.5 * beta)


def huber(x, t, delta):
    """smooth_l1 times delta: a parabola of unit curvature, then straight lines of slope delta."""
    distance = np.abs(x - t)
    return np.where(distance < delta, 0.5 * distance * distance, delta * (distance - 0.5 * delta))


_smooth_l1_loss = loss_kernel(smooth_l1, "smooth_l1_cpu")
_huber_loss = loss_kernel(huber, "huber_cpu")


@smooth_l1_loss.meta
def smooth_l1_loss_meta(self, target, reduction, beta):
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    return loss_meta(self, target, reduction)


@smooth_l1_loss.kernel
def smooth_l1_loss_cpu(self, target, reduction, beta):
    if beta > 0:
        return _smooth_l1_loss(self, target, reduction, beta)
    smooth_l1_loss_meta(self, target, reduction, beta)
    return mae(self, target, reduction)


mae = loss_kernel(lambda x, t: np.abs(x - t), "smooth_l1_cpu")


@huber_loss.meta
def huber_loss_meta(self, target, reduction, delta):
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    return loss_meta(self, target, reduction)


@huber_loss.kernel
def huber_loss_cpu(self, target, reduction, delta):
    if delta <= 0:
        huber_loss_meta(self, target, reduction, delta)
    return _huber_loss(self, target, reduction, delta)


smooth_l1_loss_backward.kernel(
    loss_backward_kernel(lambda x, t, beta: np.clip((x - t) / beta, -1, 1) if beta else np.sign(x - t))
)
huber_loss_backward.kernel(loss_backward_kernel(lambda x, t, delta: np.clip(x - t, -delta, delta)))


@smooth_l1_loss.backward
class SmoothL1LossBackward0:
    def self(grad, self, target, reduction, beta):
        return smooth_l1_loss_backward.call(grad, self, target, reduction, beta)

    def target(grad, self, target, reduction, beta):
        return smooth_l1_loss_backward.call(grad, target, self, reduction, beta)

    def result(self_p, self_t, target_p, target_t, reduction, beta):
        by_self = smooth_l1_loss_backward.call(self_t, self_p, target_p, NONE, beta)
        by_target = smooth_l1_loss_backward.call(target_t, target_p, self_p, NONE, beta)
        return apply_loss_reduction(by_self + by_target, reduction)


@huber_loss.backward
class HuberLossBackward0:
    def self(grad, self, target, reduction, delta):
        return huber_loss_backward.call(grad, self, target, reduction, delta)

    def target(grad, self, target, reduction, delta):
        return huber_loss_backward.call(grad, target, self, reduction, delta)

    def result(self_p, self_t, target_p, target_t, reduction, delta):
        by_self = huber_loss_backward.call(self_t, self_p, target_p, NONE, delta)
        by_target = huber_loss_backward.call(target_t, target_p, self_p, NONE, delta)
        return apply_loss_reduction(by_self + by_target, reduction)


def curvature(grad, grad_output, self, target, width, reduction):
    """The gradient through a slope that grows by 1 per unit, but only within `width` of the target."""
    inside = (self - target).abs() < width
    return scaled(grad * grad_output * inside, numel_of(self._array.shape), reduction)


@smooth_l1_loss_backward.backward
class SmoothL1LossBackwardBackward0:
    def grad_output(grad, self, target, reduction, beta):
        return smooth_l1_loss_backward.call(grad, self, target, reduction, beta)

    def self(grad, grad_output, self, target, reduction, beta):
        return curvature(grad, grad_output, self, target, beta, reduction) / beta if beta else at.zeros_like(grad)

    def target(grad, grad_output, self, target, reduction, beta):
        return -curvature(grad, grad_output, self, target, beta, reduction) / beta if beta else at.zeros_like(grad)

    def result(grad_output_p, grad_output_t, self_p, self_t, target_p, target_t, reduction, beta):
        slope = smooth_l1_loss_backward.call(grad_output_t, self_p, target_p, reduction, beta)
        if not beta:
            return slope
        return slope + curvature(self_t - target_t, grad_output_p, self_p, target_p, beta, reduction) / beta


@huber_loss_backward.backward
class HuberLossBackwardBackward0:
    def grad_output(grad, self, target, reduction, delta):
        return huber_loss_backward.call(grad, self, target, reduction, delta)

    def self(grad, grad_output, self, target, reduction, delta):
        return curvature(grad, grad_output, self, target, delta, reduction)

    def target(grad, grad_output, self, target, reduction, delta):
        return -curvature(grad, grad_output, self, target, delta, reduction)


# ------------------------------------------------------------------------------------------------ soft margin

soft_margin_loss = native_function(
    "soft_margin_loss(Tensor self, Tensor target, int reduction=Mean) -> Tensor", module="nn", out=True
)
soft_margin_loss_backward = declare_backward("soft_margin_loss")
soft_margin_loss.meta(loss_meta)
_soft_margin_loss = loss_kernel(lambda x, t: np.log1p(np.exp(-t * x)), "soft_margin_loss")


@soft_margin_loss.kernel
def soft_margin_loss_cpu(self, target, reduction):
    if self._array.dtype.itemsize > 2:
        return _soft_margin_loss(self, target, reduction)
    with below_autograd():  # PyTorch rounds each step to 16 bits
        return apply_loss_reduction((-self * target).exp().log1p(), reduction)


def soft_margin_slope(x, t):
    z = np.exp(-t * x)
    return -t * z / (1 + z)


@soft_margin_loss_backward.meta
def soft_margin_loss_backward_meta(grad_output, self, target, reduction):
    if self._array.shape == target._array.shape:
        check_broadcasts(grad_output, self._array.shape)
    return broadcast(result_type(grad_output, self, target), target, self, grad_output)


@soft_margin_loss_backward.kernel
def soft_margin_loss_backward_cpu(grad_output, self, target, reduction):
    if grad_output._array.ndim:
        soft_margin_loss_backward_meta(grad_output, self, target, reduction)

    def backward(t, x, g):
        slope = soft_margin_slope(x, t)
        return slope * (g / slope.dtype.type(slope.size) if reduction == MEAN else g)

    return computing(backward, target, self, grad_output)


@soft_margin_loss.backward
class SoftMarginLossBackward0:
    def self(grad, self, target, reduction):
        return soft_margin_loss_backward.call(grad, self, target, reduction)

    def result(self_p, self_t, target, reduction):
        return apply_loss_reduction(soft_margin_loss_backward.call(self_t, self_p, target, NONE), reduction)


@soft_margin_loss_backward.backward
class SoftMarginLossBackwardBackward0:
    def grad_output(grad, self, target, reduction):
        return soft_margin_loss_backward.call(grad, self, target, reduction)

    def self(grad, grad_output, self, target, reduction):
        s = (-target * self).sigmoid()
        return scaled(grad * grad_output * target * target * s * (1 - s), numel_of(self._array.shape), reduction)


# ---------------------------------------------------------------------------------------------------- poisson

poisson_nll_loss = native_function(
    "poisson_nll_loss(Tensor input, Tensor target, bool log_input, bool full, float eps, int reduction) -> Tensor"
)


@poisson_nll_loss.compose
def poisson_nll_loss_composite(input, target, log_input, full, eps, reduction):
    """The expected count, or its logarithm, is the input. full: also the part that depends on the target only,
    log(target!) by Stirling's formula."""
    if log_input:
        loss = input.exp() - target * input
    else:
        loss = input - target * add_scalar.call(input, eps, 1).log()
    if full:
        stirling = target * target.log() - target + mul_scalar.call(mul_scalar.call(target, 2 * math.pi).log(), 0.5)
        loss += stirling.masked_fill(target <= 1, 0)
    return apply_loss_reduction(loss, reduction)


# ------------------------------------------------------------------------------- binary cross entropy, kl_div

_SELF_TARGET = "Tensor self, Tensor target, Tensor? weight=None"

# ------------------------------------------------------------------------------------------- of probabilities

binary_cross_entropy = native_function(
    f"binary_cross_entropy({_SELF_TARGET}, int reduction=Mean) -> Tensor", module="nn", out=True
)
binary_cross_entropy_backward = native_function(
    f"binary_cross_entropy_backward(Tensor grad_output, {_SELF_TARGET}, int reduction=Mean) -> Tensor", module="nn"
)


def cross_entropy_of_bits(x, t):
    """Logarithms stop at -100, so that a certain but wrong prediction costs much and not infinitely much."""
    least = x.dtype.type(-100)
    return (t - x.dtype.type(1)) * np.maximum(np.log1p(-x), least) - t * np.maximum(np.log(x), least)


@binary_cross_entropy.meta
def binary_cross_entropy_meta(self, target, weight, reduction):
    losses = weighed_meta(weight, self, target)
    return losses if reduction == NONE else TensorMeta((), losses.dtype)


def weighed_meta(weight, *tensors):
    """A number for each element of the tensors, times a weight if there is one."""
    tensors = tensors if weight is None else (*tensors, weight)
    return broadcast(result_type(*tensors), *tensors)


def check_same_dtype(self, target):
    """Raises RuntimeError for two dtypes, and NotImplementedError for one that is not floating-point."""
    names = [SCALAR_TYPE_NAMES[dtype_of(t)] for t in (self, target)]
    if names[0] != names[1]:
        raise RuntimeError(f"Found dtype {names[1]} but expected {names[0]}")
    if not self.dtype.is_floating_point:
        raise not_implemented("binary_cross_entropy")(dtype_of(self))


@binary_cross_entropy.kernel
def binary_cross_entropy_cpu(self, target, weight, reduction):
    check_same_dtype(self, target)
    for name, t in (("input", self), ("target", target)):
        if ((t._array < 0) | (t._array > 1)).any():
            raise RuntimeError(f"all elements of {name} should be between 0 and 1")
    if self._array.dtype.itemsize == 2:  # PyTorch rounds each step to 16 bits
        loss = wrap_result(cross_entropy_of_bits(self._array, target._array))
    else:
        loss = computing(cross_entropy_of_bits, self, target)
    with below_autograd():
        return weighed(loss, weight, reduction)


def weighed(loss, weight, reduction):
    """Weigh the elements' losses, in their dtype, and reduce them."""
    return apply_loss_reduction(loss if weight is None else (loss * weight).to(loss.dtype), reduction)


@binary_cross_entropy.backward
class BinaryCrossEntropyBackward0:
    def self(grad, self, target, weight, reduction):
        return binary_cross_entropy_backward.call(grad, self, target, weight, reduction)

    def target(grad, self, target, weight, reduction):
        return share(slope_by_target(self) * grad, weight, reduction)

    def result(self_p, self_t, target_p, target_t, weight, reduction):
        by_self = binary_cross_entropy_backward.call(self_t, self_p, target_p, weight, NONE)
        return apply_loss_reduction(by_self + share(slope_by_target(self_p) * target_t, weight, NONE), reduction)


def slope_by_target(x):
    return (1 - x).log().clamp(min=-100) - x.log().clamp(min=-100)


def share(gradients, weight, reduction):
    """The elements' gradients, weighed, and divided by their number if the loss was a mean."""
    return scaled(gradients if weight is None else gradients * weight, gradients._array.size, reduction)


@binary_cross_entropy_backward.meta
def binary_cross_entropy_backward_meta(grad_output, self, target, weight, reduction):
    return weighed_meta(weight, self, target, grad_output)


@binary_cross_entropy_backward.kernel
def binary_cross_entropy_backward_cpu(grad_output, self, target, weight, reduction):
    slope = computing(
        lambda g, x, t: g * (x - t) / np.maximum((1 - x) * x, x.dtype.type(1e-12)), grad_output, self, target
    )
    with below_autograd():
        return share(slope, weight, reduction)


@binary_cross_entropy_backward.backward
class BinaryCrossEntropyBackwardBackward0:
    def grad_output(grad, self, target, weight, reduction):
        return share(grad * (self - target) / room(self), weight, reduction)

    def self(grad, grad_output, self, target, weight, reduction):
        return share(grad * grad_output * curvature_of_bits(self, target), weight, reduction)

    def target(grad, grad_output, self, weight, reduction):
        return share(-grad * grad_output / room(self), weight, reduction)

    def result(grad_output_p, grad_output_t, self_p, self_t, target_p, target_t, weight, reduction):
        bend = self_t * grad_output_p * curvature_of_bits(self_p, target_p)
        slope = (grad_output_t * (self_p - target_p) - target_t * grad_output_p) / room(self_p)
        return share(bend + slope, weight, reduction)


def curvature_of_bits(x, target):
    below, above = x + 1e-12, 1 - x + 1e-12
    return target / (below * below) + (1 - target) / (above * above)


def room(x):
    """x (1 - x), kept away from 0 where it divides."""
    return ((1 - x) * x).clamp(min=1e-12)


# -------------------------------------------------------------------------------------------------- of logits

binary_cross_entropy_with_logits = native_function(
    f"binary_cross_entropy_with_logits({_SELF_TARGET}, Tensor? pos_weight=None, int reduction=Mean) -> Tensor", out=True
)


@binary_cross_entropy_with_logits.kernel
@any_device
def binary_cross_entropy_with_logits_cpu(self, target, weight, pos_weight, reduction):
    """(1 - t) x - (1 + (pos_weight - 1) t) log sigmoid(x): sigmoid's logarithm is never taken of a rounded 0."""
    with below_autograd():
        log_weight = 1 if pos_weight is None else (pos_weight - 1) * target + 1
        loss = (1 - target) * self - at.log_sigmoid(self) * log_weight
        return weighed(loss, weight, reduction)


@binary_cross_entropy_with_logits.backward
class BinaryCrossEntropyWithLogitsBackward0:
    def self(grad, self, target, weight, pos_weight, reduction):
        return share(slope_by_logit(self, target, pos_weight) * grad, weight, reduction)

    def target(grad, self, weight, pos_weight, reduction):
        return share(slope_by_bit(self, pos_weight) * grad, weight, reduction)

    def result(self_p, self_t, target_p, target_t, weight, pos_weight, reduction):
        changes = slope_by_logit(self_p, target_p, pos_weight) * self_t + slope_by_bit(self_p, pos_weight) * target_t
        return apply_loss_reduction(share(changes, weight, NONE), reduction)


def slope_by_logit(x, target, pos_weight):
    if pos_weight is None:
        return x.sigmoid() - target
    positive = pos_weight * target
    return (positive + 1 - target) * x.sigmoid() - positive


def slope_by_bit(x, pos_weight):
    return -x if pos_weight is None else at.log_sigmoid(-x) - pos_weight * at.log_sigmoid(x)


# ------------------------------------------------------------------------------------- of whole distributions

kl_div = native_function("kl_div(Tensor self, Tensor target, int reduction=Mean, *, bool log_target=False) -> Tensor")


@kl_div.compose
def kl_div_composite(self, target, reduction, log_target):
    """target · (log target - self): `self` holds logarithms."""
    if self.is_complex() or target.is_complex():
        raise RuntimeError("kl_div: Complex inputs not supported.")
    if log_target:
        divergence = target.exp() * (target - self)
    else:
        divergence = at.xlogy(target, target) - target * self
    return apply_loss_reduction(divergence, reduction)


# ---------------------------------------------------------------------------------------------------- margins
# No loss here has a derivative of its own: the graph shows its parts.

margin_ranking_loss = native_function(
    "margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, int reduction=Mean) -> Tensor"
)
hinge_embedding_loss = native_function(
    "hinge_embedding_loss(Tensor self, Tensor target, float margin=1.0, int reduction=Mean) -> Tensor"
)
cosine_embedding_loss = native_function(
    "cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, int reduction=Mean) -> Tensor"
)
triplet_margin_loss = native_function(
    "triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1.0, float p=2, float "
    "eps=1e-06, bool swap=False, int reduction=Mean) -> Tensor"
)

SQUARED_LENGTH_IS_POSITIVE = 1e-12


def number_minus(number, t):
    """As PyTorch's C++ writes it: the number is rounded to the tensor's type first."""
    return at.full_like(t, number) - t


@margin_ranking_loss.compose
def margin_ranking_loss_composite(input1, input2, target, margin, reduction):
    """max(0, -target · (input1 - input2) + margin): target 1 wants input1 larger, -1 input2."""
    return apply_loss_reduction(at.clamp_min(add_scalar.call(-target * (input1 - input2), margin, 1), 0), reduction)


@hinge_embedding_loss.compose
def hinge_embedding_loss_composite(self, target, margin, reduction):
    """The distance itself where target is 1, max(0, margin - distance) where it is -1."""
    zeros = at.zeros_like(self)
    apart = at.where(target != 1, at.clamp_min(number_minus(margin, self), 0), zeros)
    together = at.where(target != -1, self, zeros)
    return apply_loss_reduction(apart + together, reduction)


@cosine_embedding_loss.compose
def cosine_embedding_loss_composite(input1, input2, target, margin, reduction):
    """1 - cos where target is 1, max(0, cos - margin) where it is -1."""
    dim = target.dim()
    check_embeddings(input1, input2, dim)
    squared1 = add_scalar.call((input1 * input1).sum(dim), SQUARED_LENGTH_IS_POSITIVE, 1)
    squared2 = add_scalar.call((input2 * input2).sum(dim), SQUARED_LENGTH_IS_POSITIVE, 1)
    cos = (input1 * input2).sum(dim) / (squared1 * squared2).sqrt()
    zeros = at.zeros_like(cos)
    together = at.where(target == 1, number_minus(1, cos), zeros)
    apart = at.where(target == -1, at.clamp_min(sub_scalar.call(cos, margin, 1), 0), zeros)
    return apply_loss_reduction(together + apart, reduction)


def check_embeddings(input1, input2, target_dim):
    """Raises RuntimeError unless the target has one dimension less than the inputs: none or one."""
    if target_dim > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if input1.dim() != target_dim + 1:
        raise RuntimeError(
            f"{target_dim}D target tensor expects {target_dim + 1}D input tensors, but found inputs "
            f"with sizes {list(input1.shape)} and {list(input2.shape)}."
        )


@triplet_margin_loss.compose
def triplet_margin_loss_composite(anchor, positive, negative, margin, p, eps, swap, reduction):
    """max(0, margin + |anchor - positive| - |anchor - negative|); swap: or |positive - negative| if that is less."""
    dims = (anchor.dim(), positive.dim(), negative.dim())
    if len(set(dims)) > 1:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of "
            "dimensions, but got: anchor {}D, positive {}D, and negative {}D inputs".format(*dims)
        )
    near = at.pairwise_distance(anchor, positive, p, eps)
    far = at.pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = at.minimum(far, at.pairwise_distance(positive, negative, p, eps))
    return apply_loss_reduction(at.clamp_min(add_scalar.call(near, margin, 1) - far, 0), reduction)
