"""Normalizations. In PyTorch: `torch/_decomp/decompositions.py`.

Gradients follow from one identity. For x̂ = (x - mean) · rstd over a group of N numbers, and g the gradient of x̂:

    dx = rstd · (g - mean(g) - x̂ · mean(g · x̂))
"""

import math

import readtorch as rt

from .activations import elementwise


def gradient_through(g, normalized, rstd, dims):
    """dx of the identity above. dims: the dimensions of a group."""
    return rstd * (g - g.mean(dims, keepdim=True) - normalized * (g * normalized).mean(dims, keepdim=True))


@elementwise("native_layer_norm.default")
def native_layer_norm(input, normalized_shape, weight, bias, eps):
    dims = list(range(input.dim() - len(normalized_shape), input.dim()))
    variance, mean = rt.var_mean(input, dims, correction=0, keepdim=True)
    rstd = rt.rsqrt(variance + eps)
    out = (input - mean) * rstd
    out = out if weight is None else out * weight
    return out if bias is None else out + bias, mean, rstd


@elementwise("native_layer_norm_backward.default")
def native_layer_norm_backward(grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask):
    outer = input.dim() - len(normalized_shape)
    inner, outer = list(range(outer, input.dim())), list(range(outer))
    normalized = (input - mean) * rstd
    dx = dw = db = None
    if output_mask[0]:
        dx = gradient_through(grad_out if weight is None else grad_out * weight, normalized, rstd, inner)
    if output_mask[1] and weight is not None:
        dw = (grad_out * normalized).sum(outer) if outer else grad_out * normalized
    if output_mask[2] and bias is not None:
        db = grad_out.sum(outer) if outer else grad_out.clone()
    return dx, dw, db


@elementwise("native_group_norm.default")
def native_group_norm(input, weight, bias, N, C, HxW, group, eps):
    grouped = input.reshape(N, group, C // group * HxW)
    variance, mean = rt.var_mean(grouped, [2], correction=0, keepdim=True)
    rstd = rt.rsqrt(variance + eps)
    out = scaled(((grouped - mean) * rstd).view(input.shape), weight, bias)
    return out, mean.squeeze(2), rstd.squeeze(2)


@elementwise("native_group_norm_backward.default")
def native_group_norm_backward(grad_out, input, mean, rstd, weight, N, C, HxW, group, output_mask):
    by_group = N, group, C // group, HxW
    rstd = rstd.view(N, group, 1, 1)
    normalized = (input.reshape(by_group) - mean.view(N, group, 1, 1)) * rstd
    grad = grad_out.reshape(by_group)
    dx = dw = db = None
    if output_mask[0]:
        g = grad if weight is None else grad * weight.view(1, group, C // group, 1)
        dx = gradient_through(g, normalized, rstd, [2, 3]).view(input.shape)
    if output_mask[1]:
        dw = (grad * normalized).sum([0, 3]).view(C)
    if output_mask[2]:
        db = grad.sum([0, 3]).view(C)
    return dx, dw, db


def statistics_of_channels(input, eps):
    """(mean, rstd, variance) of each channel: (1, C, 1, …)."""
    dims = [0, *range(2, input.dim())]
    variance, mean = rt.var_mean(input, dims, correction=0, keepdim=True)
    return mean, rt.rsqrt(variance + eps), variance


def scaled(normalized, weight, bias):
    channels = [1, -1] + [1] * (normalized.dim() - 2)
    out = normalized if weight is None else normalized * weight.view(channels)
    return out if bias is None else out + bias.view(channels)


@elementwise("_native_batch_norm_legit.no_stats")
def native_batch_norm_legit_no_stats(input, weight, bias, training, momentum, eps):
    mean, rstd, _ = statistics_of_channels(input, eps)
    return scaled((input - mean) * rstd, weight, bias), mean.flatten(), rstd.flatten()


@elementwise("_native_batch_norm_legit_no_training.default")
def native_batch_norm_legit_no_training(input, weight, bias, running_mean, running_var, momentum, eps):
    channels = [1, -1] + [1] * (input.dim() - 2)
    rstd = rt.rsqrt(running_var + eps)
    out = scaled((input - running_mean.view(channels)) * rstd.view(channels), weight, bias)
    return out, input.new_empty((0,)), input.new_empty((0,))


@elementwise("_native_batch_norm_legit_functional.default")
def native_batch_norm_legit_functional(input, weight, bias, running_mean, running_var, training, momentum, eps):
    if not training:
        out, mean, rstd = native_batch_norm_legit_no_training(
            input, weight, bias, running_mean, running_var, momentum, eps
        )
        return out, mean, rstd, running_mean, running_var
    mean, rstd, variance = statistics_of_channels(input, eps)
    count = input.numel() // input.shape[1]
    unbiased = variance.flatten() * (count / (count - 1))
    out = scaled((input - mean) * rstd, weight, bias)
    return (
        out,
        mean.flatten(),
        rstd.flatten(),
        momentum * mean.flatten() + (1 - momentum) * running_mean,
        momentum * unbiased + (1 - momentum) * running_var,
    )


@elementwise("native_batch_norm_backward.default")
def native_batch_norm_backward(
    grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps, output_mask
):
    channels, dims = [1, -1] + [1] * (input.dim() - 2), [0, *range(2, input.dim())]
    mean = save_mean if train else running_mean
    rstd = (save_invstd if train else rt.rsqrt(running_var + eps)).view(channels)
    normalized = (input - mean.view(channels)) * rstd
    dx = dw = db = None
    if output_mask[0]:
        g = grad_out if weight is None else grad_out * weight.view(channels)
        dx = gradient_through(g, normalized, rstd, dims) if train else g * rstd
    if output_mask[1]:
        dw = (grad_out * normalized).sum(dims)
    if output_mask[2]:
        db = grad_out.sum(dims)
    return dx, dw, db


@elementwise("logsumexp.default")
def logsumexp(self, dim, keepdim=False):
    top = self.amax(dim, keepdim=True)
    top = rt.where(top.abs() == math.inf, 0.0, top)
    total = (self - top).exp().sum(dim, keepdim=True).log() + top
    return total if keepdim else total.squeeze(dim)
