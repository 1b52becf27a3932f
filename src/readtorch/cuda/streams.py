"""Streams, on which a device does its work in order, and events, the marks between two pieces of work.

In PyTorch: `torch/cuda/streams.py`, `torch/csrc/cuda/{Stream,Event}.cpp`. Explained in the chapter "The caching
allocator".
"""

from readtorch.c10.cuda import cuda_stream as c10_stream
from readtorch.c10.cuda import runtime
from readtorch.c10.cuda.cuda_stream import StreamImpl
from readtorch.c10.device import current_device
from readtorch.c10.device import device as Device

from ._utils import _get_device_index


class Stream:
    """A stream of `device` (default: the current one). A lower `priority` number goes first; 0 is the lowest.

    There are 32 of each device and priority, which further requests share: see Note [ A stream for everybody ].
    """

    def __init__(
        self, device=None, priority=0, *, stream_id=None, device_index=None, device_type=None, stream_ptr=None
    ):
        index = device_index if device_index is not None else _get_device_index(device, optional=True)
        c10_stream.check_index(index)
        self._driver = runtime.driver()
        if stream_ptr is not None:
            self._impl = StreamImpl(index, stream_ptr, stream_ptr, priority)
        elif stream_id is not None:
            self._impl = c10_stream.pools().find(index, stream_id)
        else:
            self._impl = c10_stream.pools().next(index, priority)

    device_index = property(lambda self: self._impl.device_index)
    device = property(lambda self: Device("cuda", self._impl.device_index))
    device_type = 1
    stream_id = property(lambda self: self._impl.id)
    cuda_stream = property(lambda self: self._impl.handle)
    priority = property(lambda self: self._impl.priority)

    @staticmethod
    def priority_range():
        """(the lowest priority, the highest)."""
        return c10_stream.LOWEST_PRIORITY, c10_stream.HIGHEST_PRIORITY

    def query(self):
        """Whether all work put on it is done."""
        return runtime.driver().stream_query(*self._device_and_handle())

    def synchronize(self):
        """Wait until it is."""
        runtime.driver().stream_synchronize(*self._device_and_handle())

    def wait_event(self, event):
        """Work put on it from now on waits for the event; the caller does not."""
        event.wait(self)

    def wait_stream(self, stream):
        """Work put on it from now on waits for what is on the other stream now."""
        self.wait_event(stream.record_event())

    def record_event(self, event=None):
        """Put an event (a new one by default) on it; returns the event."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def is_of_current_driver(self):
        """Whether its devices are still there: `simulate` replaces them all."""
        return self._driver is runtime.driver()

    def _device_and_handle(self):
        return self._impl.device_index, self._impl.handle

    def __enter__(self):
        from . import StreamContext

        self._contexts = [*getattr(self, "_contexts", ()), StreamContext(self)]
        self._contexts[-1].__enter__()
        return self

    def __exit__(self, *exception):
        self._contexts.pop().__exit__(*exception)

    def __eq__(self, o):
        return isinstance(o, Stream) and self._impl == o._impl

    def __hash__(self):
        return hash((self.cuda_stream, self.device))

    def __repr__(self):
        return f"<torch.cuda.Stream device={self.device} cuda_stream={self.cuda_stream:#x}>"


class ExternalStream(Stream):
    """A stream that another library made: `stream_ptr` is the driver's handle."""

    def __init__(self, stream_ptr, device=None):
        super().__init__(device, stream_ptr=stream_ptr)


def stream_over(impl):
    """A Stream for one that exists."""
    stream = Stream.__new__(Stream)
    stream._impl, stream._driver = impl, runtime.driver()
    return stream


class Event:
    """A mark on a stream. enable_timing: whether it remembers when the stream reached it.

    It belongs to the device of the stream on which it is first recorded.
    """

    def __init__(self, enable_timing=False, blocking=False, interprocess=False, external=False):
        self._timing = enable_timing
        self._driver = self._handle = self._device_index = None
        self._recorded = False

    @property
    def device(self):
        return None if self._handle is None else Device("cuda", self._device_index)

    cuda_event = property(lambda self: self._handle or 0)

    def record(self, stream=None):
        """Put it behind the work that is on `stream` (default: the current one)."""
        stream = _current(stream)
        self._create(stream.device_index)
        if stream.device_index != self._device_index:
            raise RuntimeError(
                f"Event device {self._device_index} does not match recording stream's device {stream.device_index}."
            )
        self._driver.event_record(self._handle, *stream._device_and_handle())
        self._recorded = True

    def wait(self, stream=None):
        """Work put on `stream` (default: the current one) from now on waits for it."""
        if self._handle is not None:
            self._driver.stream_wait_event(*_current(stream)._device_and_handle(), self._handle)

    def query(self):
        """Whether the stream has reached it; True if it was never recorded."""
        return self._handle is None or self._driver.event_query(self._handle)

    def synchronize(self):
        """Wait until the stream has reached it."""
        if self._handle is not None:
            self._driver.event_synchronize(self._handle)

    def elapsed_time(self, end_event):
        """Milliseconds between this event and `end_event` on their device. ValueError or RuntimeError if they say none."""
        if not (self._timing and end_event._timing):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if not (self._recorded and end_event._recorded):
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        if not (self.query() and end_event.query()):
            raise ValueError("Both events must be completed before calculating elapsed time.")
        return self._driver.event_elapsed_time(self._handle, end_event._handle)

    def _create(self, device_index):
        if self._handle is None:
            self._driver, self._device_index = runtime.driver(), device_index
            self._handle = self._driver.event_create(device_index, self._timing)

    def __del__(self):
        if self._handle is not None:
            self._driver.event_destroy(self._handle)

    def __repr__(self):
        return f"<torch.cuda.Event {self._handle:#x}>" if self._handle else "<torch.cuda.Event uninitialized>"


def _current(stream):
    return stream_over(c10_stream.current_stream(current_device.index)) if stream is None else stream
