"""AOTAutograd: joint graphs, their halves, and functions that write and return views, beside PyTorch's."""

import importlib
import warnings

import pytest
import torch

import readtorch as rt

warnings.filterwarnings("ignore", message=".*boxed arguments.*")


def part_of(T, name):
    return importlib.import_module(f"{T.__name__}._functorch.{name}")


def text_of(T, graph_module):
    return [
        f"{n.op} {n.name} {n.target} {n.args} {n.kwargs}".replace(f"{T.__name__}.", "torch.")
        for n in graph_module.graph.nodes
    ]


class Compiled:
    """A function compiled by `aot_function`, which keeps its graphs as text: `graphs`, by "joint", "forward", "backward", "inference"."""

    def __init__(self, T, function, partition="default_partition", **options):
        self.graphs, self.T = {}, T
        aot = part_of(T, "aot_autograd")
        cut = getattr(part_of(T, "partitioners"), partition)

        def partition_fn(joint, inputs, **given):
            self.graphs["joint"] = text_of(T, joint)
            return cut(joint, inputs, **given)

        def compiler(name):
            def compile(graph_module, example_inputs):
                self.graphs[name] = text_of(T, graph_module)
                return aot.make_boxed_func(graph_module.forward)

            return compile

        self.function = aot.aot_function(
            lambda *args: function(T, *args),
            compiler("forward"),
            compiler("backward"),
            partition_fn,
            inference_compiler=compiler("inference"),
            **options,
        )

    def __call__(self, *args):
        return self.function(*args)


def leaves(T, count=2):
    T.manual_seed(0)
    rows = [[0.5, -1.0, 2.0, 0.25], [1.5, 0.75, -0.5, 1.0], [-2.0, 0.125, 1.0, 3.0], [0.0, 1.0, -1.0, 0.5]]
    return [(T.tensor(rows) + i / 4).requires_grad_() for i in range(count)]


# ------------------------------------------------------------------------------------------------ graphs as PyTorch's

