"""The fuser: what is grouped, what the kernels compute, their gradients, and what happens where none fits."""

import functools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import readtorch
from readtorch.csrc.jit.frontend import tracer
from readtorch.csrc.jit.ir.irparser import parse_ir
from readtorch.csrc.jit.passes.tensorexpr_fuser import FuseTensorExprs, groups_of
from readtorch.csrc.jit.tensorexpr import autodiff
from readtorch.csrc.jit.tensorexpr.kernel import kernel_of
from tests.jit import fused_programs as programs
from tests.reference import assert_close, to_readtorch, to_torch

CLOSE = dict(rtol=2e-5, atol=2e-6)


def fused(program, *examples):
    """(the kernel of the only group that `program` becomes, the graph)"""
    graph, _ = tracer.trace(functools.partial(program, readtorch), examples)
    FuseTensorExprs(graph)
    groups = groups_of(graph)
    assert len(groups) == 1, str(graph)
    return kernel_of(groups[0]), graph


def several(value):
    return value if isinstance(value, tuple) else (value,)


def check(kernel, program, *operands):
    """The kernel, the operators of the reference, and dtypes, shapes and strides of results."""
    results = several(kernel(*[to_readtorch(x) for x in operands]))
    expected = several(program(torch, *operands))
    assert len(results) == len(expected)
    for mine, theirs in zip(results, expected):
        assert (str(mine.dtype), tuple(mine.shape)) == (str(theirs.dtype), tuple(theirs.shape))
        assert_close(mine, theirs, **CLOSE)
    assert kernel.reasons == []


# ----------------------------------------------------------------------------------------------------- values


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", ["unary_operators", "of_positive_numbers", "activations", "clamps", "powers"])
def test_functions_of_one_number(name, dtype):
    program = getattr(programs, name)
    x = torch.cat([torch.randn(61, dtype=dtype) * 2, torch.tensor([0.0, -0.0, 1e-8, 30, -30], dtype=dtype)])
    kernel, _ = fused(program, to_readtorch(x))
    check(kernel, program, x)
    check(kernel, program, x[:60].reshape(6, 10))


@pytest.mark.parametrize("name", ["binary_operators", "masks"])
def test_functions_of_two_numbers(name):
    program, x, y = getattr(programs, name), torch.randn(37), torch.randn(37)
    x[3] = y[3]
    kernel, _ = fused(program, to_readtorch(x), to_readtorch(y))
    check(kernel, program, x, y)


def test_infinities_and_nans_go_through():
    def program(api, x, y):
        return (
            api.tanh(x) * 1.0,
            api.sigmoid(x) + 0.0,
            api.relu(x) * 1.0,
            api.exp(x) + 0,
            x.clamp(-1, 1) * 1,
            api.maximum(x, y) * 1,
        )

    special = torch.tensor([np.inf, -np.inf, np.nan, 0.0, 100.0, -100.0, 1.0])
    kernels = []
    for pick in range(6):
        one = functools.partial(lambda api, x, y, pick: program(api, x, y)[pick], pick=pick)
        graph, _ = tracer.trace(
            functools.partial(one, readtorch), (to_readtorch(special), to_readtorch(special.flip(0)))
        )
        assert FuseTensorExprs(graph) == []
        kernels.append((graph, one))
    from readtorch.csrc.jit.runtime.graph_executor import GraphExecutor

    for graph, one in kernels:
        result = GraphExecutor(graph, "f").run([to_readtorch(special), to_readtorch(special.flip(0))])[0]
        assert_close(result, one(torch, special, special.flip(0)), **CLOSE)


