"""The tensor cores' instructions on the simulator, against NumPy."""

import ml_dtypes
import numpy as np
import pytest
from numba import cuda

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
    simulator.check(by_tf32, 1, 32, a, b, out)
    rounded = [np.vectorize(rounded_to_tf32)(x).astype(np.float64) for x in (a, b)]
    np.testing.assert_allclose(out, rounded[0] @ rounded[1], rtol=1e-6, atol=1e-6)
    assert abs(rounded[0] / a - 1).max() <= 2**-11 and np.any(rounded[0] != a)
