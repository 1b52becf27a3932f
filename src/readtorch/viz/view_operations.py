"""Operations that give a view, computed on sizes, strides and offset alone: the model behind the stride figure.

A program such as ``x.t().view(12)`` is read and carried out step by step. What PyTorch refuses is refused in its words.
``static/models/view_operations.js`` is the same in JavaScript; ``tests/viz/test_strides.py`` compares with PyTorch.

In PyTorch: aten/src/ATen/native/TensorShape.cpp, and ``computeStride`` of aten/src/ATen/TensorUtils.cpp.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import product
from math import prod

from .inputs import INTEGER, Refusal

MOST_ELEMENTS = 100
MOST_DIMENSIONS = 5
ITEMSIZES = {
    "bool": 1,
    "uint8": 1,
    "int8": 1,
    "int16": 2,
    "int32": 4,
    "int64": 8,
    "float16": 2,
    "bfloat16": 2,
    "float32": 4,
    "float64": 8,
}
CLASSES = {
    "bool": "CPUBoolType",
    "uint8": "torch.ByteTensor",
    "int8": "torch.CharTensor",
    "int16": "torch.ShortTensor",
    "int32": "torch.IntTensor",
    "int64": "torch.LongTensor",
    "float16": "torch.HalfTensor",
    "bfloat16": "CPUBFloat16Type",
    "float32": "torch.FloatTensor",
    "float64": "torch.DoubleTensor",
}
CALL = re.compile(r"\s*\.\s*([a-z_]+)\s*\(((?:[^()]|\([^()]*\))*)\)")
TURNED = re.compile(r"\s*\.\s*T(?![a-zA-Z_0-9])")
LIST = re.compile(r"\s*\[\s*\[([^\[\]]*)\]\s*\]")
INDEX = re.compile(r"\s*\[([^\[\]]*)\]")
ARGUMENT = re.compile(r"[(\[][^()\[\]]*[)\]]|[^,()\[\]]+")


@dataclass
class Strided:
    """A tensor as the figure knows it. places: of its storage, which number stands in each cell."""

    sizes: list
    strides: list
    offset: int
    storage: int
    places: list
    dtype: str

    def numel(self):
        return prod(self.sizes)

    def with_(self, sizes, strides, offset=None):
        return Strided(sizes, strides, self.offset if offset is None else offset, self.storage, self.places, self.dtype)

    def cell(self, index):
        return self.offset + sum(i * stride for i, stride in zip(index, self.strides))

    def indices(self):
        return product(*map(range, self.sizes))

    def cells(self):
        return [self.cell(index) for index in self.indices()]


def error(kind: str, text: str):
    raise Refusal(f"{kind}: {text}")


def bracketed(numbers) -> str:
    return f"[{', '.join(map(str, numbers))}]"


def dense_strides(sizes) -> list:
    strides, step = [], 1
    for size in reversed(sizes):
        strides.insert(0, step)
        step *= max(size, 1)
    return strides


# ---- reading a program


def steps_of(program: str) -> list:
    """[(text, name, arguments), …]; an index has the name "[]" and its text as argument. Raises Refusal."""
    if not program.startswith("x"):
        raise Refusal("A program begins with x, such as x.t().reshape(12).")
    steps, at = [], 1
    while at < len(program):
        call, turned, listed, index = (pattern.match(program, at) for pattern in (CALL, TURNED, LIST, INDEX))
        found = call or turned or listed or index
        if not found and re.match(r"\s*\.\s*mT\b", program[at:]):
            raise Refusal("The figure does not know mT; use .t() or .transpose(-2, -1).")
        if not found:
            raise Refusal(f'The program cannot be read from "{program[at:].strip()}" on.')
        text = found[0].strip()
        if call:
            if call[1] not in OPERATIONS:
                raise Refusal(f"The figure does not know {call[1]}; it knows {', '.join(OPERATIONS)}.")
            steps.append((text, call[1], arguments(call[2])))
        elif turned:
            steps.append((text, ".T", []))
        elif index and re.search("[<>=!]", index[1]):
            raise Refusal(f"The figure does not read masks; x{text} is a copy.")
        elif listed:
            raise Refusal(f"The figure does not read lists of indices; x{text} is a copy.")
        else:
            steps.append((text, "[]", index[1]))
        at = found.end()
    return steps


def whole(text: str) -> int:
    text = text.strip()
    if text.startswith("torch.") or text in ITEMSIZES:
        raise Refusal("The figure does not reinterpret bytes.")
    if not INTEGER.fullmatch(text):
        raise Refusal(f'"{text}" is not a whole number.')
    return int(text)


def arguments(text: str) -> list:
    """ "(2, 3), 1" -> [[2, 3], 1]"""
    found = []
    for part in map(str.strip, ARGUMENT.findall(text)):
        if part[:1] in ("(", "["):
            found.append([whole(one) for one in part[1:-1].split(",") if one.strip()])
        elif part:
            found.append(whole(part))
    return found


def flat(found: list) -> list:
    """Sizes may come as one list or one by one."""
    return found[0] if len(found) == 1 and isinstance(found[0], list) else found


# ---- operations: each takes a tensor and the arguments


def wrapped(dim: int, count: int) -> int:
    most = max(count, 1)
    if not -most <= dim < most:
        expected = f"[{-most}, {most - 1}]"
        error("IndexError", f"Dimension out of range (expected to be in range of {expected}, but got {dim})")
    return dim % most


def t(x):
    if len(x.sizes) > 2:
        error("RuntimeError", f"t() expects a tensor with <= 2 dimensions, but self is {len(x.sizes)}D")
    return x.with_(x.sizes[::-1], x.strides[::-1])


def transpose(x, first, second):
    first, second = wrapped(first, len(x.sizes)), wrapped(second, len(x.sizes))
    order = list(range(len(x.sizes)))
    if order:
        order[first], order[second] = second, first
    return reordered(x, order)


def permute(x, *dims):
    dims = flat(list(dims))
    if len(dims) != len(x.sizes):
        error(
            "RuntimeError",
            "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
            f"ordering of dimensions i.e. input.dim() = {len(x.sizes)} is not equal to len(dims) = {len(dims)}",
        )
    order = []
    for dim in (wrapped(dim, len(x.sizes)) for dim in dims):
        if dim in order:
            error("RuntimeError", "permute(): duplicate dims are not allowed.")
        order.append(dim)
    return reordered(x, order)


def reordered(x, order):
    return x.with_([x.sizes[d] for d in order], [x.strides[d] for d in order])


def inferred(shape, numel):
    """A shape in which -1 is replaced by what is left."""
    known, open_ = 1, None
    for at, size in enumerate(shape):
        if size == -1:
            if open_ is not None:
                error("RuntimeError", "only one dimension can be inferred")
            open_ = at
        elif size < 0:
            error("RuntimeError", f"invalid shape dimension {size} at index {at} of shape {bracketed(shape)}")
        else:
            known *= size
    if numel != known and (open_ is None or known == 0 or numel % known):
        error("RuntimeError", f"shape '{bracketed(shape)}' is invalid for input of size {numel}")
    if open_ is None:
        return shape
    if known == 0:
        error(
            "RuntimeError",
            f"cannot reshape tensor of 0 elements into shape {bracketed(shape)} because the unspecified dimension size -1 can be "
            "any value and is ambiguous",
        )
    return [numel // known if size == -1 else size for size in shape]


def groups_of(sizes, strides) -> list:
    """Which neighbouring dimensions lie in memory as one: lists of dimensions, from the first."""
    groups = []
    for d in reversed(range(len(sizes))):
        if groups and (sizes[d] == 1 or strides[d] == reach(groups[0], sizes, strides)):
            groups[0].insert(0, d)
        else:
            groups.insert(0, [d])
    return groups


def reach(group, sizes, strides) -> int:
    """The stride with which one more dimension in front would continue the group."""
    return strides[group[-1]] * prod(sizes[d] for d in group)


def view_strides(x, shape):
    """The strides with which the elements have that shape, or None when they must be copied. In PyTorch: computeStride."""
    if not x.sizes:
        return [1] * len(shape)
    if x.numel() == 0:
        return x.strides if shape == x.sizes else dense_strides(shape)
    strides, d = [0] * len(shape), len(shape) - 1
    for group in reversed(groups_of(x.sizes, x.strides)):
        wanted, taken = prod(x.sizes[i] for i in group), 1
        while d >= 0 and (taken < wanted or shape[d] == 1):
            strides[d] = taken * x.strides[group[-1]]
            taken *= shape[d]
            d -= 1
        if taken != wanted:
            return None
    return strides if d == -1 else None


def view(x, *shape):
    shape = inferred(flat(list(shape)), x.numel())
    strides = view_strides(x, shape)
    if strides is None:
        error(
            "RuntimeError",
            "view size is not compatible with input tensor's size and stride (at least one dimension spans across two contiguous "
            "subspaces). Use .reshape(...) instead.",
        )
    return x.with_(shape, strides)


def reshape(x, *shape):
    shape = inferred(flat(list(shape)), x.numel())
    strides = view_strides(x, shape)
    return copied(x, shape) if strides is None else x.with_(shape, strides)


def flatten(x):
    return x if len(x.sizes) == 1 else reshape(x, x.numel())


def contiguous(x):
    return x if is_contiguous(x) else copied(x, x.sizes)


def copied(x, shape):
    """The elements in a storage of their own."""
    places = [x.places[cell] for cell in x.cells()]
    return Strided(shape, dense_strides(shape), 0, x.storage + 1, places, x.dtype)


def clone(x):
    """A copy without gaps that keeps the order of the dimensions."""
    return in_order_of(x, [x.places[cell] for cell in x.cells()])


def flip(x, *dims):
    """A copy, as no stride is negative."""
    seen = []
    for dim in (wrapped(dim, len(x.sizes)) for dim in flat(list(dims))):
        if dim in seen:
            error("RuntimeError", f"dim {dim} appears multiple times in the list of dims")
        seen.append(dim)
    mirrored = [[n - 1 - i if d in seen else i for d, (i, n) in enumerate(zip(at, x.sizes))] for at in x.indices()]
    return in_order_of(x, [x.places[x.cell(index)] for index in mirrored])


def in_order_of(x, values):
    """A new storage for the elements of x, which get these values, laid out as x is. In PyTorch: empty_like."""
    like = Strided(
        x.sizes, x.strides if is_dense(x) else inferred_strides(x), 0, x.storage + 1, [0] * len(values), x.dtype
    )
    for cell, value in zip(like.cells(), values):
        like.places[cell] = value
    return like


def is_dense(x) -> bool:
    """Whether the elements lie one after the other, in some order of the dimensions; where there are none, they do."""
    step = 1
    for stride, size in sorted((stride, size) for size, stride in zip(x.sizes, x.strides) if size > 1):
        if stride != step and x.numel():
            return False
        step *= size
    return True


def inferred_strides(x) -> list:
    """Strides without gaps, in the order of those of x; a stride of 0 stays where it is. In PyTorch: infer_dense_strides."""
    order = list(reversed(range(len(x.sizes))))
    for last in range(1, len(order)):
        at = last
        for before in reversed(range(last)):
            way = comes_after(x, order[before], order[at])
            if way < 0:
                break
            if way > 0:
                order[before], order[at] = order[at], order[before]
                at = before
    strides, step = [0] * len(order), 1
    for d in order:
        strides[d] = step
        step *= x.sizes[d]
    return strides


def comes_after(x, d, other) -> int:
    """1 if dimension d takes longer steps than the other, -1 if shorter, 0 if either order will do."""
    if not x.strides[d] or not x.strides[other]:
        return 0
    if x.strides[d] != x.strides[other]:
        return 1 if x.strides[d] > x.strides[other] else -1
    return int(x.sizes[d] > x.sizes[other])


def detach(x):
    return x


def diagonal(x, offset=0):
    """Of the first two dimensions."""
    wrapped(0, len(x.sizes))
    wrapped(1, len(x.sizes))
    down, right = max(-offset, 0), max(offset, 0)
    length = max(min(x.sizes[0] - down, x.sizes[1] - right), 0)
    start = down * x.strides[0] + right * x.strides[1] if length else 0
    return x.with_([*x.sizes[2:], length], [*x.strides[2:], x.strides[0] + x.strides[1]], x.offset + start)


def is_contiguous(x) -> bool:
    step = 1
    for size, stride in zip(reversed(x.sizes), reversed(x.strides)):
        if size != 1 and stride != step and x.numel():
            return False
        step *= size
    return True


def expand(x, *sizes):
    sizes = flat(list(sizes))
    if not x.sizes:
        if min(sizes, default=0) < 0:
            error("RuntimeError", "numel: integer multiplication overflow")
        return x.with_(sizes, [0] * len(sizes))
    new = len(sizes) - len(x.sizes)
    if new < 0:
        error(
            "RuntimeError",
            f"expand({CLASSES[x.dtype]}{{{bracketed(x.sizes)}}}, size={bracketed(sizes)}): the number of sizes provided ({len(sizes)}) must be "
            f"greater or equal to the number of dimensions in the tensor ({len(x.sizes)})",
        )
    found, strides = [], []
    for d in reversed(range(len(sizes))):
        size, old = sizes[d], x.sizes[d - new] if d >= new else 1
        follows = found[0] * strides[0] if found else 1
        stride = x.strides[d - new] if d >= new else follows
        if size == -1:
            if d < new:
                error(
                    "RuntimeError",
                    f"The expanded size of the tensor (-1) isn't allowed in a leading, non-existing dimension {d}",
                )
            size = old
        if old != size:
            if old != 1:
                error(
                    "RuntimeError",
                    f"The expanded size of the tensor ({size}) must match the existing size ({old}) at non-singleton dimension {d}.  "
                    f"Target sizes: {bracketed(sizes)}.  Tensor sizes: {bracketed(x.sizes)}",
                )
            stride = 0
        found.insert(0, size)
        strides.insert(0, stride)
    return x.with_(found, strides)


def narrow(x, dim, start, length):
    if not x.sizes:
        error("RuntimeError", "narrow() cannot be applied to a 0-dim tensor.")
    if length < 0:
        error("RuntimeError", "narrow(): length must be non-negative.")
    dim = wrapped(dim, len(x.sizes))
    size = x.sizes[dim]
    if not -size <= start <= size:
        error("IndexError", f"start out of range (expected to be in range of [{-size}, {size}], but got {start})")
    start = start + size if start < 0 else start
    if start + length > size:
        error("RuntimeError", f"start ({start}) + length ({length}) exceeds dimension size ({size}).")
    return sliced(x, dim, start, start + length, 1)


def sliced(x, dim, start, stop, step):
    sizes, strides = [*x.sizes], [*x.strides]
    sizes[dim] = len(range(start, stop, step))
    strides[dim] *= step
    return x.with_(sizes, strides, x.offset + start * x.strides[dim])


def select(x, dim, index):
    if not x.sizes:
        error("IndexError", "select() cannot be applied to a 0-dim tensor.")
    dim = wrapped(dim, len(x.sizes))
    size = x.sizes[dim]
    if not -size <= index < size:
        error(
            "IndexError",
            f"select(): index {index} out of range for tensor of size {bracketed(x.sizes)} at dimension {dim}",
        )
    return selected(x, dim, index % size)


def selected(x, dim, index):
    sizes, strides = [*x.sizes], [*x.strides]
    del sizes[dim], strides[dim]
    return x.with_(sizes, strides, x.offset + index * x.strides[dim])


def unfold(x, dim, size, step):
    dim = wrapped(dim, len(x.sizes))
    old, stride = (x.sizes[dim], x.strides[dim]) if x.sizes else (1, 1)
    if size < 0:
        error("RuntimeError", f"size is {size} but must be >= 0")
    if size > old:
        error("RuntimeError", f"maximum size for tensor at dimension {dim} is {old} but size is {size}")
    if step <= 0:
        error("RuntimeError", f"step is {step} but must be > 0")
    sizes, strides = [*x.sizes, size], [*x.strides, stride]
    if x.sizes:
        sizes[dim], strides[dim] = (old - size) // step + 1, step * stride
    return x.with_(sizes, strides)


def as_strided(x, sizes, strides, offset=None):
    offset = x.offset if offset is None else offset
    return placed(x.with_(sizes, strides, offset))


def placed(x):
    """The tensor, if its elements lie within its storage."""
    itemsize = ITEMSIZES[x.dtype]
    if len(x.sizes) != len(x.strides):
        error("RuntimeError", "mismatch in length of strides and shape")
    if min(x.strides, default=0) < 0:
        text = f"as_strided: Negative strides are not supported at the moment, got strides: {bracketed(x.strides)}"
        error("RuntimeError", text)
    if x.offset < 0:
        error("RuntimeError", f"Tensor: invalid storage offset {x.offset}")
    if min(x.sizes, default=0) < 0:
        sizes, strides = bracketed(x.sizes), bracketed(x.strides)
        error("RuntimeError", f"Storage size calculation overflowed with sizes={sizes} and strides={strides}")
    last = x.offset + sum((size - 1) * stride for size, stride in zip(x.sizes, x.strides))
    if x.numel() and last >= len(x.places):
        error(
            "RuntimeError",
            f"setStorage: sizes {bracketed(x.sizes)}, strides {bracketed(x.strides)}, storage offset {x.offset}, and itemsize {itemsize} "
            f"requiring a storage size of {(last + 1) * itemsize} are out of bounds for storage of size {len(x.places) * itemsize}",
        )
    return x


def unsqueeze(x, dim):
    dim = wrapped(dim, len(x.sizes) + 1)
    stride = x.sizes[dim] * x.strides[dim] if dim < len(x.sizes) else 1
    return x.with_([*x.sizes[:dim], 1, *x.sizes[dim:]], [*x.strides[:dim], stride, *x.strides[dim:]])


def squeeze(x, dim=None):
    gone = range(len(x.sizes)) if dim is None else [wrapped(dim, len(x.sizes))]
    kept = [d for d, size in enumerate(x.sizes) if d not in gone or size != 1]
    return reordered(x, kept)


# ---- the table: an operation, an example of it, and whether its arguments fit

SIZES = "sizes"  # any number of them, or one list
OPERATIONS = {
    "t": (t, "t()", 0, 0),
    "transpose": (transpose, "transpose(0, 1)", 2, 2),
    "permute": (permute, "permute(1, 0)", SIZES, None),
    "view": (view, "view(2, 6)", SIZES, None),
    "reshape": (reshape, "reshape(2, 6)", SIZES, None),
    "flatten": (flatten, "flatten()", 0, 0),
    "contiguous": (contiguous, "contiguous()", 0, 0),
    "expand": (expand, "expand(2, -1, -1)", SIZES, None),
    "narrow": (narrow, "narrow(0, 1, 2)", 3, 3),
    "select": (select, "select(0, 1)", 2, 2),
    "unfold": (unfold, "unfold(0, 2, 1)", 3, 3),
    "as_strided": (as_strided, "as_strided((2, 2), (1, 1), 0)", 2, 3),
    "unsqueeze": (unsqueeze, "unsqueeze(0)", 1, 1),
    "squeeze": (squeeze, "squeeze(0)", 0, 1),
    "diagonal": (diagonal, "diagonal()", 0, 1),
    "detach": (detach, "detach()", 0, 0),
    "clone": (clone, "clone()", 0, 0),
    "flip": (flip, "flip(0)", SIZES, None),
}


def fits(name, found) -> bool:
    lists = [isinstance(one, list) for one in found]
    low, high = OPERATIONS[name][2:]
    if low == SIZES:
        return bool(found) and (lists == [True] or not any(lists))
    if name == "as_strided":
        return lists in ([True, True], [True, True, False])
    return low <= len(found) <= high and not any(lists)


def carry_out(x, step) -> Strided:
    """One step of a program. Raises Refusal."""
    _, name, found = step
    if name == "[]":
        return indexed(x, found)
    if name == ".T":
        return reordered(x, list(reversed(range(len(x.sizes)))))
    operation, example = OPERATIONS[name][:2]
    if not fits(name, found):
        raise Refusal(f"Write {name} as in x.{example}.")
    return operation(x, *found)


# ---- indexing


def indexed(x, text):
    """x[1:, ::2]: numbers, slices, None and one ellipsis."""
    items = [item.strip() for item in text.split(",")]
    if items and items[-1] == "" and len(items) > 1:
        items.pop()
    used = sum(item not in ("None", "...") for item in items)
    if items.count("...") > 1:
        raise Refusal("The figure reads one ... in an index.")
    if used > len(x.sizes) and (x.sizes or len(items) > 1):
        error("IndexError", f"too many indices for tensor of dimension {len(x.sizes)}")
    dim = 0
    for position, item in enumerate(items):
        if item == "None":
            x = unsqueeze(x, dim)
            dim += 1
        elif item == "...":
            dim += len(x.sizes) - dim - sum(later != "None" for later in items[position + 1 :])
        elif ":" in item:
            x = slice_item(x, dim, item)
            dim += 1
        else:
            x = number_item(x, dim, whole(item), position)
    return x


def slice_item(x, dim, item):
    if not x.sizes:
        error("IndexError", "slice() cannot be applied to a 0-dim tensor.")
    parts = item.split(":")
    if len(parts) > 3:
        raise Refusal(f'"{item}" is not a slice.')
    start, stop, step = [whole(part) if part.strip() else None for part in [*parts, "", ""][:3]]
    if step == 0:
        error("ValueError", "slice step cannot be zero")
    if step is not None and step < 0:
        error("ValueError", "step must be greater than zero")
    start, stop, step = slice(start, stop, step).indices(x.sizes[dim])
    return sliced(x, dim, start, max(start, stop), step)


def number_item(x, dim, index, position):
    if not x.sizes and index == 0:
        error(
            "IndexError",
            "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a 0-dim "
            "tensor to a number",
        )
    size = x.sizes[dim] if x.sizes else 0
    if not -size <= index < size:
        error("IndexError", f"index {index} is out of bounds for dimension {position} with size {size}")
    return selected(x, dim, index % size)
