"""One end of the socket between the loader and a worker: objects go in, and come out at the other end.

PyTorch has no such file: it uses queues of `torch.multiprocessing`, one for each direction, with threads that feed them. See the chapter "Dataset,
Sampler, DataLoader".

Note [ Messages between the loader and a worker ]
A message is a header (how many bytes, how many descriptors, a checksum) and the pickled object. The tensors in it are
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

Note [ What others write into the socket ]
The socket is a descriptor of a process that also runs the dataset's code and its libraries, and these may
write to a number that is not theirs: a file that they closed twice, a printf to a descriptor that they have
kept. Whatever comes is taken for a message only if it begins like one, announces no more than a message may
hold, and agrees with its checksum. Otherwise the two ends can no longer tell where a message begins, and the
reader raises InvalidMessage, with the first bytes of what came. And the loader takes what is there without waiting
for the rest, which may never come, so that its time limit holds in the middle of a message too.
"""

import array
import collections
import io
import os
import pickle
import select
import socket
import struct
import zlib
from multiprocessing.reduction import ForkingPickler

import numpy as np

from readtorch.aten import map_allocator
from readtorch.multiprocessing.reductions import parcel

# how a message begins; bytes, descriptors, whether the last descriptor is that of the bytes; their checksum
_HEADER = struct.Struct("=4sIIBI")
_BEGIN = b"\xabRT\x01"
_LONG = 16 << 10
_MOST_FDS = 1 << 20  # more than a process may have open
_LONG_SIZE = struct.Struct("=Q")
_FDS_AT_ONCE = 250  # Linux passes up to 253 at a time
_CLOSE_ON_EXEC = getattr(socket, "MSG_CMSG_CLOEXEC", 0)


class TooManyFiles(Exception):
    """Descriptors that were sent to this process found no place in its table."""


class InvalidMessage(Exception):
    """What came is no message."""


def _header(payload, count, is_long):
    sizes = len(payload), count, int(is_long)
    return _HEADER.pack(_BEGIN, *sizes, zlib.crc32(payload, zlib.crc32(repr(sizes).encode())))


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
        yield b"".join((_header(self.payload, len(fds), self.is_long), self.payload)), fds[:_FDS_AT_ONCE]
        for start in range(_FDS_AT_ONCE, len(fds), _FDS_AT_ONCE):
            yield b"+", fds[start : start + _FDS_AT_ONCE]


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
        (nbytes,) = _LONG_SIZE.unpack(self.payload)
        return np.asarray(map_allocator.MapAllocator(self.fds.pop(), nbytes))

    def __del__(self):
        for fd in self.fds:
            if fd is not None:
                os.close(fd)


def _messages(sock):
    """The messages as they come; None whenever there is nothing more to read."""
    while True:
        message = Received(b"", [], False)
        header = yield from _read(sock, _HEADER.size, message.fds)
        begin, size, count, message.is_long, _ = _HEADER.unpack(header)
        if begin != _BEGIN or size >= _LONG or count > _MOST_FDS:
            raise InvalidMessage(header)
        message.payload = yield from _read(sock, size, message.fds)
        if header != _header(message.payload, count, message.is_long):
            raise InvalidMessage(header + message.payload)
        for _ in range(_FDS_AT_ONCE, count, _FDS_AT_ONCE):
            yield from _read(sock, 1, message.fds)
        if len(message.fds) < count:
            raise TooManyFiles
        yield message


def _read(sock, size, fds):
    """`size` bytes; descriptors that come with them go to `fds`. None whenever there is nothing to read."""
    data = b""
    while len(data) < size:
        try:
            more = _receive_at_once(sock, size - len(data), fds)
        except BlockingIOError:
            yield None
            continue
        if not more:
            raise EOFError
        data += more
    return data


# `socket.send_fds` and `socket.recv_fds` take flags, but do not hand them on (CPython 3.11).


def _send(sock, data, fds, flags=0):
    """Send bytes with descriptors; how many bytes went."""
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    return sock.sendmsg([data], rights, flags)


def _receive_at_once(sock, size, fds):
    """Up to `size` bytes; the descriptors that came with them go to `fds`. BlockingIOError if
    nothing is there."""
    room = socket.CMSG_LEN(_FDS_AT_ONCE * array.array("i").itemsize)
    data, extras, _, _ = sock.recvmsg(size, room, _CLOSE_ON_EXEC | socket.MSG_DONTWAIT)
    for level, kind, rights in extras:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            received = array.array("i")
            received.frombytes(rights[: len(rights) - len(rights) % received.itemsize])
            fds += received
    return data


class Connection:
    """One end of a pair: `Connection.pair()`. Ends can be given to a process that is being started."""

    def __init__(self, sock):
        self.sock = sock
        self.unsent = collections.deque()  # (bytes, descriptors, Message, which keeps them open)
        self._incoming = _messages(sock)
        self._hang_up = self._poll_for(0)  # for no event: that the other end is gone is always reported
        self._readable = self._poll_for(select.POLLIN)

    @classmethod
    def pair(cls):
        return [cls(sock) for sock in socket.socketpair()]

    def __reduce__(self):
        return Connection, (self.sock,)

    def fileno(self):
        return self.sock.fileno()

    # -------------------------------------------------------------------------------------------- sending

    def send(self, message):
        """Send a Message, and wait if need be. Raises OSError if nobody can receive it any more."""
        for data, fds in message.frames():
            sent = _send(self.sock, data, fds) if fds else 0
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
                sent = _send(self.sock, data, fds, socket.MSG_DONTWAIT)
            except BlockingIOError:
                self.unsent.appendleft((data, fds, message))
                return
            except OSError:  # the worker has died: whoever waits for its answer will see that
                self.unsent.clear()
                return
            if sent < len(data):
                self.unsent.appendleft((memoryview(data)[sent:], [], message))

    # ------------------------------------------------------------------------------------------ receiving

    def receive(self, wait=True):
        """The next message, Received; None if it is not there as a whole and one need not wait. Raises
        EOFError if the other end is closed, TooManyFiles, InvalidMessage."""
        for message in self._incoming:
            if message is not None or not wait:
                return message
            self._readable.poll()
        raise EOFError  # after an error nobody knows where the next message begins

    # --------------------------------------------------------------------------------------------- ending

    def _poll_for(self, events):
        poll = select.poll()
        poll.register(self.sock, events)
        return poll

    def is_hung_up(self):
        """Whether the other end has been shut down or closed. What it sent before can still be received."""
        return bool(self._hang_up.poll(0))

    def wait_for_hang_up(self):
        """For a thread of its own."""
        self._poll_for(0).poll()

    def hang_up(self):
        """Tell the other end that nothing more will be sent or received, even if it is waiting just now."""
        try:
            self.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # it was faster

    def close(self):
        self.sock.close()
