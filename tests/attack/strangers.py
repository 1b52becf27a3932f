"""Strangers at the ports on which ranks and their stores listen.

    python -m tests.attack.strangers --count 400 --report tests/attack/results/strangers.json

Two stores, each in a process of its own, one with a secret and one without, are called by strangers of many kinds; those who
can wait stay connected. After each of them an honest rank must be answered at once, nothing of theirs may have run, and the
process may not have grown. Every fiftieth case is a meeting of three ranks while strangers knock at their doors.
"""

import functools
import os
import pickle
import random
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from datetime import timedelta
from pathlib import Path

from readtorch import distributed as dist
from readtorch.csrc.distributed import authentication, full_mesh
from readtorch.csrc.distributed.store import HashStore
from readtorch.csrc.distributed.tcp_store_backend import MAX_REQUEST, request_of
from tests.attack import limits, record

SECRET = "0123456789abcdef" * 4
GROWTH = 200 << 20  # bytes that a store's process may grow by
AT_ONCE = 3.0  # seconds in which an honest rank is answered


class Code:
    """A pickle that makes a directory."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (self.path,)


class Target:
    """A process that serves a store."""

    def __init__(self, secret):
        self.secret = secret
        self.folder = tempfile.mkdtemp()
        path = os.pathsep.join([str(limits.ROOT / "src"), str(limits.ROOT)])
        names = {**os.environ, "PYTHONPATH": path, authentication.VARIABLE: secret, "XDG_STATE_HOME": "/proc/1"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.attack.strangers", "--serve"],
            env=names,
            cwd=self.folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.port = int(self.process.stdout.readline())
        self.honest = authentication.connect(
            ("127.0.0.1", self.port), secret.encode(), b"TCPStore", 0, time.monotonic() + 20
        )
        self.began = self.memory("VmRSS")
        self.code = pickle.dumps(Code(self.folder + "/ran"))
        self.staying = []

    def memory(self, name):
        status = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) << 10 for line in status if line.startswith(name))

    def fault(self):
        """What is wrong after a stranger's call, or None."""
        began = time.monotonic()
        request = request_of("add", ("n", 1))
        self.honest.settimeout(10)
        try:
            self.honest.sendall(struct.pack("<I", len(request)) + request)
            if not self.honest.recv(100):
                return "the honest rank was cut off"
        except OSError as error:
            return f"the honest rank: {error}"
        if time.monotonic() - began > AT_ONCE:
            return f"an honest rank waited {time.monotonic() - began:.1f} s"
        if os.listdir(self.folder):
            return "code ran"
        if self.memory("VmHWM") - self.began > GROWTH:
            return f"{self.memory('VmHWM') - self.began >> 20} MB more"
        return None


@functools.cache
def target(secret):
    return Target(secret)


# -- what strangers do: functions of (connection, random numbers, target) ---------------------------------


def says_nothing(connection, rng, target):
    return "stays"


def leaves(connection, rng, target):
    pass


def resets(connection, rng, target):
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def noise(connection, rng, target):
    connection.sendall(rng.randbytes(rng.randrange(1, 5000)))


def a_pickle(connection, rng, target):
    connection.sendall(target.code)


def a_pickle_with_its_length(connection, rng, target):
    connection.sendall(struct.pack(rng.choice(["<Q", "<I", ">Q", ">I"]), len(target.code)) + target.code)


def a_length_bomb(connection, rng, target):
    connection.sendall(struct.pack("<Q", rng.choice([2**31, 2**40, 2**64 - 1])) + b"x" * 10)
    return "stays"


def http(connection, rng, target):
    connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    return "stays"


def tls(connection, rng, target):
    connection.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + rng.randbytes(500))


def begins_like_a_rank(connection, rng, target):
    connection.sendall(authentication.MAGIC + rng.randbytes(rng.randrange(0, 70)))
    return "stays"


def guesses(connection, rng, target):
    connection.sendall(authentication.MAGIC + rng.randbytes(72) + target.code)


def drips(connection, rng, target):
    for byte in authentication.MAGIC + rng.randbytes(20):
        connection.sendall(bytes([byte]))
    return "stays"


def knows_another_secret(connection, rng, target):
    try:
        authentication.authenticate(
            connection, b"wrong", b"TCPStore", rng.randrange(-(2**63), 2**63), time.monotonic() + 10
        )
    except dist.DistNetworkError:
        pass


def a_crowd(connection, rng, target):
    target.staying += [socket.create_connection(("127.0.0.1", target.port), 10) for _ in range(rng.randrange(20, 80))]
    return "stays"


KINDS = [
    says_nothing,
    leaves,
    resets,
    noise,
    a_pickle,
    a_pickle_with_its_length,
    a_length_bomb,
    http,
    tls,
    begins_like_a_rank,
    guesses,
    drips,
    knows_another_secret,
    a_crowd,
]


# -- what they do after they were let in, where there is no secret ---------------------------------------


def frame(data, length=None):
    return struct.pack("<I", len(data) if length is None else length) + data


