"""`TCPStore`: one process serves the entries, all others ask it over a socket.

In PyTorch: `torch/csrc/distributed/c10d/TCPStore.cpp`. The server is in `tcp_store_backend.py`.
"""

import ipaddress
import socket
import threading
import time

from .authentication import connect, group_secret
from .exception import DistNetworkError, DistStoreError
from .store import DEFAULT_TIMEOUT, Store, _bytes, milliseconds
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
        super().__init__()
        if world_size == 0:
            raise ValueError("TCPStore world size cannot be 0")
        if master_listen_fd is not None and use_libuv:
            raise NotImplementedError(
                "The libuv TCPStore backend does not support initialization with an listen fd. Please switch to the legacy "
                "TCPStore by setting environment variable USE_LIBUV to 0."
            )
        self._timeout = timeout
        self._host = host_name
        self.server = self._serve(host_name, port, multi_tenant, master_listen_fd) if is_master else None
        self._port = self.server.port if is_master else port
        self._libuv = use_libuv
        self._mutex = threading.Lock()
        self._connection = _connect(host_name, self._port, timeout)
        if wait_for_workers and world_size is not None:
            self._wait_for_workers(world_size, is_master)

    def _serve(self, *where):
        try:
            return TCPServer.start(*where)
        except socket.gaierror as error:
            raise unreachable(*where[:2], self._timeout) from error

    @property
    def host(self):
        """The server's address, as it was given."""
        return self._host

    @property
    def port(self):
        """The server's port."""
        return self._port

    @property
    def libuvBackend(self):
        """What was said of `use_libuv`. in PyTorch: which of two servers runs; here there is one, which does as libuv's."""
        return self._libuv

    def _wait_for_workers(self, world_size, is_master):
        joined = self.add("init/", 1)
        if is_master:
            deadline = time.monotonic() + self._timeout.total_seconds()
            while (joined := self.add("init/", 0)) < world_size:
                if time.monotonic() > deadline:
                    raise DistStoreError(
                        f"Timed out after {self._timeout.total_seconds():.0f} seconds "
                        "waiting for clients. "
                        f"{joined}/{world_size} clients joined."
                    )
                time.sleep(0.01)

    def _ask(self, operation, *arguments):
        """What the server answers. DistNetworkError if it does not, and from then on."""
        request = request_of(operation, arguments)
        with self._mutex:
            try:
                answer = self._exchange(request)
            except BaseException as error:
                # nobody knows how much of it went: an answer that comes later must not be taken for another's
                self._connection.close()
                if not isinstance(error, OSError):
                    raise
                where = f"{self.host}:{self.port}"
                raise DistNetworkError(f"the store at {where} cannot be reached: {error}") from error
        return read_answer(operation, answer)

    def _exchange(self, request):
        deadline = time.monotonic() + max(_ANSWER_TIMEOUT, self._timeout.total_seconds())
        send_exactly(self._connection, LENGTH.pack(len(request)) + request, deadline)
        (length,) = LENGTH.unpack(receive_exactly(self._connection, LENGTH.size, deadline))
        return receive_exactly(self._connection, length, deadline)

    def _ask_with(self, operation, key, *values):
        """The same, for operations on one key."""
        values = [_bytes(value) for value in values]
        check_sizes([key], values)
        return self._ask(operation, key, *values)

    def wait(self, keys, timeout=None):
        check_sizes(keys, [])
        timeout = self._timeout if timeout is None else timeout
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
        return DistStoreError(f"wait timeout after {milliseconds(timeout)}ms, keys: {names}")

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

    def multi_get(self, keys):
        self.wait(keys)
        return [self._ask("get", key) for key in keys]

    def multi_set(self, keys, values):
        if len(keys) != len(values):
            raise DistStoreError("multiSet keys and values vectors must be of same size")
        values = [_bytes(value) for value in values]
        check_sizes(keys, values)
        self._ask("multi_set", keys, values)

    def queue_push(self, key, value):
        self._ask_with("queue_push", key, value)

    def queue_pop(self, key, block=True):
        deadline = time.monotonic() + self._timeout.total_seconds()
        while block and self.queue_len(key) == 0:
            if time.monotonic() > deadline:
                raise self.timed_out([key], self._timeout)
            time.sleep(0.01)
        return self._ask_with("queue_pop", key)

    def has_extended_api(self):
        return True

    def queue_len(self, key):
        return self._ask_with("queue_len", key)

    def clone(self):
        return TCPStore(self.host, self.port, None, False, self._timeout, wait_for_workers=False)

    def __repr__(self):
        server = f"TCPServer(port={self._port})" if self.server else "<nullptr>"
        return f"TCPStore(client=TCPClient({_socket_repr(self._connection)}), server={server})"


def _socket_repr(connection):
    """A connection in PyTorch's words."""
    if connection.fileno() < 0:
        return "SocketImpl(closed)"
    ends = []
    for address, port, *_ in (connection.getsockname(), connection.getpeername()):
        name = "localhost" if ipaddress.ip_address(address).is_loopback else address
        ends.append(f"[{name}]:{port}")
    return f"SocketImpl(fd={connection.fileno()}, addr={ends[0]}, remote={ends[1]})"


def _connect(host, port, timeout):
    """A connection to the server, which may start later than we do."""
    deadline = time.monotonic() + timeout.total_seconds()
    try:
        return connect((host, port), group_secret(), STORE, 0, deadline)
    except TimeoutError as error:
        raise unreachable(host, port, timeout) from error


def unreachable(host, port, timeout):
    words = (
        f"The client socket has timed out after {milliseconds(timeout)}ms while trying to connect to ({host}, {port})."
    )
    return DistNetworkError(words)


TCPStore.__module__ = "readtorch.distributed"
