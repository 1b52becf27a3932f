"""Writes what type checkers read of the operators: `.pyi` files, made from the operators' schemas.

    python tools/gen_pyi.py            writes them
    python tools/gen_pyi.py --check    says which are not what it would write, and exits with 1 if there are any

The functions and methods of operators are made when the package is imported, so a type checker, which only reads, cannot
see them. In PyTorch: `tools/pyi/gen_pyi.py`.
"""

import inspect
import re
import sys
from keyword import iskeyword
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "readtorch"
sys.path.insert(0, str(PACKAGE.parent))

import readtorch  # noqa: E402
from readtorch import Tensor  # noqa: E402
from readtorch._jit_internal import _get_fn_overloads  # noqa: E402
from readtorch.aten import gen_python_functions  # noqa: E402
from readtorch.aten.native_function import packets  # noqa: E402
from readtorch.aten.python_arg_parser import Signature  # noqa: E402
from readtorch.c10.scalar_type import ALIASES, ALL_TYPES  # noqa: E402
from readtorch.csrc.autograd.python_variable import _INFIX, TensorBase  # noqa: E402

HEAD = """# Written by tools/gen_pyi.py from the operators' schemas.
# mypy: disable-error-code="override, misc, overload-cannot-match"
from collections.abc import Sequence
from typing import Any, NamedTuple, overload

"""
NAMES = """from builtins import bool as _bool, complex as _complex, float as _float, int as _int
from readtorch._tensor import Tensor
from readtorch.c10.device import device as _device
from readtorch.c10.layout import layout as _layout
from readtorch.c10.memory_format import memory_format as _memory_format
from readtorch.c10.scalar_type import dtype as _dtype
from readtorch.c10.size import Size
from readtorch.csrc.generator import Generator

_Number = int | float | complex
_DeviceLike = _device | str | int
"""

# Types of schemas -> what Python takes.
TAKES = {
    "Tensor": "Tensor",
    "int": "int",
    "float": "float",
    "bool": "bool",
    "str": "str",
    "Scalar": "_Number",
    "ScalarType": "_dtype",
    "Layout": "_layout",
    "Device": "_DeviceLike",
    "MemoryFormat": "_memory_format",
    "Generator": "Generator",
}
# ... and what comes back.
GIVES = TAKES | {"Scalar": "Any", "Device": "_device"}
# What a tensor has beside operators, where the source does not say its type.
ATTRIBUTES = {
    "shape": "Size",
    "dtype": "_dtype",
    "device": "_device",
    "layout": "_layout",
    "ndim": "int",
    "nbytes": "int",
    "itemsize": "int",
    "requires_grad": "bool",
    "is_leaf": "bool",
    "grad": "Tensor | None",
    "data": "Tensor",
    "T": "Tensor",
    "H": "Tensor",
    "mT": "Tensor",
    "mH": "Tensor",
    "real": "Tensor",
    "imag": "Tensor",
    "output_nr": "int",
    "retains_grad": "bool",
    "name": "str | None",
    "_version": "int",
}
METHODS = {
    "size": ["(self, dim: None = None) -> Size", "(self, dim: int) -> int"],
    "stride": ["(self, dim: None = None) -> tuple[int, ...]", "(self, dim: int) -> int"],
    "dim": ["(self) -> int"],
    "ndimension": ["(self) -> int"],
    "numel": ["(self) -> int"],
    "nelement": ["(self) -> int"],
    "element_size": ["(self) -> int"],
    "storage_offset": ["(self) -> int"],
    "data_ptr": ["(self) -> int"],
    "const_data_ptr": ["(self) -> int"],
    "get_device": ["(self) -> int"],
    "is_contiguous": ["(self, memory_format: _memory_format = ...) -> bool"],
    "requires_grad_": ["(self, requires_grad: bool = True) -> Tensor"],
    "retain_grad": ["(self) -> None"],
    "tolist": ["(self) -> Any"],
    "detach_": ["(self) -> Tensor"],
    "item": ["(self) -> Any"],
    **dict.fromkeys(("__neg__", "__pos__", "__abs__", "__invert__"), ["(self) -> Tensor"]),
    **dict.fromkeys(("__rsub__", "__pow__", "__rpow__"), ["(self, other: Tensor | _Number) -> Tensor"]),
    "__getitem__": ["(self, index: Any) -> Tensor"],
    "__setitem__": ["(self, index: Any, value: Tensor | _Number) -> None"],
}
UNKNOWN = "(*args: Any, **kwargs: Any) -> Any"
# Functions that are written by hand and take what no schema can say.
FUNCTIONS = {
    **dict.fromkeys(
        ("as_tensor", "asarray", "tensor"),
        [
            "(data: Any, *, dtype: _dtype | None = None, device: _DeviceLike "
            "| None = None, requires_grad: bool = False, **kwargs: Any) -> Tensor"
        ],
    ),
    **dict.fromkeys(
        (
            "from_numpy",
            "from_dlpack",
            "frombuffer",
            "sparse_coo_tensor",
            "einsum",
            "chain_matmul",
            "norm",
            "stft",
            "tensordot",
        ),
        ["(*args: Any, **kwargs: Any) -> Tensor"],
    ),
    **dict.fromkeys(
        ("is_complex", "is_conj", "is_distributed", "is_floating_point", "is_inference", "is_neg", "is_signed"),
        ["(input: Tensor) -> bool"],
    ),
    "can_cast": ["(from_: _dtype, to: _dtype) -> bool"],
    "is_same_size": ["(input: Tensor, other: Tensor) -> bool"],
    "numel": ["(input: Tensor) -> int"],
    "promote_types": ["(type1: _dtype, type2: _dtype) -> _dtype"],
    "result_type": ["(tensor1: Tensor | _Number, tensor2: Tensor | _Number) -> _dtype"],
}


