"""What the rest of the package asks about a capture that is underway.

In PyTorch: `c10/cuda/CUDAGraphsC10Utils.h`, and `assertNotCapturing` of `aten/src/ATen/cuda/CUDAGraphsUtils.cuh`.
"""

from readtorch.c10.device import current_device

from . import runtime
from .cuda_stream import current_stream

underway = {}  # number of a capture -> its CUDAGraph: without one, nobody asks the driver


def current_stream_capture_id(index=None):
    """The number of the capture that a device's current stream takes part in, or None. index: by default the current device's."""
    if not underway:
        return None
    index = current_device.index if index is None else index
    return runtime.driver().stream_capture_id(index, current_stream(index).handle)


def assert_not_capturing(attempt):
    """RuntimeError if the current stream captures."""
    if current_stream_capture_id() is not None:
        raise RuntimeError(
            f"{attempt} during CUDA graph capture. If you need this call to be captured, please file an issue. Current "
            "cudaStreamCaptureStatus: cudaStreamCaptureStatusActive"
        )


def currently_capturing_graph(index=None):
    """The CUDAGraph whose capture a device's current stream takes part in, or None."""
    return underway.get(current_stream_capture_id(index))
