"""Process groups of this rank, and what their ranks do together. In PyTorch: `torch/distributed/distributed_c10d.py`.

Every collective blocks until it is complete, or with async_op=True returns a `Work` at once. A rank that is not in the group
gets a warning and nothing happens.

Collectives of Python objects pickle them into tensors of bytes. Pickles can run code when they are read, so these are only for
ranks that have shown one another that they know the group's secret: see Note [ The secret of a group ] in
`csrc/distributed/authentication.py`. in PyTorch: for any ranks.
"""

import contextlib
import hashlib
import io
import itertools
import logging
import os
import pickle
import sys
import threading
import time
import warnings
import weakref
from collections import namedtuple
from datetime import timedelta

import readtorch
from readtorch import Tensor
from readtorch.aten.thread_local_state import carry
from readtorch.c10.autograd_state import autograd_state
from readtorch.csrc.distributed.authentication import VARIABLE
from readtorch.csrc.distributed.exception import DistStoreError
from readtorch.csrc.distributed.full_mesh import check_in
from readtorch.csrc.distributed.multi_threaded_pg import ProcessGroupThreads, ThreadWorld
from readtorch.csrc.distributed.process_group import ProcessGroup
from readtorch.csrc.distributed.store import PrefixStore, Store
from readtorch.csrc.distributed.types import (
    AllgatherOptions,
    AllreduceCoalescedOptions,
    AllreduceOptions,
    AllToAllOptions,
    BarrierOptions,
    BroadcastOptions,
    DebugLevel,
    GatherOptions,
    ReduceOp,
    ReduceOptions,
    ReduceScatterOptions,
    ScatterOptions,
    get_debug_level,
    set_debug_level,
    set_debug_level_from_env,
)
from readtorch.csrc.distributed.work import Work

from .rendezvous import DEFAULT_TIMEOUT, rendezvous

__all__ = [
    "AllToAllOptions",
    "AllreduceCoalescedOptions",
    "AllreduceOptions",
    "Backend",
    "BackendConfig",
    "BarrierOptions",
    "BroadcastOptions",
    "DebugLevel",
    "GatherOptions",
    "GroupMember",
    "P2POp",
    "ReduceOp",
    "ReduceOptions",
    "ReduceScatterOptions",
    "ScatterOptions",
    "Work",
    "all_gather",
    "all_gather_coalesced",
    "all_gather_into_tensor",
    "all_gather_object",
    "all_gather_single",
    "all_reduce",
    "all_reduce_coalesced",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "batch_isend_irecv",
    "broadcast",
    "broadcast_object_list",
    "default_pg_timeout",
    "destroy_process_group",
    "gather",
    "gather_object",
    "get_backend",
    "get_backend_config",
    "get_debug_level",
    "get_default_backend_for_device",
    "get_global_rank",
    "get_group_rank",
    "get_node_local_rank",
    "get_pg_count",
    "get_process_group_ranks",
    "get_rank",
    "get_world_size",
    "group",
    "init_process_group",
    "irecv",
    "is_backend_available",
    "is_gloo_available",
    "is_initialized",
    "is_mpi_available",
    "is_nccl_available",
    "is_torchelastic_launched",
    "is_ucc_available",
    "is_xccl_available",
    "isend",
    "monitored_barrier",
    "new_group",
    "new_subgroups",
    "new_subgroups_by_enumeration",
    "recv",
    "recv_object_list",
    "reduce",
    "reduce_op",
    "reduce_scatter",
    "reduce_scatter_single",
    "reduce_scatter_tensor",
    "scatter",
    "scatter_object_list",
    "send",
    "send_object_list",
    "set_debug_level",
    "set_debug_level_from_env",
    "split_group",
    "supports_complex",
]

default_pg_timeout = DEFAULT_TIMEOUT


_world_numbers = itertools.count()
logger = logging.getLogger(__name__)


class World:
    """The groups of one rank.

    number: tells it from every other one of this process, of ranks that have ended, too, and from itself before all groups were left.
    """

    def __init__(self):
        self.number = next(_world_numbers)
        self.default_pg = None
        self.groups = {}  # ProcessGroup -> {global rank: rank in the group}
        self.backends = {}  # ProcessGroup -> (name of its backend as it was asked for, BackendConfig)
        # for names: the same on all ranks, since all make the same groups in the same order
        self.group_count = 0
        self.coalescing = {}  # ProcessGroup -> the calls that `_coalescing_manager` keeps for the end of its block

    def add(self, pg, ranks, backend):
        self.groups[pg] = ranks
        self.backends[pg] = backend, BackendConfig(backend)

    def remove(self, pg):
        del self.groups[pg]
        self.backends.pop(pg, None)


class _Current(threading.local):
    """Whose rank this thread acts for: the process's, or its own if ranks are threads (`thread_ranks`)."""

    world = World()  # shared by every thread that has not set its own
    threads = None  # the ThreadWorld that this thread is a rank of, with its rank
    rank = None


current = _Current()
carry(current, "world", "threads", "rank")  # a device's thread that runs a rank's backward acts for that rank


class Backend(str):
    """The name of a backend, in lower case: `Backend("GLOO") == "gloo"`.

    gloo, also called tcp: processes connected by sockets (in PyTorch the library Gloo does that). mpi: processes started by
    mpirun, through mpi4py. threads: ranks are threads of one process. `register_backend` adds others. The rest are PyTorch's:
    asked for, they raise RuntimeError.
    """

    UNDEFINED = "undefined"
    THREADS = "threads"
    TCP = "tcp"
    GLOO = "gloo"
    NCCL = "nccl"
    UCC = "ucc"
    MPI = "mpi"
    XCCL = "xccl"

    _BackendPlugin = namedtuple("_BackendPlugin", ["creator_fn", "extended_api"])
    _plugins = {}  # name in capitals -> what makes its groups

    backend_list = [UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI]
    default_device_backend_map = {"cpu": GLOO, "cuda": NCCL, "xpu": XCCL, "mps": GLOO}
    backend_capability = {
        GLOO: ["cpu", "cuda"],
        NCCL: ["cuda"],
        XCCL: ["xpu"],
        UCC: ["cpu", "cuda"],
        MPI: ["cpu", "cuda"],
        THREADS: ["cpu"],
        TCP: ["cpu"],
    }
    backend_type_map = {
        name: ProcessGroup.BackendType[name.upper()] for name in (UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI)
    }

    def __new__(cls, name):
        if not isinstance(name, str):
            raise ValueError("Backend constructor parameter must be string-ish")
        value = getattr(Backend, name.upper(), Backend.UNDEFINED)
        return str.__new__(cls, name.lower() if value == Backend.UNDEFINED else value)

    @classmethod
    def register_backend(cls, name, func, extended_api=False, devices=None):
        """Let `init_process_group(name)` make its groups by `func(store, rank, size, timeout)`, which returns a ProcessGroup; with
        extended_api by `func(options, pg_options)`.

        devices: the types of devices that it serves, a list of them or one.
        """
        if not hasattr(Backend, name.upper()):
            setattr(Backend, name.upper(), name.lower())
        if name.lower() not in Backend.backend_list:
            Backend.backend_list.append(name.lower())
        if devices is None:
            warnings.warn(
                f"Device capability of {name} unspecified, assuming `cpu` and `cuda` or `xpu`. Please specify it via the "
                "`devices` argument of `register_backend`.",
                stacklevel=2,
            )
        devices = [devices] if isinstance(devices, str) else devices
        for device in devices or ():
            Backend.default_device_backend_map.setdefault(device, name.lower())
        Backend.backend_type_map[name.lower()] = ProcessGroup.BackendType.CUSTOM
        Backend.backend_capability[name.lower()] = ["cpu", "cuda"] if devices is None else devices
        Backend._plugins[name.upper()] = Backend._BackendPlugin(func, extended_api)


