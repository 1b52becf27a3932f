"""`freeze` and `optimize_for_inference`: a module whose parameters have become constants of its graphs.

In PyTorch: `torch/jit/_freeze.py`. Explained in the chapter "JIT: scripting".
"""

import warnings

from readtorch.csrc.jit.passes.constant_pooling import ConstantPooling
from readtorch.csrc.jit.passes.dead_code_elimination import EliminateDeadCode
from readtorch.csrc.jit.passes.freeze_module import freeze_module
from readtorch.csrc.jit.passes.frozen_conv_folding import FoldFrozenConvBatchnorm

from ._script import ScriptModule
from ._serialization import wrap_object
from ._trace import TopLevelTracedModule, TracedModule


def freeze(mod, preserved_attrs=None, optimize_numerics=True):
    """A copy of a scripted or traced module that holds its parameters and attributes as constants.

    preserved_attrs: names of methods and attributes to keep beside `forward`. optimize_numerics: also rewrite
    what gives the same only up to rounding. Raises RuntimeError for anything but such a module, or is in training
    mode.
    """
    warnings.warn(
        "`torch.jit.freeze` is deprecated. Please use `torch.compile` instead.", DeprecationWarning, stacklevel=2
    )
    if not isinstance(mod, ScriptModule):
        raise RuntimeError(
            "Freezing expects a ScriptModule as input. Please use torch.jit.script or torch.jit.trace to script "
            "your 'nn.Module'."
        )
    if mod.training:
        raise RuntimeError(
            "Freezing is currently only implemented for modules in eval mode. Please call .eval() on your "
            "module before freezing."
        )
    preserved = list(preserved_attrs or ())
    make = TopLevelTracedModule if isinstance(mod, TracedModule) else wrap_object
    frozen = make(freeze_module(mod._c, preserved))
    methods = [name for name in preserved if mod._c.type.findMethod(name) is not None]
    run_frozen_optimizations(frozen, optimize_numerics, methods)
    return frozen


def run_frozen_optimizations(mod, optimize_numerics=True, preserved_methods=None):
    """Rewrite the graphs of a frozen module: a batch norm after a convolution is folded into it."""
    for name in ("forward", *(preserved_methods or ())):
        method = mod._c.type.findMethod(name)
        if method is not None and optimize_numerics and FoldFrozenConvBatchnorm(method.graph):
            EliminateDeadCode(method.graph)
            ConstantPooling(method.graph)


def optimize_for_inference(mod, other_methods=None):
    """Freeze a module if it is not frozen, and rewrite it for running only. In PyTorch: also for oneDNN and
    cuDNN.
    """
    warnings.warn(
        "`torch.jit.optimize_for_inference` is deprecated. Please use `torch.compile` instead.",
        DeprecationWarning,
        stacklevel=2,
    )
    if not isinstance(mod, ScriptModule):
        raise RuntimeError(
            "optimize_for_inference expects a ScriptModule as input. Please use torch.jit.script or "
            "torch.jit.trace to script your 'nn.Module'."
        )
    methods = list(other_methods or ())
    if mod._c.hasattr("training"):
        return freeze(mod.eval(), preserved_attrs=methods)
    run_frozen_optimizations(mod, True, methods)
    return mod
