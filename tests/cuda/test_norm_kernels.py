"""Normalization as CUDA kernels, on the simulator, against torch."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from readtorch.aten.native.cuda import group_norm_kernel, layer_norm_kernel, normalization
from tests.cuda.launches import checked, floats


def close(ours, theirs):
    np.testing.assert_allclose(ours, theirs.detach(), rtol=2e-4, atol=2e-5)


def leaf(x):
    return None if x is None else torch.from_numpy(np.array(x)).requires_grad_()


def zeros_like(*arrays):
    return [None if a is None else np.zeros(a.shape, a.dtype) for a in arrays]


@pytest.mark.parametrize(
    "shape, n",
    [((3, 7), 7), ((2, 2, 70), 70), ((2, 5, 4), 20), ((1, 1), 1), ((300, 3), 3), ((3, 132), 132), ((2, 1100), 1100)],
)
@pytest.mark.parametrize("affine", [True, False])
def test_layer_norm(shape, n, affine):
    x, grad = floats(*shape) + 1, floats(*shape, seed=1)
    weight, bias = (floats(n, seed=2), floats(n, seed=3)) if affine else (None, None)
    rows = x.size // n
    out, mean, rstd = np.zeros_like(x), np.zeros(rows, np.float32), np.zeros(rows, np.float32)
    checked(layer_norm_kernel.layer_norm, x, n, weight, bias, 1e-5, out, mean, rstd)
    leaves = [leaf(a) for a in (x, weight, bias)]
    flat = leaves[0].reshape(rows, n)
    expected = F.layer_norm(flat, (n,), *leaves[1:])
    close(out.reshape(rows, n), expected)
    expected.backward(torch.from_numpy(grad.reshape(rows, n)))
    results = zeros_like(x, weight, bias)
    checked(layer_norm_kernel.layer_norm_backward, grad, x, n, mean, rstd, weight, *results)
    for result, theirs in zip(results, leaves):
        if result is not None:
            close(result, theirs.grad)


@pytest.mark.parametrize(
    "shape, groups",
    [
        ((2, 4, 5), 2),
        ((1, 6, 3, 4), 3),
        ((3, 2), 1),
        ((2, 3, 40), 3),
        ((1, 2, 1030), 1),
        ((1, 3, 5667), 1),
        ((1, 4, 4200), 1),
    ],
)
@pytest.mark.parametrize("affine", [True, False])
def test_group_norm(shape, groups, affine):
    x, grad = floats(*shape) + 1, floats(*shape, seed=1)
    weight, bias = (floats(shape[1], seed=2), floats(shape[1], seed=3)) if affine else (None, None)
    out, mean, rstd = np.zeros_like(x), *(np.zeros(shape[0] * groups, np.float32) for _ in range(2))
    checked(group_norm_kernel.group_norm, x, groups, weight, bias, 1e-5, out, mean, rstd)
    leaves = [leaf(a) for a in (x, weight, bias)]
    expected = F.group_norm(leaves[0], groups, *leaves[1:])
    close(out, expected)
    expected.backward(torch.from_numpy(grad))
    results = zeros_like(x, weight, bias)
    checked(group_norm_kernel.group_norm_backward, grad, x, groups, mean, rstd, weight, *results)
    for result, theirs in zip(results, leaves):
        if result is not None:
            close(result, theirs.grad)


@pytest.mark.parametrize("shape", [(4, 3), (2, 3, 5), (2, 5, 4, 3), (3, 1, 60)])
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("affine", [True, False])
def test_batch_norm(shape, training, affine, monkeypatch):
    monkeypatch.setattr(normalization, "LEAST_PART", 20)  # so that channels are shared among blocks
    channels = shape[1]
    x, grad = floats(*shape) + 1, floats(*shape, seed=1)
    weight, bias = (floats(channels, seed=2), floats(channels, seed=3)) if affine else (None, None)
    running = [floats(channels, seed=4), np.abs(floats(channels, seed=5)) + 0.5]
    theirs = [torch.from_numpy(r.copy()) for r in running]
    out, mean, invstd = np.zeros_like(x), np.zeros(channels, np.float32), np.zeros(channels, np.float32)
    checked(normalization.batch_norm, x, weight, bias, *running, training, 0.1, 1e-5, out, mean, invstd)
    leaves = [leaf(a) for a in (x, weight, bias)]
    expected = F.batch_norm(leaves[0], *theirs, *leaves[1:], training, 0.1, 1e-5)
    close(out, expected)
    for ours, their in zip(running, theirs):
        close(ours, their)
    expected.backward(torch.from_numpy(grad))
    results = np.zeros_like(x), np.zeros(channels, np.float32), np.zeros(channels, np.float32)
    checked(normalization.batch_norm_backward, grad, x, weight, training, mean, invstd, *results)
    for result, their in zip(results, leaves):
        if their is not None:
            close(result, their.grad)


def test_views():
    x = floats(6, 4, 5).transpose(2, 1, 0)
    out, mean, rstd = np.zeros(x.shape, np.float32), *(np.zeros(20, np.float32) for _ in range(2))
    checked(layer_norm_kernel.layer_norm, x, 6, None, None, 1e-5, out, mean, rstd)
    close(out, F.layer_norm(torch.from_numpy(x.copy()), (6,)))
