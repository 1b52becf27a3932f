"""Saving, step by step. In PyTorch: `torch/distributed/checkpoint/state_dict_saver.py`."""

import warnings

from readtorch import distributed as dist

from ._storage_utils import _storage_setup
from .default_planner import DefaultSavePlanner
from .stateful import Stateful
from .utils import _DistWrapper

__all__ = ["save", "save_state_dict"]


def save(
    state_dict,
    *,
    checkpoint_id=None,
    storage_writer=None,
    planner=None,
    process_group=None,
    no_dist=False,
    use_collectives=True,
):
    """Write `state_dict`, of which each rank has a part, to the folder `checkpoint_id`. All ranks call it. Returns the
    Metadata.

    Of DTensors each rank writes its own box; what all ranks have, one of them. Objects with a `state_dict` are saved by
    it. no_dist: this process alone. use_collectives=False: each rank a checkpoint of its own in the folder.
    """
    no_dist = no_dist or not dist.is_initialized()
    if no_dist:
        warnings.warn(
            "torch.distributed is disabled, unavailable or uninitialized, assuming the intent is to save in a single "
            "process.",
            stacklevel=2,
        )
    storage_writer = _storage_setup(storage_writer, checkpoint_id)
    state_dict = {key: obj.state_dict() if isinstance(obj, Stateful) else obj for key, obj in state_dict.items()}
    return _save_state_dict(
        state_dict, storage_writer, process_group, 0, no_dist, planner, use_collectives=use_collectives
    )


def save_state_dict(state_dict, storage_writer, process_group=None, coordinator_rank=0, no_dist=False, planner=None):
    """Deprecated: use `save`."""
    warnings.warn(
        "`save_state_dict` is deprecated and will be removed in future versions.Please use `save` instead.",
        FutureWarning,
        stacklevel=2,
    )
    storage_writer.reset()
    return _save_state_dict(state_dict, storage_writer, process_group, coordinator_rank, no_dist, planner)


def _save_state_dict(
    state_dict, storage_writer, process_group, coordinator_rank, no_dist, planner, use_collectives=True
):
    ranks = _DistWrapper(process_group, not no_dist, coordinator_rank)
    planner = DefaultSavePlanner() if planner is None else planner
    global_metadata = None

    def local_step():
        planner.set_up_planner(state_dict, storage_writer.storage_meta(), ranks.is_coordinator)
        storage_writer.set_up_storage_writer(ranks.is_coordinator, rank=ranks.rank, use_collectives=use_collectives)
        return storage_writer.prepare_local_plan(planner.create_local_plan())

    def global_step(all_plans):
        nonlocal global_metadata
        all_plans, global_metadata = planner.create_global_plan(all_plans)
        return storage_writer.prepare_global_plan(all_plans)

    def write_data(plan):
        return storage_writer.write_data(planner.finish_plan(plan), planner).wait()

    def finish(all_results):
        storage_writer.finish(global_metadata, all_results)
        return global_metadata

    if use_collectives:
        plan = ranks.reduce_scatter("plan", local_step, global_step)
        return ranks.all_reduce("write", lambda: write_data(plan), finish)
    metadata = finish([write_data(global_step([local_step()])[0])])
    ranks.barrier()
    return metadata
