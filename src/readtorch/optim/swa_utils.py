"""Averages of a model's weights along its training: stochastic weight averaging (SWA), moving averages (EMA).

In PyTorch: `torch/optim/swa_utils.py`. See the chapter "Schedulers and SWA".

    SWA    w̄ ← w̄ + (w - w̄) / (n + 1)           mean of n + 1 models, all with the same weight
    EMA    w̄ ← decay w̄ + (1 - decay) w          the older a model, the less it counts

Training with a high rate moves around a minimum; the mean of the points on its path lies nearer to the minimum.

P. Izmailov and others: Averaging weights leads to wider optima and better generalization (2018).
B. T. Polyak, A. B. Juditsky: Acceleration of stochastic approximation by averaging (1992).
"""

import math
from copy import deepcopy
from itertools import chain

import readtorch
from readtorch.nn import Module
from readtorch.nn.modules.batchnorm import _BatchNorm

from .lr_scheduler.base import LRScheduler, _format_param, _warn_get_lr_called_within_step

__all__ = [
    "AveragedModel",
    "update_bn",
    "SWALR",
    "get_ema_multi_avg_fn",
    "get_swa_multi_avg_fn",
    "get_ema_avg_fn",
    "get_swa_avg_fn",
]


# The averages: of one parameter (returns the new average), and of many (changes the averages in place)


def get_ema_avg_fn(decay=0.999):
    """`f(average, current, n)` for a moving average. ValueError unless 0 <= decay <= 1."""
    _check_decay(decay)

    @readtorch.no_grad()
    def ema_update(ema_param, current_param, num_averaged):
        return decay * ema_param + (1 - decay) * current_param

    return ema_update


def get_ema_multi_avg_fn(decay=0.999):
    """`f(averages, currents, n)`, the same for lists of tensors of one dtype."""
    _check_decay(decay)

    @readtorch.no_grad()
    def ema_update(ema_param_list, current_param_list, _):
        if _can_lerp(ema_param_list[0]):
            _lerp_all(ema_param_list, current_param_list, 1 - decay)
        else:
            for ema, current in zip(ema_param_list, current_param_list, strict=True):
                ema.copy_(ema * decay + current * (1 - decay))

    return ema_update


def get_swa_avg_fn():
    """`f(average, current, n)` for the mean of all; n: how many models the average is made of already."""

    @readtorch.no_grad()
    def swa_update(averaged_param, current_param, num_averaged):
        return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return swa_update


def get_swa_multi_avg_fn():
    """`f(averages, currents, n)` for the means of tensors of one floating-point or complex dtype."""

    @readtorch.no_grad()
    def swa_update(averaged_param_list, current_param_list, num_averaged):
        if _can_lerp(averaged_param_list[0]):
            _lerp_all(averaged_param_list, current_param_list, 1 / (num_averaged + 1))
        else:
            for averaged, current in zip(averaged_param_list, current_param_list, strict=True):
                _move_toward(averaged, current, num_averaged)

    return swa_update


def _check_decay(decay):
    if decay < 0.0 or decay > 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")


def _can_lerp(tensor):
    return tensor.is_floating_point() or tensor.is_complex()


def _lerp_all(averages, currents, weight):
    # in PyTorch: torch._foreach_lerp_, one operator for the whole list
    for average, current in zip(averages, currents, strict=True):
        average.lerp_(current, float(weight))


def _move_toward(averaged, current, num_averaged):
    """The mean of integers: an error of addcdiv_, here as in PyTorch, if their number is a tensor."""
    if isinstance(num_averaged, readtorch.Tensor):
        averaged.addcdiv_(current - averaged, num_averaged + 1)
    else:
        averaged.add_(current - averaged, alpha=1.0 / (num_averaged + 1))


