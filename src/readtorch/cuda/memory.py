"""The memory of devices: how much there is, who has it, what happened to it, and how it is managed.

Everything here asks the process's allocator, `c10/cuda/cuda_caching_allocator`. `device` is a number, a name or a
`torch.device`; by default it is the current device.

In PyTorch: `torch/cuda/memory.py`, `torch/csrc/cuda/Module.cpp` and `memory_snapshot.cpp`. Explained in the
chapter "The caching allocator".
"""

import contextlib
import pickle
import sys
import threading
import warnings
import weakref
from collections import OrderedDict

from readtorch.aten.caching_host_allocator import host_allocator
from readtorch.c10.cuda import runtime
from readtorch.c10.cuda.cuda_caching_allocator import history
from readtorch.c10.cuda.cuda_caching_allocator.block import NO_POOL
from readtorch.c10.cuda.cuda_graph import graph_pool_handle
from readtorch.c10.cuda.cuda_stream import current_stream
from readtorch.c10.device import current_device

from ._utils import _get_device_index

__all__ = [
    "caching_allocator_alloc",
    "caching_allocator_delete",
    "caching_allocator_disabled",
    "caching_allocator_enable",
    "get_per_process_memory_fraction",
    "set_per_process_memory_fraction",
    "empty_cache",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "host_memory_stats",
    "host_memory_stats_as_nested_dict",
    "reset_accumulated_host_memory_stats",
    "reset_peak_host_memory_stats",
    "reset_accumulated_memory_stats",
    "reset_peak_memory_stats",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "memory_allocated",
    "max_memory_allocated",
    "memory_reserved",
    "max_memory_reserved",
    "memory_cached",
    "max_memory_cached",
    "memory_snapshot",
    "memory_summary",
    "list_gpu_processes",
    "mem_get_info",
    "get_allocator_backend",
    "MemPool",
    "use_mem_pool",
]


# --------------------------------------------------------------------------------------- blocks and settings


def caching_allocator_alloc(size, device=None, stream=None):
    """The address of `size` bytes for work on `stream` (a Stream or its handle; default: the current one).

    To be given back with `caching_allocator_delete`. TypeError, OutOfMemoryError.
    """
    index = _index(device)
    if stream is None:
        stream = current_stream(index).handle
    stream = getattr(stream, "cuda_stream", stream)
    if not isinstance(stream, int):
        raise TypeError(
            "Invalid type for stream argument, must be `torch.cuda.Stream` or `int` representing "
            "a pointer to an existing stream"
        )
    block = runtime.allocator().malloc(index, size, stream)
    return block.address if block else 0


def caching_allocator_delete(mem_ptr):
    """Give back what `caching_allocator_alloc` returned. RuntimeError if no block in use begins there."""
    if mem_ptr:
        runtime.allocator().free(runtime.allocator().block_at(mem_ptr))


def caching_allocator_enable(value=True):
    """With False, every request goes to the driver and everything freed back to it."""
    if runtime.is_available():
        runtime.allocator().enabled = value


@contextlib.contextmanager
def caching_allocator_disabled():
    """`with caching_allocator_disabled():` nothing is cached inside."""
    before = runtime.allocator().enabled
    caching_allocator_enable(False)
    try:
        yield
    finally:
        caching_allocator_enable(before)


def empty_cache():
    """Give back to the device all memory that is cached and not in use."""
    if runtime.is_available():
        runtime.allocator().empty_cache()


def mem_get_info(device=None):
    """(free, total) bytes of a device, as the driver says."""
    return runtime.driver().mem_get_info(_index(device))


def list_gpu_processes(device=None):
    """Which processes hold memory of a device, one line each."""
    index = _index(device)
    processes = [
        f"process {pid:>10d} uses {used / (1 << 20):>12.3f} MB GPU memory"
        for pid, used in runtime.driver().processes(index)
    ]
    return "\n".join([f"GPU:{index}", *(processes or ["no processes are running"])])


def set_per_process_memory_fraction(fraction, device=None):
    """Let this process hold at most a part, from 0.0 to 1.0, of a device's memory. TypeError, ValueError."""
    runtime.driver()
    if not isinstance(fraction, float):
        raise TypeError("Invalid type for fraction argument, must be `float`")
    if not 0 <= fraction <= 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
    runtime.allocator().set_memory_fraction(fraction, _index(device))


def get_per_process_memory_fraction(device=None):
    """Which part of a device's memory this process may hold."""
    return runtime.allocator().get_memory_fraction(_index(device))


def get_allocator_backend():
    """Which allocator it is: always this one."""
    return "native"


