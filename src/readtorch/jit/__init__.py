"""TorchScript: `trace` and `script` turn Python functions and modules into graphs, which run without Python.

Both are deprecated in PyTorch since 2.13, in favor of `torch.compile` and `torch.export`.

In PyTorch: `torch/jit/__init__.py`. Explained in the chapters "JIT: tracing" and "JIT: scripting".
"""

from typing import Final

from readtorch._jit_internal import export, ignore, is_scripting, unused
from readtorch.csrc.jit.python.script_init import ScriptFunction
from readtorch.csrc.jit.runtime.jit_exception import Error
from readtorch.jit._annotate import annotate, isinstance
from readtorch.jit._async import Future, fork, wait
from readtorch.jit._freeze import freeze, optimize_for_inference, run_frozen_optimizations
from readtorch.jit._fuser import optimized_execution
from readtorch.jit._script import Attribute, CompilationUnit, script, script_if_tracing
from readtorch.jit._script_module import RecursiveScriptModule, ScriptModule
from readtorch.jit._script_class import interface
from readtorch.jit._serialization import load, save
from readtorch.jit._trace import TracerWarning, TracingCheckError, is_tracing, trace, trace_module

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
    "trace",
    "trace_module",
    "unused",
    "wait",
]
