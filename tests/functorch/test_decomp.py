"""Decompositions: each does what its operator does, and what is left of a program are core operators."""

import pytest
import torch

import readtorch as rt
from readtorch._decomp import (
    core_aten_decompositions,
    decomposition_table,
    get_decompositions,
    register_decomposition,
    remove_decompositions,
)
from readtorch.fx.experimental.proxy_tensor import make_fx
from tests.functorch.test_aot_autograd import PROGRAMS, leaves, tensors_of
from tests.operator_arguments import arguments_of
from tests.reference import rebuild, to_readtorch

TABLE = {overload._operator.schema.full_name: overload for overload in decomposition_table}


def call(function, schema, values):
    given = [v for a, v in zip(schema.arguments, values) if not a.keyword_only]
    by_name = {a.public_name: v for a, v in zip(schema.arguments, values) if a.keyword_only}
    return function(*given, **by_name)


def compare(overload, values, **close):
    schema = overload._operator.schema
    ours, wanted = call(decomposition_table[overload], schema, values), call(overload, schema, values)
    ours, wanted = tensors_of(rt, ours), tensors_of(rt, wanted)
    assert len(ours) == len(wanted)
    for a, b in zip(ours, wanted):
        assert a.shape == b.shape and a.dtype is b.dtype
        if b.numel():
            assert rt.allclose(a.double(), b.double(), equal_nan=True, **close)


# What is guessed for these makes no sense, which the operators do not notice; they are below, by hand.
NOT_GUESSED = {
    f"aten::{name}"
    for name in (
        "_native_batch_norm_legit.no_stats",
        "diagonal_backward",
        "embedding_dense_backward",
        "native_batch_norm_backward",
    )
}


def test_there_are_enough():
    assert len(TABLE) >= 75


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", [n for n in TABLE if n not in NOT_GUESSED and arguments_of(n) is not None])
def test_values(name, dtype):
    """On arguments that PyTorch accepts, found from the schema."""
    given = arguments_of(name)

    def converted(value):
        return value.to(dtype) if isinstance(value, torch.Tensor) and value.is_floating_point() else value

    values = to_readtorch(rebuild(given, converted))
    try:
        call(TABLE[name], TABLE[name]._operator.schema, values)
    except (RuntimeError, NotImplementedError):
        assert dtype is torch.bfloat16, "the operator itself refuses"
        pytest.skip("the operator has no kernel for this dtype")
    close = {"atol": 2e-2, "rtol": 2e-2} if dtype is torch.bfloat16 else {"atol": 1e-5, "rtol": 1e-4}
    compare(TABLE[name], values, **close)


def numbers(*shape, seed=0):
    return rt.rand(*shape, generator=rt.Generator().manual_seed(seed), dtype=rt.float64) * 4 - 2


BY_HAND = {
    "gelu, tanh": ("gelu_backward.default", lambda: (numbers(5), numbers(5, seed=1), "tanh")),
    "gelu": ("gelu_backward.default", lambda: (numbers(5), numbers(5, seed=1), "none")),
    "elu of result": ("elu_backward.default", lambda: (numbers(6), 1.3, 1.1, 0.9, True, numbers(6, seed=1))),
    "elu of input": ("elu_backward.default", lambda: (numbers(6), 1.3, 1.1, 0.9, False, numbers(6, seed=1))),
    "softplus": ("softplus.default", lambda: (rt.tensor([-3.0, 0.0, 25.0]), 2, 20)),
    "prelu": ("_prelu_kernel_backward.default", lambda: (numbers(3, 2), numbers(3, 2, seed=1), numbers(1, 1, seed=2))),
    "nll, weighted": (
        "nll_loss_forward.default",
        lambda: (numbers(4, 3), rt.tensor([0, 2, -100, 1]), rt.tensor([1.0, 2, 3]).double(), 1, -100),
    ),
    "nll, sums": ("nll_loss_forward.default", lambda: (numbers(4, 3), rt.tensor([0, 2, 1, 1]), None, 2, 1)),
    "nll, each": ("nll_loss_forward.default", lambda: (numbers(4, 3), rt.tensor([0, 2, 1, 1]), None, 0, 1)),
    "nll, one": ("nll_loss_forward.default", lambda: (numbers(3), rt.tensor(2), None, 1, -100)),
    "nll, backward": (
        "nll_loss_backward.default",
        lambda: (
            rt.tensor(2.0).double(),
            numbers(4, 3),
            rt.tensor([0, 2, -100, 1]),
            rt.tensor([1.0, 2, 3]).double(),
            1,
            -100,
            rt.tensor(6.0).double(),
        ),
    ),
    "nll of images": (
        "nll_loss2d_forward.default",
        lambda: (numbers(2, 3, 2, 2), rt.arange(8).view(2, 2, 2) % 3, None, 1, 1),
    ),
    "nll of images, backward": (
        "nll_loss2d_backward.default",
        lambda: (
            numbers(2, 2, 2),
            numbers(2, 3, 2, 2),
            rt.arange(8).view(2, 2, 2) % 3,
            None,
            0,
            1,
            rt.tensor(0.0).double(),
        ),
    ),
    "layer norm": (
        "native_layer_norm.default",
        lambda: (numbers(2, 3, 4), [3, 4], numbers(3, 4, seed=1), numbers(3, 4, seed=2), 1e-5),
    ),
    "group norm": (
        "native_group_norm.default",
        lambda: (numbers(2, 6, 2, 2), numbers(6, seed=1), numbers(6, seed=2), 2, 6, 4, 3, 1e-5),
    ),
    "embedding": (
        "embedding_dense_backward.default",
        lambda: (numbers(2, 3, 4), rt.tensor([[0, 1, 1], [2, 0, 3]]), 5, 3, False),
    ),
    "embedding, by frequency": (
        "embedding_dense_backward.default",
        lambda: (numbers(2, 3, 4), rt.tensor([[0, 1, 1], [2, 0, 3]]), 5, -1, True),
    ),
    "diagonal": ("diagonal_backward.default", lambda: (numbers(3), [3, 4], 1, 0, 1)),
    "batch norm": (
        "_native_batch_norm_legit.no_stats",
        lambda: (numbers(3, 2, 2), numbers(2, seed=1), numbers(2, seed=2), True, 0.1, 1e-5),
    ),
    "batch norm, evaluated": (
        "_native_batch_norm_legit_no_training.default",
        lambda: (numbers(3, 2, 2), None, None, numbers(2, seed=1), numbers(2, seed=2).abs(), 0.1, 1e-5),
    ),
    "batch norm, functional": (
        "_native_batch_norm_legit_functional.default",
        lambda: (
            numbers(3, 2, 2),
            None,
            numbers(2, seed=3),
            numbers(2, seed=1),
            numbers(2, seed=2).abs(),
            True,
            0.1,
            1e-5,
        ),
    ),
    "addmm": ("addmm.default", lambda: (numbers(2, 4), numbers(2, 3, seed=1), numbers(3, 4, seed=2), 0.5, 2)),
    "addmm, nothing of it": (
        "addmm.default",
        lambda: (numbers(2, 4) * float("nan"), numbers(2, 3, seed=1), numbers(3, 4, seed=2), 0, 2),
    ),
    "triu": ("triu.default", lambda: (numbers(3, 4), 1)),
    "tril": ("tril.default", lambda: (numbers(2, 4, 3), -1)),
    "logsumexp": ("logsumexp.default", lambda: (rt.tensor([[1.0, float("inf")], [float("-inf")] * 2]), [1], False)),
    "smooth l1": ("smooth_l1_loss.default", lambda: (numbers(5), numbers(5, seed=1), 1, 0.0)),
    "huber": ("huber_loss_backward.default", lambda: (rt.tensor(1.5).double(), numbers(5), numbers(5, seed=1), 1, 0.7)),
    "lerp": ("lerp.Scalar", lambda: (numbers(3), numbers(3, seed=1), 0.75)),
    "nan_to_num": (
        "nan_to_num.default",
        lambda: (rt.tensor([float("nan"), float("inf"), float("-inf"), 1.0]), 7.0, None, None),
    ),
    "logaddexp": (
        "logaddexp.default",
        lambda: (rt.tensor([float("inf"), float("-inf"), 1.0]), rt.tensor([float("inf"), float("-inf"), 3.0])),
    ),
}


