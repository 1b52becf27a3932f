"""sort, topk and optimizer steps as CUDA kernels, on the simulator, against NumPy and torch."""

import numpy as np
import pytest
import torch

from readtorch.aten.native.cuda import fused_adam_kernel, fused_sgd_kernel, sort
from tests.cuda.launches import checked, floats


def sorted_by_us(x, dim, descending, k=None):
    shape = list(x.shape)
    if k is not None:
        shape[dim] = k
    values, indices = np.zeros(shape, x.dtype), np.full(shape, -1)
    if k is None:
        checked(sort.sort, x, dim, descending, values, indices)
    else:
        checked(sort.topk, x, k, dim, descending, values, indices)
    return values, indices


SHAPES = [((1,), 0), ((2,), 0), ((33,), 0), ((3, 20), 1), ((20, 3), 0), ((2, 5, 3), 1), ((70,), 0), ((0, 3), 1)]


@pytest.mark.parametrize("piece", [8, 1024])
@pytest.mark.parametrize("shape, dim", SHAPES)
@pytest.mark.parametrize("descending", [False, True])
def test_sort(shape, dim, descending, piece, monkeypatch):
    monkeypatch.setattr(sort, "PIECE", piece)  # small pieces: rows that have to be merged
    for x in (floats(*shape), np.round(floats(*shape)).astype(np.int64), np.where(floats(*shape) > 0.5, np.nan, 1.0)):
        values, indices = sorted_by_us(x, dim, descending)
        theirs = torch.sort(torch.from_numpy(x), dim=dim, descending=descending, stable=True)
        np.testing.assert_array_equal(values, theirs.values)
        np.testing.assert_array_equal(indices, theirs.indices)


def test_strided_sort():
    x = floats(6, 10).T[:, ::2]
    np.testing.assert_array_equal(sorted_by_us(x, 0, False)[0], np.sort(x, 0))


@pytest.mark.parametrize("shape, dim, k", [((30,), 0, 4), ((3, 9), 1, 9), ((9, 3), 0, 1), ((5,), 0, 0)])
@pytest.mark.parametrize("largest", [False, True])
def test_topk(shape, dim, k, largest):
    x = floats(*shape)
    values, indices = sorted_by_us(x, dim, largest, k)
    theirs = torch.topk(torch.from_numpy(x), k, dim, largest)
    np.testing.assert_array_equal(values, theirs.values)
    np.testing.assert_array_equal(indices, theirs.indices)


# -------------------------------------------------------------------------------------------- optimizer steps

SIZES = [(3, 4), (1,), (300,), (0,), (2, 2, 2)] + [(2,)] * 15  # more than one launch takes


def problem():
    params = [floats(*s, seed=i) for i, s in enumerate(SIZES)]
    theirs = [torch.nn.Parameter(torch.from_numpy(p.copy())) for p in params]
    return params, theirs


def gradients(step, theirs):
    grads = [floats(*s, seed=100 * step + i) for i, s in enumerate(SIZES)]
    for p, g in zip(theirs, grads):
        p.grad = torch.from_numpy(g.copy())
    return grads


def compare(params, theirs):
    for ours, their in zip(params, theirs):
        np.testing.assert_allclose(ours, their.detach(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"momentum": 0.9},
        {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1},
        {"momentum": 0.5, "dampening": 0.3, "maximize": True},
    ],
)
def test_sgd(options):
    params, theirs = problem()
    optimizer = torch.optim.SGD(theirs, lr=0.1, foreach=True, **options)
    buffers = [np.full_like(p, np.nan) for p in params] if "momentum" in options else None
    for step in range(3):
        grads = gradients(step, theirs)
        optimizer.step()
        checked(fused_sgd_kernel.sgd, params, grads, buffers, 0.1, first=step == 0, **options)
    compare(params, theirs)


@pytest.mark.parametrize("decoupled", [False, True])
@pytest.mark.parametrize("options", [{}, {"amsgrad": True, "weight_decay": 0.1}, {"maximize": True}])
def test_adam(decoupled, options):
    params, theirs = problem()
    options = {"weight_decay": 0.0, **options}
    kind = torch.optim.AdamW if decoupled else torch.optim.Adam
    optimizer = kind(theirs, lr=0.1, foreach=True, **options)
    amsgrad = options.pop("amsgrad", False)
    means, squares, greatest = ([np.zeros_like(p) for p in params] for _ in range(3))
    for step in range(1, 4):
        grads = gradients(step, theirs)
        optimizer.step()
        checked(
            fused_adam_kernel.adam,
            params,
            grads,
            means,
            squares,
            greatest if amsgrad else None,
            [np.full(1, step, np.float32) for _ in params],
            0.1,
            0.9,
            0.999,
            1e-8,
            decoupled=decoupled,
            **options,
        )
    compare(params, theirs)
