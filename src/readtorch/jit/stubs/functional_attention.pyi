"""Attention with several heads for the compiler: see `_nn_stubs.py`."""

# ------------------------------------------------------------------------------------------------------- masks
def _canonical_mask(
    mask: Optional[Tensor],
    mask_name: str,
    other_type: Optional[int],
    other_name: str,
    target_type: int,
    check_other: bool = True,
) -> Optional[Tensor]:
    if mask is None:
        return None
    is_float = mask.is_floating_point()
    assert is_float or mask.dtype == torch.bool, f"only bool and floating types of {mask_name} are supported"
    if check_other and other_type is not None and mask.dtype != other_type:
        warnings.warn(
            f"Support for mismatched {mask_name} and {other_name} "
            + "is deprecated. Use same type for both instead."
        )
    if is_float:
        return mask
    return torch.zeros_like(mask, dtype=target_type).masked_fill_(mask, float("-inf"))

def _none_or_dtype(input: Optional[Tensor]) -> Optional[int]:
    if input is None:
        return None
    return input.dtype

def _one_more(mask: Optional[Tensor]) -> Optional[Tensor]:
    if mask is None:
        return None
    return torch._C._nn.pad(mask, [0, 1])

def _with_heads(attn_mask: Tensor, bsz: int, tgt_len: int, src_len: int, num_heads: int) -> Tensor:
    if attn_mask.dim() == 2:
        if attn_mask.size() != [tgt_len, src_len]:
            raise RuntimeError(
                f"The shape of the 2D attn_mask is {attn_mask.size()}, but should be {[tgt_len, src_len]}."
            )
        return attn_mask.unsqueeze(0)
    expected = [bsz * num_heads, tgt_len, src_len]
    if attn_mask.size() != expected:
        raise RuntimeError(
            f"The shape of the 3D attn_mask is {attn_mask.size()}, but should be {expected}."
        )
    return attn_mask

def _merged(
    attn_mask: Optional[Tensor], padding: Optional[Tensor], bsz: int, num_heads: int, src_len: int
) -> Optional[Tensor]:
    if padding is None:
        return attn_mask
    assert padding.size(0) == bsz and padding.size(1) == src_len, (
        f"Expected key_padded_mask.shape to be {[bsz, src_len]}, but got {padding.size()}"
    )
    hidden = padding.view(bsz, 1, 1, src_len).expand(-1, num_heads, -1, -1)
    hidden = hidden.reshape(bsz * num_heads, 1, src_len)
    if attn_mask is None:
        return hidden
    return attn_mask + hidden

def _mha_shape_check(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    key_padding_mask: Optional[Tensor],
    attn_mask: Optional[Tensor],
    num_heads: int,
) -> bool:
    dim = query.dim()
    assert dim == 2 or dim == 3, (
        f"query should be unbatched 2D or batched 3D tensor but received {dim}-D query tensor"
    )
    kind = "batched (3-D)" if dim == 3 else "unbatched (2-D)"
    assert key.dim() == dim and value.dim() == dim, (
        f"For {kind} `query`, expected `key` and `value` to be {dim}-D"
        + f" but found {key.dim()}-D and {value.dim()}-D tensors respectively"
    )
    if key_padding_mask is not None:
        assert key_padding_mask.dim() == dim - 1, (
            f"For {kind} `query`, expected `key_padding_mask` to be `None` or {dim - 1}-D"
            + f" but found {key_padding_mask.dim()}-D tensor instead"
        )
    if attn_mask is not None:
        assert attn_mask.dim() == 2 or attn_mask.dim() == 3, (
            f"For {kind} `query`, expected `attn_mask` to be `None`, 2-D or 3-D"
            + f" but found {attn_mask.dim()}-D tensor instead"
        )
        if dim == 2 and attn_mask.dim() == 3:
            expected_shape = [num_heads, query.size(0), key.size(0)]
            assert attn_mask.size() == expected_shape, (
                f"Expected `attn_mask` shape to be {expected_shape} but got {attn_mask.size()}"
            )
    return dim == 3

# ------------------------------------------------------------------------------------------------- projections
def _apart(projected: Tensor, count: int, E: int) -> Tensor:
    parts = projected.unflatten(-1, [count, E]).unsqueeze(0).transpose(0, -2).squeeze(-2)
    return parts.contiguous()

def _part(bias: Optional[Tensor], i: int, E: int) -> Optional[Tensor]:
    if bias is None:
        return None
    return bias[i * E : (i + 1) * E]