PROGRAMS = {
    "product": lambda T, x, y: (x * y).sin(),
    "quotient": lambda T, x, y: x / (y * y + 1),
    "linear": lambda T, x, y: T.nn.functional.linear(x, y).relu(),
    "softmax": lambda T, x, y: T.softmax(x @ y, -1),
    "log_softmax": lambda T, x, y: T.log_softmax(x @ y, -1).exp(),
    "gelu": lambda T, x, y: T.nn.functional.gelu(x * y),
    "silu": lambda T, x, y: T.nn.functional.silu(x * y),
    "layer_norm": lambda T, x, y: T.nn.functional.layer_norm(x, (4,), y[0], y[1]),
    "batch_norm": lambda T, x, y: T.nn.functional.batch_norm(x, None, None, y[0], y[1], training=True),
    "mean": lambda T, x, y: (x * y).mean(1).exp(),
    "var": lambda T, x, y: (x * y).var(1),
    "cross_entropy": lambda T, x, y: T.nn.functional.cross_entropy(x @ y, T.tensor([0, 1, 2, 3])),
    "mse_loss": lambda T, x, y: T.nn.functional.mse_loss(x, y),
    "cat": lambda T, x, y: T.cat([x, y], 1).tanh(),
    "views": lambda T, x, y: (x.view(2, 8) * y.reshape(2, 8)).permute(1, 0)[1:3],
    "expand": lambda T, x, y: x.unsqueeze(0).expand(3, 4, 4) * y,
    "writes inside": lambda T, x, y: (x * 2).add_(y).mul_(y).sigmoid(),
    "powers": lambda T, x, y: x**2 + y**3,
    "attention": lambda T, x, y: T.nn.functional.scaled_dot_product_attention(
        x[None, None], y[None, None], x[None, None]
    ),
    "where": lambda T, x, y: T.where(x > 0, x, y),
    "clamp": lambda T, x, y: x.clamp(0, 1) * y.abs(),
    "indexing": lambda T, x, y: x[T.tensor([0, 2])] * y[:2],
    "embedding": lambda T, x, y: T.nn.functional.embedding(T.tensor([0, 1]), x) @ y,
    "max_pool": lambda T, x, y: T.nn.functional.max_pool2d(x[None, None], 2),
    "convolution": lambda T, x, y: T.nn.functional.conv2d(x[None, None], y[None, None, :3, :3]),
    "chunks": lambda T, x, y: sum(x.chunk(2, 1)),
    "norm": lambda T, x, y: x.norm() + y.norm(dim=1),
    "einsum": lambda T, x, y: T.einsum("ij,jk->ik", x, y),
    "logits": lambda T, x, y: T.nn.functional.binary_cross_entropy_with_logits(x, y.sigmoid()),
    "dropout": lambda T, x, y: T.nn.functional.dropout(x, 0.5) * y,
    "unused": lambda T, x, y: x * 2,
    "two outputs": lambda T, x, y: (x * y, (x + y).detach()),
    "no gradient": lambda T, x, y: (x.detach() * 2, 3, None),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_graphs(name):
    graphs = []
    for T in (torch, rt):
        compiled = Compiled(T, PROGRAMS[name])
        results = [r for r in tensors_of(T, compiled(*leaves(T))) if r.requires_grad]
        if results:
            results[0].sum().backward()
        graphs.append(compiled.graphs)
    assert graphs[0].keys() == graphs[1].keys()
    for part in graphs[0]:
        assert graphs[0][part] == graphs[1][part], part


# ------------------------------------------------------------------- functions that write to inputs and return views


def add_to_input(T, x, y):
    y = x * 2
    x.add_(1)
    return y + x


def transpose_input(T, x, y):
    x.t_()
    return x + y


def write_and_transpose(T, x, y):
    x.mul_(2).t_()
    return x + y


def write_under_no_grad(T, x, y):
    with T.no_grad():
        x.mul_(2)
    return x * y


def write_detached(T, x, y):
    x.detach().mul_(3)
    return x * y


def write_to_view_of_input(T, x, y):
    x[0].mul_(y[1])
    return x.sum() + y


def views_of_intermediate(T, x, y):
    z = x * y
    return z.view(-1), z[1]


def base_and_view(T, x, y):
    z = x * y
    return z, z.t(), z.view(2, 8)


def chunks_of_intermediate(T, x, y):
    z = x * y
    return z, *z.unbind(0)


EFFECTS = {
    "x.add_": add_to_input,
    "x.t_": transpose_input,
    "x.mul_.t_": write_and_transpose,
    "no_grad": write_under_no_grad,
    "detached": write_detached,
    "view of input written": write_to_view_of_input,
    "input returned": lambda T, x, y: (x, x * y),
    "view of input": lambda T, x, y: (x.view(2, 8), x.t(), x * y),
    "detached input": lambda T, x, y: (x.detach(), x[0], x * y),
    "parts of input": lambda T, x, y: list(x.unbind(0)),
    "views of intermediate": views_of_intermediate,
    "one view of intermediate": lambda T, x, y: (x * y).view(-1),
    "base and view": base_and_view,
    "base and parts": chunks_of_intermediate,
    "output and detached": lambda T, x, y: (lambda z: (z, z.detach()))(x * y),
    "twice the same": lambda T, x, y: (lambda z: (z, z))(x * y),
    "nested": lambda T, x, y: {"a": [x * y, (y + 1,)], "b": 3},
    "only views": lambda T, x, y: (x.view(-1), y.t()),
    "complex view": lambda T, x, y: T.view_as_complex(x.view(2, 4, 2)) * 2j,
    "random": lambda T, x, y: x * T.rand_like(y).gt(2) + y,
}


OTHER_GRAPHS = {
    "view of input written",  # autograd puts the gradient of a view back by as_strided, PyTorch by the view's own operator
    "complex view",  # the conjugate of a number is a constant tensor
}


def tensors_of(T, tree):
    pytree = importlib.import_module(f"{T.__name__}.utils._pytree")
    return [t for t in pytree.tree_leaves(tree) if isinstance(t, T.Tensor)]


def observed(T, function, requires_grad, leaf):
    """All that a caller can see of a call: results, how they lie, share memory and require grad, versions, inputs, gradients."""
    inputs = [x.detach().requires_grad_(requires_grad) for x in leaves(T)]
    args = inputs if leaf else [x * 1 for x in inputs]
    outs = function(*args)
    found = tensors_of(T, outs)
    seen = [
        (
            t.detach().reshape(-1).tolist() if not t.is_complex() else T.view_as_real(t.detach()).tolist(),
            tuple(t.shape),
            t.stride(),
        )
        + (
            t.requires_grad,
            [t is a for a in args],
            t.untyped_storage().data_ptr() in [a.untyped_storage().data_ptr() for a in args],
        )
        for t in found
    ]
    shared = [[a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr() for a in found] for b in found]
    after = [(a.detach().tolist(), a._version, tuple(a.shape), a.stride()) for a in args]
    total = sum((t * t).abs().sum() for t in [*found, *args] if t.requires_grad)
    if not isinstance(total, int):
        total.backward()
    return seen, shared, after, [None if x.grad is None else x.grad.tolist() for x in inputs]


def outcome(call):
    try:
        return call(), None
    except Exception as error:
        return None, error


@pytest.mark.parametrize("requires_grad", [True, False], ids=["grad", "no grad"])
@pytest.mark.parametrize("leaf", [True, False], ids=["leaf", "not leaf"])
@pytest.mark.parametrize("name", EFFECTS)
def test_effects(name, leaf, requires_grad):
    """A compiled function is to its caller what PyTorch's is; twice, for the second call finds it compiled."""
    ours, theirs = Compiled(rt, EFFECTS[name]), Compiled(torch, EFFECTS[name])
    for _ in range(2):
        results = [outcome(lambda: observed(c.T, c, requires_grad, leaf)) for c in (ours, theirs)]
        if results[1][1] is not None:
            assert type(results[0][1]) is type(results[1][1]) and str(results[0][1]) == str(results[1][1])
            return
        assert results[0][1] is None, results[0][1]
        assert results[0][0] == results[1][0]
    assert name in OTHER_GRAPHS or ours.graphs == theirs.graphs


# -------------------------------------------------------------------------------------------------------- the rest


def test_duplicates():
    """One tensor as two arguments: two inputs of the graph, or one if the function writes to it."""
    for function in (lambda T, x, y: x * y + x, lambda T, x, y: x.mul_(2) + y):
        seen = []
        for T in (torch, rt):
            x = leaves(T)[0]
            compiled, z = Compiled(T, function), x * 1
            compiled(z, z).sum().backward()
            seen.append((compiled.graphs, z.tolist(), x.grad.tolist()))
        assert seen[0] == seen[1]


def test_kept_writes():
    """A graph without a backward may write to its inputs at its end."""
    graphs = []
    for T in (torch, rt):
        compiled = Compiled(T, add_to_input, keep_inference_input_mutations=True)
        x = leaves(T)[0].detach()
        compiled(x, x.clone())
        graphs.append((compiled.graphs, x.tolist(), x._version))
    assert graphs[0] == graphs[1] and "copy_" in str(graphs[1][0])


def test_no_second_backward():
    """Gradients of gradients are refused when they are asked for."""
    errors = []
    for T in (torch, rt):
        x, y = leaves(T)
        (g,) = T.autograd.grad(Compiled(T, PROGRAMS["product"])(x, y).sum(), [x], create_graph=True)
        assert g.requires_grad
        errors.append(outcome(lambda: g.sum().backward())[1])
    assert type(errors[0]) is type(errors[1]) and str(errors[0]) == str(errors[1])


def test_grad_mode_that_is_left():
    for T in (torch, rt):
        compiled = Compiled(T, lambda T, x: (T.set_grad_enabled(False), x * 2)[1])
        try:
            compiled(leaves(T, 1)[0].detach())
            assert not T.is_grad_enabled()
        finally:
            T.set_grad_enabled(True)


def model(T):
    T.manual_seed(0)
    made = T.nn.Sequential(T.nn.Linear(4, 8), T.nn.BatchNorm1d(8), T.nn.ReLU(), T.nn.Linear(8, 2))
    with T.no_grad():
        for p in made.parameters():
            p.copy_(T.linspace(-1, 1, p.numel()).view(p.shape))
    return made


@pytest.mark.parametrize("training", [True, False])
def test_modules(training):
    seen = []
    for T in (torch, rt):
        module = model(T).train(training)
        aot = part_of(T, "aot_autograd")
        graphs = []

        def compiler(graph_module, _):
            graphs.append(text_of(T, graph_module))
            return aot.make_boxed_func(graph_module.forward)

        compiled = aot.aot_module(module, compiler)
        x = leaves(T, 1)[0].detach()
        for _ in range(2):
            compiled(x).square().sum().backward()
        buffers = [b.tolist() for b in module.buffers()]
        seen.append((graphs, [p.grad for p in module.parameters()], buffers))
    assert seen[0][0] == seen[1][0]
    for ours, theirs in zip(seen[1][1], seen[0][1]):
        assert rt.allclose(ours, rt.tensor(theirs.tolist()), atol=1e-5)
    assert rt.allclose(rt.tensor(seen[1][2][0]), rt.tensor(seen[0][2][0]))


def test_simplified():
    for T in (torch, rt):
        aot = part_of(T, "aot_autograd")

        class Two(T.nn.Module):
            def __init__(self):
                super().__init__()
                self.a = T.nn.Linear(4, 4)

            def forward(self, x):
                return (self.a(x), x * 2)

        module, x = Two(), leaves(T, 1)[0]
        compiled = aot.aot_module_simplified(module, [x], lambda g, _: aot.make_boxed_func(g.forward))
        outs = compiled(x)
        assert T.allclose(outs[0], module(x)[0]) and T.equal(outs[1], x * 2)


def test_memory_that_is_shared_and_written():
    x = rt.zeros(4)
    with pytest.raises(NotImplementedError, match="writes to its input 0, whose memory input 1 shares"):
        Compiled(rt, lambda T, x, y: x.add_(1) + y)(x[:2], x[1:3])


def test_unknown_outputs():
    errors = [outcome(lambda: Compiled(T, lambda T, x: (x, object()))(leaves(T, 1)[0]))[1] for T in (torch, rt)]
    assert type(errors[0]) is type(errors[1])
    assert str(errors[1]).split("which")[0].replace("object", "") == str(errors[0]).split("which")[0].replace(
        "object", ""
    )


# ------------------------------------------------------------------------------------------------------- open sizes

OPEN = {
    "rows": lambda T, x, w: (x @ w).sin().sum(0) * x.shape[0],
    "mean": lambda T, x, w: (x @ w).exp().mean() + w.mean(0),
    "softmax": lambda T, x, w: (x @ w).softmax(-1).sum(0),
}


@pytest.mark.parametrize("name", OPEN)
def test_open_sizes(name):
    """Graphs with symbols, and sizes that are saved for the backward, as PyTorch's; they serve other sizes."""
    graphs = []
    for T in (rt, torch):
        call = Compiled(T, OPEN[name], dynamic=True)
        for n in (4, 7):
            tensors = [T.ones(n, 8, requires_grad=True), T.ones(8, 5, requires_grad=True)]
            outs = call(*tensors), OPEN[name](T, *tensors)
            assert T.allclose(*outs)
            grads = [T.autograd.grad((out * out).sum(), tensors) for out in outs]
            assert all(T.allclose(a, b, atol=1e-5) and a.shape == b.shape for a, b in zip(*grads))
        graphs.append(call.graphs)
    assert graphs[0] == graphs[1]
