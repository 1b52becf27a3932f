"""How ranks find one another: an address tells where a store is. In PyTorch:
`torch/distributed/rendezvous.py`.
"""

import numbers
import os
from datetime import timedelta
from urllib.parse import parse_qsl, urlparse

from readtorch.csrc.distributed.store import FileStore
from readtorch.csrc.distributed.tcp_store import TCPStore

DEFAULT_TIMEOUT = timedelta(minutes=30)
_handlers = {}


def register_rendezvous_handler(scheme, handler):
    """Let `handler(url, **kwargs)` serve addresses `scheme://…`: a generator of (store, rank, world_size)."""
    if scheme in _handlers:
        raise RuntimeError(f"Rendezvous handler for {scheme}:// already registered")
    _handlers[scheme] = handler


def rendezvous(url, rank=-1, world_size=-1, **kwargs):
    """An iterator that yields (store, rank, world_size) for an address env://, tcp://host:port or
    file:///path.
    """
    if not isinstance(url, (str, bytes)):
        raise RuntimeError(f"`url` must be a string. {type(url)}: {url}")
    if not isinstance(rank, numbers.Integral):
        raise RuntimeError(f"`rank` must be an integer. {rank}")
    if not isinstance(world_size, numbers.Integral):
        raise RuntimeError(f"`world_size` must be an integer. {world_size}")
    parts = urlparse(url)
    if rank != -1 or world_size != -1:
        parts = parts._replace(query=_with_place(url, dict(parse_qsl(parts.query)), rank, world_size))
    if parts.scheme not in _handlers:
        raise RuntimeError(f"No rendezvous handler for {parts.scheme}://")
    return _handlers[parts.scheme](parts.geturl(), **kwargs)


def _with_place(url, query, rank, world_size):
    if "rank" in query or "world_size" in query:
        raise AssertionError(f"The url: {url} has node-specific arguments(rank, world_size) already.")
    if rank != -1:
        query["rank"] = rank
    if world_size != -1:
        query["world_size"] = world_size
    return "&".join(f"{key}={value}" for key, value in query.items())


def _error(scheme, message):
    return ValueError(f"Error initializing torch.distributed using {scheme}:// rendezvous: {message}")


def _place(scheme, parts):
    """Rank and world size from the address."""
    query = dict(parse_qsl(parts.query))
    if "rank" not in query:
        raise _error(scheme, "rank parameter missing")
    if "world_size" not in query:
        raise _error(scheme, "world size parameter missing")
    return int(query["rank"]), int(query["world_size"])


def _file_handler(url, **kwargs):
    parts = urlparse(url)
    if not parts.path:
        raise _error("file", "path missing")
    rank, world_size = _place("file", parts)
    yield FileStore(parts.path, world_size), rank, world_size
    raise RuntimeError("Unable to perform rerendezvous using file:// method")


def _tcp_handler(url, timeout=DEFAULT_TIMEOUT, **kwargs):
    parts = urlparse(url)
    if parts.port is None:
        raise _error("tcp", "port number missing")
    rank, world_size = _place("tcp", parts)
    store = _tcp_store(parts.hostname, parts.port, rank, world_size, timeout, _use_libuv(parts))
    yield store, rank, world_size
    raise RuntimeError("Unable to perform re-rendezvous using tcp:// method")


def _env_handler(url, timeout=DEFAULT_TIMEOUT, **kwargs):
    query = dict(parse_qsl(urlparse(url).query))
    rank = int(query.get("rank") or _variable("RANK"))
    world_size = int(query.get("world_size") or _variable("WORLD_SIZE"))
    host, port = _variable("MASTER_ADDR"), int(_variable("MASTER_PORT"))
    yield _tcp_store(host, port, rank, world_size, timeout, _use_libuv(urlparse(url))), rank, world_size
    raise RuntimeError("Unable to perform re-rendezvous using env:// method")


def _use_libuv(parts):
    """Which of PyTorch's servers is meant; see `TCPStore.libuvBackend`."""
    given = dict(parse_qsl(parts.query)).get("use_libuv", os.environ.get("USE_LIBUV", "1"))
    return given == "1"


def _variable(name):
    value = os.environ.get(name)
    if not value:
        raise _error("env", f"environment variable {name} expected, but not set")
    return value


def _tcp_store(host, port, rank, world_size, timeout, use_libuv=True):
    """Rank 0 serves the store, unless the launcher already does."""
    if not 0 <= port < 2**16:
        raise ValueError(f"port must have value from 0 to 65535 but was {port}.")
    launcher_serves = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    # in PyTorch: waits here for all ranks; here they wait in `check_in`, which says who is missing
    return TCPStore(
        host,
        port,
        world_size,
        is_master=rank == 0 and not launcher_serves,
        timeout=timeout,
        wait_for_workers=False,
        multi_tenant=True,
        use_libuv=use_libuv,
    )


register_rendezvous_handler("tcp", _tcp_handler)
register_rendezvous_handler("env", _env_handler)
register_rendezvous_handler("file", _file_handler)
