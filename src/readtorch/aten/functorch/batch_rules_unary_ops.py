"""Batching rules of operators of one tensor whose result lies elsewhere in memory, or as another type.

In PyTorch: `aten/src/ATen/functorch/BatchRulesUnaryOps.cpp`. Explained in the chapter "Forward mode, vmap and torch.func".
"""

from readtorch.aten.functions import at
from readtorch.c10.memory_format import contiguous_format, preserve_format

from .batch_rules_helper import batch_rule, to_front

_NAMES = {"channels_last": "ChannelsLast", "channels_last_3d": "ChannelsLast3d"}


@batch_rule("clone")
def clone_batch_rule(self, self_bdim, memory_format):
    """The examples lie as they are asked to, if the batch dimension is in front of them."""
    if memory_format is None or memory_format in (preserve_format, "preserve_format"):
        return at.clone(self, memory_format=memory_format), self_bdim
    if memory_format not in (contiguous_format, "contiguous_format"):
        raise RuntimeError(
            "NYI: Tensor.clone(memory_format) inside vmap is only supported with memory_format torch.preserve_format or "
            f"torch.contiguous_format (got {_NAMES.get(str(memory_format).removeprefix('torch.'), memory_format)})"
        )
    return at.clone(to_front(self, self_bdim), memory_format=memory_format), 0
