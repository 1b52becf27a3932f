"""Where optimizers go on a surface, written down for the loss-surface paths by letting them go.

Every optimizer gets a parameter of two numbers of its own and steps as in a training: clear the gradient,
compute loss and gradient, step. Nothing is known here about any formula.
"""

from __future__ import annotations

import inspect
import math
from dataclasses import asdict, dataclass

from readtorch.c10.extras import extra

from .docstrings import first_sentence

MOST_STEPS = 500
MOST_OPTIMIZERS = 10
GRID = 81  # points along each axis, for the contours
SHARES = (0.01, 0.03, 0.07, 0.13, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)  # of the picture below each contour


@dataclass
class Path:
    """One optimizer's way: a point and its loss after each step; None for a loss that is not finite."""

    label: str
    optimizer: str  # the name of its class
    settings: str  # "lr=0.1, momentum=0.9": the rate, and what is not as by default
    about: str  # what is to be seen, in a sentence; else the first one of the class's docstring
    points: list  # [x, y], or None where a coordinate is not finite
    losses: list
    evaluations: int  # how often the loss was asked for, in all steps together


def record_paths(function, optimizers, start, x, y, steps=100, minimum=None, about=None) -> dict:
    """`function(x, y)`, and a dict or pairs of label and `make(params)`, which gives an optimizer -> JSON.

    start: two numbers, or a tensor of two of either library, whose dtype is used. x, y: (low, high) of the
    picture. about: a dict of label and sentence. ValueError for more optimizers or steps than can be told apart and for
    a sentence about none of the optimizers, TypeError for what is not callable.
    """
    pairs = list(optimizers.items() if hasattr(optimizers, "items") else optimizers)
    if not pairs or not all(len(pair) == 2 and callable(pair[1]) for pair in pairs):
        raise TypeError("expected a dict {label: function of the parameters} or a list of (label, function)")
    if len(pairs) > MOST_OPTIMIZERS:
        raise ValueError(f"{len(pairs)} optimizers; loss-surface paths draws at most {MOST_OPTIMIZERS}")
    if not 1 <= steps <= MOST_STEPS:
        raise ValueError(f"{steps} steps; loss-surface paths draws 1 to {MOST_STEPS}")
    sentences = dict(about or {})
    if strange := set(sentences) - {label for label, _ in pairs}:
        raise ValueError(f"no optimizer has the label {min(strange)!r}, which about has a sentence for")
    start = as_tensor(start)
    paths = [record(label, make, function, start, steps, sentences.get(label)) for label, make in pairs]
    return {
        "x": list(x),
        "y": list(y),
        "steps": steps,
        "minimum": minimum and list(minimum),
        "contours": contours(function, start, x, y),
        "paths": [asdict(path) for path in paths],
    }


def as_tensor(start):
    if hasattr(start, "detach"):
        return start.detach()
    import readtorch

    return readtorch.tensor(start, dtype=readtorch.float64)


def record(label, make, function, start, steps, about) -> Path:
    point = start.clone().requires_grad_()
    optimizer = make([point])
    evaluations = 0

    def closure():
        nonlocal evaluations
        evaluations += 1
        optimizer.zero_grad()
        loss = function(point[0], point[1])
        loss.backward()
        return loss

    points, losses = [note(point)], [loss_at(function, point)]
    for _ in range(steps):
        optimizer.step(closure)
        points.append(note(point))
        losses.append(loss_at(function, point))
    about = about or first_sentence(inspect.getdoc(type(optimizer)) or "")
    return Path(label, type(optimizer).__name__, settings_of(optimizer), about, points, losses, evaluations)


def settings_of(optimizer) -> str:
    """The rate, and the settings that are not as by default."""
    parameters = inspect.signature(type(optimizer)).parameters
    group = optimizer.param_groups[0]
    chosen = {name: group[name] for name in parameters if name != "params" and name in group}
    return ", ".join(
        f"{name}={value}" for name, value in chosen.items() if name == "lr" or value != parameters[name].default
    )


def loss_at(function, point) -> float | None:
    loss = float(function(*point.detach()))
    return rounded(loss) if math.isfinite(loss) else None


def note(point) -> list | None:
    numbers = point.tolist()
    return [rounded(number) for number in numbers] if all(map(math.isfinite, numbers)) else None


def rounded(number) -> float:
    """Five digits: enough for any picture."""
    return float(f"{number:.5g}")


def contours(function, start, x, y) -> list:
    """Lines [[x, y], …] of equal loss for each level; between two levels lies a given share of the picture."""
    import numpy

    with extra("viz", "viz.loss_surface"):
        from contourpy import contour_generator

    across, up = numpy.meshgrid(numpy.linspace(*x, GRID), numpy.linspace(*y, GRID))
    losses = function(start.new_tensor(across.tolist()), start.new_tensor(up.tolist()))
    heights = numpy.array(losses.tolist(), dtype=float)
    levels = numpy.quantile(heights[numpy.isfinite(heights)], SHARES)
    drawn = contour_generator(across, up, numpy.ma.masked_invalid(heights))
    return [
        {
            "level": rounded(level),
            "lines": [[[rounded(number) for number in pair] for pair in line] for line in drawn.lines(level)],
        }
        for level in sorted(set(levels.tolist()))
    ]
