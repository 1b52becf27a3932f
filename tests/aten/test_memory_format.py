"""The formats that strides speak of, and the strides of new tensors, next to the reference."""

import random

import pytest
import torch
from torch._prims_common import suggest_memory_format

import readtorch
from readtorch.c10 import memory_format as formats

is_non_overlapping_and_dense = torch.ops.aten.is_non_overlapping_and_dense


def layouts(count=400):
    """(sizes, strides in elements) of tensors with permuted, expanded, repeated and empty dimensions, and with gaps."""
    draw = random.Random(20)
    for _ in range(count):
        ndim = draw.choice([1, 2, 3, 4, 4, 4, 5, 5])
        sizes = [draw.choice([1, 1, 2, 3, 4]) for _ in range(ndim)]
        order, strides, step = draw.sample(range(ndim), ndim), [0] * ndim, 1
        if ndim > 3 and draw.random() < 0.3:
            order = [1, *range(ndim - 1, 1, -1), 0]  # channels last
        for d in order:
            strides[d] = step
            step *= sizes[d] * draw.choice([1, 1, 1, 1, 2])
        if draw.random() < 0.2:
            strides[draw.randrange(ndim)] = 0
        yield sizes, strides


def pair(sizes, strides):
    bytes_needed = 1 + sum((n - 1) * s for n, s in zip(sizes, strides))
    return [T.empty(max(bytes_needed, 1), dtype=T.float32).as_strided(sizes, strides) for T in (readtorch, torch)]


def test_the_layouts_differ():
    kinds = {
        (is_non_overlapping_and_dense(theirs), str(suggest_memory_format(theirs)))
        for _, theirs in (pair(*case) for case in layouts())
    }
    assert len(kinds) == 6


def test_density_and_the_suggested_format_are_the_references():
    for case in layouts():
        ours, theirs = pair(*case)
        assert formats.is_non_overlapping_and_dense(ours._array) == is_non_overlapping_and_dense(theirs), case
        assert str(formats.suggested_format(ours._array)) == str(suggest_memory_format(theirs)), case


def test_a_tensor_in_the_likeness_of_another_has_the_references_strides():
    for case in layouts():
        ours, theirs = pair(*case)
        assert formats.dense_strides(ours._array) == torch.empty_like(theirs).stride(), case


@pytest.mark.parametrize("kernels", [False, True])
def test_copies_to_a_device_and_back_keep_the_references_strides(kernels):
    readtorch.cuda.simulate(1, "64MiB", kernels=kernels)
    try:
        for case in list(layouts())[: 12 if kernels else 100]:
            ours, theirs = pair(*case)
            there = ours.fill_(1).as_strided(*case).to("cuda", copy=True)
            strides = torch.empty_like(theirs).stride()
            ignored = [n == 1 for n in theirs.shape]  # NumPy's copies do not keep the strides of such dimensions
            for t in there, there.cpu(), there.to("cpu", readtorch.float64), there.double().cpu():
                assert [s for s, i in zip(t.stride(), ignored) if not i] == [
                    s for s, i in zip(strides, ignored) if not i
                ], case
                assert t.cpu().eq(1).all().item()
    finally:
        readtorch.cuda.simulate(0)


COPIES = {
    "clone": lambda T, x: x.clone(),
    "to": lambda T, x: x.to(T.float64),
    "to, memory format": lambda T, x: x.to(T.float64, memory_format=T.contiguous_format),
    "empty_like": lambda T, x: T.empty_like(x),
    "zeros_like": lambda T, x: T.zeros_like(x),
    "full_like": lambda T, x: T.full_like(x, 2.0),
    "rand_like": lambda T, x: T.rand_like(x),
    "fill": lambda T, x: T.fill(x, 2.0),
}


@pytest.mark.parametrize("name", COPIES)
def test_copies_keep_the_strides_of_a_dense_tensor(name):
    """Those of dimensions of one element, too, which say nothing."""
    for sizes, strides in layouts():
        ours, theirs = (COPIES[name](T, x).stride() for T, x in zip((readtorch, torch), pair(sizes, strides)))
        assert ours == theirs, (sizes, strides)


def test_resize_to_a_memory_format():
    for T in (readtorch, torch):
        x = T.ones(1, 2, 3, 4).resize_(2, 3, 4, 5, memory_format=T.channels_last)
        assert x.stride() == (60, 1, 15, 3)
        assert T.ones(3).resize_as_(x, memory_format=T.preserve_format).stride() == (60, 1, 15, 3)
        with pytest.raises(RuntimeError, match="emory format"):
            x.resize_(1, memory_format=T.preserve_format)
        with pytest.raises(RuntimeError, match="unsupported memory format Preserve"):
            T.empty(2, memory_format=T.preserve_format)


IMAGES = {
    "adaptive_avg_pool2d": lambda F, x, ones: F.adaptive_avg_pool2d(x, 2),
    "adaptive_max_pool2d": lambda F, x, ones: F.adaptive_max_pool2d(x, 2),
    "max_pool2d": lambda F, x, ones: F.max_pool2d(x, 2, 1, 1),
    "conv2d": lambda F, x, ones: F.conv2d(x, ones(4, x.shape[1], 1, 1)),
    "conv_transpose2d": lambda F, x, ones: F.conv_transpose2d(x, ones(x.shape[1], 4, 2, 2)),
    "pad": lambda F, x, ones: F.pad(x, (1, 1, 1, 1)),
    "replicate": lambda F, x, ones: F.pad(x, (1, 1, 1, 1), mode="replicate"),
    "interpolate": lambda F, x, ones: F.interpolate(x, scale_factor=2),
}


@pytest.mark.parametrize("name", IMAGES)
@pytest.mark.parametrize("shape", [(2, 3, 1, 1), (2, 1, 4, 4), (1, 3, 4, 4), (1, 1, 4, 4), (2, 3, 1, 4), (1, 3, 1, 1)])
def test_a_size_of_one_leaves_the_format_to_its_stride(name, shape):
    for memory_format in ("channels_last", "contiguous_format"):
        results = []
        for T in (readtorch, torch):
            x = T.ones(shape).contiguous(memory_format=getattr(T, memory_format))
            result = IMAGES[name](T.nn.functional, x, T.ones)
            results.append((tuple(result.shape), result.stride()))
        assert results[0] == results[1]
