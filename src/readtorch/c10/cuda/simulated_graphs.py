"""Graphs of devices that do not exist: work that a stream captures instead of doing it, and its replay.

Note [ Captured work ]
While a stream captures, what is put on it becomes a node of a graph: a Python function, and how long it keeps a device busy. A
node comes after the nodes that the stream's tails are; then it is the stream's only tail. An event that is recorded there
holds the tails, and another stream that waits for it takes part in the capture from then on. At the end all that was forked
must have been joined. A replay is one launch for the host: each node begins when those before it are done. What would have to
wait for work that is only written down (to synchronize, to query) cannot be captured; it is an error, and ruins the capture.

PyTorch has no such file: its graphs are CUDA's (`cudaStreamBeginCapture`, `cudaGraphLaunch`).
"""

import dataclasses
import itertools
import threading

from .cuda_exception import AcceleratorError, check_message
from .driver_api import GLOBAL, RELAXED

_TEXTS = {  # as the CUDA driver says it
    "ILLEGAL_STATE": "the operation cannot be performed in the present state",
    "STREAM_CAPTURE_UNSUPPORTED": "operation not permitted when stream is capturing",
    "STREAM_CAPTURE_INVALIDATED": "operation failed due to a previous error during capture",
    "STREAM_CAPTURE_MERGE": "operation would result in a merge of separate capture sequences",
    "STREAM_CAPTURE_UNMATCHED": "capture was not initiated in this stream",
    "STREAM_CAPTURE_UNJOINED": "capturing stream has unjoined work",
    "STREAM_CAPTURE_ISOLATION": "dependency created on uncaptured work in another stream",
    "STREAM_CAPTURE_IMPLICIT": "operation would make the legacy stream depend on a capturing blocking stream",
    "CAPTURED_EVENT": "operation not permitted on an event last recorded in a capturing stream",
    "STREAM_CAPTURE_WRONG_THREAD": "attempt to terminate a thread-local capture sequence from another thread",
}


def failed(name, capture=None):
    """The error of that name, which ruins the capture."""
    if capture is not None:
        capture.is_valid = False
    return AcceleratorError(check_message(_TEXTS[name], f"CUDA_ERROR_{name}"))


@dataclasses.dataclass(eq=False)
class Node:
    """work: a function, or None; duration: in microseconds, None as long as it is not known; after: numbers of the nodes that come
    before it."""

    stream: tuple
    work: object
    duration: float | None
    label: str
    after: tuple


class Capture:
    """One that is underway. A stream is (device, handle)."""

    def __init__(self, number, origin, mode):
        self.id, self.origin, self.mode = number, origin, mode
        self.thread = threading.get_ident()
        self.is_valid = self.is_active = True
        self.nodes = []
        self.tails = {origin: ()}

    def add(self, stream, work, duration, label):
        if not self.is_valid:
            raise failed("STREAM_CAPTURE_INVALIDATED")
        self.nodes.append(Node(stream, work, duration, label, self.tails[stream]))
        self.tails[stream] = (len(self.nodes) - 1,)

    def spend(self, stream, duration, label):
        """What was captured last on the stream takes this time; if nothing was, a node that does nothing."""
        tails = self.tails[stream]
        last = self.nodes[tails[0]] if len(tails) == 1 else None
        if last is None or last.stream != stream:
            self.add(stream, None, duration, label)
        elif last.duration is None:
            last.duration, last.label = duration, label
        else:  # of an operator that called others
            last.duration += duration

    def is_joined(self):
        followed = {i for node in self.nodes for i in node.after} | set(self.tails[self.origin])
        return len(followed) == len(self.nodes)


class _ThreadMode(threading.local):
    mode = GLOBAL


class Captures:
    """Those of one driver, and the graphs that came of them."""

    def __init__(self):
        self.by_stream = {}  # (device, stream) -> Capture
        self.graphs = {}  # handle -> nodes
        self._numbers, self._handles = itertools.count(1), itertools.count(1)
        self._thread = _ThreadMode()

    def begin(self, stream, mode):
        if stream[1] == 0:
            raise failed("STREAM_CAPTURE_UNSUPPORTED")
        if stream in self.by_stream:
            raise failed("ILLEGAL_STATE")
        self.by_stream[stream] = Capture(next(self._numbers), stream, mode)

    def end(self, stream):
        capture = self.by_stream.get(stream)
        if capture is None:
            raise failed("ILLEGAL_STATE")
        if capture.origin != stream:
            raise failed("STREAM_CAPTURE_UNMATCHED", capture)
        if capture.mode != RELAXED and capture.thread != threading.get_ident():
            raise failed("STREAM_CAPTURE_WRONG_THREAD")
        for each in capture.tails:
            del self.by_stream[each]
        capture.is_active = False
        if not capture.is_valid:
            raise failed("STREAM_CAPTURE_INVALIDATED")
        if not capture.is_joined():
            raise failed("STREAM_CAPTURE_UNJOINED")
        return self.keep(capture.nodes)

    def keep(self, nodes):
        """The handle of a graph of these nodes."""
        handle = next(self._handles)
        self.graphs[handle] = nodes
        return handle

    def exchange_thread_mode(self, mode):
        before, self._thread.mode = self._thread.mode, mode
        return before

    # --------------------------------------------------------------------------------- what captures forbid

    def check_safe(self):
        """Before a call that may wait for the device, as to allocate memory does."""
        for capture in set(self.by_stream.values()):
            mine = capture.thread == threading.get_ident()
            everybody = capture.mode == GLOBAL and self._thread.mode == GLOBAL
            if self._thread.mode != RELAXED and capture.mode != RELAXED and (mine or everybody):
                raise failed("STREAM_CAPTURE_UNSUPPORTED", capture)

    def check_stream(self, stream):
        """Before the host waits for the stream, or asks how far it is."""
        if stream in self.by_stream:
            raise failed("STREAM_CAPTURE_UNSUPPORTED", self.by_stream[stream])

    def check_device(self, device):
        for (index, _), capture in self.by_stream.items():
            if index == device:
                raise failed("STREAM_CAPTURE_UNSUPPORTED", capture)

    @staticmethod
    def check_event(event):
        if event.captured is not None:
            raise failed("CAPTURED_EVENT", event.captured[0])

    # ------------------------------------------------------------------------------------------------ events

    def record(self, stream, event):
        """Whether the event is one of a capture, as the stream captures."""
        capture = self.by_stream.get(stream)
        event.captured = None if capture is None else (capture, capture.tails[stream])
        return capture is not None

    def wait(self, stream, event):
        """Whether the wait is one within a capture. event: it may never have been recorded."""
        capture = self.by_stream.get(stream)
        if event.captured is None:
            if capture is not None and event.at is not None:
                raise failed("STREAM_CAPTURE_ISOLATION", capture)
            return capture is not None
        its, tails = event.captured
        if not its.is_active:
            raise failed("CAPTURED_EVENT")
        if capture is not None and capture is not its:
            its.is_valid = False
            raise failed("STREAM_CAPTURE_MERGE", capture)
        if stream[1] == 0:
            raise failed("STREAM_CAPTURE_IMPLICIT", its)
        self.by_stream[stream] = its
        its.tails[stream] = tuple(dict.fromkeys((*its.tails.get(stream, ()), *tails)))
        return True


def written_as_dot(nodes):
    """The graph in the language of Graphviz."""
    lines = [f'  n{i} [label="{node.label}"];' for i, node in enumerate(nodes)]
    lines += [f"  n{before} -> n{i};" for i, node in enumerate(nodes) for before in node.after]
    return "\n".join(["digraph {", *lines, "}", ""])
