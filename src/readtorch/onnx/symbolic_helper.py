"""Tools of the symbolic functions: reading what they are given, and phrases of ONNX that many of them use.

In PyTorch: `torch/onnx/_internal/torchscript_exporter/symbolic_helper.py`. Explained in the chapter
"export and ONNX".
"""

import functools
import inspect

import readtorch
from readtorch.csrc.jit.ir.enums import dtype_of
from readtorch.csrc.jit.ir.type import TensorType
from readtorch.csrc.jit.ir.value import Value
from readtorch.csrc.onnx import onnx_type_of
from readtorch.onnx import errors

# -------------------------------------------------------------------------------------- from Values to Python


def parse_args(*descriptors):
    """Decorator: the function gets Python's numbers instead of Values.

    "v": the Value as it is; "i", "f", "b", "s": a number or string; "is", "fs": a list; "t": a tensor;
    "none": not used. A None is None for all of them. Raises SymbolicValueError for what is not constant.
    """

    def decorator(function):
        names = list(inspect.signature(function).parameters)[1:]

        @functools.wraps(function)
        def wrapper(g, *values, **more):
            parsed = [parse_arg(v, d, n, function.__name__) for v, d, n in zip(values, descriptors, names)]
            return function(g, *parsed, **more)

        return wrapper

    return decorator


_CONVERSIONS = {"i": int, "f": float, "b": bool, "t": lambda t: t}


def parse_arg(value, descriptor, name="", function=""):
    """The constant that `value` is, as `descriptor` says."""
    if is_none(value):
        return None
    if descriptor in ("v", "none") or not isinstance(value, Value):
        return value
    node = value.node()
    if node.kind() == "onnx::Constant":
        tensor = node.t("value")
        if descriptor in ("is", "fs"):
            return [_CONVERSIONS[descriptor[0]](n) for n in tensor.reshape(-1).tolist()]
        return _CONVERSIONS[descriptor](tensor if descriptor == "t" else tensor.item())
    if node.kind() == "prim::ListConstruct" and descriptor in ("is", "fs"):
        return [_element(v, descriptor[0]) for v in node.inputs()]
    if node.kind() == "prim::Constant":
        return value.toIValue()  # a string or a device
    raise errors.SymbolicValueError(
        f"Expected node type 'onnx::Constant' for argument '{name}' of node '{function}', got '{node.kind()}'.", value
    )


def _element(value, descriptor):
    if value.node().kind() != "onnx::Constant":
        raise errors.SymbolicValueError(
            f"Failed to export a node '{value.node()}' (in list node {value.uses()[0].user}) "
            "because it is not constant. Please try to make things (e.g. kernel sizes) static if possible.",
            value,
        )
    return parse_arg(value, descriptor)


def is_none(value):
    """Whether an argument was left out."""
    return value is None or isinstance(value, Value) and value.mustBeNone()


def is_constant(value):
    """Whether all of a number, a list or a tensor is known now."""
    if is_list(value):
        return all(map(is_constant, unpack_list(value)))
    return value.node().kind() == "onnx::Constant"


def is_number(value):
    """Whether a Value is a Python number, which gives way in type promotion."""
    return value.node().kind() == "onnx::Constant" and value.type().dim() == 0


def is_list(value):
    return value.node().kind() == "prim::ListConstruct"


def unpack_list(value):
    """The elements of a list, as Values."""
    if not is_list(value):
        raise errors.SymbolicValueError(
            f"ONNX symbolic expected node type prim::ListConstruct, got '{value.node()}'.", value
        )
    return value.node().inputs()


# ------------------------------------------------------------------------------------------ what follows from types


def dtype(value):
    return value.type().dtype() if isinstance(value.type(), TensorType) else None


def rank(value):
    """How many dimensions; None if unknown."""
    return value.type().dim() if isinstance(value.type(), TensorType) else None


def dim_size(value, dim):
    """The size of one dimension if it is the same in every run, or None."""
    sizes = value.type().varyingSizes()
    return None if sizes is None else sizes[dim]


def sizes(value, what):
    """All sizes; raises SymbolicValueError where one is not the same in every run."""
    found = value.type().concrete_sizes()
    if found is None:
        raise unsupported(f"{what} with unknown sizes", value)
    return list(found)


def unsupported(what, value):
    return errors.SymbolicValueError(f"Unsupported: ONNX export of {what}.", value)


def is_floating_point(value):
    return dtype(value) is not None and dtype(value).is_floating_point


def dtype_from_number(number, otherwise):
    """The dtype that a graph knows by its number; `otherwise` for None."""
    return otherwise if number is None else dtype_of[number]


# ------------------------------------------------------------------------------------------ phrases of ONNX


def cast(g, value, to):
    """`value` with the element type `to`; a constant is made anew, others get a Cast if they need one."""
    if dtype(value) == to:
        return value
    if value.node().kind() == "onnx::Constant":
        return g.constant(value.node().t("value").to(to))
    return g.op("Cast", value, to_i=int(onnx_type_of[to]))


def squeeze(g, value, axes):
    return g.op("Squeeze", value, list(axes))


def unsqueeze(g, value, axes):
    return g.op("Unsqueeze", value, list(axes))


def shape_of(g, value):
    """The sizes of `value` in a run: a constant if every run has the same."""
    known = value.type().concrete_sizes()
    return g.op("Shape", value) if known is None else g.constant(list(known))


def size_of(g, value, dim):
    """The size of one dimension as a number: a constant if every run has the same."""
    known = dim_size(value, dim)
    if known is not None:
        return g.constant(known, readtorch.int64)
    return g.op("Gather", g.op("Shape", value), g.constant(dim % rank(value), readtorch.int64), axis_i=0)


def as_shape(g, value):
    """A list of sizes, numbers and Values mixed, as one int64 vector."""
    if not is_list(value):
        return value
    if is_constant(value):
        return g.constant(parse_arg(value, "is"))
    parts = [vector_of(g, v) for v in unpack_list(value)]
    return g.op("Concat", *parts, axis_i=0) if len(parts) > 1 else parts[0]


def vector_of(g, number):
    """A number as a vector of one."""
    if is_constant(number):
        return g.constant([parse_arg(number, "i")])
    return unsqueeze(g, cast(g, number, readtorch.int64), [0])


def reshape(g, value, shape):
    """shape: a list of numbers, or a Value of them."""
    return g.op("Reshape", value, shape, allowzero_i=0)


def slice_(g, value, axes, starts, ends, steps=None):
    """`value[…, start:end:step, …]` for each axis."""
    more = [list(axes)] if steps is None else [list(axes), list(steps)]
    return g.op("Slice", value, list(starts), list(ends), *more)


def transpose(g, value, first, second):
    order = list(range(rank(value)))
    order[first], order[second] = order[second], order[first]
    return g.op("Transpose", value, perm_i=order)
