"""The process that holds a `TCPStore`'s entries, and the language in which it is asked.

In PyTorch: `torch/csrc/distributed/c10d/TCPStoreBackend.cpp`, `torch/csrc/distributed/c10d/TCPStoreLibUvBackend.cpp`, where likewise one
thread serves everybody.

Note [ What goes over the wire ]
Numbers and bytes, never pickles: a stranger's pickle would be a stranger's program. A request is its length,
the number of an operation and the operation's parameters, the answer its length, whether it went well, and
the result or the error. Each parameter has a kind (`_KINDS`) that both sides know, and whatever does not fit
ends the connection. Before the first request the two have shown that they know each other: see
Note [ The secret of a group ].

One thread deals with all clients, so no client can make another one wait: requests are read, and answers
written, as far as the sockets allow. The next request of a client is looked at when it has taken the answer
to the last one; so it cannot make the server keep more than one of each.
"""

import errno
import logging
import os
import selectors
import socket
import struct
import threading
import time
import weakref

from .authentication import Listener, group_secret
from .exception import DistNetworkError, DistStoreError, QueueEmptyError
from .store import HashStore

MAX_KEY = 8 * 1024  # bytes of a key and of a value, and how many keys: PyTorch's limits
MAX_VALUE = 8 * 1024 * 1024
MAX_KEYS = 128 * 1024
MAX_REQUEST = 3 * MAX_VALUE  # the whole of a request; in PyTorch: not limited
LENGTH = struct.Struct("<I")
_NUMBER = struct.Struct("<q")
_UNFINISHED = 64 * 1024 * 1024  # bytes of half-sent requests that are kept for clients who prove nothing
_MOST_UNAUTHENTICATED = 1024  # how many such clients there may be
STORE = b"TCPStore"  # what callers say they want, in `authentication`

log = logging.getLogger(__name__)


# ------------------------------------------------------------------------- the language


def check_sizes(keys, values):
    """DistStoreError for keys and values that the server would not take."""
    if len(keys) > MAX_KEYS:
        raise DistStoreError(f"Too many keys being waited. keys: {len(keys)}, max: {MAX_KEYS}")
    for parts, most, what in ((keys, MAX_KEY, "string"), (values, MAX_VALUE, "payload")):
        for part in parts:
            if len(part) > most:
                raise DistStoreError(f"Invalid {what} size. size: {len(part)}, max: {most}")


def _join(parts):
    return b"".join(LENGTH.pack(len(part)) + part for part in parts)


def _split(data):
    """What was joined; ValueError if it cannot have been."""
    parts, position = [], 0
    while position < len(data):
        begin = position + LENGTH.size
        (length,) = LENGTH.unpack(data[position:begin].ljust(LENGTH.size, b"\xff"))
        position = begin + length
        if position > len(data):
            raise ValueError("a part is longer than the whole")
        parts.append(bytes(data[begin:position]))
    return parts


def _read_number(data):
    if len(data) != _NUMBER.size:
        raise ValueError("that is no number")
    return _NUMBER.unpack(data)[0]


_KINDS = {  # of parameters and results: how to write one, how to read one
    "nothing": (lambda value: b"", lambda data: None),
    "bytes": (bytes, bytes),
    "number": (_NUMBER.pack, _read_number),
    "truth": (lambda value: b"+" if value else b"-", lambda data: data == b"+"),
    "key": (str.encode, bytes.decode),
    "keys": (lambda keys: _join(key.encode() for key in keys), lambda data: [k.decode() for k in _split(data)]),
    "values": (_join, _split),
}

OPERATIONS = {  # method of Store: (kinds of its parameters, kind of its result)
    "set": (("key", "bytes"), "nothing"),
    "compare_set": (("key", "bytes", "bytes"), "bytes"),
    "get": (("key",), "bytes"),
    "add": (("key", "number"), "number"),
    "check": (("keys",), "truth"),
    "wait": (("keys", "number"), "truth"),  # milliseconds at most; whether all are there
    "num_keys": ((), "number"),
    "delete_key": (("key",), "truth"),
    "append": (("key", "bytes"), "nothing"),
    "multi_set": (("keys", "values"), "nothing"),
    "queue_push": (("key", "bytes"), "nothing"),
    "queue_pop": (("key",), "bytes"),
    "queue_len": (("key",), "number"),
    "list_keys": ((), "keys"),
}
_NAMES = list(OPERATIONS)  # an operation is sent as its index
_ERRORS = [DistStoreError, QueueEmptyError, ValueError, KeyError]  # an error is sent as the index of its class


