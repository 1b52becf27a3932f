"""The backend `tcp`, which answers to the name `gloo` too: ranks are processes, each connected to every other by a socket.

In PyTorch: `torch/csrc/distributed/c10d/ProcessGroupGloo.cpp` over the library Gloo. Collectives are the
algorithms of `algorithms.py`. For one machine, or a few: with n ranks there are n (n - 1) / 2 connections.
"""

import contextlib
import select
import socket
import struct
import threading
import time
import zlib
from collections import defaultdict, deque
from datetime import timedelta

import numpy as np

from .algorithms import (
    recursive_doubling_all_reduce,
    ring_all_gather,
    ring_all_reduce,
    ring_reduce_scatter,
    tree_broadcast,
    tree_reduce,
)
from .backend import QueuedProcessGroup
from .exception import DistBackendError
from .full_mesh import connect_full_mesh
from .process_group_wrapper import Mailbox, offsets
from .types import finish
from .utils import receive_exactly, receive_into

_HEADER = struct.Struct("<IqQ")  # channel, tag, bytes that follow
DATA, CHECK, FAILED = -1, -2, -3  # tags of our own messages; those of `send` count from 0
SMALL = 16 * 1024  # bytes up to which an all-reduce is better done in few messages
NOTIFY_TIMEOUT = 0.2  # seconds in which a rank that works takes the message that another one has failed


class Transport:
    """This process's connections. Messages that arrive wait in `messages` until somebody asks for them.

    A thread for each connection does nothing but read, so that a sender never has to wait for the receiver's
    program. Deadlines are those of time.perf_counter.
    """

    def __init__(self, store, rank, size, timeout):
        self.rank = rank
        self.size = size
        self.messages = defaultdict(deque)  # (channel, sender, tag) -> messages
        # (channel, rank) -> why nothing will come from it any more; channel None: on all of them
        self.gone = {}
        self.changed = threading.Condition()
        self.arrivals = 0
        self.sockets, self.knows_its_peers = connect_full_mesh(store, rank, size, timeout)
        self._send_locks = defaultdict(threading.Lock)
        for peer in self.sockets:
            threading.Thread(target=self._read, args=(peer,), name=f"from rank {peer}", daemon=True).start()

    def _read(self, peer):
        connection = self.sockets[peer]
        try:
            while True:
                channel, tag, length = _HEADER.unpack(receive_exactly(connection, _HEADER.size))
                message = _reserve(length)
                receive_into(connection, message)
                with self.changed:
                    self.arrivals += 1
                    if tag == FAILED:
                        self.gone.setdefault((channel, peer), bytes(message).decode(errors="replace"))
                    else:
                        self.messages[channel, peer, tag].append(message)
                    self.changed.notify_all()
        except OSError as error:
            self._lose(peer, f"its connection is gone ({error})")
            connection.close()

    def _lose(self, peer, why):
        """Nothing will come from this rank any more."""
        with self.changed:
            self.arrivals += 1
            self.gone.setdefault((None, peer), why)
            self.changed.notify_all()

    def send(self, peer, channel, tag, array, deadline):
        """Send an array's bytes, or bytes. ConnectionError if the other side has gone, or does not take them
        before the deadline.
        """
        data = memoryview(array if isinstance(array, bytes) else array.reshape(-1).view(np.uint8))
        lock = self._send_locks[peer]
        if not lock.acquire(timeout=max(0.0, deadline - time.perf_counter())):
            raise ConnectionError(f"rank {peer} takes no more messages (another one is still under way)")
        try:
            _send_all(self.sockets[peer], [_HEADER.pack(channel, tag, data.nbytes), data], deadline)
        except OSError as error:
            # part of the message may have gone: what follows could not be told from its rest
            with contextlib.suppress(OSError):
                self.sockets[peer].shutdown(socket.SHUT_RDWR)
            self._lose(peer, f"it took no more messages ({error})")
            raise ConnectionError(f"rank {peer} takes no more messages ({error})") from error
        finally:
            lock.release()

    def poll(self, peer, channel, tag):
        """The next message, or None. ConnectionError if there is none and nothing will come any more."""
        with self.changed:
            waiting = self.messages[channel, peer, tag]
            if waiting:
                return waiting.popleft()
            why = self.why_gone(peer, channel)
            if why is not None:
                raise ConnectionError(why)
            return None

    def why_gone(self, peer, channel):
        return self.gone.get((channel, peer)) or self.gone.get((None, peer))

    def receive(self, peers, channel, tag, deadline):
        """(sender, message): the next from any of `peers`. TimeoutError, or ConnectionError if all have gone."""
        with self.changed:
            while True:
                for peer in peers:
                    if self.messages[channel, peer, tag]:
                        return peer, self.messages[channel, peer, tag].popleft()
                reasons = [self.why_gone(peer, channel) for peer in peers]
                if all(reasons):
                    raise ConnectionError(
                        ", ".join(f"rank {peer} sends no more, {why}" for peer, why in zip(peers, reasons))
                    )
                left = deadline - time.perf_counter()
                if left <= 0:
                    raise TimeoutError(f"nothing came from rank {', '.join(map(str, peers))} in time")
                self.changed.wait(left)

    def close(self):
        """Send no more. Each connection goes when the other side has closed it too."""
        for connection in self.sockets.values():
            with contextlib.suppress(OSError):  # the other side may have been faster
                connection.shutdown(socket.SHUT_WR)


