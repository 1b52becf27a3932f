"""Modules that see tensors pass by and say how to quantize them. In PyTorch: `torch/ao/quantization/observer.py`.

Left out: `HistogramObserver`, `ReuseInputObserver`, what later moved to the package torchao, and checkpoints of the observers'
first two versions.
"""

import warnings
from abc import ABC, abstractmethod
from functools import partial

import readtorch
from readtorch import nn

from .utils import (
    calculate_qmin_qmax,
    check_min_max_valid,
    is_per_channel,
    is_per_tensor,
    resize_as_saved,
    validate_qmin_qmax,
)

__all__ = [
    "FixedQParamsObserver",
    "MinMaxObserver",
    "MovingAverageMinMaxObserver",
    "MovingAveragePerChannelMinMaxObserver",
    "NoopObserver",
    "ObserverBase",
    "PerChannelMinMaxObserver",
    "PlaceholderObserver",
    "RecordingObserver",
    "UniformQuantizationObserverBase",
    "default_affine_fixed_qparams_observer",
    "default_debug_observer",
    "default_dynamic_quant_observer",
    "default_fixed_qparams_range_0to1_observer",
    "default_fixed_qparams_range_neg1to1_observer",
    "default_float_qparams_observer",
    "default_float_qparams_observer_4bit",
    "default_observer",
    "default_per_channel_weight_observer",
    "default_placeholder_observer",
    "default_symmetric_fixed_qparams_observer",
    "default_weight_observer",
    "per_channel_weight_observer_range_neg_127_to_127",
    "weight_observer_range_neg_127_to_127",
]

_EPS = readtorch.finfo(readtorch.float32).eps


class _PartialWrapper:
    """A class of observers, with some of the arguments that its instances are made with."""

    def __init__(self, p):
        self.p = p
        self.callable_args = {}

    def __call__(self, *args, **keywords):
        made_now = {name: make() for name, make in self.callable_args.items() if name not in keywords}
        return self.p(*args, **keywords, **made_now)

    def __repr__(self):
        return repr(self.p) + repr(self.callable_args)

    def with_args(self, **kwargs):
        return _with_args(self, **kwargs)

    def with_callable_args(self, **kwargs):
        """Arguments that are computed when an observer is made."""
        wrapper = _PartialWrapper(self.p)
        wrapper.callable_args = {**self.callable_args, **kwargs}
        return wrapper


def _with_args(cls_or_self, **kwargs):
    return _PartialWrapper(partial(cls_or_self, **kwargs))


def _with_callable_args(cls_or_self, **kwargs):
    return _PartialWrapper(partial(cls_or_self)).with_callable_args(**kwargs)


class ObserverBase(ABC, nn.Module):
    """What observers have in common: `forward(x)` returns `x`, `calculate_qparams()` a scale and a zero point.

    dtype: of the integers. is_dynamic: whether they are determined anew for every tensor.
    """

    def __init__(self, dtype, is_dynamic=False):
        super().__init__()
        self.dtype = dtype
        self.is_dynamic = is_dynamic

    @abstractmethod
    def forward(self, x):
        pass

    @abstractmethod
    def calculate_qparams(self, **kwargs):
        pass

    with_args = classmethod(_with_args)
    with_callable_args = classmethod(_with_callable_args)


_SCHEMES = (
    readtorch.per_tensor_affine,
    readtorch.per_tensor_symmetric,
    readtorch.per_channel_affine,
    readtorch.per_channel_symmetric,
    readtorch.per_channel_affine_float_qparams,
)
_DTYPES = (
    readtorch.qint8,
    readtorch.quint8,
    readtorch.quint4x2,
    readtorch.qint32,
    readtorch.int8,
    readtorch.uint8,
    readtorch.int16,
    readtorch.int32,
    readtorch.float8_e5m2,
    readtorch.float8_e4m3fn,
    readtorch.uint16,
)


