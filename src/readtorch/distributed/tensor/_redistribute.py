"""From one list of placements to another: which collectives, in which order.

In PyTorch: `torch/distributed/tensor/_redistribute.py`.

Note [ One dimension of the mesh at a time ]
A step changes the placement along one dimension of the mesh and leaves the others alone. Where two dimensions of the mesh cut the same
dimension of the tensor, the later one has cut what the earlier one left, so it has to be undone first. Hence two passes. From the last
dimension of the mesh to the first each goes to its target, or to `Replicate` where what stands before it will not be what its target
was cut from. Then, from the first to the last, what is still missing is cut. In each step the sizes that the ranks along that dimension
have together, the step's logical shape, say how long each shard is, and how much of it is padding while it travels.
"""

from typing import NamedTuple

import readtorch

from ._dtensor_spec import DTensorSpec, TensorMeta
from ._utils import assert_no_mixed_partial_types
from .placement_types import Placement, Replicate, _is_shard_like


class _TransformInfo(NamedTuple):
    """One step: see Note [ One dimension of the mesh at a time ]."""

    mesh_dim: int
    src_dst_placements: tuple[Placement, Placement]
    logical_shape: list


def _gen_transform_infos(src_spec, dst_spec):
    """The steps from one spec to another of the same mesh."""
    shapes = _logical_shapes(src_spec)
    now, wanted, infos = list(src_spec.placements), list(dst_spec.placements), []

    def step(dim, target):
        if now[dim] != target:
            infos.append(_TransformInfo(dim, (now[dim], target), shapes[dim]))
            now[dim] = target

    if src_spec.num_shards > 1:
        for dim in reversed(range(len(now))):
            step(dim, wanted[dim] if _cut_from_the_same(now[:dim], wanted[:dim], wanted[dim]) else Replicate())
    for dim, target in enumerate(wanted):
        step(dim, target)
    return infos


def _cut_from_the_same(now, wanted, target):
    """Whether the dimensions of the mesh before this one cut the target's dimension of the tensor as they shall."""
    if not _is_shard_like(target):
        return True
    cuts = [
        [(i, p) for i, p in enumerate(placements) if _is_shard_like(p) and p.dim == target.dim]
        for placements in (now, wanted)
    ]
    return cuts[0] == cuts[1]


def _logical_shapes(spec):
    """For each dimension of the mesh, the sizes of what the ranks along it have together."""
    shapes, coordinate = [list(spec.shape)], spec.mesh.get_coordinate()
    for dim, placement in enumerate(spec.placements[:-1]):
        shape = list(shapes[-1])
        if _is_shard_like(placement):
            size, n = shape[placement.dim], spec.mesh.size(dim)
            shape[placement.dim], _ = placement._local_shard_size_and_offset(size, n, coordinate[dim])
        shapes.append(shape)
    return shapes


def redistribute_local_tensor(local_tensor, current_spec, target_spec, *, async_op=False, is_explicit=False):
    """What this rank has of a tensor, laid out as `target_spec` says. async_op: nothing is to be waited for here."""
    if current_spec.mesh != target_spec.mesh:
        raise NotImplementedError("Cross device mesh comm not supported yet!")
    assert_no_mixed_partial_types(current_spec.placements)
    assert_no_mixed_partial_types(target_spec.placements)
    mesh = current_spec.mesh
    if not mesh._is_current_rank_part_of_mesh():
        return local_tensor
    for info in _gen_transform_infos(current_spec, target_spec):
        if mesh.size(info.mesh_dim) > 1:
            local_tensor = _transform(local_tensor, mesh, info)
    return local_tensor


def _transform(tensor, mesh, info):
    """Take one step."""
    dim, (current, target), shape = info
    if target.is_replicate():
        if current.is_partial():
            return current._reduce_value(tensor, mesh, dim)
        return current._to_replicate_tensor(tensor, mesh, dim, shape)
    if target.is_partial():
        return _to_partial(tensor, mesh, dim, current, target)
    if current.is_replicate():
        return target._replicate_to_shard(tensor, mesh, dim)
    if target.is_shard() and current.is_partial():
        return current._reduce_shard_value(tensor, mesh, dim, target)
    if target.is_shard() and current.is_shard():
        return current._to_new_shard_dim(tensor, mesh, dim, shape, target.dim)
    if current.is_partial():
        whole = current._reduce_value(tensor, mesh, dim)
    else:  # a _StridedShard on one of the two sides
        whole = current._to_replicate_tensor(tensor, mesh, dim, shape)
    return target._replicate_to_shard(whole, mesh, dim)


