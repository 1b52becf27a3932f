"""TorchScript: `trace` and `script` turn Python functions and modules into graphs, which run without Python.

Both are deprecated in PyTorch since 2.13, in favor of `torch.compile` and `torch.export`.

In PyTorch: `torch/jit/__init__.py`. Explained in the chapters "JIT: tracing" and "JIT: scripting".
"""

import builtins
import types as _types
import typing
from typing import Final

from readtorch._jit_internal import _overload, _overload_method, export, ignore, is_scripting, unused
from readtorch.csrc.jit.python.script_init import ScriptFunction
from readtorch.csrc.jit.runtime.jit_exception import Error

from ._async import Future, fork, wait
from ._freeze import freeze, optimize_for_inference, run_frozen_optimizations
from ._fuser import optimized_execution, strict_fusion
from ._recursive import interface
from ._script import Attribute, CompilationUnit, RecursiveScriptModule, ScriptModule, script, script_if_tracing
from ._script import script_if_tracing as _script_if_tracing
from ._serialization import load, save
from ._trace import TracerWarning, TracingCheckError, is_tracing, trace, trace_module

__all__ = [
    "Attribute",
    "CompilationUnit",
    "Error",
    "Final",
    "Future",
    "RecursiveScriptModule",
    "ScriptFunction",
    "ScriptModule",
    "TracerWarning",
    "TracingCheckError",
    "annotate",
    "export",
    "fork",
    "freeze",
    "ignore",
    "interface",
    "is_scripting",
    "is_tracing",
    "isinstance",
    "load",
    "optimize_for_inference",
    "optimized_execution",
    "run_frozen_optimizations",
    "save",
    "script",
    "script_if_tracing",
    "strict_fusion",
    "trace",
    "trace_module",
    "unused",
    "wait",
]


def annotate(the_type, the_value):
    """`the_value`; in TorchScript it has the type `the_type`, which its literal may leave open."""
    return the_value


def isinstance(obj, target_type):
    """Python's `isinstance`, which also looks into containers: `isinstance(x, List[int])`."""
    if builtins.isinstance(target_type, tuple):
        return any(isinstance(obj, t) for t in target_type)
    origin, args = typing.get_origin(target_type), typing.get_args(target_type)
    if origin in (typing.Union, _types.UnionType):
        return any(isinstance(obj, t) for t in args)
    if origin is None:
        return builtins.isinstance(obj, target_type)
    if not builtins.isinstance(obj, origin):
        return False
    if origin is list:
        return all(isinstance(x, args[0]) for x in obj)
    if origin is dict:
        return all(isinstance(k, args[0]) and isinstance(v, args[1]) for k, v in obj.items())
    if origin is tuple:
        return len(obj) == len(args) and all(map(isinstance, obj, args))
    return True
