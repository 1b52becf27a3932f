"""A schema from a function's annotations: `(x: Tensor, n: int = 2) -> Tensor` is `(Tensor x, SymInt n=2) -> Tensor`.

In PyTorch: `torch/_library/infer_schema.py`. Explained in the chapter "One operator call".
"""

import collections.abc
import inspect
import typing
from types import GenericAlias

from readtorch import types
from readtorch._tensor import Tensor
from readtorch.aten.tags import Tag
from readtorch.c10.device import device
from readtorch.c10.scalar_type import dtype


def infer_schema(prototype_function, /, *, mutates_args, op_name=None, tags=()):
    """The schema that a function's annotations spell, as text; with the name `op_name` before it, if there is one.

    mutates_args: the names of the arguments that it writes to, or "unknown" for all tensors. tags: with Tag.inplace and
    Tag.out results are the arguments that are written to.
    Raises ValueError for annotations and defaults that schemas cannot express.
    """
    inference = _Inference(prototype_function, mutates_args, tags)
    return f"{op_name or ''}({', '.join(inference.parameters())}) -> {inference.returns()}"


class _Inference:
    """One function whose schema is asked for."""

    def __init__(self, function, mutates_args, tags):
        self.function = function
        self.signature = inspect.signature(function)
        tags = () if tags is None else (tags,) if isinstance(tags, Tag) else tags
        self.is_inplace, self.is_out = Tag.inplace in tags, Tag.out in tags
        if self.is_inplace and self.is_out:
            raise AssertionError("torch.Tag.inplace and torch.Tag.out are mutually exclusive")
        self.mutates_args = mutates_args if type(mutates_args) is str else tuple(mutates_args)
        self.first = None  # (name, type, alias) of the first argument that may be given by position
        self.outs = []  # (name, alias) of the arguments that are outputs

    def refuse(self, what):
        raise ValueError(f"infer_schema(func): {what} Got func with signature {self.signature})")

    # ------------------------------------------------------------------------------------------------ parameters

    def parameters(self):
        """The schema's arguments, each as text."""
        found = []
        for place, (name, parameter) in enumerate(self.signature.parameters.items()):
            if parameter.kind not in (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY):
                self.refuse("We do not support positional-only args, varargs, or varkwargs.")
            if parameter.kind is inspect.Parameter.KEYWORD_ONLY and "*" not in found:
                found.append("*")
            found.append(f"{self.type_of(place, name, parameter)} {name}{self.default_of(name, parameter)}")
        self.check_mutated()
        return found

    def type_of(self, place, name, parameter):
        """The schema's type of a parameter, with its alias set if it is written to."""
        if parameter.annotation is inspect.Parameter.empty:
            self.refuse(f"Parameter {name} must have a type annotation.")
        kind = self.schema_type(name, parameter.annotation)
        if parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD and self.first is None:
            self.first = name, kind, f"a{place}"
        if not self.is_mutated(name, kind):
            return kind
        kind = f"Tensor(a{place}!){kind.removeprefix('Tensor')}"
        if self.is_out:
            if parameter.kind is not inspect.Parameter.KEYWORD_ONLY:
                self.refuse("torch.Tag.out requires mutable arguments to be keyword-only.")
            if kind != f"Tensor(a{place}!)":
                self.refuse("torch.Tag.out only supports mutable keyword-only Tensor arguments.")
            self.outs.append((name, f"a{place}"))
        return kind

    def schema_type(self, name, annotation):
        kind = self.evaluated(annotation)
        if kind in SUPPORTED_PARAM_TYPES:
            return SUPPORTED_PARAM_TYPES[kind]
        advice = ""
        if getattr(kind, "__origin__", None) is tuple:
            as_list = tuple_to_list(kind)
            advice = "We do not support Tuple inputs in schema. As a workaround, please try to use List instead. " + (
                f"For example, {as_list}.\n\n" if as_list in SUPPORTED_PARAM_TYPES else "\n\n"
            )
        self.refuse(
            f"Parameter {name} has unsupported type {annotation}. {advice}The valid types are: {SUPPORTED_PARAM_TYPES.keys()}."
        )

    def is_mutated(self, name, kind):
        is_tensor = kind.startswith("Tensor")
        if type(self.mutates_args) is str:
            if self.mutates_args != "unknown":
                raise ValueError(
                    "mutates_args must either be a sequence of the names of the arguments that are mutated or the string "
                    "'unknown'. "
                )
            return is_tensor
        if name in self.mutates_args and not is_tensor:
            self.refuse(
                f"Parameter {name} is in mutable_args but only Tensors or collections of Tensors can be mutated"
            )
        return name in self.mutates_args

    def default_of(self, name, parameter):
        """` =…` as the schema spells it."""
        value = parameter.default
        if value is inspect.Parameter.empty:
            return ""
        if value is None or isinstance(value, (int, float, bool)):
            return f"={value}"
        if isinstance(value, (str, device)):
            return f'="{value}"'
        if isinstance(value, dtype):
            return f"={value.name}"
        self.refuse(
            f"Parameter {name} has an unsupported default value type {type(value)}. "
            "Please file an issue on GitHub so we can prioritize this."
        )

    def check_mutated(self):
        """Raises ValueError if `mutates_args` names no parameters, or not those that the tags ask for."""
        unknown = set() if self.mutates_args == "unknown" else set(self.mutates_args) - {*self.signature.parameters}
        if unknown:
            self.refuse(
                f"{unknown} in mutates_args were not found in the custom op's signature. mutates_args should contain the names "
                "of all args that the custom op mutates, or just the string 'unknown' if you don't know."
            )
        if self.is_inplace:
            self.check_inplace()
        if self.is_out and not self.outs:
            self.refuse("torch.Tag.out requires at least one mutable keyword-only Tensor argument.")

    def check_inplace(self):
        if self.first is None:
            self.refuse("torch.Tag.inplace requires a positional Tensor argument.")
        name, kind, _ = self.first
        if kind != "Tensor":
            self.refuse("torch.Tag.inplace requires the first positional argument to be a Tensor.")
        if type(self.mutates_args) is str or set(self.mutates_args) != {name}:
            self.refuse(
                "torch.Tag.inplace requires mutates_args to contain exactly the first positional argument, got "
                f"{self.mutates_args}."
            )

    # --------------------------------------------------------------------------------------------------- returns

    def returns(self):
        annotation = self.evaluated(self.signature.return_annotation)
        if self.is_out:
            return self.returned_outputs(annotation)
        returned = parse_return(annotation, self.refuse)
        if not self.is_inplace:
            return returned
        if returned != "Tensor":
            self.refuse("torch.Tag.inplace requires the return annotation to be torch.Tensor.")
        return f"Tensor({self.first[2]}!)"

    def returned_outputs(self, annotation):
        one = len(self.outs) == 1
        parts = (annotation,) if one else typing.get_args(annotation)
        is_right = one or typing.get_origin(annotation) is tuple
        if not is_right or parts != (Tensor,) * len(self.outs):
            self.refuse(
                "torch.Tag.out requires the return annotation to match the mutable keyword-only Tensor arguments "
                f"{tuple(name for name, _ in self.outs)}."
            )
        spelled = [f"Tensor({alias}!)" for _, alias in self.outs]
        return spelled[0] if one else f"({', '.join(spelled)})"

    # ----------------------------------------------------------------------------------------------- annotations

    def evaluated(self, annotation):
        """An annotation that is a string, or has strings in its brackets, as the type that it names."""
        if isinstance(annotation, str):
            return self.named(annotation)
        origin, args = typing.get_origin(annotation), typing.get_args(annotation)
        if not origin:
            return annotation
        made = tuple(map(self.evaluated, args))
        return annotation if made == args else GenericAlias(origin, made)

    def named(self, text):
        unsupported = f"Unsupported type annotation {text}. It is not a type. "
        try:
            return eval(text, self.function.__globals__)
        except NameError as error:
            self.refuse(
                f"{unsupported}({error}). If you are using 'from __future__ import annotations', note that annotations are "
                "evaluated lazily as strings; make sure all types referenced in annotations are importable at module scope, "
                "not only inside a local function."
            )
        except Exception as error:
            self.refuse(f"{unsupported}({type(error).__name__}: {error})")


