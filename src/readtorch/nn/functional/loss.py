"""Losses. In PyTorch: part of `torch/nn/functional.py`.

`reduction` is "none" (a loss an element), "mean" or "sum"; `size_average` and `reduce` are its old form.
"""

import math
import warnings

import readtorch
from readtorch import Tensor
from readtorch._C import _nn
from readtorch.csrc.utils.disable_torch_function import hand_on, handle_torch_function, has_torch_function_variadic
from readtorch.nn import _reduction as _Reduction

__all__ = [
    "nll_loss",
    "kl_div",
    "cross_entropy",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "smooth_l1_loss",
    "huber_loss",
    "l1_loss",
    "mse_loss",
    "ctc_loss",
    "poisson_nll_loss",
    "gaussian_nll_loss",
]


def _reduction_enum(size_average: bool | None, reduce: bool | None, reduction: str) -> int:
    """The number that the operators know a reduction by."""
    if size_average is not None or reduce is not None:
        return _Reduction.legacy_get_enum(size_average, reduce, stacklevel=5)
    return _Reduction.get_enum(reduction)


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """-log softmax(input)[target], averaged. Input: logits (C), (N, C) or (N, C, d1, …).

    target: class indices of the input's shape without C, or probabilities of the input's shape.
    weight: (C); ignore_index: a class that does not count.
    """
    if has_torch_function_variadic(input, target, weight):
        return hand_on(cross_entropy, (input, target, weight), locals())
    enum = _reduction_enum(size_average, reduce, reduction)
    return _nn.cross_entropy_loss(input, target, weight, enum, ignore_index, label_smoothing)


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """-input[target], averaged: cross entropy for an input of log-probabilities."""
    if has_torch_function_variadic(input, target, weight):
        return hand_on(nll_loss, (input, target, weight), locals())
    enum = _reduction_enum(size_average, reduce, reduction)
    return _nn.nll_loss_nd(input, target, weight, enum, ignore_index)


def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """-(t log x + (1 - t) log(1 - x)), averaged. Input: probabilities; target: of the same shape."""
    if has_torch_function_variadic(input, target, weight):
        return hand_on(binary_cross_entropy, (input, target, weight), locals())
    enum = _reduction_enum(size_average, reduce, reduction)
    if target.size() != input.size():
        raise ValueError(
            f"Using a target size ({target.size()}) that is different to the input size ({input.size()}) "
            "is deprecated. Please ensure they have the same size."
        )
    if weight is not None:
        weight = weight.expand(readtorch.broadcast_shapes(target.size(), weight.size()))
    return _nn.binary_cross_entropy(input, target, weight, enum)


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """`binary_cross_entropy` of sigmoid(input), safe for large inputs. pos_weight: weight of target 1."""
    if has_torch_function_variadic(input, target, weight, pos_weight):
        return hand_on(binary_cross_entropy_with_logits, (input, target, weight, pos_weight), locals())
    enum = _reduction_enum(size_average, reduce, reduction)
    if target.size() != input.size():
        raise ValueError(f"Target size ({target.size()}) must be the same as input size ({input.size()})")
    return readtorch.binary_cross_entropy_with_logits(input, target, weight, pos_weight, enum)


def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """target · (log target - input), averaged. Input: log-probabilities; log_target: the target too.

    reduction "batchmean" is the mathematical definition: the sum divided by the first size.
    """
    if has_torch_function_variadic(input, target):
        return hand_on(kl_div, (input, target), locals())
    if size_average is not None or reduce is not None:
        enum = _Reduction.legacy_get_enum(size_average, reduce)
    else:
        if reduction == "mean":
            warnings.warn(
                "reduction: 'mean' divides the total loss by both the batch size and the support size."
                "'batchmean' divides only by the batch size, and aligns with the KL div math definition."
                "'mean' will be changed to behave the same as 'batchmean' in the next major release.",
                stacklevel=2,
            )
        enum = _Reduction.get_enum("sum" if reduction == "batchmean" else reduction)
    reduced = readtorch.kl_div(input, target, enum, log_target=log_target)
    if reduction == "batchmean" and input.dim() != 0:
        reduced = reduced / input.size()[0]
    return reduced


def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """(x - t)², averaged. weight: of the input's shape; the mean is then weighted too."""
    if has_torch_function_variadic(input, target, weight):
        return hand_on(mse_loss, (input, target, weight), locals())
    input, target, reduction = _same_size(input, target, weight, size_average, reduce, reduction)
    if weight is not None:
        return _reduced(readtorch.pow(input - target, 2) * weight, reduction, readtorch.sum(weight))
    return _nn.mse_loss(input, target, _Reduction.get_enum(reduction))


def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """|x - t|, averaged. weight: of the input's shape; the mean is then weighted too."""
    if has_torch_function_variadic(input, target):
        return handle_torch_function(
            l1_loss,
            (input, target, weight),
            input,
            target,
            size_average=size_average,
            reduce=reduce,
            reduction=reduction,
        )
    input, target, reduction = _same_size(input, target, weight, size_average, reduce, reduction)
    if weight is not None:
        return _reduced(readtorch.abs(input - target) * weight, reduction, readtorch.sum(weight))
    return _nn.l1_loss(input, target, _Reduction.get_enum(reduction))


