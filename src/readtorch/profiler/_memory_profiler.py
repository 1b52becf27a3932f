"""What the memory of a training step is for: which bytes are parameters, gradients, activations …, and when.

`profile(profile_memory=True, record_shapes=True, with_stack=True)` collects what is needed; `MemoryProfile` makes a graph of which call
reads, writes, allocates and frees which memory, and infers from it the category of each version of each tensor.

Note [ Categories of memory ]
Some categories are seen: the parameters, gradients and state that modules and optimizers hold, and what AccumulateGrad puts into a
leaf. Memory that comes and goes within one call is TEMPORARY. The others follow from the graph, in this order, and what has a category
keeps it. INPUT: it contributes to a gradient, is not made in backward, and no gradient ever flows into it. PARAMETER: read in
forward beside inputs and what is made of them, contributes to a gradient, and a gradient flows into it. ACTIVATION: made before backward, of inputs and
activations. AUTOGRAD_DETAIL: made in backward. A tensor that no call reads has no category.

In PyTorch: `torch/profiler/_memory_profiler.py`. There an operator's schema is looked up by its name, here the event has it; the size of
memory that was there before is guessed from its tensors there, here it is known; and what a kernel allocates for itself alone,
which has no category, is not seen here: Note [ Memory of tensors ]. Explained in the chapter "The profiler".
"""

import enum
import importlib.util
import json
from base64 import b64encode
from collections import defaultdict, namedtuple
from io import BytesIO

import readtorch
from readtorch.aten.record_function import BACKWARD_FUNCTION
from readtorch.csrc.profiler.data_flow import TensorMetadata


class Category(enum.Enum):
    """What memory is for: Note [ Categories of memory ]."""

    INPUT = 1
    TEMPORARY = 2
    ACTIVATION = 3
    GRADIENT = 4
    AUTOGRAD_DETAIL = 5
    PARAMETER = 6
    OPTIMIZER_STATE = 7


_CATEGORY_TO_COLORS = {
    Category.PARAMETER: "darkgreen",
    Category.OPTIMIZER_STATE: "goldenrod",
    Category.INPUT: "black",
    Category.TEMPORARY: "mediumpurple",
    Category.ACTIVATION: "red",
    Category.GRADIENT: "mediumblue",
    Category.AUTOGRAD_DETAIL: "royalblue",
    None: "grey",
}
_CATEGORY_TO_INDEX = {
    category: i for i, category in enumerate(_CATEGORY_TO_COLORS)
}  # in files, and in the plot upwards


class Action(enum.Enum):
    """What happens to memory: it was there when the run began, comes, is written into, goes."""

    PREEXISTING = 1
    CREATE = 2
    INCREMENT_VERSION = 3
    DESTROY = 4


_ACTION_TO_INDEX = {action: action.value for action in Action}

Key = namedtuple("Key", ["device"])  # of memory that no call has read
TensorKey = TensorMetadata  # of other memory

# ------------------------------------------------------------------------------------------------------ who uses what


class OpTree:
    """The events of a run: `dfs` gives each before those inside it."""

    def __init__(self, result):
        self._root_nodes = result.experimental_event_tree()

    def dfs(self):
        return _subtree(self._root_nodes)

    def leaves(self):
        """The outermost operators and nodes of the graph, and the allocations that are in none: what is inside them is their business."""
        stack = self._root_nodes[::-1]
        while stack:
            event = stack.pop()
            if event.schema is not None or event.scope == BACKWARD_FUNCTION or event.memory is not None:
                yield event
            else:
                stack += event.children[::-1]


def _subtree(events):
    stack = events[::-1]
    while stack:
        event = stack.pop()
        yield event
        stack += event.children[::-1]


def _flat(tensors):
    for entry in tensors:
        if isinstance(entry, TensorKey):
            yield entry
        elif entry is not None:
            yield from _flat(entry)


def _is_backward(event):
    while event is not None and event.scope != BACKWARD_FUNCTION:
        event = event.parent
    return event is not None


class DataFlowEdge:
    """What a DataFlowNode does to some memory. input_version: None if the node allocates it."""

    def __init__(self):
        self.input_version = None
        self.mutated = False
        self.is_deletion = False

    @property
    def is_allocation(self):
        return self.input_version is None


