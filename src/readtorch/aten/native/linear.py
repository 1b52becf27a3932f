"""linear (y = x Wᵀ + b), and the products that are described by dimensions: einsum, tensordot, bilinear.

In PyTorch: `aten/src/ATen/native/Linear.cpp`.
Explained in the chapters "One training step, end to end" and "Layers: convolution, embedding, recurrence".
"""

import math

import numpy as np

from readtorch.aten.context import context
from readtorch.aten.expand_utils import broadcast_shape
from readtorch.aten.functions import at
from readtorch.aten.native_function import native_function, python_binding
from readtorch.aten.register_dispatch_key import any_device, write_out
from readtorch.aten.tensor_meta import TensorMeta
from readtorch.c10.dispatch_key import BATCHED
from readtorch.c10.tensor_impl import dtype_of, wrap
from readtorch.c10.wrap_dim import wrap_dim

from .exact_out import exact_out, expected_dtype
from .linear_algebra.addmm import add_to_bias, addmm
from .linear_algebra.matmul import matmul, tensordot_types
from .tensor_iterator import F4, compute, conj
from .tensor_shape.view import t

linear = native_function(
    "linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor", module="nn", out=True, direct=True
)


@linear.compose
def linear_composite(input, weight, bias):
    """With a bias one fused addmm, over the input's leading dimensions flattened into rows where that is free."""
    array = input._array
    if bias is None:
        return matmul.call(input, t.call(weight))
    if array.ndim == 2:
        return addmm.call(bias, input, t.call(weight), 1, 1)
    flattens = bias._array.ndim == 1 and array.ndim and array.flags.c_contiguous
    if flattens and not (array.ndim == 1 and input._keys & BATCHED):  # in PyTorch: so, though a vector is contiguous
        rows = addmm.call(bias, input.view((math.prod(array.shape[:-1]), array.shape[-1])), t.call(weight), 1, 1)
        return rows.view((*array.shape[:-1], rows._array.shape[1]))
    return at.add(matmul.call(input, t.call(weight)), bias)


@linear.kernel
def linear_cpu(input, weight, bias):
    """The common case without a graph: autograd need not know of the view of the weight."""
    x, w = input._array, weight._array
    if bias is not None and x.ndim == 2 == w.ndim and x.dtype is F4 is w.dtype and bias._array.dtype is F4:
        result = add_to_bias(bias._array, x, w.T)
        if result is not None:
            return wrap(result)
    return linear_composite(input, weight, bias)


@linear.out.kernel
@any_device
def linear_out(input, weight, bias, out):
    """Into existing memory: except for matrices, the bias is added in a second step."""
    if bias is None or input._array.ndim == 2:
        result = linear.call(input, weight, bias)
    else:
        result = at.add(matmul.call(input, t.call(weight)), bias)
    if out._array.dtype != result._array.dtype:
        raise RuntimeError(expected_dtype(out, result))
    return write_out(result, (out,))


# ----------------------------------------------------------------------------------------------------- einsum

ELLIPSIS = "..."
LETTERS = [*"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"]  # in the order in which an implicit output has them

einsum = native_function("einsum(str equation, Tensor[] tensors, *, int[]? path=None) -> Tensor", "")


