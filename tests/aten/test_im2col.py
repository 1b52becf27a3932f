"""unfold, fold and the shuffles next to the reference: geometry at random, layouts, refusals."""

import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.programs import same
from tests.reference import both
from tests.strategies import tensors

PAIRS = st.tuples(st.integers(1, 3), st.integers(1, 3))


@st.composite
def windows(draw):
    shape = draw(st.tuples(st.integers(0, 2), st.integers(1, 3), st.integers(3, 7), st.integers(3, 7)))
    padding = draw(st.tuples(st.integers(0, 2), st.integers(0, 2)))
    return shape, [draw(PAIRS), draw(PAIRS), padding, draw(PAIRS)]


@settings(max_examples=60, deadline=None)
@given(st.data(), windows())
def test_windows(data, case):
    shape, (kernel, dilation, padding, stride) = case
    counts = [
        (n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, d, p, s in zip(shape[2:], kernel, dilation, padding, stride)
    ]
    assume(min(counts) > 0)
    image = data.draw(tensors(shape, torch.float64, requires_grad=True))
    both(lambda T, x: T.nn.functional.unfold(x, kernel, dilation, padding, stride), image, grad=2)
    columns = torch.randn(shape[0], shape[1] * kernel[0] * kernel[1], counts[0] * counts[1], dtype=torch.float64)
    both(
        lambda T, x: T.nn.functional.fold(x, shape[2:], kernel, dilation, padding, stride),
        columns.requires_grad_(),
        grad=2,
    )


def test_without_a_batch_and_other_types():
    x = torch.arange(40.0).reshape(2, 4, 5)
    for dtype in (torch.float32, torch.bool, torch.bfloat16, torch.complex64, torch.int64):
        both(lambda T, x: T.nn.functional.unfold(x, 2, padding=1), x.to(dtype))
        both(lambda T, x: T.nn.functional.fold(x, (3, 3), 2), x.to(dtype).reshape(8, 5)[:, :4])


def test_refusals_of_windows():
    def program(T, show):
        F, x, columns = T.nn.functional, T.zeros(1, 2, 4, 5), T.zeros(1, 8, 12)
        for wrong in (
            dict(kernel_size=0),
            dict(kernel_size=9),
            dict(kernel_size=(2, 2, 2)),
            dict(kernel_size=2.0),
            dict(kernel_size=2, stride=0),
            dict(kernel_size=2, padding=-1),
            dict(kernel_size=2, dilation=0),
        ):
            show.error(lambda: F.unfold(x, **wrong))
            show.error(lambda: F.fold(columns, (4, 5), **wrong))
        show.error(lambda: F.unfold(x[0, 0], 2))
        show.error(lambda: F.unfold(x[:, :0], 2))
        show.error(lambda: F.fold(columns, (3, 5), 2))
        show.error(lambda: F.fold(columns, (4, 5, 6), 2))
        show.error(lambda: F.fold(columns[:, :7], (4, 5), 2))
        show.error(lambda: F.fold(x, (4, 5), 2))

    same(program)


def test_shuffles():
    for layout in (torch.contiguous_format, torch.channels_last):
        x = torch.randn(2, 8, 4, 6, dtype=torch.float64).contiguous(memory_format=layout).requires_grad_()
        for name in ("pixel_shuffle", "pixel_unshuffle", "channel_shuffle"):
            both(lambda T, x: getattr(T.nn.functional, name)(x, 2), x, grad=2)
        both(lambda T, x: T.pixel_unshuffle(x[:, :, :0], 2), x, grad=False)


def test_refusals_of_shuffles():
    def program(T, show):
        for name in ("pixel_shuffle", "pixel_unshuffle", "channel_shuffle", "native_channel_shuffle"):
            function = getattr(T, name)
            show.error(lambda: function(T.zeros(2, 3), 2))
            show.error(lambda: function(T.zeros(2, 9, 3, 3), 2))
            show.error(lambda: function(T.zeros(2, 8, 4, 3), 2))
            show.error(lambda: function(T.zeros(2, 8, 4, 4), 0))
            show.error(lambda: function(T.zeros(2, 8, 4, 4), 2.0))
        x = T.zeros(1, 4, 2, 2, requires_grad=True)
        show(T.native_channel_shuffle(x, 2).grad_fn.name())
        show.error(lambda: T.native_channel_shuffle(x, 2).sum().backward())

    same(program)
