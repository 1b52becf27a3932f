"""Linear layers with weights of 8 bits, each against PyTorch: results to the bit, structure, texts and errors."""

import copy
import pickle
import warnings
from importlib import import_module

import pytest
import torch

import readtorch as rt
from tests.ao.test_observer import outcome, quantization, same

pytestmark = pytest.mark.filterwarnings("ignore:.*deprecated")


def dynamic(T):
    return import_module(f"{T.__name__}.ao.nn.quantized.dynamic")


def quantized(T, *layers, spec=None, **settings):
    return quantization(T).quantize_dynamic(T.nn.Sequential(*layers), spec or {T.nn.Linear}, **settings)


@pytest.mark.parametrize("factor", [1e-6, 1e-3, 1.0, 1e4])
@pytest.mark.parametrize("qconfig", ["default_dynamic_qconfig", "per_channel_dynamic_qconfig"])
@pytest.mark.parametrize("bias", [True, False])
def test_results(bias, qconfig, factor):
    def program(T):
        layer = T.nn.Linear(37, 16, bias=bias)
        model = quantized(T, layer, spec={"0": getattr(quantization(T), qconfig)})
        xs = T.randn(5, 37), T.randn(2, 3, 37), T.rand(2, 37), -T.rand(2, 37), T.zeros(2, 37), T.zeros(0, 37)
        return model, [model(factor * x) for x in xs]

    same(program)


def test_long_sums():
    """They are more than float32 can say, so that they are rounded once more."""

    def program(T):
        layer = T.nn.Linear(3000, 2)
        with T.no_grad():
            layer.weight.uniform_(0.9, 1)
        return quantized(T, layer)(T.rand(3, 3000).add_(4))

    same(program)


@pytest.mark.parametrize("name", ["MinMaxObserver", "PerChannelMinMaxObserver"])
@pytest.mark.parametrize("settings", [{}, {"quant_min": -7, "quant_max": 8}, {"averaging_constant": 0.5}])
def test_weights_of_other_observers(name, settings):
    def program(T):
        Q = quantization(T)
        cls = getattr(Q, f"MovingAverage{name}" if "averaging_constant" in settings else name)
        layer = T.nn.Linear(20, 8)
        with T.no_grad():
            layer.weight.add_(0.1)
        qconfig = Q.QConfig(Q.default_dynamic_quant_observer, cls.with_args(dtype=T.qint8, **settings))
        model = quantized(T, layer, spec={"0": qconfig})
        return model, model(T.randn(4, 20))

    same(program)


def test_integers_of_a_weight():
    """PyTorch shows them; here they are inside."""

    def layer(T):
        T.manual_seed(0)
        return quantized(T, T.nn.Linear(9, 4))[0]

    here, there = layer(rt)._packed_params._packed_params, layer(torch).weight()
    assert here.weight.tolist() == there.int_repr().tolist() and here.weight.dtype == rt.int8
    assert float(here.scale) == there.q_scale() and int(here.zero_point) == there.q_zero_point()


def net(T, calls):
    """A layer in a layer, and hooks."""
    nn = T.nn
    model = nn.Sequential(nn.Linear(4, 6), nn.Sequential(nn.Linear(6, 6), nn.ReLU()), nn.Linear(6, 3))
    model[0].register_forward_pre_hook(lambda module, args: calls.append("before"))
    model[0].register_forward_hook(lambda module, args, result: calls.append("after"))
    return model


@pytest.mark.parametrize("names", [["1"], ["1.0", "2"], ["", "2"], ["nope"], None])
def test_which_layers(names):
    def program(T):
        calls = []
        model = net(T, calls)
        spec = None if names is None else set(names)
        small = quantization(T).quantize_dynamic(model, spec)
        assert small is not model and not any(hasattr(part, "qconfig") for part in small.modules())
        result = small(T.randn(2, 4)).detach()
        structure = [(name, type(part).__name__, part.training) for name, part in small.named_modules()]
        parameters = [name for name, _ in small.named_parameters()]
        return structure, parameters, calls, small, result

    structure = outcome(program, rt)[0]
    expected = outcome(program, torch)[0]
    assert structure[:4] == expected[:4]
    torch.testing.assert_close(*(torch.tensor(run[4][0]) for run in (structure, expected)))


def test_in_place_and_at_the_root():
    def program(T):
        Q = quantization(T)
        model = T.nn.Sequential(T.nn.Linear(2, 2))
        assert Q.quantize_dynamic(model, inplace=True) is model
        return model, Q.quantize_dynamic(T.nn.Linear(2, 2))

    same(program)


