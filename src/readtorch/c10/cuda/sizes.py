"""From the size that is asked for to the size of a block, and to the size of the segment that is made for it.

A *segment* is what the driver gives: memory of one `malloc`. A *block* is what a tensor gets: a piece of a
segment.

In PyTorch: `round_size`, `get_allocation_size` and `should_split` in `c10/cuda/CUDACachingAllocator.cpp`,
the numbers in `c10/core/AllocatorConfig.h`. Explained in the chapter "The caching allocator".
"""

MIB = 1 << 20
MIN_BLOCK = 512  # the size of every block is a multiple of this
SMALL_SIZE = 1 * MIB  # the largest size that is "small"
SMALL_SEGMENT = 2 * MIB  # what small blocks are cut from
MIN_LARGE_ALLOC = 10 * MIB  # a request from here on gets a segment of its own size
LARGE_SEGMENT = 20 * MIB  # what large blocks below that are cut from (a setting; this is its default)
ROUND_LARGE = 2 * MIB  # segments made to measure are a multiple of this
UNLIMITED = (1 << 64) - 1  # in PyTorch: std::numeric_limits<size_t>::max()


def round_up(size, multiple):
    return (size + multiple - 1) // multiple * multiple


def round_size(size, config):
    """The size of the block for a request of `size` bytes."""
    if size < MIN_BLOCK:
        return MIN_BLOCK
    if config.rounds_up:
        divisions = config.divisions(size)
        if divisions > 1 and size > MIN_BLOCK * divisions:
            return round_to_division(size, divisions)
    return (size + MIN_BLOCK - 1) // MIN_BLOCK * MIN_BLOCK


def round_to_division(size, divisions):
    """`size` rounded up to the next of the steps into which the range between two powers of two is divided.

    With 4 divisions 1200 becomes 1280, since 1024 to 2048 has the steps 1024, 1280, 1536, 1792. Then
    requests that differ by little (batches of sentences, say) get blocks of the same size, and each can use
    another's.
    """
    power = 1 << (size.bit_length() - 1)
    return round_up(size, max(power // divisions, 1))


def segment_size(size, config):
    """The size of the segment that is made for a block of `size`."""
    if size <= SMALL_SIZE:
        return SMALL_SEGMENT
    if size < MIN_LARGE_ALLOC:
        return config.large_segment_size
    return round_up(size, ROUND_LARGE)


def format_size(size):
    """As in messages: "20.00 MiB". In PyTorch: `format_size` in `c10/core/CachingDeviceAllocator.h`."""
    if size <= 1024:
        return f"{size} bytes"
    if size <= MIB:
        return f"{size / 1024:.2f} KiB"
    if size <= 1 << 30:
        return f"{size / MIB:.2f} MiB"
    return f"{size / (1 << 30):.2f} GiB"
