"""The CTC loss: the probability of a sequence of labels without a known alignment to the inputs.

In PyTorch: `aten/src/ATen/native/LossCTC.cpp`.
"""

import functools

import numpy as np

from readtorch.aten.dispatcher import NOT_IMPLEMENTED
from readtorch.aten.functions import at
from readtorch.aten.native_function import below_autograd, native_function
from readtorch.aten.parallel import parallel_for
from readtorch.aten.register_dispatch_key import any_device
from readtorch.aten.tensor_meta import TensorMeta
from readtorch.c10 import scalar_type
from readtorch.c10.dispatch_key import NO_STORAGE
from readtorch.c10.scalar_type import SCALAR_TYPE_NAMES
from readtorch.c10.tensor_impl import dtype_of, host_array, legacy_type_name, wrap

from .copy import constant_beside
from .loss import MEAN, SUM
from .tensor_iterator import not_implemented

_LISTS = "Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths"
_TENSORS = "Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths"
_REST = "Tensor neg_log_likelihood, Tensor log_alpha, int blank, bool zero_infinity=False"

ctc_loss = native_function(
    f"ctc_loss.IntList({_LISTS}, int blank=0, int reduction=Mean, bool zero_infinity=False) -> Tensor"
)
ctc_loss_tensor = native_function(
    f"ctc_loss.Tensor({_TENSORS}, int blank=0, int reduction=Mean, bool zero_infinity=False) -> Tensor"
)
_ctc_loss = native_function(f"_ctc_loss({_LISTS}, int blank=0, bool zero_infinity=False) -> (Tensor, Tensor)")
_ctc_loss_tensor = native_function(
    f"_ctc_loss.Tensor({_TENSORS}, int blank=0, bool zero_infinity=False) -> (Tensor, Tensor)"
)
_ctc_loss_backward = native_function(f"_ctc_loss_backward(Tensor grad, {_LISTS}, {_REST}) -> Tensor", "")
_ctc_loss_backward_tensor = native_function(
    f"_ctc_loss_backward.Tensor(Tensor grad, {_TENSORS}, {_REST}) -> Tensor", ""
)


@functools.cache
def loops():
    from .cpu import loss_ctc

    return loss_ctc


# ------------------------------------------------------------------------------------------------- what users call


@ctc_loss.compose
def ctc_loss_composite(log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity):
    """log_probs (T, N, C) or (T, C); the mean is over losses that were divided by the lengths of their targets."""

    def divisors(losses):
        return constant_beside(losses, np.array(target_lengths, losses._array.dtype))

    return ctc_loss_by(
        _ctc_loss, divisors, log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity
    )


def ctc_loss_by(operator, divisors, log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity):
    is_batched = log_probs.dim() == 3
    if not is_batched:
        log_probs, targets = log_probs.unsqueeze(1), targets.unsqueeze(0)
    losses = operator.call(
        log_probs, targets.to(scalar_type.int64), input_lengths, target_lengths, blank, zero_infinity
    )[0]
    if zero_infinity:
        nothing = at.scalar_tensor(0.0, dtype=losses.dtype, device=losses.device)
        losses = at.where(losses == float("inf"), nothing, losses)
    if reduction == MEAN:
        return (losses / at.clamp_min(divisors(losses), 1)).mean()
    if reduction == SUM:
        return losses.sum()
    return losses if is_batched else losses.squeeze(0)


@ctc_loss_tensor.compose
def ctc_loss_tensor_composite(log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity):
    """The lengths are read, unless they are an example's own, as under vmap."""
    if (input_lengths._keys | target_lengths._keys) & NO_STORAGE:
        return ctc_loss_by(
            _ctc_loss_tensor,
            lambda losses: target_lengths.to(losses.dtype).reshape(-1),
            log_probs,
            targets,
            input_lengths,
            target_lengths,
            blank,
            reduction,
            zero_infinity,
        )
    lengths = as_list(input_lengths, "input_lengths"), as_list(target_lengths, "target_lengths")
    return ctc_loss.call(log_probs, targets, *lengths, blank, reduction, zero_infinity)


def as_list(lengths, name):
    if lengths._array.dtype.kind not in "iu":
        raise RuntimeError(f"{name} must be integral")
    return tuple(host_array(lengths).reshape(-1).tolist())


# ----------------------------------------------------------------------------------------------------- the operator


@_ctc_loss.meta
def ctc_loss_meta(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity):
    """The loss of each sample (N), and alpha (N, T, S) for backward. See Note [ Paths through a label sequence ]."""
    check_arguments(log_probs, targets, input_lengths, target_lengths, blank)
    steps, samples, _ = log_probs._array.shape
    longest = targets._array.shape[1] if targets._array.ndim == 2 else max(target_lengths, default=0)
    kind = dtype_of(log_probs)
    return TensorMeta((samples,), kind), TensorMeta((samples, steps, 2 * longest + 1), kind)


