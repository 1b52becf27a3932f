"""Who may talk to the ranks: both ends of a connection show that they know the group's secret.

PyTorch has no such file: whoever reaches a port of TCPStore or Gloo is served. See the chapter
"Process groups, DDP and SyncBatchNorm".

Note [ The secret of a group ]
Ranks listen on ports that other users of the machine reach as well, and other machines, if an address of the
network was chosen. So everybody who connects is a stranger until the contrary is proved, and a stranger's
bytes are neither unpickled nor believed: what they may announce is bounded, and memory is taken for what has
come only.

Proved is the knowledge of a secret. It comes from the environment, READTORCH_GROUP_TOKEN, where
`readtorchrun` puts a new one for each run; other users cannot see a process's environment, as they can its
command line. Ranks that were started by hand on one machine, or on several that share home directories, find
a secret of their user's in a file that is readable for nobody else. On other machines the variable must be
set, to the same text of at least 32 random characters everywhere.

A secret cannot be sent through the store, or by any other way that everybody can read: who could read it
there would know it. Where there is none (no home directory that can be written to, and no variable), ranks
meet all the same, and the protocols below carry numbers and bytes only; but anybody may take a rank's place
and send wrong numbers, as in PyTorch. Collectives of objects, which are pickles and hence programs, are then
refused (`ProcessGroup.knows_its_peers`).

The secret itself does not travel. Each side sends a random number, and gets it back hashed together with the
secret (HMAC, RFC 2104), so that nothing can be recorded and used again. The addresses of both ends are hashed
as well: somebody who listens at the address before the right one does, and passes on what a rank says,
proves nothing, as his connection is another one. So ranks cannot meet through forwarded ports, nor where a
network translates addresses.

What follows on the connection is neither encrypted nor signed: who can change packets in the network between
machines is not kept out. There, use a network of your own, or a virtual private one.
"""

import contextlib
import hmac
import logging
import os
import secrets
import selectors
import socket
import struct
import tempfile
import time

from readtorch.c10.cache_dir_utils import read_private

from .exception import DistNetworkError
from .utils import receive_exactly, send_exactly

VARIABLE = "READTORCH_GROUP_TOKEN"
MAGIC = b"readtch1"  # this protocol, and its version
_GREETING = struct.Struct("<8s32s")  # listener: magic, random number
_REPLY = struct.Struct("<8sq32s32s")  # caller: magic, who it says it is, random number, proof
PROOF = 32  # bytes of a proof, which the listener sends last; zeros refuse
SHORTEST = 32  # characters of a secret: who listens in a rank's place can try shorter ones out at home

log = logging.getLogger(__name__)


# ------------------------------------------------------------------------- the secret


def group_secret():
    """The secret that this process shares with the other ranks; b"" if there is none. ValueError for a short one."""
    given = os.environ.get(VARIABLE)
    if given:
        if len(given) < SHORTEST:
            raise ValueError(f"{VARIABLE} must be at least {SHORTEST} random characters, but has {len(given)}")
        return given.encode()
    try:
        return _secret_of_user()
    except OSError as error:
        log.info("no secret to share with other ranks: %s", error)
        return b""


def new_token():
    """A secret for one run of a launcher."""
    return secrets.token_hex(32)


def _secret_of_user():
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    if not os.path.isabs(state):
        raise FileNotFoundError("this user has no home directory")
    folder = os.path.join(state, "readtorch")
    path = os.path.join(folder, "group_token")
    if not os.path.lexists(path):
        os.makedirs(folder, mode=0o700, exist_ok=True)
        _create(folder, path)
    content = read_private(path, closed=0o077, most=1024)
    if len(content) < SHORTEST:
        raise OSError(f"{path} is too short for a secret")
    return content


def _create(folder, path):
    """Several ranks may come here at the same time: all of them then find one file, and a whole one."""
    descriptor, unfinished = tempfile.mkstemp(dir=folder)  # for its owner alone
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(new_token())
        with contextlib.suppress(FileExistsError):
            os.link(unfinished, path)
    finally:
        os.unlink(unfinished)


# ------------------------------------------------------------------------- the proof


def _proof(secret, side, theirs, mine, identity, ends, purpose):
    """That `side` knows the secret, and means the same purpose. ends: addresses of caller and listener."""
    addresses = "".join(f"{host} {port}\0" for host, port, *_ in ends).encode()
    message = side + theirs + mine + struct.pack("<q", identity) + addresses + purpose
    return hmac.digest(secret, message, "sha256")


def authenticate(connection, secret, purpose, identity, deadline):
    """The caller's part: show the listener who we are, and have it shown that it is the one we mean.

    `deadline`: of time.monotonic. Raises ConnectionError if the listener closed the connection, which may be
    tried again; DistNetworkError if it is another one than we mean.
    """
    magic, theirs = _GREETING.unpack(receive_exactly(connection, _GREETING.size, deadline))
    ends = connection.getsockname(), connection.getpeername()
    where = "{}:{}".format(*ends[1][:2])
    if magic != MAGIC:
        raise DistNetworkError(f"what listens at {where} is not readtorch of this version")
    mine = secrets.token_bytes(32)
    numbers = theirs, mine, identity, ends, purpose
    ours = _proof(secret, b"caller", *numbers)
    send_exactly(connection, _REPLY.pack(MAGIC, identity, mine, ours), deadline)
    answer = receive_exactly(connection, PROOF, deadline)
    expected = _proof(secret, b"listener", *numbers)
    if not hmac.compare_digest(bytes(answer), expected):
        raise DistNetworkError(
            f"the process that listens at {where} does not share this one's secret. Set {VARIABLE} to the "
            "same text of at least 32 random characters for all ranks: without it only processes of one "
            "user that see the same home directory know each other. Nor can ranks meet where something "
            "between them changes addresses or ports"
        )


