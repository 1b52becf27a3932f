"""How ranks that are processes meet: all come together at a store, and then each connects to every other.

PyTorch has no such file: the library Gloo does it (`connectFullMesh` in `gloo/rendezvous/context.cc`).

Note [ Who is here? ]
The store holds a list to which every rank adds its number and how many it believes there are. All read it
until it is complete, so all see the same: that two have one number, that one has a number that does not
exist, or that they disagree about how many they are. Then all of them raise, with the same words. In PyTorch
the others wait until their time is over.

Over one store ranks may meet several times, one meeting after the other: a rank comes to the next one only
after the last was complete. So the list is cut into meetings by counting. Who has waited in vain strikes its
line out, and may come again.
"""

import contextlib
import secrets
import socket
import time
from datetime import timedelta
from typing import NamedTuple

from .authentication import Listener, connect, group_secret
from .exception import DistError, DistNetworkError, DistStoreError
from .store import PrefixStore

LINGER = 2.0  # seconds

# ------------------------------------------------------------------------- who is here


class Entry(NamedTuple):
    """A line of the list."""

    rank: int
    size: int
    mark: str  # to tell it from others with the same numbers


def check_in(store, rank, size, timeout):
    """Wait until all `size` ranks are here; the number of the meeting over this store: 0, 1 ….

    Raises DistError on all of them if their numbers do not fit together, DistStoreError if somebody does not
    come within `timeout` seconds.
    """
    deadline = time.monotonic() + timeout
    mark = secrets.token_hex(8)
    store.append("ranks", f"{rank} {size} {mark}\n")
    pause = 0.002
    while True:
        number, entries = _meeting_of(mark, store.get("ranks"))
        fault = _fault(entries)
        if fault is not None:
            _linger(PrefixStore(f"{number}", store), rank, size)
            raise DistError(f"Rank {rank} of {size} cannot join: {fault}")
        if len(entries) == size:
            return number
        if time.monotonic() > deadline:
            store.append("ranks", f"{mark}\n")
            here = {entry.rank for entry in entries}
            _linger(PrefixStore(f"{number}", store), rank, len(here))
            raise DistStoreError(
                f"Timed out after {timeout:.0f} seconds waiting for ranks "
                f"{[r for r in range(size) if r not in here]} of {size}"
            )
        time.sleep(pause)
        pause = min(0.1, 1.5 * pause)


def _linger(store, rank, readers):
    """Rank 0, whose process often serves the store, gives the others a moment to read the list."""
    store.add("read", 1)
    deadline = time.monotonic() + LINGER
    while rank == 0 and store.add("read", 0) < readers and time.monotonic() < deadline:
        time.sleep(0.01)


def _meeting_of(mark, listed):
    """(number of the meeting that the entry `mark` belongs to, its entries)."""
    number, entries = 0, []
    for line in listed.decode().splitlines():
        *numbers, its_mark = line.split()
        if not numbers:
            entries = [entry for entry in entries if entry.mark != its_mark]
            continue
        if entries and len(entries) == entries[0].size:
            if any(entry.mark == mark for entry in entries):
                break
            number, entries = number + 1, []
        entries.append(Entry(*map(int, numbers), its_mark))
    return number, entries


def _fault(entries):
    """Why these ranks cannot be one group, in words, or None."""
    first, seen = entries[0], set()
    for rank, size, _ in entries:
        if not 0 <= rank < size:
            return f"there is a rank {rank} in a world of {size}, whose ranks are 0 to {size - 1}"
        if size != first.size:
            return f"rank {first.rank} says that there are {first.size} ranks, rank {rank} that there are {size}"
        if rank in seen:
            return f"there are two processes with rank {rank} (world size {size})"
        seen.add(rank)
    return None


# ------------------------------------------------------------------------- connections


def connect_full_mesh(store, rank, size, timeout):
    """A connection to every other rank, as {rank: socket}, and whether a secret vouches for them."""
    mesh = _Mesh(rank, size, group_secret(), time.monotonic() + timeout)
    meeting = check_in(store, rank, size, timeout)
    try:
        mesh.meet(PrefixStore(f"{meeting}", store))
    except BaseException:
        for connection in mesh.sockets.values():
            connection.close()
        raise
    return mesh.sockets, bool(mesh.secret)


class _Mesh:
    def __init__(self, rank, size, secret, deadline):
        self.rank = rank
        self.size = size
        self.secret = secret
        self.deadline = deadline
        self.sockets = {}

    def meet(self, store):
        """Each rank publishes where it listens, connects to those below it and is connected to by those
        above.
        """
        # for those who have no secret: strangers who connect do not know it
        cookie = store.compare_set("cookie", "", secrets.token_hex(16))
        listening = socket.create_server((own_address(store), 0), backlog=512)
        host, port = listening.getsockname()[:2]
        with contextlib.closing(Listener(listening, self.secret, cookie, self._admit)) as listener:
            store.set(f"rank{self.rank}", f"{host}:{port}")
            for peer in range(self.rank):
                self.sockets[peer] = self._call(peer, store, cookie)
            while len(self.sockets) < self.size - 1:
                self._check_time()
                listener.poll(min(1.0, self.deadline - time.monotonic()))
        self._leave(store)

    def _call(self, peer, store, cookie):
        store.wait([f"rank{peer}"], timedelta(seconds=max(0.1, self.deadline - time.monotonic())))
        host, _, port = store.get(f"rank{peer}").decode().rpartition(":")
        try:
            return connect((host, int(port)), self.secret, cookie, self.rank, self.deadline)
        except OSError as error:
            raise DistNetworkError(f"Rank {self.rank} cannot reach rank {peer}: {error}") from error

    def _admit(self, connection, peer):
        if not self.rank < peer < self.size or peer in self.sockets:
            connection.close()
            return
        connection.setblocking(True)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sockets[peer] = connection

    def _check_time(self):
        if time.monotonic() > self.deadline:
            missing = [r for r in range(self.rank + 1, self.size) if r not in self.sockets]
            raise DistNetworkError(f"Rank {self.rank}: ranks {missing} did not connect in time")

    def _leave(self, store):
        """Rank 0, whose process often serves the store, goes last: the others may still need it."""
        store.add("connected", 1)
        while self.rank == 0 and store.add("connected", 0) < self.size:
            if time.monotonic() > self.deadline:
                raise DistNetworkError("Rank 0: not all ranks could connect to each other in time")
            time.sleep(0.002)


def own_address(store):
    """The address under which other ranks reach this machine: the one it has on the way to the store's
    server.
    """
    while hasattr(store, "underlying_store"):
        store = store.underlying_store
    host = getattr(store, "host", None)
    if host is None:
        return "127.0.0.1"  # a FileStore: ranks on one machine
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((host, store.port))
        return probe.getsockname()[0]
