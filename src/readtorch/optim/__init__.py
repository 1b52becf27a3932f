"""Optimizers. In PyTorch: `torch/optim/__init__.py`. See chapter 11."""
from readtorch.optim import lr_scheduler, swa_utils
from readtorch.optim.adam import Adam
from readtorch.optim.adamw import AdamW
from readtorch.optim.optimizer import Optimizer
from readtorch.optim.sgd import SGD
