"""Operators that move, pick and make elements. In PyTorch: `torch/distributed/tensor/_ops/_tensor_ops.py`."""

import readtorch
from readtorch import broadcast_shapes
from readtorch.distributed.tensor._dtensor_spec import TensorMeta
from readtorch.distributed.tensor._op_schema import OpSpec
from readtorch.distributed.tensor.placement_types import Partial, Replicate, Shard, _is_shard_like

from ._embedding_ops import _MaskPartial
from ._math_ops import replicate_reduction_dims
from .single_dim_strategy import Along, register_single_dim_strategy
from .utils import (
    arguments,
    is_tensor_dim_sharded,
    normalize_dim,
    normalize_dims,
    one_way,
    overloads,
    register_op_strategy,
    shape_adjuster,
    shift_shard_dims_after_insert,
    shift_shard_dims_after_remove,
    unshard_tensor_dim,
)

aten = readtorch.ops.aten
R = Replicate()
EXTREMA_AND_AVERAGE = [Partial(op) for op in ("avg", "max", "min")]
ALL_PARTIALS = [Partial(op) for op in Partial.ALL_REDUCE_OPS]


def whole(schema):
    return (R,) * (*schema.args_spec, *schema.kwargs_spec)[0].mesh.ndim


# ------------------------------------------------------------------------- copies and new tensors


@register_op_strategy(overloads("contiguous detach alias fill_.Scalar view.dtype zero_ empty_like"))
def as_its_input(schema, metas):
    """The result is placed as the input is, however that is."""
    placements = schema.args_spec[0].placements
    return one_way(schema, placements, [placements])


@register_single_dim_strategy(overloads("_to_copy"), allow_uneven_sharding=True)
def to_copy(op, args, kwargs):
    """Sums that are not added up, unless the dtype rounds them."""
    source, target = args[0].dtype, kwargs.get("dtype") or args[0].dtype
    same = [[Along(d)] * 2 for d in range(len(args[0].shape))]
    return same + [[p, p] for p in ALL_PARTIALS if not _rounds(p.reduce_op, source, target)]


def _rounds(reduce_op, source, target):
    if source == target:
        return False
    if readtorch.bool in (source, target):  # in PyTorch: to bool only, so that (x > 0).any().float() counts ranks
        return True
    return reduce_op not in ("max", "min") and source.is_floating_point and not target.is_floating_point


@register_op_strategy(
    overloads("ones_like zeros_like full_like rand_like randn_like randint_like randint_like.low_dtype")
)
def like_its_input(schema, metas):
    """Placed as the input; where that is partial, whole."""
    placements = schema.args_spec[0].placements
    return one_way(schema, tuple(R if p.is_partial() else p for p in placements), [placements])


def new_factory(schema, metas):
    """Whole, or where the sizes are the input's, placed as it: which is preferred, by a cost below nothing."""
    spec = schema.args_spec[0]
    ways = one_way(schema, whole(schema), [spec.placements])
    uninitialized = schema.op._opname in ("new_empty", "new_empty_strided")
    if tuple(spec.shape) == tuple(schema.args_schema[1]) and (spec.is_sharded() or uninitialized):
        ways.append(OpSpec(spec, [spec], [-0.1]))
    return ways


register_op_strategy(overloads("new_empty new_full new_ones new_zeros"), shape_adjuster(1))(new_factory)
register_op_strategy(overloads("new_empty_strided"), shape_adjuster(1, 2))(new_factory)


@register_op_strategy(overloads("eye.m_out"))
def eye_out(schema, metas):
    placements = schema.kwargs_spec[0].placements
    return one_way(schema, placements, [placements])


@register_op_strategy(overloads("equal"))
def equal(schema, metas):
    """Both as the one that is cut into more pieces."""
    one, other = schema.args_spec
    followed = one if one.num_shards >= other.num_shards else other
    placements = tuple(R if p.is_partial() else p for p in followed.placements)
    return one_way(schema, placements, [placements, placements])


# ------------------------------------------------------------------------- parts


