"""New tensors: of zeros, ones, a number, or counting; and masks of triangles.

In PyTorch: `torch/onnx/_internal/torchscript_exporter/symbolic_opset9.py`,
and what later versions changed in `symbolic_opset11.py`, `symbolic_opset14.py`.
"""

import readtorch
from readtorch.onnx.registration import onnx_symbolic
from readtorch.onnx.symbolic_helper import as_shape, cast, is_constant, parse_arg, shape_of


def filled(g, shape, value):
    """A tensor of this shape full of one number, of the type that the trace saw."""
    return g.op("ConstantOfShape", shape, value_t=readtorch.tensor([value], dtype=g.result_dtype))


def _filled_with(number):
    def symbolic(g, size, *settings):
        return filled(g, as_shape(g, size), number)

    return symbolic


def _like_filled_with(number):
    def symbolic(g, self, *settings):
        return filled(g, shape_of(g, self), number)

    return symbolic


for _name, _number in {"zeros": 0, "ones": 1, "empty": 0}.items():
    onnx_symbolic(f"aten::{_name}")(_filled_with(_number))
    onnx_symbolic(f"aten::{_name}_like")(_like_filled_with(_number))

for _name, _number in {"new_zeros": 0, "new_ones": 1, "new_empty": 0}.items():
    onnx_symbolic(f"aten::{_name}")(
        lambda g, self, size, *settings, number=_number: filled(g, as_shape(g, size), number)
    )


def full_of(g, shape, value):
    if is_constant(value):
        return filled(g, shape, parse_arg(value, "f"))
    return g.op("Expand", cast(g, value, g.result_dtype), shape)


@onnx_symbolic("aten::full")
def full(g, size, fill_value, *settings):
    return full_of(g, as_shape(g, size), fill_value)


@onnx_symbolic("aten::full_like")
def full_like(g, self, fill_value, *settings):
    return full_of(g, shape_of(g, self), fill_value)


@onnx_symbolic("aten::new_full")
def new_full(g, self, size, fill_value, *settings):
    return full_of(g, as_shape(g, size), fill_value)


@onnx_symbolic("aten::arange")
def arange(g, *arguments):
    """`arange(end)`, `(start, end)`, `(start, end, step)`, each followed by four settings; all of the
    result's type.
    """
    if all(map(is_constant, arguments[:-4])):
        given = [value.node().t("value").item() for value in arguments[:-4]]
        return g.constant(readtorch.arange(*given, dtype=g.result_dtype))
    numbers = [cast(g, value, g.result_dtype) for value in arguments[:-4]]
    zero, one = (g.constant(n, g.result_dtype) for n in (0, 1))
    start, end, step = {1: [zero, *numbers, one], 2: [*numbers, one], 3: numbers}[len(numbers)]
    return g.op("Range", start, end, step)


@onnx_symbolic("aten::linspace")
def linspace(g, start, end, steps, *settings):
    first, last, count = (parse_arg(value, "f") for value in (start, end, steps))
    return g.constant(readtorch.linspace(first, last, int(count), dtype=g.result_dtype))


@onnx_symbolic("aten::eye")
def eye(g, n, *more):
    columns = parse_arg(more[0], "i") if len(more) == 5 else None
    rows = parse_arg(n, "i")
    return g.constant(readtorch.eye(rows, rows if columns is None else columns, dtype=g.result_dtype))


@onnx_symbolic("aten::tril", opset=14)
def tril(g, self, diagonal):
    return triangle(g, self, diagonal, 0)


@onnx_symbolic("aten::triu", opset=14)
def triu(g, self, diagonal):
    return triangle(g, self, diagonal, 1)


def triangle(g, self, diagonal, upper):
    """Runtimes know Trilu of numbers: a mask is made one, and a mask again."""
    if g.result_dtype != readtorch.bool:
        return g.op("Trilu", self, diagonal, upper_i=upper)
    numbers = cast(g, self, readtorch.int64)
    return cast(g, g.op("Trilu", numbers, diagonal, upper_i=upper), readtorch.bool)


@onnx_symbolic("aten::scalar_tensor")
def scalar_tensor(g, value, *settings):
    return cast(g, value, g.result_dtype)


@onnx_symbolic("aten::one_hot")
def one_hot(g, self, num_classes):
    return g.op("OneHot", self, num_classes, g.constant(readtorch.tensor([0, 1])), axis_i=-1)


def _random(operator, **numbers):
    """Random numbers of the runtime: another generator than PyTorch's, so other numbers."""

    def symbolic(g, self, *settings):
        return g.op(f"{operator}Like", self, **numbers)

    return symbolic


onnx_symbolic("aten::randn_like")(_random("RandomNormal"))
onnx_symbolic("aten::rand_like")(_random("RandomUniform"))
