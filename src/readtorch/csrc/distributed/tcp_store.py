"""`TCPStore`: one process serves the entries, all others ask it over a socket.

In PyTorch: `torch/csrc/distributed/c10d/{TCPStore,TCPStoreBackend}.{hpp,cpp}`.

Note [ What goes over the wire ]
A request is the name of an operation of `Store` and its arguments, the answer its result or its error; both
pickled, with their length before them. Pickles can run code, so a server must stand in a network where only
the ranks reach it: the same holds for PyTorch's object collectives. It listens only to the address that it
was given. in PyTorch: a binary protocol of its own; the server's `libuv` thread plays the part of our thread
a client.
"""
import pickle
import socket
import socketserver
import struct
import threading
import time
from datetime import timedelta

from .errors import DistNetworkError, DistStoreError
from .store import DEFAULT_TIMEOUT, HashStore, Store

_LENGTH = struct.Struct("<Q")
_servers = {}  # (host, port) -> _Server, for multi_tenant: several stores of a process share one
_servers_lock = threading.Lock()


def send_message(connection, value):
    """Write a Python value to a socket."""
    data = pickle.dumps(value)
    connection.sendall(_LENGTH.pack(len(data)) + data)


def receive_message(connection):
    """Read a Python value from a socket; ConnectionError when the other side has gone."""
    (length,) = _LENGTH.unpack(receive_exactly(connection, _LENGTH.size))
    return pickle.loads(receive_exactly(connection, length))


def receive_exactly(connection, count):
    """`count` bytes from a socket; ConnectionError when the other side has gone before."""
    data = bytearray(count)
    rest = memoryview(data)
    while rest:
        received = connection.recv_into(rest)
        if received == 0:
            raise ConnectionError("the connection was closed")
        rest = rest[received:]
    return data


class _Server(socketserver.ThreadingTCPServer):
    """Holds the entries and answers each client in a thread of its own, where a client's `wait` may block."""

    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 512

    def __init__(self, host, port):
        self.entries = HashStore()
        super().__init__((host, port), _Handler)
        threading.Thread(target=self.serve_forever, args=(0.05,), name="TCPStore server", daemon=True).start()


class _Handler(socketserver.BaseRequestHandler):
    def handle(self):
        try:
            while True:
                operation, *args = receive_message(self.request)
                send_message(self.request, self.answer(operation, args))
        except (ConnectionError, EOFError, OSError):
            pass  # the client has gone

    def answer(self, operation, args):
        if operation not in _OPERATIONS:
            return DistStoreError(f"unknown operation {operation}")
        try:
            return getattr(self.server.entries, operation)(*args)
        except Exception as error:
            return error


_OPERATIONS = ("set", "get", "add", "compare_set", "append", "wait", "check", "delete_key", "num_keys",
               "list_keys",
               "multi_set", "queue_push", "queue_pop", "queue_len")


class TCPStore(Store):
    """A store served by the process with `is_master=True` at host_name:port (port 0: one that is free; see
    `port`).

    The master waits until `world_size` clients are there, itself counted, unless wait_for_workers=False.
    Raises DistNetworkError when no server can be reached within `timeout` (a timedelta).
    """

    def __init__(self, host_name, port, world_size=None, is_master=False, timeout=DEFAULT_TIMEOUT,
                 wait_for_workers=True, multi_tenant=False, master_listen_fd=None, use_libuv=True):
        super().__init__(timeout)
        self.host = host_name
        self.server = _serve(host_name, port, multi_tenant) if is_master else None
        self.port = self.server.server_address[1] if is_master else port
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
                    raise DistStoreError(f"Timed out after {self.timeout.total_seconds():.0f} seconds "
                                         "waiting for clients. "
                                         f"{joined}/{world_size} clients joined.")
                time.sleep(0.01)

    def _ask(self, *request):
        with self._mutex:
            try:
                send_message(self._connection, request)
                answer = receive_message(self._connection)
            except (ConnectionError, OSError) as error:
                where = f"{self.host}:{self.port}"
                raise DistNetworkError(f"the store at {where} cannot be reached: {error}") from error
        if isinstance(answer, Exception):
            raise answer
        return answer

    def update(self, change):
        raise RuntimeError("a TCPStore's entries are in its server")

    def wait(self, keys, timeout=None):
        timeout = self.timeout if timeout is None else timeout
        deadline = time.monotonic() + timeout.total_seconds()
        # a short wait there, so that other threads of this process get their turn
        while not self.check(keys):
            left = deadline - time.monotonic()
            if left <= 0:
                raise self.timed_out(keys, timeout)
            try:
                self._ask("wait", keys, timedelta(seconds=min(left, 0.1)))
            except DistStoreError:
                pass

    def timed_out(self, keys, timeout):
        names = ", ".join("/" + key for key in keys)
        return DistStoreError(f"wait timeout after {timeout / timedelta(milliseconds=1):.0f}ms, keys: "
                              f"{names}")

    def set(self, key, value):
        self._ask("set", key, value)

    def get(self, key):
        self.wait([key])
        return self._ask("get", key)

    def add(self, key, amount):
        return self._ask("add", key, amount)

    def compare_set(self, key, expected_value, desired_value):
        return self._ask("compare_set", key, expected_value, desired_value)

    def append(self, key, value):
        self._ask("append", key, value)

    def check(self, keys):
        return self._ask("check", keys)

    def delete_key(self, key):
        return self._ask("delete_key", key)

    def num_keys(self):
        return self._ask("num_keys")

    def list_keys(self):
        return self._ask("list_keys")

    def multi_set(self, keys, values):
        self._ask("multi_set", keys, values)

    def queue_push(self, key, value):
        self._ask("queue_push", key, value)

    def queue_pop(self, key, block=True):
        deadline = time.monotonic() + self.timeout.total_seconds()
        while block and self.queue_len(key) == 0 and time.monotonic() < deadline:
            time.sleep(0.01)
        return self._ask("queue_pop", key, False)

    def queue_len(self, key):
        return self._ask("queue_len", key)

    def clone(self):
        return TCPStore(self.host, self.port, None, False, self.timeout, wait_for_workers=False)

    def __repr__(self):
        server = f"TCPServer(port={self.port})" if self.server else "<nullptr>"
        return f"TCPStore(client=TCPClient({self.host}:{self.port}), server={server})"


def _serve(host, port, multi_tenant):
    with _servers_lock:
        server = _servers.get((host, port)) if multi_tenant else None
        if server is None:
            try:
                server = _Server(host, port)
            except OSError as error:
                words = f"The server socket has failed to listen on {host}:{port}: {error}"
                raise DistNetworkError(words) from error
            _servers[host, server.server_address[1]] = server
        return server


def _connect(host, port, timeout):
    """A connection to the server, which may start later than we do."""
    deadline = time.monotonic() + timeout.total_seconds()
    while True:
        try:
            connection = socket.create_connection((host, port), timeout=max(0.1, deadline - time.monotonic()))
        except OSError as error:
            if time.monotonic() >= deadline:
                raise DistNetworkError("The client socket has timed out after "
                                       f"{timeout.total_seconds() * 1000:.0f}ms while trying to connect to "
                                       f"({host}, {port}).") from error
            time.sleep(0.05)
        else:
            connection.settimeout(None)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return connection


TCPStore.__module__ = "readtorch.distributed"