class BackendConfig:
    """Which backend serves which type of device: of "gloo", or of "cpu:gloo,cuda:nccl"."""

    def __init__(self, backend):
        backend = str(backend)
        if backend == Backend.UNDEFINED:
            self.device_backend_map = {"cpu": Backend(Backend.default_device_backend_map["cpu"])}
        elif ":" in backend:
            self.device_backend_map = _pairs(backend)
        else:
            devices = Backend.backend_capability.get(backend.lower())
            if devices is None:
                warnings.warn(
                    f"Device capability of {backend} unknown, assuming `cpu` and `cuda`. You can specify it in "
                    "`device:backend` format in `init_process_group` call.",
                    stacklevel=2,
                )
            self.device_backend_map = dict.fromkeys(devices or ("cpu", "cuda", "xpu"), Backend(backend))

    def __repr__(self):
        return ",".join(f"{device}:{backend}" for device, backend in self.device_backend_map.items())

    def get_device_backend_map(self):
        """{type of device: Backend}"""
        return self.device_backend_map


def _pairs(text):
    """{type of device: Backend} of "cpu:gloo,cuda:nccl"."""
    found = {}
    words = f"""The custom backend string argument is invalid: {text}.
                Custom backend string is an experimental feature where the backend string must be in the format:
                "<device_type1>:<backend1>,<device_type2>:<backend2>...". e.g. 'cpu:gloo,cuda:nccl'"""
    for pair in text.lower().split(","):
        device, colon, backend = pair.partition(":")
        if not colon or ":" in backend:
            raise ValueError(f"Invalid device:backend pairing: {pair}. {words}")
        if device in found:
            raise ValueError(f"Duplicate device type {device} in backend string: {text}. {words}")
        found[device] = Backend(backend)
    return found


class _GroupMeta(type):
    @property
    def WORLD(cls):
        """The group of all ranks, or None before `init_process_group`."""
        return current.world.default_pg

    @WORLD.setter
    def WORLD(cls, pg):
        current.world.default_pg = pg


class group(metaclass=_GroupMeta):
    """`group.WORLD`: the group of all ranks."""


class GroupMember(metaclass=_GroupMeta):
    """`GroupMember.NON_GROUP_MEMBER`: what `new_group` gives a rank that is not in the group."""

    NON_GROUP_MEMBER = -100


# ------------------------------------------------------------------------- availability


def is_initialized():
    """Whether this rank has a default process group."""
    return GroupMember.WORLD is not None


def is_mpi_available():
    """Whether mpi4py and an MPI can be used here."""
    from readtorch.csrc.distributed.process_group_mpi import is_available

    return is_available()


def is_gloo_available():
    """Whether the backend "gloo" can be used: our sockets answer to that name."""
    return True


def is_nccl_available():
    """Whether NCCL can be used: readtorch has no binding to it."""
    return False


def is_ucc_available():
    """Whether UCC can be used: readtorch has no binding to it."""
    return False


def is_xccl_available():
    """Whether oneCCL can be used: readtorch has no binding to it."""
    return False


def is_backend_available(backend):
    """Whether the backend of that name can be used here, or each of "cpu:gloo,cuda:nccl"."""
    if ":" in backend:
        return all(is_backend_available(name) for name in _pairs(backend).values())
    name = backend.lower()
    asked = {"mpi": is_mpi_available, "nccl": is_nccl_available, "ucc": is_ucc_available, "xccl": is_xccl_available}
    if name in asked:
        return asked[name]()
    return name in (Backend.THREADS, Backend.TCP, Backend.GLOO) or name in Backend.backend_list


def get_default_backend_for_device(device):
    """The backend that serves a device unless another one is asked for."""
    kind = readtorch.device(device).type
    if kind not in Backend.default_device_backend_map:
        raise ValueError(f"Default backend not registered for device : {device}")
    return Backend.default_device_backend_map[kind]


def is_torchelastic_launched():
    """Whether `readtorchrun` started this process."""
    return os.getenv("TORCHELASTIC_RUN_ID") is not None


# ------------------------------------------------------------------------- init and destroy


def init_process_group(
    backend=None,
    init_method=None,
    timeout=None,
    world_size=-1,
    rank=-1,
    store=None,
    group_name="",
    pg_options=None,
    device_id=None,
):
    """Join the group of all ranks. Blocks until every rank is there; DistError if that takes longer than
    `timeout`.

    backend: see `Backend`; by default threads where a rank is a thread, else tcp. The ranks find one another
    through `store`, with rank and world_size given, or through the address `init_method` (env://, by default,
    tcp:// or file://). With mpi the MPI says who is who. timeout: a timedelta, for every collective as well;
    30 minutes by default.
    """
    if GroupMember.WORLD is not None:
        raise ValueError("trying to initialize the default process group twice!")
    if store is not None and init_method is not None:
        raise AssertionError("Cannot specify both init_method and store.")
    if store is not None and not world_size > 0:
        raise AssertionError("world_size must be positive if using store")
    if store is not None and not rank >= 0:
        raise AssertionError("rank must be non-negative if using store")
    timeout = default_pg_timeout if timeout is None else timeout
    _check_valid_timeout(timeout)
    if backend is None:
        backend = Backend.TCP if current.threads is None else Backend.THREADS
    name = Backend(backend)
    backend = _one_backend(name)
    default = _make_world(backend, init_method, timeout, world_size, rank, store, pg_options)
    current.world.default_pg = default
    current.world.add(default, {r: r for r in range(default.size())}, name)
    if backend != Backend.THREADS:
        _report_failures(default.rank())


def _one_backend(name):
    """The backend that serves all tensors: that of the CPU, if types of devices are told apart.

    in PyTorch: a group has one for each type of device.
    """
    if ":" not in name:
        return name
    of_device = _pairs(name)
    for backend in of_device.values():
        _check_is_built(backend)
    return of_device.get("cpu") or next(iter(of_device.values()))


def _check_is_built(backend):
    if backend in (Backend.NCCL, Backend.UCC, Backend.XCCL):
        raise RuntimeError(
            f"Distributed package doesn't have {backend.upper()} built in: readtorch has threads, tcp (or gloo) and mpi"
        )


def _report_failures(rank):
    """An exception that nobody catches is shown with the rank before each line, and told to the other ranks."""
    previous = sys.excepthook

    def hook(kind, error, traceback):
        shown, sys.stderr = sys.stderr, io.StringIO()
        try:
            previous(kind, error, traceback)
        finally:
            text, sys.stderr = sys.stderr.getvalue(), shown
        sys.stderr.write("".join(f"[rank{rank}]: {line}" for line in text.splitlines(keepends=True)))
        sys.stderr.flush()
        for pg in current.world.groups:
            pg.give_up(f"it failed with {kind.__name__}: {error}")

    sys.excepthook = hook


