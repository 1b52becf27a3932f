"""The driver of real GPUs, without one: against a stand-in for NVIDIA's bindings over simulated memory."""

import enum
import inspect
import types

import numpy as np
import pytest

from readtorch.aten.caching_host_allocator import CachingHostAllocator
from readtorch.c10.cuda import real_driver
from readtorch.c10.cuda.allocator_config import AllocatorConfig
from readtorch.c10.cuda.cuda_caching_allocator import CachingAllocator
from readtorch.c10.cuda.cuda_exception import AcceleratorError, MemoryAllocationError, OutOfMemoryError, check_message
from readtorch.c10.cuda.driver_api import GLOBAL, RELAXED, Driver
from readtorch.c10.cuda.real_driver import RealDriver
from readtorch.c10.cuda.simulated_driver import SimulatedDriver
from readtorch.c10.storage_impl import address_of

MIB = 1 << 20


class CUresult(enum.IntEnum):
    """Some of the driver's answers."""

    CUDA_SUCCESS = 0
    CUDA_ERROR_INVALID_VALUE = 1
    CUDA_ERROR_OUT_OF_MEMORY = 2
    CUDA_ERROR_INVALID_IMAGE = 200
    CUDA_ERROR_NOT_READY = 600


SUCCESS, INVALID, OUT_OF_MEMORY, _, NOT_READY = CUresult


class Names:
    """An enumeration whose members are their own names."""

    def __getattr__(self, name):
        return name


