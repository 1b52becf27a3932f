"""In-place operators that write to an expanded tensor, where an element shows at several places."""

import itertools
import math

import pytest
import torch

import readtorch

DTYPES = ("float32", "int64", "bfloat16", "bool", "complex64")
TRIANGLES = [
    ((3, 1), (3, 4)),
    ((1, 4), (3, 4)),
    ((3, 4), (2, 3, 4)),
    ((1, 1), (3, 4)),
    ((2, 1, 4), (2, 3, 4)),
    ((3,), (3,)),
]
PRODUCTS = [
    ((1, 2, 2), (3, 2, 2)),
    ((3, 1, 2), (3, 2, 2)),
    ((3, 2, 1), (3, 2, 2)),
    ((1, 1, 1), (3, 2, 2)),
    ((3, 2, 2), (3, 2, 2)),
]


def numbers(T, shape, dtype, device="cpu"):
    """1, 2, 3, 4, 0, 1 …"""
    return (T.arange(1, 1 + math.prod(shape)) % 5).reshape(shape).to(getattr(T, dtype)).to(device)


def outcome(base, expanded, change):
    try:
        change(base.expand(expanded))
    except RuntimeError as error:
        return f"{type(error).__name__}: {error}"
    return base.tolist() if base.device.type == "cpu" else None, base._version


@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["tril_", "triu_"])
def test_triangles(name, dtype, device):
    for (shape, expanded), diagonal in itertools.product(TRIANGLES, (-1, 0, 1)):
        found = [
            outcome(numbers(T, shape, dtype, device), expanded, lambda x: getattr(x, name)(diagonal))
            for T in (readtorch, torch)
        ]
        assert found[0] == found[1], (shape, expanded, diagonal)


@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_batches_of_products(dtype, device):
    """Each product is added to what the one before has left."""
    for (shape, expanded), (beta, alpha) in itertools.product(PRODUCTS, ((1, 1), (0, 1), (2, 3), (1, 0))):
        found = []
        for T in (readtorch, torch):
            x, y = numbers(T, (3, 2, 4), dtype, device), numbers(T, (3, 4, 2), dtype, device)
            found.append(
                outcome(numbers(T, shape, dtype, device), expanded, lambda r: r.baddbmm_(x, y, beta=beta, alpha=alpha))
            )
        assert found[0] == found[1], (shape, expanded, beta, alpha)


def test_what_is_nan_is_not_looked_at():
    for T in (readtorch, torch):
        r = T.full((1, 2, 2), math.nan)
        r.expand(2, 2, 2).baddbmm_(T.ones(2, 2, 3), T.ones(2, 3, 2), beta=0)
        assert r.tolist() == [[[3, 3], [3, 3]]]
        r = T.full((1, 3), math.nan)
        r.expand(3, 3).tril_()
        assert r[0, 0].isnan().item() and r[0, 1:].tolist() == [0, 0]
