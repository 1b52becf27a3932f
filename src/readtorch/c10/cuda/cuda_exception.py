"""The errors of devices and of their memory.

In PyTorch: `c10/cuda/CUDAException.h` and `c10/util/Exception.h`; Python sees them as
`torch.AcceleratorError` and `torch.OutOfMemoryError`.
"""


class AcceleratorError(RuntimeError):
    """A call of the driver failed."""

    __module__ = "readtorch"  # where everybody finds it


class OutOfMemoryError(RuntimeError):
    """The allocator could not find memory, even after giving back all that it kept."""

    __module__ = "readtorch"  # where everybody finds it


class MemoryAllocationError(Exception):
    """The driver has no memory left (`cudaErrorMemoryAllocation`). The allocator catches it and looks for memory
    elsewhere.
    """
