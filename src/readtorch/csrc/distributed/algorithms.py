"""All-reduce made of sends and receives, four ways, and what each costs.

PyTorch has no such file: the libraries behind its backends (Gloo, NCCL, MPI) choose among these. Explained in the chapter
"Process groups, DDP and SyncBatchNorm".

An algorithm gets `links`: what this rank can do with the others.
    links.rank, links.size
    links.send(array, to)               links.recv(array, source)   fills array
    links.exchange(array, to, into, source)
        both at once: every rank sends before it receives, and none may block
Each works in place on a one-dimensional array, and leaves the same bits on every rank.

Note [ What a message costs ]
A message of B bytes takes α + βB seconds: α the latency, 1/β the bandwidth; reducing takes γ for each byte.
With few bytes the number of messages one after the other decides, with many the bytes that each rank has to
send:

                          messages in a row        bytes sent by a rank
    ring                  2 (n - 1)                2 B (n - 1) / n        nearly the least possible
    recursive doubling    log2 n                   B log2 n
    tree                  2 log2 n                 up to B log2 n, by the root on the way down
    halving and doubling  2 log2 n                 2 B (n - 1) / n        the ring's bytes in fewer messages

So libraries take a tree or doubling for small arrays, and a ring or halving for large ones.
R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective communication operations in MPICH (2005).
"""

import math

import numpy as np

from readtorch.c10.tensor_impl import wrap

from .types import RedOpType, combine

# ------------------------------------------------------------------------- ring


def ring_all_reduce(links, array, op=RedOpType.SUM):
    """Each rank speaks to its two neighbours only. First every part goes once round and collects all values
    (reduce-scatter), then the sums go round (all-gather)."""
    parts = np.array_split(array, links.size)
    ring_reduce_scatter(links, parts, op)
    ring_all_gather(links, parts)


def ring_reduce_scatter(links, parts, op):
    """Afterwards part rank + 1 is complete on this rank."""
    left, right = (links.rank - 1) % links.size, (links.rank + 1) % links.size
    for step in range(links.size - 1):
        outgoing = parts[(links.rank - step) % links.size]
        growing = parts[(links.rank - step - 1) % links.size]
        incoming = np.empty_like(growing)
        links.exchange(outgoing, right, incoming, left)
        combine(op, growing, incoming)


def ring_all_gather(links, parts, shift=1):
    """Each rank begins with the part of number rank + shift and passes on what came last."""
    left, right = (links.rank - 1) % links.size, (links.rank + 1) % links.size
    for step in range(links.size - 1):
        outgoing = parts[(links.rank + shift - step) % links.size]
        incoming = parts[(links.rank + shift - step - 1) % links.size]
        links.exchange(outgoing, right, incoming, left)


# ------------------------------------------------------------------------- tree


def tree_all_reduce(links, array, op=RedOpType.SUM):
    """Up a binomial tree to rank 0, and down again."""
    tree_reduce(links, array, op)
    tree_broadcast(links, array)


def tree_reduce(links, array, op, root=0):
    """A rank hands its sum to the one without its lowest set bit, and is done. Only the root keeps it all."""
    me, bit = (links.rank - root) % links.size, 1
    incoming = np.empty_like(array)
    while bit < links.size:
        if me & bit:
            links.send(array, (me - bit + root) % links.size)
            return
        if me + bit < links.size:
            links.recv(incoming, (me + bit + root) % links.size)
            combine(op, array, incoming)
        bit *= 2


def tree_broadcast(links, array, root=0):
    """The same tree from the root down: who has the array gives it to ever nearer neighbours."""
    me, bit = (links.rank - root) % links.size, 1
    while bit < links.size and not me & bit:
        bit *= 2
    if me:
        links.recv(array, (me - bit + root) % links.size)
    while bit > 1:
        bit //= 2
        if me + bit < links.size:
            links.send(array, (me + bit + root) % links.size)


# ------------------------------------------------------------------------- recursive doubling


def recursive_doubling_all_reduce(links, array, op=RedOpType.SUM):
    """In round k each rank exchanges its sum with the one whose number differs in bit k: the sums double in
    reach.

    Ranks beyond the largest power of two first give their values to a partner and get the result at the end.
    """
    power = 1 << (links.size.bit_length() - 1)
    extra = links.size - power
    incoming = np.empty_like(array)
    if links.rank >= power:
        links.send(array, links.rank - power)
        links.recv(array, links.rank - power)
        return
    if links.rank < extra:
        links.recv(incoming, links.rank + power)
        combine(op, array, incoming)
    bit = 1
    while bit < power:
        partner = links.rank ^ bit
        links.exchange(array, partner, incoming, partner)
        combine_in_order(op, array, incoming, links.rank < partner)
        bit *= 2
    if links.rank < extra:
        links.send(array, links.rank + power)


