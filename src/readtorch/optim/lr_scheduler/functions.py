"""Schedules given by a function of the epoch. In PyTorch: `torch/optim/lr_scheduler.py`. See the chapter
"Schedulers and SWA".
"""

import types

from .base import LRScheduler, _param_groups_val_list, _warn_get_lr_called_within_step


class _FunctionLR(LRScheduler):
    """What LambdaLR and MultiplicativeLR share: one function a group, and what a checkpoint keeps of it.

    Functions and lambdas cannot be saved; of other callable objects their attributes are.
    """

    def __init__(self, optimizer, lr_lambda, last_epoch=-1) -> None:
        self.optimizer = optimizer
        self.lr_lambdas = _one_a_group(optimizer, lr_lambda)
        super().__init__(optimizer, last_epoch)

    def state_dict(self):
        state_dict = self._state_without("optimizer", "lr_lambdas")
        state_dict["lr_lambdas"] = [_state_of(function) for function in self.lr_lambdas]
        return state_dict

    def load_state_dict(self, state_dict) -> None:
        self.__dict__.update({name: value for name, value in state_dict.items() if name != "lr_lambdas"})
        for i, state in enumerate(state_dict["lr_lambdas"]):
            if state is not None:
                self.lr_lambdas[i].__dict__.update(state)


def _one_a_group(optimizer, lr_lambda):
    groups = optimizer.param_groups
    if not isinstance(lr_lambda, (list, tuple)):
        return [lr_lambda] * len(groups)
    if len(lr_lambda) != len(groups):
        raise ValueError(f"Expected {len(groups)} lr_lambdas, but got {len(lr_lambda)}")
    return list(lr_lambda)


def _state_of(function):
    return None if isinstance(function, types.FunctionType) else function.__dict__.copy()


class LambdaLR(_FunctionLR):
    """η_t = η_0 f(t), f an `lr_lambda` for all groups or a list of one for each.

    The picture is the function's own, scaled to the first rate.
    """

    def get_lr(self):
        _warn_get_lr_called_within_step(self)
        functions = zip(self.lr_lambdas, self.base_lrs, strict=True)
        return [base_lr * function(self.last_epoch) for function, base_lr in functions]


class MultiplicativeLR(_FunctionLR):
    """η_t = η_{t-1} f(t), f an `lr_lambda` for all groups or a list of one for each.

    The function gives the ratio of two neighbours: constant 0.95 falls as ExponentialLR does.
    """

    def __init__(self, optimizer, lr_lambda, last_epoch=-1) -> None:
        for function in _one_a_group(optimizer, lr_lambda):
            if not callable(function):
                raise TypeError(f"lr_lambda should be a function, but got {type(function).__name__}")
        super().__init__(optimizer, lr_lambda, last_epoch)

    def get_lr(self):
        _warn_get_lr_called_within_step(self)
        if self._is_initial:
            return _param_groups_val_list(self.optimizer, "lr")
        functions = zip(self.lr_lambdas, self.optimizer.param_groups, strict=True)
        return [group["lr"] * function(self.last_epoch) for function, group in functions]
