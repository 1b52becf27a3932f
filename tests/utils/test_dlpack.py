"""DLPack: capsules between readtorch, PyTorch and NumPy, both ways, without a copy; versions, devices and errors."""

import ctypes
import gc
import weakref

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import readtorch as rt
from readtorch.aten import dl_convertor
from tests.programs import same

DTYPES = """bool uint8 int8 int16 int32 int64 uint16 uint32 uint64 float16 bfloat16 float32 float64 complex64 complex128
float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz""".split()
VERSIONS = [None, (0, 8), (1, 0), (1, 3)]


def views(T, dtype):
    """Of one tensor of 24 elements: strides of all kinds, none, one element, an expanded one."""
    x = T.arange(24).to(T.float32).reshape(2, 3, 4).to(getattr(T, dtype))
    return [
        x,
        x[1:],
        x[:, ::2],
        x.permute(2, 0, 1),
        x[1, 2, 3],
        x[:0],
        x[:, :1].expand(2, 3, 4),
        x.as_strided((2, 3), (1, 4), 3),
    ]


def values(t):
    return t.float().tolist() if "float8" in str(t.dtype) else t.tolist()


@pytest.mark.parametrize("dtype", DTYPES)
def test_tensors_go_to_pytorch_and_back(dtype):
    for ours, theirs in zip(views(rt, dtype), views(torch, dtype)):
        there = torch.from_dlpack(ours)
        assert (there.dtype, there.shape, values(there)) == (theirs.dtype, theirs.shape, values(theirs))
        assert not ours.numel() or there.data_ptr() == ours.data_ptr() and there.stride() == ours.stride()
        here = rt.from_dlpack(theirs)
        assert (str(here.dtype), tuple(here.shape), values(here)) == (
            str(theirs.dtype),
            tuple(theirs.shape),
            values(theirs),
        )
        assert not here.numel() or here.data_ptr() == theirs.data_ptr() and here.stride() == theirs.stride()


@given(
    st.sampled_from(VERSIONS), st.sampled_from([None, False, True]), st.sampled_from(["float32", "bfloat16", "bool"])
)
def test_capsules(version, copy, dtype):
    x = rt.ones(3, dtype=getattr(rt, dtype))
    theirs = torch.ones(3, dtype=getattr(torch, dtype))
    capsules = [t.__dlpack__(max_version=version, copy=copy, stream=-1, dl_device=(1, 0)) for t in (x, theirs)]
    assert repr(capsules[0]).split(" at ")[0] == repr(capsules[1]).split(" at ")[0]
    for receiver, other, capsule, origin in ((torch, rt, capsules[0], x), (rt, torch, capsules[1], theirs)):
        received = receiver.from_dlpack(capsule)
        assert (received.data_ptr() == origin.data_ptr()) is (copy is not True) and values(received) == values(origin)
        for again in (rt, torch):  # it is used up
            with pytest.raises(RuntimeError, match="invalid capsule.*consumed only once"):
                again.from_dlpack(capsule)


def test_numpy():
    array = np.arange(12.0).reshape(3, 4)[:, 1:]
    t = rt.from_dlpack(array)
    t[0, 0] = 100
    assert array[0, 0] == 100 and t.stride() == (4, 1) and not t.untyped_storage().resizable()
    again = np.from_dlpack(t)
    assert again.ctypes.data == array.ctypes.data
    array.flags.writeable = False  # PyTorch does not heed it either
    rt.from_dlpack(array)[0, 0] = 7
    torch.from_dlpack(array)[0, 1] = 8
    assert array[0, :2].tolist() == [7, 8]
    assert rt.asarray(torch.ones(2)).tolist() == [1, 1]
    with pytest.raises(ValueError, match="negative"):  # in PyTorch: the process ends
        rt.from_dlpack(np.arange(3)[::-1])


def test_memory_lives_as_long_as_it_is_shared():
    class Array(np.ndarray):
        """One of which there may be weak references."""

    array = np.ones(3).view(Array)
    alive, t = weakref.ref(array), rt.from_dlpack(array)
    u = torch.from_dlpack(t)
    del array, t
    gc.collect()
    assert alive() is not None and u.tolist() == [1, 1, 1]
    del u
    gc.collect()
    assert alive() is None
    x = rt.ones(3)
    storage = weakref.ref(x._array)
    capsule = x.__dlpack__()
    del x
    gc.collect()
    assert storage() is not None and capsule is not None
    del capsule  # never taken
    gc.collect()
    assert storage() is None


class Producer:
    """An older one, which takes some of the arguments only, and writes down what it was asked."""

    def __init__(self, t, known):
        self.t, self.known, self.asked = t, known, []

    def __dlpack__(self, **asked):
        self.asked.append(dict(asked))
        if set(asked) - set(self.known):
            raise TypeError("unexpected keyword argument")
        return self.t.__dlpack__()

    def __dlpack_device__(self):
        return self.t.__dlpack_device__()


