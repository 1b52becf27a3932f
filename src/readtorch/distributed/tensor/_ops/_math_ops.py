"""Reductions, softmax, norms, sorting, pooling, interpolation and linear algebra.

In PyTorch: `torch/distributed/tensor/_ops/_math_ops.py`. Most of these work along some dimensions and do the same for each index of the
others: those can be cut.
"""

import math

import readtorch
from readtorch.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta
from readtorch.distributed.tensor._op_schema import OpSchema
from readtorch.distributed.tensor._utils import compute_local_shape_and_global_offset
from readtorch.distributed.tensor.placement_types import Partial, Replicate, Shard, _is_shard_like

from .single_dim_strategy import Along, register_single_dim_strategy
from .utils import (
    arguments,
    has_empty_shards,
    is_tensor_evenly_shardable,
    moved,
    normalize_dim,
    normalize_dims,
    one_way,
    overloads,
    register_op_strategy,
    several,
    shape_adjuster,
    shift_shard_dims_after_remove,
    unshard_tensor_dim,
)

aten = readtorch.ops.aten
SUM, AVG, R = Partial("sum"), Partial("avg"), Replicate()

# ------------------------------------------------------------------------- reductions

# how the results of the ranks become the result
REDUCTIONS = {
    "all.default all.dim prod.default prod.dim_int prod.int_out": "product",
    "sum.default sum.dim_IntList any.default any.dim any.dims any.out nansum.default": "sum",
    "mean.default mean.dim mean.out": "avg",
    "max.default amax.default amax.out": "max",
    "min.default amin.default amin.out": "min",
}


def replicate_reduction_dims(placements, dims):
    """The placements without cuts along these dimensions and without sums that are not added up."""
    return tuple(Replicate() if p.is_partial() else p for p in unshard_tensor_dim(placements, *dims))


class _NormPartial(Partial):
    """Each rank has the norm of its part: their powers are summed."""

    def __init__(self, norm_type):
        super().__init__("sum")
        self.norm_type = norm_type

    def _reduce_value(self, tensor, mesh, mesh_dim):
        return super()._reduce_value(tensor**self.norm_type, mesh, mesh_dim) ** (1.0 / self.norm_type)

    def _reduce_shard_value(self, tensor, mesh, mesh_dim, shard):
        return super()._reduce_shard_value(tensor**self.norm_type, mesh, mesh_dim, shard) ** (1.0 / self.norm_type)

    def _partition_value(self, tensor, mesh, mesh_dim):
        """Equal parts whose norms are together this one."""
        return tensor / mesh.size(mesh_dim) ** (1.0 / self.norm_type)

    def __eq__(self, other):
        return isinstance(other, _NormPartial) and self.norm_type == other.norm_type

    def __hash__(self):
        return 1 + hash(self.norm_type)

    def __repr__(self):
        return f"_NormPartial({self.norm_type})"

    def __str__(self):
        return f"_NormP({self.norm_type})"


def common_reduction_strategy(schema, dims, keepdim, partial):
    """What is cut along a dimension that is reduced becomes `partial`; if that is None, it is made whole first."""
    spec = schema.args_spec[0]
    dims = tuple(range(spec.ndim)) if dims in (None, (), []) else normalize_dims(dims, spec.ndim)
    placements = spec.placements
    if partial is None or not _can_wait(spec, dims, partial):
        placements = replicate_reduction_dims(placements, dims)
    result = tuple(_after_reduction(p, dims, keepdim, partial) for p in placements)
    return one_way(schema, result, [placements, *(s.placements for s in schema.kwargs_spec)])


def _can_wait(spec, dims, partial):
    """Whether the ranks may reduce what they have: not beside other partial results, nor average over parts of several sizes, nor look
    for an extremum of nothing (which PyTorch does: a rank whose shard is empty raises there).
    """
    if partial.reduce_op == "avg" and not _is_even_along(spec, dims):
        return False
    if partial.reduce_op in ("max", "min") and has_empty_shards(spec):
        return False
    return all(not p.is_partial() or p == partial and type(p) is Partial for p in spec.placements)


def _is_even_along(spec, dims):
    cuts = DTensorSpec(spec.mesh, [p if _is_shard_like(p) and p.dim in dims else R for p in spec.placements])
    return is_tensor_evenly_shardable(spec.shape, cuts)


def _after_reduction(placement, dims, keepdim, partial):
    if not _is_shard_like(placement):
        return placement
    if placement.dim in dims:
        return partial
    return placement if keepdim else moved(placement, placement.dim - sum(dim < placement.dim for dim in dims))