class UniformQuantizationObserverBase(ObserverBase):
    """Observers whose integers are equally far apart: `x ≈ scale · (q − zero_point)`.

    quant_min, quant_max: the least and the greatest integer, those of `dtype` unless both are given. reduce_range: half of
    that range. eps: the least scale. Raises AssertionError for a dtype or a qscheme of another kind.
    """

    _version = 3

    def __init__(
        self,
        dtype=readtorch.quint8,
        qscheme=readtorch.per_tensor_affine,
        reduce_range=False,
        quant_min=None,
        quant_max=None,
        factory_kwargs=None,
        eps=_EPS,
        is_dynamic=False,
        **kwargs,
    ):
        super().__init__(dtype, is_dynamic, **kwargs)
        if reduce_range:
            warnings.warn(
                "Please use quant_min and quant_max to specify the range for observers. "
                "                    reduce_range will be deprecated in a future release of PyTorch.",
                stacklevel=2,
            )
        self.qscheme = qscheme
        self.reduce_range = reduce_range
        self.register_buffer("eps", readtorch.tensor([eps], **nn.factory_kwargs(factory_kwargs)))
        if qscheme not in _SCHEMES:
            raise AssertionError(
                "Default Observer only works for per_tensor_affine, per_tensor_symmetric, "
                "per_channel_affine, per_channel_symmetric and per_channel_float_qparams quantization scheme"
            )
        if dtype not in _DTYPES:
            raise AssertionError(f"Default Observer only works for {_DTYPES} data type")
        self.has_customized_qrange = quant_min is not None and quant_max is not None
        if self.has_customized_qrange:
            validate_qmin_qmax(quant_min, quant_max)
        self.quant_min, self.quant_max = calculate_qmin_qmax(
            quant_min, quant_max, self.has_customized_qrange, dtype, reduce_range
        )

    def _observe(self, min_val, max_val):
        """The buffers `min_val` and `max_val` become these, and keep their places in memory."""
        for buffer, value in ((self.min_val, min_val), (self.max_val, max_val)):
            buffer.resize_(value.shape).copy_(value)

    def _check_reduced(self, symmetric, message):
        if self.qscheme == symmetric and self.reduce_range and self.dtype == readtorch.quint8:
            raise NotImplementedError(message)

    def _calculate_qparams(self, min_val, max_val):
        """Scale and zero point for what lies between: both of shape [1], or of [channels]."""
        if not check_min_max_valid(min_val, max_val):
            device = min_val.device.type
            return readtorch.tensor([1.0], device=device), readtorch.tensor([0], device=device)
        if self.qscheme in (readtorch.per_tensor_symmetric, readtorch.per_channel_symmetric):
            scale, zero_point = self._symmetric(min_val, max_val)
        elif self.qscheme == readtorch.per_channel_affine_float_qparams:
            scale = (max_val - min_val) / float(self.quant_max - self.quant_min)
            scale = readtorch.where(scale > self.eps, scale, readtorch.ones_like(scale))
            zero_point = -1 * min_val / scale
        else:
            scale, zero_point = self._affine(min_val, max_val)
        return scale.reshape(-1), zero_point.reshape(-1)

    def _symmetric(self, min_val, max_val):
        """Zero is the middle of the integers."""
        farthest = readtorch.max(-min_val.clamp(max=0), max_val.clamp(min=0))
        scale = readtorch.max(farthest / (float(self.quant_max - self.quant_min) / 2), self.eps)
        middle = 0
        if self.dtype in (readtorch.quint8, readtorch.uint8):
            middle = (self.quant_min + self.quant_max) // 2 if self.has_customized_qrange else 128
        elif self.dtype == readtorch.uint16:
            middle = 2**15
        return scale, readtorch.full(min_val.shape, middle, dtype=readtorch.int64, device=min_val.device)

    def _affine(self, min_val, max_val):
        """The least number becomes the least integer; zero is among the numbers."""
        low, high = min_val.clamp(max=0), max_val.clamp(min=0)
        scale = readtorch.max((high - low) / float(self.quant_max - self.quant_min), self.eps)
        zero_point = self.quant_min - readtorch.round(low / scale).to(readtorch.int32)
        return scale, zero_point.clamp(self.quant_min, self.quant_max)

    def calculate_qparams(self):
        """(scale, zero_point); 1 and 0, with a warning, before anything was observed."""
        return self._calculate_qparams(self.min_val, self.max_val)

    def extra_repr(self):
        return f"min_val={self.min_val}, max_val={self.max_val}"

    def reset_min_max_vals(self):
        raise NotImplementedError("Cannot reset min/max values in the given observer.")


