"""Reductions and scans: values, layouts, dims, gradients of two orders, ties, nan, errors."""

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import readtorch
from tests.reference import both, tensors, to_readtorch, to_torch

NAN = float("nan")
REDUCTIONS = ["sum", "mean", "nansum", "var", "std", "amax", "amin", "logsumexp", "norm"]
SCANS = ["cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"]


def some_dims(ndim):
    return st.lists(st.integers(-ndim, ndim - 1), min_size=1, max_size=ndim, unique_by=lambda d: d % ndim)


@pytest.mark.parametrize("name", REDUCTIONS)
@given(st.data())
def test_over_dims(name, data):
    x = data.draw(tensors(st.tuples(*[st.integers(1, 4)] * 3), torch.float64, requires_grad=True))
    dims = data.draw(some_dims(3))
    keepdim = data.draw(st.booleans())
    if name == "norm":
        p = data.draw(st.sampled_from([0, 1, 2, 3, 0.5, 1.5, float("inf"), -float("inf")]))
        both(lambda T, x: T.norm(x, p, dims, keepdim), x, strides=False, grad=False)
    else:
        both(lambda T, x: getattr(T, name)(x, dims, keepdim=keepdim), x, strides=False)


@pytest.mark.parametrize(
    "name", ["sum", "mean", "prod", "var", "std", "max", "min", "norm", "median", "nansum", "amax", "nanmean"]
)
def test_over_everything(name):
    both(lambda T, x: getattr(T, name)(x), torch.rand(3, 4, dtype=torch.float64).requires_grad_(), grad=2)
    both(lambda T, x: getattr(x, name)(), torch.tensor(2.5, dtype=torch.float64).requires_grad_())


@pytest.mark.parametrize("name", ["max", "min", "median", "kthvalue", "mode", "nanmedian"])
@pytest.mark.parametrize("keepdim", [False, True])
def test_values_and_indices(name, keepdim):
    x = torch.randn(4, 5, 3, dtype=torch.float64).requires_grad_()
    k = (2,) if name == "kthvalue" else ()
    for dim in (0, 1, -1):
        both(lambda T, x: getattr(T, name)(x, *k, dim, keepdim), x)
    both(lambda T, x: getattr(x, name)(*((1,) if k else ()), 0), torch.tensor(1.5))


@pytest.mark.parametrize("name", SCANS)
@given(st.data())
def test_scans(name, data):
    x = data.draw(tensors(st.tuples(*[st.integers(1, 4)] * 3), torch.float64, requires_grad=True))
    dim = data.draw(st.integers(-3, 2))
    both(lambda T, x: getattr(T, name)(x, dim), x, strides=False)


def test_cumprod_with_zeros():
    x = torch.tensor([[1.0, 0.0, 2.0, 3.0], [0.0, 0.0, 2.0, 1.0]], dtype=torch.float64).requires_grad_()
    both(lambda T, x: (x.cumprod(1), x.prod(1), x.prod()), x, grad=2)


TIES = torch.tensor([[3.0, 1.0, 3.0], [3.0, 1.0, 1.0]])


@pytest.mark.parametrize(
    "expression",
    [
        lambda T, x: x.max(),
        lambda T, x: x.min(),
        lambda T, x: x.amax(1),
        lambda T, x: x.amin((0, 1)),
        lambda T, x: x.aminmax(dim=1),
        lambda T, x: x.max(1),
        lambda T, x: x.median(),
        lambda T, x: x.norm(float("inf")),
        lambda T, x: x.argmax(1),
        lambda T, x: x.cummax(1),
        lambda T, x: T.max(x, x.flip(1)),
        lambda T, x: x.argmin(),
        lambda T, x: x.norm(1, dim=0),
    ],
    ids=range(13),
)
def test_equal_extremes(expression):
    both(expression, TIES.clone().requires_grad_())


