"""The Python bindings of operators: the functions that `torch.add`, `Tensor.add` and `+` are.

In PyTorch: `tools/autograd/gen_python_functions.py` writes `python_torch_functions.cpp` and `python_variable_methods.cpp`
before the compiler runs. Here the text is made when the function is first asked for. Explained in the chapter "One operator
call".
"""

import numpy as np

from readtorch.c10.device import default_device, keys_on
from readtorch.c10.local_dispatch_key_set import threads_with_modes, tls
from readtorch.c10.tensor_impl import TensorImpl, wrap_number

from .codegen import compile_binding
from .dispatcher import MASK, NO_TENSOR_KEYS, key_lines, run_lines
from .python_arg_parser import NUMBERS, make_parser, number_as_tensor


def make_binding(packet, is_method):
    """The Python function for the overloads of a name: hand-written, direct (no conversions), or through the parser."""
    binding = packet.binding or _generated_binding(packet, make_parser(packet, is_method))
    binding.__doc__ = binding.__doc__ or _DOC.format(
        packet.name, "\n    ".join([op.schema.text for op in packet.overloads])
    )
    return binding


_DOC = """The operator `{}`. A call is bound to the first of these schemas that it fits:

    {}

In PyTorch: the entries of these names in `aten/src/ATen/native/native_functions.yaml`. Explained in the chapter
"One operator call"."""


def _generated_binding(packet, parse):
    if packet.direct:
        return _direct_binding(packet, parse) if len(packet.overloads) == 1 else _first_overload_binding(packet, parse)

    def binding(*args, **kwargs):
        return parse(args, kwargs)

    binding.__name__ = binding.__qualname__ = packet.name
    return binding


def _direct_binding(packet, parse):
    """A binding that ORs the key sets itself and leaves to the parser the calls that it does not understand.

    An argument that is missing is MISSING, which has no key set; one too many is in `extra`: both raise AttributeError.
    For `exp` it writes:

        def binding(input=MISSING, *extra, out=None):
            try:
                keys = input._keys
                if extra: raise AttributeError
            except AttributeError:
                return parse(given((input,)) + extra, {**({} if out is None else {'out': out})})
            if out is not None: return out_form.call(input, out)
            try: return table[keys & (tls.mask if threads_with_modes else DEFAULT_MASK)](input)
            except FOREIGN as error:
                restate(error)
                raise
    """
    operator, out = packet.overloads[0], packet.out.get(packet.overloads[0])
    arguments = operator.schema.arguments
    names = [_RENAMED.get(a.name, a.name) for a in arguments]
    declared = _declared_parameters(arguments, names, with_out=out is not None)
    positional = ", ".join(n for a, n in zip(arguments, names) if not a.keyword_only) + ","
    keywords = ", ".join(f"{a.name!r}: {n}" for a, n in zip(arguments, names) if a.keyword_only)
    if out is not None:
        keywords += f"{', ' if keywords else ''}**({{}} if out is None else {{'out': out}})"
    checks = ["if extra: raise AttributeError"]
    checks += [
        f"if not isinstance({n}, (list, tuple)): raise AttributeError"
        for a, n in zip(arguments, names)
        if a.type.is_tensor and a.type.is_list and not a.type.optional
    ]
    checks += [
        f"if {n} is MISSING: raise AttributeError"
        for a, n in zip(arguments, names)
        if not a.type.is_tensor and not a.has_default and not a.type.optional
    ][-1:]
    lines = "\n        ".join(key_lines(arguments, _RENAMED) + checks)
    source = (
        f"def binding({', '.join(declared)}):\n"
        f"    try:\n        {lines}\n"
        f"    except AttributeError:\n"
        + _parse_lines(packet, f"parse(given(({positional})) + extra, {{{keywords}}})", indent=8)
    )
    if out is not None:
        source += f"    if out is not None: return out_form.call({', '.join(names)}, out)\n"
    source += run_lines(f"table[keys & (tls.mask if threads_with_modes else DEFAULT_MASK)]({', '.join(names)})")
    return compile_binding(packet.name, source, _binding_names(operator, parse, out))


def _binding_names(operator, parse, out):
    """What the text of a direct binding refers to."""
    return {
        "table": operator.table,
        **MASK,
        "parse": parse,
        "out_form": out,
        "no_tensor_keys": NO_TENSOR_KEYS,
        "keys_on": keys_on,
        "default_device": default_device,
        "MISSING": MISSING,
        "given": given,
        "number_beside": number_beside,
    }


