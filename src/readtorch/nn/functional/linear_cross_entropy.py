"""A linear layer and its cross entropy in one. In PyTorch: part of `torch/nn/functional.py`."""

import math
import warnings

import readtorch
from readtorch import Tensor
from readtorch._C import _nn
from readtorch.csrc.utils.disable_torch_function import hand_on, has_torch_function_variadic

from .loss import cross_entropy

__all__ = ["linear_cross_entropy"]


def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options=None,
) -> Tensor:
    """cross_entropy(linear(input, linear_weight, linear_bias), target).

    input: (N, D) or (D); linear_weight: (C, D), or (C, d1, …, D) for a target (N, d1, …); linear_bias: the same
    without D.
    options: `LinearCrossEntropyOptions`, to do it in chunks that never hold all scores.
    """
    if has_torch_function_variadic(input, linear_weight, target, linear_bias, weight):
        return hand_on(linear_cross_entropy, (input, linear_weight, target, linear_bias, weight), locals())
    _check_shapes(input, linear_weight, linear_bias)
    num_classes, out_features = linear_weight.shape[0], linear_weight.shape[1:-1]
    logits_shape = (*input.shape[:-1], num_classes, *out_features)
    if target.shape == logits_shape and ignore_index is not None:
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")
    ignore_index = -100 if ignore_index is None else ignore_index
    if options is not None:
        if (
            reduction in ("mean", "sum", "none")
            and label_smoothing == 0.0
            and target.dtype == readtorch.int64
            and not out_features
        ):
            return _in_chunks(input, linear_weight, target, linear_bias, weight, reduction, ignore_index, options)
        _warn_ignored(reduction, label_smoothing, target, out_features, linear_bias)
    if out_features:
        rows = math.prod(out_features, start=num_classes)
        linear_weight = linear_weight.reshape((rows, linear_weight.shape[-1]))
        linear_bias = None if linear_bias is None else linear_bias.reshape(rows)
    logits = _nn.linear(input, linear_weight, linear_bias).reshape(logits_shape)
    return cross_entropy(
        logits, target, weight=weight, reduction=reduction, ignore_index=ignore_index, label_smoothing=label_smoothing
    )


def _in_chunks(input, linear_weight, target, linear_bias, weight, reduction, ignore_index, options):
    # Here, because modules import functions.
    from readtorch.nn.modules import linear_cross_entropy as chunked

    has_batches = input.dim() == 2
    if not has_batches:
        input, target = input.unsqueeze(0), target.unsqueeze(0)
    options = options._adjust(*input.shape, linear_weight.shape[0], input.dtype, input.device)
    tensors = (input, linear_weight, target, linear_bias, weight)
    if reduction == "none":
        function = chunked.GeneratedBackwardFor_torch_nn__linear_cross_entropy_batch_chunked_no_reduction_default
        result = function.apply(*tensors, ignore_index, options)
    else:
        function = chunked.GeneratedBackwardFor_torch_nn__linear_cross_entropy_batch_chunked_default
        result = function.apply(*tensors, reduction, ignore_index, options)
    return result if has_batches else result.squeeze(0)


def _check_shapes(input, linear_weight, linear_bias):
    if input.dim() < 1 or input.dim() > 2:
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {input.dim()}")
    if linear_weight.dim() < 2:
        raise RuntimeError(f"expected linear_weight with dimensionality at least 2, got {linear_weight.dim()}")
    in_features = input.shape[-1]
    if in_features != linear_weight.shape[-1]:
        raise RuntimeError(
            "expected equal input and linear_weight last dimensions (in_features), "
            f"got {in_features} and {linear_weight.shape[-1]}, respectively"
        )
    if linear_bias is not None and tuple(linear_bias.shape) != tuple(linear_weight.shape[:-1]):
        raise RuntimeError(
            f"expected linear_bias shape {tuple(linear_weight.shape[:-1])}, got {tuple(linear_bias.shape)}"
        )
    if linear_weight.dim() > 2 and input.dim() == 1:
        raise RuntimeError(
            f"K-dimensional loss defined by linear_weight shape {tuple(linear_weight.shape)} requires"
            f" batched input, (N, {in_features}), got unbatched"
            f" input with shape {tuple(input.shape)}"
        )


def _warn_ignored(reduction, label_smoothing, target, out_features, linear_bias):
    bias_shape = None if linear_bias is None else tuple(linear_bias.shape)
    warnings.warn(
        "linear_cross_entropy: ``options`` ignored; chunked path needs "
        "reduction in {'mean','sum','none'}, label_smoothing == 0, target.dtype == int64, out_features == (). "
        f"Got reduction={reduction!r}, label_smoothing={label_smoothing}, target.dtype={target.dtype}, "
        f"out_features={tuple(out_features)}, tracing=False, linear_bias.shape={bias_shape}.",
        stacklevel=3,
    )