def _register_reductions(names, reduce_op):
    @register_op_strategy(overloads(names))
    def reduction(schema, metas):
        a = arguments(schema.op, schema.args_schema, schema.kwargs_schema)
        dims = getattr(a, "dim", None)
        return common_reduction_strategy(schema, dims, getattr(a, "keepdim", False), Partial(reduce_op))


for _names, _op in REDUCTIONS.items():
    _register_reductions(_names, _op)


@register_op_strategy(
    overloads(
        "argmax argmin median nanmedian logsumexp var.correction std.correction var.correction_out std.correction_out "
        "var_mean.correction"
    )
)
def reduction_of_whole_dims(schema, metas):
    """Reductions whose results over parts say too little: indices, medians, variances."""
    a = arguments(schema.op, schema.args_schema, schema.kwargs_schema)
    ways = common_reduction_strategy(schema, getattr(a, "dim", None), getattr(a, "keepdim", False), None)
    if several(metas):
        ways[0].output_specs = (ways[0].output_specs,) * len(metas)
    return ways


@register_op_strategy(overloads("cumsum cumprod logcumsumexp"))
def scan(schema, metas):
    a = arguments(schema.op, schema.args_schema, schema.kwargs_schema)
    return common_reduction_strategy(schema, [a.dim], True, None)


@register_op_strategy(overloads("linalg_vector_norm norm.Scalar"))
def vector_norm(schema, metas):
    a = arguments(schema.op, schema.args_schema, schema.kwargs_schema)
    order = a.ord if hasattr(a, "ord") else a.p
    return common_reduction_strategy(schema, getattr(a, "dim", None), getattr(a, "keepdim", False), _norm(order))


def _norm(order):
    if abs(float(order)) == math.inf:
        return Partial("max" if float(order) > 0 else "min")
    return Partial("sum") if order == 0 else _NormPartial(order)


@register_single_dim_strategy(overloads("max.dim min.dim median.dim nanmedian.dim mode kthvalue"))
def along_one_dim(op, args, kwargs):
    """(values, indices) along a dimension."""
    a, ndim = arguments(op, args, kwargs), len(args[0].shape)
    dim = normalize_dim(a.dim, ndim)
    return [[Along(d if a.keepdim or d < dim else d - 1)] * 2 + [Along(d)] for d in range(ndim) if d != dim]


@register_single_dim_strategy(overloads("sort sort.stable topk cummax cummin"))
def sorting(op, args, kwargs):
    """The same, with the dimension kept."""
    ndim = len(args[0].shape)
    dim = normalize_dim(arguments(op, args, kwargs).dim, ndim)
    return [[Shard(d)] * 3 for d in range(ndim) if d != dim]


@register_single_dim_strategy(overloads("histc"))
def histogram(op, args, kwargs):
    """Counts add up, if all ranks have the same bins."""
    return [[SUM, Along(d)] for d in range(len(args[0].shape))] if len(args) == 4 else []


# ------------------------------------------------------------------------- softmax and losses


@register_op_strategy(overloads("_softmax _log_softmax _safe_softmax"))
def softmax(schema, metas):
    a = arguments(schema.op, schema.args_schema, schema.kwargs_schema)
    spec = schema.args_spec[0]
    placements = replicate_reduction_dims(spec.placements, [normalize_dim(a.dim, spec.ndim)])
    return one_way(schema, placements, [placements])


@register_op_strategy(overloads("_softmax_backward_data _log_softmax_backward_data"))
def softmax_backward(schema, metas):
    a = arguments(schema.op, schema.args_schema, schema.kwargs_schema)
    grad, output = schema.args_spec
    followed = grad if grad.num_shards >= output.num_shards else output
    placements = replicate_reduction_dims(followed.placements, [normalize_dim(a.dim, grad.ndim)])
    return one_way(schema, placements, [placements, placements])


NONE, MEAN = 0, 1  # of `reduction`


@register_op_strategy(overloads("nll_loss_forward nll_loss2d_forward"))
def nll_loss_forward(schema, metas):
    a = arguments(schema.op, schema.args_schema, schema.kwargs_schema)
    given, target, total = _of_nll_loss(a), None, None
    target = shift_shard_dims_after_remove(given, _channel(a))
    inputs = [given, target] + ([(R,) * len(given)] if a.weight is not None else [])
    if a.reduction == NONE:
        return one_way(schema, [target, (R,) * len(given)], inputs)
    if a.reduction == MEAN and not is_tensor_evenly_shardable(a.target.shape, DTensorSpec(a.self.mesh, target)):
        raise ValueError(
            "The intermediate results of nll_loss cannot be evenly sharded,                         resulting in biased mean result."
        )
    loss = tuple((AVG if a.reduction == MEAN else SUM) if _is_shard_like(p) else p for p in target)
    total = tuple(SUM if _is_shard_like(p) else p for p in target)
    return one_way(schema, [loss, total], inputs)


