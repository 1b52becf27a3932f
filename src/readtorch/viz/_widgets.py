"""The widget classes: which front end belongs to which model, and which of its state can change.

The functions of ``readtorch.viz`` make these; the models come from the files beside this one.
"""

from __future__ import annotations

from ._base import StaticWidget, front_end  # isort: skip  it says what is missing

import functools
import html

from traitlets import Bool, Dict, Int, List, Unicode, validate

from .figure_kit import Figure, last_step, sentence
from .picture import as_image
from .record_backward import picture_of


class AutogradExplorer(StaticWidget):
    kind = "autograd"
    _esm = front_end(kind, "_layered", "_grouping")
    fallback = "Autograd explorer: the graph behind a tensor and the order of backward (needs JavaScript)."

    step = Int(0).tag(sync=True)
    selected = Int(-1).tag(sync=True)
    grouped = Bool(False).tag(sync=True)  # whether modules are drawn in the place of their nodes
    opened = List(Unicode()).tag(sync=True)  # the modules that are not
    zoom = Int(100).tag(sync=True)  # in percent; 0 fits the width

    MANY = 60  # nodes: more are grouped at first

    def __init__(self, data, title, **traits):
        grouped = len(data["nodes"]) > self.MANY and any(node["module"] for node in data["nodes"])
        super().__init__(data, title, **{"grouped": grouped, **traits})

    def fallback_html(self):
        if len(self.data["nodes"]) > self.MANY:
            return super().fallback_html()
        image = as_image(picture_of(self.data), self.data["title"])
        return f'<figure class="rt-fallback">{image}<figcaption>{html.escape(self.fallback)}</figcaption></figure>'


class ModuleTree(StaticWidget):
    kind = "module_tree"
    _esm = front_end(kind)
    fallback = "Module tree: what a module holds and where it is registered (needs JavaScript)."

    selected = Unicode("").tag(sync=True)  # a dotted path; "" is the module itself


class DispatchStepper(StaticWidget):
    kind = "dispatch"
    _esm = front_end(kind)
    fallback = "Dispatch stepper: one operator call from its Python name to its kernel (needs JavaScript)."

    step = Int(0).tag(sync=True)


class HookTimeline(StaticWidget):
    kind = "hooks"
    _esm = front_end(kind)
    fallback = "Hook timeline: what runs around each module's forward and backward (needs JavaScript)."

    step = Int(0).tag(sync=True)


class CheckpointDiff(StaticWidget):
    kind = "checkpoint_diff"
    _esm = front_end(kind)
    fallback = "Checkpoint diff: two state dicts side by side, name by name (needs JavaScript)."

    selected = Unicode("").tag(sync=True)  # a name; the first row if it is none
    differences = Bool(False).tag(sync=True)  # whether equal rows are hidden


class SchedulePlotter(StaticWidget):
    kind = "schedules"
    _esm = front_end(kind)
    fallback = "Schedule plotter: learning rates over the epochs of a training (needs JavaScript)."

    epoch = Int(0).tag(sync=True)
    hidden = List(Int()).tag(sync=True)  # places of the curves that are not drawn
    scale = Unicode("linear").tag(sync=True)  # or "log"
    quantity = Unicode("rate").tag(sync=True)  # or "momentum"


class LossSurface(StaticWidget):
    kind = "surface"
    _esm = front_end(kind)
    fallback = "Loss-surface paths: where optimizers go, step by step (needs JavaScript)."

    step = Int(0).tag(sync=True)
    hidden = List(Int()).tag(sync=True)  # places of the paths that are not drawn


class WorkerTimeline(StaticWidget):
    kind = "loader"
    _esm = front_end(kind)
    fallback = "Worker timeline: who fetched which batch, and how long it was waited for (needs JavaScript)."

    step = Int(0).tag(sync=True)  # the place of a batch among the run's
    run = Int(0).tag(sync=True)


class AccessViewer(StaticWidget):
    kind = "accesses"
    _esm = front_end(kind, "_cells")
    fallback = "Thread and memory access viewer: who touches which address when (needs JavaScript)."

    step = Int(0).tag(sync=True)  # so many accesses and barriers have been
    run = Int(0).tag(sync=True)
    thread = Int(-1).tag(sync=True)  # the number of the one that is looked at


class IRViewer(StaticWidget):
    kind = "ir"
    _esm = front_end(kind)
    fallback = "IR viewer: a graph line by line, and what passes do to it (needs JavaScript)."

    step = Int(0).tag(sync=True)  # the stage that is shown
    run = Int(0).tag(sync=True)
    selected = Int(-1).tag(sync=True)  # the key of the line that is chosen; the first one if it is none


