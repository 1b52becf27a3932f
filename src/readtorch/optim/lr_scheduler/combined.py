"""Schedules made of others: one after another, or all at once.

In PyTorch: `torch/optim/lr_scheduler.py`. See the chapter "Schedulers and SWA".
"""

from bisect import bisect_right

from .base import LRScheduler, _param_groups_val_list, _update_param_group_val
from .plateau import ReduceLROnPlateau


class _CombinedLR(LRScheduler):
    """What SequentialLR and ChainedScheduler share: checks of the schedulers, one state dict for all."""

    def _check(self, schedulers, optimizer):
        own_name = type(self).__name__
        for i, scheduler in enumerate(schedulers):
            if not hasattr(scheduler, "optimizer"):
                raise TypeError(f"{own_name} at index {i} should have `optimizer` as its attribute.")
            if isinstance(scheduler, ReduceLROnPlateau):
                raise ValueError(
                    f"{own_name} does not support `ReduceLROnPlateau` scheduler as it requires additional "
                    f"kwargs to be specified when calling `step`, but got one at index {i} in the given "
                    "schedulers sequence."
                )
            if optimizer != scheduler.optimizer:
                raise ValueError(
                    f"{own_name} expects all schedulers to belong to the same optimizer, but got scheduler "
                    f"{type(scheduler).__name__} at index {i} has {scheduler.optimizer}, which is different "
                    f"from {type(optimizer).__name__}."
                )

    def state_dict(self):
        state_dict = self._state_without("optimizer", "_schedulers")
        state_dict["_schedulers"] = [scheduler.state_dict() for scheduler in self._schedulers]
        return state_dict

    def load_state_dict(self, state_dict) -> None:
        self.__dict__.update({name: value for name, value in state_dict.items() if name != "_schedulers"})
        for i, state in enumerate(state_dict["_schedulers"]):
            self._schedulers[i].load_state_dict(state)


class SequentialLR(_CombinedLR):
    """One schedule after another: the first until milestones[0], the second from there to milestones[1], …

    Each begins at its own epoch 0 with the optimizer's first rate. ValueError unless there is one milestone
    less than there are schedulers; ReduceLROnPlateau and schedulers of other optimizers are refused.
    """

    def __init__(self, optimizer, schedulers, milestones, last_epoch=-1) -> None:
        if len(schedulers) < 1:
            raise ValueError(f"{type(self).__name__} expects at least one scheduler, but got no scheduler.")
        self._check(schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than the number "
                f"of milestone points, but got number of schedulers {len(schedulers)} and the number of "
                f"milestones to be equal to {len(milestones)}"
            )
        self._schedulers = schedulers
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        self.optimizer = optimizer
        # Each scheduler has set the rates when it was made. That is undone, and the first one begins.
        for group in optimizer.param_groups:
            _update_param_group_val(group, "lr", group["initial_lr"])
        self.recursive_undo()
        first = self._schedulers[bisect_right(milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def recursive_undo(self, sched=None):
        """Take back the epoch that each scheduler in `sched` (this one if None) has counted at its start."""
        sched = self if sched is None else sched
        if hasattr(sched, "_schedulers"):
            for inner in sched._schedulers:
                self.recursive_undo(inner)
        elif hasattr(sched, "last_epoch"):
            sched.last_epoch -= 1

    def step(self) -> None:
        self.last_epoch += 1
        i = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[i]
        if i > 0 and self._milestones[i - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


class ChainedScheduler(_CombinedLR):
    """All schedules at once: each `step` is a step of every one, in order. Their factors multiply.

    See Note [Chained and closed form]. ReduceLROnPlateau and schedulers of other optimizers are refused.
    """

    def __init__(self, schedulers, optimizer=None) -> None:
        if len(schedulers) < 1:
            raise ValueError(
                f"{type(self).__name__} expects at least one scheduler to be chained, but got no scheduler."
            )
        optimizer = optimizer or schedulers[0].optimizer
        self._check(schedulers, optimizer)
        self._schedulers = schedulers
        self.optimizer = optimizer
        self._last_lr = _param_groups_val_list(optimizer, "lr")

    def step(self) -> None:
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = _param_groups_val_list(self.optimizer, "lr")
