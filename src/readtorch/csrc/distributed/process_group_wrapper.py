"""One rank's part of one collective, and the check that the parts of all ranks fit together.

In PyTorch: `torch/csrc/distributed/c10d/ProcessGroupWrapper.cpp` (`CollectiveFingerPrint`, `runCollectiveChecks`).

Note [ Do all ranks mean the same? ]
A collective is a promise that every rank of the group calls it, in the same order, with tensors that fit.
Nothing in a program enforces it, and a rank that breaks it makes the others wait for ever or add up the wrong
numbers. So each call leaves a fingerprint: its number in the group, its name, shape, element type and
reduction. They are compared before any data moves. in PyTorch: only under TORCH_DISTRIBUTED_DEBUG=DETAIL,
because it costs each collective a round of messages.

Note [ Asking rank 0 ]
Every rank sends its fingerprint to the group's rank 0 and waits for the verdict; rank 0 collects, compares
and answers them all. So rank 0 knows who is missing when the time is over, and the verdict can say it to
everybody; a rank that fails elsewhere sends its reason the same way. Two messages a rank: what that costs is
measured by `benchmarks`. A rank waits a little longer for rank 0's verdict than rank 0 waits for the ranks.
"""

import json
import time
from typing import NamedTuple

import numpy as np

from .exception import DistBackendError

GRACE = 1.0  # seconds that a verdict may come late
OK, MISMATCH, FAILED = b"+", b"!", b"-"  # the first byte of a verdict


class Collective:
    """What a rank brings and what it wants.

    source: the contiguous array that it brings, or None; target: the one that it wants filled, or None. Where
    an array has a part for every rank, those are its rows: (ranks, *shape). all_to_all alone has parts of
    unequal length, counted in `source_counts` and `target_counts`.
    """

    __slots__ = (
        "name",
        "source",
        "target",
        "op",
        "root",
        "source_counts",
        "target_counts",
        "copies",
        "finger",
        "stream",
    )

    def __init__(self, name, source, target, fits, op=None, root=None, source_counts=None, target_counts=None):
        self.name = name
        self.source = source
        self.target = target
        self.op = op  # a RedOpType, if it reduces
        self.root = root  # the group rank that the data comes from or goes to, if there is one
        self.source_counts = source_counts  # elements for each rank
        self.target_counts = target_counts  # elements from each rank
        self.copies = []  # (tensor's array, part of target): copied when target is filled
        self.stream = None  # (device, stream) of the caller, if its tensors are on a simulated device
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


def to_bytes(finger):
    """A fingerprint as bytes, for another process."""
    return json.dumps(finger).encode()


def from_bytes(data):
    """What `to_bytes` made; ValueError or TypeError for anything else."""
    number, name, shape, dtype, op, root, counts = json.loads(data)
    counts = None if counts is None else (tuple(counts[0]), tuple(counts[1]))
    return Fingerprint(number, str(name), tuple(shape), str(dtype), str(op), root, counts)


_ASPECTS = {
    "number": "Sequence number",
    "name": "Op type",
    "shape": "Tensor shapes",
    "dtype": "Tensor dtypes",
    "op": "Reduce op",
    "root": "Root rank",
}


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
    aspects = [
        f"{words}: {_shown(getattr(print_, field))} vs {_shown(getattr(other, field))}"
        for field, words in _ASPECTS.items()
        if getattr(print_, field) != getattr(other, field)
    ]
    return (
        f"Detected mismatch between collectives on ranks. Rank {rank} is running collective: {print_}, "
        "but Rank "
        f"{other_rank} is running collective: {other}. Collectives differ in the following aspects: "
        f"{', '.join(aspects)}"
    )


def _shown(value):
    if isinstance(value, tuple):
        return list(value)
    return "none" if value in (None, "") else value  # root 0 is a root


def _split_mismatch(prints, ranks):
    """all_to_all: what rank i sends to rank j must be as long as what j expects from i."""
    for i, sender in enumerate(prints):
        for j, receiver in enumerate(prints):
            if sender.counts and sender.counts[0][j] != receiver.counts[1][i]:
                return (
                    f"Detected mismatch between collectives on ranks. In {sender} Rank {ranks[i]} sends "
                    f"{sender.counts[0][j]} elements to Rank {ranks[j]}, which expects "
                    f"{receiver.counts[1][i]}"
                )
    return None


# ------------------------------------------------------------------------- parts of an array


def offsets(counts):
    """Where each rank's part begins, and where the last one ends."""
    return np.concatenate(([0], np.cumsum(counts))).tolist()