def _make_world(backend, init_method, timeout, world_size, rank, store, pg_options):
    if backend == Backend.MPI:
        return _mpi_world(timeout, world_size, rank)
    if backend == Backend.THREADS and store is None and current.threads is not None:
        return _thread_group(current.threads, current.rank, range(current.threads.size), "0", timeout, "default_pg")
    _check_is_built(backend)
    if backend not in (Backend.THREADS, Backend.TCP, Backend.GLOO) and backend.upper() not in Backend._plugins:
        raise AssertionError(f"Unknown backend type {backend}")
    if store is None:
        store, rank, world_size = next(rendezvous(init_method or "env://", rank, world_size, timeout=timeout))
        store.set_timeout(timeout)
    if backend == Backend.THREADS:
        return _thread_world(store, rank, world_size, timeout)
    store = PrefixStore("default_pg", store)
    if backend.upper() in Backend._plugins:
        return _plugin_group(backend, store, rank, range(world_size), "0", timeout, "default_pg", pg_options)
    from readtorch.csrc.distributed.process_group_gloo import ProcessGroupGloo, ProcessGroupTCP, Transport

    transport = Transport(store, rank, world_size, timeout.total_seconds())
    kind = ProcessGroupGloo if backend == Backend.GLOO else ProcessGroupTCP
    return kind.over(transport, range(world_size), "0", timeout.total_seconds(), store, "default_pg")


_DistributedBackendOptions = namedtuple(
    "_DistributedBackendOptions", ["store", "group_rank", "group_size", "timeout", "group_id", "global_ranks_in_group"]
)


def _plugin_group(backend, store, rank, ranks, name, timeout, desc, pg_options):
    """A group of a backend that `Backend.register_backend` knows. ranks: global; rank: this one's number in the group."""
    plugin = Backend._plugins[backend.upper()]
    if plugin.extended_api:
        options = _DistributedBackendOptions(store, rank, len(ranks), timeout, name, list(ranks))
        pg = plugin.creator_fn(options, pg_options)
    else:
        pg = plugin.creator_fn(store, rank, len(ranks), timeout)
    pg.ranks, pg.store, pg._timeout = list(ranks), store, timeout.total_seconds()
    pg._set_group_name(name)
    pg._set_group_desc(desc)
    return pg


def _mpi_world(timeout, world_size, rank):
    from readtorch.csrc.distributed.process_group_mpi import world_group

    if world_size != -1 or rank != -1:
        warnings.warn(
            f"For MPI backend, world_size ({world_size}) and rank ({rank}) are ignored since they "
            "are assigned by the MPI runtime.",
            stacklevel=4,
        )
    return world_group(timeout.total_seconds(), Store())


_thread_worlds = weakref.WeakKeyDictionary()  # store -> the ThreadWorld of those who share it
_thread_worlds_lock = threading.Lock()


def _thread_world(store, rank, world_size, timeout):
    """Threads that the caller started himself find one another by the store object that they share."""
    check_in(PrefixStore("default_pg", store), rank, world_size, timeout.total_seconds())
    with _thread_worlds_lock:
        threads = _thread_worlds.setdefault(store, ThreadWorld(world_size))
    current.world, current.threads, current.rank = World(), threads, rank
    autograd_state.multithreading_enabled = False  # a device's thread that waits for a rank cannot work for it, too
    return _thread_group(threads, rank, range(world_size), "0", timeout, "default_pg", store)


def _thread_group(threads, rank, ranks, name, timeout, desc, store=None):
    position = list(ranks).index(rank)
    return ProcessGroupThreads(threads, position, ranks, name, timeout.total_seconds(), store, desc)


def destroy_process_group(group=None):
    """Leave a group; without one, leave all of them. The rank can be initialized again afterwards."""
    world = current.world
    if group == GroupMember.NON_GROUP_MEMBER:
        return
    pg = GroupMember.WORLD if group is None else group
    if pg is None or pg not in world.groups:
        raise ValueError("Invalid process group specified")
    if pg is not GroupMember.WORLD:
        world.remove(pg)
        pg.shutdown()
        return
    for each in reversed(world.groups):
        each.shutdown()
    world.groups.clear()
    world.backends.clear()
    world.default_pg, world.group_count, world.number = None, 0, next(_world_numbers)


# ------------------------------------------------------------------------- more groups


def new_group(
    ranks=None,
    timeout=None,
    backend=None,
    pg_options=None,
    use_local_synchronization=False,
    group_desc=None,
    device_id=None,
    sort_ranks=True,
):
    """A group of some ranks (global ranks; None: all). Every rank must call it, members or not, in the same
    order.

    The members are numbered in the order of their global ranks, or with sort_ranks=False as they stand in the
    list. Returns GroupMember.NON_GROUP_MEMBER to those who are not in it. Raises ValueError for ranks that do
    not exist.
    """
    world, default = current.world, _get_default_group()
    name = Backend(backend) if backend else world.backends[default][0]
    kind = _one_backend(name)
    _check_is_built(kind)
    if timeout is not None:
        _check_valid_timeout(timeout)
    if use_local_synchronization:
        if kind == Backend.MPI:
            raise ValueError("MPI backend doesn't support use_local_synchronization=True")
        if ranks is not None and default.rank() not in ranks:
            return None
    ranks = _checked_ranks(ranks, default, sort_ranks)
    group_name = _process_group_name(ranks, use_hashed_name=use_local_synchronization)
    if default.rank() not in ranks:
        return GroupMember.NON_GROUP_MEMBER
    timeout = timedelta(seconds=default._timeout) if timeout is None else timeout
    desc = group_desc or f"{world.group_count}"
    pg = _subgroup(kind, default, ranks, group_name, timeout, desc, pg_options)
    world.add(pg, {r: i for i, r in enumerate(ranks)}, name)
    return pg


def _subgroup(backend, default, ranks, name, timeout, desc, pg_options):
    """Over the connections that the group of all ranks has, or made anew by a plugin."""
    if backend.upper() in Backend._plugins:
        store = PrefixStore(f"{name}/", default.store)
        return _plugin_group(backend, store, ranks.index(default.rank()), ranks, name, timeout, desc, pg_options)
    if backend != _one_backend(current.world.backends[default][0]) and {backend, default.name()} != {"tcp", "gloo"}:
        raise ValueError(f"a group over {backend} beside one over {default.name()} is not supported")
    return default.subgroup(ranks, name, timeout.total_seconds(), desc)


def _checked_ranks(ranks, default, sort_ranks):
    size = default.size()
    ranks = list(range(size) if ranks is None else sorted(ranks) if sort_ranks else ranks)
    if len(set(ranks)) != len(ranks):
        raise ValueError(f"ranks list must not contain duplicate entries, got {ranks}")
    if len(ranks) > size:
        raise ValueError(
            "the new group's world size should be less or equal to the world size set by init_process_group"
        )
    for rank in ranks:
        if not 0 <= rank < size:
            raise ValueError(f"Rank {rank} is out of range. Valid ranks are 0 to {size - 1} (world_size={size})")
    return ranks


def _process_group_name(ranks, use_hashed_name):
    """The same on all members. Counted if all ranks make all groups; else made of the members, and counted among their like."""
    world = current.world
    if not use_hashed_name:
        world.group_count += 1
        return str(world.group_count)
    name = hashlib.sha1(bytes("_".join(map(str, ranks)), "utf-8"), usedforsecurity=False).hexdigest()
    while any(pg.group_name == name for pg in world.groups):
        name = hashlib.sha1(bytes(name + "_", "utf-8"), usedforsecurity=False).hexdigest()
    return name


