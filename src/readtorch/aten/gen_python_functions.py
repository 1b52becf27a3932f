"""The Python bindings of operators: the functions that `torch.add`, `Tensor.add` and `+` are.

In PyTorch: `tools/autograd/gen_python_functions.py` writes `python_torch_functions.cpp` and `python_variable_methods.cpp`
before the compiler runs. Here the text is made when the function is first asked for. Explained in the chapter "One operator
call".
"""

import inspect
import textwrap

import numpy as np

from readtorch.c10.device import keys_on
from readtorch.c10.local_dispatch_key_set import threads_with_modes, tls
from readtorch.c10.tensor_impl import TensorImpl, wrap_number

from .codegen import compile_binding, compile_function
from .dispatcher import MASK, NO_TENSOR_KEYS, key_lines
from .python_arg_parser import NUMBERS, make_parser, number_as_tensor
from .python_fallback_kernel import nobody_answered
from .torch_function import Overridden, Public, asking


def make_binding(packet, is_method):
    """The Python function for the overloads of a name: hand-written, direct (no conversions), or through the parser."""
    public = public_function(packet, is_method)
    if packet.make_binding:
        binding = packet.make_binding(public)
    else:
        binding = asking(packet.binding, public) if packet.binding else _generated_binding(packet, public)
    binding.__doc__ = binding.__doc__ or _DOC.format(
        packet.name, "\n    ".join([op.schema.text for op in packet.overloads])
    )
    if packet.make_binding or packet.binding:
        binding.__name__ = binding.__qualname__ = packet.name
    if is_method and packet.name in _METHODS_IN_PYTHON:
        return _method_in_python(packet.name, binding)
    if not is_method:
        public.function = binding
        if public.parameters is None:  # the others are Python's in PyTorch, too
            binding.__wrapped__ = BuiltinFunction(packet.name)
    return binding


class BuiltinFunction:
    """What `inspect` finds behind the function of an operator: in PyTorch these are written in C, and have no signature."""

    __slots__ = ("name",)

    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return f"<built-in function {self.name}>"

    @property
    def __signature__(self):
        raise ValueError(f"no signature found for builtin {self!r}")


# In PyTorch these methods are written in Python; `/` has one method for two of its names.
_IN_PYTHON = {
    name: name for name in ("__rsub__", "__rdiv__", "__rfloordiv__", "__rmod__", "__rlshift__", "__rrshift__")
}
_IN_PYTHON |= {"__rtruediv__": "__rdiv__", "__pow__": "__pow__", "__ipow__": "__ipow__", "__rpow__": "__rpow__"}
_STFT = "n_fft, hop_length=None, win_length=None, window=None, center=True, "
_STFT_ENDS = "normalized=False, onesided=None, return_complex=None, align_to_window=None"
_UNIQUE = "return_inverse=False, return_counts=False, dim=None"
_METHODS_IN_PYTHON = {
    "split": "self, split_size, dim=0",
    "norm": "self, p='fro', dim=None, keepdim=False, dtype=None",
    "lu": "self, pivot=True, get_infos=False",
    "stft": f"self, {_STFT}pad_mode='reflect', {_STFT_ENDS}",
    "istft": f"self, {_STFT}normalized=False, onesided=None, length=None, return_complex=False",
    "unique": f"self, sorted=True, {_UNIQUE}",
    "unique_consecutive": f"self, {_UNIQUE}",
    "unflatten": "self, dim, sizes",
}
_FUNCTIONS_IN_PYTHON = {
    "split": "tensor, split_size_or_sections, dim=0",
    "norm": "input, p='fro', dim=None, keepdim=False, out=None, dtype=None",
    "lu": "A, pivot=True, get_infos=False, out=None",
    "stft": f"input, {_STFT}pad_mode='reflect', {_STFT_ENDS}",
    "unique": f"input, sorted=True, {_UNIQUE}",
    "unique_consecutive": f"input, {_UNIQUE}",
    "tensordot": "a, b, dims=2, out=None",
    "einsum": "*args",
    "chain_matmul": "*matrices",
}
# Methods that bear another's name, and hand-written ones without arguments.
_TOLD_AS = {"__mod__": "remainder", "__imod__": "remainder_"}
_ALONE = {"__invert__", "item", "is_floating_point", "is_complex", "is_signed", "is_inference"}
_ALONE |= {"is_conj", "is_neg", "is_distributed"}


