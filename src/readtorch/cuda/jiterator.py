"""Operators whose kernel is a text in C++, compiled when it is first called. There is no compiler of C++ here.

In PyTorch: `torch/cuda/jiterator.py`.
"""

import re

from readtorch.c10.cuda import runtime

__all__ = ["_create_jit_fn", "_create_multi_output_jit_fn"]

_TEMPLATE = re.compile(r"\s*template\s*<.+>\s*\w+\s+(\w+)\s*\(.+\)\s*\{.+\}", re.DOTALL)


class _JittedFunction:
    """What both functions return. A call raises AssertionError without a device, else NotImplementedError."""

    def __init__(self, code):
        found = _TEMPLATE.match(code)
        if found is None:
            raise Exception("Couldn't parse code, please check correctness:\n " + code)
        self.name = found[1]

    def __call__(self, *tensors, **kwargs):
        if not runtime.is_available():
            raise AssertionError("Jiterator is only supported on CUDA and ROCm GPUs, none are available.")
        raise NotImplementedError(f"readtorch has no compiler for C++, which '{self.name}' is written in")


def _create_jit_fn(code_string, **kwargs):
    """A function of tensors from a template in C++. Raises Exception if the text is no template of one function."""
    return _JittedFunction(code_string)


def _create_multi_output_jit_fn(code_string, num_outputs, **kwargs):
    """The same with several results."""
    return _JittedFunction(code_string)
