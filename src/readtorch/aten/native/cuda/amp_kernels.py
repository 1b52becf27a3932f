"""What a GradScaler does on a GPU, with operators alone: what was found stays on the device, and nobody waits for it.

In PyTorch: `aten/src/ATen/native/cuda/AmpKernels.cu`, a kernel for each.
"""

from readtorch.aten.native.amp_kernels import check_unscale, check_update
from readtorch.c10.scalar_type import float32

from .register_dispatch_key import cuda_kernel, operator_named


@cuda_kernel(operator_named("_amp_foreach_non_finite_check_and_unscale_"))
def unscale_cuda_(self, found_inf, inv_scale):
    """Multiply gradients in place; `found_inf` becomes 1 if an element was not finite."""
    if not self:
        return
    check_unscale(found_inf, inv_scale)
    for t in self:
        found = t.isfinite().logical_not().any().to(float32)
        found_inf.copy_(found_inf.maximum(found))
        t.mul_(inv_scale.reshape(()))


@cuda_kernel(operator_named("_amp_update_scale_"))
def update_scale_cuda_(self, growth_tracker, found_inf, scale_growth_factor, scale_backoff_factor, growth_interval):
    """Shrink the scale, let it grow, or count a step."""
    check_update(self, growth_tracker, found_inf)
    found = found_inf.reshape(self.shape) != 0
    steps = growth_tracker.reshape(self.shape) + 1
    grown = self * scale_growth_factor
    grows = (steps == growth_interval).logical_and(grown.isfinite())
    self.copy_((self * scale_backoff_factor).where(found, grown.where(grows, self)))
    stays = found.logical_not().logical_and(steps != growth_interval)
    growth_tracker.copy_((steps * stays).reshape(growth_tracker.shape))
    return self
