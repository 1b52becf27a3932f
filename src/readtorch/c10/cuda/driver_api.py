"""What a device can do for us: the few calls of CUDA that the allocator, streams and events are built on.

Two drivers implement them: `simulated_driver.SimulatedDriver`, whose devices do not exist, and
`real_driver.RealDriver`, which asks the CUDA driver. Addresses, streams, events and pages of memory are
plain numbers here, as they are handles in CUDA; stream 0 of every device is its default stream.

In PyTorch: `c10/cuda/driver_api.h` lists the functions of the CUDA driver that are used (`cuMemMap` …); most calls go
to the CUDA runtime (`cudaMalloc` …), with no interface in between. Explained in the chapter "The caching allocator".
"""

import abc
import contextlib
import dataclasses
import time

from .cuda_exception import launches_block

DEFAULT_STREAM = 0
GLOBAL, THREAD_LOCAL, RELAXED = range(3)  # cudaStreamCaptureMode


class MemoryAt:
    """An address as NumPy's array interface describes memory: NumPy asks nobody whether it is there."""

    def __init__(self, address, nbytes):
        self.__array_interface__ = {"data": (address, False), "shape": (nbytes,), "typestr": "|u1", "version": 3}


@dataclasses.dataclass(frozen=True)
class DeviceProperties:
    """What never changes about a device. In PyTorch: `_CudaDeviceProperties`, made from `cudaDeviceProp`."""

    name: str
    total_memory: int
    major: int = 8
    minor: int = 0
    multi_processor_count: int = 1
    warp_size: int = 32
    max_threads_per_block: int = 1024
    max_threads_per_multi_processor: int = 2048
    regs_per_multiprocessor: int = 65536
    shared_memory_per_block: int = 49152
    shared_memory_per_multiprocessor: int = 167936
    l2_cache_size: int = 0
    is_integrated: bool = False
    simulated: bool = False


