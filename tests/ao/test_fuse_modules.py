"""Marks for quantization and fused layers, each against PyTorch: results, structure and errors."""

from importlib import import_module

import pytest
import torch

import readtorch as rt


def quantization(T):
    return import_module(f"{T.__name__}.ao.quantization")


def outcome(program, T):
    T.manual_seed(0)
    try:
        return program(T)
    except Exception as error:
        return type(error).__name__, str(error).replace("readtorch", "torch")


def same(program):
    here, expected = outcome(program, rt), outcome(program, torch)
    if isinstance(expected, tuple):
        assert here == expected
    else:
        torch.testing.assert_close(torch.tensor(here.tolist()), expected)


def model_of(T, *layers):
    model = T.nn.Sequential(*layers)
    for module in model:
        if getattr(module, "running_mean", None) is not None:
            with T.no_grad():
                module.running_mean.normal_()
                module.running_var.uniform_(0.5, 2)
                if module.affine:
                    module.weight.normal_()
    return model


LAYERS = [
    lambda nn: (nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3)),
    lambda nn: (nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.ReLU()),
    lambda nn: (nn.Conv2d(2, 3, 3), nn.ReLU()),
    lambda nn: (nn.ConvTranspose2d(2, 3, 3), nn.BatchNorm2d(3)),
    lambda nn: (nn.BatchNorm2d(2), nn.ReLU()),
    lambda nn: (nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3, affine=False)),
    lambda nn: (nn.Conv2d(2, 3, 3), nn.Sigmoid()),
]


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("fuse", ["fuse_modules", "fuse_modules_qat"])
@pytest.mark.parametrize("layers", LAYERS)
def test_fused_layers(layers, fuse, training):
    def fused(T):
        model = model_of(T, *layers(T.nn)).train(training)
        names = [str(index) for index in range(len(model))]
        return getattr(quantization(T), fuse)(model, names), T.randn(2, 2, 5, 5)

    def program(T):
        model, x = fused(T)
        return model(x).detach()

    same(program)
    if not isinstance(outcome(program, torch), tuple):
        assert repr(fused(rt)[0]) == repr(fused(torch)[0])


def test_fused_linear_layers():
    def program(T):
        model = model_of(
            T, T.nn.Linear(3, 4), T.nn.BatchNorm1d(4), T.nn.Sequential(T.nn.Linear(4, 2), T.nn.ReLU())
        ).eval()
        calls = []
        model[0].register_forward_pre_hook(lambda *_: calls.append("before"))
        model[1].register_forward_hook(lambda *_: calls.append("after"))
        model = quantization(T).fuse_modules(model, [["0", "1"], ["2.0", "2.1"]])
        y = model(T.randn(2, 3)).detach()
        assert calls in ([], ["before", "after"])
        return y

    same(program)


def test_marks():
    def program(T):
        Q = quantization(T)
        model = Q.QuantWrapper(T.nn.Linear(3, 2))
        assert [name for name, _ in model.named_modules()] == ["", "quant", "dequant", "module"]
        return model(T.ones(2, 3)).detach()

    same(program)
    same(lambda T: quantization(T).QConfig(T.nn.Identity(), None))
    assert quantization(rt).QConfig(1, 2) == (1, 2)


def test_operators_as_a_module():
    def program(T):
        f, x, y = T.nn.quantized.FloatFunctional(), T.arange(4.0).view(2, 2) - 2, T.ones(2, 2)
        results = [f.add(x, y), f.add_scalar(x, 2), f.mul(x, y), f.mul_scalar(x, 2.0), f.add_relu(x, y), f.matmul(x, y)]
        return T.cat([*results, f.cat([x, y], 0)])

    same(program)
    same(lambda T: T.nn.quantized.FloatFunctional()(3))


def test_classes_of_fused_layers():
    intrinsic = import_module("readtorch.ao.nn.intrinsic")
    for layers in (lambda nn: (nn.ReLU(), nn.Linear(2, 2)), lambda nn: (nn.Conv2d(1, 1, 1), nn.ReLU(), nn.ReLU())):
        name = "LinearReLU" if len(layers(rt.nn)) == 2 else "ConvBnReLU2d"
        same(lambda T: getattr(import_module(f"{T.__name__}.ao.nn.intrinsic"), name)(*layers(T.nn)))
    assert isinstance(intrinsic.LinearReLU(rt.nn.Linear(2, 2), rt.nn.ReLU()), rt.nn.Sequential)
