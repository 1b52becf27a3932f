"""The widget classes: which front end belongs to which model, and which of its state can change.

The functions of ``readtorch.viz`` make these; the models come from the files beside this one.
"""

from __future__ import annotations

from ._base import StaticWidget, front_end  # isort: skip  it says what is missing

from traitlets import Bool, Int, List, Unicode


class AutogradExplorer(StaticWidget):
    _esm = front_end("autograd")
    fallback = "Autograd explorer: the graph behind a tensor and the order of backward (needs JavaScript)."

    step = Int(0).tag(sync=True)
    selected = Int(-1).tag(sync=True)


class StrideExplorer(StaticWidget):
    _esm = front_end("strides")
    fallback = "Stride explorer: where each element of a tensor lies in its storage (needs JavaScript)."

    view = Int(0).tag(sync=True)  # the view that is looked at
    index = List(Int()).tag(sync=True)  # the element of it that is picked


class ModuleTree(StaticWidget):
    _esm = front_end("module_tree")
    fallback = "Module tree: what a module holds and where it is registered (needs JavaScript)."

    selected = Unicode("").tag(sync=True)  # a dotted path; "" is the module itself


class DispatchStepper(StaticWidget):
    _esm = front_end("dispatch")
    fallback = "Dispatch stepper: one operator call from its Python name to its kernel (needs JavaScript)."

    step = Int(0).tag(sync=True)


class HookTimeline(StaticWidget):
    _esm = front_end("hooks")
    fallback = "Hook timeline: what runs around each module's forward and backward (needs JavaScript)."

    step = Int(0).tag(sync=True)


class CheckpointDiff(StaticWidget):
    _esm = front_end("checkpoint_diff")
    fallback = "Checkpoint diff: two state dicts side by side, name by name (needs JavaScript)."

    selected = Unicode("").tag(sync=True)  # a name; the first row if it is none
    differences = Bool(False).tag(sync=True)  # whether equal rows are hidden


class HouseMap(StaticWidget):
    _esm = front_end("house_map")
    fallback = "Map of the house: the rooms of the package and who imports whom (needs JavaScript)."

    step = Int(0).tag(sync=True)
    selected = Unicode("").tag(sync=True)  # a room's path

    def __init__(self, survey: dict, trace: dict | None, title: str, **traits):
        super().__init__({**survey, "trace": trace}, title, **traits)


class SchedulePlotter(StaticWidget):
    _esm = front_end("schedules")
    fallback = "Schedule plotter: learning rates over the epochs of a training (needs JavaScript)."

    epoch = Int(0).tag(sync=True)
    hidden = List(Int()).tag(sync=True)  # places of the curves that are not drawn
    scale = Unicode("linear").tag(sync=True)  # or "log"
    quantity = Unicode("rate").tag(sync=True)  # or "momentum"


class LossSurface(StaticWidget):
    _esm = front_end("surface")
    fallback = "Loss-surface paths: where optimizers go, step by step (needs JavaScript)."

    step = Int(0).tag(sync=True)
    hidden = List(Int()).tag(sync=True)  # places of the paths that are not drawn


class WorkerTimeline(StaticWidget):
    _esm = front_end("loader")
    fallback = "Worker timeline: who fetched which batch, and how long it was waited for (needs JavaScript)."

    step = Int(0).tag(sync=True)  # the place of a batch among the run's
    run = Int(0).tag(sync=True)


class AccessViewer(StaticWidget):
    _esm = front_end("accesses", "_cells")
    fallback = "Thread and memory access viewer: who touches which address when (needs JavaScript)."

    step = Int(0).tag(sync=True)  # so many accesses and barriers have been
    run = Int(0).tag(sync=True)
    thread = Int(-1).tag(sync=True)  # the number of the one that is looked at


class IRViewer(StaticWidget):
    _esm = front_end("ir")
    fallback = "IR viewer: a graph line by line, and what passes do to it (needs JavaScript)."

    step = Int(0).tag(sync=True)  # the stage that is shown
    selected = Int(-1).tag(sync=True)  # the key of the line that is chosen; the first one if it is none


class FusionViewer(StaticWidget):
    _esm = front_end("fusion")
    fallback = "Fusion viewer: a graph beside the kernels that its operators became (needs JavaScript)."

    selected = Int(-1).tag(sync=True)  # the key of an operator; -1: none


class DeviceTimeline(StaticWidget):
    _esm = front_end("devices")
    fallback = "Device timeline: what each device does, kernel by kernel, and when it waits (needs JavaScript)."

    step = Int(0).tag(sync=True)  # the place of a piece among the run's
    run = Int(0).tag(sync=True)
    zoom = Int(1).tag(sync=True)  # 1, 4, 16 or 64


class RankTimeline(StaticWidget):
    _esm = front_end("ranks")
    fallback = "Rank timeline: what each rank computes, sends and waits for (needs JavaScript)."

    step = Int(0).tag(sync=True)  # the place of a span among the run's
    run = Int(0).tag(sync=True)


class ActivationStatistics(StaticWidget):
    _esm = front_end("activations")
    fallback = "Activation statistics: what comes out of each layer during a training (needs JavaScript)."

    step = Int(0).tag(sync=True)
    quantity = Unicode("deviations").tag(sync=True)  # or "means"


class AllocatorExplorer(StaticWidget):
    _esm = front_end("allocator", "_history", "_memory_chart", "_memory_rows")
    fallback = "Allocator explorer: segments and blocks after each event of an allocator (needs JavaScript)."

    step = Int(0).tag(sync=True)
    address = Unicode("").tag(sync=True)  # in hexadecimal: the block there is looked at
    colour = Unicode("state").tag(sync=True)  # or "stream"
    scale = Unicode("full width").tag(sync=True)  # or "to scale"


class ImportTimeline(StaticWidget):
    _esm = front_end("imports")
    fallback = "Import timeline: which module imports which, and how long it takes (needs JavaScript)."

    run = Int(0).tag(sync=True)
    selected = Unicode("").tag(sync=True)  # a module's name; "" is the program itself
    zoom = Unicode("").tag(sync=True)  # the module that fills the picture's width