def request_of(operation, arguments):
    """A request as bytes."""
    kinds, _ = OPERATIONS[operation]
    parts = [_KINDS[kind][0](argument) for kind, argument in zip(kinds, arguments, strict=True)]
    return bytes([_NAMES.index(operation)]) + _join(parts)


def read_request(data):
    """(operation, arguments); ValueError for what is no request."""
    if not data or data[0] >= len(_NAMES):
        raise ValueError("no such operation")
    operation, parts = _NAMES[data[0]], _split(data[1:])
    kinds, _ = OPERATIONS[operation]
    arguments = [_KINDS[kind][1](part) for kind, part in zip(kinds, parts, strict=True)]
    of_kind = {kind: argument for kind, argument in zip(kinds, arguments)}
    check_sizes([of_kind["key"]] if "key" in of_kind else of_kind.get("keys", []), of_kind.get("values", []))
    return operation, arguments


def answer_of(operation, result):
    """A result, or an exception, as bytes."""
    if isinstance(result, Exception):
        number = next((i for i, kind in enumerate(_ERRORS) if type(result) is kind), 0)
        return b"!" + bytes([number]) + str(result).encode()
    return b"=" + _KINDS[OPERATIONS[operation][1]][0](result)


def read_answer(operation, data):
    """The result; raises the error that it is. ValueError for what is no answer."""
    if data[:1] == b"!" and len(data) > 1 and data[1] < len(_ERRORS):
        raise _ERRORS[data[1]](data[2:].decode())
    if data[:1] != b"=":
        raise ValueError("that is no answer")
    return _KINDS[OPERATIONS[operation][1]][1](bytes(data[1:]))


# ------------------------------------------------------------------------- the server


class TCPServer:
    """Serves one store at an address, as long as this object lives: the stores of its process hold it."""

    running = weakref.WeakValueDictionary()  # (host, port) -> TCPServer, for multi_tenant
    lock = threading.Lock()

    def __init__(self, host, port, listen_fd=None):
        listening = _listen(host, port, listen_fd)
        self.port = listening.getsockname()[1]
        self._daemon = _Daemon(listening)
        self._owner = os.getpid()
        threading.Thread(target=self._daemon.run, name="TCPStore server", daemon=True).start()

    @classmethod
    def start(cls, host, port, multi_tenant, listen_fd=None):
        """A new one, or with multi_tenant the one that this process has there."""
        with cls.lock:
            server = cls.running.get((host, port)) if multi_tenant else None
            if server is None:
                server = cls(host, port, listen_fd)
                cls.running[host, server.port] = server
            return server

    def __del__(self):
        if getattr(self, "_owner", None) == os.getpid():  # a forked process has this object, but no thread
            self._daemon.stop()


def _listen(host, port, listen_fd):
    """A socket that listens there, or the one that the caller has bound already. DistNetworkError if it cannot be.

    in PyTorch: on all of the machine's addresses, whatever `host` says.
    """
    try:
        if listen_fd is None:
            return socket.create_server((host, port), backlog=512)
        listening = socket.socket(fileno=listen_fd)
    except OSError as error:
        if error.errno is not None and error.errno < 0:  # create_server does not keep the error's class
            raise socket.gaierror(*error.args) from error
        raise DistNetworkError(_refusal("failed to listen on any local network address", port, error)) from error
    try:
        listening.listen(512)
    except OSError as error:
        raise DistNetworkError(_refusal("failed to listen on the given socket", port, error)) from error
    return listening


def _refusal(what, port, error):
    name, words = errno.errorcode.get(error.errno, "unknown"), os.strerror(error.errno).lower()
    return f"The server socket has {what}. port: {port}, useIpv6: false, code: -{error.errno}, name: {name}, message: {words}"


class _Client:
    """A connection that was let in."""

    def __init__(self):
        self.incoming = bytearray()  # what has come of requests
        self.outgoing = memoryview(b"")  # what has not gone of an answer
        self.wants = None  # (keys, until when) if it waits


