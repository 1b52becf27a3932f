"""The backend "inductor": random programs, writes and views, models, what it does with other sizes and strides, and how its code reads."""

import copy
import inspect
import textwrap

import numpy as np
import pytest
import torch
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import readtorch as rt
from readtorch._functorch.aot_autograd import aot_module
from readtorch._functorch.partitioners import min_cut_rematerialization_partition
from readtorch._inductor.codegen import numba_cpu, wrapper
from readtorch._inductor.compile_fx import compile_fx_inner, recording
from readtorch._inductor.decomposition import select_decomp_table
from readtorch._inductor.sizevars import Symbol, expression, flatten, unflatten
from tests.dynamo.models import MODELS
from tests.functorch.test_aot_models import step

SOME_MODELS = [
    "linear",
    "mlp",
    "softmax",
    "gn",
    "bn",
    "ln",
    "rms",
    "vae",
    "moe",
    "dict",
    "MSELoss",
    "triplet",
    "ce",
    "conv1",
    "emb",
    "wn",
]


def compiled(function):
    return rt.compile(function, dynamic=False)


@pytest.mark.parametrize("name", SOME_MODELS)
def test_models(name):
    """The tolerance leaves room for gradients that are differences of equal numbers: of normalized values, all added up."""
    rt.manual_seed(0)
    model, arguments = MODELS[name]()
    other = copy.deepcopy(model)
    call = aot_module(
        model, compile_fx_inner, partition_fn=min_cut_rematerialization_partition, decompositions=select_decomp_table()
    )
    for _ in range(2):
        for ours, eager in zip(step(model, call, arguments), step(other, other, arguments)):
            assert len(ours) == len(eager)
            for a, b in zip(ours, eager):
                assert (a is None) == (b is None)
                assert a is None or rt.allclose(a, b, atol=1e-4, rtol=1e-4, equal_nan=True)


# ------------------------------------------------------------------------------------------------- random programs

DTYPES = ["float32", "float64", "int64", "bool"]
POINTWISE = [
    lambda t, x, y: x + y,
    lambda t, x, y: x * 2 - y,
    lambda t, x, y: t.where(x > y, x, y),
    lambda t, x, y: (x == y) | (x < 0),
    lambda t, x, y: x / 4 + y,
    lambda t, x, y: x.abs() + y,
]
ENDS = [
    lambda t, x: x,
    lambda t, x: x.sum(0),
    lambda t, x: x.sum(-1),
    lambda t, x: x.double().mean(),
    lambda t, x: x.double().amax(-1, keepdim=True) - x,
    lambda t, x: x.transpose(0, -1).reshape(-1),
    lambda t, x: x[..., ::2].sum(),
    lambda t, x: x.flip(0).sum(-1) * 2,
]


@st.composite
def operands(draw):
    """Two arrays that broadcast, with strides of their own."""
    rank = draw(st.integers(1, 3))
    shape = [draw(st.integers(1, 4)) for _ in range(rank)]
    arrays = []
    for _ in range(2):
        dtype, order = draw(st.sampled_from(DTYPES)), draw(st.permutations(range(rank)))
        own = [draw(st.sampled_from([n, n, 1])) for n in shape]
        values = np.random.default_rng(draw(st.integers(0, 99))).integers(-3, 4, [own[d] for d in order])
        arrays.append(values.astype(dtype).transpose(np.argsort(order)))
    return arrays


@settings(max_examples=8, deadline=None, phases=[Phase.generate])
@given(operands(), st.sampled_from(POINTWISE), st.sampled_from(POINTWISE[:3]), st.sampled_from(ENDS))
def test_random_programs(arrays, first, second, end):
    def program(t, x, y):
        try:
            return end(t, second(t, first(t, x, y), y))
        except RuntimeError:  # of bools, which subtraction refuses
            return end(t, first(t, x, y))

    theirs = program(torch, *map(torch.from_numpy, arrays))
    ours = aot(lambda x, y: (program(rt, x, y),))(*map(rt.from_numpy, arrays))[0]
    assert ours.stride() == theirs.stride() or 1 in ours.shape
    assert str(ours.dtype) == str(theirs.dtype)
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-5, atol=1e-5)


