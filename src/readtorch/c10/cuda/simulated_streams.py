"""Streams and events of devices that do not exist, and a simulated clock.

Note [ Virtual time ]
Times are microseconds of a simulated clock. The host has one: it moves on when a call costs something
(`Latencies`) and when the host waits for a device. A stream has another: when the work put on it will be
done. Work starts when the stream is free and the host has asked for it, whichever comes later; an event is
complete once the host's clock has reached the time of its mark. Everything is computed, nothing is
measured: the same program gives the same times.

With no latencies and no durations, the default, all work is done as soon as it is requested. When the
*results* appear is another question: at once, unless the driver was made with `deferred=True`. Then a piece
of work is run only when the host looks (synchronizes or queries) and its time has come, as on a real
device, so that a program which forgets to synchronize reads old numbers.

PyTorch has no such file: it has no simulated devices.
"""

import dataclasses
import heapq

from .cuda_exception import AcceleratorError
from .driver_api import DEFAULT_STREAM
from .simulated_graphs import Captures


@dataclasses.dataclass
class Latencies:
    """What calls cost the host, in microseconds."""

    malloc: float = 0.0
    free: float = 0.0
    host_alloc: float = 0.0  # page-locked memory of the host
    host_free: float = 0.0
    mem_map: float = 0.0  # one page: cuMemCreate and cuMemMap
    mem_unmap: float = 0.0
    launch: float = 0.0  # to put work on a stream
    event_record: float = 0.0
    event_query: float = 0.0
    synchronize: float = 0.0  # any waiting, however short


class SimulatedStream:
    def __init__(self, device, priority=0):
        self.device = device
        self.priority = priority
        self.done_at = 0.0  # when the work put on it so far will be done


class SimulatedEvent:
    def __init__(self, device, timing):
        self.device = device
        self.timing = timing
        self.at = None  # when its stream reaches it; None if it was never put on one
        self.captured = None  # (capture, tails) if it was last recorded on a stream that captured


class SimulatedStreams:
    """The streams and events of all devices."""

    def __init__(self, devices, latencies=None, deferred=False):
        self.latencies = latencies or Latencies()
        self.deferred = deferred
        self.now = 0.0  # the host's clock
        self.timeline = None  # a list here collects (device, stream, label, start, end)
        self.captures = Captures()
        self._streams = {(device, DEFAULT_STREAM): SimulatedStream(device) for device in range(devices)}
        self._events = {}
        self._next_handle = 1
        self._waiting = []  # deferred work: a heap of (when it is done, number, function)
        self._numbers = 0

    # --------------------------------------------------------------------------------------------- streams

    def create(self, device, priority):
        handle = self._new_handle()
        self._streams[device, handle] = SimulatedStream(device, priority)
        return handle

    def destroy(self, device, stream):
        self.wait_until(self._stream(device, stream).done_at)
        del self._streams[device, stream]

    def enqueue(self, device, stream, work, duration=0.0, label=""):
        """Put `work()`, which keeps the stream busy for `duration`, on a stream."""
        queue = self._stream(device, stream)
        self.now += self.latencies.launch
        if (device, stream) in self.captures.by_stream:
            return self.captures.by_stream[device, stream].add((device, stream), work, duration, label)
        start = max(self.now, queue.done_at)
        queue.done_at = start + duration
        if self.timeline is not None:
            self.timeline.append((device, stream, label, start, queue.done_at))
        if self.deferred:
            self._numbers += 1
            heapq.heappush(self._waiting, (queue.done_at, self._numbers, work))
        else:
            work()

    def occupy_together(self, places, duration, label, after=0.0):
        """Keep streams, given as (device, stream), busy for `duration` from when all of them are free, and not before `after`: a
        collective. Returns its end.
        """
        queues = [self._stream(*place) for place in places]
        start = max(self.now, after, *[queue.done_at for queue in queues])
        for place, queue in zip(places, queues):
            queue.done_at = start + duration
            if self.timeline is not None:
                self.timeline.append((*place, label, start, queue.done_at))
        return start + duration

    def launch_graph(self, device, stream, nodes):
        """Do a graph's work, for which the host pays one launch."""
        queue = self._stream(device, stream)
        self.now += self.latencies.launch
        start, ends = max(self.now, queue.done_at), []
        for node in nodes:
            begin = max([start, *[ends[i] for i in node.after]])
            ends.append(begin + (node.duration or 0.0))
            if self.timeline is not None:
                self.timeline.append((*node.stream, node.label, begin, ends[-1]))
            if node.work is not None:
                node.work()
        queue.done_at = max([start, *ends])

    def synchronize(self, device, stream):
        self.captures.check_stream((device, stream))
        self.wait_until(self._stream(device, stream).done_at)

    def synchronize_device(self, device):
        self.captures.check_device(device)
        self.wait_until(max(queue.done_at for queue in self._streams.values() if queue.device == device))

    def query(self, device, stream):
        self.captures.check_stream((device, stream))
        self.spend(self.latencies.event_query)
        return self._stream(device, stream).done_at <= self.now

    def wait_event(self, device, stream, event):
        queue, event = self._stream(device, stream), self._event(event)
        if self.captures.wait((device, stream), event):
            return
        at = event.at
        if at is not None:
            queue.done_at = max(queue.done_at, at)

    # ---------------------------------------------------------------------------------------------- events

    def create_event(self, device, timing):
        handle = self._new_handle()
        self._events[handle] = SimulatedEvent(device, timing)
        return handle

    def destroy_event(self, event):
        del self._events[event]

    def record(self, event, device, stream):
        self.now += self.latencies.event_record
        event = self._event(event)
        if not self.captures.record((device, stream), event):
            event.at = max(self.now, self._stream(device, stream).done_at)

    def query_event(self, event):
        self.captures.check_event(self._event(event))
        self.spend(self.latencies.event_query)
        at = self._event(event).at
        return at is None or at <= self.now

    def synchronize_event(self, event):
        self.captures.check_event(self._event(event))
        at = self._event(event).at
        self.wait_until(self.now if at is None else at)

    def elapsed(self, start, end):
        start, end = self._event(start), self._event(end)
        for event in (start, end):
            self.captures.check_event(event)
        if not (start.timing and end.timing) or start.at is None or end.at is None:
            raise AcceleratorError("CUDA error: invalid resource handle")
        return (end.at - start.at) / 1000

    # ------------------------------------------------------------------------------------------- the clock

    def spend(self, microseconds):
        """The host is busy for a while; work whose time has come meanwhile is run."""
        self.now += microseconds
        while self._waiting and self._waiting[0][0] <= self.now:
            heapq.heappop(self._waiting)[2]()

    def wait_until(self, time):
        """The host waits."""
        self.now = max(self.now, time)
        self.spend(self.latencies.synchronize)

    # ------------------------------------------------------------------------------------------- look-ups

    def _new_handle(self):
        handle = self._next_handle
        self._next_handle += 1
        return handle

    def _stream(self, device, stream):
        try:
            return self._streams[device, stream]
        except KeyError:
            raise AcceleratorError("CUDA error: invalid resource handle") from None

    def _event(self, event):
        try:
            return self._events[event]
        except KeyError:
            raise AcceleratorError("CUDA error: invalid resource handle") from None
