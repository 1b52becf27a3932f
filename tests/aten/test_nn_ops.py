"""Operators of the nn part: activations, softmax, losses, layer norm, embedding — values, graphs, two orders
of gradients, errors."""

import pytest
import torch

import readtorch
from tests.reference import both
from tests.test_graphs import graph_of


def numbers(*shape, scale=3.0):
    """Numbers on both sides of every kink; none on one."""
    return (torch.randn(shape, dtype=torch.float64) * scale).requires_grad_()


def probabilities(*shape):
    return torch.rand(shape, dtype=torch.float64).mul(0.8).add(0.1).requires_grad_()


def compare(function, *inputs, orders=2):
    ours, theirs = both(function, *inputs, grad=orders)
    if theirs.grad_fn is not None:
        assert graph_of(ours) == graph_of(theirs)


ACTIVATIONS = {
    "relu": lambda T, x: T.relu(x),
    "leaky_relu": lambda T, x: T.nn.functional.leaky_relu(x, 0.2),
    "elu": lambda T, x: T.nn.functional.elu(x, 0.7),
    "selu": lambda T, x: T.selu(x),
    "celu": lambda T, x: T.celu(x, 0.7),
    "gelu": lambda T, x: T.nn.functional.gelu(x),
    "gelu tanh": lambda T, x: T.nn.functional.gelu(x, approximate="tanh"),
    "silu": lambda T, x: T.nn.functional.silu(x),
    "mish": lambda T, x: T.nn.functional.mish(x),
    "hardtanh": lambda T, x: T.nn.functional.hardtanh(x, -2.0, 1.0),
    "relu6": lambda T, x: T.nn.functional.relu6(x),
    "hardswish": lambda T, x: T.nn.functional.hardswish(x),
    "softplus": lambda T, x: T.nn.functional.softplus(x, 2, 5),
    "softshrink": lambda T, x: T.nn.functional.softshrink(x),
    "hardshrink": lambda T, x: T.nn.functional.hardshrink(x),
    "tanhshrink": lambda T, x: T.nn.functional.tanhshrink(x),
    "logsigmoid": lambda T, x: T.nn.functional.logsigmoid(x),
    "threshold": lambda T, x: T.threshold(x, 0.1, 2.0),
    "glu": lambda T, x: T.nn.functional.glu(x, 0),
    "softmax": lambda T, x: T.softmax(x, 1),
    "softmax to float32": lambda T, x: T.softmax(x, 0, dtype=T.float32),
    "log_softmax": lambda T, x: T.log_softmax(x, 0),
    "softmin": lambda T, x: T.nn.functional.softmin(x, 1),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activation(name):
    compare(ACTIVATIONS[name], numbers(4, 6))


def test_hardsigmoid():
    """Its gradient has no gradient in PyTorch."""
    compare(lambda T, x: T.nn.functional.hardsigmoid(x), numbers(4, 6), orders=1)


IN_PLACE = [
    "relu",
    "leaky_relu",
    "elu",
    "selu",
    "celu",
    "hardtanh",
    "relu6",
    "hardsigmoid",
    "hardswish",
    "silu",
    "mish",
]


@pytest.mark.parametrize("name", IN_PLACE)
def test_activation_in_place(name):
    compare(lambda T, x: getattr(T.nn.functional, name)(x * 1, inplace=True), numbers(4, 6), orders=1)


@pytest.mark.parametrize("name", ["relu", "gelu", "softplus", "log_softmax", "softmax", "elu"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32], ids=str)
def test_activation_in_narrow_types(name, dtype):
    both(ACTIVATIONS[name], numbers(5, 6).detach().to(dtype), exact=False)


def test_prelu():
    for shape, slopes in (((2, 3, 4), 3), ((2, 3), 1), ((4,), 1)):
        compare(lambda T, x, w: T.prelu(x, w), numbers(*shape), numbers(slopes))


def test_relu_of_a_nan_gradient_and_a_nan_input():
    nan = float("nan")
    x = torch.tensor([nan, -1.0, 2.0, 0.0]).requires_grad_()
    both(lambda T, x: T.autograd.grad(T.relu(x), x, T.tensor([1.0, nan, nan, nan])), x)


def test_softmax_of_large_numbers_and_of_one():
    both(lambda T, x: (T.softmax(x, 0), T.log_softmax(x, 0)), torch.tensor([1e4, -1e4, 1e4]).requires_grad_())
    both(lambda T, x: (T.softmax(x, 0), T.log_softmax(x, -1)), torch.tensor(3.0).requires_grad_())


REDUCTIONS = ["none", "mean", "sum"]


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"])
def test_distance_losses(name, reduction):
    compare(
        lambda T, x, t: getattr(T.nn.functional, name)(x, t, reduction=reduction),
        numbers(4, 6),
        numbers(4, 6),
        orders=1 if name == "l1_loss" else 2,
    )


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", [(4, 6), (2, 6, 3), (2, 6, 3, 4), (2, 6, 2, 2, 2), (6,)], ids=str)
def test_cross_entropy(shape, weighted, reduction):
    """Class 1 is ignored; other ranks than 1, 2 and 4 are folded."""
    target = torch.randint(0, 6, (shape[0], *shape[2:])) if len(shape) > 1 else torch.tensor(3)
    weight = torch.rand(6, dtype=torch.float64) if weighted else None
    compare(
        lambda T, x, t, w: T.nn.functional.cross_entropy(x, t, w, ignore_index=1, reduction=reduction),
        numbers(*shape),
        target,
        weight,
    )


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("weighted", [False, True])
def test_cross_entropy_with_smoothing_and_with_probabilities(weighted, reduction):
    weight = torch.rand(6, dtype=torch.float64) if weighted else None
    compare(
        lambda T, x, t, w: T.nn.functional.cross_entropy(
            x, t, w, ignore_index=1, label_smoothing=0.2, reduction=reduction
        ),
        numbers(4, 6),
        torch.tensor([0, 1, 5, 3]),
        weight,
    )
    compare(
        lambda T, x, t, w: T.nn.functional.cross_entropy(x, t, w, label_smoothing=0.2, reduction=reduction),
        numbers(4, 6),
        probabilities(4, 6),
        weight,
    )


def test_cross_entropy_with_less_than_no_smoothing():
    """It is taken for none."""
    compare(
        lambda T, x, t: T.nn.functional.cross_entropy(x, t, label_smoothing=-0.2),
        numbers(4, 6),
        torch.tensor([0, 1, 5, 3]),
    )
    compare(
        lambda T, x, t: T.nn.functional.cross_entropy(x, t, label_smoothing=-0.2), numbers(4, 6), probabilities(4, 6)
    )


TYPES = ("float16", "bfloat16", "float32", "float64", "int64")


@pytest.mark.parametrize("target", TYPES)
@pytest.mark.parametrize("dtype", TYPES)
def test_binary_cross_entropy_of_two_dtypes_is_refused(dtype, target):
    def outcome(T, weight):
        x, t = T.ones(3, dtype=getattr(T, dtype)), T.ones(3, dtype=getattr(T, target))
        try:
            return str(T.nn.functional.binary_cross_entropy(x, t, weight and T.ones(3, dtype=getattr(T, weight))).dtype)
        except RuntimeError as error:
            return type(error).__name__, str(error)

    for weight in (None, "float32", "float64"):
        assert outcome(readtorch, weight) == outcome(torch, weight)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("weighted", [False, True])
def test_binary_cross_entropy(weighted, reduction):
    weight = torch.rand(4, 6, dtype=torch.float64) if weighted else None
    compare(
        lambda T, x, t, w: T.nn.functional.binary_cross_entropy(x, t, w, reduction=reduction),
        probabilities(4, 6),
        probabilities(4, 6),
        weight,
    )
    for positive in (None, torch.rand(6, dtype=torch.float64)):
        compare(
            lambda T, x, t, w, p: T.nn.functional.binary_cross_entropy_with_logits(
                x, t, w, reduction=reduction, pos_weight=p
            ),
            numbers(4, 6),
            probabilities(4, 6),
            weight,
            positive,
        )


@pytest.mark.parametrize("log_target", [False, True])
def test_kl_div(log_target):
    compare(
        lambda T, x, t: T.nn.functional.kl_div(x, t, reduction="sum", log_target=log_target),
        probabilities(4, 6),
        probabilities(4, 6),
    )


@pytest.mark.parametrize("shape, normalized", [((4, 6), (6,)), ((3, 4, 6), (4, 6)), ((6,), (6,))], ids=str)
@pytest.mark.parametrize("affine", [False, True])
def test_layer_norm(shape, normalized, affine):
    weight, bias = (numbers(*normalized), numbers(*normalized)) if affine else (None, None)
    compare(lambda T, x, w, b: T.nn.functional.layer_norm(x, normalized, w, b), numbers(*shape), weight, bias)


@pytest.mark.parametrize("padding, by_frequency", [(-1, False), (2, False), (-1, True)])
def test_embedding(padding, by_frequency):
    indices = torch.tensor([[0, 2, 4], [2, 2, 1]])
    compare(
        lambda T, w, i: T.embedding(w, i, padding, by_frequency),
        numbers(5, 3),
        indices,
        orders=1 if by_frequency else 2,
    )


ERRORS = [
    "T.softmax(a(2).long(), 0)",
    "T.softmax(a(2), 1)",
    "T.log_softmax(a(2).long(), 0)",
    "T.relu(a(2).bool())",
    "T.relu(a(2).cfloat())",
    "F.gelu(a(2).long())",
    "F.gelu(a(2), approximate='x')",
    "F.elu(a(2).long())",
    "F.leaky_relu(a(2).long())",
    "F.silu(a(2).long())",
    "F.softplus(a(2).long())",
    "F.logsigmoid(a(2).long())",
    "F.mish(a(2).long())",
    "F.hardsigmoid(a(2).long())",
    "F.hardswish(a(2).long())",
    "F.relu6(a(2).bool())",
    "F.softshrink(a(2), -1.0)",
    "F.mse_loss(a(2).long(), a(2).long())",
    "F.nll_loss(a(2, 3), a(3).long())",
    "F.nll_loss(a(2, 3), a(2))",
    "F.nll_loss(a(2, 3), a(2).long() * 5)",
    "F.nll_loss(a(2, 3), a(2).long() * -5)",
    "F.nll_loss(a(2, 3), a(2).long(), weight=a(2))",
    "F.nll_loss(a(2, 3, 4), a(2, 3).long())",
    "F.nll_loss(a(2, 3, 4), a(2, 4).long() * 7)",
    "F.cross_entropy(a(2, 3), a(2, 3).long())",
    "F.cross_entropy(a(2, 3), a(2, 4))",
    "F.cross_entropy(a(2, 3), a(2).long(), label_smoothing=2.0)",
    "F.cross_entropy(a(2, 3).long(), a(2).long())",
    "F.binary_cross_entropy(a(2) + 9, a(2))",
    "F.glu(a(3))",
    "F.prelu(a(3, 3), a(2))",
    "F.prelu(a(3, 3), a(2, 2))",
    "F.prelu(a(3, 3), a(3).double())",
    "F.layer_norm(a(2, 3), (2,))",
    "F.layer_norm(a(2, 3), (3,), a(2))",
    "F.layer_norm(a(2, 3).long(), (3,))",
    "F.layer_norm(a(2, 3), ())",
    "T.embedding(a(3, 2), a(2))",
    "T.embedding(a(3, 2), a(2).long() * 4)",
    "F.huber_loss(a(2), a(2), delta=0.0)",
    "F.smooth_l1_loss(a(2), a(2), beta=-1.0)",
    "T.celu(a(2), 0.0)",
    "F.softplus(a(2), out=a(2).long())",
]


@pytest.mark.parametrize("expression", ERRORS)
def test_errors_use_the_same_words(expression):
    ours, _ = both(lambda T: eval(expression, {"T": T, "F": T.nn.functional, "a": T.ones}))
    assert isinstance(ours, Exception)