def test_flip_is_a_body_of_its_own():
    x = rt.arange(24.0).reshape(2, 3, 4)
    with recording() as graphs:
        both, middle = compiled(lambda x: (x.flip(0, -1) * 2, x.flip(1)))(x)
    assert rt.equal(both, x.flip(0, -1) * 2) and rt.equal(middle, x.flip(1)) and middle.is_contiguous()
    assert graphs[0].fallbacks == {}


def aot(function, **options):
    from readtorch._functorch.aot_autograd import aot_function

    return aot_function(
        function,
        compile_fx_inner,
        partition_fn=min_cut_rematerialization_partition,
        decompositions=select_decomp_table(),
        keep_inference_input_mutations=True,
        **options,
    )


@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.data())
def test_indices_of_views(sizes, data):
    """flatten, unflatten and their simplification: the same place for each element, by arithmetic and by NumPy."""
    elements = int(np.prod(sizes))
    divisors = [d for d in range(1, elements + 1) if elements % d == 0]
    first = data.draw(st.sampled_from(divisors))
    other = (first, elements // first)
    symbols = [Symbol(f"i{k}", n) for k, n in enumerate(other)]
    strides = np.array([int(np.prod(sizes[k + 1 :])) * 2 for k in range(len(sizes))])
    index = unflatten(flatten([expression(s) for s in symbols], other), sizes)
    place = expression(0)
    for position, stride in zip(index, strides):
        place = place + position * int(stride)
    places = np.zeros(sizes, int)
    for k, stride in enumerate(strides):
        places += np.arange(sizes[k]).reshape([-1 if d == k else 1 for d in range(len(sizes))]) * stride
    for i0, i1 in np.ndindex(*other):
        assert eval(str(place), {"i0": i0, "i1": i1}) == places.reshape(other)[i0, i1]


# ------------------------------------------------------------------------------------------------ writes and views


def test_an_input_is_written_to():
    """What reads the input before the write gets the old numbers, what reads it afterwards the new ones."""

    def program(x, y):
        before = x * 2
        x.add_(y)
        return before, x * 3

    x, y = rt.ones(3), rt.arange(3.0)
    before, after = compiled(program)(x, y)
    assert x.tolist() == [1, 2, 3] and before.tolist() == [2, 2, 2] and after.tolist() == [3, 6, 9]


def test_a_view_of_an_input_is_written_to():
    def program(x):
        x[1:].mul_(5)
        return x.t()

    x = rt.ones(2, 2)
    out = compiled(program)(x)
    assert x.tolist() == [[1, 1], [5, 5]] and out.tolist() == [[1, 5], [1, 5]]
    out.zero_()
    assert x.tolist() == [[0, 0], [0, 0]]  # it is a view


def test_results_share_memory_as_they_do():
    a, b = compiled(lambda x: (lambda y: (y, y.view(-1)))(x + 1))(rt.zeros(2, 2))
    b.zero_()
    assert a.tolist() == [[0, 0], [0, 0]]


def test_memory_is_used_again():
    """A buffer that was read for the last time is the next one of its size; results of earlier calls are not touched."""
    call = compiled(lambda x, w: ((x + 1) @ w * 2) @ w + 1)
    x, w = rt.rand(4, 4), rt.rand(4, 4)
    with recording() as graphs:
        first = call(x, w)
    kept = first.clone()
    call(x * 2, w)
    assert rt.equal(first, kept)
    assert "# reuse" in graphs[0].source


def test_results_of_the_inference_mode():
    w = rt.rand(3, 3, requires_grad=True)
    with rt.inference_mode():
        out = compiled(lambda w: (w @ w).relu() + 1)(w)
    assert out.is_inference() and rt.allclose(out, (w @ w).relu() + 1)


def test_tangents():
    """They are computed operator by operator, though the graph was compiled for tensors without one."""
    import readtorch.autograd.forward_ad as forward_ad

    program = lambda x: (x * 2 + 1).tanh() * x
    call, x = compiled(program), rt.rand(4)
    call(x)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, rt.ones(4))
        assert rt.equal(*[forward_ad.unpack_dual(f(dual)).tangent for f in (call, program)])


def test_random_numbers_are_drawn_in_order():
    def program(x):
        return rt.rand_like(x) * 2, rt.rand_like(x) + x

    x = rt.zeros(4)
    rt.manual_seed(3)
    ours = compiled(program)(x)
    rt.manual_seed(3)
    for a, b in zip(ours, program(x)):
        assert rt.equal(a, b)


# ----------------------------------------------------------------------------------------------- sizes and strides


