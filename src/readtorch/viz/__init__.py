"""Pictures of the running code: interactive figures that work in Jupyter and on a page without a kernel.

PyTorch has no such room, and no file of it a counterpart there, save where its docstring names one.

Every function takes live objects (readtorch's or PyTorch's alike), looks at them once, and returns a widget
that shows itself when it is the last value of a cell::

    from readtorch import viz

    viz.import_timeline("import torch")               # which module imports which, and how long it takes
    viz.strides(x)                                    # an element's place: offset + sum of index * stride
    viz.strides([("x", x), ("x.t()", x.t())])         # … of views of one storage
    viz.dispatch(lambda: a + b)                       # one operator call, from Python down to its kernel
    viz.dispatch("softmax", x, dim=-1)                # … the same by name
    viz.autograd(loss, names=net)                     # the graph behind loss; backward in the engine's order
    viz.autograd(loss, names={"x": x, "h": h})        # … with the reader's own names on leaves and results
    viz.hook_timeline(net, x)                         # which hooks run around forward and backward, and when
    viz.checkpoint_diff(net, "net.pt")                # what loading a checkpoint would change, name by name
    viz.module_tree(net)                              # what a Module holds and which dict holds it
    viz.schedule_plotter({"steps": lambda optimizer: StepLR(optimizer, 30)})  # learning rates, step by step
    viz.loss_surface(f, {"SGD": lambda params: SGD(params, 0.1)}, (1, 2), (-2, 2), (-2, 2))  # paths on f
    viz.worker_timeline(loader, work=train_step)      # who fetches which batch, and who waits for it
    viz.activation_statistics({"net": (net, train)})  # outputs of layers during a training, as histograms
    viz.device_timeline(train_step)                   # kernels on simulated devices, and who waits for whom
    viz.rank_timeline(timelines)                      # several ranks: gradients, buckets, and who waits for whom
    viz.allocator()                                   # the caching allocator, event by event, and why
    viz.allocator("snapshot.pickle")                  # … from a saved snapshot, ours or PyTorch's
    viz.memory_bands("snapshot.pickle")               # … a band for each allocation, by who asked for it
    viz.kernel_accesses({"": (kernel, 1, 64, x, out)})  # a kernel's threads and memory, access by access
    viz.kernel_picture(kernel, 1, 4, a, out, thread=2)  # … and a still picture: what one thread reads and writes
    viz.ir(traced)                                    # a graph line by line: who makes and who uses what
    viz.ir(graph, passes=[Inline, ConstantPropagation])  # … and what each pass does to it
    viz.fusion(f, x, y)                               # groups of f's operators, and the kernel of each
    viz.figure("strides", sizes=[2, 6])               # a figure whose inputs the reader changes, without a kernel
    viz.round_trip(lambda: {"x": x, "y": y, "loss": loss})  # values forward and gradients back, as a moving picture
    viz.schema()                                      # one entry of the operator list, and all code that comes from it
    viz.plot(draw, alt="…")                           # what draw(axes) draws with matplotlib, and what one sees

Nothing here is imported by ``import readtorch``. The figures need anywidget: ``pip install "readtorch[viz]"``.
The models behind the figures (``record_backward``, ``graph_layout``, …) need nothing and can be used alone.
"""

from __future__ import annotations

__all__ = [
    "activation_statistics",
    "allocator",
    "autograd",
    "checkpoint_diff",
    "device_timeline",
    "dispatch",
    "figure",
    "fusion",
    "hook_timeline",
    "import_timeline",
    "ir",
    "kernel_accesses",
    "kernel_picture",
    "loss_surface",
    "memory_bands",
    "module_tree",
    "plot",
    "rank_timeline",
    "round_trip",
    "schedule_plotter",
    "schema",
    "strides",
    "worker_timeline",
]


