"""make_fx: the operators that a function calls, in PyTorch's graph, on real and on fake tensors."""

import importlib

import pytest
import torch
import torch.fx

import readtorch as rt
import readtorch.fx
from tests.reference import assert_close, to_readtorch

from .test_symbolic_trace import assert_same_graphs, outcome, plain

SIDES = (torch, rt)
X = torch.arange(6.0).reshape(2, 3)


def of(T):
    return importlib.import_module(f"{T.__name__}.fx.experimental.proxy_tensor")


def gradient(T, function):
    def run(x):
        x = x.detach().requires_grad_()
        return T.autograd.grad(function(x).sum(), x)

    return run


def net(T):
    T.manual_seed(1)
    return T.nn.Sequential(T.nn.Linear(3, 4), T.nn.ReLU(), T.nn.Linear(4, 2))


def step(T):
    """A step of training, in operators."""

    def run(x):
        w = T.ones(3, 2, requires_grad=True)
        loss = (x @ w).relu().pow(2).mean()
        loss.backward()
        return w - 0.1 * w.grad, loss

    return run


def with_assignment(x):
    x = x.clone()
    x[0] = 1.0
    x[:, 1] += 2
    return x


FUNCTIONS = {
    "add": lambda T: lambda x: x + 1,
    "constants": lambda T: lambda x: x * T.tensor(2.0) + T.ones(3),
    "value of a constant": lambda T: lambda x: x + T.tensor(3).item(),
    "gradient of a reciprocal": lambda T: gradient(T, lambda x: 2 / (x + 1)),
    "in place": lambda T: lambda x: x.clone().add_(1).t(),
    "assignment": lambda T: with_assignment,
    "chunk": lambda T: lambda x: x.chunk(3, 1)[1],
    "split": lambda T: lambda x: T.split(x, 2, 1),
    "pair": lambda T: lambda x: T.max(x, 1),
    "matmul": lambda T: lambda x: x @ x.t(),
    "views": lambda T: lambda x: x.view(-1).reshape(3, 2).permute(1, 0).contiguous().unsqueeze(0).squeeze(0),
    "indices": lambda T: lambda x: (x[0], x[:, 1:], x[..., None], x[T.tensor([0, 1])]),
    "linear": lambda T: lambda x: T.nn.functional.linear(x, T.ones(4, 3), T.ones(4)).relu(),
    "gradient": lambda T: gradient(T, lambda x: (x * x).sin()),
    "norms": lambda T: lambda x: T.nn.functional.layer_norm(x, (3,)) + x.norm() + x.std(),
    "softmax": lambda T: lambda x: T.nn.functional.softmax(x, -1) + T.nn.functional.log_softmax(x, 1),
    "cat": lambda T: lambda x: T.cat([T.stack([x, x]).sum(0), x], 1),
    "where": lambda T: lambda x: T.where(x > 1, x, -x).clamp(0, 4).masked_fill(x > 3, 0.0),
    "einsum": lambda T: lambda x: T.einsum("ij,kj->ik", x, x),
    "ranges": lambda T: lambda x: (T.arange(3), T.arange(3.0), T.arange(1, 3), T.arange(0, 6, 2), T.arange(end=3)),
    "losses": lambda T: (
        lambda x: T.nn.functional.mse_loss(x, x + 1) + T.nn.functional.cross_entropy(x, T.tensor([0, 1]))
    ),
    "gradient of a loss": lambda T: gradient(T, lambda x: T.nn.functional.cross_entropy(x, T.tensor([0, 1]))),
    "activations": lambda T: lambda x: T.nn.functional.silu(x) + T.nn.functional.elu(x) + T.nn.functional.gelu(x),
    "dtypes": lambda T: lambda x: x.to(T.float64).float(),
    "factories": lambda T: lambda x: T.zeros_like(x) + T.full((3,), 2.0) + T.eye(2, 3),
    "out": lambda T: lambda x: T.add(x, x, out=T.empty(2, 3)),
    "sums": lambda T: lambda x: (x.mean(0, keepdim=True), T.var(x, 1), x.cumsum(0), x.expand(2, 2, 3).sum((0, 1))),
    "sorting": lambda T: lambda x: (T.topk(x, 2), x.sort()),
    "scatter": lambda T: (
        lambda x: x.scatter(1, T.zeros(2, 1, dtype=T.int64), 1.0).gather(1, T.ones(2, 1, dtype=T.int64))
    ),
    "embedding": lambda T: lambda x: T.nn.functional.embedding(x.long(), T.ones(7, 2)),
    "attention": lambda T: lambda x: T.nn.functional.scaled_dot_product_attention(*[T.stack([x, x])] * 3),
    "random": lambda T: lambda x: x + T.rand(3),
    "nested results": lambda T: lambda x: {"a": [x, x + 1], "b": 3},
    "same input": lambda T: lambda x: x,
    "training": lambda T: step(T),
}
REAL = {  # with tensors that a fake trace refuses
    "module": lambda T: lambda x, m=net(T): m(x),
    "gradient of a module": lambda T: gradient(T, net(T)),
}


@pytest.mark.parametrize("mode", ["real", "fake"])
@pytest.mark.parametrize("name", [*FUNCTIONS, *REAL])
def test_functions(name, mode):
    def program(T):
        f = (FUNCTIONS | REAL)[name](T)
        traced = lambda x: f(x)
        T.manual_seed(0)
        return of(T).make_fx(traced, tracing_mode=mode)(X if T is torch else to_readtorch(X))

    if name in REAL and mode == "fake":
        with pytest.raises(AssertionError, match="Please convert all Tensors to FakeTensors first"):
            program(rt)
        return
    theirs, ours = (program(T) for T in SIDES)
    assert_same_graphs(theirs, ours)
    for their_node, our_node in zip(theirs.graph.nodes, ours.graph.nodes, strict=True):
        assert plain(str(our_node.meta.get("tensor_meta"))) == str(their_node.meta.get("tensor_meta"))
    if name != "random":
        assert_close(ours(to_readtorch(X)), theirs(X))


