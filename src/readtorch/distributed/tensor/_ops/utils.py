"""What rules have in common. In PyTorch: `torch/distributed/tensor/_ops/utils.py`."""

import itertools
from types import SimpleNamespace

import readtorch
from readtorch.distributed.tensor._api import DTensor
from readtorch.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta
from readtorch.distributed.tensor._op_schema import OpSchema, OpSpec
from readtorch.distributed.tensor._sharding_prop import costs
from readtorch.distributed.tensor._utils import compute_local_shape_and_global_offset, compute_local_stride
from readtorch.distributed.tensor.placement_types import Replicate, Shard, _is_shard_like, _StridedShard

propagator = DTensor._op_dispatcher.sharding_propagator


def register_op_strategy(op, adjuster=None):
    """Register a rule: a function of an OpSchema and of the sizes, strides and dtypes of the outputs, which returns a list of OpSpec.

    op: an OpOverload or a list of them. adjuster: changes the arguments of the call on local tensors (see ShardingPropagator).
    """

    def register(rule):
        for overload in op if isinstance(op, list) else [op]:
            propagator.register_op_strategy(overload, rule, adjuster)
        return rule

    return register


def variants(name):
    """The operator of that name, `add.Tensor` say, and those that write its result: `add_.Tensor` and `add.out`."""
    packet, overload = name.split(".")
    outs = ["out"] if overload in ("default", "Tensor") else [f"{overload}_out"]
    names = [(packet, overload), (f"{packet}_", overload), *((packet, out) for out in outs)]
    found = [getattr(getattr(readtorch.ops.aten, packet), each) for packet, each in names if _is_there(packet, each)]
    if not _is_there(packet, overload):
        raise AttributeError(f"there is no operator aten.{name}")
    return found


def _is_there(packet, overload):
    packet = getattr(readtorch.ops.aten, packet, None)
    return packet is not None and overload in packet.overloads()


def ops_with_rules():
    """The operators that have a rule, in the order of their names."""
    aten = readtorch.ops.aten
    packets = [getattr(aten, name) for name in dir(aten)]
    ops = [getattr(p, o) for p in packets if hasattr(p, "overloads") for o in p.overloads()]
    return sorted((op for op in ops if propagator.rule_of(op) is not None), key=str)


def overloads(names):
    """The operators of these names: "mm.default addmm.default"."""
    return [getattr(getattr(readtorch.ops.aten, packet), overload) for packet, overload in map(_split, names.split())]


def _split(name):
    packet, _, overload = name.partition(".")
    return packet, overload or "default"


def arguments(op, args, kwargs):
    """A call's arguments by name, with their defaults."""
    named = {}
    for i, argument in enumerate(op._schema.arguments):
        if i < len(args) and not argument.kwarg_only:
            named[argument.name] = args[i]
        else:
            named[argument.name] = kwargs.get(argument.name, argument.default_value)
    return SimpleNamespace(**named)


def several(metas):
    """Whether an operator has several outputs (a TensorMeta is a tuple, too)."""
    return isinstance(metas, list | tuple) and not isinstance(metas, TensorMeta)


def shape_adjuster(shape_argument, stride_argument=None):
    """What makes the sizes among a call's arguments, which are those of the whole result, this rank's. Arguments: their positions."""

    def adjust(schema, output):
        if not output.is_sharded():
            return schema
        args = list(schema.args_schema)
        shape, _ = compute_local_shape_and_global_offset(output.shape, output.mesh, output.placements, skip_offset=True)
        args[shape_argument] = list(shape)
        if stride_argument is not None:
            args[stride_argument] = list(compute_local_stride(output.stride, shape))
        return OpSchema(schema.op, tuple(args), schema.kwargs_schema)

    return adjust


def moved(placement, dim):
    """The same kind of cut along another dimension."""
    if isinstance(placement, _StridedShard):
        return _StridedShard(dim, split_factor=placement.split_factor)
    return Shard(dim)


def unshard_tensor_dim(placements, *dims):
    """The placements without cuts along these dimensions."""
    return tuple(Replicate() if _is_shard_like(p) and p.dim in dims else p for p in placements)


def shift_shard_dims_after_insert(placements, insert_dim=0):
    """The placements of a tensor that has got another dimension."""
    return tuple(moved(p, p.dim + 1) if _is_shard_like(p) and p.dim >= insert_dim else p for p in placements)


def shift_shard_dims_after_remove(placements, remove_dim=0):
    """The placements of a tensor that has lost a dimension."""
    return tuple(moved(p, p.dim - 1) if _is_shard_like(p) and p.dim > remove_dim else p for p in placements)


def one_way(schema, output, inputs):
    """The only way to run an operator. output, inputs: placements; output may be a list of them, of several outputs."""
    mesh = schema.get_mesh_from_args()
    given = (*schema.args_spec, *schema.kwargs_spec)
    specs = [DTensorSpec(mesh, p, own.tensor_meta) for p, own in zip(inputs, given, strict=True)]
    several = isinstance(output, list)
    outputs = tuple(DTensorSpec(mesh, p) for p in output) if several else DTensorSpec(mesh, output)
    return [OpSpec(outputs, specs, costs(schema, specs))]


def normalize_dim(dim, ndim):
    return dim if dim >= 0 else dim + ndim


def normalize_dims(dims, ndim):
    """One dimension or several, as a tuple of numbers that are not negative."""
    return tuple(normalize_dim(dim, ndim) for dim in ((dims,) if isinstance(dims, int) else dims))


def is_tensor_shardable(shape, spec):
    """Whether every rank would get something."""
    return _cuts_fit(shape, spec, lambda size, parts: size >= parts)


