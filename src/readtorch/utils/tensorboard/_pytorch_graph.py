"""A module's trace as a graph for TensorBoard, folded by submodules.

TensorBoard folds nodes whose names begin alike, up to a slash. So what is to be done with a trace is to give
each of its values a name that says in which call of which submodule it was made:

    %5 : … = aten::relu(%4), scope: __module.act          Sequential/ReLU[act]/5

In PyTorch: `torch/utils/tensorboard/_pytorch_graph.py`. Explained in the chapter "Multiprocessing
and TensorBoard".
"""

import contextlib
from dataclasses import dataclass

from tensorboard.compat.proto.config_pb2 import RunMetadata
from tensorboard.compat.proto.graph_pb2 import GraphDef
from tensorboard.compat.proto.step_stats_pb2 import DeviceStepStats, StepStats
from tensorboard.compat.proto.versions_pb2 import VersionDef

import readtorch
from readtorch.csrc.jit.ir.type import ClassType, TensorType
from readtorch.csrc.jit.passes.inliner import Inline

from ._proto_graph import node_proto


def graph(model, args, verbose=False, use_strict_trace=True):
    """Trace a module in eval mode; the trace as a GraphDef, and statistics that say nothing but "CPU".

    What is raised by the trace is raised again.
    """
    with _set_model_to_eval(model):
        try:
            trace = readtorch.jit.trace(model, args, strict=use_strict_trace)
            graph = trace.graph
            Inline(graph)
        except RuntimeError as error:
            print(error)
            print("Error occurs, No graph saved")
            raise
    if verbose:
        print(graph)
    statistics = RunMetadata(step_stats=StepStats(dev_stats=[DeviceStepStats(device="/device:CPU:0")]))
    return GraphDef(node=parse(graph, trace, args), versions=VersionDef(producer=22)), statistics


@contextlib.contextmanager
def _set_model_to_eval(model):
    if isinstance(model, readtorch.jit.ScriptFunction):
        yield
        return
    training = model.training
    model.train(False)
    try:
        yield
    finally:
        model.train(training)


@dataclass
class Entry:
    """What one node of the drawing is made from. scope: of an operator, the calls of modules it is in."""

    name: str
    kind: str
    inputs: list
    size: object
    attributes: str = ""
    scope: str | None = None


def parse(graph, trace, args=None, omit_useless_nodes=True):
    """The nodes of an inlined graph: inputs, outputs, then one for each result of each operator."""
    entries = {}  # the name of a value in the graph -> Entry
    for value in graph.inputs():
        useless = omit_useless_nodes and not value.uses()
        if not useless and not _is_object(value):
            name = value.debugName()
            entries[name] = Entry(f"input/{name}", "IO Node", [], _size_or_one(value))
    for i, value in enumerate(graph.outputs(), 1):
        name, size = f"output.{i}", _size_or_one(value)
        entries[name] = Entry(f"output/{name}", "IO Node", [value.debugName()], size)
    names = _scope_names(trace)
    for node, scope in _operators(graph):
        for entry in _results(node, "/".join(filter(None, [names["__module"], _readable(scope, names)]))):
            entries[entry.name] = entry
    _name_by_scope(entries)
    return [node_proto(e.name, e.kind, e.inputs, outputsize=e.size, attributes=e.attributes) for e in entries.values()]


def _is_object(value):
    return isinstance(value.type(), ClassType)


def _size_or_one(value):
    return value.type().sizes() if isinstance(value.type(), TensorType) else [1]


def _operators(graph):
    """(node, scope) for each node but those that fetch a submodule: the scope says it.

    A fetched parameter belongs to the module that it is fetched from.
    """
    path = {}  # the name of a fetched value -> how it was fetched
    for node in graph.nodes():
        if node.kind() != "prim::GetAttr":
            yield node, node.scopeName()
            continue
        above = path.get(node.input().debugName())
        step = f"{above.split('/')[-1] if above else '__module'}.{node.s('name')}"
        path[node.output().debugName()] = f"{above}/{step}" if above else step
        if not _is_object(node.output()):
            yield node, path[node.output().debugName()]


def _results(node, scope):
    inputs = [value.debugName() for value in node.inputs()]
    # TensorBoard stumbles over quotes
    attributes = str({name: node.attribute(name) for name in node.attributeNames()}).replace("'", " ")
    for value in node.outputs():
        size = value.type().sizes() if value.isCompleteTensor() else None
        yield Entry(value.debugName(), node.kind(), inputs, size, attributes, scope)


def _scope_names(trace):
    """__module.features.0 -> Conv2d[0], for the traced module and all in it."""
    names = {
        path: f"{_class_name(module)}[{path.split('.')[-1]}]" for path, module in trace.named_modules(prefix="__module")
    }
    return names | {"__module": _class_name(trace)}


def _class_name(module):
    return getattr(module, "original_name", "Module")


def _readable(scope, names):
    return "/".join(names.get(part, part.split(".")[-1]) for part in scope.split("/"))


def _name_by_scope(entries):
    """Put its scope before the name of each value, there and wherever it is an input."""
    full = {}
    for entry in entries.values():
        if entry.scope is not None:  # what no node of the drawing makes, belongs to the last that takes it
            full.update({name: f"{entry.scope}/{name}" for name in entry.inputs})
    for name, entry in entries.items():
        full[name] = entry.name if entry.scope is None else f"{entry.scope}/{name}"
    for name, entry in entries.items():
        entry.inputs = [full[each] for each in entry.inputs]
        entry.name = full[name]