LAYOUTS = {
    "flat": lambda: (torch.randn(40), torch.randn(40)),
    "two dimensions": lambda: (torch.randn(5, 8), torch.randn(5, 8)),
    "row": lambda: (torch.randn(5, 8), torch.randn(8)),
    "column": lambda: (torch.randn(5, 1), torch.randn(5, 8)),
    "outer": lambda: (torch.randn(5, 1), torch.randn(8)),
    "number": lambda: (torch.randn(5, 8), torch.randn(())),
    "both numbers": lambda: (torch.randn(()), torch.randn(())),
    "empty": lambda: (torch.randn(0, 3), torch.randn(0, 3)),
    "transposed": lambda: (torch.randn(8, 5).t(), torch.randn(8, 5).t()),
    "one transposed": lambda: (torch.randn(8, 5).t(), torch.randn(5, 8)),
    "every other": lambda: (torch.randn(80)[::2], torch.randn(40)),
    "expanded": lambda: (torch.randn(5, 1).expand(5, 8), torch.randn(5, 8)),
    "middle": lambda: (torch.randn(3, 1, 4), torch.randn(3, 2, 4)),
    "corner": lambda: (torch.randn(3, 4)[1:, 1:], torch.randn(3)),
    "channels last": lambda: (torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last), torch.randn(3, 1, 1)),
}


def laid_out(t):
    """The same layout here."""
    base = torch.as_strided(t, (1 + sum((n - 1) * s for n, s in zip(t.shape, t.stride())) if t.numel() else 0,), (1,))
    return to_readtorch(base.clone()).as_strided(tuple(t.shape), t.stride())


@pytest.mark.parametrize("layout", LAYOUTS)
def test_shapes_and_strides(layout):
    x, y = LAYOUTS[layout]()
    kernel, _ = fused(programs.chain, readtorch.randn(3), readtorch.randn(3))
    for _ in range(2):  # the first makes the plan
        result, expected = kernel(laid_out(x), laid_out(y)), programs.chain(torch, x, y)
        assert_close(result, expected, **CLOSE)
        if layout != "expanded":
            assert result.stride() == programs.chain(readtorch, laid_out(x), laid_out(y)).stride()
    assert kernel.reasons == []


def test_types_are_those_of_eager():
    def program(api, x, y):
        return api.where(x > y, x * 2.0, y + 1).to(api.float64) * 3

    for dtypes in [
        (torch.float32, torch.float64),
        (torch.float64, torch.float32),
        (torch.float32, torch.int64),
        (torch.float32, torch.bool),
        (torch.float64, torch.int32),
    ]:
        x, y = torch.randn(9).to(dtypes[0]), (torch.randn(9) * 3).to(dtypes[1])
        kernel, _ = fused(program, to_readtorch(x), to_readtorch(y))
        check(kernel, program, x, y)


REDUCED = {
    "rows": lambda api, x: (x * x + 1.0).sum(-1),
    "mean of rows": lambda api, x: api.exp(x).mean(-1, keepdim=True),
    "greatest": lambda api, x: (x * 2.0).amax(-1),
    "all": lambda api, x: (x * x).sum(),
    "mean": lambda api, x: (api.tanh(x) + 1).mean(),
    "greatest of all": lambda api, x: api.sin(x).amax(),
    "with the values": lambda api, x: (lambda y: (y, y.sum(-1)))(api.exp(x) * 2),
}


@pytest.mark.parametrize("name", REDUCED)
def test_reductions_at_the_end(name):
    program = REDUCED[name]
    kernel, _ = fused(program, readtorch.randn(3, 4))
    for shape in [(3, 4), (2, 3, 5), (7,), (4, 3000), (1, 1)]:
        check(kernel, program, torch.randn(shape))
    if "greatest" in name:
        x = torch.randn(3, 2000)
        x[1, 1500] = np.nan
        check(kernel, program, x)


def test_threads_share_large_arrays():
    before = readtorch.get_num_threads()
    readtorch.set_num_threads(2)
    try:
        for program in (programs.chain, lambda api, x, y: (x * y).sum(), lambda api, x, y: (x * y).sum(-1)):
            kernel, _ = fused(program, readtorch.randn(3, 4), readtorch.randn(3, 4))
            x, y = torch.randn(300, 1000), torch.randn(300, 1000)
            for _ in range(2):
                assert_close(kernel(to_readtorch(x), to_readtorch(y)), program(torch, x, y), rtol=1e-4, atol=1e-3)
    finally:
        readtorch.set_num_threads(before)


# ----------------------------------------------------------------------------------------------------- groups


def graph_of(text):
    graph = parse_ir(text)
    refused = FuseTensorExprs(graph)
    graph.lint()
    return graph, refused


