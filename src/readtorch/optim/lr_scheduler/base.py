"""`LRScheduler`, what all schedules share: each `step` sets the learning rate of every group.

In PyTorch: `torch/optim/lr_scheduler.py`. See the chapter "Schedulers and SWA".

In the formulas of this package, t is the number of `step` calls so far (`last_epoch`), η_t the learning rate
after them (`group["lr"]`) and η_0 the one that the optimizer came with (`group["initial_lr"]`, `base_lrs`).

Note [Chained and closed form]
A schedule can be written in two ways. The chained form, `get_lr`, makes η_t from η_{t-1} as it stands in the
group: it multiplies whatever is there, so that several schedulers of one optimizer multiply each other. The
closed form, `_get_closed_form_lr`, makes η_t from η_0 and t alone, and so knows nothing of other schedulers:
it serves where t jumps, in `step(epoch)` and at the milestones of SequentialLR. Schedules whose chained form
would be no simpler (LambdaLR, CyclicLR, OneCycleLR, CosineAnnealingWarmRestarts) have the closed one in
`get_lr`.

Note [Who has stepped first]
The first rate of a schedule belongs to the first `optimizer.step()`; whoever calls `scheduler.step()` before
it loses that rate. To notice it, the scheduler puts a method of the same name into the optimizer *object*,
which notes the call and goes on to the class's method. The optimizer owns this function, which therefore
holds the optimizer weakly: with a strong reference both would live until the garbage collector finds the
circle.
"""

import functools
import warnings
import weakref
from contextlib import contextmanager

from readtorch._tensor import Tensor
from readtorch.optim.optimizer import Optimizer, _to_scalar

EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being "
    "deprecated where possible. Please use `scheduler.step()` to step the "
    "scheduler. During the deprecation, if epoch is different from None, the "
    "closed form is used instead of the new chainable form, where available. "
    "Please open an issue if you are unable to replicate your use case: "
    "https://github.com/pytorch/pytorch/issues/new/choose."
)
_HOW_TO = "https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"
_STEP_OVERRIDDEN = (
    "Seems like `optimizer.step()` has been overridden after learning rate scheduler "
    "initialization. Please, make sure to call `optimizer.step()` before "
    f"`lr_scheduler.step()`. See more details at {_HOW_TO}"
)
_WRONG_ORDER = (
    "Detected call of `lr_scheduler.step()` before `optimizer.step()`. "
    "In PyTorch 1.1.0 and later, you should call them in the opposite order: "
    "`optimizer.step()` before `lr_scheduler.step()`.  Failure to do this "
    "will result in PyTorch skipping the first value of the learning rate schedule. "
    f"See more details at {_HOW_TO}"
)
_NOT_RESUMED = (
    "This typically happens when:\n"
    "1. You're trying to resume training from a checkpoint but haven't properly loaded the optimizer state\n"
    "2. You're using last_epoch >= 0 for a fresh training run (not recommended)"
)


