"""The transformer and its parts. In PyTorch: `torch/nn/modules/transformer.py`. See the chapter "Attention".

A. Vaswani and others: Attention is all you need (2017). With `norm_first` as in R. Xiong and others: On layer
normalization in the transformer architecture (2020).
"""

import copy
import warnings

import readtorch
from readtorch import Tensor
from readtorch._C import _has_torch_function as has_torch_function
from readtorch.nn import functional as F
from readtorch.nn.functional.attention import _canonical_mask, _none_or_dtype
from readtorch.nn.init import xavier_uniform_

from .activation import GELU, MultiheadAttention, ReLU
from .container import ModuleList
from .dropout import Dropout
from .linear import Linear
from .module import Module
from .normalization import LayerNorm

__all__ = [
    "Transformer",
    "TransformerEncoder",
    "TransformerDecoder",
    "TransformerEncoderLayer",
    "TransformerDecoderLayer",
]


class _Layer(Module):
    """What the layers of encoder and decoder have in common: self-attention and a feed-forward network."""

    __constants__ = ["norm_first"]

    def _sa_block(
        self, x: Tensor, attn_mask: Tensor | None, key_padding_mask: Tensor | None, is_causal: bool = False
    ) -> Tensor:
        x = self.self_attn(
            x, x, x, attn_mask=attn_mask, key_padding_mask=key_padding_mask, need_weights=False, is_causal=is_causal
        )[0]
        return self.dropout1(x)

    def _feed_forward(self, x: Tensor) -> Tensor:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