def _channel(a):
    return 1 if a.self.ndim >= 2 else 0


def _of_nll_loss(a):
    return replicate_reduction_dims(a.self.placements, [_channel(a)])


@register_op_strategy(overloads("nll_loss_backward nll_loss2d_backward"))
def nll_loss_backward(schema, metas):
    a = arguments(schema.op, schema.args_schema, schema.kwargs_schema)
    given = _of_nll_loss(a)
    target, whole = shift_shard_dims_after_remove(given, _channel(a)), (R,) * len(given)
    grad = target if a.reduction == NONE else whole
    total = whole if a.reduction == MEAN else a.total_weight.placements
    weight = [whole] if a.weight is not None else []
    return one_way(schema, given, [grad, given, target, *weight, total])


@register_single_dim_strategy(
    overloads(
        "mse_loss huber_loss smooth_l1_loss soft_margin_loss mse_loss_backward huber_loss_backward smooth_l1_loss_backward "
        "soft_margin_loss_backward"
    )
)
def elementwise_loss(op, args, kwargs):
    """Of tensors of the same sizes. A mean divides by the number of all elements: it wants all of them. In PyTorch these are decomposed."""
    reduction, (*first, x, y) = arguments(op, args, kwargs).reduction, [t for t in args if isinstance(t, TensorMeta)]
    if reduction == MEAN or tuple(x.shape) != tuple(y.shape):
        return []
    backward, ways = op._opname.endswith("_backward"), []
    for d in range(len(x.shape)):
        result = Along(d) if backward or reduction == NONE else SUM
        grad = [Along(d) if reduction == NONE else R] * len(first)
        ways.append([result, *grad, Along(d), Along(d)])
    return ways


# ------------------------------------------------------------------------- norms


def _present(*tensors):
    return sum(isinstance(t, TensorMeta) for t in tensors)


@register_single_dim_strategy(overloads("native_layer_norm _fused_rms_norm"))
def layer_norm(op, args, kwargs):
    """Dimensions before those that are normalized."""
    a = arguments(op, args, kwargs)
    outputs = len(op._schema.returns)
    given, shared = a.input, _present(a.weight, getattr(a, "bias", None))
    ahead = len(given.shape) - len(a.normalized_shape)
    return [[Along(d)] * (outputs + 1) + [R] * shared for d in range(ahead)]


@register_single_dim_strategy(overloads("native_layer_norm_backward"))
def layer_norm_backward(op, args, kwargs):
    a = arguments(op, args, kwargs)
    shared = [SUM if isinstance(t, TensorMeta) else None for t in (a.weight, a.bias)]
    ahead = len(a.input.shape) - len(a.normalized_shape)
    return [[Along(d), *shared] + [Along(d)] * 4 + [R] * _present(a.weight, a.bias) for d in range(ahead)]


@register_single_dim_strategy(
    overloads(
        "native_batch_norm _native_batch_norm_legit _native_batch_norm_legit.no_stats _native_batch_norm_legit_no_training"
    )
)
def batch_norm(op, args, kwargs):
    """Channels: each has a mean and a variance of its own."""
    return [[Along(1), Along(0), Along(0), Along(1)] + [Along(0)] * (_present(*args) - 1)]


@register_single_dim_strategy(overloads("native_batch_norm_backward"))
def batch_norm_backward(op, args, kwargs):
    return [[Along(1), Along(0), Along(0), Along(1), Along(1)] + [Along(0)] * (_present(*args) - 2)]


def _local_group_norm(schema, outputs):
    """The call with this rank's numbers of samples, channels and elements of a channel."""
    spec = schema.args_spec[0]
    shape, _ = compute_local_shape_and_global_offset(spec.shape, spec.mesh, spec.placements, skip_offset=True)
    args = list(schema.args_schema)
    args[3:6] = shape[0], shape[1], math.prod(shape[2:])
    return OpSchema(schema.op, tuple(args), schema.kwargs_schema)


@register_single_dim_strategy(overloads("native_group_norm"), adjuster=_local_group_norm)
def group_norm(op, args, kwargs):
    return [[Along(0)] * 4 + [R] * (_present(*args) - 1)]


# ------------------------------------------------------------------------- images

AVG_POOLS = overloads("avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool1d _adaptive_avg_pool2d _adaptive_avg_pool3d")
MAX_POOLS = overloads(
    "adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d max_pool1d_with_indices max_pool2d_with_indices "
    "max_pool3d_with_indices fractional_max_pool2d fractional_max_pool3d"
)