@_ctc_loss.kernel
def ctc_loss_cpu(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity):
    check_arguments(log_probs, targets, input_lengths, target_lengths, blank)
    lp = log_probs._array
    if lp.dtype.name not in ("float32", "float64"):
        raise not_implemented("ctc_loss_cpu")(dtype_of(log_probs))
    labels = as_matrix(targets._array, target_lengths)
    check_labels(labels, target_lengths, lp.shape[2])
    log_alpha = np.full((lp.shape[1], lp.shape[0], 2 * labels.shape[1] + 1), -np.inf, lp.dtype)
    losses = np.empty(lp.shape[1], lp.dtype)
    lengths = np.array(input_lengths, np.int64), np.array(target_lengths, np.int64)
    parallel_for(
        0,
        losses.size,
        grain(log_alpha),
        lambda begin, end: loops().losses(lp, labels, *lengths, blank, log_alpha, losses, begin, end),
    )
    return wrap(losses), wrap(log_alpha)


def grain(log_alpha):
    """How many samples are worth a thread: an element costs some 30 ns."""
    return 1 + 5000 // (log_alpha[0].size + 1)


def as_matrix(targets, target_lengths):
    """Targets that stand one after the other, as rows of one length (N, L)."""
    if targets.ndim == 2:
        return targets.astype(np.int64, copy=False)
    rows = np.zeros((len(target_lengths), max(target_lengths, default=0)), np.int64)
    rows[np.arange(rows.shape[1]) < np.array(target_lengths)[:, None]] = targets
    return rows


@_ctc_loss.backward
class CtcLossBackward0:
    output_differentiability = [True, False]

    def log_probs(grad, log_probs, targets, input_lengths, target_lengths, result0, result1, blank, zero_infinity):
        return _ctc_loss_backward.call(
            grad, log_probs, targets, input_lengths, target_lengths, result0, result1, blank, zero_infinity
        )


@_ctc_loss_backward.meta
def ctc_loss_backward_meta(
    grad, log_probs, targets, input_lengths, target_lengths, neg_log_likelihood, log_alpha, blank, zero_infinity
):
    check_arguments(log_probs, targets, input_lengths, target_lengths, blank)
    check_saved(grad, log_probs, target_lengths, neg_log_likelihood, log_alpha)
    return TensorMeta(log_probs._array.shape, dtype_of(log_probs))


@_ctc_loss_backward.kernel
def ctc_loss_backward_cpu(
    grad, log_probs, targets, input_lengths, target_lengths, neg_log_likelihood, log_alpha, blank, zero_infinity
):
    check_arguments(log_probs, targets, input_lengths, target_lengths, blank)
    check_saved(grad, log_probs, target_lengths, neg_log_likelihood, log_alpha)
    lp, alpha = log_probs._array, log_alpha._array
    labels = as_matrix(targets._array, target_lengths)
    check_labels(labels, target_lengths, lp.shape[2])
    lengths = np.array(input_lengths, np.int64), np.array(target_lengths, np.int64)
    result = np.zeros(lp.shape, lp.dtype)
    arguments = (grad._array, lp, labels, *lengths, neg_log_likelihood._array, alpha, blank, zero_infinity, result)
    parallel_for(0, lp.shape[1], grain(alpha), lambda begin, end: loops().gradients(*arguments, begin, end))
    return wrap(result)


_ctc_loss_backward.backward(NOT_IMPLEMENTED)


# --------------------------------------------------------------------------------------- lengths given as tensors


@_ctc_loss_tensor.kernel
@any_device
def ctc_loss_tensor(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity):
    lengths = as_list(input_lengths, "input_lengths"), as_list(target_lengths, "target_lengths")
    with below_autograd():
        return _ctc_loss.call(log_probs, targets, *lengths, blank, zero_infinity)


@_ctc_loss_tensor.backward
class CtcLossBackward1:
    output_differentiability = [True, False]

    def log_probs(grad, log_probs, targets, input_lengths, target_lengths, result0, result1, blank, zero_infinity):
        return _ctc_loss_backward_tensor.call(
            grad, log_probs, targets, input_lengths, target_lengths, result0, result1, blank, zero_infinity
        )


@_ctc_loss_backward_tensor.kernel
@any_device
def ctc_loss_backward_tensor(grad, log_probs, targets, input_lengths, target_lengths, *rest):
    lengths = as_list(input_lengths, "input_lengths"), as_list(target_lengths, "target_lengths")
    with below_autograd():
        return _ctc_loss_backward.call(grad, log_probs, targets, *lengths, *rest)


