"""Layers and functionals next to the reference: results, gradients, repr, warnings, errors."""

import inspect
import math

import pytest
import torch

import readtorch
from tests.programs import same

ACTIVATIONS = [
    ("ReLU", ()),
    ("ReLU6", ()),
    ("Sigmoid", ()),
    ("Tanh", ()),
    ("SiLU", ()),
    ("Mish", ()),
    ("SELU", ()),
    ("Hardsigmoid", ()),
    ("Hardswish", ()),
    ("ELU", ()),
    ("ELU", (0.5,)),
    ("CELU", (2.0,)),
    ("LeakyReLU", (0.2,)),
    ("Threshold", (0.1, 2.0)),
    ("Hardtanh", (-0.5, 0.7)),
    ("RReLU", ()),
    ("GELU", ()),
    ("GELU", ("tanh",)),
    ("GLU", ()),
    ("Hardshrink", (0.3,)),
    ("Softshrink", (0.3,)),
    ("Softplus", (2.0, 3.0)),
    ("LogSigmoid", ()),
    ("PReLU", ()),
    ("PReLU", (4,)),
    ("Softsign", ()),
    ("Tanhshrink", ()),
    ("Softmax", (1,)),
    ("Softmin", (0,)),
    ("LogSoftmax", (1,)),
]


def evenly(T, first, last, *shape):
    n = math.prod(shape)
    return T.tensor([first + (last - first) * i / max(n - 1, 1) for i in range(n)]).reshape(shape)


def example(T, *shape):
    return evenly(T, -3, 3, *shape).requires_grad_()


@pytest.mark.parametrize("name, args", ACTIVATIONS)
def test_activation(name, args):
    def program(T, show):
        layer = getattr(T.nn, name)(*args).eval()
        x = example(T, 3, 4)
        y = layer(x)
        y.backward(example(T, *y.shape).detach())
        show(layer, y.grad_fn.name())
        show.numbers(y, x.grad, *[p.grad for p in layer.parameters()])
        if "inplace" in layer.__dict__:
            z = example(T, 3, 4).detach()
            inplace = getattr(T.nn, name)(*args, inplace=True)
            show(inplace, inplace.eval()(z) is z)
            show.numbers(z)

    same(program)


def test_softmax_without_dim():
    def program(T, show):
        for layer in (T.nn.Softmax(), T.nn.LogSoftmax(), T.nn.Softmin()):
            for shape in ((), (2,), (2, 2), (2, 2, 2), (1, 2, 2, 1)):
                show.warnings(lambda: show.numbers(layer(T.ones(shape))))
        show.warnings(lambda: T.nn.functional.softmax(T.ones(2)))
        show.error(lambda: T.nn.Softmax2d()(T.ones(2)))
        show.numbers(T.nn.Softmax2d()(T.ones(2, 1, 1)), T.nn.functional.softmax(T.ones(2), 0, dtype=T.float64))

    same(program)


LOSSES = [
    ("MSELoss", {}),
    ("L1Loss", {}),
    ("SmoothL1Loss", {}),
    ("SmoothL1Loss", {"beta": 0.3}),
    ("SmoothL1Loss", {"beta": 0.0}),
    ("HuberLoss", {"delta": 0.4}),
    ("BCELoss", {}),
    ("BCEWithLogitsLoss", {}),
    ("KLDivLoss", {}),
    ("KLDivLoss", {"log_target": True}),
    ("CrossEntropyLoss", {}),
    ("CrossEntropyLoss", {"label_smoothing": 0.2}),
    ("CrossEntropyLoss", {"ignore_index": 2}),
    ("NLLLoss", {}),
    ("NLLLoss", {"ignore_index": 2}),
]


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("name, kwargs", LOSSES)
def test_loss(name, kwargs, reduction):
    def program(T, show):
        loss = getattr(T.nn, name)(**kwargs, reduction=reduction)
        x = example(T, 4, 3)
        target = evenly(T, 0.1, 0.9, 4, 3)
        if name in ("CrossEntropyLoss", "NLLLoss"):
            target = T.tensor([0, 2, 1, 0])
        input = T.sigmoid(x) if name == "BCELoss" else x.log_softmax(1) if name in ("KLDivLoss", "NLLLoss") else x

        def run():
            y = loss(input, target)
            y.sum().backward()
            show(loss, y.grad_fn.name())
            show.numbers(y, x.grad)

        show.warnings(run)

    same(program)


def test_loss_weights():
    def program(T, show):
        F = T.nn.functional
        x, target = example(T, 2, 3), T.zeros(2, 3)
        weight = evenly(T, 0.1, 2, 2, 3)
        for function in (F.mse_loss, F.l1_loss, F.huber_loss):
            for reduction in ("mean", "sum", "none", "other"):
                show.error(lambda: show.numbers(function(x, target, reduction=reduction, weight=weight)))
            show.error(lambda: function(x, target, weight=T.ones(3)))
        for module in (T.nn.NLLLoss, T.nn.CrossEntropyLoss):
            loss = module(weight=T.tensor([0.1, 1.0, 2.0]))
            show(list(loss.state_dict()))
            show.numbers(loss(x.log_softmax(1), T.tensor([0, 2])))
        show.numbers(T.nn.BCELoss(weight=T.ones(3) * 2)(x.sigmoid(), target))
        show.numbers(T.nn.BCEWithLogitsLoss(weight=T.ones(3) * 2, pos_weight=T.ones(3) * 3)(x, target + 1))
        show.numbers(T.nn.CrossEntropyLoss()(x, x.detach().softmax(1)))
        show.numbers(F.kl_div(x.log_softmax(1), target, reduction="batchmean"))

    same(program)


