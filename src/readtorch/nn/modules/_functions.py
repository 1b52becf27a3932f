"""Autograd functions that modules need. In PyTorch: `torch/nn/modules/_functions.py`."""

import readtorch
from readtorch import distributed as dist
from readtorch.autograd import Function
from readtorch.autograd.function import once_differentiable


class CrossMapLRN2d(Function):
    """y = x · scale^-beta, where scale = k + alpha / size · (the squares in a window of neighbouring
    channels).
    """

    @staticmethod
    def forward(ctx, input, size, alpha=1e-4, beta=0.75, k=1):
        if input.dim() != 4:
            raise ValueError(f"CrossMapLRN2d: Expected input to be 4D, got {input.dim()}D instead.")
        ctx.size, ctx.alpha, ctx.beta = size, alpha, beta
        ctx.scale = sums_over_channels(input * input, (size - 1) // 2 + 1) * (alpha / size) + k
        output = ctx.scale.pow(-beta) * input
        ctx.save_for_backward(input, output)
        return output

    @staticmethod
    def backward(ctx, grad_output):
        input, output = ctx.saved_tensors
        channels, size = input.size(1), ctx.size
        ratio = input.new_zeros(input.size(0), channels + size - 1, *input.shape[2:])
        center = ratio.narrow(1, int(size - (size - 1) / 2), channels)
        readtorch.mul(grad_output, output, out=center).div_(ctx.scale)  # no second gradient, as in PyTorch
        sums = readtorch.stack([ratio.narrow(1, c, size).sum(1) for c in range(channels)], 1)
        grad_input = ctx.scale.pow(-ctx.beta) * grad_output - 2 * ctx.alpha * ctx.beta / size * input * sums
        return grad_input, None, None, None, None


def sums_over_channels(squares, ahead):
    """A running sum: a channel comes in `ahead` - 1 before it is reached, and leaves `ahead` after.

    The very first never leaves, in PyTorch too.
    """
    channels = squares.size(1)
    total = squares.narrow(1, 0, min(ahead, channels)).sum(1)
    sums = [total]
    for c in range(1, channels):
        if c <= channels - ahead:
            total = total + squares.select(1, c + ahead - 1)
        if c > ahead:
            total = total - squares.select(1, c - ahead)
        sums.append(total)
    return readtorch.stack(sums, 1)


class BackwardHookFunction(Function):
    """The identity, as a node of its own in the graph: see Note [ How a module gets backward hooks ]."""

    @staticmethod
    def forward(ctx, *args):
        ctx.mark_non_differentiable(*[arg for arg in args if not arg.requires_grad])
        return args

    @staticmethod
    def backward(ctx, *args):
        return args


class SyncBatchNorm(Function):
    """Batch normalization with the mean and variance of all ranks' batches. See the chapter "Process
    groups, DDP and SyncBatchNorm".

    Note [ What the ranks exchange ]
    In forward each rank sends the mean and 1/√(var + eps) of its own batch and how many values they are of,
    2C + 1 numbers; from these the statistics of the whole follow. In backward the gradient of an input
    element needs two sums over the whole batch, Σ dy and Σ dy (x - mean): 2C numbers. The gradients of weight
    and bias stay sums over the own batch, as with any other layer: DistributedDataParallel adds them up.
    """

    @staticmethod
    def forward(ctx, input, weight, bias, running_mean, running_var, eps, momentum, process_group, world_size):
        channels = input.size(1)
        size = input.numel() // channels
        if size == 1 and world_size < 2:
            raise ValueError(f"Expected more than 1 value per channel when training, got input size {size}")
        mine = statistics(input, eps)
        everyones = mine.new_empty(world_size, mine.numel())
        dist.all_gather_single(everyones, mine, process_group)
        everyones = everyones[everyones[:, -1] >= 1]  # those who had an empty batch have no mean
        means, invstds, counts = everyones.split([channels, channels, 1], 1)
        mean, var = whole_statistics(means, invstds.pow(-2) - eps, counts)
        update_running_statistics(running_mean, running_var, mean, var, momentum, counts.sum())
        invstd = (var + eps).rsqrt()
        ctx.save_for_backward(input, weight, mean, invstd)
        ctx.count = counts.sum().item()
        ctx.process_group = process_group
        normalized = (input.to(mean.dtype) - along_channels(mean, input)) * along_channels(invstd, input)
        if weight is not None:
            normalized = normalized * along_channels(weight, input)
        if bias is not None:
            normalized = normalized + along_channels(bias, input)
        return normalized.to(input.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        input, weight, mean, invstd = ctx.saved_tensors
        dy = grad_output.to(mean.dtype)
        xmu = input.to(mean.dtype) - along_channels(mean, input)
        sum_dy, sum_dy_xmu = dy.sum(other_dims(input)), (dy * xmu).sum(other_dims(input))
        grad_weight = grad_bias = grad_input = None
        if ctx.needs_input_grad[1]:
            grad_weight = (sum_dy_xmu * invstd).to(weight.dtype)
        if ctx.needs_input_grad[2]:
            grad_bias = sum_dy.to(weight.dtype)
        if ctx.needs_input_grad[0]:
            sums = readtorch.cat([sum_dy, sum_dy_xmu])
            dist.all_reduce(sums, group=ctx.process_group)
            mean_dy, mean_dy_xmu = (sums / ctx.count).chunk(2)
            through_var = xmu * along_channels(invstd * invstd * mean_dy_xmu, input)
            grad_input = (dy - along_channels(mean_dy, input) - through_var) * along_channels(invstd, input)
            if weight is not None:
                grad_input = grad_input * along_channels(weight.to(mean.dtype), input)
            grad_input = grad_input.to(input.dtype)
        return grad_input, grad_weight, grad_bias, None, None, None, None, None, None


def statistics(input, eps):
    """Mean, 1/√(var + eps) and the number of values of each channel of this rank's batch: (2C + 1).

    All zero for an empty batch. In float32 for 16-bit inputs.
    """
    dtype = readtorch.float64 if input.dtype == readtorch.float64 else readtorch.float32
    if input.numel() == 0:
        return input.new_zeros(2 * input.size(1) + 1, dtype=dtype)
    var, mean = readtorch.var_mean(input.to(dtype), other_dims(input), correction=0)
    count = mean.new_full((1,), input.numel() // input.size(1))
    return readtorch.cat([mean, (var + eps).rsqrt(), count])


def whole_statistics(means, vars, counts):
    """Mean and biased variance (C) of all values, from those of each rank (ranks, C) and their counts (ranks,
    1).
    """
    share = counts / counts.sum()
    mean = (share * means).sum(0)
    return mean, (share * (vars + (means - mean) ** 2)).sum(0)


def update_running_statistics(running_mean, running_var, mean, var, momentum, count):
    """Move them towards the batch's by `momentum`; the variance unbiased."""
    if running_mean is not None:
        running_mean.mul_(1 - momentum).add_(mean.to(running_mean.dtype), alpha=momentum)
    if running_var is not None:
        unbiased = var * (count / (count - 1))
        running_var.mul_(1 - momentum).add_(unbiased.to(running_var.dtype), alpha=momentum)


def other_dims(input):
    """All dimensions but the channels'."""
    return [d for d in range(input.dim()) if d != 1]


def along_channels(vector, input):
    """(C) as (1, C, 1, …), to be combined with the input."""
    return vector.view(1, -1, *[1] * (input.dim() - 2))