def split_group(parent_pg=None, split_ranks=None, timeout=None, pg_options=None, group_desc=None, backend=None):
    """The group of those of `split_ranks`, lists of ranks in `parent_pg`, that this rank is in; None if it is in none.

    in PyTorch: for NCCL only, which splits a communicator.
    """
    if split_ranks is None or len(split_ranks) == 0:
        raise ValueError("split_ranks cannot be None or empty")
    parent = _group_or_default_group(parent_pg)
    mine = None
    for ranks in split_ranks:
        if len(ranks) == 0:
            raise ValueError("the split group cannot be empty")
        if len(ranks) != len(set(ranks)):
            raise ValueError("the split group cannot have duplicate ranks")
        members = [get_global_rank(parent, rank) for rank in sorted(ranks)]
        if get_rank() in members and mine is None:
            mine = members
    if mine is None:
        return None
    desc = group_desc or f"{parent.group_desc}:split"
    return new_group(mine, timeout, backend, pg_options, use_local_synchronization=True, group_desc=desc)


def new_subgroups(group_size=None, group=None, timeout=None, backend=None, pg_options=None, group_desc=None):
    """Divide the ranks into groups of `group_size` neighbours: (this rank's group, all of them)."""
    world_size = get_world_size(group)
    if group_size is None:
        group_size = get_node_world_size()
    if group_size <= 0:
        raise ValueError(f"The arg 'group_size' ({group_size}) must be positive")
    if world_size < group_size:
        raise ValueError(f"The arg 'group_size' ({group_size}) must not exceed the world size ({world_size})")
    if world_size % group_size != 0:
        raise ValueError(f"The world size ({world_size}) must be divisible by 'group_size={group_size}'")
    ranks = get_process_group_ranks(group)
    parts = [ranks[i : i + group_size] for i in range(0, world_size, group_size)]
    return new_subgroups_by_enumeration(parts, timeout, backend, pg_options, group_desc)


def new_subgroups_by_enumeration(ranks_per_subgroup_list, timeout=None, backend=None, pg_options=None, group_desc=None):
    """A group for each list of ranks: (this rank's group or None, all of them). No rank may be in two."""
    if ranks_per_subgroup_list is None or len(ranks_per_subgroup_list) == 0:
        raise ValueError("The arg 'ranks_per_subgroup_list' cannot be empty")
    seen, mine, groups = {}, None, []
    for ranks in ranks_per_subgroup_list:
        twice = [rank for rank in ranks if rank in seen]
        if twice:
            raise ValueError(f"Rank {twice[0]} has appeared in both subgroup {seen[twice[0]]} and {ranks}")
        seen |= dict.fromkeys(ranks, ranks)
        groups.append(new_group(ranks, timeout, backend, pg_options, group_desc=group_desc))
        if get_rank() in ranks:
            mine = groups[-1]
    return mine, groups


# ------------------------------------------------------------------------- who is who


def get_rank(group=None):
    """This rank's number in the group (by default: among all ranks); -1 if it is not in it."""
    if _rank_not_in_group(group):
        return -1
    default = _get_default_group()
    return default.rank() if group is None or group is default else get_group_rank(group, default.rank())


def get_world_size(group=None):
    """How many ranks the group has (by default: all); -1 if this rank is not in it."""
    return -1 if _rank_not_in_group(group) else _group_or_default_group(group).size()


def get_node_world_size():
    """How many ranks run on this machine, if the launcher said so; else all."""
    return int(os.environ.get("LOCAL_WORLD_SIZE", get_world_size()))


def get_node_local_rank(fallback_rank=None):
    """This rank's number on its machine (LOCAL_RANK); RuntimeError if the launcher did not say and nothing is
    given.
    """
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is not None:
        return int(fallback_rank)
    raise RuntimeError(
        "LOCAL_RANK is not in the environment. Consider passing fallback_rank to allow "
        "`get_node_local_rank` to work, assuming you are not running in a multi-device "
        "context and want the code to run locally instead."
    )


def get_backend(group=None):
    """The name of the group's backend."""
    pg = _group_or_default_group(group)
    if _rank_not_in_group(pg):
        raise ValueError("Invalid process group specified")
    if pg not in current.world.backends:
        raise ValueError(
            f"Process group {pg} is not initialized in the world group map. Please initialize the group first."
        )
    return current.world.backends[pg][0]


def get_backend_config(group=None):
    """Which backend serves which type of device."""
    pg = _group_or_default_group(group)
    if _rank_not_in_group(pg):
        raise ValueError("Invalid process group specified")
    return str(current.world.backends[pg][1])


def get_group_rank(group, global_rank):
    """The number in `group` of a global rank; ValueError if it is not in it."""
    ranks = _ranks_of(group)
    if global_rank not in ranks:
        raise ValueError(f"Global rank {global_rank} is not part of group {group}")
    return ranks[global_rank]


def get_global_rank(group, group_rank):
    """The global rank of a number in `group`; ValueError if it has no such."""
    for global_rank, number in _ranks_of(group).items():
        if number == group_rank:
            return global_rank
    raise ValueError(f"Group rank {group_rank} is not part of group {group}")


def _ranks_of(group):
    if not isinstance(group, ProcessGroup) or group not in current.world.groups:
        raise ValueError(f"Group {group} is not registered, please create group with torch.distributed.new_group API")
    return current.world.groups[group]


def get_process_group_ranks(group):
    """The global ranks of the group, in the group's order."""
    return list(_ranks_of(_group_or_default_group(group)))


def _resolve_process_group(group_name):
    """This rank's group of that name."""
    for group in current.world.groups:
        if group.group_name == group_name:
            return group
    raise RuntimeError(f"Could not resolve the process group registered under the name {group_name}")


def _get_process_group_name(pg):
    return pg.group_name if pg in current.world.groups else "None"


def _get_process_group_store(pg):
    """The store of a group's own: a part of that through which all ranks met."""
    return pg.get_group_store()


def _get_default_store():
    """The store through which the ranks met."""
    return _get_process_group_store(_get_default_group())


def _get_default_timeout(backend):
    return default_pg_timeout


def _set_pg_timeout(timeout, group=None):
    """How long a collective of the group may take from now on."""
    group = _get_default_group() if group is None else group
    if _rank_not_in_group(group):
        raise ValueError("Invalid process group specified")
    if not isinstance(timeout, timedelta):
        raise TypeError(f"Expected timeout argument to be of type datetime.timedelta, got {timeout}")
    group.set_timeout(timeout)


def _get_pg_config(group=None):
    """What messages and dumps say of a group."""
    pg = _group_or_default_group(group)
    return {
        "pg_name": _get_process_group_name(pg),
        "pg_desc": pg.group_desc,
        "backend_config": get_backend_config(pg),
        "pg_size": pg.size(),
        "ranks": get_process_group_ranks(pg),
    }


STORE_BASED_BARRIER_PREFIX = "store_based_barrier_key"


def _store_based_barrier(rank, store, group_name, rendezvous_count, timeout, logging_interval=timedelta(seconds=10)):
    """Wait until so many have come to a store; DistStoreError after `timeout`."""
    key = f"{STORE_BASED_BARRIER_PREFIX}:{group_name}"
    last = f"{key}:last_worker"
    if store.add(key, 1) == rendezvous_count:
        store.set(last, "1")
    began = time.monotonic()
    while True:
        left = timeout.total_seconds() - (time.monotonic() - began)
        try:
            store.wait([last], timedelta(seconds=max(0.01, min(left, logging_interval.total_seconds()))))
            return
        except RuntimeError as error:
            came = store.add(key, 0)
            if left <= logging_interval.total_seconds():
                raise DistStoreError(
                    f"Timed out initializing process group in store based barrier on rank {rank}, for key: {key} "
                    f"(world_size={rendezvous_count}, num_workers_joined={came}, timeout={timeout} error={error})"
                ) from None
            logger.debug("rank %s waits at %s: %s of %s have come", rank, key, came, rendezvous_count)


