"""What is noted of a node while it is recorded: `meta`. In PyTorch: `torch/fx/traceback.py`.

Notes are kept in one dictionary for the program, `current_meta`. A Transformer sets it to the notes of the node that it runs,
so that the nodes which come of it get the same ones; a program adds to it by `annotate`.
"""

import copy
import functools
import traceback
from contextlib import contextmanager
from enum import Enum

__all__ = [
    "annotate",
    "annotate_fn",
    "preserve_node_meta",
    "has_preserved_node_meta",
    "set_stack_trace",
    "format_stack",
    "set_current_meta",
    "get_current_meta",
    "NodeSource",
    "NodeSourceAction",
    "get_graph_provenance_json",
]

current_meta = {}
should_preserve_node_meta = False


class NodeSourceAction(Enum):
    CREATE = "create"
    REPLACE = "replace"


class NodeSource:
    """Which node of an earlier graph a node comes from, by which pass, and where that one came from."""

    class NodeInfo:
        def __init__(self, name, target, graph_id):
            self.name = name
            self.target = target
            self.graph_id = graph_id

    def __init__(self, node, pass_name="", action=None):
        self.pass_name = pass_name
        self.action = action if isinstance(action, list) else [] if action is None else [action]
        for a in self.action:
            if not isinstance(a, NodeSourceAction):
                raise AssertionError(f"Expected NodeSourceAction, got {type(a)}")
        self.node_info = self.NodeInfo(node.name, str(node.target), id(node.graph)) if node else None
        self.from_node = copy.deepcopy(node.meta.get("from_node", [])) if node else []

    @property
    def name(self):
        return self.node_info.name if self.node_info else ""

    @property
    def target(self):
        return self.node_info.target if self.node_info else ""

    @property
    def graph_id(self):
        return self.node_info.graph_id if self.node_info else -1

    def _get_action_string(self):
        return "+".join(a.name.lower() for a in self.action)

    def __repr__(self):
        return self.print_readable()

    def print_readable(self, indent=0):
        """A line for each node on the way, the latest first."""
        if indent > 9:
            return ""
        line = (
            f"{' ' * indent * 4}(name={self.name}, pass_name={self.pass_name}, "
            f"action={self._get_action_string()}, graph_id={self.graph_id})\n"
        )
        return line + "".join(source.print_readable(indent + 1) for source in self.from_node)

    def to_dict(self):
        return {
            "name": self.name,
            "target": self.target,
            "graph_id": self.graph_id,
            "pass_name": self.pass_name,
            "action": self._get_action_string(),
            "from_node": [source.to_dict() for source in self.from_node],
        }

    def __eq__(self, other):
        return isinstance(other, NodeSource) and self.to_dict() == other.to_dict()

    def __hash__(self):
        return hash(repr(self))


# ------------------------------------------------------------------------------------------------- the current notes


@contextmanager
def preserve_node_meta(enable=True):
    """Inside, tracers give new nodes the current notes."""
    global should_preserve_node_meta, current_meta
    saved = should_preserve_node_meta, current_meta.copy()
    try:
        should_preserve_node_meta = enable
        yield
    finally:
        should_preserve_node_meta, current_meta = saved


def has_preserved_node_meta():
    return should_preserve_node_meta


def get_current_meta():
    return current_meta


@contextmanager
def set_current_meta(node, pass_name=""):
    """Inside, the current notes are those of `node`, and that new nodes come from it."""
    global current_meta
    if not (should_preserve_node_meta and node.meta):
        yield
        return
    saved = current_meta
    try:
        current_meta = {**node.meta, "from_node": [NodeSource(node, pass_name, NodeSourceAction.CREATE)]}
        yield
    finally:
        current_meta = saved


def set_stack_trace(stack):
    """Note the lines of a stack, while notes are kept."""
    if should_preserve_node_meta:
        if stack:
            current_meta["stack_trace"] = "".join(stack)
        else:
            current_meta.pop("stack_trace", None)


def format_stack():
    """The noted stack, or where we are, as a list of texts."""
    if should_preserve_node_meta:
        return [current_meta.get("stack_trace", "")]
    return traceback.format_list(traceback.extract_stack()[:-1])


@contextmanager
def annotate(annotation_dict):
    """Inside, new nodes get these entries in `meta["custom"]`."""
    before = copy.copy(current_meta.get("custom"))
    current_meta["custom"] = {**(before or {}), **annotation_dict}
    try:
        yield
    finally:
        if before is not None:
            current_meta["custom"] = before
        else:
            del current_meta["custom"]


def annotate_fn(annotation_dict):
    """Decorator: the same for calls of a function."""

    def decorator(func):
        @functools.wraps(func)
        def wrapper(*args, **kwargs):
            with annotate(annotation_dict):
                return func(*args, **kwargs)

        return wrapper

    return decorator


def get_graph_provenance_json(graph):
    """Name of each node that calls a function -> the list of its sources, as dictionaries."""
    calls = [node for node in graph.nodes if node.op == "call_function"]
    return {node.name: [source.to_dict() for source in node.meta.get("from_node", [])] for node in calls}