def _in_projection_packed(
    q: Tensor, k: Tensor, v: Tensor, w: Tensor, b: Optional[Tensor] = None
) -> List[Tensor]:
    E = q.size(-1)
    if k is v:
        if q is k:
            packed = _apart(torch._C._nn.linear(q, w, b), 3, E)
            return [packed[0], packed[1], packed[2]]
        kv_bias = torch.jit.annotate(Optional[Tensor], None)
        if b is not None:
            kv_bias = b[E:]
        packed = _apart(torch._C._nn.linear(k, w[E:], kv_bias), 2, E)
        return [torch._C._nn.linear(q, w[:E], _part(b, 0, E)), packed[0], packed[1]]
    parts = w.chunk(3)
    return [
        torch._C._nn.linear(q, parts[0], _part(b, 0, E)),
        torch._C._nn.linear(k, parts[1], _part(b, 1, E)),
        torch._C._nn.linear(v, parts[2], _part(b, 2, E)),
    ]

def _by_head(x: Tensor, static: Optional[Tensor], rows: int, head_dim: int) -> Tensor:
    if static is None:
        return x.view(x.size(0), rows, head_dim).transpose(0, 1)
    assert static.size(0) == rows and static.size(2) == head_dim, (
        f"expecting a static key or value of {rows} rows with {head_dim} features, but got {static.size()}"
    )
    return static

# --------------------------------------------------------------------------------------------------- attention
def _attention_with_weights(
    q: Tensor, k: Tensor, v: Tensor, attn_mask: Optional[Tensor], dropout_p: float
) -> Tuple[Tensor, Tensor]:
    q = q * math.sqrt(1.0 / float(q.size(2)))
    if attn_mask is None:
        weights = torch.bmm(q, k.transpose(-2, -1))
    else:
        weights = torch.baddbmm(attn_mask, q, k.transpose(-2, -1))
    weights = torch.softmax(weights, -1)
    if dropout_p > 0.0:
        weights = torch.dropout(weights, dropout_p, True)
    return torch.bmm(weights, v).transpose(0, 1), weights

def _attention_without_weights(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    attn_mask: Optional[Tensor],
    bsz: int,
    num_heads: int,
    dropout_p: float,
    is_causal: bool,
) -> Tensor:
    tgt_len, src_len, head_dim = q.size(1), k.size(1), q.size(2)
    if attn_mask is not None:
        if attn_mask.size(0) == 1 and attn_mask.dim() == 3:
            attn_mask = attn_mask.unsqueeze(0)
        else:
            attn_mask = attn_mask.view(bsz, num_heads, -1, src_len)
    q = q.view(bsz, num_heads, tgt_len, head_dim)
    k = k.view(bsz, num_heads, src_len, head_dim)
    v = v.view(bsz, num_heads, src_len, head_dim)
    output = torch._C._nn.scaled_dot_product_attention(q, k, v, attn_mask, dropout_p, is_causal)
    return output.permute(2, 0, 1, 3)

