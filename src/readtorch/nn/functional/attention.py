"""Attention with several heads, and its masks. In PyTorch: part of `torch/nn/functional.py`."""
import math
import warnings
from typing import NamedTuple

import readtorch
from readtorch._C import _nn
from readtorch.nn.functional.activation import softmax
from readtorch.nn.functional.dropout import dropout
from readtorch.nn.functional.padding import pad

__all__ = ["scaled_dot_product_attention", "multi_head_attention_forward"]

linear = _nn.linear
# softmax(query · keyᵀ · scale + mask) · value, over the last two dimensions: positions and features. A bool
# mask is True where a query may look; is_causal: each query sees the keys up to its own position; enable_gqa:
# dimension -3 (heads) of key and value may be a divisor of the query's; scale: 1/√features by default.
scaled_dot_product_attention = _nn.scaled_dot_product_attention


def multi_head_attention_forward(
    query, key, value, embed_dim_to_check, num_heads, in_proj_weight, in_proj_bias, bias_k, bias_v,
    add_zero_attn, dropout_p, out_proj_weight, out_proj_bias, training=True, key_padding_mask=None,
    need_weights=True, attn_mask=None, use_separate_proj_weight=False, q_proj_weight=None, k_proj_weight=None,
    v_proj_weight=None, static_k=None, static_v=None, average_attn_weights=True, is_causal=False,
):
    """What `MultiheadAttention` computes: query (L, N, E), key and value (S, N, E), or all without N.

    Returns the output, (L, N, E) or (L, E), and the weights, (N, L, S) or (L, S) (with one more dimension of
    heads before L unless averaged), or None for weights that are not needed.
    """
    is_batched = _mha_shape_check(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not is_batched:
        query, key, value = query.unsqueeze(1), key.unsqueeze(1), value.unsqueeze(1)
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    sizes = _Sizes.of(query, num_heads)
    key_padding_mask, attn_mask, is_causal = _canonical_masks(
        key_padding_mask, attn_mask, is_causal, need_weights, query.dtype)
    _check_sizes(query, key, value, embed_dim_to_check, num_heads, use_separate_proj_weight)
    if use_separate_proj_weight:
        weights = (q_proj_weight, k_proj_weight, v_proj_weight)
        q, k, v = _separate_in_projection(query, key, value, weights, in_proj_bias)
    else:
        if in_proj_weight is None:
            raise AssertionError("use_separate_proj_weight is False but in_proj_weight is None")
        q, k, v = _in_projection_packed(query, key, value, in_proj_weight, in_proj_bias)

    masks = _Masks(_with_heads(attn_mask, sizes, key), key_padding_mask)
    k, v = _with_bias(k, v, bias_k, bias_v, static_k, static_v, sizes, masks)
    q, k, v = _by_head(q, k, v, sizes, static_k, static_v)
    if add_zero_attn:
        k, v = _with_zeros(k, v, sizes, masks)
    src_len = k.size(1)
    attn_mask = masks.merged(sizes.bsz, num_heads, src_len)
    settings = (sizes, src_len, attn_mask, dropout_p if training else 0.0, is_causal)
    if need_weights:
        output, weights = _attention_with_weights(q, k, v, settings, out_proj_weight, out_proj_bias)
        if average_attn_weights:
            weights = weights.mean(dim=1)
    else:
        output, weights = _attention_without_weights(q, k, v, settings, out_proj_weight, out_proj_bias), None
    if is_batched:
        return output, weights
    return output.squeeze(1), None if weights is None else weights.squeeze(0)


class _Sizes(NamedTuple):
    """In a trace, sizes are tensors: they are asked for once."""

    tgt_len: int
    bsz: int
    embed_dim: int
    num_heads: int
    head_dim: int

    @classmethod
    def of(cls, query, num_heads):
        tgt_len, bsz, embed_dim = query.shape
        if isinstance(embed_dim, readtorch.Tensor):
            head_dim = embed_dim.div(num_heads, rounding_mode="trunc")
        else:
            head_dim = embed_dim // num_heads
        return cls(tgt_len, bsz, embed_dim, num_heads, head_dim)


# ----------------------------------------------------------------------------------------------------- checks

def _mha_shape_check(query, key, value, key_padding_mask, attn_mask, num_heads):
    """Whether the inputs have a batch dimension. Raises AssertionError if they do not fit."""
    if query.dim() not in (2, 3):
        raise AssertionError("query should be unbatched 2D or batched 3D tensor but received "
                             f"{query.dim()}-D query tensor")
    is_batched = query.dim() == 3
    kind, dim = ("batched (3-D)", 3) if is_batched else ("unbatched (2-D)", 2)
    if key.dim() != dim or value.dim() != dim:
        raise AssertionError(f"For {kind} `query`, expected `key` and `value` to be {dim}-D"
                             f" but found {key.dim()}-D and {value.dim()}-D tensors respectively")
    if key_padding_mask is not None and key_padding_mask.dim() != dim - 1:
        raise AssertionError(f"For {kind} `query`, expected `key_padding_mask` to be `None` or {dim - 1}-D"
                             f" but found {key_padding_mask.dim()}-D tensor instead")
    if attn_mask is not None:
        if attn_mask.dim() not in (2, 3):
            raise AssertionError(f"For {kind} `query`, expected `attn_mask` to be `None`, 2-D or 3-D"
                                 f" but found {attn_mask.dim()}-D tensor instead")
        expected_shape = (num_heads, query.shape[0], key.shape[0])
        if not is_batched and attn_mask.dim() == 3 and attn_mask.shape != expected_shape:
            raise AssertionError(f"Expected `attn_mask` shape to be {expected_shape} but got "
                                 f"{attn_mask.shape}")
    return is_batched


def _check_sizes(query, key, value, embed_dim_to_check, num_heads, use_separate_proj_weight):
    embed_dim = query.shape[2]
    if embed_dim != embed_dim_to_check:
        raise AssertionError(f"was expecting embedding dimension of {embed_dim_to_check}, but got "
                             f"{embed_dim}")
    if embed_dim % num_heads:
        raise AssertionError(f"embed_dim {embed_dim} not divisible by num_heads {num_heads}")
    if use_separate_proj_weight:
        if key.shape[:2] != value.shape[:2]:
            raise AssertionError(f"key's sequence and batch dims {key.shape[:2]} do not match value's "
                                 f"{value.shape[:2]}")
    elif key.shape != value.shape:
        raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")


# ------------------------------------------------------------------------------------------------------ masks

def _canonical_mask(mask, mask_name, other_type, other_name, target_type, check_other=True):
    """A mask that is True where nothing may be seen, as numbers to add: -inf there, else 0."""
    if mask is None:
        return None
    is_float = mask.is_floating_point()
    if mask.dtype != readtorch.bool and not is_float:
        raise AssertionError(f"only bool and floating types of {mask_name} are supported")
    if check_other and other_type is not None and mask.dtype != other_type:
        warnings.warn(f"Support for mismatched {mask_name} and {other_name} "
                      "is deprecated. Use same type for both instead.", stacklevel=2)
    if is_float:
        return mask
    return readtorch.zeros_like(mask, dtype=target_type).masked_fill_(mask, float("-inf"))


def _none_or_dtype(input):
    if input is None:
        return None
    if isinstance(input, readtorch.Tensor):
        return input.dtype
    raise RuntimeError("input to _none_or_dtype() must be None or torch.Tensor")


def _canonical_masks(key_padding_mask, attn_mask, is_causal, need_weights, dtype):
    """Both masks as numbers to add. If `is_causal` says it all, the attention's own mask is not needed."""
    key_padding_mask = _canonical_mask(
        key_padding_mask, "key_padding_mask", _none_or_dtype(attn_mask), "attn_mask", dtype)
    if is_causal and attn_mask is None:
        raise RuntimeError("Need attn_mask if specifying the is_causal hint. You may use the Transformer "
                           "module method `generate_square_subsequent_mask` to create this mask.")
    if is_causal and key_padding_mask is None and not need_weights:
        return None, None, True
    attn_mask = _canonical_mask(attn_mask, "attn_mask", None, "", dtype, check_other=False)
    return key_padding_mask, attn_mask, is_causal and key_padding_mask is None


def _with_heads(attn_mask, sizes, key):
    """A mask (L, S) or (N·heads, L, S) with three dimensions."""
    if attn_mask is None:
        return None
    tgt_len, src_len = sizes.tgt_len, key.shape[0]
    if attn_mask.dim() == 2:
        if attn_mask.shape != (tgt_len, src_len):
            raise RuntimeError(f"The shape of the 2D attn_mask is {attn_mask.shape}, but should be "
                               f"{(tgt_len, src_len)}.")
        return attn_mask.unsqueeze(0)
    expected = (sizes.bsz * sizes.num_heads, tgt_len, src_len)
    if attn_mask.shape != expected:
        raise RuntimeError(f"The shape of the 3D attn_mask is {attn_mask.shape}, but should be {expected}.")
    return attn_mask


class _Masks:
    """The mask of the attention, (1 or N·heads, L, S), and the padding of the keys, (N, S), or None."""

    def __init__(self, attention, padding):
        self.attention = attention
        self.padding = padding

    def admit_one_more(self):
        """Another key was appended, which every query may see."""
        if self.attention is not None:
            self.attention = pad(self.attention, (0, 1))
        if self.padding is not None:
            self.padding = pad(self.padding, (0, 1))

    def merged(self, bsz, num_heads, src_len):
        """Their sum: (1 or N·heads, L or 1, S), or None."""
        if self.padding is None:
            return self.attention
        _check_key_padding_mask(self.padding, src_len, bsz)
        padding = self.padding.view(bsz, 1, 1, src_len).expand(-1, num_heads, -1, -1)
        padding = padding.reshape(bsz * num_heads, 1, src_len)
        return padding if self.attention is None else self.attention + padding


def _check_key_padding_mask(key_padding_mask, src_len, bsz):
    for dim, size in ((0, bsz), (1, src_len)):
        if key_padding_mask.shape[dim] != size:
            raise AssertionError(f"Expected key_padded_mask.shape[{dim}] to be {size}, but got "
                                 f"{key_padding_mask.shape[dim]}")


# ------------------------------------------------------------------------------------------------ projections

def _in_projection_packed(q, k, v, w, b=None):
    """q, k and v through their thirds of one weight (3·E, E); one product for those that are the same."""
    E = q.size(-1)
    if k is not v:
        biases = (None, None, None) if b is None else b.chunk(3)
        return tuple([linear(x, weight, bias) for x, weight, bias in zip((q, k, v), w.chunk(3), biases)])
    if q is k:
        return tuple(_apart(linear(q, w, b), 3, E))
    w_q, w_kv = w.split_with_sizes([E, E * 2])
    b_q, b_kv = (None, None) if b is None else b.split_with_sizes([E, E * 2])
    q_proj = linear(q, w_q, b_q)
    return (q_proj, *_apart(linear(k, w_kv, b_kv), 2, E))


def _apart(projected, count, E):
    """(…, count·E) as `count` tensors (…, E), each in a piece of memory of its own."""
    parts = projected.unflatten(-1, (count, E)).unsqueeze(0).transpose(0, -2).squeeze(-2).contiguous()
    return [parts[i] for i in range(count)]


def _separate_in_projection(query, key, value, weights, in_proj_bias):
    for name, weight in zip("qkv", weights):
        if weight is None:
            raise AssertionError(f"use_separate_proj_weight is True but {name}_proj_weight is None")
    biases = (None, None, None) if in_proj_bias is None else in_proj_bias.chunk(3)
    return _in_projection(query, key, value, *weights, *biases)


def _in_projection(q, k, v, w_q, w_k, w_v, b_q=None, b_k=None, b_v=None):
    """q (…, Eq), k (…, Ek) and v (…, Ev), each through its own weight, to (…, Eq)."""
    Eq = q.size(-1)
    projections = (("query", q, w_q, b_q), ("key", k, w_k, b_k), ("value", v, w_v, b_v))
    for name, x, weight, _ in projections:
        if weight.shape != (Eq, x.size(-1)):
            raise AssertionError(f"expecting {name} weights shape of {(Eq, x.size(-1))}, but got "
                                 f"{weight.shape}")
    for name, _, _, bias in projections:
        if bias is not None and bias.shape != (Eq,):
            raise AssertionError(f"expecting {name} bias shape of {(Eq,)}, but got {bias.shape}")
    return tuple([linear(x, weight, bias) for _, x, weight, bias in projections])


def _with_bias(k, v, bias_k, bias_v, static_k, static_v, sizes, masks):
    """One more key and value, which are learned."""
    if bias_k is None or bias_v is None:
        for name, bias, other in (("k", bias_k, "v"), ("v", bias_v, "k")):
            if bias is not None:
                raise AssertionError(f"bias_{name} is set but bias_{other} is None")
        return k, v
    for name, static in (("key", static_k), ("value", static_v)):
        if static is not None:
            raise AssertionError(f"bias cannot be added to static {name}.")
    k = readtorch.cat([k, bias_k.repeat(1, sizes.bsz, 1)])
    v = readtorch.cat([v, bias_v.repeat(1, sizes.bsz, 1)])
    masks.admit_one_more()
    return k, v


def _with_zeros(k, v, sizes, masks):
    """One more key and value, of zeros: somewhere to look for a query that finds nothing."""
    masks.admit_one_more()
    shape = (sizes.bsz * sizes.num_heads, 1, sizes.head_dim)
    k = readtorch.cat([k, readtorch.zeros(shape, dtype=k.dtype, device=k.device)], dim=1)
    return k, readtorch.cat([v, readtorch.zeros(shape, dtype=v.dtype, device=v.device)], dim=1)


# -------------------------------------------------------------------------------------------------- attention

def _by_head(q, k, v, sizes, static_k, static_v):
    """(L, N, E) as (N·heads, L, E/heads)."""
    def split(x, length):
        return x.view(length, sizes.bsz * sizes.num_heads, sizes.head_dim).transpose(0, 1)
    q = split(q, sizes.tgt_len)
    k = split(k, k.shape[0]) if static_k is None else _checked_static("static_k", static_k, sizes)
    v = split(v, v.shape[0]) if static_v is None else _checked_static("static_v", static_v, sizes)
    return q, k, v


def _checked_static(name, static, sizes):
    for dim, size in ((0, sizes.bsz * sizes.num_heads), (2, sizes.head_dim)):
        if static.size(dim) != size:
            raise AssertionError(f"expecting {name}.size({dim}) of {size}, but got {static.size(dim)}")
    return static


def _attention_with_weights(q, k, v, settings, out_proj_weight, out_proj_bias):
    """In steps, because the weights (N, heads, L, S) are wanted, too."""
    (tgt_len, bsz, embed_dim, num_heads, _), src_len, attn_mask, dropout_p, is_causal = settings
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
    output = linear(output, out_proj_weight, out_proj_bias)
    output = output.view(tgt_len, bsz, output.size(1))
    return output, weights.view(bsz, num_heads, tgt_len, src_len)


def _attention_without_weights(q, k, v, settings, out_proj_weight, out_proj_bias):
    (tgt_len, bsz, embed_dim, num_heads, head_dim), src_len, attn_mask, dropout_p, is_causal = settings
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
    output = linear(output, out_proj_weight, out_proj_bias)
    return output.view(tgt_len, bsz, output.size(1))