class DataFlowNode:
    """A leaf of the OpTree, with its edges: {TensorKey: DataFlowEdge}."""

    def __init__(self, event, graph):
        self._event = event
        self.start_time = event.start_time_ns
        self.is_backward = _is_backward(event)
        self._edges = {}
        events = list(_subtree([event]))
        for inside in events:
            self._add_uses(inside, graph)
        self._add_allocations([inside for inside in events if inside.memory in graph.tensors], graph)
        for key, edge in self._edges.items():
            if edge.mutated and not edge.is_allocation:
                graph.versions[key] += 1

    def _add_uses(self, event, graph):
        for key in _flat(event.tensors):
            self._edge(key).input_version = graph.versions[key]
        for key in written(event):
            self._edge(key).mutated = True
        if event.gradient is not None:
            key, was_there = event.gradient
            edge = self._edge(key)
            edge.input_version = graph.versions[key]
            edge.mutated |= was_there

    def _add_allocations(self, events, graph):
        for event in events:
            if event.nbytes < 0:
                edge = self._edge(event.memory)
                edge.input_version, edge.mutated, edge.is_deletion = graph.versions[event.memory], False, True
        for event in events:
            if event.nbytes > 0:
                self._edge(event.memory).input_version = None

    def _edge(self, key):
        return self._edges.setdefault(key, DataFlowEdge())

    @property
    def inputs(self):
        """{TensorKey: (whether it is written, its version before)}"""
        return {k: (e.mutated, e.input_version) for k, e in self._edges.items() if not e.is_allocation}

    @property
    def outputs(self):
        """{TensorKey: its version afterwards} of what is made or written."""
        return {
            key: 0 if edge.is_allocation else edge.input_version + 1
            for key, edge in self._edges.items()
            if edge.mutated or edge.is_allocation and not edge.is_deletion
        }

    @property
    def intermediates(self):
        """What comes and goes within the node."""
        return tuple([key for key, edge in self._edges.items() if edge.is_allocation and edge.is_deletion])

    @property
    def read(self):
        """{(TensorKey, version)} of the inputs."""
        return {(key, version) for key, (_, version) in self.inputs.items()}


def written(event):
    """The TensorKeys of the arguments into which an operator writes, as its schema says."""
    if event.schema is None:
        return ()
    return _flat([tensors for argument, tensors in zip(event.schema.arguments, event.tensors) if argument.type.writes])


class DataFlowGraph:
    """What each leaf of the OpTree reads, writes, makes and frees, in order of time."""

    def __init__(self, op_tree, tensors):
        self.tensors = tensors  # what has been read by a call or held by a module or optimizer
        self.versions = defaultdict(int)
        leaves = sorted(op_tree.leaves(), key=lambda event: event.start_time_ns)
        self.flow_nodes = tuple([DataFlowNode(event, self) for event in leaves])


# --------------------------------------------------------------------------------------------------------- categories


class CategoryDict:
    """The categories of tensors as a whole, and where these have none, of single versions."""

    def __init__(self):
        self.of_tensor, self.of_version = {}, {}

    def set_by_id(self, key, category):
        self.of_tensor[key] = category

    def setdefault_by_version(self, key, version, category):
        self.of_version.setdefault((key, version), category)

    def get(self, key, version):
        return self.of_tensor.get(key) or self.of_version.get((key, version))


