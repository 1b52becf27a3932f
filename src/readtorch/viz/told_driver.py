"""A simulated driver whose events are complete when somebody says so: for programs in which the reader, or a recording,
decides when a stream has caught up. PyTorch has no such file."""

from collections import defaultdict, deque

from readtorch.c10.cuda.simulated_driver import SimulatedDriver


class ToldDriver(SimulatedDriver):
    """Streams catch up by `complete` alone, or when the allocator waits for them."""

    def __init__(self, devices, capacity, addresses="up"):
        super().__init__(devices, capacity, addresses=addresses)
        self.pending = defaultdict(deque)  # (device, stream) -> events, the oldest first
        self.place = {}  # event -> (device, stream) while it is pending
        self.made = 0

    def free(self, device, address):
        self.memory.free(device, address)

    def event_create(self, device, enable_timing=False):
        self.made += 1
        return self.made

    def event_record(self, event, device, stream):
        self.pending[device, stream].append(event)
        self.place[event] = device, stream

    def event_query(self, event):
        return event not in self.place

    def event_synchronize(self, event):
        while event in self.place:
            self.complete(*self.place[event], 1)

    def stream_synchronize(self, device, stream):
        self.complete(device, stream, 0)

    def complete(self, device, stream, n):
        """The oldest `n` events of the stream are complete; 0: all of them."""
        events = self.pending[device, stream]
        for _ in range(min(n, len(events)) if n else len(events)):
            del self.place[events.popleft()]