def _parse_lines(packet, call, indent):
    """Source lines for arguments without keys: the parser takes them. But a number as `other` becomes a tensor here."""
    pad = " " * indent
    if not packet.numbers_as_tensors or packet.overloads[0].schema.arguments[1].name != "other":
        return f"{pad}return {call}\n"
    return (
        f"{pad}if type(other) not in (float, int) or not hasattr(input, '_keys'): return {call}\n"
        f"{pad}other = number_beside(input, other, {packet.name!r})\n"
        f"{pad}keys = input._keys | other._keys\n"
    )


_RENAMED = {"self": "input"}


class _Missing:
    """Stands for an argument that the caller left out."""

    def __repr__(self):
        return "<required>"


MISSING = _Missing()


def given(arguments):
    """The arguments up to the first that is missing."""
    for i, a in enumerate(arguments):
        if a is MISSING:
            return arguments[:i]
    return arguments


def _declared_parameters(arguments, names, with_out):
    """How the parameters stand in the binding's `def`."""
    declared, starred = [], False
    for a, name in zip(arguments, names):
        if a.keyword_only and not starred:
            declared.append("*extra")
            starred = True
        default = repr(a.default) if a.has_default else "None" if a.type.optional else "MISSING"
        declared.append(f"{name}={default}")
    declared += [] if starred else ["*extra"]
    return declared + (["out=None"] if with_out else [])


def _first_overload_binding(packet, parse):
    """The same for several overloads: a call that gives just the required arguments of the first goes straight to it.

    For `mul` it writes:

        def binding(input, other, *args, **kwargs):
            if not args and not kwargs:
                try:
                    keys = input._keys | other._keys
                except AttributeError:
                    if type(other) not in (float, int) or not hasattr(input, '_keys'): return parse((input, other,), kwargs)
                    other = number_beside(input, other, 'mul')
                    keys = input._keys | other._keys
                try: return table[keys & (tls.mask if threads_with_modes else DEFAULT_MASK)](input, other)
                except FOREIGN as error:
                    restate(error)
                    raise
            return parse((input, other, *args), kwargs)
    """
    operator = packet.overloads[0]
    required = [a for a in operator.schema.arguments if not a.has_default and not a.keyword_only]
    names = ", ".join(_RENAMED.get(a.name, a.name) for a in required)
    defaults = "".join(f", {a.default!r}" for a in operator.schema.arguments[len(required) :])
    lines = "\n            ".join(key_lines(required, _RENAMED))
    source = (
        f"def binding({names}, *args, **kwargs):\n"
        f"    if not args and not kwargs:\n"
        f"        try:\n            {lines}\n"
        f"        except AttributeError:\n"
        + _parse_lines(packet, f"parse(({names},), kwargs)", indent=12)
        + run_lines(f"table[keys & (tls.mask if threads_with_modes else DEFAULT_MASK)]({names}{defaults})", 8)
        + f"    return parse(({names}, *args), kwargs)\n"
    )
    return compile_binding(
        packet.name, source, {"table": operator.table, **MASK, "parse": parse, "number_beside": number_beside}
    )


def make_infix(name, packet, reflected=False):
    """The method for an infix operator: hands operands it does not know back to Python (NotImplemented).

    A number beside a tensor is the common case, so it is wrapped here in the tensor's own dtype when that loses nothing.
    For `Tensor.__mul__` it writes:

        def binding(self, other):
            try:
                keys = self._keys | other._keys
            except AttributeError:
                other = number_beside(self, other, name)
                if other is None: return NotImplemented
                keys = self._keys | other._keys
            try: return table[keys & (tls.mask if threads_with_modes else DEFAULT_MASK)](self, other)
            except FOREIGN as error:
                restate(error)
                raise
    """
    operator = packet.overloads[0]
    extra = "".join(f", {a.default!r}" for a in operator.schema.arguments[2:])
    operands = "other, self" if reflected else "self, other"
    source = (
        "def binding(self, other):\n"
        "    try:\n        keys = self._keys | other._keys\n"
        "    except AttributeError:\n"
        "        other = number_beside(self, other, name)\n"
        "        if other is None: return NotImplemented\n"
        "        keys = self._keys | other._keys\n"
        + run_lines(f"table[keys & (tls.mask if threads_with_modes else DEFAULT_MASK)]({operands}{extra})")
    )
    return compile_binding(
        name, source, {"table": operator.table, **MASK, "number_beside": number_beside, "name": name}
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
