"""The backend `tcp`: ranks are processes, each connected to every other by a socket.

In PyTorch: `torch/csrc/distributed/c10d/ProcessGroupGloo.cpp` over the library Gloo. Collectives are the
algorithms of `algorithms.py`. For one machine, or a few: with n ranks there are n (n - 1) / 2 connections.
"""
import contextlib
import secrets
import socket
import struct
import threading
import time
import zlib
from collections import defaultdict, deque

import numpy as np

from .algorithms import (recursive_doubling_all_reduce, ring_all_gather, ring_all_reduce, ring_reduce_scatter,
                         tree_broadcast, tree_reduce)
from .checks import Mailbox
from .collective import offsets
from .errors import DistBackendError, DistNetworkError
from .queued import QueuedProcessGroup
from .tcp_store import receive_exactly
from .types import finish

_HEADER = struct.Struct("<IqQ")  # channel, tag, bytes that follow
DATA, CHECK, FAILED = -1, -2, -3  # tags of our own messages; those of `send` count from 0
SMALL = 16 * 1024  # bytes up to which an all-reduce is better done in few messages


class Transport:
    """This process's connections. Messages that arrive wait in `mail` until somebody asks for them.

    A thread for each connection does nothing but read, so that a sender never has to wait for the receiver's
    program.
    """

    def __init__(self, store, rank, size, timeout):
        self.rank = rank
        self.size = size
        self.mail = defaultdict(deque)  # (channel, sender, tag) -> messages
        # (channel, rank) -> why nothing will come from it any more; channel None: on all of them
        self.gone = {}
        self.changed = threading.Condition()
        self.arrivals = 0
        self.sockets = {}
        self._send_locks = defaultdict(threading.Lock)
        self._meet(store, timeout)
        for peer, connection in self.sockets.items():
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO,
                                  struct.pack("ll", int(timeout) + 1, 0))
            threading.Thread(target=self._read, args=(peer,), name=f"from rank {peer}", daemon=True).start()

    def _meet(self, store, timeout):
        """Each rank publishes where it listens, connects to those below it and is connected to by those
        above.
        """
        deadline = time.monotonic() + timeout
        # strangers who connect do not know it
        cookie = store.compare_set("cookie", "", secrets.token_hex(16))
        with socket.create_server((_own_address(store), 0), backlog=self.size) as server:
            host, port = server.getsockname()[:2]
            store.set(f"rank{self.rank}", f"{host}:{port}")
            for peer in range(self.rank):
                host, _, port = store.get(f"rank{peer}").decode().rpartition(":")
                self.sockets[peer] = socket.create_connection((host, int(port)), timeout)
                self.sockets[peer].sendall(cookie + struct.pack("<I", self.rank))
            while len(self.sockets) < self.size - 1:
                server.settimeout(max(0.01, deadline - time.monotonic()))
                self._accept(server, cookie)
        for connection in self.sockets.values():
            connection.settimeout(None)

    def _accept(self, server, cookie):
        try:
            connection, _ = server.accept()
        except TimeoutError:
            missing = [r for r in range(self.rank + 1, self.size) if r not in self.sockets]
            raise DistNetworkError(f"Rank {self.rank}: ranks {missing} did not connect in time") from None
        connection.settimeout(5)
        try:
            if receive_exactly(connection, len(cookie)) == cookie:
                (peer,) = struct.unpack("<I", receive_exactly(connection, 4))
                self.sockets[peer] = connection
                return
        except OSError:
            pass
        connection.close()

    def _read(self, peer):
        connection = self.sockets[peer]
        try:
            while True:
                channel, tag, length = _HEADER.unpack(receive_exactly(connection, _HEADER.size))
                message = receive_exactly(connection, length)
                with self.changed:
                    self.arrivals += 1
                    if tag == FAILED:
                        self.gone.setdefault((channel, peer), message.decode())
                    else:
                        self.mail[channel, peer, tag].append(message)
                    self.changed.notify_all()
        except OSError as error:
            with self.changed:
                self.arrivals += 1
                self.gone.setdefault((None, peer), f"its connection is gone ({error})")
                self.changed.notify_all()
            connection.close()

    def send(self, peer, channel, tag, array):
        """Send an array's bytes, or bytes. ConnectionError if the other side has gone."""
        data = memoryview(array if isinstance(array, bytes) else array.reshape(-1).view(np.uint8))
        with self._send_locks[peer]:
            try:
                self.sockets[peer].sendall(_HEADER.pack(channel, tag, data.nbytes))
                self.sockets[peer].sendall(data)
            except OSError as error:
                raise ConnectionError(f"rank {peer} takes no more messages ({error})") from error

    def poll(self, peer, channel, tag):
        """The next message, or None. ConnectionError if there is none and nothing will come any more."""
        with self.changed:
            waiting = self.mail[channel, peer, tag]
            if waiting:
                return waiting.popleft()
            why = self.why_gone(peer, channel)
            if why is not None:
                raise ConnectionError(why)
            return None

    def why_gone(self, peer, channel):
        return self.gone.get((channel, peer)) or self.gone.get((None, peer))

    def receive(self, peers, channel, tag, deadline):
        """(sender, message): the next from any of `peers`. TimeoutError, or ConnectionError if all have gone.
        """
        with self.changed:
            while True:
                for peer in peers:
                    if self.mail[channel, peer, tag]:
                        return peer, self.mail[channel, peer, tag].popleft()
                reasons = [self.why_gone(peer, channel) for peer in peers]
                if all(reasons):
                    raise ConnectionError(", ".join(f"rank {peer} sends no more, {why}" for peer, why in
                                                    zip(peers, reasons)))
                left = deadline - time.perf_counter()
                if left <= 0:
                    raise TimeoutError(f"nothing came from rank {', '.join(map(str, peers))} in time")
                self.changed.wait(left)

    def close(self):
        """Send no more. Each connection goes when the other side has closed it too."""
        for connection in self.sockets.values():
            with contextlib.suppress(OSError):  # the other side may have been faster
                connection.shutdown(socket.SHUT_WR)