def test_what_does_not_belong_together_stays_apart():
    """%4 needs %3, which is outside and needs %2: one group of %1, %2 and %4 could not run at one moment."""
    graph, _ = graph_of("""
graph(%x : Tensor, %y : Tensor):
  %one : int = prim::Constant[value=1]()
  %1 : Tensor = aten::mul(%x, %y)
  %2 : Tensor = aten::exp(%1)
  %3 : Tensor = aten::matmul(%2, %2)
  %4 : Tensor = aten::add(%3, %1, %one)
  %5 : Tensor = aten::tanh(%4)
  return (%5)""")
    kinds = [n.kind() for n in graph.nodes()]
    assert kinds == ["prim::TensorExprGroup", "aten::matmul", "prim::TensorExprGroup"]


def test_a_group_reaches_over_what_is_independent():
    graph, _ = graph_of("""
graph(%x : Tensor, %y : Tensor):
  %1 : Tensor = aten::mul(%x, %y)
  %2 : Tensor = aten::matmul(%y, %y)
  %3 : Tensor = aten::tanh(%1)
  %4 : Tensor = aten::matmul(%2, %3)
  return (%4)""")
    assert sorted(n.kind() for n in graph.nodes()) == ["aten::matmul", "aten::matmul", "prim::TensorExprGroup"]


def test_what_is_written_in_place_is_not_fused():
    graph, refused = graph_of("""
graph(%x : Tensor, %y : Tensor):
  %one : int = prim::Constant[value=1]()
  %1 : Tensor = aten::mul(%x, %y)
  %2 : Tensor = aten::add_(%1, %y, %one)
  %3 : Tensor = aten::tanh(%2)
  %4 : Tensor = aten::exp(%3)
  return (%4)""")
    assert [n.kind() for n in graph.nodes() if n.kind() != "prim::Constant"] == [
        "aten::mul",
        "aten::add_",
        "aten::tanh",
        "aten::exp",
    ] or len(groups_of(graph)) == 1
    assert ("aten::mul", "it reads or makes what is written to in place") in refused


def test_nothing_is_computed_behind_a_reduction_in_one_group():
    graph, _ = tracer.trace(lambda x: ((x * 2).exp().sum(-1) * 3).tanh(), (readtorch.randn(3, 4),))
    FuseTensorExprs(graph)
    assert len(groups_of(graph)) == 2


def test_the_text_can_be_read():
    kernel, _ = fused(programs.chain, readtorch.randn(3), readtorch.randn(3))
    kernel(readtorch.randn(3), readtorch.randn(3))
    assert "v2 = mul(v0, v1, ())  # aten::mul" in kernel.source
    assert "tanh(" in kernel.source and kernel.source.count("for ") == 1


# ------------------------------------------------------------------------------------------ guards, fallbacks


def test_guards_let_nothing_else_in():
    kernel, _ = fused(programs.chain, readtorch.randn(3), readtorch.randn(3))
    x, y = readtorch.randn(6), readtorch.randn(6)
    kernel(x, y)
    (fast,) = kernel.fast
    assert fast(x, y) is not None and fast(x, y).shape == (6,)
    misses = [
        (x.double(), y.double()),
        (x.reshape(2, 3), y.reshape(2, 3)),
        (x, y[:1]),
        (x, 2.0),
        (readtorch.randn(12)[::2], y),
        (x.clone().requires_grad_(), y),
    ]
    outcomes = [fast(*operands) for operands in misses]
    assert all(not isinstance(o, readtorch.Tensor) for o in outcomes)


@pytest.mark.parametrize("n", [100, 200_000])
def test_with_a_history_the_kernel_is_the_same(n):
    """Operands with a history come by another way: its results, and its refusals, are those of the fast one."""
    kernel, _ = fused(programs.chain, readtorch.randn(3), readtorch.randn(3))
    x, y = readtorch.randn(n), readtorch.randn(n)
    plain = kernel(x, y)
    assert len(kernel.on_arrays) == len(kernel.fast) == 1
    learns = x.clone().requires_grad_()
    assert readtorch.equal(kernel(learns, y), plain) and kernel(learns, y).requires_grad
    for a, b in [(x[::2], y[::2]), (x[:7], y[:1]), (x.reshape(2, -1), y.reshape(2, -1).t().contiguous().t())]:
        assert_close(kernel(a.clone().requires_grad_(), b).detach(), to_torch(programs.chain(readtorch, a, b)), **CLOSE)
    assert kernel.reasons == []


