"""Schedules that raise the rate and lower it again, the momentum going the other way.

In PyTorch: `torch/optim/lr_scheduler.py`. See the chapter "Schedulers and SWA".

L. N. Smith: Cyclical learning rates for training neural networks (2015). L. N. Smith, N. Topin:
Super-convergence: very fast training of neural networks using large learning rates (2017).
"""

import math

from .base import LRScheduler, _check_optimizer, _format_param, _update_param_group_val, _warn_get_lr_called_within_step
from .functions import _state_of


class CyclicLR(LRScheduler):
    """η = base_lr + h s (max_lr - base_lr): the teeth of a saw between two rates.

        h: height within the cycle, 0 → 1 in step_size_up steps, 1 → 0 in step_size_down
        s: scale of the whole cycle c = 1, 2, …: 1 if mode is "triangular", 1 / 2^(c-1) if "triangular2",
           gamma^t if "exp_range"; or scale_fn(c), or scale_fn(t) if scale_mode is "iterations"

    With cycle_momentum, the momentum (or Adam's β₁) is max_momentum - h s (max_momentum - base_momentum).
    Rates and momenta: a number, or a list with one for each group.
    """

    def __init__(
        self,
        optimizer,
        base_lr,
        max_lr,
        step_size_up=2000,
        step_size_down=None,
        mode="triangular",
        gamma=1.0,
        scale_fn=None,
        scale_mode="cycle",
        cycle_momentum=True,
        base_momentum=0.8,
        max_momentum=0.9,
        last_epoch=-1,
    ) -> None:
        _check_optimizer(optimizer)
        self.optimizer = optimizer
        base_lrs = _format_param("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for lr, group in zip(base_lrs, optimizer.param_groups, strict=True):
                _update_param_group_val(group, "lr", lr)
        self.max_lrs = _format_param("max_lr", optimizer, max_lr)
        step_size_up = float(step_size_up)
        step_size_down = step_size_up if step_size_down is None else float(step_size_down)
        self.total_size = step_size_up + step_size_down
        self.step_ratio = step_size_up / self.total_size
        if mode not in _MODES and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode if scale_fn is not None else _MODES[mode]
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1 = _momentum_is_beta1(optimizer)
            self.base_momentums = _format_param("base_momentum", optimizer, base_momentum)
            self.max_momentums = _format_param("max_momentum", optimizer, max_momentum)
            if last_epoch == -1:
                _begin_at_max_momentum(optimizer, self.use_beta1, self.max_momentums, self.base_momentums)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x):
        """The scale of cycle or step x."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular":
            return 1.0
        return 1 / 2.0 ** (x - 1) if self.mode == "triangular2" else self.gamma**x

    def get_lr(self):
        """As a side effect, sets the momentum of each group too."""
        _warn_get_lr_called_within_step(self)
        height, scale = self._height_and_scale()
        if self.cycle_momentum:
            limits = zip(self.optimizer.param_groups, self.base_momentums, self.max_momentums, strict=True)
            for group, low, high in limits:
                _set_momentum(group, self.use_beta1, high - (high - low) * height * scale)
        limits = zip(self.base_lrs, self.max_lrs, strict=True)
        return [low + (high - low) * height * scale for low, high in limits]

    def _height_and_scale(self):
        cycles = self.last_epoch / self.total_size
        cycle = math.floor(1 + cycles)
        x = 1.0 + cycles - cycle  # position within the cycle, 0 to 1
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        # in PyTorch: the scale is asked for anew for each group
        return height, self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)

    def state_dict(self):
        """A scale_fn is saved as LambdaLR's functions are: an object's attributes, else nothing."""
        state_dict = self._state_without("optimizer", "_scale_fn_custom")
        scale_fn = self._scale_fn_custom
        state_dict["_scale_fn_custom"] = None if scale_fn is None else _state_of(scale_fn)
        return state_dict

    def load_state_dict(self, state_dict) -> None:
        # in PyTorch: the entry of scale_fn is also taken out of the dictionary that is given
        super().load_state_dict({k: v for k, v in state_dict.items() if k != "_scale_fn_custom"})
        if state_dict["_scale_fn_custom"] is not None:
            self._scale_fn_custom.__dict__.update(state_dict["_scale_fn_custom"])


# CyclicLR's modes, and what their scale is a function of
_MODES = {"triangular": "cycle", "triangular2": "cycle", "exp_range": "iterations"}


class OneCycleLR(LRScheduler):
    """One hill: up from initial_lr to max_lr in the first part of the training, then down to min_lr.

        initial_lr = max_lr / div_factor                    min_lr = initial_lr / final_div_factor
        η = b + (a - b) (1 + cos(π p)) / 2      anneal_strategy "cos"; p: 0 → 1 on the way from a to b
        η = a + (b - a) p                       anneal_strategy "linear"

    The way up takes pct_start of the steps. With three_phase the way down to initial_lr takes as long, and
    what is left goes on to min_lr. With cycle_momentum, the momentum (or Adam's β₁) goes the other way, from
    max_momentum to base_momentum and back. One `step` for every batch, total_steps in all (or
    epochs * steps_per_epoch); ValueError for more. Rates and momenta: a number, or a list with one for each
    group.
    """

    def __init__(
        self,
        optimizer,
        max_lr,
        total_steps=None,
        epochs=None,
        steps_per_epoch=None,
        pct_start=0.3,
        anneal_strategy="cos",
        cycle_momentum=True,
        base_momentum=0.85,
        max_momentum=0.95,
        div_factor=25.0,
        final_div_factor=1e4,
        three_phase=False,
        last_epoch=-1,
    ) -> None:
        _check_optimizer(optimizer)
        self.optimizer = optimizer
        self.total_steps = _count_steps(total_steps, epochs, steps_per_epoch)
        self._schedule_phases = _phases(self.total_steps, pct_start, three_phase)
        if pct_start < 0 or pct_start > 1 or not isinstance(pct_start, float):
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ["cos", "linear"]:
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._anneal_func_type = anneal_strategy
        max_lrs = _format_param("max_lr", optimizer, max_lr)
        if last_epoch == -1:
            for lr, group in zip(max_lrs, optimizer.param_groups):
                group["initial_lr"] = lr / div_factor
                group["max_lr"] = lr
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1 = _momentum_is_beta1(optimizer)
            max_momentums = _format_param("max_momentum", optimizer, max_momentum)
            base_momentums = _format_param("base_momentum", optimizer, base_momentum)
            if last_epoch == -1:
                _begin_at_max_momentum(optimizer, self.use_beta1, max_momentums, base_momentums)
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        """As a side effect, sets the momentum of each group too."""
        _warn_get_lr_called_within_step(self)
        if self.last_epoch > self.total_steps:
            raise ValueError(
                f"Tried to step {self.last_epoch} times. The specified number of total steps is {self.total_steps}"
            )
        phase, pct = self._phase()
        groups = self.optimizer.param_groups
        if self.cycle_momentum:
            for group in groups:
                start, end = group[phase["start_momentum"]], group[phase["end_momentum"]]
                _set_momentum(group, self.use_beta1, self._anneal_func(start, end, pct))
        return [self._anneal_func(group[phase["start_lr"]], group[phase["end_lr"]], pct) for group in groups]

    def _phase(self):
        """The phase that this step is in, and how much of it is over."""
        start_step = 0.0
        for phase in self._schedule_phases:
            end_step = phase["end_step"]
            if self.last_epoch <= end_step or phase is self._schedule_phases[-1]:
                return phase, (self.last_epoch - start_step) / (end_step - start_step)
            start_step = end_step

    def _anneal_func(self, start, end, pct):
        anneal = self._annealing_cos if self._anneal_func_type == "cos" else self._annealing_linear
        return anneal(start, end, pct)

    @staticmethod
    def _annealing_cos(start, end, pct):
        return end + (start - end) / 2.0 * (math.cos(math.pi * pct) + 1)

    @staticmethod
    def _annealing_linear(start, end, pct):
        return (end - start) * pct + start


def _count_steps(total_steps, epochs, steps_per_epoch):
    if total_steps is not None:
        if total_steps <= 0 or not isinstance(total_steps, int):
            raise ValueError(f"Expected positive integer total_steps, but got {total_steps}")
        return total_steps
    if epochs is None or steps_per_epoch is None:
        raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
    if not isinstance(epochs, int) or epochs <= 0:
        raise ValueError(f"Expected positive integer epochs, but got {epochs}")
    if not isinstance(steps_per_epoch, int) or steps_per_epoch <= 0:
        raise ValueError(f"Expected positive integer steps_per_epoch, but got {steps_per_epoch}")
    return epochs * steps_per_epoch


def _phases(total_steps, pct_start, three_phase):
    """Where each phase ends, and between which settings of the group it leads. Part of a checkpoint."""
    top = float(pct_start * total_steps) - 1
    up = _leads(top, "initial_lr", "max_lr", "max_momentum", "base_momentum")
    if not three_phase:
        return [up, _leads(total_steps - 1, "max_lr", "min_lr", "base_momentum", "max_momentum")]
    foot = float(2 * pct_start * total_steps) - 2
    down = _leads(foot, "max_lr", "initial_lr", "base_momentum", "max_momentum")
    return [up, down, _leads(total_steps - 1, "initial_lr", "min_lr", "max_momentum", "max_momentum")]


def _leads(end_step, start_lr, end_lr, start_momentum, end_momentum):
    return {
        "end_step": end_step,
        "start_lr": start_lr,
        "end_lr": end_lr,
        "start_momentum": start_momentum,
        "end_momentum": end_momentum,
    }


# Momentum, for both


def _momentum_is_beta1(optimizer):
    """Whether the optimizer's momentum is betas[0], as Adam's is; ValueError if it has neither."""
    if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
        raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
    return "betas" in optimizer.defaults


def _set_momentum(group, use_beta1, momentum):
    if use_beta1:
        group["betas"] = (momentum, *group["betas"][1:])
    else:
        group["momentum"] = momentum


def _begin_at_max_momentum(optimizer, use_beta1, max_momentums, base_momentums):
    for high, low, group in zip(max_momentums, base_momentums, optimizer.param_groups, strict=True):
        _set_momentum(group, use_beta1, high)
        group["max_momentum"] = high
        group["base_momentum"] = low