class FusionViewer(StaticWidget):
    kind = "fusion"
    _esm = front_end(kind)
    fallback = "Fusion viewer: a graph beside the kernels that its operators became (needs JavaScript)."

    selected = Int(-1).tag(sync=True)  # the key of an operator; -1: none


class DeviceTimeline(StaticWidget):
    kind = "devices"
    _esm = front_end(kind)
    fallback = "Device timeline: what each device does, kernel by kernel, and when it waits (needs JavaScript)."

    step = Int(0).tag(sync=True)  # the place of a piece among the run's
    run = Int(0).tag(sync=True)
    zoom = Int(1).tag(sync=True)  # 1, 4, 16 or 64


class RankTimeline(StaticWidget):
    kind = "ranks"
    _esm = front_end(kind)
    fallback = "Rank timeline: what each rank computes, sends and waits for (needs JavaScript)."

    step = Int(0).tag(sync=True)  # the place of a span among the run's
    run = Int(0).tag(sync=True)


class ActivationStatistics(StaticWidget):
    kind = "activations"
    _esm = front_end(kind)
    fallback = "Activation statistics: what comes out of each layer during a training (needs JavaScript)."

    step = Int(0).tag(sync=True)
    quantity = Unicode("deviations").tag(sync=True)  # or "means"


class AllocatorExplorer(StaticWidget):
    kind = "allocator"
    _esm = front_end(kind, "_history", "_memory_chart", "_memory_rows")
    fallback = "Allocator explorer: segments and blocks after each event of an allocator (needs JavaScript)."

    step = Int(0).tag(sync=True)
    address = Unicode("").tag(sync=True)  # in hexadecimal: the block there is looked at
    colour = Unicode("state").tag(sync=True)  # or "stream"
    scale = Unicode("full width").tag(sync=True)  # or "to scale"


class MemoryBands(StaticWidget):
    kind = "memory_bands"
    _esm = front_end(kind, "_history", "_memory_chart", "_plain_pickle", "_bands")
    fallback = "Memory over time: a band for each allocation of an allocator's history (needs JavaScript)."

    step = Int(0).tag(sync=True)
    chosen = Int(-1).tag(sync=True)  # the number of an allocation
    first = Int(0).tag(sync=True)  # the events from … to … fill the picture;
    last = Int(0).tag(sync=True)  # 0: up to the end


class ImportTimeline(StaticWidget):
    kind = "imports"
    _esm = front_end(kind)
    fallback = "Import timeline: which module imports which, and how long it takes (needs JavaScript)."

    run = Int(0).tag(sync=True)
    selected = Unicode("").tag(sync=True)  # a module's name; "" is the program itself
    zoom = Unicode("").tag(sync=True)  # the module that fills the picture's width


class FigureWidget(StaticWidget):
    """A figure with inputs that the reader changes (see figure_kit.py). In a notebook its inputs can be set, and
    ``result`` is what the Python model makes of them."""

    figure: Figure

    inputs = Dict().tag(sync=True)
    step = Int(0).tag(sync=True)

    def __init__(self, values: dict, title: str | None = None, step: int = 0, extra=None):
        figure = self.figure
        start = figure.read(values)
        last = last_step(figure.model(start))
        data = {
            "inputs": [one.described() for one in figure.inputs],
            "start": start,
            "hint": figure.hint,
            "name": self.kind,
            "extra": extra,  # what the drawing of this one knows besides
        }
        super().__init__(data, title or figure.title, inputs=start, step=step if step >= 0 else last + 1 + step)

    @property
    def result(self) -> dict:
        return self.figure.model(self.inputs)

    @validate("inputs")
    def _checked(self, proposal):
        checked = self.figure.read(proposal["value"])
        self.figure.model(checked)
        return checked

    def fallback_html(self) -> str:
        result, title = self.result, self.data["title"]
        step = min(self.step, last_step(result))
        said = html.escape(f"{title}. {sentence(result, step)} (With JavaScript it can be changed here.)")
        image = as_image(self.figure.picture(result, step), title)
        return f'<figure class="rt-fallback">{image}<figcaption>{said}</figcaption></figure>'


@functools.cache
def widget_of(figure: Figure) -> type[FigureWidget]:
    """The widget class of a figure: its front end is the kit, its model and its drawing."""
    parts = ("_figure", *figure.helpers, f"models/{figure.name}")
    return type(figure.name, (FigureWidget,), {
        "figure": figure, "kind": figure.name, "_esm": front_end(figure.name, *parts), "__doc__": figure.title,
    })  # fmt: skip
