"""Where two boxes of one tensor overlap. In PyTorch: `torch/distributed/checkpoint/resharding.py`."""


def _check_shard_metadata_pair_overlap(shard1, shard2):
    """Whether the boxes have an element in common."""
    return all(
        start1 < start2 + length2 and start2 < start1 + length1
        for start1, length1, start2, length2 in zip(shard1.offsets, shard1.sizes, shard2.offsets, shard2.sizes)
    )


def _shards_get_overlap_region_wrt_saved_tensor(saved_shard, current_shard):
    """For each dimension (dimension, where the overlap begins in the saved box, where in the current one, length)."""
    narrows = []
    sides = zip(saved_shard.offsets, saved_shard.sizes, current_shard.offsets, current_shard.sizes)
    for dim, (saved, saved_length, current, current_length) in enumerate(sides):
        start = max(saved, current)
        end = min(saved + saved_length, current + current_length)
        narrows.append((dim, start - saved, start - current, end - start))
    return narrows
