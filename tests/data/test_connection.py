"""The socket between the loader and a worker: what comes is believed only if it is a message."""

import contextlib
import os
import random
import time

import pytest

import readtorch as rt
from readtorch.utils.data import DataLoader
from readtorch.utils.data._utils.connection import _HEADER, _LONG, Connection, InvalidMessage, Message


@pytest.fixture
def ends():
    here, there = Connection.pair()
    yield here, there
    here.close()
    there.close()


@pytest.mark.parametrize(
    "garbage",
    [
        b"hello, I am a library\n" * 2,
        bytes(21),
        b"\xff" * 21,
        _HEADER.pack(b"\xabRT\x01", 0xFFFFFFFF, 0, 0, 0),
        _HEADER.pack(b"\xabRT\x01", 5, 0xFFFFFFFF, 0, 0),
        _HEADER.pack(b"\xabRT\x01", 5, 0, 0, 0) + b"12345",
    ],
)
def test_what_is_no_message(ends, garbage):
    here, there = ends
    there.send(Message.pack("a message"))
    os.write(there.fileno(), garbage)
    there.send(Message.pack("another"))
    assert here.receive().unpack() == "a message"
    with pytest.raises(InvalidMessage):
        here.receive()
    with pytest.raises(EOFError):
        here.receive()


def test_half_a_message_does_not_keep_the_reader(ends):
    here, there = ends
    message = Message.pack([rt.ones(3), "text"])
    ((data, fds),) = message.frames()
    os.write(there.fileno(), data[:30])
    assert here.receive(wait=False) is None and here.receive(wait=False) is None
    there.send(message)  # its beginning comes in the place of the rest
    with pytest.raises(InvalidMessage):
        here.receive(wait=False)


def test_messages_in_pieces(ends):
    here, there = ends
    random.seed(0)
    data = b"".join(next(Message.pack(["x" * n]).frames())[0] for n in range(0, 3000, 100))
    came = []
    while data:
        n = random.randrange(1, 700)
        os.write(there.fileno(), data[:n])
        data = data[n:]
        while (message := here.receive(wait=False)) is not None:
            came.append(len(message.unpack()[0]))
    assert came == list(range(0, 3000, 100))


def test_any_change_of_a_message_is_found(ends):
    ((data, _),) = Message.pack([1, 2.0, "three"]).frames()
    for position in range(len(data)):
        here, there = Connection.pair()
        os.write(there.fileno(), data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :])
        there.close()
        with pytest.raises((InvalidMessage, EOFError)):
            here.receive()
        here.close()


def test_messages_have_bounds(ends):
    here, there = ends
    there.send(Message.pack(b"x" * (_LONG * 4)))
    assert len(here.receive().unpack()) == _LONG * 4


class Writes:
    """A dataset that writes into every socket that it finds."""

    def __init__(self, garbage):
        self.garbage = garbage

    def __len__(self):
        return 8

    def __getitem__(self, i):
        if i == 3:
            for fd in range(3, 64):
                try:
                    is_socket = os.readlink(f"/proc/self/fd/{fd}").startswith("socket:")
                except OSError:
                    continue
                if is_socket:
                    with contextlib.suppress(OSError):  # the other end of one that was here before may be closed
                        os.write(fd, self.garbage)
        return rt.tensor(i)


@pytest.mark.parametrize("timeout", [0, 5])
@pytest.mark.parametrize("garbage", [b"a line of some library\n" * 3, b"\xab", b"\xff" * 5000])
def test_a_dataset_that_writes_into_the_socket(garbage, timeout):
    began = time.monotonic()
    with pytest.raises(
        RuntimeError, match="sent something that is no message. Its dataset, or a library, has written to a descriptor"
    ):
        list(DataLoader(Writes(garbage), num_workers=1, timeout=timeout))
    assert time.monotonic() - began < 30


@pytest.mark.parametrize("size", [10, 3000, 200_000])
def test_what_finds_no_room_is_sent_later(ends, size):
    """Every message arrives, once and in order, however often there was no room for a part of it or for all of it."""
    here, there = ends
    messages, came = [bytes([i % 256]) * size for i in range(400)], []
    for message in messages:
        there.put(Message.pack(message))
    for _ in range(3):
        there.flush()
    assert there.unsent
    for _ in range(100_000):
        while (message := here.receive(wait=False)) is not None:
            came.append(message.unpack())
        if len(came) == len(messages):
            break
        there.flush()
    assert came == messages and not there.unsent
    assert here.receive(wait=False) is None


def test_tensors_that_find_no_room_are_sent_later(ends):
    here, there = ends
    tensors, came = [rt.full((3,), i).share_memory_() for i in range(300)], []
    for i in range(0, 300, 3):
        there.put(Message.pack((b"x" * 5000, tensors[i : i + 3])))
    while len(came) < 300:
        there.flush()
        while (message := here.receive(wait=False)) is not None:
            came += [t[0].item() for t in message.unpack()[1]]
    assert came == list(range(300))


def test_nobody_listens(ends):
    here, there = ends
    assert not there.is_hung_up()
    here.hang_up()
    there.put(Message.pack("lost"))
    assert there.is_hung_up() and not there.unsent
    there.wait_for_hang_up()
    with pytest.raises(OSError):
        there.send(Message.pack("lost"))
    with pytest.raises(EOFError):
        there.receive()