class AveragedModel(Module):
    """A copy of a model whose parameters are the average of those that `update_parameters` has seen.

    model: it is copied (to `device`, if given) as `module`. avg_fn, multi_avg_fn: at most one, else
    AssertionError; the mean of all (SWA) if none. use_buffers: average the buffers as well, instead of taking
    them over from the model. n_averaged (a buffer): how many models the average is made of.

    The first update copies. The functions are not in the state dict.
    """

    def __init__(self, model, device=None, avg_fn=None, multi_avg_fn=None, use_buffers=False) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", readtorch.tensor(0, dtype=readtorch.long, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args, **kwargs):
        return self.module(*args, **kwargs)

    def update_parameters(self, model) -> None:
        """Take the parameters of `model`, which is built like the one given first, into the average."""
        averages = [tensor.detach() for tensor in self._averaged_tensors(self.module)]
        currents = self._averaged_tensors(model)
        currents = [new.detach().to(average.device) for average, new in zip(averages, currents)]
        if self.n_averaged == 0:
            _copy_all(averages, currents)
        elif self.multi_avg_fn is not None:
            self._average_by_kind(averages, currents)
        else:
            self._average_one_by_one(averages, currents)
        if not self.use_buffers:
            _copy_all(self.module.buffers(), model.buffers())
        self.n_averaged += 1

    def _averaged_tensors(self, model):
        return chain(model.parameters(), model.buffers()) if self.use_buffers else model.parameters()

    def _average_one_by_one(self, averages, currents):
        # in PyTorch: with neither function given, get_swa_multi_avg_fn on devices that have foreach kernels
        avg_fn = self.avg_fn or get_swa_avg_fn()
        for average, current in zip(averages, currents, strict=True):
            average.copy_(avg_fn(average, current, self.n_averaged.to(average.device)))

    def _average_by_kind(self, averages, currents):
        """One call of multi_avg_fn for all tensors of the same device and dtype."""
        kinds = {}
        for average, current in zip(averages, currents, strict=True):
            kinds.setdefault((average.device, average.dtype), []).append((average, current))
        for (device, _), pairs in kinds.items():
            self.multi_avg_fn(*map(list, zip(*pairs)), self.n_averaged.to(device))


def _copy_all(targets, sources):
    for target, source in zip(targets, sources, strict=True):
        target.detach().copy_(source.detach().to(target.device))


@readtorch.no_grad()
def update_bn(loader, model, device=None) -> None:
    """Let the batch norms of `model` measure mean and variance anew, in one pass over `loader`.

    An average of weights has seen no data: the statistics that it took over belong to other weights. Every
    batch counts the same, whatever the layers' momentum. loader: gives tensors, or lists and tuples that
    begin with one, which go to `device` if that is given.
    """
    momenta = {}
    for module in model.modules():
        if isinstance(module, _BatchNorm):
            module.reset_running_stats()
            momenta[module] = module.momentum
    if not momenta:
        return
    was_training = model.training
    model.train()
    for module in momenta:
        module.momentum = None  # None: the mean over all batches
    for batch in loader:
        if isinstance(batch, (list, tuple)):
            batch = batch[0]
        model(batch if device is None else batch.to(device))
    for module, momentum in momenta.items():
        module.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """η_t = (1 - α) η_0 + α swa_lr, with α = s(min(t / anneal_epochs, 1)): a slope to swa_lr, then level.

        s(x) = (1 - cos(π x)) / 2     anneal_strategy "cos"
        s(x) = x                      anneal_strategy "linear"

    For the last part of a training, in which AveragedModel averages: the rate stays high enough to wander.
    swa_lr: a number, or a list with one for each group. t counts from here on; other schedulers may have come
    before. ValueError for another strategy, or if anneal_epochs is no integer of at least 0.
    """

    def __init__(self, optimizer, swa_lr, anneal_epochs=10, anneal_strategy="cos", last_epoch=-1) -> None:
        swa_lrs = _format_param("swa_lr", optimizer, swa_lr)
        for lr, group in zip(swa_lrs, optimizer.param_groups, strict=True):
            group["swa_lr"] = lr
        if anneal_strategy not in ["cos", "linear"]:
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._set_anneal_func(anneal_strategy)
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        """η_0 follows from η_{t-1}: (η_{t-1} - α swa_lr) / (1 - α), with the α of t - 1."""
        _warn_get_lr_called_within_step(self)
        t = self._step_count - 1
        if self.anneal_epochs == 0:
            t = max(1, t)
        alpha_before, alpha = self._alpha(t - 1), self._alpha(t)
        groups = self.optimizer.param_groups
        initial_lrs = [self._get_initial_lr(group["lr"], group["swa_lr"], alpha_before) for group in groups]
        pairs = zip(groups, initial_lrs, strict=True)
        return [group["swa_lr"] * alpha + initial_lr * (1 - alpha) for group, initial_lr in pairs]

    def _alpha(self, t):
        return self.anneal_func(max(0, min(1, t / max(1, self.anneal_epochs))))

    @staticmethod
    def _get_initial_lr(lr, swa_lr, alpha):
        return swa_lr if alpha == 1 else (lr - alpha * swa_lr) / (1 - alpha)

    def _set_anneal_func(self, anneal_strategy):
        self._anneal_strategy = anneal_strategy
        self.anneal_func = self._cosine_anneal if anneal_strategy == "cos" else self._linear_anneal

    @staticmethod
    def _linear_anneal(t):
        return t

    @staticmethod
    def _cosine_anneal(t):
        return (1 - math.cos(math.pi * t)) / 2

    def state_dict(self):
        return self._state_without("optimizer", "anneal_func")

    def load_state_dict(self, state_dict) -> None:
        super().load_state_dict(state_dict)
        self._set_anneal_func(self._anneal_strategy)
