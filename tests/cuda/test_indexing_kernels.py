"""Kernels that pick, move and scan elements, and losses, on the simulator, against torch."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from readtorch.aten.native.cuda import copy as copies
from readtorch.aten.native.cuda import embedding, index_kernel, loss, scan_kernels, scatter_gather_kernel, shape
from readtorch.c10.cuda import simulator
from readtorch.c10.cuda.cuda_device_assertion import DeviceAssert
from tests.cuda.launches import aligned, checked, floats


def tensor(x):
    return torch.from_numpy(np.ascontiguousarray(x))


def integers(high, *shape, low=0):
    return np.random.default_rng(0).integers(low, high, shape)


SHAPES = [
    ((5,), (3,), 0),
    ((4, 6), (4, 9), 1),
    ((4, 6), (2, 6), 0),
    ((3, 4, 5), (2, 4, 3), 1),
    ((2, 3, 2, 3, 4), (2, 3, 1, 3, 2), 2),
    ((3, 4), (0, 4), 0),
]


@pytest.mark.parametrize("shape, index_shape, dim", SHAPES)
def test_gather_and_scatter(shape, index_shape, dim):
    x, index = floats(*shape), integers(shape[dim], *index_shape)
    out = np.zeros(index_shape, np.float32)
    checked(scatter_gather_kernel.gather, x, dim, index, out)
    np.testing.assert_array_equal(out, torch.gather(tensor(x), dim, tensor(index)))
    source, added = floats(*index_shape, seed=1), x.copy()
    checked(scatter_gather_kernel.scatter_add, added, dim, index, source)
    np.testing.assert_allclose(added, tensor(x).scatter_add(dim, tensor(index), tensor(source)), rtol=1e-5, atol=1e-6)


def test_scatter_without_repetition():
    x, source = floats(4, 6), floats(4, 6, seed=1)
    index = np.stack([np.random.default_rng(i).permutation(6) for i in range(4)])
    out = x.copy()
    checked(scatter_gather_kernel.scatter, out, 1, index, source)
    np.testing.assert_array_equal(out, tensor(x).scatter(1, tensor(index), tensor(source)))
    with pytest.raises(simulator.DataRace):
        checked(scatter_gather_kernel.scatter, out, 1, np.zeros_like(index), source)


def test_strided_gather_and_select():
    x, index = floats(6, 8).T[::2], integers(4, 5, 12).T[::2][:, :5]
    out = np.zeros((6, 5), np.float32).T.copy().T
    checked(scatter_gather_kernel.gather, x, 0, index, out)
    np.testing.assert_array_equal(out, np.take_along_axis(x[:, :5], index, 0))
    picked = np.zeros((4, 3), np.float32)
    checked(scatter_gather_kernel.index_select, x, 1, np.array([5, 0, 5]), picked)
    np.testing.assert_array_equal(picked, x[:, [5, 0, 5]])


def test_out_of_bounds_is_seen():
    with pytest.raises(DeviceAssert, match=r"in block \(0, 0, 0\), thread \(0, 0, 0\)"):
        checked(scatter_gather_kernel.gather, floats(5), 0, np.array([5]), np.zeros(1, np.float32))


@pytest.mark.parametrize(
    "shape, indices",
    [
        ((6,), [(4,)]),
        ((5, 6), [(4,)]),
        ((5, 6), [(3, 2), (2,)]),
        ((3, 4, 2), [(5,), (5,)]),
        ((3, 4), [(0,)]),
        ((3,), [()]),
    ],
)
def test_advanced_indexing(shape, indices):
    x = floats(*shape)
    indices = [np.asarray(integers(n, *i, low=-n)) for n, i in zip(shape, indices)]
    expected = x[tuple(indices)]
    out = np.zeros(expected.shape, np.float32)
    checked(index_kernel.index_elements, x, indices, out)
    np.testing.assert_array_equal(out, expected)
    source, added, theirs = floats(*expected.shape, seed=1), x.copy(), x.copy()
    checked(index_kernel.index_put, added, indices, np.asarray(source), accumulate=True)
    np.add.at(theirs, tuple(indices), source)
    np.testing.assert_allclose(added, theirs, rtol=1e-5, atol=1e-6)


def test_index_put():
    out, source = floats(5, 3), floats(2, 3, seed=1)
    expected = out.copy()
    expected[[3, 0]] = source
    checked(index_kernel.index_put, out, [np.array([3, -5])], source)
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("shape", [(5,), (2, 3), (0,), (1, 1)])
def test_embedding(shape):
    weight, indices, grad = floats(7, 10), integers(7, *shape), floats(*shape, 10, seed=1)
    out, grad_weight = np.zeros((*shape, 10), np.float32), np.zeros_like(weight)
    checked(embedding.embedding, weight, indices, out)
    leaf = tensor(weight).requires_grad_()
    expected = F.embedding(tensor(indices), leaf, padding_idx=2)
    expected.backward(tensor(grad))
    np.testing.assert_array_equal(out, expected.detach())
    checked(embedding.embedding_backward, grad, indices, 2, grad_weight)
    np.testing.assert_allclose(grad_weight, leaf.grad, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shape", [(33, 40), (2, 32, 35), (5, 3), (64, 64)])
def test_copies(shape):
    x = floats(*shape)
    for source in (x, x.swapaxes(-1, -2), x[..., ::2]):
        out = np.zeros(source.shape, np.float32)
        checked(copies.copy, source, out)
        np.testing.assert_array_equal(out, source)
    other = np.zeros(shape, np.int64)
    checked(copies.copy, 10 * x, other)
    np.testing.assert_array_equal(other, (10 * x).astype(np.int64))


def test_a_transposing_copy_has_no_bank_conflict():
    from readtorch.c10.cuda.launch import launching_by

    recordings, x = [], floats(32, 32)
    with launching_by(lambda *launch, **options: recordings.append(simulator.record(*launch, **options))):
        copies.copy(x.T, np.zeros((32, 32), np.float32))
    assert all(taken == accesses for taken, accesses in recordings[0].bank_conflicts().values())


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_cat(dim):
    pieces = [floats(*[n if d == dim % 3 else 4 for d in range(3)], seed=n) for n in (2, 1, 0, 3)]
    expected = np.concatenate(pieces, dim)
    out = np.zeros(expected.shape, np.float32)
    checked(shape.copy_parts, pieces, dim, out)
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize(
    "shape, dim", [((700,), 0), ((3, 33), 1), ((40, 3), 0), ((2, 3, 4), 1), ((1,), 0), ((0, 3), 0)]
)
def test_scans(shape, dim):
    x = floats(*shape)
    out = np.zeros(shape, np.float32)
    checked(scan_kernels.cumsum, x, dim, out)
    np.testing.assert_allclose(out, np.cumsum(x, dim), rtol=1e-4, atol=1e-4)
    checked(scan_kernels.cumprod, x, dim, out)
    np.testing.assert_allclose(out, np.cumprod(x, dim), rtol=1e-4, atol=1e-6)
    whole = np.zeros(shape, np.int64)
    checked(scan_kernels.cumsum, x > 0, dim, whole)
    np.testing.assert_array_equal(whole, np.cumsum(x > 0, dim))


@given(rows=st.integers(1, 4), n=st.integers(1, 1300), step=st.integers(1, 2), offset=st.sampled_from([0, 1, 4]))
@settings(max_examples=20, deadline=None)
def test_scans_of_any_rows(rows, n, step, offset):
    """Rows with gaps within them or without, at any place of memory, of several pieces."""
    x = aligned(floats(offset + rows * n * step))[offset:].reshape(rows, n * step)[:, ::step]
    out = aligned(np.zeros((rows, n), np.float32))
    checked(scan_kernels.cumsum, x, 1, out)
    np.testing.assert_allclose(out, np.cumsum(x, 1, np.float64), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("shape", [(6, 4), (2, 4, 3), (1, 1), (2, 3, 2, 2)])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("weighted", [False, True])
def test_nll_loss(shape, reduction, weighted):
    classes, number = shape[1], {"none": 0, "mean": 1, "sum": 2}[reduction]
    log_p = torch.log_softmax(tensor(floats(*shape)), 1).requires_grad_()
    target = integers(classes, shape[0], *shape[2:])
    target.flat[1:2] = -100
    weight = np.abs(floats(classes, seed=2)) + 0.1 if weighted else None
    expected = F.nll_loss(log_p, tensor(target), None if weight is None else tensor(weight), reduction=reduction)
    grad = np.asarray(floats(*expected.shape, seed=3))
    expected.backward(tensor(grad).reshape(expected.shape))
    out, total = np.zeros(expected.shape, np.float32), np.zeros((), np.float32)
    checked(loss.nll_loss, log_p.detach().numpy(), target, weight, number, -100, out, total)
    np.testing.assert_allclose(out, expected.detach(), rtol=1e-5, atol=1e-6)
    grad_input = np.full(shape, np.nan, np.float32)
    checked(loss.nll_loss_backward, grad, target, weight, number, -100, total, grad_input)
    np.testing.assert_allclose(grad_input, log_p.grad, rtol=1e-5, atol=1e-6)