def combine_in_order(op, array, incoming, mine_first):
    """The lower rank's value stands left on both sides, so that both get the same bits."""
    if mine_first:
        combine(op, array, incoming)
    else:
        combine(op, incoming, array)
        array[...] = incoming


# ------------------------------------------------------------------------- recursive halving and doubling


def halving_doubling_all_reduce(links, array, op=RedOpType.SUM):
    """R. Rabenseifner's: partners exchange the half that the other keeps, the farthest first, until each rank has the sums of one
    part; then the same way back. Ranks beyond the largest power of two stand aside as in `recursive_doubling_all_reduce`.
    """
    power = 1 << (links.size.bit_length() - 1)
    if links.rank >= power:
        links.send(array, links.rank - power)
        links.recv(array, links.rank - power)
        return
    if links.rank + power < links.size:
        incoming = np.empty_like(array)
        links.recv(incoming, links.rank + power)
        combine(op, array, incoming)
    ends = np.cumsum([0, *map(len, np.array_split(array, power))])
    halve(links, array, ends, op, power)
    double(links, array, ends, power)
    if links.rank + power < links.size:
        links.send(array, links.rank + power)


def piece(array, ends, part, count):
    """The parts part … part + count."""
    return array[ends[part] : ends[part + count]]


def halve(links, array, ends, op, power):
    """Reduce-scatter: afterwards part `rank` is complete on this rank."""
    bit = power // 2
    while bit:
        partner = links.rank ^ bit
        kept = piece(array, ends, links.rank & ~(bit - 1), bit)
        incoming = np.empty_like(kept)
        links.exchange(piece(array, ends, partner & ~(bit - 1), bit), partner, incoming, partner)
        combine(op, kept, incoming)
        bit //= 2


def double(links, array, ends, power):
    """All-gather: each exchange doubles what is complete."""
    bit = 1
    while bit < power:
        partner = links.rank ^ bit
        mine, theirs = (piece(array, ends, rank & ~(bit - 1), bit) for rank in (links.rank, partner))
        links.exchange(mine, partner, theirs, partner)
        bit *= 2


ALL_REDUCE = {
    "ring": ring_all_reduce,
    "tree": tree_all_reduce,
    "recursive doubling": recursive_doubling_all_reduce,
    "halving and doubling": halving_doubling_all_reduce,
}


# ------------------------------------------------------------------------- cost


def ring_cost(ranks, bytes_, alpha, beta, gamma=0.0):
    """Seconds that `ring_all_reduce` takes: see Note [ What a message costs ]."""
    part = bytes_ / ranks
    return 2 * (ranks - 1) * (alpha + beta * part) + (ranks - 1) * gamma * part


def tree_cost(ranks, bytes_, alpha, beta, gamma=0.0):
    """Seconds that `tree_all_reduce` takes."""
    levels = math.ceil(math.log2(ranks))
    return levels * (2 * (alpha + beta * bytes_) + gamma * bytes_)


def recursive_doubling_cost(ranks, bytes_, alpha, beta, gamma=0.0):
    """Seconds that `recursive_doubling_all_reduce` takes."""
    power = 1 << (ranks.bit_length() - 1)
    rounds = power.bit_length() - 1
    one = alpha + beta * bytes_
    fold = 0 if ranks == power else 2 * one + gamma * bytes_
    return rounds * (one + gamma * bytes_) + fold


def halving_doubling_cost(ranks, bytes_, alpha, beta, gamma=0.0):
    """Seconds that `halving_doubling_all_reduce` takes."""
    power = 1 << (ranks.bit_length() - 1)
    rounds, moved = power.bit_length() - 1, bytes_ * (power - 1) / power
    fold = 0 if ranks == power else 2 * (alpha + beta * bytes_) + gamma * bytes_
    return 2 * (rounds * alpha + beta * moved) + gamma * moved + fold


COST = {
    "ring": ring_cost,
    "tree": tree_cost,
    "recursive doubling": recursive_doubling_cost,
    "halving and doubling": halving_doubling_cost,
}


class GroupLinks:
    """`links` over the sends and receives of a process group. Counts what this rank sent: `messages`,
    `bytes`.
    """

    def __init__(self, group):
        self.group = group
        self.rank = group.rank()
        self.size = group.size()
        self.messages = self.bytes = 0

    def send(self, array, to):
        self._begin_send(array, to).wait()

    def recv(self, array, source):
        self.group.recv([wrap(array)], source).wait()

    def exchange(self, array, to, into, source):
        sending = self._begin_send(array, to)
        self.recv(into, source)
        sending.wait()

    def _begin_send(self, array, to):
        self.messages += 1
        self.bytes += array.nbytes
        return self.group.send([wrap(array)], to)
