"""`Join`: train on with ranks that have run out of inputs. In PyTorch:
`torch/distributed/algorithms/join.py`.

Note [ How a rank without inputs takes part ]
A rank that has left its loop would leave the others waiting in their next all-reduce. So it stays in the
context manager and answers: before each iteration all ranks count who still has inputs; those that have none
run the iteration's collectives with zeros ("shadow" them), until nobody is left.
"""

import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import readtorch
from readtorch import distributed as dist

__all__ = ["JoinHook", "Joinable", "Join"]

_MUCH_SKEW = 1000  # iterations


class JoinHook:
    """How a rank without inputs answers for one `Joinable`."""

    def main_hook(self):
        """Take part in the collectives of one iteration of the others."""

    def post_hook(self, is_last_joiner):
        """When all have joined; is_last_joiner: whether this rank was among the last to have inputs."""


@dataclass
class _JoinConfig:
    """What a Joinable knows of the context that it is in."""

    enable: bool
    throw_on_early_termination: bool
    is_first_joinable: bool

    @staticmethod
    def construct_disabled_join_config():
        """That of a Joinable outside any context."""
        return _JoinConfig(enable=False, throw_on_early_termination=False, is_first_joinable=False)


class Joinable(ABC):
    """Something with collectives in every iteration. Its constructor must run; see
    `Join.notify_join_context`.
    """

    @abstractmethod
    def __init__(self) -> None:
        super().__init__()
        self._join_config = _JoinConfig.construct_disabled_join_config()

    @abstractmethod
    def join_hook(self, **kwargs) -> JoinHook:
        """The hook for a rank that has joined; kwargs: those of `Join`."""

    @property
    @abstractmethod
    def join_device(self):
        """The device for the collectives of the context."""

    @property
    @abstractmethod
    def join_process_group(self) -> Any:
        """The process group for them."""


class Join:
    """`with Join([model]):` a rank whose inputs end early goes on answering until all others have none.

    With throw_on_early_termination all ranks raise RuntimeError as soon as one has no inputs. kwargs: for the
    hooks.
    """

    def __init__(self, joinables, enable=True, throw_on_early_termination=False, **kwargs):
        if len(joinables) == 0:
            raise ValueError("The join context manager requires at least one joinable")
        groups = {joinable.join_process_group for joinable in joinables}
        if len(groups) > 1:
            raise ValueError("Using join context manager with multiple process groups")
        self._joinables = joinables
        self._join_hooks = [joinable.join_hook(**kwargs) for joinable in joinables]
        self._enable = enable
        self._throw_on_early_termination = throw_on_early_termination
        self._process_group = groups.pop()
        self._rank = dist.get_rank(self._process_group)
        self._device = joinables[0].join_device
        for i, joinable in enumerate(joinables):
            joinable._join_config = _JoinConfig(enable, throw_on_early_termination, is_first_joinable=i == 0)

    def __enter__(self):
        return None

    def __exit__(self, type, value, traceback):
        if not self._enable or type:
            return
        iterations = 0
        while self._get_num_nonjoined_procs() > 0:
            if self._throw_on_early_termination:
                self._notify_procs_to_terminate()
            for hook in self._join_hooks:
                hook.main_hook()
            iterations += 1
            if iterations == _MUCH_SKEW:
                self._warn_of_skew()
        for hook in self._join_hooks:
            hook.post_hook(iterations == 0)

    def _get_num_nonjoined_procs(self):
        """How many ranks begin another iteration: they add one each, here none."""
        count = readtorch.zeros(1, device=self._device)
        dist.all_reduce(count, group=self._process_group)
        return count.item()

    def _notify_procs_to_terminate(self):
        dist.all_reduce(readtorch.ones(1, device=self._device), group=self._process_group)
        raise RuntimeError(f"Rank {self._rank} exhausted all inputs.")

    def _warn_of_skew(self):
        warnings.warn(
            f"Detected uneven input skew of greater than {_MUCH_SKEW}. This means that rank "
            f"{self._rank} has at least {_MUCH_SKEW} fewer inputs than other currently-active "
            "ranks. This level of skew could lead to performance degradation during training.",
            stacklevel=3,
        )

    @staticmethod
    def notify_join_context(joinable):
        """Call it before the first collective of an iteration: this rank has inputs.

        Returns the Work of counting, or None outside a context. RuntimeError with throw_on_early_termination
        if a rank has none.
        """
        if not hasattr(joinable, "_join_config"):
            raise AssertionError(f"Check that the {type(joinable)} constructor calls the ``Joinable`` constructor")
        config = joinable._join_config
        if not config.is_first_joinable or not config.enable:
            return None
        group, device = joinable.join_process_group, joinable.join_device
        work = dist.all_reduce(readtorch.ones(1, device=device), group=group, async_op=True)
        if config.throw_on_early_termination:
            ended = readtorch.zeros(1, device=device)
            dist.all_reduce(ended, group=group)
            if ended.item():
                raise RuntimeError("Detected at least one rank that exhausted inputs. Throwing across all ranks.")
        return work
