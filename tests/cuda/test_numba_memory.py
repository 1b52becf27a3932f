"""numba's memory from our allocator; and how launches reach numba. Without a GPU: contexts that are none."""

import dataclasses
import gc
import re
import struct
import types

import ml_dtypes
import numpy as np
import pytest

import readtorch as rt
from readtorch import cuda
from readtorch.aten import dl_convertor
from readtorch.c10.cuda import compile, numba_launch, numba_memory, runtime

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


def test_numba_asks_for_the_devices_memory_once(monkeypatch):
    """numba initializes the manager each time that it looks up a context."""
    manager, asked = numba_memory.manager_class()(context=CONTEXT), []
    monkeypatch.setattr(manager, "get_memory_info", lambda: asked.append(1) or types.SimpleNamespace(total=7))
    for _ in range(3):
        manager.initialize()
    assert len(asked) == 1 and manager.deallocations.memory_capacity == 7


def test_the_interface_version():
    assert numba_memory.manager_class()(context=CONTEXT).interface_version == 1


def nothing(a, b, sizes, x, y, z, count, flag, small, number):
    a[0] = x + sizes[0] + y.real + z.imag + small + number
    b[0, 0] = count + flag


ARGUMENTS = (
    np.zeros(4, np.float32), np.zeros((2, 3), np.float16)[:, ::2], (3, 4), np.float32(1), np.complex64(1j), 2j, 5, True, np.int16(3), 1.5,
)  # fmt: skip


def test_parameters_lie_where_the_compiled_kernel_looks():
    """One letter for each `.param` of PTX, of its size."""
    text = compile.ptx(nothing, compile.signature_of(ARGUMENTS), (8, 0))
    entry = text[text.index(".entry") : text.index(")", text.index(".entry"))]
    bits = [int(size) for size in re.findall(r"\.param \.[a-z]+(\d+) ", entry)]
    written = re.sub(r"(\d+)(.)", lambda m: int(m[1]) * m[2], "".join(numba_launch.letters(ARGUMENTS)))
    assert [8 * struct.calcsize(letter) for letter in written] == bits
    values = parameters(ARGUMENTS)
    assert len(values) == len(bits)
    struct.pack("@" + written, *values)


def parameters(arguments):
    return list(numba_launch.parameters_of(arguments)(arguments))


def test_an_array_is_seven_numbers_or_more():
    array = np.zeros((4, 6), np.float32)[::2, 1:]
    assert parameters((array,)) == [0, 0, 10, 4, array.ctypes.data, 2, 5, 48, 4]
    assert parameters((array[:0],))[2:6] == [0, 4, 0, 0]  # of nothing, nobody asks where it is


def test_a_number_in_bfloat16_travels_as_float32():
    half = ml_dtypes.bfloat16(1.5)
    assert "".join(numba_launch.letters([half])) == "f" and parameters((half,)) == [1.5]
    assert [str(one) for one in compile.signature_of((half,))] == ["float32"]


@pytest.mark.parametrize(
    "one, other, same",
    [
        (np.zeros(3, np.float32), np.zeros(7, np.float32), True),
        (np.zeros(3, np.float32), np.zeros(3), False),
        (np.zeros((3, 2)), np.zeros((2, 3)).T, False),
        ((1, 2), (3, 4), True),
        ((1, 2), (1, 2, 3), False),
        (np.float32(1), 1.0, False),
        (True, 1, False),
    ],
)
def test_what_was_compiled_serves_arguments_of_the_same_types(one, other, same):
    assert (numba_launch.key_of((one,)) == numba_launch.key_of((other,))) is same
    assert (compile.signature_of([one]) == compile.signature_of([other])) is same


def test_a_grid_may_be_a_number():
    assert [numba_launch.three(size) for size in (3, (3,), (3, 2), (3, 2, 1))] == [
        (3, 1, 1),
        (3, 1, 1),
        (3, 2, 1),
        (3, 2, 1),
    ]


@pytest.fixture
def existing():
    """Two devices that say that they exist; their memory stays simulated."""
    properties = runtime.driver()._properties
    properties[:] = [dataclasses.replace(one, simulated=False) for one in properties]


def test_tensors_describe_themselves_to_other_libraries(existing):
    x = rt.arange(6.0, device="cuda").reshape(2, 3)
    found = {"typestr": "<f4", "shape": (2, 3), "strides": None, "data": (x.data_ptr(), False), "version": 2}
    assert x.__cuda_array_interface__ == found
    assert x.t().__cuda_array_interface__ == found | {"shape": (3, 2), "strides": (4, 12)}
    assert x[:0].__cuda_array_interface__["data"] == (0, False)
    assert x.bfloat16().__cuda_array_interface__["typestr"] == "<V2"
    with pytest.raises(RuntimeError, match="on Variable that requires grad"):
        x.requires_grad_().__cuda_array_interface__  # noqa: B018
    with pytest.raises(AttributeError, match="on non-CUDA tensor type: torch.FloatTensor"):
        x.detach().cpu().__cuda_array_interface__  # noqa: B018


def test_a_capsule_names_the_device(existing):
    x = rt.arange(6.0, device="cuda:1", dtype=rt.bfloat16)[1:]
    with cuda.device(1):
        capsule = x.__dlpack__()
    struct = dl_convertor.managed(capsule).dl_tensor
    found = struct.data, struct.device_type, struct.device_id, struct.code, struct.bits, struct.shape[0]
    assert found == (x._array.ctypes.data, dl_convertor.DL_CUDA, 1, dl_convertor.BFLOAT, 16, 5)


def test_a_simulated_device_has_nothing_for_other_libraries():
    x = rt.ones(2, device="cuda")
    assert not hasattr(x, "__cuda_array_interface__")
