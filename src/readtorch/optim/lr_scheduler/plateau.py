"""The schedule that watches the training. In PyTorch: `torch/optim/lr_scheduler.py`. See the chapter
"Schedulers and SWA".
"""

import warnings

from .base import (
    EPOCH_DEPRECATION_WARNING,
    LRScheduler,
    _check_optimizer,
    _param_groups_val_list,
    _update_param_group_val,
)

_BETTER = {  # whether a is better than the best so far, by more than the threshold
    ("min", "rel"): lambda a, best, threshold: a < best * (1.0 - threshold),
    ("min", "abs"): lambda a, best, threshold: a < best - threshold,
    ("max", "rel"): lambda a, best, threshold: a > best * (threshold + 1.0),
    ("max", "abs"): lambda a, best, threshold: a > best + threshold,
}


class ReduceLROnPlateau(LRScheduler):
    """η ← max(factor η, min_lr) whenever a measure has not become better for more than `patience` steps.

    A staircase down whose steps come when the training stands still: a loss (mode "min") that has reached a
    plateau, or an accuracy ("max"). Better means by more than `threshold`, as a fraction of the best so far
    (threshold_mode "rel") or as a difference ("abs"). For `cooldown` steps after a reduction bad ones are not
    counted. A reduction of no more than `eps` is not made.
    """

    def __init__(
        self,
        optimizer,
        mode="min",
        factor=0.1,
        patience=10,
        threshold=1e-4,
        threshold_mode="rel",
        cooldown=0,
        min_lr=0,
        eps=1e-8,
    ) -> None:
        if factor >= 1.0:
            raise ValueError("Factor should be < 1.0.")
        self.factor = factor
        _check_optimizer(optimizer)
        self.optimizer = optimizer
        groups = optimizer.param_groups
        if isinstance(min_lr, (list, tuple)):
            if len(min_lr) != len(groups):
                raise ValueError(f"expected {len(groups)} min_lrs, got {len(min_lr)}")
            self.default_min_lr = None
            self.min_lrs = list(min_lr)
        else:
            self.default_min_lr = min_lr
            self.min_lrs = [min_lr] * len(groups)
        self.patience = patience
        self.cooldown = cooldown
        self.eps = eps
        self.last_epoch = 0
        self._last_lr = _param_groups_val_list(optimizer, "lr")
        self._init_is_better(mode, threshold, threshold_mode)
        self._reset()

    def _init_is_better(self, mode, threshold, threshold_mode):
        if mode not in {"min", "max"}:
            raise ValueError("mode " + mode + " is unknown!")
        if threshold_mode not in {"rel", "abs"}:
            raise ValueError("threshold mode " + threshold_mode + " is unknown!")
        self.mode_worse = float("inf") if mode == "min" else -float("inf")
        self.mode = mode
        self.threshold = threshold
        self.threshold_mode = threshold_mode

    def _reset(self):
        """Forget what was measured so far."""
        self.best = self.mode_worse
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    def step(self, metrics, epoch=None) -> None:
        """Take note of a measure, a number or a tensor of one element; reduce the rates if it is time."""
        current = float(metrics)
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._is_better(current, self.best):
            self.best = current
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce_lr(self.last_epoch)
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = _param_groups_val_list(self.optimizer, "lr")

    @property
    def in_cooldown(self):
        """Whether the last reduction is so near that bad steps are not counted."""
        return self.cooldown_counter > 0

    def _is_better(self, a, best):
        return _BETTER[self.mode, self.threshold_mode](a, best, self.threshold)

    def _reduce_lr(self, epoch):
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            self._extend_min_lrs(len(groups))
        for group, min_lr in zip(groups, self.min_lrs):
            old_lr = float(group["lr"])
            new_lr = max(old_lr * self.factor, min_lr)
            if old_lr - new_lr > self.eps:
                _update_param_group_val(group, "lr", new_lr)

    def _extend_min_lrs(self, count):
        """Groups were added after this scheduler was made."""
        if self.default_min_lr is None:
            raise RuntimeError(
                f"The number of param groups in the `optimizer` ({count}) differs from when "
                f"`ReduceLROnPlateau` was initialized ({len(self.min_lrs)}), usually due to a new param "
                "group being added to the optimizer. Please modify the `min_lrs` field to match the length "
                "of the `optimizer` param groups."
            )
        self.min_lrs = [self.default_min_lr] * count

    def load_state_dict(self, state_dict) -> None:
        self.__dict__.update(state_dict)
        self._init_is_better(self.mode, self.threshold, self.threshold_mode)
