"""Schedules of the learning rate. In PyTorch: `torch/optim/lr_scheduler.py`, all in one file. See the
chapter "Learning-rate schedulers and SWA".

Read `base.py` first; the families after it are a few formulas each.
"""
from readtorch.optim.lr_scheduler.base import (
    EPOCH_DEPRECATION_WARNING,
    LRScheduler,
    _enable_get_lr_call,
    _format_param,
    _initial_mode,
    _LRScheduler,
    _param_groups_val_list,
    _update_param_group_val,
    _warn_get_lr_called_within_step,
)
from readtorch.optim.lr_scheduler.combined import ChainedScheduler, SequentialLR
from readtorch.optim.lr_scheduler.cosine import CosineAnnealingLR, CosineAnnealingWarmRestarts
from readtorch.optim.lr_scheduler.cyclic import CyclicLR, OneCycleLR
from readtorch.optim.lr_scheduler.functions import LambdaLR, MultiplicativeLR
from readtorch.optim.lr_scheduler.plateau import ReduceLROnPlateau
from readtorch.optim.lr_scheduler.steps import (
    ConstantLR,
    ExponentialLR,
    LinearLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)

__all__ = [
    "LambdaLR", "MultiplicativeLR", "StepLR", "MultiStepLR", "ConstantLR", "LinearLR", "ExponentialLR",
    "SequentialLR", "CosineAnnealingLR", "ChainedScheduler", "ReduceLROnPlateau", "CyclicLR",
    "CosineAnnealingWarmRestarts", "OneCycleLR", "PolynomialLR", "LRScheduler",
]
