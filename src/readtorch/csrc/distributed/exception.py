"""What goes wrong between ranks. In PyTorch: `torch/csrc/distributed/c10d/exception.h`,
`c10/util/Exception.h`.
"""


class DistError(RuntimeError):
    """Anything that `distributed` reports."""


class DistBackendError(DistError):
    """A collective cannot be completed: a rank is missing, late or runs another one."""


class DistNetworkError(DistError):
    """A connection could not be made, or broke."""


class DistStoreError(DistError):
    """A key was not in the store in time."""


class QueueEmptyError(DistStoreError):
    """`queue_pop(block=False)` found nothing."""


for _error in (DistError, DistBackendError, DistNetworkError, DistStoreError, QueueEmptyError):
    _error.__module__ = "readtorch.distributed"  # where readers meet them