def nested(T):
    x = T.ones(2)
    return of(T).make_fx(lambda d, y: {"sum": d["a"] + y[0]})({"a": x}, [x])


def varargs(T):
    def traced(*args):
        return args[0] + args[1]

    return of(T).make_fx(traced)(T.ones(2), T.ones(2))


def decomposed(T):
    table = {T.ops.aten.gelu.default: lambda x, approximate="none": x * T.sigmoid(1.7 * x)}
    return of(T).make_fx(lambda x: T.nn.functional.gelu(x) + 1, decomposition_table=table)(T.ones(2))


def decomposed_later(T):
    gm = of(T).make_fx(lambda x: T.nn.functional.silu(x) + 1)(T.ones(2))
    graph = T.fx.Graph()
    table = {T.ops.aten.silu.default: lambda x: x * T.sigmoid(x)}
    of(T).DecompositionInterpreter(gm, graph, decomposition_table=table).run(T.ones(2))
    return T.fx.GraphModule(gm, graph)


def unseen(T):
    def traced(x):
        with of(T).disable_proxy_modes_tracing():
            T.sin(x)
            assert of(T).get_proxy_mode() is None
        assert of(T).get_proxy_mode() is not None
        return T.cos(x)

    return of(T).make_fx(traced)(T.ones(2))


def of_a_module(T):
    return of(T).make_fx(net(T))(T.ones(1, 3))


def isolated(T):
    return of(T).get_isolated_graphmodule(lambda a, b: a * b, (T.ones(2),), {"b": 3})


@pytest.mark.parametrize("program", [nested, varargs, decomposed, decomposed_later, unseen, of_a_module, isolated])
def test_traces(program):
    theirs, ours = (program(T) for T in SIDES)
    assert_same_graphs(theirs, ours)


@pytest.mark.parametrize(
    "program",
    [lambda T, x: x + x.sum().item(), lambda T, x: x if T.equal(x, x) else -x, lambda T, x: x if x.sum() > 0 else -x],
)
def test_values_are_not_known(program):
    theirs, ours = (outcome(lambda T=T: of(T).make_fx(lambda x: program(T, x))(T.ones(2)).code) for T in SIDES)
    assert ours == theirs


# ------------------------------------------------------------------------------------- operators that take functions


def nested(T):
    def run(x):
        z = x.exp()
        return T.cond(
            x.sum() > 0,
            lambda y: T.cond(y.max() > 1, lambda v: v * z, lambda v: v - 1, (y,)),
            lambda y: y.cos() + 2,
            (x,),
        )

    return run


def reads_outside(T):
    """The sum is the function's own, and the graph of a choice takes it behind its operand."""

    def run(x):
        total = x.sum()
        return T.cond(total > 0, lambda y: (y * total).sin(), lambda y: (y.cos(), x)[0], (x,)) * total

    return run


def loop(T):
    while_loop = T._higher_order_ops.while_loop
    return lambda x: while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * x.sin()), (T.tensor(0), x * 1))


OF_FUNCTIONS = {
    "cond": lambda T: lambda x: T.cond(x.sum() > 0, lambda y: y.sin(), lambda y: y.cos() + 1, (x,)),
    "several results": lambda T: (
        lambda x: T.cond(x.sum() > 0, lambda y: (y * 2, y.sum()), lambda y: (y - 1, y.max()), (x,))
    ),
    "two": lambda T: lambda x: T.cond(x[0] > 0, T.sin, T.cos, (x,)) + T.cond(x[1] > 0, T.exp, T.neg, (x,)),
    "nested": nested,
    "reads what is outside": reads_outside,
    "while_loop": loop,
}


def codes(module):
    return [each.code for _, each in module.named_modules() if hasattr(each, "code")]


@pytest.mark.parametrize("mode", ["real", "fake"])
@pytest.mark.parametrize("name", OF_FUNCTIONS)
def test_functions_become_graphs(name, mode):
    """The text of all graphs is PyTorch's, and they compute what the function does, for the other choice, too."""
    x = torch.arange(3.0) - 0.5
    theirs, ours = (
        of(T).make_fx(OF_FUNCTIONS[name](T), tracing_mode=mode)(y) for T, y in zip(SIDES, (x, to_readtorch(x)))
    )
    assert codes(ours) == codes(theirs) and len(codes(ours)) > 2
    for sign in (1, -1, 3):
        given = to_readtorch(x * sign)
        expected, reached = OF_FUNCTIONS[name](rt)(given), ours(given)
        for a, b in zip(*(each if isinstance(each, (tuple, list)) else [each] for each in (expected, reached))):
            assert rt.allclose(b, a)


def test_a_constant_that_a_function_reads_is_no_part_of_its_graph():
    """It may be changed, and the graph is given it."""
    w = rt.ones(3)
    traced = of(rt).make_fx(lambda x: rt.cond(x.sum() > 0, lambda y: y * w, lambda y: y - w, (x,)))(rt.ones(3))
    w.fill_(5)
    assert traced(rt.ones(3)).tolist() == [5, 5, 5] and traced(-rt.ones(3)).tolist() == [-6, -6, -6]


def test_what_is_left_out_of_functions():
    make_fx = of(rt).make_fx
    with pytest.raises(NotImplementedError, match="carries an int"):
        make_fx(lambda x: rt.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * 2), (0, x)), tracing_mode="fake")(
            rt.ones(3)
        )