@register_op_strategy(overloads("select.int"))
def select_int(schema, metas):
    a, spec = arguments(schema.op, schema.args_schema, schema.kwargs_schema), schema.args_spec[0]
    dim = normalize_dim(a.dim, spec.ndim)
    given = unshard_tensor_dim(spec.placements, dim)
    return one_way(schema, shift_shard_dims_after_remove(given, dim), [given])


@register_op_strategy(overloads("select_backward"), shape_adjuster(1))
def select_backward(schema, metas):
    a, placements = arguments(schema.op, schema.args_schema, schema.kwargs_schema), schema.args_spec[0].placements
    dim = normalize_dim(a.dim, len(a.input_sizes))
    return one_way(schema, shift_shard_dims_after_insert(placements, dim), [placements])


@register_op_strategy(overloads("slice.Tensor"))
def slice_tensor(schema, metas):
    """Along a dimension that is cut only if all of it is taken."""
    a, spec = arguments(schema.op, schema.args_schema, schema.kwargs_schema), schema.args_spec[0]
    dim, placements = normalize_dim(a.dim, spec.ndim), spec.placements
    if metas.shape[dim] != spec.shape[dim] or a.step != 1:
        placements = unshard_tensor_dim(placements, dim)
    return one_way(schema, placements, [placements])


@register_op_strategy(overloads("slice_backward"), shape_adjuster(1))
def slice_backward(schema, metas):
    a, spec = arguments(schema.op, schema.args_schema, schema.kwargs_schema), schema.args_spec[0]
    placements = unshard_tensor_dim(spec.placements, normalize_dim(a.dim, spec.ndim))
    return one_way(schema, placements, [placements])


@register_op_strategy(overloads("slice_scatter"))
def slice_scatter(schema, metas):
    a, spec = arguments(schema.op, schema.args_schema, schema.kwargs_schema), schema.args_spec[0]
    dim, placements = normalize_dim(a.dim, spec.ndim), spec.placements
    if is_tensor_dim_sharded(spec, dim) or any(p.is_partial() for p in placements):
        placements = replicate_reduction_dims(placements, [dim])
    return one_way(schema, placements, [placements, placements])


@register_single_dim_strategy(overloads("select_scatter"))
def select_scatter(op, args, kwargs):
    a = arguments(op, args, kwargs)
    ndim = len(a.self.shape)
    dim = normalize_dim(a.dim, ndim)
    return [[Along(d), Along(d), Along(d if d < dim else d - 1)] for d in range(ndim) if d != dim]


@register_single_dim_strategy(overloads("diagonal_scatter"))
def diagonal_scatter(op, args, kwargs):
    a = arguments(op, args, kwargs)
    ndim = len(a.self.shape)
    both = normalize_dims([a.dim1, a.dim2], ndim)
    return [[Along(d), Along(d), Along(d - sum(x < d for x in both))] for d in range(ndim) if d not in both]


@register_op_strategy(overloads("split.Tensor split_with_sizes split_with_sizes_copy"))
def split(schema, metas):
    a, spec = arguments(schema.op, schema.args_schema, schema.kwargs_schema), schema.args_spec[0]
    placements = unshard_tensor_dim(spec.placements, normalize_dim(a.dim, spec.ndim))
    return one_way(schema, [placements] * len(metas), [placements])


@register_op_strategy(overloads("unbind.int"))
def unbind(schema, metas):
    a, spec = arguments(schema.op, schema.args_schema, schema.kwargs_schema), schema.args_spec[0]
    dim = normalize_dim(a.dim, spec.ndim)
    if is_tensor_dim_sharded(spec, dim):
        raise RuntimeError(
            f"Attempted to unbind along the sharded dimension {dim}. ",
            "It cannot be performed without redistribution, which is disallowed by the current operator.",
        )
    return one_way(schema, [shift_shard_dims_after_remove(spec.placements, dim)] * len(metas), [spec.placements])


# ------------------------------------------------------------------------- several tensors


