"""einsum: sums of products, written with one letter a dimension.

In PyTorch: `aten/src/ATen/native/Linear.cpp`. Explained in the chapter "Layers, functional, init".
"""
import math

from ..functions import at
from ..native_function import native_function, python_face

ELLIPSIS = "..."
LETTERS = [
    *"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
]  # in the order in which an implicit output has them

einsum = native_function("einsum(str equation, Tensor[] tensors, *, int[]? path=None) -> Tensor", "")


@python_face("einsum", "function")
def einsum_face(*args):
    """`einsum("ij,jk->ik", a, b)`; the tensors may also come as one list.

    Also the form without letters, `einsum(a, [0, 1], b, [1, 2], [0, 2])`. Explained in "Layers as functions".
    """
    if len(args) < 2:
        raise ValueError("einsum(): must specify the equation string and at least one operand, "
                         "or at least one operand and its subscripts list")
    equation, operands = from_numbers(args) if hasattr(args[0], "_array") else (args[0], args[1:])
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        return einsum_face(equation, *operands[0])
    return einsum.call(equation, list(operands), None)


def from_numbers(args):
    """The equation for operands that alternate with lists of numbers, and the operands."""
    def spell(part):
        if part is Ellipsis:
            return ELLIPSIS
        if isinstance(part, int) and 0 <= part < 52:
            return LETTERS[part]
        raise ValueError("einsum(): subscript in subscript list is not within the valid range [0, 52)")
    equation = ",".join("".join(map(spell, subscripts)) for subscripts in args[1::2])
    if len(args) % 2:
        equation += "->" + "".join(map(spell, args[-1]))
    return equation, args[:len(args) // 2 * 2:2]


# --------------------------------------------------------------------------------------- reading the equation

def read_subscripts(text, start, place):
    """The letters of one operand or of the output, with ELLIPSIS as one entry. `start`: where the text stands
    in the equation."""
    subscripts, i = [], 0
    while i < len(text):
        letter = text[i]
        if letter == ".":
            if ELLIPSIS in subscripts:
                raise RuntimeError(f"einsum(): found '.' for {place} " + (
                    "but an ellipsis (...) was already "
                    "found" if place == "output" else "for which an ellipsis was already found"))
            if text[i:i + 3] != ELLIPSIS:
                raise RuntimeError(f"einsum(): found '.' for {place} that is not part of any ellipsis" + (
                    " (...)" if place == "output" else ""))
            subscripts.append(ELLIPSIS)
            i += 2
        elif letter != " ":
            if letter not in LETTERS:
                raise RuntimeError(f"einsum(): invalid subscript given at index {start + i} in the equation "
                                   f"string, subscripts must "
                                   "be in [a-zA-Z]")
            subscripts.append(letter)
        i += 1
    return subscripts


def read_operands(left, operands):
    """The subscripts of each operand; raises RuntimeError unless they fit the operands' number and
    dimensions."""
    texts = left.split(",")
    if len(texts) > len(operands):
        raise RuntimeError("einsum(): fewer operands were provided than specified in the equation")
    starts = [sum(len(t) + 1 for t in texts[:i]) for i in range(len(texts))]
    read = [read_subscripts(t, s, f"operand {i}") for i, (t, s) in enumerate(zip(texts, starts))]
    if len(texts) < len(operands):
        raise RuntimeError("einsum(): more operands were provided than specified in the equation")
    for i, (subscripts, operand) in enumerate(zip(read, operands)):
        has_ellipsis = ELLIPSIS in subscripts
        count, ndim = len(subscripts) - has_ellipsis, operand._array.ndim
        if count > ndim if has_ellipsis else count != ndim:
            relation = (
                "is more than the number of dimensions"
                if has_ellipsis
                else "does not match the number of dimensions"
            )
            given = "" if has_ellipsis else " and no ellipsis was given"
            raise RuntimeError(f"einsum(): the number of subscripts in the equation ({count}) {relation} "
                               f"({ndim}) for operand {i}{given}")
    return read


def read_output(right, start, used):
    """The output's subscripts, each of which must be used by an operand and stand there once."""
    output = read_subscripts(right, start, "output")
    for i, letter in enumerate(output):
        if letter is not ELLIPSIS and letter in output[:i]:
            raise RuntimeError(f"einsum(): output subscript {letter} appears more than once in the output")
        if letter is not ELLIPSIS and letter not in used:
            raise RuntimeError(f"einsum(): output subscript {letter} does not appear in the equation for any "
                               f"input operand")
    return output


class Plan:
    """Where each subscript stands when all operands are brought to the same dimensions: first the output's,
    then summed ones."""

    def __init__(self, equation, operands):
        left, arrow, right = equation.partition("->")
        self.inputs = read_operands(left, operands)
        counts = {letter: sum(s.count(letter) for s in self.inputs) for letter in LETTERS}
        used = [letter for letter in LETTERS if counts[letter]]
        self.ellipsis_dims = max(
            [o._array.ndim - len(s) + 1 for s, o in zip(self.inputs, operands) if ELLIPSIS in s], default=0
        )
        output = (
            read_output(right, len(left) + 2, used)
            if arrow
            else [ELLIPSIS] + [c for c in used if counts[c] == 1]
        )
        self.place, self.ellipsis_start, at_dim = {}, None, 0
        for subscript in output:
            at_dim = self._give_place(subscript, at_dim)
        self.output_dims = at_dim
        if self.ellipsis_start is None:
            at_dim = self._give_place(ELLIPSIS, at_dim)
        for letter in used:
            if letter not in self.place:
                at_dim = self._give_place(letter, at_dim)
        self.dims = at_dim

    def _give_place(self, subscript, at_dim):
        if subscript is ELLIPSIS:
            self.ellipsis_start = at_dim
            return at_dim + self.ellipsis_dims
        self.place[subscript] = at_dim
        return at_dim + 1


# -------------------------------------------------------------------------------------- aligning the operands

def align(plan, operand, index, sizes):
    """`operand` with its dimensions in the plan's order, 1 for those it lacks, diagonals for repeated
    letters."""
    subscripts = plan.inputs[index]
    order = [None] * plan.dims
    dim = 0
    for subscript in subscripts:
        if subscript is ELLIPSIS:
            covered = plan.inputs_ndim[index] - (len(subscripts) - 1)
            for j in range(plan.ellipsis_dims - covered, plan.ellipsis_dims):
                check_ellipsis_size(operand, dim, index, sizes, plan.ellipsis_start + j)
                order[plan.ellipsis_start + j] = dim
                dim += 1
            continue
        target = plan.place[subscript]
        if order[target] is None:
            check_size(operand, dim, index, sizes, target, subscript)
            order[target] = dim
            dim += 1
        else:
            operand = take_diagonal(operand, order[target], dim, index, subscript)
    for target, source in enumerate(order):
        if source is None:
            operand = operand.unsqueeze(dim)
            order[target] = dim
            dim += 1
    return operand.permute(order)


def check_size(operand, dim, index, sizes, target, subscript):
    size = operand._array.shape[dim]
    if size != 1 and sizes[target] not in (1, size):
        raise RuntimeError(f"einsum(): subscript {subscript} has size {size} for operand {index} which does "
                           f"not broadcast with "
                           f"previously seen size {sizes[target]}")
    sizes[target] = size if size != 1 else sizes[target]


def check_ellipsis_size(operand, dim, index, sizes, target):
    size = operand._array.shape[dim]
    if size != 1 and sizes[target] not in (1, size):
        raise RuntimeError(f"einsum(): dimension {dim} covered by ellipsis in operand {index}has size {size} "
                           f"which does not broadcast "
                           f"with previously seen ellipsis with size {sizes[target]} for the respective "
                           f"dimension")
    sizes[target] = size if size != 1 else sizes[target]


def take_diagonal(operand, first, second, index, subscript):
    shape = operand._array.shape
    if shape[first] != shape[second]:
        raise RuntimeError(f"einsum(): subscript {subscript} is repeated for operand {index} but the sizes "
                           f"don't match, "
                           f"{shape[second]} != {shape[first]}")
    return operand.diagonal(0, first, second).movedim(-1, first)


# ------------------------------------------------------------------------------------------------ contracting

@einsum.compose
def einsum_composite(equation, tensors, path):
    """Aligns the operands, multiplies them from left to right, sums each dimension as soon as no later
    operand has it."""
    if not tensors:
        raise RuntimeError("einsum(): must provide at least one operand")
    plan = Plan(equation, tensors)
    plan.inputs_ndim = [t._array.ndim for t in tensors]
    sizes = [1] * plan.dims
    operands = [align(plan, t, i, sizes) for i, t in enumerate(tensors)]
    if len(operands) == 1:
        summed = list(range(plan.output_dims, plan.dims))
        return operands[0].sum(summed) if summed else operands[0]
    result = operands[0]
    for i in range(1, len(operands)):
        result = contract(result, operands[i], operands[i + 1:], plan)
    return result.view(result.shape[:plan.output_dims]) if plan.dims > plan.output_dims else result


def contract(a, b, later, plan):
    """a · b, summed over the dimensions that neither the output nor a later operand needs."""
    together, only_a, only_b = [], [], []
    for dim in range(plan.output_dims, plan.dims):
        if any(t._array.shape[dim] != 1 for t in later):
            continue
        in_a, in_b = a._array.shape[dim] != 1, b._array.shape[dim] != 1
        if in_a and in_b:
            together.append(dim)
        elif in_a:
            only_a.append(dim)
        elif in_b:
            only_b.append(dim)
    a = a.sum(only_a, True) if only_a else a
    b = b.sum(only_b, True) if only_b else b
    return sumproduct_pair(a, b, together, True)


def sumproduct_pair(left, right, sum_dims, keepdim):
    """(left * right).sum(sum_dims) as one bmm: [shared, left's own, summed] @ [shared, summed, right's
    own]."""
    if not sum_dims:
        return left * right
    ndim = left._array.ndim
    for dim in sum_dims:
        one, other = left._array.shape[dim], right._array.shape[dim]
        if one != 1 and other == 1:
            left = left.sum(dim, True)
        elif one == 1 and other != 1:
            right = right.sum(dim, True)
    a, b = left._array.shape, right._array.shape
    kept = [d for d in range(ndim) if d not in sum_dims]
    shared = [d for d in kept if a[d] != 1 and b[d] != 1]
    lefts = [d for d in kept if a[d] != 1 and b[d] == 1]
    rights = [d for d in kept if a[d] == 1]
    sums = list(sum_dims)

    def size(shape, dims):
        return math.prod(shape[d] for d in dims)

    left = left.permute(shared + lefts + sums + rights).reshape(
        (size(a, shared), size(a, lefts), size(a, sums))
    )
    right = right.permute(shared + sums + rights + lefts).reshape(
        (size(a, shared), size(b, sums), size(b, rights))
    )
    order = shared + lefts + sums + rights
    sizes = [a[d] for d in shared + lefts] + [1] * len(sums) + [b[d] for d in rights]
    result = at.bmm(left, right).view(sizes).permute([order.index(d) for d in range(ndim)])
    return result if keepdim else result.view([result._array.shape[d] for d in kept])
