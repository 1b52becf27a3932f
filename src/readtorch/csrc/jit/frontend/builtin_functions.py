"""Operators that are written in TorchScript themselves: a number as first operand of a tensor, `//`, `x.T`.

A call of one is replaced by its body.

In PyTorch: `torch/csrc/jit/frontend/builtin_functions.cpp`. Explained in the chapter "JIT: scripting".
"""

import ast
from functools import cache

from readtorch.csrc.jit.runtime.operator import add_function_source

_NUMBER_FIRST = """
def mul(a : {number}, b : Tensor) -> Tensor:
  return b * a
def add(a : {number}, b : Tensor) -> Tensor:
  return b + a
def ne(a : {number}, b : Tensor) -> Tensor:
  return b != a
def eq(a : {number}, b : Tensor) -> Tensor:
  return b == a
def lt(a : {number}, b : Tensor) -> Tensor:
  return b > a
def le(a : {number}, b : Tensor) -> Tensor:
  return b >= a
def gt(a : {number}, b : Tensor) -> Tensor:
  return b < a
def ge(a : {number}, b : Tensor) -> Tensor:
  return b <= a
def sub(a : {number}, b : Tensor) -> Tensor:
  return torch.neg(b) + a
def div(a : {number}, b : Tensor) -> Tensor:
  return torch.reciprocal(b) * a
"""
_TUPLES = """
def _{name}(x: BroadcastingList{length}[{number}]) -> List[{number}]:
  return x
"""
_FLOOR_DIVISION = """
def floordiv(self : Tensor, other : {other}) -> Tensor:
  return torch.floor_divide(self, other)
"""
_STRINGS = """
def __contains__(self: str, key: str) -> bool:
  return self.find(key, 0, len(self)) != -1
"""
_PROPERTIES = """
def ndim(a : Tensor) -> int:
  return a.dim()
def T(a : Tensor) -> Tensor:
  return a.numpy_T()
def H(a : Tensor) -> Tensor:
  return a.matrix_H()
def mT(a : Tensor) -> Tensor:
  return a.mT()
def mH(a : Tensor) -> Tensor:
  return a.mH()
def shape(a : Tensor) -> List[int]:
  return a.size()
"""


def _sources():
    """(namespace, text)"""
    for number in ("float", "int", "complex"):
        yield "aten", _NUMBER_FIRST.format(number=number)
    for number in ("float", "int"):
        for length, name in enumerate(("single", "pair", "triple", "quadruple"), 1):
            yield "aten", _TUPLES.format(name=name, length=length, number=number)
    for other in ("number", "Tensor"):
        yield "aten", _FLOOR_DIVISION.format(other=other)
    yield "aten", _STRINGS
    yield "prim", _PROPERTIES


@cache
def _definitions():
    """name -> [(Text, tree)], in the order in which they are tried."""
    from .definition import parse_text

    found = {}
    for namespace, source in _sources():
        text, tree = parse_text(source, "<string>")
        for node in tree.body:
            assert isinstance(node, ast.FunctionDef)
            found.setdefault(f"{namespace}::{node.name}", []).append((text, node))
    return found


_functions = {}
_loading = []  # not empty while one of them is compiled: none is available then


def builtin_functions(name):
    """The functions of that name, such as "aten::mul"; compiled when they are first asked for."""
    if name not in _functions:
        if _loading or name not in _definitions():
            return ()
        _loading.append(name)
        _functions[name] = [_compiled(text, node) for text, node in _definitions()[name]]
        _loading.pop()
    return _functions[name]


def _compiled(text, node):
    from readtorch.csrc.jit.api.function_impl import GraphFunction

    from .definition import build_definition
    from .ir_emitter import compile_definition
    from .resolver import NativeResolver

    function = GraphFunction(node.name, None)
    compile_definition(function, build_definition(node, text), NativeResolver())
    return function


add_function_source(builtin_functions)
