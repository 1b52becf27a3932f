"""Batching rules of normalizations.

Forward, the statistics are computed by the operator itself, without weight and bias, which may be an example's own. Backward, the
formulas of Note [ Normalizations ] are written with operators, each of which finds its own rule.

In PyTorch: `aten/src/ATen/functorch/BatchRulesNorm.cpp`. Explained in the chapter "Forward mode, vmap and torch.func".
"""

from readtorch.aten.dispatcher import registry
from readtorch.aten.functions import at
from readtorch.aten.native.group_norm import differentiable_backward
from readtorch.c10.scalar_type import uint8

from .batch_rules_helper import (
    batch_size_of,
    decomposition,
    logical_rank,
    padded,
    reshape_dim_into,
    reshape_dim_outof,
    to_front,
    vmap_support,
    with_bdim,
)
from .gen_vmap_plumbing import plumbed


def affine(y, rank, weight, weight_bdim, bias, bias_bdim):
    """y · weight + bias, numbers for each channel of examples with so many dimensions. y: batched in front, if at all."""
    if weight is not None:
        y = y * of_channels(to_front(weight, weight_bdim), rank)
    return y if bias is None else y + of_channels(to_front(bias, bias_bdim), rank)


def of_channels(p, rank):
    """(C) or (B, C), so that it broadcasts against (N, C, …) or (B, N, C, …)."""
    return p.reshape((*p.shape, *[1] * (rank - 2))).unsqueeze(-rank)


# ------------------------------------------------------------------------------------------------- batch norm


def batch_norm(call, input, input_bdim, parameters, mean, mean_bdim, var, var_bdim, training, *rest):
    """The examples are further channels. call: (input, weight, bias, running_mean, running_var, training, ...)."""
    if training and input_bdim is not None:
        if (mean is not None and mean_bdim is None) or (var is not None and var_bdim is None):
            raise RuntimeError(
                "Batch norm got a batched tensor as input while the running_mean or running_var, which will be updated in "
                "place, were not batched.\nIf you are using a module and do not need eval mode, please set "
                "`track_running_stats` to be False.If you are using a prebuilt module and do not need eval mode, please see "
                "the functorch website for resources on how to patch your module to work with vmap"
            )
    rank = logical_rank(input, input_bdim)
    size = batch_size_of((input, input_bdim, mean, mean_bdim, var, var_bdim))
    if size is None:  # only weight or bias are the examples' own
        results = call(input, None, None, mean, var, training, *rest)
        return (affine(results[0], rank, *parameters), *results[1:]), (0, *[None] * (len(results) - 1))
    input = reshape_dim_into(0, 1, with_bdim(input, input_bdim, size))
    mean, var = (
        None if t is None else reshape_dim_into(0, 0, with_bdim(t, bdim, size)).contiguous()
        for t, bdim in ((mean, mean_bdim), (var, var_bdim))
    )
    results = call(input, None, None, mean, var, training, *rest)
    y = affine(reshape_dim_outof(1, size, results[0]).movedim(1, 0), rank, *parameters)
    statistics = [r if tuple(r.shape) == (0,) else reshape_dim_outof(0, size, r) for r in results[1:]]
    return (y, *statistics), (0, *[None if tuple(r.shape) == (0,) else 0 for r in statistics])


@vmap_support("native_batch_norm _native_batch_norm_legit")
def batch_norm_rule(
    call,
    input,
    input_bdim,
    weight,
    weight_bdim,
    bias,
    bias_bdim,
    mean,
    mean_bdim,
    var,
    var_bdim,
    training,
    momentum,
    eps,
):
    parameters = weight, weight_bdim, bias, bias_bdim
    return batch_norm(call, input, input_bdim, parameters, mean, mean_bdim, var, var_bdim, training, momentum, eps)


@vmap_support("_native_batch_norm_legit.no_stats")
def batch_norm_no_stats_rule(call, input, input_bdim, weight, weight_bdim, bias, bias_bdim, training, momentum, eps):
    def without_stats(input, weight, bias, mean, var, *rest):
        return call(input, weight, bias, *rest)

    parameters = weight, weight_bdim, bias, bias_bdim
    return batch_norm(without_stats, input, input_bdim, parameters, None, None, None, None, training, momentum, eps)


@vmap_support("_native_batch_norm_legit_no_training")
def batch_norm_no_training_rule(
    call, input, input_bdim, weight, weight_bdim, bias, bias_bdim, mean, mean_bdim, var, var_bdim, momentum, eps
):
    def without_training(input, weight, bias, mean, var, training, *rest):
        return call(input, weight, bias, mean, var, *rest)

    parameters = weight, weight_bdim, bias, bias_bdim
    return batch_norm(
        without_training, input, input_bdim, parameters, mean, mean_bdim, var, var_bdim, False, momentum, eps
    )


# Note [ Gradients of normalized inputs ]
# Mean and deviation depend on the input, too, which the operator's own second derivative knows. So the gradient of the input is left to
# the operator, without a weight, which may be an example's own. That of the weight takes them for constants, as in PyTorch.
ONLY_INPUT = True, False, False


def batch_norm_backward_of_input_rule(grad_out, grad_bdim, input, input_bdim, weight, _, *rest):
    """See Note [ Gradients of normalized inputs ]. The examples are further channels."""
    *statistics, train, eps, output_mask = rest
    size = batch_size_of((grad_out, grad_bdim, input, input_bdim, *statistics))
    merged = [
        None if t is None else reshape_dim_into(0, dim, with_bdim(t, bdim, size))
        for t, bdim, dim in zip(
            (grad_out, input, *statistics[::2]), (grad_bdim, input_bdim, *statistics[1::2]), (1, 1, 0, 0, 0, 0)
        )
    ]
    call = registry["aten::native_batch_norm_backward"].call
    grad = call(merged[0], merged[1], None, *merged[2:], train, eps, output_mask)[0]
    return reshape_dim_outof(1, size, grad), 1, None, None, None, None


