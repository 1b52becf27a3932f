"""Binds the arguments of a Python call to an operator's schema: overloads, defaults, aliases, conversions, errors.

In PyTorch: `torch/csrc/utils/python_arg_parser.cpp` and the generated `python_torch_functions.cpp`.
Explained in the chapter "One operator call".
"""

import dataclasses
import operator as python_operator

import numpy as np

from readtorch.c10 import memory_format as memory_formats
from readtorch.c10 import scalar_type
from readtorch.c10.device import device
from readtorch.c10.dispatch_key import BATCHED, GRAD_WRAPPER, META, PYTHON
from readtorch.c10.layout import layout
from readtorch.c10.local_dispatch_key_set import threads_with_modes, tls
from readtorch.c10.sym_int import SYM_TYPES, SymFloat, SymInt, hint_of
from readtorch.c10.tensor_impl import TensorImpl, dtype_of, wrap_number
from readtorch.c10.torch_dispatch_mode_tls import mode_tls

from .deprecated_signatures import deprecated_orders, warn_of
from .torch_function import Overridden, is_no_tensor_and_overrides

# NumPy's spellings, which PyTorch accepts beside its own.
_NUMPY_NAMES = {"dim": ("axis",), "keepdim": ("keepdims",), "input": ("x", "a", "x1"), "other": ("x2",)}
NUMBERS = (int, float, complex, bool, np.number, np.bool_, *SYM_TYPES)
REJECTED = object()  # the conversion's answer for a value that does not fit


class Signature:
    """One overload as Python sees it: `self`, if it is a tensor, is called `input`, and `out` may be given."""

    def __init__(self, operator, out_operator, packet, is_method):
        self.name = packet.name
        self.operator = operator
        self.out_operator = out_operator
        self.arguments = operator.schema.arguments
        self.names = [
            "input" if a.name == "self" and not a.type.is_list else a.name.removesuffix("_") for a in self.arguments
        ]
        self.numbers_as_tensors = packet.numbers_as_tensors
        self.positional = [a for a in self.arguments if not a.keyword_only]
        self.fewest = len([a for a in self.arguments if not a.has_default])
        self.most = len(self.arguments) + (out_operator is not None)
        self.hidden = operator in packet.hidden
        self.is_method = is_method
        # A factory also takes `requires_grad`. Operators know nothing of it: the parser handles it.
        self.dtype_position = self._find("dtype") if self._find("pin_memory") is not None else None

    def _find(self, name):
        return next((i for i, a in enumerate(self.arguments) if a.name == name), None)

    def bind(self, args, kwargs):
        """The arguments in schema order, converted; or raises _Mismatch, which says what did not fit."""
        args = self._gather_sizes(args)
        if len(args) > len(self.positional):
            raise _Mismatch(f"takes {_count(len(self.positional), self)} but {len(args)} were given", -1)
        kwargs = dict(kwargs)
        bound = list(map(self._convert, range(len(args)), args))
        bound += [self._from_keyword(position, kwargs) for position in range(len(args), len(self.arguments))]
        out = kwargs.pop("out", None)
        if out is not None and self.out_operator is None:
            raise _Mismatch("got an unexpected keyword argument 'out'", 1)
        if self.dtype_position is not None:
            kwargs.pop("requires_grad", None)
            if out is not None:
                bound[self.dtype_position] = self._dtype_for_out(bound[self.dtype_position], dtype_of(out))
        if kwargs:
            raise _Mismatch(f"got an unexpected keyword argument '{next(iter(kwargs))}'", len(args))
        return bound, out

    def call(self, bound, out, entry):
        """Calls the operator through `entry(operator)`, or its out= operator: with each of several outputs, or with the
        list of them if it wants one."""
        if out is None:
            return entry(self.operator)(*bound)
        is_list = self.out_operator.schema.arguments[-1].type.is_list
        outs = out if isinstance(out, (tuple, list)) and not is_list else (out,)
        return entry(self.out_operator)(*bound, *outs)

    def _dtype_for_out(self, dtype, of_out):
        if dtype not in (None, of_out):
            names = scalar_type.SCALAR_TYPE_NAMES
            raise RuntimeError(f"dtype {names[dtype]} does not match dtype of out parameter ({names[of_out]})")
        return of_out

    def _gather_sizes(self, args):
        """`x.view(2, 3)` means `x.view((2, 3))`: a leading list of ints may come as loose ints."""
        first = 1 if self.positional and self.positional[0].name == "self" else 0
        if len(args) <= first or len(self.positional) <= first:
            return args
        kind = self.positional[first].type
        if not (kind.is_list and kind.base == "int") or not _is_int(args[first]):
            return args
        if kind.size is not None and len(args) == first + 1:
            return args  # one number for each: `_convert_list` repeats it
        if len(self.positional) == first + 1 and all(map(_is_int, args[first:])):
            return args[:first] + (tuple(args[first:]),)
        return args

    def _from_keyword(self, position, kwargs):
        argument, name = self.arguments[position], self.names[position]
        for spelling in (name, argument.name, *_NUMPY_NAMES.get(name, ())):
            if spelling in kwargs:
                return self._convert(position, kwargs.pop(spelling), by_keyword=True)
        if argument.has_default:
            default = argument.default
            stands_for_more = isinstance(default, str | list | tuple) or argument.type.is_list  # stride=1: (1, 1)
            return convert(argument.type, default, False) if stands_for_more and default is not None else default
        raise _Mismatch(f'missing 1 required positional arguments: "{name}"', position)

    def _convert(self, position, value, by_keyword=False):
        argument = self.arguments[position]
        if value is None and argument.type.optional:
            return None
        if value is None and argument.default == []:  # stride=None: the operator chooses
            return ()
        try:
            converted = convert(
                argument.type, value, self.numbers_as_tensors and argument.name in ("self", "other", "end", "src")
            )
        except TooLarge as error:
            if error.place is None:
                raise ValueError(str(error)) from None
            raise TypeError(
                f"{self.name}(): argument '{self.names[position]}' failed to unpack the object at pos {error.place} "
                f'with error "{error}"'
            ) from None
        if converted is REJECTED:
            if argument.type.is_tensor and argument.type.is_list and isinstance(value, (list, tuple)):
                raise _Mismatch(_element_message(value, position), position)
            place = "" if by_keyword else f" (position {position + (0 if self.is_method else 1)})"
            if argument.type.is_list and argument.type.base == "int" and isinstance(value, (list, tuple)):
                raise _Mismatch(f"argument '{self.names[position]}'{_wrong_int(value, place)}", position)
            raise _Mismatch(
                f"argument '{self.names[position]}'{place} must be {_type_name(argument.type)}, "
                f"not {type(value).__name__}",
                position,
            )
        return converted

    def __str__(self):
        parts, starred = [], False
        for a, name in zip(self.arguments, self.names):
            if self.is_method and name == "input":
                continue
            if a.keyword_only and not starred:
                parts.append("*")
                starred = True
            shown = "" if not a.has_default else f" = {a.default}"
            parts.append(f"{_type_name(a.type)} {name}{shown}")
        if self.out_operator is not None and not self.is_method:
            parts += ([] if starred else ["*"]) + ["Tensor out = None"]
        return f"({', '.join(parts)})"


