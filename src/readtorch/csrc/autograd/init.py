"""The switch of grad mode as `torch._C` has it: modes of functions are told of it.

In PyTorch: `torch/csrc/autograd/init.cpp`. Explained in the chapter "Autograd".
"""

from readtorch.aten.torch_function import Public, mode_enabled, overriders
from readtorch.c10.local_dispatch_key_set import set_grad_mode


def _set_grad_enabled(enabled):
    """Record operations from now on, or not."""
    if overriders and mode_enabled():
        return _PUBLIC.override((enabled,), {})
    set_grad_mode(enabled)


_PUBLIC = Public("_set_grad_enabled", "torch._C")
_PUBLIC.function = _set_grad_enabled
