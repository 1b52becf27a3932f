"""What layers are made of besides convolutions and normalizations: weight normalization, packed sequences,
shuffled channels, affine grids, convolution over time; batch normalization under its other schemas.

In PyTorch: `aten/src/ATen/native/cuda/{WeightNorm,AffineGridGenerator}.cu`,
`aten/src/ATen/native/{PackedSequence,ChanelShuffle,ConvolutionTBC,Normalization}.cpp`.
"""

import numpy as np

from .....c10.memory_format import contiguous_format
from .....c10.tensor_impl import wrap
from ....functions import at
from ...convolution_tbc import overlaps
from ...convolution_tbc import check_shapes as check_tbc
from ...grid_sampler import base_grid
from ...packed_sequence import batch_sizes_of
from ...pixel_shuffle import check_groups
from ...weight_norm import check_types
from .copies import clone_cuda
from .normalization import wide
from .pointwise import operator_named
from .reductions import converted
from .registration import cuda_kernel, empty, owned
from .resizing import in_format_of

# --------------------------------------------------------------------------------------- weight normalization


def summed_but(t, dim):
    """The sums over every dimension but `dim`, kept as sizes of 1."""
    return t.sum([d for d in range(t._array.ndim) if d != dim], True)


@cuda_kernel(operator_named("_weight_norm_interface"))
def weight_norm_cuda(v, g, dim):
    """(w, the norms of v's slices)."""
    check_types(v, g)
    x = wide(v)
    norms = summed_but(x * x, dim).sqrt()
    w = x * (wide(g).view(norms._array.shape) / norms)
    return converted(w, v._array.dtype), owned(norms.view(g._array.shape))


@cuda_kernel(operator_named("_weight_norm_interface_backward"))
def weight_norm_backward_cuda(grad_w, saved_v, saved_g, saved_norms, dim):
    gw, v, g, own = wide(grad_w), wide(saved_v), wide(saved_g), saved_v._array.dtype
    products = summed_but(gw * v, dim)
    g, norms = (t.reshape(products._array.shape) for t in (g, saved_norms))
    to_g = products / norms
    to_v = g / norms * (gw - to_g / norms * v)
    return converted(to_v, own), converted(owned(to_g.view(saved_g._array.shape)), own)


# ------------------------------------------------------------------------------------------- packed sequences


@cuda_kernel(operator_named("_pack_padded_sequence"))
def pack_padded_sequence_cuda(input, lengths, batch_first):
    """The lengths are on the host, as in PyTorch, and so are the batch sizes."""
    x = input.transpose(0, 1) if batch_first else input
    sizes = batch_sizes_of(x._array.shape, lengths)
    pieces = [x[t, :size] for t, size in enumerate(sizes[: x._array.shape[0]].tolist())]
    return at.cat(pieces), wrap(sizes)


# ----------------------------------------------------------------------------------------- channels and grids


def shuffle_channels(self, groups):
    check_groups(self._array.shape, groups)
    batch, channels, *rest = self._array.shape
    if not self._array.size:
        return clone_cuda(self, None)
    grouped = self.reshape(batch, groups, channels // groups, *rest).transpose(1, 2)
    return in_format_of(self, clone_cuda(grouped, contiguous_format).view(self._array.shape))


cuda_kernel(operator_named("channel_shuffle"))(shuffle_channels)
cuda_kernel(operator_named("native_channel_shuffle"))(shuffle_channels)


@cuda_kernel(operator_named("affine_grid_generator"))
def affine_grid_cuda(theta, size, align_corners):
    points = base_grid(theta, size, align_corners).bmm(theta.transpose(1, 2))
    return owned(points.view(size[0], *size[2:], len(size) - 2))


# -------------------------------------------------------------------------------------- convolution over time


@cuda_kernel(operator_named("conv_tbc"))
def conv_tbc_cuda(self, weight, bias, pad):
    check_tbc(self._array, weight._array, bias._array)
    x, w, b = wide(self), wide(weight), wide(bias)
    times = x._array.shape[0] + 2 * pad - w._array.shape[0] + 1
    if times < 0:
        raise RuntimeError("Trying to create tensor with negative dimension "
                           f"{times}: {[times, x._array.shape[1], w._array.shape[2]]}")
    result = clone_cuda(b.expand((times, x._array.shape[1], w._array.shape[2])), contiguous_format)
    for k, (source, target) in enumerate(overlaps(x._array.shape[0], times, w._array.shape[0], pad)):
        result[target].add_(x[source] @ w[k])
    return converted(result, self._array.dtype)


@cuda_kernel(operator_named("conv_tbc_backward"))
def conv_tbc_backward_cuda(self, input, weight, bias, pad):
    grad, x, w = wide(self), wide(input), wide(weight)
    dx, pieces = at.zeros_like(x), []
    for k, (source, target) in enumerate(
            overlaps(x._array.shape[0], grad._array.shape[0], w._array.shape[0], pad)):
        dx[source].add_(grad[target] @ w[k].t())
        seen, given = x[source].reshape(-1, x._array.shape[2]), grad[target].reshape(-1, w._array.shape[2])
        pieces.append(seen.t() @ given)
    return tuple(converted(d, self._array.dtype) for d in (dx, at.stack(pieces), grad.sum((0, 1))))


# ------------------------------------------------------------------------ batch normalization, other schemas


def forward(*arguments):
    return at.native_batch_norm(*arguments)


cuda_kernel(operator_named("_native_batch_norm_legit"))(forward)


@cuda_kernel(operator_named("_native_batch_norm_legit.no_stats"))
def without_statistics(input, weight, bias, training, momentum, eps):
    return forward(input, weight, bias, None, None, training, momentum, eps)


@cuda_kernel(operator_named("_native_batch_norm_legit_no_training"))
def without_training(input, weight, bias, running_mean, running_var, momentum, eps):
    return forward(input, weight, bias, running_mean, running_var, False, momentum, eps)


def reserve():
    return empty((0,), np.dtype(np.uint8))


@cuda_kernel(operator_named("_batch_norm_with_update"))
def with_update(input, weight, bias, running_mean, running_var, momentum, eps):
    return (*forward(input, weight, bias, running_mean, running_var, True, momentum, eps), reserve())


@cuda_kernel(operator_named("_batch_norm_no_update"))
def without_update(input, weight, bias, running_mean, running_var, momentum, eps):
    return (*forward(input, weight, bias, running_mean, running_var, False, momentum, eps), reserve())


@cuda_kernel(operator_named("batch_norm_backward"))
def batch_norm_backward_cuda(grad_out, input, weight, running_mean, running_var, save_mean, save_var, update,
                             eps, output_mask, reserve):
    return at.native_batch_norm_backward(grad_out, input, weight, running_mean, running_var, save_mean,
                                         save_var, update, eps, output_mask)