def _reserve(length):
    """An array for a message: Note [ Sizes that the other side says ]."""
    try:
        return np.empty(length, np.uint8)
    except (MemoryError, ValueError):
        raise ConnectionError(f"it announced a message of {length} bytes") from None


def _send_all(connection, parts, deadline):
    """One deadline for the whole: a socket's own time limit would begin anew with each piece that goes."""
    parts = [memoryview(part) for part in parts]
    while parts:
        try:
            sent = connection.sendmsg(parts, [], socket.MSG_DONTWAIT)
        except BlockingIOError:
            _wait_until_writable(connection, deadline)
            continue
        while parts and sent >= len(parts[0]):
            sent -= len(parts.pop(0))
        if parts:
            parts[0] = parts[0][sent:]


def _wait_until_writable(connection, deadline):
    poll = select.poll()
    poll.register(connection, select.POLLOUT)
    left = deadline - time.perf_counter()
    if left <= 0 or not poll.poll(left * 1000):
        raise TimeoutError("timed out")


class TCPMailbox(Mailbox):
    def __init__(self, group):
        self.group = group

    def post(self, rank, data):
        deadline = time.perf_counter() + self.group._timeout
        with contextlib.suppress(OSError):  # who has gone needs no answer; `poll` finds out as well
            self.group.transport.send(self.group.ranks[rank], self.group.channel, CHECK, data, deadline)

    def poll(self, rank):
        message = self.group.transport.poll(self.group.ranks[rank], self.group.channel, CHECK)
        return None if message is None else bytes(message)

    def pause(self):
        return ArrivalPause(self.group.transport)


class ArrivalPause:
    """Wait until something has arrived since the last time."""

    def __init__(self, transport):
        self.transport = transport
        self.seen = transport.arrivals

    def __call__(self):
        with self.transport.changed:
            self.transport.changed.wait_for(lambda: self.transport.arrivals != self.seen, 0.05)
            self.seen = self.transport.arrivals


class TCPLinks:
    """What the algorithms need, for one collective of a group."""

    def __init__(self, group, deadline):
        self.group = group
        self.rank = group.rank()
        self.size = group.size()
        self.deadline = deadline

    def send(self, array, to):
        self.group.transport.send(self.group.ranks[to], self.group.channel, DATA, array, self.deadline)

    def recv(self, array, source):
        peer = self.group.ranks[source]
        _, message = self.group.transport.receive([peer], self.group.channel, DATA, self.deadline)
        array[...] = np.frombuffer(message, array.dtype).reshape(array.shape)

    def exchange(self, array, to, into, source):
        self.send(array, to)
        self.recv(into, source)


class ProcessGroupTCP(QueuedProcessGroup):
    """A group of processes that are connected by sockets."""

    backend_name = "tcp"

    def __init__(self, transport, ranks, name, timeout, store=None, desc="undefined"):
        super().__init__(list(ranks).index(transport.rank), ranks, name, timeout, store, desc)
        self.transport = transport
        self.channel = zlib.crc32(f"{name} {self.ranks}".encode())
        self.mailbox = TCPMailbox(self)
        self.knows_its_peers = transport.knows_its_peers

    @classmethod
    def over(cls, *arguments):
        """A group over connections that are there: the arguments of ProcessGroupTCP."""
        group = cls.__new__(cls)
        ProcessGroupTCP.__init__(group, *arguments)
        return group

    def subgroup(self, ranks, name, timeout, desc):
        return self.over(self.transport, ranks, name, timeout, self.store, desc)

    def perform(self, collective, deadline):
        PERFORM[collective.name](TCPLinks(self, deadline), collective)

    def notify_others(self, reason):
        """At once, and not by way of rank 0: they may be in the middle of a collective."""
        for peer in self.ranks:
            if peer != self.transport.rank:
                with contextlib.suppress(OSError):
                    self.transport.send(
                        peer, self.channel, FAILED, reason.encode(), time.perf_counter() + NOTIFY_TIMEOUT
                    )

    def start_send(self, array, peer, tag, work):
        if peer == self._rank:
            work.finish(DistBackendError(f"{work.what} failed: a rank has no connection to itself"))
            return
        try:
            self.transport.send(self.ranks[peer], self.channel, tag, array, work.began + work.timeout)
        except OSError as error:
            work.finish(DistBackendError(f"{work.what} failed: {error}"))
        work.finish()

    def start_recv(self, array, peer, tag, work):
        peers = [r for r in self.ranks if r != self.transport.rank] if peer is None else [self.ranks[peer]]
        threading.Thread(target=self._receive_into, args=(array, peers, tag, work), daemon=True).start()

    def _receive_into(self, array, peers, tag, work):
        try:
            sender, message = self.transport.receive(peers, self.channel, tag, work.began + work.timeout)
            work.source = self.ranks.index(sender)
            array[...] = np.frombuffer(message, array.dtype).reshape(array.shape)
            for target, part in work.copies:
                target[...] = part
        except (OSError, ValueError) as error:
            work.finish(DistBackendError(f"{work.what} failed: {error}"))
        work.finish()

    def shutdown(self):
        super().shutdown()
        if self.group_name == "0":
            self.transport.close()


