"""Strategies of hypothesis that make tensors of the reference: shapes, dtypes, every kind of layout, conjugate views."""

import functools

import hypothesis.extra.numpy
import torch
from hypothesis import strategies as st

FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
COMPLEX = (torch.complex64, torch.complex128)
INTS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
DTYPES = FLOATS + COMPLEX + INTS + (torch.bool,)
DTYPES_OF_KIND = {"f": FLOATS, "c": COMPLEX, "i": INTS, "b": (torch.bool,), "d": (torch.float64,)}


def shapes(min_dims=0, max_dims=4, min_side=0, max_side=5):
    return hypothesis.extra.numpy.array_shapes(
        min_dims=min_dims, max_dims=max_dims, min_side=min_side, max_side=max_side
    )


def broadcastable(n, max_dims=4, min_side=0, max_side=5):
    """Lists of `n` shapes that broadcast with one another."""
    found = hypothesis.extra.numpy.mutually_broadcastable_shapes(
        num_shapes=n, max_dims=max_dims, min_side=min_side, max_side=max_side
    )
    return found.map(lambda s: list(s.input_shapes))


def dtypes(kinds="fcib"):
    """dtypes of the kinds given: f floats, c complex, i integers, b bool, d only float64."""
    return st.sampled_from([d for k in kinds for d in DTYPES_OF_KIND[k]])


LAYOUTS = ("contiguous", "permuted", "sliced", "expanded")


@st.composite
def tensors(draw, shape=None, dtype=None, layouts=LAYOUTS, low=-5.0, high=5.0, special=False, requires_grad=False):
    """A tensor of torch. `shape` and `dtype` are values or strategies; `special` mixes in nan, inf, -0.0.

    `requires_grad` applies where the dtype allows it. An integer tensor holds whole numbers from `low` to
    `high`.
    """
    shape = _drawn(draw, shapes() if shape is None else shape)
    dtype = _drawn(draw, torch.float32 if dtype is None else dtype)
    layout = draw(st.sampled_from(layouts))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**16)))
    numbers = functools.partial(_numbers, dtype=dtype, low=low, high=high, special=special, generator=generator)
    tensor = _in_layout(tuple(shape), layout, draw, numbers)
    if dtype.is_complex and draw(st.booleans()):
        tensor = tensor.conj()  # the memory holds the conjugates of its elements
    return tensor.requires_grad_(requires_grad and (dtype.is_floating_point or dtype.is_complex))


@st.composite
def tensor_lists(draw, n, dtype=None, broadcast=True, **options):
    """`n` tensors whose shapes broadcast (or are equal, with broadcast=False)."""
    chosen = draw(broadcastable(n)) if broadcast else [draw(shapes())] * n
    return [draw(tensors(s, dtype, **options)) for s in chosen]


def _drawn(draw, value):
    return draw(value) if isinstance(value, st.SearchStrategy) else value


def _numbers(shape, dtype, low, high, special, generator):
    if dtype == torch.bool:
        return torch.randint(0, 2, shape, generator=generator).bool()
    if not (dtype.is_floating_point or dtype.is_complex):
        low = max(int(low), torch.iinfo(dtype).min)
        return torch.randint(low, int(high) + 1, shape, generator=generator).to(dtype)
    parts = [torch.rand(shape, generator=generator, dtype=torch.float64) for _ in range(2)]
    parts = [part * (high - low) + low for part in parts]
    if special:
        odd = torch.tensor([float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1.0], dtype=torch.float64)
        for i, part in enumerate(parts):
            picked = odd[torch.randint(0, len(odd), shape, generator=generator)]
            parts[i] = torch.where(torch.rand(shape, generator=generator) < 0.3, picked, part)
    return (torch.complex(*parts) if dtype.is_complex else parts[0]).to(dtype)


def _in_layout(shape, layout, draw, numbers):
    if layout == "permuted" and len(shape) > 1:
        order = draw(st.permutations(range(len(shape))))
        back = [order.index(i) for i in range(len(shape))]
        return numbers(tuple(shape[i] for i in order)).permute(back)
    if layout == "sliced" and shape:
        starts = draw(st.lists(st.integers(0, 2), min_size=len(shape), max_size=len(shape)))
        steps = draw(st.lists(st.integers(1, 3), min_size=len(shape), max_size=len(shape)))
        room = tuple(a + n * s for a, n, s in zip(starts, shape, steps))
        return numbers(room)[tuple(slice(a, a + n * s, s) for a, n, s in zip(starts, shape, steps))]
    if layout == "expanded" and shape:
        kept = draw(st.lists(st.booleans(), min_size=len(shape), max_size=len(shape)))
        return numbers(tuple(n if k else 1 for n, k in zip(shape, kept))).expand(shape)
    return numbers(shape)
