"""Which backend computes attention: the fused kernel if its conditions are met, else the one made of operators. On GPUs
`cuda/sdp_utils.py` says so.

In PyTorch: `aten/src/ATen/native/transformers/sdp_utils.h`, `aten/src/ATen/native/transformers/sdp_utils_cpp.cpp`.
"""

import warnings

from readtorch.aten.context import context
from readtorch.aten.sdp_backend import SDPBackend
from readtorch.c10.scalar_type import C_TYPE_NAMES, SCALAR_TYPE_NAMES
from readtorch.c10.tensor_impl import dtype_of, strides_of


def choose_backend(query, key, value, attn_mask, dropout_p, enable_gqa):
    """FLASH_ATTENTION or MATH. Raises RuntimeError, after warnings that say why, if both are ruled out."""
    allowed = context.sdp_backends
    may_flash, may_math = SDPBackend.FLASH_ATTENTION in allowed, SDPBackend.MATH in allowed
    if not may_flash and not may_math:
        raise RuntimeError(
            "No viable backend for scaled_dot_product_attention was found. This is likely "
            "due to turning off both the math kernel and the fused kernels."
        )
    reason = why_not_flash(query, key, value, attn_mask, dropout_p, enable_gqa) if may_flash else ""
    if reason is None:
        return SDPBackend.FLASH_ATTENTION
    if may_math:
        return SDPBackend.MATH
    for text in ("Flash attention kernel not used because:", reason):
        if len(text):
            warnings.warn(text, stacklevel=3)
    raise RuntimeError("No available kernel.  Aborting execution.")


def why_not_flash(query, key, value, attn_mask, dropout_p, enable_gqa):
    """The first condition of the fused kernel that is not met, in PyTorch's words and order; None if all are.

    "" is a reason, too: one that PyTorch does not report.
    """
    q, k, v = query._array, key._array, value._array
    if dropout_p > 0:
        return "Both fused kernels do not support non-zero dropout."
    return (
        why_not_these_dimensions(q, k, v)
        or why_not_these_heads(q.shape, k.shape, v.shape, enable_gqa)
        or attn_mask is not None
        and why_not_this_mask(attn_mask, q.shape, k.shape)
        or why_not_these_rows(query, key, value, attn_mask)
        or why_not_this_type(query, key, value)
        or None
    )


class Reason(str):
    """A reason. True even if it says nothing, so that reasons can be joined by `or`."""

    def __bool__(self):
        return True


NO_POSITIONS = "All fused kernels do not support zero seq_len_q or seq_len_kv."


def why_not_these_dimensions(q, k, v):
    return not q.ndim == k.ndim == v.ndim == 4 and Reason(
        "All fused kernels requires query, key and value to be 4 dimensional, but got Query dim: "
        f"{q.ndim}, Key dim: {k.ndim}, Value dim: {v.ndim} instead."
    )


def why_not_these_heads(q, k, v, enable_gqa):
    if not q[0] == k[0] == v[0]:
        return Reason(
            "For dense inputs, both fused kernels require query, key and value to have the same batch_size. "
            f"Query.sizes(): {list(q)}, Key.sizes(): {list(k)}, Value.sizes(): {list(v)} instead. To "
            "broadcast dense inputs, try using unsqueeze and expand_to before passing them into the kernel."
        )
    if not enable_gqa:
        return not q[1] == k[1] == v[1] and Reason(
            "For dense input, both fused kernels require query, key and value to have the same num_heads. "
            f"Query.sizes(): {list(q)}, Key sizes(): {list(k)}, Value sizes(): {list(v)} instead. To "
            "broadcast dense inputs, try using unsqueeze and expand_to before passing them into the kernel."
        )
    if k[1] != v[1]:
        return Reason(
            "Both fused kernels require key and value to have the same num_heads and batch_size but "
            f"got: Key sizes: {list(k)}, Value sizes: {list(v)}, Query sizes: {list(q)} instead."
        )
    return q[1] % k[1] != 0 and Reason(
        "The number of heads in key/value must divide number of heads in query."
        f"Got input Key sizes(): {k[1]}, Value sizes(): {v[1]}, Query sizes(): {q[1]} instead."
    )


def why_not_this_mask(attn_mask, q, k):
    if attn_mask.requires_grad:
        return Reason()
    mask = attn_mask._array.shape
    if attn_mask.size(-2) not in (q[2], 1) or attn_mask.size(-1) not in (k[2], 1):
        return Reason()
    if len(mask) == 2 or len(mask) == 4 and mask[0] in (1, q[0]) and mask[1] in (1, q[1]):
        return None
    return Reason(
        "Please use the following attn mask shapes: 2d - ({Q_seq_len, 1}  x {KV_seq_len, 1}); "
        "4d - ({Batch, 1} x {Num_heads, 1} x {Q_seq_len, 1}  x {KV_seq_len, 1})"
    )


def why_not_these_rows(query, key, value, attn_mask):
    """The kernel reads rows of equal length, whose elements lie one after the other."""
    q, k, v = (t._array.shape for t in (query, key, value))
    if not q[3] == k[3] == v[3]:
        return Reason(
            "Flash attention requires q,k,v to have the same last dimension. "
            f"Got Query.size(-1): {q[3]}, Key.size(-1): {k[3]}, Value.size(-1): {v[3]} instead."
        )
    if not q[2] or not k[2]:
        return Reason(NO_POSITIONS)
    steps = [step_in_row(t) for t in (query, key, value)]
    ending = (
        ""
        if attn_mask is None
        else (
            f", Attn_mask.stride(-1): {step_in_row(attn_mask)} (GPU backends require attn_mask's last dimension "
            "to have stride 1 while the CPU does not)."
        )
    )
    return steps != [1, 1, 1] and Reason(
        "All fused kernels require the last dimension of the input to have stride 1. "
        f"Got Query.stride(-1): {steps[0]}, Key.stride(-1): {steps[1]}, Value.stride(-1): {steps[2]}{ending}"
    )


def why_not_this_type(query, key, value, wanted=("Float", "Double", "BFloat16", "Half")):
    if SCALAR_TYPE_NAMES[dtype_of(query)] in wanted:
        return None
    names = [C_TYPE_NAMES[dtype_of(t)] for t in (query, key, value)]
    return Reason(
        f"Expected query, key and value to all be of dtype: {{{', '.join(wanted)}}}. "
        f"Got Query dtype: {names[0]}, Key dtype: {names[1]}, and Value dtype: {names[2]} instead."
    )


def step_in_row(t):
    array = t._array
    return array.strides[-1] // array.itemsize if array.size else strides_of(t)[-1]
