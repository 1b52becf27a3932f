"""Modules, and what they are made of. In PyTorch: `torch/nn/__init__.py`. Chapters 5 to 10."""
from readtorch.nn.parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter
from readtorch.nn.modules import *  # noqa: F403
from readtorch.nn import attention, functional, init, modules, parameter, utils
from readtorch.nn.modules import Module