def no_request(connection, rng, target):
    connection.sendall(frame(rng.randbytes(rng.randrange(0, 300))))


def pickles_as_requests(connection, rng, target):
    connection.sendall(frame(target.code) + frame(b"\0" + target.code))


def announces_much(connection, rng, target):
    connection.sendall(frame(b"x" * 10, rng.choice([MAX_REQUEST, MAX_REQUEST + 1, 2**32 - 1])))
    return "stays"


def many_who_send_half(connection, rng, target):
    """Each sends 4 MB of a request that never ends."""
    for _ in range(30):
        other = authentication.connect(("127.0.0.1", target.port), b"", b"TCPStore", 0, time.monotonic() + 10)
        target.staying.append(other)
        try:
            other.settimeout(2)
            other.sendall(frame(b"\0" * (4 << 20), MAX_REQUEST))
        except OSError:
            pass  # closed: too much is unfinished
    return "stays"


def does_not_read(connection, rng, target):
    """Asks for a large value again and again, and takes no answer."""
    request = frame(request_of("set", ("large", bytes(1 << 20)))) + frame(request_of("get", ("large",))) * 200
    connection.settimeout(2)
    try:
        connection.sendall(request)
    except OSError:
        pass
    return "stays"


def numbers_that_are_none(connection, rng, target):
    connection.sendall(
        frame(request_of("set", ("word", b"x")))
        + frame(request_of("add", ("word", 1)))
        + frame(request_of("add", ("big", 2**63 - 1))) * 2
        + frame(request_of("wait", (["never"], 2**62)))
    )
    return "stays"


INSIDE = [no_request, pickles_as_requests, announces_much, many_who_send_half, does_not_read, numbers_that_are_none]


# -- one case -------------------------------------------------------------------------------------


def attack(seed, number):
    rng = random.Random(f"{seed} {number}")
    if number % 50 == 49:
        return meeting(rng)
    inside = rng.random() < 0.3
    kind = INSIDE[number % len(INSIDE)] if inside else KINDS[number % len(KINDS)]
    victim = target("" if inside else rng.choice([SECRET, ""]))
    connection = socket.create_connection(("127.0.0.1", victim.port), 10)
    try:
        if inside:
            connection.close()
            connection = authentication.connect(("127.0.0.1", victim.port), b"", b"TCPStore", 0, time.monotonic() + 10)
        stays = kind(connection, rng, victim)
    except OSError:
        stays = None  # it was closed meanwhile: as it should be
    if stays:
        victim.staying.append(connection)
    else:
        connection.close()
    for old in victim.staying[:-300]:
        old.close()
    del victim.staying[:-300]
    fault = victim.fault()
    name = f"{kind.__name__.replace('_', ' ')}, {'a secret' if victim.secret else 'no secret'}"
    return f"BAD {name}: {fault}" if fault else name


def meeting(rng):
    """Three ranks meet while 100 strangers stand at the doors of the first two: their time, in words."""
    store, failures = HashStore(), []

    def rank(number):
        try:
            sockets, _ = full_mesh.connect_full_mesh(store, number, 3, 20)
            for connection in sockets.values():
                connection.close()
        except Exception as error:
            failures.append(repr(error))

    threads = [threading.Thread(target=rank, args=(number,)) for number in range(3)]
    late = threading.Thread(target=knock, args=(store, rng, began := [], threads[2]))
    late.start()
    for thread in threads[:2]:
        thread.start()
    late.join(30)
    threads[2].join(30)
    for thread in threads:
        thread.join(30)
    seconds = time.monotonic() - began[0]
    if failures or seconds > AT_ONCE or any(thread.is_alive() for thread in threads):
        return f"BAD meeting: {seconds:.1f} s {failures}"
    return "a meeting among strangers"


def knock(store, rng, began, last_rank):
    """Strangers at the doors, before the last rank comes: it is there, but its address is kept back until they stand."""
    original, crowd = store.set, []

    def set_(key, value):
        if key.endswith("/rank0") or key.endswith("/rank1"):
            host, _, port = value.decode().rpartition(":")
            for _ in range(100):
                crowd.append(socket.create_connection((host, int(port)), 10))
                if rng.random() < 0.5:
                    crowd[-1].sendall(rng.randbytes(rng.randrange(1, 100)))
        original(key, value)

    store.set = set_
    began.append(time.monotonic())
    last_rank.start()
    last_rank.join(30)
    for connection in crowd:
        connection.close()


def serve():
    store = dist.TCPStore("127.0.0.1", 0, 1, True, timeout=timedelta(seconds=60))
    print(store.port, flush=True)
    sys.stdin.read()


def end():
    """End the stores' processes."""
    for secret in (SECRET, ""):
        target(secret).process.kill()
        target(secret).process.wait()
    target.cache_clear()


if __name__ == "__main__":
    if "--serve" in sys.argv:
        serve()
    else:
        try:
            code = record.main(__doc__, attack, 400)
        finally:
            end()
        sys.exit(code)
