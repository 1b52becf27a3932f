"""Reads operator schemas into the types that graphs have, and says what is wrong with what is none.

    aten::append.t(t[](a!) self, t(c -> *) el) -> t[](a!)

`aten/function_schema.py` reads the same syntax for the dispatcher, which needs to know less: what is a tensor, what is
written to.

In PyTorch: `torch/csrc/jit/frontend/function_schema_parser.cpp`; `SchemaParser.type` and below,
`torch/csrc/jit/frontend/schema_type_parser.cpp`.
"""

import ast

from readtorch.c10.device import device as Device
from readtorch.c10.scalar_type import ALIASES
from readtorch.csrc.jit.ir.enums import number_of_dtype
from readtorch.csrc.jit.ir.function_schema import Argument, FunctionSchema
from readtorch.csrc.jit.ir.type import (
    BoolType,
    ComplexType,
    DeviceObjType,
    DictType,
    FloatType,
    GeneratorType,
    IntType,
    ListType,
    OptionalType,
    TensorType,
    TupleType,
    VarType,
    union_of,
)

from .lexer import Lexer
from .schema_type_parser import NAMED, NUMBERS_BY_NAME, OF_ONE, AliasInfo

_DTYPES = {dtype.name: number for dtype, number in number_of_dtype.items()}
_DTYPES |= {alias: number_of_dtype[dtype] for alias, dtype in ALIASES.items()}
_WORDS = {"float": 6, "complex": 9, "long": 4, "strided": 0, "Mean": 1, "contiguous_format": 0}  # numbers of enums
_CONSTANTS = {"True": True, "False": False, "None": None}
_LISTS = (IntType, FloatType, BoolType, ComplexType)  # what default values may be lists of
_INSTEAD = {
    "double": "Use `float` instead of `double` in an operator's schema string. `float` in schema corresponds to the double "
    "type in C++",
    "int64_t": "Use `SymInt` or `int` instead of `int64_t` in an operator's schema string. `SymInt` corresponds to c10::SymInt "
    "in C++ while `int` in schema corresponds to the int64_t type in C++.",
}
_UNKNOWN = (
    "unknown type specifier. Common valid schema types include Tensor, SymInt, int, float, bool, Scalar; for a full list, "
    "please see https://github.com/pytorch/pytorch/blob/main/aten/src/ATen/native/README.md#func "
)


def parse_schema(text, allow_typevars=True):
    """The FunctionSchema that `text` spells. Raises RuntimeError for what is none.

    allow_typevars: `t`, `t1` … stand for any type; in the schemas of aten and prim they always do.
    """
    parsed = SchemaParser(text, allow_typevars or text.startswith(("aten::", "prim::"))).declaration()
    if not isinstance(parsed, FunctionSchema):
        raise RuntimeError("Tried to parse a function schema but only the operator name was given")
    return parsed


