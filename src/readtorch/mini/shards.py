"""Written in the chapter "Shards: FSDP and DTensor": its cells are this file, put together by `tools/mini.py`."""

import math

import numpy as np

from .autograd import Tensor
from .module import Parameter

NOTHING = np.zeros(0, np.uint8)


def rows(array, i, size):
    """The i-th of `size` equal parts of the rows."""
    each = -(-len(array) // size)
    part = np.zeros((each, *array.shape[1:]), array.dtype)
    there = array[i * each:(i + 1) * each]
    part[:len(there)] = there
    return part


def joined(arrays):
    return np.concatenate([array.reshape(-1) for array in arrays])


def parted(flat, like):
    """Cut a flat array into arrays of these tensors' shapes."""
    start, parts = 0, []
    for t in like:
        count = math.prod(t.shape)
        part = flat[start:start + count]
        parts.append(part.reshape(t.shape))
        start += count
    return parts


class Rows(Parameter):
    """This rank's rows of a parameter."""


class ParamGroup:
    """The parameters of a module, a part of each here."""

    def __init__(self, module, rank):
        self.rank, self.places, self.wholes = rank, [], []
        for _, owner in module.named_modules():
            for name, p in owner._parameters.items():
                if not isinstance(p, Rows):  # a group's already
                    self.places.append((owner, name))
                    self.wholes.append(p)
        parts = [rows(p.read(), rank.rank, rank.size)
                 for p in self.wholes]
        self.shards = [Rows(Tensor.of(part)) for part in parts]
        self.is_whole = True
        self.reshard()

    def use(self, parameters):
        """Let the modules have these."""
        for (owner, name), p in zip(self.places, parameters):
            owner._parameters[name] = p

    def unshard(self):
        if self.is_whole or not self.shards:
            return
        flat = joined(shard.read() for shard in self.shards)
        parts = [parted(part, self.shards)
                 for part in self.rank.all_gather(flat)]
        for whole, *pieces in zip(self.wholes, *parts):
            numbers = joined(pieces)[:math.prod(whole.shape)]
            whole.storage.bytes = numbers.view(np.uint8)
        self.use(self.wholes)
        self.is_whole = True

    def reshard(self):
        for whole in self.wholes:
            whole.storage.bytes = NOTHING
        self.use(self.shards)
        self.is_whole = False


def reduce(group):
    """Backward is over here: a mean for each shard."""
    pairs = [(s, w) for s, w in zip(group.shards, group.wholes)
             if w.grad is not None]
    group.reshard()
    if not pairs:
        return
    size = group.rank.size
    sent = [joined(rows(w.grad.read(), i, size)
                   for _, w in pairs) for i in range(size)]
    mean = group.rank.reduce_scatter(sent) / size
    parts = parted(mean, [shard for shard, _ in pairs])
    for (shard, whole), part in zip(pairs, parts):
        whole.meta.grad = None
        new, old = Tensor.of(part), shard.grad
        shard.meta.grad = new + old if old else new


def fully_shard(module, rank):
    """Only shards from now on; whole while it computes."""
    group = ParamGroup(module, rank)
    module.group = group

    def unshard(*args):
        group.unshard()

    module.register_forward_pre_hook(unshard)
    module.register_forward_hook(lambda *args: group.reshard())
    module.register_full_backward_pre_hook(unshard)
    module.register_full_backward_hook(
        lambda *args: reduce(group))


def finish(module):
    """After backward: groups whose input needs no gradient."""
    for _, each in module.named_modules():
        group = vars(each).get("group")
        if group and group.is_whole:
            reduce(group)
