"""Convolution and pooling as CUDA kernels, on the simulator, against torch."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from readtorch.aten.native.cuda import (
    adaptive_average_pooling,
    average_pool3d,
    conv_shared,
    dilated_max_pool2d,
    dilated_max_pool3d,
)
from readtorch.c10.cuda import simulator
from readtorch.c10.cuda.launch import launching_by
from tests.cuda.launches import checked, floats


def leaf(x):
    return torch.from_numpy(x.copy()).requires_grad_()


def close(ours, theirs):
    np.testing.assert_allclose(ours, theirs.detach(), rtol=2e-4, atol=2e-5)


# x, weight, stride, padding, dilation, groups
CONVOLUTIONS = [
    ((2, 3, 7, 6), (4, 3, 3, 3), (1, 1), (1, 1), (1, 1), 1),
    ((1, 2, 9, 8), (3, 2, 2, 3), (2, 3), (0, 2), (1, 1), 1),
    ((1, 4, 6, 7), (6, 2, 3, 1), (1, 2), (2, 0), (2, 1), 2),
    ((2, 3, 5, 5), (3, 1, 3, 3), (1, 1), (1, 1), (1, 1), 3),
    ((3, 5, 4, 4), (2, 5, 1, 1), (1, 1), (0, 0), (1, 1), 1),
    ((1, 1, 1, 1), (1, 1, 1, 1), (1, 1), (0, 0), (1, 1), 1),
]


@pytest.mark.parametrize("case", CONVOLUTIONS)
@pytest.mark.parametrize("with_bias", [True, False])
def test_conv2d(case, with_bias):
    x, weight, (stride, padding, dilation, groups) = floats(*case[0]), floats(*case[1], seed=1), case[2:]
    bias = floats(weight.shape[0], seed=2) if with_bias else None
    leaves = leaf(x), leaf(weight)
    expected = F.conv2d(*leaves, None if bias is None else torch.from_numpy(bias), stride, padding, dilation, groups)
    out = np.full(expected.shape, np.nan, np.float32)
    grad = floats(*out.shape, seed=3)
    expected.backward(torch.from_numpy(grad))
    grad_input, grad_weight = np.full_like(x, np.nan), np.full_like(weight, np.nan)
    with launching_by(simulator.launch):
        conv_shared.conv2d(x, weight, bias, stride, padding, dilation, groups, out)
        close(out, expected)
        if not with_bias:
            return  # the gradients below do not know of it
        conv_shared.conv2d_backward_input(grad, weight, stride, padding, dilation, groups, grad_input)
        close(grad_input, leaves[0].grad)
        for parts in (None, 3):
            conv_shared.conv2d_backward_weight(grad, x, stride, padding, dilation, groups, grad_weight, parts)
            close(grad_weight, leaves[1].grad)


def test_convolution_without_a_race():
    x, weight, out = floats(1, 2, 4, 4), floats(3, 2, 3, 3), np.zeros((1, 3, 4, 4), np.float32)
    checked(conv_shared.conv2d, x, weight, None, (1, 1), (1, 1), (1, 1), 1, out)
    checked(conv_shared.conv2d_backward_weight, out, x, (1, 1), (1, 1), (1, 1), 1, np.zeros_like(weight), 2)
    checked(conv_shared.conv2d_backward_input, out, weight, (1, 1), (1, 1), (1, 1), 1, np.zeros_like(x))


def of_one_layer(window, stride, padding, dilation=None):
    """Numbers of a window on images as those of one on volumes."""
    numbers = [(1, *window), (1, *stride), (0, *padding)]
    return numbers if dilation is None else [*numbers, (1, *dilation)]


POOLS = [((2, 2), (2, 2), (0, 0)), ((3, 2), (1, 2), (1, 1)), ((3, 3), (2, 1), (1, 0)), ((2, 3), (3, 4), (0, 1))]


@pytest.mark.parametrize("window, stride, padding", POOLS)
@pytest.mark.parametrize("dilation", [(1, 1), (2, 1)])
@pytest.mark.parametrize("ceil_mode", [False, True])
def test_max_pool2d(window, stride, padding, dilation, ceil_mode):
    x = np.round(4 * floats(2, 3, 8, 9))
    theirs = leaf(x)
    expected, where = F.max_pool2d(theirs, window, stride, padding, dilation, ceil_mode, return_indices=True)
    grad = floats(*expected.shape, seed=1)
    expected.backward(torch.from_numpy(grad))
    out, indices = np.zeros(expected.shape, np.float32), np.zeros(where.shape, np.int64)
    grad_input = np.zeros_like(x)
    layers = [a[:, :, None] for a in (x, out, indices)]
    checked(dilated_max_pool3d.max_pool3d, layers[0], *of_one_layer(window, stride, padding, dilation), *layers[1:])
    close(out, expected)
    np.testing.assert_array_equal(indices, where)
    checked(dilated_max_pool2d.max_pool2d_backward, grad, indices, window, stride, padding, dilation, grad_input)
    close(grad_input, theirs.grad)


@pytest.mark.parametrize("window, stride, padding", POOLS)
@pytest.mark.parametrize("ceil_mode", [False, True])
@pytest.mark.parametrize("include, divisor", [(True, None), (False, None), (True, 5)])
def test_avg_pool2d(window, stride, padding, ceil_mode, include, divisor):
    x = floats(2, 2, 7, 8)
    theirs = leaf(x)
    expected = F.avg_pool2d(theirs, window, stride, padding, ceil_mode, include, divisor)
    grad = floats(*expected.shape, seed=1)
    expected.backward(torch.from_numpy(grad))
    out, grad_input = np.zeros(expected.shape, np.float32), np.zeros_like(x)
    how = *of_one_layer(window, stride, padding), include, divisor or 0
    checked(average_pool3d.avg_pool, x[:, :, None], *how, out[:, :, None])
    close(out, expected)
    checked(average_pool3d.avg_pool_backward, grad[:, :, None], *how, grad_input[:, :, None])
    close(grad_input, theirs.grad)


@pytest.mark.parametrize("size", [(1, 1), (3, 2), (7, 9), (8, 5)])
def test_adaptive_avg_pool2d(size):
    x = floats(2, 2, 7, 5)
    theirs = leaf(x)
    expected = F.adaptive_avg_pool2d(theirs, size)
    grad = floats(*expected.shape, seed=1)
    expected.backward(torch.from_numpy(grad))
    out, grad_input = np.zeros(expected.shape, np.float32), np.zeros_like(x)
    checked(adaptive_average_pooling.adaptive_avg_pool2d, x, out)
    close(out, expected)
    checked(adaptive_average_pooling.adaptive_avg_pool2d_backward, grad, grad_input)
    close(grad_input, theirs.grad)


def test_max_pool_keeps_nan():
    x = floats(1, 1, 4, 4)
    x[0, 0, 1, 1] = np.nan
    out, indices = np.zeros((1, 1, 1, 2, 2), np.float32), np.zeros((1, 1, 1, 2, 2), np.int64)
    checked(dilated_max_pool3d.max_pool3d, x[:, :, None], *of_one_layer((2, 2), (2, 2), (0, 0), (1, 1)), out, indices)
    np.testing.assert_array_equal(out[:, :, 0], F.max_pool2d(torch.from_numpy(x), 2))
