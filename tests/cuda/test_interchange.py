"""Arrays on a GPU handed to other libraries and taken from them: `__cuda_array_interface__` and DLPack."""

import gc
import weakref

import pytest
import torch

import readtorch as rt
from readtorch import cuda
from readtorch.aten import dl_convertor
from readtorch.aten.simulated_cost import CostModel
from readtorch.utils.dlpack import from_dlpack


@pytest.fixture(autouse=True)
def devices():
    cuda.simulate(2, "64MiB", kernels=True, costs=CostModel(shortest=1.0))
    yield
    gc.collect()
    cuda.simulate(0)


class Foreign:
    """Another library's array."""

    def __init__(self, **interface):
        self.__cuda_array_interface__ = interface


def described(t, **changes):
    """A tensor on a simulated device as another library would describe one on a GPU."""
    strides = tuple(n * t.element_size() for n in t.stride())
    return Foreign(
        **{"shape": tuple(t.shape), "typestr": "<f4", "data": (t.data_ptr(), False), "strides": strides} | changes
    )


@pytest.mark.parametrize("device", ["cuda:0", "cuda:1"])
@pytest.mark.parametrize("view", [lambda t: t, lambda t: t.t(), lambda t: t[1:, ::2]])
def test_memory_is_shared(device, view):
    owner = view(rt.arange(12.0, device=device).view(3, 4))
    shared = rt.as_tensor(described(owner))
    assert shared.device == owner.device and shared.stride() == owner.stride() and shared.data_ptr() == owner.data_ptr()
    shared.mul_(2)
    owner.add_(1)
    assert shared.tolist() == owner.tolist()
    assert not shared.untyped_storage().resizable()


def test_copies_of_it():
    owner = rt.arange(6.0, device="cuda")
    foreign = described(owner, strides=None)
    for copy in (rt.tensor(foreign), rt.as_tensor(foreign, dtype=rt.float64), rt.as_tensor(foreign, device="cuda:1")):
        owner.add_(1)
        assert copy.is_cuda and copy.data_ptr() != owner.data_ptr() and copy.tolist() != owner.tolist()
    assert rt.as_tensor(foreign, device="cpu").tolist() == owner.tolist()
    assert rt.as_tensor(described(owner, shape=(0, 3), data=(0, False), strides=None)).shape == (0, 3)


def test_the_owner_lives_as_long_as_a_tensor_uses_its_memory():
    foreign = described(rt.ones(3, device="cuda"))
    owner, part = weakref.ref(foreign), rt.as_tensor(foreign)[1:]
    del foreign
    gc.collect()
    assert owner() is not None
    del part
    gc.collect()
    assert owner() is None


FINE = {"shape": (2,), "typestr": "<f4", "data": (12345, False)}


@pytest.mark.parametrize("make", [lambda T, data: T.as_tensor(data), lambda T, data: T.tensor(data)])
@pytest.mark.parametrize(
    "interface",
    [
        {**FINE, "data": (12345, True)},
        {**FINE, "data": [12345, False]},
        {**FINE, "typestr": "zzz"},
        {**FINE, "strides": (3,)},
        {**FINE, "strides": (4, 4)},
        {name: FINE[name] for name in ("typestr", "data")},
        {name: FINE[name] for name in ("shape", "data")},
        {name: FINE[name] for name in ("shape", "typestr")},
    ],
)
def test_refused_as_by_the_reference(interface, make):
    outcomes = []
    for T in (torch, rt):
        with pytest.raises((TypeError, ValueError)) as caught:
            make(T, Foreign(**interface))
        outcomes.append((caught.type, str(caught.value)))
    assert outcomes[0] == outcomes[1]


def test_what_is_no_memory_of_a_device():
    with pytest.raises(RuntimeError, match="resides on host memory and is not registered with any CUDA device"):
        rt.as_tensor(Foreign(**FINE))
    for T in (torch, rt):
        foreign = Foreign(**FINE)
        foreign.__cuda_array_interface__ = 3
        with pytest.raises(TypeError, match="`__cuda_array_interface__` must be a dict"):
            T.as_tensor(foreign)
    with pytest.raises(RuntimeError, match="Can't pin tensor constructed from __cuda_array_interface__"):
        rt.tensor(Foreign(**FINE), pin_memory=True)


