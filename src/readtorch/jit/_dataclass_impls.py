"""The methods that `dataclasses` writes, as TorchScript: they have no source that could be compiled.

    @dataclass
    class Point:
        x: float
        y: Optional[float] = None

becomes, beside what the class itself defines,

    def __init__(self, x: float, y: Optional[float] = None):
        self.x = x
        self.y = y

    def __eq__(self, other: Point) -> bool:
        val1 = self.x
        val2 = other.x
        if val1 != val2: return False
        val1 = self.y
        val2 = other.y
        if val1 is not None and val2 is not None:
            if val1 != val2: return False
        elif (val1 is None) != (val2 is None):
            return False
        return True

In PyTorch: `torch/jit/_dataclass_impls.py`.
"""

import ast
import dataclasses
import inspect
import typing

from readtorch._tensor import Tensor
from readtorch.csrc.jit.frontend.definition import build_definition, parse_object, parse_text

# name of a comparison -> (the operator that decides, what two equal objects give)
ORDERS = {"__lt__": ("<", False), "__le__": ("<", True), "__gt__": (">", False), "__ge__": (">", True)}


def synthesized_methods(cls):
    """Name -> Definition of the methods that `dataclasses` has added to `cls`; nothing for another class.

    Raises NotImplementedError for a field with a default factory.
    """
    if not dataclasses.is_dataclass(cls):
        return {}
    written = {node.name for node in parse_object(cls)[1].body[0].body if isinstance(node, ast.FunctionDef)}
    found = {
        name: made
        for name, made in WRITERS.items()
        if inspect.isfunction(cls.__dict__.get(name)) and name not in written
    }
    return {name: _definition(cls, name, *write(cls, name)) for name, write in found.items()}


def _definition(cls, name, signature, body):
    source = "\n".join([f"def {name}{signature}:", *[f"  {line}" for line in body]])
    text, tree = parse_text(source, f"__torch_jit_dataclass/{cls.__name__}/{name}", 0)
    parameters = inspect.signature(cls.__dict__[name]).parameters.values()
    defaults = {p.name: p.default for p in parameters if p.default is not p.empty}
    return build_definition(tree.body[0], text, name, defaults)


def _init(cls, name):
    fields = dataclasses.fields(cls)
    if any(field.default_factory is not dataclasses.MISSING for field in fields):
        raise NotImplementedError("Default factory initializers are not supported in TorchScript dataclasses")
    parameters, for_post_init = ["self"], []
    for parameter in list(inspect.signature(cls.__init__).parameters.values())[1:]:
        annotation = parameter.annotation
        if isinstance(annotation, dataclasses.InitVar):
            annotation = annotation.type
            for_post_init.append(parameter.name)
        default = "" if parameter.default is parameter.empty else f" = {parameter.default!r}"
        parameters.append(f"{parameter.name}: {_text_of(annotation, cls)}{default}")
    body = [f"self.{field.name} = {field.name}" for field in fields if field.init and field.name not in for_post_init]
    if hasattr(cls, "__post_init__"):
        body.append(f"self.__post_init__({', '.join(for_post_init)})")
    return f"({', '.join(parameters)}) -> None", body or ["pass"]


def _text_of(annotation, cls):
    """An annotation as it is written."""
    if isinstance(annotation, str):
        return annotation
    return inspect.formatannotation(annotation, cls.__module__).replace(f"{Tensor.__module__}.Tensor", "Tensor")


def _repr(cls, name):
    shown = ", ".join(f"{field.name}=self.{field.name}" for field in dataclasses.fields(cls) if field.repr)
    return "(self) -> str", [f"return {f'{cls.__name__}({shown})'!r}"]  # TorchScript never asks for it


def _hash(cls, name):
    return "(self) -> int", ["raise NotImplementedError('__hash__ is not supported for dataclasses in TorchScript')"]


def _equality(cls, name):
    return _comparison(cls, ["if val1 != val2: return False"], ["return False"], True)


def _order(cls, name):
    operator, of_equal = ORDERS[name]
    decided = [f"if val1 {operator} val2: return True", f"elif val2 {operator} val1: return False"]
    return _comparison(cls, decided, [f"raise TypeError('Cannot compare {cls.__name__} with None')"], of_equal)


def _comparison(cls, decided, if_one_is_none, of_equal):
    body = []
    for field in dataclasses.fields(cls):
        if field.compare:
            body += [f"val1 = self.{field.name}", f"val2 = other.{field.name}"]
            body += _unless_none(decided, if_one_is_none) if type(None) in typing.get_args(field.type) else decided
    return f"(self, other: {cls.__name__}) -> bool", [*body, f"return {of_equal}"]


def _unless_none(decided, if_one_is_none):
    indented = [[f"  {line}" for line in lines] for lines in (decided, if_one_is_none)]
    return [
        "if val1 is not None and val2 is not None:",
        *indented[0],
        "elif (val1 is None) != (val2 is None):",
        *indented[1],
    ]


WRITERS = {
    "__init__": _init,
    "__repr__": _repr,
    "__hash__": _hash,
    "__eq__": _equality,
    **dict.fromkeys(ORDERS, _order),
}