class MinMaxObserver(UniformQuantizationObserverBase):
    """The least and the greatest number of all that it saw."""

    def __init__(
        self,
        dtype=readtorch.quint8,
        qscheme=readtorch.per_tensor_affine,
        reduce_range=False,
        quant_min=None,
        quant_max=None,
        factory_kwargs=None,
        eps=_EPS,
        is_dynamic=False,
        **kwargs,
    ):
        if not is_per_tensor(qscheme):
            raise NotImplementedError(
                "MinMaxObserver's qscheme only support torch.per_tensor_symmetric"
                "                     and torch.per_tensor_affine."
            )
        super().__init__(dtype, qscheme, reduce_range, quant_min, quant_max, factory_kwargs, eps, is_dynamic, **kwargs)
        where = nn.factory_kwargs(factory_kwargs)
        self.register_buffer("min_val", readtorch.tensor(float("inf"), **where))
        self.register_buffer("max_val", readtorch.tensor(float("-inf"), **where))
        self._check_reduced(
            readtorch.per_tensor_symmetric,
            "Cannot reduce range for symmetric                                        quantization for quint8",
        )

    def forward(self, x_orig):
        if x_orig.numel():
            low, high = readtorch.aminmax(x_orig.detach().to(self.min_val.dtype))
            self._observe(*self._combined(low, high))
        return x_orig

    def _combined(self, low, high):
        return readtorch.min(low, self.min_val), readtorch.max(high, self.max_val)

    def reset_min_max_vals(self):
        self.min_val.fill_(float("inf"))
        self.max_val.fill_(float("-inf"))


class MovingAverageMinMaxObserver(MinMaxObserver):
    """Running means of the least and of the greatest number.

    averaging_constant: how much a new tensor counts.
    """

    def __init__(
        self,
        averaging_constant=0.01,
        dtype=readtorch.quint8,
        qscheme=readtorch.per_tensor_affine,
        reduce_range=False,
        quant_min=None,
        quant_max=None,
        eps=_EPS,
        is_dynamic=False,
        **kwargs,
    ):
        if not is_per_tensor(qscheme):
            raise NotImplementedError(
                "MovingAverageMinMaxObserver's qscheme only support"
                "                 torch.per_tensor_symmetric and torch.per_tensor_affine."
                f"                 but got: {qscheme}"
            )
        if is_dynamic and averaging_constant != 1:
            raise NotImplementedError(
                "MovingAverageMinMaxObserver doesn't support dynamic quantization for "
                f"averaging constant of {averaging_constant}"
            )
        super().__init__(dtype, qscheme, reduce_range, quant_min, quant_max, eps=eps, is_dynamic=is_dynamic, **kwargs)
        self.averaging_constant = averaging_constant

    def _combined(self, low, high):
        if self.min_val == float("inf") and self.max_val == float("-inf"):
            return low, high
        return _moved(self.min_val, low, self.averaging_constant), _moved(self.max_val, high, self.averaging_constant)


