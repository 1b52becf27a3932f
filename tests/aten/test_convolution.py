"""Convolutions against the reference: both ways to compute, geometries, graphs, second derivatives, errors."""

import itertools

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import readtorch as rt
from readtorch.aten.native.convolution import pixel_rows
from readtorch.aten.native.convolution.pixel_rows import plan_of
from tests.reference import assert_close, both, to_readtorch


@st.composite
def convolutions(draw):
    """Input, weight, bias and settings that fit together, direct or transposed, of 1 to 3 dimensions."""
    dim = draw(st.integers(1, 3))

    def numbers(low, high):
        return tuple(draw(st.integers(low, high)) for _ in range(dim))

    groups = draw(st.sampled_from([1, 1, 2, 3]))
    channels, results = (groups * draw(st.sampled_from([1, 2, 17])) for _ in range(2))
    stride, dilation, padding, kernel, size = (
        numbers(1, 3),
        numbers(1, 2),
        numbers(0, 2),
        numbers(1, 3),
        numbers(1, 6),
    )
    images, transposed = draw(st.integers(1, 3)), draw(st.booleans())
    extra = tuple(draw(st.integers(0, max(s, d) - 1)) if transposed else 0 for s, d in zip(stride, dilation))
    if transposed:
        out = [
            (n - 1) * s - 2 * p + d * (k - 1) + e + 1
            for n, s, p, d, k, e in zip(size, stride, padding, dilation, kernel, extra)
        ]
    else:
        out = [n + 2 * p - d * (k - 1) for n, p, d, k in zip(size, padding, dilation, kernel)]
    assume(min(out) > 0)
    generator = torch.Generator().manual_seed(draw(st.integers(0, 99)))

    def normal(*shape):
        return torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_()

    x = normal(images, channels, *size)
    w = normal(*((channels, results // groups) if transposed else (results, channels // groups)), *kernel)
    return x, w, normal(results), (stride, padding, dilation, transposed, extra, groups)


def convolve(T, x, w, b, settings):
    return T.convolution(x, w, b, *settings)


@settings(max_examples=25, deadline=None)
@given(convolutions())
def test_products_of_taps(case):
    x, w, b, geometry = case
    both(convolve, x, w, b, geometry, grad=2)


@settings(max_examples=60, deadline=None)
@given(convolutions())
def test_compiled_products(case):
    """The same numbers from the compiled loops, which take problems this small only when told to."""
    x, w, b, geometry = case
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pixel_rows, "WORTH", -1)
        both(convolve, x, w, b, geometry)


# What the compiled loops choose between: images, channels, results, size, kernel, stride, padding, groups
KINDS = {
    "rows of pixels": (5, 32, 48, 12, 3, 1, 1, 1),
    "a stride": (3, 16, 16, 13, 3, 2, 1, 1),
    "large matrices": (2, 192, 192, 24, 3, 1, 1, 1),
    "few channels": (4, 3, 32, 17, 3, 1, 1, 1),
    "few rows": (1, 64, 64, 7, 3, 1, 1, 1),
    "one tap": (4, 40, 24, 15, 1, 1, 0, 1),
    "one tap, a stride": (4, 40, 24, 15, 1, 2, 0, 1),
    "depthwise": (3, 24, 24, 14, 3, 1, 1, 24),
    "depthwise, a stride": (3, 24, 24, 15, 5, 2, 2, 24),
    "groups": (3, 24, 36, 14, 3, 1, 1, 3),
}


def inputs(kind, requires_grad=True):
    images, channels, results, size, kernel, stride, padding, groups = KINDS[kind]
    generator = torch.Generator().manual_seed(1)

    def normal(*shape):
        return torch.randn(shape, generator=generator).requires_grad_(requires_grad)

    x, w = normal(images, channels, size, size), normal(results, channels // groups, kernel, kernel)
    return x, w, normal(results), stride, padding, 1, groups


@pytest.mark.parametrize("kind", KINDS)
def test_kinds(kind):
    both(lambda T, *arguments: T.conv2d(*arguments), *inputs(kind), rtol=1e-4, atol=2e-3)


@pytest.mark.parametrize("kind", ["rows of pixels", "few channels", "depthwise"])
def test_threads_do_not_change_the_result(kind):
    def run():
        arguments = to_readtorch(inputs(kind))
        result = rt.conv2d(*arguments)
        return result, *rt.autograd.grad(result.sum(), arguments[:3])

    threads = rt.get_num_threads()
    try:
        rt.set_num_threads(1)
        expected = run()
        rt.set_num_threads(2)
        for a, b in zip(run(), expected):
            assert rt.allclose(a, b, rtol=1e-4, atol=1e-3)
    finally:
        rt.set_num_threads(threads)


def test_plan_counts_every_multiplication_once():
    """A 3x3 kernel with padding 1 on a 4x4 image: 100 of its 144 multiplications are not with padding."""
    plan = plan_of((4, 4), (3, 3), (4, 4), (1, 1), (1, 1), (1, 1))
    assert plan.stored[:, 3].sum() == 100
    assert len(plan.stored) < len(list(itertools.product(range(9), range(4))))  # whole lines are joined


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.int64, torch.uint8, torch.complex64])
def test_other_dtypes(dtype):
    generator = torch.Generator().manual_seed(0)
    shapes = (2, 4, 6, 6), (6, 2, 3, 3)
    x, w = (torch.randn(shape, generator=generator).mul(4).to(dtype) for shape in shapes)
    both(lambda T, x, w: T.conv2d(x, w, padding=1, groups=2), x, w)


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_complex_gradients(dtype):
    x, w, b = (torch.randn(shape, dtype=dtype, requires_grad=True) for shape in ((2, 3, 5), (4, 3, 3), (4,)))
    both(lambda T, x, w, b: T.conv1d(x, w, b, stride=2, padding=1), x, w, b, grad=2)
    both(lambda T, x, w, b: T.conv1d(x, w, b, padding="same"), x, w, b)


@pytest.mark.parametrize(
    "name, x, w",
    [
        ("conv1d", (3, 9), (4, 3, 3)),
        ("conv2d", (3, 9, 8), (4, 3, 3, 2)),
        ("conv3d", (3, 4, 5, 6), (4, 3, 1, 2, 3)),
        ("conv_transpose1d", (3, 9), (3, 4, 3)),
        ("conv_transpose2d", (3, 9, 8), (3, 4, 3, 2)),
        ("conv2d", (0, 3, 9, 8), (4, 3, 3, 2)),
        ("conv2d", (2, 0, 9, 8), (4, 0, 3, 3)),
        ("conv_transpose2d", (0, 3, 9, 8), (3, 4, 3, 2)),
    ],
)
def test_unbatched_and_empty(name, x, w):
    x, w = torch.randn(x, requires_grad=True), torch.randn(w, requires_grad=True)
    both(lambda T, x, w: getattr(T, name)(x, w), x, w)


@pytest.mark.filterwarnings("ignore:Using padding='same'")
@pytest.mark.parametrize("kernel, dilation", [((3, 3), 1), ((2, 3), 1), ((4, 5), (3, 2)), ((2, 2), 2)])
def test_padding_by_name(kernel, dilation):
    x, w = torch.randn(2, 3, 9, 8, requires_grad=True), torch.randn(4, 3, *kernel, requires_grad=True)
    for padding in ("same", "valid"):
        both(lambda T, x, w: T.conv2d(x, w, padding=padding, dilation=dilation), x, w)


@pytest.mark.parametrize("which", ["input", "weight", "both"])
def test_channels_last(which):
    x, w = torch.randn(2, 4, 6, 5), torch.randn(8, 4, 3, 3)
    x = x if which == "weight" else x.to(memory_format=torch.channels_last)
    w = w if which == "input" else w.to(memory_format=torch.channels_last)
    both(lambda T, x, w: T.conv2d(x, w), x.requires_grad_(), w.requires_grad_())
    both(lambda T, x, w: T.conv_transpose2d(x, w), x, w[:4].detach())


def test_names_saved_by_the_node():
    def names(T, x, w):
        node = T.conv2d(x, w, padding=1).grad_fn
        return node._saved_stride, node._saved_padding, node._saved_transposed, node._saved_bias_sym_sizes_opt

    both(names, torch.randn(1, 2, 4, 4, requires_grad=True), torch.randn(3, 2, 3, 3))


def test_conv_tbc():
    x, w, b = (torch.randn(shape, requires_grad=True) for shape in ((7, 2, 3), (3, 3, 5), (5,)))
    for pad in (0, 1, 4):
        both(lambda T, x, w, b: T.conv_tbc(x, w, b, pad), x, w, b)
    for wrong in ((x[0], w, b), (x, w[0], b), (x, w, w), (x, w[:, :2], b), (x, w, b[:4]), (x[:1], w, b)):
        both(lambda T, x, w, b: T.conv_tbc(x, w, b), *wrong)


X, W, B = torch.randn(2, 4, 5, 5), torch.randn(6, 4, 3, 3), torch.randn(6)
V = torch.randn(4, 2, 3, 3)  # the weight of a transposed convolution
REFUSED = {
    "dimensions": lambda T, X, W, B, V: T.conv2d(X[0, 0], W),
    "too many": lambda T, X, W, B, V: T.conv1d(X, W),
    "weight of a vector": lambda T, X, W, B, V: T.conv2d(X, W[0, 0]),
    "weight": lambda T, X, W, B, V: T.conv2d(X, W[:, :, 0]),
    "channels": lambda T, X, W, B, V: T.conv2d(X, W[:, :3]),
    "bias": lambda T, X, W, B, V: T.conv2d(X, W, B[:5]),
    "bias matrix": lambda T, X, W, B, V: T.conv2d(X, W, B[None]),
    "groups": lambda T, X, W, B, V: T.conv2d(X, W, groups=4),
    "groups 7": lambda T, X, W, B, V: T.conv2d(X, W, groups=7),
    "groups 0": lambda T, X, W, B, V: T.conv2d(X, W, groups=0),
    "padding": lambda T, X, W, B, V: T.conv2d(X, W, padding=-1),
    "stride": lambda T, X, W, B, V: T.conv2d(X, W, stride=0),
    "dilation": lambda T, X, W, B, V: T.conv2d(X, W, dilation=-1),
    "kernel": lambda T, X, W, B, V: T.conv2d(X, W, dilation=3),
    "lengths": lambda T, X, W, B, V: T.conv2d(X, W, stride=(1, 1, 1)),
    "name": lambda T, X, W, B, V: T.conv2d(X, W, padding="full"),
    "same": lambda T, X, W, B, V: T.conv2d(X, W, padding="same", stride=2),
    "dtype": lambda T, X, W, B, V: T.conv2d(X, W.double()),
    "dtype of bias": lambda T, X, W, B, V: T.conv2d(X, W, B.double()),
    "doubles": lambda T, X, W, B, V: T.conv2d(X.double(), W),
    "complex": lambda T, X, W, B, V: T.conv2d(X + 0j, W),
    "bools": lambda T, X, W, B, V: T.conv2d(X > 0, W > 0),
    "ints": lambda T, X, W, B, V: T.conv_transpose2d(X.int(), V.int()),
    "nothing": lambda T, X, W, B, V: T.conv2d(X[:, :, :0], W, padding=2),
    "transposed channels": lambda T, X, W, B, V: T.conv_transpose2d(X, V[:3]),
    "transposed bias": lambda T, X, W, B, V: T.conv_transpose2d(X, V, B),
    "output padding": lambda T, X, W, B, V: T.conv_transpose2d(X, V, output_padding=1),
    "negative": lambda T, X, W, B, V: T.conv_transpose2d(X, V, output_padding=-1),
    "no room": lambda T, X, W, B, V: T.conv_transpose2d(X.double(), V.double(), padding=9),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case):
    error, _ = both(REFUSED[case], X, W, B, V)
    assert isinstance(error, Exception)


def test_double_backward_of_floats():
    """The graph of the second derivative runs through the compiled loops, too."""
    x, w, b, *rest = inputs("rows of pixels")
    both(lambda T, x, w, b: T.conv2d(x[:2, :, :8, :8], w, b, *rest), x, w, b, grad=2, rtol=1e-3, atol=5e-2)


def test_assert_close_would_notice():
    x, w, *_ = to_readtorch(inputs("few rows", requires_grad=False))
    with pytest.raises(AssertionError):
        assert_close(rt.conv2d(x, w), torch.conv2d(*inputs("few rows", requires_grad=False)[:2]) + 0.1)
