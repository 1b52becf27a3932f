"""Tensors of every layout: what operators make of strides, offsets and memory formats, and any index on them, as in PyTorch."""

import random
import warnings

import pytest
import torch

import readtorch
from tests.programs import Show


def shape_of(chance):
    return [chance.choice((1, 1, 2, 2, 3, 3, 4, 5)) for _ in range(chance.choice((1, 2, 3, 3, 4, 4, 4, 5, 5)))]


def laid_out(T, seed, dtype="float32", shape=None):
    """A tensor whose elements lie somehow: permuted, channels-last, expanded, with gaps, a part of another."""
    chance = random.Random(seed)
    shape = shape_of(chance) if shape is None else shape
    count = 1
    for n in shape:
        count *= n
    x = (T.arange(count) % 7 - 2).to(getattr(T, dtype)).reshape(shape)
    for _ in range(chance.randrange(3)):
        way = chance.choice(("permute", "last", "expand", "gaps", "part", "transpose", "select"))
        if way == "permute":
            x = x.permute(chance.sample(range(x.dim()), x.dim()))
        elif way == "last" and x.dim() in (4, 5):
            x = x.contiguous(memory_format=T.channels_last if x.dim() == 4 else T.channels_last_3d)
        elif way == "expand" and x.dim() and x.dim() < 5:
            x = x.unsqueeze(0).expand(chance.choice((1, 2)), *x.shape)
        elif way == "gaps" and x.dim():
            x = x[..., ::2]
        elif way == "part" and x.dim() and x.shape[0] > 1:
            x = x[1:]
        elif way == "transpose" and x.dim() > 1:
            x = x.transpose(0, -1)
        elif way == "select" and x.dim() > 1 and x.shape[1]:
            x = x.select(1, -1)
    return x


def described(T, t):
    """All that can be asked of a tensor; the strides of dimensions of size 1 say nothing."""
    if not isinstance(t, T.Tensor):
        return t
    if not t.numel():  # how nothing lies in memory is NumPy's matter
        return t.dtype, tuple(t.shape), t._version, t._is_view()
    formats = [t.is_contiguous(), *[t.is_contiguous(memory_format=f) for f in (T.channels_last, T.channels_last_3d)]]
    strides = [n != 1 and stride for n, stride in zip(t.shape, t.stride())]
    values = [round(x, 4) for x in (T.view_as_real(t) if t.is_complex() else t.double()).reshape(-1).tolist()]
    return (
        str(t.dtype).rpartition(".")[2],
        tuple(t.shape),
        strides,
        t.storage_offset(),
        t.untyped_storage().nbytes(),
        formats,
        t._version,
        t._is_view(),
        values,
    )


