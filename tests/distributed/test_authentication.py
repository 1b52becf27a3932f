"""What strangers can do to ranks that meet: nothing is unpickled, nothing is believed, nobody waits for them."""

import os
import pickle
import re
import select
import signal
import socket
import stat
import struct
import subprocess
import sys
import threading
import time
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from readtorch import distributed as dist
from readtorch.csrc.distributed import authentication, full_mesh, process_group_wrapper, tcp_store_backend, utils
from readtorch.csrc.distributed.process_group_gloo import _reserve, _send_all
from readtorch.csrc.distributed.store import HashStore
from readtorch.distributed.run import free_port
from tests.distributed.launch import ROOT, environment, readtorchrun, run

TEN = timedelta(seconds=10)


@pytest.fixture(autouse=True)
def a_secret(monkeypatch):
    monkeypatch.setenv(authentication.VARIABLE, "s" * 32)


def serving():
    return dist.TCPStore("127.0.0.1", 0, 1, True, timeout=TEN)


def stranger(port):
    connection = socket.create_connection(("127.0.0.1", port), 10)
    connection.settimeout(10)
    return connection


def is_closed(connection):
    """Whether the other side closes it."""
    try:
        while connection.recv(4096):
            pass
    except ConnectionError:
        pass
    return True


class Payload:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


# -- the store ----------------------------------------------------------------------------------


def test_a_stranger_runs_no_code(tmp_path):
    store = serving()
    data = pickle.dumps(Payload(tmp_path / "made"))
    for message in (
        data,
        struct.pack("<Q", len(data)) + data,
        struct.pack("<I", len(data)) + data,
        authentication.MAGIC + data,
    ):
        connection = stranger(store.port)
        connection.sendall(message.ljust(200, b"x"))
        assert is_closed(connection)
    assert not (tmp_path / "made").exists()
    assert store.add("n", 1) == 1


def test_a_rank_unpickles_no_answer(tmp_path):
    """A stranger who listens where the store should be."""
    data = pickle.dumps(Payload(tmp_path / "made"))
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer():
            connection, _ = server.accept()
            connection.sendall((struct.pack("<Q", len(data)) + data).ljust(200, b"x"))

        threading.Thread(target=answer, daemon=True).start()
        with pytest.raises(dist.DistNetworkError, match="not readtorch"):
            dist.TCPStore("127.0.0.1", server.getsockname()[1], timeout=TEN)
    assert not (tmp_path / "made").exists()


def test_an_impostor_who_speaks_the_protocol_is_not_believed(monkeypatch):
    server = serving()
    monkeypatch.setenv(authentication.VARIABLE, "t" * 32)
    with pytest.raises(dist.DistNetworkError, match="does not share this one's secret.*READTORCH_GROUP_TOKEN"):
        dist.TCPStore("127.0.0.1", server.port, timeout=TEN)


@pytest.mark.parametrize("ours, theirs", [("s" * 32, ""), ("", "s" * 32)])
def test_one_without_a_secret_and_one_with(monkeypatch, ours, theirs):
    monkeypatch.setattr(authentication, "_secret_of_user", lambda: b"")
    monkeypatch.setenv(authentication.VARIABLE, theirs)
    server = serving()
    monkeypatch.setenv(authentication.VARIABLE, ours)
    with pytest.raises(dist.DistNetworkError, match="does not share"):
        dist.TCPStore("127.0.0.1", server.port, timeout=TEN)


class Recorder:
    """A connection that keeps what goes and what comes."""

    def __init__(self, connection):
        self.connection = connection
        self.sent, self.received = b"", b""

    def send(self, data):
        count = self.connection.send(data)
        self.sent += data[:count]
        return count

    def recv(self, count):
        data = self.connection.recv(count)
        self.received += data
        return data

    def __getattr__(self, name):
        return getattr(self.connection, name)


def test_a_proof_cannot_be_used_again():
    store = serving()
    honest = Recorder(stranger(store.port))
    authentication.authenticate(honest, b"s" * 32, b"TCPStore", 0, time.monotonic() + 10)
    assert len(honest.sent) == 80 and honest.received[40:] != bytes(32)
    address = honest.getsockname()
    honest.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # its port is free at once
    honest.close()
    again = socket.create_connection(("127.0.0.1", store.port), 10, source_address=address)
    again.recv(40)
    again.sendall(honest.sent)
    assert again.recv(32) == bytes(32) and is_closed(again)


