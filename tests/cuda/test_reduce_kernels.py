"""Reductions as CUDA kernels, on the simulator, against NumPy and torch."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from readtorch.aten.native.cuda import reduce as reductions
from readtorch.aten.native.cuda.reduce import reduce
from readtorch.aten.native.cuda.reduce_arg_max_kernel import arg_reduce, largest, smallest
from tests.cuda.launches import aligned, checked, floats

OPERATIONS = {
    "SUM": np.sum,
    "MEAN": np.mean,
    "PROD": np.prod,
    "AMAX": np.max,
    "AMIN": np.min,
    "ANY": np.any,
    "ALL": np.all,
    "NORM_1": lambda x, axis: np.abs(x).sum(axis),
    "NORM_2": lambda x, axis: np.sqrt((x * x).sum(axis)),
    "NORM_INF": lambda x, axis: np.abs(x).max(axis),
}


def reduced(name, x, dims, dtype=np.float32, parts=None):
    out = np.full([n for d, n in enumerate(x.shape) if d not in dims], 99, dtype)
    checked(reduce, getattr(reductions, name), x, dims, out, parts=parts)
    return out


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("dims", [(1,), (0,), (0, 1)])
def test_operations(name, dims):
    x = floats(5, 37)
    x[0, 0] = 0
    dtype = bool if name in ("ANY", "ALL") else np.float32
    np.testing.assert_allclose(reduced(name, x, dims, dtype), OPERATIONS[name](x, axis=dims), rtol=1e-4, atol=1e-5)


SHAPES = [
    ((300,), (0,)),
    ((1, 1), (0,)),
    ((3, 70), (0,)),
    ((40, 3), (0,)),
    ((2, 9, 35), (1,)),
    ((2, 9, 35), (0, 2)),
    ((2, 3, 4, 5), (1, 3)),
    ((2, 3, 4, 5), (0, 2)),
    ((6, 1, 4), (1,)),
    ((2, 33), ()),
]


@pytest.mark.parametrize("shape, dims", SHAPES)
def test_shapes(shape, dims):
    x = floats(*shape)
    np.testing.assert_allclose(reduced("SUM", x, dims), x.sum(dims), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape, dims", [((700,), (0,)), ((3, 100), (1,)), ((100, 3), (0,)), ((5, 1), (0,))])
def test_two_passes(shape, dims):
    x = floats(*shape)
    for name in ("SUM", "MEAN", "AMAX", "NORM_2"):
        expected = OPERATIONS[name](x, axis=dims)
        np.testing.assert_allclose(reduced(name, x, dims, parts=4), expected, rtol=1e-4, atol=1e-5)


def test_parts_are_chosen_for_few_results():
    def parts(*shape):
        return reductions.parts_for(aligned(np.zeros(shape, np.float32)))

    assert parts(1, 1 << 23, 1) == 1056 and parts(1, 1 << 20, 1) == 256 and parts(1, 1000, 1) == 1
    assert parts(2000, 1 << 13, 1) == 1
    assert parts(1, 1 << 13, 128) == 128 and parts(1, 1 << 14, 1024) == 132  # down the columns: of 128 and 8 blocks


def test_strides_and_nothing():
    x = floats(12, 20)
    for view in (x.T, x[::2, ::3], x[::-1], x.reshape(3, 4, 20).transpose(1, 2, 0)):
        np.testing.assert_allclose(reduced("SUM", view, (1,)), view.sum(1), rtol=1e-4, atol=1e-5)
    assert reduced("SUM", np.zeros((0, 3), np.float32), (0,)).tolist() == [0, 0, 0]
    assert reduced("PROD", np.zeros((2, 0), np.float32), (1,)).tolist() == [1, 1]
    assert reduced("SUM", np.zeros((0, 3), np.float32), (1,)).shape == (0,)


def test_dtypes():
    x = np.arange(-20, 50)
    assert reduced("SUM", x.astype(np.int32), (0,), np.int64) == x.sum()
    assert reduced("AMIN", x, (0,), np.int64) == -20
    assert reduced("SUM", x > 0, (0,), np.int64) == (x > 0).sum()
    np.testing.assert_allclose(reduced("MEAN", x / 7, (0,), np.float64), (x / 7).mean(), rtol=1e-14)


def test_nan_wins():
    x = floats(2, 40)
    x[1, 17] = np.nan
    for name in ("AMAX", "AMIN"):
        assert np.isnan(reduced(name, x, (1,))).tolist() == [False, True]


@pytest.mark.parametrize("wins, expected", [(largest, torch.max), (smallest, torch.min)])
@pytest.mark.parametrize("shape, dim", [((300,), 0), ((3, 40), 1), ((40, 3), 0), ((2, 5, 3), 1), ((1, 1), 1)])
def test_arg_reductions(wins, expected, shape, dim):
    for x in (floats(*shape), np.round(floats(*shape)), np.where(floats(*shape) > 1, np.float32(np.nan), 0)):
        x = x.astype(np.float32)
        result = [n for d, n in enumerate(shape) if d != dim]
        values, indices = np.zeros(result, np.float32), np.zeros(result, np.int64)
        checked(arg_reduce, wins, x, dim, values, indices)
        theirs = expected(torch.from_numpy(x), dim)
        np.testing.assert_array_equal(values, theirs.values)
        # torch picks any of equal elements; ours is the first
        first = np.isnan(x).argmax(dim) if np.isnan(x).any() and x.ndim == 1 else None
        picked = np.take_along_axis(x, np.expand_dims(indices, dim), dim).squeeze(dim)
        np.testing.assert_array_equal(picked, values)
        assert first is None or indices == first


@given(data=st.data(), shape=st.lists(st.integers(1, 9), min_size=1, max_size=4), parts=st.integers(1, 3))
@settings(max_examples=40, deadline=None)
def test_any_layout(data, shape, parts):
    """Dimensions in any order, with gaps or without, at any place of memory; some of them reduced, in parts."""
    shape[-1] *= data.draw(st.sampled_from([1, 4, 33]))
    order = data.draw(st.permutations(range(len(shape))))
    gap, offset = data.draw(st.sampled_from([1, 2])), data.draw(st.sampled_from([0, 1, 4]))
    memory = aligned(floats(offset + gap * math.prod(shape)))[offset:]
    x = memory.reshape([shape[d] * (gap if d == order[-1] else 1) for d in order]).transpose(np.argsort(order))
    x = x[tuple(slice(n) for n in shape)]
    dims = tuple(sorted(data.draw(st.sets(st.integers(0, len(shape) - 1)))))
    np.testing.assert_allclose(reduced("SUM", x, dims, parts=parts), x.sum(dims), rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(reduced("AMAX", x, dims), x.max(dims) if dims else x)