@python_binding("einsum", "function")
def einsum_binding(*args):
    """`einsum("ij,jk->ik", a, b)`; the tensors may also come as one list.

    Also the form without letters, `einsum(a, [0, 1], b, [1, 2], [0, 2])`. Explained in "Layers as functions".
    """
    if len(args) < 2:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, "
            "or at least one operand and its subscripts list"
        )
    equation, operands = from_numbers(args) if hasattr(args[0], "_array") else (args[0], args[1:])
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        return einsum_binding(equation, *operands[0])
    path = None
    if context.contraction_path is not None and len(operands) > 2:
        path = context.contraction_path(equation, operands)
    return einsum.call(equation, list(operands), path)


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
    return equation, args[: len(args) // 2 * 2 : 2]


# --------------------------------------------------------------------------------------- reading the equation


def read_subscripts(text, start, place):
    """The letters of one operand or of the output, with ELLIPSIS as one entry. `start`: where the text stands
    in the equation."""
    subscripts, i = [], 0
    while i < len(text):
        letter = text[i]
        if letter == ".":
            if ELLIPSIS in subscripts:
                raise RuntimeError(
                    f"einsum(): found '.' for {place} "
                    + (
                        "but an ellipsis (...) was already found"
                        if place == "output"
                        else "for which an ellipsis was already found"
                    )
                )
            if text[i : i + 3] != ELLIPSIS:
                raise RuntimeError(
                    f"einsum(): found '.' for {place} that is not part of any ellipsis"
                    + (" (...)" if place == "output" else "")
                )
            subscripts.append(ELLIPSIS)
            i += 2
        elif letter != " ":
            if letter not in LETTERS:
                raise RuntimeError(
                    f"einsum(): invalid subscript given at index {start + i} in the equation string, "
                    "subscripts must be in [a-zA-Z]"
                )
            subscripts.append(letter)
        i += 1
    return subscripts


def read_operands(left, operands):
    """The subscripts of each operand; raises RuntimeError unless they fit the operands' number and dimensions."""
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
                "is more than the number of dimensions" if has_ellipsis else "does not match the number of dimensions"
            )
            given = "" if has_ellipsis else " and no ellipsis was given"
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({count}) {relation} "
                f"({ndim}) for operand {i}{given}"
            )
    return read


def read_output(right, start, used):
    """The output's subscripts, each of which must be used by an operand and stand there once."""
    output = read_subscripts(right, start, "output")
    for i, letter in enumerate(output):
        if letter is not ELLIPSIS and letter in output[:i]:
            raise RuntimeError(f"einsum(): output subscript {letter} appears more than once in the output")
        if letter is not ELLIPSIS and letter not in used:
            raise RuntimeError(
                f"einsum(): output subscript {letter} does not appear in the equation for any input operand"
            )
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
        output = read_output(right, len(left) + 2, used) if arrow else [ELLIPSIS] + [c for c in used if counts[c] == 1]
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
    """`operand` with its dimensions in the plan's order, 1 for those it lacks, diagonals for repeated letters."""
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
        raise RuntimeError(
            f"einsum(): subscript {subscript} has size {size} for operand {index} which does not "
            f"broadcast with previously seen size {sizes[target]}"
        )
    sizes[target] = size if size != 1 else sizes[target]


def check_ellipsis_size(operand, dim, index, sizes, target):
    size = operand._array.shape[dim]
    if size != 1 and sizes[target] not in (1, size):
        raise RuntimeError(
            f"einsum(): dimension {dim} covered by ellipsis in operand {index}has size {size} which "
            f"does not broadcast with previously seen ellipsis with size {sizes[target]} for the "
            "respective dimension"
        )
    sizes[target] = size if size != 1 else sizes[target]


def take_diagonal(operand, first, second, index, subscript):
    shape = operand._array.shape
    if shape[first] != shape[second]:
        raise RuntimeError(
            f"einsum(): subscript {subscript} is repeated for operand {index} but the sizes don't "
            f"match, {shape[second]} != {shape[first]}"
        )
    return operand.diagonal(0, first, second).movedim(-1, first)


# ------------------------------------------------------------------------------------------------ contracting


@einsum.compose
def einsum_composite(equation, tensors, path):
    """Aligns the operands, multiplies them from left to right, or as `path` says, and sums a dimension once no operand
    that is still to come has it.

    path: for each product the places of its two factors among what there is; the product is then the last of these.
    """
    if not tensors:
        raise RuntimeError("einsum(): must provide at least one operand")
    plan = Plan(equation, tensors)
    plan.inputs_ndim = [t._array.ndim for t in tensors]
    sizes = [1] * plan.dims
    operands = [align(plan, t, i, sizes) for i, t in enumerate(tensors)]
    if len(operands) == 1:
        summed = list(range(plan.output_dims, plan.dims))
        return operands[0].sum(summed) if summed else operands[0]
    for i in range(len(operands) - 1):
        first, second = (0, 1) if path is None else path[2 * i : 2 * i + 2]
        a, b = operands[first], operands[second]
        others = [t for place, t in enumerate(operands) if place not in (first, second)]
        operands = [contract(a, b, others, plan), *others] if path is None else [*others, contract(a, b, others, plan)]
    (result,) = operands
    return result.view(result.shape[: plan.output_dims]) if plan.dims > plan.output_dims else result


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
    """(left * right).sum(sum_dims) as one bmm: [shared, left's own, summed] @ [shared, summed, right's own]."""
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

    left = left.permute(shared + lefts + sums + rights).reshape((size(a, shared), size(a, lefts), size(a, sums)))
    right = right.permute(shared + sums + rights + lefts).reshape((size(a, shared), size(b, sums), size(b, rights)))
    order = shared + lefts + sums + rights
    sizes = [a[d] for d in shared + lefts] + [1] * len(sums) + [b[d] for d in rights]
    result = at.bmm(left, right).view(sizes).permute([order.index(d) for d in range(ndim)])
    return result if keepdim else result.view([result._array.shape[d] for d in kept])