def get_pg_count():
    """How many groups this rank is in."""
    return len(current.world.groups)


# ------------------------------------------------------------------------- for the collectives


def _get_default_group():
    if not is_initialized():
        raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")
    return GroupMember.WORLD


def _group_or_default_group(group=None):
    return _get_default_group() if group is None else group


def _rank_not_in_group(group):
    return isinstance(group, int) and group == GroupMember.NON_GROUP_MEMBER


def _warn_not_in_group(op_name):
    rank = -1 if GroupMember.WORLD is None else GroupMember.WORLD.rank()
    warnings.warn(f"Running {op_name} on global rank {rank} which does not belong to the given group.", stacklevel=3)


def _canonicalize_group_rank(group, global_rank=None, group_rank=None):
    """The rank in the group that one of the two names; ValueError unless exactly one is given."""
    if group_rank is not None:
        if global_rank is not None:
            raise ValueError("Can't specify both group_rank and global_rank")
        return group_rank
    if global_rank is None:
        raise ValueError("Must specify global_rank or group_rank")
    return global_rank if group is GroupMember.WORLD else get_group_rank(group, global_rank)


def _check_valid_timeout(timeout):
    if not isinstance(timeout, timedelta):
        raise TypeError(f"Expected timeout argument to be of type datetime.timedelta, got {timeout}")


# ------------------------------------------------------------------------- collectives


def all_reduce(tensor, op=ReduceOp.SUM, group=None, async_op=False):
    """Reduce `tensor` over all ranks, in place on all of them."""
    _check_single_tensor(tensor, "tensor")
    if _rank_not_in_group(group):
        return _warn_not_in_group("all_reduce")
    if tensor.is_complex() and not supports_complex(op):
        raise ValueError(f"all_reduce does not support {op} on complex tensors")
    group, opts = _group_or_default_group(group), AllreduceOptions()
    opts.reduceOp, opts.asyncOp = op, async_op
    if group in current.world.coalescing:
        return _keep(group, all_reduce, tensor, None, op)
    return _done(group.allreduce([_as_real(tensor)], opts), async_op)


def all_reduce_coalesced(tensors, op=ReduceOp.SUM, group=None, async_op=False):
    """Reduce several tensors in one message. With async_op=True returns a Future."""
    tensors = [tensors] if isinstance(tensors, Tensor) else tensors
    _check_tensor_list(tensors, "tensor")
    _ensure_all_tensors_same_dtype(tensors)
    if _rank_not_in_group(group):
        return _warn_not_in_group("all_reduce_coalesced")
    if any(t.is_complex() for t in tensors) and not supports_complex(op):
        raise ValueError(f"all_reduce does not support {op} on complex tensors")
    opts = AllreduceCoalescedOptions()
    opts.reduceOp, opts.asyncOp = op, async_op
    work = _group_or_default_group(group).allreduce_coalesced([_as_real(t) for t in tensors], opts)
    return work.get_future() if async_op else _done(work, False)


def reduce(tensor, dst=None, op=ReduceOp.SUM, group=None, async_op=False, group_dst=None):
    """Reduce `tensor` over all ranks, in place on rank `dst` only."""
    group = _group_or_default_group(group)
    _check_single_tensor(tensor, "tensor")
    if _rank_not_in_group(group):
        return _warn_not_in_group("reduce")
    root = _canonicalize_group_rank(group, dst, group_dst)
    opts = ReduceOptions()
    opts.reduceOp, opts.rootRank, opts.asyncOp = op, root, async_op
    return _done(group.reduce([_as_real(tensor)], opts), async_op)


def broadcast(tensor, src=None, group=None, async_op=False, group_src=None):
    """Copy the `tensor` of rank `src` into that of every rank."""
    group = _group_or_default_group(group)
    _check_single_tensor(tensor, "tensor")
    if _rank_not_in_group(group):
        return _warn_not_in_group("broadcast")
    root = _canonicalize_group_rank(group, src, group_src)
    opts = BroadcastOptions()
    opts.rootRank, opts.rootTensor, opts.asyncOp = root, 0, async_op
    return _done(group.broadcast([_as_real(tensor)], opts), async_op)


def all_gather(tensor_list, tensor, group=None, async_op=False):
    """Copy the `tensor` of every rank into `tensor_list`, on all ranks."""
    _check_tensor_list(tensor_list, "tensor_list")
    _check_single_tensor(tensor, "tensor")
    _ensure_all_tensors_same_dtype(tensor_list, tensor)
    if _rank_not_in_group(group):
        return _warn_not_in_group("all_gather")
    opts = AllgatherOptions()
    opts.asyncOp = async_op
    outputs = [_as_real(t) for t in tensor_list]
    return _done(_group_or_default_group(group).allgather([outputs], [_as_real(tensor)], opts), async_op)


def all_gather_coalesced(output_tensor_lists, input_tensor_list, group=None, async_op=False):
    """Copy several tensors of every rank into a list of as many for each rank, in one message. With async_op=True returns a Future."""
    if _rank_not_in_group(group):
        return _warn_not_in_group("all_gather_coalesced")
    _check_tensor_list(input_tensor_list, "input_tensor_list")
    _ensure_all_tensors_same_dtype(input_tensor_list)
    if not isinstance(output_tensor_lists, list):
        raise TypeError("Invalid function argument: output_tensor_lists should be a list")
    for tensors in output_tensor_lists:
        _check_tensor_list(tensors, "output_tensor_lists")
        _ensure_all_tensors_same_dtype(tensors)
    opts = AllgatherOptions()
    opts.asyncOp = async_op
    outputs = [[_as_real(t) for t in tensors] for tensors in output_tensor_lists]
    inputs = [_as_real(t) for t in input_tensor_list]
    work = _group_or_default_group(group).allgather_coalesced(outputs, inputs, opts)
    return work.get_future() if async_op else _done(work, False)


def all_gather_single(output_tensor, input_tensor, group=None, async_op=False):
    """Copy the tensors of all ranks, one behind the other, into `output_tensor`, on all ranks.

    output_tensor: (ranks · n, …) or (ranks, n, …) for an input of (n, …).
    """
    _check_single_tensor(input_tensor, "input_tensor")
    _check_single_tensor(output_tensor, "output_tensor")
    _ensure_all_tensors_same_dtype(output_tensor, input_tensor)
    if _rank_not_in_group(group):
        return _warn_not_in_group("all_gather_single")
    group, opts = _group_or_default_group(group), AllgatherOptions()
    opts.asyncOp = async_op
    if group in current.world.coalescing:
        return _keep(group, all_gather_single, input_tensor, output_tensor)
    return _done(group.all_gather_single(_as_real(output_tensor), _as_real(input_tensor), opts), async_op)


# in PyTorch: deprecated since 2.13, but what most programs still say
all_gather_into_tensor = _all_gather_base = all_gather_single


