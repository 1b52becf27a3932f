"""Operators that look at the same elements under other sizes. In PyTorch: `torch/distributed/tensor/_ops/_view_ops.py`.

Note [ Groups of dimensions ]
Every one of these takes the dimensions of its input apart into groups, each of which becomes a group of dimensions of the result: a view
of (2, 3, 4) as (6, 2, 2) makes one dimension of the first two, and two of the last. What is cut within a group stays cut:

    one → one        along the dimension that it has become
    several → one    the first one: the result's first elements are still together. A later one: each rank has a part of each row, which
                     is a `_StridedShard`
    one → several    along the first one, if its size can be divided; a `_StridedShard` along the one that was cut when it was made
    several → several  along the first one, if its size can be divided

Views refuse what would need messages (`strict_view`); `reshape` and the others make the input whole first.
"""

import math
from typing import NamedTuple

import readtorch
from readtorch.distributed.tensor._op_schema import OpSchema
from readtorch.distributed.tensor.placement_types import Partial, Replicate, Shard, _is_shard_like, _StridedShard

from .single_dim_strategy import Along, register_single_dim_strategy
from .utils import arguments, normalize_dim, normalize_dims, one_way, overloads, register_op_strategy, shape_adjuster

aten = readtorch.ops.aten


class Group(NamedTuple):
    """Dimensions of the input that become dimensions of the result, with their sizes. See Note [ Groups of dimensions ]."""

    inputs: tuple
    outputs: tuple
    sizes: tuple


def kept(pairs):
    """Groups of one dimension each: (of the input, of the result)."""
    return [Group((i,), (o,), ()) for i, o in pairs]


def view_groups(before, after):
    """The groups of a view of sizes `before` as sizes `after`; a dimension of size 1 belongs to none."""
    after = _without_minus_one(math.prod(before), after)
    groups, i, o = [], 0, 0
    while i < len(before) or o < len(after):
        if i < len(before) and before[i] == 1 and not (o < len(after) and after[o] == 1):
            i += 1
            continue
        if o < len(after) and after[o] == 1 and not (i < len(before) and before[i] == 1):
            o += 1
            continue
        inputs, outputs = [i], [o]
        held, made = before[i], after[o]
        i, o = i + 1, o + 1
        while held != made:
            if o >= len(after) or i < len(before) and held < made:
                inputs.append(i)
                held, i = held * before[i], i + 1
            else:
                outputs.append(o)
                made, o = made * after[o], o + 1
        groups.append(Group(tuple(inputs), tuple(outputs), tuple(after[j] for j in outputs)))
    return groups


