"""Several ranks that train together: process groups and collectives.

In PyTorch: `torch/distributed/__init__.py`, `torch/distributed/distributed_c10d.py`. Explained in the chapter
"Process groups, DDP and SyncBatchNorm".
"""

from readtorch.csrc.distributed.exception import (
    DistBackendError,
    DistError,
    DistNetworkError,
    DistStoreError,
    QueueEmptyError,
)
from readtorch.csrc.distributed.network import Network
from readtorch.csrc.distributed.process_group import ProcessGroup
from readtorch.csrc.distributed.reducer import GradBucket, Reducer
from readtorch.csrc.distributed.store import FileStore, HashStore, PrefixStore, Store
from readtorch.csrc.distributed.tcp_store import TCPStore
from readtorch.csrc.distributed.timeline import Timeline, hidden_share
from readtorch.csrc.distributed.timeline import record as record_timeline

from .device_mesh import DeviceMesh, init_device_mesh
from .distributed_c10d import *  # noqa: F403
from .rendezvous import register_rendezvous_handler, rendezvous
from .thread_ranks import run_threads


def is_available():
    """Whether this build can run process groups at all: always."""
    return True
