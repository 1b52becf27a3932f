"""The planner that is used unless another one is given. In PyTorch: `torch/distributed/checkpoint/default_planner.py`."""

import dataclasses
import io
import itertools
import math
from collections import ChainMap

import readtorch

from ._dedup_save_plans import dedup_save_plans
from ._nested_dict import flatten_state_dict
from ._traverse import set_element
from .metadata import BytesStorageMetadata, Metadata, TensorStorageMetadata
from .planner import LoadPlan, LoadPlanner, SavePlan, SavePlanner, WriteItemType
from .planner_helpers import _create_read_items, _create_write_items, _init_state_dict
from .resharding import _check_shard_metadata_pair_overlap
from .utils import find_state_dict_object, narrow_tensor_by_index

__all__ = [
    "DefaultLoadPlanner",
    "DefaultSavePlanner",
    "create_default_global_load_plan",
    "create_default_global_save_plan",
    "create_default_local_load_plan",
    "create_default_local_save_plan",
]


class DefaultSavePlanner(SavePlanner):
    """Flattens the state_dict; each rank writes its boxes of DTensors; what all have, one rank writes.

    in PyTorch: with enable_plan_caching it also keeps plans that do not change; here that is left out.
    """

    def __init__(self, flatten_state_dict=True, flatten_sharded_tensors=True, dedup_save_to_lowest_rank=False):
        self.flatten_state_dict = flatten_state_dict
        self.flatten_sharded_tensors = flatten_sharded_tensors
        self.dedup_save_to_lowest_rank = dedup_save_to_lowest_rank
        self.mappings = {}

    def set_up_planner(self, state_dict, storage_meta=None, is_coordinator=False):
        if self.flatten_state_dict:
            state_dict, self.mappings = flatten_state_dict(state_dict)
        self.state_dict = state_dict
        self.is_coordinator = is_coordinator

    def create_local_plan(self):
        self.plan = create_default_local_save_plan(self.state_dict, self.is_coordinator)
        if self.flatten_state_dict:
            self.plan = dataclasses.replace(self.plan, planner_data=self.mappings)
        return self.plan

    def create_global_plan(self, all_plans):
        all_plans = dedup_save_plans(all_plans, self.dedup_save_to_lowest_rank)
        self.global_plan, metadata = create_default_global_save_plan(all_plans)
        if self.flatten_state_dict:
            merged = dict(ChainMap(*[plan.planner_data for plan in self.global_plan]))
            metadata = dataclasses.replace(metadata, planner_data=merged)
        self.metadata = metadata
        if errors := "; ".join(_validate_global_plan(self.global_plan, metadata)):
            shown = errors if len(errors) <= 500 else errors[:500] + "... (truncated)"
            raise ValueError(f"Failed to validate global plan: {shown}")
        return self.global_plan, metadata

    def finish_plan(self, new_plan):
        self.plan = new_plan
        return new_plan

    def resolve_data(self, write_item):
        return self.transform_object(write_item, self.lookup_object(write_item.index))

    def lookup_object(self, index):
        """The entry of the state_dict; a planner may put something else in its place."""
        return find_state_dict_object(self.state_dict, index)

    def transform_object(self, write_item, object):
        """What is written of it: a tensor as it is, anything else as `readtorch.save` writes it."""
        if write_item.type != WriteItemType.BYTE_IO:
            return object
        data = io.BytesIO()
        readtorch.save(object, data)
        return data


class DefaultLoadPlanner(LoadPlanner):
    """Fills the tensors of the state_dict, each rank its boxes, from whichever boxes were saved.

    allow_partial_load: entries that the checkpoint lacks are left as they are instead of a RuntimeError.
    """

    def __init__(self, flatten_state_dict=True, flatten_sharded_tensors=True, allow_partial_load=False):
        self.flatten_state_dict = flatten_state_dict
        self.flatten_sharded_tensors = flatten_sharded_tensors
        self.allow_partial_load = allow_partial_load
        self.original_state_dict = {}
        self.mappings = {}

    def set_up_planner(self, state_dict, metadata=None, is_coordinator=False):
        _init_state_dict(state_dict)
        self.original_state_dict = state_dict
        if self.flatten_state_dict:
            state_dict, self.mappings = flatten_state_dict(state_dict)
        self.state_dict = state_dict
        self.metadata = metadata
        self.is_coordinator = is_coordinator

    def create_local_plan(self):
        return create_default_local_load_plan(self.state_dict, self.metadata, not self.allow_partial_load)

    def create_global_plan(self, global_plan):
        return create_default_global_load_plan(global_plan)

    def finish_plan(self, new_plan):
        return new_plan

    def load_bytes(self, read_item, value):
        """in PyTorch: with weights_only=False, so that the file may run anything. Here classes of your own must be allowed
        by `readtorch.serialization.add_safe_globals`.
        """
        fqn = read_item.dest_index.fqn
        loaded = readtorch.load(value, weights_only=True)
        if self.flatten_state_dict:
            set_element(self.original_state_dict, self.mappings[fqn], loaded)
        else:
            self.state_dict[fqn] = loaded

    def resolve_tensor(self, read_item):
        return self.transform_tensor(read_item, self.lookup_tensor(read_item.dest_index))

    def commit_tensor(self, read_item, tensor):
        """Nothing is left to do: it was filled in place."""

    def lookup_tensor(self, index):
        """The tensor to fill; a planner may put another in its place."""
        return find_state_dict_object(self.state_dict, index)

    def transform_tensor(self, read_item, tensor):
        """The part of it that this item fills."""
        return narrow_tensor_by_index(tensor, read_item.dest_offsets, read_item.lengths)


