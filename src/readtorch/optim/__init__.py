"""Optimizers. In PyTorch: `torch/optim/__init__.py`. See the chapter "torch.optim"."""
from readtorch.optim import lr_scheduler, swa_utils
from readtorch.optim._adafactor import Adafactor
from readtorch.optim._muon import Muon
from readtorch.optim._stateless import swap_in_optimizer_params_and_state
from readtorch.optim.adadelta import Adadelta
from readtorch.optim.adagrad import Adagrad
from readtorch.optim.adam import Adam
from readtorch.optim.adamax import Adamax
from readtorch.optim.adamw import AdamW
from readtorch.optim.asgd import ASGD
from readtorch.optim.lbfgs import LBFGS
from readtorch.optim.nadam import NAdam
from readtorch.optim.optimizer import Optimizer
from readtorch.optim.radam import RAdam
from readtorch.optim.rmsprop import RMSprop
from readtorch.optim.rprop import Rprop
from readtorch.optim.sgd import SGD
from readtorch.optim.sparse_adam import SparseAdam

__all__ = [
    "ASGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "LBFGS", "Muon", "NAdam", "Optimizer",
    "RAdam", "RMSprop", "Rprop", "SGD", "SparseAdam", "lr_scheduler", "swa_utils",
    "swap_in_optimizer_params_and_state",
]

for public in (Adafactor, Muon, swap_in_optimizer_params_and_state):  # their files are private
    public.__module__ = __name__
del public
