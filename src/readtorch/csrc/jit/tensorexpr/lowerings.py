"""Which operators can be fused, and what each is for one element.

Nothing is computed here: a lowering names a function of `aten/native/math.py`, which serves CUDA
kernels, too, and says which of the operator's arguments are operands (one element each) and which are plain
numbers.

In PyTorch: `torch/csrc/jit/tensorexpr/lowerings.cpp`.
"""

from typing import NamedTuple

from readtorch.csrc.jit.ir.type import BoolType, FloatType, IntType, NoneType, TensorType


class Lowering(NamedTuple):
    """function: the scalar function's name. operands, numbers: names of the schema's arguments.

    rule: in which type it computes (see loop_nest.py). defaults: what other arguments must be. integers:
    whether it is the same function for whole numbers.
    """

    function: str
    operands: tuple
    numbers: tuple = ()
    rule: str = "result"
    defaults: dict = {}
    integers: bool = False


class Reduction(NamedTuple):
    """What ends a group: all elements, or each row, become one number."""

    name: str


def _of(function, operands, numbers="", rule="result", integers=False, **defaults):
    return Lowering(function, tuple(operands.split()), tuple(numbers.split()), rule, defaults, integers)


_NO_ROUNDING = {"rounding_mode": None}

LOWERINGS = {
    "aten::add": _of("add", "self other", "alpha", integers=True),
    "aten::sub": _of("sub", "self other", "alpha", integers=True),
    "aten::rsub": _of("sub", "other self", "alpha", integers=True),
    "aten::mul": _of("mul", "self other", integers=True),
    "aten::div": _of("div", "self other", **_NO_ROUNDING),
    "aten::maximum": _of("maximum", "self other", integers=True),
    "aten::minimum": _of("minimum", "self other", integers=True),
    "aten::lerp": _of("lerp", "self end weight"),
    "aten::addcmul": _of("addcmul", "self tensor1 tensor2", "value"),
    "aten::addcdiv": _of("addcdiv", "self tensor1 tensor2", "value"),
    "aten::eq": _of("equal", "self other", rule="compare", integers=True),
    "aten::ne": _of("not_equal", "self other", rule="compare", integers=True),
    "aten::lt": _of("less", "self other", rule="compare", integers=True),
    "aten::le": _of("less_equal", "self other", rule="compare", integers=True),
    "aten::gt": _of("greater", "self other", rule="compare", integers=True),
    "aten::ge": _of("greater_equal", "self other", rule="compare", integers=True),
    "aten::logical_and": _of("logical_and", "self other", rule="logical", integers=True),
    "aten::logical_or": _of("logical_or", "self other", rule="logical", integers=True),
    "aten::__and__": _of("logical_and", "self other", rule="bools", integers=True),
    "aten::__or__": _of("logical_or", "self other", rule="bools", integers=True),
    "aten::bitwise_and": _of("logical_and", "self other", rule="bools", integers=True),
    "aten::bitwise_or": _of("logical_or", "self other", rule="bools", integers=True),
    "aten::bitwise_not": _of("logical_not", "self", rule="bools", integers=True),
    "aten::logical_not": _of("logical_not", "self", rule="logical", integers=True),
    "aten::where": _of("where", "condition self other", rule="where", integers=True),
    "aten::masked_fill": _of("masked_fill", "self mask value", rule="masked", integers=True),
    "aten::to": _of("copy", "self", rule="cast", integers=True, non_blocking=False, copy=False, memory_format=None),
    "aten::type_as": _of("copy", "self", rule="cast", integers=True),
    "aten::expand": _of("copy", "self", integers=True, implicit=False),
    "aten::expand_as": _of("copy", "self", integers=True),
    "aten::clone": _of("copy", "self", integers=True, memory_format=None),
    "aten::leaky_relu": _of("leaky_relu", "self", "negative_slope"),
    "aten::elu": _of("elu_of", "self", "alpha scale input_scale"),
    "aten::softplus": _of("softplus", "self", "beta threshold"),
    "aten::hardtanh": _of("clamp", "self", "min_val max_val"),
    "aten::threshold_backward": _of("threshold_backward", "grad_output self", "threshold"),
    "aten::sigmoid_backward": _of("sigmoid_backward", "grad_output output"),
    "aten::tanh_backward": _of("tanh_backward", "grad_output output"),
    "aten::silu_backward": _of("silu_backward", "grad_output self"),
    "aten::leaky_relu_backward": _of("leaky_relu_backward", "grad_output self", "negative_slope", self_is_result=False),
}
LOWERINGS |= {
    f"aten::{name}": _of(function, "self")
    for name, function in {
        "exp": "exp",
        "log": "log",
        "log1p": "log1p",
        "expm1": "expm1",
        "sqrt": "sqrt",
        "rsqrt": "rsqrt",
        "tanh": "tanh",
        "reciprocal": "reciprocal",
        "sin": "sin",
        "cos": "cos",
        "erf": "erf",
        "sigmoid": "sigmoid",
        "silu": "silu",
        "hardswish": "hardswish",
        "floor": "floor",
        "ceil": "ceil",
    }.items()
}
LOWERINGS |= {
    f"aten::{name}": _of(function, "self", integers=True)
    for name, function in {
        "neg": "neg",
        "abs": "absolute",
        "relu": "relu",
        "square": "square",
        "sign": "sign",
        "sgn": "sign",
    }.items()
}

