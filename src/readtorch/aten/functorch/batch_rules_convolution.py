"""Batching rules of convolutions.

Note [ A convolution for each example ]
Where all examples share the weight, they are merged into the images. Where each has a weight of its own, they are merged into the
channels, and each is a group: the channels of a group see only its own weights. In letters: N images, I and O channels, B examples,

    shared weight:      BNI → (BN)I, OI → (BN)O → BNO
    own weights:        BNI → N(BI), BOI → (BO)I, B times the groups → N(BO) → NBO
    own, image shared:  NI, BOI → (BO)I → N(BO) → NBO

In PyTorch: `aten/src/ATen/functorch/BatchRulesConvolution.cpp`. Explained in the chapter "Forward mode, vmap and torch.func".
"""

from .batch_rules_helper import (
    batch_size_of,
    logical_rank,
    reshape_dim_into,
    reshape_dim_outof,
    to_front,
    vmap_support,
    with_bdim,
)


@vmap_support("convolution")
def convolution_rule(
    call,
    input,
    input_bdim,
    weight,
    weight_bdim,
    bias,
    bias_bdim,
    stride,
    padding,
    dilation,
    transposed,
    output_padding,
    groups,
):
    """See Note [ A convolution for each example ]."""
    added = bias is not None and (weight_bdim is not None or bias_bdim is not None)  # a bias that is added by itself
    rest = None if added else bias, stride, padding, dilation, transposed, output_padding
    if weight_bdim is None and input_bdim is None:
        result, bdim = call(input, weight, *rest, groups), None
    elif weight_bdim is None:
        size = input.shape[input_bdim]
        result, bdim = (
            reshape_dim_outof(0, size, call(reshape_dim_into(input_bdim, 0, input), weight, *rest, groups)),
            0,
        )
    elif input_bdim is None and groups == 1:
        weights = reshape_dim_into(weight_bdim, 1 if transposed else 0, weight)
        result, bdim = reshape_dim_outof(1, weight.shape[weight_bdim], call(input, weights, *rest, groups)), 1
    else:
        size = weight.shape[weight_bdim]
        channels = reshape_dim_into(0, 1, with_bdim(input, input_bdim, size))
        result = call(channels, reshape_dim_into(weight_bdim, 0, weight), *rest, groups * size)
        result, bdim = reshape_dim_outof(1, size, result), 1
    if not added:
        return result, bdim
    result, rank = to_front(result, bdim), logical_rank(result, bdim)
    bias = to_front(bias, bias_bdim)
    return result + bias.reshape((*bias.shape, *[1] * (rank - 2))).unsqueeze(-rank), 0


def grad_of_input(call, grad_output, grad_bdim, input, input_bdim, weight, weight_bdim, *rest, groups):
    """Of the input only the sizes count."""
    mask = (True, False, False)
    if weight_bdim is None and grad_bdim is None:
        input = input if input_bdim is None else input.select(input_bdim, 0)
        return call(grad_output, input, weight, *rest, groups, mask)[0], None
    size = batch_size_of((grad_output, grad_bdim, weight, weight_bdim))
    grad_output, input = with_bdim(grad_output, grad_bdim, size), with_bdim(input, input_bdim, size)
    if weight_bdim is None:
        grad_output, input = reshape_dim_into(0, 0, grad_output), reshape_dim_into(0, 0, input)
        return reshape_dim_outof(0, size, call(grad_output, input, weight, *rest, groups, mask)[0]), 0
    grad_output, input = reshape_dim_into(0, 1, grad_output), reshape_dim_into(0, 1, input)
    weight = reshape_dim_into(weight_bdim, 0, weight)
    return reshape_dim_outof(1, size, call(grad_output, input, weight, *rest, groups * size, mask)[0]), 1


def grad_of_weight(call, grad_output, grad_bdim, input, input_bdim, weight, weight_bdim, *rest, groups):
    """Of the weight only the sizes count. Each example's gradient is a sum over its own images: it is a group."""
    mask = (False, True, False)
    weight = weight if weight_bdim is None else weight.select(weight_bdim, 0)
    if input_bdim is None and grad_bdim is None:
        return call(grad_output, input, weight, *rest, groups, mask)[1], None
    size = batch_size_of((grad_output, grad_bdim, input, input_bdim))
    grad_output = reshape_dim_into(0, 1, with_bdim(grad_output, grad_bdim, size))
    input = reshape_dim_into(0, 1, with_bdim(input, input_bdim, size))
    weights = reshape_dim_into(0, 0, weight.expand((size, *weight.shape)))
    return reshape_dim_outof(0, size, call(grad_output, input, weights, *rest, groups * size, mask)[1]), 0


@vmap_support("convolution_backward")
def convolution_backward_rule(
    call,
    grad_output,
    grad_bdim,
    input,
    input_bdim,
    weight,
    weight_bdim,
    bias_sizes,
    stride,
    padding,
    dilation,
    transposed,
    output_padding,
    groups,
    output_mask,
):
    operands = call, grad_output, grad_bdim, input, input_bdim, weight, weight_bdim
    rest = None, stride, padding, dilation, transposed, output_padding
    results = [(None, None)] * 3
    if output_mask[0]:
        results[0] = grad_of_input(*operands, *rest, groups=groups)
    if output_mask[1]:
        results[1] = grad_of_weight(*operands, *rest, groups=groups)
    if output_mask[2]:
        images = to_front(grad_output, grad_bdim)
        channels = 1 if grad_bdim is None else 2
        others = [d for d in range(channels - 1, images.dim()) if d != channels]
        results[2] = images.sum(others), None if grad_bdim is None else 0
    return tuple([value for value, _ in results]), tuple([bdim for _, bdim in results])
