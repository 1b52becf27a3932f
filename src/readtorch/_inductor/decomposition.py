"""Which operators are taken apart before the graph is lowered.

Kept whole are those with a scalar function of their own (`aten/native/math.py`), those that a library computes, and those whose
lowering shares work that the decomposition would do twice.

In PyTorch: `torch/_inductor/decomposition.py`.
"""

import functools

import readtorch as rt
from readtorch._decomp import core_aten_decompositions, remove_decompositions
from readtorch._ops import ops

aten = ops.aten
KEPT = [
    *(aten.baddbmm, aten.addmv, aten.dot, aten.mv, aten.var_mean),
    *(aten.silu, aten.silu_backward, aten.gelu_backward, aten.sigmoid_backward, aten.tanh_backward, aten.hardswish),
    *(aten.softplus, aten.threshold_backward, aten.leaky_relu_backward, aten.addcmul, aten.addcdiv, aten.lerp),
    *(aten.rsub, aten.embedding_dense_backward, aten.masked_fill, aten.tril, aten.triu),
]


@functools.cache
def select_decomp_table():
    """operator -> what is traced in its place."""
    table = core_aten_decompositions()
    remove_decompositions(table, KEPT)
    return table | {aten._softmax.default: softmax, aten._log_softmax.default: log_softmax}


def shifted(x, dim):
    return x - x.amax(dim, keepdim=True)


def softmax(x, dim, half_to_float):
    if not x.dim() or not x.numel() or x.dtype not in (rt.float32, rt.float64):
        return NotImplemented
    powers = shifted(x, dim).exp()
    return powers / powers.sum(dim, keepdim=True)


def log_softmax(x, dim, half_to_float):
    if not x.dim() or not x.numel() or x.dtype not in (rt.float32, rt.float64):
        return NotImplemented
    x = shifted(x, dim)
    return x - x.exp().sum(dim, keepdim=True).log()