class DeprecatedSignature(Signature):
    """The first overload of a name with its arguments in another order, all of them by position and without defaults."""

    def __init__(self, packet, is_method, order, others):
        operator = packet.overloads[0]
        super().__init__(operator, packet.out.get(operator), packet, is_method)
        self.others = others  # which the warning names
        self.hidden = True
        arguments = {a.name: a for a in self.arguments}
        if is_method:  # `x.addmm(beta, a, b)`: the parser is given `x` first
            order = ["self", *[name for name in order if name != "self"]]
        self.arguments = self.positional = [
            dataclasses.replace(arguments[name], keyword_only=False, has_default=False) for name in order
        ]
        self.names = ["input" if name == "self" else name for name in order]

    def call(self, bound, out, entry):
        warn_of(self)
        by_name = dict(zip([a.name for a in self.arguments], bound))
        in_order = [by_name.get(a.name, a.default) for a in self.operator.schema.arguments]
        return super().call(in_order, out, entry)


def deprecated_signatures(packet, is_method, others):
    """The old signatures of a name, most often none."""
    return [DeprecatedSignature(packet, is_method, order, others) for order in deprecated_orders(packet)]


class _Mismatch(Exception):
    """The call does not fit a signature. `progress` counts the arguments that did."""

    def __init__(self, reason, progress):
        super().__init__(reason)
        self.progress = progress


class _NoNumber(_Mismatch):
    """A tensor stands for a number that differs from example to example: perhaps another signature takes the tensor."""

    def __init__(self, tensor):
        super().__init__("", 0)
        self.tensor = tensor


def _count(n, signature):
    return f"{n} positional argument{'' if n == 1 else 's'}"


def _is_int(value):
    return (
        isinstance(value, (int, np.integer, SymInt))
        and not isinstance(value, (bool, np.bool_))
        or (isinstance(value, np.ndarray) and value.ndim == 0 and value.dtype.kind in "iu")
        or (isinstance(value, TensorImpl) and value._array.ndim == 0 and value._array.dtype.kind in "iu")
    )


# ------------------------------------------------------------------------------------------------ conversions