# ---------------------------------------------------------------------------------------- tensordot, bilinear

# -------------------------------------------------------------------------------------------------- tensordot

tensordot = native_function(
    "tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> Tensor",
    "",
    out=exact_out(tensordot_types),
)


@python_binding("tensordot", "function")
def tensordot_binding(a, b, dims=2, out=None):
    """Contracts dimensions of `a` with dimensions of `b`: a number of them, or two lists. In PyTorch:
    `torch/functional.py`."""
    if hasattr(dims, "_array"):
        if dims._array.size == 1:
            dims = int(dims.item())
        else:
            dims = dims.tolist()
    if isinstance(dims, (list, tuple)):
        dims_a, dims_b = ([d] if isinstance(d, int) else list(d) for d in dims)
    else:
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a.dim(), b.dim()):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        dims_a, dims_b = list(range(-dims, 0)), list(range(dims))
    return tensordot.call(a, b, dims_a, dims_b) if out is None else tensordot.out.call(a, b, dims_a, dims_b, out)


@tensordot.compose
def tensordot_composite(self, other, dims_self, dims_other):
    """The contracted dimensions go to the end of one operand and to the front of the other: a matrix product."""
    if len(dims_self) != len(dims_other):
        raise RuntimeError("both dimension lists should have same length")
    if dtype_of(self) is not dtype_of(other):
        raise RuntimeError("both inputs should have same dtype")
    contracted = 1
    a, b = self._array.shape, other._array.shape
    for d, e in zip(dims_self, dims_other):
        if b[e] == 1:
            self = self.sum(d, True, dtype=self.dtype)
        elif a[d] == 1:
            other = other.sum(e, True, dtype=other.dtype)
        elif a[d] != b[e]:
            raise RuntimeError(
                f"contracted dimensions need to match, but first has size {a[d]} in dim {d} and second "
                f"has size {b[e]} in dim {e}"
            )
        else:
            contracted *= a[d]
    dims_self, dims_other = ([wrap_dim(d, len(a)) for d in dims_self], [wrap_dim(d, len(b)) for d in dims_other])
    rows = [d for d in range(len(a)) if d not in dims_self]
    columns = [d for d in range(len(b)) if d not in dims_other]
    sizes = [a[d] for d in rows], [b[d] for d in columns]
    height, width = map(math.prod, sizes)
    left = self.permute(rows + dims_self)
    if height == 1 == width:  # one number
        right = other.permute(dims_other + columns).reshape((contracted,))
        return left.reshape((contracted,)).dot(right).reshape(sizes[0] + sizes[1])
    left, right = left.reshape((height, contracted)), other.permute(dims_other + columns).reshape((contracted, width))
    return left.mm(right).reshape(sizes[0] + sizes[1])


# --------------------------------------------------------------------------------------------------- bilinear

bilinear = native_function("bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor")
_trilinear = native_function(
    "_trilinear(Tensor i1, Tensor i2, Tensor i3, int[] expand1, int[] expand2, int[] expand3, "
    "int[] sumdim, int unroll_dim=1) -> Tensor"
)


