"""What a GradScaler does with gradients and with its scale, as two operators.

In PyTorch: `aten/src/ATen/native/cpu/AmpGradScalerKernels.cpp`. Explained in the chapter "Mixed precision".
"""

import numpy as np

from readtorch.aten.native_function import native_function
from readtorch.c10.scalar_type import SCALAR_TYPE_NAMES, float32, int32

unscale_ = native_function(
    "_amp_foreach_non_finite_check_and_unscale_(Tensor(a!)[] self, Tensor(b!) found_inf, Tensor inv_scale) -> ()"
)
update_scale_ = native_function(
    "_amp_update_scale_(Tensor(a!) self, Tensor(b!) growth_tracker, Tensor found_inf, float scale_growth_factor, "
    "float scale_backoff_factor, int growth_interval) -> Tensor(a!)"
)


def check_one_element(t, name):
    if t.numel() != 1:
        raise RuntimeError(f"{name} must be a 1-element tensor.")


def check_dtype(t, name, dtype, words):
    if t.dtype != dtype:
        raise RuntimeError(f"{name} must be {words} tensor.")


def check_unscale(found_inf, inv_scale):
    check_one_element(inv_scale, "inv_scale")
    check_one_element(found_inf, "found_inf")
    check_dtype(inv_scale, "inv_scale", float32, "a float")
    check_dtype(found_inf, "found_inf", float32, "a float")


@unscale_.kernel
def unscale_cpu_(self, found_inf, inv_scale):
    """Multiply gradients in place; `found_inf` becomes 1 if an element was infinite or NaN, and else stays as it was."""
    if not self:
        return
    check_unscale(found_inf, inv_scale)
    factor = np.float32(inv_scale.item())
    for t in self:
        if not t.is_floating_point():
            name = SCALAR_TYPE_NAMES[t.dtype]
            raise NotImplementedError(f"\"_amp_foreach_non_finite_check_and_unscale_cpu\" not implemented for '{name}'")
        array = t._array
        if not np.isfinite(array).all():
            found_inf._array[...] = 1
        if factor != 1:
            array[...] = array * factor


def check_update(scale, growth_tracker, found_inf):
    for t, name in ((growth_tracker, "growth_tracker"), (scale, "current_scale"), (found_inf, "found_inf")):
        check_one_element(t, name)
    check_dtype(growth_tracker, "growth_tracker", int32, "an int")
    check_dtype(scale, "current_scale", float32, "a float")
    check_dtype(found_inf, "found_inf", float32, "a float")


@update_scale_.kernel
def update_scale_cpu_(self, growth_tracker, found_inf, scale_growth_factor, scale_backoff_factor, growth_interval):
    """Shrink the scale if something infinite was found; let it grow after `growth_interval` steps without, but never to infinity."""
    check_update(self, growth_tracker, found_inf)
    steps = int(growth_tracker.item()) + 1
    if found_inf.item():
        self._array[...] = self.item() * scale_backoff_factor
        steps = 0
    elif steps == growth_interval:
        with np.errstate(over="ignore"):
            grown = np.float32(self.item() * scale_growth_factor)
        self._array[...] = grown if np.isfinite(grown) else self._array
        steps = 0
    growth_tracker._array[...] = steps
    return self
