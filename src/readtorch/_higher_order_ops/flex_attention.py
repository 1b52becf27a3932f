"""Attention whose scores a function changes, and a function hides: `torch.ops.higher_order.flex_attention`.

    scores = scale · q kᵀ        modified = score_mod(scores) where mask_mod, else -∞
    out = softmax(modified) v    lse = log Σ exp(modified)

Both functions are of one place, (batch, head, query, key); `vmap` makes them functions of all places. Backward computes
the scores again. With grad and grad_lse of the two results, and Δ = Σ_d out · grad:

    p = exp(modified - lse)      ∂v = pᵀ grad        ∂modified = p · (grad vᵀ - Δ + grad_lse)

`score_mod` is differentiated by autograd, which gives ∂scores and the gradients of the tensors that it reads. Then
∂q = scale · ∂scores k, and ∂k = scale · ∂scoresᵀ q.

Note [ Blocks that are skipped ]

PyTorch's form for code that is not compiled computes every score, and of a block mask it reads the function `mask_mod`
alone. The kernels that it compiles visit the listed blocks and no others. So does this: a row of blocks of queries takes
the keys of the blocks that are listed for it in any batch or head. What is left out, `mask_mod` would have hidden, and its
weight would have been 0, if the lists were made from this function. Lists made by hand, with no function, hide nothing in
PyTorch unless it compiles; those are not read here either.

In PyTorch: `torch/_higher_order_ops/flex_attention.py`. Explained in the chapter "Attention".
"""

import math

import readtorch
from readtorch._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex
from readtorch._ops import HigherOrderOperator
from readtorch._tensor import Tensor
from readtorch.amp.autocast_mode import _cast as cast
from readtorch.amp.autocast_mode import autocast
from readtorch.autograd import Function, enable_grad, grad
from readtorch.autograd.function import once_differentiable
from readtorch.nn.attention._block_mask import _ordered_to_dense, _vmap_for_bhqkv, noop_mask

LOG_2 = math.log(2)


class FlexAttentionHOP(HigherOrderOperator):
    """(out, lse / log 2, largest score / log 2). The last has no gradient.

    query: (B, Hq, L, E). key, value: (B or 1, Hkv, S, E or Ev), where Hkv divides Hq. block_mask: a tuple, as
    `BlockMask.as_tuple` makes it. score_mod_other_buffers, mask_mod_other_buffers: handed to the two functions
    behind their own arguments; the former get gradients. Under autocast query, key and value are cast first.

    RuntimeError if the batches do not fit, or if a gradient is wanted and the mask has no lists of its columns;
    AssertionError if a tensor of `mask_mod` wants a gradient.
    """

    def __init__(self):
        super().__init__("flex_attention", cacheable=True)

    def __call__(
        self,
        query,
        key,
        value,
        score_mod,
        block_mask,
        scale,
        kernel_options,
        score_mod_other_buffers=(),
        mask_mod_other_buffers=(),
    ):
        device_type = query.device.type
        if readtorch.is_autocast_enabled(device_type):
            inputs = cast((query, key, value), device_type, readtorch.get_autocast_dtype(device_type))
            rest = score_mod, block_mask, scale, kernel_options, score_mod_other_buffers, mask_mod_other_buffers
            with autocast(device_type, enabled=False):
                return self(*inputs, *rest)
        check_gradients((query, key, value, *score_mod_other_buffers), mask_mod_other_buffers, block_mask)
        rule = Rule(score_mod, block_mask, scale, score_mod_other_buffers, mask_mod_other_buffers)
        return FlexAttentionAutogradOp.apply(query, key, value, rule, *score_mod_other_buffers)


flex_attention = FlexAttentionHOP()


def check_gradients(inputs, mask_mod_other_buffers, block_mask):
    q_indices = block_mask[7]
    if readtorch.is_grad_enabled() and any(map(wants_gradient, inputs)) and q_indices is None:
        raise RuntimeError(
            "BlockMask q_indices is None. Backward pass requires q_indices to be computed. "
            "Please create the BlockMask with compute_q_blocks=True"
        )
    if any(map(wants_gradient, mask_mod_other_buffers)):
        raise AssertionError("Captured buffers from mask mod that require grad are not supported.")


def wants_gradient(x):
    return isinstance(x, Tensor) and x.requires_grad


