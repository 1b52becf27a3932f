"""What each operator is in Inductor's representation: `lowerings` has a function for each that is more than a call.

    pointwise       a body of one scalar function (which one says csrc/jit/tensorexpr/lowerings.py)
    reductions      sum, mean, amax, amin, var, var_mean
    views           the same storage, elements counted otherwise
    copies          clone, _to_copy, full …: bodies that only load
    indexing        gather, embedding, index …: bodies that load at an index that they have loaded
    products        mm, bmm, and cat: a function of BLAS or NumPy, which is given memory for its result

Whatever is not here, or has arguments or types that its lowering does not know (it raises `Fallback`), is an ExternKernel: the generated
code calls the operator.

In PyTorch: `torch/_inductor/lowering.py`.
"""

import math

import numpy as np

from readtorch._ops import OpOverload, ops
from readtorch._tensor import Tensor
from readtorch.aten.native.cpu_blas import multiply
from readtorch.aten.native.tensor_iterator import result_type, scalar_tensor
from readtorch.c10.sym_int import hint_of
from readtorch.csrc.jit.tensorexpr.loop_nest import CODES, FLOATS
from readtorch.csrc.jit.tensorexpr.lowerings import LOWERINGS, OPEN_ENDS, POWERS, Lowering

from .ir import Layout, Pointwise, Reduction, StorageBox, TensorBox, contiguous_strides
from .sizevars import Float, Size, expression, flatten, hint, least, may_be_empty, sizes_of, unflatten
from .virtualized import V

aten = ops.aten
lowerings = {}  # OpOverload -> function(node, arguments by name)


class Fallback(Exception):
    """This call is to be an ExternKernel."""


def register_lowering(*names):
    """Decorator: the function lowers these operators, such as "sum.default"."""

    def decorator(function):
        for name in names:
            packet, overload = name.split(".")
            lowerings[getattr(getattr(aten, packet), overload)] = function
        return function

    return decorator


def lower(node, args, kwargs):
    """The TensorBox, or tuple of them, of a node. Raises Fallback."""
    op = node.target
    if not isinstance(op, OpOverload) or op.namespace != "aten":
        raise Fallback("no operator of aten")
    arguments = named_arguments(op, args, kwargs)
    if op in lowerings:
        return lowerings[op](node, arguments)
    lowering = pointwise_lowering(op, arguments)
    if lowering is None:
        raise Fallback("no lowering")
    return pointwise(node, lowering, arguments)


def named_arguments(op, args, kwargs):
    arguments = {a.name: a.default_value for a in op._schema.arguments}
    arguments.update(zip(arguments, args))
    return arguments | kwargs


# ------------------------------------------------------------------------------------------------------- pointwise


def layout_of(fake):
    """The Layout of a node's value. Raises Fallback for types that kernels do not know, and for nothing to compute."""
    code = CODES.get(fake.dtype.numpy)
    size, stride = sizes_of(fake.shape), sizes_of(fake.stride())
    if code is None or may_be_empty(size) or fake.device.type != "cpu":
        raise Fallback(f"a value of dtype {fake.dtype}, or without elements, or elsewhere")
    dense = sorted(((s, n) for n, s in zip(size, stride) if n != 1), key=lambda pair: (hint(pair[0]), hint(pair[1])))
    step = 1
    for s, n in dense:
        if s != step:
            return Layout(fake.dtype, code, size, contiguous_strides(size))
        step = step * n
    return Layout(fake.dtype, code, size, stride)


def pointwise_lowering(op, arguments):
    """The Lowering for an operator's arguments, None if there is none."""
    name = op._schema.name
    if name == "aten::pow" and isinstance(arguments.get("exponent"), int | float):
        known = POWERS.get(arguments["exponent"])
        return Lowering(known, ("self",)) if known else Lowering("pow", ("self", "exponent"))
    if name == "aten::clamp":
        return Lowering("clamp", ("self",), ("min", "max"))
    if name in ("aten::gelu", "aten::gelu_backward"):
        middle = "_tanh" if arguments["approximate"] == "tanh" else ""
        backward = name.endswith("backward")
        operands = ("grad_output", "self") if backward else ("self",)
        return Lowering(f"gelu{middle}{'_backward' if backward else ''}", operands)
    lowering = LOWERINGS.get(name)
    if lowering is None or not set(lowering.operands) <= set(arguments) or "out" in arguments:
        return None
    if any(name in arguments and arguments[name] != wanted for name, wanted in lowering.defaults.items()):
        return None
    return lowering


