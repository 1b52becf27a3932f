"""Pooling. In PyTorch: part of `torch/nn/functional.py`.

Inputs are (N, C, …) or (C, …) with one to three dimensions behind the channels. A kernel size, stride,
padding or dilation is one number for all of these dimensions or a tuple with one for each; without a stride
the windows do not overlap. With `ceil_mode` the last window may extend beyond the end.
"""

import readtorch
from readtorch import Tensor
from readtorch._C import _nn
from readtorch._jit_internal import BroadcastingList1, BroadcastingList2, BroadcastingList3, boolean_dispatch
from readtorch.csrc.utils.disable_torch_function import (
    hand_on,
    handle_torch_function,
    has_torch_function_unary,
    has_torch_function_variadic,
)
from readtorch.nn.modules.utils import _list_with_default, _pair, _single, _triple

from .activation import relu

__all__ = [
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "max_pool1d_with_indices",
    "max_pool2d_with_indices",
    "max_pool3d_with_indices",
    "max_unpool1d",
    "max_unpool2d",
    "max_unpool3d",
    "lp_pool1d",
    "lp_pool2d",
    "lp_pool3d",
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "adaptive_max_pool3d",
    "adaptive_max_pool1d_with_indices",
    "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d_with_indices",
    "fractional_max_pool2d",
    "fractional_max_pool3d",
    "fractional_max_pool2d_with_indices",
    "fractional_max_pool3d_with_indices",
]

# The mean of each window. count_include_pad: whether padding counts in the divisor, which divisor_override
# replaces.
avg_pool1d = readtorch.avg_pool1d
avg_pool2d = _nn.avg_pool2d
avg_pool3d = _nn.avg_pool3d
adaptive_avg_pool1d = readtorch.adaptive_avg_pool1d


# Maximum


def max_pool1d_with_indices(
    input: Tensor,
    kernel_size: BroadcastingList1[int],
    stride: BroadcastingList1[int] | None = None,
    padding: BroadcastingList1[int] = 0,
    dilation: BroadcastingList1[int] = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor]:
    """`max_pool1d` with the indices of the maxima."""
    if has_torch_function_unary(input):
        return hand_on(max_pool1d_with_indices, (input,), locals())
    if stride is None:
        stride = readtorch.jit.annotate(list[int], [])
    return readtorch.max_pool1d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)


def _max_pool1d(
    input: Tensor,
    kernel_size: BroadcastingList1[int],
    stride: BroadcastingList1[int] | None = None,
    padding: BroadcastingList1[int] = 0,
    dilation: BroadcastingList1[int] = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor:
    """The maximum of each window of (N, C, L) or (C, L); return_indices: and its index."""
    if has_torch_function_unary(input):
        return hand_on(max_pool1d, (input,), locals(), _max_pool1d)
    if stride is None:
        stride = readtorch.jit.annotate(list[int], [])
    return readtorch.max_pool1d(input, kernel_size, stride, padding, dilation, ceil_mode)


max_pool1d = boolean_dispatch("return_indices", 6, False, max_pool1d_with_indices, _max_pool1d, __name__, "max_pool1d")


def max_pool2d_with_indices(
    input: Tensor,
    kernel_size: BroadcastingList2[int],
    stride: BroadcastingList2[int] | None = None,
    padding: BroadcastingList2[int] = 0,
    dilation: BroadcastingList2[int] = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor]:
    """`max_pool2d` with the indices of the maxima."""
    if has_torch_function_unary(input):
        return hand_on(max_pool2d_with_indices, (input,), locals())
    if stride is None:
        stride = readtorch.jit.annotate(list[int], [])
    return _nn.max_pool2d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)


