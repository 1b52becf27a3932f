"""An object in TorchScript whose class was made from an `nn.Module`.

In PyTorch: `torch/csrc/jit/api/module.h`. Explained in the chapter "JIT: scripting".
"""

from .object import ScriptObject


class ScriptModule(ScriptObject):
    """`_c` of every scripted or traced module; `torch.ScriptModule`, which is not `torch.jit.ScriptModule`."""

    __slots__ = ()
    __module__ = "readtorch"  # where everybody finds it
