"""A gradient may broadcast to the sizes of what it is the gradient of, but not beyond them."""

import pytest

from tests.reference import both

SIZES = [(2, 2), (1, 2), (2,), (), (2, 3), (4,), (3, 2), (1, 2, 2)]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("own", [(2, 4), (1, 4)])
def test_glu(size, own):
    both(lambda T: T.ops.aten.glu_backward(T.ones(size), T.ones(own), -1))


@pytest.mark.parametrize("reduction", [0, 1])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("own", [(2, 2), (1, 2)])
def test_soft_margin_loss(size, own, reduction):
    both(
        lambda T: T.ops.aten.soft_margin_loss_backward(T.ones(size), T.ones(own), T.ones(own), reduction),
        versions=False,
    )