def _without_minus_one(count, sizes):
    if -1 not in sizes:
        return tuple(sizes)
    known = math.prod(size for size in sizes if size != -1)
    return tuple(count // known if size == -1 else size for size in sizes)


# ------------------------------------------------------------------------- from placements to placements


class _ViewShardingPropagator:
    """One walk over the dimensions of the mesh, from the first to the last.

    sizes: of the input, as far as it has been cut; taken: dimensions of the result along which something has been cut already, with
    how often.
    """

    def __init__(self, placements, shape, groups, mesh_sizes, strict):
        self.placements, self.shape, self.mesh_sizes, self.strict = placements, shape, mesh_sizes, strict
        self.group_of = {dim: group for group in groups for dim in group.inputs}
        self.sizes, self.taken = list(shape), {}

    def propagate(self):
        """(placements that the input must have, placements of the result)"""
        before, after = [], []
        for mesh_dim, placement in enumerate(self.placements):
            result = placement
            if _is_shard_like(placement):
                result = self.rewrite(placement, mesh_dim)
                if result is not None:
                    self.sizes[placement.dim] //= self.mesh_sizes[mesh_dim]
                    self.taken[result.dim] = self.taken.get(result.dim, 1) * self.mesh_sizes[mesh_dim]
            before.append(Replicate() if result is None else placement)
            after.append(Replicate() if result is None else result)
        return tuple(before), tuple(after)

    def rewrite(self, p, mesh_dim):
        """Where a cut is found in the result; None: it has to be undone."""
        group = self.group_of.get(p.dim)
        if group is None:
            return self.refuse(
                f"This operation would remove or reshape sharded dimension {p.dim}, which requires redistribution. "
                "Please redistribute the input first."
            )
        several = len(group.inputs) > 1, len(group.outputs) > 1
        if several == (False, False):
            return self.kept(p, group.outputs[0])
        if several == (True, False):
            return self.flattened(p, mesh_dim, group)
        if several == (False, True):
            return self.split(p, mesh_dim, group)
        return self.first_of_many(p, mesh_dim, group)

    def refuse(self, why):
        if self.strict:
            raise RuntimeError(why)

    def kept(self, p, dim):
        return _StridedShard(dim, split_factor=p.split_factor) if isinstance(p, _StridedShard) else Shard(dim)

    def flattened(self, p, mesh_dim, group):
        position, n = group.inputs.index(p.dim), self.mesh_sizes[mesh_dim]
        last = position == len(group.inputs) - 1
        if not last and (self.shape[p.dim] % n or self.sizes[p.dim] % n):
            return self.refuse(_uneven("flatten", "dimension", p.dim, self.shape[p.dim], mesh_dim, n, "tensor"))
        if position == 0:
            return self.kept(p, group.outputs[0])
        if not self.strict:
            return None
        rows = math.prod(self.sizes[dim] for dim in group.inputs[:position])
        return _StridedShard(group.outputs[0], split_factor=rows * getattr(p, "split_factor", 1))

    def split(self, p, mesh_dim, group):
        return (
            self.split_strided(p, mesh_dim, group)
            if isinstance(p, _StridedShard)
            else self.split_first(mesh_dim, group)
        )

    def split_first(self, mesh_dim, group):
        n, size, dim = self.mesh_sizes[mesh_dim], group.sizes[0], group.outputs[0]
        if size % (n * self.taken.get(dim, 1)):
            return self.refuse(_uneven("unflatten", "output dimension", 0, size, mesh_dim, n, "tensor"))
        return Shard(dim)

    def split_strided(self, p, mesh_dim, group):
        """Along the dimension before which lie as many rows as there are parts; or within the one whose rows are smaller than the parts.

        Rows are counted as earlier dimensions of the mesh have left them: a cut along this dimension, or a later one, leaves all of
        them. in PyTorch: every earlier cut counts, so a dimension that two dimensions of the mesh have cut is not found again.
        """
        n = self.mesh_sizes[mesh_dim]
        left = [size // self.taken.get(dim, 1) for dim, size in zip(group.outputs, group.sizes, strict=True)]
        for j, dim in enumerate(group.outputs):
            if math.prod(left[:j]) != p.split_factor or left[j] == 1:
                continue
            if left[j] % n and j < len(group.outputs) - 1:
                return self.refuse(_uneven("unflatten", "output dimension", j, group.sizes[j], mesh_dim, n, "tensor"))
            return Shard(dim)
        for j, dim in enumerate(group.outputs):
            parts, rest = divmod(p.split_factor, math.prod(left[:j]))
            if rest == 0 and left[j] % (n * parts) == 0:
                return _StridedShard(dim, split_factor=parts)
        return self.refuse(
            f"Cannot unflatten tensor with _StridedShard placement: split_factor={p.split_factor} does not match any output "
            "dimension. This typically means the _StridedShard placement was constructed with a split_factor that is incompatible "
            "with the unflatten shape. Please redistribute the tensor before this operation."
        )

    def first_of_many(self, p, mesh_dim, group):
        if p.dim != group.inputs[0]:
            return None
        if isinstance(p, _StridedShard):
            return self.split_strided(p, mesh_dim, group)
        n = self.mesh_sizes[mesh_dim]
        if self.sizes[p.dim] % n:
            return self.refuse(_uneven("flatten", "dimension", p.dim, self.shape[p.dim], mesh_dim, n, "tensor"))
        return self.split_first(mesh_dim, group)


def _uneven(verb, what, dim, size, mesh_dim, n, whole):
    return (
        f"Cannot {verb} unevenly sharded tensor: {what} {dim} (size {size}) is not evenly divisible by mesh dimension "
        f"{mesh_dim} (size {n}). Please redistribute the {whole} before this operation."
    )


def propagate_shape_and_sharding(placements, shape, groups, mesh_sizes, strict_view=False):
    """(placements that the input must have, placements of the result). strict_view: raises RuntimeError if the input's are others."""
    return _ViewShardingPropagator(placements, shape, groups, mesh_sizes, strict_view).propagate()


# ------------------------------------------------------------------------- operators


def register_op_strategy_map(names, groups_of, *, strict_view=False, adjuster=None):
    """Register operators by their groups: a function of (sizes of the input, arguments by name)."""

    @register_op_strategy(overloads(names), adjuster)
    def rule(schema, metas):
        a, spec = arguments(schema.op, schema.args_schema, schema.kwargs_schema), schema.args_spec[0]
        groups = groups_of(tuple(spec.shape), a)
        before, after = propagate_shape_and_sharding(
            spec.placements, tuple(spec.shape), groups, spec.mesh.shape, strict_view
        )
        return one_way(schema, after, [before])


def _squeeze_groups(shape, a):
    dims = _squeezed(shape, getattr(a, "dim", None))
    return kept((dim, i) for i, dim in enumerate(d for d in range(len(shape)) if d not in dims))


def _squeezed(shape, dim):
    """The dimensions that are left out: of those that are named, those of size 1."""
    asked = range(len(shape)) if dim is None else normalize_dims(dim, len(shape))
    return tuple(d for d in asked if d < len(shape) and shape[d] == 1)


def _squeeze_what_the_whole_squeezes(schema, output):
    """A dimension of a shard may be 1 where the whole tensor's is not: name those that are meant."""
    a = arguments(schema.op, schema.args_schema, schema.kwargs_schema)
    spec = schema.args_spec[0]
    packet = aten.squeeze_ if schema.op._opname.endswith("_") else aten.squeeze
    dims = list(_squeezed(spec.shape, getattr(a, "dim", None)))
    return OpSchema(packet.dims, (schema.args_schema[0], dims), {})


def _expand_groups(shape, a):
    ahead = len(a.size) - len(shape)
    return kept((i, i + ahead) for i, n in enumerate(shape) if n == a.size[i + ahead] or a.size[i + ahead] == -1)


def _repeat_groups(shape, a):
    ahead = len(a.repeats) - len(shape)
    return kept((i, i + ahead) for i in range(len(shape)) if a.repeats[i + ahead] == 1)


def _transpose_groups(shape, a):
    first, second = normalize_dim(a.dim0, len(shape)), normalize_dim(a.dim1, len(shape))
    swapped = {first: second, second: first}
    return kept((i, swapped.get(i, i)) for i in range(len(shape)))


def _unsqueeze_groups(shape, a):
    new = normalize_dim(a.dim, len(shape) + 1)
    return kept((i, i + (i >= new)) for i in range(len(shape)))


def _view_as_real_groups(shape, a):
    last = len(shape) - 1
    return [*kept((i, i) for i in range(last)), Group((last,), (last, last + 1), (shape[-1], 2))]


_SIZES = shape_adjuster(1)

register_op_strategy_map(
    "view _unsafe_view", lambda shape, a: view_groups(shape, a.size), strict_view=True, adjuster=_SIZES
)
register_op_strategy_map("view_copy", lambda shape, a: view_groups(shape, a.size), adjuster=_SIZES)
register_op_strategy_map("reshape", lambda shape, a: view_groups(shape, a.shape), adjuster=_SIZES)
register_op_strategy_map("expand expand_copy", _expand_groups, adjuster=_SIZES)
register_op_strategy_map("repeat", _repeat_groups)
register_op_strategy_map("transpose.int", _transpose_groups)
register_op_strategy_map("unsqueeze", _unsqueeze_groups)
register_op_strategy_map("view_as_real", _view_as_real_groups)
register_op_strategy_map(
    "permute", lambda shape, a: kept((dim, i) for i, dim in enumerate(normalize_dims(list(a.dims), len(shape))))
)
register_op_strategy_map(
    "squeeze squeeze.dim squeeze.dims squeeze_ squeeze_.dim squeeze_.dims",
    _squeeze_groups,
    strict_view=True,
    adjuster=_squeeze_what_the_whole_squeezes,
)


@register_single_dim_strategy(overloads("view_as_complex"))
def view_as_complex(op, args, kwargs):
    """The last dimension, of real and imaginary parts, is none of the result's."""
    same = [[Along(d)] * 2 for d in range(len(args[0].shape) - 1)]
    return [*same, [Partial("sum")] * 2, [Partial("avg")] * 2]