class FlexAttentionAutogradOp(Function):
    @staticmethod
    def forward(ctx, query, key, value, rule, *buffers):
        ctx.set_materialize_grads(False)
        out, logsumexp, max_scores = math_attention(query, key, value, rule, buffers)
        out = permuted_as(query, out)
        ctx.mark_non_differentiable(max_scores)
        ctx.rule = rule
        ctx.save_for_backward(query, key, value, out, logsumexp, *buffers)
        return out, logsumexp, max_scores

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_out, grad_logsumexp, grad_max_scores):
        query, key, value, out, logsumexp, *buffers = ctx.saved_tensors
        grad_out = readtorch.zeros_like(out) if grad_out is None else grad_out
        grad_logsumexp = readtorch.zeros_like(logsumexp) if grad_logsumexp is None else grad_logsumexp
        results = out, logsumexp * LOG_2, grad_out, grad_logsumexp / LOG_2
        *grads, grads_of_buffers = sdpa_dense_backward(query, key, value, *results, ctx.rule, buffers)
        return *grads, None, *grads_of_buffers


# ------------------------------------------------------------------------------------------- which queries, which keys


class Rule:
    """The two functions for all places, and the blocks of places to look at."""

    def __init__(self, score_mod, block_mask, scale, buffers_of_scores, buffers_of_mask):
        *_, self.q_block, self.kv_block, mask_mod = block_mask
        self.lists = None if mask_mod is noop_mask else block_mask[2:6]
        self.score_mod = _vmap_for_bhqkv(score_mod, prefix=(0,), suffix=(None,) * len(buffers_of_scores))
        self.mask_mod = _vmap_for_bhqkv(mask_mod, prefix=(), suffix=(None,) * len(buffers_of_mask))
        self.buffers_of_mask = buffers_of_mask
        self.scale = scale

    def scores(self, query, key):
        precision = precision_of(query)
        return (query.to(precision) @ key.to(precision).transpose(-2, -1)) * self.scale

    def modified(self, scores, places, buffers):
        """The scores after `score_mod`; what may be seen."""
        with TransformGetItemToIndex():
            return self.score_mod(scores, *places, *buffers), self.mask_mod(*places, *self.buffers_of_mask)

    def visited(self, queries, keys):
        """Yields some of the queries and the keys that are looked at for them. See Note [ Blocks that are skipped ]."""
        rows, columns = queries.split(self.q_block), keys.split(self.kv_block)
        if self.lists is None or self.lists[0].shape[-1] != len(rows):
            yield queries, keys
            return
        for row, listed in zip(rows, self.listed(len(columns))):
            listed[0] |= not any(listed)  # who sees nothing gets one hidden block, so that there are scores
            yield row, readtorch.cat([column for column, visit in zip(columns, listed) if visit])

    def listed(self, count):
        """For each row of blocks, in which of the `count` blocks of keys something may be seen."""
        num_blocks, indices, full_num_blocks, full_indices = self.lists
        dense = _ordered_to_dense(num_blocks, indices, count)
        if full_num_blocks is not None:
            dense = dense | _ordered_to_dense(full_num_blocks, full_indices, count)
        return dense.flatten(0, -3).any(dim=0).tolist()


def precision_of(query):
    return readtorch.float64 if query.dtype is readtorch.float64 else readtorch.float32


def positions(query, key):
    """Batches, heads, queries and keys: a vector of numbers each."""
    return [readtorch.arange(0, size, device=query.device) for size in (*query.shape[:3], key.shape[2])]


def taken(x, places):
    """The rows of (B, H, L, E) that stand at these places, which grow."""
    return x if len(places) == x.shape[2] else x.index_select(2, places)


