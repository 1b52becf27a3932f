"""Operator schemas, in the syntax of PyTorch's `native_functions.yaml`.

    add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor

In PyTorch: `aten/src/ATen/core/function_schema.h`; parsed by `torch/csrc/jit/frontend/function_schema_parser.cpp` and
`torchgen/model.py`. Explained in the chapter "From a schema to code".
"""

import ast
import re
from dataclasses import dataclass
from keyword import iskeyword

_TYPE = re.compile(
    r"(?P<base>\w+)(?P<inner>\?)?(?:\((?P<alias>[\w!| >*-]+)\))?(?P<list>\[(?P<size>\d*)\])?(?P<optional>\?)?$"
)
_SCHEMA = re.compile(
    r"(?:(?P<namespace>\w+)::)?(?P<name>\w+)(?:\.(?P<overload>\w+))?\((?P<arguments>.*)\) -> (?P<returns>.*)$"
)
_NAMED_DEFAULTS = {
    "None": None,
    "True": True,
    "False": False,
    "[]": [],
    "Mean": 1,
    "Sum": 2,
    "contiguous_format": "contiguous_format",
    "long": "int64",
}


@dataclass(frozen=True)
class Type:
    """A schema type, such as `Tensor(a!)`, `int[2]?` or `Scalar`."""

    base: str
    is_list: bool = False
    size: int | None = None  # of a list: how many entries one number stands for
    optional: bool = False
    inner_optional: bool = False  # Tensor?[]
    alias: str | None = None  # the set it shares memory with: "a"
    writes: bool = False  # and whether the operator writes to it: "a!"
    symbolic: bool = False  # SymInt, which is an int for everything but the schema's text

    @property
    def is_tensor(self):
        return self.base == "Tensor"

    def __str__(self):
        alias = f"({self.alias}{'!' if self.writes else ''})" if self.alias else ""
        length = f"[{'' if self.size is None else self.size}]" if self.is_list else ""
        base = "SymInt" if self.symbolic else self.base
        return f"{base}{'?' if self.inner_optional else ''}{alias}{length}{'?' if self.optional else ''}"


@dataclass(frozen=True)
class Argument:
    name: str
    type: Type
    default: object = None
    has_default: bool = False
    keyword_only: bool = False

    @property
    def public_name(self):
        """The name that callers use: `from`, which stands as `from_` in generated text."""
        return self.name.removesuffix("_") if iskeyword(self.name.removesuffix("_")) else self.name


@dataclass(frozen=True)
class Return:
    type: Type
    name: str | None = None


@dataclass(frozen=True)
class Schema:
    """One operator: its name, overload, arguments and returns."""

    name: str
    overload: str
    arguments: tuple
    returns: tuple
    text: str  # as it was declared, without the namespace
    namespace: str = "aten"

    @property
    def qualified_name(self):
        """The name that all overloads share: `aten::add`."""
        return f"{self.namespace}::{self.name}"

    @property
    def full_name(self):
        return f"{self.qualified_name}.{self.overload}" if self.overload else self.qualified_name

    @property
    def is_inplace(self):
        return bool(self.arguments) and self.arguments[0].type.writes and self.arguments[0].name == "self"

    @property
    def is_out(self):
        """Whether it writes its results to tensors that the caller hands over last."""
        return bool(self.arguments) and self.arguments[-1].type.writes and self.arguments[-1].keyword_only

    @property
    def is_view(self):
        """Whether a result shares memory with an argument that the operator does not write to."""
        return any(r.type.alias and not r.type.writes for r in self.returns)

    def __str__(self):
        return f"{self.namespace}::{self.text}"


def _split(text):
    """The parts of a comma-separated list; commas inside brackets do not count."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "([") - (c in ")]")
        if c == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    tail = text[start:].strip()
    return parts + [tail] if tail else parts


def _parse_type(text):
    match = _TYPE.match(text)
    if match is None:
        raise ValueError(f"not a schema type: {text!r}")
    alias = match["alias"]
    return Type(
        base="int" if match["base"] == "SymInt" else match["base"],
        is_list=match["list"] is not None,
        size=int(match["size"]) if match["size"] else None,
        optional=match["optional"] is not None or (match["inner"] is not None and match["list"] is None),
        inner_optional=match["inner"] is not None and match["list"] is not None,
        alias=re.match(r"\w+", alias)[0] if alias else None,
        writes=bool(alias) and "!" in alias,
        symbolic=match["base"] == "SymInt",
    )


def _parse_default(text):
    if text in _NAMED_DEFAULTS:
        return _NAMED_DEFAULTS[text]
    if text.lstrip("-").isdigit():
        return int(text)
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return {"true": True, "false": False}.get(text, text)


def _parse_argument(text, keyword_only):
    declaration, has_default, default = text.partition("=")
    kind, _, name = declaration.rpartition(" ")
    value = _parse_default(default) if has_default else None
    if iskeyword(name):
        name += "_"  # `from`, which Python cannot have as a parameter's name
    return Argument(name, _parse_type(kind), value, bool(has_default), keyword_only)


def _parse_return(text):
    kind, _, name = text.rpartition(" ") if " " in text else (text, "", None)
    return Return(_parse_type(kind), name)


def parse_schema(text):
    """The Schema that `text` spells. Raises ValueError for what is not a schema."""
    match = _SCHEMA.match(text)
    if match is None:
        raise ValueError(f"not an operator schema: {text!r}")
    arguments, keyword_only = [], False
    for part in _split(match["arguments"]):
        if part == "*":
            keyword_only = True
        else:
            arguments.append(_parse_argument(part, keyword_only))
    returns = match["returns"].strip()
    if returns.startswith("(") and returns.endswith(")"):
        returns = returns[1:-1]
    return Schema(
        match["name"],
        match["overload"] or "",
        tuple(arguments),
        tuple(_parse_return(part) for part in _split(returns)),
        text.removeprefix(f"{match['namespace']}::"),
        match["namespace"] or "aten",
    )
