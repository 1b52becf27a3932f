"""The tensor cores' instructions on the simulator, against NumPy."""

import contextlib

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import cuda

from readtorch.aten.float32_precision import float32_precision
from readtorch.aten.native.cuda.cuda_blas import matmul, relu
from readtorch.aten.native.cuda.mma import (
    ldmatrix,
    ldmatrix_transposed,
    mma_bf16,
    mma_f16,
    mma_tf32,
    rounded_to_tf32,
    to_tf32,
)
from readtorch.c10.cuda import simulator
from readtorch.c10.cuda.launch import launching_by
from tests.cuda.launches import aligned, checked

PITCH = 12  # words from row to row: 8 of numbers, and 4 that keep the rows in different banks
ROOM = 16 * PITCH


def halves(mma, from_rows):
    """out (16, 8) = a (16, 16) b, of 16-bit numbers in words: b (8, 16) by columns, or (16, 8) by rows."""
    load_b = ldmatrix_transposed if from_rows else ldmatrix

    def product(a, b, out):
        strip_a = cuda.shared.array(ROOM, np.uint32, alignment=16)
        strip_b = cuda.shared.array(ROOM, np.uint32, alignment=16)
        t = cuda.threadIdx.x
        for i in range(t, 128, 32):
            strip_a[i // 8 * PITCH + i % 8] = a[i]
        for i in range(t, 64, 32):
            wide = 4 if from_rows else 8
            strip_b[i // wide * PITCH + i % wide] = b[i]
        cuda.syncthreads()
        of_a = ldmatrix(strip_a, t % 16 * PITCH + t // 16 * 4)
        of_b = load_b(strip_b, t % 16 * PITCH if from_rows else t % 8 * PITCH + t // 8 % 2 * 4)
        zero = np.float32(0)
        found = mma(of_a, (of_b[0], of_b[1]), (zero, zero, zero, zero))
        for i in range(4):
            out[t // 4 + i // 2 * 8, t % 4 * 2 + i % 2] = found[i]

    return product


@pytest.mark.parametrize("from_rows", [False, True])
@pytest.mark.parametrize("mma, dtype", [(mma_bf16, ml_dtypes.bfloat16), (mma_f16, np.float16)])
def test_halves_by_ldmatrix(mma, dtype, from_rows):
    random = np.random.default_rng(0)
    a, b = random.standard_normal((16, 16)).astype(dtype), random.standard_normal((16, 8)).astype(dtype)
    words = [np.ascontiguousarray(x).reshape(-1).view(np.uint32) for x in (a, b if from_rows else b.T)]
    out = np.zeros((16, 8), np.float32)
    simulator.check(halves(mma, from_rows), 1, 32, *words, out)
    np.testing.assert_allclose(out, a.astype(np.float64) @ b.astype(np.float64), rtol=1e-6, atol=1e-6)


def by_tf32(a, b, out):
    lane, zero = cuda.threadIdx.x, np.float32(0)
    g, t = lane // 4, lane % 4
    of_a = to_tf32(a[g, t]), to_tf32(a[g + 8, t]), to_tf32(a[g, t + 4]), to_tf32(a[g + 8, t + 4])
    found = mma_tf32(of_a, (to_tf32(b[t, g]), to_tf32(b[t + 4, g])), (zero, zero, zero, zero))
    for i in range(4):
        out[g + i // 2 * 8, t * 2 + i % 2] = found[i]


def test_tf32():
    random = np.random.default_rng(0)
    a, b = random.standard_normal((16, 8)).astype(np.float32), random.standard_normal((8, 8)).astype(np.float32)
    out = np.zeros((16, 8), np.float32)
    simulator.check(by_tf32, 1, 32, a.view(np.uint32), b.view(np.uint32), out)
    rounded = [np.vectorize(rounded_to_tf32)(x.view(np.uint32)).view(np.float32).astype(np.float64) for x in (a, b)]
    np.testing.assert_allclose(out, rounded[0] @ rounded[1], rtol=1e-6, atol=1e-6)
    assert abs(rounded[0] / a - 1).max() <= 2**-11 and np.any(rounded[0] != a)


# ------------------------------------------------------------------------------------------ products of matrices

EPS = {np.dtype(ml_dtypes.bfloat16): 2**-8, np.dtype(np.float16): 2**-10, np.dtype(np.float32): 2**-10}


@contextlib.contextmanager
def tf32_allowed():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(float32_precision, "table", float32_precision.table | {("cuda", "matmul"): "tf32"})
        yield


def matrix(random, rows, columns, transposed, room, dtype):
    """Of numbers that need all bits; transposed or not, and with unused columns behind each row."""
    shape = (columns, rows + room) if transposed else (rows, columns + room)
    memory = aligned(random.standard_normal(shape).astype(dtype))
    return memory[:, :rows].T if transposed else memory[:, :columns]


@settings(max_examples=12, deadline=None)
@given(data=st.data())
@pytest.mark.parametrize("dtype", EPS, ids=str)
def test_matmul(dtype, data):
    m, k, n = (data.draw(st.integers(1, 40) | st.sampled_from([8, 16, 32, 130])) for _ in range(3))
    transposed, rooms = (
        data.draw(st.tuples(st.booleans(), st.booleans())),
        data.draw(st.tuples(*[st.sampled_from([0, 3, 8])] * 2)),
    )
    random = np.random.default_rng(m * n + k)
    a, b = matrix(random, m, k, transposed[0], rooms[0], dtype), matrix(random, k, n, transposed[1], rooms[1], dtype)
    out = np.zeros((m, n), dtype)
    with tf32_allowed(), launching_by(simulator.launch):
        matmul(a, b, out)
    exact, size = a.astype(float) @ b.astype(float), abs(a.astype(float)) @ abs(b.astype(float))
    assert (abs(out.astype(float) - exact) <= 2 * EPS[dtype] * size + 1e-6).all()


def test_stack_with_bias_and_activation():
    random = np.random.default_rng(1)
    a, b, bias = (random.standard_normal(shape).astype(np.float16) for shape in ((2, 5, 16), (2, 16, 9), (9,)))
    out = np.zeros((2, 5, 9), np.float16)
    checked(matmul, aligned(a), aligned(b), out, bias=bias, alpha=0.5, finish=relu)
    expected = np.maximum(0.5 * (a.astype(float) @ b.astype(float)) + bias, 0)
    np.testing.assert_allclose(out, expected, rtol=2e-3, atol=2e-3)


def test_tf32_is_asked_for():
    """Products of float32 are exact to its own bits unless TF32 is allowed."""
    a, out = aligned(np.full((4, 4), 1 + 2**-12, np.float32)), np.zeros((4, 4), np.float32)
    with launching_by(simulator.launch):
        matmul(a, np.eye(4, dtype=np.float32), out)
    assert (out == a).all()


def test_tf32_where_allowed():
    a, out = aligned(np.full((4, 4), 1 + 2**-12, np.float32)), np.zeros((4, 4), np.float32)
    with tf32_allowed(), launching_by(simulator.launch):
        matmul(a, np.eye(4, dtype=np.float32), out)
    assert (out == 1).all()


def test_no_bank_conflicts():
    """Each of the four matrices that ldmatrix brings is read in one turn."""
    recordings, a = [], aligned(np.ones((128, 32), np.float16))
    with launching_by(lambda *launch, **options: recordings.append(simulator.record(*launch, **options))):
        matmul(a, a.T, np.zeros((128, 128), np.float16))
    [recording] = recordings
    assert not recording.races
    reads = [access for access in recording.warp_accesses("shared") if access.kind == "read"]
    assert reads and all(access.turns == 1 for access in reads)