# ------------------------------------------------------------------------- the round of checks


class Mailbox:
    """What the round needs of a backend: small messages between the ranks of a group, in order."""

    def post(self, rank, data):
        """Send bytes to group rank `rank`; never blocks."""
        raise NotImplementedError

    def poll(self, rank):
        """The next message from group rank `rank`, or None; ConnectionError if that rank has gone."""
        raise NotImplementedError

    def pause(self):
        """A `Pause` or its like, to be called when there was nothing to poll."""
        return Pause()


class Failure(Exception):
    """A reason, on its way from the rank that failed to the others."""


def agree(group, mailbox, finger, deadline):
    """Return when all ranks have begun a collective: None if it is the same, else what differs, in words.

    Raises DistBackendError if a rank will not come, or did not come by `deadline` (of time.perf_counter). It
    is raised on all ranks, and the group can then not be used any more: messages of a late rank would be
    taken for an answer.
    """
    if group.size() == 1:
        return None
    if group.rank() == 0:
        verdict = compare_all(group, mailbox, finger, deadline)
        for rank in range(1, group.size()):
            mailbox.post(rank, verdict)
    else:
        mailbox.post(0, to_bytes(finger))
        verdict = wait_for_verdict(group, mailbox, deadline + GRACE)
    kind, text = verdict[:1], verdict[1:].decode(errors="replace")
    if kind == FAILED:
        raise DistBackendError(f"{group.what(finger)}: {text}")
    return None if kind == OK else text


def compare_all(group, mailbox, finger, deadline):
    """Rank 0: collect the fingerprints of all; the verdict, as bytes."""
    prints, missing = {0: finger}, list(range(1, group.size()))
    pause = mailbox.pause()
    while missing:
        came = [rank for rank in missing if take_fingerprint(group, mailbox, rank, prints)]
        failed = [rank for rank in came if isinstance(prints[rank], Failure)]
        if failed:
            return FAILED + f"rank {group.ranks[failed[0]]} will not come, {prints[failed[0]]}".encode()
        missing = [rank for rank in missing if rank not in came]
        if missing and time.perf_counter() > deadline:
            names = ", ".join(str(group.ranks[rank]) for rank in missing)
            return FAILED + f"timed out: rank{'s' * (len(missing) > 1)} {names} did not come".encode()
        if missing and not came:
            pause()
    wrong = disagreement([prints[rank] for rank in range(group.size())], group.ranks)
    return OK if wrong is None else MISMATCH + wrong.encode()


def take_fingerprint(group, mailbox, rank, prints):
    """Put the fingerprint of a rank into `prints`, or a Failure; whether there was one."""
    try:
        data = mailbox.poll(rank)
    except ConnectionError as error:
        prints[rank] = Failure(error)
        return True
    if data is not None:
        prints[rank] = _read_fingerprint(data)
    return data is not None


def _read_fingerprint(data):
    """A fingerprint or a Failure."""
    if data[:1] == FAILED:
        return Failure(data[1:].decode(errors="replace"))
    try:
        return from_bytes(data)
    except (ValueError, TypeError, RecursionError):
        return Failure("it sent something that is no fingerprint")


def wait_for_verdict(group, mailbox, deadline):
    """The others: wait for rank 0's verdict."""
    pause = mailbox.pause()
    while True:
        try:
            verdict = mailbox.poll(0)
        except ConnectionError as error:
            return FAILED + f"rank {group.ranks[0]} will not come, {error}".encode()
        if verdict is not None:
            return verdict
        if time.perf_counter() > deadline:
            return FAILED + f"timed out: rank {group.ranks[0]} did not answer".encode()
        pause()


def announce_failure(group, mailbox, reason):
    """Tell the others that this rank will come to no further collective."""
    if group.rank() == 0:
        for rank in range(1, group.size()):
            mailbox.post(rank, FAILED + f"rank {group.ranks[0]} will not come, {reason}".encode())
    else:
        mailbox.post(0, FAILED + reason.encode())


class Pause:
    """Wait between two looks: not at all at first, then longer and longer, so that a late rank costs no
    processor.
    """

    LOOKS = 200  # without sleeping
    LONGEST = 0.001

    def __init__(self):
        self.count = 0

    def __call__(self):
        self.count += 1
        if self.count < self.LOOKS:
            time.sleep(0)
        else:
            time.sleep(min(self.LONGEST, 2e-5 * (self.count - self.LOOKS)))
