"""How a family file declares an operator.

    mul = native_function("mul.Tensor(Tensor self, Tensor other) -> Tensor", "function, method", inplace=True, out=True)

    @mul.kernel                      # what it computes, on the CPU
    def mul_cpu(self, other): ...

    @mul.backward                    # and its derivative, right below
    class MulBackward0:
        def self(grad, other): return grad * other.conj()
        def other(grad, self): return grad * self.conj()

From the one declaration follow `mul_` and the `out=` form, the Python bindings `torch.mul` and `Tensor.mul`, and the
graph node. In PyTorch: an entry of
`aten/src/ATen/native/native_functions.yaml`, read by `torchgen/model.py`. Explained in the chapter "From a schema to code".
"""

import contextlib
import copy

from readtorch.c10.dispatch_key import FOLLOWED
from readtorch.c10.local_dispatch_key_set import KeyGuard, tls

from .dispatcher import register
from .out_names import OUT_NAMES
from .register_dispatch_key import inplace_kernel, out_kernel

BOTH = "function, method"  # `variants` of an operator that is both, as native_functions.yaml spells it

# Python name -> Packet: all overloads that share a name and a Python module.
packets = {}


class Packet:
    """All overloads of one name, in the order in which the argument parser tries them."""

    def __init__(self, name, module):
        self.name = name
        self.module = module  # where its function lives: "torch", "nn", "linalg", "special", "fft"
        self.overloads = []
        self.hidden = set()  # those that have no Python binding: error messages do not offer them
        self.is_function = False
        self.is_method = False
        self.out = {}  # functional Operator -> its out= Operator
        self.direct = False  # whether the first overload's arguments need no conversion: see gen_python_functions
        self.numbers_as_tensors = False
        self.make_binding = None  # see `binding_maker`
        self.binding = None  # hand-written Python function, when the generated one will not do

    @property
    def binding_name(self):
        """PyTorch's name of the binding, which errors speak of: `linalg_norm`."""
        return self.name if self.module in ("torch", "nn") else f"{self.module}_{self.name}"


def native_function(
    text,
    variants="function",
    *,
    module="torch",
    inplace=False,
    out=False,
    direct=False,
    numbers_as_tensors=False,
    name=None,
):
    """Declare the operator that `text` spells.

    variants: "function", "method", "function, method" or "" for one that has no Python binding of its own.
    inplace, out: also derive the in-place (`name_`) and the `out=` operator. out: True, or the outputs' names where the
    schema gives none, or a function that is given the operator and returns one of these (exact_out.py).
    direct: the Python binding may pass its arguments on as they are (tensors and numbers only).
    numbers_as_tensors: a Python number may stand where the schema says Tensor.
    name: the Python name, if it is not the schema's.
    """
    operator = register(text)
    python_name = name or operator.schema.name
    packet = _packet(python_name, module)
    packet.overloads.append(operator)
    if not variants:
        packet.hidden.add(operator)
    _add_variants(packet, variants)
    packet.direct |= direct
    packet.numbers_as_tensors |= numbers_as_tensors
    if inplace:
        _derive_inplace(operator, packet)
    if callable(out):
        out = out(operator)
    if out:
        _derive_out(operator, packet, None if out is True else out)
    return operator


def python_binding(name, variants="function, method", module="torch"):
    """Decorator: this hand-written function is the Python binding of the operators called `name`."""

    def register_binding(function):
        packet = _packet(name, module)
        packet.binding = function
        _add_variants(packet, variants)
        return function

    return register_binding


def binding_maker(name, variants="function, method", module="torch"):
    """Decorator: `make(public)` returns the hand-written Python binding, which asks for overrides itself, as quick ones do: Note
    [ Who overrides ]. public: the Public that it tells of a call, None for readtorch's own calls, which nobody overrides.
    """

    def register_maker(make):
        packet = _packet(name, module)
        packet.make_binding = make
        _add_variants(packet, variants)
        return make

    return register_maker


def alias_of(name, existing, module="torch"):
    """`name` is another Python name of the operators called `existing`, and `name_` of `existing_`.

    In PyTorch: an operator of its own, which does nothing but call the other.
    """
    for suffix in ("", "_"):
        original = packets.get(("torch", existing + suffix))
        if original is not None and (module == "torch" or not suffix):
            alias = copy.copy(original)
            alias.name, alias.module = name + suffix, module
            packets[(module, name + suffix)] = alias


def _add_variants(packet, variants):
    packet.is_function |= "function" in variants
    packet.is_method |= "method" in variants


def _packet(name, module):
    return packets.setdefault((module, name), Packet(name, module))


# ------------------------------------------------------------------------------------------- derived operators


def _derive_inplace(operator, packet):
    schema = operator.schema
    overload = f".{schema.overload}" if schema.overload else ""
    text = f"{schema.name}_{overload}({_join('Tensor(a!) self', schema.arguments[1:])}) -> Tensor(a!)"
    inplace = operator.inplace = register(text)
    inplace.variant_of = operator
    target = _packet(packet.name + "_", packet.module)
    target.overloads.append(inplace)
    target.is_method = True
    target.is_function = packet.is_function
    target.direct = packet.direct
    target.numbers_as_tensors = packet.numbers_as_tensors

    inplace.kernel(inplace_kernel(operator))


def _derive_out(operator, packet, names):
    schema = operator.schema
    usual = f"{schema.overload}_out" if schema.overload and packet.out else "out"
    overload = OUT_NAMES.get(operator.name.removeprefix("aten::"), usual)
    outputs = names or [r.name or "out" for r in schema.returns]
    arguments = _join("", schema.arguments)
    letters = [letter for letter in "abcdefgh" if f"({letter}!)" not in arguments]
    declared = ", ".join(f"Tensor({letter}!) {name}" for letter, name in zip(letters, outputs))
    returns = ", ".join(
        f"Tensor({letter}!)" + (f" {r.name}" if r.name else "") for letter, r in zip(letters, schema.returns)
    )
    star = "" if any(a.keyword_only for a in schema.arguments) else "*, "
    separator = ", " if arguments else ""
    many = f"({returns})" if len(outputs) > 1 else returns
    out = operator.out = register(f"{schema.name}.{overload}({arguments}{separator}{star}{declared}) -> {many}")
    out.variant_of = operator
    packet.out[operator] = out
    out.kernel(out_kernel(operator))


def _join(first, arguments):
    parts, starred = ([first] if first else []), False
    for a in arguments:
        if a.keyword_only and not starred:
            parts.append("*")
            starred = True
        parts.append(str_argument(a))
    return ", ".join(parts)


def str_argument(a):
    """An argument as its schema spells it."""
    if not a.has_default:
        return f"{a.type} {a.name}"
    value = a.default
    shown = value if isinstance(value, str) and a.type.base not in ("str",) else repr(value)
    return f"{a.type} {a.name}={shown}"


def below_autograd():
    """`with below_autograd():` calls inside skip autograd, as a kernel's calls do. Under a transform nothing is skipped: the function
    is called by vmap then, in place of a batching rule, and levels below may differentiate.
    """
    return contextlib.nullcontext() if tls.functorch else KeyGuard(exclude=FOLLOWED)
