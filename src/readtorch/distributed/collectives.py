"""Collectives: what all ranks of a group do together. In PyTorch: `torch/distributed/distributed_c10d.py`.

Each blocks until it is complete, or with async_op=True returns a `Work` at once. A rank that is not in the
group gets a warning and nothing happens.
"""
import itertools
from datetime import timedelta

from readtorch import Tensor
from readtorch.csrc.distributed.types import ReduceOp
from readtorch.distributed.distributed_c10d import (_canonicalize_group_rank, _check_valid_timeout,
                                                    _group_or_default_group, _rank_not_in_group,
                                                    _warn_not_in_group)

__all__ = ["all_gather", "all_gather_into_tensor", "all_gather_single", "all_reduce", "all_reduce_coalesced",
           "all_to_all", "all_to_all_single", "barrier", "broadcast", "gather", "monitored_barrier", "reduce",
           "reduce_scatter", "reduce_scatter_single", "reduce_scatter_tensor", "scatter", "supports_complex"]


def all_reduce(tensor, op=ReduceOp.SUM, group=None, async_op=False):
    """Reduce `tensor` over all ranks, in place on all of them."""
    _check_single_tensor(tensor, "tensor")
    if _rank_not_in_group(group):
        return _warn_not_in_group("all_reduce")
    if tensor.is_complex() and not supports_complex(op):
        raise ValueError(f"all_reduce does not support {op} on complex tensors")
    return _done(_group_or_default_group(group).allreduce([tensor], op), async_op)


def all_reduce_coalesced(tensors, op=ReduceOp.SUM, group=None, async_op=False):
    """Reduce several tensors, one after the other. in PyTorch: deprecated; flattened into one message."""
    _check_tensor_list(tensors, "tensors")
    _ensure_all_tensors_same_dtype(tensors)
    if _rank_not_in_group(group):
        return _warn_not_in_group("all_reduce_coalesced")
    works = [_group_or_default_group(group).allreduce([t], op) for t in tensors]
    for work in works[:-1]:
        work.wait()
    return _done(works[-1], async_op)


def reduce(tensor, dst=None, op=ReduceOp.SUM, group=None, async_op=False, group_dst=None):
    """Reduce `tensor` over all ranks, in place on rank `dst` only."""
    group = _group_or_default_group(group)
    _check_single_tensor(tensor, "tensor")
    if _rank_not_in_group(group):
        return _warn_not_in_group("reduce")
    root = _canonicalize_group_rank(group, dst, group_dst)
    return _done(group.reduce([tensor], root, op), async_op)


def broadcast(tensor, src=None, group=None, async_op=False, group_src=None):
    """Copy the `tensor` of rank `src` into that of every rank."""
    group = _group_or_default_group(group)
    _check_single_tensor(tensor, "tensor")
    if _rank_not_in_group(group):
        return _warn_not_in_group("broadcast")
    root = _canonicalize_group_rank(group, src, group_src)
    return _done(group.broadcast([tensor], root), async_op)


def all_gather(tensor_list, tensor, group=None, async_op=False):
    """Copy the `tensor` of every rank into `tensor_list`, on all ranks."""
    _check_tensor_list(tensor_list, "tensor_list")
    _check_single_tensor(tensor, "tensor")
    _ensure_all_tensors_same_dtype(tensor_list, tensor)
    if _rank_not_in_group(group):
        return _warn_not_in_group("all_gather")
    return _done(_group_or_default_group(group).allgather([tensor_list], [tensor]), async_op)


def all_gather_single(output_tensor, input_tensor, group=None, async_op=False):
    """Copy the tensors of all ranks, one behind the other, into `output_tensor`, on all ranks.

    output_tensor: (ranks · n, …) or (ranks, n, …) for an input of (n, …).
    """
    _check_single_tensor(input_tensor, "input_tensor")
    _check_single_tensor(output_tensor, "output_tensor")
    _ensure_all_tensors_same_dtype(output_tensor, input_tensor)
    if _rank_not_in_group(group):
        return _warn_not_in_group("all_gather_single")
    return _done(_group_or_default_group(group).all_gather_single(output_tensor, input_tensor), async_op)


# in PyTorch: deprecated since 2.13, but what most programs still say
all_gather_into_tensor = all_gather_single


def gather(tensor, gather_list=None, dst=None, group=None, async_op=False, group_dst=None):
    """Copy the `tensor` of every rank into `gather_list` on rank `dst`, which alone gives one (0 by default).
    """
    _check_single_tensor(tensor, "tensor")
    _check_optional_list(gather_list, "gather_list", tensor)
    group = _group_or_default_group(group)
    if _rank_not_in_group(group):
        return _warn_not_in_group("gather")
    root = _canonicalize_group_rank(group, 0 if dst is None and group_dst is None else dst, group_dst)
    _check_list_of_root(group.rank() == root, gather_list, "gather_list", "destination")
    return _done(group.gather([gather_list] if gather_list else [], [tensor], root), async_op)


def scatter(tensor, scatter_list=None, src=None, group=None, async_op=False, group_src=None):
    """Copy the i-th of `scatter_list` on rank `src`, which alone gives one (0 by default), into rank i's
    `tensor`.
    """
    _check_single_tensor(tensor, "tensor")
    _check_optional_list(scatter_list, "scatter_list", tensor)
    group = _group_or_default_group(group)
    if _rank_not_in_group(group):
        return _warn_not_in_group("scatter")
    root = _canonicalize_group_rank(group, 0 if src is None and group_src is None else src, group_src)
    _check_list_of_root(group.rank() == root, scatter_list, "scatter_list", "source")
    return _done(group.scatter([tensor], [scatter_list] if scatter_list else [], root), async_op)