def _set_allocator_settings(env):
    """Change settings, written as in PYTORCH_CUDA_ALLOC_CONF. ValueError. Deprecated, in PyTorch, too."""
    warnings.warn(
        "torch.cuda._set_allocator_settings is deprecated. Use torch._C._accelerator_setAllocatorSettings instead.",
        FutureWarning,
        stacklevel=2,
    )
    runtime.config().read(env)


# ------------------------------------------------------------------------------------------------ statistics


def memory_stats(device=None):
    """All statistics of a device, as {"allocated_bytes.all.current": …}, in the alphabet's order.

    First what is counted: `allocation`, `segment`, `active`, `inactive_split` (numbers) and
    `allocated_bytes`, `reserved_bytes`, `active_bytes`, `inactive_split_bytes`, `requested_bytes`; then for
    which blocks: `all`, `small_pool`, `large_pool`; then `current`, `peak`, `allocated` (all that came) or
    `freed` (all that went). See `c10/caching_device_allocator.py`. Empty as long as there is no device.
    """
    return OrderedDict(sorted(_flat(memory_stats_as_nested_dict(device))))


def _flat(nested, prefix=""):
    for key, value in nested.items():
        name = "_".join(map(str, key)) if isinstance(key, tuple) else key
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def memory_stats_as_nested_dict(device=None):
    """The same in dictionaries of dictionaries."""
    return runtime.allocator().stats(_index(device)).as_nested_dict() if runtime.is_available() else {}


def host_memory_stats():
    """All statistics of page-locked host memory, as {"active_bytes.current": …}, in the alphabet's order.

    `allocations`, `allocated_bytes`: blocks that the allocator has, and their bytes, rounded up to powers of two;
    `active_requests`, `active_bytes`: those in use, by the program or by a stream that has not got so far: each with
    `current`, `peak`, `allocated` and `freed`. `num_host_alloc`, `num_host_free`: calls of the driver, and how many
    microseconds they took, `host_alloc_time` and `host_free_time`: `total`, `max`, `min`, `count`, `avg`. Empty as long as there
    is no device. See Note [ A caching allocator for the host ].
    """
    return OrderedDict(sorted(_flat(host_memory_stats_as_nested_dict())))


def host_memory_stats_as_nested_dict():
    """The same in dictionaries of dictionaries."""
    return host_allocator().stats.as_nested_dict() if runtime.is_available() else {}


def reset_accumulated_host_memory_stats():
    """Count from 0 again what came and went."""
    host_allocator().reset_accumulated_stats()


def reset_peak_host_memory_stats():
    """Peaks begin at what is there now."""
    host_allocator().reset_peak_stats()


def _host_allocator():
    """The allocator of page-locked host memory."""
    return host_allocator()


def reset_accumulated_memory_stats(device=None):
    """Count from 0 again what came and went."""
    runtime.allocator().device(_index(device)).reset_accumulated_stats()


def reset_peak_memory_stats(device=None):
    """Peaks begin at what is there now."""
    runtime.allocator().device(_index(device)).reset_peak_stats()


def reset_max_memory_allocated(device=None):
    """Deprecated name of `reset_peak_memory_stats`."""
    _warn_of_old_name("reset_max_memory_allocated")
    reset_peak_memory_stats(device)


def reset_max_memory_cached(device=None):
    """Deprecated name of `reset_peak_memory_stats`."""
    _warn_of_old_name("reset_max_memory_cached")
    reset_peak_memory_stats(device)


def _warn_of_old_name(name):
    warnings.warn(
        f"torch.cuda.{name} now calls torch.cuda.reset_peak_memory_stats, which resets /all/ peak memory stats.",
        FutureWarning,
        stacklevel=3,
    )


def memory_allocated(device=None):
    """Bytes of a device that tensors have."""
    return _bytes("allocated_bytes", "current", device)


def max_memory_allocated(device=None):
    """The most that it has been."""
    return _bytes("allocated_bytes", "peak", device)


def memory_reserved(device=None):
    """Bytes of a device that the allocator holds, used or not."""
    return _bytes("reserved_bytes", "current", device)


def max_memory_reserved(device=None):
    """The most that it has been."""
    return _bytes("reserved_bytes", "peak", device)


def memory_cached(device=None):
    """Deprecated name of `memory_reserved`."""
    warnings.warn(
        "`torch.cuda.memory_cached` has been renamed to `torch.cuda.memory_reserved`", FutureWarning, stacklevel=2
    )
    return memory_reserved(device)


def max_memory_cached(device=None):
    """Deprecated name of `max_memory_reserved`."""
    warnings.warn(
        "`torch.cuda.max_memory_cached` has been renamed to `torch.cuda.max_memory_reserved`",
        FutureWarning,
        stacklevel=2,
    )
    return max_memory_reserved(device)


