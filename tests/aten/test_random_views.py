"""Random programs of views, empty and 0-dimensional tensors among them: sizes, strides, offset, elements and errors as in PyTorch."""

import random

import pytest
import torch

import readtorch

SIZES = (0, 1, 1, 2, 3, 4)
LOWEST, HIGHEST = -3, 5


def starts(chance):
    """(line, dtype) of the tensor that a program begins with."""
    shape = [chance.choice(SIZES) for _ in range(chance.choice((0, 1, 2, 2, 3, 3, 4)))]
    count = 1
    for n in shape:
        count *= n
    dtype = chance.choice(("float32", "float32", "int64", "uint8", "bfloat16", "complex64"))
    made = chance.choice(
        (
            f"T.arange({count}).to(T.{dtype}).reshape({shape})",
            f"T.zeros({shape}, dtype=T.{dtype})",
            f"T.full({shape}, 3, dtype=T.{dtype})",
            f"T.arange({count + 5}).to(T.{dtype})[5:].view({shape})",
            f"T.empty({shape}, dtype=T.{dtype}, device='meta')",
        )
    )
    return made


def step(chance, x):
    """One line that makes a view of `x`, a tensor of PyTorch; most of them are allowed."""
    shape, ndim = list(x.shape), x.dim()

    def dim(more=0):
        span = max(ndim + more, 1)
        return chance.randrange(-span, span) if chance.random() < 0.95 else chance.randint(LOWEST, HIGHEST)

    def size_of(d):
        return shape[d] if shape and -ndim <= d < ndim else 1

    def number():
        return chance.randint(LOWEST, HIGHEST)

    def index(d):
        return chance.randrange(-size_of(d), size_of(d)) if size_of(d) and chance.random() < 0.9 else number()

    def bound():
        return chance.choice(("", number(), number(), number()))

    def part():
        return chance.choice(
            (
                f"{bound()}:{bound()}:{chance.choice(('', '', 1, 2, 3))}",
                f"{bound()}:{bound()}",
                ":",
                "None",
                "...",
                str(index(0)),
                str(number()),
            )
        )

    def parts():
        found = [part() for _ in range(chance.randint(1, 3))]
        return (
            found if found.count("...") < 2 else ["..."]
        )  # behind a second one PyTorch reads sizes that there are not

    def sizes():
        """Sizes for as many elements, mostly."""
        count, found = x.numel(), []
        if count == 0:
            found = [chance.choice(SIZES) for _ in range(chance.randint(0, 3))] + [0]
            chance.shuffle(found)
        while count > 1 and len(found) < 4:
            n = chance.choice([k for k in range(2, count + 1) if count % k == 0])
            found.append(n)
            count //= n
        for _ in range(chance.choice((0, 0, 1, 2))):
            found.insert(chance.randint(0, len(found)), 1)
        if found and chance.random() < 0.2:
            found[chance.randrange(len(found))] = -1
        if found and chance.random() < 0.05:
            found[chance.randrange(len(found))] = number()
        return found

    def expanded():
        found = [chance.choice((n, -1)) if n != 1 else chance.choice(SIZES + (-1,)) for n in shape]
        found = [chance.choice(SIZES) for _ in range(chance.choice((0, 0, 1, 2)))] + found
        for _ in range(chance.choice((0, 0, 0, 0, 1, 2))):
            if found:
                found[chance.randrange(len(found))] = number()
        if 0 in found or 0 in shape:  # PyTorch makes a tensor with a negative size then
            found = [-1 if n < 0 and shape else abs(n) for n in found]
        return found[: chance.choice((9, 9, 9, 9, 9, 1))]

    def order():
        found = chance.sample(range(ndim), ndim)
        found = [d - ndim if chance.random() < 0.2 else d for d in found]
        return found if chance.random() < 0.95 else [*found, dim()][chance.randint(0, 1) :]

    def strided():
        found = [chance.choice(SIZES) for _ in range(chance.randint(0, 3))]
        if x.is_meta:  # a tensor there may pass the end of its storage, unless it does so in place
            return "[0], [1]"
        return f"{found}, {[chance.randint(0, 3) for _ in found]}, {chance.choice((None, 0, 1, 2))}"

    def one_of(call):
        return f"{call}[{chance.choice((0, 0, 0, -1, 1))}]"

    d = dim()
    dtype = chance.choice(("float32", "int64", "uint8", "int16", "complex64"))
    return chance.choice(
        (
            lambda: f"x[{', '.join(parts())}]",
            lambda: f"x[{', '.join(parts())}]",
            lambda: f"x.select({d}, {index(d)})",
            lambda: f"x.narrow({d}, {index(d)}, {chance.randint(-1, max(size_of(d), 1))})",
            lambda: f"x.view({sizes()})",
            lambda: f"x.reshape({sizes()})",
            lambda: f"x.expand({expanded()})",
            lambda: f"x.expand({expanded()})",
            lambda: f"x.broadcast_to({expanded()})",
            lambda: f"x.transpose({dim()}, {dim()})",
            lambda: f"x.transpose({dim()}, {dim()})",
            lambda: "x.t()",
            lambda: f"x.permute({order()})",
            lambda: f"x.movedim({dim()}, {dim()})",
            lambda: f"x.unsqueeze({dim(1)})",
            lambda: "x.squeeze()",
            lambda: f"x.squeeze({dim()})",
            lambda: f"x.squeeze(({dim()}, {dim()}))",
            lambda: f"x.flatten({dim()}, {dim()})",
            lambda: f"x.unflatten({d}, {chance.choice(((-1, 1), (1, -1), (-1, 2), (size_of(d),), (1, size_of(d))))})",
            lambda: f"x.unfold({d}, {chance.randint(-1, size_of(d) + 1)}, {chance.randint(0, 3)})",
            lambda: f"x.diagonal({chance.randint(-3, 3)}, {dim()}, {dim()})",
            lambda: f"x.as_strided({strided()})",
            lambda: one_of(f"x.unbind({dim()})"),
            lambda: one_of(f"x.split({chance.randint(-1, 3)}, {dim()})"),
            lambda: one_of(f"x.split([1, {size_of(d) - 1}], {d})"),
            lambda: one_of(f"x.chunk({chance.randint(-1, 3)}, {dim()})"),
            lambda: one_of(f"x.tensor_split({chance.randint(-1, 3)}, {dim()})"),
            lambda: one_of(f"x.tensor_split([{number()}, {number()}], {dim()})"),
            lambda: f"x.view(T.{dtype})",
            lambda: "x.detach()",
            lambda: "x.mT",
            lambda: "x.view_as(x)",
            lambda: "T.view_as_real(x)",
            lambda: "T.view_as_complex(x)",
            lambda: "x.real",
            lambda: "x.imag",
            lambda: f"x.detach().transpose_({dim()}, {dim()})",
            lambda: f"x.detach().squeeze_({dim()})" if ndim > 1 else "x",
            lambda: f"x.detach().unsqueeze_({dim(1)})",
            lambda: f"x.detach().as_strided_({strided()})",
        )
    )()