def allocator(source=None, device=None, title="Allocator explorer", step=0, address=""):
    """What the caching allocator did, event by event, and why: segments, blocks and totals (the chapter
    "The caching allocator").

    source: a snapshot, the path of one that ``_dump_snapshot`` wrote, PyTorch's or ours, or None: our own
    allocator's history up to now. Call ``_record_memory_history`` before the run that is to be seen.
    Snapshots of PyTorch have no reasons; they are then worked out from the events, and the figure says so.
    device: its number; the one with the most events if None. step: the number of events shown first; negative
    ones count from the end. address: in hexadecimal, of a block to look at.
    """
    from ._widgets import AllocatorExplorer
    from .allocator_history import allocator_history

    data = allocator_history(source, device)
    step = step if step >= 0 else data["events"] + 1 + step
    return AllocatorExplorer(data, title=title, step=step, address=address)


def memory_bands(source=None, device=None, title="Memory over time", step=None):
    """Each allocation as a band over time, by who asked for it: modules, the optimizer, forward, backward (the chapter "The
    caching allocator"). On the page another ``snapshot.pickle`` can be dropped on the figure; it is read there.

    source, device: as `allocator` takes them. step: the number of events shown first, the peak if None.
    """
    from ._widgets import MemoryBands
    from .allocation_bands import allocation_bands

    data = allocation_bands(source, device)
    return MemoryBands(data, title=title, step=data["peak"] if step is None else step)


def autograd(*outputs, names=None, grad=None, title="Autograd explorer", step=0):
    """The graph behind one or more tensors, and the order in which ``backward()`` walks it (the chapter
    "Autograd").

    Runs one real backward with ``retain_graph=True`` and puts every leaf's ``.grad`` back afterwards, so the
    tensors can be used as if nothing had happened (hooks of yours on them do run).

    outputs: tensors, or one function that computes and returns them. names: a Module, a dict ``{name: tensor}``, or pairs;
    leaves and results of nodes are labelled with them. With a Module, or names such as ``"encoder.weight"``, nodes can be
    grouped by module; which one made a node is known exactly where a function is given, else from the parameters that it
    reads. A graph of more than 60 nodes is grouped at first.
    grad: the gradient to start from, as in ``Tensor.backward``; a sequence when there are several outputs.
    step: the step shown first; 0 is "before backward".
    """
    from ._widgets import AutogradExplorer
    from .record_backward import record_backward

    outputs = outputs[0] if len(outputs) == 1 else outputs
    return AutogradExplorer(record_backward(outputs, names, grad), title=title, step=step)


def strides(tensors=None, title=None, **inputs):
    """Where each element of a tensor lies in its storage (the chapter "Tensor and Storage"). The reader changes sizes,
    strides and offset, and writes programs of view operations.

    tensors: one tensor, a dict ``{label: tensor}`` or pairs ``(label, tensor)`` of views of one storage, of one dtype
    and at most 100 elements: the first is shown, the others are offered. Without tensors a storage counts its elements.
    inputs: ``count``, ``dtype``, ``sizes``, ``strides``, ``offset``, ``program``, ``index``, in place of those.
    """
    from ._widgets import widget_of
    from .figure_kit import find
    from .storage_layout import describe_views

    start, extra = ({}, None) if tensors is None else describe_views(tensors)
    return widget_of(find("strides"))({**start, **inputs}, title, extra=extra)


def schema(title=None, **inputs):
    """One entry of PyTorch's operator list, and all code that comes from it (the chapter "From a schema to code").

    PyTorch's pieces are those that the installed wheel's own generators write (half a minute, once a release); the other
    ones are written by ``readtorch.mini.schema`` while the reader edits. inputs: ``schema``, ``variants``, ``structured``,
    ``formulas``, ``piece``.
    """
    from ._widgets import widget_of
    from .figure_kit import find
    from .figures.schema import ENTRIES
    from .generated_pieces import pieces_of

    names = ("schema", "variants", "structured", "formulas")
    entries = [[name, dict(zip(names, entry, strict=True))] for name, entry in ENTRIES.items()]
    pieces = {name: pieces_of(entry[0]) for name, entry in ENTRIES.items()}
    return widget_of(find("schema"))(inputs, title, extra={"entries": entries, "pieces": pieces})