def _max_pool2d(
    input: Tensor,
    kernel_size: BroadcastingList2[int],
    stride: BroadcastingList2[int] | None = None,
    padding: BroadcastingList2[int] = 0,
    dilation: BroadcastingList2[int] = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor:
    """The maximum of each window of (N, C, H, W) or (C, H, W); return_indices: and its index."""
    if has_torch_function_unary(input):
        return hand_on(max_pool2d, (input,), locals(), _max_pool2d)
    if stride is None:
        stride = readtorch.jit.annotate(list[int], [])
    return readtorch.max_pool2d(input, kernel_size, stride, padding, dilation, ceil_mode)


max_pool2d = boolean_dispatch("return_indices", 6, False, max_pool2d_with_indices, _max_pool2d, __name__, "max_pool2d")


def max_pool3d_with_indices(
    input: Tensor,
    kernel_size: BroadcastingList3[int],
    stride: BroadcastingList3[int] | None = None,
    padding: BroadcastingList3[int] = 0,
    dilation: BroadcastingList3[int] = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor]:
    """`max_pool3d` with the indices of the maxima."""
    if has_torch_function_unary(input):
        return hand_on(max_pool3d_with_indices, (input,), locals())
    if stride is None:
        stride = readtorch.jit.annotate(list[int], [])
    return _nn.max_pool3d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)