def gather(tensor, gather_list=None, dst=None, group=None, async_op=False, group_dst=None):
    """Copy the `tensor` of every rank into `gather_list` on rank `dst`, which alone gives one (0 by default)."""
    _check_single_tensor(tensor, "tensor")
    _check_optional_list(gather_list, "gather_list", tensor)
    group = _group_or_default_group(group)
    if _rank_not_in_group(group):
        return _warn_not_in_group("gather")
    root = _canonicalize_group_rank(group, 0 if dst is None and group_dst is None else dst, group_dst)
    _check_list_of_root(group.rank() == root, gather_list, "gather_list", "destination")
    opts = GatherOptions()
    opts.rootRank, opts.asyncOp = root, async_op
    lists = [[_as_real(t) for t in gather_list]] if gather_list else []
    return _done(group.gather(lists, [_as_real(tensor)], opts), async_op)


def scatter(tensor, scatter_list=None, src=None, group=None, async_op=False, group_src=None):
    """Copy the i-th of `scatter_list` on rank `src`, which alone gives one (0 by default), into rank i's
    `tensor`.
    """
    _check_single_tensor(tensor, "tensor")
    _check_optional_list(scatter_list, "scatter_list", tensor)
    group = _group_or_default_group(group)
    if _rank_not_in_group(group):
        return _warn_not_in_group("scatter")
    root = _canonicalize_group_rank(group, 0 if src is None and group_src is None else src, group_src)
    _check_list_of_root(group.rank() == root, scatter_list, "scatter_list", "source")
    opts = ScatterOptions()
    opts.rootRank, opts.asyncOp = root, async_op
    lists = [[_as_real(t) for t in scatter_list]] if scatter_list else []
    return _done(group.scatter([_as_real(tensor)], lists, opts), async_op)


def reduce_scatter(output, input_list, op=ReduceOp.SUM, group=None, async_op=False):
    """Reduce a list of tensors over all ranks; rank i gets the i-th in `output`."""
    _check_single_tensor(output, "output")
    _check_tensor_list(input_list, "input_list")
    _ensure_all_tensors_same_dtype(output, input_list)
    if _rank_not_in_group(group):
        return _warn_not_in_group("reduce_scatter")
    opts = ReduceScatterOptions()
    opts.reduceOp, opts.asyncOp = op, async_op
    return _done(_group_or_default_group(group).reduce_scatter([output], [input_list], opts), async_op)


def reduce_scatter_single(output, input, op=ReduceOp.SUM, group=None, async_op=False):
    """Reduce `input` (ranks · n, …) over all ranks; rank i gets the i-th part (n, …) in `output`."""
    _check_single_tensor(output, "output")
    _check_single_tensor(input, "input")
    if _rank_not_in_group(group):
        return _warn_not_in_group("reduce_scatter_single")
    group, opts = _group_or_default_group(group), ReduceScatterOptions()
    opts.reduceOp, opts.asyncOp = op, async_op
    if group in current.world.coalescing:
        return _keep(group, reduce_scatter_single, input, output, op)
    return _done(group.reduce_scatter_single(output, input, opts), async_op)


# the older names, as with all_gather_into_tensor
reduce_scatter_tensor = _reduce_scatter_base = reduce_scatter_single


def all_to_all_single(output, input, output_split_sizes=None, input_split_sizes=None, group=None, async_op=False):
    """Send part i of `input` to rank i; part i of `output` comes from rank i.

    Split sizes count along dimension 0; without them the parts are equal.
    """
    if _rank_not_in_group(group):
        return _warn_not_in_group("all_to_all_single")
    _check_single_tensor(output, "output")
    _check_single_tensor(input, "input")
    _ensure_all_tensors_same_dtype(output, input)
    if not (input.is_contiguous() and output.is_contiguous()):
        raise ValueError("Tensors must be contiguous")
    pg, opts = _group_or_default_group(group), AllToAllOptions()
    opts.asyncOp = async_op
    sizes = output_split_sizes or [], input_split_sizes or []
    return _done(pg.all_to_all_single(_as_real(output), _as_real(input), *sizes, opts), async_op)


def all_to_all(output_tensor_list, input_tensor_list, group=None, async_op=False):
    """Send tensor i of the input list to rank i; tensor i of the output list comes from rank i."""
    if _rank_not_in_group(group):
        return _warn_not_in_group("all_to_all")
    _check_tensor_list(output_tensor_list, "output_tensor_list")
    _check_tensor_list(input_tensor_list, "input_tensor_list")
    _ensure_all_tensors_same_dtype(output_tensor_list, input_tensor_list)
    opts = AllToAllOptions()
    opts.asyncOp = async_op
    outputs, inputs = [_as_real(t) for t in output_tensor_list], [_as_real(t) for t in input_tensor_list]
    return _done(_group_or_default_group(group).alltoall(outputs, inputs, opts), async_op)


def barrier(group=None, async_op=False, device_ids=None, timeout=None):
    """Wait until all ranks have come here."""
    if _rank_not_in_group(group):
        return _warn_not_in_group("barrier")
    if isinstance(device_ids, int) or not isinstance(device_ids, (list, type(None))):
        raise TypeError("Invalid function argument: device_ids type should be List[int]")
    opts = BarrierOptions()
    opts.asyncOp, opts.device_ids = async_op, device_ids or []
    if timeout is not None:
        _check_valid_timeout(timeout)
        opts.timeout = timeout
    return _done(_group_or_default_group(group).barrier(opts), async_op)


def monitored_barrier(group=None, timeout=None, wait_all_ranks=False):
    """A barrier that says which ranks did not come within `timeout` (a timedelta): RuntimeError on all
    others.

    in PyTorch: for Gloo only, and names just the first missing rank unless `wait_all_ranks`; here every
    collective names those who are missing.
    """
    if _rank_not_in_group(group):
        return _warn_not_in_group("monitored_barrier")
    pg = _group_or_default_group(group)
    timeout = timedelta(seconds=pg._timeout) if timeout is None else timeout
    _check_valid_timeout(timeout)
    return pg.monitored_barrier(timeout, wait_all_ranks)


def supports_complex(reduceOp):
    """Whether a reduction can be done on real and imaginary parts by themselves."""
    return reduceOp in (ReduceOp.SUM, ReduceOp.AVG)


# ------------------------------------------------------------------------- checks


def _done(work, async_op):
    if async_op:
        return work
    if work is not None:  # backends of a program's own may have waited
        work.wait()
    return None


def _as_real(tensor):
    """Complex numbers travel as pairs of real ones."""
    return readtorch.view_as_real(tensor) if tensor.is_complex() and not tensor.is_sparse else tensor


def _check_single_tensor(param, name):
    if not isinstance(param, Tensor):
        raise TypeError(f"""Invalid function argument. Expected parameter `{name}` of type torch.Tensor
             but got {type(param)} instead.""")


def _check_tensor_list(param, name):
    if not isinstance(param, list):
        raise TypeError(f"""Invalid function argument. Expected parameter `{name}` of type List[torch.Tensor]
             but got {type(param)} instead.""")
    if not all(isinstance(p, Tensor) for p in param):
        raise TypeError(f"""Invalid function argument. Expected parameter `{name}` of type List[torch.Tensor]
             but got {type(param)} with elements of type {[type(p) for p in param]}.""")


def _check_optional_list(tensors, name, tensor):
    if tensors:
        _check_tensor_list(tensors, name)
        _ensure_all_tensors_same_dtype(tensors, tensor)


