"""One rank's part of one collective, and whether the parts of all ranks fit together.

In PyTorch: `torch/csrc/distributed/c10d/ProcessGroupWrapper.cpp` (`CollectiveFingerPrint`).

Note [ Do all ranks mean the same? ]
A collective is a promise that every rank of the group calls it, in the same order, with tensors that fit.
Nothing in a program enforces it, and a rank that breaks it makes the others wait for ever or add up the wrong
numbers. So each call leaves a fingerprint: its number in the group, its name, shape, element type and
reduction. They are compared before any data moves. in PyTorch: only under TORCH_DISTRIBUTED_DEBUG=DETAIL,
because it costs each collective a round of messages.
"""
import json
from typing import NamedTuple

import numpy as np


class Collective:
    """What a rank brings and what it wants.

    source: the contiguous array that it brings, or None; target: the one that it wants filled, or None. Where
    an array has a part for every rank, those are its rows: (ranks, *shape). all_to_all alone has parts of
    unequal length, counted in `source_counts` and `target_counts`.
    """

    __slots__ = ("name", "source", "target", "op", "root", "source_counts", "target_counts", "copies",
                 "finger")

    def __init__(self, name, source, target, fits, op=None, root=None, source_counts=None,
                 target_counts=None):
        self.name = name
        self.source = source
        self.target = target
        self.op = op  # a RedOpType, if it reduces
        self.root = root  # the group rank that the data comes from or goes to, if there is one
        self.source_counts = source_counts  # elements for each rank
        self.target_counts = target_counts  # elements from each rank
        self.copies = []  # (tensor's array, part of target): copied when target is filled
        shape, dtype = ((), "") if fits is None else (fits.shape, fits.dtype.name)
        uneven = None if source_counts is None else (tuple(source_counts), tuple(target_counts))
        self.finger = Fingerprint(0, name, shape, dtype, "" if op is None else op.name, root, uneven)

    def deliver(self):
        """Copy what came to where the caller wants it."""
        for array, part in self.copies:
            array[...] = part


class Fingerprint(NamedTuple):
    """What must be equal on all ranks; the split sizes of an all_to_all must fit in pairs."""

    number: int  # of the collective, counted from 1 in each group
    name: str
    shape: tuple
    dtype: str
    op: str
    root: int | None
    counts: tuple | None

    def __str__(self):
        parts = [f"SequenceNumber={self.number}", f"OpType={self.name.replace('_', '').upper()}"]
        if self.dtype:
            parts += [f"TensorShape={list(self.shape)}", f"TensorDtypes={self.dtype}"]
        if self.op:
            parts.append(f"ReduceOp={self.op}")
        if self.root is not None:
            parts.append(f"Root={self.root}")
        return f"CollectiveFingerPrint({', '.join(parts)})"


def written(finger):
    """A fingerprint as bytes, for another process."""
    return json.dumps(finger).encode()


def fingerprint_of(data):
    """What was `written`; ValueError or TypeError for anything else."""
    number, name, shape, dtype, op, root, counts = json.loads(data)
    counts = None if counts is None else (tuple(counts[0]), tuple(counts[1]))
    return Fingerprint(number, str(name), tuple(shape), str(dtype), str(op), root, counts)


_ASPECTS = {"number": "Sequence number", "name": "Op type", "shape": "Tensor shapes",
            "dtype": "Tensor dtypes",
            "op": "Reduce op", "root": "Root rank"}


def disagreement(prints, ranks):
    """What is wrong with the fingerprints of all ranks of a group, in words; None if they fit.

    ranks: the global rank behind each. The odd one out is named first: the one that differs from most others.
    """
    if all(p == prints[0] for p in prints) and prints[0].counts is None:
        return None
    usual = max(prints, key=lambda p: sum(p[:6] == other[:6] for other in prints))
    for i, print_ in enumerate(prints):
        if print_[:6] != usual[:6]:
            return _mismatch(ranks[i], print_, ranks[prints.index(usual)], usual)
    return _split_mismatch(prints, ranks)


def _mismatch(rank, print_, other_rank, other):
    aspects = [f"{words}: {_shown(getattr(print_, field))} vs {_shown(getattr(other, field))}"
               for field, words in _ASPECTS.items() if getattr(print_, field) != getattr(other, field)]
    return (f"Detected mismatch between collectives on ranks. Rank {rank} is running collective: {print_}, "
            "but Rank "
            f"{other_rank} is running collective: {other}. Collectives differ in the following aspects: "
            f"{', '.join(aspects)}")


def _shown(value):
    if isinstance(value, tuple):
        return list(value)
    return "none" if value in (None, "") else value  # root 0 is a root


def _split_mismatch(prints, ranks):
    """all_to_all: what rank i sends to rank j must be as long as what j expects from i."""
    for i, sender in enumerate(prints):
        for j, receiver in enumerate(prints):
            if sender.counts and sender.counts[0][j] != receiver.counts[1][i]:
                return (f"Detected mismatch between collectives on ranks. In {sender} Rank {ranks[i]} sends "
                        f"{sender.counts[0][j]} elements to Rank {ranks[j]}, which expects "
                        f"{receiver.counts[1][i]}")
    return None


# ------------------------------------------------------------------------- parts of an array

def offsets(counts):
    """Where each rank's part begins, and where the last one ends."""
    return np.concatenate(([0], np.cumsum(counts))).tolist()
