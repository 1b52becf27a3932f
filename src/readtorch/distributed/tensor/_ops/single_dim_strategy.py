"""Rules that speak of one dimension of the mesh. In PyTorch: `torch/distributed/tensor/_ops/single_dim_strategy.py`.

Note [ One dimension is enough ]
Along one dimension of a mesh a rank does the same whatever the other dimensions are. So a rule is a list of ways, each a list of
placements: of the outputs, then of the tensors among the arguments. For `mm`, say,

    [Partial(), Along(1), Along(0)]     columns of the left one times rows of the right one: a sum
    [Along(0), Along(0), Replicate()]   rows of the left one: rows of the result
    [Along(1), Replicate(), Along(1)]   columns of the right one: columns of the result

That all inputs are replicated, and so the outputs, is a way of every operator and need not be said. `Along(dim)` stands for whichever
kinds of shards the inputs have, a `Shard` or a `_StridedShard`; without any there is no such way, except that an operator without
shards among its inputs never needs one.
"""

from readtorch.distributed.tensor.placement_types import Placement, Replicate, Shard, _StridedShard

from .utils import expand_to_full_mesh_op_strategy, propagator, several


class Along:
    """In a way: cut along this dimension, as the inputs are cut. In PyTorch: `_ShardingPlaceholder`."""

    def __init__(self, dim):
        self.dim = dim

    def __repr__(self):
        return f"Along({self.dim})"


def register_single_dim_strategy(op, *, allow_uneven_sharding=False, adjuster=None):
    """Register a rule along one dimension: a function of (operator, args, kwargs), with a TensorMeta in place of each tensor.

    op: an OpOverload or a list of them. allow_uneven_sharding: inputs of which some ranks have nothing may stay as they are.
    adjuster: changes the arguments of the call on local tensors (see ShardingPropagator).
    """

    def register(rule):
        strategies = single_dim_strategy(rule, allow_uneven_sharding)
        for overload in op if isinstance(op, list) else [op]:
            propagator.register_op_strategy(overload, strategies, adjuster)
        return rule

    return register


def single_dim_strategy(rule, allow_uneven_sharding=False):
    """The rule over the whole mesh."""

    def strategies(schema, metas):
        return _over_the_mesh(rule, schema, metas, allow_uneven_sharding)

    return strategies


def _over_the_mesh(rule, schema, metas, allow_uneven_sharding):
    specs = (*schema.args_spec, *schema.kwargs_spec)
    for spec in specs:
        if spec.mesh != specs[0].mesh:
            raise ValueError(
                f"Cannot run {schema.op} on inputs with different meshes: got {specs[0].mesh} and {spec.mesh}"
            )
    ways = rule(schema.op, schema.args_meta, schema.kwargs_meta)
    outputs = len(ways[0]) - len(specs) if ways else sum("Tensor" in str(r.type) for r in schema.op._schema.returns)
    ways = _with_real_shards(_with_replication(ways, outputs, len(specs), metas), specs)
    return expand_to_full_mesh_op_strategy(
        schema, ways, metas, num_outputs=outputs, allow_uneven_sharding=allow_uneven_sharding
    )


def _with_replication(ways, outputs, inputs, metas):
    """The ways, and first of all that with everything replicated. Outputs that are not computed have no placement."""
    if any(all(p is None or isinstance(p, Replicate) for p in way) for way in ways):
        return ways
    missing = [several(metas) and i < len(metas) and metas[i] is None for i in range(outputs)]
    return [[None if m else Replicate() for m in missing] + [Replicate()] * inputs, *ways]


def _with_real_shards(ways, specs):
    """The ways, with each kind of shard that an input has in place of `Along`."""
    kinds = []
    for placement in (p for spec in specs for p in spec.placements):
        kind = None
        if isinstance(placement, Shard):
            kind = ()
        elif isinstance(placement, _StridedShard):
            kind = (placement.split_factor,)
        if kind is not None and kind not in kinds:
            kinds.append(kind)
    made = []
    for way in ways:
        if not any(isinstance(p, Along) for p in way):
            made.append(way)
        else:
            made += [[_real(p, kind) for p in way] for kind in kinds]
    return made


def _real(placement, kind):
    if placement is None or isinstance(placement, Placement):
        return placement
    return _StridedShard(placement.dim, split_factor=kind[0]) if kind else Shard(placement.dim)