def _check_list_of_root(at_root, tensors, name, what):
    if at_root and not tensors:
        raise ValueError(f"Argument ``{name}`` must be specified on {what} rank.")
    if not at_root and tensors:
        raise ValueError(f"Argument ``{name}`` must NOT be specified on non-{what} ranks.")


def _ensure_all_tensors_same_dtype(*tensors):
    dtypes = [t.dtype for t in itertools.chain(*(ts if isinstance(ts, list) else [ts] for ts in tensors))]
    for dtype in dtypes:
        if dtype is not dtypes[0]:
            raise ValueError(f"Invalid usage of tensors with different dtypesFound {dtypes[0]} and  {dtype}")


# ------------------------------------------------------------------------- several collectives as one


class _CoalescingManager:
    """What `_coalescing_manager` gives: the Works of its block, when that is over."""

    def __init__(self):
        self.works = []

    def append(self, work=None):
        if work:
            self.works.append(work)

    def wait(self):
        for work in self.works:
            work.wait()


_CollOp = namedtuple("_CollOp", ["op", "tensor", "dst_tensor", "redop"])


def _keep(group, op, tensor, dst_tensor, redop=None):
    """In a coalescing block a collective is not begun but kept for its end."""
    current.world.coalescing[group].append(_CollOp(op, tensor, dst_tensor, redop))
    return _IllegalWork()


class _IllegalWork(Work):
    """What a collective in a coalescing block returns: nothing to wait for."""

    def __getattribute__(self, name):
        if name in ("is_success", "exception", "wait", "source_rank", "result", "synchronize"):
            raise ValueError(f"Illegal to call {name} on IllegalWork object")
        return object.__getattribute__(self, name)


@contextlib.contextmanager
def _coalescing_manager(group=None, device=None, async_ops=False):
    """Collectives of one kind within the block are begun at its end, as one: all_reduce, all_gather_single, reduce_scatter_single.

    With a `device` all others are begun at once and count as one. With async_ops=True they are to be waited for by the manager.
    """
    group, kept = _group_or_default_group(group), current.world.coalescing
    if kept.get(group):
        raise ValueError("ProcessGroup has non-empty op list at the start of coalescing")
    kept[group] = []
    if device:
        group._start_coalescing(device)
    manager = _CoalescingManager()
    try:
        yield manager
    finally:
        calls = kept.pop(group)
    work = _begin_kept(group, calls, async_ops) if calls else None
    if device:
        of_block = group._end_coalescing(device)
        work = of_block if work is None else work
    if async_ops:
        manager.append(work)
    elif work is not None:
        work.wait()


def _begin_kept(group, calls, async_ops):
    if any(call.op is not calls[0].op for call in calls):
        raise RuntimeError(
            "Coalescing manager requires all collectives to be the same type, "
            f"but got mixed types: {set(call.op.__name__ for call in calls)}"
        )
    if calls[0].op is all_reduce:
        opts = AllreduceCoalescedOptions()
        opts.reduceOp, opts.asyncOp = calls[0].redop, async_ops
        return group.allreduce_coalesced([call.tensor for call in calls], opts)
    outputs, inputs = [call.dst_tensor for call in calls], [call.tensor for call in calls]
    if calls[0].op is all_gather_single:
        return group.all_gather_single_coalesced(outputs, inputs, AllgatherOptions())
    opts = ReduceScatterOptions()
    opts.reduceOp = calls[0].redop
    return group.reduce_scatter_single_coalesced(outputs, inputs, opts)


# ------------------------------------------------------------------------- one rank sends, another receives


def isend(tensor, dst=None, group=None, tag=0, group_dst=None):
    """Begin to send `tensor` to rank `dst`; returns a Work. The tensor must not change until that is
    complete.
    """
    group = _group_or_default_group(group)
    _check_single_tensor(tensor, "tensor")
    if _rank_not_in_group(group):
        return _warn_not_in_group("isend")
    return group.send([tensor], _canonicalize_group_rank(group, dst, group_dst), tag)


def irecv(tensor, src=None, group=None, tag=0, group_src=None):
    """Begin to receive into `tensor` from rank `src` (None: from whichever sends); returns a Work."""
    _check_single_tensor(tensor, "tensor")
    if _rank_not_in_group(group):
        return _warn_not_in_group("irecv")
    group = _group_or_default_group(group)
    if src is None and group_src is None:
        return group.recv_anysource([tensor], tag)
    return group.recv([tensor], _canonicalize_group_rank(group, src, group_src), tag)


def send(tensor, dst=None, group=None, tag=0, group_dst=None):
    """Send `tensor` to rank `dst`. May wait until the other side receives. ValueError if that is this rank."""
    group = _group_or_default_group(group)
    if _rank_not_in_group(group):
        return _warn_not_in_group("send")
    to = _canonicalize_group_rank(group, dst, group_dst)
    _check_not_self_rank(group, to, "destination")
    isend(tensor, group=group, tag=tag, group_dst=to).wait()
    return None


def recv(tensor, src=None, group=None, tag=0, group_src=None):
    """Receive into `tensor` from rank `src` (None: from whichever sends). Returns the sender's global rank."""
    work = irecv(tensor, src=src, group=group, tag=tag, group_src=group_src)
    if work is None:
        return -1
    work.wait()
    group = _group_or_default_group(group)
    if src is None and group_src is None:
        return get_global_rank(group, work.source_rank())
    return src if src is not None else get_global_rank(group, group_src)


class _reduce_op:
    """The older `ReduceOp`. A look at any name warns with FutureWarning."""

    def __init__(self):
        for name, reduction in ReduceOp.RedOpType.__members__.items():
            setattr(self, name, reduction)
        self.__members__ = ReduceOp.RedOpType.__members__

    def __getattribute__(self, key):
        warnings.warn(
            "`torch.distributed.reduce_op` is deprecated, please use `torch.distributed.ReduceOp` instead",
            FutureWarning,
            stacklevel=2,
        )
        return object.__getattribute__(self, key)


reduce_op = _reduce_op()


class P2POp:
    """A send or a receive to come, for `batch_isend_irecv`. op: `isend` or `irecv`; peer: the other global
    rank.
    """

    def __init__(self, op, tensor, peer=None, group=None, tag=0, group_peer=None):
        if op not in (isend, irecv):
            raise ValueError(
                "Invalid ``op``. Expected ``op`` to be of type ``torch.distributed.isend`` or "
                "``torch.distributed.irecv``."
            )
        _check_single_tensor(tensor, "tensor")
        self.op = op
        self.tensor = tensor
        self.group = _group_or_default_group(group)
        self.group_peer = _canonicalize_group_rank(self.group, peer, group_peer)
        self.peer = get_global_rank(self.group, self.group_peer)
        self.tag = tag

    def __repr__(self):
        me, peer = get_rank(self.group), self.group_peer
        source, destination = (me, peer) if self.op is isend else (peer, me)
        return (
            f"P2POp({self.op.__name__} pg={self.group.group_name}, group_src={source}, "
            f"group_dst={destination},  {self.tensor.shape}, {self.tensor.dtype})"
        )


