"""Programs and models compiled once for all batch sizes: values, gradients and numbers of compilations are PyTorch's."""

import textwrap

import numpy as np
import pytest
import torch
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from torch._dynamo.testing import CompileCounterWithBackend

import readtorch as rt
from readtorch._dynamo.backends.symbolic_inputs import SymbolicInputs
from readtorch._inductor.codegen.wrapper import PythonWrapperCodegen
from readtorch._inductor.compile_fx import recording
from readtorch._inductor.sizevars import Symbol, expression, flatten, least, size_of, unflatten
from readtorch._inductor.virtualized import V
from readtorch.utils._sympy.functions import Symbol as SizeSymbol
from readtorch.utils._sympy.functions import symbol
from tests.inductor.programs import PROGRAMS
from tests.inductor.test_programs import arrays_for, equal, run

# Their first size has no other value than the program's own.
ONE_SIZE = {
    *("view", "view across", "expand", "squeeze", "conv", "cross entropy", "cross entropy with ignored", "range"),
    *("likelihood of each", "gather across a view", "nothing", "one", "empty"),
}
SEVERAL_GRAPHS = {"var_mean", "chunk", "unbind"}  # Dynamo fixes the sizes: how many results there are must be known


def grown(shapes, by):
    """The first size above 1 of the first tensor, and what is equal to it, larger."""
    n = next(size for size in shapes[0] if size > 1)
    return [tuple(size + by if size == n else size for size in shape) for shape in shapes]


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in ONE_SIZE])
def test_programs(name):
    function, shapes = PROGRAMS[name]
    compiled = rt.compile(lambda *xs: function(rt, *xs), dynamic=True)
    with recording() as graphs:
        for by in (0, 3, 9):
            arrays = arrays_for(grown(shapes, by))
            equal(run(rt, compiled, arrays), run(rt, lambda *xs: function(rt, *xs), arrays))
    assert len(graphs) == (6 if name in SEVERAL_GRAPHS else 2)


# -------------------------------------------------------------------------------------------- models, beside PyTorch


def mlp(T):
    return T.nn.Sequential(T.nn.Linear(6, 8), T.nn.GELU(), T.nn.LayerNorm(8), T.nn.Linear(8, 3), T.nn.LogSoftmax(-1))


def normalized(T):
    return T.nn.Sequential(T.nn.Linear(6, 8), T.nn.BatchNorm1d(8), T.nn.ReLU(), T.nn.Linear(8, 3), T.nn.Softmax(-1))


class Attention:
    def __new__(cls, T):
        class Model(T.nn.Module):
            def __init__(self):
                super().__init__()
                self.q, self.k, self.v = (T.nn.Linear(6, 8) for _ in range(3))
                self.out = T.nn.Linear(8, 3)

            def forward(self, x):
                x = x.unsqueeze(1).expand(-1, 4, -1) * x.mean()
                q, k, v = (into(x).view(x.shape[0], -1, 2, 4).transpose(1, 2) for into in (self.q, self.k, self.v))
                weights = (q @ k.transpose(-1, -2) / 2).softmax(-1)
                return self.out((weights @ v).transpose(1, 2).flatten(2)).sum(1) / x.shape[0]

        return Model()


def trained(T, make, compile, sizes, train):
    """[results, gradients and buffers for each size] of a model with the same parameters in each library."""
    model = make(T).double().train(train)
    with T.no_grad():
        for k, p in enumerate(model.parameters()):
            p.copy_((T.arange(float(p.numel())) * (k + 1)).sin().view(p.shape) / 2)
    call, found = compile(model), []
    for n in sizes:
        x = T.arange(6.0 * n).cos().double().view(n, 6).requires_grad_(train)
        with T.set_grad_enabled(train):
            out = call(x)
        found.append(out.detach().numpy())
        if train:
            model.zero_grad()
            (out * out).sum().backward()
            found += [x.grad.numpy(), *[p.grad.numpy() for p in model.parameters()]]
    return found + [b.numpy() for b in model.buffers() if b.numel() > 1]


