"""Write items and read items of tensors and other objects. In PyTorch: `torch/distributed/checkpoint/planner_helpers.py`."""

import readtorch
from readtorch import Tensor
from readtorch.distributed.tensor import DTensor
from readtorch.distributed.tensor._utils import compute_local_shape_and_global_offset

from .metadata import BytesStorageMetadata, ChunkStorageMetadata, MetadataIndex, TensorProperties
from .planner import LoadItemType, ReadItem, TensorWriteData, WriteItem, WriteItemType
from .resharding import _check_shard_metadata_pair_overlap, _shards_get_overlap_region_wrt_saved_tensor

__all__ = ["create_read_items_for_chunk_list"]

# --------------------------------------------------------------------------------------------------- to write


def _create_write_items(fqn, obj):
    """What this rank would write of an entry: of a DTensor the box that it holds. A class of one's own may say it itself."""
    if hasattr(obj, "__create_write_items__"):
        return obj.__create_write_items__(fqn, obj)
    if isinstance(obj, DTensor):
        return [_create_write_items_for_dtensor(fqn, obj)]
    if isinstance(obj, Tensor):
        return [_create_write_item_for_tensor(fqn, obj)]
    return [WriteItem(MetadataIndex(fqn), WriteItemType.BYTE_IO)]


def _create_write_item_for_tensor(fqn, tensor):
    chunk = _create_chunk_from_tensor(tensor)
    data = TensorWriteData(chunk, TensorProperties.create_from_tensor(tensor), tensor.size())
    return WriteItem(MetadataIndex(fqn, chunk.offsets), WriteItemType.TENSOR, tensor_data=data)


def _create_write_items_for_dtensor(fqn, tensor):
    chunk = _create_chunk_from_dtensor(tensor)
    data = TensorWriteData(chunk, TensorProperties.create_from_tensor(tensor.to_local()), tensor.size())
    return WriteItem(MetadataIndex(fqn, chunk.offsets), WriteItemType.SHARD, tensor_data=data)


# ----------------------------------------------------------------------------------------------------- boxes


def _create_chunk_from_tensor(tensor):
    return ChunkStorageMetadata(readtorch.Size([0] * tensor.dim()), tensor.size())


def _create_chunk_from_dtensor(tensor):
    if any(placement.is_partial() for placement in tensor.placements):
        raise ValueError("Any checkpointing related operations are not supported for DTensor with partial placements!")
    sizes, offsets = compute_local_shape_and_global_offset(tensor.shape, tensor.device_mesh, tensor.placements)
    return ChunkStorageMetadata(readtorch.Size(offsets), readtorch.Size(sizes))


def _create_chunk_list(tensor):
    """The boxes of a tensor that this rank holds."""
    if hasattr(tensor, "__create_chunk_list__"):
        return tensor.__create_chunk_list__()
    if isinstance(tensor, DTensor):
        return [_create_chunk_from_dtensor(tensor)]
    if isinstance(tensor, Tensor):
        return [_create_chunk_from_tensor(tensor)]
    raise ValueError(f"Unsupported Type, expecting one of [Tensor, DTensor, ShardedTensor] ,but got {type(tensor)}")


# --------------------------------------------------------------------------------------------------- to read


def _create_read_items(fqn, md, obj):
    """What this rank must read for an entry, given what was saved (`md`)."""
    if isinstance(md, BytesStorageMetadata):
        return [_create_read_item_for_byteio(fqn)]
    try:
        local_chunks = _create_chunk_list(obj)
    except ValueError as error:
        raise ValueError(
            f"Invalid checkpoint metadata for {fqn}, expected BytesStorageMetadata but found {type(md)}"
        ) from error
    return create_read_items_for_chunk_list(fqn, md, local_chunks)


def _create_read_item_for_byteio(fqn):
    nothing = readtorch.Size((0,))
    index = MetadataIndex(fqn)
    return ReadItem(LoadItemType.BYTE_IO, index, nothing, index, nothing, nothing)


def create_read_items_for_chunk_list(fqn, checkpoint_md, local_chunks):
    """The parts of saved boxes that fill the local ones: resharding is no more than this.

    in PyTorch: sorted by the longest dimension, so that of many boxes only neighbours are compared.
    """
    return [
        _read_item_of_overlap(fqn, saved_place, saved, place, chunk)
        for place, chunk in enumerate(local_chunks)
        for saved_place, saved in enumerate(checkpoint_md.chunks)
        if _check_shard_metadata_pair_overlap(chunk, saved)
    ]


def _read_item_of_overlap(fqn, saved_place, saved, place, chunk):
    _, storage_offsets, dest_offsets, lengths = (
        zip(*overlap) if (overlap := _shards_get_overlap_region_wrt_saved_tensor(saved, chunk)) else [()] * 4
    )
    return ReadItem(
        LoadItemType.TENSOR,
        MetadataIndex(fqn, chunk.offsets, place),
        readtorch.Size(dest_offsets),
        MetadataIndex(fqn, saved.offsets, saved_place),
        readtorch.Size(storage_offsets),
        readtorch.Size(lengths),
    )


# --------------------------------------------------------------------------------------------- tensors of meta


def _init_state_dict(obj):
    """Replace tensors of the meta device by empty ones of the CPU, in nested dicts and lists, in place."""
    if isinstance(obj, Tensor):
        return _off_meta(obj) if obj.device.type == "meta" else obj
    if isinstance(obj, dict):
        for key, value in obj.items():
            obj[key] = _init_state_dict(value)
        return obj
    if isinstance(obj, (list, tuple)):
        items = [_init_state_dict(value) for value in obj]
        return tuple(items) if isinstance(obj, tuple) else items
    return obj


def _off_meta(tensor):
    if not isinstance(tensor, DTensor):
        return readtorch.empty_like(tensor, device="cpu")
    local = readtorch.empty_like(tensor.to_local(), device="cpu")
    return type(tensor).from_local(
        local, tensor.device_mesh, tensor.placements, shape=tensor.size(), stride=tensor.stride()
    )
