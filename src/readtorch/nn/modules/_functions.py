"""Autograd functions that modules need. In PyTorch: `torch/nn/modules/_functions.py`."""
from readtorch.autograd import Function


class BackwardHookFunction(Function):
    """The identity, as a node of its own in the graph: see Note [ How a module gets backward hooks ]."""

    @staticmethod
    def forward(ctx, *args):
        ctx.mark_non_differentiable(*[arg for arg in args if not arg.requires_grad])
        return args

    @staticmethod
    def backward(ctx, *args):
        return args