class _PendingConnection:
    """A connection whose other side has been greeted and has not proved anything yet."""

    def __init__(self, address):
        self.address = address
        self.number = secrets.token_bytes(32)
        self.received = b""
        self.deadline = time.monotonic() + Listener.HANDSHAKE_TIMEOUT


class Listener:
    """The listening side, for all connections at the same time: nobody waits for one that sends nothing.

    `admit(connection, identity)` is called for each that proves to know the secret. `poll` has to be
    called again and again; it also calls `data(fileobj, events)` of what others register at the selector.
    """

    MOST_PENDING = 64  # at a time; the next one takes the place of the first
    HANDSHAKE_TIMEOUT = 10.0  # seconds that a handshake may take

    def __init__(self, listening, secret, purpose, admit):
        self.selector = selectors.DefaultSelector()
        self.listening = listening
        self.secret = secret
        self.purpose = purpose
        self.admit = admit
        self.pending = {}  # connection -> _PendingConnection, in the order in which they came
        listening.setblocking(False)
        self.selector.register(listening, selectors.EVENT_READ, self._accept)

    def poll(self, seconds):
        """Wait up to `seconds` for something to happen, and deal with it."""
        if self.pending:
            seconds = min(seconds, 1.0)
        for key, events in self.selector.select(max(0.0, seconds)):
            key.data(key.fileobj, events)
        now = time.monotonic()
        for connection in [c for c, peer in self.pending.items() if peer.deadline < now]:
            self._refuse(connection, "sent too little in time")

    def close(self):
        """Listen no more; who has been admitted stays."""
        for connection in list(self.pending):
            self._refuse(connection, "came too late")
        self.selector.close()
        with contextlib.suppress(OSError):  # not every system can
            self.listening.shutdown(
                socket.SHUT_RDWR
            )  # for forked processes as well, which would let callers wait for ever
        self.listening.close()

    def _accept(self, listening, events):
        try:
            connection, address = listening.accept()
        except BlockingIOError:
            return  # it has gone again
        except OSError as error:  # no descriptors left
            log.info("cannot accept a connection: %s", error)
            if self.pending:
                self._refuse(next(iter(self.pending)), "made room for a new one")
            time.sleep(0.01)
            return
        if len(self.pending) >= self.MOST_PENDING:
            self._refuse(next(iter(self.pending)), "made room for a new one")
        connection.setblocking(False)
        self.pending[connection] = peer = _PendingConnection(address)
        self.selector.register(connection, selectors.EVENT_READ, self._listen)
        with contextlib.suppress(OSError):
            connection.send(_GREETING.pack(MAGIC, peer.number))

    def _listen(self, connection, events):
        peer = self.pending.get(connection)
        if peer is None:
            return  # it was refused since
        try:
            received = connection.recv(_REPLY.size - len(peer.received))
        except BlockingIOError:
            return
        except OSError:
            received = b""
        peer.received += received
        if not received:
            self._refuse(connection, "left")
        elif not peer.received.startswith(MAGIC[: len(peer.received)]):
            self._refuse(connection, "speaks another protocol")
        elif len(peer.received) == _REPLY.size:
            self._verify(connection, peer)

    def _verify(self, connection, peer):
        _, identity, theirs, proof = _REPLY.unpack(peer.received)
        ends = peer.address, connection.getsockname()
        numbers = peer.number, theirs, identity, ends, self.purpose
        known = hmac.compare_digest(proof, _proof(self.secret, b"caller", *numbers))
        try:
            connection.send(_proof(self.secret, b"listener", *numbers) if known else bytes(PROOF))
        except OSError:
            known = False
        if not known:
            self._refuse(connection, "does not know the secret")
            return
        del self.pending[connection]
        self.selector.unregister(connection)
        self.admit(connection, identity)

    def _refuse(self, connection, why):
        peer = self.pending.pop(connection)
        log.info("closed a connection from %s: %s", peer.address, why)
        self.selector.unregister(connection)
        connection.close()


def connect(address, secret, purpose, identity, deadline):
    """A connection to the listener at (host, port), which may start later than we do. Both know the other.

    `deadline`: of time.monotonic. Raises TimeoutError after it, DistNetworkError if somebody else listens.
    """
    while True:
        left = max(0.1, deadline - time.monotonic())
        connection = None
        try:
            connection = socket.create_connection(address, left)
            authenticate(connection, secret, purpose, identity, deadline)
            connection.settimeout(None)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return connection
        except DistNetworkError:
            connection.close()
            raise
        except OSError as error:
            if connection is not None:
                connection.close()
            if time.monotonic() >= deadline:
                raise TimeoutError(f"no connection to {address[0]}:{address[1]}: {error}") from error
            time.sleep(0.05)
