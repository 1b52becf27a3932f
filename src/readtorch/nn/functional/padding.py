"""Padding. In PyTorch: part of `torch/nn/functional.py`."""

import readtorch
from readtorch import Tensor
from readtorch._C import _nn
from readtorch.csrc.utils.disable_torch_function import handle_torch_function, has_torch_function_unary

__all__ = ["pad"]


def pad(input: Tensor, pad: list[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """Widen the last dimensions of the input, or crop them where a number is negative.

    pad: (left, right, top, bottom, …), from the last dimension on. mode: "constant" (with `value`, by default
    0), "reflect", "replicate" or "circular", which pad the last 1 to 3 dimensions of an input with 1 or 2 more.
    """
    if has_torch_function_unary(input):
        return handle_torch_function(readtorch.nn.functional.pad, (input,), input, pad, mode=mode, value=value)
    return _nn.pad(input, pad, mode, value)