def _method_in_python(name, binding):
    """The binding behind a `def` with the method's own parameters, for `lu`

        def lu(self, pivot=True, get_infos=False):
            return binding(self, pivot=pivot, get_infos=get_infos)

    Those of the function have other names, and there may be more of them. Python itself refuses what does not fit.
    """
    parameters = _METHODS_IN_PYTHON[name]
    handed_on = ", ".join(
        f"{p}={p}" for p in inspect.signature(eval(f"lambda {parameters}: None")).parameters if p != "self"
    )
    source = f"def {name}({parameters}):\n    return binding(self, {handed_on})\n"
    method = compile_function(name, source, {"binding": binding})
    method.__qualname__, method.__module__, method.__doc__ = f"Tensor.{name}", "readtorch._tensor", binding.__doc__
    return method


def make_internal_binding(packet):
    """The same for readtorch's own calls, which nobody overrides: see functions.py."""
    if packet.make_binding:
        return packet.make_binding(None)
    return packet.binding or _generated_binding(packet, None)


def public_function(packet, is_method):
    """What `__torch_function__` is told of a call."""
    if is_method and packet.name in _IN_PYTHON:
        return Public(_IN_PYTHON[packet.name], "torch.Tensor", in_python=True)
    if is_method and packet.name in _METHODS_IN_PYTHON:
        return Public(packet.name, "torch.Tensor", parameters=_METHODS_IN_PYTHON[packet.name])
    if is_method:
        alone = packet.name in _ALONE or {1} == {len(operator.schema.arguments) for operator in packet.overloads}
        return Public(_TOLD_AS.get(packet.name, packet.name), "torch.Tensor", alone)
    if packet.module == "torch":
        return Public(packet.name, parameters=_FUNCTIONS_IN_PYTHON.get(packet.name))
    return Public(packet.binding_name, f"torch.{packet.module}")


_DOC = """The operator `{}`. A call is bound to the first of these schemas that it fits:

    {}

In PyTorch: the entries of these names in `aten/src/ATen/native/native_functions.yaml`. Explained in the chapter
"One operator call"."""


def _generated_binding(packet, public):
    parse = make_parser(packet, public is not None and public.is_method, public)
    if packet.direct:
        return (_direct_binding if len(packet.overloads) == 1 else _first_overload_binding)(packet, public, parse)

    def binding(*args, **kwargs):
        return parse(args, kwargs)

    binding.__name__ = binding.__qualname__ = packet.name
    return binding


def _direct_binding(packet, public, parse):
    """A binding that ORs the key sets itself and leaves to the parser the calls that it does not understand.

    It takes its arguments so that they can be handed to `__torch_function__` as the caller wrote them. One that is missing
    is MISSING, which has no key set; one too many is in `extra`; a keyword that is not known stays in `left`: all raise
    AttributeError. For `exp` it writes:

        def binding(input=MISSING, /, *extra, **kwargs):
            out = None
            try:
                if extra or kwargs:
                    if extra: raise AttributeError
                    left = len(kwargs)
                    if 'out' in kwargs: out, left = kwargs['out'], left - 1
                    if left: raise AttributeError
                keys = input._keys
            except AttributeError:
                return parse(given((input,), kwargs, names) + extra, kwargs)
            try:
                if out is not None: return out_form(input, out)
                return table[keys & (tls.mask if threads_with_modes else DEFAULT_MASK)](input)
            except Overridden: pass
            except FOREIGN as error:
                restate(error)
                raise
            return public.override(given((input,), kwargs, names) + extra, kwargs)
    """
    operator, out = packet.overloads[0], packet.out.get(packet.overloads[0])
    arguments = operator.schema.arguments
    positional = [_name(a) for a in arguments if not a.keyword_only]
    written = f"given(({', '.join(positional)},), kwargs, names) + extra, kwargs"
    values = ", ".join([_value(a, packet) for a in arguments])
    source = f"def binding({', '.join(f'{n}=MISSING' for n in positional)}, /, *extra, **kwargs):\n"
    source += "".join(f"    {_name(a)} = {a.default!r}\n" for a in arguments if a.keyword_only)
    source += "    out = None\n" if out is not None else ""
    source += "    right = other\n" if _other_may_be_number(packet) else ""
    source += "    try:\n" + textwrap.indent("\n".join(_checks(arguments, out)), " " * 8) + "\n"
    source += "    except AttributeError:\n" + _parse_lines(
        packet, f"parse({written})", 8, "extra or kwargs and left or "
    )
    source += "    try:\n"
    source += f"        if out is not None: return out_form({values}, out)\n" if out is not None else ""
    source += f"        return table[keys & (tls.mask if threads_with_modes else DEFAULT_MASK)]({values})\n"
    source += _HANDED_OVER + f"    return public.override({written})\n"
    names = names_of_text(operator, public, parse) | {"names": tuple(positional)}
    return compile_binding(packet.name, source, names | {"out_form": out and entry_for(out, public)})