def batch_isend_irecv(p2p_op_list):
    """Begin all sends and receives of a list of P2POp; returns their Works. The order in it does not matter."""
    if not isinstance(p2p_op_list, list) or not all(isinstance(p, P2POp) for p in p2p_op_list):
        raise ValueError("Invalid ``p2p_op_list``. Each op is expected to to be of type ``torch.distributed.P2POp``.")
    if not all(p.group is p2p_op_list[0].group for p in p2p_op_list):
        raise ValueError("All ops need to use the same group.")
    works = []
    # receives first: a send may wait until the other side takes it
    for p in p2p_op_list:
        peer = {"group_dst" if p.op is isend else "group_src": p.group_peer}
        works.append(p.op(p.tensor, group=p.group, tag=p.tag, **peer))
    return works


def _check_not_self_rank(group, rank, rank_type):
    if group.rank() == rank:
        raise ValueError(
            f"Invalid {rank_type} rank: {rank_type} rank should not be the same as the rank of the current process."
        )


# ------------------------------------------------------------------------- collectives of Python objects


def all_gather_object(object_list, obj, group=None):
    """Put the `obj` of every rank into `object_list` (as long as there are ranks), on all ranks."""
    if _rank_not_in_group(group):
        return _warn_not_in_group("all_gather_object")
    _check_peers(group)
    data, size = _object_to_tensor(obj)
    sizes = _all_sizes(size, group)
    parts = [_bytes(max(sizes)) for _ in sizes]
    all_gather(parts, _padded(data, max(sizes)), group=group)
    object_list[: len(sizes)] = [_tensor_to_object(part, n) for part, n in zip(parts, sizes)]
    return None


def gather_object(obj, object_gather_list=None, dst=None, group=None, group_dst=None):
    """Put the `obj` of every rank into `object_gather_list` on rank `dst` (0 by default)."""
    group = _group_or_default_group(group)
    if _rank_not_in_group(group):
        return _warn_not_in_group("gather_object")
    _check_peers(group)
    root = _canonicalize_group_rank(group, 0 if dst is None and group_dst is None else dst, group_dst)
    at_root = group.rank() == root
    if at_root != bool(object_gather_list):
        raise ValueError(
            "Argument ``gather_list`` must be specified on destination rank."
            if at_root
            else "Argument ``gather_list`` must NOT be specified on non-destination ranks."
        )
    data, size = _object_to_tensor(obj)
    sizes = _all_sizes(size, group)
    parts = [_bytes(max(sizes)) for _ in sizes] if at_root else None
    gather(_padded(data, max(sizes)), parts, group=group, group_dst=root)
    if at_root:
        object_gather_list[: len(sizes)] = [_tensor_to_object(part, n) for part, n in zip(parts, sizes)]
    return None


def broadcast_object_list(object_list, src=None, group=None, device=None, group_src=None):
    """Replace the objects of the list on every rank by those on rank `src` (0 by default). Equally long on
    all.
    """
    group = _group_or_default_group(group)
    if _rank_not_in_group(group):
        return _warn_not_in_group("broadcast_object_list")
    _check_peers(group)
    root = _canonicalize_group_rank(group, 0 if src is None and group_src is None else src, group_src)
    data, sizes = _pack(object_list) if group.rank() == root else (None, _sizes(len(object_list)))
    broadcast(sizes, group=group, group_src=root)
    if group.rank() != root:
        data = _bytes(int(sizes.sum()))
    broadcast(data, group=group, group_src=root)
    if group.rank() != root:
        _unpack(object_list, data, sizes)
    return None


def scatter_object_list(
    scatter_object_output_list, scatter_object_input_list=None, src=None, group=None, group_src=None
):
    """Put the i-th object of the input list on rank `src` (0 by default) into the output list [0] of rank i."""
    group = _group_or_default_group(group)
    if _rank_not_in_group(group):
        return _warn_not_in_group("scatter_object_list")
    _check_peers(group)
    root = _canonicalize_group_rank(group, 0 if src is None and group_src is None else src, group_src)
    if not isinstance(scatter_object_output_list, list) or len(scatter_object_output_list) < 1:
        raise ValueError("Expected argument scatter_object_output_list to be a list of size at least 1.")
    parts = sizes = None
    longest, size = _sizes(1), _sizes(1)
    if group.rank() == root:
        if scatter_object_input_list is None:
            raise ValueError("source rank must provide non-None scatter_object_input_list")
        parts, sizes = map(list, zip(*[_object_to_tensor(obj) for obj in scatter_object_input_list]))
        longest = max(sizes, key=int).clone()
        parts = [_padded(part, int(longest)) for part in parts]
    broadcast(longest, group=group, group_src=root)
    data = _bytes(int(longest))
    scatter(data, parts, group=group, group_src=root)
    scatter(size, sizes, group=group, group_src=root)
    scatter_object_output_list[0] = _tensor_to_object(data, int(size))
    return None


def send_object_list(object_list, dst=None, group=None, device=None, group_dst=None, use_batch=False):
    """Send the objects of a list to rank `dst`."""
    group = _group_or_default_group(group)
    if _rank_not_in_group(group):
        return _warn_not_in_group("send_object_list")
    _check_peers(group)
    to = _canonicalize_group_rank(group, dst, group_dst)
    _check_not_self_rank(group, to, "destination")
    data, sizes = _pack(object_list)
    send(sizes, group=group, group_dst=to)
    send(data, group=group, group_dst=to)
    return None


def recv_object_list(object_list, src=None, group=None, device=None, group_src=None, use_batch=False):
    """Receive as many objects as the list is long from rank `src` (None: whichever sends); returns the
    sender.
    """
    if _rank_not_in_group(group):
        _warn_not_in_group("recv_object_list")
        return -1
    _check_peers(group)
    group, sizes = _group_or_default_group(group), _sizes(len(object_list))
    sender = recv(sizes, src=src, group=group, group_src=group_src)
    data = _bytes(int(sizes.sum()))
    second = recv(data, src=sender, group=group)
    if sender != second:
        raise RuntimeError("Mismatch in return ranks for object sizes and objects.")
    _unpack(object_list, data, sizes)
    return get_global_rank(group, group.ranks.index(sender))


# ------------------------------------------------------------------------- objects as bytes


def _check_peers(group):
    """RuntimeError in a group whose ranks could be strangers."""
    if not _group_or_default_group(group).knows_its_peers:
        raise RuntimeError(
            "Objects travel as pickles, which can run code, and this group has no secret by which its ranks "
            f"know one another. Set {VARIABLE} to the same text of at least 32 random characters for all "
            "ranks, or start them with readtorchrun"
        )


def _object_to_tensor(obj):
    """(pickled bytes, a tensor with their number)"""
    data = readtorch.frombuffer(bytearray(pickle.dumps(obj)), dtype=readtorch.uint8)
    return data, readtorch.tensor([data.numel()])


def _tensor_to_object(tensor, size):
    return pickle.loads(tensor[:size].numpy().tobytes())


def _pack(objects):
    parts, sizes = zip(*[_object_to_tensor(obj) for obj in objects])
    return readtorch.cat(parts), readtorch.cat(sizes)


def _unpack(object_list, data, sizes):
    for i, part in enumerate(data.split(sizes.tolist())):
        object_list[i] = _tensor_to_object(part, part.numel())


def _padded(data, length):
    return readtorch.cat([data, _bytes(length - data.numel())])


def _all_sizes(size, group):
    sizes = [_sizes(1) for _ in range(get_world_size(group))]
    all_gather(sizes, size, group=group)
    return [int(n) for n in sizes]


def _bytes(count):
    return readtorch.zeros(count, dtype=readtorch.uint8)


def _sizes(count):
    return readtorch.zeros(count, dtype=readtorch.int64)