def reduce_scatter(output, input_list, op=ReduceOp.SUM, group=None, async_op=False):
    """Reduce a list of tensors over all ranks; rank i gets the i-th in `output`."""
    _check_single_tensor(output, "output")
    _check_tensor_list(input_list, "input_list")
    _ensure_all_tensors_same_dtype(output, input_list)
    if _rank_not_in_group(group):
        return _warn_not_in_group("reduce_scatter")
    return _done(_group_or_default_group(group).reduce_scatter([output], [input_list], op), async_op)


def reduce_scatter_single(output, input, op=ReduceOp.SUM, group=None, async_op=False):
    """Reduce `input` (ranks · n, …) over all ranks; rank i gets the i-th part (n, …) in `output`."""
    _check_single_tensor(output, "output")
    _check_single_tensor(input, "input")
    if _rank_not_in_group(group):
        return _warn_not_in_group("reduce_scatter_single")
    return _done(_group_or_default_group(group).reduce_scatter_single(output, input, op), async_op)


reduce_scatter_tensor = reduce_scatter_single  # the older name, as with all_gather_into_tensor


def all_to_all_single(output, input, output_split_sizes=None, input_split_sizes=None, group=None,
                      async_op=False):
    """Send part i of `input` to rank i; part i of `output` comes from rank i.

    Split sizes count along dimension 0; without them the parts are equal.
    """
    if _rank_not_in_group(group):
        return _warn_not_in_group("all_to_all_single")
    _check_single_tensor(output, "output")
    _check_single_tensor(input, "input")
    _ensure_all_tensors_same_dtype(output, input)
    pg = _group_or_default_group(group)
    return _done(pg.all_to_all_single(output, input, output_split_sizes or [], input_split_sizes or []),
                 async_op)


def all_to_all(output_tensor_list, input_tensor_list, group=None, async_op=False):
    """Send tensor i of the input list to rank i; tensor i of the output list comes from rank i."""
    if _rank_not_in_group(group):
        return _warn_not_in_group("all_to_all")
    _check_tensor_list(output_tensor_list, "output_tensor_list")
    _check_tensor_list(input_tensor_list, "input_tensor_list")
    _ensure_all_tensors_same_dtype(output_tensor_list, input_tensor_list)
    return _done(_group_or_default_group(group).alltoall(output_tensor_list, input_tensor_list), async_op)


def barrier(group=None, async_op=False, device_ids=None, timeout=None):
    """Wait until all ranks have come here."""
    if _rank_not_in_group(group):
        return _warn_not_in_group("barrier")
    return _done(_group_or_default_group(group).barrier(timeout=timeout), async_op)


def monitored_barrier(group=None, timeout=None, wait_all_ranks=False):
    """A barrier that says which ranks did not come within `timeout` (a timedelta): RuntimeError on all
    others.

    in PyTorch: for Gloo only, and names just the first missing rank unless `wait_all_ranks`; here every
    collective names those who are missing.
    """
    if _rank_not_in_group(group):
        return _warn_not_in_group("monitored_barrier")
    pg = _group_or_default_group(group)
    timeout = timedelta(seconds=pg._timeout) if timeout is None else timeout
    _check_valid_timeout(timeout)
    try:
        pg.barrier(timeout=timeout).wait()
    except RuntimeError as error:
        raise RuntimeError(f"[Rank {pg.ranks[pg.rank()]}]: failed to pass monitoredBarrier in "
                           f"{timeout / timedelta(milliseconds=1):.0f} ms\n Original exception: \n"
                           f"{error}") from error


def supports_complex(reduceOp):
    """Whether a reduction can be done on real and imaginary parts by themselves."""
    return reduceOp in (ReduceOp.SUM, ReduceOp.AVG)


# ------------------------------------------------------------------------- checks

def _done(work, async_op):
    if async_op:
        return work
    work.wait()
    return None


def _check_single_tensor(param, name):
    if not isinstance(param, Tensor):
        raise TypeError(f"""Invalid function argument. Expected parameter `{name}` of type torch.Tensor
             but got {type(param)} instead.""")


def _check_tensor_list(param, name):
    if not isinstance(param, list):
        raise TypeError(f"""Invalid function argument. Expected parameter `{name}` of type List[torch.Tensor]
             but got {type(param)} instead.""")
    if not all(isinstance(p, Tensor) for p in param):
        raise TypeError(f"""Invalid function argument. Expected parameter `{name}` of type List[torch.Tensor]
             but got {type(param)} with elements of type {[type(p) for p in param]}.""")


def _check_optional_list(tensors, name, tensor):
    if tensors:
        _check_tensor_list(tensors, name)
        _ensure_all_tensors_same_dtype(tensors, tensor)


def _check_list_of_root(at_root, tensors, name, what):
    if at_root and not tensors:
        raise ValueError(f"Argument ``{name}`` must be specified on {what} rank.")
    if not at_root and tensors:
        raise ValueError(f"Argument ``{name}`` must NOT be specified on non-{what} ranks.")


def _ensure_all_tensors_same_dtype(*tensors):
    dtypes = [t.dtype for t in itertools.chain(*(ts if isinstance(ts, list) else [ts] for ts in tensors))]
    for dtype in dtypes:
        if dtype is not dtypes[0]:
            raise ValueError(f"Invalid usage of tensors with different dtypesFound {dtypes[0]} and  {dtype}")
