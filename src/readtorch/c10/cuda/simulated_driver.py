"""A driver of devices that do not exist: any number of them, of any size, on any computer.

Their memory is host memory (simulated_memory.py), their streams have a simulated clock
(simulated_streams.py), and what a kernel would compute is a Python function put on a stream. The same program gets the
same answers each time.

PyTorch has no such file: it has no simulated devices.
"""

import ctypes
import os
import re

import numpy as np

from readtorch.c10.storage_impl import address_of, owner_of

from .cuda_exception import AcceleratorError, check_message
from .driver_api import DeviceProperties, Driver, MemoryAt
from .simulated_graphs import failed, written_as_dot
from .simulated_memory import DEVICE_SPAN, FIRST_ADDRESS, SimulatedMemory
from .simulated_streams import SimulatedStreams

_UNITS = {"": 1, "B": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def parse_size(size):
    """Bytes from an int or a text such as "2GiB", "512MiB", "80 GB" (here, too, counted in powers of two)."""
    if isinstance(size, int):
        return size
    match = re.fullmatch(r"\s*([\d.]+)\s*([KMGT]?)(?:i?B)?\s*", size, re.IGNORECASE)
    if not match:
        raise ValueError(f"a size such as '2GiB' was expected, not '{size}'")
    return int(float(match[1]) * _UNITS[match[2].upper()])


def nothing():
    """The work of a kernel whose results are there already."""


def rebuilt(values, change):
    """Nested tuples with each array changed."""
    if type(values) is tuple:
        return tuple([rebuilt(value, change) for value in values])
    return change(values) if isinstance(values, np.ndarray) else values


def without_owner(array):
    """The array over the same memory of a device, which stays mapped, but may be given away. On the host: a copy."""
    memory = owner_of(array).base
    if not hasattr(memory, "host"):
        return array.copy()
    start = address_of(array) - address_of(memory.host)
    return np.ndarray(array.shape, array.dtype, memory.host, start if array.size else 0, array.strides)


class SimulatedDriver(Driver):
    """`devices` of `memory` bytes each (an int, a text such as "2GiB", or a list of them, one a device).

    `addresses`: "up" or "down", see Note [ Fictional addresses ]; `latencies`, `deferred`: see Note [
    Virtual time ]; `costs`: how long kernels take, a CostModel (Note [ The roofline ]) or None: no time at
    all. `kernels`, `locked`: Note [ Two kinds of simulated devices ].
    The devices have as many multiprocessors as an A100: that decides which thread draws which random number.

    Note [ Two kinds of simulated devices ]
    Without `kernels` a device uses the CPU's kernels: every operator works, and as fast as there (Note [
    Simulated devices ]). With `kernels` its tensors are CUDA tensors like those of a real GPU, and an
    operator runs the CUDA kernels of aten/native/cuda, thread by thread, on the kernel simulator: slow, and
    exactly what a real GPU would run. An operator without a CUDA kernel is an error. Only kernels and
    copies may touch the device's memory then; with `locked` it is protected in between, and any other access is
    a segmentation fault, as with the address of a real GPU. That is for tests.
    """

    def __init__(
        self,
        devices=1,
        memory="2GiB",
        *,
        addresses="up",
        latencies=None,
        deferred=False,
        costs=None,
        kernels=False,
        locked=False,
    ):
        sizes = memory if isinstance(memory, list | tuple) else [memory] * devices
        if len(sizes) != devices or devices < 1:
            raise ValueError(f"{devices} devices were asked for, and {len(sizes)} sizes of memory given")
        self.memory = SimulatedMemory([parse_size(size) for size in sizes], addresses, locked)
        self.failure = None  # the message of the error that a kernel ended with
        self.host_memory = {}  # address -> page-locked memory of the host, as an array
        self.runs_kernels = kernels
        self.streams = SimulatedStreams(devices, latencies, deferred)
        self.costs = costs
        self._properties = [
            DeviceProperties(f"simulated GPU {i}", capacity, multi_processor_count=108, simulated=True)
            for i, capacity in enumerate(self.memory.capacities)
        ]

    # ----------------------------------------------------------------- what only a simulated device can do

    def host(self, address, nbytes):
        """The bytes behind a device's address: a uint8 array over host memory."""
        return self.memory.host(address, nbytes)

    def enqueue(self, device, stream, work, duration=0.0, label=""):
        """Put a Python function on a stream, which it keeps busy for `duration` microseconds of virtual
        time."""
        self.streams.enqueue(device, stream, work, duration, label)

    def check(self):
        """Raises what a kernel's error has made of the context; there is no other, so every call that works on the device does."""
        if self.failure is not None:
            raise AcceleratorError(self.failure)

    def spend(self, device, stream, duration, label):
        """What was just done on a stream keeps it busy for `duration` microseconds."""
        capture = self.streams.captures.by_stream.get((device, stream))
        if capture is None:
            self.streams.enqueue(device, stream, nothing, duration, label)
        else:
            self.streams.now += self.streams.latencies.launch
            capture.spend((device, stream), duration, label)

    # --------------------------------------------------------------------------------------------- devices

    def device_count(self):
        return len(self._properties)

    def get_device_properties(self, device):
        return self._properties[device]

    def device_synchronize(self, device):
        self.check()
        self.streams.synchronize_device(device)

    def processes(self, device):
        return [(os.getpid(), self.memory.used[device])]

    # ---------------------------------------------------------------------------------------------- memory

    def mem_get_info(self, device):
        self.check()
        capacity = self.memory.capacities[device]
        return capacity - self.memory.used[device], capacity

    def malloc(self, device, nbytes):
        self.check()
        self.streams.captures.check_safe()
        self.streams.spend(self.streams.latencies.malloc)
        return self.memory.malloc(device, nbytes)

    def free(self, device, address):
        self.streams.captures.check_safe()
        self.device_synchronize(device)
        self.streams.spend(self.streams.latencies.free)
        self.memory.free(device, address)

    def window(self, address, nbytes):
        return self.memory.host(address, nbytes)

    def device_of(self, address):
        device = (address - FIRST_ADDRESS) // DEVICE_SPAN
        return device if 0 <= device < self.device_count() and self.memory.is_used(address) else None

    def copy(self, device, stream, destination, source, nbytes):
        self.check()
        self._do(device, stream, lambda: ctypes.memmove(destination, source, nbytes), "copy")

    def host_alloc(self, nbytes):
        self.check()
        self.streams.spend(self.streams.latencies.host_alloc)
        memory = np.empty(nbytes, np.uint8)
        self.host_memory[address_of(memory)] = memory
        return address_of(memory)

    def host_free(self, address):
        for device in range(self.device_count()):
            self.device_synchronize(device)
        self.streams.spend(self.streams.latencies.host_free)
        self._forget_host_memory(address)

    def host_register(self, address, nbytes):
        self.streams.spend(self.streams.latencies.host_alloc)
        self.host_memory[address] = np.asarray(MemoryAt(address, nbytes))

    def host_unregister(self, address):
        self.streams.spend(self.streams.latencies.host_free)
        self._forget_host_memory(address)

    def _forget_host_memory(self, address):
        if self.host_memory.pop(address, None) is None:
            raise AcceleratorError("CUDA error: invalid argument")

    def is_host_pinned(self, address):
        return any(start <= address < start + memory.nbytes for start, memory in list(self.host_memory.items()))

    def microseconds(self):
        return int(self.streams.now)

    def mem_address_reserve(self, device, nbytes):
        return self.memory.reserve(nbytes)

    def mem_address_free(self, address, nbytes):
        self.memory.free_reserved(address)

    def mem_create(self, device, nbytes):
        self.check()
        self.streams.spend(self.streams.latencies.mem_map)
        return self.memory.create(device, nbytes)

    def mem_release(self, handle):
        self.memory.release(handle)

    def mem_map(self, device, address, nbytes, handle):
        self.memory.map(address, nbytes, handle)

    def mem_unmap(self, address, nbytes):
        self.streams.spend(self.streams.latencies.mem_unmap)
        self.memory.unmap(address, nbytes)

    # --------------------------------------------------------------------------------------------- kernels

    def launch(self, device, stream, kernel, grid, block, arguments, shared=0):
        if self.is_capturing(device, stream):  # the graph must not keep memory in use
            arguments = rebuilt(arguments, without_owner)
        self._do(device, stream, lambda: self._run(kernel, grid, block, arguments, shared), kernel.__name__)

    def _run(self, kernel, grid, block, arguments, shared):
        from . import simulator
        from .cuda_device_assertion import DeviceAssert, report

        self.check()
        try:
            simulator.launch(kernel, grid, block, *arguments, shared=shared)
        except DeviceAssert as error:  # the call that comes next says so: Note [ When a kernel finds an error ]
            self.failure = report(error)
        except simulator.OutOfBounds as error:
            self.failure = check_message("an illegal memory access was encountered", "CUDA_ERROR_ILLEGAL_ADDRESS")
            raise AcceleratorError(f"{self.failure}\n{error}") from error
        except simulator.SimulatorError as error:
            raise AcceleratorError(f"CUDA error: {error}") from error

    def _do(self, device, stream, work, label):
        """Now, or when the graph that the stream captures is replayed. How long it takes is told afterwards (`enqueue`)."""

        def unlocked():
            with self.memory.unlocked():
                work()

        if self.is_capturing(device, stream):
            self.capture(device, stream, unlocked, label)
        else:
            unlocked()

    # ---------------------------------------------------------------------------------------------- graphs

    def is_capturing(self, device, stream):
        return (device, stream) in self.streams.captures.by_stream

    def capture(self, device, stream, work, label):
        """Make a Python function a node of the graph that the stream captures."""
        self.streams.captures.by_stream[device, stream].add((device, stream), work, None, label)

    def stream_begin_capture(self, device, stream, mode):
        self.streams.captures.begin((device, stream), mode)

    def stream_end_capture(self, device, stream):
        return self.streams.captures.end((device, stream))

    def stream_capture_id(self, device, stream):
        capture = self.streams.captures.by_stream.get((device, stream))
        return None if capture is None else capture.id

    def exchange_stream_capture_mode(self, mode):
        return self.streams.captures.exchange_thread_mode(mode)

    def graph_node_count(self, graph):
        return len(self.streams.captures.graphs[graph])

    def graph_debug_dot_print(self, graph, path):
        with open(path, "w") as file:
            file.write(written_as_dot(self.streams.captures.graphs[graph]))

    def graph_instantiate(self, device, graph):
        return self.streams.captures.keep(self.streams.captures.graphs[graph])

    def graph_launch(self, executable, device, stream):
        self.check()
        nodes = self.streams.captures.graphs[executable]
        if self.is_capturing(device, stream):
            raise failed("STREAM_CAPTURE_UNSUPPORTED", self.streams.captures.by_stream[device, stream])
        self.streams.launch_graph(device, stream, nodes)

    def graph_destroy(self, graph):
        del self.streams.captures.graphs[graph]

    graph_exec_destroy = graph_destroy

    # ---------------------------------------------------------------------------------- streams and events

    def stream_create(self, device, priority=0):
        self.check()
        return self.streams.create(device, priority)

    def stream_destroy(self, device, stream):
        self.streams.destroy(device, stream)

    def stream_synchronize(self, device, stream):
        self.check()
        self.streams.synchronize(device, stream)

    def stream_query(self, device, stream):
        self.check()
        return self.streams.query(device, stream)

    def stream_wait_event(self, device, stream, event):
        self.check()
        self.streams.wait_event(device, stream, event)

    def event_create(self, device, enable_timing=False):
        self.check()
        return self.streams.create_event(device, enable_timing)

    def event_destroy(self, event):
        self.streams.destroy_event(event)

    def event_record(self, event, device, stream):
        self.check()
        self.streams.record(event, device, stream)

    def event_query(self, event):
        self.check()
        return self.streams.query_event(event)

    def event_synchronize(self, event):
        self.check()
        self.streams.synchronize_event(event)

    def event_elapsed_time(self, start, end):
        self.check()
        return self.streams.elapsed(start, end)