def module_tree(module, name="net", title="Module tree"):
    """What a Module holds: submodules, parameters, buffers, plain attributes (the chapters "Module and
    __setattr__", "Parameter and Buffer").
    """
    from ._widgets import ModuleTree
    from .module_walk import walk_module

    return ModuleTree(walk_module(module, name), title=title)


def dispatch(function, *args, title="Dispatch stepper", **kwargs):
    """One operator call, step by step, from the Python name to the kernel that computes (the chapter "One
    operator call").

    function: a name such as ``"add"``, or a function, such as ``lambda: a + b``; args, kwargs: what it is
    called with. The call is made once, for real.
    """
    from ._widgets import DispatchStepper
    from .dispatch_steps import record_dispatch

    return DispatchStepper(record_dispatch(function, args, kwargs), title=title)


def figure(name, *, title=None, step=0, **inputs):
    """A figure whose inputs the reader changes, on the page too: its model stands there in JavaScript.

    name: one of ``viz.figures``. inputs: by name; the others have their defaults. step: the one shown first, where
    the figure has steps; negative ones count from the end. The widget's ``inputs`` can be set, and ``result`` is
    what the model makes of them. Raises ``inputs.Refusal``, with a sentence, when there is no result.
    """
    from ._widgets import widget_of
    from .figure_kit import find

    return widget_of(find(name))(inputs, title, step)


def hook_timeline(module, *args, title="Hook timeline", **kwargs):
    """Every hook that runs around ``module(*args, **kwargs)`` and the backward of its sum (the chapter
    "Hooks and __call__").

    The call is made once, for real, and gradients are accumulated as always; what hooks do, they do. Shows the
    hooks of the module, of its parts, and the global ones; at least one must run.
    """
    from ._widgets import HookTimeline
    from .record_hooks import record_hooks

    return HookTimeline(record_hooks(module, args, kwargs), title=title)


def checkpoint_diff(left, right, names=("model", "checkpoint"), title="Checkpoint diff", differences=False):
    """Two state dicts side by side: what loading the right one into the left one would do (the chapter
    "state_dict, save and load").

    left, right: a state dict, a Module, or the path of a checkpoint, which is read by ``readtorch.load``.
    Nested checkpoints are compared under dotted names. names: of the two sides. differences: hide equal rows
    at first.
    """
    from ._widgets import CheckpointDiff
    from .diff_checkpoints import diff_checkpoints

    return CheckpointDiff(diff_checkpoints(left, right, names), title=title, differences=differences)


def import_timeline(programs, run=0, selected="", zoom="", title="Import timeline"):
    """Which module imports which, in which order, and how long it takes (the chapter "import torch").

    programs: the text of a program such as ``"import torch"``, or a dict ``{label: text}`` of at most 8 to choose from.
    Each is run twice, for real, in fresh interpreters: the first compiles the files. run: the one shown first. selected, zoom: names of the modules
    that are chosen and shown at full width first.
    """
    from ._widgets import ImportTimeline
    from .record_imports import record_imports

    return ImportTimeline(record_imports(programs), title=title, run=run, selected=selected, zoom=zoom)


def round_trip(run):
    """A chain of operations: the values on their way forward, then the gradients on their way back (the front page).

    run: makes the chain and returns it as {name: tensor}, from the first to the last, a single number, from which
    backward begins. The tensors, readtorch's or PyTorch's, have few elements; all of them require grad.
    """
    from .round_trips import round_trip

    return round_trip(run)