def parse_return(annotation, refuse):
    """A function's return annotation as a schema's returns."""
    if annotation is None:
        return "()"
    if annotation is inspect.Parameter.empty:
        refuse("No return type annotation was provided. Please add one.")
    several = typing.get_origin(annotation) is tuple
    parts = typing.get_args(annotation) if several else (annotation,)
    if any(part not in SUPPORTED_RETURN_TYPES for part in parts):
        refuse(f"Return has unsupported type {annotation}. The valid types are: {SUPPORTED_RETURN_TYPES}.")
    spelled = ", ".join(SUPPORTED_RETURN_TYPES[part] for part in parts)
    if not several:
        return spelled
    return f"(({spelled}))" if len(parts) == 1 else f"({spelled})"


def tuple_to_list(kind):
    """The list type that may stand for a tuple type."""
    parts = typing.get_args(kind)
    if not parts:
        return list
    if len(parts) == 1 or len(parts) == 2 and parts[1] is Ellipsis:
        return list[parts[0]]
    return list[typing.Union[tuple(parts)]]  # noqa: UP007


def _sequences_of(kind):
    """The ways in which an annotation may say "a list of"."""
    return typing.Sequence[kind], typing.List[kind], GenericAlias(collections.abc.Sequence, (kind,)), list[kind]  # noqa: UP006


def _supported_param_types():
    # Python's type, the schema's; whether there are `T[]`, `T?[]` and `T[]?`
    base_types = [
        (Tensor, "Tensor", True, True, False),
        (int, "SymInt", True, False, True),
        (float, "float", True, False, True),
        (bool, "bool", True, False, True),
        (str, "str", False, False, False),
        (types.Number, "Scalar", True, False, False),
        (dtype, "ScalarType", False, False, False),
        (device, "Device", False, False, False),
    ]
    found = {}
    for kind, name, lists, lists_of_optional, optional_lists in base_types:
        found |= {kind: name, typing.Optional[kind]: f"{name}?"}  # noqa: UP045
        if lists:
            found |= dict.fromkeys(_sequences_of(kind), f"{name}[]")
        if lists_of_optional:
            found |= dict.fromkeys(_sequences_of(typing.Optional[kind]), f"{name}?[]")  # noqa: UP045
        if optional_lists:
            found |= {typing.Optional[of]: f"{name}[]?" for of in _sequences_of(kind)}  # noqa: UP045
    return found


SUPPORTED_PARAM_TYPES = _supported_param_types()

SUPPORTED_RETURN_TYPES = {
    Tensor: "Tensor",
    typing.List[Tensor]: "Tensor[]",  # noqa: UP006
    list[Tensor]: "Tensor[]",
    int: "SymInt",
    float: "float",
    bool: "bool",
    types.Number: "Scalar",
}