def _checks(arguments, out):
    """Source lines that OR the key sets and raise AttributeError for what the parser must see."""
    lines = ["if extra or kwargs:", "    if extra: raise AttributeError", "    left = len(kwargs)"]
    for a in arguments[1:]:
        n = _name(a)
        only_once = "" if a.keyword_only else f"{n} is MISSING and "
        lines.append(f"    if {only_once}{n!r} in kwargs: {n}, left = kwargs[{n!r}], left - 1")
    lines += ["    if 'out' in kwargs: out, left = kwargs['out'], left - 1"] if out is not None else []
    lines += ["    if left: raise AttributeError"]
    lines += [
        f"if not isinstance({_name(a)}, (list, tuple)): raise AttributeError"
        for a in arguments
        if a.type.is_tensor and a.type.is_list and not a.type.optional
    ]
    lines += key_lines(arguments, _RENAMED, absent="MISSING")
    required = [a for a in arguments if not a.type.is_tensor and not a.has_default and not a.type.optional]
    return lines + [f"if {_name(a)} is MISSING: raise AttributeError" for a in required[-1:]]


def _name(argument):
    return _RENAMED.get(argument.name, argument.name)


def _value(argument, packet):
    """How the text of a binding hands an argument to the kernel."""
    name = _name(argument)
    if name == "other" and _other_may_be_number(packet):
        return "right"
    if argument.keyword_only or not (argument.has_default or argument.type.optional):
        return name
    return f"{argument.default!r} if {name} is MISSING else {name}"


def names_of_text(operator, public, parse=None):
    """What the texts of bindings refer to."""
    return {
        "table": table_for(operator, public),
        **MASK,
        "parse": parse,
        "public": public,
        "Overridden": Overridden,
        "no_tensor_keys": NO_TENSOR_KEYS,
        "keys_on": keys_on,
        "MISSING": MISSING,
        "given": given,
        "number_beside": number_beside,
    }


def table_for(operator, public):
    """Where a binding looks its kernel up: readtorch's own calls are not overridden."""
    return operator.table if public is None else operator.binding_table


def entry_for(operator, public):
    return operator.call if public is None else operator.call_from_python


_HANDED_OVER = "    except Overridden: pass\n    except FOREIGN as error:\n        restate(error)\n        raise\n"


def _other_may_be_number(packet):
    return packet.numbers_as_tensors and packet.overloads[0].schema.arguments[1].name == "other"


def _parse_lines(packet, call, indent, unknown=""):
    """Source lines for arguments without keys, or `unknown` ones: to the parser. But a number as `other` becomes a tensor here."""
    pad = " " * indent
    if not _other_may_be_number(packet):
        return f"{pad}return {call}\n"
    return (
        f"{pad}if {unknown}type(other) not in (float, int) or not hasattr(input, '_keys'): return {call}\n"
        f"{pad}right = number_beside(input, other, {packet.name!r})\n"
        f"{pad}keys = input._keys | right._keys\n"
    )


_RENAMED = {"self": "input"}


class _Missing:
    """Stands for an argument that the caller left out."""

    def __repr__(self):
        return "<required>"


MISSING = _Missing()


def given(arguments, kwargs=(), names=()):
    """The positional arguments that the caller wrote: those up to the first that is missing, or was found in kwargs."""
    for i, a in enumerate(arguments):
        if a is MISSING or kwargs and names[i] in kwargs and kwargs[names[i]] is a:
            return arguments[:i]
    return arguments