@register_op_strategy(overloads("cat"))
def cat(schema, metas):
    """All as one of them, whichever is cheapest, with the dimension along which they are joined whole."""
    a, specs = arguments(schema.op, schema.args_schema, schema.kwargs_schema), schema.args_spec
    dim = normalize_dim(a.dim, specs[0].ndim)
    exemplars = dict.fromkeys(unshard_tensor_dim(spec.placements, dim) for spec in specs)
    return [one_way(schema, placements, [placements] * len(specs))[0] for placements in exemplars]


@register_op_strategy(overloads("stack"))
def stack(schema, metas):
    a, specs = arguments(schema.op, schema.args_schema, schema.kwargs_schema), schema.args_spec
    for spec in specs:
        if spec.mesh != specs[0].mesh:
            raise ValueError(
                f"All operands in {schema.op} must have the same mesh, but got {spec.mesh} and {specs[0].mesh}."
            )
    followed = specs[0].placements
    for spec in specs[1:]:
        followed = tuple(_merged(p, q) for p, q in zip(followed, spec.placements, strict=True))
    result = shift_shard_dims_after_insert(followed, normalize_dim(a.dim, specs[0].ndim + 1))
    return one_way(schema, result, [followed] * len(specs))


def _merged(one, other):
    """What two tensors that are stacked follow: partial before cut before whole; two that do not fit are made whole."""
    if one == other:
        return one
    if one.is_partial():
        return other if _is_shard_like(other) else R if other.is_partial() else one
    if _is_shard_like(one):
        return R if _is_shard_like(other) else one
    return other


# ------------------------------------------------------------------------- indices


@register_op_strategy(overloads("_local_scalar_dense"))
def local_scalar_dense(schema, metas):
    return one_way(schema, whole(schema), [whole(schema)])


@register_single_dim_strategy(overloads("bucketize.Tensor"))
def bucketize(op, args, kwargs):
    """The values, or the boundaries, of which each rank counts its own; in a rising order extrema stay such."""
    cuts = [[Along(d), Along(d), R] for d in range(len(args[0].shape))]
    return [*cuts, [Partial(), R, Along(0)], *([p, p, R] for p in (Partial("max"), Partial("min")))]


@register_single_dim_strategy(overloads("index_select"))
def index_select(op, args, kwargs):
    values, dim, _ = args
    dim = normalize_dim(dim, len(values.shape))
    cuts = [[Along(d), Along(d), R] for d in range(len(values.shape)) if d != dim]
    return [*cuts, [Along(dim), R, Along(0)], *([p, p, R] for p in ALL_PARTIALS)]


@register_single_dim_strategy(overloads("index.Tensor"))
def index(op, args, kwargs):
    """Dimensions without an index, or those of the indices."""
    values, given = args
    at, indices = [i for i, x in enumerate(given) if x is not None], [x for x in given if x is not None]
    ndim = len(broadcast_shapes(*(x.shape for x in indices)))
    first = at[0] if at == list(range(at[0], at[0] + len(at))) else 0
    ways = []
    for d in (d for d in range(len(values.shape)) if d not in at):
        out = d if d < first else d + ndim - sum(i < d for i in at)
        ways.append([Along(out), Along(d)] + [R] * len(at))
    for d in range(ndim):
        own = [_own_dim(x, d, ndim) for x in indices]
        if any(isinstance(p, Along) for p in own):
            ways.append([Along(first + d), R, *own])
    return ways + [[p, p] + [R] * len(at) for p in map(Partial, Partial.LINEAR_REDUCE_OPS)]


def _own_dim(index, dim, ndim):
    """How an index is placed where the indices together are cut along a dimension: whole if it is broadcast along it."""
    dim -= ndim - len(index.shape)
    return Along(dim) if dim >= 0 and index.shape[dim] > 1 else R