def default_of(argument):
    """An argument's default as its type has it: the schema spells `int64` and `mean` as words and 0 for (0, 0)."""
    if argument.default is None or argument.type.is_tensor:
        return argument.default
    return convert(argument.type, argument.default, numbers_as_tensors=False)


def convert(kind, value, numbers_as_tensors):
    """`value` as schema type `kind`, or REJECTED."""
    if kind.is_list:
        return _convert_list(kind, value)
    if value is None:
        return None if kind.optional else REJECTED
    return _CONVERSIONS[kind.base](value) if kind.base != "Tensor" else _tensor(value, numbers_as_tensors)


def _tensor(value, numbers_as_tensors):
    if isinstance(value, TensorImpl):
        return value
    if numbers_as_tensors and isinstance(value, NUMBERS):
        return number_as_tensor(value)
    return REJECTED


def number_as_tensor(number):
    """A Python or NumPy number as a 0-dimensional tensor, weak in type promotion."""
    if isinstance(number, np.generic):
        number = number.item()
    is_traced = mode_tls.modes or tls.excluded & PYTHON
    value = number.node.guarded() if isinstance(number, SYM_TYPES) and not is_traced else hint_of(number)
    t = wrap_number(value, scalar_type.from_python_type(type(value)).numpy)
    t._creation = number
    return t


def _convert_list(kind, value):
    if isinstance(value, TensorImpl) and kind.base == "Tensor":
        return REJECTED
    if not isinstance(value, (list, tuple)):
        if kind.size is None or value is None:
            return REJECTED
        one = _CONVERSIONS[kind.base](value) if kind.base != "Tensor" else REJECTED
        return REJECTED if one is REJECTED else (one,) * kind.size
    if kind.base == "Tensor":
        fits = all(isinstance(v, TensorImpl) or (v is None and kind.inner_optional) for v in value)
        return value if fits else REJECTED
    try:
        converted = tuple([_CONVERSIONS[kind.base](v) for v in value])
    except TooLarge as error:
        error.place = next(i for i, v in enumerate(value, 1) if isinstance(v, int) and not -1 << 63 <= v < 1 << 63)
        raise
    return REJECTED if REJECTED in converted else converted


class TooLarge(ValueError):
    """An int that does not fit in 64 bits; `place`: where in its list it stands, from 1."""

    place = None

    def __init__(self):
        super().__init__("Overflow when unpacking long long")


def _int(value):
    if type(value) is int:
        if -1 << 63 <= value < 1 << 63:
            return value
        raise TooLarge
    if isinstance(value, TensorImpl):
        return _number_in(value, "as_int") if _is_int(value) else REJECTED
    if _is_int(value):
        return value if isinstance(value, (int, SymInt)) else python_operator.index(value)
    return REJECTED


def _number_in(tensor, how):
    """The number in a tensor; during a trace one that remembers where it is from. In PyTorch: `ArgumentStash`."""
    if threads_with_modes and tls.tracer is not None:
        return getattr(tls.tracer, how)(tensor)
    inner = tensor
    while inner._keys & GRAD_WRAPPER:
        inner = inner._storage_impl.value
    if inner._keys & BATCHED:
        raise _NoNumber(tensor)
    return tensor.item()


def _float(value):
    if isinstance(value, TensorImpl):
        return _number_in(value, "as_float") if value._array.ndim == 0 else REJECTED
    if isinstance(value, (bool, np.bool_)):
        return REJECTED
    return (
        value
        if isinstance(value, (float, SymFloat))
        else float(value)
        if isinstance(value, (int, float, np.number, SymInt))
        else REJECTED
    )


def _bool(value):
    if isinstance(value, TensorImpl) and value._array.ndim == 0 and value._array.dtype == bool:
        return value.item()
    return bool(value) if isinstance(value, (bool, np.bool_)) else REJECTED


def _scalar(value):
    if isinstance(value, TensorImpl):
        fits = value._array.ndim == 0 and not value.requires_grad and not value._keys & META
        return _number_in(value, "as_scalar") if fits else REJECTED
    if isinstance(value, np.generic):
        return value.item()
    if type(value) is int and not -1 << 63 <= value < 1 << 64:
        raise OverflowError("int too big to convert" if value > 0 else "can't convert negative int to unsigned")
    return value if isinstance(value, (int, float, complex, *SYM_TYPES)) else REJECTED


def _scalar_type(value):
    if isinstance(value, scalar_type.dtype):
        return value
    if isinstance(value, str):
        return scalar_type.dtype_by_name(value)
    return scalar_type.from_python_type(value) or REJECTED if isinstance(value, type) else REJECTED


def _device(value):
    return device(value) if isinstance(value, (device, str, int)) and not isinstance(value, bool) else REJECTED


def _instance(*kinds):
    return lambda value: value if isinstance(value, kinds) else REJECTED