@register_single_dim_strategy(AVG_POOLS + MAX_POOLS)
def pooling(op, args, kwargs):
    """Samples and channels; averages are linear."""
    count = len(op._schema.returns) + _present(*args)
    spatial = next(int(c) for c in op._opname if c.isdigit())
    channels = [[Shard(1)] * count] if len(args[0].shape) >= spatial + 2 else []
    return [[Shard(0)] * count, *([[p] * count for p in (SUM, AVG)] if op in AVG_POOLS else []), *channels]


UPSAMPLES = (
    "upsample_nearest1d upsample_nearest2d upsample_nearest3d _upsample_nearest_exact1d _upsample_nearest_exact2d "
    "_upsample_nearest_exact3d _upsample_bilinear2d_aa _upsample_bicubic2d_aa _upsample_lanczos2d_aa upsample_bicubic2d "
    "upsample_bilinear2d upsample_linear1d upsample_trilinear3d"
).split()


def upsample(op, args, kwargs):
    """Samples and channels; linear."""
    return [[Along(0)] * 2, [Along(1)] * 2, [SUM, SUM], [AVG, AVG]]


register_single_dim_strategy(overloads(" ".join(UPSAMPLES)))(upsample)
register_single_dim_strategy(overloads(" ".join(f"{name}_backward" for name in UPSAMPLES)), adjuster=shape_adjuster(2))(
    upsample
)


@register_single_dim_strategy(overloads("max_unpool2d max_unpool3d _adaptive_avg_pool2d_backward"))
def samples_and_channels(op, args, kwargs):
    return [[Along(0)] * 3, [Along(1)] * 3]


@register_single_dim_strategy(overloads("max_pool2d_with_indices_backward"))
def max_pool_backward(op, args, kwargs):
    channels = [[Along(1)] * 4] if len(args[0].shape) >= 4 else []
    return [[Along(0)] * 4, *channels, [SUM, SUM, R, R], [AVG, AVG, R, R]]


@register_single_dim_strategy(overloads("grid_sampler_2d grid_sampler_3d"))
def grid_sampler(op, args, kwargs):
    return [[Along(0)] * 3, [SUM, SUM, R], [AVG, AVG, R]]


@register_single_dim_strategy(overloads("grid_sampler_2d_backward grid_sampler_3d_backward"))
def grid_sampler_backward(op, args, kwargs):
    return [[Along(0)] * 5]


# ------------------------------------------------------------------------- linear algebra


@register_op_strategy(overloads("_linalg_svd linalg_qr _linalg_eigh diagonal_copy diag_embed diag diagonal tril triu"))
def on_every_rank(schema, metas):
    """No part of the result follows from a part of the input: every rank has all of both."""
    whole = (R,) * schema.args_spec[0].mesh.ndim
    return one_way(schema, [whole] * len(metas) if several(metas) else whole, [whole])


# linear in one argument: ways for sums that are not added up, as placements of outputs and inputs
LINEAR_IN_ONE = {
    "linalg_solve_triangular": [[SUM, R, SUM], [AVG, R, AVG]],
    "cholesky_solve": [[SUM, SUM, R]],
    "linalg_lu_solve": [[SUM, R, R, SUM]],
    "linalg_ldl_solve": [[SUM, R, R, SUM]],
    "ormqr": [[SUM, R, R, SUM]],
    "_linalg_solve_ex": [[SUM, R, R, R, R, SUM]],
}


@register_single_dim_strategy(
    overloads(
        "cholesky cholesky_inverse linalg_matrix_exp cholesky_solve linalg_householder_product linalg_solve_triangular "
        "linalg_ldl_solve linalg_lu_solve ormqr geqrf linalg_cholesky_ex linalg_eig linalg_inv_ex triangular_solve _linalg_det "
        "linalg_ldl_factor_ex linalg_lu linalg_lu_factor_ex lu_unpack _linalg_slogdet _linalg_solve_ex"
    )
)
def batches_of_matrices(op, args, kwargs):
    count = len(op._schema.returns) + _present(*args)
    batch = [[Along(d)] * count for d in range(len(args[0].shape) - 2)]
    return batch + LINEAR_IN_ONE.get(op._opname, [])


@register_single_dim_strategy(overloads("linalg_pinv.atol_rtol_tensor"))
def pinv(op, args, kwargs):
    tolerances = _present(kwargs.get("atol"), kwargs.get("rtol"))
    return [[Along(d)] * 2 + [R] * tolerances for d in range(len(args[0].shape) - 2)]


@register_single_dim_strategy(overloads("linalg_cross"))
def cross(op, args, kwargs):
    a = arguments(op, args, kwargs)
    ndim = len(args[0].shape)
    return [[Along(d)] * 3 for d in range(ndim) if d != a.dim % ndim]