class MemoryProfile:
    """The categories and the timeline of what a run has collected: Note [ Categories of memory ]."""

    def __init__(self, result):
        self._op_tree = OpTree(result)
        self._seen = result.tracer
        self._unix_ns = result.unix_ns
        held = {*self._seen.parameters, *self._seen.gradients, *self._seen.states}
        read = {key for event in self._op_tree.dfs() for key in _flat(event.tensors)}
        self._data_flow_graph = DataFlowGraph(self._op_tree, held | read | set(self._filled_gradients()))
        self._categories = CategoryDict()

        self._set_gradients_and_temporaries()
        self._set_by_id(self._seen.parameters, Category.PARAMETER)
        self._set_inputs()
        self._set_parameters_using_data_flow()
        self._set_activations()
        self._set_by_id(self._seen.states, Category.OPTIMIZER_STATE)
        self._set_autograd_detail()

    @property
    def timeline(self):
        """((time in ns since 1970, -1 for what was there before; Action; (TensorKey or Key, version); bytes), …) in order of time."""
        events = sorted([*self._unread_memory(), *self._known_memory()], key=lambda event: (event[0], event[1].value))
        return tuple([(time if time == -1 else self._unix_ns(time), *rest) for time, *rest in events])

    def _unread_memory(self):
        tensors, begun = self._data_flow_graph.tensors, set()
        for event in self._op_tree.dfs():
            memory = event.memory
            if memory is None or memory in tensors:
                continue
            is_new = event.nbytes > 0
            place = (Key(memory.device), 0), memory.nbytes
            if is_new:
                begun.add(memory)
            elif memory not in begun:
                yield (-1, Action.PREEXISTING, *place)
            yield (event.start_time_ns, Action.CREATE if is_new else Action.DESTROY, *place)

    def _known_memory(self):
        versions = self._category_snapshot()
        last = dict(sorted(versions))
        allocations = [event for event in self._op_tree.dfs() if event.memory is not None]
        times = {(event.memory, event.nbytes > 0): event.start_time_ns for event in allocations}
        for key, version in versions:
            if version == 0 and (key, True) not in times:
                yield -1, Action.PREEXISTING, (key, 0), key.nbytes
        for node in self._data_flow_graph.flow_nodes:
            for key, edge in node._edges.items():
                if edge.is_allocation:
                    yield times[key, True], Action.CREATE, (key, 0), key.nbytes
                elif edge.mutated:
                    yield node.start_time, Action.INCREMENT_VERSION, (key, edge.input_version), key.nbytes
                if edge.is_deletion:
                    yield times[key, False], Action.DESTROY, (key, last[key]), key.nbytes

    def _category_snapshot(self):
        """{(TensorKey, version): Category or None}"""
        found = {(key, 0) for key in self._categories.of_tensor}
        for node in self._data_flow_graph.flow_nodes:
            found |= node.read | {(key, 0) for key in node.intermediates} | set(node.outputs.items())
        return {place: self._categories.get(*place) for place in sorted(found)}

    # ----------------------------------------------------------------------------------------------- what is seen

    def _filled_gradients(self):
        return [event.gradient[0] for event in self._op_tree.dfs() if event.gradient is not None]

    def _set_by_id(self, keys, category):
        for key in keys:
            self._categories.set_by_id(key, category)

    def _set_gradients_and_temporaries(self):
        for node in self._data_flow_graph.flow_nodes:
            self._set_by_id(node.intermediates, Category.TEMPORARY)
        self._set_by_id([*self._seen.gradients, *self._filled_gradients()], Category.GRADIENT)

    # -------------------------------------------------------------------------------------- what the graph tells

    def _is(self, place, *categories):
        return self._categories.get(*place) in categories

    def _any_version_depends_on_gradient(self):
        """The TensorKeys into which, in any version, a gradient or a parameter flows. Since all versions of a tensor count as one, the
        graph has circles: it is gone through until nothing is added."""
        found, count = set(), -1
        while len(found) > count:
            count = len(found)
            for node in self._data_flow_graph.flow_nodes:
                sources = {
                    place[0]
                    for place in node.read
                    if self._is(place, Category.GRADIENT, Category.PARAMETER) or place[0] in found
                }
                if sources:
                    found |= sources | set(node.outputs)
        return found

    def _set_inputs(self):
        depends_on_gradient = self._any_version_depends_on_gradient()
        candidates = set()
        for node in reversed(self._data_flow_graph.flow_nodes):
            used = node.read | set(node.outputs.items())
            if any(place in candidates or self._is(place, Category.GRADIENT, Category.PARAMETER) for place in used):
                candidates |= used
        for node in self._data_flow_graph.flow_nodes:
            if node.is_backward:
                candidates -= set(node.outputs.items())
        for key, version in candidates:
            if key not in depends_on_gradient:
                self._categories.setdefault_by_version(key, version, Category.INPUT)

    def _set_parameters_using_data_flow(self):
        """For programs without modules and optimizers."""
        snapshot = self._category_snapshot()
        of_forward = {place for place, category in snapshot.items() if category == Category.INPUT}
        candidates = set()
        for node in self._data_flow_graph.flow_nodes:
            made = set(node.outputs.items())
            has_gradient = any(self._is(place, Category.GRADIENT) for place in node.read | made)
            if not node.is_backward and not has_gradient and of_forward & node.read:
                of_forward |= made
                candidates |= node.read - of_forward
        contributes = set()
        for node in reversed(self._data_flow_graph.flow_nodes):
            if any(place in contributes or self._is(place, Category.GRADIENT) for place in node.outputs.items()):
                contributes |= node.read
        parameters = {key for key, _ in candidates & contributes} & self._any_version_depends_on_gradient()
        self._set_by_id(parameters, Category.PARAMETER)

    def _set_activations(self):
        required = {Category.INPUT, Category.ACTIVATION}
        allowed = required | {Category.PARAMETER, Category.TEMPORARY}
        for node in self._data_flow_graph.flow_nodes:
            categories = {self._categories.get(*place) for place in node.read}
            if not node.is_backward and categories & required and categories <= allowed:
                for place in node.outputs.items():
                    self._categories.setdefault_by_version(*place, Category.ACTIVATION)

    def _set_autograd_detail(self):
        unknown = {None, Category.AUTOGRAD_DETAIL}
        for node in self._data_flow_graph.flow_nodes:
            for key, version in node.outputs.items() if node.is_backward else ():
                if version == 0 or self._categories.get(key, version - 1) in unknown:
                    self._categories.setdefault_by_version(key, version, Category.AUTOGRAD_DETAIL)


