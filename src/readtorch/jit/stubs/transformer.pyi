"""Methods of `MultiheadAttention` and the transformer for the compiler: see `_nn_stubs.py`."""

class MultiheadAttention:
    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Optional[Tensor] = None,
        need_weights: bool = True,
        attn_mask: Optional[Tensor] = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> Tuple[Tensor, Optional[Tensor]]:
        float_masks = False
        if attn_mask is not None:
            float_masks = attn_mask.is_floating_point()
        if key_padding_mask is not None and key_padding_mask.is_floating_point():
            float_masks = True
        other_type = _none_or_dtype(attn_mask)
        key_padding_mask = _canonical_mask(
            key_padding_mask, "key_padding_mask", other_type, "attn_mask", query.dtype
        )
        attn_mask = _canonical_mask(attn_mask, "attn_mask", None, "", query.dtype, False)
        weight, bias, out_bias = self.in_proj_weight, self.in_proj_bias, self.out_proj.bias
        if weight is not None:
            if bias is not None and out_bias is not None:
                if not float_masks and self._may_take_fast_path(query, key, value, weight, bias, out_bias):
                    mask, mask_type = self.merge_masks(attn_mask, key_padding_mask, query)
                    return torch._native_multi_head_attention(
                        query,
                        key,
                        value,
                        self.embed_dim,
                        self.num_heads,
                        weight,
                        bias,
                        self.out_proj.weight,
                        out_bias,
                        mask,
                        need_weights,
                        average_attn_weights,
                        mask_type,
                    )
        turned = self.batch_first and query.dim() == 3
        if turned:
            if key is value:
                if query is key:
                    query = key = value = query.transpose(1, 0)
                else:
                    query, key = query.transpose(1, 0), key.transpose(1, 0)
                    value = key
            else:
                query, key, value = query.transpose(1, 0), key.transpose(1, 0), value.transpose(1, 0)
        output, weights = F.multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            training=self.training,
            key_padding_mask=key_padding_mask,
            need_weights=need_weights,
            attn_mask=attn_mask,
            use_separate_proj_weight=not self._qkv_same_embed_dim,
            q_proj_weight=self.q_proj_weight,
            k_proj_weight=self.k_proj_weight,
            v_proj_weight=self.v_proj_weight,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
        )
        return output.transpose(1, 0) if turned else output, weights

    def _may_take_fast_path(
        self, query: Tensor, key: Tensor, value: Tensor, weight: Tensor, bias: Tensor, out_bias: Tensor
    ) -> bool:
        if not (query is key and key is value and query.dim() == 3):
            return False
        if self.training or not self.batch_first or self.num_heads % 2 == 1 or self.add_zero_attn:
            return False
        if self.bias_k is not None or self.bias_v is not None:
            return False
        if query.dtype != weight.dtype or weight.dtype != bias.dtype:
            return False
        if not torch.is_grad_enabled():
            return True
        return not (
            query.requires_grad
            or weight.requires_grad
            or bias.requires_grad
            or self.out_proj.weight.requires_grad
            or out_bias.requires_grad
        )

    def merge_masks(
        self, attn_mask: Optional[Tensor], key_padding_mask: Optional[Tensor], query: Tensor
    ) -> Tuple[Optional[Tensor], Optional[int]]:
        kind = torch.jit.annotate(Optional[int], None)
        merged = key_padding_mask
        if key_padding_mask is not None:
            kind = 1
        if attn_mask is not None:
            kind = 2
            batch_size, seq_len = query.size(0), query.size(1)
            if attn_mask.dim() == 3:
                merged = attn_mask.view(batch_size, -1, seq_len, seq_len)
            else:
                each = attn_mask.view(1, 1, seq_len, seq_len)
                merged = each.expand(batch_size, self.num_heads, -1, -1)
            if key_padding_mask is not None:
                padding = key_padding_mask.view(batch_size, 1, 1, seq_len)
                merged = merged + padding.expand(-1, self.num_heads, -1, -1)
        return merged, kind

class _Layer:
    def _sa_block(
        self,
        x: Tensor,
        attn_mask: Optional[Tensor],
        key_padding_mask: Optional[Tensor],
        is_causal: bool = False,
    ) -> Tensor: ...

