"""Pooling. In PyTorch: part of `torch/nn/functional.py`.

Inputs are (N, C, …) or (C, …) with one to three dimensions behind the channels. A kernel size, stride,
padding or dilation is one number for all of these dimensions or a tuple with one for each; without a stride
the windows do not overlap. With `ceil_mode` the last window may hang over the end.
"""
import readtorch
from readtorch._C import _nn
from readtorch.nn.functional.activation import relu
from readtorch.nn.modules.utils import _list_with_default, _pair, _single, _triple

__all__ = [
    "avg_pool1d", "avg_pool2d", "avg_pool3d",
    "max_pool1d", "max_pool2d", "max_pool3d",
    "max_pool1d_with_indices", "max_pool2d_with_indices", "max_pool3d_with_indices",
    "max_unpool1d", "max_unpool2d", "max_unpool3d",
    "lp_pool1d", "lp_pool2d", "lp_pool3d",
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d",
    "adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d",
    "adaptive_max_pool1d_with_indices", "adaptive_max_pool2d_with_indices", "adaptive_max_pool3d_with_indices",
    "fractional_max_pool2d", "fractional_max_pool3d",
    "fractional_max_pool2d_with_indices", "fractional_max_pool3d_with_indices",
]

# The mean of each window. count_include_pad: whether padding counts in the divisor, which divisor_override
# replaces.
avg_pool1d = readtorch.avg_pool1d
avg_pool2d = _nn.avg_pool2d
avg_pool3d = _nn.avg_pool3d
adaptive_avg_pool1d = readtorch.adaptive_avg_pool1d


# ----------------------------------------------------------------------------------------------------- maximum

