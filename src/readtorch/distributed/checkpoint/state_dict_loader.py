"""Loading, step by step. In PyTorch: `torch/distributed/checkpoint/state_dict_loader.py`."""

import warnings

from readtorch import distributed as dist

from ._storage_utils import _storage_setup
from .default_planner import DefaultLoadPlanner, _EmptyStateDictLoadPlanner
from .stateful import Stateful
from .utils import _DistWrapper

__all__ = ["load", "load_state_dict"]


def load(state_dict, *, checkpoint_id=None, storage_reader=None, planner=None, process_group=None, no_dist=False):
    """Fill `state_dict` from the checkpoint in the folder `checkpoint_id`. All ranks call it.

    Tensors are filled in place: of a DTensor each rank reads what its box needs, whichever boxes were saved. What is no
    tensor is replaced, and an object with a `state_dict` is given the loaded one.
    """
    no_dist = no_dist or not dist.is_initialized()
    if no_dist:
        warnings.warn(
            "torch.distributed is disabled, unavailable or uninitialized, assuming the intent is to load in a single "
            "process.",
            stacklevel=2,
        )
    storage_reader = _storage_setup(storage_reader, checkpoint_id, reader=True)
    keys = sorted(state_dict)  # the same order on all ranks
    states = {key: obj.state_dict() if isinstance(obj := state_dict[key], Stateful) else obj for key in keys}
    _load_state_dict(states, storage_reader, process_group, 0, no_dist, planner)
    for key in keys:
        if isinstance(state_dict[key], Stateful):
            state_dict[key].load_state_dict(states[key])
        else:
            state_dict[key] = states[key]


def load_state_dict(state_dict, storage_reader, process_group=None, coordinator_rank=0, no_dist=False, planner=None):
    """Deprecated: use `load`."""
    warnings.warn(
        "`load_state_dict` is deprecated and will be removed in future versions. Please use `load` instead.",
        FutureWarning,
        stacklevel=2,
    )
    storage_reader.reset()
    _load_state_dict(state_dict, storage_reader, process_group, coordinator_rank, no_dist, planner)


def _load_state_dict(state_dict, storage_reader, process_group, coordinator_rank, no_dist, planner):
    ranks = _DistWrapper(process_group, not no_dist, coordinator_rank)
    planner = DefaultLoadPlanner() if planner is None else planner

    def local_step():
        metadata = storage_reader.read_metadata()
        planner.set_up_planner(state_dict, metadata, ranks.is_coordinator)
        storage_reader.set_up_storage_reader(metadata, ranks.is_coordinator, rank=ranks.rank, use_collectives=True)
        return storage_reader.prepare_local_plan(planner.create_local_plan())

    def global_step(all_plans):
        return storage_reader.prepare_global_plan(planner.create_global_plan(all_plans))

    plan = ranks.reduce_scatter("plan", local_step, global_step)
    ranks.all_gather("read", lambda: storage_reader.read_data(planner.finish_plan(plan), planner).wait())


def _load_state_dict_from_keys(keys=None, *, checkpoint_id=None, storage_reader=None, process_group=None):
    """The checkpoint, or of it the entries under `keys`, as a state_dict in this process."""
    storage_reader = _storage_setup(storage_reader, checkpoint_id, reader=True)
    keys = {keys} if isinstance(keys, str) else keys
    state_dict = {}
    planner = _EmptyStateDictLoadPlanner(keys=keys)
    _load_state_dict(state_dict, storage_reader, process_group, 0, not dist.is_initialized(), planner)
    return state_dict
