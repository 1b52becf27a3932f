"""Matrix products as CUDA kernels, on the simulator, against NumPy."""

import types

import ml_dtypes
import numpy as np
import pytest
import torch

from readtorch.aten.native.cuda import cuda_blas
from readtorch.aten.native.cuda.cuda_blas import gelu, matmul, relu
from readtorch.c10.cuda import simulator
from readtorch.c10.cuda.launch import launching_by
from tests.cuda.launches import checked, floats


def product(a, b, **options):
    stack = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    out = np.full((*stack, a.shape[-2], b.shape[-1]), np.nan, a.dtype)
    with launching_by(simulator.launch):
        matmul(a, b, out, **options)
    return out


def close(ours, theirs):
    np.testing.assert_allclose(ours, theirs, rtol=2e-4, atol=2e-5)


SIZES = [(1, 1, 1), (5, 3, 7), (65, 17, 3), (3, 33, 66), (64, 16, 64), (1, 40, 1)]


@pytest.mark.parametrize("m, k, n", SIZES)
def test_sizes(m, k, n):
    a, b = floats(m, k), floats(k, n, seed=1)
    close(product(a, b), a @ b)


@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
def test_transposed_and_sliced(transpose_a, transpose_b):
    a = floats(20, 9).T if transpose_a else floats(9, 40)[:, ::2]
    b = floats(11, 20, seed=1).T if transpose_b else floats(20, 22, seed=1)[:, ::2]
    close(product(a, b), a @ b)


@pytest.mark.parametrize("m, k, n", [(70, 40, 65), (3, 33, 5), (1, 100, 1)])
def test_complex_numbers_of_sixteen_bytes(m, k, n):
    """Two pairs of strips do not fit for them: the other way through the kernel."""
    random = np.random.default_rng(0)
    a, b = (random.standard_normal(shape) + 1j * random.standard_normal(shape) for shape in ((m, k), (k, n)))
    np.testing.assert_allclose(product(a, b), a @ b, rtol=1e-12, atol=1e-12)


def test_without_a_race():
    a, b, out = floats(10, 20), floats(20, 9, seed=1), np.zeros((10, 9), np.float32)
    checked(matmul, a, b, out)
    close(out, a @ b)


def test_tiles_of_128():
    a, b = floats(70, 18), floats(18, 129, seed=1)
    close(product(a, b, quarters=2), a @ b)


@pytest.mark.parametrize(
    "a, b", [((3, 4, 5), (3, 5, 2)), ((3, 4, 5), (5, 2)), ((2, 1, 4, 5), (1, 3, 5, 2)), ((0, 4, 5), (5, 2))]
)
def test_stacks(a, b):
    a, b = floats(*a), floats(*b, seed=1)
    close(product(a, b), a @ b)
    close(product(np.swapaxes(a, 0, -2).copy().swapaxes(0, -2), b), a @ b)


def test_nothing_to_sum():
    assert product(floats(3, 0), floats(0, 2)).tolist() == [[0, 0]] * 3


def test_bias_scale_and_activation():
    x, weight, bias = floats(6, 10), floats(5, 10, seed=1), floats(5, seed=2)
    close(product(x, weight.T, bias=bias), x @ weight.T + bias)
    close(product(x, weight.T, bias=bias, finish=relu), np.maximum(x @ weight.T + bias, 0))
    expected = torch.nn.functional.gelu(torch.from_numpy(0.5 * (x @ weight.T)))
    close(product(x, weight.T, alpha=0.5, finish=gelu), expected)
    whole = floats(6, 5, seed=3)
    close(product(x, weight.T, bias=whole, alpha=2), 2 * (x @ weight.T) + whole)


def test_float64():
    a, b = floats(5, 20).astype(float), floats(20, 6).astype(float)
    np.testing.assert_allclose(product(a, b), a @ b, rtol=1e-13)


@pytest.mark.parametrize("dtype, first", [(np.float16, 2048), (ml_dtypes.bfloat16, 256)])
def test_16_bits_without_tensor_cores(monkeypatch, dtype, first):
    """On chips before sm_80. Sums are float32: added one by one in 16 bits, ones would not change the first number."""
    monkeypatch.setattr(cuda_blas, "on_tensor_cores", lambda dtype: False)
    a, b = np.ones((3, 33), dtype), np.ones((33, 2), dtype)
    a[:, 0] = first
    assert (product(a, b).astype(float) == first + 32).all()


def test_which_chips_have_tensor_cores(monkeypatch):
    half = np.dtype(np.float16)
    assert cuda_blas.on_tensor_cores(half) and not cuda_blas.on_tensor_cores(np.dtype(np.float64))
    for major in (7, 9):
        properties = types.SimpleNamespace(major=major)
        driver = types.SimpleNamespace(get_device_properties=lambda index, properties=properties: properties)
        monkeypatch.setattr(cuda_blas.runtime, "is_available", lambda: True)
        monkeypatch.setattr(cuda_blas.runtime, "driver", lambda driver=driver: driver)
        assert cuda_blas.on_tensor_cores(half) == (major == 9)


def test_no_bank_conflicts():
    """Reading the strips: see Note [ A tile in registers ]."""
    recordings = []
    a, b, out = floats(64, 16), floats(16, 64), np.zeros((64, 64), np.float32)
    with launching_by(lambda *launch, **options: recordings.append(simulator.record(*launch, **options))):
        matmul(a, b, out)
    reads = [access for access in recordings[0].warp_accesses("shared") if access.kind == "read"]
    assert reads and all(access.turns == 1 for access in reads if access.array == "strip_a")
