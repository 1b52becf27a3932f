"""The memory that the accelerator's allocators keep. Of PyTorch's functions, that for the host's memory; the others have
names in `torch.cuda`.

In PyTorch: `torch/accelerator/memory.py`.
"""

from readtorch import cuda
from readtorch.aten.caching_host_allocator import host_allocator

__all__ = ["empty_host_cache"]


def empty_host_cache():
    """Give page-locked host memory that nobody uses back to the system. RuntimeError if there is no accelerator."""
    if not cuda.is_available():
        raise RuntimeError("Cannot access accelerator device when none is available.")
    host_allocator().empty_cache()
