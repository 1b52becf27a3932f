"""Backward kernels read by the gradient's sizes: a gradient of other sizes is refused."""

import pytest
import torch

import readtorch as rt

X2, X3 = (1, 2, 4, 4), (1, 2, 4, 4, 4)
POOLED = ([2, 2], [2, 2], [0, 0])
POOLED3 = ([2, 2, 2], [2, 2, 2], [0, 0, 0])


def indices(T, shape):
    return T.zeros(shape, dtype=T.int64)


# The call, given the gradient, and the gradient's right shape.
BACKWARDS = {
    "max_pool2d": (
        lambda T, g: T.ops.aten.max_pool2d_with_indices_backward(
            g, T.ones(X2), *POOLED, [1, 1], False, indices(T, (1, 2, 2, 2))
        ),
        (1, 2, 2, 2),
    ),
    "max_pool3d": (
        lambda T, g: T.ops.aten.max_pool3d_with_indices_backward(
            g, T.ones(X3), *POOLED3, [1, 1, 1], False, indices(T, (1, 2, 2, 2, 2))
        ),
        (1, 2, 2, 2, 2),
    ),
    "avg_pool2d": (
        lambda T, g: T.ops.aten.avg_pool2d_backward(g, T.ones(X2), *POOLED, False, True, None),
        (1, 2, 2, 2),
    ),
    "avg_pool3d": (
        lambda T, g: T.ops.aten.avg_pool3d_backward(g, T.ones(X3), *POOLED3, False, True, None),
        (1, 2, 2, 2, 2),
    ),
    "adaptive_max_pool2d": (
        lambda T, g: T.ops.aten.adaptive_max_pool2d_backward(g, T.ones(X2), indices(T, (1, 2, 2, 2))),
        (1, 2, 2, 2),
    ),
    "adaptive_max_pool3d": (
        lambda T, g: T.ops.aten.adaptive_max_pool3d_backward(g, T.ones(X3), indices(T, (1, 2, 2, 2, 2))),
        (1, 2, 2, 2, 2),
    ),
    "upsample_nearest1d": (lambda T, g: T.ops.aten.upsample_nearest1d_backward(g, [6], [1, 2, 3]), (1, 2, 6)),
    "upsample_nearest2d": (lambda T, g: T.ops.aten.upsample_nearest2d_backward(g, [6, 6], [1, 2, 3, 3]), (1, 2, 6, 6)),
    "upsample_linear1d": (lambda T, g: T.ops.aten.upsample_linear1d_backward(g, [6], [1, 2, 3], False), (1, 2, 6)),
    "upsample_bilinear2d": (
        lambda T, g: T.ops.aten.upsample_bilinear2d_backward(g, [6, 6], [1, 2, 3, 3], False),
        (1, 2, 6, 6),
    ),
    "upsample_bicubic2d": (
        lambda T, g: T.ops.aten.upsample_bicubic2d_backward(g, [6, 6], [1, 2, 3, 3], False),
        (1, 2, 6, 6),
    ),
    "upsample_trilinear3d": (
        lambda T, g: T.ops.aten.upsample_trilinear3d_backward(g, [6, 6, 6], [1, 2, 3, 3, 3], False),
        (1, 2, 6, 6, 6),
    ),
    "softmax": (lambda T, g: T.ops.aten._softmax_backward_data(g, T.ones(3, 2), 1, T.float32), (3, 2)),
    "convolution": (
        lambda T, g: T.ops.aten.convolution_backward(
            g, T.ones(1, 2, 5), T.ones(3, 2, 2), [3], [1], [0], [1], False, [0], 1, [True, True, True]
        )[0],
        (1, 3, 4),
    ),
    "fractional_max_pool2d": (
        lambda T, g: T.ops.aten.fractional_max_pool2d_backward(g, T.ones(X2), [2, 2], [2, 2], indices(T, (1, 2, 2, 2))),
        (1, 2, 2, 2),
    ),
}
SAME_WORDS = BACKWARDS.keys() - {"fractional_max_pool2d", "max_pool3d", "convolution"}


def refused(lib, call, shape):
    try:
        call(lib, lib.ones(shape))
    except RuntimeError as error:
        return str(error)


@pytest.mark.parametrize("name", BACKWARDS)
def test_a_gradient_of_other_sizes(name):
    call, shape = BACKWARDS[name]
    assert refused(rt, call, shape) is None
    for wrong in ((*shape[:-1], shape[-1] + 1), (*shape[:-1], shape[-1] - 1)):
        theirs, ours = refused(torch, call, wrong), refused(rt, call, wrong)
        assert theirs is not None and ours is not None, wrong
        assert name not in SAME_WORDS or ours == theirs
    for wrong in ((*shape, 1), (shape[0] + 1, *shape[1:])):  # PyTorch does not look at every batch
        assert refused(rt, call, wrong) is not None, wrong


@pytest.fixture
def device():
    rt.cuda.simulate(1)
    yield
    rt.cuda.simulate(0)


@pytest.mark.parametrize("divisor", [-2, 3])
def test_divisors_on_simulated_devices(device, divisor):
    for pool, shape in ((rt.nn.functional.avg_pool2d, X2), (rt.nn.functional.avg_pool3d, X3)):
        here = rt.ones(shape, requires_grad=True)
        there = rt.ones(shape, device="cuda", requires_grad=True)
        for x in (here, there):
            pool(x, 2, divisor_override=divisor).sum().backward()
        assert rt.equal(there.grad.cpu(), here.grad)
        assert rt.equal(pool(there, 2, divisor_override=divisor).cpu(), pool(here, 2, divisor_override=divisor))


def test_masked_select_of_a_number_on_a_simulated_device(device):
    x = rt.tensor(5.0, device="cuda")
    assert rt.masked_select(x, rt.tensor(True, device="cuda")).tolist() == [5.0]
    assert rt.masked_select(x, rt.tensor(False, device="cuda")).tolist() == []