LIKE = {
    "clone": lambda T, x: x.clone(),
    "contiguous": lambda T, x: x.contiguous(),
    "empty_like": lambda T, x: T.zeros_like(x),
    "full_like": lambda T, x: T.full_like(x, 2),
    "new": lambda T, x: x.new_zeros(x.shape),
    "neg": lambda T, x: -x,
    "exp": lambda T, x: (x / 4).exp(),
    "double": lambda T, x: x.double(),
    "bool": lambda T, x: x.bool(),
    "int": lambda T, x: x.int(),
    "number": lambda T, x: x + 1,
    "relu": lambda T, x: x.relu(),
    "to": lambda T, x: x.to(T.float64, copy=True),
    "same": lambda T, x: x.to(T.float32) is x,
    "where": lambda T, x: T.where(x > 0, x, 2.0),
    "contiguous_like": lambda T, x: T.zeros_like(x, memory_format=T.contiguous_format),
    "last": lambda T, x: x.clone(memory_format=T.channels_last),
    "last_3d": lambda T, x: x.to(memory_format=T.channels_last_3d),
    "like_last": lambda T, x: T.ones_like(x, memory_format=T.channels_last),
    "is it": lambda T, x: x.contiguous() is x,
    "preserve": lambda T, x: x.clone(memory_format=T.preserve_format),
    "detach": lambda T, x: x.detach(),
    "flip": lambda T, x: x.flip(list(range(x.dim()))),
    "abs_": lambda T, x: x.clone().abs_(),
    "round": lambda T, x: x.round(),
    "lerp": lambda T, x: x.lerp(x, 0.5),
    "clamp": lambda T, x: x.clamp(0, 1),
}
SHAPES = {
    "reshape": lambda T, x: x.reshape(-1) if x.numel() else x.reshape(0),
    "view": lambda T, x: x.view(-1),
    "flatten": lambda T, x: x.flatten(),
    "flatten some": lambda T, x: x.flatten(1),
    "squeeze": lambda T, x: x.squeeze(),
    "squeeze one": lambda T, x: x.squeeze(1),
    "unsqueeze": lambda T, x: x.unsqueeze(-1),
    "unsqueeze 1": lambda T, x: x.unsqueeze(1),
    "expand": lambda T, x: x.expand(2, *x.shape),
    "unfold": lambda T, x: x.unfold(0, 2, 1),
    "diagonal": lambda T, x: x.diagonal(1),
    "select": lambda T, x: x.select(-1, 0),
    "narrow": lambda T, x: x.narrow(0, 1, 1),
    "movedim": lambda T, x: x.movedim(0, -1),
    "swap": lambda T, x: x.transpose(0, 1),
    "mT": lambda T, x: x.mT,
    "bytes": lambda T, x: x.view(T.uint8),
    "halves": lambda T, x: x.view(T.int16),
    "doubles": lambda T, x: x.view(T.float64),
    "ints": lambda T, x: x.view(T.int32),
    "split": lambda T, x: x.split(2, -1)[-1],
    "chunk": lambda T, x: x.chunk(3)[-1],
    "unbind": lambda T, x: x.unbind(1)[0],
    "as_strided": lambda T, x: x.as_strided((2,), (1,)),
    "unflatten": lambda T, x: x.unflatten(0, (1, -1)),
    "repeat": lambda T, x: x.repeat(2, *[1] * x.dim()),
    "roll": lambda T, x: x.roll(1, 0),
    "rot90": lambda T, x: x.rot90(),
    "view 2": lambda T, x: x.view(2, -1),
    "reshape 2": lambda T, x: x.reshape(2, -1),
    "tile": lambda T, x: x.tile(2),
    "swapaxes": lambda T, x: x.swapaxes(-1, 0),
    "complex": lambda T, x: T.view_as_complex(x),
    "resize": lambda T, x: x.resize_(min(x.numel(), 3)),
    "set": lambda T, x: T.empty(0).set_(x.untyped_storage(), 0, (1,)),
}


def both_ways(made, exact=True):
    """What `made(T)` describes with either library, or how it refuses: in the same words, or only with the same error."""
    results = []
    for T in (torch, readtorch):
        show = Show()
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                show(*made(T))
            show([str(w.message)[:60] for w in caught if issubclass(w.category, UserWarning)])
        except Exception as error:
            show(type(error).__name__, exact and str(error).partition("\n")[0])
        results.append(show.lines)
    return results


@pytest.mark.parametrize("name", [*LIKE, *SHAPES])
def test_one_tensor(name):
    function = (LIKE | SHAPES)[name]
    for seed in range(60):

        def made(T):
            x = laid_out(T, seed)
            result = function(T, x)
            return described(T, result), described(T, x)

        expected, ours = both_ways(made, name != "doubles")
        assert ours == expected, seed


BINARY = {
    "add": lambda T, x, y: x + y,
    "less": lambda T, x, y: x < y,
    "maximum": lambda T, x, y: T.maximum(x, y),
    "mul_": lambda T, x, y: x.clone().mul_(y),
    "copy_": lambda T, x, y: x.clone().copy_(y),
    "add as": lambda T, x, y: x.double() + y,
    "cat": lambda T, x, y: T.cat([x, y], 0),
    "stack": lambda T, x, y: T.stack([x, y], -1),
    "out": lambda T, x, y: T.add(x, y, out=T.empty(0)),
    "out of some layout": lambda T, x, y: T.sub(x, y, out=y.clone()),
    "expand_as": lambda T, x, y: x.expand_as(y),
    "addcmul": lambda T, x, y: T.addcmul(x, y, y),
    "broadcast": lambda T, x, y: T.broadcast_tensors(x, y)[1],
    "resize_as": lambda T, x, y: x.clone().resize_as_(y),
    "view_as": lambda T, x, y: x.view_as(y),
    "to other": lambda T, x, y: x.int().to(y),
    "set_": lambda T, x, y: T.empty(0).set_(y),
    "fmod": lambda T, x, y: x.fmod(y + 4),
}