def annotation(kind, names=TAKES):
    """A schema's type as Python writes it. Where a list has a fixed length, one number stands for all."""
    one = names.get(kind.base, "Any")
    if kind.is_list:
        one = f"{one} | None" if kind.inner_optional else one
        many = f"Sequence[{one}]" if names is TAKES else f"list[{one}]"
        one = f"{one} | {many}" if kind.size and names is TAKES else many
    return f"{one} | None" if kind.optional else one


def parameter(argument, name, numbers_as_tensors):
    kind = annotation(argument.type)
    name = f"{name}_" if iskeyword(name) else name
    if numbers_as_tensors and argument.type.is_tensor:
        kind += " | _Number"
    if not argument.has_default:
        return f"{name}: {kind}"
    value = argument.default
    shown = "None" if value is None else repr(value) if isinstance(value, (bool, int, float)) else "..."
    return f"{name}: {kind if shown != 'None' or 'None' in kind else kind + ' | None'} = {shown}"


def returned(schema):
    if schema.name.startswith("_foreach_"):  # in place, the list that was given: see foreach_ops_kernels.py
        return "Sequence[Tensor]" if schema.is_inplace else "tuple[Tensor, ...]"
    kinds = [annotation(r.type, GIVES) for r in schema.returns]
    if len(kinds) > 1 and all(r.name for r in schema.returns):
        return named_tuple([r.name for r in schema.returns], kinds)
    return "None" if not kinds else kinds[0] if len(kinds) == 1 else f"tuple[{', '.join(kinds)}]"


def named_tuple(names, kinds):
    """The class of results that have names: `_values_indices`."""
    name = "_" + "_".join(names)
    named_tuples[name] = "".join(f"    {field}: {kind}\n" for field, kind in zip(names, kinds))
    return name


named_tuples = {}  # class -> its fields, of the file that is being written


def signatures(packet, is_method):
    """One text for every overload: what stands between a function's name and the colon."""
    found = []
    for operator in packet.overloads:
        if operator in packet.hidden:
            continue
        signature = Signature(operator, packet.out.get(operator), packet, is_method)
        found += one_signature(signature, is_method)
    return list(dict.fromkeys(found))


