"""Attention over sequences of several lengths: of each entry by itself, so no mask hides padding, and none is computed.

PyTorch gives the values and offsets of all entries to one kernel on a GPU, and on the CPU goes over the entries, as here. In PyTorch:
`torch/nested/_internal/sdpa.py`.
"""

import readtorch
from readtorch.nn import functional as F

from .nested_tensor import NestedTensor


def _validate_sdpa_input(query, key, value, attn_mask):
    tensors = (query, key, value)

    def refuse(expected, *found):
        raise ValueError(f"Expected query, key, and value to {expected}".format(*found))

    if not all(isinstance(t, NestedTensor) for t in tensors):
        refuse(
            "be nested tensors, but got query.is_nested: {}, key.is_nested: {}, and value.is_nested: {} instead.",
            *(t.is_nested for t in tensors),
        )
    if len({t.dtype for t in tensors}) > 1:
        refuse(
            "have the same dtype, but got query.dtype: {}, key.dtype: {}, and value.dtype: {} instead.",
            *(t.dtype for t in tensors),
        )
    if len({t.device for t in tensors}) > 1:
        refuse(
            "have the same device type, but got query.device: {}, key.device: {}, and value.device: {} instead.",
            *(t.device for t in tensors),
        )
    if min(t.dim() for t in tensors) < 3:
        refuse(
            "all be at least 3 dimensional, but got query.dim: {}, key.dim: {} and value.dim: {} instead.",
            *(t.dim() for t in tensors),
        )
    if len({t._ragged_idx for t in tensors}) > 1:
        refuse(
            "all be ragged on the same dimension, but got ragged dims {}, {}, and {}, respectively.",
            *(t._ragged_idx for t in tensors),
        )
    if attn_mask is not None:
        raise ValueError("Masks are not yet supported!")


def jagged_scaled_dot_product_attention(
    query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False
):
    """Of query (B, H, j1, D), key (B, H, j2, D) and value (B, H, j2, E): a NestedTensor (B, H, j1, E).

    Also of (B, j1, …, L, D), where j1 is one more dimension of a batch. Raises ValueError for what does not fit together and for masks,
    RuntimeError for other shapes. in PyTorch: on the CPU RuntimeError for is_causal, too, and for tensors that are not
    contiguous once j1 stands before H.
    """
    _validate_sdpa_input(query, key, value, attn_mask)
    options = dict(dropout_p=dropout_p, is_causal=is_causal, scale=scale, enable_gqa=enable_gqa)
    if query._ragged_idx == 1 and min(t.dim() for t in (query, key, value)) > 3:
        return query._like(F.scaled_dot_product_attention(*(t.values() for t in (query, key, value)), **options))
    if query._ragged_idx != 2 or {query.dim(), key.dim(), value.dim()} != {4}:
        raise RuntimeError("No viable backend for scaled_dot_product_attention was found.")
    entries = zip(query.unbind(), key.unbind(), value.unbind(), strict=True)
    attended = [F.scaled_dot_product_attention(q, k, v, **options).transpose(0, 1) for q, k, v in entries]
    by_position = query.transpose(1, 2)._like(readtorch.cat(attended))
    return by_position.transpose(1, 2)
