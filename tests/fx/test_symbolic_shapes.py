"""make_fx(tracing_mode="symbolic"): PyTorch's graphs, and results for sizes that the trace has not seen."""

import functools
import importlib

import pytest
import torch
import torch.fx

import readtorch as rt
import readtorch.fx
from tests.reference import assert_close, to_readtorch

from .test_symbolic_trace import assert_same_graphs

SIDES = (torch, rt)
F = {torch: torch.nn.functional, rt: rt.nn.functional}


def of(T):
    return importlib.import_module(f"{T.__name__}.fx.experimental.proxy_tensor")


def matrix(rows, columns):
    return torch.arange(float(rows * columns)).reshape(rows, columns)


def mean_of_rows(T):
    return lambda x: x.sum(0) / x.size(0)


FUNCTIONS = {
    "add": lambda T: lambda x: x + 1,
    "view": lambda T: lambda x: x.view(-1),
    "view with an extra dimension": lambda T: lambda x: x.view(x.size(0), 1, x.size(1)),
    "reshape by a product": lambda T: lambda x: x.reshape(x.size(0) * x.size(1)),
    "reshape of a transpose": lambda T: lambda x: x.t().reshape(-1),
    "flatten": lambda T: lambda x: x.flatten(),
    "cat": lambda T: lambda x: T.cat([x, x, x * 2]),
    "stack": lambda T: lambda x: T.stack([x, x], 1).sum(1),
    "matmul": lambda T: lambda x: x @ x.t(),
    "batches": lambda T: lambda x: T.bmm(x.unsqueeze(0), x.t().unsqueeze(0)),
    "linear": lambda T: lambda x: F[T].linear(x, T.ones(4, x.shape[1]), T.ones(4)),
    "softmax": lambda T: lambda x: x.softmax(-1) + x.log_softmax(0),
    "layer norm": lambda T: lambda x: F[T].layer_norm(x, x.shape[1:]),
    "mean of rows": mean_of_rows,
    "numel": lambda T: lambda x: x.sum() / x.numel(),
    "stride": lambda T: lambda x: x * x.stride(0),
    "arange": lambda T: lambda x: x + T.arange(x.size(1)),
    "arange with a start": lambda T: lambda x: T.arange(2, x.size(1) + 5),
    "factories": lambda T: lambda x: (T.zeros(x.shape[0], x.shape[1] + 1), T.ones(x.shape), T.full((2,), x.shape[0])),
    "expand": lambda T: lambda x: x.unsqueeze(0).expand(4, -1, -1),
    "expand to a size": lambda T: lambda x: T.ones(1, 1).expand(x.size(0), 3) + x.size(1),
    "slice": lambda T: lambda x: x[:, 1:],
    "slice by a size": lambda T: lambda x: x[x.shape[0] - 2 :],
    "select": lambda T: lambda x: x[-1],
    "chunk": lambda T: lambda x: x.chunk(2, 1)[0],
    "repeat": lambda T: lambda x: x.repeat(2, 3),
    "pad": lambda T: lambda x: F[T].pad(x, (1, 2)),
    "where": lambda T: lambda x: T.where(x > 1, x, -x).clamp(0, 4),
    "sums": lambda T: lambda x: (x.mean(0, keepdim=True), T.var(x, 1), x.cumsum(0), x.amax()),
    "sorting": lambda T: lambda x: (x.sort(), x.argmax(1)),
    "embedding": lambda T: lambda x: F[T].embedding(x.long(), T.ones(99, 2)),
    "attention": lambda T: lambda x: F[T].scaled_dot_product_attention(*[x[None, None]] * 3),
    "python arithmetic": lambda T: lambda x: (x.size(0) * 2 + 1, x.shape[1] // 2, x.size(1) / 2, x.size(0) % 3),
    "floats": lambda T: lambda x: x * x.shape[0] ** 0.5,
    "greatest": lambda T: lambda x: T.sym_max(x.shape[0], 4),
    "greatest by a decision": lambda T: lambda x: max(x.shape[0], 4),
    "branch": lambda T: lambda x: x * 2 if x.size(1) > 2 else x,
    "branch on a remainder": lambda T: lambda x: x + 1 if x.shape[0] % 2 == 1 else x,
    "specialized": lambda T: lambda x: [x + i for i in range(x.shape[0])],
    "int": lambda T: lambda x: x * int(x.shape[0]),
    "unbind": lambda T: lambda x: x.unbind(0)[0],
    "conv": lambda T: lambda x: F[T].conv2d(x[None, None], T.ones(2, 1, 2, 2)),
    "pooling": lambda T: lambda x: F[T].max_pool2d(x[None, None], 2),
}


@functools.cache
def traced(T, name):
    x = matrix(5, 3)
    return of(T).make_fx(FUNCTIONS[name](T), tracing_mode="symbolic")(x if T is torch else to_readtorch(x))


def values(gm):
    """The notes of sizes, as they are printed."""
    return [str(node.meta.get("val")) for node in gm.graph.nodes]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_graphs(name):
    theirs, ours = (traced(T, name) for T in SIDES)
    assert_same_graphs(theirs, ours)
    assert values(ours) == values(theirs)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("sizes", [(5, 3), (7, 4), (4, 6), (2, 2), (5, 8)])
def test_other_sizes(name, sizes):
    """Where the guards hold the graph computes what the program does; and they hold where PyTorch's hold, which asks about layouts more
    often.
    """
    theirs, ours = (traced(T, name) for T in SIDES)
    x = matrix(*sizes)
    y = to_readtorch(x)
    holds = [env_holds(gm, x) for gm, x in ((theirs, x), (ours, y))]
    assert holds[1] or not holds[0]
    if holds[1]:
        assert_close(ours(y), FUNCTIONS[name](torch)(x))


def env_holds(gm, x):
    placeholders = [node.meta["val"] for node in gm.graph.find_nodes(op="placeholder")]
    return gm.shape_env.evaluate_guards_for_args(placeholders, [x], ignore_static=False)
