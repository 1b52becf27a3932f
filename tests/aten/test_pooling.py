"""Pooling: windows of every shape, by NumPy and by compiled loops; graphs, formats, nan, empty inputs, errors."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from readtorch.aten.native.pooling import average
from readtorch.aten.native.pooling import max as maximum
from tests.programs import same
from tests.reference import both
from tests.test_graphs import graph_of

NEVER = 10**9
STUBS = (maximum.find_maxima, maximum.find_maxima_in_rows, maximum.put_back, average.average, average.distribute)


def loops_from(size, monkeypatch):
    """Let the compiled loops serve planes of so many elements."""
    for stub in STUBS:
        monkeypatch.setattr(stub, "from_size", size)


@pytest.fixture(params=[0, NEVER], ids=["loops", "numpy"])
def way(request, monkeypatch):
    """Both ways to pool: the loops are for large inputs, so the bar between them is moved."""
    loops_from(request.param, monkeypatch)


def numbers(*shape, dtype=torch.float64):
    return torch.randn(shape, dtype=torch.float64).to(dtype).requires_grad_()


def compare(function, *inputs, orders=2, **close):
    ours, theirs = both(function, *inputs, grad=orders, **close)
    results = (ours, theirs) if isinstance(theirs, torch.Tensor) else (ours[0], theirs[0])
    if results[1].grad_fn is not None:
        assert graph_of(results[0]) == graph_of(results[1])


@st.composite
def sliding(draw, dims):
    """Sizes of an input and the arguments of a pooling that fits it."""
    kernel, stride, padding, dilation, sizes = zip(
        *[draw(along_one_dimension(4 if dims == 3 else 7)) for _ in range(dims)]
    )
    return sizes, kernel, stride, padding, dilation, draw(st.booleans())


@st.composite
def along_one_dimension(draw, spare):
    kernel, dilation = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    padding = draw(st.integers(0, kernel // 2))
    # A window that begins in the padding must not step over the whole input: PyTorch would read outside of it.
    least = max(1, dilation * (kernel - 1) + 1 - 2 * padding, dilation + 1 if dilation > 1 else 1)
    return kernel, draw(st.integers(1, 3)), padding, dilation, draw(st.integers(least, least + spare))


BOTH_WAYS = [
    pytest.param(way, dims, id=f"{name} {dims}d")
    for name, way in (("loops", 0), ("numpy", NEVER))
    for dims in (1, 2, 3)
]


@pytest.mark.parametrize("from_size, dims", BOTH_WAYS)
def test_max_pooling_finds_the_same_places(from_size, dims, monkeypatch):
    loops_from(from_size, monkeypatch)

    @settings(max_examples=20, deadline=None)
    @given(sliding(dims), st.integers(0, 9))
    def check(arguments, seed):
        sizes, kernel, stride, padding, dilation, ceil_mode = arguments
        x = torch.from_numpy(np.random.RandomState(seed).randint(0, 4, (2, 2, *sizes)).astype(np.float32))  # with ties
        both(
            lambda T, x: getattr(T.nn.functional, f"max_pool{dims}d")(
                x, kernel, stride, padding, dilation, ceil_mode, return_indices=True
            ),
            x.requires_grad_(),
            exact=True,
        )
        both(lambda T, x: getattr(T, f"max_pool{dims}d")(x, kernel, stride, padding, dilation, ceil_mode), x.detach())

    check()


@pytest.mark.parametrize("from_size, dims", BOTH_WAYS)
def test_averages(from_size, dims, monkeypatch):
    loops_from(from_size, monkeypatch)

    @settings(max_examples=20, deadline=None)
    @given(sliding(dims), st.booleans(), st.sampled_from([None, 3, -2]))
    def check(arguments, count_include_pad, divisor_override):
        sizes, kernel, stride, padding, _, ceil_mode = arguments
        x = torch.randn(2, 2, *sizes, requires_grad=True)
        rest = (count_include_pad,) if dims == 1 else (count_include_pad, divisor_override)
        both(lambda T, x: getattr(T.nn.functional, f"avg_pool{dims}d")(x, kernel, stride, padding, ceil_mode, *rest), x)

    check()


@pytest.mark.parametrize("from_size, dims", BOTH_WAYS)
def test_adaptive_windows_share_out_the_input(from_size, dims, monkeypatch):
    loops_from(from_size, monkeypatch)

    @settings(max_examples=20, deadline=None)
    @given(
        st.lists(st.integers(1, 9), min_size=dims, max_size=dims),
        st.lists(st.integers(1, 7), min_size=dims, max_size=dims),
    )
    def check(sizes, outputs):
        x = torch.randn(2, 2, *sizes, requires_grad=True)
        both(lambda T, x: getattr(T.nn.functional, f"adaptive_avg_pool{dims}d")(x, outputs), x)
        both(lambda T, x: getattr(T.nn.functional, f"adaptive_max_pool{dims}d")(x, outputs, return_indices=True), x)

    check()


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("shape", [(2, 3, 9, 8), (1, 2, 6, 13), (3, 1, 2, 2)])
def test_the_loops_for_squares_two_apart(size, shape, monkeypatch):
    loops_from(0, monkeypatch)
    for padding in (0, 1):
        for ceil_mode in (False, True):
            both(
                lambda T, x: T.nn.functional.max_pool2d(x, size, 2, padding, 1, ceil_mode, return_indices=True),
                numbers(*shape, dtype=torch.float32),
                exact=True,
            )


POOLS = {
    "max 1d": (lambda T, x: T.nn.functional.max_pool1d(x, 2), (2, 3, 7)),
    "max 2d": (lambda T, x: T.nn.functional.max_pool2d(x, 3, 2, 1, return_indices=True), (2, 3, 7, 6)),
    "max 3d": (lambda T, x: T.nn.functional.max_pool3d(x, 2, return_indices=True), (2, 2, 4, 5, 4)),
    "avg 1d": (lambda T, x: T.nn.functional.avg_pool1d(x, 3, 2, 1), (2, 3, 7)),
    "avg 2d": (lambda T, x: T.nn.functional.avg_pool2d(x, 3, 2, 1, True, False), (2, 3, 7, 6)),
    "avg 3d": (lambda T, x: T.nn.functional.avg_pool3d(x, 2), (2, 2, 4, 5, 4)),
    "adaptive avg 1d": (lambda T, x: T.nn.functional.adaptive_avg_pool1d(x, 3), (2, 3, 7)),
    "adaptive avg 2d": (lambda T, x: T.nn.functional.adaptive_avg_pool2d(x, (3, None)), (2, 3, 7, 6)),
    "adaptive avg 3d": (lambda T, x: T.nn.functional.adaptive_avg_pool3d(x, 2), (2, 2, 4, 5, 4)),
    "a mean 1d": (lambda T, x: T.nn.functional.adaptive_avg_pool1d(x, 1), (2, 3, 7)),
    "a mean 2d": (lambda T, x: T.nn.functional.adaptive_avg_pool2d(x, 1), (2, 3, 7, 6)),
    "a mean 3d": (lambda T, x: T.nn.functional.adaptive_avg_pool3d(x, 1), (2, 2, 4, 5, 4)),
    "adaptive max 1d": (lambda T, x: T.nn.functional.adaptive_max_pool1d(x, 3), (2, 3, 7)),
    "adaptive max 2d": (lambda T, x: T.nn.functional.adaptive_max_pool2d(x, 3, True), (2, 3, 7, 6)),
    "adaptive max 3d": (lambda T, x: T.nn.functional.adaptive_max_pool3d(x, 2, True), (2, 2, 4, 5, 4)),
    "lp 1d": (lambda T, x: T.nn.functional.lp_pool1d(x, 3, 2), (2, 3, 7)),
    "lp 2d": (lambda T, x: T.nn.functional.lp_pool2d(x, 2.0, (2, 3), 1), (2, 3, 7, 6)),
    "lp 3d": (lambda T, x: T.nn.functional.lp_pool3d(x, 2, 2), (2, 2, 4, 5, 4)),
    "lp infinite": (lambda T, x: T.nn.functional.lp_pool2d(x, float("inf"), 2), (2, 3, 7, 6)),
    "lp -infinite": (lambda T, x: T.nn.functional.lp_pool1d(x, -float("inf"), 2), (2, 3, 7)),
    "fractional 2d": (
        lambda T, x: T.nn.functional.fractional_max_pool2d(x, 2, (3, 2), return_indices=True),
        (2, 3, 7, 6),
    ),
    "fractional 3d": (
        lambda T, x: T.nn.functional.fractional_max_pool3d(x, 2, output_ratio=(0.5, 0.5, 0.5)),
        (2, 2, 4, 5, 4),
    ),
    "max and back 1d": (
        lambda T, x: T.nn.functional.max_unpool1d(*T.nn.functional.max_pool1d(x, 2, return_indices=True), 2),
        (2, 3, 8),
    ),
    "max and back 2d": (
        lambda T, x: T.nn.functional.max_unpool2d(
            *T.nn.functional.max_pool2d(x, 2, return_indices=True), 2, output_size=(7, 7)
        ),
        (2, 3, 7, 7),
    ),
    "max and back 3d": (
        lambda T, x: T.nn.functional.max_unpool3d(*T.nn.functional.max_pool3d(x, 2, return_indices=True), 2),
        (2, 2, 4, 6, 4),
    ),
}


@pytest.mark.parametrize("name", POOLS)
def test_graph_and_two_orders_of_gradients(name, way):
    function, shape = POOLS[name]
    compare(function, numbers(*shape))


@pytest.mark.parametrize("name", POOLS)
def test_without_a_batch(name):
    function, shape = POOLS[name]
    both(function, numbers(*shape[1:]))


@pytest.mark.parametrize("name", [n for n in POOLS if "lp" not in n])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.int64, torch.bool])
def test_other_types(name, dtype):
    function, shape = POOLS[name]
    both(function, (torch.randn(shape) * 4).to(dtype), grad=False, rtol=0.01, atol=0.01)


@pytest.mark.parametrize("name", [n for n in POOLS if "2d" in n or "3d" in n])
def test_channels_last_stays(name):
    function, shape = POOLS[name]
    layout = torch.channels_last if len(shape) == 4 else torch.channels_last_3d
    both(function, torch.randn(shape).to(memory_format=layout).requires_grad_(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", POOLS)
def test_an_empty_batch(name):
    function, shape = POOLS[name]
    both(function, torch.randn(0, *shape[1:]))


@pytest.mark.parametrize("name", [n for n in POOLS if "lp" not in n])
def test_empty_channels_and_planes(name):
    function, shape = POOLS[name]
    for dim in range(1, len(shape)):
        both(function, torch.randn(*shape[:dim], 0, *shape[dim + 1 :]))


@pytest.mark.parametrize("odd", [float("nan"), -float("inf")])
@pytest.mark.parametrize("pool", ["max_pool2d", "adaptive_max_pool2d", "fractional_max_pool2d"])
def test_planes_full_of_nan_and_of_minus_infinity(pool, odd, way):
    x = torch.full((1, 2, 5, 6), odd)
    x[0, 0, 2, 3] = 1
    size = {"max_pool2d": (3, 1, 1), "adaptive_max_pool2d": (3,), "fractional_max_pool2d": (2, 3)}[pool]
    both(lambda T, x: getattr(T.nn.functional, pool)(x, *size, return_indices=True), x)


def test_out():
    x, y = torch.randn(2, 3, 6, 6), torch.randn(2, 3, 4, 4, 4)
    for call, t in (
        (lambda T, t, *out: T._C._nn.max_pool2d_with_indices(t, 2, out=out), x),
        (lambda T, t, *out: T._C._nn.max_pool3d_with_indices(t, 2, out=out), y),
        (lambda T, t, *out: T._C._nn.adaptive_max_pool2d(t, 2, out=out), x),
    ):
        both(call, t, torch.empty(0), torch.empty(0, dtype=torch.int64), alias=False)
        both(call, t, torch.empty(0, dtype=torch.float64), torch.empty(0, dtype=torch.int64))
        both(call, t, torch.empty(0), torch.empty(0, dtype=torch.int32))
    for call in (
        lambda T, t, out: T._C._nn.avg_pool2d(t, 2, out=out),
        lambda T, t, out: T._C._nn.adaptive_avg_pool2d(t, 2, out=out),
    ):
        both(call, x, torch.empty(0), alias=False)
        both(call, x, torch.empty(0, dtype=torch.float64))


WRONG = [
    lambda F, x: F.max_pool2d(x, 0),
    lambda F, x: F.max_pool2d(x, -1),
    lambda F, x: F.max_pool2d(x, 2, 0),
    lambda F, x: F.max_pool2d(x, 2, -1),
    lambda F, x: F.max_pool2d(x, 2, 2, -1),
    lambda F, x: F.max_pool2d(x, 2, 2, 2),
    lambda F, x: F.max_pool2d(x, 2, 2, 0, 0),
    lambda F, x: F.max_pool2d(x, 7),
    lambda F, x: F.max_pool2d(x, (1, 2, 3)),
    lambda F, x: F.max_pool2d(x, 2, (1, 2, 3)),
    lambda F, x: F.max_pool2d(x, 2, 2, 0, (1, 2, 3)),
    lambda F, x: F.max_pool2d(x[0, 0], 2),
    lambda F, x: F.avg_pool2d(x, 2, divisor_override=0),
    lambda F, x: F.avg_pool2d(x[0, 0], 2),
    lambda F, x: F.avg_pool2d(x, 2, 2, (1, 2, 3)),
    lambda F, x: F.max_pool3d(x, (1, 2)),
    lambda F, x: F.avg_pool3d(x, (1, 2)),
    lambda F, x: F.avg_pool3d(x, 7),
    lambda F, x: F.max_pool3d(x, 2, 2, (2, 0, 0), 3),
    lambda F, x: F.max_pool1d(x, 2),
    lambda F, x: F.max_pool1d(x[0], 0),
    lambda F, x: F.max_pool1d(x[0], 2, -1),
    lambda F, x: F.max_pool1d(x[0], 2, 1, 2),
    lambda F, x: F.max_pool1d(x[0], 9),
    lambda F, x: F.max_pool1d(x[0], (1, 2)),
    lambda F, x: F.max_pool1d(x[0], 2, return_indices=True, stride=(1, 2)),
    lambda F, x: F.avg_pool1d(x, 2),
    lambda F, x: F.avg_pool1d(x[0], (1, 2)),
    lambda F, x: F.adaptive_avg_pool2d(x, -1),
    lambda F, x: F.adaptive_avg_pool2d(x, (2,)),
    lambda F, x: F.adaptive_avg_pool3d(x, (1, -2, 3)),
    lambda F, x: F.adaptive_max_pool2d(x, -1),
    lambda F, x: F.adaptive_max_pool2d(x, (2,)),
    lambda F, x: F.adaptive_max_pool2d(x[0, 0], 2),
    lambda F, x: F.adaptive_avg_pool1d(x, 2),
    lambda F, x: F.adaptive_max_pool1d(x[0], (1, 2)),
    lambda F, x: F.fractional_max_pool2d(x, 5, 3),
    lambda F, x: F.fractional_max_pool2d(x, 2),
    lambda F, x: F.fractional_max_pool2d(x, 2, (2,)),
    lambda F, x: F.fractional_max_pool2d(x, 2, 2, _random_samples=x[0]),
    lambda F, x: F.fractional_max_pool2d(x, 2, 2, _random_samples=x[:, :2, 0]),
    lambda F, x: F.fractional_max_pool3d(x, 5, 2),
    lambda F, x: F.fractional_max_pool2d(x, 2, output_ratio=(0.5, 0.5, 0.5)),
    lambda F, x: F.max_unpool2d(x, x, 2),
    lambda F, x: F.max_unpool2d(x, x.long() + 999, 2),
    lambda F, x: F.max_unpool2d(x, x[:1].long(), 2),
    lambda F, x: F.max_unpool2d(x, x.long(), 2, output_size=(20, 20)),
    lambda F, x: F.max_unpool2d(x, x.long(), 2, padding=9),
    lambda F, x: F.max_unpool2d(x[0, 0], x[0, 0].long(), 2),
    lambda F, x: F.max_unpool3d(x, x.long() - 999, 2),
]


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_refusals(number):
    ours, theirs = both(lambda T, x: WRONG[number](T.nn.functional, x), torch.rand(2, 3, 6, 6))
    assert isinstance(theirs, Exception)


def test_random_windows_come_from_the_seed():
    for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
        x = torch.randn(2, 3, 17, 23).to(dtype)
        both(
            lambda T, x: T.nn.functional.fractional_max_pool2d(x, 2, (7, 11), return_indices=True),
            x,
            seed=7,
            exact=True,
        )
        y = torch.randn(1, 2, 9, 8, 11).to(dtype)
        both(
            lambda T, x: T.nn.functional.fractional_max_pool3d(x, (2, 3, 1), (5, 4, 7), return_indices=True),
            y,
            seed=8,
            exact=True,
        )


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("rows", [3, 4000], ids=["by NumPy", "by loops"])
@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_every_window_on_short_rows(size, rows, grad):
    """Windows that begin before a row and end behind it; later rows hold larger numbers, which no window may see.

    The backward of such windows ends PyTorch's process.
    """
    numbers = torch.arange(2.0 * rows * size).reshape(2, rows, size).requires_grad_(grad)
    for kernel, stride, dilation in itertools.product(range(1, 8), (1, 2, 3), (1, 2)):
        for padding in range(kernel // 2 + 1):
            if size + 2 * padding >= dilation * (kernel - 1) + 1:
                settings = kernel, stride, padding, dilation
                both(lambda T, x: T.nn.functional.max_pool1d(x, *settings).detach(), numbers)
                both(lambda T, x: T.nn.functional.avg_pool1d(x, kernel, stride, padding).detach(), numbers)
            if size + 2 * padding >= kernel:
                window = (1, kernel), (1, stride), (0, padding)
                both(lambda T, x: T.nn.functional.max_pool2d(x[None], *window).detach(), numbers)


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_volumes_that_lie_like_images(device):
    """Four dimensions are channels of volumes here, whatever order of dimensions they would have as images."""

    def program(T, show):
        F = T.nn.functional
        for shape in ((2, 3, 4, 5), (3, 4, 3, 5), (2, 2, 3, 3)):
            x = T.ones(shape, device=device).contiguous(memory_format=T.channels_last)
            for call in (
                lambda: F.max_pool3d(x, 2),
                lambda: F.max_pool3d(x, 3),
                lambda: F.adaptive_avg_pool3d(x, 1),
                lambda: F.adaptive_avg_pool3d(x, 2),
                lambda: F.avg_pool3d(x, 2),
            ):
                try:
                    y = call()
                    show(y.shape, y.stride())
                except RuntimeError as error:
                    show(error if device == "cpu" else "refused")

    same(program)