def pointwise(node, lowering, arguments):
    """One scalar function of elements."""
    layout = layout_of(node.meta["val"])
    operands = [arguments[name] for name in lowering.operands]
    if not all(isinstance(x, TensorBox | int | float | Size) for x in operands) or lowering.rule == "cast":
        raise Fallback("an operand is no tensor and no number")
    wanted = operand_codes(node, lowering, layout.code, arguments)
    if not lowering.integers and any(code not in FLOATS for code in wanted):
        raise Fallback("a function of whole numbers")
    loaders = [loader(x, code, layout.size) for x, code in zip(operands, wanted)]
    numbers = tuple(number(arguments, name, layout.code) for name in lowering.numbers)
    made = "b1" if lowering.rule in ("compare", "logical") else layout.code

    def inner_fn(index):
        value = V.ops.call(lowering.function, [load(index) for load in loaders], numbers, made)
        return V.ops.to_dtype(value, made, layout.code)

    return boxed(Pointwise(layout, inner_fn, (node.target._opname,)))


def boxed(data):
    return TensorBox(StorageBox(data))


def number(arguments, name, code):
    """A plain number of an operator. Whole ones stay so among whole numbers, which a float could not hold."""
    value = arguments.get(name, 1)
    if value is None:
        value = OPEN_ENDS[name]
    if isinstance(value, TensorBox | Size):
        raise Fallback("a tensor or a size where a number is expected")
    if code in FLOATS:
        return float(value)
    if value != int(value):
        raise Fallback("a fraction of whole numbers")
    return int(value)


def operand_codes(node, lowering, code, arguments):
    """The type in which each operand enters: the rules are those of csrc/jit/tensorexpr/loop_nest.py."""
    count = len(lowering.operands)
    if lowering.rule == "compare":
        return [common_code([operand_of(node, name) for name in lowering.operands])] * count
    if lowering.rule == "bools" and code != "b1":
        raise Fallback("bits of whole numbers")
    if lowering.rule in ("logical", "bools"):
        return ["b1"] * count
    if lowering.rule == "where":
        return ["b1", code, code]
    if lowering.rule == "masked":
        return [code, "b1", code]
    if code == "b1":
        raise Fallback("arithmetic of bools")
    return [code] * count


def operand_of(node, name):
    """What a node gets for an argument: a fake tensor or a number."""
    value = named_arguments(node.target, node.args, node.kwargs)[name]
    value = value.meta["val"] if hasattr(value, "meta") else value
    return value if isinstance(value, Tensor) else scalar_tensor(hint_of(value))


def common_code(operands):
    common = CODES.get(result_type(*operands).numpy)
    if common is None:
        raise Fallback("a comparison in a type that kernels do not know")
    return common


def loader(x, code, size):
    """A function of an index of a value of `size`: the operand's element, as `code`."""
    if isinstance(x, Size):
        have = "f64" if isinstance(x, Float) else "i64"
        return lambda index: V.ops.to_dtype(V.ops.index_expr(expression(x), have), have, code)
    if not isinstance(x, TensorBox):
        return lambda index: V.ops.constant(x, code)
    if x.code is None:
        raise Fallback("an operand of a type that kernels do not know")
    if x.code in FLOATS and code not in (*FLOATS, "b1"):
        raise Fallback("a cast from floating point to whole numbers")
    load, have = expanded(x, size).make_loader(), x.code
    return lambda index: V.ops.to_dtype(load(index), have, code)


def copied(node, x):
    """A body that loads `x`, with the layout of the node's value."""
    layout = layout_of(node.meta["val"])
    return boxed(Pointwise(layout, loader(x, layout.code, layout.size), (node.target._opname,)))


@register_lowering("clone.default", "_to_copy.default")
def to_copy(node, arguments):
    if arguments.get("device") is not None and arguments["device"].type != "cpu":
        raise Fallback("to another device")
    return copied(node, arguments["self"])


@register_lowering("full.default", "full_like.default")
def full(node, arguments):
    return copied(node, arguments["fill_value"])


@register_lowering("zeros_like.default", "new_zeros.default", "zeros.default")
def zeros(node, arguments):
    return copied(node, 0)


@register_lowering("ones_like.default", "ones.default", "new_ones.default")
def ones(node, arguments):
    return copied(node, 1)


@register_lowering("detach.default", "alias.default")
def detach(node, arguments):
    return arguments["self"]


