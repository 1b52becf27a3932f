"""Attention with several heads, and its masks. In PyTorch: part of `torch/nn/functional.py`."""

import math
import warnings
from typing import NamedTuple

import readtorch
from readtorch import Tensor
from readtorch._C import _nn
from readtorch.csrc.utils.disable_torch_function import hand_on, has_torch_function

from .activation import softmax
from .dropout import dropout
from .padding import pad

__all__ = ["scaled_dot_product_attention", "multi_head_attention_forward"]

linear = _nn.linear
# softmax(query · keyᵀ · scale + mask) · value, over the last two dimensions: positions and features. A bool
# mask is True where a query may look; is_causal: each query sees the keys up to its own position; enable_gqa:
# dimension -3 (heads) of key and value may be a divisor of the query's; scale: 1/√features by default.
scaled_dot_product_attention = _nn.scaled_dot_product_attention


def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """What `MultiheadAttention` computes: query (L, N, E), key and value (S, N, E), or all without N.

    Returns the output, shaped as the query, and the weights (N, L, S), unless averaged (N, heads, L, S), or None.
    """
    operands = (query, key, value, in_proj_weight, in_proj_bias, bias_k, bias_v, out_proj_weight, out_proj_bias)
    if has_torch_function(operands):
        return hand_on(multi_head_attention_forward, operands, locals())
    is_batched = _mha_shape_check(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not is_batched:
        query, key, value = query.unsqueeze(1), key.unsqueeze(1), value.unsqueeze(1)
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    sizes = _sizes_of(query, num_heads)
    key_padding_mask, attn_mask, is_causal = _canonical_masks(
        key_padding_mask, attn_mask, is_causal, need_weights, query.dtype
    )
    _check_sizes(query, key, value, embed_dim_to_check, num_heads, use_separate_proj_weight)
    weights = (in_proj_weight, q_proj_weight, k_proj_weight, v_proj_weight)
    q, k, v = _in_projections(query, key, value, use_separate_proj_weight, weights, in_proj_bias)
    attn_mask = _with_heads(attn_mask, sizes, key)
    if bias_k is not None or bias_v is not None:
        k, v = _with_bias(k, v, bias_k, bias_v, static_k, static_v, sizes)
        attn_mask, key_padding_mask = _with_one_more_key(attn_mask), _with_one_more_key(key_padding_mask)
    q = _by_head(q, sizes.tgt_len, sizes)
    k = _by_head(k, k.shape[0], sizes) if static_k is None else _checked_static("static_k", static_k, sizes)
    v = _by_head(v, v.shape[0], sizes) if static_v is None else _checked_static("static_v", static_v, sizes)
    if add_zero_attn:
        k, v = _with_zeros(k, v, sizes)
        attn_mask, key_padding_mask = _with_one_more_key(attn_mask), _with_one_more_key(key_padding_mask)
    dropout_p = dropout_p if training else 0.0
    masks, out_proj = (attn_mask, key_padding_mask), (out_proj_weight, out_proj_bias)
    output, attention = _attention(q, k, v, masks, dropout_p, is_causal, sizes, out_proj, need_weights)
    return _as_wanted(output, attention, average_attn_weights, is_batched)


def _as_wanted(
    output: Tensor, attention: Tensor | None, average: bool, is_batched: bool
) -> tuple[Tensor, Tensor | None]:
    """The weights of the heads averaged or not, and both without N if the query had none."""
    if attention is not None and average:
        attention = attention.mean(dim=1)
    if is_batched:
        return output, attention
    return output.squeeze(1), None if attention is None else attention.squeeze(0)


class _Sizes(NamedTuple):
    """In a trace sizes are tensors: each is read once."""

    tgt_len: int
    bsz: int
    embed_dim: int
    num_heads: int
    head_dim: int


def _sizes_of(query: Tensor, num_heads: int) -> _Sizes:
    tgt_len, bsz, embed_dim = query.shape
    if isinstance(embed_dim, Tensor):
        head_dim = embed_dim.div(num_heads, rounding_mode="trunc")
    else:
        head_dim = embed_dim // num_heads
    return _Sizes(tgt_len, bsz, embed_dim, num_heads, head_dim)


# Checks


def _mha_shape_check(
    query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None, attn_mask: Tensor | None, num_heads: int
) -> bool:
    """Whether the inputs have a batch dimension. Raises AssertionError if they do not fit."""
    if query.dim() not in (2, 3):
        raise AssertionError(
            f"query should be unbatched 2D or batched 3D tensor but received {query.dim()}-D query tensor"
        )
    is_batched = query.dim() == 3
    kind, dim = ("batched (3-D)", 3) if is_batched else ("unbatched (2-D)", 2)
    if key.dim() != dim or value.dim() != dim:
        raise AssertionError(
            f"For {kind} `query`, expected `key` and `value` to be {dim}-D"
            f" but found {key.dim()}-D and {value.dim()}-D tensors respectively"
        )
    if key_padding_mask is not None and key_padding_mask.dim() != dim - 1:
        raise AssertionError(
            f"For {kind} `query`, expected `key_padding_mask` to be `None` or {dim - 1}-D"
            f" but found {key_padding_mask.dim()}-D tensor instead"
        )
    if attn_mask is not None:
        if attn_mask.dim() not in (2, 3):
            raise AssertionError(
                f"For {kind} `query`, expected `attn_mask` to be `None`, 2-D or 3-D"
                f" but found {attn_mask.dim()}-D tensor instead"
            )
        expected_shape = (num_heads, query.shape[0], key.shape[0])
        if not is_batched and attn_mask.dim() == 3 and attn_mask.shape != expected_shape:
            raise AssertionError(f"Expected `attn_mask` shape to be {expected_shape} but got {attn_mask.shape}")
    return is_batched


def _check_sizes(
    query: Tensor, key: Tensor, value: Tensor, embed_dim_to_check: int, num_heads: int, use_separate_proj_weight: bool
) -> None:
    embed_dim = query.shape[2]
    if embed_dim != embed_dim_to_check:
        raise AssertionError(f"was expecting embedding dimension of {embed_dim_to_check}, but got {embed_dim}")
    if embed_dim % num_heads != 0:
        raise AssertionError(f"embed_dim {embed_dim} not divisible by num_heads {num_heads}")
    if use_separate_proj_weight:
        if key.shape[:2] != value.shape[:2]:
            raise AssertionError(
                f"key's sequence and batch dims {key.shape[:2]} do not match value's {value.shape[:2]}"
            )
    elif key.shape != value.shape:
        raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")


# Masks


def _canonical_mask(
    mask: Tensor | None,
    mask_name: str,
    other_type: readtorch.dtype | None,
    other_name: str,
    target_type: readtorch.dtype,
    check_other: bool = True,
) -> Tensor | None:
    """A mask that is True where nothing may be seen, as numbers to add: -inf there, else 0."""
    if mask is None:
        return None
    is_float = mask.is_floating_point()
    if mask.dtype != readtorch.bool and not is_float:
        raise AssertionError(f"only bool and floating types of {mask_name} are supported")
    if check_other and other_type is not None and mask.dtype != other_type:
        warnings.warn(
            f"Support for mismatched {mask_name} and {other_name} is deprecated. Use same type for both instead.",
            stacklevel=2,
        )
    if is_float:
        return mask
    return readtorch.zeros_like(mask, dtype=target_type).masked_fill_(mask, float("-inf"))


def _none_or_dtype(input: Tensor | None) -> readtorch.dtype | None:
    if input is None:
        return None
    if isinstance(input, Tensor):
        return input.dtype
    raise RuntimeError("input to _none_or_dtype() must be None or torch.Tensor")


def _canonical_masks(
    key_padding_mask: Tensor | None,
    attn_mask: Tensor | None,
    is_causal: bool,
    need_weights: bool,
    dtype: readtorch.dtype,
) -> tuple[Tensor | None, Tensor | None, bool]:
    """Both masks as numbers to add. If `is_causal` says it all, the attention's own mask is not needed."""
    key_padding_mask = _canonical_mask(
        key_padding_mask, "key_padding_mask", _none_or_dtype(attn_mask), "attn_mask", dtype
    )
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer "
            "module method `generate_square_subsequent_mask` to create this mask."
        )
    if is_causal and key_padding_mask is None and not need_weights:
        return None, None, True
    attn_mask = _canonical_mask(attn_mask, "attn_mask", None, "", dtype, check_other=False)
    return key_padding_mask, attn_mask, is_causal and key_padding_mask is None