class Device:
    """A network interface, by which Gloo would connect. Here the way to the store says which: `own_address`."""

    def __init__(self, hostname="", interface="", lazy_init=False):
        self.hostname = hostname
        self.interface = interface


class ProcessGroupGloo(ProcessGroupTCP):
    """The same under PyTorch's name, which others make by hand: all ranks with one store."""

    backend_name = "gloo"
    Device = Device

    class _Options:
        """What it may be made with."""

        def __init__(self):
            self._timeout, self._devices, self._threads = timedelta(minutes=30), [], 2

    Options = _Options

    def __init__(self, store, rank, size, timeout=None):
        if isinstance(timeout, self._Options):
            timeout = timeout._timeout
        seconds = getattr(timeout, "total_seconds", lambda: 1800.0 if timeout is None else float(timeout))()
        super().__init__(Transport(store, rank, size, seconds), range(size), "0", seconds, store)

    @staticmethod
    def create_device(hostname="", interface="", lazy_init=False):
        return Device(hostname, interface)

    create_default_device = create_device


for _class in (Device, ProcessGroupGloo):
    _class.__module__ = "readtorch.distributed"


# ------------------------------------------------------------------------- the collectives, over links


def all_reduce(links, call):
    array = call.target.reshape(-1)
    algorithm = recursive_doubling_all_reduce if array.nbytes <= SMALL else ring_all_reduce
    algorithm(links, array, call.op)
    finish(call.op, array, links.size)


def reduce(links, call):
    total = call.source.reshape(-1).copy()
    tree_reduce(links, total, call.op, call.root)
    if call.target is not None:
        finish(call.op, total, links.size)
        call.target.reshape(-1)[...] = total


def broadcast(links, call):
    tree_broadcast(links, call.target.reshape(-1), call.root)


def all_gather(links, call):
    call.target[links.rank] = call.source
    ring_all_gather(links, list(call.target), shift=0)


def gather(links, call):
    if links.rank != call.root:
        links.send(call.source, call.root)
        return
    for rank, row in enumerate(call.target):
        if rank == links.rank:
            row[...] = call.source
        else:
            links.recv(row, rank)


def scatter(links, call):
    if links.rank != call.root:
        links.recv(call.target, call.root)
        return
    for rank, row in enumerate(call.source):
        if rank == links.rank:
            call.target[...] = row
        else:
            links.send(row, rank)


def reduce_scatter(links, call):
    rows = call.source.copy()
    # part rank + 1 is row `rank`
    ring_reduce_scatter(links, [rows[i - 1] for i in range(links.size)], call.op)
    finish(call.op, rows[links.rank], links.size)
    call.target[...] = rows[links.rank]


def all_to_all(links, call):
    begin, end = offsets(call.source_counts), offsets(call.target_counts)
    sent = [call.source[begin[i] : begin[i + 1]] for i in range(links.size)]
    wanted = [call.target[end[i] : end[i + 1]] for i in range(links.size)]
    wanted[links.rank][...] = sent[links.rank]
    for distance in range(1, links.size):
        to, source = (links.rank + distance) % links.size, (links.rank - distance) % links.size
        links.exchange(sent[to], to, wanted[source], source)


def barrier(links, call):
    """Nothing is left to do: before a collective begins, all ranks have come."""


PERFORM = {
    f.__name__: f
    for f in (all_reduce, reduce, broadcast, all_gather, gather, scatter, reduce_scatter, all_to_all, barrier)
}
