"""Written in the chapter "Fast kernels": its cells are this file, put together by `tools/mini.py`."""


class Stream:
    """A queue of a device: when its work will be done."""

    def __init__(self):
        self.free_at = 0.0


class Device:
    """A host's clock in microseconds, and streams behind it."""

    def __init__(self, launch=5.0):
        self.launching = launch  # what asking costs the host
        self.now = 0.0
        self.main = Stream()
        self.graph = None  # that is being captured

    def launch(self, work, takes, stream=None):
        """Ask for `work()`, which keeps a stream busy so long."""
        self.now += self.launching
        if self.graph is not None:
            self.graph.append((work, takes))
        else:
            self.put(work, takes, stream or self.main)

    def put(self, work, takes, stream):
        stream.free_at = max(self.now, stream.free_at) + takes
        work()

    def synchronize(self, stream=None):
        """The host waits until a stream is empty."""
        if self.graph is not None:
            raise RuntimeError("not permitted while capturing")
        self.now = max(self.now, (stream or self.main).free_at)


class Event:
    """A mark in a stream."""

    def record(self, device, stream=None):
        stream = stream or device.main
        self.at = max(device.now, stream.free_at)

    def wait(self, stream):
        """What is put on `stream` from now on comes after it."""
        stream.free_at = max(stream.free_at, self.at)

    def elapsed(self, later):
        return later.at - self.at


class Graph:
    """Launches that were captured, to be replayed."""

    def capture(self, device, program):
        self.nodes = device.graph = []
        try:
            program()
        finally:
            device.graph = None

    def replay(self, device):
        device.now += device.launching  # once
        for work, takes in self.nodes:
            device.put(work, takes, device.main)
