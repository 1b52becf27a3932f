"""Observers and rounding as if to integers, each against PyTorch: scales, zero points, buffers, texts and errors."""

import copy
import pickle
import warnings
from importlib import import_module

import pytest
import torch

import readtorch as rt

pytestmark = pytest.mark.filterwarnings("ignore:Please use quant_min")
NAMES = ["MinMaxObserver", "MovingAverageMinMaxObserver"]
CHANNEL_NAMES = ["PerChannelMinMaxObserver", "MovingAveragePerChannelMinMaxObserver"]
DTYPES = ["qint8", "quint8", "qint32", "quint4x2", "int8", "uint8", "int16", "int32", "uint16"]


def quantization(T):
    return import_module(f"{T.__name__}.ao.quantization")


def plain(value):
    """What both packages say, as lists and texts."""
    if isinstance(value, (rt.Tensor, torch.Tensor)):
        return value.tolist(), str(value.dtype), list(value.shape)
    if isinstance(value, dict):
        return [(name, plain(part)) for name, part in value.items()]
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    return repr(value).replace("readtorch", "torch")


def outcome(program, T):
    T.manual_seed(0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = plain(program(T))
        except Exception as error:
            result = type(error).__name__, str(error).replace("readtorch", "torch")
    return result, [(w.category, str(w.message)) for w in caught if "deprecated" not in str(w.message)]


def same(program):
    here, expected = outcome(program, rt), outcome(program, torch)
    assert here == expected
    return expected


def seen_by(T, name, shift=0.0, **settings):
    for setting in ("dtype", "qscheme"):
        if setting in settings:
            settings[setting] = getattr(T, settings[setting])
    observer = getattr(quantization(T), name)(**settings)
    for size in (1.0, 3.0, 0.5):
        x = T.randn(4, 3, 2) * size + shift
        assert observer(x) is x
    observer(T.zeros(0, 3))
    return observer


def told(observer):
    return observer.calculate_qparams(), dict(observer.state_dict()), observer, observer.quant_min, observer.quant_max


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NAMES + CHANNEL_NAMES)
def test_scales_and_zero_points(name, dtype):
    kind = "channel" if "Channel" in name else "tensor"
    for form in ("affine", "symmetric") + (("affine_float_qparams",) if kind == "channel" else ()):
        for shift in (0.0, 10.0, -10.0):
            same(lambda T: told(seen_by(T, name, shift, dtype=dtype, qscheme=f"per_{kind}_{form}")))


@pytest.mark.parametrize("name", NAMES + CHANNEL_NAMES)
def test_settings_of_observers(name):
    scheme = "per_channel_symmetric" if "Channel" in name else "per_tensor_symmetric"
    settings = [
        {"reduce_range": True},
        {"reduce_range": True, "dtype": "qint8"},
        {"reduce_range": True, "dtype": "qint32"},
        {"reduce_range": True, "qscheme": scheme},
        {"quant_min": 0, "quant_max": 127},
        {"quant_min": -3, "quant_max": 7, "reduce_range": True},
        {"quant_min": 0, "quant_max": 100, "qscheme": scheme},
        {"quant_min": 1, "quant_max": 7},
        {"quant_min": 0, "quant_max": 0},
        {"quant_min": 0, "quant_max": 300, "dtype": "qint8"},
        {"eps": 1.0},
        {"qscheme": "per_tensor_affine"},
        {"qscheme": "per_channel_affine"},
        {"dtype": "float32"},
        {"is_dynamic": True},
        {"ch_axis": 1},
        {"averaging_constant": 0.5},
        {"averaging_constant": 1, "is_dynamic": True},
    ]
    for setting in settings:
        if setting == {"ch_axis": 1} or "averaging_constant" in setting:
            with_them = setting if "Channel" in name or "ch_axis" not in setting else {}
            setting = with_them if "Moving" in name or "ch_axis" in with_them else {}
        same(lambda T: told(seen_by(T, name, **setting)))


def test_other_schemes_of_minmax():
    same(lambda T: quantization(T).MinMaxObserver(qscheme=T.per_channel_affine))

    def program(T):
        class Mine(quantization(T).UniformQuantizationObserverBase):
            forward = calculate_qparams = None

        with pytest.raises(NotImplementedError, match="Cannot reset min/max values in the given observer"):
            Mine().reset_min_max_vals()
        return Mine(qscheme=None)

    same(program)
    same(lambda T: quantization(T).ObserverBase(T.qint8))


@pytest.mark.parametrize("name", NAMES + CHANNEL_NAMES)
def test_state_and_reset(name):
    def program(T):
        before = getattr(quantization(T), name)()
        untouched = before.calculate_qparams()
        seen = seen_by(T, name)
        before.load_state_dict(seen.state_dict())
        again = copy.deepcopy(before)
        again.reset_min_max_vals()
        return untouched, told(before), told(again), before.calculate_qparams()

    assert same(program)[1]  # the warnings of untouched observers


def test_ranges_that_are_none():
    def program(T):
        observer = quantization(T).MinMaxObserver()
        observer.min_val.fill_(2)
        observer.max_val.fill_(1)
        return observer.calculate_qparams()

    same(program)