class _Daemon:
    """The thread that serves."""

    def __init__(self, listening):
        self.entries = HashStore()
        self.secret = group_secret()
        self.listener = Listener(listening, self.secret, STORE, self._welcome)
        self.selector = self.listener.selector
        self.clients = {}  # connection -> _Client
        self.waiting = {}  # connection -> _Client, those that wait for keys
        self.stopped = False
        self._bell, self._ringer = socket.socketpair()
        self.selector.register(self._bell, selectors.EVENT_READ, lambda bell, events: None)

    def run(self):
        while not self.stopped:
            self.listener.poll(self._time_to_sleep())
            self._answer_those_who_wait()
        for connection in self.clients:
            connection.close()
        self.listener.close()
        self._bell.close()

    def stop(self):
        """From another thread."""
        self.stopped = True
        self._ringer.shutdown(socket.SHUT_RDWR)  # a forked process may have it too, so it is not enough to close it
        self._ringer.close()

    def _time_to_sleep(self):
        if not self.waiting:
            return 60.0
        return min(60.0, min(client.wants[1] for client in self.waiting.values()) - time.monotonic())

    def _welcome(self, connection, _):
        if not self.secret and len(self.clients) >= _MOST_UNAUTHENTICATED:
            connection.close()
            return
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.clients[connection] = _Client()
        self.selector.register(connection, selectors.EVENT_READ, self._attend)

    def _attend(self, connection, events):
        """Read or write as much as goes at once."""
        client = self.clients.get(connection)
        if client is None:
            return  # it was dropped since
        try:
            if events & selectors.EVENT_READ:
                self._read(connection, client)
            self._proceed(connection, client)
        except BlockingIOError:
            pass
        except Exception as error:  # it has gone, or said what is no request: no reason to end for the others
            self._drop(connection, error)

    def _drop(self, connection, why):
        log.info("closed a client's connection: %s", why)
        self.selector.unregister(connection)
        self.clients.pop(connection)
        self.waiting.pop(connection, None)
        connection.close()

    def _read(self, connection, client):
        data = connection.recv(1 << 16)
        if not data:
            raise ConnectionError("it has left")
        client.incoming += data
        if len(client.incoming) > MAX_REQUEST + LENGTH.size:
            raise ValueError("it sends without waiting for answers")
        if not self.secret and len(client.incoming) > len(data):
            if sum(len(other.incoming) for other in self.clients.values()) > _UNFINISHED:
                raise ValueError("too much is unfinished")

    def _proceed(self, connection, client):
        """Send what is to be sent; after that, answer the next request if it is there."""
        while True:
            while client.outgoing:
                self._listen_for(connection, selectors.EVENT_WRITE)
                client.outgoing = client.outgoing[connection.send(client.outgoing) :]
            self._listen_for(connection, selectors.EVENT_READ)
            if client.wants is not None or (request := _next_frame(client.incoming)) is None:
                return
            self._begin(connection, client, *read_request(request))

    def _listen_for(self, connection, events):
        if self.selector.get_key(connection).events != events:
            self.selector.modify(connection, events, self._attend)

    def _begin(self, connection, client, operation, arguments):
        """Answer a request, or remember that somebody waits for keys."""
        if operation == "wait":
            keys, milliseconds = arguments
            client.wants = keys, time.monotonic() + milliseconds / 1000
            self.waiting[connection] = client
            return
        try:
            _answer(client, operation, self._perform(operation, *arguments))
        except Exception as error:
            _answer(client, operation, error)

    def _perform(self, operation, *arguments):
        if operation == "get":
            return self.entries.update(lambda entries: entries[arguments[0]])
        if operation == "queue_pop":
            return self.entries.queue_pop(*arguments, block=False)
        return getattr(self.entries, operation)(*arguments)

    def _answer_those_who_wait(self):
        now = time.monotonic()
        for connection, client in list(self.waiting.items()):
            keys, until = client.wants
            there = self.entries.check(keys)
            if there or now >= until:
                client.wants = None
                del self.waiting[connection]
                _answer(client, "wait", there)
                self._attend(connection, 0)


def _answer(client, operation, result):
    data = answer_of(operation, result)
    client.outgoing = memoryview(LENGTH.pack(len(data)) + data)


def _next_frame(incoming):
    """Take the first whole request out of what has come; None if there is none yet."""
    if len(incoming) < LENGTH.size:
        return None
    (length,) = LENGTH.unpack(incoming[: LENGTH.size])
    if length > MAX_REQUEST:
        raise ValueError(f"a request of {length} bytes")
    end = LENGTH.size + length
    if len(incoming) < end:
        return None
    frame = bytes(incoming[LENGTH.size : end])
    del incoming[:end]
    return frame
