"""Losses with a margin. In PyTorch: part of `torch/nn/functional.py`."""

from collections.abc import Callable

import readtorch
from readtorch import Tensor
from readtorch._C import _nn
from readtorch.csrc.utils.disable_torch_function import hand_on, has_torch_function_variadic
from readtorch.nn import _reduction as _Reduction

from .activation import logsigmoid
from .loss import _reduced, _reduction_enum

__all__ = [
    "margin_ranking_loss",
    "hinge_embedding_loss",
    "cosine_embedding_loss",
    "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
    "soft_margin_loss",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
]


def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """max(0, -target · (input1 - input2) + margin), averaged; target: 1 or -1. All of one number of dimensions."""
    if has_torch_function_variadic(input1, input2, target):
        return hand_on(margin_ranking_loss, (input1, input2, target), locals())
    enum = _reduction_enum(size_average, reduce, reduction)
    if input1.dim() != input2.dim() or input1.dim() != target.dim():
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {input1.size()}, input2: {input2.size()}, target: {target.size()} "
        )
    return readtorch.margin_ranking_loss(input1, input2, target, margin, enum)


def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Input: distances. The distance where target is 1, max(0, margin - distance) where it is -1; averaged."""
    if has_torch_function_variadic(input, target):
        return hand_on(hinge_embedding_loss, (input, target), locals())
    enum = _reduction_enum(size_average, reduce, reduction)
    return readtorch.hinge_embedding_loss(input, target, margin, enum)


def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """1 - cos where target is 1, max(0, cos - margin) where it is -1; averaged. Inputs (N, D), target (N)."""
    if has_torch_function_variadic(input1, input2, target):
        return hand_on(cosine_embedding_loss, (input1, input2, target), locals())
    enum = _reduction_enum(size_average, reduce, reduction)
    return readtorch.cosine_embedding_loss(input1, input2, target, margin, enum)


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """max(0, margin + |anchor - positive| - |anchor - negative|), averaged. Inputs (N, D) or (D)."""
    if has_torch_function_variadic(anchor, positive, negative):
        return hand_on(triplet_margin_loss, (anchor, positive, negative), locals())
    enum = _reduction_enum(size_average, reduce, reduction)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    return readtorch.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, enum)


def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """`triplet_margin_loss` with another distance: a function of two tensors, by default `pairwise_distance`."""
    if has_torch_function_variadic(anchor, positive, negative):
        return hand_on(triplet_margin_with_distance_loss, (anchor, positive, negative), locals())
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    dims = (anchor.ndim, positive.ndim, negative.ndim)
    if len(set(dims)) > 1:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, "
            "but got: anchor {}D, positive {}D, and negative {}D inputs".format(*dims)
        )
    if distance_function is None:
        distance_function = readtorch.pairwise_distance
    near, far = distance_function(anchor, positive), distance_function(anchor, negative)
    if swap:
        far = readtorch.minimum(far, distance_function(positive, negative))
    return _reduced(readtorch.clamp_min(margin + near - far, 0), reduction)


def soft_margin_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
) -> Tensor:
    """log(1 + exp(-target · input)), averaged; target: 1 or -1."""
    if has_torch_function_variadic(input, target):
        return hand_on(soft_margin_loss, (input, target), locals())
    return _nn.soft_margin_loss(input, target, _reduction_enum(size_average, reduce, reduction))


def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Σ max(0, margin + wrong score - right score)^p / C, averaged. Input (N, C) or (C), target (N) or (): a class.

    p: 1 or 2; weight: (C).
    """
    if has_torch_function_variadic(input, target, weight):
        return hand_on(multi_margin_loss, (input, target, weight), locals())
    enum = _reduction_enum(size_average, reduce, reduction)
    if p != 1 and p != 2:
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.dim() != 1:
        raise ValueError("weight must be one-dimensional")
    return _nn.multi_margin_loss(input, target, p, margin, weight, enum)


def multilabel_margin_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
) -> Tensor:
    """Σ max(0, 1 + wrong score - right score) / C, averaged. Input (N, C) or (C).

    target: of the input's shape, the right classes of each sample, ended by the first -1.
    """
    if has_torch_function_variadic(input, target):
        return hand_on(multilabel_margin_loss, (input, target), locals())
    return _nn.multilabel_margin_loss(input, target, _reduction_enum(size_average, reduce, reduction))


def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Binary cross entropy of each class's score, averaged over the classes. Input (*, C), target (*, C) of 0 and 1."""
    if has_torch_function_variadic(input, target, weight):
        return hand_on(multilabel_soft_margin_loss, (input, target, weight), locals())
    if size_average is not None or reduce is not None:
        reduction = _Reduction.legacy_get_string(size_average, reduce, stacklevel=4)
    loss = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input))
    if weight is not None:
        loss = loss * weight
    class_dim = input.dim() - 1
    C = input.size(class_dim)
    loss = loss.sum(dim=class_dim) / C
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(reduction + " is not valid")
    return _reduced(loss, reduction)
