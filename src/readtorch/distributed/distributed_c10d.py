"""The world of this rank: making process groups and asking about them.

In PyTorch: `torch/distributed/distributed_c10d.py`, which has the collectives as well; here they are in
`collectives.py`, `point_to_point.py` and `object_collectives.py`.
"""
import io
import os
import sys
import threading
import warnings
import weakref
from datetime import timedelta

from readtorch.csrc.distributed.full_mesh import check_in
from readtorch.csrc.distributed.process_group import ProcessGroup
from readtorch.csrc.distributed.store import PrefixStore, Store
from readtorch.csrc.distributed.threads import ProcessGroupThreads, ThreadWorld
from readtorch.distributed.rendezvous import DEFAULT_TIMEOUT, rendezvous

__all__ = ["Backend", "GroupMember", "default_pg_timeout", "destroy_process_group", "get_backend",
           "get_backend_config",
           "get_global_rank", "get_group_rank", "get_node_local_rank", "get_pg_count",
           "get_process_group_ranks",
           "get_rank", "get_world_size", "group", "init_process_group", "is_backend_available",
           "is_gloo_available",
           "is_initialized", "is_mpi_available", "is_nccl_available", "is_torchelastic_launched",
           "is_ucc_available", "is_xccl_available", "new_group", "new_subgroups", "new_subgroups_by_enumeration"]

default_pg_timeout = DEFAULT_TIMEOUT


class World:
    """The groups of one rank."""

    def __init__(self):
        self.default_pg = None
        self.groups = {}  # ProcessGroup -> {global rank: rank in the group}
        # for names: the same on all ranks, since all make the same groups in the same order
        self.group_count = 0


class _Current(threading.local):
    """Whose rank this thread acts for: the process's, or its own if ranks are threads (`thread_ranks`)."""

    world = World()  # shared by every thread that has not set its own
    threads = None  # the ThreadWorld that this thread is a rank of, with its rank
    rank = None


current = _Current()


class Backend(str):
    """The name of a backend, in lower case: `Backend("THREADS") == "threads"`.

    threads: ranks are threads of one process. tcp: processes connected by sockets, also called by the name
    "gloo" (in PyTorch: the library Gloo does that). mpi: processes started by mpirun, through mpi4py.
    The others are PyTorch's: asked for, they raise RuntimeError.
    """

    UNDEFINED = "undefined"
    THREADS = "threads"
    TCP = "tcp"
    GLOO = "gloo"
    NCCL = "nccl"
    UCC = "ucc"
    MPI = "mpi"
    XCCL = "xccl"
    backend_list = [UNDEFINED, THREADS, TCP, GLOO, MPI]

    def __new__(cls, name):
        if not isinstance(name, str):
            raise ValueError("Backend constructor parameter must be string-ish")
        return str.__new__(cls, name.lower())


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
    from readtorch.csrc.distributed.mpi import is_available
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
    """Whether the backend of that name can be used here."""
    name = backend.lower()
    return is_mpi_available() if name == "mpi" else name in (Backend.THREADS, Backend.TCP, Backend.GLOO)


def is_torchelastic_launched():
    """Whether `readtorchrun` started this process."""
    return os.getenv("TORCHELASTIC_RUN_ID") is not None


# ------------------------------------------------------------------------- init and destroy

def init_process_group(backend=None, init_method=None, timeout=None, world_size=-1, rank=-1, store=None,
                       group_name="",
                       pg_options=None, device_id=None):
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
    default = _make_world(Backend(backend), init_method, timeout, world_size, rank, store)
    current.world.default_pg = default
    current.world.groups[default] = {r: r for r in range(default.size())}
    if default.backend_name != Backend.THREADS:
        _report_failures(default.rank())


def _report_failures(rank):
    """An exception that nobody catches is shown with the rank before each line, and told to the other ranks.
    """
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


def _make_world(backend, init_method, timeout, world_size, rank, store):
    if backend == Backend.MPI:
        return _mpi_world(timeout, world_size, rank)
    if backend == Backend.THREADS and store is None and current.threads is not None:
        return _thread_group(current.threads, current.rank, range(current.threads.size), "0", timeout,
                             "default_pg")
    if backend in (Backend.NCCL, Backend.UCC, Backend.XCCL):
        raise RuntimeError(f"Distributed package doesn't have {backend.upper()} built in: readtorch has threads, tcp (or "
                           "gloo) and mpi")
    if backend not in Backend.backend_list[1:]:
        raise ValueError(f"Unknown backend {backend!r}: readtorch has threads, tcp (or gloo) and mpi")
    if store is None:
        store, rank, world_size = next(rendezvous(init_method or "env://", rank, world_size, timeout=timeout))
        store.set_timeout(timeout)
    if backend == Backend.THREADS:
        return _thread_world(store, rank, world_size, timeout)
    from readtorch.csrc.distributed.tcp import ProcessGroupTCP, Transport
    store = PrefixStore("default_pg", store)
    transport = Transport(store, rank, world_size, timeout.total_seconds())
    world = ProcessGroupTCP(transport, range(world_size), "0", timeout.total_seconds(), store, "default_pg")
    world.backend_name = backend
    return world


def _mpi_world(timeout, world_size, rank):
    from readtorch.csrc.distributed.mpi import world_group
    if world_size != -1 or rank != -1:
        warnings.warn(f"For MPI backend, world_size ({world_size}) and rank ({rank}) are ignored since they "
                      "are assigned by the MPI runtime.", stacklevel=4)
    return world_group(timeout.total_seconds(), Store())


