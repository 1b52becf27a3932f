"""What many ranks have is written by one. In PyTorch: `torch/distributed/checkpoint/_dedup_save_plans.py`."""

import dataclasses
from collections import defaultdict


def dedup_save_plans(all_plans, save_to_lowest_rank=False):
    """The plans without repetitions: each entry stays with the rank that has the least to write so far, or the lowest."""
    holders, items = defaultdict(set), {}
    for rank, plan in enumerate(all_plans):
        for item in plan.items:
            holders[item.index].add(rank)
            items[item.index] = item
    writer, load = {}, [0] * len(all_plans)
    for index, ranks in holders.items():
        writer[index] = min(ranks) if save_to_lowest_rank else min(ranks, key=load.__getitem__)
        load[writer[index]] += items[index].tensor_storage_size() or 1
    return [
        dataclasses.replace(plan, items=[item for item in plan.items if writer[item.index] == rank])
        for rank, plan in enumerate(all_plans)
    ]