# ------------------------------------------------------------------------------------------------------- reductions


def reduce(node, x, kind, dims, keepdim, layout, prepare=lambda value: value):
    """A realized Reduction. prepare: what is done to each element before, in the type of the result."""
    source = x.size
    reduced = frozenset(range(len(source)) if not dims else [d % len(source) for d in dims])
    kept = [d for d in range(len(source)) if d not in reduced]
    load = loader(x, layout.code, source)
    size = tuple(source[d] for d in kept)
    small = layout._replace(size=size, stride=contiguous_strides(size))
    data = Reduction(
        small, lambda index: prepare(load(index)), (node.target._opname, *origins(x)), kind, source, reduced
    )
    box = boxed(data)
    box.data.realize()
    return with_ones(box, source, reduced) if keepdim else box


def origins(x):
    return x.data.data.origins if hasattr(x.data.data, "origins") else ()


def with_ones(box, source, reduced):
    """The result with dimensions of size 1 where there were reduced ones."""
    size = tuple(1 if d in reduced else n for d, n in enumerate(source))
    return box.view(size, lambda index: [i for d, i in enumerate(index) if d not in reduced])


def as_list(dim):
    return [] if dim is None else list(dim) if isinstance(dim, list | tuple) else [dim]


def operand(arguments):
    x = arguments["self"]
    if x.code is None or may_be_empty(x.size):
        raise Fallback("a reduction of nothing, or of a type that kernels do not know")
    return x


@register_lowering("sum.default", "sum.dim_IntList")
def sum_(node, arguments):
    dims, keepdim = as_list(arguments.get("dim")), arguments.get("keepdim", False)
    return reduce(node, operand(arguments), "sum", dims, keepdim, layout_of(node.meta["val"]))


@register_lowering("amax.default", "amin.default", "max.default", "min.default")
def extreme(node, arguments):
    layout, x = layout_of(node.meta["val"]), operand(arguments)
    if layout.code not in FLOATS:
        raise Fallback("the greatest of whole numbers")
    kind = "amax" if "max" in node.target._opname else "amin"
    return reduce(node, x, kind, as_list(arguments.get("dim")), arguments.get("keepdim", False), layout)


def divided(node, total, count):
    """A total divided by how many there were."""
    layout = total.data.layout._replace(size=total.size, stride=contiguous_strides(total.size))
    load = total.make_loader()
    function = "div" if isinstance(count, Size) else "mul"
    load_count = loader(count if isinstance(count, Size) else 1 / count, layout.code, ())

    def inner_fn(index):
        return V.ops.call(function, [load(index), load_count(())], (), layout.code)

    return boxed(Pointwise(layout, inner_fn, (node.target._opname,)))


def count_of(x, dims):
    return math.prod(x.size[d] for d in dims) if dims else math.prod(x.size)


def mean_of(node, x, dims, keepdim, layout):
    if layout.code not in FLOATS:
        raise Fallback("the mean of whole numbers")
    return divided(node, reduce(node, x, "sum", dims, keepdim, layout), count_of(x, dims))


@register_lowering("mean.default", "mean.dim")
def mean(node, arguments):
    x, dims = operand(arguments), as_list(arguments.get("dim"))
    return mean_of(node, x, dims, arguments.get("keepdim", False), layout_of(node.meta["val"]))


def variance(node, arguments, layout):
    """(var, mean), both with dimensions of size 1. The mean first: the sum of squares alone loses digits."""
    x, dims = operand(arguments), as_list(arguments["dim"])
    correction = 1 if arguments["correction"] is None else arguments["correction"]
    left = count_of(x, dims) - correction
    if (
        least(left) <= 0
        or isinstance(left, Size)
        and type(correction) is float
        or layout.code not in FLOATS
        or x.code != layout.code
    ):
        raise Fallback("a variance of too few elements, or of whole numbers")
    x.data.mark_reuse(2)
    average = mean_of(node, x, dims, True, layout)
    average.data.realize()
    load = loader(average, layout.code, x.size)
    source = x.make_loader()

    def deviation(index):
        difference = V.ops.call("sub", [source(index), load(index)], (1.0,), layout.code)
        return V.ops.call("mul", [difference, difference], (), layout.code)

    centered = boxed(Pointwise(layout._replace(size=x.size, stride=contiguous_strides(x.size)), deviation, ()))
    return divided(node, reduce(node, centered, "sum", dims, True, layout), left), average


