"""What the partitioner knows of operators. In PyTorch: `OpTypes` and `get_default_op_list` in `torch/_functorch/partitioners.py`."""

import functools
import operator

from readtorch._ops import ops
from readtorch.aten.dispatcher import registry
from readtorch.aten.tags import Tag, tags_of

from .compile_utils import get_aten_target

VIEWS = "squeeze unsqueeze alias view slice t expand as_strided permute select split"
# Cheap ones that are not pointwise; all pointwise ones are cheap, too.
CHEAP = """
    max min sum mean amax sum_to_size _grad_sum_to_size to type_as _to_copy clone full_like var std select _unsafe_view reshape
    broadcast_tensors scalar_tensor ones new_zeros lift_fresh_copy arange triu var_mean any full zeros empty empty_like argmax index gather
    zeros_like __and__ __or__ __xor__ __lshift__ __rshift__ div remainder threshold where
"""
RANDOM = "native_dropout rand_like randn_like"
EXPENSIVE = """
    mm convolution convolution_backward bmm addmm _scaled_dot_product_flash_attention _scaled_dot_product_efficient_attention
    _flash_attention_forward _efficient_attention_forward upsample_bilinear2d _scaled_mm
"""


def packets(names):
    found = (getattr(ops.aten, name, None) for name in names)
    return {packet for packet in found if packet is not None}


class OpTypes:
    """Sets of operators: is a node fusible, expensive, random, a view, or cheap enough to be computed again?"""

    def __init__(self):
        pointwise = {o.schema.name for o in registry.values() if Tag.pointwise in tags_of(o.schema)}
        self.view_ops = packets(VIEWS.split())
        self.recomputable_ops = packets(pointwise) | packets(CHEAP.split()) | self.view_ops | {operator.getitem}
        self.random_ops = packets(RANDOM.split())
        self.compute_intensive_ops = packets(EXPENSIVE.split())
        self.fusible_ops = self.recomputable_ops | self.random_ops

    def is_fusible(self, node):
        return get_aten_target(node) in self.fusible_ops

    def is_compute_intensive(self, node):
        return get_aten_target(node) in self.compute_intensive_ops

    def is_random(self, node):
        return get_aten_target(node) in self.random_ops

    def is_view(self, node):
        return get_aten_target(node) in self.view_ops

    def is_recomputable(self, node):
        return get_aten_target(node) in self.recomputable_ops


@functools.cache
def get_default_op_list():
    return OpTypes()
