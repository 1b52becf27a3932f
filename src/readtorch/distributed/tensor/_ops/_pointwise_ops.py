"""Operators that compute each element of the result of the elements in the same place: any dimension can be cut.

In PyTorch: `torch/distributed/tensor/_ops/_pointwise_ops.py`. Which operators these are is a tag of each, `Tag.pointwise`; here stand
those that can do more: work on sums that are not added up yet, say, because they are linear.
"""

import readtorch
from readtorch import broadcast_shapes
from readtorch.distributed.tensor._dtensor_spec import TensorMeta
from readtorch.distributed.tensor.placement_types import Partial, Replicate

from .single_dim_strategy import Along, register_single_dim_strategy, single_dim_strategy
from .utils import infer_broadcast_dims_map, propagator, variants

SUM, AVG, MAX, MIN, R = Partial("sum"), Partial("avg"), Partial("max"), Partial("min"), Replicate()

LINEAR = [[SUM, SUM], [AVG, AVG]]
KEEPING_ORDER = [[MAX, MAX], [MIN, MIN]]
REVERSING_ORDER = [[MIN, MAX], [MAX, MIN]]
KEEPING_ALL = [[p, p] for p in (SUM, AVG, MAX, MIN)]
MONOTONIC = [[MAX, MAX, R], [MAX, R, MAX], [MIN, MIN, R], [MIN, R, MIN]]

# Each line: ways along one dimension of the mesh, as placements of the result and of the operands, and the operators that have them. Only
# ways with as many placements as a call has tensors count: `mul.Tensor` with a number is unary.
PARTIAL_RULES = [
    # a replicated summand would be added once a rank: it may be added to averages and to extrema only
    (
        [[SUM, SUM, SUM], [AVG, AVG, AVG], [AVG, AVG, R], [MAX, MAX, R], [MIN, MIN, R], [AVG, R, AVG]],
        "add.Tensor sub.Tensor",
    ),
    ([*LINEAR, [SUM, SUM, R], [AVG, AVG, R], [SUM, R, SUM], [AVG, R, AVG]], "mul.Tensor"),
    ([*LINEAR, [SUM, SUM, R], [AVG, AVG, R]], "div.Tensor"),
    (LINEAR, "div.Scalar mul.Scalar"),
    (LINEAR + REVERSING_ORDER, "neg.default"),
    # on their whole domain: log and asin, which are not defined everywhere, are none of these
    (
        KEEPING_ORDER,
        "asinh.default atan.default ceil.default deg2rad.default erf.default exp.default exp2.default expm1.default "
        "floor.default rad2deg.default relu.default round.decimals round.default sgn.default sigmoid.default sign.default "
        "sinh.default tanh.default trunc.default nan_to_num.default hardshrink.default special_modified_bessel_i1.default "
        "threshold.default",
    ),
    (REVERSING_ORDER, "erfc.default special_erfcx.default"),
    ([[SUM, SUM, R], [AVG, AVG, R]], "special_xlog1py.default special_xlog1py.other_scalar"),
    (KEEPING_ALL, "positive.default"),
    ([[p, p, p] for p in (SUM, AVG, MAX, MIN)], "copy_.default"),
    (MONOTONIC, "logaddexp.default logaddexp2.default"),
    ([*MONOTONIC, [MAX, MAX, MAX]], "clamp_min.Tensor fmax.default maximum.default"),
    ([*MONOTONIC, [MIN, MIN, MIN]], "clamp_max.Tensor fmin.default minimum.default"),
]

# pointwise, but without the tag
UNTAGGED = (
    "_conj.default float_power.Scalar float_power.Tensor_Scalar float_power.Tensor_Tensor exponential_.default where.self "
    "masked_fill_.Scalar fill.Scalar isclose.default hardswish.default elu_backward.default hardshrink_backward.default "
    "hardsigmoid_backward.default hardswish_backward.default hardtanh_backward.default leaky_relu_backward.default "
    "mish_backward.default softplus_backward.default softshrink_backward.default"
)


def pointwise_ways(op, args, kwargs, partial_rules=()):
    """Cut any dimension of the result, and the same of each operand that has it; an operand that is broadcast along it stays whole."""
    operands = [arg for arg in args if isinstance(arg, TensorMeta)]
    shape = broadcast_shapes(*(operand.shape for operand in operands))
    outputs = sum("Tensor" in str(r.type) for r in op._schema.returns)
    ways = []
    for dim in range(len(shape)):
        way = [Along(dim)] * outputs
        for operand in operands:
            own = infer_broadcast_dims_map(shape, operand.shape)[dim]
            way.append(Along(own) if own >= 0 else Replicate())
        ways.append(way)
    ways += [rule for rule in partial_rules if len(rule) == outputs + len(operands)]
    named = [name for name, value in kwargs.items() if isinstance(value, TensorMeta)]
    return [way + [way[0] if name == "out" else Replicate() for name in named] for way in ways]


def _register(ops, partial_rules):
    @register_single_dim_strategy(ops, allow_uneven_sharding=True)
    def ways(op, args, kwargs):
        return pointwise_ways(op, args, kwargs, partial_rules)


for rules, names in PARTIAL_RULES:
    _register([op for name in names.split() for op in variants(name)], rules)
_register([op for name in UNTAGGED.split() for op in variants(name)], ())

# every other operator that has the tag
propagator.register_tag(readtorch.Tag.pointwise, single_dim_strategy(pointwise_ways, allow_uneven_sharding=True))
