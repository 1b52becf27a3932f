"""The CPU as one more kind of device: the functions of `readtorch.cuda` that programs for any device call, most of which do nothing.

In PyTorch: `torch/cpu/__init__.py`.
"""

from . import amp

__all__ = [
    "is_available",
    "is_initialized",
    "synchronize",
    "current_device",
    "current_stream",
    "stream",
    "set_device",
    "device_count",
    "Stream",
    "StreamContext",
    "Event",
]


def is_available():
    return True


def is_initialized():
    return True


def synchronize(device=None):
    """What was called has been done: nothing waits on a CPU."""


class Stream:
    """The queue of a device that has none."""

    def __init__(self, priority=-1):
        pass

    def wait_stream(self, stream):
        pass

    def record_event(self):
        pass

    def wait_event(self, event):
        pass


class Event:
    """An event that has always happened."""

    def query(self):
        return True

    def record(self, stream=None):
        pass

    def synchronize(self):
        pass

    def wait(self, stream=None):
        pass


_default_cpu_stream = _current_stream = Stream()


def current_stream(device=None):
    return _current_stream


class StreamContext:
    """`with StreamContext(stream):` makes `stream` the one that `current_stream()` returns; None changes nothing."""

    def __init__(self, stream):
        self.stream = stream
        self.prev_stream = _default_cpu_stream

    def __enter__(self):
        global _current_stream
        if self.stream is not None:
            self.prev_stream, _current_stream = _current_stream, self.stream

    def __exit__(self, *exception):
        global _current_stream
        if self.stream is not None:
            _current_stream = self.prev_stream


def stream(stream):
    return StreamContext(stream)


def device_count():
    """Of devices, not of cores: 1."""
    return 1


def set_device(device):
    """There is one."""


def current_device():
    return "cpu"
