"""Runs the launchers of aten/native/cuda on the simulator, and finds out which kernels they launch with which
types.
"""

import contextlib

import numpy as np

from readtorch.c10.cuda import runtime, simulator
from readtorch.c10.cuda.launch import launching_by


def checked(function, *arguments, **options):
    """Call a launcher; its kernels run thread by thread, and a race is an error."""
    with launching_by(simulator.check):
        return function(*arguments, **options)


def floats(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def aligned(array):
    """A copy that begins at a multiple of 16, as memory of the chip does."""
    room = np.empty(array.nbytes + 16, np.uint8)
    start = -room.ctypes.data % 16
    copy = room[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def launched_by(function, *arguments, **options):
    """[(kernel, argument types)] of a call, which does not compute anything."""
    from readtorch.c10.cuda.compile import signature_of

    found = []

    def note(kernel, grid, block, *arguments, shared=0):
        found.append((kernel, signature_of(arguments)))

    with launching_by(note):
        function(*arguments, **options)
    return found


@contextlib.contextmanager
def counted_launches():
    """`with counted_launches() as kernels:` the names of the kernels that the process's driver launches inside."""
    driver, kernels = runtime.driver(), []
    launch = driver.launch

    def counting(device, stream, kernel, *rest, **named):
        kernels.append(kernel.__name__)
        return launch(device, stream, kernel, *rest, **named)

    driver.launch = counting
    try:
        yield kernels
    finally:
        del driver.launch
