"""The names of the ways to compute attention.

In PyTorch: `aten/src/ATen/SDPBackend.h`.
"""

import enum


class SDPBackend(enum.Enum):
    """On a CPU there are MATH, step by step, and FLASH_ATTENTION, one operator. The last three serve other devices."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4

    def __int__(self):
        return self.value

    __index__ = __int__

    def __hash__(self):
        return hash(self.value)
