"""Launchers on several machines meet at a TCPStore.

In PyTorch: `torch/distributed/elastic/rendezvous/c10d_rendezvous_backend.py`, `torch/distributed/elastic/rendezvous/dynamic_rendezvous.py`.

Note [ How launchers meet ]
All know an address, and the first whose machine has it serves a store there; the others connect to it. Each attempt to run the
program is a round. In a round a launcher draws a number from a counter, which is its place. Number 0 waits until enough have come,
then a moment for more if more are allowed, and writes down how many they are, and the address and port at which rank 0's store will
be. Who drew a larger number waits for the next round. A launcher whose rank fails writes that down, and the others, who look from
time to time, stop theirs; then all go on to the next round. At the end each waits until all are done.
in PyTorch: a launcher that comes late makes the others begin a new round at once, and one that dies is noticed by its heartbeat; here
its ranks are missed by the others' ranks.
"""

import contextlib
import socket
import time
from datetime import timedelta
from types import SimpleNamespace

from readtorch.csrc.distributed.exception import DistNetworkError, DistStoreError
from readtorch.csrc.distributed.full_mesh import own_address
from readtorch.csrc.distributed.store import PrefixStore
from readtorch.csrc.distributed.tcp_store import TCPStore

PORT = 29400  # unless the endpoint says one
SETTINGS = {"timeout": 900.0, "last_call_timeout": 30.0}  # seconds: for those who must come, for those who may


class Meeting:
    """One launcher's way to the others."""

    def __init__(self, endpoint, run_id, least, most, settings=""):
        self.least = least
        self.most = most
        self.settings = SETTINGS | {k: float(v) for k, _, v in (s.partition("=") for s in settings.split(",") if s)}
        host, _, port = endpoint.partition(":")
        self.store = PrefixStore(f"rdzv/{run_id}", self._connect(host or "127.0.0.1", int(port or PORT)))
        self.round = -1
        self.place = None

    def _connect(self, host, port):
        """Serve the store if nobody does, and if the address is this machine's."""
        patience = timedelta(seconds=self.settings["timeout"])
        with contextlib.suppress(DistNetworkError, socket.gaierror):
            return TCPStore(host, port, None, is_master=True, timeout=patience, wait_for_workers=False)
        return TCPStore(host, port, None, is_master=False, timeout=patience, wait_for_workers=False)

    def next_round(self, address=None):
        """This machine's place in the next attempt."""
        deadline = time.monotonic() + self.settings["timeout"]
        while True:
            self.round += 1
            number = self.store.add(self._key("launchers"), 1) - 1
            if number == 0:
                self._close(deadline, address)
            self._wait(self._key("closed"), deadline)
            nodes, host, port = self.store.get(self._key("closed")).decode().split()
            if number < int(nodes):
                self.place = SimpleNamespace(
                    node_rank=number, nodes=int(nodes), master_addr=host, master_port=int(port)
                )
                return self.place

    def _close(self, deadline, address):
        """The first of a round waits for the others, and writes down who takes part."""
        self._count(self.least, deadline)
        came = self._count(self.most, min(deadline, time.monotonic() + self.settings["last_call_timeout"]), must=False)
        host = address or own_address(self.store)
        with socket.socket() as probe:
            probe.bind((host, 0))
            port = probe.getsockname()[1]
        self.store.set(self._key("closed"), f"{min(came, self.most)} {host} {port}")

    def _count(self, wanted, deadline, must=True):
        while (came := self.store.add(self._key("launchers"), 0)) < wanted:
            if time.monotonic() > deadline:
                if must:
                    raise DistStoreError(f"rendezvous timed out: {came} of at least {wanted} launchers came")
                return came
            time.sleep(0.05)
        return came

    def _wait(self, key, deadline):
        self.store.wait([key], timedelta(seconds=max(0.1, deadline - time.monotonic())))

    def _key(self, name):
        return f"{self.round}/{name}"

    def fail(self):
        """A rank of this machine has failed."""
        with contextlib.suppress(DistNetworkError):
            self.store.set(self._key("failed"), "1")

    def failed(self):
        """Whether one of another machine has; or the store has gone, and with it the machine that served it."""
        try:
            return self.store.check([self._key("failed")])
        except DistNetworkError:
            return True

    def all_done(self):
        """This machine's ranks have ended well: wait for the others. False if one of theirs fails."""
        try:
            self.store.add(self._key("done"), 1)
            while self.store.add(self._key("done"), 0) < self.place.nodes:
                if self.failed():
                    return False
                time.sleep(0.05)
            self._leave()
        except DistNetworkError:
            pass  # who serves the store leaves last: all have seen that all are done
        return True

    def _leave(self):
        """The one that serves the store gives the others a moment to see the end."""
        self.store.add(self._key("left"), 1)
        deadline = time.monotonic() + 2
        serves = self.store._underlying_non_prefix_store.server is not None
        while serves and self.store.add(self._key("left"), 0) < self.place.nodes and time.monotonic() < deadline:
            time.sleep(0.02)