def _bytes(family, metric, device):
    if not runtime.is_available():
        return 0
    return getattr(runtime.allocator().stats(_index(device)).families[family], metric)


# The table of `memory_summary`.
_WIDTH = 75
_QUANTITIES = (  # of all blocks, of large and of small ones: (statistic, name, whether it is in bytes)
    ("allocated_bytes", "Allocated memory", True),
    ("active_bytes", "Active memory", True),
    ("requested_bytes", "Requested memory", True),
    ("reserved_bytes", "GPU reserved memory", True),
    ("inactive_split_bytes", "Non-releasable memory", True),
    ("allocation", "Allocations", False),
    ("active", "Active allocs", False),
    ("segment", "GPU reserved segments", False),
    ("inactive_split", "Non-releasable allocs", False),
)
_OVERSIZE = (("oversize_allocations", "Oversize allocations"), ("oversize_segments", "Oversize GPU segments"))
_COLUMNS = ("current", "peak", "allocated", "freed")


def memory_summary(device=None, abbreviated=False):
    """The statistics as a table to be printed, the same to the letter as PyTorch's."""
    stats = memory_stats(device)
    thin, thick = "-" * _WIDTH, "=" * _WIDTH
    title = f"{'':18}PyTorch CUDA memory summary, device ID {_index(device)}"
    counts = (
        f"{'':11} CUDA OOMs: {stats['num_ooms']:<12d} | {'':6} cudaMalloc retries: {stats['num_alloc_retries']:<8d}  "
    )
    heads = "        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  "
    lines = [thick, f"{title:<{_WIDTH}}", thin, counts, thick, heads]
    kinds = ("all",) if abbreviated else ("all", "large_pool", "small_pool")
    for statistic, name, in_bytes in _QUANTITIES:
        lines += [thin, *_rows(stats, statistic, name, kinds, _size_cell if in_bytes else _count_cell)]
    for statistic, name in _OVERSIZE:
        values = [stats[f"{statistic}.{column}"] for column in _COLUMNS]
        lines += [thin, _row(name, values, values, _count_cell)]
    return "".join(f"|{line}|\n" for line in [*lines, thick])


def _rows(stats, statistic, name, kinds, cell):
    """One row a kind of blocks, in the units that suit the first."""
    names = {"all": name, "large_pool": "      from large pool", "small_pool": "      from small pool"}
    values = {kind: [stats[f"{statistic}.{kind}.{column}"] for column in _COLUMNS] for kind in kinds}
    return [_row(names[kind], values[kind], values["all"], cell) for kind in kinds]


def _row(name, values, guides, cell):
    return f" {name:<21} | " + " | ".join(cell(value, guide) for value, guide in zip(values, guides)) + " "


def _size_cell(nbytes, guide):
    """Bytes, in the unit in which `guide` is below 768 * 1024."""
    for unit in ("B  ", "KiB", "MiB", "GiB", "TiB", "PiB"):
        if guide < 768 * 1024 or unit == "PiB":
            return f"{nbytes:6d} {unit}"
        nbytes, guide = nbytes // 1024, guide / 1024


def _count_cell(count, guide):
    """A count, in thousands or millions if `guide` needs it."""
    for unit in (" ", "K", "M"):
        if guide < 750 * 1000 or unit == "M":
            return f"{count:7d} {unit} "
        count, guide = count // 1000, guide / 1000


# ------------------------------------------------------------------------------------- pictures and history


def memory_snapshot(mempool_id=None, include_traces=True):
    """All segments and the blocks in them, a list of dictionaries; with a MemPool's id, only that pool's."""
    return runtime.allocator().segments(NO_POOL if mempool_id is None else tuple(mempool_id))


def _record_memory_history(enabled="all", *args, **kwargs):
    """Write down from now on what the allocator does, for `_snapshot`.

    enabled: None ends it and forgets all; "state" keeps stacks of what is in use; "all" keeps events, too.
    context: whose stacks are kept: None, "state" (of blocks in use), "alloc" (also of events that got
        memory), "all" (also of those that gave it back). stacks: "python", or "all": with the frames that are
        C++ in PyTorch.
    max_entries: how many events are kept, the latest ones. clear_history: forget earlier ones now.
    skip_actions: names of actions that are not written down.
    A bool for `enabled` is the older form, with the arguments record_context, trace_alloc_max_entries,
    trace_alloc_record_context, device and record_context_cpp. RuntimeError for a word that is none of these.
    """
    if isinstance(enabled, bool):
        return _record_memory_history_legacy(enabled, *args, **kwargs)
    return _record_memory_history_impl(enabled, *args, **kwargs)


