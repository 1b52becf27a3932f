"""Which ranks stand along a dimension of a mesh: sizes and strides of a grid of ranks.

In PyTorch: `torch/distributed/_mesh_layout.py`, which is written after the layouts of CuTe.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product


@dataclass(frozen=True)
class _FlatLayout:
    """One dimension of a mesh. It steps through the ranks as nested loops of these sizes and strides do, the last one fastest.

    Most dimensions are one loop; a dimension that was made of two that do not touch needs both. Loops of one step are left out
    and loops that continue each other are one, so that equal dimensions compare equal.
    """

    shape: tuple
    stride: tuple

    def __init__(self, shape, stride):
        loops = []
        for size, step in zip(shape, stride, strict=True):
            if size == 1:
                continue
            if loops and loops[-1][1] == size * step:
                loops[-1] = loops[-1][0] * size, step
            else:
                loops.append((size, step))
        sizes, steps = zip(*loops, strict=True) if loops else ((), ())
        object.__setattr__(self, "shape", sizes)
        object.__setattr__(self, "stride", steps)

    def numel(self):
        """How many ranks stand along it."""
        return math.prod(self.shape)

    def all_ranks_from_zero(self):
        """The ranks along it, if its first one is rank 0."""
        steps = product(*(range(0, n * step, step) for n, step in zip(self.shape, self.stride, strict=True)))
        return [sum(step) for step in steps]

    def cosize(self):
        """One more than the largest of these."""
        return max(self.all_ranks_from_zero()) + 1

    def global_ranks(self, world_size):
        """All ranks below `world_size`, divided into lists that are this dimension, shifted."""
        pattern, seen, groups = self.all_ranks_from_zero(), set(), []
        for first in range(world_size):
            if first not in seen:
                groups.append([first + step for step in pattern])
                seen.update(groups[-1])
        return groups

    def check_sorted(self):
        """Whether outer loops take longer steps."""
        return list(self.stride) == sorted(self.stride, reverse=True)

    def check_orthogonal(self):
        """Whether no rank comes twice."""
        ranks = self.all_ranks_from_zero()
        return len(set(ranks)) == len(ranks)

    def split(self, sizes):
        """The dimensions of these sizes that together are this one."""
        ranks = self.all_ranks_from_zero()
        parts = ([ranks[i * step] for i in range(n)] for n, step in zip(sizes, contiguous(sizes), strict=True))
        return [
            _FlatLayout(*zip(*_loops_of(part), strict=True)) if len(part) > 1 else _FlatLayout((), ()) for part in parts
        ]


def _loops_of(ranks):
    """The nested loops, as (size, stride), that step through these ranks, which begin at 0."""
    if len(ranks) == 1:
        return []
    run = next((i for i, rank in enumerate(ranks) if rank != i * ranks[1]), len(ranks))
    return [*_loops_of(ranks[::run]), (run, ranks[1])]


@dataclass(frozen=True)
class _MeshLayout(Sequence):
    """The dimensions of a mesh."""

    axes: tuple

    def __init__(self, axes):
        object.__setattr__(self, "axes", tuple(axes))

    def __len__(self):
        return len(self.axes)

    def __getitem__(self, index):
        return self.axes[index]

    @classmethod
    def from_sizes_strides(cls, sizes, strides=None):
        strides = contiguous(sizes) if strides is None else strides
        return cls([_FlatLayout((n,), (step,)) for n, step in zip(sizes, strides, strict=True)])

    @property
    def top_level_sizes(self):
        return tuple(axis.numel() for axis in self)

    def numel(self):
        return math.prod(self.top_level_sizes)

    def cosize(self):
        return self.collapse().cosize()

    def collapse(self):
        """All dimensions as one."""
        return _FlatLayout([n for axis in self for n in axis.shape], [step for axis in self for step in axis.stride])


def contiguous(sizes):
    """The strides of a grid of these sizes without gaps."""
    return [math.prod(sizes[i + 1 :]) for i in range(len(sizes))]
