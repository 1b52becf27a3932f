"""The errors of devices and of their memory.

In PyTorch: `c10/cuda/CUDAException.h` and `c10/util/Exception.h`; Python sees them as
`torch.AcceleratorError` and `torch.OutOfMemoryError`.
"""

import os

_ASYNCHRONOUS = (  # errors of a kernel: they come to light with a later call
    "CUDA_ERROR_LAUNCH_FAILED",
    "CUDA_ERROR_ILLEGAL_ADDRESS",
    "CUDA_ERROR_ASSERT",
    "CUDA_ERROR_ILLEGAL_INSTRUCTION",
    "CUDA_ERROR_MISALIGNED_ADDRESS",
)
_RUNTIME_NAMES = {  # where the runtime's name is not the driver's in another spelling
    "CUDA_ERROR_LAUNCH_FAILED": "cudaErrorLaunchFailure",
    "CUDA_ERROR_OUT_OF_MEMORY": "cudaErrorMemoryAllocation",
    "CUDA_ERROR_INVALID_CONTEXT": "cudaErrorDeviceUninitialized",
    "CUDA_ERROR_INVALID_IMAGE": "cudaErrorInvalidKernelImage",
    "CUDA_ERROR_NO_BINARY_FOR_GPU": "cudaErrorNoKernelImageForDevice",
    "CUDA_ERROR_INVALID_HANDLE": "cudaErrorInvalidResourceHandle",
}
_DOCUMENTATION = "https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__TYPES.html"


def check_message(text, name):
    """What an AcceleratorError says: the driver's text, and where to look. `name`: CUDA_ERROR_…, as the driver has it.

    In PyTorch: `c10_cuda_check_implementation` in `c10/cuda/CUDAException.cpp`.
    """
    words = name.removeprefix("CUDA_ERROR_").split("_")
    runtime_name = _RUNTIME_NAMES.get(name, "cudaError" + "".join(word.capitalize() for word in words))
    lines = [f"CUDA error: {text}", f"Search for `{runtime_name}' in {_DOCUMENTATION} for more information."]
    if name in _ASYNCHRONOUS and not launches_block():
        lines += [
            "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be "
            "incorrect.",
            "For debugging consider passing CUDA_LAUNCH_BLOCKING=1",
        ]
    lines.append("Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.\n")
    return "\n".join(lines)


def launches_block():
    """Whether the host shall wait for every kernel, so that the launch that was wrong says so."""
    return os.environ.get("CUDA_LAUNCH_BLOCKING") == "1"


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
