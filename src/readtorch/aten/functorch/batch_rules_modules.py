"""Batching rules of padding, pixel shuffling, resampling, embeddings.

In PyTorch: `aten/src/ATen/functorch/BatchRulesModules.cpp`. Explained in the chapter "Forward mode, vmap and torch.func".
"""

from readtorch.aten.functions import at

from .batch_rules_helper import (
    decomposition,
    existing_bdim,
    reshape_dim_into,
    reshape_dim_outof,
    rule_for,
    to_front,
    vmap_support,
    with_bdim,
)
from .batch_rules_views import on_last_dims

_SAMPLED = (
    "upsample_nearest1d upsample_nearest2d upsample_nearest3d _upsample_nearest_exact1d _upsample_nearest_exact2d "
    "_upsample_nearest_exact3d upsample_linear1d upsample_bilinear2d upsample_trilinear3d upsample_bicubic2d "
    "_upsample_bilinear2d_aa _upsample_bicubic2d_aa _upsample_lanczos2d_aa"
)
_PADS = " ".join([f"{kind}_pad{dims}d" for kind in ("reflection", "replication") for dims in (1, 2, 3)])

# Images, and channels of images where there is one image, go by themselves.
rule_for(existing_bdim, _SAMPLED)
rule_for(existing_bdim, _PADS)
rule_for(existing_bdim, " ".join([f"{name}_backward" for name in _PADS.split()]))
rule_for(existing_bdim, "im2col col2im pixel_shuffle pixel_unshuffle channel_shuffle native_channel_shuffle")
rule_for(on_last_dims, "constant_pad_nd")


@vmap_support(" ".join([f"{name}_backward" for name in _SAMPLED.split()]))
def upsample_backward_rule(call, grad_output, bdim, output_size, input_size, *arguments):
    """`input_size` counts the images, too."""
    merged = reshape_dim_into(bdim, 0, grad_output)
    result = call(merged, output_size, (merged.shape[0], *input_size[1:]), *arguments)
    return reshape_dim_outof(0, grad_output.shape[bdim], result), 0


# -------------------------------------------------------------------------------------------------- embedding


def first_rows(indices, size, rows):
    """Where each example's rows begin in the matrix of all."""
    first = at.arange(0, size * rows, rows, dtype=indices.dtype, device=indices.device)
    return first.reshape([size] + [1] * (indices.dim() - 1))


@vmap_support("embedding")
def embedding_rule(call, weight, weight_bdim, indices, indices_bdim, padding_idx, scale_grad_by_freq, sparse):
    rest = padding_idx, scale_grad_by_freq, sparse
    if weight_bdim is None:
        return call(weight, indices, *rest), indices_bdim
    size = weight.shape[weight_bdim]
    if indices_bdim is None:  # the examples' rows side by side
        found = reshape_dim_outof(-1, size, call(reshape_dim_into(weight_bdim, 1, weight), indices, *rest))
        return found, found.dim() - 2
    weight, indices = to_front(weight, weight_bdim), to_front(indices, indices_bdim)
    rows = weight.shape[1]
    return call(reshape_dim_into(0, 0, weight), indices + first_rows(indices, size, rows), *rest), 0


@vmap_support("embedding_dense_backward")
def embedding_dense_backward_rule(
    call, grad_output, grad_bdim, indices, indices_bdim, num_weights, padding_idx, scale_grad_by_freq
):
    if indices_bdim is None:
        size = grad_output.shape[grad_bdim]
        merged = reshape_dim_into(grad_bdim, -1, grad_output)
        return reshape_dim_outof(1, size, call(merged, indices, num_weights, padding_idx, scale_grad_by_freq)), 1
    size = indices.shape[indices_bdim]
    indices, grad_output = to_front(indices, indices_bdim), with_bdim(grad_output, grad_bdim, size)
    result = call(
        grad_output, indices + first_rows(indices, size, num_weights), num_weights * size, -1, scale_grad_by_freq
    )
    result = reshape_dim_outof(0, size, result)
    if padding_idx >= 0:  # one row of each example
        result.select(1, padding_idx).fill_(0)
    return result, 0


# --------------------------------------------------------------------------------------------------- sampling


@vmap_support("grid_sampler_2d grid_sampler_3d")
def grid_sample_rule(call, input, input_bdim, grid, grid_bdim, *arguments):
    """Where one of the two is shared, the other's examples are further channels, or further rows."""
    if grid_bdim is None:
        result = call(reshape_dim_into(input_bdim, 1, input), grid, *arguments)
        return reshape_dim_outof(1, input.shape[input_bdim], result), 1
    if input_bdim is None:
        result = call(input, reshape_dim_into(grid_bdim, 1, grid), *arguments)
        return reshape_dim_outof(2, grid.shape[grid_bdim], result), 2
    result = call(reshape_dim_into(input_bdim, 0, input), reshape_dim_into(grid_bdim, 0, grid), *arguments)
    return reshape_dim_outof(0, input.shape[input_bdim], result), 0


rule_for(existing_bdim, "grid_sampler_2d_backward grid_sampler_3d_backward")


@vmap_support("affine_grid_generator")
def affine_grid_rule(call, theta, bdim, size, align_corners):
    """`size` counts the images, too."""
    count = theta.shape[bdim]
    result = call(reshape_dim_into(bdim, 0, theta), (count * size[0], *size[1:]), align_corners)
    return reshape_dim_outof(0, count, result), 0


# ------------------------------------------------------------------------------------------------ weight norm


def norm_except(v, dim):
    dims = [d for d in range(v.dim()) if d != dim % v.dim()]
    return at.linalg_vector_norm(v, 2, dims, True) if dims else v.abs()


@decomposition("_weight_norm_interface")
def weight_norm_decomp(v, g, dim):
    norms = norm_except(v, dim)
    return v * (g / norms), norms


@decomposition("_weight_norm_interface_backward")
def weight_norm_backward_decomp(grad_w, saved_v, saved_g, saved_norms, dim):
    """w = g · v/|v|: along v only g feels the gradient."""
    dims = [d for d in range(saved_v.dim()) if d != dim % saved_v.dim()]
    along = (grad_w * saved_v).sum(dims, keepdim=True) if dims else grad_w * saved_v
    grad_v = saved_g / saved_norms * (grad_w - saved_v * along / (saved_norms * saved_norms))
    return grad_v, along / saved_norms