def one_signature(signature, is_method):
    arguments = list(zip(signature.arguments, signature.names))
    if is_method:
        arguments = [(a, n) for a, n in arguments if a.name != "self"]
    texts = [(a.keyword_only, parameter(a, n, signature.numbers_as_tensors)) for a, n in arguments]
    positional, keywords = ([text for only, text in texts if only is which] for which in (False, True))
    if signature.dtype_position is not None:
        keywords.append("requires_grad: bool = False")
    if signature.out_operator is not None and not is_method:
        outs = signature.out_operator.schema.returns
        keywords.append("out: Tensor | None = None" if len(outs) == 1 else "out: Sequence[Tensor] | None = None")
    first = ["self"] if is_method else []
    result = returned(signature.operator.schema)
    variants = [first + positional + (["*", *keywords] if keywords else [])]
    if sizes := loose_sizes(arguments, positional):
        variants.append(first + [sizes] + keywords)
    return [f"({', '.join(variant)}) -> {result}" for variant in variants]


def loose_sizes(arguments, positional):
    """`*size: int` where a list of numbers comes first and alone: x.view(2, 3), zeros(2, 3)."""
    if len(positional) != 1:
        return None
    argument, name = next((a, n) for a, n in arguments if not a.keyword_only)
    return f"*{name}: int" if argument.type.is_list and argument.type.base == "int" else None


def definition(name, texts, indent=""):
    if not name.isidentifier():
        return ""
    mark = f"{indent}@overload\n" if len(texts) > 1 else ""
    return "".join(f"{mark}{indent}def {name}{text}: ...\n" for text in texts)


# ------------------------------------------------------------------------------------------- the files


def functions_of(module, prefix="."):
    """The stub of a Python module that holds nothing but operators."""
    names = sorted(name for (place, name), packet in packets.items() if place == module and packet.is_function)
    body = [
        definition(name, signatures(packets[module, name], False) or FUNCTIONS.get(name, [UNKNOWN])) for name in names
    ]
    return head() + "".join(body)


def head(imports=""):
    """What comes before the definitions; empties the list of classes for results."""
    classes = "".join(f"class {name}(NamedTuple):\n{fields}\n" for name, fields in sorted(named_tuples.items()))
    named_tuples.clear()
    return f"{HEAD}{NAMES}{imports}\n{classes}"


def variable_functions():
    types = [*(t.name for t in ALL_TYPES), *ALIASES]
    return functions_of("torch") + "\n" + "".join(f"{name}: _dtype\n" for name in types)


def linalg():
    return functions_of("linalg") + "\nclass LinAlgError(RuntimeError): ...\n"


def modules():
    """The stub of the file that gathers the layers: whose names are in `__all__` because they are classes."""
    found = [(getattr(readtorch.nn.modules, name).__module__, name) for name in sorted(readtorch.nn.modules.__all__)]
    names = ", ".join(f'"{name}"' for _, name in found)
    return (
        HEAD + "".join(f"from {place} import {name} as {name}\n" for place, name in found) + f"\n__all__ = [{names}]\n"
    )


def functional():
    body = []
    for name, function in sorted(vars(readtorch.nn.functional).items()):
        if name.startswith("_") or not inspect.isfunction(function):
            continue
        texts = functional_signatures(name, function)
        body.append(definition(name, texts))
    return (
        head("from collections.abc import Callable\nfrom types import ModuleType\n")
        + "grad: ModuleType\n"
        + "".join(body)
    )


def functional_signatures(name, function):
    packet = next(
        (
            packets[key]
            for key in packets
            if packets[key].name in (name, function.__name__) and key[0] in ("nn", "torch")
        ),
        None,
    )
    if packet and function.__code__.co_filename.startswith(("<", gen_python_functions.__file__)):
        return signatures(packet, False)
    return [_annotated(inspect.signature(f)) for f in _get_fn_overloads(function) or [function]]