class PerChannelMinMaxObserver(UniformQuantizationObserverBase):
    """The least and the greatest number of each channel.

    ch_axis: the dimension of channels.
    """

    def __init__(
        self,
        ch_axis=0,
        dtype=readtorch.quint8,
        qscheme=readtorch.per_channel_affine,
        reduce_range=False,
        quant_min=None,
        quant_max=None,
        factory_kwargs=None,
        eps=_EPS,
        is_dynamic=False,
        **kwargs,
    ):
        name = "PerChannelMinMaxObserver"
        _check_per_channel(name, qscheme, is_dynamic)
        super().__init__(dtype, qscheme, reduce_range, quant_min, quant_max, factory_kwargs, eps, is_dynamic, **kwargs)
        where = nn.factory_kwargs(factory_kwargs)
        self.ch_axis = ch_axis
        self.register_buffer("min_val", readtorch.tensor([], **where))
        self.register_buffer("max_val", readtorch.tensor([], **where))
        self._check_reduced(
            readtorch.per_channel_symmetric, "Cannot reduce range for symmetric quantization for quint8"
        )

    def forward(self, x_orig):
        if x_orig.numel():
            x = x_orig.detach().transpose(0, self.ch_axis).to(self.min_val.dtype)
            low, high = readtorch.aminmax(readtorch.flatten(x, start_dim=1), dim=1)
            self._observe(*(self._combined(low, high) if self.min_val.numel() else (low, high)))
        return x_orig

    def _combined(self, low, high):
        return readtorch.min(low, self.min_val), readtorch.max(high, self.max_val)

    def _load_from_state_dict(self, state_dict, prefix, *rest):
        resize_as_saved(self, ("min_val", "max_val"), state_dict, prefix)
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def reset_min_max_vals(self):
        self.min_val = readtorch.empty(0)
        self.max_val = readtorch.empty(0)


class MovingAveragePerChannelMinMaxObserver(PerChannelMinMaxObserver):
    """Running means of the least and of the greatest number of each channel."""

    def __init__(
        self,
        averaging_constant=0.01,
        ch_axis=0,
        dtype=readtorch.quint8,
        qscheme=readtorch.per_channel_affine,
        reduce_range=False,
        quant_min=None,
        quant_max=None,
        eps=_EPS,
        is_dynamic=False,
        **kwargs,
    ):
        _check_per_channel("MovingAveragePerChannelMinMaxObserver", qscheme, is_dynamic)
        super().__init__(
            ch_axis, dtype, qscheme, reduce_range, quant_min, quant_max, eps=eps, is_dynamic=is_dynamic, **kwargs
        )
        self.averaging_constant = averaging_constant

    def _combined(self, low, high):
        return _moved(self.min_val, low, self.averaging_constant), _moved(self.max_val, high, self.averaging_constant)


def _moved(mean, value, constant):
    return mean + constant * (value - mean)


def _check_per_channel(name, qscheme, is_dynamic):
    if not is_per_channel(qscheme):
        raise NotImplementedError(
            f"{name}'s qscheme only support                     torch.per_channel_symmetric, "
            "torch.per_channel_affine and torch.per_channel_affine_float_qparams."
        )
    if is_dynamic:
        raise NotImplementedError(f"{name} doesn't support dynamic quantization")


class FixedQParamsObserver(ObserverBase):
    """A scale and a zero point that are known beforehand."""

    def __init__(
        self,
        scale,
        zero_point,
        dtype=readtorch.quint8,
        qscheme=readtorch.per_tensor_affine,
        quant_min=0,
        quant_max=255,
        is_dynamic=False,
        **kwargs,
    ):
        if is_dynamic:
            raise NotImplementedError("FixedQParamsObserver doesn't support dynamic quantization")
        super().__init__(dtype, is_dynamic, **kwargs)
        self.quant_min = quant_min
        self.quant_max = quant_max
        self.qscheme = qscheme
        self.register_buffer("scale", readtorch.tensor([scale], dtype=readtorch.float32))
        self.register_buffer("zero_point", readtorch.tensor([zero_point], dtype=readtorch.int32))

    def forward(self, X):
        return X

    def calculate_qparams(self):
        return self.scale, self.zero_point


class _WithoutQParams(ObserverBase):
    """Observers of which nobody asks a scale. `calculate_qparams` raises Exception."""

    def forward(self, x):
        return x

    def calculate_qparams(self):
        raise Exception(  # noqa: TRY002  as PyTorch
            f"calculate_qparams should not be called for {type(self).__name__}"
        )