def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Optional[Tensor],
    in_proj_bias: Optional[Tensor],
    bias_k: Optional[Tensor],
    bias_v: Optional[Tensor],
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Optional[Tensor],
    training: bool = True,
    key_padding_mask: Optional[Tensor] = None,
    need_weights: bool = True,
    attn_mask: Optional[Tensor] = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Optional[Tensor] = None,
    k_proj_weight: Optional[Tensor] = None,
    v_proj_weight: Optional[Tensor] = None,
    static_k: Optional[Tensor] = None,
    static_v: Optional[Tensor] = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> Tuple[Tensor, Optional[Tensor]]:
    is_batched = _mha_shape_check(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not is_batched:
        query, key, value = query.unsqueeze(1), key.unsqueeze(1), value.unsqueeze(1)
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
    tgt_len, bsz, embed_dim = query.size(0), query.size(1), query.size(2)
    key_padding_mask = _canonical_mask(
        key_padding_mask, "key_padding_mask", _none_or_dtype(attn_mask), "attn_mask", query.dtype
    )
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer "
            + "module method `generate_square_subsequent_mask` to create this mask."
        )
    if is_causal and key_padding_mask is None and not need_weights:
        attn_mask = None
    else:
        attn_mask = _canonical_mask(attn_mask, "attn_mask", None, "", query.dtype, False)
        is_causal = is_causal and key_padding_mask is None
    assert embed_dim == embed_dim_to_check, (
        f"was expecting embedding dimension of {embed_dim_to_check}, but got {embed_dim}"
    )
    assert embed_dim % num_heads == 0, f"embed_dim {embed_dim} not divisible by num_heads {num_heads}"
    if use_separate_proj_weight:
        assert key.size()[:2] == value.size()[:2], (
            f"key's sequence and batch dims {key.size()[:2]} do not match value's {value.size()[:2]}"
        )
        assert q_proj_weight is not None, "use_separate_proj_weight is True but q_proj_weight is None"
        assert k_proj_weight is not None, "use_separate_proj_weight is True but k_proj_weight is None"
        assert v_proj_weight is not None, "use_separate_proj_weight is True but v_proj_weight is None"
        q = torch._C._nn.linear(query, q_proj_weight, _part(in_proj_bias, 0, embed_dim))
        k = torch._C._nn.linear(key, k_proj_weight, _part(in_proj_bias, 1, embed_dim))
        v = torch._C._nn.linear(value, v_proj_weight, _part(in_proj_bias, 2, embed_dim))
    else:
        assert key.size() == value.size(), (
            f"key shape {key.size()} does not match value shape {value.size()}"
        )
        assert in_proj_weight is not None, "use_separate_proj_weight is False but in_proj_weight is None"
        q, k, v = _in_projection_packed(query, key, value, in_proj_weight, in_proj_bias)
    if attn_mask is not None:
        attn_mask = _with_heads(attn_mask, bsz, tgt_len, key.size(0), num_heads)
    if bias_k is not None and bias_v is not None:
        assert static_k is None, "bias cannot be added to static key."
        assert static_v is None, "bias cannot be added to static value."
        k = torch.cat([k, bias_k.repeat(1, bsz, 1)])
        v = torch.cat([v, bias_v.repeat(1, bsz, 1)])
        attn_mask, key_padding_mask = _one_more(attn_mask), _one_more(key_padding_mask)
    else:
        assert bias_k is None, "bias_k is set but bias_v is None"
        assert bias_v is None, "bias_v is set but bias_k is None"
    head_dim, rows = embed_dim // num_heads, bsz * num_heads
    q = _by_head(q, None, rows, head_dim)
    k = _by_head(k, static_k, rows, head_dim)
    v = _by_head(v, static_v, rows, head_dim)
    if add_zero_attn:
        zeros = torch.zeros([rows, 1, head_dim], dtype=k.dtype, device=k.device)
        k, v = torch.cat([k, zeros], dim=1), torch.cat([v, zeros], dim=1)
        attn_mask, key_padding_mask = _one_more(attn_mask), _one_more(key_padding_mask)
    attn_mask = _merged(attn_mask, key_padding_mask, bsz, num_heads, k.size(1))
    if not training:
        dropout_p = 0.0
    weights = torch.jit.annotate(Optional[Tensor], None)
    if need_weights:
        assert not (is_causal and attn_mask is None), "FIXME: is_causal not implemented for need_weights"
        output, each = _attention_with_weights(q, k, v, attn_mask, dropout_p)
        each = each.view(bsz, num_heads, tgt_len, k.size(1))
        if average_attn_weights:
            each = each.mean(dim=1)
        weights = each if is_batched else each.squeeze(0)
    else:
        output = _attention_without_weights(q, k, v, attn_mask, bsz, num_heads, dropout_p, is_causal)
    output = output.reshape(tgt_len * bsz, embed_dim)
    output = torch._C._nn.linear(output, out_proj_weight, out_proj_bias)
    output = output.view(tgt_len, bsz, output.size(1))
    if not is_batched:
        output = output.squeeze(1)
    return output, weights

# ------------------------------------------------------------------------------- of `nn/modules/transformer.py`
def _get_seq_len(src: Tensor, batch_first: bool) -> int:
    return src.size(1 if batch_first and src.dim() == 3 else 0)

def _detect_is_causal_mask(mask: Optional[Tensor], is_causal: Optional[bool], size: int) -> bool:
    if is_causal is not None:
        return is_causal
    if mask is None:
        return False
    full = torch.full([size, size], float("-inf"), dtype=mask.dtype, device=mask.device)
    causal = torch.triu(full, diagonal=1)
    return mask.size() == causal.size() and bool((mask == causal).all())

def _is_left_aligned(padding_mask: Tensor) -> bool:
    hidden = padding_mask.to(torch.bool).to(torch.int)
    return bool((hidden[:, 1:] >= hidden[:, :-1]).all())
