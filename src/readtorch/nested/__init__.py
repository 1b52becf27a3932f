"""Batches of tensors of which one dimension has several lengths, without padding: the jagged layout.

In PyTorch: `torch/nested`. There is a second layout, the older strided one, which is not here.
"""

import readtorch
from readtorch import Tensor

from ._internal import ops as _ops
from ._internal.nested_tensor import NestedTensor as _NestedTensor
from ._internal.nested_tensor import (
    _rebuild_njt,
    jagged_from_list,
    jagged_from_tensor_and_lengths,
    nested_view_from_values_offsets_lengths,
    offsets_of,
)

__all__ = [
    "to_padded_tensor",
    "as_nested_tensor",
    "nested_tensor",
    "nested_tensor_from_jagged",
    "narrow",
    "masked_select",
]

readtorch.serialization.add_safe_globals([_NestedTensor, _rebuild_njt])


def _check_layout(layout, what="tensors"):
    if layout in (None, readtorch.strided):  # in PyTorch: a class of its own in C++, which is no longer developed
        raise NotImplementedError(
            "readtorch has no nested tensors of the strided layout, which is the default: pass layout=torch.jagged"
        )
    if layout != readtorch.jagged:
        raise RuntimeError(f"Specified layout is unsupported for nested {what}: {layout}")


def as_nested_tensor(ts, dtype=None, device=None, layout=None):
    """A NestedTensor of the tensors, or of the rows of one tensor, through which gradients flow back to them.

    ts: tensors with the same number of dimensions, which may differ in one size, and are copied; or a tensor (B, S, …), of which the
    result is a view where that can be. layout: `torch.jagged`; the other, the default, raises NotImplementedError.
    TypeError, RuntimeError: for what does not fit.
    """
    is_tensor_list = isinstance(ts, (list, tuple)) and all(isinstance(t, Tensor) for t in ts)
    if not isinstance(ts, Tensor) and not is_tensor_list:
        raise TypeError("as_nested_tensor(): Expected first argument to be a tensor or a list / tuple of tensors ")
    if is_tensor_list:
        _check_layout(layout)
        return jagged_from_list(ts, device=device, dtype=dtype)
    if ts.dim() < 2:
        raise RuntimeError("as_nested_tensor(): Expected tensor argument to have dim() > 1")
    if ts.is_nested:
        if layout != ts.layout:
            raise RuntimeError("as_nested_tensor(): Converting between nested tensor layouts is not supported")
        return ts.to(device=device, dtype=dtype)
    _check_layout(layout)
    batch, length = ts.shape[:2]
    values = ts.contiguous().flatten(0, 1).to(device=device, dtype=dtype)
    offsets = readtorch.arange(0, batch * length + 1, length, device=values.device)
    return nested_view_from_values_offsets_lengths(values, offsets, min_seqlen=length, max_seqlen=length)


def nested_tensor(tensor_list, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
    """A NestedTensor of copies of the tensors, or of what makes tensors, without their history.

    layout: `torch.jagged`; the other, the default, raises NotImplementedError. RuntimeError: for tensors that do not fit together.
    """
    _check_layout(layout)
    tensors = [t if isinstance(t, Tensor) else readtorch.as_tensor(t) for t in tensor_list]
    with readtorch.no_grad():
        nt = jagged_from_list(tensors, device=device, dtype=dtype)
    nt.requires_grad_(requires_grad)
    return nt.pin_memory() if pin_memory else nt


def nested_tensor_from_jagged(values, offsets=None, lengths=None, jagged_dim=None, min_seqlen=None, max_seqlen=None):
    """A NestedTensor that is a view of `values`, whose entries are values[offsets[i]:offsets[i + 1]] along the ragged dimension.

    values: (total, …). offsets: int64, of shape (B + 1,). lengths: (B,), instead of offsets, or with them for entries with holes
    between them. jagged_dim: the ragged dimension of the result, 1 if not given. min_seqlen, max_seqlen: the
    shortest and the longest length, where they are known. RuntimeError without offsets and lengths, ValueError for jagged_dim < 1.
    """
    if offsets is None:
        if lengths is None:
            raise RuntimeError("nested_tensor_from_jagged(): At least one of offsets or lengths is required.")
        offsets, lengths = offsets_of(lengths), None
    if jagged_dim is not None and jagged_dim < 1:
        raise ValueError(f"Expected jagged_dim >=1, but got {jagged_dim}.")
    ragged_idx = 1 if jagged_dim is None else jagged_dim
    return nested_view_from_values_offsets_lengths(values, offsets, lengths, ragged_idx, min_seqlen, max_seqlen)


def narrow(tensor, dim, start, length, layout=readtorch.strided):
    """The entries tensor[i, start[i]:start[i] + length[i]] of a tensor (B, S, …), as a view of it.

    start, length: ints, or int64 tensors of shape (B,). dim: 1. layout: `torch.jagged`; the other, the default, raises
    NotImplementedError. RuntimeError: for what does not fit.
    """
    for name, value in (("start", start), ("length", length)):
        if not isinstance(value, (int, readtorch.SymInt, Tensor)):
            raise RuntimeError(f"{name} must be an integer or a tensor")
    _check_layout(layout, "narrow")
    if dim != 1:
        raise RuntimeError("jagged layout only supports dim=1")
    start, length = (
        t if isinstance(t, Tensor) else readtorch.tensor([t], device=tensor.device) for t in (start, length)
    )
    return jagged_from_tensor_and_lengths(tensor, start, length)


def masked_select(tensor, mask):
    """For each row of `tensor`, along its last dimension, those of its elements where `mask` is True: a NestedTensor (rows, j).

    mask: of bools, that broadcasts to the tensor's shape. RuntimeError for sparse tensors.
    """
    if tensor.layout != readtorch.strided:
        raise RuntimeError(f"torch.nested.masked_select requires a strided tensor, given {tensor.layout}")
    if mask.layout != readtorch.strided:
        raise RuntimeError(f"torch.nested.masked_select requires a strided mask, given: {mask.layout}")
    lengths = mask.expand(tensor.shape).sum(dim=tensor.ndim - 1).view(-1)
    return nested_view_from_values_offsets_lengths(tensor.masked_select(mask), offsets_of(lengths))


def to_padded_tensor(input, padding, output_size=None):
    """A dense tensor of the entries of a NestedTensor, filled up to the same length with `padding`.

    output_size: the size of the result, of which the ragged dimension's counts. RuntimeError where there are holes.
    """
    return _ops.to_padded_tensor(input, padding, output_size)