_thread_worlds = weakref.WeakKeyDictionary()  # store -> the ThreadWorld of those who share it
_thread_worlds_lock = threading.Lock()


def _thread_world(store, rank, world_size, timeout):
    """Threads that the caller started himself find one another by the store object that they share."""
    check_in(PrefixStore("default_pg", store), rank, world_size, timeout.total_seconds())
    with _thread_worlds_lock:
        threads = _thread_worlds.setdefault(store, ThreadWorld(world_size))
    current.world, current.threads, current.rank = World(), threads, rank
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
        del world.groups[pg]
        pg.shutdown()
        return
    for each in reversed(world.groups):
        each.shutdown()
    world.groups.clear()
    world.default_pg, world.group_count = None, 0


# ------------------------------------------------------------------------- more groups

def new_group(ranks=None, timeout=None, backend=None, pg_options=None, use_local_synchronization=False,
              group_desc=None, device_id=None, sort_ranks=True):
    """A group of some ranks (global ranks; None: all). Every rank must call it, members or not, in the same
    order.

    The members are numbered in the order of their global ranks, or with sort_ranks=False as they stand in the
    list. Returns GroupMember.NON_GROUP_MEMBER to those who are not in it. Raises ValueError for ranks that do
    not exist.
    """
    world, default = current.world, _get_default_group()
    ranks = list(range(default.size()) if ranks is None else sorted(ranks) if sort_ranks else ranks)
    if len(ranks) > default.size():
        raise ValueError("the new group's world size should be less or equal to the world size set by "
                         "init_process_group")
    if len(set(ranks)) != len(ranks) or any(not 0 <= r < default.size() for r in ranks):
        raise ValueError("The new group's rank should be within the world_size set by init_process_group")
    if backend is not None and Backend(backend) != default.backend_name:
        raise ValueError(f"a group over {backend} beside one over {default.backend_name} is not supported")
    if timeout is not None:
        _check_valid_timeout(timeout)
    world.group_count += 1
    if default.rank() not in ranks:
        return GroupMember.NON_GROUP_MEMBER
    seconds = default._timeout if timeout is None else timeout.total_seconds()
    pg = default.subgroup(ranks, str(world.group_count), seconds, group_desc or f"{world.group_count}")
    world.groups[pg] = {r: i for i, r in enumerate(ranks)}
    return pg


def new_subgroups(group_size=None, group=None, timeout=None, backend=None, pg_options=None, group_desc=None):
    """Divide the ranks into groups of `group_size` neighbours: (this rank's group, all of them)."""
    world_size = get_world_size()
    if group_size is None:
        group_size = get_node_world_size()
    if group_size <= 0:
        raise ValueError(f"The arg 'group_size' ({group_size}) must be positive")
    if world_size < group_size:
        raise ValueError(f"The arg 'group_size' ({group_size}) must not exceed the world size ({world_size})")
    if world_size % group_size != 0:
        raise ValueError(f"The world size ({world_size}) must be divisible by 'group_size={group_size}'")
    parts = [list(range(i, i + group_size)) for i in range(0, world_size, group_size)]
    return new_subgroups_by_enumeration(parts, timeout, backend, pg_options, group_desc)


def new_subgroups_by_enumeration(ranks_per_subgroup_list, timeout=None, backend=None, pg_options=None,
                                 group_desc=None):
    """A group for each list of ranks: (this rank's group or None, all of them). No rank may be in two."""
    if ranks_per_subgroup_list is None or len(ranks_per_subgroup_list) == 0:
        raise ValueError("The arg 'ranks_per_subgroup_list' cannot be empty")
    seen, mine, groups = set(), None, []
    for ranks in ranks_per_subgroup_list:
        twice = seen & set(ranks)
        if twice:
            raise ValueError(f"Rank {min(twice)} has appeared in both subgroups")
        seen |= set(ranks)
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
    raise RuntimeError("LOCAL_RANK is not in the environment. Consider passing fallback_rank to allow "
                       "`get_node_local_rank` to work, assuming you are not running in a multi-device "
                       "context and want the code to run locally instead.")


def get_backend(group=None):
    """The name of the group's backend."""
    pg = _group_or_default_group(group)
    if _rank_not_in_group(pg):
        raise ValueError("Invalid process group specified")
    return Backend(pg.backend_name)


def get_backend_config(group=None):
    """Which backend serves which type of device."""
    return f"cpu:{get_backend(group)}"


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
        raise ValueError(f"Group {group} is not registered, please create group with "
                         "torch.distributed.new_group API")
    return current.world.groups[group]


def get_process_group_ranks(group):
    """The global ranks of the group, in the group's order."""
    return list(_ranks_of(_group_or_default_group(group)))


def get_pg_count():
    """How many groups this rank is in."""
    return len(current.world.groups)


# ------------------------------------------------------------------------- for the collectives

def _get_default_group():
    if not is_initialized():
        raise ValueError("Default process group has not been initialized, please make sure to call "
                         "init_process_group.")
    return GroupMember.WORLD


def _group_or_default_group(group=None):
    return _get_default_group() if group is None else group


def _rank_not_in_group(group):
    return isinstance(group, int) and group == GroupMember.NON_GROUP_MEMBER


def _warn_not_in_group(op_name):
    rank = -1 if GroupMember.WORLD is None else GroupMember.WORLD.rank()
    warnings.warn(f"Running {op_name} on global rank {rank} which does not belong to the given group.",
                  stacklevel=3)


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
