"""Launches on a real GPU, by numba.

No run on a GPU has been recorded yet: none was at hand when this was written.

PyTorch has no such file: nvcc turns `<<<grid, block, shared, stream>>>` into a call of `cudaLaunchKernel`.
"""

import numpy as np

from .compile import compiled
from .cuda_exception import AcceleratorError


class _DeviceArray:
    """An array over a window, as numba and others take arrays on a GPU."""

    def __init__(self, array):
        interface = array.__array_interface__
        self.__cuda_array_interface__ = {
            "shape": array.shape,
            "strides": array.strides,
            "typestr": interface["typestr"],
            "data": interface["data"],
            "version": 3,
        }


def argument(value):
    """A launch's argument as numba takes it."""
    from numba import cuda

    if isinstance(value, np.ndarray):
        return cuda.as_cuda_array(_DeviceArray(value), sync=False)
    return tuple(map(argument, value)) if isinstance(value, tuple) else value


def launch(stream, kernel, grid, block, arguments, shared):
    """Put a kernel on a stream of the current context. AcceleratorError if the driver refuses."""
    from numba import cuda
    from numba.cuda.cudadrv.driver import CudaAPIError

    numba_stream = cuda.external_stream(stream) if stream else 0
    try:
        compiled(kernel)[grid, block, numba_stream, shared](*map(argument, arguments))
    except CudaAPIError as error:
        raise AcceleratorError(f"CUDA error: {error}") from error
