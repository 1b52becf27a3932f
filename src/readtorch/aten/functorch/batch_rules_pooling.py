"""Batching rules of pooling: images, and channels of one image, are pooled by themselves.

In PyTorch: `aten/src/ATen/functorch/BatchRulesPooling.cpp`. Explained in the chapter "Forward mode, vmap and torch.func".
"""

from .batch_rules_helper import (
    batch_size_of,
    existing_bdim,
    logical_rank,
    reshape_dim_into,
    reshape_dim_outof,
    rule_for,
    vmap_support,
    with_bdim,
)

rule_for(
    existing_bdim,
    "avg_pool2d avg_pool3d avg_pool2d_backward avg_pool3d_backward _adaptive_avg_pool2d _adaptive_avg_pool3d "
    "_adaptive_avg_pool2d_backward _adaptive_avg_pool3d_backward adaptive_max_pool2d adaptive_max_pool3d "
    "adaptive_max_pool2d_backward adaptive_max_pool3d_backward max_pool2d_with_indices max_pool3d_with_indices "
    "max_pool2d_with_indices_backward max_pool3d_with_indices_backward max_unpool2d max_unpool3d "
    "fractional_max_pool2d_backward fractional_max_pool3d_backward",
)


@vmap_support("fractional_max_pool2d fractional_max_pool3d")
def fractional_max_pool_batch_rule(call, self, self_bdim, kernel_size, output_size, samples, samples_bdim):
    """The samples have an image's dimension even where there is one image."""
    size = batch_size_of((self, self_bdim, samples, samples_bdim))
    is_one_image = logical_rank(self, self_bdim) == len(output_size) + 1
    self, samples = with_bdim(self, self_bdim, size), with_bdim(samples, samples_bdim, size)
    samples = reshape_dim_into(0, 0, samples)
    if is_one_image:
        return call(self, kernel_size, output_size, samples), 0
    results = call(reshape_dim_into(0, 0, self), kernel_size, output_size, samples)
    return tuple([reshape_dim_outof(0, size, r) for r in results]), 0
