"""What NumPy finds wrong, PyTorch's user reads in PyTorch's words."""

import pytest
import torch

import readtorch as rt
from tests.aten.test_refusals import outcome


@pytest.mark.parametrize(
    "call",
    [
        lambda T: T.ops.aten.sigmoid_backward(T.ones(3), T.ones(4)),  # operands that do not broadcast
        lambda T: T.ops.aten.silu_backward(T.ones(2, 3), T.ones(2, 4)),
        lambda T: T.ops.aten.embedding_dense_backward(T.ones(5, 3), T.zeros(4, dtype=T.int64), 3, -1, False),  # a shape
        lambda T: T.zeros(2**50),  # memory
        lambda T: T.ones(2).repeat(2**50),
        lambda T: T.bincount(T.tensor([2**50])),
        lambda T: T.zeros(2**62, 4),
        lambda T: T.fft.fft(T.ones(3), 2**50),
        lambda T: T.linalg.svdvals(T.full((3, 3), float("nan"))),  # LAPACK
        lambda T: T.linalg.eig(T.full((3, 3), float("nan"))),
        lambda T: T.addmm(T.ones(2, 2), T.ones(2, 2), T.ones(2, 2), beta=1e308),  # numbers
        lambda T: T.ones(2, dtype=T.int8).sub_(1, alpha=2**40),
        lambda T: T.clamp(T.ones(2), min=1e308),
        lambda T: T.clamp(T.ones(2, dtype=T.uint8), max=-300),
        lambda T: T.addcmul(T.ones(2), T.ones(2), T.ones(2), value=1e308),
        lambda T: T.lerp(T.ones(2), T.ones(2), 1e308),
        lambda T: T.full((2,), 1e308, dtype=T.float16),
        lambda T: T.cumsum(T.ones(1), 2**63),
        lambda T: T.roll(T.ones(1), 2**63),
        lambda T: T.add(T.ones(1), 1, alpha=2**64),
        lambda T: T.max_pool2d(T.ones(1, 4, 4), 2, 2**40),
        lambda T: T._C._nn.avg_pool2d(T.ones(1, 4, 4), 2, 2**31),
        lambda T: T.allclose(T.ones(2), T.ones(2), rtol=float("nan")),
        lambda T: T.isclose(T.ones(2), T.ones(2), atol=float("nan")),
        lambda T: T.index_select(T.tensor(5.0), 0, T.tensor([3])),
        lambda T: T.index_add(T.tensor(1.0), 0, T.tensor([0, 0, 0]), T.ones(3)),
        lambda T: T.fft.fftfreq(0),
        lambda T: T.fft.rfftfreq(0),
        lambda T: T.fft.fftfreq(3, d=0),
        lambda T: T.fft.fftfreq(-1),
        lambda T: T.polygamma(2**31, T.tensor([0.5, -1.0, 2.0])),
        lambda T: T.polygamma(2**40, T.tensor([0.5, -1.0, 2.0])),
    ],
)
def test_the_words_of_a_refusal(call):
    assert outcome(rt, call) == outcome(torch, call)


def words(lib, call):
    """An error's type and words without PyTorch's C++ stack."""
    with pytest.raises(Exception) as caught:
        call(lib)
    return type(caught.value).__name__, str(caught.value).partition("\nException raised from")[0].rstrip('"').replace(
        "SymInt", "int"
    ).replace('"', "'")


@pytest.mark.parametrize(
    "call",
    [
        lambda T: T.sum(T.ones(1), [2**63]),
        lambda T: T.ops.aten.cumsum.default(T.ones(1), 2**63),
        lambda T: T.ops.aten.cumsum.default(T.ones(1), 1.5),
        lambda T: T.ops.aten.add.Scalar(T.ones(1), None),
        lambda T: T.ops.aten.quantile.default(T.ones(2), 0.5),
        lambda T: T.ops.aten.roll.default(T.ones(1), [1.5]),
        lambda T: T.ops.aten.cat.default(1),
        lambda T: T.ops.aten.zeros.default([2], dtype="x"),
    ],
)
def test_the_words_of_a_refused_argument(call):
    assert words(rt, call) == words(torch, call)


@pytest.mark.parametrize("shape", [(3,), (1,)])
def test_native_batch_norm_with_parameters_of_another_size(shape):
    """PyTorch's reads what lies behind them."""
    x = rt.rand(4, 2)
    with pytest.raises(RuntimeError, match=f"weight should contain 2 elements not {shape[0]}"):
        rt.native_batch_norm(x, rt.ones(shape), None, None, None, True, 0.1, 1e-5)
    with pytest.raises(RuntimeError, match="Expected running_mean and running_var to be defined"):
        rt.native_batch_norm(x, None, None, None, None, False, 0.1, 1e-5)


def test_a_kernels_own_error_stays():
    with pytest.raises(IndexError, match="Dimension out of range") as caught:
        rt.ones(2).sum(5)
    assert caught.value.__cause__ is None


def test_more_pieces_than_memory_has_room_for():
    """PyTorch makes them, if it may have 16 GB."""
    with pytest.raises(RuntimeError, match="std::bad_alloc"):
        rt.tensor_split(rt.ones(3), 2**31)


def test_eigenvalues_of_nan():
    """What follows the sentence is LAPACK's code, which NumPy does not tell."""
    with pytest.raises(rt.linalg.LinAlgError, match="linalg.eigh: The algorithm failed to converge"):
        rt.linalg.eigvalsh(rt.full((3, 3), float("nan")))