class TransformerEncoderLayer(_Layer):
    """Self-attention, then two linear layers; each is added to its input and normalized.

    src: (S, N, d_model), with N first if `batch_first`, or (S, d_model). activation: "relu", "gelu" or a
    function. Without a graph and in eval mode the whole layer is one operator: see `_why_not_fast`.
    """

    def __init__(
        self,
        d_model,
        nhead,
        dim_feedforward=2048,
        dropout=0.1,
        activation=F.relu,
        layer_norm_eps=1e-5,
        batch_first=False,
        norm_first=False,
        bias=True,
        device=None,
        dtype=None,
    ) -> None:
        kind = {"device": device, "dtype": dtype}
        super().__init__()
        self.self_attn = MultiheadAttention(d_model, nhead, dropout=dropout, bias=bias, batch_first=batch_first, **kind)
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **kind)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **kind)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **kind)
        self.norm2 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **kind)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        if isinstance(activation, str):
            activation = _get_activation_fn(activation)
        self.activation_relu_or_gelu = (
            1
            if activation is F.relu or isinstance(activation, ReLU)
            else 2
            if activation is F.gelu or isinstance(activation, GELU)
            else 0
        )
        self.activation = activation

    def __setstate__(self, state):
        super().__setstate__(state)
        if not hasattr(self, "activation"):
            self.activation = F.relu

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """src_mask: (S, S) or (N·nhead, S, S); src_key_padding_mask: (N, S). Bool, True: hidden; or added."""
        src_key_padding_mask = _canonical_mask(
            src_key_padding_mask, "src_key_padding_mask", _none_or_dtype(src_mask), "src_mask", src.dtype
        )
        src_mask = _canonical_mask(src_mask, "src_mask", None, "", src.dtype, check_other=False)
        if self._why_not_fast(src) == "":
            tensors = self._tensors()
            if readtorch.jit.is_scripting() or not has_torch_function([src] + tensors):
                return self._forward_fast(src, tensors, src_mask, src_key_padding_mask)
        x = src
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), src_mask, src_key_padding_mask, is_causal=is_causal)
            return x + self._ff_block(self.norm2(x))
        x = self.norm1(x + self._sa_block(x, src_mask, src_key_padding_mask, is_causal=is_causal))
        return self.norm2(x + self._ff_block(x))

    def _ff_block(self, x: Tensor) -> Tensor:
        return self.dropout2(self._feed_forward(x))

    def _why_not_fast(self, src: Tensor) -> str:
        """What keeps the one operator for the whole layer from serving; "" if it serves, unless a tensor overrides it."""
        # in PyTorch: also for nested tensors.
        if not readtorch.backends.mha.get_fastpath_enabled():
            return "torch.backends.mha.get_fastpath_enabled() was not True"
        attention = self.self_attn
        if src.dim() != 3:
            return f"input not batched; expected src.dim() of 3 but got {src.dim()}"
        if self.training:
            return "training is enabled"
        if not attention.batch_first:
            return "self_attn.batch_first was not True"
        if attention.in_proj_bias is None:
            return "self_attn was passed bias=False"
        if not attention._qkv_same_embed_dim:
            return "self_attn._qkv_same_embed_dim was not True"
        if self.activation_relu_or_gelu == 0:
            return "activation_relu_or_gelu was not True"
        if self.norm1.eps != self.norm2.eps:
            return "norm1.eps is not equal to norm2.eps"
        if attention.num_heads % 2 == 1:
            return "num_head is odd"
        if not readtorch.jit.is_scripting():
            if any(m._forward_hooks or m._forward_pre_hooks for m in self.modules()):
                return "forward pre-/hooks are attached to the module"
            if readtorch.is_autocast_enabled():
                return "autocast is enabled"
        if self._records_graph(src):
            return (
                "grad is enabled and at least one of query or the input/output projection weights or "
                "biases requires_grad"
            )
        return ""

    def _records_graph(self, src: Tensor) -> bool:
        return readtorch.is_grad_enabled() and any([t.requires_grad for t in [src] + self._tensors()])

    def _tensors(self) -> list[Tensor]:
        """All parameters, in the order in which the fast path takes them: attention, norms, feed-forward.

        None of them if one is missing.
        """
        attention, norm1, norm2 = self.self_attn, self.norm1, self.norm2
        weight, bias, out_bias = attention.in_proj_weight, attention.in_proj_bias, attention.out_proj.bias
        bias1, bias2, norm_bias1, norm_bias2 = self.linear1.bias, self.linear2.bias, norm1.bias, norm2.bias
        if weight is None or bias is None or out_bias is None:
            return []
        if bias1 is None or bias2 is None or norm_bias1 is None or norm_bias2 is None:
            return []
        return [
            weight,
            bias,
            attention.out_proj.weight,
            out_bias,
            norm1.weight,
            norm_bias1,
            norm2.weight,
            norm_bias2,
            self.linear1.weight,
            bias1,
            self.linear2.weight,
            bias2,
        ]

    def _forward_fast(
        self, src: Tensor, tensors: list[Tensor], src_mask: Tensor | None, src_key_padding_mask: Tensor | None
    ) -> Tensor:
        attention = self.self_attn
        weight, bias, out_weight, out_bias, norm1, norm_bias1, norm2, norm_bias2, w1, b1, w2, b2 = tensors
        mask, mask_type = attention.merge_masks(src_mask, src_key_padding_mask, src)
        return readtorch._transformer_encoder_layer_fwd(
            src,
            attention.embed_dim,
            attention.num_heads,
            weight,
            bias,
            out_weight,
            out_bias,
            self.activation_relu_or_gelu == 2,
            self.norm_first,
            self.norm1.eps,
            norm1,
            norm_bias1,
            norm2,
            norm_bias2,
            w1,
            b1,
            w2,
            b2,
            mask,
            mask_type,
        )


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to the encoder's result, then two linear layers; each added to its input and
    normalized.

    tgt: (T, N, d_model), memory: (S, N, d_model), with N first if `batch_first`, or both without N.
    """

    def __init__(
        self,
        d_model,
        nhead,
        dim_feedforward=2048,
        dropout=0.1,
        activation=F.relu,
        layer_norm_eps=1e-5,
        batch_first=False,
        norm_first=False,
        bias=True,
        device=None,
        dtype=None,
    ) -> None:
        kind = {"device": device, "dtype": dtype}
        super().__init__()
        attention = {"dropout": dropout, "batch_first": batch_first, "bias": bias, **kind}
        self.self_attn = MultiheadAttention(d_model, nhead, **attention)
        self.multihead_attn = MultiheadAttention(d_model, nhead, **attention)
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **kind)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **kind)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **kind)
        self.norm2 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **kind)
        self.norm3 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **kind)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.dropout3 = Dropout(dropout)
        self.activation = _get_activation_fn(activation) if isinstance(activation, str) else activation

    def __setstate__(self, state):
        state.setdefault("activation", F.relu)
        super().__setstate__(state)

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        x = tgt
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), tgt_mask, tgt_key_padding_mask, tgt_is_causal)
            x = x + self._mha_block(self.norm2(x), memory, memory_mask, memory_key_padding_mask, memory_is_causal)
            return x + self._ff_block(self.norm3(x))
        x = self.norm1(x + self._sa_block(x, tgt_mask, tgt_key_padding_mask, tgt_is_causal))
        x = self.norm2(x + self._mha_block(x, memory, memory_mask, memory_key_padding_mask, memory_is_causal))
        return self.norm3(x + self._ff_block(x))

    def _mha_block(
        self, x: Tensor, mem: Tensor, attn_mask: Tensor | None, key_padding_mask: Tensor | None, is_causal: bool = False
    ) -> Tensor:
        x = self.multihead_attn(
            x, mem, mem, attn_mask=attn_mask, key_padding_mask=key_padding_mask, is_causal=is_causal, need_weights=False
        )[0]
        return self.dropout2(x)

    def _ff_block(self, x: Tensor) -> Tensor:
        return self.dropout3(self._feed_forward(x))


class TransformerEncoder(Module):
    """`num_layers` copies of one layer in a row, with the same initial parameters, then `norm`.

    enable_nested_tensor: in eval mode and without a graph, positions hidden by `src_key_padding_mask` come
    out as 0 (in PyTorch: they are not computed at all). Warns if the layer cannot do that.
    """

    __constants__ = ["norm"]

    def __init__(self, encoder_layer, num_layers, norm=None, enable_nested_tensor=True, mask_check=True) -> None:
        super().__init__()
        self.layers = _get_clones(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        self.use_nested_tensor = enable_nested_tensor
        self.mask_check = mask_check
        reason = _why_not_nested(encoder_layer)
        if enable_nested_tensor and reason:
            warnings.warn(
                f"enable_nested_tensor is True, but self.use_nested_tensor is False because encoder_layer{reason}",
                stacklevel=2,
            )
            self.use_nested_tensor = False

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        """is_causal: a hint that `mask` is the causal mask; None: look."""
        src_key_padding_mask = _canonical_mask(
            src_key_padding_mask, "src_key_padding_mask", _none_or_dtype(mask), "mask", src.dtype
        )
        mask = _canonical_mask(mask, "mask", None, "", src.dtype, check_other=False)
        drops_padding = self._drops_padding(src, mask, src_key_padding_mask)
        if drops_padding and src_key_padding_mask is not None:
            hidden = _behind_the_end(src_key_padding_mask)
            src_key_padding_mask = readtorch.zeros_like(src_key_padding_mask).masked_fill_(hidden, float("-inf"))
        seq_len = _get_seq_len(src, self.layers[0].self_attn.batch_first)
        is_causal = _detect_is_causal_mask(mask, is_causal, seq_len)
        output = src
        for layer in self.layers:
            output = layer(output, src_mask=mask, is_causal=is_causal, src_key_padding_mask=src_key_padding_mask)
        if drops_padding and src_key_padding_mask is not None:
            output = output.masked_fill(src_key_padding_mask.to(readtorch.bool).unsqueeze(-1), 0.0)
        return output if self.norm is None else self.norm(output)

    def _drops_padding(self, src: Tensor, mask: Tensor | None, src_key_padding_mask: Tensor | None) -> bool:
        """Whether PyTorch would put the sequences without their padding into a nested tensor here."""
        first = self.layers[0]
        if not readtorch.backends.mha.get_fastpath_enabled() or not getattr(self, "use_nested_tensor", False):
            return False
        if first.training or src.dim() != 3 or src_key_padding_mask is None:
            return False
        if getattr(self, "mask_check", True) and not _is_left_aligned(src, src_key_padding_mask):
            return False
        if not readtorch.jit.is_scripting():
            if readtorch.is_autocast_enabled() or has_torch_function([src] + first._tensors()):
                return False
        return mask is None and not first._records_graph(src)


class TransformerDecoder(Module):
    """`num_layers` copies of one layer in a row, with the same initial parameters, then `norm`."""

    __constants__ = ["norm"]

    def __init__(self, decoder_layer, num_layers, norm=None) -> None:
        super().__init__()
        self.layers = _get_clones(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """tgt_is_causal: a hint that `tgt_mask` is the causal mask; None: look."""
        seq_len = _get_seq_len(tgt, self.layers[0].self_attn.batch_first)
        tgt_is_causal = _detect_is_causal_mask(tgt_mask, tgt_is_causal, seq_len)
        output = tgt
        for layer in self.layers:
            output = layer(
                output,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=tgt_is_causal,
                memory_is_causal=memory_is_causal,
            )
        return output if self.norm is None else self.norm(output)


class Transformer(Module):
    """An encoder for the source and a decoder for the target, which looks at the encoder's result.

    src: (S, N, d_model), tgt: (T, N, d_model), with N first if `batch_first`, or both without N; returns
    tgt's shape.
    Raises RuntimeError if batch or feature sizes do not fit.
    """

    def __init__(
        self,
        d_model=512,
        nhead=8,
        num_encoder_layers=6,
        num_decoder_layers=6,
        dim_feedforward=2048,
        dropout=0.1,
        activation=F.relu,
        custom_encoder=None,
        custom_decoder=None,
        layer_norm_eps=1e-5,
        batch_first=False,
        norm_first=False,
        bias=True,
        device=None,
        dtype=None,
    ) -> None:
        kind = {"device": device, "dtype": dtype}
        layer = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias)
        super().__init__()
        if custom_encoder is not None:
            self.encoder = custom_encoder
        else:
            encoder_layer = TransformerEncoderLayer(*layer, **kind)
            encoder_norm = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **kind)
            self.encoder = TransformerEncoder(encoder_layer, num_encoder_layers, encoder_norm)
        if custom_decoder is not None:
            self.decoder = custom_decoder
        else:
            decoder_layer = TransformerDecoderLayer(*layer, **kind)
            decoder_norm = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **kind)
            self.decoder = TransformerDecoder(decoder_layer, num_decoder_layers, decoder_norm)
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        batch = 0 if self.batch_first else 1
        if src.size(batch) != tgt.size(batch) and src.dim() == 3:
            raise RuntimeError("the batch number of src and tgt must be equal")
        if src.size(-1) != self.d_model or tgt.size(-1) != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        return self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )

    @staticmethod
    def generate_square_subsequent_mask(sz, device=None, dtype=None):
        """The causal mask (sz, sz): -inf above the diagonal, else 0."""
        return _generate_square_subsequent_mask(sz, dtype=dtype, device=device)

    def _reset_parameters(self) -> None:
        for p in self.parameters():
            if p.dim() > 1:
                xavier_uniform_(p)


def _get_clones(module, N):
    return ModuleList([copy.deepcopy(module) for _ in range(N)])


def _get_activation_fn(activation):
    if activation == "relu":
        return F.relu
    if activation == "gelu":
        return F.gelu
    raise RuntimeError(f"activation should be relu/gelu, not {activation}")


def _generate_square_subsequent_mask(
    sz: int, device: readtorch.device | None = None, dtype: readtorch.dtype | None = None
) -> Tensor:
    return readtorch.triu(readtorch.full((sz, sz), float("-inf"), dtype=dtype, device=device), diagonal=1)


def _get_seq_len(src: Tensor, batch_first: bool) -> int:
    return src.size(1 if batch_first and src.dim() == 3 else 0)


def _detect_is_causal_mask(mask: Tensor | None, is_causal: bool | None = None, size: int | None = None) -> bool:
    """Whether the mask is the causal one: what the hint `is_causal` says, or else what the mask holds."""
    if is_causal is not None:
        return is_causal
    if mask is None:
        return False
    causal = _generate_square_subsequent_mask(
        mask.size(-2) if size is None else size, device=mask.device, dtype=mask.dtype
    )
    return mask.size() == causal.size() and bool((mask == causal).all())


def _why_not_nested(layer):
    """What keeps an encoder of this layer from dropping padding, in words that follow "encoder_layer"."""
    if not isinstance(layer, TransformerEncoderLayer):
        return " was not TransformerEncoderLayer"
    attention = layer.self_attn
    if layer.norm_first:
        return ".norm_first was True"
    if not attention.batch_first:
        return ".self_attn.batch_first was not True(use batch_first for better inference performance)"
    if not attention._qkv_same_embed_dim:
        return ".self_attn._qkv_same_embed_dim was not True"
    if attention.in_proj_bias is None:
        return ".self_attn was passed bias=False"
    if not layer.activation_relu_or_gelu:
        return ".activation_relu_or_gelu was not True"
    if layer.norm1.eps != layer.norm2.eps:
        return ".norm1.eps was not equal to encoder_layer.norm2.eps"
    return ".self_attn.num_heads is odd" if attention.num_heads % 2 == 1 else ""


def _is_left_aligned(src: Tensor, padding_mask: Tensor) -> bool:
    """Whether in each sequence what is hidden comes last. RuntimeError if the mask does not fit (N, S, E)."""
    if padding_mask.dim() != 2:
        raise RuntimeError("Padding mask should be 2D")
    if padding_mask.size(0) != src.size(0) or padding_mask.size(1) != src.size(1):
        raise RuntimeError("Mask size should match input size")
    hidden = padding_mask.to(readtorch.bool).to(readtorch.int)
    return bool((hidden[:, 1:] >= hidden[:, :-1]).all())


def _behind_the_end(padding_mask: Tensor) -> Tensor:
    """True from the end of each sequence on, where its length is the number of positions that `padding_mask` shows.

    With `mask_check=False` these need not be the first ones; the first ones are taken all the same, as in PyTorch.
    RuntimeError if there is none at all.
    """
    lengths = padding_mask.logical_not().sum(-1, keepdim=True)
    if not bool(lengths.any()):
        raise RuntimeError("to_padded_tensor: at least one constituent tensor should have non-zero numel")
    return readtorch.arange(padding_mask.size(1), device=padding_mask.device) >= lengths
