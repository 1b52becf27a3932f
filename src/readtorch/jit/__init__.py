"""TorchScript: `trace` and `script` turn Python functions and modules into graphs, which run without Python.

Both are deprecated in PyTorch since 2.13, in favour of `torch.compile` and `torch.export`.

In PyTorch: `torch/jit/__init__.py`. Explained in the chapters "Tracing" and "Scripting".
"""
from readtorch.csrc.jit.runtime.jit_exception import Error
from readtorch.jit._trace import TracerWarning, TracingCheckError, is_tracing, trace, trace_module

__all__ = ["Error", "TracerWarning", "TracingCheckError", "is_tracing", "trace", "trace_module"]
