"""Python's `multiprocessing`, taught to send tensors without copying them.

In PyTorch: `torch/multiprocessing/__init__.py`. Explained in the chapter "Multiprocessing
and TensorBoard".

    reductions.py    what stands in a message for a tensor, and for its storage
    spawn.py         start some processes, wait for them, report the first that failed

in PyTorch: `queue.py` and `pool.py` as well, whose classes cannot be made any more: they call those of Python
without the context that these have asked for since 3.4. `Queue` and `Pool` of a context know of tensors by
the reductions.
"""

import multiprocessing
from multiprocessing import *  # noqa: F403

from readtorch.csrc import storage_sharing
from ._process import _get_thread_name, _prctl_pr_set_pdeathsig, _set_thread_name
from .reductions import init_reductions
from .spawn import (
    ENV_VAR_PARALLEL_START,
    ProcessContext,
    ProcessExitedException,
    ProcessRaisedException,
    SpawnContext,
    spawn,
    start_processes,
)

__all__ = ["set_sharing_strategy", "get_sharing_strategy", "get_all_sharing_strategies", *multiprocessing.__all__]


def set_sharing_strategy(new_strategy):
    """How CPU tensors are shared from now on, one of `get_all_sharing_strategies()`. AssertionError for
    others.

    See Note [ Who frees shared memory ].
    """
    storage_sharing.set_strategy(new_strategy)


def get_sharing_strategy():
    """How CPU tensors are shared: "file_descriptor" or "file_system"."""
    return storage_sharing.strategy


def get_all_sharing_strategies():
    """The strategies that this system has."""
    return storage_sharing.strategies


init_reductions()
