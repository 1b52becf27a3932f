"""Schedules that multiply the rate by factors. In PyTorch: `torch/optim/lr_scheduler.py`. See the chapter
"Schedulers and SWA".

Each class has both forms: `get_lr` makes the rate from the one before, `_get_closed_form_lr` from the first.
See Note [Chained and closed form].
"""

from bisect import bisect_right
from collections import Counter

from .base import LRScheduler, _param_groups_val_list, _warn_get_lr_called_within_step


class _FactorLR(LRScheduler):
    """A schedule of two numbers an epoch: the rate against the one before, and against the first."""

    def _ratio(self):
        """η_t / η_{t-1}, or None if the rate stays as it is."""
        raise NotImplementedError

    def _factor(self):
        """η_t / η_0."""
        raise NotImplementedError

    def get_lr(self):
        _warn_get_lr_called_within_step(self)
        ratio = self._ratio()
        if ratio is None:
            return _param_groups_val_list(self.optimizer, "lr")
        return [group["lr"] * ratio for group in self.optimizer.param_groups]

    def _get_closed_form_lr(self):
        factor = self._factor()
        return [base_lr * factor for base_lr in self.base_lrs]


class StepLR(_FactorLR):
    """η_t = η_0 γ^⌊t / step_size⌋: a staircase down, all steps as long, each γ times as high as the last."""

    def __init__(self, optimizer, step_size, gamma=0.1, last_epoch=-1) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _ratio(self):
        begins_a_step = self.last_epoch != 0 and self.last_epoch % self.step_size == 0
        return self.gamma if begins_a_step else None

    def _factor(self):
        return self.gamma ** (self.last_epoch // self.step_size)


class MultiStepLR(_FactorLR):
    """η_t = η_0 γ^(number of milestones up to t): a staircase down, its steps where the milestones say.

    milestones: epochs, in any order; one that stands twice counts twice.
    """

    def __init__(self, optimizer, milestones, gamma=0.1, last_epoch=-1) -> None:
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _ratio(self):
        if self.last_epoch not in self.milestones:
            return None
        return self.gamma ** self.milestones[self.last_epoch]

    def _factor(self):
        milestones = sorted(self.milestones.elements())
        return self.gamma ** bisect_right(milestones, self.last_epoch)


class ConstantLR(_FactorLR):
    """η_t = factor η_0 for t < total_iters, then η_0: a low shelf, then one step up.

    ValueError unless 0 <= factor <= 1.
    """

    def __init__(self, optimizer, factor=1.0 / 3, total_iters=5, last_epoch=-1) -> None:
        if factor > 1.0 or factor < 0:
            raise ValueError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _ratio(self):
        if self.last_epoch == 0:
            return self.factor
        return 1.0 / self.factor if self.last_epoch == self.total_iters else None

    def _factor(self):
        return self.factor + (self.last_epoch >= self.total_iters) * (1 - self.factor)


class LinearLR(_FactorLR):
    """η_t = η_0 (a + (b - a) min(t, T) / T): a straight ramp from a η_0 to b η_0, then level.

    a, b, T: start_factor, end_factor, total_iters. ValueError unless 0 < a <= 1 and 0 <= b <= 1.
    """

    def __init__(self, optimizer, start_factor=1.0 / 3, end_factor=1.0, total_iters=5, last_epoch=-1) -> None:
        if start_factor > 1.0 or start_factor <= 0:
            raise ValueError("Starting multiplicative factor expected to be greater than 0 and less or equal to 1.")
        if end_factor > 1.0 or end_factor < 0:
            raise ValueError("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _ratio(self):
        if self.last_epoch == 0:
            return self.start_factor
        if self._is_initial or self.last_epoch > self.total_iters:
            return None
        # The ramp rises by (b - a) / T an epoch, from a + (t - 1) (b - a) / T. Both times T:
        rise = self.end_factor - self.start_factor
        return 1.0 + rise / (self.total_iters * self.start_factor + (self.last_epoch - 1) * rise)

    def _factor(self):
        rise = self.end_factor - self.start_factor
        return self.start_factor + rise * min(self.total_iters, self.last_epoch) / self.total_iters


class ExponentialLR(_FactorLR):
    """η_t = η_0 γ^t: falls fast, then ever slower; a straight line on a logarithmic scale."""

    def __init__(self, optimizer, gamma, last_epoch=-1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _ratio(self):
        return None if self._is_initial else self.gamma

    def _factor(self):
        return self.gamma**self.last_epoch


class PolynomialLR(_FactorLR):
    """η_t = η_0 (1 - min(t, T) / T)^power: from η_0 down to 0 at T = total_iters, and 0 from there on.

    Power 1 is a straight line; the higher the power, the more it hangs through.
    """

    def __init__(self, optimizer, total_iters=5, power=1.0, last_epoch=-1) -> None:
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def _ratio(self):
        if self._is_initial or self.last_epoch > self.total_iters:
            return None
        left, left_before = (1.0 - t / self.total_iters for t in (self.last_epoch, self.last_epoch - 1))
        return (left / left_before) ** self.power

    def _factor(self):
        return (1.0 - min(self.total_iters, self.last_epoch) / self.total_iters) ** self.power
