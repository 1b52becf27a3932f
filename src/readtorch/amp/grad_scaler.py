"""`GradScaler`: the loss times a large number, so that small gradients do not become 0 in float16; before a step they are divided again.

In PyTorch: `torch/amp/grad_scaler.py`. Explained in the chapter "Mixed precision".
"""

import enum
import inspect
import warnings
from collections import abc, defaultdict

import readtorch
from readtorch.autograd import no_grad
from readtorch.c10.scalar_type import float16, float32, int32
from readtorch.c10.tensor_impl import TensorImpl

from .autocast_mode import amp_definitely_not_available

__all__ = ["OptState", "GradScaler"]


class _MultiDeviceReplicator:
    """Copies of a tensor on other devices, made when they are first asked for."""

    def __init__(self, master_tensor):
        self.master = master_tensor
        self._per_device_tensors = {}

    def get(self, device):
        if device not in self._per_device_tensors:
            self._per_device_tensors[device] = self.master.to(device=device, non_blocking=True, copy=True)
        return self._per_device_tensors[device]


class OptState(enum.Enum):
    """How far an optimizer has come since the last `update()`."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


def _refresh_per_optimizer_state():
    return {"stage": OptState.READY, "found_inf_per_device": {}}


class GradScaler:
    """Scales losses, unscales gradients, leaves out the steps whose gradients are infinite or NaN, and adapts the scale.

    device: "cuda" or "cpu". The scale begins at init_scale; `update()` multiplies it by growth_factor (> 1) after growth_interval
    steps without an infinite gradient, and by backoff_factor (< 1) after one with. enabled=False: everything is passed on as it is.

        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

    Explained in the chapter "Mixed precision".
    """

    def __init__(
        self,
        device="cuda",
        init_scale=2.0**16,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self._device = device
        self._enabled = enabled
        if device == "cuda" and enabled and amp_definitely_not_available():
            warnings.warn("torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.", stacklevel=2)
            self._enabled = False
        if not self._enabled:
            return
        if growth_factor <= 1.0:
            raise AssertionError("The growth factor must be > 1.0.")
        if backoff_factor >= 1.0:
            raise AssertionError("The backoff factor must be < 1.0.")
        self._init_scale = init_scale
        self._scale = None  # a float32 tensor, made where the first output is scaled
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._init_growth_tracker = 0
        self._growth_tracker = None  # an int32 tensor: steps since the scale changed
        self._per_optimizer_states = defaultdict(_refresh_per_optimizer_state)

    def _check_scale_growth_tracker(self, funcname):
        fix = "This may indicate your script did not use scaler.scale(loss or outputs) earlier in the iteration."
        for name in ("_scale", "_growth_tracker"):
            if getattr(self, name) is None:
                raise AssertionError(f"Attempted {funcname} but {name} is None.  {fix}")
        return self._scale, self._growth_tracker

    def _lazy_init_scale_growth_tracker(self, dev):
        if self._growth_tracker is not None:
            raise AssertionError("_growth_tracker initialized before _scale")
        self._scale = readtorch.full((), self._init_scale, dtype=float32, device=dev)
        self._growth_tracker = readtorch.full((), self._init_growth_tracker, dtype=int32, device=dev)

    # ------------------------------------------------------------------------------------------------- scaling

    def scale(self, outputs):
        """A tensor, or each of an iterable of tensors (nested, too), times the scale. ValueError for anything else in it."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, TensorImpl):
            return outputs * self._scale_on(outputs.device).to(device=outputs.device, non_blocking=True)
        copies = []  # of the scale, one replicator for all devices of these outputs

        def apply_scale(value):
            if isinstance(value, TensorImpl):
                if not copies:
                    copies.append(_MultiDeviceReplicator(self._scale_on(value.device)))
                return value * copies[0].get(value.device)
            if isinstance(value, abc.Iterable):
                scaled = map(apply_scale, value)
                return type(value)(scaled) if isinstance(value, (list, tuple)) else scaled
            raise ValueError("outputs must be a Tensor or an iterable of Tensors")

        return apply_scale(outputs)

    def _scale_on(self, device):
        if self._scale is None:
            self._lazy_init_scale_growth_tracker(device)
        return self._scale

    # ----------------------------------------------------------------------------------------------- unscaling

    def _unscale_grads_(self, optimizer, inv_scale, found_inf, allow_fp16):
        """Multiply all gradients of an optimizer by `inv_scale`, in place -> device: tensor that says whether one was not finite."""
        inv_scales, founds = _MultiDeviceReplicator(inv_scale), _MultiDeviceReplicator(found_inf)
        with no_grad():
            for (device, _), grads in self._gradients(optimizer, allow_fp16).items():
                readtorch._amp_foreach_non_finite_check_and_unscale_(grads, founds.get(device), inv_scales.get(device))
        return founds._per_device_tensors

    @staticmethod
    def _gradients(optimizer, allow_fp16):
        """(device, dtype) -> the gradients there; of a sparse gradient its values."""
        found = defaultdict(list)
        for group in optimizer.param_groups:
            for param in group["params"]:
                if not isinstance(param, TensorImpl):
                    raise AssertionError(f"expected param to be torch.Tensor, got {type(param).__name__}")
                if param.grad is None:
                    continue
                if not allow_fp16 and param.grad.dtype == float16:
                    raise ValueError("Attempting to unscale FP16 gradients.")
                if param.grad.is_sparse and param.grad.dtype is float16:
                    param.grad = param.grad.coalesce()  # two values of one index, each finite, may add up to inf
                values = param.grad._values() if param.grad.is_sparse else param.grad
                found[values.device, values.dtype].append(values)
        return found

    def unscale_(self, optimizer):
        """Divide the gradients by the scale now, for who wants to see or clip them before `step`. Once per optimizer and `update()`.

        RuntimeError if it was done already, or after `step`; ValueError for float16 gradients.
        """
        if not self._enabled:
            return
        scale, _ = self._check_scale_growth_tracker("unscale_")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        inv_scale = scale.double().reciprocal().float()  # in float32 the reciprocal of a large scale is rounded twice
        found_inf = readtorch.full((), 0.0, dtype=float32, device=scale.device)
        state["found_inf_per_device"] = self._unscale_grads_(optimizer, inv_scale, found_inf, False)
        state["stage"] = OptState.UNSCALED

    # ------------------------------------------------------------------------------------------------ stepping

    def _maybe_opt_step(self, optimizer, optimizer_state, *args, **kwargs):
        if not sum(v.item() for v in optimizer_state["found_inf_per_device"].values()):
            return optimizer.step(*args, **kwargs)
        return None

    def step(self, optimizer, *args, **kwargs):
        """Unscale, if that was not done, and `optimizer.step(*args, **kwargs)`, unless a gradient is infinite or NaN.

        RuntimeError for a closure, or if it was called since the last `update()`.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._check_scale_growth_tracker("step")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            return self._step_that_scales(optimizer, state, args, kwargs)
        if state["stage"] is OptState.READY:
            self.unscale_(optimizer)
        if len(state["found_inf_per_device"]) == 0:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        result = self._maybe_opt_step(optimizer, state, *args, **kwargs)
        state["stage"] = OptState.STEPPED
        return result

    def _step_that_scales(self, optimizer, state, args, kwargs):
        """A fused step gets the scale and what was found as tensors, and decides on the device: nobody waits for a number."""
        takes_scaler = "grad_scaler" in inspect.signature(optimizer.step).parameters
        if takes_scaler:
            warnings.warn(
                "GradScaler is going to stop passing itself as a keyword argument to the passed optimizer. In the near future "
                "GradScaler registers `grad_scale: Tensor` and `found_inf: Tensor` to the passed optimizer and let the optimizer "
                "use them directly.",
                FutureWarning,
                stacklevel=3,
            )
            kwargs["grad_scaler"] = self
        else:
            if state["stage"] is OptState.READY:
                self._check_inf_per_device(optimizer)
            scale = self._get_scale_async()
            unscaled = state["stage"] is OptState.UNSCALED
            before = getattr(optimizer, "grad_scale", None if unscaled else 1)
            optimizer.grad_scale = before if unscaled else scale * before
            founds = state["found_inf_per_device"].values()
            optimizer.found_inf = sum(t.to(scale.device, non_blocking=True) for t in founds)
        result = optimizer.step(*args, **kwargs)
        state["stage"] = OptState.STEPPED
        if not takes_scaler:
            del optimizer.grad_scale, optimizer.found_inf
        return result

    def _check_inf_per_device(self, optimizer):
        scale, _ = self._check_scale_growth_tracker("_check_inf_per_device")
        one, zero = (readtorch.full((), value, dtype=float32, device=scale.device) for value in (1.0, 0.0))
        state = self._per_optimizer_states[id(optimizer)]
        state["found_inf_per_device"] = self._unscale_grads_(optimizer, one, zero, True)
        return state["found_inf_per_device"]

    def _found_inf_per_device(self, optimizer):
        return self._per_optimizer_states[id(optimizer)]["found_inf_per_device"]

    # ------------------------------------------------------------------------------------------------ the scale

    def update(self, new_scale=None):
        """Adapt the scale to what the steps found since the last call, or set it: a float or a tensor of one element."""
        if not self._enabled:
            return
        scale, growth_tracker = self._check_scale_growth_tracker("update")
        if new_scale is None:
            found_inf = self._found_inf_combined(scale.device)
            numbers = self._growth_factor, self._backoff_factor, self._growth_interval
            readtorch._amp_update_scale_(scale, growth_tracker, found_inf, *numbers)
        elif isinstance(new_scale, float):
            scale.fill_(new_scale)
        else:
            if new_scale.device.type != self._device or new_scale.numel() != 1 or new_scale.requires_grad:
                raise AssertionError(
                    "new_scale should be a float or a 1-element torch.cuda.FloatTensor or torch.FloatTensor with "
                    "requires_grad=False."
                )
            scale.copy_(new_scale)
        self._per_optimizer_states = defaultdict(_refresh_per_optimizer_state)

    def _found_inf_combined(self, device):
        states = self._per_optimizer_states.values()
        found = [t.to(device=device, non_blocking=True) for s in states for t in s["found_inf_per_device"].values()]
        if not found:
            raise AssertionError("No inf checks were recorded prior to update.")
        combined, *others = found
        for other in others:
            combined += other
        return combined

    def _get_scale_async(self):
        return self._scale

    def get_scale(self):
        """The scale as a float; 1.0 if nothing is scaled. Waits for the device."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else self._scale.item()

    def get_growth_factor(self):
        return self._growth_factor

    def set_growth_factor(self, new_factor):
        self._growth_factor = new_factor

    def get_backoff_factor(self):
        return self._backoff_factor

    def set_backoff_factor(self, new_factor):
        self._backoff_factor = new_factor

    def get_growth_interval(self):
        return self._growth_interval

    def set_growth_interval(self, new_interval):
        self._growth_interval = new_interval

    def _get_growth_tracker(self):
        if not self._enabled:
            return 0
        return self._init_growth_tracker if self._growth_tracker is None else self._growth_tracker.item()

    def is_enabled(self):
        return self._enabled

    # ------------------------------------------------------------------------------------------------- its state

    def state_dict(self):
        """The scale, its factors, the interval and the count of steps, as numbers; empty if nothing is scaled. After `update()`."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._get_growth_tracker(),
        }

    def load_state_dict(self, state_dict):
        """RuntimeError for an empty one, which a disabled scaler wrote. A disabled scaler loads nothing."""
        if not self._enabled:
            return
        if len(state_dict) == 0:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler."
            )
        self._init_scale = state_dict["scale"]
        if self._scale is not None:
            self._scale.fill_(state_dict["scale"])
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_growth_tracker = state_dict["_growth_tracker"]
        if self._growth_tracker is not None:
            self._growth_tracker.fill_(state_dict["_growth_tracker"])

    def __getstate__(self):
        state = self.__dict__.copy()
        if self._enabled:
            if len(self._per_optimizer_states) != 0:
                raise AssertionError(
                    "A GradScaler instance may only be pickled at the beginning of an iteration, or at the end after "
                    "scaler.update()."
                )
            state["_init_scale"] = self.get_scale()
            state["_init_growth_tracker"] = self._get_growth_tracker()
            state["_scale"] = state["_growth_tracker"] = None
        return state

    def __setstate__(self, state):
        self.__dict__.update(state)
