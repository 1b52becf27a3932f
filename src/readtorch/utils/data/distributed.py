"""A sampler that gives each of several processes its share of the indices.

In PyTorch: `torch/utils/data/distributed.py`. See the chapters "Dataset, Sampler, DataLoader" and "Process
groups, DDP and SyncBatchNorm".
"""

import math

import readtorch
from readtorch.utils.data.sampler import Sampler, _T_co

__all__ = ["DistributedSampler"]


class DistributedSampler(Sampler[_T_co]):
    """Every `num_replicas`-th index from `rank` on, of an order in which all ranks agree.

    num_replicas, rank: by default those of the process group. drop_last: leave out what cannot be shared out
    evenly; otherwise the first indices come again to fill up. All ranks must have the same length: those that
    average gradients wait for each other after every batch.

    Shuffled from `seed + epoch`: without `set_epoch(epoch)` before a pass, every pass has the same order.
    Raises ValueError for a rank outside of [0, num_replicas), RuntimeError where nothing can be distributed.
    """

    def __init__(self, dataset, num_replicas=None, rank=None, shuffle=True, seed=0, drop_last=False):
        num_replicas = _process_group().get_world_size() if num_replicas is None else num_replicas
        rank = _process_group().get_rank() if rank is None else rank
        if rank >= num_replicas or rank < 0:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.drop_last = drop_last
        whole_rounds, left_over = divmod(len(dataset), num_replicas)
        self.num_samples = whole_rounds if drop_last or not left_over else whole_rounds + 1
        self.total_size = self.num_samples * num_replicas
        self.shuffle = shuffle
        self.seed = seed

    def __iter__(self):
        indices = self._shared_order()
        indices = indices[: self.total_size] if self.drop_last else self._filled_up(indices)
        if len(indices) != self.total_size:  # the dataset has another length than it had
            raise AssertionError(f"Number of indices ({len(indices)}) does not match total_size ({self.total_size})")
        return iter(indices[self.rank : self.total_size : self.num_replicas])

    def _shared_order(self):
        """The same on all ranks: it depends on nothing but the seed and the epoch."""
        n = len(self.dataset)
        if not self.shuffle:
            return list(range(n))
        generator = readtorch.Generator()
        generator.manual_seed(self.seed + self.epoch)
        return readtorch.randperm(n, generator=generator).tolist()

    def _filled_up(self, indices):
        missing = self.total_size - len(indices)
        repeats = 1 if missing <= len(indices) else math.ceil(missing / len(indices))
        return indices + (indices * repeats)[:missing]

    def __len__(self):
        return self.num_samples

    def set_epoch(self, epoch):
        """Say which epoch comes, so that it is shuffled differently from the last."""
        self.epoch = epoch


def _process_group():
    """`readtorch.distributed`, looked up when it is needed: a sampler with a rank of its own has no need."""
    import readtorch.distributed as dist

    if not dist.is_available():
        raise RuntimeError("Requires distributed package to be available")
    return dist