def test_observers_that_see_nothing():
    for make in (
        lambda Q, T: Q.PlaceholderObserver(dtype=T.float16, is_dynamic=True),
        lambda Q, T: Q.NoopObserver(),
        lambda Q, T: Q.RecordingObserver(),
        lambda Q, T: Q.FixedQParamsObserver(0.5, 3),
    ):

        def program(T):
            observer = make(quantization(T), T)
            x = T.ones(2)
            assert observer(x) is x
            return observer, dict(observer.state_dict()), observer.dtype, getattr(observer, "tensor_val", None)

        same(program)
        same(lambda T: make(quantization(T), T).calculate_qparams())
    same(lambda T: quantization(T).FixedQParamsObserver(1.0, 0, is_dynamic=True))
    same(lambda T: vars(quantization(T).PlaceholderObserver(compute_dtype=T.quint8))["is_dynamic"])


DEFAULTS = [
    name for name in dir(torch.ao.quantization) if name.startswith("default") and hasattr(rt.ao.quantization, name)
]


@pytest.mark.parametrize("name", DEFAULTS)
def test_defaults(name):
    default = getattr(quantization(torch), name)
    same(lambda T: getattr(quantization(T), name))
    if name.endswith(("observer", "quant")):

        def program(T):
            made = getattr(quantization(T), name)()
            return made, {key: vars(made).get(key) for key in ("dtype", "qscheme", "quant_min", "quant_max", "ch_axis")}

        same(program)
    elif isinstance(default, tuple):
        same(lambda T: [make() for make in getattr(quantization(T), name)])


def test_arguments_for_later():
    def program(T):
        calls = []
        Q = quantization(T)
        make = Q.MinMaxObserver.with_callable_args(eps=lambda: calls.append(1) or 0.5)
        first, second, third = make(), make(eps=0.25), make.with_args(quant_min=0, quant_max=3)()
        return calls, [float(o.eps) for o in (first, second, third)], third.quant_max, Q.MinMaxObserver.with_args(eps=1)

    same(program)


FAKE = [
    {},
    {"quant_min": 0, "quant_max": 15},
    {"quant_min": -1, "quant_max": 15},
    {"quant_min": 0, "quant_max": 256},
    {"quant_min": 9, "quant_max": 8},
    {"observer": "MinMaxObserver", "dtype": "qint8", "qscheme": "per_tensor_symmetric"},
    {"observer": "PerChannelMinMaxObserver", "ch_axis": 1},
    {"observer": "PerChannelMinMaxObserver", "dtype": "qint8", "qscheme": "per_channel_symmetric"},
    {"observer": "PerChannelMinMaxObserver", "qscheme": "per_channel_affine_float_qparams"},
    {"observer": "default_weight_observer", "quant_min": -100, "quant_max": 100},
]


@pytest.mark.parametrize("settings", FAKE)
def test_fake_quantize(settings):
    def program(T):
        Q = quantization(T)
        given = {
            name: getattr(Q if name == "observer" else T, v) if isinstance(v, str) else v
            for name, v in settings.items()
        }
        fake = Q.FakeQuantize(**given)
        results = []
        for size in (1.0, 2.0):
            x = (T.randn(3, 4) * size).requires_grad_()
            y = fake(x)
            y.sum().backward()
            results += [y.detach(), x.grad]
        fake.apply(Q.disable_observer)
        results += [fake(10 * T.ones(3, 4)), dict(fake.state_dict())]
        other = Q.FakeQuantize(**given)
        other.load_state_dict(fake.state_dict())
        other.apply(Q.enable_observer)
        other.apply(Q.disable_fake_quant)
        results += [other(T.ones(3, 4)), other]
        other.apply(Q.enable_fake_quant)
        return results + [other(T.ones(3, 4)), other.calculate_qparams()]

    same(program)


SCHEMES = (
    "per_tensor_affine per_channel_affine per_tensor_symmetric per_channel_symmetric per_channel_affine_float_qparams"
)


def test_schemes():
    for name in SCHEMES.split():
        same(lambda T: [getattr(T, name), isinstance(getattr(T, name), T.qscheme), getattr(T, name).__reduce__()])
        scheme = getattr(rt, name)
        assert copy.deepcopy(scheme) is scheme
    same(lambda T: T.qscheme())


def test_the_older_place():
    from readtorch.quantization.fake_quantize import FakeQuantize
    from readtorch.quantization.observer import MinMaxObserver
    from readtorch.quantization.qconfig import default_qconfig
    from readtorch.quantization.quantize import quantize_dynamic

    for thing in (FakeQuantize, MinMaxObserver, default_qconfig, quantize_dynamic):
        assert any(thing is value for value in vars(rt.ao.quantization).values())
        assert any(thing is value for value in vars(rt.quantization).values())


def test_pickled_observers():
    def program(T):
        return pickle.loads(
            pickle.dumps(seen_by(T, "MinMaxObserver", qscheme="per_tensor_symmetric"))
        ).calculate_qparams()

    same(program)
    for name in ("qint8", "per_tensor_affine"):
        assert pickle.loads(pickle.dumps(getattr(rt, name))) is getattr(rt, name)