def schedule_plotter(
    schedules, epochs=100, optimizer=None, measure=None, scale="linear", shown=None, title="Schedule plotter"
):
    """The learning rate, and the momentum where it changes, that schedulers set epoch by epoch (the chapter
    "Schedulers and SWA").

    schedules: a dict ``{label: make}`` or pairs; ``make(optimizer)`` gives a scheduler, which is run for real.
    At most 10. epochs: at most 1000. optimizer: makes the optimizer of each; SGD with a rate of 0.1 and a
    momentum of 0.9 if None. The rate shown is its first group's.
    measure: the loss as a function of the epoch, for ReduceLROnPlateau. scale: "linear" or "log".
    shown: the labels of those that are drawn at first, all if None.
    """
    from ._widgets import SchedulePlotter
    from .record_schedules import record_schedules

    data = record_schedules(schedules, epochs, optimizer, measure)
    labels = [curve["label"] for curve in data["curves"]]
    hidden = [i for i, label in enumerate(labels) if shown is not None and label not in shown]
    return SchedulePlotter(data, title=title, scale=scale, hidden=hidden)


def loss_surface(
    function, optimizers, start, x, y, steps=100, minimum=None, step=0, title="Loss-surface paths", about=None
):
    """The paths of optimizers over the contours of a function of two numbers, step by step (the chapter
    "torch.optim").

    function: `function(x, y)` gives the loss, also of tensors, element by element. optimizers: a dict
    ``{label: make}`` or pairs; ``make(params)`` gives an optimizer, which is run for real. At most 10.
    start: two numbers, or a tensor of them. x, y: (low, high) of the picture. steps: at most 500.
    minimum: a point to mark. step: the step shown first. about: ``{label: sentence}``, what is to be seen of an
    optimizer; without one its class's docstring says what it does.
    """
    from ._widgets import LossSurface
    from .record_paths import record_paths

    recorded = record_paths(function, optimizers, start, x, y, steps, minimum, about)
    return LossSurface(recorded, title=title, step=step)


def worker_timeline(loaders, work=None, batches=None, run=0, step=0, title="Worker timeline"):
    """Which worker fetches which batch, how many lie ready, and when the main process waits (the chapter
    "Dataset, Sampler, DataLoader").

    loaders: a DataLoader, or a dict ``{label: loader}`` of at most 6 to choose from, drawn to one scale. Each is
    gone through once, for real. work: ``work(batch)``, what is done with a batch. batches: stop after so many, at
    most 120. run, step: the run and the batch shown first.
    """
    from ._widgets import WorkerTimeline
    from .record_loader import record_loader

    return WorkerTimeline(record_loader(loaders, work, batches), title=title, run=run, step=step)


def activation_statistics(runs, steps=60, layers=None, step=0, title="Activation statistics"):
    """What comes out of the layers of networks while they are trained: mean, deviation, histogram (the
    chapter "Normalization").

    runs: a dict ``{label: (module, train)}`` of at most 4, drawn side by side; ``train(i)`` makes the i-th training step
    and may return the loss. They are trained for real. steps: at most 300. layers: a class or a tuple of classes
    whose outputs are looked at; by default all modules that contain none. step: the step shown first.
    """
    from ._widgets import ActivationStatistics
    from .record_activations import record_activations

    step = step if step >= 0 else steps + step
    return ActivationStatistics(record_activations(runs, steps, layers), title=title, step=step)


def device_timeline(runs, warm=1, run=0, step=0, title="Device timeline"):
    """What simulated devices do while a function runs: kernels and copies, coloured by phase (the chapter
    "DataParallel").

    runs: a function, or a dict ``{label: function}`` of at most 8 to choose from, drawn to one scale. Each is called
    ``warm`` times and once more, for real. The times are those of the devices' own clock, so the devices must have
    costs: ``readtorch.cuda.simulate(4, costs=CostModel())``. run, step: the run and the piece shown first.
    """
    from ._widgets import DeviceTimeline
    from .record_devices import record_devices

    return DeviceTimeline(record_devices(runs, warm), title=title, run=run, step=step)