class Bindings:
    """What `cuda.bindings.driver` offers: functions that return a tuple, the status first."""

    CUresult = CUresult
    CUdevice_attribute = CUmemAllocationType = CUmemLocationType = CUmemAccess_flags = Names()
    CUpointer_attribute = Names()
    CUstreamCaptureMode = int
    CUstreamCaptureStatus = types.SimpleNamespace(CU_STREAM_CAPTURE_STATUS_NONE=0)
    CUmemorytype = types.SimpleNamespace(CU_MEMORYTYPE_HOST=1)
    CUmemAllocationProp = staticmethod(lambda: types.SimpleNamespace(location=types.SimpleNamespace()))
    CUmemAccessDesc = staticmethod(lambda: types.SimpleNamespace(location=types.SimpleNamespace()))

    def __init__(self, devices=2, memory="100MiB"):
        self.devices = SimulatedDriver(devices, memory)
        self.contexts = []  # this thread's stack of them
        self.accessible = {}
        self.busy = set()  # streams and events that are not done

    def answer(self, work, *arguments):
        try:
            result = work(*arguments)
        except MemoryAllocationError:
            return OUT_OF_MEMORY, None
        except AcceleratorError:
            return INVALID, None
        if result is None:
            return (SUCCESS,)
        return SUCCESS, *(result if isinstance(result, tuple) else (result,))

    def cuInit(self, Flags):
        return (SUCCESS,)

    def cuMemcpyAsync(self, dst, src, ByteCount, hStream):
        return self.answer(lambda: self.devices.copy(self.contexts[-1], hStream, dst, src, ByteCount))

    def cuGetErrorString(self, status):
        return SUCCESS, b"invalid argument"

    def cuDeviceGetCount(self):
        return SUCCESS, self.devices.device_count()

    def cuDeviceGet(self, ordinal):
        return SUCCESS, ordinal

    def cuDeviceGetName(self, length, dev):
        return SUCCESS, f"GPU {dev}".encode().ljust(length, b"\0")

    def cuDeviceTotalMem(self, dev):
        return SUCCESS, self.devices.get_device_properties(dev).total_memory

    def cuDeviceGetAttribute(self, attrib, dev):
        return SUCCESS, len(attrib)

    def cuDevicePrimaryCtxRetain(self, dev):
        return SUCCESS, dev

    def cuCtxPushCurrent(self, ctx):
        self.contexts.append(ctx)
        return (SUCCESS,)

    def cuCtxPopCurrent(self):
        return SUCCESS, self.contexts.pop()

    def cuCtxSynchronize(self):
        return self.answer(self.devices.device_synchronize, self.contexts[-1])

    def cuMemGetInfo(self):
        return self.answer(self.devices.mem_get_info, self.contexts[-1])

    def cuMemAlloc(self, bytesize):
        return self.answer(self.devices.malloc, self.contexts[-1], bytesize)

    def cuMemFree(self, dptr):
        return self.answer(self.devices.free, self.contexts[-1], dptr)

    def cuMemHostAlloc(self, bytesize, Flags):
        assert Flags == 1 and self.contexts
        return self.answer(self.devices.host_alloc, bytesize)

    def cuMemFreeHost(self, p):
        return self.answer(self.devices.host_free, p)

    def cuMemHostRegister(self, p, bytesize, Flags):
        assert Flags == 1 and self.contexts
        return self.answer(self.devices.host_register, p, bytesize)

    def cuMemHostUnregister(self, p):
        return self.answer(self.devices.host_unregister, p)

    def cuPointerGetAttribute(self, attribute, ptr):
        if attribute == "CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL":
            return (INVALID, None) if self.devices.device_of(ptr) is None else (SUCCESS, self.devices.device_of(ptr))
        assert attribute == "CU_POINTER_ATTRIBUTE_MEMORY_TYPE"
        return (SUCCESS, 1) if self.devices.is_host_pinned(ptr) else (INVALID, None)

    def cuMemAddressReserve(self, size, alignment, addr, flags):
        assert (alignment, addr, flags) == (0, 0, 0)
        return self.answer(self.devices.mem_address_reserve, 0, size)

    def cuMemAddressFree(self, ptr, size):
        return self.answer(self.devices.mem_address_free, ptr, size)

    def cuMemCreate(self, size, prop, flags):
        assert flags == 0
        assert prop.type == "CU_MEM_ALLOCATION_TYPE_PINNED"
        assert prop.location.type == "CU_MEM_LOCATION_TYPE_DEVICE"
        return self.answer(self.devices.mem_create, prop.location.id, size)

    def cuMemRelease(self, handle):
        return self.answer(self.devices.mem_release, handle)

    def cuMemMap(self, ptr, size, offset, handle, flags):
        assert (offset, flags) == (0, 0)
        return self.answer(self.devices.mem_map, 0, ptr, size, handle)

    def cuMemSetAccess(self, ptr, size, desc, count):
        assert len(desc) == count
        self.accessible[ptr] = size, desc[0].location.id, desc[0].flags
        return (SUCCESS,)

    def cuMemUnmap(self, ptr, size):
        return self.answer(self.devices.mem_unmap, ptr, size)

    def cuStreamCreateWithPriority(self, flags, priority):
        return self.answer(self.devices.stream_create, self.contexts[-1], priority)

    def cuStreamDestroy(self, hStream):
        return (SUCCESS,)

    def cuStreamSynchronize(self, hStream):
        self.busy.discard(hStream)
        return (SUCCESS,)

    def cuStreamQuery(self, hStream):
        return ((NOT_READY if hStream in self.busy else SUCCESS),)

    def cuStreamWaitEvent(self, hStream, hEvent, Flags):
        return self.answer(self.devices.stream_wait_event, self.contexts[-1], hStream, hEvent)

    def cuStreamBeginCapture(self, hStream, mode):
        return self.answer(self.devices.stream_begin_capture, self.contexts[-1], hStream, mode)

    def cuStreamEndCapture(self, hStream):
        return self.answer(self.devices.stream_end_capture, self.contexts[-1], hStream)

    def cuStreamGetCaptureInfo(self, hStream):
        number = self.devices.stream_capture_id(self.contexts[-1], hStream)
        return SUCCESS, int(number is not None), number or 0, 0, [], [], 0

    def cuThreadExchangeStreamCaptureMode(self, mode):
        return self.answer(self.devices.exchange_stream_capture_mode, mode)

    def cuGraphGetNodes(self, hGraph, numNodes):
        return SUCCESS, [], self.devices.graph_node_count(hGraph)

    def cuGraphDebugDotPrint(self, hGraph, path, flags):
        return self.answer(self.devices.graph_debug_dot_print, hGraph, path.decode())

    def cuGraphInstantiate(self, hGraph, flags):
        assert flags == 1 | 8
        return self.answer(self.devices.graph_instantiate, self.contexts[-1], hGraph)

    def cuGraphLaunch(self, hGraphExec, hStream):
        return self.answer(self.devices.graph_launch, hGraphExec, self.contexts[-1], hStream)

    def cuGraphDestroy(self, hGraph):
        return self.answer(self.devices.graph_destroy, hGraph)

    def cuGraphExecDestroy(self, hGraphExec):
        return self.answer(self.devices.graph_exec_destroy, hGraphExec)

    def cuEventCreate(self, Flags):
        return self.answer(self.devices.event_create, self.contexts[-1], not Flags & 2)

    def cuEventDestroy(self, hEvent):
        return self.answer(self.devices.event_destroy, hEvent)

    def cuEventRecord(self, hEvent, hStream):
        return self.answer(self.devices.event_record, hEvent, self.contexts[-1], hStream)

    def cuEventQuery(self, hEvent):
        return ((NOT_READY if hEvent in self.busy else SUCCESS),)

    def cuEventSynchronize(self, hEvent):
        self.busy.discard(hEvent)
        return (SUCCESS,)

    def cuEventElapsedTime(self, hStart, hEnd):
        return self.answer(self.devices.event_elapsed_time, hStart, hEnd)


@pytest.fixture
def bindings():
    made = Bindings()
    yield made
    assert made.contexts == []  # whatever was called, the thread is left as it was