def without_ones(box, arguments):
    """The same without the dimensions that were reduced."""
    if arguments["keepdim"]:
        return box
    dims = {d % len(box.size) for d in as_list(arguments["dim"])} or set(range(len(box.size)))
    size = [n for d, n in enumerate(box.size) if d not in dims]

    def reindex(index):
        rest = iter(index)
        return [expression(0) if d in dims else next(rest) for d in range(len(box.size))]

    return box.view(size, reindex)


@register_lowering("var.correction")
def var(node, arguments):
    return without_ones(variance(node, arguments, layout_of(node.meta["val"]))[0], arguments)


@register_lowering("var_mean.correction")
def var_mean(node, arguments):
    both = variance(node, arguments, layout_of(node.meta["val"][0]))
    return tuple(without_ones(box, arguments) for box in both)


# ------------------------------------------------------------------------------------------------------------ views


def expanded(x, size):
    """Broadcast: dimensions of size 1 have one element for all."""
    size, before = tuple(size), len(size) - len(x.size)
    if size == x.size:
        return x

    def reindex(index):
        return [expression(0) if n == 1 else i for n, i in zip(x.size, index[before:])]

    return x.view(size, reindex)


@register_lowering("expand.default")
def expand(node, arguments):
    return expanded(arguments["self"], sizes_of(node.meta["val"].shape))


@register_lowering("permute.default")
def permute(node, arguments):
    x, dims = arguments["self"], [d % len(arguments["self"].size) for d in arguments["dims"]]
    return x.view([x.size[d] for d in dims], lambda index: [index[dims.index(d)] for d in range(len(dims))])


@register_lowering("transpose.int")
def transpose(node, arguments):
    rank = len(arguments["self"].size)
    dims = list(range(rank))
    if rank:
        a, b = arguments["dim0"] % rank, arguments["dim1"] % rank
        dims[a], dims[b] = dims[b], dims[a]
    return permute(node, {"self": arguments["self"], "dims": dims})


@register_lowering("t.default")
def t(node, arguments):
    return permute(node, {"self": arguments["self"], "dims": list(range(len(arguments["self"].size)))[::-1]})


@register_lowering(
    *("view.default", "_unsafe_view.default", "unsqueeze.default", "squeeze.dim", "squeeze.dims", "squeeze.default"),
    *("reshape.default", "flatten.using_ints"),
)
def view(node, arguments):
    """Other dimensions for the same sequence of elements."""
    x, size = arguments["self"], sizes_of(node.meta["val"].shape)
    if may_be_empty(size):
        raise Fallback("nothing to count")
    return x.view(size, lambda index: unflatten(flatten(index, size), x.size))


@register_lowering("select.int")
def select(node, arguments):
    x = arguments["self"]
    dim = arguments["dim"] % len(x.size)
    at = from_front(arguments["index"], x.size[dim])
    size = [n for d, n in enumerate(x.size) if d != dim]
    return x.view(size, lambda index: [*index[:dim], expression(at), *index[dim:]])


@register_lowering("slice.Tensor")
def slice_(node, arguments):
    x, step = arguments["self"], arguments["step"]
    dim = arguments["dim"] % len(x.size)
    start, size = from_front(arguments["start"] or 0, x.size[dim]), sizes_of(node.meta["val"].shape)
    if may_be_empty(size):
        raise Fallback("an empty slice")

    def reindex(index):
        return [i * step + start if d == dim else i for d, i in enumerate(index)]

    return x.view(size, reindex)


def from_front(place, size):
    """A place in a dimension, which may be counted from its end; before the first element is the first."""
    if isinstance(place, int) and isinstance(size, int):
        return max(place + size, 0) if place < 0 else place
    if least(place) >= 0 and least(size - place) >= 0:
        return place
    if isinstance(place, int) and place < 0 and least(size + place) >= 0:
        return size + place
    raise Fallback("a place in a dimension whose size is left open")


@register_lowering("flip.default")
def flip(node, arguments):
    """No strides step backward, so this is a body of its own and no view."""
    x = arguments["self"]
    dims = {d % len(x.size) for d in arguments["dims"]}

    def reindex(index):
        return [i * -1 + (n - 1) if d in dims else i for d, (n, i) in enumerate(zip(x.size, index))]

    return copied(node, x.view(x.size, reindex))


