"""Collectives along one dimension of a mesh, for shards whose sizes may differ by a padding.

In PyTorch: `torch/distributed/tensor/_collective_utils.py`.
"""

import readtorch
from readtorch.distributed import _functional_collectives as funcol
from readtorch.distributed import distributed_c10d as c10d


def pad_tensor(tensor, pad_dim, pad_size):
    """`tensor` with `pad_size` zeros behind it along a dimension."""
    if pad_size == 0:
        return tensor
    shape = list(tensor.shape)
    shape[pad_dim] = pad_size
    return readtorch.cat([tensor, tensor.new_zeros(shape)], dim=pad_dim)


def unpad_tensor(tensor, pad_dim, pad_size):
    """`tensor` without the last `pad_size` along a dimension."""
    return tensor if pad_size == 0 else tensor.narrow(pad_dim, 0, tensor.size(pad_dim) - pad_size)


def fill_empty_tensor_to_shards(shards, shard_dim, num_empty_tensors):
    """The shards, and empty ones for the ranks behind them."""
    shape = list(shards[0].shape)
    shape[shard_dim] = 0
    return [*shards, *(shards[0].new_zeros(shape) for _ in range(num_empty_tensors))]


def mesh_scatter(output, scatter_list, mesh, mesh_dim=0, *, group_src=0):
    """Give rank i along a dimension of the mesh the i-th of the tensors that rank `group_src` has."""
    group = mesh.get_group(mesh_dim)
    parts = scatter_list if group.rank() == group_src else None
    c10d.scatter(output, parts, group=group, group_src=group_src)


def mesh_broadcast(tensor, mesh, mesh_dim=0, *, group_src=0):
    """Give all ranks along a dimension of the mesh the tensor of rank `group_src`, in place."""
    c10d.broadcast(tensor, group=mesh.get_group(mesh_dim), group_src=group_src)


def check_tensor_meta(local_tensor, check_shape_stride=False):
    """Raises ValueError unless all ranks have a tensor of this dtype, and with check_shape_stride of these sizes and strides."""
    mine = {"dtype": str(local_tensor.dtype), "requires_grad": local_tensor.requires_grad}
    if check_shape_stride:
        mine |= {"shape": tuple(local_tensor.shape), "stride": local_tensor.stride()}
    metas = [None] * c10d.get_world_size()
    c10d.all_gather_object(metas, mine)
    if any(meta != metas[0] for meta in metas):
        raise ValueError("Inconsistent tensor metadata (including shape and stride) across ranks.")


def shard_dim_alltoall(tensor, gather_dim, shard_dim, mesh, mesh_dim):
    """From a shard along `gather_dim` to one along `shard_dim`, where both are divisible by the number of ranks."""
    group = mesh.get_group(mesh_dim)
    parts = readtorch.stack(tensor.chunk(group.size(), dim=shard_dim))
    received = funcol.all_to_all_single(parts, None, None, group)
    return readtorch.cat(received.unbind(), dim=gather_dim)
