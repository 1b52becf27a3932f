"""One rank sends, another receives. In PyTorch: `torch/distributed/distributed_c10d.py`."""
from readtorch.distributed.collectives import _check_single_tensor
from readtorch.distributed.distributed_c10d import (_canonicalize_group_rank, _group_or_default_group,
                                                    _rank_not_in_group,
                                                    _warn_not_in_group, get_global_rank, get_rank)

__all__ = ["P2POp", "batch_isend_irecv", "irecv", "isend", "recv", "send"]


def isend(tensor, dst=None, group=None, tag=0, group_dst=None):
    """Begin to send `tensor` to rank `dst`; returns a Work. The tensor must not change until that is
    complete.
    """
    group = _group_or_default_group(group)
    _check_single_tensor(tensor, "tensor")
    if _rank_not_in_group(group):
        return _warn_not_in_group("isend")
    return group.send([tensor], _canonicalize_group_rank(group, dst, group_dst), tag)


def irecv(tensor, src=None, group=None, tag=0, group_src=None):
    """Begin to receive into `tensor` from rank `src` (None: from whichever sends); returns a Work."""
    _check_single_tensor(tensor, "tensor")
    if _rank_not_in_group(group):
        return _warn_not_in_group("irecv")
    group = _group_or_default_group(group)
    if src is None and group_src is None:
        return group.recv_anysource([tensor], tag)
    return group.recv([tensor], _canonicalize_group_rank(group, src, group_src), tag)


def send(tensor, dst=None, group=None, tag=0, group_dst=None):
    """Send `tensor` to rank `dst`. May wait until the other side receives. ValueError if that is this rank.
    """
    group = _group_or_default_group(group)
    if _rank_not_in_group(group):
        return _warn_not_in_group("send")
    to = _canonicalize_group_rank(group, dst, group_dst)
    _check_not_self_rank(group, to, "destination")
    isend(tensor, group=group, tag=tag, group_dst=to).wait()
    return None


def recv(tensor, src=None, group=None, tag=0, group_src=None):
    """Receive into `tensor` from rank `src` (None: from whichever sends). Returns the sender's global rank.
    """
    work = irecv(tensor, src=src, group=group, tag=tag, group_src=group_src)
    if work is None:
        return -1
    work.wait()
    return get_global_rank(_group_or_default_group(group), work.source_rank())


class P2POp:
    """A send or a receive to come, for `batch_isend_irecv`. op: `isend` or `irecv`; peer: the other global
    rank.
    """

    def __init__(self, op, tensor, peer=None, group=None, tag=0, group_peer=None):
        if op not in (isend, irecv):
            raise ValueError("Invalid ``op``. Expected ``op`` to be of type ``torch.distributed.isend`` or "
                             "``torch.distributed.irecv``.")
        _check_single_tensor(tensor, "tensor")
        self.op = op
        self.tensor = tensor
        self.group = _group_or_default_group(group)
        self.group_peer = _canonicalize_group_rank(self.group, peer, group_peer)
        self.peer = get_global_rank(self.group, self.group_peer)
        self.tag = tag

    def __repr__(self):
        me, peer = get_rank(self.group), self.group_peer
        source, destination = (me, peer) if self.op is isend else (peer, me)
        return (f"P2POp({self.op.__name__} pg={self.group.group_name}, group_src={source}, "
                f"group_dst={destination},  {self.tensor.shape}, {self.tensor.dtype})")


def batch_isend_irecv(p2p_op_list):
    """Begin all sends and receives of a list of P2POp; returns their Works. The order in it does not matter.
    """
    if not isinstance(p2p_op_list, list) or not all(isinstance(p, P2POp) for p in p2p_op_list):
        raise ValueError("Invalid ``p2p_op_list``. Each op is expected to to be of type "
                         "``torch.distributed.P2POp``.")
    if not all(p.group is p2p_op_list[0].group for p in p2p_op_list):
        raise ValueError("All ops need to use the same group.")
    works = []
    for p in p2p_op_list:
        peer = {"group_dst" if p.op is isend else "group_src": p.group_peer}
        works.append(p.op(p.tensor, group=p.group, tag=p.tag, **peer))
    return works


def _check_not_self_rank(group, rank, rank_type):
    if group.rank() == rank:
        raise ValueError(f"Invalid {rank_type} rank: {rank_type} rank should not be the same as the rank of "
                         "the current process.")
