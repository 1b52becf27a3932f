"""What schedulers do to the learning rate, written down for the schedule plotter by letting them do it.

Every schedule gets an optimizer of its own and runs through the epochs as in a training: the rate is noted,
the optimizer steps, then the scheduler. Nothing is known here about any formula.
"""

from __future__ import annotations

import inspect
import math
from dataclasses import asdict, dataclass

from .docstrings import first_sentence

MOST_EPOCHS = 1000
MOST_SCHEDULES = 10


@dataclass
class Curve:
    """One scheduler's numbers, an epoch after another; None stands for what is not finite."""

    label: str
    scheduler: str  # the name of its class
    about: str  # the first sentence of the class's docstring: the formula
    rates: list
    momenta: list  # empty if the momentum stays as it is


def record_schedules(schedules, epochs=100, optimizer=None, measure=None) -> dict:
    """A dict or pairs of label and `make(optimizer)`, which gives a scheduler -> curves as JSON.

    Raises ValueError for more schedules or epochs than can be told apart, TypeError for what is not callable.
    """
    pairs = list(schedules.items() if hasattr(schedules, "items") else schedules)
    if not pairs or not all(len(pair) == 2 and callable(pair[1]) for pair in pairs):
        raise TypeError("expected a dict {label: function of an optimizer} or a list of (label, function)")
    if len(pairs) > MOST_SCHEDULES:
        raise ValueError(f"{len(pairs)} schedules; the schedule plotter draws at most {MOST_SCHEDULES}")
    if not 2 <= epochs <= MOST_EPOCHS:
        raise ValueError(f"{epochs} epochs; the schedule plotter draws 2 to {MOST_EPOCHS}")
    curves = [record(label, make, epochs, optimizer or plain_optimizer, measure) for label, make in pairs]
    return {"epochs": epochs, "curves": [asdict(curve) for curve in curves]}


def plain_optimizer():
    import readtorch

    return readtorch.optim.SGD([readtorch.nn.Parameter(readtorch.ones(1))], lr=0.1, momentum=0.9)


def record(label, make, epochs, new_optimizer, measure) -> Curve:
    optimizer = new_optimizer()
    scheduler = make(optimizer)
    group = optimizer.param_groups[0]
    rates, momenta = [note(group["lr"])], [note(momentum_of(group))]
    for epoch in range(epochs - 1):
        optimizer.step()
        scheduler.step(*measured(scheduler, measure, epoch))
        rates.append(note(group["lr"]))
        momenta.append(note(momentum_of(group)))
    about = first_sentence(inspect.getdoc(type(scheduler)) or "")
    return Curve(label, type(scheduler).__name__, about, rates, momenta if len(set(momenta)) > 1 else [])


def measured(scheduler, measure, epoch) -> tuple:
    """What `step` is called with: nothing, except by ReduceLROnPlateau, which wants to see the loss."""
    if "metrics" not in inspect.signature(scheduler.step).parameters:
        return ()
    if measure is None:
        raise TypeError(f"{type(scheduler).__name__} watches a loss: give measure, a function of the epoch")
    return (measure(epoch),)


def momentum_of(group) -> float:
    return group["betas"][0] if "betas" in group else group.get("momentum", 0)


def note(number) -> float | None:
    """Six digits: enough for any picture."""
    number = float(number)
    return float(f"{number:.6g}") if math.isfinite(number) else None
