"""Operators that have no entry in the dispatcher here, because a Python binding does their work: other names of operators,
overloads that take a number where a tensor is accepted, conversions, predicates of a tensor.

A program in Python calls the binding; a graph's node needs an operator with a schema.

PyTorch has no such file: these operators have entries of their own in `aten/src/ATen/native/native_functions.yaml`.
"""

from readtorch.aten.dispatcher import registry
from readtorch.aten.functions import binding_of
from readtorch.csrc.jit.frontend.function_schema_parser import parse_schema
from readtorch.csrc.jit.ir.enums import OBJECTS, as_number

from .operator import prim

# Methods of tensors, or functions; the schema's keyword-only arguments are passed by name.
_TEXTS = """
to.device(Tensor(a) self, Device device, ScalarType dtype, bool non_blocking=False, bool copy=False, *, MemoryFormat? memory_format=None) -> Tensor(a)
to.dtype(Tensor(a) self, ScalarType dtype, bool non_blocking=False, bool copy=False, *, MemoryFormat? memory_format=None) -> Tensor(a)
to.other(Tensor(a) self, Tensor other, bool non_blocking=False, bool copy=False, *, MemoryFormat? memory_format=None) -> Tensor(a)
type_as(Tensor self, Tensor other) -> Tensor
data(Tensor self) -> Tensor
detach_(Tensor(a!) self) -> Tensor(a!)
requires_grad_(Tensor(a!) self, bool requires_grad=True) -> Tensor(a!)
retain_grad(Tensor(a!) self) -> ()
is_leaf(Tensor self) -> bool
is_signed(Tensor self) -> bool
is_inference(Tensor self) -> bool
is_conj(Tensor self) -> bool
is_neg(Tensor self) -> bool
is_same_size(Tensor self, Tensor other) -> bool
is_contiguous.memory_format(Tensor self, MemoryFormat memory_format) -> bool
output_nr(Tensor self) -> int
_version(Tensor self) -> int
mH.a(Tensor(a) self) -> Tensor(a)
add.Scalar(Tensor self, Scalar other, *, Scalar alpha=1) -> Tensor
add_.Scalar(Tensor(a!) self, Scalar other, *, Scalar alpha=1) -> Tensor(a!)
sub.Scalar(Tensor self, Scalar other, *, Scalar alpha=1) -> Tensor
sub_.Scalar(Tensor(a!) self, Scalar other, *, Scalar alpha=1) -> Tensor(a!)
rsub.Scalar(Tensor self, Scalar other, *, Scalar alpha=1) -> Tensor
subtract.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
subtract_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)
mul.Scalar(Tensor self, Scalar other) -> Tensor
mul_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)
div.Scalar(Tensor self, Scalar other) -> Tensor
div_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)
div.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor
div_.Scalar_mode(Tensor(a!) self, Scalar other, *, str? rounding_mode) -> Tensor(a!)
divide.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor
divide.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor
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
clip(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor
clip.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor
clip_(Tensor(a!) self, Scalar? min=None, Scalar? max=None) -> Tensor(a!)
norm.ScalarOpt_dtype(Tensor self, Scalar? p, *, ScalarType dtype) -> Tensor
norm.ScalarOpt_dim_dtype(Tensor self, Scalar? p, int[1] dim, bool keepdim, *, ScalarType dtype) -> Tensor
polygamma_(Tensor(a!) self, int n) -> Tensor(a!)
ldexp_(Tensor(a!) self, Tensor other) -> Tensor(a!)
cartesian_prod(Tensor[] tensors) -> Tensor
atleast_1d.Sequence(Tensor[] tensors) -> Tensor[]
atleast_2d.Sequence(Tensor[] tensors) -> Tensor[]
atleast_3d.Sequence(Tensor[] tensors) -> Tensor[]
promote_types(ScalarType type1, ScalarType type2) -> ScalarType
can_cast(ScalarType from_, ScalarType to) -> bool
result_type.Tensor(Tensor tensor, Tensor other) -> ScalarType
result_type.Scalar(Tensor tensor, Scalar other) -> ScalarType
copy_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)
special_logit(Tensor self, float? eps=None) -> Tensor
special_logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor
special_polygamma(int n, Tensor self) -> Tensor
special_round(Tensor self, *, int decimals=0) -> Tensor
special_multigammaln(Tensor self, int p) -> Tensor
"""
_UNARY_ALIASES = "absolute arccos arccosh arcsin arcsinh arctan arctanh fix negative"
_BINARY_ALIASES = "divide greater greater_equal less less_equal multiply not_equal"
_SPECIAL = "digamma erf erfc erfinv exp2 expit expm1 gammaln i0 log1p psi sinc"
_INFIX = "and or xor lshift rshift"


