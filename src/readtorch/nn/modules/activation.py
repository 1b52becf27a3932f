"""Activation functions as modules: they keep the settings, `nn.functional` computes.

In PyTorch: `torch/nn/modules/activation.py`.
"""

import warnings

import readtorch
from readtorch import Tensor
from readtorch._C import _has_torch_function as has_torch_function
from readtorch.nn import functional as F
from readtorch.nn import init
from readtorch.nn.functional.attention import _canonical_mask, _none_or_dtype
from readtorch.nn.parameter import Parameter

from .linear import NonDynamicallyQuantizableLinear
from .module import Module

__all__ = [
    "Threshold",
    "ReLU",
    "RReLU",
    "Hardtanh",
    "ReLU6",
    "Sigmoid",
    "Hardsigmoid",
    "Tanh",
    "SiLU",
    "Mish",
    "Hardswish",
    "ELU",
    "CELU",
    "SELU",
    "GLU",
    "GELU",
    "Hardshrink",
    "LeakyReLU",
    "LogSigmoid",
    "Softplus",
    "Softshrink",
    "MultiheadAttention",
    "PReLU",
    "Softsign",
    "Tanhshrink",
    "Softmin",
    "Softmax",
    "Softmax2d",
    "LogSoftmax",
]


# Without settings


class Sigmoid(Module):
    """1 / (1 + exp(-x))."""

    def forward(self, input):
        return readtorch.sigmoid(input)


class Tanh(Module):
    """(exp(x) - exp(-x)) / (exp(x) + exp(-x))."""

    def forward(self, input):
        return readtorch.tanh(input)


class LogSigmoid(Module):
    """log(1 / (1 + exp(-x)))."""

    def forward(self, input):
        return F.logsigmoid(input)


class Softsign(Module):
    """x / (1 + |x|)."""

    def forward(self, input):
        return F.softsign(input)


class Tanhshrink(Module):
    """x - tanh(x)."""

    def forward(self, input):
        return F.tanhshrink(input)


# With the choice to write into the input


class _Inplace(Module):
    """inplace: write the result into the input's memory."""

    __constants__ = ["inplace"]

    def __init__(self, inplace=False) -> None:
        super().__init__()
        self.inplace = inplace

    def extra_repr(self) -> str:
        settings = [*self._settings(), *(["inplace=True"] if self.inplace else [])]
        return ", ".join(settings)

    def _settings(self):
        """The settings besides `inplace`, as the repr shows them."""
        return []


class ReLU(_Inplace):
    """max(x, 0)."""

    def forward(self, input):
        return F.relu(input, inplace=self.inplace)


class SiLU(_Inplace):
    """x · sigmoid(x)."""

    def forward(self, input):
        return F.silu(input, inplace=self.inplace)


class Mish(_Inplace):
    """x · tanh(softplus(x))."""

    def forward(self, input):
        return F.mish(input, inplace=self.inplace)


class SELU(_Inplace):
    """scale · elu(x, alpha) with the two constants that keep mean 0 and variance 1 from layer to layer."""

    def forward(self, input):
        return F.selu(input, self.inplace)


class Hardsigmoid(_Inplace):
    """min(max(x / 6 + 1/2, 0), 1)."""

    def forward(self, input):
        return F.hardsigmoid(input, self.inplace)

    extra_repr = Module.extra_repr  # in PyTorch too: the repr of this one hides `inplace`


class Hardswish(_Inplace):
    """x · min(max(x + 3, 0), 6) / 6."""

    def forward(self, input):
        return F.hardswish(input, self.inplace)

    extra_repr = Module.extra_repr  # in PyTorch too: the repr of this one hides `inplace`


class Threshold(_Inplace):
    """x where x > threshold, else value."""

    __constants__ = ["threshold", "value", "inplace"]

    def __init__(self, threshold, value, inplace=False) -> None:
        super().__init__(inplace)
        self.threshold = threshold
        self.value = value

    def forward(self, input):
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def _settings(self):
        return [f"threshold={self.threshold}", f"value={self.value}"]


class RReLU(_Inplace):
    """LeakyReLU with a random slope in [lower, upper] in training, with their mean in evaluation."""

    __constants__ = ["lower", "upper", "inplace"]

    def __init__(self, lower=1.0 / 8, upper=1.0 / 3, inplace=False) -> None:
        super().__init__(inplace)
        self.lower = lower
        self.upper = upper

    def forward(self, input):
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def _settings(self):
        return [f"lower={self.lower}", f"upper={self.upper}"]