def for_each_query_head(x, query):
    """Key or value (B or 1, Hkv, S, E) as (B, Hq, S, E): heads of the query that follow one another share one."""
    if x.shape[0] not in (1, query.shape[0]):
        raise RuntimeError(f"Bq and Bkv must broadcast. Got Bq={query.shape[0]} and Bkv={x.shape[0]}")
    x = readtorch.repeat_interleave(x, query.shape[1] // x.shape[1], dim=1)
    return x.expand(query.shape[0], *x.shape[1:])


def permuted_as(query, out):
    """`out` in memory with its dimensions in the order that those of `query` have, but the last one innermost."""
    strides = query.stride()
    outer = sorted(range(out.dim() - 1), key=lambda dim: (-strides[dim], dim))
    order = (*outer, out.dim() - 1)
    back = sorted(range(out.dim()), key=order.__getitem__)
    return out.permute(order).contiguous().permute(back)


# ---------------------------------------------------------------------------------------------------------- there


def math_attention(query, key, value, rule, buffers):
    """The results of all queries: out, lse / log 2 and the largest score / log 2."""
    key, value = for_each_query_head(key, query), for_each_query_head(value, query)
    b, h, m, n = positions(query, key)
    parts = []
    for rows, columns in rule.visited(m, n):
        scores = rule.scores(taken(query, rows), taken(key, columns))
        modified, visible = rule.modified(scores, (b, h, rows, columns), buffers)
        modified = readtorch.where(visible, modified, hidden(scores))
        weights = readtorch.ops.aten._safe_softmax(modified, -1)
        out = weights.to(query.dtype) @ taken(value, columns).to(query.dtype)
        parts.append((out, modified.logsumexp(dim=-1) / LOG_2, modified.amax(dim=-1) / LOG_2))
    return [readtorch.cat(part, dim=2) for part in zip(*parts)]


def hidden(scores):
    return readtorch.tensor(-math.inf, dtype=scores.dtype, device=scores.device)


# ------------------------------------------------------------------------------------------------------- and back


def sdpa_dense_backward(query, key, value, out, logsumexp, grad_out, grad_logsumexp, rule, buffers):
    """The gradients of query, key and value, and of the buffers a list. ValueError if the three have different types."""
    if not query.dtype == key.dtype == value.dtype:
        raise ValueError(
            "Backward pass with mixed query, key, and value dtype is not supported, "
            f"got query.dtype={query.dtype}, key.dtype={key.dtype}, and value.dtype={value.dtype}"
        )
    precision = logsumexp.dtype
    keys, values = for_each_query_head(key, query), for_each_query_head(value, query)
    constant = grad_logsumexp - (out.to(precision) * grad_out.to(precision)).sum(-1)  # grad_lse - Δ
    totals = [readtorch.zeros_like(x, dtype=precision) for x in (query, keys, values)]
    totals_of_buffers = [readtorch.zeros_like(x) if x.requires_grad else None for x in buffers]
    b, h, m, n = positions(query, keys)
    for rows, columns in rule.visited(m, n):
        of_rows = [taken(x, rows) for x in (query, grad_out, logsumexp, constant)]
        of_columns = taken(keys, columns), taken(values, columns)
        *grads, grads_of_buffers = backward_of_rows(*of_rows, *of_columns, (b, h, rows, columns), rule, buffers)
        for total, places, part in zip(totals, (rows, columns, columns), grads):
            total.index_add_(2, places, part.to(precision))
        totals_of_buffers = [x if part is None else x + part for x, part in zip(totals_of_buffers, grads_of_buffers)]
    inputs = query, key, value
    grads = totals[0], summed_over_sharers(totals[1], key), summed_over_sharers(totals[2], value)
    return *[permuted_as(x, grad.to(x.dtype)) for x, grad in zip(inputs, grads)], totals_of_buffers


def backward_of_rows(q, grad_out, logsumexp, constant, k, v, places, rule, buffers):
    """What some queries and the keys that are looked at for them add to the gradients. See the formulas above."""
    scores = rule.scores(q, k).detach().requires_grad_()
    with enable_grad():
        modified, visible = rule.modified(scores, places, buffers)
    lse = logsumexp.unsqueeze(-1)
    p = (readtorch.where(visible, modified.detach(), hidden(scores)) - lse).exp()
    p = readtorch.where(lse == -math.inf, 0, p)  # a query that sees nothing
    grad_modified = p * (grad_out.to(p.dtype) @ v.to(p.dtype).transpose(-2, -1) + constant.unsqueeze(-1))
    grad_scores, *grads_of_buffers = through_the_function(modified, (scores, *buffers), grad_modified)
    grad_scores = readtorch.zeros_like(scores) if grad_scores is None else grad_scores
    grad_scores = readtorch.where(visible, grad_scores * rule.scale, 0).to(q.dtype)
    grad_value = p.to(q.dtype).transpose(-2, -1) @ grad_out
    return grad_scores @ k, grad_scores.transpose(-2, -1) @ q, grad_value, grads_of_buffers


def through_the_function(modified, inputs, grad_modified):
    """`grad_modified` taken back to the inputs of `score_mod`; None for what needs no gradient, or is not read."""
    if not modified.requires_grad:
        return [None] * len(inputs)
    wanted = [x for x in inputs if x.requires_grad]
    found = iter(grad(modified, wanted, grad_modified.to(modified.dtype), allow_unused=True))
    return [next(found) if x.requires_grad else None for x in inputs]


def summed_over_sharers(grad, x):
    """The gradient of `x`, (B or 1, Hkv, S, E), of that for each head of the query, (B, Hq, S, E)."""
    grad = grad.unflatten(1, (x.shape[1], -1)).sum(2)
    return grad.sum(0, keepdim=True) if x.shape[0] != grad.shape[0] else grad