_ctc_loss_backward_tensor.backward(NOT_IMPLEMENTED)


# -------------------------------------------------------------------------------------------------------- checks

_WHERE = "(while checking arguments for ctc_loss_allocate_outputs)"


def check_arguments(log_probs, targets, input_lengths, target_lengths, blank):
    shape, wanted = log_probs._array.shape, targets._array.shape
    if not log_probs._array.size:
        raise RuntimeError("log_probs tensor must not be empty")
    if targets._array.dtype.name not in ("int64", "int32"):
        raise RuntimeError(
            "Expected tensor for argument #2 'targets' to have scalar type Int; "
            f"but got {legacy_type_name(targets)} instead {_WHERE}"
        )
    if len(shape) != 3:
        raise RuntimeError(
            f"Expected 3-dimensional tensor, but got {len(shape)}-dimensional tensor for argument #1 "
            f"'log_probs' {_WHERE}"
        )
    if len(wanted) not in (1, 2):
        raise RuntimeError(
            f"Expected 1 to 2 dimensions, but got {len(wanted)}-dimensional tensor for argument #2 'targets' {_WHERE}"
        )
    if not 0 <= blank < shape[2]:
        raise RuntimeError("blank must be in label range")
    for lengths, name in ((input_lengths, "input_lengths"), (target_lengths, "target_lengths")):
        if len(lengths) != shape[1]:
            raise RuntimeError(f"{name} must be of size batch_size")
    check_target_lengths(wanted, target_lengths)
    check_input_lengths(shape[0], input_lengths)


def check_target_lengths(wanted, target_lengths):
    if min(target_lengths) < 0:
        raise RuntimeError(
            f"Expected target_lengths to have value at least 0, but got value {min(target_lengths)} {_WHERE}"
        )
    size = sum(target_lengths) if len(wanted) == 1 else len(target_lengths)
    if wanted[0] != size:
        raise RuntimeError(
            f"Expected tensor to have size {size} at dimension 0, but got size {wanted[0]} for argument "
            f"#2 'targets' {_WHERE}"
        )
    if len(wanted) == 2 and wanted[1] < max(target_lengths):
        raise RuntimeError(
            f"Expected tensor to have size at least {max(target_lengths)} at dimension 1, but got size "
            f"{wanted[1]} for argument #2 'targets' {_WHERE}"
        )


def check_input_lengths(steps, input_lengths):
    if min(input_lengths) < 0:
        raise RuntimeError(
            f"Expected input_lengths to have value at least 0, but got value {min(input_lengths)} {_WHERE}"
        )
    if max(input_lengths) > steps:
        raise RuntimeError(
            f"Expected input_lengths to have value at most {steps}, but got value {max(input_lengths)} {_WHERE}"
        )


def check_saved(grad, log_probs, target_lengths, neg_log_likelihood, log_alpha):
    """Raises RuntimeError unless what forward saved, and the gradient, have the sizes and the type of its results. (In
    PyTorch: not checked.)"""
    steps, samples, _ = log_probs._array.shape
    states = 2 * max(target_lengths) + 1
    for name, t in (("grad", grad), ("neg_log_likelihood", neg_log_likelihood)):
        if t._array.shape != (samples,):
            raise RuntimeError(
                f"ctc_loss_backward: expected {name} to have shape {[samples]}, but got {list(t._array.shape)}"
            )
    shape = log_alpha._array.shape
    if len(shape) != 3 or shape[:2] != (samples, steps) or shape[2] < states:
        raise RuntimeError(
            f"ctc_loss_backward: expected log_alpha to have shape {[samples, steps, states]}, but got {list(shape)}"
        )
    for t in (grad, neg_log_likelihood, log_alpha):
        if dtype_of(t) is not dtype_of(log_probs):
            raise RuntimeError(
                f"expected scalar type {SCALAR_TYPE_NAMES[dtype_of(log_probs)]} but found "
                f"{SCALAR_TYPE_NAMES[dtype_of(t)]}"
            )
    if dtype_of(log_probs).name not in ("float32", "float64"):
        raise not_implemented("ctc_loss_backward_cpu")(dtype_of(log_probs))


def check_labels(labels, target_lengths, count):
    """In PyTorch: not checked, and a label that does not exist reads other memory."""
    used = np.arange(labels.shape[1]) < np.array(target_lengths)[:, None]
    wrong = labels[used & ((labels < 0) | (labels >= count))]
    if wrong.size:
        raise IndexError(f"ctc_loss: target {wrong[0]} is out of bounds for {count} labels")