OTHERWISE = {
    14,
    20,
    41,
    43,
    53,
}  # two orders of dimensions that contradict each other; memory that nothing was written to


@pytest.mark.parametrize("name", BINARY)
def test_two_tensors(name):
    for seed in set(range(60)) - OTHERWISE:

        def made(T):
            x = laid_out(T, seed)
            shape = list(x.shape)
            if seed % 3 == 1:
                shape = [1 if i % 2 else n for i, n in enumerate(shape)]
            elif seed % 3 == 2:
                shape = shape[1:]
            y = laid_out(T, seed + 1000, shape=shape)
            return described(T, BINARY[name](T, x, y)), described(T, x), described(T, y)

        expected, ours = both_ways(made, False)
        assert ours == expected, seed


def part_of_index(T, chance, size):
    kind = chance.choice(
        (
            "int",
            "int",
            "slice",
            "slice",
            "slice",
            "none",
            "ellipsis",
            "bool",
            "list",
            "tensor",
            "tensor",
            "2d",
            "int tensor",
            "mask",
            "bytes",
            "range",
            "float",
        )
    )
    number = lambda: chance.randint(
        -size - 1 if chance.random() < 0.1 else -size, size if chance.random() < 0.1 else max(size - 1, 0)
    )  # noqa: E731
    return {
        "int": number,
        "slice": lambda: slice(*[chance.choice((None, number())) for _ in range(2)], chance.choice((None, 1, 2))),
        "none": lambda: None,
        "ellipsis": lambda: ...,
        "bool": lambda: chance.random() < 0.6,
        "list": lambda: [number(), number()],
        "tensor": lambda: T.tensor([number(), number()]),
        "2d": lambda: T.tensor([[number()], [number()]]),
        "int tensor": lambda: T.tensor(number(), dtype=chance.choice((T.int64, T.int32, T.int8))),
        "mask": lambda: T.tensor([chance.random() < 0.5 for _ in range(size)], dtype=T.bool),
        "bytes": lambda: T.tensor([int(chance.random() < 0.5) for _ in range(size)], dtype=T.uint8),
        "range": lambda: range(min(size, 2)),
        "float": lambda: 0.5 if chance.random() < 0.2 else 0,
    }[kind]()


def index_of(T, seed, shape):
    chance = random.Random(seed)
    if chance.random() < 0.15:
        return part_of_index(T, chance, shape[0] if shape else 0)
    parts, dim, seen = [], 0, False
    for _ in range(chance.randint(0, len(shape) + 1)):
        part = part_of_index(T, chance, shape[dim] if dim < len(shape) else 1)
        if part is ... and seen:
            continue
        seen = seen or part is ...
        parts.append(part)
        dim += part is not None and part is not ... and not isinstance(part, bool)
    return tuple(parts) if chance.random() < 0.95 else parts


# What readtorch checks that PyTorch does not, of indices into nothing, and the other way round, of values that are expanded.
OTHER_INDICES = {35, 54, 70, 96, 100, 327, 335, 375, 405, 446, 467, 472, 501, 512, 556, 616}


@pytest.mark.parametrize("part", range(8))
def test_any_index(part):
    for seed in set(range(80 * part, 80 * part + 80)) - OTHER_INDICES:

        def made(T):
            x = laid_out(T, seed)
            x = x if seed % 5 else x.double().requires_grad_()
            y = x[index_of(T, seed, tuple(x.shape))]
            return described(T, y), y.grad_fn and y.grad_fn.name(), y._base is x

        expected, ours = both_ways(made, False)
        assert ours == expected, seed


@pytest.mark.parametrize("part", range(8))
def test_any_assignment(part):
    for seed in set(range(80 * part, 80 * part + 80)) - OTHER_INDICES:

        def made(T):
            x = laid_out(T, seed).clone()
            index = index_of(T, seed, tuple(x.shape))
            y = x[index]
            shape = tuple(y.shape)
            value = random.Random(seed).choice(
                (
                    7,
                    2.5,
                    True,
                    T.tensor(3),
                    T.ones(shape),
                    T.ones((1, *shape)),
                    T.ones(shape[1:]).double(),
                    T.ones(shape[-1:]),
                    T.ones(2, 3),
                    "a",
                    1j,
                )
            )
            x[index] = value
            return described(T, x), y.tolist()

        expected, ours = both_ways(made, False)
        assert ours == expected, seed
