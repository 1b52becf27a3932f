"""Copies of large transposed tensors go in strips (Note [ Transposed copies ]): values, strides, versions as ever."""

import numpy as np
import pytest
import torch

import readtorch
from readtorch.aten.native import copy as native_copy

SHAPES = [(515, 513), (512, 1024), (65, 3, 2050), (8, 64, 57, 33), (1, 2049, 130)]
DTYPES = ["float32", "float64", "int8", "complex128"]


def transposed(lib, shape, dtype):
    count = int(np.prod(shape))
    x = (lib.arange(count) % 101).to(getattr(lib, dtype)).reshape(shape)
    return x.permute(*reversed(range(len(shape))))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_values_and_strides(shape, dtype):
    ours, theirs = (transposed(lib, shape, dtype).contiguous() for lib in (readtorch, torch))
    assert ours.stride() == theirs.stride()
    assert np.array_equal(ours.numpy(), theirs.numpy())


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_into_a_part_and_onto_a_whole(shape):
    results = []
    for lib in (readtorch, torch):
        source = transposed(lib, shape, "float32")
        target = lib.zeros(source.shape)
        target.copy_(source)
        part = lib.zeros(*(n + 2 for n in source.shape))
        part[tuple(slice(1, n + 1) for n in source.shape)].copy_(source)
        results.append((target.numpy(), target._version, part.numpy(), part._version))
    for ours, theirs in zip(*results):
        assert np.array_equal(ours, theirs)


def test_only_large_transposed_arrays_go_in_strips():
    assert native_copy.is_transposed(np.zeros((1024, 512), np.float32).T)
    assert not native_copy.is_transposed(np.zeros((1024, 512), np.float32))
    assert not native_copy.is_transposed(np.zeros((64, 64), np.float32).T)
    assert not native_copy.is_transposed(np.zeros((2, 2**19), np.float32)[:, ::512].T)