def _with_heads(attn_mask: Tensor | None, sizes: _Sizes, key: Tensor) -> Tensor | None:
    """A mask (L, S) or (N·heads, L, S) with three dimensions."""
    if attn_mask is None:
        return None
    tgt_len, src_len = sizes.tgt_len, key.shape[0]
    if attn_mask.dim() == 2:
        expected_2d = (tgt_len, src_len)
        if attn_mask.shape != expected_2d:
            raise RuntimeError(f"The shape of the 2D attn_mask is {attn_mask.shape}, but should be {expected_2d}.")
        return attn_mask.unsqueeze(0)
    expected = (sizes.bsz * sizes.num_heads, tgt_len, src_len)
    if attn_mask.shape != expected:
        raise RuntimeError(f"The shape of the 3D attn_mask is {attn_mask.shape}, but should be {expected}.")
    return attn_mask


def _with_one_more_key(mask: Tensor | None) -> Tensor | None:
    """A key was appended, which every query may see."""
    return None if mask is None else pad(mask, (0, 1))


def _merged(attn_mask: Tensor | None, padding: Tensor | None, sizes: _Sizes, src_len: int) -> Tensor | None:
    """The sum of the masks of the attention, (1 or N·heads, L, S), and of the keys, (N, S)."""
    if padding is None:
        return attn_mask
    _check_key_padding_mask(padding, src_len, sizes.bsz)
    padding = padding.view(sizes.bsz, 1, 1, src_len).expand(-1, sizes.num_heads, -1, -1)
    padding = padding.reshape(sizes.bsz * sizes.num_heads, 1, src_len)
    return padding if attn_mask is None else attn_mask + padding