def test_what_is_passed_on_proves_nothing():
    """A stranger who has the address first waits for a rank, and stands between it and the store from then on."""
    store, answers = serving(), []
    with socket.create_server(("127.0.0.1", 0)) as between:

        def relay():
            caller, _ = between.accept()
            listener = stranger(store.port)
            caller.sendall(listener.recv(40))
            listener.sendall(caller.recv(80))
            answers.append(listener.recv(32))
            caller.sendall(answers[0])
            is_closed(caller)

        thread = threading.Thread(target=relay)
        thread.start()
        with pytest.raises(dist.DistNetworkError, match="something between them changes addresses"):
            authentication.connect(between.getsockname()[:2], b"s" * 32, b"TCPStore", 0, time.monotonic() + 10)
        thread.join(10)
    assert answers == [bytes(32)] and store.add("n", 1) == 1


def raw_client(port, secret=b"s" * 32):
    connection = authentication.connect(("127.0.0.1", port), secret, b"TCPStore", 0, time.monotonic() + 10)
    connection.settimeout(10)
    return connection


@pytest.mark.parametrize(
    "request_",
    [
        b"",
        b"\xff",
        b"\x03",
        b"\x03\xff\xff\xff\xff",
        b"\x03" + b"\x01\0\0\0n" + b"\x03\0\0\0abc",
        b"\x00" + b"\x01\0\0\0\xff" * 2,
        b"\x05" + b"\x00\0\0\0" * 3,
    ],
)
def test_what_is_no_request_ends_the_connection(request_):
    store = serving()
    connection = raw_client(store.port)
    connection.sendall(struct.pack("<I", len(request_)) + request_)
    assert is_closed(connection)
    assert store.add("n", 1) == 1


@pytest.mark.parametrize("secret", [b"s" * 32, b""])
def test_lengths_are_not_believed(secret, monkeypatch):
    monkeypatch.setattr(authentication, "_secret_of_user", lambda: b"")
    monkeypatch.setenv(authentication.VARIABLE, secret.decode())
    store = serving()
    before = resident()
    connections = [raw_client(store.port, secret) for _ in range(20)]
    for connection in connections[:10]:
        connection.sendall(struct.pack("<I", 0xFFFFFFFF) + b"x" * 10)
    for connection in connections[10:]:
        connection.sendall(struct.pack("<I", tcp_store_backend.MAX_REQUEST) + b"x" * 10)
    assert all(map(is_closed, connections[:10]))
    assert store.add("n", 1) == 1
    assert resident() - before < 20 << 20


def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_a_message_is_read_as_it_comes():
    here, there = socket.socketpair()
    there.sendall(b"x" * 10)
    there.close()
    before = resident()
    with pytest.raises(ConnectionError):
        utils.receive_exactly(here, 1 << 40)
    assert resident() - before < 1 << 20


@pytest.mark.parametrize("length", [1 << 30, 1 << 46, 1 << 62, (1 << 64) - 1])
def test_a_message_between_ranks_takes_memory_as_it_comes(length):
    """Note [ Sizes that the other side says ]"""
    before = resident()
    try:
        array = _reserve(length)
        array[0] = 1
    except ConnectionError as error:
        assert f"it announced a message of {length} bytes" in str(error)
    assert resident() - before < 10 << 20


def test_what_is_too_long_is_refused_before_it_goes():
    store = serving()
    with pytest.raises(dist.DistStoreError, match="Invalid string size. size: 8193, max: 8192"):
        store.set("k" * 8193, "x")
    with pytest.raises(dist.DistStoreError, match="Invalid payload size. size: 8388609, max: 8388608"):
        store.set("k", bytes(8388609))
    store.set("k" * 8192, bytes(8388608))
    assert len(store.get("k" * 8192)) == 8388608


def test_errors_keep_their_kind():
    store = serving()
    store.set("word", "x")
    with pytest.raises(dist.QueueEmptyError, match="queue is empty"):
        store.queue_pop("q", False)
    with pytest.raises(ValueError, match="invalid literal"):
        store.add("word", 1)
    assert store.get("word") == b"x"


def test_idle_strangers_make_nobody_wait():
    store = serving()
    idle = [stranger(store.port) for _ in range(100)]
    began = time.monotonic()
    second = dist.TCPStore("127.0.0.1", store.port, timeout=TEN)
    assert second.add("n", 1) == 1
    assert time.monotonic() - began < 2
    assert (
        sum(bool(select.select([c], [], [], 0)[0] and is_left(c)) for c in idle)
        >= 100 - authentication.Listener.MOST_PENDING
    )
    assert threading.active_count() < 20