def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """(x - t)² / (2 beta) where |x - t| < beta, else |x - t| - beta / 2; averaged."""
    if has_torch_function_variadic(input, target):
        return hand_on(smooth_l1_loss, (input, target), locals())
    input, target, reduction = _same_size(input, target, None, size_average, reduce, reduction)
    if beta == 0.0:
        return _nn.l1_loss(input, target, _Reduction.get_enum(reduction))
    return _nn.smooth_l1_loss(input, target, _Reduction.get_enum(reduction), beta)


def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """(x - t)² / 2 where |x - t| < delta, else delta · (|x - t| - delta / 2); averaged.

    weight: of the input's shape. The mean is the plain one also with weights.
    """
    if has_torch_function_variadic(input, target, weight):
        return hand_on(huber_loss, (input, target, weight), locals())
    input, target, reduction = _same_size(input, target, weight, None, None, reduction)
    if weight is None:
        return _nn.huber_loss(input, target, _Reduction.get_enum(reduction), delta)
    weighted = _nn.huber_loss(input, target, _Reduction.get_enum("none"), delta) * weight
    return _reduced(weighted, reduction)


def _same_size(
    input: Tensor, target: Tensor, weight: Tensor | None, size_average: bool | None, reduce: bool | None, reduction: str
) -> tuple[Tensor, Tensor, str]:
    """Input and target, broadcast (with a warning: it is mostly a mistake), and the reduction's name."""
    if target.size() != input.size():
        warnings.warn(
            f"Using a target size ({target.size()}) that is different to the input size ({input.size()}). "
            "This will likely lead to incorrect results due to broadcasting. "
            "Please ensure they have the same size.",
            stacklevel=3,
        )
    if size_average is not None or reduce is not None:
        reduction = _Reduction.legacy_get_string(size_average, reduce, stacklevel=4)
    if weight is not None and weight.size() != input.size():
        raise ValueError("Weights and input must have the same size.")
    input, target = readtorch.broadcast_tensors(input, target)
    return input, target, reduction


def _reduced(errors: Tensor, reduction: str, count: Tensor | None = None) -> Tensor:
    """count: what the mean divides the sum by, if not by the number of errors."""
    if reduction == "none":
        return errors
    if reduction == "sum":
        return readtorch.sum(errors)
    if reduction == "mean":
        return readtorch.mean(errors) if count is None else readtorch.sum(errors) / count
    raise ValueError(f"Invalid reduction mode: {reduction}. Expected one of 'none', 'mean', 'sum'.")


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor,
    target_lengths: Tensor,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """-log of the probability of a label sequence, summed over all its alignments with the input.

    log_probs: (T, N, C) or (T, C), log-probabilities of C labels at T time steps, `blank` among them. targets:
    (N, L), or all of them concatenated. Lengths: N integers each. "mean" divides by the targets' lengths
    first.
    zero_infinity: a target that does not fit into its input has loss 0 and no gradient.
    """
    if has_torch_function_variadic(log_probs, targets, input_lengths, target_lengths):
        return hand_on(ctc_loss, (log_probs, targets, input_lengths, target_lengths), locals())
    return readtorch.ctc_loss(
        log_probs, targets, input_lengths, target_lengths, blank, _Reduction.get_enum(reduction), zero_infinity
    )


def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """-log of the Poisson probability of the counts in target, averaged. Input: the logarithm of the expected counts.

    log_input False: the expected counts themselves; eps keeps them off 0. full: also the term log(target!).
    """
    if has_torch_function_variadic(input, target):
        return hand_on(poisson_nll_loss, (input, target), locals())
    if size_average is not None or reduce is not None:
        reduction = _Reduction.legacy_get_string(size_average, reduce, stacklevel=4)
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(reduction + " is not a valid value for reduction")
    return readtorch.poisson_nll_loss(input, target, log_input, full, eps, _Reduction.get_enum(reduction))


def gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Tensor | float, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Tensor:
    """(log var + (x - t)² / var) / 2, averaged: -log of a normal density with mean x.

    var: a number, or of the input's shape, where the last dimension may be missing, or one dimension be 1.
    eps: the minimum of the variance, which has no gradient there. full: also the constant log(2π) / 2.
    """
    if has_torch_function_variadic(input, target, var):
        return hand_on(gaussian_nll_loss, (input, target, var), locals())
    if isinstance(var, float):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = var * readtorch.ones_like(input)
    elif readtorch.any(var < 0):
        raise ValueError("var has negative entry/entries")
    var = _broadcastable(var, input)
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(reduction + " is not valid")
    var = var.clone()
    with readtorch.no_grad():
        var.clamp_(min=eps)
    loss = 0.5 * (readtorch.log(var) + (input - target) ** 2 / var)
    if full:
        loss += 0.5 * math.log(2 * math.pi)
    return _reduced(loss, reduction)


def _broadcastable(var, input):
    """`var` in a shape that broadcasts with `input`."""
    sizes, wanted = var.size(), input.size()
    if sizes == wanted:
        return var
    if wanted[:-1] == sizes:
        return readtorch.unsqueeze(var, -1)
    if len(sizes) == len(wanted) and [s for s, w in zip(sizes, wanted) if s != w] == [1]:
        return var
    raise ValueError("var is of incorrect size")