def is_tensor_evenly_shardable(shape, spec):
    """Whether every rank would get as much as the others."""
    return _cuts_fit(shape, spec, lambda size, parts: size % parts == 0)


def _cuts_fit(shape, spec, fits):
    """Whether each dimension that is cut exists, and `fits(its size, into how many parts)` after every cut."""
    shards = [1] * len(shape)
    for i, placement in enumerate(spec.placements):
        if not _is_shard_like(placement):
            continue
        dim = placement.dim
        if dim >= len(shape):
            return False
        shards[dim] *= spec.mesh.size(i)
        parts = placement.split_factor if isinstance(placement, _StridedShard) else 1
        if not fits(shape[dim], shards[dim] * parts):
            return False
    return True


def has_empty_shards(spec):
    """Whether a rank has nothing of the tensor."""
    sizes = [{size} for size in spec.shape]
    for i, placement in enumerate(spec.placements):
        if _is_shard_like(placement):
            n = spec.mesh.size(i)
            parts = (placement._sizes(size, n) for size in sizes[placement.dim])
            sizes[placement.dim] = {size for each in parts for size in each}
    return any(0 in each for each in sizes) and 0 not in spec.shape


def is_tensor_dim_sharded(spec, dim):
    return any(_is_shard_like(placement) and placement.dim == dim for placement in spec.placements)


def infer_broadcast_dims_map(common_shape, input_shape):
    """For each dimension of the broadcast shape, the dimension of an input that it is, or -1."""
    ahead = len(common_shape) - len(input_shape)
    return [
        i - ahead if i >= ahead and input_shape[i - ahead] == common_shape[i] else -1 for i in range(len(common_shape))
    ]


def expand_to_full_mesh_op_strategy(
    schema, single_mesh_dim_strategies, metas, *, num_outputs=1, allow_uneven_sharding=False, is_valid=None
):
    """Ways over the whole mesh, of ways along one dimension of it: all combinations that make sense.

    A way along one dimension is a list of placements, first of the outputs, then of the inputs. What is left out: sums beside maxima,
    inputs of which a rank would get nothing (unless they are cut so already and allow_uneven_sharding), and for operators that write to an
    argument whatever would move it. is_valid: leaves out more, called with (specs of the inputs, specs of the outputs).
    """
    mesh, given = schema.get_mesh_from_args(), (*schema.args_spec, *schema.kwargs_spec)
    found, held_by_writing = [], False
    for ways in itertools.product(single_mesh_dim_strategies, repeat=mesh.ndim):
        placed = list(zip(*ways, strict=True))
        if _has_mixed_partials(placed):
            continue
        outputs = [_output(mesh, placements, metas, i) for i, placements in enumerate(placed[:num_outputs])]
        inputs = [
            DTensorSpec(mesh, placements, own.tensor_meta)
            for placements, own in zip(placed[num_outputs:], given, strict=True)
        ]
        if _would_move_what_is_written(schema, inputs, outputs):
            held_by_writing = True
            continue
        if not all(_can_be_cut(own, spec, allow_uneven_sharding) for own, spec in zip(given, inputs, strict=True)):
            continue
        if not _every_rank_can_look_up(inputs):
            continue
        outputs = outputs[0] if num_outputs == 1 else tuple(outputs) or None
        if is_valid is None or is_valid(inputs, outputs):
            found.append(OpSpec(outputs, inputs, costs(schema, inputs)))
    if not found and held_by_writing:
        raise RuntimeError(
            f"{schema.op}: in-place operations that require placement changes are not supported. The input has placement "
            f"{given[0].placements}, but no valid strategy preserves this placement. "
            "Please use the out-of-place version of this operation instead."
        )
    return found


def _output(mesh, placements, metas, number):
    if placements[0] is None:
        return None
    meta = metas if isinstance(metas, TensorMeta) or metas is None else metas[number]
    return None if meta is None and metas is not None else DTensorSpec(mesh, placements, meta)


def _has_mixed_partials(placed):
    for placements in placed:
        kinds = {(type(p), p.reduce_op) for p in placements if p is not None and p.is_partial()}
        if len(kinds) > 1 and not (len({kind for kind, _ in kinds}) == 1 and {op for _, op in kinds} == {"sum", "avg"}):
            return True
    return False


def _would_move_what_is_written(schema, inputs, outputs):
    if schema.is_inplace_op():
        own = schema.args_spec[0].placements
        return inputs[0].placements != own or bool(outputs) and outputs[0] is not None and outputs[0].placements != own
    if schema.is_out_variant_op():
        names = [argument.name for argument in schema.op._schema.arguments if argument.is_out]
        outs = [schema.kwargs_schema.get(name) for name in names]
        return any(
            isinstance(out, DTensorSpec) and (spec is None or spec.placements != out.placements)
            for out, spec in zip(outs, outputs, strict=True)
        )
    return False


def _every_rank_can_look_up(inputs):
    """A rank without rows cannot. And a mask is of what is cut before it: neither a second mask nor another cut may come behind it (in
    PyTorch such lookups find the wrong rows).
    """
    for spec in inputs:
        masks = [i for i, p in enumerate(spec.placements) if p.needs_rows]
        if masks and any(p.needs_rows or _is_shard_like(p) for p in spec.placements[masks[0] + 1 :]):
            return False
        if masks and any(map(has_empty_shards, inputs)):
            return False
    return True


def _can_be_cut(own, wanted, allow_uneven_sharding):
    return is_tensor_shardable(own.shape, wanted) or allow_uneven_sharding and own.placements == wanted.placements


def replicated(placements):
    """The placements that every rank has all of it under."""
    return tuple(Replicate() for _ in placements)