def max_pool1d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """The greatest number in each window of (N, C, L) or (C, L); return_indices: and its place."""
    pool = readtorch.max_pool1d_with_indices if return_indices else readtorch.max_pool1d
    return pool(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool2d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """The greatest number in each window of (N, C, H, W) or (C, H, W); return_indices: and its place."""
    pool = _nn.max_pool2d_with_indices if return_indices else readtorch.max_pool2d
    return pool(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool3d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """The greatest number in each window of (N, C, D, H, W) or (C, D, H, W); return_indices: and its place."""
    pool = _nn.max_pool3d_with_indices if return_indices else readtorch.max_pool3d
    return pool(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool1d_with_indices(
    input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False
):
    """`max_pool1d` with the places of the maxima."""
    return readtorch.max_pool1d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool2d_with_indices(
    input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False
):
    """`max_pool2d` with the places of the maxima."""
    return _nn.max_pool2d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool3d_with_indices(
    input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False
):
    """`max_pool3d` with the places of the maxima."""
    return _nn.max_pool3d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)


# ----------------------------------------------------------------------------------------- the way back from it

def max_unpool1d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """The maxima of (N, C, L) back at their places, zeros elsewhere. output_size: if several fit."""
    kernel_size = _single(kernel_size)
    stride = kernel_size if stride is None else _single(stride)
    size = _unpool_output_size(input, kernel_size, stride, _single(padding), output_size)
    return _nn.max_unpool2d(input.unsqueeze(-1), indices.unsqueeze(-1), [*size, 1]).squeeze(-1)


def max_unpool2d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """The maxima of (N, C, H, W) back at their places, zeros elsewhere. output_size: if several fit."""
    kernel_size = _pair(kernel_size)
    stride = kernel_size if stride is None else _pair(stride)
    size = _unpool_output_size(input, kernel_size, stride, _pair(padding), output_size)
    return _nn.max_unpool2d(input, indices, size)


def max_unpool3d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """The maxima of (N, C, D, H, W) back at their places, zeros elsewhere. output_size: if several fit."""
    kernel_size = _triple(kernel_size)
    stride = kernel_size if stride is None else _triple(stride)
    padding = _triple(padding)
    size = _unpool_output_size(input, kernel_size, stride, padding, output_size)
    return _nn.max_unpool3d(input, indices, size, stride, padding)


def _unpool_output_size(input, kernel_size, stride, padding, output_size):
    """The sizes of what was pooled. Raises ValueError for an `output_size` that cannot be."""
    dims = len(kernel_size)
    pooled = input.size()[-dims:]
    default = [(n - 1) * s + k - 2 * p for n, k, s, p in zip(pooled, kernel_size, stride, padding)]
    chosen = default if output_size is None else _checked(output_size, default, stride)
    for d, n in enumerate(chosen):
        if n < 0:
            raise ValueError("max_unpooling: output_size must contain non-negative spatial dimensions, but "
                             f"got output_size[{d}]={n}")
    return chosen


def _checked(output_size, default, stride):
    dims = len(default)
    if len(output_size) == dims + 2:
        output_size = output_size[2:]
    if len(output_size) != dims:
        raise ValueError(f"output_size should be a sequence containing {dims} or {dims + 2} elements, but it "
                         f"has a length of '{len(output_size)}'")
    for d, (n, usual, step) in enumerate(zip(output_size, default, stride)):
        if not usual - step < n < usual + step:
            raise ValueError(f'invalid output_size "{output_size}" (dim {d} must be between {usual - step} '
                             f"and {usual + step})")
    return output_size


# -------------------------------------------------------------------------------------------------- power means

def lp_pool1d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """(Σ x^p)^(1/p) over each window of (N, C, L): p = 1 is the sum, p = ∞ the maximum of |x|."""
    return _lp_pool(avg_pool1d, max_pool1d, input, norm_type, kernel_size, kernel_size, stride, ceil_mode)


def lp_pool2d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """(Σ x^p)^(1/p) over each window of (N, C, H, W): p = 1 is the sum, p = ∞ the maximum of |x|."""
    height, width = _pair(kernel_size)
    return _lp_pool(avg_pool2d, max_pool2d, input, norm_type, kernel_size, height * width, stride, ceil_mode)


def lp_pool3d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """(Σ x^p)^(1/p) over each window of (N, C, D, H, W): p = 1 is the sum, p = ∞ the maximum of |x|."""
    depth, height, width = _triple(kernel_size)
    count = depth * height * width
    return _lp_pool(avg_pool3d, max_pool3d, input, norm_type, kernel_size, count, stride, ceil_mode)


def _lp_pool(average, maximum, input, norm_type, kernel_size, count, stride, ceil_mode):
    """Average pooling of x^p, times the size of the window. Its sign is kept apart: relu has a gradient at 0,
    abs has not."""
    if norm_type == float("inf"):
        return maximum(input.abs(), kernel_size, stride, 0, 1, ceil_mode)
    if norm_type == -float("inf"):
        return -maximum(-input.abs(), kernel_size, stride, 0, 1, ceil_mode)
    out = average(input.pow(norm_type), kernel_size, stride, 0, ceil_mode)
    return (readtorch.sign(out) * relu(readtorch.abs(out))).mul(count).pow(1.0 / norm_type)


# ----------------------------------------------------------------------------------------------------- adaptive

def adaptive_avg_pool2d(input, output_size):
    """The mean of each of (oH, oW) windows that share out (N, C, H, W). None: the input's size."""
    return _nn.adaptive_avg_pool2d(input, _list_with_default(output_size, input.size()))


def adaptive_avg_pool3d(input, output_size):
    """The mean of each of (oD, oH, oW) windows that share out (N, C, D, H, W). None: the input's size."""
    return _nn.adaptive_avg_pool3d(input, _list_with_default(output_size, input.size()))


def adaptive_max_pool1d(input, output_size, return_indices=False):
    """The greatest number in each of oL windows that share out an input; return_indices: and its place."""
    values, indices = adaptive_max_pool1d_with_indices(input, output_size)
    return (values, indices) if return_indices else values


def adaptive_max_pool2d(input, output_size, return_indices=False):
    """The greatest number in each of (oH, oW) windows that share out the input; return_indices: its place."""
    values, indices = adaptive_max_pool2d_with_indices(input, output_size)
    return (values, indices) if return_indices else values


def adaptive_max_pool3d(input, output_size, return_indices=False):
    """The greatest number in each of (oD, oH, oW) windows that share out the input; return_indices: its place."""
    values, indices = adaptive_max_pool3d_with_indices(input, output_size)
    return (values, indices) if return_indices else values


def adaptive_max_pool1d_with_indices(input, output_size, return_indices=False):
    """`adaptive_max_pool1d` with the places of the maxima."""
    return readtorch.adaptive_max_pool1d(input, output_size)


def adaptive_max_pool2d_with_indices(input, output_size, return_indices=False):
    """`adaptive_max_pool2d` with the places of the maxima."""
    return _nn.adaptive_max_pool2d(input, _list_with_default(output_size, input.size()))


def adaptive_max_pool3d_with_indices(input, output_size, return_indices=False):
    """`adaptive_max_pool3d` with the places of the maxima."""
    return _nn.adaptive_max_pool3d(input, _list_with_default(output_size, input.size()))


# --------------------------------------------------------------------------------------------------- fractional

def fractional_max_pool2d(
    input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None
):
    """Maxima of windows at random places: as many as output_size says, or output_ratio of the input's size."""
    values, indices = fractional_max_pool2d_with_indices(
        input, kernel_size, output_size, output_ratio, return_indices, _random_samples)
    return (values, indices) if return_indices else values


def fractional_max_pool3d(
    input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None
):
    """Maxima of windows at random places: as many as output_size says, or output_ratio of the input's size."""
    values, indices = fractional_max_pool3d_with_indices(
        input, kernel_size, output_size, output_ratio, return_indices, _random_samples)
    return (values, indices) if return_indices else values


def fractional_max_pool2d_with_indices(
    input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None
):
    """`fractional_max_pool2d` with the places of the maxima."""
    if output_size is None and output_ratio is None:
        raise ValueError("fractional_max_pool2d requires specifying either an output_size or an output_ratio")
    if output_size is None:
        if len(output_ratio) > 2:
            raise ValueError(
                "fractional_max_pool2d requires output_ratio to either be a single Int or tuple of Ints.")
        output_size = _scaled(input, _pair(output_ratio))
    if _random_samples is None:
        _random_samples = _samples(input, 2)
    return _nn.fractional_max_pool2d(input, kernel_size, output_size, _random_samples)


def fractional_max_pool3d_with_indices(
    input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None
):
    """`fractional_max_pool3d` with the places of the maxima."""
    if output_size is None and output_ratio is None:
        raise ValueError("fractional_max_pool3d requires specifying either an output_size or an output_ratio")
    if output_size is None:
        output_size = _scaled(input, _triple(output_ratio))
    if _random_samples is None:
        _random_samples = _samples(input, 3)
    return _nn.fractional_max_pool3d(input, kernel_size, output_size, _random_samples)


def _scaled(input, ratios):
    return [int(n * ratio) for n, ratio in zip(input.size()[-len(ratios):], ratios)]


def _samples(input, dims):
    """A random number for each plane and dimension."""
    batch = 1 if input.dim() == dims + 1 else input.size(0)
    return readtorch.rand(batch, input.size(-dims - 1), dims, dtype=input.dtype, device=input.device)