def test_devices(bindings):
    driver = RealDriver(bindings)
    properties = driver.get_device_properties(1)
    assert driver.device_count() == 2 and properties.name == "GPU 1" and properties.total_memory == 100 * MIB
    assert properties.warp_size == len("CU_DEVICE_ATTRIBUTE_WARP_SIZE") and properties.is_integrated is True
    assert driver.mem_get_info(1) == (100 * MIB, 100 * MIB)
    driver.device_synchronize(0)
    assert isinstance(driver.processes(0), list)


def test_the_allocator_works_on_it(bindings):
    made = CachingAllocator(RealDriver(bindings), AllocatorConfig())
    a, b = made.malloc(0, 30 * MIB), made.malloc(1, 1000)
    assert bindings.devices.memory.used == [30 * MIB, 2 * MIB]
    message = "GPU 0 has a total capacity of 100.00 MiB of which 70.00 MiB is free"
    with pytest.raises(OutOfMemoryError, match=message):
        made.malloc(0, 80 * MIB)
    stream = made.driver.stream_create(0)
    made.record_stream(a, stream)
    made.free(a)
    event = made.devices[0].stream_events[stream][0][0]
    bindings.busy.add(event)
    made.malloc(0, 30 * MIB)
    assert made.stats(0).families["active"].current == 2  # the first one still waits
    bindings.busy.clear()
    made.malloc(0, 30 * MIB)
    assert made.stats(0).families["active"].current == 2 and b.allocated


def test_expandable_segments_work_on_it(bindings):
    config = AllocatorConfig()
    config.read("expandable_segments:True")
    made = CachingAllocator(RealDriver(bindings), config)
    a = made.malloc(1, 50 * MIB)
    page = 20 * MIB, 1, "CU_MEM_ACCESS_FLAGS_PROT_READWRITE"
    assert bindings.accessible == {a.address + i * 20 * MIB: page for i in range(3)}
    assert bindings.devices.memory.used == [0, 60 * MIB]
    with pytest.raises(OutOfMemoryError):
        made.malloc(1, 60 * MIB)
    made.free(a)
    made.empty_cache()
    assert bindings.devices.memory.used == [0, 0]


@pytest.mark.parametrize("register", [False, True])
def test_the_host_s_allocator_works_on_it(bindings, register):
    config = AllocatorConfig()
    config.read(f"pinned_use_cuda_host_register:{register}")
    made = CachingHostAllocator(RealDriver(bindings), config)
    block = made.allocate(1000)
    assert made.driver.is_host_pinned(block.address) and not made.driver.is_host_pinned(block.address + 1024)
    block.streams.add((1, made.driver.stream_create(1)))
    made.free(block)
    event = made._pending[0][0]
    bindings.busy.add(event)
    assert made.allocate(1000) is not block
    bindings.busy.clear()
    assert made.allocate(1000) is block
    made.free(block)
    made.empty_cache()
    assert len(bindings.devices.host_memory) == 1 and made.stats.host_free_time.count == 1


def test_streams_events_and_errors(bindings):
    driver = RealDriver(bindings)
    stream = driver.stream_create(0, -1)
    first, last = (driver.event_create(0, enable_timing=True) for _ in range(2))
    driver.event_record(first, 0, stream)
    driver.event_record(last, 0, stream)
    driver.stream_wait_event(0, stream, first)
    assert driver.event_elapsed_time(first, last) == 0
    bindings.busy |= {stream, last}
    assert not driver.stream_query(0, stream) and not driver.event_query(last)
    driver.stream_synchronize(0, stream)
    driver.event_synchronize(last)
    assert driver.stream_query(0, stream) and driver.event_query(last)
    driver.event_destroy(last)
    driver.stream_destroy(0, stream)
    with pytest.raises(AcceleratorError, match="^CUDA error: invalid argument\nSearch for `cudaErrorInvalidValue' in"):
        driver.free(0, 12345)


def test_graphs(bindings, tmp_path):
    driver = RealDriver(bindings)
    stream, memory = driver.stream_create(1), driver.malloc(1, 512)
    numbers = np.arange(4, dtype=np.uint8)
    assert driver.stream_capture_id(1, stream) is None
    driver.stream_begin_capture(1, stream, RELAXED)
    assert driver.stream_capture_id(1, stream) == 1 and driver.stream_capture_id(0, stream) is None
    driver.copy(1, stream, address_of(bindings.devices.host(memory, 4)), address_of(numbers), 4)
    with driver.stream_capture_mode_guard():
        assert driver.exchange_stream_capture_mode(RELAXED) == RELAXED
    assert driver.exchange_stream_capture_mode(GLOBAL) == GLOBAL
    graph = driver.stream_end_capture(1, stream)
    assert driver.graph_node_count(graph) == 1
    driver.graph_debug_dot_print(graph, str(tmp_path / "graph"))
    assert (tmp_path / "graph").read_text().startswith("digraph")
    executable = driver.graph_instantiate(1, graph)
    driver.graph_destroy(graph)
    numbers += 7
    driver.graph_launch(executable, 1, stream)
    assert bindings.devices.host(memory, 4).tolist() == [7, 8, 9, 10]
    driver.graph_exec_destroy(executable)