def _all_texts():
    yield from _TEXTS.strip().splitlines()
    for name in _UNARY_ALIASES.split():
        yield f"{name}(Tensor self) -> Tensor"
        yield f"{name}_(Tensor(a!) self) -> Tensor(a!)"
    for name in [*_BINARY_ALIASES.split(), *(f"__{name}__" for name in _INFIX.split())]:
        inplace = f"__i{name[2:]}" if name.startswith("__") else f"{name}_"
        for kind, overload in (("Tensor", "Tensor"), ("Scalar", "Scalar")):
            yield f"{name}.{overload}(Tensor self, {kind} other) -> Tensor"
            yield f"{inplace}.{overload}(Tensor(a!) self, {kind} other) -> Tensor(a!)"
    yield "subtract.Scalar(Tensor self, Scalar other, *, Scalar alpha=1) -> Tensor"
    yield "subtract_.Scalar(Tensor(a!) self, Scalar other, *, Scalar alpha=1) -> Tensor(a!)"
    yield "arctan2(Tensor self, Tensor other) -> Tensor"
    yield "arctan2_(Tensor(a!) self, Tensor other) -> Tensor(a!)"
    for name in _SPECIAL.split():
        yield f"special_{name}(Tensor self) -> Tensor"
    for name in ("gammainc", "gammaincc", "xlogy"):
        yield f"special_{name}(Tensor self, Tensor other) -> Tensor"


def _declare(text):
    schema = parse_schema(f"aten::{text}")
    if schema.full_name not in registry:
        shown = text  # in PyTorch's schema these are positional
        for word in ("Scalar alpha=1", "MemoryFormat? memory_format=None"):
            shown = shown.replace(f"*, {word}", word) if ".Scalar(" in text or text.startswith("to.") else shown
        prim(f"aten::{shown}")(_call_of(schema))


def _call_of(schema):
    """A function of the schema's arguments that calls the binding."""
    name = schema.name.removeprefix("aten::")
    keywords = [a.name for a in schema.arguments if a.kwarg_only]
    positional = len(schema.arguments) - len(keywords)
    tables = [(i, OBJECTS[a.real_name]) for i, a in enumerate(schema.arguments) if a.real_name in OBJECTS]

    def call(*arguments):
        if tables:
            arguments = list(arguments)
            for i, table in tables:
                arguments[i] = table.get(arguments[i], arguments[i])
        function, arguments = _binding(name, arguments)
        result = function(*arguments[:positional], **dict(zip(keywords, arguments[positional:])))
        return as_number(result)

    return call


def _binding(name, arguments):
    """The function `name`: a method of the first argument, else of the library; an attribute is one without arguments."""
    owner = arguments[0]
    if name != "where" and hasattr(type(owner), "_array") and hasattr(type(owner), name):
        method = getattr(type(owner), name)
        return (method, arguments) if callable(method) else (lambda t: getattr(t, name), arguments)
    for module, prefix in (("torch", ""), ("special", "special_")):
        binding = binding_of(module, name.removeprefix(prefix)) if name.startswith(prefix) else None
        if binding is not None:
            return binding, arguments
    raise RuntimeError(f"readtorch has no function aten::{name}")


for _text in _all_texts():
    _declare(_text)