def _record_memory_history_impl(
    enabled="all",
    context="all",
    stacks="all",
    max_entries=sys.maxsize,
    device=None,
    clear_history=False,
    compile_context=False,
    global_record_annotations=False,
    skip_actions=None,
):
    _check_word(enabled, (None, "state", "all"), "expected state to be 'state', 'all', or None")
    _check_word(context, (None, "state", "alloc", "all"), "expected context to be 'state', 'alloc', 'all', or None")
    _check_word(stacks, ("python", "all"), "expected stacks to be 'python', or 'all'")
    runtime.allocator().record_history(
        enabled is not None,
        context,
        max_entries if enabled == "all" else 1,
        all_stacks=stacks == "all",
        clear=clear_history,
        skip_actions=skip_actions or (),
    )


def _record_memory_history_legacy(
    enabled,
    record_context=True,
    trace_alloc_max_entries=1,
    trace_alloc_record_context=False,
    device=None,
    record_context_cpp=False,
    clear_history=False,
    compile_context=False,
    global_record_annotations=False,
    skip_actions=None,
):
    context = "alloc" if trace_alloc_record_context else "state" if record_context else None
    runtime.allocator().record_history(
        enabled,
        context,
        trace_alloc_max_entries,
        all_stacks=record_context_cpp,
        clear=clear_history,
        skip_actions=skip_actions or (),
    )


def _check_word(word, words, message):
    if word not in words:
        raise RuntimeError(message)


def _snapshot(device=None, augment_with_fx_traces=False):
    """Everything that is known: a dictionary of "segments", "device_traces" (the events of each device),
    "allocator_settings" and "external_annotations"."""
    return runtime.allocator().snapshot()


def _dump_snapshot(filename="dump_snapshot.pickle", augment_with_fx_traces=False):
    """Pickle `_snapshot()` into a file. PyTorch's memory viewer opens it, and ours opens PyTorch's."""
    with open(filename, "wb") as file:
        pickle.dump(_snapshot(), file)


def _allocation_traceback(data_ptr):
    """The stack of the call that requested the block at an address; None if there is none or its stack was not kept."""
    try:
        block = runtime.allocator().block_at(data_ptr)
    except RuntimeError:
        return None
    return None if block.context is None else history.frames_of(block.context)


def _set_memory_metadata(metadata):
    """Write this text into all events of this thread from now on."""
    history.note.text = metadata


def _get_memory_metadata():
    return history.note.text


# ---------------------------------------------------------------------------------------------- private pools


class MemPool:
    """Memory of the current device that is kept apart: `with use_mem_pool(pool):` tensors get theirs from it.

    use_on_oom: its free memory may serve requests outside that nothing else can serve. no_split: its segments
    are handed out whole. In PyTorch: `allocator` may be one loaded from a shared library; here it must be
    None.
    """

    def __init__(self, allocator=None, use_on_oom=False, no_split=False):
        if allocator is not None:
            raise TypeError("MemPool(): readtorch has no allocators but its own, so allocator must be None")
        self.allocator = None
        self._id = graph_pool_handle()
        self._pools = runtime.allocator().device(_index(None))
        self._pools.create_or_incref_pool(self._id)
        if use_on_oom:
            self._pools.set_use_on_oom(self._id, True)
        if no_split:
            self._pools.set_no_split(self._id)
        weakref.finalize(self, _leave_pool, self._pools, self._id)

    @property
    def id(self):
        """Two numbers, by which the allocator knows it."""
        return self._id

    def use_count(self):
        """How many use it: this object, and every `use_mem_pool` that is active."""
        return self._pools.pool_use_count(self._id)

    def snapshot(self, include_traces=True):
        """Its segments: see `memory_snapshot`."""
        return memory_snapshot(self._id, include_traces)


def _leave_pool(pools, pool_id):
    """The MemPool has gone: what is not in use of its memory is given back."""
    pools.set_use_on_oom(pool_id, False)
    pools.release_pool(pool_id)
    pools.empty_cache(pool_id)


@contextlib.contextmanager
def use_mem_pool(pool, device=None):
    """`with use_mem_pool(pool):` what this thread allocates inside comes from the pool."""
    pools = runtime.allocator().device(_index(device))
    thread = threading.get_ident()
    pools.begin_allocate_to_pool(pool.id, lambda stream: threading.get_ident() == thread)
    try:
        yield
    finally:
        pools.end_allocate_to_pool(pool.id)
        pools.release_pool(pool.id)


def _index(device):
    """The number of a device. AssertionError if there are no devices."""
    runtime.driver()
    return current_device.index if device is None else _get_device_index(device, optional=True)
