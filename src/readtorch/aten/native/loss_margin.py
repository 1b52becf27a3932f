"""Losses that ask for a margin between what belongs together and what does not.

In PyTorch: `aten/src/ATen/native/Loss.cpp`. No loss here has a derivative of its own: the graph shows its parts.
"""
from ..functions import at
from ..native_function import native_function
from .loss import apply_loss_reduction
from .scalar_ops import add_scalar, sub_scalar

margin_ranking_loss = native_function(
    "margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, int reduction=Mean) -> Tensor")
hinge_embedding_loss = native_function(
    "hinge_embedding_loss(Tensor self, Tensor target, float margin=1.0, int reduction=Mean) -> Tensor")
cosine_embedding_loss = native_function(
    "cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, int reduction=Mean) -> Tensor")
triplet_margin_loss = native_function(
    "triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1.0, float p=2, float eps=1e-06, "
    "bool swap=False, int reduction=Mean) -> Tensor")

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
        raise RuntimeError(f"{target_dim}D target tensor expects {target_dim + 1}D input tensors, but found inputs with "
                           f"sizes {list(input1.shape)} and {list(input2.shape)}.")


@triplet_margin_loss.compose
def triplet_margin_loss_composite(anchor, positive, negative, margin, p, eps, swap, reduction):
    """max(0, margin + |anchor - positive| - |anchor - negative|); swap: or |positive - negative| if that is less."""
    dims = (anchor.dim(), positive.dim(), negative.dim())
    if len(set(dims)) > 1:
        raise RuntimeError("The anchor, positive, and negative tensors are expected to have the same number of dimensions, "
                           "but got: anchor {}D, positive {}D, and negative {}D inputs".format(*dims))
    near = at.pairwise_distance(anchor, positive, p, eps)
    far = at.pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = at.minimum(far, at.pairwise_distance(positive, negative, p, eps))
    return apply_loss_reduction(at.clamp_min(add_scalar.call(near, margin, 1) - far, 0), reduction)
