"""Masks that are classes of tensors: a kernel that knows the shape of a mask need not read it.

In PyTorch: `torch/nn/attention/bias.py`. There kernels of GPUs take the lower right triangle without a mask.
"""

import warnings
from enum import IntEnum, auto

import readtorch
from readtorch._tensor import Tensor
from readtorch.backends.cuda import SDPAParams
from readtorch.nn.functional import scaled_dot_product_attention

from . import _raise_kernel_warnings
from ._utils import _validate_sdpa_input

__all__ = ["causal_upper_left", "causal_lower_right", "CausalVariant", "CausalBias"]


class CausalVariant(IntEnum):
    """Which corner the diagonal of a mask (L, S) goes through: that of the first query and key, or of the last ones."""

    UPPER_LEFT = auto()
    LOWER_RIGHT = auto()


class CausalBias(Tensor):
    """A triangular mask for `scaled_dot_product_attention`, which is not written down before it must be.

    AssertionError if `variant` is no CausalVariant. A warning if some queries would see no key at all.
    """

    def __init__(self, variant, seq_len_q, seq_len_kv):
        if not isinstance(variant, CausalVariant):
            raise AssertionError(f"variant must be a CausalVariant, got {type(variant).__name__}")
        super().__init__()
        self.variant = variant
        self.seq_len_q = seq_len_q
        self.seq_len_kv = seq_len_kv
        if seq_len_q > seq_len_kv and variant == CausalVariant.LOWER_RIGHT:
            warnings.warn(
                "Lower right causal bias will produce NaNs in the output when seq_len_q > seq_len_kv!", stacklevel=2
            )

    def _materialize(self, device=None):
        """The mask, bool (L, S)."""
        diagonal = self.seq_len_kv - self.seq_len_q if self.variant == CausalVariant.LOWER_RIGHT else 0
        ones = readtorch.ones(self.seq_len_q, self.seq_len_kv, device=device or "cpu", dtype=readtorch.bool)
        return readtorch.tril(ones, diagonal=diagonal)

    @staticmethod
    def _dispatch(query, key, value, attn_mask, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
        """Attention with the mask: the kernel's own causal mask if it is the same. ValueError if both are asked for."""
        if is_causal:
            raise ValueError("CausalBias should not be used with causal=True")
        options = {"dropout_p": dropout_p, "scale": scale, "enable_gqa": enable_gqa}
        if attn_mask.seq_len_q == attn_mask.seq_len_kv or attn_mask.variant == CausalVariant.UPPER_LEFT:
            return scaled_dot_product_attention(query, key, value, is_causal=True, **options)
        _validate_sdpa_input(query, key, value)
        _raise_kernel_warnings(SDPAParams(query, key, value, None, dropout_p, is_causal, enable_gqa))
        mask = attn_mask._materialize(query.device)
        return scaled_dot_product_attention(query, key, value, attn_mask=mask, **options)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func is scaled_dot_product_attention:
            return cls._dispatch(*args, **(kwargs or {}))
        return super().__torch_function__(func, types, args, kwargs or {})

    def __repr__(self):
        return repr(self._materialize())


def causal_upper_left(*size):
    """The mask of size (L, S) in which a query sees the keys up to its own position, counted from the first."""
    if len(size) != 2:
        raise AssertionError("causal_upper_left only supports 2D tensors")
    return CausalBias(CausalVariant.UPPER_LEFT, *size)


def causal_lower_right(*size):
    """The same counted from the last: the last query sees every key."""
    if len(size) != 2:
        raise AssertionError("causal_lower_right only supports 2D tensors")
    return CausalBias(CausalVariant.LOWER_RIGHT, *size)