def _annotated(signature):
    texts, starred = [], False
    for p in signature.parameters.values():
        texts += ["*"] if p.kind is p.KEYWORD_ONLY and not starred else []
        starred |= p.kind is p.KEYWORD_ONLY
        texts.append(f"{p.name}: {_written(p.annotation)}" + ("" if p.default is p.empty else " = ..."))
    result = signature.return_annotation
    # A boolean dispatch gives one thing or two.
    dispatches = "return_indices" in signature.parameters and result is Tensor
    return f"({', '.join(texts)}) -> {'Any' if dispatches else _written(result)}"


def _written(annotation):
    """An annotation of `nn.functional` as the file has it: TorchScript's `list` is any sequence in Python."""
    if annotation is inspect.Signature.empty:
        return "Any"
    text = inspect.formatannotation(annotation)
    for name, written in (
        ("readtorch._tensor.Tensor", "Tensor"),
        ("readtorch.c10.scalar_type.dtype", "_dtype"),
        ("collections.abc.", ""),
        ("list[", "Sequence["),
    ):
        text = text.replace(name, written)
    return text


def tensor_base():
    """The stub of the file that makes TensorBase: operators as methods, and what is no operator."""
    names = [
        name for name in sorted(vars(TensorBase)) if name not in ("__slots__", "__module__", "__doc__", "__dict__")
    ]
    infix = dict.fromkeys(_INFIX, "(self, other: Tensor | _Number) -> Tensor")
    body = []
    for name in names:
        value = inspect.getattr_static(TensorBase, name)
        if name in infix:
            body.append(definition(name, [infix[name]], "    "))
        elif name in METHODS:
            body.append(definition(name, METHODS[name], "    "))
        elif isinstance(value, property):
            body.append(attribute(name, value))
        elif ("torch", name) in packets and packets["torch", name].is_method:
            body.append(
                definition(name, signatures(packets["torch", name], True), "    ")
                or definition(name, ["(self, *args: Any, **kwargs: Any) -> Any"], "    ")
            )
        elif callable(value) or isinstance(value, (staticmethod, classmethod)):
            body.append(definition(name, ["(self, *args: Any, **kwargs: Any) -> Any"], "    "))
    others = (
        "def operator_methods() -> dict[str, Any]: ...\ndef infix_methods() -> dict[str, Any]: ...\n"
        "def refuse_without_storage(t: Tensor) -> None: ...\n"
    )
    return (
        head("from readtorch.c10.tensor_impl import TensorImpl\n")
        + others
        + "\nclass TensorBase(TensorImpl):\n"
        + "".join(body)
    )


def attribute(name, value):
    kind = ATTRIBUTES.get(name, "bool" if name.startswith("is_") else "Any")
    text = f"    @property\n    def {name}(self) -> {kind}: ...\n"
    return text + (f"    @{name}.setter\n    def {name}(self, value: Any) -> None: ...\n" if value.fset else "")


FILES = {
    "_VariableFunctions.pyi": variable_functions,
    "linalg.pyi": linalg,
    "fft.pyi": lambda: functions_of("fft"),
    "special.pyi": lambda: functions_of("special"),
    "csrc/autograd/python_variable.pyi": tensor_base,
    "nn/modules/__init__.pyi": modules,
    "nn/functional/__init__.pyi": functional,
}


HIDDEN = re.compile(r"(?m)(?<!^)(?<!def )\b(bool|complex|float|int)\b(?! as )")


def text_of(name):
    """The whole file. `int` is a method of tensors and a dtype of the package, `complex` a function: Python's types
    have names of their own."""
    return HIDDEN.sub(r"_\1", FILES[name]())


def main(arguments):
    stale = [name for name in FILES if _read(PACKAGE / name) != text_of(name)]
    if arguments == ["--check"]:
        print("\n".join(f"{name} is not what tools/gen_pyi.py writes" for name in stale))
        return bool(stale)
    for name in stale:
        (PACKAGE / name).write_text(text_of(name), encoding="utf8")
        print("wrote", name)
    return 0


def _read(path):
    return path.read_text(encoding="utf8") if path.exists() else None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
