"""Padding next to the reference: what op_db does not try (layouts, wide and negative borders, graphs, dtypes)."""

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.programs import same
from tests.reference import both
from tests.strategies import tensors

MODES = ("constant", "reflect", "replicate", "circular")


@st.composite
def padded(draw):
    dims = draw(st.integers(1, 3))
    shape = draw(st.lists(st.integers(1, 5), min_size=dims + 1, max_size=dims + 2))
    return draw(tensors(tuple(shape), torch.float64, requires_grad=True)), draw(
        st.lists(st.integers(-2, 5), min_size=2 * dims, max_size=2 * dims)
    )


def covers_itself(shape, pad):
    """Whether a border is wider than what a negative border beside it leaves of the dimension. (Undefined in PyTorch.)"""
    pairs = zip(reversed(shape), pad[::2], pad[1::2])
    return any(min(a, b) < 0 < max(a, b) and max(a, b) > n + min(a, b) for n, a, b in pairs)


@pytest.mark.parametrize("mode", MODES)
@settings(max_examples=60, deadline=None)
@given(padded())
def test_any_shape_and_border(mode, case):
    x, pad = case
    if mode == "circular":
        assume(not covers_itself(x.shape, pad))
    both(lambda T, x: T.nn.functional.pad(x, pad, mode), x, grad=2)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_many_images(mode, layout):
    """Enough of them for the compiled loop."""
    x = torch.randn(4, 8, 16, 15).contiguous(memory_format=layout).requires_grad_()
    both(lambda T, x: T.nn.functional.pad(x, (3, 0, 2, 5), mode), x, exact=mode in MODES[:1])


def test_a_constant_around_many_images():
    both(lambda T, x: T.nn.functional.pad(x, (1, 2, 3, 0), value=-1.5), torch.randn(3, 5, 20, 20))
    both(lambda T, x: T.nn.functional.pad(x, (1, 2), value=-1.5), torch.randn(30, 200))


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int64, torch.bfloat16, torch.complex64])
def test_dtypes(dtype):
    x = torch.arange(24).reshape(2, 3, 4).to(dtype)
    for mode in MODES:
        both(lambda T, x: T.nn.functional.pad(x, (1, 2, 1, 0), mode), x, versions=mode != "circular")
    both(lambda T, x: T.constant_pad_nd(x, (1, -1, 2), 3), x)
    both(lambda T, x: T.constant_pad_nd(x, (1, -1), 3), x)


def test_refusals():
    def program(T, show):
        F, x = T.nn.functional, T.zeros(2, 3, 4)
        for mode in MODES:
            for pad in ((4, 0), (5, 0), (-5, 0), (-3, 0, 0, -4), (1,), (1,) * 8, (1,) * 6, (), (-2, -2)):
                show.error(lambda: F.pad(x, pad, mode))
            show.error(lambda: F.pad(T.zeros(2, 0, 4), (1, 1), mode))
            show.error(lambda: F.pad(x[0, 0], (1, 1), mode))
        show.error(lambda: F.pad(x, (1, 1), "reflect", 2.0))
        show.error(lambda: F.pad(x, (1, 1), "mirror"))
        show.error(lambda: F.pad(x, 1))
        show.error(lambda: F.pad(x, (1.5, 1)))
        show.error(lambda: F.pad(x, (1, "a")))
        show.error(lambda: F.pad(x.byte(), (1, 1), value=300.0))
        show.error(lambda: T.constant_pad_nd(x, (1,) * 8))
        show.error(lambda: T._C._nn.reflection_pad2d(x, (1, 1)))
        show.error(lambda: T._C._nn.replication_pad1d(x, (1, 1, 1)))

    same(program)


def test_circles_leave_a_graph_of_slices():
    def program(T, show):
        x = T.randn(1, 2, 3, requires_grad=True)
        waiting = [T.nn.functional.pad(x, (1, 2), "circular").grad_fn]
        while waiting:
            node = waiting.pop(0)
            if node is not None:
                show(node.name())
                waiting += [following for following, _ in node.next_functions]

    same(program)