class TransformerEncoderLayer:
    def forward(
        self,
        src: Tensor,
        src_mask: Optional[Tensor] = None,
        src_key_padding_mask: Optional[Tensor] = None,
        is_causal: bool = False,
    ) -> Tensor:
        other_type = _none_or_dtype(src_mask)
        src_key_padding_mask = _canonical_mask(
            src_key_padding_mask, "src_key_padding_mask", other_type, "src_mask", src.dtype
        )
        src_mask = _canonical_mask(src_mask, "src_mask", None, "", src.dtype, False)
        attention = self.self_attn
        weight, bias, out_bias = attention.in_proj_weight, attention.in_proj_bias, attention.out_proj.bias
        bias_1, bias_2 = self.linear1.bias, self.linear2.bias
        norm_1, norm_2 = self.norm1.bias, self.norm2.bias
        if weight is not None and bias is not None and out_bias is not None:
            if bias_1 is not None and bias_2 is not None and norm_1 is not None and norm_2 is not None:
                tensors = [weight, bias, attention.out_proj.weight, out_bias]
                tensors += [self.norm1.weight, norm_1, self.norm2.weight, norm_2]
                tensors += [self.linear1.weight, bias_1, self.linear2.weight, bias_2]
                if self._may_take_fast_path(src, tensors):
                    mask, mask_type = self.self_attn.merge_masks(src_mask, src_key_padding_mask, src)
                    return torch._transformer_encoder_layer_fwd(
                        src,
                        self.self_attn.embed_dim,
                        self.self_attn.num_heads,
                        tensors[0],
                        tensors[1],
                        tensors[2],
                        tensors[3],
                        self.activation_relu_or_gelu == 2,
                        self.norm_first,
                        self.norm1.eps,
                        tensors[4],
                        tensors[5],
                        tensors[6],
                        tensors[7],
                        tensors[8],
                        tensors[9],
                        tensors[10],
                        tensors[11],
                        mask,
                        mask_type,
                    )
        x = src
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), src_mask, src_key_padding_mask, is_causal=is_causal)
            return x + self._ff_block(self.norm2(x))
        x = self.norm1(x + self._sa_block(x, src_mask, src_key_padding_mask, is_causal=is_causal))
        return self.norm2(x + self._ff_block(x))

    def _may_take_fast_path(self, src: Tensor, tensors: List[Tensor]) -> bool:
        attention = self.self_attn
        if src.dim() != 3 or self.training or self.activation_relu_or_gelu == 0:
            return False
        if not attention.batch_first or not attention._qkv_same_embed_dim or attention.num_heads % 2 == 1:
            return False
        if self.norm1.eps != self.norm2.eps:
            return False
        if torch.is_grad_enabled():
            for tensor in tensors:
                if tensor.requires_grad:
                    return False
            return not src.requires_grad
        return True

class TransformerDecoderLayer:
    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Optional[Tensor] = None,
        memory_mask: Optional[Tensor] = None,
        tgt_key_padding_mask: Optional[Tensor] = None,
        memory_key_padding_mask: Optional[Tensor] = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        x = tgt
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), tgt_mask, tgt_key_padding_mask, tgt_is_causal)
            x = x + self._mha_block(
                self.norm2(x), memory, memory_mask, memory_key_padding_mask, memory_is_causal
            )
            return x + self._ff_block(self.norm3(x))
        x = self.norm1(x + self._sa_block(x, tgt_mask, tgt_key_padding_mask, tgt_is_causal))
        x = self.norm2(
            x + self._mha_block(x, memory, memory_mask, memory_key_padding_mask, memory_is_causal)
        )
        return self.norm3(x + self._ff_block(x))

    def _mha_block(
        self,
        x: Tensor,
        mem: Tensor,
        attn_mask: Optional[Tensor],
        key_padding_mask: Optional[Tensor],
        is_causal: bool = False,
    ) -> Tensor: ...

class TransformerEncoder:
    def forward(
        self,
        src: Tensor,
        mask: Optional[Tensor] = None,
        src_key_padding_mask: Optional[Tensor] = None,
        is_causal: Optional[bool] = None,
    ) -> Tensor:
        src_key_padding_mask = _canonical_mask(
            src_key_padding_mask, "src_key_padding_mask", _none_or_dtype(mask), "mask", src.dtype
        )
        mask = _canonical_mask(mask, "mask", None, "", src.dtype, False)
        seq_len = _get_seq_len(src, self.layers[0].self_attn.batch_first)
        is_causal = _detect_is_causal_mask(mask, is_causal, seq_len)
        output = src
        for layer in self.layers:
            output = layer(
                output, src_mask=mask, is_causal=is_causal, src_key_padding_mask=src_key_padding_mask
            )
        if mask is None and src_key_padding_mask is not None and self.use_nested_tensor:
            if src.dim() == 3 and not self.layers[0].training and not self._records(src):
                if not self.mask_check or _is_left_aligned(src_key_padding_mask):
                    hidden = src_key_padding_mask.to(torch.bool).unsqueeze(-1)
                    output = output.masked_fill(hidden, 0.0)
        if self.norm is not None:
            output = self.norm(output)
        return output

    def _records(self, src: Tensor) -> bool:
        return torch.is_grad_enabled() and (src.requires_grad or self.layers[0].linear1.weight.requires_grad)

class TransformerDecoder:
    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Optional[Tensor] = None,
        memory_mask: Optional[Tensor] = None,
        tgt_key_padding_mask: Optional[Tensor] = None,
        memory_key_padding_mask: Optional[Tensor] = None,
        tgt_is_causal: Optional[bool] = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        seq_len = _get_seq_len(tgt, self.layers[0].self_attn.batch_first)
        causal = _detect_is_causal_mask(tgt_mask, tgt_is_causal, seq_len)
        output = tgt
        for layer in self.layers:
            output = layer(
                output,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=causal,
                memory_is_causal=memory_is_causal,
            )
        if self.norm is not None:
            output = self.norm(output)
        return output

class Transformer:
    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Optional[Tensor] = None,
        tgt_mask: Optional[Tensor] = None,
        memory_mask: Optional[Tensor] = None,
        src_key_padding_mask: Optional[Tensor] = None,
        tgt_key_padding_mask: Optional[Tensor] = None,
        memory_key_padding_mask: Optional[Tensor] = None,
        src_is_causal: Optional[bool] = None,
        tgt_is_causal: Optional[bool] = None,
        memory_is_causal: bool = False,
    ) -> Tensor: ...
