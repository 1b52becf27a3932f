"""Normalization over a batch, over a group, over the features. In PyTorch: part of `torch/nn/functional.py`.

F.normalize, which divides by a length, stands in `distance.py`.
"""

import readtorch
from readtorch import Tensor
from readtorch.csrc.utils.disable_torch_function import (
    hand_on,
    handle_torch_function,
    has_torch_function_unary,
    has_torch_function_variadic,
)

from .padding import pad
from .pooling import avg_pool2d, avg_pool3d

__all__ = ["batch_norm", "group_norm", "instance_norm", "layer_norm", "local_response_norm", "rms_norm"]


def _verify_batch_size(size: list[int]) -> None:
    count = size[0]
    for i in range(2, len(size)):
        count = count * size[i]
    if count == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {size}")


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalize each channel of (N, C, *) over the batch, or, unless training, by the running statistics.

    training: the running statistics, if any, move towards the batch's, in place. All parameters: (C) or None.
    Raises ValueError if a channel has a single value, or for eps <= 0 (in training) or eps < 0.
    """
    if has_torch_function_variadic(input, running_mean, running_var, weight, bias):
        return hand_on(batch_norm, (input, running_mean, running_var, weight, bias), locals())
    if training:
        _verify_batch_size(input.shape)
        if eps <= 0.0:
            raise ValueError(f"batch_norm eps must be positive during training, but got {eps}")
    elif eps < 0.0:
        raise ValueError(f"batch_norm eps must be non-negative, but got {eps}")
    return readtorch.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, True)


def _verify_spatial_size(size: list[int]) -> None:
    count = 1
    for i in range(2, len(size)):
        count = count * size[i]
    if count == 1:
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {size}")


def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalize each channel of each example of (N, C, *); unless use_input_stats, by the running statistics.

    All parameters: (C) or None. Raises ValueError if a channel has a single value.
    """
    if has_torch_function_variadic(input, running_mean, running_var, weight, bias):
        return hand_on(instance_norm, (input, running_mean, running_var, weight, bias), locals())
    if use_input_stats:
        _verify_spatial_size(input.shape)
    return readtorch.instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, True)


def layer_norm(
    input: Tensor,
    normalized_shape: list[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalize over the last dimensions, whose sizes are `normalized_shape`. See `LayerNorm`."""
    if has_torch_function_variadic(input, weight, bias):
        return hand_on(layer_norm, (input, weight, bias), locals())
    return readtorch.layer_norm(input, normalized_shape, weight, bias, eps, True)


def rms_norm(
    input: Tensor, normalized_shape: list[int], weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """Divide by the root mean square over the last dimensions, of sizes `normalized_shape`. See `RMSNorm`."""
    if has_torch_function_variadic(input, weight):
        return handle_torch_function(rms_norm, (input, weight), input, normalized_shape, weight=weight, eps=eps)
    return readtorch.rms_norm(input, normalized_shape, weight, eps)


def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """Normalize each group of channels of each example of (N, C, *). weight, bias: (C) or None.

    Raises RuntimeError for an input without channels or channels that `num_groups` does not divide,
    ValueError if a group has a single value.
    """
    if has_torch_function_variadic(input, weight, bias):
        return hand_on(group_norm, (input, weight, bias), locals())
    if input.dim() < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.dim()}")
    shape = input.shape
    _verify_batch_size([shape[0] * shape[1] // num_groups, num_groups] + list(shape[2:]))
    return readtorch.group_norm(input, num_groups, weight, bias, eps, True)


def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """Divide (N, C, *) by (k + alpha · mean of the squares in `size` neighbouring channels)^beta.

    Raises ValueError for an input of fewer than three dimensions.
    """
    if has_torch_function_unary(input):
        return handle_torch_function(local_response_norm, (input,), input, size, alpha=alpha, beta=beta, k=k)
    dim = input.dim()
    if dim < 3:
        # PyTorch's message has this gap: a string that was continued on the next line.
        raise ValueError(f"Expected 3D or higher dimensionality                          input (got {dim} dimensions)")
    if input.numel() == 0:
        return input
    squares, before, after = input.mul(input), size // 2, (size - 1) // 2
    if dim == 3:
        padded = pad(squares.unsqueeze(1), (0, 0, before, after))
        means = avg_pool2d(padded, (size, 1), stride=1).squeeze(1)
    else:
        sizes = input.size()
        padded = pad(squares.view(sizes[0], 1, sizes[1], sizes[2], -1), (0, 0, 0, 0, before, after))
        means = avg_pool3d(padded, (size, 1, 1), stride=1).squeeze(1).view(sizes)
    return input / means.mul(alpha).add(k).pow(beta)