REDUCTIONS = {"aten::sum": Reduction("sum"), "aten::mean": Reduction("mean"), "aten::amax": Reduction("amax")}


def clamp_lowering(node):
    """`clamp` with one end open is the function of two numbers with an infinite one."""
    return Lowering("clamp", ("self",), ("min", "max"))


def gelu_lowering(node):
    suffix = "_tanh" if node.namedInput("approximate").toIValue() == "tanh" else ""
    backward = "grad_output" in (a.name for a in node.maybeSchema().arguments)
    operands = ("grad_output", "self") if backward else ("self",)
    return Lowering(f"gelu{suffix}{'_backward' if backward else ''}", operands)


POWERS = {2: "square", 3: "cube", 0.5: "sqrt", -0.5: "rsqrt", -1: "reciprocal", -2: "inverse_square"}


def pow_lowering(node):
    """The powers that PyTorch's operator does not compute as powers, either."""
    exponent = node.input(1)
    known = exponent.toIValue() if exponent.isConstant() and not isinstance(exponent.type(), TensorType) else None
    return Lowering(POWERS[known], ("self",)) if known in POWERS else Lowering("pow", ("self", "exponent"))


_CHOOSING = {
    "aten::pow": pow_lowering,
    "aten::clamp": clamp_lowering,
    "aten::gelu": gelu_lowering,
    "aten::gelu_backward": gelu_lowering,
}
OPEN_ENDS = {"min": float("-inf"), "max": float("inf")}


def lowering_of(node):
    """The Lowering of a node, or None if it cannot be fused."""
    kind = node.kind()
    if kind not in LOWERINGS and kind not in _CHOOSING:
        return None
    schema = node.maybeSchema()
    if schema is None or node.outputsSize() != 1 or any(a.is_out for a in schema.arguments):
        return None
    names = [a.name for a in schema.arguments]
    lowering = _CHOOSING[kind](node) if kind in _CHOOSING else LOWERINGS[kind]
    if kind == "aten::to" and ("dtype" not in names or "device" in names):
        return None  # to another device, or to be like another tensor
    if not set(lowering.operands) <= set(names):
        return None  # an overload without tensors, such as aten::add.int
    if not _numbers_fit(node, lowering, names) or not _defaults_fit(node, lowering, names):
        return None
    operands = [node.namedInput(name) for name in lowering.operands]
    has_tensor = any(isinstance(v.type(), TensorType) for v in operands)
    return lowering if has_tensor and all(_is_operand(v) for v in operands) else None


def _is_operand(value):
    return isinstance(value.type(), (TensorType, IntType, FloatType, BoolType))


def _numbers_fit(node, lowering, names):
    """Whether the plain numbers are known, or at least numbers."""
    given = [(name, node.namedInput(name)) for name in lowering.numbers if name in names]
    return all(
        isinstance(v.type(), (IntType, FloatType, BoolType)) or (name in OPEN_ENDS and v.mustBeNone())
        for name, v in given
    )


def _defaults_fit(node, lowering, names):
    for name, wanted in lowering.defaults.items():
        if name in names:
            value = node.namedInput(name)
            if not (value.mustBeNone() if wanted is None else value.isConstant() and value.toIValue() == wanted):
                return False
    return True


def reduction_of(node):
    """(Reduction, dims) of a node that can end a group; dims: None for all elements. Or None."""
    reduction, schema = REDUCTIONS.get(node.kind()), node.maybeSchema()
    if reduction is None or schema is None or any(a.is_out for a in schema.arguments):
        return None
    names = [a.name for a in schema.arguments]
    if not isinstance(node.input(0).type(), TensorType) or (
        "dtype" in names and not node.namedInput("dtype").mustBeNone()
    ):
        return None
    dims = constant_list(node.namedInput("dim")) if "dim" in names else []
    if dims is None or len(dims) > 1:
        return None
    return reduction, (dims[0] if dims else None)


def constant_list(value):
    """A list of ints known beforehand ([] for None), else None."""
    if value.mustBeNone() or isinstance(value.type(), NoneType):
        return []
    if value.isConstant():
        number = value.toIValue()
        return list(number) if isinstance(number, (list, tuple)) else [number]
    if value.node().kind() == "prim::ListConstruct" and all(v.isConstant() for v in value.node().inputs()):
        return [v.toIValue() for v in value.node().inputs()]
    return None