@pytest.mark.parametrize(
    ("make", "train", "sizes"),
    [(normalized, True, (4, 7, 32)), (mlp, False, (4, 7, 1, 32)), (Attention, True, (5, 1, 6, 9))],
)
def test_models(make, train, sizes):
    """As PyTorch does it: the first size is fixed, the second leaves it open, 1 is fixed again."""
    torch._dynamo.reset()
    counter = CompileCounterWithBackend("aot_eager")
    theirs = trained(torch, make, lambda m: torch.compile(m, backend=counter), sizes, train)
    with recording() as graphs:
        ours = trained(rt, make, rt.compile, sizes, train)
    for a, b, eager in zip(ours, theirs, trained(rt, make, lambda m: m, sizes, train), strict=True):
        np.testing.assert_allclose(a, eager, atol=1e-9)
        np.testing.assert_allclose(a, b, atol=1e-5)  # PyTorch's parameters were rounded otherwise
    assert len(graphs) == counter.frame_count * (1 + train)


def test_marked_sizes():
    """One compilation from the first call on."""
    with recording() as graphs:
        compiled = rt.compile(lambda x: (x.exp() * 2).sum(-1))
        for n in (4, 7, 32):
            x = rt.rand(n, 5)
            rt._dynamo.mark_dynamic(x, 0)
            assert rt.allclose(compiled(x), (x.exp() * 2).sum(-1))
    assert len(graphs) == 1


# ------------------------------------------------------------------------------------------------------ what is guarded


def traces(function, *calls):
    """The SymbolicInputs of each trace of a function that is compiled for these arguments."""
    found, make = [], SymbolicInputs.__init__

    def noted(self, *args):
        make(self, *args)
        found.append(self)

    SymbolicInputs.__init__ = noted
    try:
        compiled = rt.compile(function, dynamic=True)
        for args in calls:
            assert rt.allclose(compiled(*args), function(*args))
    finally:
        SymbolicInputs.__init__ = make
    return found


def test_no_decision_too_many():
    """What must hold for the trace holds for other sizes, too."""
    assert len(traces(lambda x: x.view(-1, 6) * 2, (rt.rand(4, 3),), (rt.rand(6, 3),), (rt.rand(8, 3),))) == 1
    calls = [(rt.rand(a, 3), rt.rand(b, 3)) for a, b in ((4, 7), (7, 4), (5, 5))]
    assert len(traces(lambda x, y: x.sum(0) + y.sum(0), *calls)) == 1


def test_a_decision_of_an_operator_is_a_guard():
    """That the sizes are equal Dynamo has not asked."""
    calls = [(rt.rand(4, 4) + 2,), (rt.rand(5, 5) + 2,), (rt.rand(4, 1) + 2,)]
    first, *others = traces(lambda x: x / x.t(), *calls)
    assert len(others) <= 1 and not first.env.guards
    assert "l_x_._array.shape[1] == s77" in first.conditions


def test_numbers():
    """Whole numbers are symbols, 1 is a constant."""
    x = rt.rand(60, 2)
    assert len(traces(lambda x, n: x.view(n, -1).sum(-1), (x, 5), (x, 6), (x, 4), (x, 1))) == 2


def test_a_variance_by_rows_that_come():
    """The number that it is divided by is computed from the sizes of each call, in the backward, too."""
    compiled = rt.compile(lambda x: x.var(0).sum() + x.std(0).sum(), dynamic=True)
    with recording() as graphs:
        for n in (4, 7, 32):
            arrays = arrays_for([(n, 3)], n)
            equal(run(rt, compiled, arrays), run(torch, lambda x: x.var(0).sum() + x.std(0).sum(), arrays))
    assert len(graphs) == 2


def test_other_strides():
    """A gradient that comes with strides of its own is copied, for whatever size."""
    compiled = rt.compile(lambda x: x.exp() * 2, dynamic=True)
    for n in (4, 7):
        x = rt.rand(n, 3, requires_grad=True)
        compiled(x).backward(rt.rand(3, n).t())
        assert x.grad.shape == (n, 3)
        with rt.no_grad():
            assert rt.allclose(compiled(rt.rand(3, n).t()[:, :2].contiguous()), compiled(rt.rand(n, 2)) * 0, atol=9)