def test_loss_warnings_and_errors():
    def program(T, show):
        x, y = T.ones(2, 3), T.ones(3)
        F = T.nn.functional
        for function in (
            F.mse_loss,
            F.l1_loss,
            F.smooth_l1_loss,
            F.huber_loss,
            F.binary_cross_entropy,
            F.binary_cross_entropy_with_logits,
            F.kl_div,
        ):
            show.warnings(lambda: show.error(lambda: show.numbers(function(x, y))))
            show.warnings(lambda: show.error(lambda: function(x, x, reduction="other")))
            if function is not F.huber_loss:
                show.warnings(lambda: show.error(lambda: show.numbers(function(x, x, size_average=False))))
                show.warnings(lambda: show.error(lambda: show.numbers(function(x, x, reduce=False))))
        for module in (T.nn.MSELoss, T.nn.CrossEntropyLoss):
            show.warnings(lambda: show(module(size_average=False).reduction, module(reduce=False).reduction))
        show.warnings(lambda: F.mse_loss(x, x, reduction="elementwise_mean"))
        show.error(lambda: T.nn.HuberLoss(delta="1"))

    same(program)


def test_dropout():
    def program(T, show):
        for name in ("Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout"):
            layer = getattr(T.nn, name)(0.4)
            show(layer)
            for shape in ((5, 6), (2, 5, 6), (2, 3, 4, 5), (1, 2, 3, 2, 2)):
                x = T.ones(shape)
                show.warnings(lambda: show.error(lambda: show.numbers(layer.train()(x), layer.eval()(x))))
            for bad in (-0.1, 1.1):
                show.error(lambda: getattr(T.nn, name)(bad))
                show.error(lambda: T.nn.functional.dropout(T.ones(1), bad))
        x = T.ones(20)
        show(T.nn.Dropout(0.5, inplace=True)(x) is x)
        show.numbers(x)

    same(program)


def test_linear_bilinear_identity_flatten():
    def program(T, show):
        for layer, inputs in (
            (T.nn.Linear(3, 2), [example(T, 4, 3)]),
            (T.nn.Linear(3, 2, bias=False), [example(T, 2, 2, 3)]),
            (T.nn.Linear(3, 1), [example(T, 3)]),
            (T.nn.Bilinear(3, 2, 4), [example(T, 5, 3), example(T, 5, 2)]),
            (T.nn.Identity(3, a=4), [example(T, 2)]),
            (T.nn.Flatten(), [example(T, 2, 3, 2)]),
            (T.nn.Flatten(0, 1), [example(T, 2, 3, 2)]),
            (T.nn.Unflatten(1, (2, 3)), [example(T, 2, 6)]),
            (T.nn.LayerNorm(3), [example(T, 2, 3)]),
            (T.nn.LayerNorm((2, 3), eps=0.1), [example(T, 4, 2, 3)]),
            (T.nn.LayerNorm(3, bias=False), [example(T, 2, 3)]),
            (T.nn.LayerNorm(3, elementwise_affine=False), [example(T, 2, 3)]),
        ):
            y = layer(*inputs)
            (y * example(T, *y.shape).detach()).sum().backward()
            show(layer)
            show.numbers(y, *[x.grad for x in inputs], *[p.grad for p in layer.parameters()])
        for bad in ([1.0], 3, ("a",)):
            show.error(lambda: T.nn.Unflatten(0, bad))

    same(program)


def shown(default):
    """A default value; a function by its name, because each side has its own."""
    return default.__name__ if callable(default) else default


@pytest.mark.parametrize(
    "name",
    sorted(n for n, v in vars(readtorch.nn).items() if inspect.isclass(v) and issubclass(v, readtorch.nn.Module)),
)
def test_signature_of_layer(name):
    ours, theirs = (inspect.signature(getattr(T.nn, name).__init__) for T in (readtorch, torch))
    if [p for p in theirs.parameters if p not in ("self", "args", "kwargs")]:
        assert [(p.name, shown(p.default)) for p in ours.parameters.values()] == [
            (p.name, shown(p.default)) for p in theirs.parameters.values()
        ]


@pytest.mark.parametrize(
    "name",
    sorted(
        n
        for n, v in vars(torch.nn.functional).items()  # PyTorch's built-in functions have no signature
        if inspect.isfunction(v) and hasattr(readtorch.nn.functional, n) and not n.startswith("_")
    ),
)
def test_signature_of_functional(name):
    function = getattr(torch.nn.functional, name)
    if "return_indices" in (closure := inspect.getclosurevars(function).nonlocals).get("arg_name", ""):
        function = closure["if_true"]  # PyTorch chooses between two functions of one signature
    ours, theirs = inspect.signature(getattr(readtorch.nn.functional, name)), inspect.signature(function)
    assert [(p.name, p.default) for p in ours.parameters.values()] == [
        (p.name, p.default) for p in theirs.parameters.values()
    ]