class Driver(abc.ABC):
    """Sizes are in bytes, times in milliseconds. Calls fail with AcceleratorError, for want of memory with
    MemoryAllocationError."""

    # -------------------------------------------------------------------------------------------- devices

    @abc.abstractmethod
    def device_count(self):
        """The number of devices."""

    @abc.abstractmethod
    def get_device_properties(self, device):
        """The device's DeviceProperties."""

    @abc.abstractmethod
    def device_synchronize(self, device):
        """Wait until all streams of the device have done their work."""

    @abc.abstractmethod
    def processes(self, device):
        """Who holds memory of the device: a list of (process id, bytes)."""

    # --------------------------------------------------------------------------------------------- memory

    @abc.abstractmethod
    def mem_get_info(self, device):
        """(free, total) bytes of the device, whoever holds the rest. In CUDA: `cudaMemGetInfo`."""

    @abc.abstractmethod
    def malloc(self, device, nbytes):
        """The address of `nbytes` of fresh memory. In CUDA: `cudaMalloc`."""

    @abc.abstractmethod
    def free(self, device, address):
        """Give back what `malloc` returned; waits for the device first. In CUDA: `cudaFree`."""

    @abc.abstractmethod
    def window(self, address, nbytes):
        """A uint8 array over the device's memory. Views of it may be made; to read and to write elements is
        for kernels and for `copy`."""

    @abc.abstractmethod
    def device_of(self, address):
        """The device that knows an address, or None. In CUDA: `cudaPointerGetAttributes`."""

    @abc.abstractmethod
    def copy(self, device, stream, destination, source, nbytes):
        """Put a copy on a stream. Addresses are those of arrays, over host memory or over a window. In CUDA:
        `cudaMemcpyAsync` with `cudaMemcpyDefault`."""

    # --------------------------------------------------------------------------------- page-locked host memory

    @abc.abstractmethod
    def host_alloc(self, nbytes):
        """The address of `nbytes` of host memory that devices can reach by themselves. In CUDA: `cudaHostAlloc`."""

    @abc.abstractmethod
    def host_free(self, address):
        """Give back what `host_alloc` returned. In CUDA: `cudaFreeHost`."""

    @abc.abstractmethod
    def host_register(self, address, nbytes):
        """Lock the pages of memory that is there already. In CUDA: `cudaHostRegister`."""

    @abc.abstractmethod
    def host_unregister(self, address):
        """Unlock them. In CUDA: `cudaHostUnregister`."""

    @abc.abstractmethod
    def is_host_pinned(self, address):
        """Whether an address lies in such memory. In CUDA: `cudaPointerGetAttributes`."""

    def microseconds(self):
        """The host's clock."""
        return time.perf_counter_ns() // 1000

    # ----------------------------------------------------------------------------------- virtual memory
    # Addresses and memory apart: reserve a range of addresses, create pieces of memory, map them where
    # wanted.

    @abc.abstractmethod
    def mem_address_reserve(self, device, nbytes):
        """The first of `nbytes` addresses that stand for nothing yet. In CUDA: `cuMemAddressReserve`."""

    @abc.abstractmethod
    def mem_address_free(self, address, nbytes):
        """Give a reserved range back, with nothing mapped in it. In CUDA: `cuMemAddressFree`."""

    @abc.abstractmethod
    def mem_create(self, device, nbytes):
        """A handle of `nbytes` of the device's memory, without an address. In CUDA: `cuMemCreate`."""

    @abc.abstractmethod
    def mem_release(self, handle):
        """Give that memory back. In CUDA: `cuMemRelease`."""

    @abc.abstractmethod
    def mem_map(self, device, address, nbytes, handle):
        """Let the addresses stand for that memory, readable and writable. In CUDA: `cuMemMap`,
        `cuMemSetAccess`."""

    @abc.abstractmethod
    def mem_unmap(self, address, nbytes):
        """Let the addresses stand for nothing again. In CUDA: `cuMemUnmap`."""

    # -------------------------------------------------------------------------------------------- streams

    @abc.abstractmethod
    def stream_create(self, device, priority=0):
        """The handle of a new stream: work on it is done in order, work on different streams in any."""

    @abc.abstractmethod
    def stream_destroy(self, device, stream):
        """Work that is still on the stream is done first."""

    @abc.abstractmethod
    def stream_synchronize(self, device, stream):
        """Wait until the stream has done its work."""

    @abc.abstractmethod
    def stream_query(self, device, stream):
        """Whether the stream has done its work."""

    @abc.abstractmethod
    def stream_wait_event(self, device, stream, event):
        """What is put on the stream from now on waits for the event."""

    # -------------------------------------------------------------------------------------------- kernels

    @property
    def launches_block(self):
        """Whether the host waits for every kernel. The CUDA driver asks for CUDA_LAUNCH_BLOCKING once, when it is loaded."""
        return launches_block()

    runs_kernels = True  # whether operators compute with CUDA kernels: Note [ Two kinds of simulated devices ]

    @abc.abstractmethod
    def launch(self, device, stream, kernel, grid, block, arguments, shared=0):
        """Put a kernel, a function of aten/native/cuda, on a stream. `arguments`: numbers, tuples of them,
        arrays over windows. In CUDA: `cuLaunchKernel`."""

    # --------------------------------------------------------------------------------------------- graphs
    # What a stream captures is not done but becomes part of a graph, which can be launched as often as wanted.

    @abc.abstractmethod
    def stream_begin_capture(self, device, stream, mode):
        """From now on work put on the stream is captured. mode: which calls that may wait for the device are errors
        meanwhile, GLOBAL: those of all threads, THREAD_LOCAL: of this thread, RELAXED: none. In CUDA: `cudaStreamBeginCapture`."""

    @abc.abstractmethod
    def stream_end_capture(self, device, stream):
        """The handle of the graph that was captured. In CUDA: `cudaStreamEndCapture`."""

    @abc.abstractmethod
    def stream_capture_id(self, device, stream):
        """The number of the capture that the stream takes part in, or None. In CUDA: `cudaStreamGetCaptureInfo`."""

    @abc.abstractmethod
    def exchange_stream_capture_mode(self, mode):
        """This thread's own mode, which was another before: its number. In CUDA: `cudaThreadExchangeStreamCaptureMode`."""

    @contextlib.contextmanager
    def stream_capture_mode_guard(self, mode=RELAXED):
        """This thread's mode is another inside: without an error it may do what is unsafe in a capture, as to allocate memory
        for it. In PyTorch: `CUDAStreamCaptureModeGuard` in `c10/cuda/CUDAGraphsC10Utils.h`."""
        before = self.exchange_stream_capture_mode(mode)
        try:
            yield
        finally:
            self.exchange_stream_capture_mode(before)

    @abc.abstractmethod
    def graph_node_count(self, graph):
        """How many nodes a graph has. In CUDA: `cudaGraphGetNodes`."""

    @abc.abstractmethod
    def graph_debug_dot_print(self, graph, path):
        """Write a graph to a file, for Graphviz. In CUDA: `cudaGraphDebugDotPrint`."""

    @abc.abstractmethod
    def graph_instantiate(self, device, graph):
        """The handle of a graph that can be launched. In CUDA: `cudaGraphInstantiate`."""

    @abc.abstractmethod
    def graph_launch(self, executable, device, stream):
        """Put all its work on a stream. In CUDA: `cudaGraphLaunch`."""

    @abc.abstractmethod
    def graph_destroy(self, graph):
        """Forget a graph. In CUDA: `cudaGraphDestroy`."""

    @abc.abstractmethod
    def graph_exec_destroy(self, executable):
        """Forget one that can be launched. In CUDA: `cudaGraphExecDestroy`."""

    # --------------------------------------------------------------------------------------------- events

    @abc.abstractmethod
    def event_create(self, device, enable_timing=False):
        """The handle of a new event: a mark that is put on a stream and is complete when the stream reaches
        it."""

    @abc.abstractmethod
    def event_destroy(self, event):
        """Forget the event."""

    @abc.abstractmethod
    def event_record(self, event, device, stream):
        """Put the mark behind the work that is on the stream now (an older mark is forgotten)."""

    @abc.abstractmethod
    def event_query(self, event):
        """Whether the stream has reached the mark; True if it was never put anywhere."""

    @abc.abstractmethod
    def event_synchronize(self, event):
        """Wait until the stream has reached the mark."""

    @abc.abstractmethod
    def event_elapsed_time(self, start, end):
        """Milliseconds of device time between two marks."""
