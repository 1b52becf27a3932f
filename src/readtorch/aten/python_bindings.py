"""The Python faces of operators: the functions that `torch.add`, `Tensor.add` and `+` are.

In PyTorch: generated C++ (`tools/autograd/gen_python_functions.py`: `python_torch_functions.cpp`,
`python_variable_methods.cpp`). Explained in the chapter "One operator call".
"""
import numpy as np

from ..c10.device import default_device, keys_on
from ..c10.dispatch_key import changed, tls
from ..c10.tensor_impl import TensorImpl, wrap_number
from .codegen import compile_face
from .dispatcher import MASK, NO_TENSOR_KEYS, key_lines, run_lines
from .python_arg_parser import NUMBERS, make_parser, number_as_tensor


def make_face(packet, is_method):
    """The Python function for a packet: hand-written, direct (no conversions), or through the argument parser."""
    face = packet.face or _generated_face(packet, make_parser(packet, is_method))
    face.__doc__ = face.__doc__ or _DOC.format(packet.name, "\n    ".join([op.schema.text for op in packet.overloads]))
    return face


_DOC = """The operator `{}`. A call is bound to the first of these schemas that it fits:

    {}

In PyTorch: the entries of these names in `aten/src/ATen/native/native_functions.yaml`. Explained in the chapter
"One operator call"."""


def _generated_face(packet, parse):
    if packet.direct:
        return _direct_face(packet, parse) if len(packet.overloads) == 1 else _first_overload_face(packet, parse)

    def face(*args, **kwargs):
        return parse(args, kwargs)
    face.__name__ = face.__qualname__ = packet.name
    return face


def _direct_face(packet, parse):
    """A face that ORs the key sets itself and leaves the parser to calls it does not understand.

    An argument that is not there is MISSING, which has no key set either; one too many is in `extra`.
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
    checks += [f"if not isinstance({n}, (list, tuple)): raise AttributeError" for a, n in zip(arguments, names)
              if a.type.is_tensor and a.type.is_list and not a.type.optional]
    checks += [f"if {n} is MISSING: raise AttributeError" for a, n in zip(arguments, names)
               if not a.type.is_tensor and not a.has_default and not a.type.optional][-1:]
    lines = "\n        ".join(key_lines(arguments, _RENAMED) + checks)
    source = (f"def face({', '.join(declared)}):\n"
              f"    try:\n        {lines}\n"
              f"    except AttributeError:\n{_number_lines(packet, 8)}"
              f"        if keys is None: return parse(given(({positional})) + extra, {{{keywords}}})\n")
    if out is not None:
        source += f"    if out is not None: return out_form.call({', '.join(names)}, out)\n"
    source += run_lines(f"table[keys & (tls.mask if changed else DEFAULT_MASK)]({', '.join(names)})")
    return compile_face(packet.name, source, {
        "table": operator.table, **MASK, "parse": parse, "out_form": out, "no_tensor_keys": NO_TENSOR_KEYS, "keys_on": keys_on,
        "default_device": default_device,
        "MISSING": MISSING, "given": given, "number_beside": number_beside})


def _number_lines(packet, indent):
    """Source lines for a call whose `other` is a plain number: it becomes a tensor here, without the parser."""
    pad = " " * indent
    if not packet.numbers_as_tensors or packet.overloads[0].schema.arguments[1].name != "other":
        return f"{pad}keys = None\n"
    return (f"{pad}keys = None\n"
            f"{pad}if (type(other) is float or type(other) is int) and hasattr(input, '_keys'):\n"
            f"{pad}    other = number_beside(input, other, {packet.name!r})\n"
            f"{pad}    keys = input._keys | other._keys\n")


_RENAMED = {"self": "input"}


class _Missing:
    """Stands for an argument that the caller left out."""

    def __repr__(self):
        return "<required>"


MISSING = _Missing()


def given(arguments):
    """The arguments up to the first that is missing."""
    for place, a in enumerate(arguments):
        if a is MISSING:
            return arguments[:place]
    return arguments


def _declared_parameters(arguments, names, with_out):
    """How the parameters stand in the face's `def`."""
    declared, starred = [], False
    for a, name in zip(arguments, names):
        if a.keyword_only and not starred:
            declared.append("*extra")
            starred = True
        default = repr(a.default) if a.has_default else "None" if a.type.optional else "MISSING"
        declared.append(f"{name}={default}")
    declared += [] if starred else ["*extra"]
    return declared + (["out=None"] if with_out else [])


def _first_overload_face(packet, parse):
    """The same for several overloads: a call that gives just the required arguments of the first goes straight to it."""
    operator = packet.overloads[0]
    renamed = {"self": "input"}
    required = [a for a in operator.schema.arguments if not a.has_default and not a.keyword_only]
    names = ", ".join(renamed.get(a.name, a.name) for a in required)
    defaults = "".join(f", {a.default!r}" for a in operator.schema.arguments[len(required):])
    lines = "\n            ".join(key_lines(required, renamed))
    source = (f"def face({names}, *args, **kwargs):\n"
              f"    if not args and not kwargs:\n"
              f"        try:\n            {lines}\n"
              f"        except AttributeError:\n{_number_lines(packet, 12)}"
              f"            if keys is None: return parse(({names},), kwargs)\n"
              + run_lines(f"table[keys & (tls.mask if changed else DEFAULT_MASK)]({names}{defaults})", 8) +
              f"    return parse(({names}, *args), kwargs)\n")
    return compile_face(packet.name, source, {"table": operator.table, **MASK, "parse": parse, "number_beside": number_beside})


def make_infix(name, packet, reflected=False):
    """The method for an infix operator: hands operands it does not know back to Python (NotImplemented).

    A number beside a tensor is the common case, so it is wrapped here in the tensor's own dtype when that loses nothing.
    """
    operator = packet.overloads[0]
    extra = "".join(f", {a.default!r}" for a in operator.schema.arguments[2:])
    operands = "other, self" if reflected else "self, other"
    source = ("def face(self, other):\n"
              "    try:\n        keys = self._keys | other._keys\n"
              "    except AttributeError:\n"
              "        other = number_beside(self, other, name)\n"
              "        if other is None: return NotImplemented\n"
              "        keys = self._keys | other._keys\n"
              + run_lines(f"table[keys & (tls.mask if changed else DEFAULT_MASK)]({operands}{extra})"))
    return compile_face(name, source, {"table": operator.table, **MASK, "number_beside": number_beside, "name": name})


_FLOAT_OR_DOUBLE = frozenset({np.dtype(np.float32), np.dtype(np.float64)})
_LONG = np.dtype(np.int64)


def number_beside(tensor, number, method):
    """`number` as a tensor that may stand beside `tensor`, or None if it is not a number."""
    if not isinstance(tensor, TensorImpl):
        raise TypeError(f"descriptor '{method}' for 'torch._C.TensorBase' objects doesn't apply to a "
                        f"'{type(tensor).__name__}' object")
    kind, dtype = type(number), tensor._array.dtype
    if changed and tls.tracer is not None:
        return number_as_tensor(number) if isinstance(number, NUMBERS) else None  # a trace says which type it had
    if kind is float and dtype in _FLOAT_OR_DOUBLE or (
            kind is int and (dtype in _FLOAT_OR_DOUBLE and -2**63 <= number < 2**63 or dtype is _LONG)):
        return wrap_number(number, dtype)
    return number_as_tensor(number) if isinstance(number, NUMBERS) else None
