"""Declaring a figure whose inputs the reader changes on the page: inputs, a model, a drawing.

Note [ A model in two languages ]
The page has no kernel, so what the reader sees after a change is computed by JavaScript. The same model stands
in Python: it makes the picture and the sentence of a page without JavaScript, it answers in a notebook
(``widget.result``), it is compared with PyTorch, and ``tests/viz/test_figures.py`` runs both on random inputs
and compares what comes out. A model is a pure function, from a dict of inputs to a dict of JSON; ``say`` in it
is the sentence that is read out after each change, or a list of sentences: then the figure has steps.

A figure NAME is three files::

    figures/NAME.py            inputs, model and picture, and FIGURE, which puts them together
    static/models/NAME.js      the model: const model = (inputs) => ({ …, say: "…" })
    static/NAME.js             the drawing: export default { render: figure(model, draw) };

``viz.figure("NAME", …)`` shows it.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .inputs import Input

FIGURES = Path(__file__).parent / "figures"


@dataclass(frozen=True, eq=False)
class Figure:
    """A figure that can be declared once and shown often. ``Note [ A model in two languages ]``

    name: of its files and in addresses. model: from all inputs to the result; raises Refusal.
    picture: from the result and the number of the step to an SVG (see picture.py). hint: about its keys.
    helpers: other files of ``static`` that the drawing needs. sample: inputs for the test of the models
    (``sample(random)``), where choosing each by itself would mostly give refusals.
    """

    name: str
    title: str
    inputs: tuple[Input, ...]
    model: Callable[[dict], dict]
    picture: Callable[[dict, int], str]
    hint: str = ""
    helpers: tuple[str, ...] = ()
    sample: Callable | None = None

    def read(self, values: dict) -> dict:
        """All inputs, checked: these values and the defaults of the others. Raises Refusal."""
        unknown = set(values) - {one.name for one in self.inputs}
        if unknown:
            raise TypeError(f"the figure {self.name} has no input {', '.join(sorted(unknown))}")
        return {one.name: one.read(values.get(one.name, one.default)) for one in self.inputs}

    def result(self, **values) -> dict:
        return self.model(self.read(values))

    def random_inputs(self, random) -> dict:
        drawn = self.sample(random) if self.sample else {}
        return {one.name: drawn[one.name] if one.name in drawn else one.sample(random) for one in self.inputs}


def sentence(result: dict, step: int = 0) -> str:
    """What is said of a result, or of a step of it."""
    say = result["say"]
    return say if isinstance(say, str) else say[step]


def last_step(result: dict) -> int:
    return 0 if isinstance(result["say"], str) else len(result["say"]) - 1


def names() -> list[str]:
    """All figures of the folder ``figures``."""
    return sorted(module.name for module in pkgutil.iter_modules([str(FIGURES)]))


def find(name: str) -> Figure:
    """The figure of that name. Raises ValueError, which says what there is."""
    if name not in names():
        raise ValueError(f"there is no figure {name!r}; there are {', '.join(names())}")
    return importlib.import_module(f"readtorch.viz.figures.{name}").FIGURE