@pytest.mark.parametrize(
    "expression",
    [
        lambda T, x: x.max(1),
        lambda T, x: x.min(),
        lambda T, x: x.amax(0),
        lambda T, x: x.argmax(),
        lambda T, x: x.argmin(0),
        lambda T, x: x.nansum(1),
        lambda T, x: x.nanmean(1),
        lambda T, x: x.median(1),
        lambda T, x: x.nanmedian(1),
        lambda T, x: x.sum(),
        lambda T, x: x.cummax(1),
        lambda T, x: x.logsumexp(0),
        lambda T, x: (x.all(), x.any(1)),
        lambda T, x: x.std(0),
    ],
    ids=range(14),
)
def test_nan_and_infinities(expression):
    both(expression, torch.tensor([[NAN, 1.0, 5.0], [2.0, NAN, NAN], [float("inf"), -float("inf"), 0.0]]))


def test_norm_at_zero():
    both(
        lambda T, x: (x.norm(), x.norm(1), x.norm(3), x.norm(dim=0), T.dist(x, x * 0)), torch.zeros(3).requires_grad_()
    )


def test_spread():
    x = torch.randn(3, 4, dtype=torch.float64).requires_grad_()
    both(
        lambda T, x: (
            x.var(),
            x.var(unbiased=False),
            x.var(1),
            x.std((0, 1)),
            x.std(correction=0.5),
            T.var_mean(x, 1),
            T.std_mean(x, dim=0, correction=0),
            x.var(0, False, True),
        ),
        x,
        grad=2,
    )
    both(lambda T, x: (x[:1].var(0), x[:1].std(1), x.std(1, correction=9)), x.detach())


def test_truth():
    for dtype in (torch.bool, torch.uint8, torch.int64, torch.float32):
        x = torch.tensor([[0, 1], [1, 1]]).to(dtype)
        both(
            lambda T, x: (
                x.all(),
                x.any(),
                x.all(0),
                x.any(1, keepdim=True),
                T.all(x, dim=(0, 1)),
                T.any(x, dim=()),
                T.count_nonzero(x),
                T.count_nonzero(x, 0),
            ),
            x,
        )


def test_integers_add_up_in_int64():
    for dtype in (torch.uint8, torch.int8, torch.bool):
        x = torch.full((300,), 1, dtype=dtype)
        both(lambda T, x: (x.sum(), x.prod(), x.cumsum(0)[-1], x.sum(dtype=T.int8), x.sum(0, dtype=T.float32)), x)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_sixteen_bits_add_up_in_float32(dtype):
    x = torch.full((5000,), 0.1).to(dtype)
    both(lambda T, x: (x.sum(), x.mean(), x.std(), x.norm(), x.logsumexp(0)), x)


def test_long_sums_are_as_accurate_as_the_reference():
    import readtorch as rt
    from tests.reference import to_readtorch

    x = torch.rand(1_000_003)
    exact = x.double().sum().item()
    error = abs(to_readtorch(x).sum().item() - exact)
    assert error <= 4 * max(abs(x.sum().item() - exact), 0.0625)
    assert rt.sum(to_readtorch(x)).dtype is rt.float32


def test_diff():
    x = torch.tensor([[1.0, 4.0, 9.0], [2.0, 2.0, 0.0]], dtype=torch.float64).requires_grad_()
    both(lambda T, x: (x.diff(), x.diff(dim=0), x.diff(2), x.diff(prepend=x[:, :1]), x.diff(0)), x)
    both(lambda T, x: x.diff(), torch.tensor([True, False, False]))


def test_ways_to_call():
    x = torch.rand(2, 3, 4)
    both(
        lambda T, x: (
            T.sum(x, axis=1),
            x.sum((0, 1)),
            x.sum(dim=[0, 2], keepdim=True),
            x.mean(-1, True),
            T.max(x, dim=1),
            x.max(1, keepdim=True),
            T.sum(input=x, dim=0),
            x.argmax(dim=2, keepdim=True),
            x.amax(),
            x.sum(dim=None),
            T.mean(x, (0, 1)),
            x.prod(1, keepdim=True),
        ),
        x,
    )


