"""Which device and which stream a thread works on, and the streams that there are.

In PyTorch: `c10/cuda/CUDAStream.cpp`; for devices `c10/cuda/CUDAFunctions.cpp` and `c10/cuda/CUDAGuard.h`. Explained in
the chapter "The caching allocator".
"""

import functools
import threading
from typing import NamedTuple

from readtorch.c10.device import current_device

from . import runtime
from .cuda_exception import AcceleratorError
from .driver_api import DEFAULT_STREAM

STREAMS_PER_POOL = 32
LOWEST_PRIORITY, HIGHEST_PRIORITY = 0, -3


class StreamImpl(NamedTuple):
    """One stream: its device's index, its number as PyTorch counts, the driver's handle, its priority."""

    device_index: int
    id: int
    handle: int
    priority: int


@functools.cache
def default_stream(device_index):
    return StreamImpl(device_index, 0, DEFAULT_STREAM, 0)


class StreamPools:
    """The streams of one driver.

    Note [ A stream for everybody ]
    A stream costs the device memory and time, so there are 32 of each device and priority. A program that asks for more
    gets the same ones again, round robin.
    """

    def __init__(self, driver):
        self.driver = driver
        self._streams = {}  # (device index, priority) -> streams made so far
        self._requests = {}  # the same -> how many requests there were
        self._lock = threading.Lock()

    def next(self, device_index, priority):
        priority = min(max(priority, HIGHEST_PRIORITY), LOWEST_PRIORITY)
        key = device_index, priority
        with self._lock:
            index = self._requests.get(key, 0) % STREAMS_PER_POOL
            self._requests[key] = self._requests.get(key, 0) + 1
            made = self._streams.setdefault(key, [])
            if index == len(made):
                handle = self.driver.stream_create(device_index, priority)
                made.append(StreamImpl(device_index, _stream_id(index, priority), handle, priority))
            return made[index]

    def find(self, device_index, stream_id):
        """The stream of that number. RuntimeError if no request has returned it."""
        if stream_id == 0:
            return default_stream(device_index)
        for streams in self._streams.values():
            for stream in streams:
                if (stream.device_index, stream.id) == (device_index, stream_id):
                    return stream
        raise RuntimeError(f"Unrecognized stream {stream_id} on device {device_index}")


def _stream_id(index, priority):
    """The number that PyTorch gives the stream: its index in the pool, its kind (priority 0 is kind 1), a mark."""
    return index << 5 | (1 - priority) << 1 | 1


class _Current(threading.local):
    def __init__(self):
        self.pools = None  # the pools that `streams` are from: those of an earlier driver are forgotten
        self.streams = {}  # device index -> stream, where it is not the default one


_current = _Current()
_pools = None


def pools():
    """The streams of the process's driver."""
    global _pools
    driver = runtime.driver()
    if _pools is None or _pools.driver is not driver:
        _pools = StreamPools(driver)
    return _pools


def current_stream(device_index):
    """The stream on which this thread puts work for a device."""
    if not _current.streams:
        return default_stream(device_index)
    stream = _current.streams.get(device_index)
    return stream if stream is not None and _current.pools is pools() else default_stream(device_index)


def set_current_stream(stream):
    """From now on this thread's work for the stream's device goes there. Makes its device the current one."""
    if _current.pools is not pools():
        _current.pools, _current.streams = pools(), {}
    _current.streams[stream.device_index] = stream
    current_device.index = stream.device_index


def stream_wait_stream(waiting, stream):
    """Work put on `waiting` from now on waits for what is on `stream` now, which may be another device's."""
    driver = runtime.driver()
    event = driver.event_create(stream.device_index)
    driver.event_record(event, stream.device_index, stream.handle)
    driver.stream_wait_event(waiting.device_index, waiting.handle, event)
    driver.event_destroy(event)


class StreamGuard:
    """`with StreamGuard(stream):` it is the current one of its device, and that the current device; None changes nothing."""

    __slots__ = ("stream", "previous")

    def __init__(self, stream):
        self.stream = stream

    def __enter__(self):
        if self.stream is not None:
            self.previous = current_device.index, current_stream(self.stream.device_index)
            set_current_stream(self.stream)

    def __exit__(self, *exception):
        if self.stream is not None:
            index, stream = self.previous
            set_current_stream(stream)
            current_device.index = index


class DeviceGuard:
    """`with DeviceGuard(1):` that device is this thread's current one inside."""

    __slots__ = ("index", "previous")

    def __init__(self, index):
        self.index = index

    def __enter__(self):
        self.previous = current_device.index
        current_device.index = self.index

    def __exit__(self, *exception):
        current_device.index = self.previous


def check_index(index):
    """Raises AcceleratorError unless there is a device of that number."""
    if not 0 <= index < runtime.driver().device_count():
        raise AcceleratorError(
            "CUDA error: invalid device ordinal\nCUDA kernel errors might be asynchronously reported at some other API "
            "call, so the stacktrace below might be incorrect."
        )
