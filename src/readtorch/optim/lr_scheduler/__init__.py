"""Schedules of the learning rate. In PyTorch: `torch/optim/lr_scheduler.py`, all in one file. See the
chapter "Schedulers and SWA".

Read `base.py` first; the families after it are a few formulas each.
"""

from .base import (
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
from .combined import ChainedScheduler, SequentialLR
from .cosine import CosineAnnealingLR, CosineAnnealingWarmRestarts
from .cyclic import CyclicLR, OneCycleLR
from .functions import LambdaLR, MultiplicativeLR
from .plateau import ReduceLROnPlateau
from .steps import ConstantLR, ExponentialLR, LinearLR, MultiStepLR, PolynomialLR, StepLR

__all__ = [
    "LambdaLR",
    "MultiplicativeLR",
    "StepLR",
    "MultiStepLR",
    "ConstantLR",
    "LinearLR",
    "ExponentialLR",
    "SequentialLR",
    "CosineAnnealingLR",
    "ChainedScheduler",
    "ReduceLROnPlateau",
    "CyclicLR",
    "CosineAnnealingWarmRestarts",
    "OneCycleLR",
    "PolynomialLR",
    "LRScheduler",
]
