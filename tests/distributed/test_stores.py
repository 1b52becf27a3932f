"""Stores, next to PyTorch's: the same operations give the same answers."""

import random
import threading
from datetime import timedelta

import pytest
import torch.distributed as reference

from readtorch import distributed as dist

SHORT = timedelta(milliseconds=50)


def hash_store(api, folder):
    return api.HashStore()


def file_store(api, folder):
    return api.FileStore(str(folder / api.__name__), 1)


def tcp_store(api, folder):
    return api.TCPStore("127.0.0.1", 0, 1, True, timeout=timedelta(seconds=10))


def prefix_store(api, folder):
    return api.PrefixStore("some", api.HashStore())


KINDS = [hash_store, file_store, tcp_store, prefix_store]
KEYS = ["a", "b", "counter"]


def random_operation(rng, with_queues):
    """(method, arguments); counters and other values live under different keys."""
    key, value = rng.choice("abcd"), rng.choice(["", "x", "yy", "zzz"])
    choices = [
        ("set", key, value),
        ("compare_set", key, rng.choice(["", value, "x"]), value),
        ("append", key, "!"),
        ("add", "counter", rng.randrange(-3, 9)),
        ("check", [key, rng.choice("abcd")]),
        ("delete_key", key),
        ("multi_set", ["a", "b"], ["1", value]),
        ("get", key),
    ]
    queue = [("queue_push", "q", value), ("queue_push", "q", "last"), ("queue_len", "q")]
    return rng.choice(choices + queue * with_queues)


def answer(store, operation, *args):
    if operation == "get" and not store.check(list(args)):
        return "absent"
    return getattr(store, operation)(*args)


@pytest.mark.parametrize("kind", KINDS)
def test_random_operations(kind, tmp_path):
    ours, theirs = kind(dist, tmp_path), kind(reference, tmp_path)
    rng = random.Random(kind.__name__)
    for _ in range(300):
        operation, *args = random_operation(rng, with_queues=kind is not file_store)
        if kind is file_store and operation == "compare_set" and not theirs.check([args[0]]) and args[1]:
            continue  # PyTorch's waits for the key there
        if kind is file_store and operation in ("delete_key", "append"):
            continue  # PyTorch's does not say whether the key was there, and appends to an empty value only once
        assert answer(ours, operation, *args) == answer(theirs, operation, *args), (operation, args)
    if kind is not file_store:
        while theirs.queue_len("q"):
            assert ours.queue_pop("q") == theirs.queue_pop("q")


@pytest.mark.parametrize("kind", KINDS)
def test_time_limits(kind, tmp_path):
    store = kind(dist, tmp_path)
    store.set("there", "x")
    with pytest.raises(dist.DistStoreError, match="(?i)timeout"):
        store.wait(["there", "absent"], SHORT)
    store.set_timeout(SHORT)
    assert store.timeout == SHORT
    with pytest.raises(dist.DistStoreError, match="(?i)timeout"):
        store.get("absent")


@pytest.mark.parametrize("kind", KINDS)
def test_waiting_for_somebody_else(kind, tmp_path):
    store = kind(dist, tmp_path)
    threading.Timer(0.1, lambda: store.set("late", "there")).start()
    store.wait(["late"], timedelta(seconds=10))
    assert store.get("late") == b"there"


def test_many_threads_count(tmp_path):
    store = tcp_store(dist, tmp_path)
    clients = [dist.TCPStore("127.0.0.1", store.port, timeout=timedelta(seconds=10)) for _ in range(4)]
    threads = [threading.Thread(target=lambda c=c: [c.add("n", 1) for _ in range(50)]) for c in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert store.add("n", 0) == 200


def test_no_server():
    with pytest.raises(dist.DistNetworkError, match="client socket has timed out after 200ms"):
        dist.TCPStore("127.0.0.1", 9, timeout=timedelta(milliseconds=200))


def test_a_file_is_removed_by_its_last_user(tmp_path):
    path = tmp_path / "store"
    first, second = dist.FileStore(str(path), 2), dist.FileStore(str(path), 2)
    first.set("k", "v")
    assert second.get("k") == b"v"
    del first
    assert path.exists()
    del second
    assert not path.exists()


def test_clients_that_did_not_come():
    with pytest.raises(dist.DistStoreError, match="1/2 clients joined"):
        dist.TCPStore("127.0.0.1", 0, 2, True, timeout=timedelta(milliseconds=100))


# -- addresses ----------------------------------------------------------------------------------


def test_rendezvous_by_file(tmp_path):
    store, rank, size = next(dist.rendezvous(f"file://{tmp_path}/r?rank=1&world_size=2"))
    assert (type(store), rank, size) == (dist.FileStore, 1, 2)


@pytest.mark.parametrize(
    "url, words",
    [
        ("tcp://127.0.0.1?rank=0&world_size=1", "port number missing"),
        ("tcp://127.0.0.1:80?world_size=1", "rank parameter missing"),
        ("file:///x?rank=1", "world size parameter missing"),
        ("file://?rank=1&world_size=2", "path missing"),
    ],
)
def test_bad_addresses(url, words):
    for api in (dist, reference):
        with pytest.raises(ValueError, match=words):
            next(api.rendezvous(url))


def test_unknown_scheme():
    for api in (dist, reference):
        with pytest.raises(RuntimeError, match="No rendezvous handler for pigeon://"):
            next(api.rendezvous("pigeon://x"))
