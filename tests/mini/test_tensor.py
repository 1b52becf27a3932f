"""readtorch.mini.tensor beside PyTorch: 500 random chains of views, with what is written through them."""

import math
import random

import numpy as np
import pytest
import torch

from readtorch.mini.tensor import Storage, Tensor, infer_size

VIEWS = 500
SIZES = (2, 3, 4, 5)


def geometry(t):
    """Shape, strides and offset of a tensor of either kind."""
    if isinstance(t, Tensor):
        return t.shape, t.strides, t.offset
    return tuple(t.shape), t.stride(), t.storage_offset()


def outcome(step, t):
    """The view, or the type of the error."""
    try:
        return step(t)
    except Exception as error:
        return type(error)


def divided(numel, rng):
    """A random shape of this many elements, sizes of 1 included."""
    shape = []
    while numel > 1:
        size = rng.choice([n for n in range(1, numel + 1) if numel % n == 0])
        shape.append(size)
        numel //= size
    rng.shuffle(shape)
    return shape + [1] * rng.randrange(0 if shape else 1, 2)


def random_step(shape, rng):
    """A view operation, a function of a tensor of either kind; some are refused."""
    dim, other = rng.randrange(len(shape)), rng.randrange(len(shape))
    start, length = rng.randrange(shape[dim] + 1), rng.randrange(shape[dim] + 2)
    dims = rng.sample(range(len(shape)), len(shape))
    sizes = divided(math.prod(shape), rng)
    wider = [*rng.choice([[], [2]]), *(3 if n == 1 else n for n in shape)]
    index = (slice(None),) * dim + (slice(start, start + length, rng.choice([1, 1, 2])),)
    window, step = rng.randrange(1, shape[dim] + 2), rng.choice([1, 2])
    numbers, repeated = (rng.randrange(-6, 7), rng.randrange(-2, 4)), [dim, other, start][: len(shape)]
    given = [rng.randrange(-1, 8) for _ in shape], rng.randrange(-4, 9)
    return rng.choice(
        [
            lambda t: t.transpose(dim, other),
            lambda t: t.permute(*dims),
            lambda t: t.select(dim, start),
            lambda t: t.narrow(dim, start, length),
            lambda t: t[index],
            lambda t: t.view(*sizes),
            lambda t: t.view(*sizes),
            lambda t: t.expand(*wider),
            lambda t: t.unfold(dim, window, step),
            lambda t: t.narrow(dim, *numbers),
            lambda t: t.unfold(dim, *numbers),
            lambda t: t.permute(*(d % len(shape) for d in repeated)),
            lambda t: t.as_strided(shape, *given),
        ]
    )


def test_random_views():
    rng, made, refused, kinds = random.Random(0), 0, 0, set()
    while made < VIEWS:
        theirs = torch.arange(math.prod(SIZES)).view(SIZES)
        ours = Tensor.of(range(math.prod(SIZES))).view(*SIZES)
        base = theirs, ours
        for _ in range(rng.randrange(1, 7)):
            if not theirs.dim() or theirs.numel() > 10_000:
                break
            step = random_step(theirs.shape, rng)
            after = outcome(step, theirs), outcome(step, ours)
            if isinstance(after[0], type):
                assert after[1] is after[0]
                refused += 1
                continue
            theirs, ours = after
            assert geometry(ours) == geometry(theirs)
            assert ours.tolist() == theirs.tolist()
            assert ours.is_contiguous() == theirs.is_contiguous()
            assert ours.storage is base[1].storage
            kinds.add(theirs.is_contiguous())
            made += 1
        if len(np.unique(ours.places())) == theirs.numel():  # else what a write does is undefined
            theirs += 1000
            ours += 1000
            assert base[1].tolist() == base[0].tolist()
    assert refused > 50 and kinds == {True, False}


@pytest.mark.parametrize("a", [(), (3,), (1,), (2, 3), (4, 1, 3), (2, 1), (0,), (4,)])
@pytest.mark.parametrize("b", [(), (3,), (1, 3), (2, 3), (4, 1, 1), (0, 1)])
def test_sums_and_products_broadcast(a, b):
    pairs = [(torch.randn(shape), shape) for shape in (a, b)]
    x, y = (t for t, _ in pairs)
    u, v = (Tensor.of(t.numpy()) for t, _ in pairs)
    try:
        expected = x + y, x * y
    except RuntimeError as error:
        with pytest.raises(RuntimeError) as ours:
            u + v
        assert str(ours.value) == str(error).partition(" at non-singleton")[0]
        return
    for found, wanted in zip((u + v, u * v), expected, strict=True):
        assert found.shape == tuple(wanted.shape) == infer_size(a, b)
        assert np.array_equal(found.read(), wanted.numpy())


def test_numbers_and_writes():
    x, y = Tensor.of([[1, 2.5], [3, 4]]), torch.tensor([[1, 2.5], [3, 4]])
    assert (x * 2 + 1).tolist() == (y * 2 + 1).tolist() and (x * 2).dtype == np.float32
    x[:, 1] = 9
    x[0] = x[1]
    y[:, 1] = 9
    y[0] = y[1]
    x *= 3
    assert x.tolist() == (y * 3).tolist()
    with pytest.raises(TypeError):
        Tensor.of([1]) + 2.5


def test_reshape_copies_when_it_must():
    x = Tensor.of(range(6)).view(2, 3)
    assert x.reshape(6).storage is x.storage and x.contiguous() is x
    turned = x.transpose(0, 1)
    assert turned.reshape(6).storage is not x.storage
    assert turned.reshape(6).tolist() == turned.contiguous().view(6).tolist() == [0, 3, 1, 4, 2, 5]


def test_strided_views_stay_within_the_storage():
    with pytest.raises(RuntimeError, match="needs 56 bytes"):
        Tensor.of(range(6)).as_strided((3, 3), (2, 1))
    for refused in [((3,), (1,), -3), ((3,), (-1,), 3), ((-1,), (1,)), ((3, 1), (1,))]:
        with pytest.raises(RuntimeError, match="no tensor has"):
            Tensor.of(range(6)).as_strided(*refused)
        with pytest.raises(RuntimeError):
            torch.arange(6).as_strided(*refused)
    assert Tensor.of(range(6)).narrow(0, -1, 1).tolist() == torch.arange(6).narrow(0, -1, 1).tolist() == [5]
    assert len(Storage(7).bytes) == 7