class SchemaParser:
    """Reads one schema, from left to right."""

    def __init__(self, text, allow_typevars):
        self.lexer = Lexer(text)
        self.allow_typevars = allow_typevars
        self.fresh = 0  # how many alias sets `Tensor!` has begun
        self.real_name = self.length = None  # of the type last read: see Argument

    def declaration(self):
        """A FunctionSchema, or (name, overload) if no arguments follow."""
        name, overload = self.name()
        if self.lexer.cur.kind != "(":
            self.lexer.expect("eof")
            return name, overload
        arguments, is_vararg = self.arguments()
        self.lexer.expect("arrow")
        returns, is_varret = self.returns()
        self.lexer.next_if("newline")
        self.lexer.expect("eof")
        schema = FunctionSchema(name, overload, tuple(arguments), tuple(returns), is_vararg, is_varret)
        _check_defaults(schema)
        return schema

    def name(self):
        lexer, overload = self.lexer, ""
        name = lexer.expect("ident").text
        if lexer.next_if(":"):
            lexer.expect(":")
            name = f"{name}::{lexer.expect('ident').text}"
        if lexer.next_if("."):
            overload = lexer.expect("ident").text
        if overload == "default" or overload.startswith("__"):
            raise RuntimeError(f"{overload} is not a legal overload name for aten operators")
        return name, overload

    # ---------------------------------------------------------------------------------------- arguments and returns

    def arguments(self):
        arguments, keyword_only, is_vararg = [], False, False

        def one():
            nonlocal keyword_only, is_vararg
            if is_vararg:
                raise self.error("... must be the last element of the argument list")
            if self.lexer.next_if("*"):
                keyword_only = True
            elif self.lexer.next_if("dots"):
                is_vararg = True
            else:
                arguments.append(self.argument(keyword_only))

        self.lexer.list_of(one, "(", ")")
        if is_vararg and any(a.has_default for a in arguments):
            raise self.error("schemas with vararg (...) can't have default value args")
        return arguments, is_vararg

    def argument(self, keyword_only):
        kind, alias = self.type_with_length()
        real_name, length = self.real_name, self.length
        name = self.lexer.expect("ident").text
        has_default = self.lexer.next_if("=")
        value = self.default(kind, real_name, length) if has_default else None
        return Argument(name, kind, length, value, keyword_only, has_default, alias, real_name)

    def returns(self):
        if self.lexer.next_if("dots"):
            return [], True
        if self.lexer.cur.kind != "(":
            return [self.returned()], False
        returns, is_varret = [], False

        def one():
            nonlocal is_varret
            if is_varret:
                raise self.error("... must be the last element of the return list")
            if self.lexer.next_if("dots"):
                is_varret = True
            else:
                returns.append(self.returned())

        self.lexer.list_of(one, "(", ")")
        return returns, is_varret

    def returned(self):
        kind, alias = self.type_with_length()
        name = self.lexer.next().text if self.lexer.cur.kind == "ident" else ""
        return Argument(name, kind, self.length, alias_info=alias, real_name=self.real_name)

    def error(self, message):
        return self.lexer.error(self.lexer.cur, message)

    # ----------------------------------------------------------------------------------------------------- defaults

    def default(self, kind, real_name, length):
        """The value after `=`, as the argument's type has it: `int[2] stride=1` is [1, 1], `float p=1` is 1.0."""
        if isinstance(kind, (TensorType, GeneratorType)):
            self.lexer.expect("None")
            return None
        if isinstance(kind, DeviceObjType):
            return Device(ast.literal_eval(self.lexer.expect("string_literal").text))
        if not isinstance(kind, ListType):
            return self.constant(kind, real_name)
        return self.list_default(kind.elem, real_name, length)

    def list_default(self, elem, real_name, length):
        start = self.lexer.cur
        if start.kind == "ident":
            self.lexer.expect("None")
        if length is not None and start.kind != "[":
            values = [self.constant(elem, real_name)] * length
        else:
            values = self.lexer.list_of(lambda: self.constant(elem, real_name), "[", "]")
        if not isinstance(elem, _LISTS):
            raise self.lexer.error(start, "lists are only supported for float, int and complex types")
        return values

    def constant(self, kind, real_name):
        lexer = self.lexer
        token = lexer.cur
        if token.kind in _CONSTANTS:
            return _CONSTANTS[lexer.next().kind]
        if token.kind == "string_literal":
            return ast.literal_eval(lexer.next().text)
        if token.kind == "ident":
            return self.word(lexer.next().text, real_name)
        sign = "-" if lexer.next_if("-") else ""
        digits = sign + lexer.expect("number").text
        if isinstance(kind, ComplexType) or "j" in digits:
            return complex(0, float(digits[:-1]))
        if isinstance(kind, FloatType) or "." in digits or "e" in digits:
            return float(digits)
        return int(digits)

    def word(self, text, real_name):
        """The number of an enum's member."""
        if text not in _WORDS and not (real_name == "ScalarType" and text in _DTYPES):
            raise self.error("invalid numeric default value")
        return _WORDS.get(text, _DTYPES.get(text))

    # -------------------------------------------------------------------------------------------------------- types

    def type_with_length(self):
        """A type and its AliasInfo; brackets with a number may follow it, which is left in `length`."""
        self.real_name = self.length = None
        kind, alias = self.type()
        if not self.lexer.next_if("["):
            return kind, alias
        self.length = int(self.lexer.expect("number").text)
        self.lexer.expect("]")
        alias = self.alias_of_list(alias)
        kind = ListType(kind)
        return (OptionalType(kind) if self.lexer.next_if("?") else kind), alias

    def type(self):
        """The next type, and its AliasInfo or None."""
        kind, alias = self.base_type()
        while True:
            if self.lexer.cur.kind == "[" and self.lexer.lookahead().kind == "]":
                self.lexer.next()
                self.lexer.next()
                kind, alias = ListType(kind), self.alias_of_list(alias)
            elif self.lexer.next_if("?"):
                kind = OptionalType(kind)
            else:
                return kind, alias

    def base_type(self):
        lexer = self.lexer
        token = lexer.cur
        if token.kind == "(":
            return TupleType(lexer.list_of(self.bare_type, "(", ")")), None
        if token.kind not in ("None", "NoneType"):
            lexer.expect("ident")
        else:
            lexer.next()
        name = token.text
        if name in OF_ONE:
            (inner,) = self.several(1)
            return OF_ONE[name](inner), None
        if name == "Dict":
            return DictType(*self.several(2)), self.alias()
        if name == "Union":
            return union_of(lexer.list_of(self.bare_type, "(", ")")), self.alias()
        if name == "__torch__":
            lexer.expect(".")
            part = lexer.expect("ident")
            raise lexer.error(part, f"Expected classes namespace but got {part.text}")
        return self.named(token), self.alias()

    def bare_type(self):
        return self.type()[0]

    def several(self, count):
        """So many types between brackets."""
        self.lexer.expect("(")
        types = [self.bare_type()]
        while len(types) < count:
            self.lexer.expect(",")
            types.append(self.bare_type())
        self.lexer.expect(")")
        return types

    def named(self, token):
        name = token.text
        self.real_name = name if name in NUMBERS_BY_NAME else self.real_name
        if name in NAMED:
            return NAMED[name].get()
        if self.allow_typevars and name[0].islower():
            return VarType(name)
        raise self.lexer.error(token, _INSTEAD.get(name, _UNKNOWN))

    # ------------------------------------------------------------------------------------------------ alias annotations

    def alias(self):
        """Tensor(a): in set a; (a!): written to, too; (a! -> a|b): where it is afterwards; `Tensor!`: in a set of its own."""
        lexer = self.lexer
        if lexer.next_if("!"):
            self.fresh += 1
            return AliasInfo((f"${self.fresh - 1}",), (), True)
        if not lexer.next_if("("):
            return None
        before = self.alias_set()
        writes = lexer.next_if("!")
        after = self.alias_set() if lexer.next_if("arrow") else before
        lexer.expect(")")
        return AliasInfo(before, after, writes)

    def alias_of_list(self, of_elements):
        of_list = self.alias()
        return of_elements if of_list is None else AliasInfo(of_list.before, of_list.after, of_list.writes, True)

    def alias_set(self):
        names = []
        while True:
            names.append("*" if self.lexer.next_if("*") else self.lexer.expect("ident").text)
            if not self.lexer.next_if("|"):
                return ("*",) if "*" in names else tuple(names)


def _check_defaults(schema):
    """Raises RuntimeError for an argument without default behind one with a default. Lists may stand there."""
    seen = False
    for argument in schema.arguments:
        seen |= argument.has_default
        if seen and not (argument.has_default or argument.kwarg_only or isinstance(argument.type, ListType)):
            raise RuntimeError(
                f"Non-default positional argument follows default argument. Parameter {argument.name} in {schema}"
            )
