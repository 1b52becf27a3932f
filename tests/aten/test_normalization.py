"""Batch, instance, group, layer and root mean square normalization: graphs, two orders of gradients, running
statistics, mixed types, errors; the compiled loops on every layout in memory."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import readtorch as rt
from tests.reference import both, to_readtorch
from tests.test_graphs import graph_of


def numbers(*shape, dtype=torch.float64):
    """Numbers away from 0 on average: a mean that is forgotten shows."""
    return (torch.randn(shape, dtype=dtype) * 2 + 1).requires_grad_()


def compare(function, *inputs, orders=2):
    ours, theirs = both(function, *inputs, grad=orders)
    if isinstance(theirs, torch.Tensor) and theirs.grad_fn is not None:
        assert graph_of(ours) == graph_of(theirs)


def parameters(features, kind):
    given = {"affine": (True, True), "weight": (True, False), "plain": (False, False)}[kind]
    return [numbers(features) if wanted else None for wanted in given]


AFFINE = pytest.mark.parametrize("affine", ["affine", "weight", "plain"])
SHAPES = pytest.mark.parametrize("shape", [(4, 6), (2, 6, 5), (2, 6, 3, 2), (2, 6, 3, 2, 2)], ids=str)


@AFFINE
@SHAPES
@pytest.mark.parametrize("training", [True, False], ids=["training", "evaluation"])
def test_batch_norm(shape, training, affine):
    mean, var = torch.randn(6, dtype=torch.float64), torch.rand(6, dtype=torch.float64) + 0.5
    compare(
        lambda T, x, w, b, m, v: T.nn.functional.batch_norm(x, m, v, w, b, training, 0.3),
        numbers(*shape),
        *parameters(6, affine),
        mean,
        var,
    )


@AFFINE
def test_instance_norm(affine):
    compare(
        lambda T, x, w, b: T.nn.functional.instance_norm(x, None, None, w, b), numbers(2, 6, 5), *parameters(6, affine)
    )


@AFFINE
@SHAPES
def test_group_norm(shape, affine):
    compare(lambda T, x, w, b: T.nn.functional.group_norm(x, 3, w, b), numbers(*shape), *parameters(6, affine))


def test_the_mean_and_the_deviation_of_group_norm_have_gradients():
    """If both were used: one alone is forgotten, as in PyTorch."""
    compare(lambda T, x: T.native_group_norm(x, None, None, 2, 6, 5, 3, 1e-5)[1], numbers(2, 6, 5))
    compare(
        lambda T, x: sum(r.sum() for r in T.native_group_norm(x, None, None, 2, 6, 5, 3, 1e-5)[1:]), numbers(2, 6, 5)
    )
    compare(
        lambda T, x, w: sum(r.sum() for r in T.native_group_norm(x, w, None, 2, 6, 5, 3, 1e-5)),
        numbers(2, 6, 5),
        numbers(6),
    )


@pytest.mark.parametrize("eps", [None, 0.1])
@pytest.mark.parametrize("shape, normalized", [((4, 6), (6,)), ((3, 4, 6), (4, 6)), ((6,), (6,))], ids=str)
def test_rms_norm(shape, normalized, eps):
    compare(lambda T, x, w: T.nn.functional.rms_norm(x, normalized, w, eps), numbers(*shape), numbers(*normalized))
    both(lambda T, x: T.nn.functional.rms_norm(x, normalized, None, eps), numbers(*shape).detach())


def test_running_statistics_move_in_place_and_quietly():
    """Only instance norm, which copies into them, counts their versions up."""

    def run(T, x, mean, var):
        start = mean._version
        T.nn.functional.batch_norm(x, mean, var, training=True, momentum=0.25)
        T._native_batch_norm_legit(x, None, None, mean, var, True, 0.25, 1e-5)
        quiet = mean._version - start
        T.nn.functional.instance_norm(x, mean, var, momentum=0.25)
        return mean, var, quiet, mean._version - start

    both(run, torch.randn(3, 2, 4), torch.rand(2), torch.rand(2))


@pytest.mark.parametrize("shape", [(4, 3), (0, 3), (2, 3, 5)], ids=str)
@pytest.mark.parametrize("training", [True, False], ids=["training", "evaluation"])
def test_the_operator_that_chooses(shape, training):
    """On the CPU there is one to choose: its number is 0, and there is nothing for backward to keep beside the statistics."""

    def run(T, x, w):
        mean, var = T.ones(3).double(), T.full((3,), 2.0).double()
        *results, number = T._batch_norm_impl_index(x, w, None, mean, var, training, 0.1, 1e-5, True)
        saved = results[1:] if x.numel() else [len(t) for t in results[1:]]
        assert type(number) is int
        return results[0], *saved, number, mean, var, results[0].grad_fn.name()

    both(run, numbers(*shape), numbers(3))
    with pytest.raises(RuntimeError, match="running_mean must be defined in evaluation mode"):
        rt._batch_norm_impl_index(rt.ones(2, 3), None, None, None, None, False, 0.1, 1e-5, True)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_mixed_types(dtype):
    x, w = torch.randn(4, 6, 5).to(dtype), torch.rand(6)
    both(
        lambda T, x, w: (
            *T.native_batch_norm(x, w, w, w.clone(), w.clone(), True, 0.1, 1e-5),
            *T.native_group_norm(x, w, w, 4, 6, 5, 2, 1e-5),
        ),
        x,
        w,
        exact=False,
    )
    both(lambda T, x, w: T.native_layer_norm(x, (5,), w, w, 1e-5), x, torch.rand(5), exact=False)


# ---------------------------------------------------------------------------------- compiled loops


def run_with_gradients(T, norm, tensors, gradient):
    """The result and the gradients of all tensors that want one."""
    y = norm(T, *tensors)
    wanted = [t for t in tensors if t is not None and t.requires_grad]
    return [y, *T.autograd.grad(y, wanted, gradient)]


def assert_loops_agree(norm, *tensors):
    """On float32, results and gradients, to a few roundings."""
    tensors = [t if t is None else t.detach().requires_grad_(t.requires_grad) for t in tensors]
    gradient = torch.randn_like(norm(torch, *tensors).detach())
    theirs = run_with_gradients(torch, norm, tensors, gradient)
    ours = run_with_gradients(rt, norm, to_readtorch(tensors), to_readtorch(gradient))
    for a, b in zip(ours, theirs):
        assert a.shape == b.shape and a.stride() == b.stride()
        torch.testing.assert_close(torch.tensor(a.tolist()), b.detach(), rtol=1e-5, atol=1e-4)


LAYOUTS = ["contiguous", "channels last", "gaps"]


def laid_out(x, layout):
    if layout == "channels last" and x.dim() == 4:
        return x.contiguous(memory_format=torch.channels_last)
    return x.repeat_interleave(2, -1)[..., ::2] if layout == "gaps" else x


@settings(max_examples=30, deadline=None)
@given(
    st.sampled_from([(8, 40), (3, 8, 16), (2, 16, 5, 7), (70, 9, 1)]),
    st.sampled_from(LAYOUTS),
    st.booleans(),
    st.booleans(),
)
def test_loops_of_batch_norm(shape, layout, training, affine):
    x = laid_out(torch.randn(shape) * 3 + 2, layout).requires_grad_()
    w, b = ((torch.rand(shape[1]) + 0.5).requires_grad_() if affine else None for _ in "wb")
    mean, var = torch.randn(shape[1]), torch.rand(shape[1]) + 0.5
    assert_loops_agree(
        lambda T, x, w, b, m, v: T.nn.functional.batch_norm(x, m.clone(), v.clone(), w, b, training), x, w, b, mean, var
    )


@settings(max_examples=20, deadline=None)
@given(st.sampled_from([(3, 8, 16), (2, 16, 5, 7), (40, 8)]), st.sampled_from([1, 2, 8]), st.booleans())
def test_loops_of_group_norm(shape, groups, affine):
    w, b = ((torch.rand(shape[1]) + 0.5).requires_grad_() if affine else None for _ in "wb")
    if shape[1] // groups * len(shape) > 2:
        assert_loops_agree(
            lambda T, x, w, b: T.nn.functional.group_norm(x, groups, w, b),
            (torch.randn(shape) + 2).requires_grad_(),
            w,
            b,
        )


@settings(max_examples=20, deadline=None)
@given(st.sampled_from([(70, 9), (64, 5), (7, 100), (2, 3, 64)]), st.booleans(), st.booleans())
def test_loops_of_layer_norm(shape, weighted, biased):
    w, b = ((torch.rand(shape[-1]) + 0.5).requires_grad_() if wanted else None for wanted in (weighted, biased))
    assert_loops_agree(
        lambda T, x, w, b: T.nn.functional.layer_norm(x, shape[-1:], w, b),
        (torch.randn(shape) + 2).requires_grad_(),
        w,
        b,
    )


def test_batch_norm_of_two_threads_is_that_of_one():
    x = rt.randn(16, 48, 32, 32)
    results = []
    before = rt.get_num_threads()
    for threads in (1, 2):
        rt.set_num_threads(threads)
        results.append(rt.nn.functional.batch_norm(x, None, None, training=True))
    rt.set_num_threads(before)
    assert rt.equal(*results)


ERRORS = [
    "T.batch_norm(a(2, 4, 3).double(), a(4), a(4), None, None, True, .1, 1e-5, True)",
    "T.batch_norm(a(2, 4, 3), a(4), a(4).double(), None, None, True, .1, 1e-5, True)",
    "T.batch_norm(a(2, 4, 3).half(), a(4), a(4).half(), None, None, True, .1, 1e-5, True)",
    "T.batch_norm(a(2, 4, 3).long(), None, None, None, None, True, .1, 1e-5, True)",
    "T.batch_norm(a(3), None, None, None, None, True, .1, 1e-5, True)",
    "F.batch_norm(a(2, 4, 3), None, None)",
    "F.batch_norm(a(2, 4, 3), a(4), None)",
    "F.batch_norm(a(2, 4, 3), a(3), a(4), training=True)",
    "F.batch_norm(a(2, 4, 3), a(4), None, training=True)",
    "F.batch_norm(a(2, 4, 3), None, None, a(2), training=True)",
    "F.batch_norm(a(1, 4, 1), None, None, training=True)",
    "F.batch_norm(a(2, 4, 3), None, None, training=True, eps=0.0)",
    "F.batch_norm(a(2, 4, 3), a(4), a(4), eps=-1.0)",
    "T.native_batch_norm(a(0, 4), None, None, None, None, True, .1, 1e-5)",
    "F.instance_norm(a(2, 4, 1))",
    "F.instance_norm(a(2, 4, 3), use_input_stats=False)",
    "F.instance_norm(a(2, 4, 3), weight=a(3))",
    "F.group_norm(a(2, 4, 3), 3)",
    "T.group_norm(a(2, 4, 3), 0)",
    "F.group_norm(a(2, 4, 3), 2, a(3))",
    "F.group_norm(a(2, 4, 3), 2, None, a(3))",
    "F.group_norm(a(2, 4, 3).double(), 2, a(4))",
    "F.group_norm(a(2, 4, 3).long(), 2)",
    "F.group_norm(a(4), 2)",
    "F.group_norm(a(1, 4), 4)",
    "T.native_group_norm(a(2, 3, 4).transpose(1, 2), None, None, 2, 4, 3, 2, 1e-5)",
    "F.rms_norm(a(2, 3), (2,))",
    "F.rms_norm(a(2, 3), ())",
    "F.rms_norm(a(2, 3), (3,), a(2))",
    "F.rms_norm(a(3), (2, 3))",
    "F.rms_norm(a(2, 3).long(), (3,))",
    "F.layer_norm(a(2, 3).double(), (3,), a(3))",
]


@pytest.mark.parametrize("expression", ERRORS)
def test_errors_use_the_same_words(expression):
    ours, _ = both(lambda T: eval(expression, {"T": T, "F": T.nn.functional, "a": T.ones}))
    assert isinstance(ours, Exception)


@pytest.mark.parametrize("gaps", ["input", "parameters", "both"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_batch_norm_of_16_bit_floats_with_gaps(dtype, gaps):
    """Bit for bit: PyTorch rounds the mean before it takes the squares, and not their sum."""
    generator = torch.Generator().manual_seed(0)
    for momentum in (-1.0, 0.1, 0.5):
        x = (torch.randn(3, 16, 3, 8, generator=generator) * 3 + 1).to(dtype)
        parameters = [torch.rand(32, generator=generator).to(dtype) for _ in range(4)]
        x = x[..., ::2] if gaps != "parameters" else x
        parameters = [p[::2] if gaps != "input" else p[:16] for p in parameters]
        ours = [to_readtorch(t) for t in (x, *parameters)]
        results = torch.native_batch_norm(x, *parameters, True, momentum, 0.5)
        found = rt.native_batch_norm(*ours, True, momentum, 0.5)
        moved = (3, 4) if gaps != "parameters" else ()  # without gaps the last bit of the sums may differ
        expected, found = [*results, *[parameters[i - 1] for i in moved]], [*found, *[ours[i] for i in moved]]
        assert [t.tolist() for t in found] == [t.tolist() for t in expected]


@pytest.mark.parametrize("shape", [(3, 8, 16), (40, 8)])
def test_a_gradient_that_nobody_wants_is_not_written(shape, monkeypatch):
    """The loops get an empty array in its place. They run in Python here, which minds an index outside of it."""
    from readtorch.aten.native.cpu import batch_norm_kernel

    monkeypatch.setattr(batch_norm_kernel, "plane_backward", batch_norm_kernel.plane_backward.py_func)
    loop = batch_norm_kernel.backward_planes if len(shape) == 3 else batch_norm_kernel.backward_columns
    dy, x, weight = torch.randn(shape), torch.randn(shape), torch.rand(8)
    _, mean, rstd = torch.native_batch_norm(x, weight, None, None, None, True, 0.1, 1e-5)
    _, dw, db = torch.ops.aten.native_batch_norm_backward(
        dy, x, weight, None, None, mean, rstd, True, 1e-5, [False, True, True]
    )
    found = torch.empty(2, 8)
    arrays = [t.numpy() for t in (dy, x, weight, mean, rstd)]
    loop.py_func(*arrays, True, torch.empty((0,) * len(shape)).numpy(), found[0].numpy(), found[1].numpy(), 0, 8)
    torch.testing.assert_close(found, torch.stack([dw, db]), rtol=1e-5, atol=1e-4)


# ------------------------------------------------------------------------------------------ far from zero


def variances(T, norm, x):
    """Of what shares a mean, as `norm` has kept it, and in float64."""
    if norm == "batch":
        _, _, rstd = T.native_batch_norm(x, None, None, None, None, True, 0.1, 1e-5)
    elif norm == "group":
        n, c, *plane = x.shape
        _, _, rstd = T.native_group_norm(x.contiguous(), None, None, n, c, plane[0] * plane[1], 1, 1e-5)
    else:
        _, _, rstd = T.native_layer_norm(x, x.shape[1:], None, None, 1e-5)
    x = x.double() if norm == "batch" else x.double().flatten(1)
    dims = (0, 2, 3) if norm == "batch" else 1
    return (rstd.double().flatten() ** -2).numpy(), x.var(dims, correction=0).numpy()


@pytest.mark.parametrize("norm", ["batch", "group", "layer"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_variances_of_large_planes_far_from_zero(norm, layout):
    """A mean summed in float32 would be off by 47, and the variance by 47². (PyTorch's batch norm of channels last is.)"""
    x = laid_out(torch.randn(2, 2, 256, 512, generator=torch.Generator().manual_seed(0)) + 1_000_003, layout)
    ours, exact = variances(rt, norm, to_readtorch(x))
    assert abs(ours - exact).max() < 5e-3
    if layout == "contiguous":
        theirs, _ = variances(torch, norm, x)
        assert abs(ours - theirs).max() < 2e-2


@pytest.mark.parametrize("layout", ["contiguous", "gaps"])
def test_gradients_of_large_planes_far_from_zero(layout):
    x = laid_out(torch.randn(2, 2, 128, 512) + 1000, layout)
    gradient = torch.randn(x.shape) + 10

    def gradients(T, x, gradient):
        x, weight, bias = x.detach().requires_grad_(), *(T.ones(2, requires_grad=True) for _ in range(2))
        T.nn.functional.batch_norm(x, None, None, weight, bias, True).backward(gradient)
        return weight.grad, bias.grad

    both(gradients, x, gradient, rtol=1e-4, atol=1e-2)
