"""Bytes on a connection: exactly so many, before a deadline.

In PyTorch: `sendBytes` and `recvBytes` in `torch/csrc/distributed/c10d/Utils.hpp`.

Note [ Sizes that the other side says ]
Memory is taken for bytes that have arrived, whatever the other side says is coming. Small things are read in
pieces. A tensor's bytes go into an array that is only reserved at first: the system finds memory for a page
when something is written to it.
"""

import time

PIECE = 1 << 16


def receive_exactly(connection, count, deadline=None):
    """`count` bytes from a socket; ConnectionError when the other side has gone before.

    `deadline`: of time.monotonic, for all of them together; TimeoutError after it.
    """
    data = bytearray()
    while len(data) < count:
        _allow(connection, deadline)
        piece = connection.recv(min(PIECE, count - len(data)))
        if not piece:
            raise ConnectionError("the connection was closed")
        data += piece
    return data


def receive_into(connection, buffer):
    """Fill a buffer from a socket; ConnectionError when the other side has gone before."""
    rest = memoryview(buffer)
    while rest:
        received = connection.recv_into(rest)
        if received == 0:
            raise ConnectionError("the connection was closed")
        rest = rest[received:]


def send_exactly(connection, data, deadline=None):
    """All bytes of `data`, before the deadline."""
    rest = memoryview(data)
    while rest:
        _allow(connection, deadline)
        rest = rest[connection.send(rest) :]


def _allow(connection, deadline):
    """Let the next call on the socket take as long as there is time."""
    if deadline is None:
        return
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError("timed out")
    connection.settimeout(left)
