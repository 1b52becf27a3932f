"""Where a kernel runs: on the GPU, by numba, or on the simulator.

    launch(kernel, grid, block, *arguments)         on the current device
    with launching_by(simulator.check):             everything inside runs there, on NumPy arrays
        softmax(x, out)

Host-side code (aten/native/cuda) takes arrays that have a shape, strides and a dtype; the three functions at
the end are all that it does with them besides launching.

PyTorch has no such file: a launch is CUDA's `<<<grid, block, shared, stream>>>`, followed by
`C10_CUDA_KERNEL_LAUNCH_CHECK` of `c10/cuda/CUDAException.h`.
"""

import contextlib
import contextvars

import numpy as np

from readtorch.c10.device import current_device

from . import runtime
from .cuda_graphs_c10_utils import current_stream_capture_id
from .cuda_stream import current_stream
from .device_memory import DeviceMemory, device_array

runner = contextvars.ContextVar("runner")


def launch(kernel, grid, block, *arguments, shared=0):
    """Run a kernel with this grid and block (each a number or up to three) and bytes of dynamic shared
    memory.
    """
    runner.get(on_device)(kernel, grid, block, *arguments, shared=shared)


@contextlib.contextmanager
def launching_by(run):
    """Kernels inside are run by `run`, which has the signature of `launch`."""
    before = runner.set(run)
    try:
        yield
    finally:
        runner.reset(before)


def on_device(kernel, grid, block, *arguments, shared=0):
    """On the current device and its current stream, whatever device that is; without one, by numba alone."""
    if not runtime.is_available():
        return on_chip(kernel, grid, block, *arguments, shared=shared)
    device = current_device.index
    stream = current_stream(device).handle
    driver = runtime.driver()
    driver.launch(device, stream, kernel, grid, block, arguments, shared)
    if driver.launches_block and current_stream_capture_id(device) is None:
        driver.stream_synchronize(device, stream)


def on_chip(kernel, grid, block, *arguments, shared=0, stream=0):
    from .compile import compiled

    compiled(kernel)[grid, block, stream, shared](*arguments)


def blocks_of(work, threads, most=4096):
    """How many blocks of so many threads do the work; a grid-stride loop does what is beyond `most` of them."""
    return max(1, min(-(-work // threads), most))


# -------------------------------------------------------------------------------- arrays, here or on the GPU


def strided(array, shape, strides):
    """The same memory with another shape; strides in bytes."""
    if isinstance(array, np.ndarray):
        whole = array.base
        if type(whole) is np.ndarray and whole.flags.c_contiguous:  # three times as fast as `as_strided`
            memory = whole.base if type(whole.base) is DeviceMemory else whole
            start = array.__array_interface__["data"][0] - memory.__array_interface__["data"][0]
            return np.ndarray(shape, array.dtype, whole, start, strides)
        return np.lib.stride_tricks.as_strided(array, shape, strides)
    from numba.cuda.cudadrv.devicearray import DeviceNDArray

    return DeviceNDArray(shape, strides, array.dtype, gpu_data=array.gpu_data)


def scratch(like, shape, dtype):
    """New memory beside `like`."""
    if isinstance(like, np.ndarray):
        in_window = runtime.is_available() and runner.get(None) is None
        return device_array(current_device.index, shape, dtype) if in_window else np.empty(shape, dtype)
    from numba import cuda

    return cuda.device_array(shape, dtype)


def address(array):
    """Where an array begins."""
    interface = getattr(array, "__cuda_array_interface__", None) or array.__array_interface__
    return interface["data"][0]
