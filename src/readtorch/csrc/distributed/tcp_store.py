"""`TCPStore`: one process serves the entries, all others ask it over a socket.

In PyTorch: `torch/csrc/distributed/c10d/TCPStore.cpp`. The server is in `tcp_store_backend.py`.
"""

import threading
import time
from datetime import timedelta

from .authentication import connect, group_secret
from .exception import DistNetworkError, DistStoreError
from .store import DEFAULT_TIMEOUT, Store, _bytes
from .tcp_store_backend import LENGTH, STORE, TCPServer, check_sizes, read_answer, request_of
from .utils import receive_exactly, send_exactly

_ANSWER_TIMEOUT = 5.0  # seconds that the server may take for any answer, however short `timeout` is


class TCPStore(Store):
    """A store served by the process with `is_master=True` at host_name:port (port 0: one that is free; see
    `port`).

    The master waits until `world_size` clients are there, itself counted, unless wait_for_workers=False.
    Raises DistNetworkError when no server can be reached within `timeout` (a timedelta).
    """

    def __init__(
        self,
        host_name,
        port,
        world_size=None,
        is_master=False,
        timeout=DEFAULT_TIMEOUT,
        wait_for_workers=True,
        multi_tenant=False,
        master_listen_fd=None,
        use_libuv=True,
    ):
        super().__init__(timeout)
        self.host = host_name
        self.server = TCPServer.start(host_name, port, multi_tenant) if is_master else None
        self.port = self.server.port if is_master else port
        self.libuvBackend = use_libuv
        self._mutex = threading.Lock()
        self._connection = _connect(host_name, self.port, timeout)
        if wait_for_workers and world_size is not None:
            self._wait_for_workers(world_size, is_master)

    def _wait_for_workers(self, world_size, is_master):
        joined = self.add("init/", 1)
        if is_master:
            deadline = time.monotonic() + self.timeout.total_seconds()
            while (joined := self.add("init/", 0)) < world_size:
                if time.monotonic() > deadline:
                    raise DistStoreError(
                        f"Timed out after {self.timeout.total_seconds():.0f} seconds "
                        "waiting for clients. "
                        f"{joined}/{world_size} clients joined."
                    )
                time.sleep(0.01)

    def _ask(self, operation, *arguments):
        """What the server answers. DistNetworkError if it does not, and from then on."""
        with self._mutex:
            try:
                answer = self._exchange(request_of(operation, arguments))
            except BaseException as error:
                # nobody knows how much of it went: an answer that comes later must not be taken for another's
                self._connection.close()
                if not isinstance(error, OSError):
                    raise
                where = f"{self.host}:{self.port}"
                raise DistNetworkError(f"the store at {where} cannot be reached: {error}") from error
        return read_answer(operation, answer)

    def _exchange(self, request):
        deadline = time.monotonic() + max(_ANSWER_TIMEOUT, self.timeout.total_seconds())
        send_exactly(self._connection, LENGTH.pack(len(request)) + request, deadline)
        (length,) = LENGTH.unpack(receive_exactly(self._connection, LENGTH.size, deadline))
        return receive_exactly(self._connection, length, deadline)

    def _ask_with(self, operation, key, *values):
        """The same, for operations on one key."""
        values = [_bytes(value) for value in values]
        check_sizes([key], values)
        return self._ask(operation, key, *values)

    def update(self, change):
        raise RuntimeError("a TCPStore's entries are in its server")

    def wait(self, keys, timeout=None):
        check_sizes(keys, [])
        timeout = self.timeout if timeout is None else timeout
        deadline = time.monotonic() + timeout.total_seconds()
        while True:
            left = max(0, deadline - time.monotonic())
            # a short wait there, so that other threads of this process can ask meanwhile
            if self._ask("wait", keys, int(1000 * min(left, 0.1))):
                return
            if left == 0:
                raise self.timed_out(keys, timeout)

    def timed_out(self, keys, timeout):
        names = ", ".join("/" + key for key in keys)
        return DistStoreError(f"wait timeout after {timeout / timedelta(milliseconds=1):.0f}ms, keys: {names}")

    def set(self, key, value):
        self._ask_with("set", key, value)

    def get(self, key):
        self.wait([key])
        return self._ask_with("get", key)

    def add(self, key, amount):
        check_sizes([key], [])
        return self._ask("add", key, amount)

    def compare_set(self, key, expected_value, desired_value):
        return self._ask_with("compare_set", key, expected_value, desired_value)

    def append(self, key, value):
        self._ask_with("append", key, value)

    def check(self, keys):
        check_sizes(keys, [])
        return self._ask("check", keys)

    def delete_key(self, key):
        return self._ask_with("delete_key", key)

    def num_keys(self):
        return self._ask("num_keys")

    def list_keys(self):
        return self._ask("list_keys")

    def multi_set(self, keys, values):
        values = [_bytes(value) for value in values]
        check_sizes(keys, values)
        self._ask("multi_set", keys, values)

    def queue_push(self, key, value):
        self._ask_with("queue_push", key, value)

    def queue_pop(self, key, block=True):
        deadline = time.monotonic() + self.timeout.total_seconds()
        while block and self.queue_len(key) == 0 and time.monotonic() < deadline:
            time.sleep(0.01)
        return self._ask_with("queue_pop", key)

    def queue_len(self, key):
        return self._ask_with("queue_len", key)

    def clone(self):
        return TCPStore(self.host, self.port, None, False, self.timeout, wait_for_workers=False)

    def __repr__(self):
        server = f"TCPServer(port={self.port})" if self.server else "<nullptr>"
        return f"TCPStore(client=TCPClient({self.host}:{self.port}), server={server})"


def _connect(host, port, timeout):
    """A connection to the server, which may start later than we do."""
    deadline = time.monotonic() + timeout.total_seconds()
    try:
        return connect((host, port), group_secret(), STORE, 0, deadline)
    except TimeoutError as error:
        raise DistNetworkError(
            "The client socket has timed out after "
            f"{timeout.total_seconds() * 1000:.0f}ms while trying to connect to "
            f"({host}, {port})."
        ) from error


TCPStore.__module__ = "readtorch.distributed"