class Hardtanh(_Inplace):
    """x, cut off below min_val and above max_val."""

    __constants__ = ["min_val", "max_val", "inplace"]

    def __init__(self, min_val=-1.0, max_val=1.0, inplace=False, min_value=None, max_value=None) -> None:
        super().__init__(inplace)
        if min_value is not None:
            min_val = min_value
            _warn_renamed("min_value", "min_val")
        if max_value is not None:
            max_val = max_value
            _warn_renamed("max_value", "max_val")
        self.min_val = min_val
        self.max_val = max_val
        if self.max_val <= self.min_val:
            raise AssertionError(f"max_val ({self.max_val}) must be greater than min_val ({self.min_val})")

    def forward(self, input):
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def _settings(self):
        return [f"min_val={self.min_val}", f"max_val={self.max_val}"]


def _warn_renamed(old, new):
    warnings.warn(f"keyword argument `{old}` is deprecated and renamed to `{new}`", FutureWarning, stacklevel=3)


class ReLU6(Hardtanh):
    """min(max(x, 0), 6)."""

    def __init__(self, inplace=False) -> None:
        super().__init__(0.0, 6.0, inplace)

    def _settings(self):
        return []


class ELU(_Inplace):
    """x where x > 0, else alpha · (exp(x) - 1)."""

    __constants__ = ["alpha", "inplace"]

    def __init__(self, alpha=1.0, inplace=False) -> None:
        super().__init__(inplace)
        self.alpha = alpha

    def forward(self, input):
        return F.elu(input, self.alpha, self.inplace)

    def _settings(self):
        return [f"alpha={self.alpha}"]


class CELU(_Inplace):
    """max(0, x) + min(0, alpha · (exp(x / alpha) - 1))."""

    __constants__ = ["alpha", "inplace"]

    def __init__(self, alpha=1.0, inplace=False) -> None:
        super().__init__(inplace)
        self.alpha = alpha

    def forward(self, input):
        return F.celu(input, self.alpha, self.inplace)

    def _settings(self):
        return [f"alpha={self.alpha}"]


class LeakyReLU(_Inplace):
    """x where x > 0, else negative_slope · x."""

    __constants__ = ["inplace", "negative_slope"]

    def __init__(self, negative_slope=1e-2, inplace=False) -> None:
        super().__init__(inplace)
        self.negative_slope = negative_slope

    def forward(self, input):
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def _settings(self):
        return [f"negative_slope={self.negative_slope}"]


# With settings only