def _own_address(store):
    """The address under which other ranks reach this machine: the one it has on the way to the store's
    server.
    """
    store = getattr(store, "underlying_store", store)
    host = getattr(store, "host", None)
    if host is None:
        return "127.0.0.1"  # a FileStore: ranks on one machine
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((host, store.port))
        return probe.getsockname()[0]


class TCPMailbox(Mailbox):
    def __init__(self, group):
        self.group = group

    def post(self, rank, data):
        with contextlib.suppress(OSError):  # who has gone needs no answer; `poll` finds out as well
            self.group.transport.send(self.group.ranks[rank], self.group.channel, CHECK, data)

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
        self.group.transport.send(self.group.ranks[to], self.group.channel, DATA, array)

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

    def subgroup(self, ranks, name, timeout, desc):
        group = ProcessGroupTCP(self.transport, ranks, name, timeout, self.store, desc)
        group.backend_name = self.backend_name
        return group

    def perform(self, collective, deadline):
        PERFORM[collective.name](TCPLinks(self, deadline), collective)

    def tell_others(self, reason):
        """At once, and not by way of rank 0: they may be in the middle of a collective."""
        for peer in self.ranks:
            if peer != self.transport.rank:
                with contextlib.suppress(OSError):
                    self.transport.send(peer, self.channel, FAILED, reason.encode())

    def start_send(self, array, peer, tag, work):
        try:
            self.transport.send(self.ranks[peer], self.channel, tag, array)
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
    sent = [call.source[begin[i]:begin[i + 1]] for i in range(links.size)]
    wanted = [call.target[end[i]:end[i + 1]] for i in range(links.size)]
    wanted[links.rank][...] = sent[links.rank]
    for distance in range(1, links.size):
        to, source = (links.rank + distance) % links.size, (links.rank - distance) % links.size
        links.exchange(sent[to], to, wanted[source], source)


def barrier(links, call):
    """Nothing is left to do: before a collective begins, all ranks have come."""


PERFORM = {f.__name__: f for f in (all_reduce, reduce, broadcast, all_gather, gather, scatter, reduce_scatter,
                                   all_to_all, barrier)}