def test_other_strides_than_the_code_was_written_for():
    call = aot(lambda x: (x * 2).sum(0))
    x = rt.arange(6.0).view(2, 3)
    assert call(x).tolist() == [6, 10, 14]
    assert call(rt.tensor([[0.0, 3], [1, 4], [2, 5]]).t()).tolist() == [6, 10, 14]


def test_other_sizes_than_the_code_was_written_for():
    call = aot(lambda x: (x * 2).exp())
    for n in (3, 4):
        x = rt.arange(float(n))
        assert rt.allclose(call(x), (x * 2).exp())


# ---------------------------------------------------------------------------------------------------------- indices


def error_of(function, *args):
    with pytest.raises((IndexError, RuntimeError)) as failure:
        function(*args)
    return type(failure.value), str(failure.value)


@pytest.mark.parametrize("index", [3, -1])
def test_an_index_out_of_range(index):
    """A kernel raises what PyTorch's Inductor does. Behind Dynamo the operators then run, and have their own words."""
    x, good, bad = rt.rand(3, 2), rt.tensor([[0, 1]]), rt.tensor([[0, index]])
    for program in (
        lambda x, i: rt.nn.functional.embedding(i, x) * 2,
        lambda x, i: x.gather(0, i) + 1,
        lambda x, i: (x * 2).t().scatter(1, i.t(), 1.0),
    ):
        for call, error in ((aot(program), (RuntimeError, "index out of bounds")), (compiled(program), None)):
            assert rt.equal(call(x, good), program(x, good))
            assert error_of(call, x, bad) == (error or error_of(program, x, bad))


def test_a_scatter_to_several_places_is_called():
    x, index = rt.rand(3, 4), rt.tensor([[0, 2], [1, 1], [3, 0]])
    with recording() as graphs:
        ours = compiled(lambda x: (x * 2).scatter(1, index, 5.0) + 1)(x)
    assert rt.equal(ours, (x * 2).scatter(1, index, 5.0) + 1)
    assert graphs[0].fallbacks == {"aten.scatter.value": "several places in a row"}


def test_what_is_saved_is_guarded():
    """A result that backward needs must not be written to, be it saved with other sizes."""
    out = compiled(lambda x: (lambda y: (y, y.view(-1).exp()))(x.exp()))(rt.rand(2, 2, requires_grad=True))
    with rt.no_grad():
        out[0].zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out[0].sum().backward()


# ------------------------------------------------------------------------------------------------------------- code


def shown(function):
    """The code in a function's docstring: its indented block."""
    lines = inspect.getdoc(function).splitlines()
    return textwrap.dedent("\n".join(line for line in lines if line.startswith("    "))).strip()


def test_docstrings_show_what_is_written():
    with recording() as graphs:
        compiled(lambda x: (x * 2).sum(-1))(rt.ones(3, 4))
    (kernel,) = graphs[0].kernels.values()
    assert shown(numba_cpu.NumbaKernel.write) == kernel.source.split("@fused_kernel\n")[1].strip()
    assert shown(wrapper.PythonWrapperCodegen.text) == graphs[0].source.strip()


def test_listed_backends():
    """PyTorch's others are bindings to further libraries and to CUDA."""
    listed = rt.compiler.list_backends()
    assert listed == ["inductor"] and set(listed) <= set(torch.compiler.list_backends())
    assert set(rt.compiler.list_backends(None)) <= set(torch._dynamo.list_backends(None))


def test_gradients_that_are_one_tensor():
    """The backward returns one buffer for three inputs, once with other sizes: each has a gradient of its own, which is added to."""
    x, y, z = rt.ones(3, requires_grad=True), rt.ones(3, requires_grad=True), rt.ones(1, 3, requires_grad=True)
    call = compiled(lambda x, y, z: ((x + y + z) * 2).exp().log().sum())
    for _ in range(3):
        call(x, y, z).backward()
    for each in (x, y, z):
        assert rt.allclose(each.grad, rt.full_like(each, 6.0))


def test_two_sizes_of_one_gradient():
    x, z = rt.ones(3, requires_grad=True), rt.ones(1, 3, requires_grad=True)
    call = compiled(lambda x, z: ((x * 2).view(1, 3) + z * 2).exp().log().sum())
    for _ in range(3):
        call(x, z).backward()
    assert rt.allclose(x.grad, rt.full((3,), 6.0)) and rt.allclose(z.grad, rt.full((1, 3), 6.0))
