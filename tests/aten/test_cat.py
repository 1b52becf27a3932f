"""stack(out=): samples that go where they belong at once, and those that cannot."""

import pytest
import torch

import readtorch


def stacked(lib, shape, count, dim, target):
    parts = [lib.arange(lib.Size(shape).numel()).reshape(shape) + i for i in range(count)]
    out = lib.zeros(target, dtype=lib.int64)
    assert lib.stack(parts, dim, out=out) is out
    return out.tolist(), tuple(out.shape), out._version


@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("shape", [(2,), (2, 3), (0,), (3, 0), (0, 1, 0), (1, 0, 2)])
@pytest.mark.parametrize("fits", [True, False])
def test_out(shape, dim, fits):
    dim_at = dim % (len(shape) + 1)
    target = (*shape[:dim_at], 3, *shape[dim_at:]) if fits else (7,)
    assert stacked(readtorch, shape, 3, dim, target) == stacked(torch, shape, 3, dim, target)
