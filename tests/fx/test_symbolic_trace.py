"""symbolic_trace, Tracer and the code that graphs generate: the same text as PyTorch's, and the same results."""

import contextlib
import copy
import io
import math
import operator
import pickle
import re
from collections import namedtuple

import numba
import pytest
import torch
import torch.fx

import readtorch as rt
import readtorch.fx
from tests.reference import assert_close, to_readtorch

Point = namedtuple("Point", "x y")
SIDES = (torch, rt)


def scale(x, by):
    return x * by


torch.fx.wrap("scale")
rt.fx.wrap("scale")

# Functions of the package and of tensors: what is traced.
FUNCTIONS = {
    "arithmetic": lambda T, x, y: (x + y, x - y, x * y, x / y, x // y, x % y, x**2, x @ y, -x, +x, abs(x)),
    "reflected": lambda T, x, y: (1 + x, 1 - x, 2 * x, 1 / x, 7 // x, 7 % x, 2**x),
    "comparisons": lambda T, x, y: (x == y, x != y, x < y, x <= y, x > y, x >= y),
    "bits": lambda T, x, y: (
        ~(x > y),
        (x > 0) & (y > 0),
        (x > 0) | (y > 0),
        (x > 0) ^ (y > 0),
        x.long() << 1,
        x.long() >> 1,
    ),
    "indices": lambda T, x, y: (x[0], x[0, 1], x[:, 1:], x[..., None], x[::2], x[y > 1], x[[0, 1]], x[y.long() % 2]),
    "functions": lambda T, x, y: T.relu(T.sin(x) + T.cos(y)).sum(),
    "methods": lambda T, x, y: x.view(-1).reshape(2, -1).transpose(0, 1).contiguous().sum(dim=1, keepdim=True),
    "attributes": lambda T, x, y: (x.shape, x.dtype, x.T, x.device, x.ndim, x.requires_grad, x.shape[0] * 2),
    "sizes": lambda T, x, y: x.view(x.size(0), -1) + y.reshape(x.shape[0], y.size()[1]),
    "constants": lambda T, x, y: x + T.ones(3) + T.tensor(2.0) * T.arange(3),
    "dtypes": lambda T, x, y: (x.to(T.float64), x.type(T.int32), T.zeros_like(x, dtype=T.bool), x.to("cpu")),
    "lists": lambda T, x, y: (T.cat([x, y]), T.stack((x, y), dim=1), T.cat([x, y, T.ones(1, 3)], dim=0)),
    "results": lambda T, x, y: {"a": x + 1, "b": [y, (x, {"c": y})], "n": None, "t": (1, 2.5, "s", True)},
    "unpacking": lambda T, x, y: sum_of_two(T.chunk(x, 2, dim=1)),
    "named results": lambda T, x, y: T.max(x, 1).values + T.topk(y, 2, dim=1)[0][:, 0],
    "functional": lambda T, x, y: T.nn.functional.relu(T.nn.functional.gelu(x)) + T.nn.functional.softmax(y, dim=-1),
    "functional with options": lambda T, x, y: T.nn.functional.dropout(
        T.nn.functional.layer_norm(x, (3,), eps=1e-3), p=0.25, training=False
    ),
    "linear": lambda T, x, y: T.nn.functional.linear(x, y, bias=None),
    "losses": lambda T, x, y: T.nn.functional.mse_loss(x, y) + T.nn.functional.cross_entropy(x, y, reduction="sum"),
    "pad": lambda T, x, y: T.nn.functional.pad(x, (1, 2), mode="constant", value=0.5),
    "conditions": lambda T, x, y: T.where(x > y, x, y).masked_fill(x > 2, float("inf")).clamp(min=0, max=9),
    "not a number": lambda T, x, y: (x * float("nan"), x.clamp(max=float("-inf"))),
    "special": lambda T, x, y: T.special.erf(x) + T.linalg.norm(y) + T.fft.fft(x).real,
    "einsum": lambda T, x, y: T.einsum("ij,kj->ik", x, y),
    "split": lambda T, x, y: T.split(x, 2, dim=1) + y.split([1, 2], dim=1),
    "in place": lambda T, x, y: x.clone().add_(1).mul_(y),
    "augmented": lambda T, x, y: augmented(x, y),
    "tensor first": lambda T, x, y: T.ones(3) * x + T.eye(3) @ y.T,
    "wrapped": lambda T, x, y: scale(x, by=2) + scale(y, 0.5),
    "math": lambda T, x, y: math.sqrt(x.size(0)) + x,
    "overloads": lambda T, x, y: T.ops.aten.add.Tensor(T.ops.aten.mul(x, 2), y),
    "unused": lambda T, x, y: (T.sigmoid(x), y)[1],
    "same twice": lambda T, x, y: (x + x) * (x + x),
    "names": lambda T, x, y: T.add(T.add(x, 1), T.add(y, 2)).add(3),
    "slices": lambda T, x, y: x[slice(None, None, 2), 0 : x.size(1) - 1],
    "complex": lambda T, x, y: T.complex(x, y).abs() + T.view_as_real(T.complex(x, y))[..., 0],
    "random": lambda T, x, y: x + T.zeros(x.shape) + T.full((2, 3), 1.5),
    "norms": lambda T, x, y: x.norm() + y.norm(p=1, dim=0) + T.norm(x, 2, 1, True),
    "permutations": lambda T, x, y: x.permute(1, 0).flip(0).roll(1, dims=0).expand(3, 2).repeat(2, 1),
    "sums": lambda T, x, y: (x.sum((0, 1)), y.mean(-1), x.var(dim=0, unbiased=False), T.logsumexp(y, dim=(0,))),
    "pools": lambda T, x, y: T.nn.functional.max_pool1d(x[None], 2) + T.nn.functional.avg_pool1d(y[None], 2, stride=2),
    "embedding": lambda T, x, y: T.nn.functional.embedding(x.long(), y),
    "attention": lambda T, x, y: T.nn.functional.scaled_dot_product_attention(
        x[None], y[None], y[None], is_causal=False
    ),
    "types": lambda T, x, y: (x.float(), y.double(), x.int().bool(), x.type_as(y)),
    "operator": lambda T, x, y: (operator.add(x, y), operator.getitem(x, 0), operator.matmul(x, y.T), operator.neg(x)),
}


def sum_of_two(pair):
    a, b = pair
    return a.sum() + b.sum()


def augmented(x, y):
    x += y
    x *= 2
    x -= 1
    return x


def function_of(T, program):
    def traced(x, y):
        return program(T, x, y)

    return traced


def inputs(T):
    x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    y = torch.tensor([[2.0, 1.0, 2.0], [1.0, 0.5, 2.0]])
    return (x, y) if T is torch else tuple(map(to_readtorch, (x, y)))


def outcome(function):
    """What a function returns, or the error that it raises."""
    try:
        return function()
    except Exception as error:
        return type(error).__name__, plain(str(error))


def plain(text):
    """Text without addresses and without the names of our classes' modules."""
    text = re.sub(r"<(?:built-in method|function) (\w+) .*?>", r"<\1>", text)  # functions in C++ there, in Python here
    return re.sub(r"0x[0-9a-f]+|<eval_with_key>\.\d+", "…", text).replace("readtorch", "torch")


def tabular(graph):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        graph.print_tabular()
    return plain(re.sub(r"<(built-in )?(function|method)[^>]*>+", "<…>", out.getvalue()))


def assert_same_graphs(theirs, ours):
    assert ours.code == theirs.code
    assert plain(str(ours.graph)) == str(theirs.graph)
    assert plain(str(ours)) == str(theirs)
    assert plain(ours.print_readable(print_output=False)) == theirs.print_readable(print_output=False)
    for their_node, our_node in zip(theirs.graph.nodes, ours.graph.nodes, strict=True):
        assert (our_node.op, our_node.name) == (their_node.op, their_node.name)
        assert [user.name for user in our_node.users] == [user.name for user in their_node.users]
        assert str(our_node.all_input_nodes) == str(their_node.all_input_nodes)
    ours.graph.lint()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    theirs, ours = (T.fx.symbolic_trace(function_of(T, FUNCTIONS[name])) for T in SIDES)
    assert_same_graphs(theirs, ours)
    expected, found = (outcome(lambda g=g, T=T: g(*inputs(T))) for g, T in ((theirs, torch), (ours, rt)))
    if isinstance(expected, tuple) and isinstance(expected[0], str):
        assert found == expected
    else:
        assert_close(found, expected)
    assert_same_graphs(pickled(theirs), pickled(ours))
    assert_same_graphs(copy.deepcopy(theirs), copy.deepcopy(ours))


def pickled(module):
    return pickle.loads(pickle.dumps(module))


def test_tables():
    theirs, ours = (T.fx.symbolic_trace(function_of(T, FUNCTIONS["methods"])) for T in SIDES)
    assert tabular(ours.graph) == tabular(theirs.graph)


# ---------------------------------------------------------------------------------------------------------- errors


def iterates(T, x, y):
    return [a for a in x]


def spreads(T, x, y):
    return T.stack([*x])


ERRORS = {
    "condition": lambda T, x, y: x if x.sum() > 0 else y,
    "while": lambda T, x, y: 1 if not x else 2,
    "iteration": iterates,
    "star": spreads,
    "len": lambda T, x, y: len(x),
    "int": lambda T, x, y: int(x),
    "setitem": lambda T, x, y: operator.setitem(x, 0, y[0]),
    "range": lambda T, x, y: list(range(x)),
    "key": lambda T, x, y: {x: y},
    "keys of an argument": lambda T, x, y: T.relu({1: {x: 2}}),
    "unknown argument": lambda T, x, y: x.add({1, 2}),
    "other tracer": lambda T, x, y: T.add(x, T.fx.Proxy(T.fx.Graph().placeholder("z"))),
    "module that is not there": lambda T, x, y: T.nn.Linear(2, 2)(x),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    expected, found = (outcome(lambda T=T: T.fx.symbolic_trace(function_of(T, ERRORS[name])).code) for T in SIDES)
    assert found == expected


# ------------------------------------------------------------------------------------------------ inside of modules

MODULES = {
    "Linear": lambda nn: nn.Linear(3, 3),
    "Conv2d": lambda nn: nn.Conv2d(1, 2, 3),
    "ConvTranspose2d": lambda nn: nn.ConvTranspose2d(1, 1, 2),
    "BatchNorm1d": lambda nn: nn.BatchNorm1d(3).eval(),
    "LayerNorm": lambda nn: nn.LayerNorm(3),
    "GroupNorm": lambda nn: nn.GroupNorm(1, 3),
    "RMSNorm": lambda nn: nn.RMSNorm(3),
    "MultiheadAttention": lambda nn: nn.MultiheadAttention(4, 2),
    "GRU": lambda nn: nn.GRU(2, 2),
    "TransformerEncoderLayer": lambda nn: nn.TransformerEncoderLayer(4, 2),
    "Embedding": lambda nn: nn.Embedding(3, 4),
    "EmbeddingBag": lambda nn: nn.EmbeddingBag(3, 3),
    "MaxPool2d": lambda nn: nn.MaxPool2d(2),
    "Upsample": lambda nn: nn.Upsample(scale_factor=2),
    "CrossEntropyLoss": lambda nn: nn.CrossEntropyLoss(),
    "Sequential": lambda nn: nn.Sequential(nn.Dropout(), nn.PReLU(), nn.Softmax(1), nn.Hardswish(), nn.Flatten()),
}


@pytest.mark.parametrize("name", MODULES)
def test_inside_of_modules(name):
    """No module is a leaf. The parameters of PyTorch's modules are annotated; those of most of ours have no annotations."""

    def program(T):
        class NoLeaves(T.fx.Tracer):
            def is_leaf_module(self, m, module_qualified_name):
                return False

        T.manual_seed(0)
        module = MODULES[name](T.nn)
        return outcome(lambda: T.fx.GraphModule(module, NoLeaves().trace(module)).code)

    theirs, ours = (program(T) for T in SIDES)
    if isinstance(theirs, str):
        theirs, ours = (
            re.sub(r" (:|->) (torch\.Tensor|Optional\[torch\.Tensor\])", "", code) for code in (theirs, ours)
        )
    assert ours == theirs


# ----------------------------------------------------------------------------------------------------------- names

CALLED_OTHERWISE = {"Event", "Generator", "PyTorchFileReader", "Stream", "bilinear", "segment_reduce", "to_dlpack"}


@pytest.mark.parametrize("path", ["", "nn.functional", "nn.init", "linalg", "fft", "special", "functional", "amp"])
def test_names_of_functions(path):
    """The name under which generated code finds a function."""
    their_place, our_place = (operator.attrgetter(path)(T) if path else T for T in SIDES)
    wrong, seen = set(), 0
    for name in dir(their_place):
        theirs, ours = (getattr(place, name, None) for place in (their_place, our_place))
        if not name.startswith("__") and callable(theirs) and callable(ours) and hasattr(theirs, "__name__"):
            seen += 1
            expected = outcome(lambda: torch.fx.node._get_qualified_name(theirs))
            if outcome(lambda: rt.fx.node._get_qualified_name(ours)) != expected:
                wrong.add(name)
    assert seen > 5
    assert wrong <= CALLED_OTHERWISE


def test_a_kernel_may_be_compiled_inside_a_trace():
    """As of `x + rt.randn(2)`, where randn is called for the first time."""

    @numba.njit
    def root(a):
        return math.sqrt(a)

    def program(x):
        inner = rt.fx.symbolic_trace(lambda y: y + root(9.0))
        assert "y + 3.0" in inner.code
        return x * root(4) * math.floor(x)

    assert [node.name for node in rt.fx.symbolic_trace(program).graph.nodes] == ["x", "mul", "floor", "mul_1", "output"]
    assert math.sqrt is rt.fx._symbolic_trace._orig_math["sqrt"]