@pytest.mark.parametrize("name", BY_HAND)
def test_by_hand(name):
    operator, make = BY_HAND[name]
    packet, overload = operator.split(".")
    compare(getattr(getattr(rt.ops.aten, packet), overload), make(), atol=1e-9, rtol=1e-7)


def norm_backwards():
    x, g = numbers(3, 4, 5), numbers(3, 4, 5, seed=1)
    channel = [numbers(4, seed=i) for i in (2, 3)]
    mean, var = x.mean([0, 2]), x.var([0, 2], correction=0)
    rstd = (var + 1e-5).rsqrt()
    yield "native_batch_norm_backward", (g, x, channel[0], mean, var, mean, rstd, True, 1e-5, [True] * 3)
    yield "native_batch_norm_backward", (g, x, channel[0], mean, var, mean, rstd, False, 1e-5, [True] * 3)
    for shape, weight in (([5], numbers(5, seed=4)), ([4, 5], None)):
        _, m, r = rt.native_layer_norm(x, shape, None, None, 1e-5)
        yield "native_layer_norm_backward", (g, x, shape, m, r, weight, weight, [True] + [weight is not None] * 2)
    _, m, r = rt.native_group_norm(x, None, None, 3, 4, 5, 2, 1e-5)
    yield "native_group_norm_backward", (g, x, m, r, channel[1], 3, 4, 5, 2, [True] * 3)


@pytest.mark.parametrize("number", range(5))
def test_backward_of_norms(number):
    name, values = list(norm_backwards())[number]
    compare(getattr(rt.ops.aten, name).default, values, atol=1e-9, rtol=1e-7)


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    """Traced with all decompositions a program computes the same, and no decomposed operator is left."""
    table = core_aten_decompositions()
    x, y = (t.detach() for t in leaves(rt))

    def program(x, y):
        rt.manual_seed(0)
        return [t for t in tensors_of(rt, PROGRAMS[name](rt, x, y))]

    graph = make_fx(program, decomposition_table=table)(x, y)
    left = {node.target for node in graph.graph.nodes if node.op == "call_function"}
    assert not left & table.keys()
    if name != "dropout":
        for ours, wanted in zip(graph(x, y), program(x, y)):
            assert rt.allclose(ours, wanted, atol=1e-5)


def test_tables():
    aten = rt.ops.aten
    assert set(get_decompositions([aten.silu, aten.addmm.default, aten.mm])) == {aten.silu.default, aten.addmm.default}
    table = core_aten_decompositions()
    assert aten.linear.default not in table or callable(table[aten.linear.default])
    remove_decompositions(table, [aten.silu, aten.mm])
    assert aten.silu.default not in table
    own = {}
    register_decomposition(aten.mm, own)(lambda a, b: a)
    assert aten.mm.default in own and aten.mm.default not in decomposition_table
    with pytest.raises(RuntimeError, match="duplicate registrations for aten.silu.default"):
        register_decomposition(aten.silu.default)(lambda x: x)
    for T in (rt, torch):
        with pytest.raises(AssertionError, match="type must be one of post_autograd, pre_autograd, or meta, got late"):
            T._decomp.get_decompositions([], type="late")
