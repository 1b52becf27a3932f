"""Overloads that take a number where a tensor may stand.

The argument parser of the Python faces makes a tensor of such a number, and so the dispatcher needs no overload for it. A
graph's node names its overload by the types of its inputs, and so the overloads must be there.

In PyTorch: entries of `native_functions.yaml` of their own.
"""
from ....aten.functions import at
from ....aten.dispatcher import registry
from .operator import prim

_TEXTS = """
add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor
add_.Scalar(Tensor(a!) self, Scalar other, Scalar alpha=1) -> Tensor(a!)
sub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor
sub_.Scalar(Tensor(a!) self, Scalar other, Scalar alpha=1) -> Tensor(a!)
rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor
mul.Scalar(Tensor self, Scalar other) -> Tensor
mul_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)
div.Scalar(Tensor self, Scalar other) -> Tensor
div_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)
div.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor
div_.Scalar_mode(Tensor(a!) self, Scalar other, *, str? rounding_mode) -> Tensor(a!)
true_divide.Scalar(Tensor self, Scalar other) -> Tensor
true_divide_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)
floor_divide.Scalar(Tensor self, Scalar other) -> Tensor
floor_divide_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)
floor_divide_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)
pow_.Scalar(Tensor(a!) self, Scalar exponent) -> Tensor(a!)
pow_.Tensor(Tensor(a!) self, Tensor exponent) -> Tensor(a!)
float_power_.Scalar(Tensor(a!) self, Scalar exponent) -> Tensor(a!)
float_power_.Tensor(Tensor(a!) self, Tensor exponent) -> Tensor(a!)
where.ScalarOther(Tensor condition, Tensor self, Scalar other) -> Tensor
where.ScalarSelf(Tensor condition, Scalar self, Tensor other) -> Tensor
where.Scalar(Tensor condition, Scalar self, Scalar other) -> Tensor
"""
_KEYWORDS = {"alpha", "rounding_mode"}


def _face(name, text):
    """A function of the schema's arguments that calls the Python face: the one that makes tensors of numbers."""
    parameters = [part.split("=")[0].split()[-1] for part in text.partition("(")[2].partition(") ->")[0].split(", ")
                  if part != "*"]
    keywords = [p for p in parameters if p in _KEYWORDS]
    positional = len(parameters) - len(keywords)
    if name.endswith("_"):
        return lambda self, *rest: getattr(self, name)(*rest[:positional - 1], **dict(zip(keywords, rest[positional - 1:])))
    return lambda *args: getattr(at, name)(*args[:positional], **dict(zip(keywords, args[positional:])))


def _declare(text):
    full_name = f"aten::{text.partition('(')[0]}"
    if full_name not in registry:
        prim(f"aten::{text}")(_face(full_name.removeprefix("aten::").partition(".")[0], text))


for _text in _TEXTS.strip().splitlines():
    _declare(_text)
