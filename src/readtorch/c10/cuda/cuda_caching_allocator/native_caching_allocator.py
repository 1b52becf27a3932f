"""The allocator of all devices: a DeviceCachingAllocator for each, and the blocks in use by address.

In PyTorch: `NativeCachingAllocator` in `c10/cuda/CUDACachingAllocator.cpp`. Explained in the chapter "The
caching allocator".
"""

import itertools
import os

from readtorch.c10.cuda.allocator_config import AllocatorConfig
from readtorch.c10.cuda.cuda_exception import AcceleratorError, MemoryAllocationError, OutOfMemoryError
from readtorch.c10.cuda.driver_api import DEFAULT_STREAM
from readtorch.c10.cuda.sizes import UNLIMITED

from .block import NO_POOL, Block
from .device_caching_allocator import DeviceCachingAllocator
from .history import CONTEXTS
from .snapshot import segments_of

EXABYTE = 1 << 60


class CachingAllocator:
    """Memory on the devices of a driver, kept for reuse when it is given back.

    `config`: an AllocatorConfig; without one, the settings of the environment.
    """

    def __init__(self, driver, config=None):
        if config is None:
            config = AllocatorConfig()
            config.read_environment()
        self.driver = driver
        self.config = config
        count_segments = itertools.count()
        self.devices = [
            DeviceCachingAllocator(device, driver, config, count_segments) for device in range(driver.device_count())
        ]
        self.external_annotations = []
        self.enabled = os.environ.get("PYTORCH_NO_CUDA_MEMORY_CACHING") != "1"
        self.uncached = {}  # address -> block that came while it was not enabled

    def malloc(self, device, size, stream=DEFAULT_STREAM):
        """A block of `size` bytes for work on a stream; None for 0 bytes. OutOfMemoryError,
        AcceleratorError."""
        if 0 < size < EXABYTE and self.enabled:
            return self.devices[device].malloc(size, stream)
        if size == 0:
            return None
        if size >= EXABYTE:
            raise OutOfMemoryError("CUDA out of memory. Tried to allocate more than 1EB memory.")
        return self._uncached(device, size, stream)

    def free(self, block):
        """Give a block back that `malloc` returned."""
        if block is None:
            return
        if block.pool is None:
            del self.uncached[block.address]
            self.driver.free(block.device, block.address)
        else:
            self.devices[block.device].free(block)

    def _uncached(self, device, size, stream):
        """A block straight from the driver, which no pool will keep."""
        try:
            address = self.driver.malloc(device, size)
        except MemoryAllocationError:
            raise AcceleratorError("CUDA error: out of memory") from None
        block = self.uncached[address] = Block(device, stream, size, None, address, None)
        block.requested_size, block.allocated = size, True
        return block

    def record_stream(self, block, stream):
        """The block is used on another stream, too: Note [ Used on another stream ]."""
        if block is not None and block.pool is not None:
            self.devices[block.device].record_stream(block, stream)

    def block_at(self, address):
        """The block in use that begins at an address. RuntimeError if there is none."""
        for blocks in self.uncached, *(device.active_blocks for device in self.devices):
            block = blocks.get(address)
            if block is not None and block.allocated:
                return block
        raise RuntimeError(f"invalid device pointer: {address:#x}")

    def empty_cache(self, pool_id=NO_POOL):
        """Give back all that no block needs, on every device; with an id, of that private pool only."""
        for device in self.devices:
            device.empty_cache(pool_id)

    def set_settings(self, text):
        """Change settings while the program runs: see allocator_config.py. Note [ A split block is no
        segment ]."""
        self.config.read(text)

    def set_memory_fraction(self, fraction, device):
        self.device(device).set_memory_fraction(fraction)

    def get_memory_fraction(self, device):
        return self.device(device).get_memory_fraction()

    def stats(self, device):
        """The device's DeviceStats."""
        return self.device(device).stats

    def attach_out_of_memory_observer(self, observer):
        """`observer(device, size, total, free)` is called before an OutOfMemoryError is raised."""
        for device in self.devices:
            device.out_of_memory_observers.append(observer)

    # ---------------------------------------------------------------------------------------------- history

    def record_history(
        self, enabled, context="all", max_entries=UNLIMITED, all_stacks=False, clear=False, skip_actions=()
    ):
        """Write events down from now on. `context`: how much is kept of stacks: None, "state", "alloc",
        "all"."""
        entries = min(max_entries, (1 << 63) - 1)
        for device in self.devices:
            device.record_history(enabled, CONTEXTS[context], entries, all_stacks, clear, skip_actions)
        if clear or not enabled:
            self.external_annotations = []

    @property
    def history_enabled(self):
        return any(device.history is not None for device in self.devices)

    def trace(self, device):
        """The events of a device that are kept, as dictionaries, the oldest first."""
        history = self.devices[device].history
        return [] if history is None else [entry.as_dict() for entry in list(history.entries)]

    def segments(self, pool_id=NO_POOL):
        """All segments and their blocks: see snapshot.py."""
        return [segment for device in self.devices for segment in self._segments_of(device, pool_id)]

    def snapshot(self, pool_id=NO_POOL, include_traces=True):
        """Segments, events, and settings, as `torch.cuda.memory._snapshot()` shows them."""
        traces = [self.trace(device) if include_traces else [] for device in range(len(self.devices))]
        return {
            "segments": self.segments(pool_id),
            "device_traces": traces,
            "allocator_settings": self._describe_settings(),
            "external_annotations": list(self.external_annotations),
        }

    @staticmethod
    def _segments_of(device, pool_id):
        with device.lock:
            segments = segments_of(device, pool_id)
            if device.history is not None:
                active = sum(segment["active_size"] for segment in segments)
                device.history.add("snapshot", 0, 0, active, 0, pool_id, None, None)
        return segments

    def _describe_settings(self):
        config = self.config
        return {
            "PYTORCH_CUDA_ALLOC_CONF": config.last_settings,
            "max_split_size": -1 if config.max_split_size == UNLIMITED else config.max_split_size,
            "garbage_collection_threshold": config.garbage_collection_threshold,
            "expandable_segments": config.expandable_segments,
            "pinned_num_register_threads": config.pinned_num_register_threads,
            "release_lock_on_cudamalloc": config.release_lock_on_cudamalloc,
            "pinned_use_cuda_host_register": config.pinned_use_cuda_host_register,
            "roundup_power2_divisions": {
                str(1 << i): divisions for i, divisions in enumerate(config.roundup_power2_divisions)
            },
            "graph_capture_record_stream_reuse": config.graph_capture_record_stream_reuse,
        }

    def device(self, device):
        """The DeviceCachingAllocator of a device. RuntimeError if there is no such device."""
        if not 0 <= device < len(self.devices):
            raise RuntimeError(f"Invalid device argument {device}: did you call init?")
        return self.devices[device]