def _memory_format(value):
    if isinstance(value, str):
        return getattr(memory_formats, value)
    return value if isinstance(value, memory_formats.memory_format) else REJECTED


_CONVERSIONS = {
    "int": _int,
    "float": _float,
    "bool": _bool,
    "Scalar": _scalar,
    "ScalarType": _scalar_type,
    "Device": _device,
    "Layout": _instance(layout),
    "MemoryFormat": _memory_format,
    "str": _instance(str),
    "Generator": lambda value: value if hasattr(value, "_impl") else REJECTED,
}


def _element_message(values, position):
    """What is wrong with a list that should hold tensors only."""
    place = next(i for i, v in enumerate(values) if not isinstance(v, TensorImpl))
    return f"expected Tensor as element {place} in argument {position}, but got {type(values[place]).__name__}"


def _wrong_int(values, place):
    """What is wrong with a list that should hold ints only. PyTorch looks at the first one when it chooses an
    overload and at the others later, hence the two wordings."""
    number, kind = next((i, type(v).__name__) for i, v in enumerate(values) if not _is_int(v))
    if number == 0:
        found = f"but found element of type {kind} at pos 0" if place else f"not {type(values).__name__}"
        return f"{place} must be tuple of ints, {found}"
    return f' failed to unpack the object at pos {number + 1} with error "type must be tuple of ints,but got {kind}"'


def _type_name(kind):
    if kind.is_list:
        return f"tuple of {kind.base if kind.base in ('Tensor', 'Scalar') else kind.base.lower()}s"
    return {
        "Scalar": "Number",
        "ScalarType": "torch.dtype",
        "Device": "torch.device",
        "Layout": "torch.layout",
        "MemoryFormat": "torch.memory_format",
        "Generator": "torch.Generator",
    }.get(kind.base, kind.base)


# ------------------------------------------------------------------------------------------------------ bindings


def make_parser(packet, is_method, public=None):
    """A function (args, kwargs) -> result that finds the overload which fits and calls it.

    public: the Public whose calls these are; None for a parser in a binding that has asked for overrides, or need not.
    """
    signatures = []
    entry = python_operator.attrgetter("call" if public is None else "call_from_python")

    def parse(args, kwargs):
        if not signatures:  # on the first call: most operators are never called
            signatures.extend([Signature(op, packet.out.get(op), packet, is_method) for op in packet.overloads])
            signatures.extend(deprecated_signatures(packet, is_method, list(signatures)))
        failures = []
        for signature in signatures:
            try:
                bound, out = signature.bind(args, kwargs)
            except _Mismatch as mismatch:
                failures.append(mismatch.with_traceback(None))  # which would hold this frame, and so the arguments
                continue
            try:
                result = signature.call(bound, out, entry)
            except Overridden:
                break
            return require_grad(result) if kwargs.get("requires_grad") else result
        else:
            if public is None or not any(map(is_no_tensor_and_overrides, public.asked_of(args, kwargs))):
                for failure in failures:
                    if type(failure) is _NoNumber:
                        failure.tensor.item()  # says what vmap thinks of that
                raise TypeError(describe_failures(packet.binding_name, signatures, failures, args, kwargs, is_method))
        return public.override(args, kwargs)

    return parse


def require_grad(t):
    """A factory's result as a leaf that requires grad."""
    check_differentiable(t)
    t.requires_grad = True  # `requires_grad_()` is refused inside a transform, this is not
    return t


def check_differentiable(t):
    if t._array.dtype.kind in "iub":
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")


def describe_failures(name, signatures, failures, args, kwargs, is_method):
    """The message of a call that fits no overload, worded as PyTorch words it.

    If there is but one signature, or one that takes so many arguments, it says what is wrong with that one.
    """
    failures = [failure for signature, failure in zip(signatures, failures) if not signature.hidden] or failures
    signatures = [signature for signature in signatures if not signature.hidden] or signatures
    count = len(args) + len(kwargs)
    plausible = [f for s, f in zip(signatures, failures) if s.fewest <= count <= s.most]
    if len(signatures) == 1 or len(plausible) == 1:
        reason = str((plausible or failures)[0])
        if reason.startswith("expected Tensor as element"):
            return reason
        joint = " " if reason.startswith(("missing", "takes", "got")) else ": "
        return f"{name}(){joint}{reason}"
    given = [type(a).__name__ for a in (args[1:] if is_method else args)]
    given += [f"{key}={type(value).__name__}" for key, value in kwargs.items()]
    options = "\n".join(f" * {signature}" for signature in signatures)
    return (
        f"{name}() received an invalid combination of arguments - got ({', '.join(given)}), "
        f"but expected one of:\n{options}\n"
    )
