"""Operators on CUDA tensors that look at places rather than at numbers: pooling of volumes, scans, elements put and
taken, distances, segments, samples. Results and gradients, thread by thread, as on the CPU, and without a race."""
import numpy as np
import pytest

import readtorch as rt
from readtorch import cuda
from readtorch.c10.cuda import simulator
from readtorch.c10.cuda.launch import launching_by
from readtorch.nn import functional as F
from tests.cuda.test_operator_table import device, numbers, results_on  # noqa: F401  (device: a fixture)

VOLUME, IMAGE = numbers(1, 2, 4, 5, 3), numbers(2, 1, 5, 6)
ROWS = rt.tensor([[3.0, 1.0, 2.0, 1.0, 3.0], [0.5, float("nan"), 4.0, float("nan"), 0.5]])

TABLE = {
    "avg_pool3d": (lambda x: F.avg_pool3d(x, (2, 3, 2), (1, 2, 1), (1, 1, 0)), VOLUME),
    "avg_pool3d, ceil": (lambda x: F.avg_pool3d(x[0], 3, 2, 1, True, False), VOLUME.double()),
    "avg_pool3d, divisor": (lambda x: F.avg_pool3d(x, 2, divisor_override=3), VOLUME),
    "max_pool3d": (lambda x: F.max_pool3d(x, (2, 3, 2), (1, 2, 1), (1, 1, 0), return_indices=True), VOLUME),
    "max_pool3d, dilated": (lambda x: F.max_pool3d(x[0], 2, 1, 0, (2, 1, 2), True, return_indices=True), VOLUME),
    "max_pool3d, overlapping": (
        lambda x: F.max_pool3d(x.to(memory_format=rt.channels_last_3d), 2, 1), VOLUME.double()),
    "adaptive_max_pool3d": (lambda x: F.adaptive_max_pool3d(x, (3, 2, 3), return_indices=True), VOLUME),
    "fractional_max_pool2d": (
        lambda x, s: F.fractional_max_pool2d(x, (2, 3), (3, 2), return_indices=True, _random_samples=s.detach()),
        IMAGE, rt.tensor([[[0.3, 0.8]], [[0.6, 0.1]]])),
    "fractional_max_pool3d": (
        lambda x, s: F.fractional_max_pool3d(x[0], (2, 2, 1), (2, 3, 1), return_indices=True,
                                             _random_samples=s.detach()),
        VOLUME, rt.tensor([[[0.3, 0.8, 0.9], [0.2, 0.5, 0.7]]])),
    "max_unpool2d": (lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2, output_size=(5, 6)), IMAGE),
    "max_unpool3d": (lambda x: F.max_unpool3d(*F.max_pool3d(x, 2, return_indices=True), 2, output_size=(4, 5, 3)),
                     VOLUME),
    "cummax": (lambda x: x.cummax(1), ROWS),
    "cummax of columns": (lambda x: x.cummax(0), ROWS.double()),
    "cummin": (lambda x: x.cummin(-1), ROWS),
    "cummin of integers": (lambda x: x.cummin(0), rt.tensor([3, 1, 2, 1, 0, 4], dtype=rt.int16)),
    "cummax, several pieces": (lambda x: x.cummax(1), numbers(1, 300)),
    "cummax of a number": (lambda x: x.cummax(0), rt.tensor(2.0)),
    "logcumsumexp": (lambda x: x.logcumsumexp(0), numbers(5, 3)),
    "logcumsumexp, infinite": (
        lambda x: x.detach().logcumsumexp(1),
        rt.tensor([[-float("inf"), -float("inf"), 1.0], [2.0, float("inf"), float("inf")]])),
}


@pytest.mark.parametrize("name", TABLE)
def test_as_on_the_cpu(name):
    function, *arguments = TABLE[name]
    with launching_by(simulator.check):
        ours = results_on("cuda", function, arguments)
    expected = results_on("cpu", function, arguments)
    assert len(ours) == len(expected)
    for result, other in zip(ours, expected):
        assert result.dtype == other.dtype and result.shape == other.shape
        assert rt.allclose(result, other, rtol=1e-4, atol=1e-5, equal_nan=True), (result, other)