def test_errors_of_kernels_may_be_another_call_s(monkeypatch):
    later = "CUDA kernel errors might be asynchronously reported at some other API call"
    text = check_message("an illegal memory access was encountered", "CUDA_ERROR_ILLEGAL_ADDRESS")
    assert text.startswith(
        "CUDA error: an illegal memory access was encountered\nSearch for `cudaErrorIllegalAddress' in "
    )
    assert later in text and later not in check_message("out of memory", "CUDA_ERROR_OUT_OF_MEMORY")
    monkeypatch.setenv("CUDA_LAUNCH_BLOCKING", "1")
    assert later not in check_message("unspecified launch failure", "CUDA_ERROR_LAUNCH_FAILED")


def test_a_device_s_name_ends_where_c_ends_it(bindings):
    bindings.cuDeviceGetName = lambda length, device: (SUCCESS, b"a GPU\0and what was there before")
    assert RealDriver(bindings).get_device_properties(0).name == "a GPU"


def test_a_launch_that_the_driver_refuses(bindings):
    bindings.cuLaunchKernel = lambda *arguments: (INVALID,)
    with pytest.raises(AcceleratorError, match="CUDA error: invalid configuration argument"):
        RealDriver(bindings).launch_kernel(1, 2, 3)


class DynamicLibNotFoundError(RuntimeError):
    """As NVIDIA's cuda.pathfinder has one."""


@pytest.mark.parametrize(
    "error, kind, words",
    [
        (
            DynamicLibNotFoundError("libnvrtc.so.13"),
            RuntimeError,
            ["libnvrtc.so.13", "pip install readtorch[cu13]", "[cu12]"],
        ),
        (
            OSError("[700] Call to cuCtxGetDevice results in CUDA_ERROR_INVALID_VALUE"),
            AcceleratorError,
            ["CUDA error: inv"],
        ),
        (OSError("CUDA_ERROR_INVALID_IMAGE: …"), AcceleratorError, ["cudaErrorInvalidKernelImage", "readtorch[cu12]"]),
        (KeyError("a mistake of ours"), KeyError, ["a mistake of ours"]),
    ],
)
def test_what_numba_could_not_compile_or_load(bindings, monkeypatch, error, kind, words):
    def launch(*arguments):
        raise error

    monkeypatch.setattr("readtorch.c10.cuda.numba_launch.launch", launch)
    with pytest.raises(kind) as caught:
        RealDriver(bindings).launch(0, 0, None, 1, 1, ())
    assert all(word in str(caught.value) for word in words)


def test_whose_memory_it_is(bindings):
    driver = RealDriver(bindings)
    address = driver.malloc(1, 1000)
    assert driver.device_of(address + 999) == 1 and driver.device_of(12345) is None


def test_windows_and_copies():
    driver, host = RealDriver(Bindings()), np.arange(8, dtype=np.uint8)
    window = driver.window(address_of(host), 8)  # host memory here: on a device nobody may look at its elements
    assert address_of(window) == address_of(host) and window[2:].shape == (6,)
    target = np.zeros(4, np.uint8)
    driver.copy(1, 0, address_of(target), address_of(window[2:]), 4)
    assert target.tolist() == [2, 3, 4, 5]


def test_a_driver_answers_every_question():
    assert not RealDriver.__abstractmethods__ and issubclass(RealDriver, Driver)


def test_nvidia_s_bindings_have_these_functions():
    """Each function that we call exists, with as many parameters as the stand-in's."""
    nvidia = pytest.importorskip("cuda.bindings.driver")
    for name, function in inspect.getmembers(Bindings, inspect.isfunction):
        if name.startswith("cu"):
            signature = getattr(nvidia, name).__doc__.split("\n")[0]
            parameters = signature[signature.index("(") + 1 : signature.rindex(")")]
            expected = len(inspect.signature(function).parameters) - 1
            assert len([p for p in parameters.split(",") if p.strip()]) == expected, signature
    for theirs in real_driver._ATTRIBUTES.values():
        assert hasattr(nvidia.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{theirs}")
    assert nvidia.CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE and nvidia.CUmemorytype.CU_MEMORYTYPE_HOST
    properties, access = nvidia.CUmemAllocationProp(), nvidia.CUmemAccessDesc()
    properties.type = nvidia.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    properties.location.type = nvidia.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    properties.location.id = 0
    access.flags = nvidia.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