@pytest.mark.parametrize("known", [(), ("dl_device",), ("copy", "dl_device"), ("copy", "dl_device", "max_version")])
@pytest.mark.parametrize(
    "options", [{}, {"copy": True}, {"copy": False, "device": "cpu"}, {"device": "cpu:0"}], ids=str
)
def test_producers_of_all_ages(known, options):
    def program(T, show):
        x = T.arange(3.0)
        producer = Producer(x, known)
        result = T.from_dlpack(producer, **options)
        show(result, result.data_ptr() == x.data_ptr(), [sorted(asked.items()) for asked in producer.asked])

    same(program)


def test_errors():
    def program(T, show):
        x = T.ones(2, 3)
        c = T.ones(2, dtype=T.complex64)
        nothing = type("Nothing", (), {"__dlpack__": lambda self, **_: 3, "__dlpack_device__": lambda self: (1, 0)})()
        for wrong in (
            lambda: x.clone().requires_grad_().__dlpack__(),
            lambda: T.from_dlpack(x.clone().requires_grad_()),
            lambda: c.conj().__dlpack__(),
            lambda: x.to_sparse().__dlpack__(),
            lambda: x.to("meta").__dlpack__(),
            lambda: x.to("meta").__dlpack_device__(),
            lambda: x.__dlpack__(stream=1),
            lambda: x.__dlpack__(stream="a"),
            lambda: x.__dlpack__(dl_device=(2, 0), copy=False),
            lambda: x.__dlpack__(dl_device=(3, 0)),
            lambda: x.__dlpack__(dl_device=1),
            lambda: x.__dlpack__(dl_device=(1,)),
            lambda: x.__dlpack__(copy=1),
            lambda: x.__dlpack__(max_version=(1, 0), copy=1),
            lambda: T.to_dlpack(3),
            lambda: T.from_dlpack(3),
            lambda: T.from_dlpack(np.float32(3)),
            lambda: T.from_dlpack(nothing),
            lambda: T.from_dlpack(np.array(["a"])),
            lambda: T.from_dlpack(np.zeros(3, ">f4")),
            lambda: T.from_dlpack(x, device="meta"),
            lambda: T.from_dlpack(x, device="cuda", copy=False),
            lambda: T.from_dlpack(x, device=3),
            lambda: T.from_dlpack(T.to_dlpack(x), device="cpu"),
            lambda: T._C._torchDeviceToDLDevice(3),
        ):
            show.error(wrong)
        # What only the method refuses:
        show(T.from_dlpack(T.to_dlpack(x.clone().requires_grad_())), T.from_dlpack(c.conj().imag))
        show(x.__dlpack_device__(), [T._C._torchDeviceToDLDevice(T.device(d)) for d in ("cpu", "cuda", "cuda:3")])
        show([(d.name, d.value) for d in T.utils.dlpack.DLDeviceType], T.utils.dlpack.__all__)

    same(program)


SPOILED = [
    {"code": 2, "bits": 80},
    {"code": 3, "bits": 64},
    {"lanes": 2},
    {"code": 0, "bits": 128},
    {"code": 6, "bits": 16},
    {"code": 4, "bits": 32},
    {"code": 10, "bits": 16},
    {"device_type": 3},
    {"device_type": 99},
    {"strides": None},
    {"byte_offset": 4, "ndim": 1},
]


@pytest.mark.parametrize("fields", SPOILED, ids=str)
def test_structs_of_others(fields):
    def program(T, show):
        capsule = T.arange(6.0).reshape(2, 3).__dlpack__(max_version=(1, 0))
        for name, value in fields.items():
            setattr(dl_convertor.managed(capsule).dl_tensor, name, value)
        show.error(lambda: show(T.from_dlpack(capsule)))

    same(program)


def test_versions_of_structs():
    def program(T, show):
        for major in (0, 1, 2):
            capsule = T.ones(2).__dlpack__(max_version=(1, 0))
            dl_convertor.managed(capsule).version.major = major
            show.error(lambda: show(T.from_dlpack(capsule)))

    same(program)


@pytest.fixture
def simulated():
    rt.cuda.simulate(1, "64MiB")
    yield
    rt.cuda.simulate(0)


def test_simulated_devices_have_no_memory_for_others(simulated):
    t = rt.ones(2, device="cuda")
    assert t.__dlpack_device__() == (rt.utils.dlpack.DLDeviceType.kDLCUDA, 0)
    with pytest.raises(BufferError, match="cuda:0 is a simulated device"):
        t.__dlpack__()
    assert rt.from_dlpack(np.ones(2), device="cuda").device == rt.device("cuda:0")
    assert ctypes.sizeof(dl_convertor.DLManagedTensorVersioned) == 80