def is_left(connection):
    """Whether it was greeted and closed."""
    connection.setblocking(False)
    try:
        connection.recv(40)
        return connection.recv(1) == b""
    except BlockingIOError:
        return False


def test_a_server_ends_with_its_last_store():
    store = serving()
    port, twin = store.port, dist.TCPStore("127.0.0.1", store.port, None, True, timeout=TEN, multi_tenant=True)
    del store
    assert twin.add("n", 1) == 1
    del twin
    deadline = time.monotonic() + 5
    while any(thread.name == "TCPStore server" for thread in threading.enumerate()) and time.monotonic() < deadline:
        time.sleep(0.01)
    with pytest.raises(dist.DistNetworkError):
        dist.TCPStore("127.0.0.1", port, timeout=timedelta(milliseconds=200))


def test_a_server_ends_although_a_forked_process_lives():
    before = set(threading.enumerate())
    store = serving()
    port, (server,) = store.port, set(threading.enumerate()) - before
    child = os.fork()
    if child == 0:
        time.sleep(60)
        os._exit(0)
    try:
        del store
        server.join(20)
        assert not server.is_alive()
        with pytest.raises(ConnectionRefusedError):
            stranger(port)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


# -- the secret ---------------------------------------------------------------------------------


def test_the_users_secret(monkeypatch, tmp_path):
    monkeypatch.delenv(authentication.VARIABLE)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    found, threads = [], []
    for _ in range(8):
        threads.append(threading.Thread(target=lambda: found.append(authentication.group_secret())))
        threads[-1].start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 1 and len(found[0]) == 64
    path = tmp_path / "state/readtorch/group_token"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and os.listdir(path.parent) == ["group_token"]
    path.chmod(0o644)
    assert authentication.group_secret() == b""
    path.unlink()
    path.symlink_to("/etc/hostname")
    assert authentication.group_secret() == b""
    monkeypatch.setenv("XDG_STATE_HOME", "/proc/1")
    assert authentication.group_secret() == b""


def test_a_user_without_a_home_has_no_secret(monkeypatch, tmp_path):
    monkeypatch.delenv(authentication.VARIABLE)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setenv("HOME", "relative")
    monkeypatch.chdir(tmp_path)
    assert authentication.group_secret() == b"" and os.listdir() == []


def test_a_short_secret_is_refused(monkeypatch):
    monkeypatch.setenv(authentication.VARIABLE, "s" * 31)
    with pytest.raises(ValueError, match="READTORCH_GROUP_TOKEN must be at least 32 random characters, but has 31"):
        serving()


OBJECTS = """
import os
from readtorch import distributed as dist
dist.init_process_group()
objects = [None] * 2
dist.all_gather_object(objects, {"rank": dist.get_rank()})
assert objects == [{"rank": 0}, {"rank": 1}]
"""