@register_lowering("split.Tensor", "split_with_sizes.default", "unbind.int")
def split(node, arguments):
    """Slices one after the other."""
    x, parts = arguments["self"], [sizes_of(part.shape) for part in node.meta["val"]]
    dim = arguments["dim"] % len(x.size)
    if may_be_empty(x.size) or any(map(may_be_empty, parts)):
        raise Fallback("an empty part")
    if node.target._opname == "unbind":
        return tuple(select(node, {"self": x, "dim": dim, "index": k}) for k in range(len(parts)))
    results, start = [], 0
    for part in parts:
        results.append(x.view(part, shifted(dim, start)))
        start = start + part[dim]
    return tuple(results)


def shifted(dim, start):
    return lambda index: [i + start if d == dim else i for d, i in enumerate(index)]


# --------------------------------------------------------------------------------------------------------- indexing


def whole_numbers(x):
    if not isinstance(x, TensorBox) or x.code not in ("i32", "i64"):
        raise Fallback("an index that is no tensor of whole numbers")
    return x.make_loader()


def looked_up(node, load, origin):
    """A body that loads with `load`. origin: what is read."""
    layout = layout_of(node.meta["val"])
    if origin.code != layout.code:
        raise Fallback("a type that kernels do not know")
    return boxed(Pointwise(layout, load, (node.target._opname,)))


@register_lowering("gather.default")
def gather(node, arguments):
    x, load_index = arguments["self"], whole_numbers(arguments["index"])
    if not x.size:
        raise Fallback("a single element")
    dim, load = arguments["dim"] % len(x.size), x.make_loader()

    def inner_fn(index):
        return load([*index[:dim], V.ops.indirect_indexing(load_index(index), x.size[dim]), *index[dim + 1 :]])

    return looked_up(node, inner_fn, x)


@register_lowering("embedding.default")
def embedding(node, arguments):
    table, load_index = arguments["weight"], whole_numbers(arguments["indices"])
    load = table.make_loader()

    def inner_fn(index):
        return load([V.ops.indirect_indexing(load_index(index[:-1]), table.size[0]), index[-1]])

    return looked_up(node, inner_fn, table)


@register_lowering("scatter.value")
def scatter(node, arguments):
    """One place a row gets the value: each element asks whether it is at that place."""
    x, index = arguments["self"], arguments["index"]
    load_place = whole_numbers(index)
    if not x.size or x.code is None or isinstance(arguments["value"], TensorBox):
        raise Fallback("a single element, or a type that kernels do not know")
    dim = arguments["dim"] % len(x.size)
    if index.size != tuple(1 if d == dim else n for d, n in enumerate(x.size)):
        raise Fallback("several places in a row")
    load = x.make_loader()

    def inner_fn(at):
        place = V.ops.indirect_indexing(load_place([*at[:dim], expression(0), *at[dim + 1 :]]), x.size[dim])
        both = [V.ops.index_expr(i, "i64") for i in (place, at[dim])]
        here = V.ops.call("equal", both, (), "b1")
        return V.ops.call("where", [here, V.ops.constant(arguments["value"], x.code), load(at)], (), x.code)

    return looked_up(node, inner_fn, x)


@register_lowering("arange.start_step")
def arange(node, arguments):
    start, step, layout = arguments["start"], arguments["step"], layout_of(node.meta["val"])
    if layout.code != "i64" or not isinstance(start, int) or not isinstance(step, int):
        raise Fallback("a range of fractions")
    return boxed(Pointwise(layout, lambda index: V.ops.index_expr(index[0] * step + start, "i64"), ("arange",)))


@register_lowering("cat.default")
def cat(node, arguments):
    layout, tensors = layout_of(node.meta["val"]), arguments["tensors"]
    if any(x.dtype is not layout.dtype or len(x.size) != len(layout.size) for x in tensors):
        raise Fallback("tensors of several types, or one of no elements")
    layout = layout._replace(stride=contiguous_strides(layout.size))
    return V.graph.extern_kernel_out(np.concatenate, (tensors, arguments["dim"] % len(layout.size)), layout)


# --------------------------------------------------------------------------------------------------------- products


@register_lowering("mm.default", "bmm.default")
def matrix_product(node, arguments):
    layout, factors = layout_of(node.meta["val"]), (arguments["self"], arguments["mat2"])
    if layout.code not in FLOATS or may_be_empty(factors[0].size):
        raise Fallback("whole numbers, or no numbers")
    layout = layout._replace(stride=contiguous_strides(layout.size))
    return V.graph.extern_kernel_out(multiply, factors, layout)
