"""Bytes on a connection: exactly so many, before a deadline. And what a collective refuses.

In PyTorch: `sendBytes`, `recvBytes`, `assertRootRank` and others in `torch/csrc/distributed/c10d/Utils.hpp`.

Note [ Sizes that the other side says ]
Memory is taken for bytes that have arrived, whatever the other side says is coming. Small things are read in
pieces. A tensor's bytes go into an array that is only reserved at first: the system finds memory for a page
when something is written to it.
"""

import time

from readtorch.c10.scalar_type import C_TYPE_NAMES

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


class Refuse:
    """What a collective does not take, in PyTorch's words: `Refuse("gather").root(root, size)` raises RuntimeError."""

    def __init__(self, name):
        self.name = name

    def __call__(self, problem):
        raise RuntimeError(f"ProcessGroupGloo::{self.name}: {problem}")

    def empty(self, tensors):
        if not tensors:
            self("requires non-empty tensor list")

    def not_one(self, tensors, what):
        if len(tensors) != 1:
            self(f"requires a single-element {what} list")

    def root(self, rank, size):
        if not 0 <= rank < size:
            self(f"invalid root rank: {rank}")

    def root_tensor(self, number, tensors):
        if not 0 <= number < len(tensors):
            self(f"invalid root tensor: {number}")

    def length(self, index, tensors, expected):
        if len(tensors) != expected:
            self(f"invalid output tensor list at index {index} (expected length {expected}, got {len(tensors)})")

    def other_layouts(self, tensors):
        for i, tensor in enumerate(tensors[1:], 1):
            if tensor.layout is not tensors[0].layout:
                layouts = (_LAYOUTS.get(str(t.layout).rpartition(".")[2], "Strided") for t in (tensors[0], tensor))
                self("invalid tensor layout at index {} (expected {}, got {})".format(i, *layouts))

    def unlike_first(self, tensors):
        self.unlike(tensors[0], tensors[1:])

    def unlike(self, like, tensors):
        """Whatever is not of the type and the sizes of `like`."""
        for i, tensor in enumerate(tensors):
            if tensor.dtype is not like.dtype:
                self(f"invalid tensor type at index {i} (expected {_options(like)}, got {_options(tensor)})")
            if tensor.shape != like.shape:
                self(f"invalid tensor size at index {i} (expected {_sizes(like)}, got {_sizes(tensor)})")


_LAYOUTS = {"strided": "Strided", "sparse_coo": "Sparse"}


def _options(tensor):
    layout = _LAYOUTS.get(str(tensor.layout).rpartition(".")[2], str(tensor.layout))
    return (
        f"TensorOptions(dtype={C_TYPE_NAMES.get(tensor.dtype, tensor.dtype)}, device={tensor.device}, layout={layout}, requires_grad=false (default), "
        "pinned_memory=false (default), memory_format=(nullopt))"
    )


def _sizes(tensor):
    return f"({', '.join(map(str, tensor.shape))})"