def by_hand(tmp_path, **names):
    """Two ranks without a launcher: (exit codes, what they said)"""
    (tmp_path / "program.py").write_text(OBJECTS)
    shared = {**environment(), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), **names}
    shared.pop(authentication.VARIABLE, None)
    ranks = [
        subprocess.Popen(
            [sys.executable, str(tmp_path / "program.py")],
            env=shared | {"RANK": str(rank)},
            cwd=ROOT,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    said = [rank.communicate(timeout=60)[1] for rank in ranks]
    return [rank.returncode for rank in ranks], said


def test_ranks_by_hand_exchange_objects(tmp_path):
    codes, said = by_hand(tmp_path, XDG_STATE_HOME=str(tmp_path))
    assert codes == [0, 0], said


def test_without_any_secret_objects_are_refused(tmp_path):
    codes, said = by_hand(tmp_path, XDG_STATE_HOME="/proc/1")
    assert codes == [1, 1]
    assert all(
        "this group has no secret by which its ranks know one another. Set READTORCH_GROUP_TOKEN" in text
        for text in said
    )


def test_the_launcher_makes_a_secret_for_each_run(tmp_path, monkeypatch):
    monkeypatch.delenv(authentication.VARIABLE)
    program = tmp_path / "program.py"
    program.write_text(f"import os, sys\nsys.stdout.write(os.environ[{authentication.VARIABLE!r}] + '\\n')")
    first, second = (run(readtorchrun(2, program)).stdout.split() for _ in range(2))
    assert len(first) == 2 and first[0] == first[1] != second[0] and len(first[0]) == 64


# -- who is here --------------------------------------------------------------------------------


def check_in_all(places, store=None, timeout=2.0):
    """What each of these (rank, size) gets, in threads."""
    store, results = store or HashStore(), [None] * len(places)

    def one(i):
        try:
            results[i] = full_mesh.check_in(store, *places[i], timeout)
        except dist.DistError as error:
            results[i] = str(error)

    threads = [threading.Thread(target=one, args=(i,)) for i in range(len(places))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


@pytest.mark.parametrize(
    "places, words",
    [
        ([(0, 3), (1, 3), (7, 3)], "there is a rank 7 in a world of 3, whose ranks are 0 to 2"),
        ([(0, 2), (-1, 2)], "there is a rank -1 in a world of 2"),
        ([(-1, 2), (0, 2)], "there is a rank -1 in a world of 2"),
        ([(0, 3), (1, 3), (1, 3)], r"there are two processes with rank 1 \(world size 3\)"),
        ([(0, 3), (1, 3), (2, 4)], "says that there are . ranks, rank . that there are"),
        ([(0, 4), (1, 3), (2, 3)], "says that there are . ranks, rank . that there are"),
    ],
)
def test_ranks_that_do_not_fit_fail_all(places, words):
    for text in check_in_all(places):
        assert re.search(words, str(text)), text


def test_meetings_over_one_store_follow_one_another():
    store, places = HashStore(), [(rank, 3) for rank in range(3)]
    assert [check_in_all(places, store) for _ in range(3)] == [[0] * 3, [1] * 3, [2] * 3]


def test_who_waited_in_vain_may_come_again():
    store = HashStore()
    assert "waiting for ranks [0, 2] of 3" in check_in_all([(1, 3)], store, 0.1)[0]
    assert check_in_all([(rank, 3) for rank in range(3)], store) == [0, 0, 0]


def test_threads_with_ranks_that_do_not_exist():
    store, errors = HashStore(), []

    def one(rank):
        try:
            dist.init_process_group("threads", store=store, rank=rank, world_size=2, timeout=TEN)
        except dist.DistError as error:
            errors.append(str(error))

    threads = [threading.Thread(target=one, args=(rank,)) for rank in (0, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(errors) == 2 and all("there is a rank 5 in a world of 2" in text for text in errors)


def test_a_group_meets_again(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "from readtorch import distributed as dist\nfor _ in range(3):\n    dist.init_process_group()\n"
        "    dist.barrier()\n    dist.destroy_process_group()\n"
    )
    done = run(readtorchrun(2, program), timeout=60)
    assert done.returncode == 0, done.stderr


# -- one deadline -------------------------------------------------------------------------------


def test_a_send_has_one_deadline():
    """A receiver that takes a little now and then does not prolong it."""
    here, there = socket.socketpair()
    over = threading.Event()

    def sip():
        while not over.wait(0.1):
            there.recv(1 << 16)

    threading.Thread(target=sip, daemon=True).start()
    began = time.perf_counter()
    with pytest.raises(TimeoutError):
        _send_all(here, [b"head", bytes(1 << 26)], began + 0.5)
    assert time.perf_counter() - began < 1
    over.set()


def test_all_parts_go_in_order():
    here, there = socket.socketpair()
    data = bytes(range(256)) * 4096
    sender = threading.Thread(target=_send_all, args=(here, [b"head", data], time.perf_counter() + 10))
    sender.start()
    assert utils.receive_exactly(there, 4 + len(data)) == b"head" + data
    sender.join()


def test_checks_are_no_pickles(tmp_path):
    data = pickle.dumps(Payload(tmp_path / "made"))
    assert isinstance(process_group_wrapper._read_fingerprint(data), process_group_wrapper.Failure)
    assert isinstance(process_group_wrapper._read_fingerprint(b"[" * 100_000), process_group_wrapper.Failure)
    assert not (tmp_path / "made").exists()


def test_fingerprints_travel():
    a = np.zeros(6, np.float32)
    for call in (
        process_group_wrapper.Collective("all_reduce", a, a, a, root=1),
        process_group_wrapper.Collective("barrier", None, None, None),
        process_group_wrapper.Collective("all_to_all", a, a, a, source_counts=[1, 5], target_counts=[2, 4]),
    ):
        assert process_group_wrapper.from_bytes(process_group_wrapper.to_bytes(call.finger)) == call.finger