def _max_pool3d(
    input: Tensor,
    kernel_size: BroadcastingList3[int],
    stride: BroadcastingList3[int] | None = None,
    padding: BroadcastingList3[int] = 0,
    dilation: BroadcastingList3[int] = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor:
    """The maximum of each window of (N, C, D, H, W) or (C, D, H, W); return_indices: and its index."""
    if has_torch_function_unary(input):
        return hand_on(max_pool3d, (input,), locals(), _max_pool3d)
    if stride is None:
        stride = readtorch.jit.annotate(list[int], [])
    return readtorch.max_pool3d(input, kernel_size, stride, padding, dilation, ceil_mode)


max_pool3d = boolean_dispatch("return_indices", 6, False, max_pool3d_with_indices, _max_pool3d, __name__, "max_pool3d")


# Unpooling


def max_unpool1d(
    input: Tensor,
    indices: Tensor,
    kernel_size: BroadcastingList1[int],
    stride: BroadcastingList1[int] | None = None,
    padding: BroadcastingList1[int] = 0,
    output_size: BroadcastingList1[int] | None = None,
) -> Tensor:
    """The maxima of (N, C, L) back at their indices, zeros elsewhere. output_size: if several fit."""
    if has_torch_function_unary(input):
        return hand_on(max_unpool1d, (input,), locals())
    kernel_size = _single(kernel_size)
    stride = kernel_size if stride is None else _single(stride)
    size = _unpool_output_size(input, kernel_size, stride, _single(padding), output_size)
    return _nn.max_unpool2d(input.unsqueeze(-1), indices.unsqueeze(-1), list(size) + [1]).squeeze(-1)


def max_unpool2d(
    input: Tensor,
    indices: Tensor,
    kernel_size: BroadcastingList2[int],
    stride: BroadcastingList2[int] | None = None,
    padding: BroadcastingList2[int] = 0,
    output_size: BroadcastingList2[int] | None = None,
) -> Tensor:
    """The maxima of (N, C, H, W) back at their indices, zeros elsewhere. output_size: if several fit."""
    if has_torch_function_unary(input):
        return hand_on(max_unpool2d, (input,), locals())
    kernel_size = _pair(kernel_size)
    stride = kernel_size if stride is None else _pair(stride)
    size = _unpool_output_size(input, kernel_size, stride, _pair(padding), output_size)
    return _nn.max_unpool2d(input, indices, size)


def max_unpool3d(
    input: Tensor,
    indices: Tensor,
    kernel_size: BroadcastingList3[int],
    stride: BroadcastingList3[int] | None = None,
    padding: BroadcastingList3[int] = 0,
    output_size: BroadcastingList3[int] | None = None,
) -> Tensor:
    """The maxima of (N, C, D, H, W) back at their indices, zeros elsewhere. output_size: if several fit."""
    if has_torch_function_unary(input):
        return hand_on(max_unpool3d, (input,), locals())
    kernel_size = _triple(kernel_size)
    stride = kernel_size if stride is None else _triple(stride)
    padding = _triple(padding)
    size = _unpool_output_size(input, kernel_size, stride, padding, output_size)
    return _nn.max_unpool3d(input, indices, size, stride, padding)


def _unpool_output_size(
    input: Tensor, kernel_size: list[int], stride: list[int], padding: list[int], output_size: list[int] | None
) -> list[int]:
    """The sizes of what was pooled. Raises ValueError for an `output_size` that cannot be."""
    dims = len(kernel_size)
    default = [(input.size(d - dims) - 1) * stride[d] + kernel_size[d] - 2 * padding[d] for d in range(dims)]
    chosen = default if output_size is None else _checked_output_size(output_size, default, stride)
    for d, n in enumerate(chosen):
        if n < 0:
            raise ValueError(
                f"max_unpooling: output_size must contain non-negative spatial dimensions, but got output_size[{d}]={n}"
            )
    return chosen


def _checked_output_size(output_size: list[int], default: list[int], stride: list[int]) -> list[int]:
    dims = len(default)
    if len(output_size) == dims + 2:
        output_size = output_size[2:]
    if len(output_size) != dims:
        raise ValueError(
            f"output_size should be a sequence containing {dims} or {dims + 2} elements, but it "
            f"has a length of '{len(output_size)}'"
        )
    for d in range(dims):
        least, most = default[d] - stride[d], default[d] + stride[d]
        if not least < output_size[d] < most:
            raise ValueError(f'invalid output_size "{output_size}" (dim {d} must be between {least} and {most})')
    return output_size


# Power means


def lp_pool1d(
    input: Tensor,
    norm_type: int | float,
    kernel_size: int,
    stride: BroadcastingList1[int] | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """(Σ x^p)^(1/p) over each window of (N, C, L): p = 1 is the sum, p = ∞ the maximum of |x|."""
    if has_torch_function_unary(input):
        return hand_on(lp_pool1d, (input,), locals())
    if norm_type == float("inf"):
        return max_pool1d(input.abs(), kernel_size, stride, 0, 1, ceil_mode)
    if norm_type == -float("inf"):
        return -max_pool1d(-input.abs(), kernel_size, stride, 0, 1, ceil_mode)
    if stride is None:
        stride = readtorch.jit.annotate(list[int], [])
    means = avg_pool1d(input.pow(norm_type), kernel_size, stride, 0, ceil_mode)
    return _power_mean(means, kernel_size, norm_type)


def lp_pool2d(
    input: Tensor,
    norm_type: int | float,
    kernel_size: BroadcastingList2[int],
    stride: BroadcastingList2[int] | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """(Σ x^p)^(1/p) over each window of (N, C, H, W): p = 1 is the sum, p = ∞ the maximum of |x|."""
    if has_torch_function_unary(input):
        return hand_on(lp_pool2d, (input,), locals())
    if norm_type == float("inf"):
        return max_pool2d(input.abs(), kernel_size, stride, 0, 1, ceil_mode)
    if norm_type == -float("inf"):
        return -max_pool2d(-input.abs(), kernel_size, stride, 0, 1, ceil_mode)
    if stride is None:
        stride = readtorch.jit.annotate(list[int], [])
    means = avg_pool2d(input.pow(norm_type), kernel_size, stride, 0, ceil_mode)
    height, width = _pair(kernel_size)
    return _power_mean(means, height * width, norm_type)


def lp_pool3d(
    input: Tensor,
    norm_type: int | float,
    kernel_size: BroadcastingList3[int],
    stride: BroadcastingList3[int] | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """(Σ x^p)^(1/p) over each window of (N, C, D, H, W): p = 1 is the sum, p = ∞ the maximum of |x|."""
    if has_torch_function_unary(input):
        return hand_on(lp_pool3d, (input,), locals())
    if norm_type == float("inf"):
        return max_pool3d(input.abs(), kernel_size, stride, 0, 1, ceil_mode)
    if norm_type == -float("inf"):
        return -max_pool3d(-input.abs(), kernel_size, stride, 0, 1, ceil_mode)
    if stride is None:
        stride = readtorch.jit.annotate(list[int], [])
    means = avg_pool3d(input.pow(norm_type), kernel_size, stride, 0, ceil_mode)
    depth, height, width = _triple(kernel_size)
    return _power_mean(means, depth * height * width, norm_type)


def _power_mean(means: Tensor, count: int, norm_type: int | float) -> Tensor:
    """(count · means)^(1/p) for means of x^p. The sign is kept apart: relu has a gradient at 0, abs has not."""
    return (readtorch.sign(means) * relu(readtorch.abs(means))).mul(count).pow(1.0 / norm_type)


# Adaptive


def adaptive_avg_pool2d(input: Tensor, output_size: BroadcastingList2[int]) -> Tensor:
    """The mean of each of (oH, oW) windows that divide (N, C, H, W). None: the input's size."""
    if has_torch_function_unary(input):
        return handle_torch_function(adaptive_avg_pool2d, (input,), input, output_size)
    return _nn.adaptive_avg_pool2d(input, _list_with_default(output_size, input.size()))


def adaptive_avg_pool3d(input: Tensor, output_size: BroadcastingList3[int]) -> Tensor:
    """The mean of each of (oD, oH, oW) windows that divide (N, C, D, H, W). None: the input's size."""
    if has_torch_function_unary(input):
        return handle_torch_function(adaptive_avg_pool3d, (input,), input, output_size)
    return _nn.adaptive_avg_pool3d(input, _list_with_default(output_size, input.size()))


def adaptive_max_pool1d_with_indices(
    input: Tensor, output_size: BroadcastingList1[int], return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """`adaptive_max_pool1d` with the indices of the maxima."""
    if has_torch_function_unary(input):
        return hand_on(adaptive_max_pool1d_with_indices, (input,), locals())
    return readtorch.adaptive_max_pool1d(input, output_size)


def _adaptive_max_pool1d(input: Tensor, output_size: BroadcastingList1[int], return_indices: bool = False) -> Tensor:
    """The maximum of each of oL windows that divide (N, C, L); return_indices: and its index."""
    if has_torch_function_unary(input):
        return handle_torch_function(adaptive_max_pool1d, (input,), input, output_size, return_indices=return_indices)
    return adaptive_max_pool1d_with_indices(input, output_size)[0]


adaptive_max_pool1d = boolean_dispatch(
    "return_indices", 2, False, adaptive_max_pool1d_with_indices, _adaptive_max_pool1d, __name__, "adaptive_max_pool1d"
)


def adaptive_max_pool2d_with_indices(
    input: Tensor, output_size: BroadcastingList2[int], return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """`adaptive_max_pool2d` with the indices of the maxima."""
    if has_torch_function_unary(input):
        return hand_on(adaptive_max_pool2d_with_indices, (input,), locals())
    return _nn.adaptive_max_pool2d(input, _list_with_default(output_size, input.size()))


def _adaptive_max_pool2d(input: Tensor, output_size: BroadcastingList2[int], return_indices: bool = False) -> Tensor:
    """The maximum of each of (oH, oW) windows that divide (N, C, H, W); return_indices: and its index."""
    if has_torch_function_unary(input):
        return handle_torch_function(adaptive_max_pool2d, (input,), input, output_size, return_indices=return_indices)
    return adaptive_max_pool2d_with_indices(input, output_size)[0]


adaptive_max_pool2d = boolean_dispatch(
    "return_indices", 2, False, adaptive_max_pool2d_with_indices, _adaptive_max_pool2d, __name__, "adaptive_max_pool2d"
)


def adaptive_max_pool3d_with_indices(
    input: Tensor, output_size: BroadcastingList3[int], return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """`adaptive_max_pool3d` with the indices of the maxima."""
    if has_torch_function_unary(input):
        return hand_on(adaptive_max_pool3d_with_indices, (input,), locals())
    return _nn.adaptive_max_pool3d(input, _list_with_default(output_size, input.size()))


def _adaptive_max_pool3d(input: Tensor, output_size: BroadcastingList3[int], return_indices: bool = False) -> Tensor:
    """The maximum of each of (oD, oH, oW) windows that divide (N, C, D, H, W); return_indices: and its index."""
    if has_torch_function_unary(input):
        return handle_torch_function(adaptive_max_pool3d, (input,), input, output_size, return_indices=return_indices)
    return adaptive_max_pool3d_with_indices(input, output_size)[0]


adaptive_max_pool3d = boolean_dispatch(
    "return_indices", 2, False, adaptive_max_pool3d_with_indices, _adaptive_max_pool3d, __name__, "adaptive_max_pool3d"
)


# Fractional


def fractional_max_pool2d_with_indices(
    input: Tensor,
    kernel_size: BroadcastingList2[int],
    output_size: BroadcastingList2[int] | None = None,
    output_ratio: BroadcastingList2[float] | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """`fractional_max_pool2d` with the indices of the maxima."""
    if has_torch_function_variadic(input, _random_samples):
        return hand_on(fractional_max_pool2d_with_indices, (input, _random_samples), locals())
    if output_size is None:
        if output_ratio is None:
            raise ValueError("fractional_max_pool2d requires specifying either an output_size or an output_ratio")
        if len(output_ratio) > 2:
            raise ValueError("fractional_max_pool2d requires output_ratio to either be a single Int or tuple of Ints.")
        output_size = _scaled(input, _pair(output_ratio))
    if _random_samples is None:
        _random_samples = _samples(input, 2)
    return _nn.fractional_max_pool2d(input, kernel_size, output_size, _random_samples)


def _fractional_max_pool2d(
    input: Tensor,
    kernel_size: BroadcastingList2[int],
    output_size: BroadcastingList2[int] | None = None,
    output_ratio: BroadcastingList2[float] | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Tensor:
    """The maximum of each of randomly placed windows: as many as output_size, or output_ratio of the input's
    size.
    """
    if has_torch_function_variadic(input, _random_samples):
        return hand_on(fractional_max_pool2d, (input, _random_samples), locals(), _fractional_max_pool2d)
    return fractional_max_pool2d_with_indices(
        input, kernel_size, output_size, output_ratio, return_indices, _random_samples
    )[0]


fractional_max_pool2d = boolean_dispatch(
    "return_indices",
    4,
    False,
    fractional_max_pool2d_with_indices,
    _fractional_max_pool2d,
    __name__,
    "fractional_max_pool2d",
)


def fractional_max_pool3d_with_indices(
    input: Tensor,
    kernel_size: BroadcastingList3[int],
    output_size: BroadcastingList3[int] | None = None,
    output_ratio: BroadcastingList3[float] | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """`fractional_max_pool3d` with the indices of the maxima."""
    if has_torch_function_variadic(input, _random_samples):
        return hand_on(fractional_max_pool3d_with_indices, (input, _random_samples), locals())
    if output_size is None:
        if output_ratio is None:
            raise ValueError("fractional_max_pool3d requires specifying either an output_size or an output_ratio")
        output_size = _scaled(input, _triple(output_ratio))
    if _random_samples is None:
        _random_samples = _samples(input, 3)
    return _nn.fractional_max_pool3d(input, kernel_size, output_size, _random_samples)


def _fractional_max_pool3d(
    input: Tensor,
    kernel_size: BroadcastingList3[int],
    output_size: BroadcastingList3[int] | None = None,
    output_ratio: BroadcastingList3[float] | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Tensor:
    """The maximum of each of randomly placed windows: as many as output_size, or output_ratio of the input's
    size.
    """
    if has_torch_function_variadic(input, _random_samples):
        return hand_on(fractional_max_pool3d, (input, _random_samples), locals(), _fractional_max_pool3d)
    return fractional_max_pool3d_with_indices(
        input, kernel_size, output_size, output_ratio, return_indices, _random_samples
    )[0]


fractional_max_pool3d = boolean_dispatch(
    "return_indices",
    4,
    False,
    fractional_max_pool3d_with_indices,
    _fractional_max_pool3d,
    __name__,
    "fractional_max_pool3d",
)


def _scaled(input: Tensor, ratios: list[float]) -> list[int]:
    dims = len(ratios)
    return [int(input.size(d - dims) * ratios[d]) for d in range(dims)]


def _samples(input: Tensor, dims: int) -> Tensor:
    """A random number for each plane and dimension."""
    batch = 1 if input.dim() == dims + 1 else input.size(0)
    return readtorch.rand(batch, input.size(-dims - 1), dims, dtype=input.dtype, device=input.device)