def _check_key_padding_mask(key_padding_mask: Tensor, src_len: int, bsz: int) -> None:
    for dim, size in ((0, bsz), (1, src_len)):
        if key_padding_mask.shape[dim] != size:
            raise AssertionError(
                f"Expected key_padded_mask.shape[{dim}] to be {size}, but got {key_padding_mask.shape[dim]}"
            )


# Projections


def _in_projections(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    use_separate_proj_weight: bool,
    weights: tuple[Tensor | None, Tensor | None, Tensor | None, Tensor | None],
    in_proj_bias: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor]:
    """weights: one for all three, or one each for query, key and value."""
    in_proj_weight, q_proj_weight, k_proj_weight, v_proj_weight = weights
    if not use_separate_proj_weight:
        if in_proj_weight is None:
            raise AssertionError("use_separate_proj_weight is False but in_proj_weight is None")
        return _in_projection_packed(query, key, value, in_proj_weight, in_proj_bias)
    if q_proj_weight is None:
        raise AssertionError("use_separate_proj_weight is True but q_proj_weight is None")
    if k_proj_weight is None:
        raise AssertionError("use_separate_proj_weight is True but k_proj_weight is None")
    if v_proj_weight is None:
        raise AssertionError("use_separate_proj_weight is True but v_proj_weight is None")
    b_q, b_k, b_v = _thirds(in_proj_bias)
    return _in_projection(query, key, value, q_proj_weight, k_proj_weight, v_proj_weight, b_q, b_k, b_v)