def _first_overload_binding(packet, public, parse):
    """The same for several overloads: a call that gives just the required arguments of the first goes straight to it.

    For `mul` it writes:

        def binding(input=MISSING, other=MISSING, /, *extra, **kwargs):
            if not extra and not kwargs:
                right = other
                try:
                    keys = input._keys | other._keys
                except AttributeError:
                    if type(other) not in (float, int) or not hasattr(input, '_keys'): return parse(given((input, other,)), kwargs)
                    right = number_beside(input, other, 'mul')
                    keys = input._keys | right._keys
                try: return table[keys & (tls.mask if threads_with_modes else DEFAULT_MASK)](input, right)
                except Overridden: pass
                except FOREIGN as error:
                    restate(error)
                    raise
                return public.override((input, other,), kwargs)
            return parse(given((input, other,)) + extra, kwargs)
    """
    operator = packet.overloads[0]
    required = [a for a in operator.schema.arguments if not a.has_default and not a.keyword_only]
    written = f"({', '.join(map(_name, required))},)"
    values = [_value(a, packet) if a in required else repr(a.default) for a in operator.schema.arguments]
    body = "right = other\n" if _other_may_be_number(packet) else ""
    body += "try:\n" + textwrap.indent("\n".join(key_lines(required, _RENAMED)), "    ") + "\n"
    body += "except AttributeError:\n" + _parse_lines(packet, f"parse(given({written}), kwargs)", indent=4)
    body += f"try: return table[keys & (tls.mask if threads_with_modes else DEFAULT_MASK)]({', '.join(values)})\n"
    body += textwrap.dedent(_HANDED_OVER) + f"return public.override({written}, kwargs)\n"
    source = (
        f"def binding({', '.join(f'{_name(a)}=MISSING' for a in required)}, /, *extra, **kwargs):\n"
        f"    if not extra and not kwargs:\n{textwrap.indent(body, ' ' * 8)}"
        f"    return parse(given({written}) + extra, kwargs)\n"
    )
    return compile_binding(packet.name, source, names_of_text(operator, public, parse))


def make_infix(name, packet, reflected=False, public=None):
    """The method for an infix operator: hands operands it does not know back to Python (NotImplemented).

    A number beside a tensor is the common case, so it is wrapped here in the tensor's own dtype when that loses nothing.
    public: what `__torch_function__` is told, if it is not the operator's method: `x + y` is told as `Tensor.add`.
    For `Tensor.__mul__` it writes:

        def binding(self, other):
            right = other
            try:
                keys = self._keys | other._keys
            except AttributeError:
                right = number_beside(self, other, name)
                if right is None: return public.override_infix(self, other)
                keys = self._keys | right._keys
            try: return table[keys & (tls.mask if threads_with_modes else DEFAULT_MASK)](self, right)
            except Overridden: pass
            except FOREIGN as error:
                if nobody_answered(error): return NotImplemented
                restate(error)
                raise
            return public.override_infix(self, other)
    """
    operator = packet.overloads[0]
    public = public or Public(packet.name, "torch.Tensor")
    extra = "".join(f", {a.default!r}" for a in operator.schema.arguments[2:])
    operands = "right, self" if reflected else "self, right"
    source = (
        "def binding(self, other):\n"
        "    right = other\n"
        "    try:\n        keys = self._keys | other._keys\n"
        "    except AttributeError:\n"
        "        right = number_beside(self, other, name)\n"
        "        if right is None: return public.override_infix(self, other)\n"
        "        keys = self._keys | right._keys\n"
        f"    try: return table[keys & (tls.mask if threads_with_modes else DEFAULT_MASK)]({operands}{extra})\n"
        + _HANDED_OVER.replace("restate", "if nobody_answered(error): return NotImplemented\n        restate")
        + "    return public.override_infix(self, other)\n"
    )
    return compile_binding(
        name, source, names_of_text(operator, public, None) | {"name": name, "nobody_answered": nobody_answered}
    )


_FLOAT_OR_DOUBLE = frozenset({np.dtype(np.float32), np.dtype(np.float64)})
_LONG = np.dtype(np.int64)


def number_beside(tensor, number, method):
    """`number` as a tensor that may stand beside `tensor`, or None if it is not a number."""
    if not isinstance(tensor, TensorImpl):
        raise TypeError(
            f"descriptor '{method}' for 'torch._C.TensorBase' objects doesn't apply to a "
            f"'{type(tensor).__name__}' object"
        )
    kind, dtype = type(number), tensor._array.dtype
    if threads_with_modes and tls.tracer is not None:
        return number_as_tensor(number) if isinstance(number, NUMBERS) else None  # a trace says which type it had
    if (
        kind is float
        and dtype in _FLOAT_OR_DOUBLE
        or (kind is int and (dtype in _FLOAT_OR_DOUBLE and -(2**63) <= number < 2**63 or dtype is _LONG))
    ):
        return wrap_number(number, dtype)
    return number_as_tensor(number) if isinstance(number, NUMBERS) else None
