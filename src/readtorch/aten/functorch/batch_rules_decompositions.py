"""What operators are composed of under vmap, and only there: each operator that is called finds its own rule.

In PyTorch: `aten/src/ATen/functorch/BatchRulesDecompositions.cpp`. Explained in the chapter "Forward mode, vmap and torch.func".
"""

from readtorch.aten.dispatcher import registry
from readtorch.aten.functions import at
from readtorch.c10.scalar_type import int64
from readtorch.c10.wrap_dim import wrap_dim

from .batch_rules_helper import (
    batch_size_of,
    decomposition,
    padded,
    reshape_dim_into,
    reshape_dim_outof,
    rule_for,
    vmap_support,
    with_bdim,
)
from .batched_fallback import loop_over_examples

# -------------------------------------------------------------------------------------------------- searching


@vmap_support("searchsorted.Tensor")
def searchsorted_rule(call, sequence, sequence_bdim, self, self_bdim, out_int32, right, side, sorter, sorter_bdim):
    """Examples with sequences of their own search the rows of a matrix; else all values are looked up in one call."""
    rest = out_int32, right, side
    if sequence_bdim is None and sorter_bdim is None:
        if sequence.dim() == 1:
            return call(sequence, self, *rest, sorter), self_bdim
        found = call(sequence, reshape_dim_into(self_bdim, -1, self), *rest, sorter)
        found = reshape_dim_outof(-1, self.shape[self_bdim], found)
        return found, found.dim() - 2
    size = batch_size_of((sequence, sequence_bdim, self, self_bdim, sorter, sorter_bdim))
    sequence, self = with_bdim(sequence, sequence_bdim, size), with_bdim(self, self_bdim, size)
    if sorter is not None:
        sorter = with_bdim(sorter, sorter_bdim, size)
    if sequence.dim() > 2:
        return call(sequence, self, *rest, sorter), 0
    return call(sequence, self.reshape((size, -1)), *rest, sorter).reshape(self.shape), 0


@decomposition("searchsorted.Scalar")
def searchsorted_of_number(sorted_sequence, self, out_int32, right, side, sorter):
    value = at.scalar_tensor(self, dtype=sorted_sequence.dtype, device=sorted_sequence.device)
    return at.searchsorted(sorted_sequence, value, out_int32=out_int32, right=right, side=side, sorter=sorter)


@decomposition("bucketize.Tensor", "bucketize.Scalar")
def bucketize_decomposition(self, boundaries, out_int32, right):
    if boundaries.dim() != 1:
        raise RuntimeError(f"bucketize: boundaries tensor must be 1 dimension, but got dim({boundaries.dim()})")
    return at.searchsorted(boundaries, self, out_int32=out_int32, right=right)


@decomposition("isin.Tensor_Tensor")
def isin_decomposition(elements, test_elements, assume_unique, invert):
    found = (elements.unsqueeze(-1) == test_elements.flatten()).any(-1)
    return ~found if invert else found


@decomposition("isin.Tensor_Scalar")
def isin_number_decomposition(elements, test_element, assume_unique, invert):
    return elements != test_element if invert else elements == test_element


@decomposition("isin.Scalar_Tensor")
def number_isin_decomposition(element, test_elements, assume_unique, invert):
    found = (test_elements == element).any()
    return ~found if invert else found


@decomposition("one_hot")
def one_hot_decomposition(self, num_classes):
    """How many classes there are cannot be asked of the elements."""
    if self.dtype is not int64:
        raise RuntimeError("one_hot is only applicable to index tensor.")
    if not self.numel() and num_classes <= 0:
        raise RuntimeError("Can not infer total number of classes from empty tensor.")
    if num_classes <= 0:
        raise RuntimeError(
            "When vmap-ing torch.nn.functional.one_hot, please provide an explicit positive num_classes argument."
        )
    zeros = at.zeros((*self.shape, num_classes), dtype=self.dtype, device=self.device)
    return at.scatter(zeros, -1, self.unsqueeze(-1), 1)


# For each example alone: the sizes may happen to be equal, or the lengths are read from tensors.
rule_for(
    loop_over_examples,
    "argwhere _ctc_loss.Tensor _ctc_loss_backward.Tensor _embedding_bag_backward _native_multi_head_attention "
    "_transformer_encoder_layer_fwd _addmm_activation linspace.Tensor_Scalar linspace.Scalar_Tensor logspace.Tensor_Scalar "
    "logspace.Scalar_Tensor",
)


@decomposition("norm.Scalar")
def norm_decomposition(self, p):
    return registry["aten::norm.ScalarOpt_dim"].call(self, p, tuple(range(self.dim())), False)


# ------------------------------------------------------------------------------------------------- arithmetic


@decomposition("ldexp.Tensor")
def ldexp_decomposition(self, other):
    return self * at.pow(2.0, other)


@decomposition("fill.Tensor")
def fill_decomposition(self, value):
    return value.to(self.dtype).expand(self.shape).clone()


@decomposition("renorm")
def renorm_decomposition(self, p, dim, maxnorm):
    """Rows whose norm is greater than `maxnorm` are scaled down to it."""
    others = [d for d in range(self.dim()) if d != wrap_dim(dim, self.dim())]
    norm = at.linalg_vector_norm(self, p, others, True)
    return self * at.where(norm > maxnorm, maxnorm / (norm + 1e-7), 1.0)


@decomposition("native_dropout_backward")
def native_dropout_backward_decomposition(grad_output, mask, scale):
    return grad_output * mask * scale


# -------------------------------------------------------------------------------------------------- distances


@vmap_support("_cdist_backward")
def cdist_backward_rule(call, grad, grad_bdim, x1, x1_bdim, x2, x2_bdim, p, cdist, cdist_bdim):
    """Sets of points: the dimensions before the last two are those of the distances."""
    size = batch_size_of((grad, grad_bdim, x1, x1_bdim, x2, x2_bdim, cdist, cdist_bdim))
    grad, cdist = with_bdim(grad, grad_bdim, size), with_bdim(cdist, cdist_bdim, size)
    x1, x2 = (padded(with_bdim(x, bdim, size), 0, grad.dim() - 1) for x, bdim in ((x1, x1_bdim), (x2, x2_bdim)))
    x1, x2 = (x.expand((*grad.shape[:-2], *x.shape[-2:])) for x in (x1, x2))
    return call(grad.contiguous(), x1.contiguous(), x2.contiguous(), p, cdist), 0


# -------------------------------------------------------------------------------------------------- attention


@vmap_support("_scaled_dot_product_flash_attention_for_cpu")
def flash_attention_rule(
    call, query, query_bdim, key, key_bdim, value, value_bdim, dropout_p, is_causal, attn_mask, mask_bdim, scale
):
    """The examples are further sequences. A mask that all share serves all, too, unless it is one for each sequence."""
    size = batch_size_of((query, query_bdim, key, key_bdim, value, value_bdim, attn_mask, mask_bdim))
    pairs = (query, query_bdim), (key, key_bdim), (value, value_bdim)
    query, key, value = (reshape_dim_into(0, 0, with_bdim(t, bdim, size)) for t, bdim in pairs)
    if attn_mask is not None and (mask_bdim is not None or attn_mask.dim() == 4):
        mask = padded(with_bdim(attn_mask, mask_bdim, size), 0, 4)
        attn_mask = reshape_dim_into(0, 0, mask.expand((size, query.shape[0] // size, *mask.shape[2:])))
    results = call(query, key, value, dropout_p, is_causal, attn_mask, scale)
    return tuple([reshape_dim_outof(0, size, r) for r in results]), 0