def test_a_mapping_of_ones_own():
    def program(T):
        class Mine(T.nn.Module):
            @classmethod
            def from_float(cls, mod):
                assert mod.qconfig == quantization(T).default_dynamic_qconfig
                return cls()

        return quantized(T, T.nn.Linear(2, 2), T.nn.ReLU(), spec={T.nn.ReLU}, mapping={T.nn.ReLU: Mine})

    def kinds(T):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return [type(part).__name__ for part in program(T)]

    assert kinds(rt)[1] == "Mine"


def test_copies():
    def program(T):
        model = copy.deepcopy(quantized(T, T.nn.Linear(3, 2)))
        return model, model(T.randn(4, 3))

    same(program)


def test_gradients_stop_there():
    def program(T):
        model, x = quantized(T, T.nn.Linear(3, 2)), T.randn(4, 3).requires_grad_()
        y = model(x)
        with pytest.warns(UserWarning, match="quantized::linear_dynamic: an autograd kernel was not registered"):
            y.sum().backward()
        return y.requires_grad, x.grad

    same(program)


@pytest.mark.parametrize(
    "make",
    [
        lambda T: T.ones(3),
        lambda T: T.ones(2, 4),
        lambda T: T.ones(2, 3, dtype=T.float64),
        lambda T: T.ones(2, 3, dtype=T.float16),
        lambda T: T.ones(2, 3, dtype=T.int64),
        lambda T: T.full((2, 3), float("nan")),
    ],
)
def test_errors_of_inputs(make):
    same(lambda T: quantized(T, T.nn.Linear(3, 2))(make(T)))


def test_errors():
    same(lambda T: quantized(T, T.nn.Linear(3, 2), dtype=T.int8))
    same(lambda T: quantization(T).quantize_dynamic(T.nn.Linear(3, 2), dtype=T.int8))
    same(lambda T: dynamic(T).Linear(3, 2, dtype=T.int8))
    same(lambda T: dynamic(T).Linear.from_float(T.nn.Linear(3, 2)))
    same(
        lambda T: quantized(
            T,
            T.nn.Linear(3, 2),
            spec={"0": quantization(T).default_qconfig._replace(weight=quantization(T).MinMaxObserver)},
        )
    )
    with pytest.raises(AssertionError, match=r"works for one of\['Linear', 'NonDynamicallyQuantizableLinear'\]"):
        dynamic(rt).Linear.from_float(rt.nn.ReLU())


def test_a_layer_by_itself():
    same(
        lambda T: [dynamic(T).Linear(3, 2), dynamic(T).Linear(3, 2).bias(), dynamic(T).Linear(3, 2, bias_=False).bias()]
    )
    assert rt.nn.quantized.dynamic.Linear is dynamic(rt).Linear


def test_what_is_refused():
    """PyTorch does these with quantized tensors, or layers, that are not here."""
    model = quantized(rt, rt.nn.Linear(3, 2))
    for refused in (
        model.state_dict,
        model[0].weight,
        lambda: repr(model[0]._packed_params._weight_bias()),
        lambda: model[0].set_weight_bias(rt.ones(2, 3), None),
        lambda: model.load_state_dict({"0.scale": rt.tensor(1.0)}),
        lambda: pickle.dumps(model),
    ):
        with pytest.raises(NotImplementedError, match="readtorch has no tensors of dtype torch.qint8"):
            refused()
    with pytest.raises(NotImplementedError, match="no infinite numbers"):
        model(rt.full((2, 3), float("inf")))
    with pytest.raises(NotImplementedError, match="on the CPU, not on meta"):
        model(rt.ones(2, 3, device="meta"))
    with pytest.raises(NotImplementedError, match="no quantized tensors between layers"):
        quantization(rt).quantize(model, None, ())
    for layer in (rt.nn.LSTM(2, 2), rt.nn.GRUCell(2, 2)):
        with pytest.raises(NotImplementedError, match=f"no dynamically quantized {type(layer).__name__}"):
            quantization(rt).quantize_dynamic(rt.nn.Sequential(layer))
    for dtype in (rt.float16, rt.quint8, rt.quint4x2):
        with pytest.raises(NotImplementedError, match=f"not to {dtype}"):
            quantized(rt, rt.nn.Linear(3, 2), dtype=dtype)


def test_it_says_that_it_is_deprecated():
    for T in (rt, torch):
        with pytest.warns(DeprecationWarning, match="torch.ao.quantization is deprecated and will be removed in 2.10"):
            quantization(T).quantize_dynamic(T.nn.Sequential())
