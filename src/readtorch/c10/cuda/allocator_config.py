"""The allocator's settings: `PYTORCH_CUDA_ALLOC_CONF="max_split_size_mb:128,expandable_segments:True"`.

In PyTorch: `c10/core/AllocatorConfig.h` (settings of every accelerator) and
`c10/cuda/CUDAAllocatorConfig.h` (CUDA's own): two objects, and each reads the whole text. Explained in the
chapter "The caching allocator".
"""

import os
import re

from .sizes import LARGE_SEGMENT, MIB, MIN_LARGE_ALLOC, UNLIMITED

ROUNDUP_INTERVALS = 16  # from 1 MiB to 64 GiB, one a power of two


def is_power_of_2(number):
    return number > 0 and number & (number - 1) == 0


class Tokens:
    """The text of the settings in pieces: names, values, and the signs `: , [ ]`."""

    def __init__(self, text):
        self.pieces = re.findall(r"[:,\[\]]|[^:,\[\]]+", re.sub(r"\s", "", text))
        self.next = 0

    def __bool__(self):
        return self.next < len(self.pieces)

    def peek(self):
        """The next piece. RuntimeError if there is none."""
        if not self:
            raise RuntimeError("Index out of bounds in ConfigTokenizer")
        return self.pieces[self.next]

    def take(self):
        piece = self.peek()
        self.next += 1
        return piece

    def take_sign(self):
        """A sign is expected here, but any is accepted; so in PyTorch."""
        self.take()

    def take_int(self):
        piece = self.take()
        match = re.match(r"[+-]?\d+", piece)
        if not match:
            raise ValueError("stoull")  # what C++ throws here; so in PyTorch
        number = int(match[0])
        if abs(number) > UNLIMITED:
            raise IndexError("stoull")
        return number & UNLIMITED

    def take_float(self):
        piece = self.take()
        match = re.match(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", piece)
        if not match:
            raise ValueError("stod")
        return float(match[0])

    def take_bool(self):
        piece = self.take()
        if piece not in ("True", "False"):
            raise ValueError(
                f"Expected 'True' or 'False' at index {self.next - 1} in ConfigTokenizer but got '{piece}'"
            )
        return piece == "True"

    def skip_value(self):
        """Past the colon and the value, which may be a list."""
        self.take_sign()
        if self.take() == "[":
            while self.peek_in_list() != "]":
                self.take()
            self.take()

    def peek_in_list(self):
        """The next piece inside brackets. RuntimeError if the closing one is missing."""
        if not self:
            raise RuntimeError("Expected closing bracket ']' in ConfigTokenizer but reached end of config")
        return self.peek()


class AllocatorConfig:
    """All settings, at their defaults until `read` or `read_environment` is called."""

    def __init__(self):
        self.last_settings = ""
        self.large_segment_size = LARGE_SEGMENT  # of the segment that a request between 1 and 10 MiB gets
        self.expandable_segments = False
        self._reset()
        self.per_process_memory_fraction = 1.0  # read when an allocator is made
        self.throw_on_cudamalloc_oom = False
        # Of page-locked host memory: aten/caching_host_allocator.py.
        self.pinned_max_round_threshold = UNLIMITED  # larger sizes are not rounded
        self.pinned_max_cached_size = UNLIMITED  # larger blocks are not kept
        self.pinned_use_cuda_host_register = False
        self.pinned_reserve_segment_size_mb = 0
        self.pinned_free_catch_all = False
        # Read, checked and kept only: for locks, graphs and threads that are not here.
        self.release_lock_on_cudamalloc = False
        self.graph_capture_record_stream_reuse = False
        self.pinned_use_background_threads = False
        self.pinned_num_register_threads = 1

    def _reset(self):
        """What every reading of settings begins with, whether or not it names these."""
        self.max_split_size = UNLIMITED  # blocks of this size or more are never split
        self.max_non_split_rounding_size = self.large_segment_size  # what an unsplit block may waste
        self.roundup_power2_divisions = [0] * ROUNDUP_INTERVALS
        self.rounds_up = False  # whether any of these is set
        self.garbage_collection_threshold = 0.0

    def divisions(self, size):
        """Into how many steps the powers of two around `size` are divided; 0 or 1: sizes are not rounded
        so."""
        interval = max(size.bit_length() - 1 - 20, 0)
        return self.roundup_power2_divisions[min(interval, ROUNDUP_INTERVALS - 1)]

    # ------------------------------------------------------------------------------------ reading settings

    def read_environment(self):
        """Read `PYTORCH_CUDA_ALLOC_CONF` or, if it is not set, `PYTORCH_ALLOC_CONF`. Errors as in `read`."""
        for name in ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"):
            if name in os.environ:
                self._read_cuda(os.environ[name])
                self._read_shared(os.environ[name])
                return

    def read(self, text):
        """Change settings while the program runs. ValueError for what is unknown or out of range;
        RuntimeError for a text that ends too early."""
        self._read_shared(text)
        self._read_cuda(text)

    def _read_shared(self, text):
        self.last_settings = text
        self._reset()
        self._read_large_segment_size(text)
        self._read_keys(text, _SHARED, "Accelerator")

    def _read_cuda(self, text):
        self._read_keys(text, _CUDA, "CUDA")

    def _read_keys(self, text, readers, reader):
        tokens = Tokens(text)
        while tokens:
            key = tokens.take()
            if key in readers:
                tokens.take_sign()
                readers[key](self, tokens)
            elif key in _SHARED or key in _CUDA:
                tokens.skip_value()
            else:
                raise ValueError(f"Unrecognized key '{key}' in {reader} allocator config.")
            if tokens:
                tokens.take_sign()

    def _read_large_segment_size(self, text):
        """First of all, since other settings must not be below it."""
        tokens = Tokens(text)
        while tokens:
            if tokens.take() != "large_segment_size_mb":
                continue
            tokens.take_sign()
            megabytes = tokens.take_int()
            if megabytes <= MIN_LARGE_ALLOC // MIB:
                raise ValueError(f"CachingAllocator option large_segment_size_mb must be > {MIN_LARGE_ALLOC // MIB} MB")
            self.large_segment_size = megabytes * MIB
        self.max_non_split_rounding_size = self.large_segment_size

    def _bytes_above_large_segment(self, tokens, key):
        megabytes = tokens.take_int()
        least = self.large_segment_size // MIB
        if megabytes < least:
            raise ValueError(f"CachingAllocator option {key} too small, must be >= {least}")
        return min(megabytes, UNLIMITED // MIB) * MIB

    def _read_max_split_size(self, tokens):
        self.max_split_size = self._bytes_above_large_segment(tokens, "max_split_size_mb")

    def _read_max_non_split_rounding(self, tokens):
        self.max_non_split_rounding_size = self._bytes_above_large_segment(tokens, "max_non_split_rounding_mb")

    def _read_garbage_collection_threshold(self, tokens):
        threshold = tokens.take_float()
        if not 0 < threshold < 1:
            raise ValueError("garbage_collect_threshold is invalid, set it in (0.0, 1.0)")
        self.garbage_collection_threshold = threshold

    def _read_roundup(self, tokens):
        """Either one number for all sizes, or a table: `[256:1,512:2,1024:4,>:8]`, sizes in MiB."""
        if tokens.peek() == "[":
            tokens.take()
            self._read_roundup_table(tokens)
        else:
            divisions = tokens.take_int()
            if not is_power_of_2(divisions):
                raise ValueError("For roundups, the divisions has to be power of 2 ")
            self.roundup_power2_divisions = [divisions] * ROUNDUP_INTERVALS
        self.rounds_up = any(self.roundup_power2_divisions)

    def _read_roundup_table(self, tokens):
        table = self.roundup_power2_divisions
        last = 0  # the interval named last
        first = True
        while tokens.peek_in_list() != "]":
            bound = tokens.take()
            tokens.take_sign()
            divisions = tokens.take_int()
            if divisions != 0 and not is_power_of_2(divisions):
                raise ValueError("For roundups, the divisions has to be power of 2 or 0 to disable roundup ")
            if bound == ">":  # all above the last one named
                table[last + 1 :] = [divisions] * (ROUNDUP_INTERVALS - 1 - last)
            else:
                last = self._interval(bound)
                if first:  # smaller sizes are treated as the first one named
                    table[:last] = [divisions] * last
                    first = False
                table[last] = divisions
            if tokens.peek() != "]":
                tokens.take_sign()
        tokens.take()

    @staticmethod
    def _interval(bound):
        megabytes = Tokens(bound).take_int()
        if not is_power_of_2(megabytes):
            raise ValueError("For roundups, the intervals have to be power of 2 ")
        return min(megabytes.bit_length() - 1, ROUNDUP_INTERVALS - 1)

    def _read_backend(self, tokens):
        backend = tokens.take()
        if backend not in ("native", "cudaMallocAsync"):
            raise ValueError("Unknown allocator backend, options are native and cudaMallocAsync")
        if backend != "native":  # in PyTorch: the driver's own pools, chosen when the library is loaded
            raise RuntimeError(
                f"Allocator backend parsed at runtime != allocator backend parsed at load time, {backend} != native"
            )

    def _read_memory_fraction(self, tokens):
        fraction = tokens.take_float()
        if not 0 <= fraction <= 1:
            raise ValueError("per_process_memory_fraction is invalid, set it in [0.0, 1.0]")
        self.per_process_memory_fraction = fraction

    def _read_register_threads(self, tokens):
        threads, most = tokens.take_int(), 128
        if not is_power_of_2(threads):
            raise ValueError(f"Number of register threads has to be power of 2, got {threads}")
        if threads > most:
            raise ValueError(f"Number of register threads should be less than or equal to {most}, got {threads}")
        self.pinned_num_register_threads = threads

    def _read_reserve_segment_size(self, tokens):
        megabytes = tokens.take_int()
        if megabytes == 0:
            raise ValueError("Pinned reserve segment size has to be greater than 0")
        self.pinned_reserve_segment_size_mb = megabytes


def _bool(attribute):
    def read(config, tokens):
        setattr(config, attribute, tokens.take_bool())

    return read


def _megabytes(attribute):
    def read(config, tokens):
        setattr(config, attribute, tokens.take_int() * MIB)

    return read


# What any accelerator's allocator knows …
_SHARED = {
    "large_segment_size_mb": lambda config, tokens: tokens.take(),  # read before
    "max_split_size_mb": AllocatorConfig._read_max_split_size,
    "max_non_split_rounding_mb": AllocatorConfig._read_max_non_split_rounding,
    "garbage_collection_threshold": AllocatorConfig._read_garbage_collection_threshold,
    "roundup_power2_divisions": AllocatorConfig._read_roundup,
    "expandable_segments": _bool("expandable_segments"),
    "pinned_use_background_threads": _bool("pinned_use_background_threads"),
    "pinned_max_round_threshold_mb": _megabytes("pinned_max_round_threshold"),
    "pinned_max_cached_size_mb": _megabytes("pinned_max_cached_size"),
}

# … and what CUDA's adds.
_CUDA = {
    "backend": AllocatorConfig._read_backend,
    "release_lock_on_cudamalloc": _bool("release_lock_on_cudamalloc"),
    "release_lock_on_hipmalloc": _bool("release_lock_on_cudamalloc"),
    "pinned_use_cuda_host_register": _bool("pinned_use_cuda_host_register"),
    "pinned_use_hip_host_register": _bool("pinned_use_cuda_host_register"),
    "graph_capture_record_stream_reuse": _bool("graph_capture_record_stream_reuse"),
    "pinned_reserve_segment_size_mb": AllocatorConfig._read_reserve_segment_size,
    "pinned_num_register_threads": AllocatorConfig._read_register_threads,
    "per_process_memory_fraction": AllocatorConfig._read_memory_fraction,
    "pinned_free_catch_all": _bool("pinned_free_catch_all"),
    "throw_on_cudamalloc_oom": _bool("throw_on_cudamalloc_oom"),
}