class PlaceholderObserver(_WithoutQParams):
    """Sees nothing: it only says which integers there are to be.

    compute_dtype: the older way to say `is_dynamic=True`, which warns.
    """

    def __init__(
        self,
        dtype=readtorch.float32,
        custom_op_name="",
        compute_dtype=None,
        quant_min=None,
        quant_max=None,
        qscheme=None,
        eps=None,
        is_dynamic=False,
    ):
        super().__init__(dtype, is_dynamic)
        self.qscheme = readtorch.per_tensor_affine if qscheme is None else qscheme
        self.quant_min = quant_min
        self.quant_max = quant_max
        self.eps = _EPS if eps is None else eps
        self.custom_op = custom_op_name
        if compute_dtype:
            warnings.warn(
                "Please use `is_dynamic` instead of `compute_dtype`. "
                "                    `compute_dtype` will be deprecated in a future release "
                "                    of PyTorch.",
                stacklevel=2,
            )

    def extra_repr(self):
        return f"dtype={self.dtype}, is_dynamic={self.is_dynamic}"


class RecordingObserver(_WithoutQParams):
    """Keeps a copy of every tensor, in `tensor_val`."""

    def __init__(self, dtype=readtorch.quint8):
        super().__init__(dtype)
        self.tensor_val = []

    def forward(self, x):
        self.tensor_val.append(x.clone())
        return x

    def get_tensor_value(self):
        return self.tensor_val


class NoopObserver(_WithoutQParams):
    """Sees nothing: for float16, which needs no scale."""

    def __init__(self, dtype=readtorch.float16, custom_op_name=""):
        super().__init__(dtype)
        self.custom_op = custom_op_name


default_observer = MinMaxObserver.with_args(quant_min=0, quant_max=127)
default_placeholder_observer = PlaceholderObserver
default_debug_observer = RecordingObserver
default_weight_observer = MinMaxObserver.with_args(dtype=readtorch.qint8, qscheme=readtorch.per_tensor_symmetric)
weight_observer_range_neg_127_to_127 = MinMaxObserver.with_args(
    dtype=readtorch.qint8, qscheme=readtorch.per_tensor_symmetric, quant_min=-127, quant_max=127, eps=2**-12
)
default_per_channel_weight_observer = PerChannelMinMaxObserver.with_args(
    dtype=readtorch.qint8, qscheme=readtorch.per_channel_symmetric
)
per_channel_weight_observer_range_neg_127_to_127 = PerChannelMinMaxObserver.with_args(
    dtype=readtorch.qint8, qscheme=readtorch.per_channel_symmetric, quant_min=-127, quant_max=127, eps=2**-12
)
default_dynamic_quant_observer = PlaceholderObserver.with_args(
    dtype=readtorch.quint8, quant_min=0, quant_max=255, is_dynamic=True
)
default_float_qparams_observer = PerChannelMinMaxObserver.with_args(
    dtype=readtorch.quint8, qscheme=readtorch.per_channel_affine_float_qparams, ch_axis=0
)
default_float_qparams_observer_4bit = PerChannelMinMaxObserver.with_args(
    dtype=readtorch.quint4x2, qscheme=readtorch.per_channel_affine_float_qparams, ch_axis=0
)
# Of results whose range is known: of tanh, and of sigmoid.
default_fixed_qparams_range_neg1to1_observer = FixedQParamsObserver.with_args(
    scale=2.0 / 256.0, zero_point=128, dtype=readtorch.quint8, quant_min=0, quant_max=255
)
default_fixed_qparams_range_0to1_observer = FixedQParamsObserver.with_args(
    scale=1.0 / 256.0, zero_point=0, dtype=readtorch.quint8, quant_min=0, quant_max=255
)
default_symmetric_fixed_qparams_observer = default_fixed_qparams_range_neg1to1_observer
default_affine_fixed_qparams_observer = default_fixed_qparams_range_0to1_observer
