"""Losses with a margin. In PyTorch: part of `torch/nn/functional.py`."""
import readtorch
from readtorch.nn.functional.loss import _reduction_enum

__all__ = ["margin_ranking_loss", "hinge_embedding_loss", "cosine_embedding_loss", "triplet_margin_loss"]


def margin_ranking_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"):
    """max(0, -target · (input1 - input2) + margin), averaged; target: 1 or -1. All of one number of dimensions."""
    enum = _reduction_enum(size_average, reduce, reduction)
    if input1.dim() != input2.dim() or input1.dim() != target.dim():
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {input1.size()}, input2: {input2.size()}, target: {target.size()} "
        )
    return readtorch.margin_ranking_loss(input1, input2, target, margin, enum)


def hinge_embedding_loss(input, target, margin=1.0, size_average=None, reduce=None, reduction="mean"):
    """Input: distances. The distance where target is 1, max(0, margin - distance) where it is -1; averaged."""
    enum = _reduction_enum(size_average, reduce, reduction)
    return readtorch.hinge_embedding_loss(input, target, margin, enum)


def cosine_embedding_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"):
    """1 - cos where target is 1, max(0, cos - margin) where it is -1; averaged. Inputs (N, D), target (N)."""
    enum = _reduction_enum(size_average, reduce, reduction)
    return readtorch.cosine_embedding_loss(input1, input2, target, margin, enum)


def triplet_margin_loss(
    anchor, positive, negative, margin=1.0, p=2, eps=1e-6, swap=False, size_average=None, reduce=None, reduction="mean"
):
    """max(0, margin + |anchor - positive| - |anchor - negative|), averaged. Inputs (N, D) or (D)."""
    enum = _reduction_enum(size_average, reduce, reduction)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    return readtorch.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, enum)