def _to_partial(tensor, mesh, dim, current, target):
    if current.is_replicate():
        return target._partition_value(tensor, mesh, dim)
    if _is_shard_like(current):
        raise RuntimeError(f"redistribute from {current} to {target} not supported yet")
    raise AssertionError(f"Redistribution from one partial type ({current}) to another ({target}) is unsupported.")


def _redistribute_backward(grad_output, previous_spec, *, out_dtype, op_dtype, async_op=False):
    """(what this rank has of a gradient, laid out as its input was, the spec of it)

    Where the input was `Partial` the gradient stays, or becomes, `Replicate`: each rank's summand has the gradient of the sum.
    """
    local, spec = grad_output._local_tensor, grad_output._spec
    if op_dtype != local.dtype:
        local = local.to(op_dtype)
        spec = spec.shallow_copy_with_tensor_meta(TensorMeta(grad_output.shape, grad_output.stride(), op_dtype))
    placements = tuple(
        Replicate() if not now.is_partial() and before.is_partial() else before
        for now, before in zip(spec.placements, previous_spec.placements, strict=True)
    )
    target = DTensorSpec(previous_spec.mesh, placements, spec.tensor_meta)
    result = redistribute_local_tensor(local, spec, target, async_op=async_op).to(out_dtype)
    meta = TensorMeta(grad_output.shape, grad_output.stride(), result.dtype)
    return result, DTensorSpec(previous_spec.mesh, placements, meta)


class Redistribute(readtorch.autograd.Function):
    """`DTensor.redistribute`. Its backward redistributes the gradient the other way."""

    @staticmethod
    def forward(ctx, input, device_mesh, placements, async_op, dtypes):
        """dtypes: "op_dtype" and "out_dtype" of the collectives and of the result, "backward_options" with the gradient's."""
        ctx.async_op, ctx.backward_options = async_op, dtypes["backward_options"]
        local, spec = input._local_tensor, input._spec
        if dtypes["op_dtype"] != local.dtype:
            local = local.to(dtypes["op_dtype"])
            spec = spec.shallow_copy_with_tensor_meta(TensorMeta(input.shape, input.stride(), local.dtype))
        ctx.current_spec, target = spec, spec
        if spec.placements != placements or spec.mesh != device_mesh:
            target = DTensorSpec(device_mesh, placements, spec.tensor_meta)
            local = redistribute_local_tensor(local, spec, target, async_op=async_op, is_explicit=True)
        if local.dtype != dtypes["out_dtype"]:
            local = local.to(dtypes["out_dtype"])
            meta = TensorMeta(input.shape, input.stride(), local.dtype)
            target = target.shallow_copy_with_tensor_meta(meta)
        return type(input)(local, target, requires_grad=input.requires_grad)

    @staticmethod
    def backward(ctx, grad_output):
        options = ctx.backward_options
        grad = NestedRedistribute.apply(
            grad_output, ctx.current_spec, ctx.async_op, options["op_dtype"], options["out_dtype"]
        )
        return grad, None, None, None, None


class NestedRedistribute(readtorch.autograd.Function):
    """The backward of `Redistribute`, which can be differentiated in its turn."""

    @staticmethod
    def forward(ctx, grad_output, previous_spec, async_op, op_dtype, out_dtype):
        ctx.async_op, ctx.op_dtype, ctx.dtype = async_op, op_dtype, grad_output.dtype
        local, ctx.current_spec = _redistribute_backward(
            grad_output, previous_spec, out_dtype=out_dtype, op_dtype=op_dtype, async_op=async_op
        )
        return type(grad_output)(local, ctx.current_spec, requires_grad=grad_output.requires_grad)

    @staticmethod
    def backward(ctx, grad2_output):
        grad = NestedRedistribute.apply(grad2_output, ctx.current_spec, ctx.async_op, ctx.op_dtype, ctx.dtype)
        return grad, None, None, None, None