def kernel_accesses(runs, block=(0, 0, 0), run=0, step=0, thread=-1, title="Threads and memory"):
    """Which thread of a block touches which address when: sectors, banks, barriers, races (the chapter
    "CUDA kernels with numba").

    runs: a dict ``{label: launch}`` of at most 8 to choose from; a launch is
    ``(kernel, grid, block, *arguments)`` or a function without arguments that launches one of our kernels.
    Each is run once on the kernel simulator and writes into its arguments. block: the one that is shown.
    step: how many accesses of warps have been; negative ones count from the end. thread: the number of a
    thread to look at.
    """
    from ._widgets import AccessViewer
    from .record_kernel import record_kernel

    data = record_kernel(runs, block)
    step = step if step >= 0 else len(data["runs"][run]["steps"]) + 1 + step
    return AccessViewer(data, title=title, run=run, step=step, thread=thread)


def kernel_picture(kernel, grid, block, *arguments, thread=0, of_block=0, shared=True):
    """What one thread of a kernel reads and writes, as a still picture (the chapter "CUDA kernels with numba").

    The kernel is run once on the kernel simulator and writes into its arguments; an error of the kernel is raised.
    Arrays of up to 512 elements are drawn. thread, of_block: their numbers, x counting first. shared: with
    shared memory, or global memory alone.
    """
    from .draw_kernel import draw_kernel

    return draw_kernel(kernel, grid, block, arguments, thread, of_block, shared)


def ir(graph, passes=(), step=0, selected="graph(", title="IR viewer", functions=()):
    """A graph of the JIT, line by line, and what passes make of it (the chapters "JIT: tracing", "JIT:
    scripting").

    graph: a Graph, a traced or scripted function or module, or pairs (name, graph) to step through; or a
    dict ``{name: graph}`` to choose from.
    passes: functions that change a graph, or pairs (name, function); run one after the other on a copy.
    step: the stage shown first; negative ones count from the end. selected: words of the line chosen first, or a dict
    ``{name: words}`` where the graphs have names. functions: the Python functions that the graphs were made from, in
    the same order; their text stands above the graph, and the chosen line's is marked in it.
    """
    from ._widgets import IRViewer
    from .graph_lines import graph_stages, key_of, program_of, short_run

    graphs = graph if isinstance(graph, dict) else {title: graph}
    runs = [{"label": name, **graph_stages(each, passes)} for name, each in graphs.items()]
    for run, function in zip(runs, functions):
        run["program"] = program_of(function)
    step = step if step >= 0 else len(runs[0]["stages"]) + step
    for run in runs:
        words = selected[run["label"]] if isinstance(selected, dict) else selected
        run["selected"] = key_of(run["stages"][step], words)
    return IRViewer({"runs": [short_run(run) for run in runs]}, title=title, step=step, selected=runs[0]["selected"])


def fusion(function, *inputs, selected=-1, title="Fusion viewer"):
    """Which operators of a function the fuser groups, and the kernel that each group becomes, line by line
    (the chapter "Inductor: loops, fusion, code").

    function: is traced on `inputs`; a Graph will do, too. selected: the key of the operator chosen first: its place
    among the graph's nodes.
    """
    from ._widgets import FusionViewer
    from .fusion_groups import fusion_groups

    return FusionViewer(fusion_groups(function, inputs), title=title, selected=selected)


def rank_timeline(runs, run=0, step=0, title="Rank timeline"):
    """What the ranks of a process group did when: computing, collectives, waits (the chapter "Process
    groups, DDP and SyncBatchNorm").

    runs: what `distributed.Timeline.export` gave on each rank, in a list; or a dict ``{label: list}`` of at most 8 to
    choose from, drawn to one scale. Ranks of one machine share a clock. run, step: the run and the span shown first.
    """
    from ._widgets import RankTimeline
    from .record_ranks import record_ranks

    return RankTimeline(record_ranks(runs), title=title, run=run, step=step)


def plot(draw, alt, width=4.5, height=3.0):
    """A plot that suits the page, light or dark, wide or narrow: draw(axes) gets matplotlib's axes (the
    chapter "Layers: convolution, embedding, recurrence").

    alt: the sentence that stands for the picture where it cannot be seen. width, height: in inches.
    """
    from .plots import plot

    return plot(draw, alt, width, height)
