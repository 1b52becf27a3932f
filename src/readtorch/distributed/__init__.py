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
from readtorch.csrc.distributed.comm import broadcast_coalesced as _broadcast_coalesced
from readtorch.csrc.distributed.network import Network
from readtorch.csrc.distributed.process_group import ProcessGroup
from readtorch.csrc.distributed.process_group_gloo import ProcessGroupGloo
from readtorch.csrc.distributed.reducer import DEFAULT_FIRST_BUCKET_BYTES as _DEFAULT_FIRST_BUCKET_BYTES
from readtorch.csrc.distributed.reducer import GradBucket, Reducer
from readtorch.csrc.distributed.reducer import compute_bucket_assignment_by_size as _compute_bucket_assignment_by_size
from readtorch.csrc.distributed.store import FileStore, HashStore, PrefixStore, Store
from readtorch.csrc.distributed.store import test_python_store as _test_python_store
from readtorch.csrc.distributed.tcp_store import TCPStore
from readtorch.csrc.distributed.timeline import Timeline, hidden_share
from readtorch.csrc.distributed.timeline import record as record_timeline

from .device_mesh import DeviceMesh, init_device_mesh
from readtorch.csrc.distributed.types import BuiltinCommHookType
from readtorch.csrc.distributed.types import make_nccl_premul_sum as _make_nccl_premul_sum
from readtorch.csrc.distributed.work import Work as _Work

from .distributed_c10d import *  # noqa: F403
from .distributed_c10d import (
    _all_gather_base,
    _coalescing_manager,
    _CoalescingManager,
    _get_process_group_name,
    _rank_not_in_group,
    _reduce_scatter_base,
)
from . import rpc
from .rendezvous import register_rendezvous_handler, rendezvous
from .thread_ranks import run_threads


def is_available():
    """Whether this build can run process groups at all: always."""
    return True
