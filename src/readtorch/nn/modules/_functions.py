"""Autograd functions that modules need. In PyTorch: `torch/nn/modules/_functions.py`."""
import readtorch
from readtorch.autograd import Function


class CrossMapLRN2d(Function):
    """y = x · scale^-beta, where scale = k + alpha / size · (the squares in a window of neighbouring channels)."""

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
