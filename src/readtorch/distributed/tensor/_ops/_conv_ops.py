"""Convolutions, of which samples can be cut. In PyTorch: `torch/distributed/tensor/_ops/_conv_ops.py`; a convolution of images that are
cut along their width, `torch/distributed/tensor/_tp_conv.py` there, is not here: they are made whole.
"""

from readtorch.distributed.tensor.placement_types import Partial, Replicate

from .single_dim_strategy import Along, register_single_dim_strategy
from .utils import overloads

R = Replicate()


@register_single_dim_strategy(overloads("convolution"))
def convolution(op, args, kwargs):
    return [[Along(0), Along(0), R] + ([R] if args[2] is not None else [])]


@register_single_dim_strategy(overloads("convolution_backward"))
def convolution_backward(op, args, kwargs):
    bias = Partial() if args[3] is not None else None
    return [[Along(0), Partial(), bias, Along(0), Along(0), R]]
