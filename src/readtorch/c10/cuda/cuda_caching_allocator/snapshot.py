"""A snapshot of all that an allocator holds: segments, and the blocks in them.

In PyTorch: `snapshot` in `c10/cuda/CUDACachingAllocator.cpp`, and `THCPModule_memorySnapshot` in
`torch/csrc/cuda/Module.cpp`, which makes dictionaries of it. Explained in the chapter "The caching
allocator".
"""

from .block import NO_POOL
from .history import frames_of


def segments_of(allocator, pool_id=NO_POOL):
    """A device's segments, by address, as `torch.cuda.memory_snapshot()` shows them, and
    `registration_counter`.

    An expandable segment is shown as one for each range that is mapped. With a pool's id: that private
    pool's only.
    """
    heads = [block for block in all_blocks(allocator, pool_id) if block.prev is None or not block.prev.mapped]
    return [describe_segment(head) for head in sorted(heads, key=lambda block: block.address)]


def all_blocks(allocator, pool_id=NO_POOL):
    """Every block with memory, in no order."""
    pools = [allocator.small_blocks, allocator.large_blocks]
    for private in allocator.private_pools.values():
        pools += [private.small_blocks, private.large_blocks]
    blocks = [block for pool in pools for block in pool.blocks()] + list(allocator.active_blocks.values())
    return blocks if pool_id == NO_POOL else [block for block in blocks if block.pool.id == pool_id]


def describe_segment(head):
    blocks = mapped_run(head)
    active = [block for block in blocks if not block.is_free]
    return {
        "device": head.device,
        "address": head.address,
        "total_size": sum(block.size for block in blocks),
        "allocated_size": sum(block.size for block in blocks if block.allocated),
        "active_size": sum(block.size for block in active),
        "requested_size": sum(block.requested_size for block in active),
        "stream": head.stream,
        "segment_type": "small" if head.pool.is_small else "large",
        "segment_pool_id": head.pool.id,
        "is_expandable": head.segment is not None,
        "registration_counter": head.counter,  # ours: C++ has it, Python does not see it
        "frames": frames_of(head.segment_context),
        "blocks": [describe_block(block) for block in blocks],
    }


def mapped_run(head):
    """The block and those behind it, as far as there is memory."""
    blocks = []
    while head is not None and head.mapped:
        blocks.append(head)
        head = head.next
    return blocks


def describe_block(block):
    state = "active_allocated" if block.allocated else "inactive" if block.is_free else "active_pending_free"
    return {
        "address": block.address,
        "size": block.size,
        "requested_size": block.requested_size,
        "state": state,
        "frames": frames_of(block.context),
    }
