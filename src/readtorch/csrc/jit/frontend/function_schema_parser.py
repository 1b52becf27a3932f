"""Reads operator schemas into the types that graphs have.

    aten::append.t(t[](a!) self, t(c -> *) el) -> t[](a!)

`aten/function_schema.py` reads the same syntax for the dispatcher, which needs to know less: what is a tensor, what is
written to.

In PyTorch: `torch/csrc/jit/frontend/function_schema_parser.cpp`.
"""

import ast
from keyword import iskeyword

from readtorch.csrc.jit.ir.function_schema import Argument, FunctionSchema
from readtorch.csrc.jit.ir.type import BoolType, FloatType, IntType, ListType, OptionalType, unwrap_optional

from .schema_type_parser import TypeParser

_NAMED_DEFAULTS = {
    "Mean": 1,
    "Sum": 2,
    "contiguous_format": 0,
    "long": 4,
    "None": None,
    "True": True,
    "False": False,
    "true": True,
    "false": False,
    "inf": float("inf"),
}


def parse_schema(text):
    """The FunctionSchema that `text` spells."""
    name, _, rest = text.partition("(")
    base, _, overload = name.strip().partition(".")
    parser = TypeParser(text, len(name) + 1, classes={})
    arguments, is_vararg = _arguments(parser)
    parser.expect("-")
    parser.expect(">")
    returns, is_varret = _returns(parser)
    return FunctionSchema(base, overload, tuple(arguments), tuple(returns), is_vararg, is_varret)


def _arguments(parser):
    arguments, keyword_only = [], False
    while not parser.take(")"):
        if arguments or keyword_only:
            parser.take(",")
        if parser.take("*"):
            keyword_only = True
        elif parser.take("."):
            parser.expect(".")
            parser.expect(".")
            parser.expect(")")
            return arguments, True
        else:
            arguments.append(_argument(parser, keyword_only))
    return arguments, False


def _argument(parser, keyword_only):
    parser.real_name = None
    kind, alias = parser.type_and_alias()
    real_name, length = parser.real_name, parser.length
    name = parser.next()
    if not parser.take("="):
        return Argument(name, kind, length, None, keyword_only, False, alias, real_name)
    value = _default(parser, kind, length)
    return Argument(name, kind, length, value, keyword_only, True, alias, real_name)


def _default(parser, kind, length):
    start = parser.position
    depth, i, quote = 0, start, None
    while quote or depth or parser.text[i] not in ",)":
        c = parser.text[i]
        if quote:
            quote = None if c == quote and parser.text[i - 1] != "\\" else quote
        elif c in "\"'":
            quote = c
        else:
            depth += (c in "[(") - (c in "])")
        i += 1
    parser.position = i
    text = parser.text[start:i].strip()
    value = _NAMED_DEFAULTS[text] if text in _NAMED_DEFAULTS else ast.literal_eval(text)
    return _as_type(value, unwrap_optional(kind) if isinstance(kind, OptionalType) else kind, length)


def _as_type(value, kind, length):
    """A default as a value of its argument's type: `int[2] stride=1` is [1, 1], `float p=1` is 1.0."""
    if isinstance(kind, ListType) and value is not None:
        values = list(value) if isinstance(value, (list, tuple)) else [value] * (length or 1)
        return [_as_type(v, kind.elem, None) for v in values]
    if isinstance(kind, FloatType) and isinstance(value, int):
        return float(value)
    if isinstance(kind, (IntType, BoolType)) and value is not None:
        return value
    return value


def _returns(parser):
    if parser.take("("):
        returns = []
        while not parser.take(")"):
            if returns:
                parser.expect(",")
            returns.append(_return(parser))
        return returns, False
    if parser.take("."):
        return [], True
    return [_return(parser)], False


def _return(parser):
    parser.real_name = None
    kind, alias = parser.type_and_alias()
    following = parser.peek()
    named = following.isidentifier() and not iskeyword(following)
    return Argument(parser.next() if named else "", kind, alias_info=alias, real_name=parser.real_name)
