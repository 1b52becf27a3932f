"""Rows of a table, selected by index. In PyTorch: part of `torch/nn/functional.py`."""

import warnings

import readtorch
from readtorch import Tensor
from readtorch.csrc.utils.disable_torch_function import hand_on, has_torch_function_variadic

__all__ = ["embedding", "embedding_bag"]


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """weight[input]: input (*) of row numbers, weight (V, D), result (*, D).

    padding_idx: a row that gets no gradient. max_norm: rows are shortened in place to this norm before they are
    picked. scale_grad_by_freq: a row's gradient is divided by how often it was picked.
    """
    if has_torch_function_variadic(input, weight):
        return hand_on(embedding, (input, weight), locals())
    if padding_idx is None:
        padding_idx = -1
    else:
        padding_idx = _row(padding_idx, weight.size(0))
    if max_norm is not None:
        input = input.contiguous()
        _no_grad_embedding_renorm_(weight, input, max_norm, norm_type)
    return readtorch.embedding(weight, input, padding_idx, scale_grad_by_freq, sparse)


def _row(padding_idx: int, count: int) -> int:
    if not -count <= padding_idx < count:
        raise AssertionError("Padding_idx must be within num_embeddings")
    return padding_idx + count if padding_idx < 0 else padding_idx


def _no_grad_embedding_renorm_(weight: Tensor, input: Tensor, max_norm: float, norm_type: float) -> None:
    readtorch.embedding_renorm_(weight.detach(), input, max_norm, norm_type)


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """The sum, mean or maximum of several rows of weight (V, D), for each of B bags: (B, D).

    input: (B, N), bags of one length; or (N) with offsets (B), where each bag begins in it, or (B + 1) with
    include_last_offset. per_sample_weights: factors of input's shape, for mode "sum". The rows of padding_idx
    count nothing.
    """
    if has_torch_function_variadic(input, weight, offsets, per_sample_weights):
        return hand_on(embedding_bag, (input, weight, offsets, per_sample_weights), locals())
    if weight.dtype == readtorch.long and input.is_floating_point():
        warnings.warn(
            "Argument order of nn.functional.embedding_bag was changed. "
            "Usage `embedding_bag(weight, input, ...)` is deprecated, "
            "and should now be `embedding_bag(input, weight, ...)`.",
            stacklevel=2,
        )
        weight, input = input, weight
    if per_sample_weights is not None and input.size() != per_sample_weights.size():
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, "
            f"then it must have the same shape as the input ({input.shape})"
        )
    if weight.dim() != 2:
        raise ValueError(f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.dim()}")
    if input.dim() == 2:
        input, offsets, per_sample_weights = _bags_of_one_length(input, offsets, per_sample_weights)
        include_last_offset = False
    else:
        offsets = _checked_offsets(input, offsets)
    mode_enum = _mode_enum(mode, scale_grad_by_freq, sparse)
    if max_norm is not None:
        _no_grad_embedding_renorm_(weight, input, max_norm, norm_type)
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' "
            f"(got mode='{mode}'). Please open a feature request on GitHub."
        )
    return readtorch.embedding_bag(
        weight,
        input,
        offsets,
        scale_grad_by_freq,
        mode_enum,
        sparse,
        per_sample_weights,
        include_last_offset,
        padding_idx,
    )[0]


def _bags_of_one_length(
    input: Tensor, offsets: Tensor | None, per_sample_weights: Tensor | None
) -> tuple[Tensor, Tensor, Tensor | None]:
    """A matrix of bags as one row of bags, and their offsets."""
    if offsets is not None:
        kind = "<unknown>"
        if not readtorch.jit.is_scripting():
            kind = str(type(offsets))
        raise ValueError(
            "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of"
            f" fixed length sequences. However, found offsets of type {kind}"
        )
    offsets = readtorch.arange(0, input.numel(), input.size(1), dtype=input.dtype, device=input.device)
    if per_sample_weights is not None:
        per_sample_weights = per_sample_weights.reshape(-1)
    return input.reshape(-1), offsets, per_sample_weights


def _checked_offsets(input: Tensor, offsets: Tensor | None) -> Tensor:
    if input.dim() != 1:
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.dim()}")
    if offsets is None:
        raise ValueError("offsets has to be a 1D Tensor but got None")
    if offsets.dim() != 1:
        raise ValueError("offsets has to be a 1D Tensor")
    return offsets


def _mode_enum(mode: str, scale_grad_by_freq: bool, sparse: bool) -> int:
    """The number that the operator knows a mode by."""
    if mode == "sum":
        return 0
    if mode == "mean":
        return 1
    if mode != "max":
        raise ValueError("mode has to be one of sum, mean or max")
    if scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if sparse:
        raise ValueError("max mode does not support sparse weights")
    return 2