def _in_projection_packed(
    q: Tensor, k: Tensor, v: Tensor, w: Tensor, b: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """q, k and v through their thirds of one weight (3·E, E); one product for those that are the same."""
    E = q.size(-1)
    if k is not v:
        w_q, w_k, w_v = w.chunk(3)
        b_q, b_k, b_v = _thirds(b)
        return linear(q, w_q, b_q), linear(k, w_k, b_k), linear(v, w_v, b_v)
    if q is k:
        packed = _apart(linear(q, w, b), 3, E)
        return packed[0], packed[1], packed[2]
    w_q, w_kv = w.split_with_sizes([E, E * 2])
    if b is None:
        b_q = b_kv = None
    else:
        b_q, b_kv = b.split_with_sizes([E, E * 2])
    q_proj = linear(q, w_q, b_q)
    packed = _apart(linear(k, w_kv, b_kv), 2, E)
    return q_proj, packed[0], packed[1]


def _thirds(bias: Tensor | None) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    if bias is None:
        return None, None, None
    b_q, b_k, b_v = bias.chunk(3)
    return b_q, b_k, b_v


def _apart(projected: Tensor, count: int, E: int) -> Tensor:
    """(…, count·E) as (count, …, E): each of the `count` tensors in a piece of memory of its own."""
    return projected.unflatten(-1, (count, E)).unsqueeze(0).transpose(0, -2).squeeze(-2).contiguous()


def _in_projection(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    w_q: Tensor,
    w_k: Tensor,
    w_v: Tensor,
    b_q: Tensor | None = None,
    b_k: Tensor | None = None,
    b_v: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """q (…, Eq), k (…, Ek) and v (…, Ev), each through its own weight, to (…, Eq)."""
    Eq = q.size(-1)
    for name, x, weight in (("query", q, w_q), ("key", k, w_k), ("value", v, w_v)):
        expected = (Eq, x.size(-1))
        if weight.shape != expected:
            raise AssertionError(f"expecting {name} weights shape of {expected}, but got {weight.shape}")
    for name, bias in (("query", b_q), ("key", b_k), ("value", b_v)):
        if bias is not None and bias.shape != (Eq,):
            raise AssertionError(f"expecting {name} bias shape of {(Eq,)}, but got {bias.shape}")
    return linear(q, w_q, b_q), linear(k, w_k, b_k), linear(v, w_v, b_v)


def _with_bias(
    k: Tensor,
    v: Tensor,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    static_k: Tensor | None,
    static_v: Tensor | None,
    sizes: _Sizes,
) -> tuple[Tensor, Tensor]:
    """One more key and value, which are learned."""
    if bias_v is None:
        raise AssertionError("bias_k is set but bias_v is None")
    if bias_k is None:
        raise AssertionError("bias_v is set but bias_k is None")
    if static_k is not None:
        raise AssertionError("bias cannot be added to static key.")
    if static_v is not None:
        raise AssertionError("bias cannot be added to static value.")
    k = readtorch.cat([k, bias_k.repeat(1, sizes.bsz, 1)])
    v = readtorch.cat([v, bias_v.repeat(1, sizes.bsz, 1)])
    return k, v


def _with_zeros(k: Tensor, v: Tensor, sizes: _Sizes) -> tuple[Tensor, Tensor]:
    """One more key and value, of zeros: somewhere to look for a query that finds nothing."""
    shape = (sizes.bsz * sizes.num_heads, 1, sizes.head_dim)
    k = readtorch.cat([k, readtorch.zeros(shape, dtype=k.dtype, device=k.device)], dim=1)
    v = readtorch.cat([v, readtorch.zeros(shape, dtype=v.dtype, device=v.device)], dim=1)
    return k, v


# Attention


def _by_head(x: Tensor, length: int, sizes: _Sizes) -> Tensor:
    """(L, N, E) as (N·heads, L, E/heads)."""
    return x.view(length, sizes.bsz * sizes.num_heads, sizes.head_dim).transpose(0, 1)


def _checked_static(name: str, static: Tensor, sizes: _Sizes) -> Tensor:
    for dim, size in ((0, sizes.bsz * sizes.num_heads), (2, sizes.head_dim)):
        if static.size(dim) != size:
            raise AssertionError(f"expecting {name}.size({dim}) of {size}, but got {static.size(dim)}")
    return static


def _attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    masks: tuple[Tensor | None, Tensor | None],
    dropout_p: float,
    is_causal: bool,
    sizes: _Sizes,
    out_proj: tuple[Tensor, Tensor | None],
    need_weights: bool,
) -> tuple[Tensor, Tensor | None]:
    """The output (L, N, E), and the weights (N, heads, L, S) if needed. masks: of the attention and of the keys."""
    src_len = k.size(1)
    mask = _merged(masks[0], masks[1], sizes, src_len)
    if need_weights:
        return _attention_with_weights(q, k, v, mask, dropout_p, is_causal, sizes, src_len, out_proj)
    return _attention_without_weights(q, k, v, mask, dropout_p, is_causal, sizes, src_len, out_proj), None


def _attention_with_weights(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    attn_mask: Tensor | None,
    dropout_p: float,
    is_causal: bool,
    sizes: _Sizes,
    src_len: int,
    out_proj: tuple[Tensor, Tensor | None],
) -> tuple[Tensor, Tensor]:
    """In steps, because the weights (N, heads, L, S) are returned, too."""
    tgt_len, bsz, embed_dim, num_heads, _ = sizes
    q = q * math.sqrt(1.0 / float(q.shape[2]))
    if is_causal and attn_mask is None:
        raise AssertionError("FIXME: is_causal not implemented for need_weights")
    if attn_mask is None:
        weights = readtorch.bmm(q, k.transpose(-2, -1))
    else:
        weights = readtorch.baddbmm(attn_mask, q, k.transpose(-2, -1))
    weights = softmax(weights, dim=-1)
    if dropout_p > 0.0:
        weights = dropout(weights, p=dropout_p)
    output = readtorch.bmm(weights, v).transpose(0, 1).reshape(tgt_len * bsz, embed_dim)
    output = linear(output, out_proj[0], out_proj[1])
    output = output.view(tgt_len, bsz, output.size(1))
    return output, weights.view(bsz, num_heads, tgt_len, src_len)


def _attention_without_weights(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    attn_mask: Tensor | None,
    dropout_p: float,
    is_causal: bool,
    sizes: _Sizes,
    src_len: int,
    out_proj: tuple[Tensor, Tensor | None],
) -> Tensor:
    tgt_len, bsz, embed_dim, num_heads, head_dim = sizes
    if attn_mask is not None:
        if attn_mask.size(0) == 1 and attn_mask.dim() == 3:
            attn_mask = attn_mask.unsqueeze(0)
        else:
            attn_mask = attn_mask.view(bsz, num_heads, -1, src_len)
    q = q.view(bsz, num_heads, tgt_len, head_dim)
    k = k.view(bsz, num_heads, src_len, head_dim)
    v = v.view(bsz, num_heads, src_len, head_dim)
    output = scaled_dot_product_attention(q, k, v, attn_mask, dropout_p, is_causal)
    output = output.permute(2, 0, 1, 3).reshape(bsz * tgt_len, embed_dim)
    output = linear(output, out_proj[0], out_proj[1])
    return output.view(tgt_len, bsz, output.size(1))