def test_a_view_of_an_input_is_made_of_the_sizes_that_come():
    compiled = rt.compile(lambda x: (x.view(-1, 2), x * 2), dynamic=True)
    for n in (4, 6):
        x = rt.rand(n, 3)
        view, _ = compiled(x)
        assert view.shape == (n * 3 // 2, 2) and view._base is x


# --------------------------------------------------------------------------------------------------------------- code


def test_code():
    """One kernel, whose sizes are arguments."""
    with recording() as graphs:
        rt.compile(lambda x: (x * 2).sum(-1), dynamic=True)(rt.rand(3, 4))
    (graph,) = graphs
    (kernel,) = graph.kernels.values()
    assert graph.source.splitlines() == [
        "def call(args):",
        "    arg0_1, arg1_1, arg2_1 = args",
        "    s77 = arg0_1",
        "    s27 = arg1_1",
        "    args.clear()",
        "    buf0 = empty(s77, float32)",
        "    numba_fused_sum_mul_0(flat(arg2_1), buf0, s77, s27)",
        "    del arg2_1",
        "    return [tensor(buf0, (s77,))]",
    ]
    assert "def fused(in_ptr0, out_ptr0, s77, s27):\n    for i0 in range(s77):" in kernel.source
    assert "in_ptr0[s27*i0 + i1]" in kernel.source


def test_what_the_code_fits():
    x = rt.rand(5, 4)
    rt._dynamo.mark_dynamic(x, 0)
    with recording() as graphs, pytest.MonkeyPatch.context() as patch:
        texts, write = [], PythonWrapperCodegen.text_of_fits
        patch.setattr(PythonWrapperCodegen, "text_of_fits", lambda self: texts.append(write(self)) or texts[-1])
        rt.compile(lambda x: x * 2)(x)
    shown = write.__doc__.split("\n\n")[1]
    assert textwrap.dedent(shown).strip() == texts[0].strip()
    assert graphs[0].fits([6, rt.rand(6, 4)]) and not graphs[0].fits([6, rt.rand(4, 6).t()])
    assert not graphs[0].fits([6, rt.rand(6, 4).double()]) and not graphs[0].fits([5, rt.rand(6, 4)])


# -------------------------------------------------------------------------------------------------------------- indices


class Known:
    """Stands for a graph: a and b are 2 or more."""

    ranges = {SizeSymbol(name): (2, float("inf")) for name in "ab"}
    hints = {SizeSymbol(name): 3 for name in "ab"}


SIZES = ["a", "b", 2, 3, 4]


@settings(max_examples=60, deadline=None, phases=[Phase.generate])
@given(
    st.lists(st.sampled_from(SIZES), min_size=1, max_size=4), st.integers(1, 3), st.integers(2, 5), st.integers(2, 5)
)
def test_indices(names, group, a, b):
    """The same elements counted otherwise and back: the text gives the same number for all values of a and b."""
    sizes = [size_of(symbol(name)) if isinstance(name, str) else name for name in names]
    values = {"a": a, "b": b}
    with V.set_graph_handler(Known()):
        merged = [sizes[0]]
        for size in sizes[1:]:
            merged = [*merged[:-1], merged[-1] * size] if len(merged) == group else [*merged, size]
        symbols = [Symbol(f"i{k}", size) for k, size in enumerate(merged)]
        index = unflatten(flatten([expression(s) for s in symbols], merged), sizes)
        text = str(flatten(index, sizes))
        places = [str(i) for i in index]
    numbers = [values.get(name, name) for name in names]
    extents = [eval(str(size), values.copy()) for size in merged]
    for flat in {0, 1, int(np.prod(extents)) - 1, int(np.prod(extents)) // 2}:
        position = dict(zip([s.name for s in symbols], map(int, np.unravel_index(flat, extents))))
        assert eval(text, values | position) == flat
        assert [eval(place, values | position) for place in places] == list(map(int, np.unravel_index(flat, numbers)))


def test_what_is_below_a_size():
    a, b = (size_of(symbol(name)) for name in "ab")
    with V.set_graph_handler(Known()):
        assert [least(size) for size in (a, a * 2 - 1, a * b - a, a - 3, 7)] == [2, 3, 2, -1, 7]
