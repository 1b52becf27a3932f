"""Numbers rounded to what integers can say, and still floats: a network learns to live with it.

In PyTorch: `torch/ao/quantization/fake_quantize.py`. Left out: `FixedQParamsFakeQuantize` and `FusedMovingAvgObsFakeQuantize`.
"""

from abc import ABC, abstractmethod

import readtorch
from readtorch import nn

from .observer import MovingAverageMinMaxObserver, MovingAveragePerChannelMinMaxObserver, _with_args
from .utils import _FOUR_BITS, _RANGES, is_per_channel, is_per_tensor, resize_as_saved

__all__ = [
    "FakeQuantize",
    "FakeQuantizeBase",
    "default_dynamic_fake_quant",
    "default_embedding_fake_quant",
    "default_fake_quant",
    "default_per_channel_weight_fake_quant",
    "default_weight_fake_quant",
    "disable_fake_quant",
    "disable_observer",
    "enable_fake_quant",
    "enable_observer",
]


class FakeQuantizeBase(ABC, nn.Module):
    """A module with two switches, which are buffers: whether it rounds, and whether it observes."""

    def __init__(self):
        super().__init__()
        self.register_buffer("fake_quant_enabled", readtorch.tensor([1], dtype=readtorch.uint8))
        self.register_buffer("observer_enabled", readtorch.tensor([1], dtype=readtorch.uint8))

    @abstractmethod
    def forward(self, x):
        pass

    @abstractmethod
    def calculate_qparams(self, **kwargs):
        pass

    def enable_fake_quant(self, enabled=True):
        self.fake_quant_enabled[0] = 1 if enabled else 0

    def disable_fake_quant(self):
        self.enable_fake_quant(False)

    def enable_observer(self, enabled=True):
        self.observer_enabled[0] = 1 if enabled else 0

    def disable_observer(self):
        self.enable_observer(False)

    with_args = classmethod(_with_args)


class FakeQuantize(FakeQuantizeBase):
    """`(clamp(round(x / scale + zero_point), quant_min, quant_max) − zero_point) · scale`, with gradients.

    observer: the class of what finds scale and zero point; `observer_kwargs` are its arguments. Raises AssertionError if
    `quant_min` and `quant_max` are more than `dtype` can say.
    """

    def __init__(
        self, observer=MovingAverageMinMaxObserver, quant_min=None, quant_max=None, is_dynamic=False, **observer_kwargs
    ):
        super().__init__()
        if quant_min is not None and quant_max is not None:
            dtype = observer_kwargs.get("dtype", readtorch.quint8)
            if hasattr(observer, "p"):
                dtype = getattr(observer.p, "keywords", {}).get("dtype", dtype)
            _check_range(quant_min, quant_max, dtype)
            observer_kwargs.update(quant_min=quant_min, quant_max=quant_max)
        seen = observer(**observer_kwargs, is_dynamic=is_dynamic)
        self.activation_post_process = seen
        self.quant_min, self.quant_max, self.is_dynamic = seen.quant_min, seen.quant_max, seen.is_dynamic
        self.dtype, self.qscheme, self.ch_axis = seen.dtype, seen.qscheme, getattr(seen, "ch_axis", -1)
        of_floats = seen.qscheme == readtorch.per_channel_affine_float_qparams
        zero_point_dtype = readtorch.float32 if of_floats else readtorch.int32
        self.register_buffer("scale", readtorch.tensor([1.0], dtype=readtorch.float32))
        self.register_buffer("zero_point", readtorch.tensor([0], dtype=zero_point_dtype))
        self.is_per_channel = is_per_channel(self.qscheme)
        if not (self.is_per_channel or is_per_tensor(self.qscheme)):
            raise AssertionError(
                "Only per channel and per tensor quantization are supported in fake quantize"
                f" got qscheme: {self.qscheme}"
            )

    def calculate_qparams(self):
        return self.activation_post_process.calculate_qparams()

    def forward(self, X):
        if self.observer_enabled[0] == 1:
            self._observe(X.detach())
        if self.fake_quant_enabled[0] == 0:
            return X
        seen = self.activation_post_process
        if self.is_per_channel:
            return readtorch.fake_quantize_per_channel_affine(
                X, self.scale, self.zero_point, self.ch_axis, seen.quant_min, seen.quant_max
            )
        return readtorch.fake_quantize_per_tensor_affine(X, self.scale, self.zero_point, seen.quant_min, seen.quant_max)

    def _observe(self, x):
        self.activation_post_process(x)
        for buffer, value in zip((self.scale, self.zero_point), self.calculate_qparams()):
            if buffer.shape != value.shape:
                buffer.resize_(value.shape)
            buffer.copy_(value)

    def _load_from_state_dict(self, state_dict, prefix, *rest):
        resize_as_saved(self, ("scale", "zero_point"), state_dict, prefix)
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def extra_repr(self):
        seen = self.activation_post_process
        return (
            f"fake_quant_enabled={self.fake_quant_enabled}, observer_enabled={self.observer_enabled}, "
            f"quant_min={seen.quant_min}, quant_max={seen.quant_max}, "
            f"dtype={self.dtype}, qscheme={self.qscheme}, ch_axis={self.ch_axis}, "
            f"scale={self.scale}, zero_point={self.zero_point}"
        )


def _check_range(quant_min, quant_max, dtype):
    if quant_min > quant_max:
        raise AssertionError("quant_min must be less than or equal to quant_max")
    low, high = _RANGES.get(dtype, _FOUR_BITS)
    if low > quant_min:
        raise AssertionError("quant_min out of bound")
    if quant_max > high:
        raise AssertionError("quant_max out of bound")


default_fake_quant = FakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver,
    quant_min=0,
    quant_max=255,
    dtype=readtorch.quint8,
    qscheme=readtorch.per_tensor_affine,
    reduce_range=True,
)
default_weight_fake_quant = FakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver,
    quant_min=-128,
    quant_max=127,
    dtype=readtorch.qint8,
    qscheme=readtorch.per_tensor_symmetric,
    reduce_range=False,
)
default_dynamic_fake_quant = FakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver,
    quant_min=0,
    quant_max=255,
    is_dynamic=True,
    dtype=readtorch.quint8,
    averaging_constant=1,
)
default_per_channel_weight_fake_quant = FakeQuantize.with_args(
    observer=MovingAveragePerChannelMinMaxObserver,
    quant_min=-128,
    quant_max=127,
    dtype=readtorch.qint8,
    qscheme=readtorch.per_channel_symmetric,
    reduce_range=False,
    ch_axis=0,
)
default_embedding_fake_quant = FakeQuantize.with_args(
    observer=MovingAveragePerChannelMinMaxObserver,
    qscheme=readtorch.per_channel_affine_float_qparams,
    dtype=readtorch.quint8,
    quant_min=0,
    quant_max=255,
    ch_axis=0,
    averaging_constant=1,
)


def disable_fake_quant(mod):
    """For `model.apply`: modules that round pass their inputs on as they are."""
    if isinstance(mod, FakeQuantizeBase):
        mod.disable_fake_quant()


def enable_fake_quant(mod):
    if isinstance(mod, FakeQuantizeBase):
        mod.enable_fake_quant()


def disable_observer(mod):
    """For `model.apply`: scales and zero points stay as they are."""
    if isinstance(mod, FakeQuantizeBase):
        mod.disable_observer()


def enable_observer(mod):
    if isinstance(mod, FakeQuantizeBase):
        mod.enable_observer()