class LRScheduler:
    """Base class of all schedulers. A subclass writes `get_lr`, and `_get_closed_form_lr` if it has one.

    last_epoch: -1 at the start of a training. To go on with one, the number of its last epoch; the groups
    must then have their "initial_lr" (it is in the optimizer's state dict), else KeyError.

    base_lrs: η_0 of each group. TypeError for what is no Optimizer. See Note [Chained and closed form].
    """

    _get_lr_called_within_step = False
    _is_initial = False

    def __init__(self, optimizer, last_epoch=-1) -> None:
        _check_optimizer(optimizer)
        self.optimizer = optimizer
        if last_epoch == -1:
            for group in optimizer.param_groups:
                group.setdefault("initial_lr", _copied(group["lr"]))
        else:
            _check_resumed(optimizer)
        self.base_lrs = _param_groups_val_list(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        _note_steps(optimizer)
        self._initial_step()

    def _initial_step(self):
        """The step from epoch -1 to 0, which sets the first rates (or from `last_epoch` to the one after)."""
        self._step_count = 0
        with _initial_mode(self):
            self.step()

    def get_lr(self):
        """The next rate of each group. `step` calls it; to see the rates call `get_last_lr`."""
        raise NotImplementedError

    def get_last_lr(self):
        """The rate of each group as the last step left it."""
        return self._last_lr

    def step(self, epoch=None) -> None:
        """Set the rates of the next epoch. epoch (deprecated): jump there, by the closed form if it exists.

        Warns if it is called before the optimizer's first step. See Note [Who has stepped first].
        """
        if self._step_count == 1:
            self._check_order()
        self._step_count += 1
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
        self._update_lr(epoch)

    def _check_order(self):
        if not hasattr(self.optimizer.step, "_wrapped_by_lr_sched"):
            warnings.warn(_STEP_OVERRIDDEN, UserWarning, stacklevel=3)
        elif not getattr(self.optimizer, "_opt_called", False):
            warnings.warn(_WRONG_ORDER, UserWarning, stacklevel=3)

    def _update_lr(self, epoch=None):
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        closed_form = None if epoch is None else getattr(self, "_get_closed_form_lr", None)
        with _enable_get_lr_call(self):
            lrs = self.get_lr() if closed_form is None else closed_form()
        self._set_lrs(lrs)

    def _set_lrs(self, lrs):
        for group, lr in zip(self.optimizer.param_groups, lrs, strict=True):
            _update_param_group_val(group, "lr", lr)
        self._last_lr = _param_groups_val_list(self.optimizer, "lr")

    def state_dict(self):
        """Everything that this object remembers, except for its optimizer (which has a state dict itself)."""
        return self._state_without("optimizer")

    def _state_without(self, *names):
        return {name: value for name, value in self.__dict__.items() if name not in names}

    def load_state_dict(self, state_dict) -> None:
        """Go on where the scheduler was that gave this dictionary."""
        self.__dict__.update(state_dict)


class _LRScheduler(LRScheduler):
    """The name that LRScheduler had before it became public."""


# What a scheduler asks of an optimizer


def _check_optimizer(optimizer):
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")


def _check_resumed(optimizer):
    for i, group in enumerate(optimizer.param_groups):
        if "initial_lr" not in group:
            raise KeyError(
                f"param 'initial_lr' is not specified in param_groups[{i}] when resuming scheduler with "
                f"last_epoch >= 0.\n{_NOT_RESUMED}"
            )


def _note_steps(optimizer):
    """From here on `optimizer.step` sets `optimizer._opt_called`. See Note [Who has stepped first]."""
    if hasattr(optimizer.step, "_wrapped_by_lr_sched"):
        return
    step = optimizer.step.__func__
    optimizer_ref = weakref.ref(optimizer)

    @functools.wraps(step)
    def noting_step(*args, **kwargs):
        optimizer = optimizer_ref()
        optimizer._opt_called = True
        return step(optimizer, *args, **kwargs)

    noting_step._wrapped_by_lr_sched = True
    optimizer.step = noting_step


# Settings of the groups. A rate may be a tensor, which is then changed in place and never handed out itself.


def _copied(value):
    return value.clone() if isinstance(value, Tensor) else value


def _param_groups_val_list(optimizer, key):
    """`group[key]` of every group; KeyError where it is missing."""
    return [_copied(group[key]) for group in optimizer.param_groups]


def _update_param_group_val(param_group, key, val):
    """Set `param_group[key]`, in place if it is a tensor; KeyError if it is missing."""
    if isinstance(param_group[key], Tensor):
        param_group[key].fill_(_to_scalar(val))
    else:
        param_group[key] = val


def _format_param(name, optimizer, param):
    """One value a group: those of a list, or `param` for each. ValueError for a list of another length."""
    groups = optimizer.param_groups
    if not isinstance(param, (list, tuple)):
        param = [param] * len(groups)
    elif len(param) != len(groups):
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. "
            f"{name} has {len(param)} values, param_groups has {len(groups)}."
        )
    return [_copied(value) for value in param]


# Marks that stand while something runs


@contextmanager
def _while_marked(scheduler, mark):
    setattr(scheduler, mark, True)
    try:
        yield
    finally:
        setattr(scheduler, mark, False)


def _enable_get_lr_call(scheduler):
    """Inside, `get_lr` may be called without a warning."""
    return _while_marked(scheduler, "_get_lr_called_within_step")


def _initial_mode(scheduler):
    """Inside, a step is the initial one."""
    return _while_marked(scheduler, "_is_initial")


def _warn_get_lr_called_within_step(scheduler):
    """Every `get_lr` begins with this: it gives the *next* rate, which is seldom what a caller wants."""
    if not scheduler._get_lr_called_within_step:
        warnings.warn(
            "To get the last learning rate computed by the scheduler, please use `get_last_lr()`.",
            UserWarning,
            stacklevel=2,
        )
