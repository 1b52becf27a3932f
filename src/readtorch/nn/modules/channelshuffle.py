"""A layer that mixes groups of channels. In PyTorch: `torch/nn/modules/channelshuffle.py`."""

from readtorch.nn import functional as F

from .module import Module

__all__ = ["ChannelShuffle"]


class ChannelShuffle(Module):
    """(N, C, *) with C = groups · n: the first channel of each group, then the second of each …

    X. Zhang and others: ShuffleNet: an extremely efficient convolutional neural network for mobile devices (2017).
    """

    __constants__ = ["groups"]

    def __init__(self, groups) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input):
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        return f"groups={self.groups}"