batch_norm_backward_of_input = plumbed(registry["aten::native_batch_norm_backward"], batch_norm_backward_of_input_rule)


@decomposition("native_batch_norm_backward")
def batch_norm_backward_decomp(
    grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps, output_mask
):
    rank = input.dim()
    others = [d for d in range(rank) if d != 1]

    def per_channel(v):
        return v.reshape([-1 if d == 1 else 1 for d in range(rank)])

    mean, rstd = (save_mean, save_invstd) if train else (running_mean, (running_var + eps).rsqrt())
    grads = [None, None, None]
    if output_mask[0]:
        g = grad_out if weight is None else grad_out * per_channel(weight)
        statistics = running_mean, running_var, save_mean, save_invstd
        grads[0] = batch_norm_backward_of_input(g, input, None, *statistics, train, eps, ONLY_INPUT)[0]
    if output_mask[1]:
        xhat = (input - per_channel(mean)) * per_channel(rstd)
        grads[1] = (grad_out * xhat).sum(others)
    if output_mask[2]:
        grads[2] = grad_out.sum(others)
    return tuple(grads)


def with_reserve(training):
    """The form with a fourth result, an empty tensor."""

    def decomposed(input, weight, bias, running_mean, running_var, momentum, eps):
        results = at.native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)
        return *results, at.empty((0,), dtype=uint8, device=input.device)

    return decomposed


decomposition("_batch_norm_with_update")(with_reserve(training=True))
decomposition("_batch_norm_no_update")(with_reserve(training=False))


@decomposition("batch_norm_backward")
def batch_norm_backward_with_reserve(*arguments):
    return batch_norm_backward_decomp(*arguments[:-1])


# ------------------------------------------------------------------------------------------------- layer norm


@vmap_support("native_layer_norm")
def layer_norm_rule(call, input, input_bdim, normalized_shape, weight, weight_bdim, bias, bias_bdim, eps):
    """The examples are further rows."""
    input = to_front(input, input_bdim)
    if weight_bdim is None and bias_bdim is None:
        return call(input, normalized_shape, weight, bias, eps), 0
    y, mean, rstd = call(input, normalized_shape, None, None, eps)
    rank = logical_rank(input, input_bdim)
    if weight is not None:
        y = y * padded(weight, weight_bdim, rank)
    if bias is not None:
        y = y + padded(bias, bias_bdim, rank)
    of_statistics = None if input_bdim is None else 0
    return (y, mean, rstd), (0, of_statistics, of_statistics)


def layer_norm_backward_of_input_rule(*flat):
    """See Note [ Gradients of normalized inputs ]. The examples are further rows."""
    grad_out, input, normalized_shape, mean, rstd = (*flat[:4:2], flat[4], *flat[5:9:2])
    bdims = (*flat[1:4:2], *flat[6:9:2])
    size = batch_size_of(flat)
    grad_out, input, mean, rstd = [with_bdim(t, b, size) for t, b in zip((grad_out, input, mean, rstd), bdims)]
    call = registry["aten::native_layer_norm_backward"].call
    grad = call(grad_out, input, normalized_shape, mean, rstd, None, None, ONLY_INPUT)[0]
    return grad, 0, None, None, None, None


layer_norm_backward_of_input = plumbed(registry["aten::native_layer_norm_backward"], layer_norm_backward_of_input_rule)


@decomposition("native_layer_norm_backward")
def layer_norm_backward_decomp(grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask):
    rows = tuple(range(input.dim() - len(normalized_shape)))
    grads = [None, None, None]
    if output_mask[0]:
        g = grad_out if weight is None else grad_out * weight
        arguments = g, input, normalized_shape, mean, rstd, None, None, ONLY_INPUT
        grads[0] = layer_norm_backward_of_input(*arguments)[0]
    if output_mask[1]:
        xhat = (input - mean) * rstd
        grads[1] = (grad_out * xhat).sum(rows) if rows else grad_out * xhat
    if output_mask[2]:
        grads[2] = grad_out.sum(rows) if rows else grad_out
    return tuple(grads)


# ------------------------------------------------------------------------------------------------- group norm


@vmap_support("native_group_norm")
def group_norm_rule(call, input, input_bdim, weight, weight_bdim, bias, bias_bdim, N, C, HxW, group, eps):
    """The examples are further images."""
    rank = logical_rank(input, input_bdim)
    if input_bdim is None:
        y, mean, rstd = call(input, None, None, N, C, HxW, group, eps)
        statistics = None
    else:
        size = input.shape[input_bdim]
        merged = reshape_dim_into(input_bdim, 0, input).contiguous()
        y, mean, rstd = (reshape_dim_outof(0, size, r) for r in call(merged, None, None, N * size, C, HxW, group, eps))
        statistics = 0
    return (affine(y, rank, weight, weight_bdim, bias, bias_bdim), mean, rstd), (0, statistics, statistics)


@decomposition("native_group_norm_backward")
def group_norm_backward_decomp(grad_out, input, mean, rstd, weight, N, C, HxW, group, output_mask):
    return differentiable_backward(grad_out, None, None, input, mean, rstd, weight, N, C, HxW, group, None, output_mask)
