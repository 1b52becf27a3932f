"""Tools for parameters, gradients and batches. In PyTorch: `torch/nn/utils/__init__.py`."""
from readtorch.nn.utils import rnn