ERRORS = {
    "dim": lambda T: T.ones(2, 3).sum(2),
    "dim twice": lambda T: T.ones(2, 3).sum((0, 0)),
    "mean of integers": lambda T: T.arange(3).mean(),
    "mean to integers": lambda T: T.arange(3).mean(dtype=T.int64),
    "max of nothing": lambda T: T.empty(0).max(),
    "max along nothing": lambda T: T.empty(0, 3).max(0),
    "amax of nothing": lambda T: T.empty(0).amax(),
    "argmax of nothing": lambda T: T.empty(0).argmax(),
    "argmax of bool": lambda T: T.ones(2, dtype=T.bool).argmax(),
    "max of complex": lambda T: T.ones(2, dtype=T.complex64).max(),
    "var of integers": lambda T: T.arange(3).var(),
    "norm of integers": lambda T: T.arange(3).norm(),
    "kth": lambda T: T.ones(3).kthvalue(4),
    "cumsum dim": lambda T: T.ones(3).cumsum(1),
    "cummax of complex": lambda T: T.ones(2, dtype=T.complex64).cummax(0),
    "out dtype": lambda T: T.amax(T.ones(2), 0, out=T.empty(0, dtype=T.float64)),
    "all out": lambda T: T.all(T.ones(2), out=T.empty(())),
    "diff order": lambda T: T.ones(3).diff(-1),
    "diff of a scalar": lambda T: T.tensor(1.0).diff(),
    "logcumsumexp of integers": lambda T: T.arange(3).logcumsumexp(0),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    both(ERRORS[name])


def test_results_with_names():
    both(
        lambda T, x: [repr(r) for r in (x.max(1), x.sort(0), x.topk(1), x.aminmax(), x.mode(), x.cummin(1))],
        torch.tensor([[1.0, 2.0], [4.0, 3.0]]),
    )
    both(
        lambda T, x: (x.max(1).values, x.max(1)[1], x.sort().indices, x.aminmax().min, type(x.max(1)).__name__),
        torch.tensor([[1.0, 2.0], [4.0, 3.0]]),
    )


def test_the_spread_of_equal_numbers_is_exactly_zero():
    """So that its gradient is 0, not a quotient of rounding errors."""
    x = torch.full((3, 5), -1.9424, dtype=torch.float64, requires_grad=True)
    both(lambda T, x: (x.std(0), x.var(1)), x, exact=True)


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "sum", "prod"])
def test_sums_of_complex_numbers_in_a_real_type(name):
    """Their imaginary parts are lost without NumPy's warning, which would be an error here."""
    for dtype in ("float32", "float64", "int64"):
        found = []
        for T in (torch, readtorch):
            x, real = T.tensor([1 + 2j, 3 - 1j, 2j]), getattr(T, dtype)
            results = [getattr(x, name)(0, dtype=real)]
            if name.startswith("cum"):
                results.append(getattr(T, name)(x, 0, out=T.zeros(3, dtype=real)))
            found.append([(r.tolist(), str(r.dtype).rpartition(".")[2]) for r in results])
        assert found[0] == found[1], dtype


@pytest.mark.parametrize("dims", [(0,), (1,), (0, 1), (1, 2), (0, 2), (0, 1, 2)])
@pytest.mark.parametrize("reduce", ["sum", "mean", "norm"])
def test_sums_of_any_layout_are_exact(reduce, dims):
    """Float32 numbers that are added up one after the other lose four digits in a hundred thousand."""
    whole = torch.rand(61, 50, 70, generator=torch.Generator().manual_seed(0))
    for order in itertools.permutations(range(3)):
        for x in (
            whole.permute(order),
            whole[:, :49, :69].permute(order),
            whole[:, :1].expand(61, 50, 70).permute(order),
        ):
            ours = to_torch(reduced(to_readtorch(x), reduce, dims))
            exact = reduced(x.double(), reduce, dims)
            torch.testing.assert_close(ours.double(), exact, rtol=2e-6, atol=0)
            assert ours.stride() == reduced(x, reduce, dims).stride()


def reduced(x, reduce, dims):
    return x.square().sum(dims).sqrt() if reduce == "norm" and len(dims) > 2 else getattr(x, reduce)(dim=dims)