class _EmptyStateDictLoadPlanner(DefaultLoadPlanner):
    """Makes the state_dict from what the checkpoint says; `keys` limits it to some, or to all below some."""

    def __init__(self, keys=None, *args, **kwargs):
        self.keys = keys
        super().__init__(*args, **kwargs)

    def _should_include_key(self, key, metadata):
        if self.keys is None or key in self.keys:
            return True
        path = map(str, (metadata.planner_data or {}).get(key, ()))
        return any(prefix in self.keys for prefix in itertools.accumulate(path, "{}.{}".format))

    def set_up_planner(self, state_dict, metadata=None, is_coordinator=False):
        if state_dict:
            raise AssertionError("not state_dict")
        if metadata is None:
            raise AssertionError("metadata is not None")
        for key, value in metadata.state_dict_metadata.items():
            if not self._should_include_key(key, metadata):
                continue
            if isinstance(value, TensorStorageMetadata):
                value = readtorch.empty(value.size, dtype=value.properties.dtype)
            if metadata.planner_data is not None and key in metadata.planner_data:
                set_element(state_dict, metadata.planner_data[key], value)
            else:
                state_dict[key] = value
        super().set_up_planner(state_dict, metadata, is_coordinator)


def _takes_part(obj):
    """Whether this rank is in the mesh of a DTensor; of other things each rank has its own."""
    mesh = getattr(obj, "device_mesh", None)
    return mesh is None or mesh.get_coordinate() is not None


def create_default_local_load_plan(state_dict, metadata, strict=True):
    """Read items for every entry of `state_dict`: as many for one box as there are saved boxes that it overlaps."""
    requests = []
    for fqn, obj in state_dict.items():
        if fqn not in metadata.state_dict_metadata:
            if strict:
                raise RuntimeError(f"Missing key in checkpoint state_dict: {fqn}.")
            continue
        md = metadata.state_dict_metadata[fqn]
        sized = isinstance(md, TensorStorageMetadata) and getattr(obj, "size", None) is not None
        if sized and md.size != obj.size():
            raise ValueError(f"Size mismatch between saved {md.size} and current: {obj.size()} for {fqn}")
        if _takes_part(obj):
            requests += _create_read_items(fqn, md, obj)
    return LoadPlan(requests)


def create_default_global_load_plan(all_plans):
    """The plans as they are: ranks read without regard to one another."""
    return all_plans


def create_default_local_save_plan(state_dict, is_coordinator):
    """Write items for every entry; those that other ranks have as well are sorted out by the coordinator."""
    items = [_create_write_items(fqn, obj) for fqn, obj in state_dict.items() if _takes_part(obj)]
    return SavePlan(list(itertools.chain(*items)))


def create_default_global_save_plan(all_plans, rewrite_index_hints=True):
    """(the plans with hints at the place of each box in the list, the Metadata that follows from all of them)"""
    md, new_plans = {}, []
    for plan in all_plans:
        new_items = []
        for item in plan.items:
            fqn = item.index.fqn
            if item.type != WriteItemType.SHARD and fqn in md:
                raise AssertionError("item.index.fqn not in md")
            if item.type == WriteItemType.BYTE_IO:
                md[fqn] = BytesStorageMetadata()
            else:
                data = item.tensor_data
                tensor_md = md.setdefault(fqn, TensorStorageMetadata(data.properties, data.size, []))
                if rewrite_index_hints:
                    index = dataclasses.replace(item.index, index=len(tensor_md.chunks))
                    item = dataclasses.replace(item, index=index)
                tensor_md.chunks.append(data.chunk)
            new_items.append(item)
        new_plans.append(dataclasses.replace(plan, items=new_items))
    return new_plans, Metadata(md)


def _check_box_bounds(size, box):
    """Whether the box lies within a tensor of that size."""
    return all(
        start >= 0 and length >= 0 and start + length <= end for start, length, end in zip(box.offsets, box.sizes, size)
    )


def _validate_global_plan(global_plan, metadata):
    """What is wrong with the boxes: out of bounds, two over one another, or a gap."""
    errors = []
    for key, value in metadata.state_dict_metadata.items():
        if isinstance(value, BytesStorageMetadata) or len(value.size) == 0:
            continue
        errors += [
            f"key:{key} has out of bounds chunk: tensor-size:{value.size} chunk: {chunk}"
            for chunk in value.chunks
            if not _check_box_bounds(value.size, chunk)
        ]
        errors += [
            f"key:{key} has overlapping chunks: {one} {other}"
            for one, other in itertools.combinations(value.chunks, 2)
            if _check_shard_metadata_pair_overlap(one, other)
        ]
        covered, whole = sum(math.prod(chunk.sizes) for chunk in value.chunks), math.prod(value.size)
        if len(global_plan) > 1 and covered != whole:
            errors.append(f"key:{key} invalid fill tensor-volume: {whole} chunks-volume: {covered}")
    return errors