class GELU(Module):
    """x · Φ(x), Φ the normal distribution function; approximate="tanh": by a formula with tanh."""

    __constants__ = ["approximate"]

    def __init__(self, approximate="none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input):
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class GLU(Module):
    """a · sigmoid(b), where a and b are the two halves of the input along `dim`."""

    __constants__ = ["dim"]

    def __init__(self, dim=-1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input):
        return F.glu(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Hardshrink(Module):
    """x where |x| > lambd, else 0."""

    __constants__ = ["lambd"]

    def __init__(self, lambd=0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input):
        return F.hardshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return f"{self.lambd}"


class Softshrink(Module):
    """x moved towards 0 by lambd, at most to 0."""

    __constants__ = ["lambd"]

    def __init__(self, lambd=0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input):
        return F.softshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return str(self.lambd)


class Softplus(Module):
    """log(1 + exp(beta · x)) / beta, and x itself where beta · x > threshold."""

    __constants__ = ["beta", "threshold"]

    def __init__(self, beta=1.0, threshold=20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input):
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        return f"beta={self.beta}, threshold={self.threshold}"


class PReLU(Module):
    """x where x > 0, else weight · x, with one learned weight or one for each channel (dimension 1)."""

    __constants__ = ["num_parameters"]

    def __init__(self, num_parameters=1, init=0.25, device=None, dtype=None) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(readtorch.empty(num_parameters, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        init.constant_(self.weight, self.init)

    def forward(self, input):
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


# Over a dimension


class _OverDim(Module):
    """dim: the dimension whose elements belong together."""

    __constants__ = ["dim"]

    def __init__(self, dim=None) -> None:
        super().__init__()
        self.dim = dim

    def __setstate__(self, state):
        super().__setstate__(state)
        self.__dict__.setdefault("dim", None)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmax(_OverDim):
    """exp(x) / Σ exp(x)."""

    def forward(self, input):
        return F.softmax(input, self.dim, _stacklevel=5)


class Softmin(_OverDim):
    """softmax(-x)."""

    def forward(self, input):
        return F.softmin(input, self.dim, _stacklevel=5)


class LogSoftmax(_OverDim):
    """log(softmax(x))."""

    def forward(self, input):
        return F.log_softmax(input, self.dim, _stacklevel=5)


class Softmax2d(Module):
    """Softmax over the channels of an input (N, C, H, W) or (C, H, W), at every position."""

    def forward(self, input):
        if input.dim() not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead")
        return F.softmax(input, -3, _stacklevel=5)


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
        self,
        embed_dim,
        num_heads,
        dropout=0.0,
        bias=True,
        add_bias_kv=False,
        add_zero_attn=False,
        kdim=None,
        vdim=None,
        batch_first=False,
        device=None,
        dtype=None,
    ) -> None:
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                "embed_dim and num_heads must be greater than 0,"
                f" got embed_dim={embed_dim} and num_heads={num_heads} instead"
            )
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
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """key_padding_mask: (N, S); attn_mask: (L, S) or (N·heads, L, S); each bool, or numbers to be added.

        is_causal: a hint that `attn_mask` is the causal mask.
        """
        float_masks = _is_float(attn_mask) or _is_float(key_padding_mask)
        key_padding_mask = _canonical_mask(
            key_padding_mask, "key_padding_mask", _none_or_dtype(attn_mask), "attn_mask", query.dtype
        )
        attn_mask = _canonical_mask(attn_mask, "attn_mask", None, "", query.dtype, check_other=False)
        weight, bias, out_bias = self.in_proj_weight, self.in_proj_bias, self.out_proj.bias
        if weight is not None and bias is not None and out_bias is not None:
            tensors = [query, weight, bias, self.out_proj.weight, out_bias]
            if self._why_not_fast(query, key, value, tensors, float_masks) == "":
                mask, mask_type = self.merge_masks(attn_mask, key_padding_mask, query)
                return readtorch._native_multi_head_attention(
                    query, key, value, self.embed_dim, self.num_heads, weight, bias, self.out_proj.weight, out_bias,
                    mask, need_weights, average_attn_weights, mask_type,
                )  # fmt: skip
        transposed = self.batch_first and query.dim() == 3
        if transposed:
            query, key, value = _batch_second(query, key, value)
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
        return (output.transpose(1, 0) if transposed else output), weights

    def _why_not_fast(self, query: Tensor, key: Tensor, value: Tensor, tensors: list[Tensor], float_masks: bool) -> str:
        """What keeps one operator that records no graph from doing it all, `_native_multi_head_attention`; "" if none."""
        # in PyTorch: also for nested tensors.
        _, weight, bias, _, _ = tensors
        if not readtorch.backends.mha.get_fastpath_enabled():
            return "torch.backends.mha.get_fastpath_enabled() was not True"
        if query.dim() != 3:
            return f"input not batched; expected query.dim() of 3 but got {query.dim()}"
        if query is not key or key is not value:
            return "non-self attention was used (query, key, and value are not the same Tensor)"
        if query.dtype != bias.dtype:
            return f"dtypes of query ({query.dtype}) and self.in_proj_bias ({bias.dtype}) don't match"
        if query.dtype != weight.dtype:
            return f"dtypes of query ({query.dtype}) and self.in_proj_weight ({weight.dtype}) don't match"
        if self.training:
            return "training is enabled"
        if self.num_heads % 2 != 0:
            return "self.num_heads is not even"
        if not self.batch_first:
            return "batch_first was not True"
        if self.bias_k is not None:
            return "self.bias_k was not None"
        if self.add_zero_attn:
            return "add_zero_attn was enabled"
        if float_masks:
            return "floating-point masks are not supported for fast path."
        if not readtorch.jit.is_scripting():
            if readtorch.is_autocast_enabled():
                return "autocast is enabled"
            if has_torch_function(tensors):
                return "some Tensor argument has_torch_function"
        if readtorch.is_grad_enabled() and any([t.requires_grad for t in tensors]):
            return (
                "grad is enabled and at least one of query or the input/output projection weights or biases "
                "requires_grad"
            )
        return ""

    def merge_masks(
        self, attn_mask: Tensor | None, key_padding_mask: Tensor | None, query: Tensor
    ) -> tuple[Tensor | None, int | None]:
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


def _is_float(mask: Tensor | None) -> bool:
    return mask is not None and mask.is_floating_point()


def _batch_second(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Each transposed; tensors that were the same stay the same."""
    query_t = query.transpose(1, 0)
    key_t = query_t if key is query else key.transpose(1, 0)
    value_t = key_t if value is key else value.transpose(1, 0)
    return query_t, key_t, value_t