def test_each_dtype_has_its_guards():
    kernel, _ = fused(programs.chain, readtorch.randn(3), readtorch.randn(3))
    for dtype in (readtorch.float32, readtorch.float64, readtorch.float32):
        x, y = readtorch.randn(5, dtype=dtype), readtorch.randn(5, dtype=dtype)
        kernel(x, y)
        results = [function(x, y) for function in kernel.fast]
        assert [r.dtype for r in results if isinstance(r, readtorch.Tensor)] == [dtype]
    assert len(kernel.fast) == len(kernel.on_arrays) == 2


def test_other_types_run_unfused_and_say_why():
    kernel, _ = fused(programs.chain, readtorch.randn(3), readtorch.randn(3))
    x = torch.randn(5).half()
    result = kernel(to_readtorch(x), to_readtorch(x))
    assert_close(result, programs.chain(torch, x, x), rtol=1e-2, atol=1e-2)
    assert kernel.reasons == ["an operand or result has dtype torch.float16"]


def test_errors_are_those_of_the_operators():
    kernel, _ = fused(programs.chain, readtorch.randn(3), readtorch.randn(3))
    with pytest.raises(RuntimeError, match="The size of tensor a .5. must match the size of tensor b .4."):
        kernel(readtorch.randn(5), readtorch.randn(4))


def test_a_number_that_is_known_only_at_run_time():
    graph = parse_ir("""
graph(%x : Tensor, %s : float):
  %one : int = prim::Constant[value=1]()
  %1 : Tensor = aten::mul(%x, %s)
  %2 : Tensor = aten::add(%1, %s, %one)
  return (%2)""")
    FuseTensorExprs(graph)
    kernel = kernel_of(groups_of(graph)[0])
    x = readtorch.randn(7)
    for s in (2.5, -1.0, 3):
        assert_close(kernel(x, s), to_torch(x * s + s), **CLOSE)
    x.requires_grad_()
    kernel(x, 2.5).sum().backward()
    assert_close(x.grad, torch.full((7,), 2.5), **CLOSE)


# -------------------------------------------------------------------------------------------------- gradients


def gradients(function, operands, weight):
    operands = [x.detach().clone().requires_grad_(x.is_floating_point()) for x in operands]
    result = function(*operands)
    api = torch if isinstance(result, torch.Tensor) else readtorch
    return result, api.autograd.grad(result, [x for x in operands if x.requires_grad], weight, allow_unused=True)


