"""Autograd's own vmap, and duals under it.

`torch.autograd.functional` and `gradcheck` compute the rows of a Jacobian under a vmap of their own, the prototype of `torch.vmap`
(`torch/_vmap_internals.py`). In it a value that is the same for all examples can be given a batch of tangents: it stays what it is,
its tangent is a batched tensor. Under `torch.vmap` there are no duals but those of `torch.func.jvp`, which are made at a level of
their own.

In PyTorch: `aten/src/ATen/LegacyBatchingRegistrations.cpp`; there the prototype has a kind of batched tensors and rules of its own.
Explained in the chapter "Forward mode, vmap and torch.func".
"""

from readtorch.aten.dispatcher import registry
from readtorch.c10.dispatch_key import BATCHED, THREAD
from readtorch.c10.local_dispatch_key_set import tls
from readtorch.c10.tensor_impl import key_set

from .batch_rules_helper import decomposition
from .batched_fallback import refused
from .interpreter import MODES
from .vmap_interpreter import VmapInterpreter, interposed


class LegacyVmapInterpreter(VmapInterpreter):
    """An operator of what is the same for all examples runs as outside, but its formulas may meet batched tangents."""

    __slots__ = ()
    legacy = True

    def process(self, operator, keys, arguments):
        if operator is registry["aten::_make_dual"] and not key_set(arguments[0]) & BATCHED:
            keys = key_set(arguments[0])
        if keys & BATCHED or operator in interposed or not all([layer.legacy for layer in tls.functorch]):
            return VmapInterpreter.process(self, operator, keys, arguments)
        return operator.table[keys & tls.mask & ~(MODES | THREAD)](*arguments)


@decomposition("_make_dual")
def make_dual(primal, tangent, level):
    raise refused("aten::_make_dual")


@decomposition("_unpack_dual")
def unpack_dual(dual, level):
    raise refused("aten::_unpack_dual")