@bilinear.compose
def bilinear_composite(input1, input2, weight, bias):
    """y[…, k] = Σ x1[…, i] W[k, i, j] x2[…, j] + b[k]."""
    x, y, w = input1._array.shape, input2._array.shape, weight._array.shape
    if len(x) != len(y):
        raise RuntimeError(f"bilinear(): input dimensions do not match: got {len(x)} and {len(y)}")
    for i, (m, n) in enumerate(zip(x[:-1], y[:-1])):
        if m != n:
            raise RuntimeError(f"bilinear(): input batch dimensions do not match at dim {i}: got {m} and {n}")
    for name, size, expected in (("input1", x[-1], w[1]), ("input2", y[-1], w[2])):
        if size != expected:
            raise RuntimeError(
                f"bilinear(): {name} size does not match weight size: got {size} but expected {expected}"
            )
    if bias is not None and bias._array.shape[0] != w[0]:
        raise RuntimeError(
            f"bilinear(): bias size does not match weight size: got {bias._array.shape[0]} but expected {w[0]}"
        )
    rows = math.prod(x[:-1])
    flat = _trilinear.call(
        input1.reshape((rows, x[-1])), weight, input2.reshape((rows, y[-1])), [1, 3], [0], [1, 2], [2, 3], 1
    )
    result = flat.reshape((*x[:-1], w[0]))
    return result if bias is None else result + bias


@_trilinear.meta
def trilinear_meta(i1, i2, i3, expand1, expand2, expand3, sumdim, unroll_dim):
    sizes = []
    for factor, absent in ((i1, expand1), (i2, expand2), (i3, expand3)):
        present = iter(factor._array.shape)
        sizes.append([1 if d in absent else next(present) for d in range(i1._array.ndim + len(expand1))])
    shape = broadcast_shape(*sizes)
    return TensorMeta(tuple([n for d, n in enumerate(shape) if d not in sumdim]), dtype_of(i1))


@_trilinear.kernel
def trilinear_cpu(i1, i2, i3, expand1, expand2, expand3, sumdim, unroll_dim):
    """The sum over `sumdim` of the product of three tensors, each of which lacks the dimensions in its `expand`.

    In PyTorch: a loop over one dimension, with a bmm in each step.
    """
    total = i1._array.ndim + len(expand1)
    spell = lambda absent: "".join(chr(97 + d) for d in range(total) if d not in absent)
    result = spell(sumdim)
    arrays, dtype = [t._array for t in (i1, i2, i3)], dtype_of(i1)

    def sum_of_products(equation, *arrays):
        return compute(lambda *x: np.einsum(equation, *x, optimize=True), arrays, dtype)

    if dtype.itemsize > 2:
        total_sum = sum_of_products(f"{spell(expand1)},{spell(expand2)},{spell(expand3)}->{result}", *arrays)
    else:  # two steps, rounded after each: first the sums that the third factor has no part in
        pair = spell(set(sumdim) & set(expand3) | set(expand1) & set(expand2))
        first = sum_of_products(f"{spell(expand1)},{spell(expand2)}->{pair}", *arrays[:2])
        total_sum = sum_of_products(f"{pair},{spell(expand3)}->{result}", first, arrays[2])
    return wrap(np.ascontiguousarray(total_sum))


@_trilinear.backward
class TrilinearBackward0:
    """The gradient of one factor is the same sum, in which the gradient stands in the factor's place."""

    def i1(grad, i2, i3, expand1, expand2, expand3, sumdim):
        return _trilinear.call(grad, conj(i2), conj(i3), sumdim, expand2, expand3, expand1, 1)

    def i2(grad, i1, i3, expand1, expand2, expand3, sumdim):
        return _trilinear.call(conj(i1), grad, conj(i3), expand1, sumdim, expand3, expand2, 1)

    def i3(grad, i1, i2, expand1, expand2, expand3, sumdim):
        return _trilinear.call(conj(i1), conj(i2), grad, expand1, expand2, sumdim, expand3, 1)

    def result(i1_p, i1_t, i2_p, i2_t, i3_p, i3_t, expand1, expand2, expand3, sumdim, unroll_dim):
        rest = expand1, expand2, expand3, sumdim, unroll_dim
        by_i1, by_i2 = _trilinear.call(i1_t, i2_p, i3_p, *rest), _trilinear.call(i1_p, i2_t, i3_p, *rest)
        return by_i1 + by_i2 + _trilinear.call(i1_p, i2_p, i3_t, *rest)
