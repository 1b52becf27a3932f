"""Sizes of shards and of what they are shards of. In PyTorch: `torch/distributed/tensor/_utils.py`."""

from readtorch import Size

from .placement_types import Partial, Replicate, _is_shard_like


def compute_local_shape_and_global_offset(global_shape, mesh, placements, skip_offset=False):
    """(the sizes of what this rank has, where that begins in the whole tensor); skip_offset: the second is ()."""
    if not mesh._is_current_rank_part_of_mesh():
        return (0,), ()
    coordinate = mesh.get_coordinate()
    shape, owned = list(global_shape), {}  # dimension of the tensor -> the elements along it that this rank has
    for dim, placement in enumerate(placements):
        if not _is_shard_like(placement):
            continue
        if placement.dim >= len(shape):
            raise AssertionError(f"Sharding dim {placement.dim} greater than tensor ndim {len(shape)}")
        before = owned.get(placement.dim, range(global_shape[placement.dim]))
        mine = placement._ranges(len(before), mesh.size(dim))[coordinate[dim]]
        owned[placement.dim] = [before[i] for piece in mine for i in piece]
        shape[placement.dim] = len(owned[placement.dim])
    if skip_offset:
        return tuple(shape), ()
    first = [0] * len(shape)
    for dim, elements in owned.items():
        first[dim] = elements[0] if elements else global_shape[dim]
    return tuple(shape), tuple(first)


def compute_global_tensor_info(tensor, mesh, placements):
    """(sizes, strides) of a whole tensor, if every rank has as much of it as this one."""
    shape, stride = list(tensor.shape), list(tensor.stride())
    for i, placement in enumerate(placements):
        if not _is_shard_like(placement):
            _check_kind(placement)
            continue
        dim, n = placement.dim, mesh.size(i)
        _check_shard_dim(placement, i, len(shape))
        shape[dim] *= n
        stride = [s * n if j != dim and s >= stride[dim] else s for j, s in enumerate(stride)]
    return shape, stride


def _check_kind(placement):
    if not isinstance(placement, Replicate | Partial):
        raise RuntimeError(f"placement type {type(placement)} not supported!")


def _check_shard_dim(placement, number, ndim):
    if placement.dim < 0:
        raise AssertionError(
            f"Shard placements should have negative dims normalized in the user-facing APIs: {placement}"
        )
    if placement.dim >= ndim:
        raise AssertionError(
            f"Sharding dim {placement.dim} greater than tensor ndim {ndim} for placement number {number}."
        )


def compute_local_stride(global_stride, local_shape):
    """The strides of a shard without gaps whose dimensions lie in memory in the same order as those of the whole tensor."""
    order = sorted(range(len(global_stride)), key=lambda dim: global_stride[dim], reverse=True)
    strides, step = [0] * len(order), 1
    for dim in reversed(order):
        strides[dim] = step
        step *= local_shape[dim]
    return tuple(strides)


def normalize_to_torch_size(size):
    """`3`, `(3,)`, `((3,),)` … as a Size."""
    if isinstance(size, int):
        return Size([size])
    if len(size) == 1 and not isinstance(size[0], int):
        size = size[0]
    return Size(size)


def assert_no_mixed_partial_types(placements):
    """Raises ValueError for partial sums beside partial maxima, say: which comes first would matter. A sum and an average may stand together."""
    ops = {placement.reduce_op for placement in placements if isinstance(placement, Partial)}
    if len(ops) > 1 and ops != {"sum", "avg"}:
        raise ValueError(
            f"Mixed Partial reduce types are not supported in the same placement list. Found reduce ops: {ops}. "
            "Please ensure all Partial placements use the same reduce operation."
        )
