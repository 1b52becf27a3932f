"""Attention with several heads. In PyTorch: part of `torch/nn/modules/activation.py`. See the chapter
"Layers, functional, init".
"""
import readtorch
from readtorch.nn import functional as F
from readtorch.nn import init
from readtorch.nn.functional.attention import _canonical_mask, _none_or_dtype
from readtorch.nn.modules.linear import NonDynamicallyQuantizableLinear
from readtorch.nn.modules.module import Module
from readtorch.nn.parameter import Parameter

__all__ = ["MultiheadAttention"]


class MultiheadAttention(Module):
    """Attention of each position of `query` to those of `key`, in several heads with their own projections.

    query (L, N, E), key (S, N, kdim), value (S, N, vdim), with N first if `batch_first`, or all without N.
    Returns the output, shaped as the query, and the weights (N, L, S) or None. In a bool mask True means:
    must not be seen.
    Raises ValueError for sizes that are not positive, AssertionError for shapes that do not fit.
    A. Vaswani and others: Attention is all you need (2017).
    """

    __constants__ = ["batch_first"]

    def __init__(
        self, embed_dim, num_heads, dropout=0.0, bias=True, add_bias_kv=False, add_zero_attn=False, kdim=None,
        vdim=None, batch_first=False, device=None, dtype=None,
    ) -> None:
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError("embed_dim and num_heads must be greater than 0,"
                             f" got embed_dim={embed_dim} and num_heads={num_heads} instead")
        super().__init__()
        self.embed_dim = embed_dim
        self.kdim = kdim if kdim is not None else embed_dim
        self.vdim = vdim if vdim is not None else embed_dim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != self.embed_dim:
            raise AssertionError("embed_dim must be divisible by num_heads")
        self._make_parameters(bias, add_bias_kv, device=device, dtype=dtype)
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _make_parameters(self, bias, add_bias_kv, **kind):
        """One packed weight for query, key and value if their features are as many, else three."""
        E = self.embed_dim

        def new(*shape):
            return Parameter(readtorch.empty(shape, **kind))
        if self._qkv_same_embed_dim:
            self.in_proj_weight = new(3 * E, E)
            for name in ("q_proj_weight", "k_proj_weight", "v_proj_weight"):
                self.register_parameter(name, None)
        else:
            self.q_proj_weight = new(E, E)
            self.k_proj_weight = new(E, self.kdim)
            self.v_proj_weight = new(E, self.vdim)
            self.register_parameter("in_proj_weight", None)
        self.register_parameter("in_proj_bias", new(3 * E) if bias else None)
        self.out_proj = NonDynamicallyQuantizableLinear(E, E, bias=bias, **kind)
        if add_bias_kv:
            self.bias_k, self.bias_v = new(1, 1, E), new(1, 1, E)
        else:
            self.bias_k = self.bias_v = None

    def _reset_parameters(self) -> None:
        for weight in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if weight is not None:
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.constant_(self.in_proj_bias, 0.0)
            init.constant_(self.out_proj.bias, 0.0)
        for bias in (self.bias_k, self.bias_v):
            if bias is not None:
                init.xavier_normal_(bias)

    def __setstate__(self, state):
        state.setdefault("_qkv_same_embed_dim", True)  # checkpoints of PyTorch 1.1 do not have it
        super().__setstate__(state)

    def forward(
        self, query, key, value, key_padding_mask=None, need_weights=True, attn_mask=None,
        average_attn_weights=True, is_causal=False,
    ):
        """key_padding_mask: (N, S); attn_mask: (L, S) or (N·heads, L, S); each bool, or numbers to be added.

        is_causal: a hint that `attn_mask` is the causal mask.
        """
        given = [mask for mask in (attn_mask, key_padding_mask) if mask is not None]
        float_masks = any(mask.is_floating_point() for mask in given)
        key_padding_mask = _canonical_mask(
            key_padding_mask, "key_padding_mask", _none_or_dtype(attn_mask), "attn_mask", query.dtype)
        attn_mask = _canonical_mask(attn_mask, "attn_mask", None, "", query.dtype, check_other=False)
        if not float_masks and self._may_take_fast_path(query, key, value):
            mask, mask_type = self.merge_masks(attn_mask, key_padding_mask, query)
            return readtorch._native_multi_head_attention(
                query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias,
                self.out_proj.weight, self.out_proj.bias, mask, need_weights, average_attn_weights, mask_type)
        turned = self.batch_first and query.dim() == 3
        if turned:
            query, key, value = _batch_second(query, key, value)
        output, weights = F.multi_head_attention_forward(
            query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias,
            self.bias_k, self.bias_v, self.add_zero_attn, self.dropout, self.out_proj.weight,
            self.out_proj.bias, training=self.training, key_padding_mask=key_padding_mask,
            need_weights=need_weights, attn_mask=attn_mask,
            use_separate_proj_weight=not self._qkv_same_embed_dim, q_proj_weight=self.q_proj_weight,
            k_proj_weight=self.k_proj_weight, v_proj_weight=self.v_proj_weight,
            average_attn_weights=average_attn_weights, is_causal=is_causal)
        return (output.transpose(1, 0) if turned else output), weights

    def _may_take_fast_path(self, query, key, value):
        """Whether one operator that records no graph may do it all: `_native_multi_head_attention`."""
        # in PyTorch: also for nested tensors, not under autocast, and torch.backends.mha can switch it off.
        fitting = (
            query is key is value and query.dim() == 3 and self.batch_first and not self.training
            and self._qkv_same_embed_dim and self.num_heads % 2 == 0 and self.bias_k is None
            and self.bias_v is None and not self.add_zero_attn
            and self.in_proj_weight is not None and self.in_proj_bias is not None
            and query.dtype == self.in_proj_weight.dtype == self.in_proj_bias.dtype
        )
        tensors = (query, self.in_proj_weight, self.in_proj_bias, self.out_proj.weight, self.out_proj.bias)
        return fitting and not (readtorch.is_grad_enabled() and any(t.requires_grad for t in tensors))

    def merge_masks(self, attn_mask, key_padding_mask, query):
        """Both masks as one, and its kind: None, 1 for padding (N, S) alone, 2 for (N, heads, L, S)."""
        if attn_mask is None:
            return key_padding_mask, None if key_padding_mask is None else 1
        batch_size, seq_len, _ = query.shape
        if attn_mask.dim() == 3:
            merged = attn_mask.view(batch_size, -1, seq_len, seq_len)
        else:
            merged = attn_mask.view(1, 1, seq_len, seq_len).expand(batch_size, self.num_heads, -1, -1)
        if key_padding_mask is not None:
            padding = key_padding_mask.view(batch_size, 1, 1, seq_len)
            merged = merged + padding.expand(-1, self.num_heads, -1, -1)
        return merged, 2


def _batch_second(query, key, value):
    """Each transposed; tensors that were the same stay the same."""
    turned_query = query.transpose(1, 0)
    turned_key = turned_query if key is query else key.transpose(1, 0)
    turned_value = turned_key if value is key else value.transpose(1, 0)
    return turned_query, turned_key, turned_value