@register_single_dim_strategy(overloads("index_put index_put_ _index_put_impl_"))
def index_put(op, args, kwargs):
    """Dimensions without an index."""
    target, given, values = args[:3]
    at, ndim = [i for i, x in enumerate(given) if x is not None], len(target.shape)
    shapes = [x.shape for x in given if x is not None]
    spread = len(broadcast_shapes(*shapes)) if shapes else 0
    together = len(at) <= 1 or at[-1] - at[0] + 1 == len(at)
    free = [d for d in range(ndim) if d not in at]
    ways = []
    for i, d in enumerate(free):
        there = spread + i
        if together and at:
            there = d if d < at[0] else d - len(at) + spread
        own = there - (spread + len(free) - len(values.shape))
        placed = Along(own) if own >= 0 and values.shape[own] != 1 else R
        ways.append([Along(d), Along(d), *[R] * len(at), placed])
    return [*ways, [Partial(), Partial(), *[R] * len(at), Partial()]]


def _other_dims(args, way, more=()):
    """Ways for each dimension but the one that is indexed."""
    ndim = len(args[0].shape)
    dim = normalize_dim(args[1], ndim)
    return [way(d) for d in range(ndim) if d != dim] + list(more)


@register_single_dim_strategy(overloads("index_fill.int_Scalar index_fill_.int_Scalar"))
def index_fill_scalar(op, args, kwargs):
    return _other_dims(args, lambda d: [Along(d), Along(d), R], [[p, p, R] for p in EXTREMA_AND_AVERAGE])


@register_single_dim_strategy(overloads("index_fill.int_Tensor index_fill_.int_Tensor"))
def index_fill_tensor(op, args, kwargs):
    return _other_dims(args, lambda d: [Along(d), Along(d), R, R], [[p, p, R, p] for p in ALL_PARTIALS])


@register_single_dim_strategy(overloads("index_add index_add_ index_copy index_copy_ index_reduce index_reduce_"))
def index_write(op, args, kwargs):
    return _other_dims(args, lambda d: [Along(d), Along(d), R, Along(d)])


@register_single_dim_strategy(
    overloads("scatter.value scatter_.value scatter.src scatter_.src scatter_add scatter_add_")
)
def scatter(op, args, kwargs):
    """Dimensions that all tensors have in the same size, but the one that is written along."""
    tensors = [x for x in args if isinstance(x, TensorMeta)]
    target, ndim = tensors[0], len(tensors[0].shape)
    dim = normalize_dim(args[1], ndim)
    if any(len(t.shape) != ndim for t in tensors):
        return []
    alike = [d for d in range(ndim) if d != dim and all(t.shape[d] == target.shape[d] for t in tensors)]
    return [[Shard(d)] * (1 + len(tensors)) for d in alike]


@register_single_dim_strategy(overloads("gather"))
def gather(op, args, kwargs):
    values, dim, given = args[:3]
    dim, ways = normalize_dim(dim, len(values.shape)), []
    if dim < len(given.shape) and given.shape[dim] == 1:
        masked = _MaskPartial(offset_shape=values.shape, offset_dim=dim)
        ways.append([masked, Shard(dim), masked])
    ways.append([Shard(dim), R, Shard(dim)])
    alike = [d for d in range(len(values.shape)) if d != dim and values.shape[d] == given.shape[d]]
    return ways + [[Shard(d)] * 3 for d in alike]


# ------------------------------------------------------------------------- along some dimensions


def _dims_that_stay(ndim, active):
    return [[Along(d)] * 2 for d in range(ndim) if d not in active]


@register_single_dim_strategy(overloads("roll flip"))
def rearranged(op, args, kwargs):
    """Dimensions along which nothing moves; elements move only, so every partial value stays one."""
    a, ndim = arguments(op, args, kwargs), len(args[0].shape)
    active = normalize_dims(list(a.dims), ndim) or tuple(range(ndim))
    return _dims_that_stay(ndim, active) + [[p, p] for p in map(Partial, ("sum", "avg", "max", "min"))]


@register_single_dim_strategy(overloads("_fft_c2c _fft_r2c _fft_c2r"))
def fft(op, args, kwargs):
    a, ndim = arguments(op, args, kwargs), len(args[0].shape)
    return _dims_that_stay(ndim, normalize_dims(list(a.dim), ndim)) + [[p, p] for p in map(Partial, ("sum", "avg"))]
