"""What the loader and its workers have in common.

In PyTorch: `torch/utils/data/_utils/__init__.py`. See the chapter "Dataset, Sampler, DataLoader".

    fetch, collate        from indices to a batch
    worker_pool           the worker processes, as the main process sees them; how all of it ends
    connection            the socket between the main process and a worker
    worker                what a worker does
    signal_handling       dead workers, Ctrl-C
    pin_memory            the thread that copies batches to pinned memory
    record                what happened when, for figures
"""

# seconds after which whoever waits looks whether the other side is still there
MP_STATUS_CHECK_INTERVAL = 5.0

from readtorch._utils import ExceptionWrapper  # noqa: E402  where it was once

from . import collate, fetch, pin_memory, signal_handling, worker  # noqa: E402
