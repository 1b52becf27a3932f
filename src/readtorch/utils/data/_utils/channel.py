"""One end of the socket between the loader and a worker: objects go in, and come out at the other end.

In PyTorch: two queues of `torch.multiprocessing`, with threads that feed them. See the chapter "Dataset,
Sampler, DataLoader".

Note [ Messages between the loader and a worker ]
A message is a header (how many bytes, how many descriptors) and the pickled object. The tensors in it are
mentioned only: their memory is shared, and its descriptors go with the message, as an AF_UNIX socket allows.
The kernel keeps what was sent and not yet received; if a socket is closed, it lets go of everything that was
in it.

What is pickled may be long all the same: strings, NumPy arrays. From 16 KB on the bytes are put into shared
memory themselves. So a message is short: Linux takes it into the socket at once and as a whole, or not at
all.

The loader must never wait for a worker to read: the worker may be waiting for the loader to read, or hang.
What does not fit into the socket waits in `unsent`, which every later call tries first. Something is unsent
only as long as the worker has messages to read, so its answers wake the loader, and the rest follows. A
worker may wait: it has nothing better to do, and the loader closes the socket when it loses interest.
"""
import collections
import io
import os
import pickle
import select
import socket
import struct
from multiprocessing.reduction import ForkingPickler

import numpy as np

from readtorch.aten import map_allocator
from readtorch.multiprocessing.reductions import parcel

_HEADER = struct.Struct("=IIB")  # bytes, descriptors, whether the last descriptor is that of the bytes
_LONG = 16 << 10
_LONG_SIZE = struct.Struct("=Q")
_FDS_AT_ONCE = 250  # Linux passes up to 253 at a time
_CLOSE_ON_EXEC = getattr(socket, "MSG_CMSG_CLOEXEC", 0)


class TooManyFiles(Exception):
    """Descriptors that were sent to this process found no place in its table."""


class Message:
    """An object in the form in which it travels."""

    def __init__(self, payload, allocators, is_long):
        self.payload = payload  # the pickled object; if it is long, the number of its bytes
        self.allocators = allocators  # of its tensors' memory; if it is long, of its own as well
        self.is_long = is_long

    @classmethod
    def pack(cls, obj):
        """A message that says `obj`. Raises whatever pickling raises."""
        parcel.contents = contents = []
        try:
            buffer = io.BytesIO()
            ForkingPickler(buffer, pickle.HIGHEST_PROTOCOL).dump(obj)
        finally:
            parcel.contents = None
        payload = buffer.getbuffer()
        if len(payload) < _LONG:
            return cls(payload, contents, False)
        allocator = map_allocator.nameless(len(payload))
        np.asarray(allocator)[:] = np.frombuffer(payload, np.uint8)
        return cls(_LONG_SIZE.pack(len(payload)), [*contents, allocator], True)

    def frames(self):
        """What to hand to the socket: pairs of bytes and descriptors."""
        fds = [allocator.fd for allocator in self.allocators]
        header = _HEADER.pack(len(self.payload), len(fds), self.is_long)
        yield b"".join((header, self.payload)), fds[:_FDS_AT_ONCE]
        for start in range(_FDS_AT_ONCE, len(fds), _FDS_AT_ONCE):
            yield b"+", fds[start:start + _FDS_AT_ONCE]


class Received:
    """A message that has arrived."""

    def __init__(self, payload, fds, is_long):
        self.payload = payload
        self.fds = fds  # descriptors, which are this process's now; None for one that has been taken
        self.is_long = is_long

    def unpack(self):
        """The object. Raises whatever unpickling raises."""
        payload = self._long_payload() if self.is_long else self.payload
        parcel.contents = self.fds
        try:
            return pickle.loads(payload)
        finally:
            parcel.contents = None

    def _long_payload(self):
        nbytes, = _LONG_SIZE.unpack(self.payload)
        return np.asarray(map_allocator.MapAllocator(self.fds.pop(), nbytes))

    def __del__(self):
        for fd in self.fds:
            if fd is not None:
                os.close(fd)


class Channel:
    """One end of a pair: `Channel.pair()`. Ends can be given to a process that is being started."""

    def __init__(self, sock):
        self.sock = sock
        self.unsent = collections.deque()  # (bytes, descriptors, Message, which keeps them open)
        self._hang_up = self._poll_for_hang_up()

    @classmethod
    def pair(cls):
        return [cls(sock) for sock in socket.socketpair()]

    def __reduce__(self):
        return Channel, (self.sock,)

    def fileno(self):
        return self.sock.fileno()

    # -------------------------------------------------------------------------------------------- sending

    def send(self, message):
        """Send a Message, and wait if need be. Raises OSError if nobody can receive it any more."""
        for data, fds in message.frames():
            sent = socket.send_fds(self.sock, [data], fds) if fds else 0
            if sent < len(data):
                self.sock.sendall(memoryview(data)[sent:])

    def put(self, message):
        """Send a Message, now or later, without waiting. If nobody can receive it, nothing happens."""
        self.unsent.extend((data, fds, message) for data, fds in message.frames())
        self.flush()

    def flush(self):
        """Send as much as there is room for."""
        while self.unsent:
            data, fds, message = self.unsent.popleft()
            try:
                sent = socket.send_fds(self.sock, [data], fds, socket.MSG_DONTWAIT)
            except BlockingIOError:
                self.unsent.appendleft((data, fds, message))
                return
            except OSError:  # the worker has died: whoever waits for its answer will see that
                self.unsent.clear()
                return
            if sent < len(data):
                self.unsent.appendleft((memoryview(data)[sent:], [], message))

    # ------------------------------------------------------------------------------------------ receiving

    def receive(self):
        """The next message, Received; waits for it. Raises EOFError if the other end is closed,
        TooManyFiles."""
        message = Received(b"", [], False)
        size, count, message.is_long = _HEADER.unpack(self._read(_HEADER.size, message.fds))
        message.payload = self._read(size, message.fds)
        for _ in range(_FDS_AT_ONCE, count, _FDS_AT_ONCE):
            self._read(1, message.fds)
        if len(message.fds) < count:
            raise TooManyFiles
        return message

    def _read(self, size, fds):
        """`size` bytes; descriptors that come with them go to `fds`."""
        data = b""
        while len(data) < size:
            more, received, _, _ = socket.recv_fds(self.sock, size - len(data), _FDS_AT_ONCE, _CLOSE_ON_EXEC)
            fds += received
            if not more:
                raise EOFError
            data += more
        return data

    # --------------------------------------------------------------------------------------------- ending

    def _poll_for_hang_up(self):
        poll = select.poll()
        poll.register(self.sock, 0)  # asks for nothing: that the other end is gone is always told
        return poll

    def is_hung_up(self):
        """Whether the other end has been shut down or closed. What it sent before can still be received."""
        return bool(self._hang_up.poll(0))

    def wait_for_hang_up(self):
        """For a thread of its own."""
        self._poll_for_hang_up().poll()

    def hang_up(self):
        """Tell the other end that nothing more will be sent or received, even if it is waiting just now."""
        try:
            self.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # it was faster

    def close(self):
        self.sock.close()
