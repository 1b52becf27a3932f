"""Several ranks that train together: process groups and collectives.

In PyTorch: `torch/distributed/__init__.py`, `torch/distributed/distributed_c10d.py`. Explained in the chapter
"Process groups, DDP and SyncBatchNorm".
"""
from readtorch.csrc.distributed.buckets import GradBucket
from readtorch.csrc.distributed.errors import (DistBackendError, DistError, DistNetworkError, DistStoreError,
                                               QueueEmptyError)
from readtorch.csrc.distributed.network import Network
from readtorch.csrc.distributed.process_group import ProcessGroup
from readtorch.csrc.distributed.reducer import Reducer
from readtorch.csrc.distributed.store import FileStore, HashStore, PrefixStore, Store
from readtorch.csrc.distributed.tcp_store import TCPStore
from readtorch.csrc.distributed.timeline import Timeline, hidden_share
from readtorch.csrc.distributed.timeline import record as record_timeline
from readtorch.csrc.distributed.types import ReduceOp
from readtorch.csrc.distributed.work import Work
from readtorch.distributed.rendezvous import register_rendezvous_handler, rendezvous
from readtorch.distributed.distributed_c10d import *  # noqa: F403
from readtorch.distributed.collectives import *  # noqa: F403
from readtorch.distributed.point_to_point import *  # noqa: F403
from readtorch.distributed.object_collectives import *  # noqa: F403
from readtorch.distributed.thread_ranks import run_threads
from readtorch.distributed import collectives, distributed_c10d, object_collectives, point_to_point

# In PyTorch all of them stand in distributed_c10d, and programs look for them there, too.
for _part in (collectives, point_to_point, object_collectives):
    vars(distributed_c10d).update((_name, getattr(_part, _name)) for _name in _part.__all__)
distributed_c10d.ReduceOp, distributed_c10d.Work = ReduceOp, Work


def is_available():
    """Whether this build can run process groups at all: always."""
    return True
