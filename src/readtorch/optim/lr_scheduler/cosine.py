"""Schedules that follow half a wave of a cosine. In PyTorch: `torch/optim/lr_scheduler.py`. See the chapter
"Schedulers and SWA".

I. Loshchilov, F. Hutter: SGDR: Stochastic gradient descent with warm restarts (2016).
"""

import math

from .base import LRScheduler, _enable_get_lr_call, _param_groups_val_list, _warn_get_lr_called_within_step


class CosineAnnealingLR(LRScheduler):
    """η_t = η_min + (η_0 - η_min) (1 + cos(π t / T)) / 2, with T = T_max and η_min = eta_min.

    Half a wave: level at first, steepest in the middle, level again where it meets η_min at t = T. Beyond T
    the wave goes on: up again until 2 T.
    """

    def __init__(self, optimizer, T_max, eta_min=0.0, last_epoch=-1) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        """(η_t - η_min) / (η_{t-1} - η_min) = (1 + cos(π t / T)) / (1 + cos(π (t - 1) / T))."""
        _warn_get_lr_called_within_step(self)
        if self._is_initial:
            return _param_groups_val_list(self.optimizer, "lr")
        if self._step_count == 1 and self.last_epoch > 0:  # resumed, and asked from outside before any step
            return self._get_closed_form_lr()
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:
            return self._first_lr_upwards()
        ratio = self._height(self.last_epoch) / self._height(self.last_epoch - 1)
        return [ratio * (group["lr"] - self.eta_min) + self.eta_min for group in self.optimizer.param_groups]

    def _height(self, t):
        return 1 + math.cos(math.pi * t / self.T_max)

    def _first_lr_upwards(self):
        """One epoch after η_min, where the ratio would divide by 0: the wave one epoch from its foot."""
        up = 1 - math.cos(math.pi / self.T_max)
        pairs = zip(self.base_lrs, self.optimizer.param_groups, strict=True)
        return [group["lr"] + (base_lr - self.eta_min) * up / 2 for base_lr, group in pairs]

    def _get_closed_form_lr(self):
        height = self._height(self.last_epoch)
        return [self.eta_min + (base_lr - self.eta_min) * height / 2 for base_lr in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """η_t = η_min + (η_0 - η_min) (1 + cos(π T_cur / T_i)) / 2, T_cur epochs after the last restart.

    Half waves down, one after another, with a jump back up to η_0 between them: the first T_0 epochs long,
    each T_mult times as long as the one before. `step` also takes parts of an epoch: `step(epoch + i / n)`.

    ValueError unless T_0 is a positive and T_mult an integer of at least 1, and eta_min a number.
    """

    def __init__(self, optimizer, T_0, T_mult=1, eta_min=0.0, last_epoch=-1) -> None:
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}")
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        _warn_get_lr_called_within_step(self)
        height = 1 + math.cos(math.pi * self.T_cur / self.T_i)
        return [self.eta_min + (base_lr - self.eta_min) * height / 2 for base_lr in self.base_lrs]

    def step(self, epoch=None) -> None:
        """Go to the next epoch, or to `epoch`, which need not be whole; ValueError if it is negative."""
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self._go_on()
        else:
            self._jump(epoch)
        self.last_epoch = math.floor(epoch)
        with _enable_get_lr_call(self):
            lrs = self.get_lr()
        self._set_lrs(lrs)

    def _go_on(self):
        self.T_cur = self.T_cur + 1
        if self.T_cur >= self.T_i:
            self.T_cur = self.T_cur % self.T_i
            self.T_i = self.T_i * self.T_mult

    def _jump(self, epoch):
        if epoch < 0:
            raise ValueError(f"Expected non-negative epoch, but got {epoch}")
        if epoch < self.T_0:
            self.T_i = self.T_0
            self.T_cur = epoch
        elif self.T_mult == 1:
            self.T_cur = epoch % self.T_0
        else:
            # n waves are over, which took T_0 (1 + m + m² + … + m^(n-1)) = T_0 (mⁿ - 1) / (m - 1) epochs.
            m = self.T_mult
            n = int(math.log(epoch / self.T_0 * (m - 1) + 1, m))
            self.T_cur = epoch - self.T_0 * (m**n - 1) / (m - 1)
            self.T_i = self.T_0 * m**n
