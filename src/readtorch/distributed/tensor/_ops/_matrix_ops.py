"""Products of matrices. In PyTorch: `torch/distributed/tensor/_ops/_matrix_ops.py` and, for the rule of `ways_of_product`,
`torch/distributed/tensor/_ops/_einsum_strategy.py`.
"""

import readtorch
from readtorch.distributed.tensor.placement_types import Partial, Replicate, _is_shard_like

from .single_dim_strategy import Along, register_single_dim_strategy
from .utils import arguments, moved, normalize_dims, one_way, overloads, register_op_strategy

aten = readtorch.ops.aten
R = Replicate()


def ways_of_product(equation, bias_shape=None):
    """The ways to cut a product that is written as an einsum of two operands, "mk,kn->mn" say.

    A dimension of all three is cut in all; one that is summed is cut in both operands, and the result is a sum; one of the result and an
    operand is cut there, and the other operand is whole. Sums that are not added up may stand in one operand: products are linear.
    bias_shape: of what is added, which is cut as the result where it has that dimension.
    """
    operands, result = equation.split("->")
    operands = operands.split(",")
    ways = []
    for name in dict.fromkeys("".join(operands)):
        placed = [Along(operand.index(name)) if name in operand else R for operand in operands]
        ways.append([Along(result.index(name)) if name in result else Partial(), *placed])
    for partial in map(Partial, Partial.LINEAR_REDUCE_OPS):
        ways += [[partial, partial, R], [partial, R, partial]]
    return (
        ways if bias_shape is None else [[way[0], _of_bias(way[0], bias_shape, len(result)), *way[1:]] for way in ways]
    )


def _of_bias(placement, shape, ndim):
    """How what is added is placed, where the result is placed so."""
    if not isinstance(placement, Along):
        return placement
    dim = placement.dim - (ndim - len(shape))
    return Along(dim) if dim >= 0 and shape[dim] != 1 else R


@register_single_dim_strategy(overloads("mm mm.out"))
def mm(op, args, kwargs):
    return _with_out(ways_of_product("mk,kn->mn"), kwargs)


@register_single_dim_strategy(overloads("bmm bmm.out"))
def bmm(op, args, kwargs):
    return _with_out(ways_of_product("bmk,bkn->bmn"), kwargs)


@register_single_dim_strategy(overloads("addmm addmm.out addmm_"))
def addmm(op, args, kwargs):
    return _with_out(ways_of_product("mk,kn->mn", args[0].shape), kwargs)


@register_single_dim_strategy(overloads("baddbmm baddbmm.out baddbmm_"))
def baddbmm(op, args, kwargs):
    return _with_out(ways_of_product("bmk,bkn->bmn", args[0].shape), kwargs)


def _with_out(ways, kwargs):
    return [[*way, way[0]] for way in ways] if kwargs.get("out") is not None else ways


@register_single_dim_strategy(overloads("dot mv vdot"))
def inner_product(op, args, kwargs):
    return ways_of_product("mk,k->m" if op is aten.mv.default else "i,i->")


@register_op_strategy(overloads("t"))
def t(schema, metas):
    placements = schema.args_spec[0].placements
    if schema.args_spec[0].ndim < 2:
        return one_way(schema, placements, [placements])
    return one_way(schema, tuple(moved(p, 1 - p.dim) if _is_shard_like(p) else p for p in placements), [placements])


@register_single_dim_strategy(overloads("constant_pad_nd"))
def constant_pad_nd(op, args, kwargs):
    """Dimensions that are not padded. Sums that are not added up, if what is padded with is 0."""
    a = arguments(op, args, kwargs)
    ndim, pad = len(a.self.shape), list(a.pad)
    padded = normalize_dims([-1 - i // 2 for i, n in enumerate(pad) if n], ndim)
    same = [[Along(d)] * 2 for d in range(ndim) if d not in padded]
    ops = ("sum", "avg", "max", "min") if a.value == 0 or not padded else ("avg", "max", "min")
    return same + [[Partial(each)] * 2 for each in ops]


# ------------------------------------------------------------------------- attention


def _samples_and_heads(count, mask):
    """Each sample and each head attends on its own."""
    return [] if mask is not None else [[Along(0)] * count, [Along(1)] * count]


@register_single_dim_strategy(overloads("_scaled_dot_product_flash_attention_for_cpu"))
def flash_attention(op, args, kwargs):
    """(output, logsumexp) of query, key and value. In PyTorch there are rules for the GPU's kernels, and none for this one."""
    return _samples_and_heads(5, kwargs.get("attn_mask"))


@register_single_dim_strategy(overloads("_scaled_dot_product_flash_attention_for_cpu_backward"))
def flash_attention_backward(op, args, kwargs):
    return _samples_and_heads(9, kwargs.get("attn_mask"))