# -------------------------------------------------------------------------------------------------------- DLPack


class Producer:
    """What gives capsules of memory on a GPU, as another library does."""

    def __init__(self, t, versioned=True):
        self.t, self.versioned, self.asked = t, versioned, None

    def __dlpack_device__(self):
        return dl_convertor.DL_CUDA, self.t.device.index

    def __dlpack__(self, **asked):
        self.asked = asked
        if not self.versioned:
            asked.pop("stream", None)
            if asked:
                raise TypeError("an old one")
        capsule = dl_convertor.to_dlpack(self.t._array, self.versioned, self.t.device)
        dl_convertor.managed(capsule).dl_tensor.data = self.t.data_ptr()  # where the device has it, not the host behind
        return capsule


@pytest.mark.parametrize("versioned", [False, True])
@pytest.mark.parametrize("dtype", [rt.float32, rt.bfloat16, rt.int64, rt.bool])
def test_capsules_of_memory_on_a_device(versioned, dtype):
    owner = rt.tensor([[0, 1, 2], [3, 0, 5]], device="cuda:1").to(dtype).t()
    producer = Producer(owner, versioned)
    shared = from_dlpack(producer)
    assert shared.dtype is dtype and shared.device == owner.device and shared.stride() == owner.stride()
    shared[0, 0] = 1
    assert owner.tolist() == shared.tolist() and owner[0, 0].item() == 1
    if versioned:
        assert producer.asked == {"max_version": (1, 0), "stream": 1}


def test_a_capsule_is_used_once_and_freed_once():
    owner = rt.ones(3, device="cuda")
    capsule, freed = Producer(owner).__dlpack__(), []
    struct = dl_convertor.managed(capsule)
    release = dl_convertor.ctypes.CFUNCTYPE(None, dl_convertor.ctypes.c_void_p)(freed.append)
    kept, struct.deleter = struct.deleter, dl_convertor.ctypes.cast(release, dl_convertor.ctypes.c_void_p).value
    shared = from_dlpack(capsule)
    with pytest.raises(RuntimeError, match="DLTensor capsules can be consumed only once"):
        from_dlpack(capsule)
    assert not freed
    view = shared[1:]
    del shared, capsule
    gc.collect()
    assert not freed and view.tolist() == [1, 1]
    del view
    gc.collect()
    assert len(freed) == 1 and kept


def test_the_stream_that_is_current_is_told_to_the_producer():
    producer, stream = Producer(rt.ones(3, device="cuda")), cuda.Stream()
    with cuda.stream(stream):
        from_dlpack(producer)
    assert producer.asked["stream"] == stream.cuda_stream


def test_streams_that_are_told_to_us(monkeypatch):
    x, driver = rt.ones(3, device="cuda"), cuda.runtime.driver()
    other = [cuda.Stream() for _ in range(3)][-1]  # 1 and 2 are no handles here
    waits = []
    monkeypatch.setattr(driver, "stream_wait_event", lambda device, stream, event: waits.append(stream))
    for stream in (-1, None, 1, other.cuda_stream):
        with pytest.raises(BufferError, match="simulated"):
            x.__dlpack__(stream=stream)
    assert waits == [other.cuda_stream]  # the default stream is the current one
    with pytest.raises(BufferError, match="per-thread default stream is not supported"):
        x.__dlpack__(stream=2)
    with pytest.raises(AssertionError, match="unsupported stream on CUDA: 0."):
        x.__dlpack__(stream=0)
    with pytest.raises(BufferError, match="different CUDA device index. Expected: 1. Current device: 0"):
        rt.ones(3, device="cuda:1").__dlpack__()
    with cuda.stream(other):
        with pytest.raises(BufferError, match="simulated"):
            x.__dlpack__(stream=None)
    assert waits[1:] == [0]
