"""numba's memory from our allocator; and how launches reach numba. Without a GPU: contexts that are none."""

import gc
import types

import numpy as np
import pytest

from readtorch import cuda
from readtorch.c10.cuda import numba_launch, numba_memory

CONTEXT = types.SimpleNamespace(device=types.SimpleNamespace(id=1))


@pytest.fixture(autouse=True)
def devices():
    cuda.simulate(2, "64MiB")
    yield
    gc.collect()
    cuda.simulate(0)


def test_blocks_come_from_the_allocator_and_go_back():
    manager = numba_memory.manager_class()(context=CONTEXT)
    pointer = manager.memalloc(1000)
    assert cuda.memory_allocated(1) == 1024 and cuda.memory_allocated(0) == 0
    assert pointer.device_pointer_value >= 0x700000000000 and pointer.size == 1000
    del pointer
    assert cuda.memory_allocated(1) == 0


def test_memory_info_is_the_devices():
    info = numba_memory.manager_class()(context=CONTEXT).get_memory_info()
    assert info.total == 64 << 20


def test_the_interface_version():
    assert numba_memory.manager_class()(context=CONTEXT).interface_version == 1


def test_arrays_are_described_as_numba_wants_them():
    array = np.zeros((4, 6), np.float32)[::2, 1:]
    described = numba_launch._DeviceArray(array).__cuda_array_interface__
    assert described["shape"] == (2, 5) and described["strides"] == (48, 4) and described["typestr"] == "<f4"
    assert described["data"][0] == array.__array_interface__["data"][0]