@pytest.mark.parametrize("layout", ["flat", "two dimensions", "row", "column", "number", "middle"])
def test_gradients(layout):
    x, y = LAYOUTS[layout]()
    kernel, _ = fused(programs.chain, readtorch.randn(3), readtorch.randn(3))
    expected, theirs = gradients(
        functools.partial(programs.chain, torch),
        (x, y),
        weight := torch.randn(torch.broadcast_shapes(x.shape, y.shape)),
    )
    result, mine = gradients(kernel, (to_readtorch(x), to_readtorch(y)), to_readtorch(weight))
    assert result.grad_fn.name().endswith("DifferentiableGraphBackward")
    for a, b in zip(mine, theirs):
        assert_close(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", [n for n in REDUCED if n != "with the values"])
def test_gradients_of_reductions(name):
    program = REDUCED[name]
    kernel, _ = fused(program, readtorch.randn(3, 4))
    for shape in [(3, 4), (2, 5)]:
        x = torch.randn(shape)
        expected = program(torch, x)
        weight = torch.randn(expected.shape)
        _, (theirs,) = gradients(functools.partial(program, torch), (x,), weight)
        _, (mine,) = gradients(kernel, (to_readtorch(x),), to_readtorch(weight))
        assert_close(mine, theirs, **CLOSE)


def test_a_gradient_is_one_kernel():
    kernel, _ = fused(programs.chain, readtorch.randn(3), readtorch.randn(3))
    gradients(kernel, (readtorch.randn(5), readtorch.randn(5)), readtorch.ones(5))
    (backward,) = kernel.gradients.values()
    assert [n.kind() for n in backward.graph.nodes()] == ["prim::TensorExprGroup"]
    gradients(kernel, (readtorch.randn(9), readtorch.randn(9)), readtorch.ones(9))
    assert len(kernel.gradients) == 1  # the same graph serves other sizes


def test_only_the_inputs_that_need_it_get_a_gradient():
    kernel, _ = fused(programs.chain, readtorch.randn(3), readtorch.randn(3))
    x, y = readtorch.randn(5, requires_grad=True), readtorch.randn(5)
    kernel(x, y).sum().backward()
    z = x.detach().clone().requires_grad_()
    programs.chain(readtorch, z, y).sum().backward()
    assert_close(x.grad, to_torch(z.grad), **CLOSE)
    assert y.grad is None


def test_second_derivatives():
    kernel, _ = fused(programs.chain, readtorch.randn(3), readtorch.randn(3))
    found = []
    for function in (kernel, functools.partial(programs.chain, readtorch)):
        readtorch.manual_seed(3)
        x, y = (readtorch.randn(5, requires_grad=True) for _ in range(2))
        (first,) = readtorch.autograd.grad(function(x, y).sum(), x, create_graph=True)
        found.append(readtorch.autograd.grad((first * first).sum(), (x, y)))
    for a, b in zip(*found):
        assert_close(a.detach(), to_torch(b.detach()), **CLOSE)
    assert any("differentiated again" in reason for reason in kernel.reasons)


def test_an_input_written_after_the_call_is_noticed():
    kernel, _ = fused(programs.chain, readtorch.randn(3), readtorch.randn(3))
    x, y = readtorch.randn(5, requires_grad=True), readtorch.randn(5)
    result = kernel(x, y).sum()
    y.add_(1)
    with pytest.raises(RuntimeError, match="has been modified by an inplace operation"):
        result.backward()


def test_saved_inputs_are_freed():
    kernel, _ = fused(programs.chain, readtorch.randn(3), readtorch.randn(3))
    result = kernel(readtorch.randn(5, requires_grad=True), readtorch.randn(5)).sum()
    result.backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        result.backward()


def test_the_joint_trace_recognises_saved_results():
    """tanh saves its result; without recognising it the gradient would hold a constant."""
    kernel, _ = fused(lambda api, x: api.tanh(x) * 2, readtorch.randn(3))
    graph, _ = autodiff.trace_gradients(kernel.graph, [readtorch.randn(3)], (True,), [readtorch.ones(3)])
    constants = [n for n in graph.nodes() if n.kind() == "prim::Constant" and hasattr(n.output().toIValue(), "_array")]
    assert all(n.output().toIValue()._array.ndim == 0 for n in constants)


SHAPES = [((6,), (6,), (6,)), ((3, 4), (4,), (3, 4)), ((2, 3), (2, 1), ()), ((4, 5), (4, 5), (5,))]


@settings(max_examples=10, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 10**6), shapes=st.sampled_from(SHAPES), dtype=st.sampled_from([torch.float32, torch.float64])
)
def test_random_chains_and_their_gradients(seed, shapes, dtype):
    program = programs.RandomChain(seed)
    generator = torch.Generator().manual_seed(seed)
    operands = [torch.randn(s, dtype=dtype, generator=generator) for s in shapes]
    graph, _ = tracer.trace(functools.partial(program, readtorch), [to_readtorch(x) for x in operands])
    from readtorch.csrc.jit.runtime.graph_executor import GraphExecutor

    executor = GraphExecutor(graph, "chain")
    expected, theirs = gradients(
        functools.partial(program, torch),
        operands,
        None if not program(torch, *operands).dim() else torch.ones_like(program(torch, *operands)),
    )
    run = lambda *x: executor.run(list(x))[0]
    result, mine = gradients(
        run,
        [to_readtorch(x) for x in operands],
        readtorch.ones(tuple(expected.shape), dtype=getattr(readtorch, str(dtype).removeprefix("torch."))),
    )
    assert_close(result, expected, rtol=1e-4, atol=1e-5)
    for a, b in zip(mine, theirs):
        assert (a is None) == (b is None)
        if a is not None:
            assert_close(a, b, rtol=1e-4, atol=1e-5)
