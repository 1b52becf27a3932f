"""Types for the functions of `nn.functional` and the modules of `nn`, which their sources here do not have.

A stub whose body is `...` gives types only: the body is that of the function itself. Others are compiled in
its place, because the function uses more of Python than TorchScript has.

In PyTorch: `torch/nn/functional.py` is annotated and compiled as it stands.
"""

import ast
from collections import defaultdict
from functools import cache
from pathlib import Path

from readtorch import nn
from readtorch.c10.module_names import is_in
from readtorch.csrc.jit.api.compilation_unit import python_cu
from readtorch.csrc.jit.frontend.sugared_value import FunctionValue
from readtorch.csrc.jit.python.script_init import PythonResolver, lookup_of_closure
from readtorch.csrc.jit.frontend.definition import build_definition, definition_of, parse_text
from readtorch.csrc.jit.frontend.ir_emitter import compile_lazily
from readtorch.csrc.jit.frontend.resolver import NativeResolver
from readtorch.csrc.jit.ir.type import ClassType
from readtorch.csrc.jit.frontend.sugared_value import SugaredValue

_FOLDER = Path(__file__).with_name("stubs")


@cache
def _stubs():
    """name -> [(Text, tree)] of a class or a function; several of a function with overloads"""
    found = defaultdict(list)
    for path in sorted(_FOLDER.glob("*.pyi")):
        text, tree = parse_text(path.read_text(), f"readtorch/jit/stubs/{path.name}")
        for node in tree.body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                found[node.name].append((text, node))
    return dict(found)


def _is_types_only(node):
    return (
        len(node.body) == 1
        and isinstance(node.body[0], ast.Expr)
        and getattr(node.body[0].value, "value", 0) is Ellipsis
    )


def _defaults(node):
    names, values = [a.arg for a in node.args.args], node.args.defaults
    found = {name: ast.literal_eval(value) for name, value in zip(names[len(names) - len(values) :], values)}
    return found


def stub_definition(text, node, function):
    """The Definition that stands for a Python function, and what resolves its names."""
    stub = build_definition(node, text, node.name, _defaults(node))
    if not _is_types_only(node):
        return stub, PythonResolver(_lookup)
    own = definition_of(function, node.name)
    types = {p.name: p.annotation for p in stub.parameters}
    for parameter in own.parameters:
        parameter.annotation = types.get(parameter.name)
    own.returns, own.defaults = stub.returns, stub.defaults
    return own, PythonResolver(lookup_of_closure(function))


def _lookup(name):
    import math
    import typing
    import warnings

    import readtorch

    names = {
        "torch": readtorch,
        "F": nn.functional,
        "math": math,
        "warnings": warnings,
        "Optional": typing.Optional,
        "Union": typing.Union,
        "ValueError": ValueError,
        "RuntimeError": RuntimeError,
        "NotImplementedError": NotImplementedError,
    }
    if name in names:
        return names[name]
    from readtorch.nn.functional import attention
    from readtorch.nn.modules import transformer

    for place in (attention, transformer):
        if hasattr(place, name):
            return getattr(place, name)
    raise LookupError(name)


def method_stub(cls, name):
    """(Text, tree) of what stands for a method of a module, or None. It is looked for from the class up to
    the one that defines the method: who overrides a method means his own.
    """
    bases = list(cls.__mro__)
    owner = next((c for c in bases if name in c.__dict__), bases[-1])
    for c in bases[: bases.index(owner) + 1]:
        found = _methods(c).get(name)
        if found is not None:
            return found
    return None


def extra_methods(cls):
    """Names of methods that the stubs of a module and its bases have."""
    return {name for c in cls.__mro__ for name in _methods(c)}


@cache
def _methods(cls):
    """name -> (Text, tree) of the methods in the stub of this very class"""
    if not is_in("nn", cls.__module__) or cls.__name__ not in _stubs():
        return {}
    [(text, node)] = _stubs()[cls.__name__]
    return {m.name: (text, m) for m in node.body if isinstance(m, ast.FunctionDef)}


@cache
def library_class(cls):
    """The ClassType of `no_grad` or `enable_grad`; None for any other class."""
    import readtorch

    if cls not in (readtorch.no_grad, readtorch.enable_grad):
        return None
    [(text, node)] = _stubs()[cls.__name__]
    type = python_cu.register_type(ClassType(f"__torch__.torch.autograd.grad_mode.{cls.__name__}", python_cu))
    for tree in node.body:
        definition, name = build_definition(tree, text), f"{type.qualified}.{tree.name}"
        type.addMethod(compile_lazily(python_cu, name, definition, NativeResolver(), None, type))
    for method in type.methods.values():
        method.ensure_defined()
    return type