def described(x):
    """All that a view is made of."""
    values = "meta" if x.device.type == "meta" else str(x.tolist())
    of = x.dtype, tuple(x.shape), x.stride(), x.storage_offset(), x.untyped_storage().nbytes(), x.is_contiguous()
    return f"{of} {values}".replace("readtorch.", "torch.")


def outcome(line, T, x=None):
    """(tensor, what it is), or what is wrong."""
    try:
        result = eval(line, {"T": T, "x": x})
        return result, described(result)
    except Exception as error:
        text = str(error).partition("\nException raised from")[0]  # PyTorch's C++ stack
        return None, f"{type(error).__name__}: {text}"


def difference(seed):
    """What PyTorch and readtorch say, where they differ first, and the program so far; None if they never do."""
    chance = random.Random(seed)
    program = [starts(chance)]
    theirs = ours = None
    for _ in range(8):
        wanted, seen = outcome(program[-1], torch, theirs), outcome(program[-1], readtorch, ours)
        if wanted[1] != seen[1]:
            return "\n".join([*program, wanted[1], seen[1]])
        if wanted[0] is not None:
            theirs, ours = wanted[0], seen[0]
        elif theirs is None:
            return None
        program.append(step(chance, theirs))
    return None


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("first", range(0, 1200, 300))
def test_random_programs_of_views(first):
    found = [d for d in map(difference, range(first, first + 300)) if d]
    assert not found, "\n\n".join(found[:3])