# -------------------------------------------------------------------------------------------------------------- files


class MemoryProfileTimeline:
    """The timeline of a MemoryProfile as files."""

    def __init__(self, memory_profile):
        self.timeline = memory_profile.timeline
        self.categories = memory_profile._categories

    def _changes(self, device):
        """(time in ns, Action, bytes, index of the category) for each change of the device's memory. A new version takes the bytes
        from one category and gives them to another, or to the same."""
        device = readtorch.device(device)
        for time, action, (key, version), nbytes in self.timeline:
            if key.device != device:
                continue
            if action in (Action.INCREMENT_VERSION, Action.DESTROY):
                yield time, action, -nbytes, self._index(key, version)
            if action != Action.DESTROY:
                after = version + (action == Action.INCREMENT_VERSION)
                yield time, action, nbytes, self._index(key, after)

    def _index(self, key, version):
        return _CATEGORY_TO_INDEX[self.categories.get(key, version) if isinstance(key, TensorKey) else None]

    def _coalesce_timeline(self, device_str):
        """(times in µs, for each of them [0, bytes of each category in the order of the plot])"""
        times, sizes = [], []
        for time, _, nbytes, index in self._changes(device_str):
            time = time if time == -1 else time // 1000
            if not times or time != times[-1]:
                times.append(time)
                sizes.append(list(sizes[-1]) if sizes else [0] * (1 + len(_CATEGORY_TO_INDEX)))
            sizes[-1][index + 1] += nbytes
        begin = min([time for time in times if time > 0], default=-1)
        return [begin if time < 0 else time for time in times], sizes

    def export_memory_timeline(self, path, device_str):
        """Write [times, sizes by category] as JSON."""
        with open(path, "w") as file:
            json.dump(self._coalesce_timeline(device_str), file)

    def export_memory_timeline_raw(self, path, device_str):
        """Write [[time, action, bytes, category], …] as JSON."""
        changes = self._changes(device_str)
        with open(path, "w") as file:
            json.dump([(time, _ACTION_TO_INDEX[action], *rest) for time, action, *rest in changes], file)

    def export_memory_timeline_html(self, path, device_str, figsize=(20, 12), title=None):
        """Write a page with the timeline as a picture. Needs matplotlib."""
        if importlib.util.find_spec("matplotlib") is None:
            print("export_memory_timeline_html failed because matplotlib was not found.")
            return
        picture = BytesIO()
        self._plot(device_str, figsize, title).savefig(picture, format="png")
        encoded = b64encode(picture.getvalue()).decode()
        with open(path, "w", encoding="utf8") as file:
            file.write(
                '<html>\n<head><meta charset="utf-8" /><title>GPU Memory Timeline HTML</title></head>\n'
                f"<body>\n  <img src='data:image/png;base64,{encoded}'>\n</body>\n</html>"
            )

    def _plot(self, device_str, figsize, title):
        import matplotlib.pyplot as plt
        import numpy as np

        times, sizes = map(np.array, self._coalesce_timeline(device_str))
        tops = np.cumsum(sizes, axis=1) / 1024**3
        figure = plt.figure(figsize=figsize, dpi=80)
        axes = figure.gca()
        for i, color in enumerate(_CATEGORY_TO_COLORS.values()):
            axes.fill_between((times - times.min()) / 1e3, tops[:, i], tops[:, i + 1], color=color, alpha=0.7)
        figure.legend(["Unknown" if category is None else category.name for category in _CATEGORY_TO_COLORS])
        axes.set_xlabel("Time (ms)")
        axes.set_ylabel("Memory (GB)")
        device = readtorch.device(device_str)
        most = [
            f"Max memory {what}: {of(device) / 1024**3:.2f} GiB"
            for what, of in (
                ("allocated", readtorch.cuda.max_memory_allocated),
                ("reserved", readtorch.cuda.max_memory_reserved),
            )
        ]
        axes.set_title("\n\n".join([*([title] if title else []), " \n".join(most)]))
        return figure
