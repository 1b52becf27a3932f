"""The graph behind a tensor and one real run of backward through it, written down for the autograd explorer.

It uses only what every node offers to Python: ``name``, ``next_functions``, ``_saved_*``,
``register_prehook`` and ``register_hook``, and of an AccumulateGrad its ``variable``. So it reads PyTorch's
graphs as well as ours.
"""

from __future__ import annotations

import itertools
import os
import sys
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field

from .graph_layout import layered_layout
from .picture import box, drawing, tag, text
from .tensor_notes import is_tensor, library_of, named_pairs, note
from .watch_calls import GENERATED

LARGEST_INT64 = (1 << 63) - 1


@dataclass
class NodeRecord:
    """One node. ``order``: its place in the run (None: never ran); ``needs``: the gradients it waits for."""

    id: int
    name: str
    is_leaf: bool
    label: str | None
    sequence_nr: int | None
    needs: int = 0
    saved: list = field(default_factory=list)
    next: list = field(default_factory=list)  # [id or None, input number] for each next function
    order: int | None = None
    grads_in: list = field(default_factory=list)
    grads_out: list = field(default_factory=list)
    made_by: str | None = None
    module: str = ""


def record_backward(outputs, names=None, grad=None) -> dict:
    """Walk the graph of ``outputs`` (a tensor, several, or a function that returns them), run backward once; what happened,
    as JSON."""
    calls = []
    if callable(outputs) and not is_tensor(outputs):
        with module_calls(names, calls):
            outputs = outputs()
    outputs = [outputs] if is_tensor(outputs) else list(outputs)
    for output in outputs:
        if not is_tensor(output) or output.grad_fn is None:
            raise ValueError(
                "the autograd explorer needs tensors with a grad_fn: results of operations on tensors that require grad"
            )
    functions = collect_nodes(outputs)
    labels = labels_of_nodes(functions, named_pairs(names))
    records = describe_nodes(functions, labels)
    assign_modules(records, calls)
    with grads_put_back(functions):
        run_with_hooks(outputs, grad, functions, records)
    return as_json(records)


def collect_nodes(outputs) -> dict:
    """Every node that can be reached, with its number, depth first. The dict keeps the nodes alive, so that
    equal ids stay equal nodes."""
    numbers = {}
    stack = [output.grad_fn for output in reversed(outputs)]
    while stack:
        function = stack.pop()
        if function not in numbers:
            numbers[function] = len(numbers)
            stack.extend(f for f, _ in reversed(function.next_functions) if f is not None)
    return numbers


def labels_of_nodes(functions, pairs) -> dict:
    """Node -> label: the name of the tensor that it made, or for an AccumulateGrad, of its variable."""
    labels = {}
    leaf_names = {}
    for name, tensor in pairs:
        leaf_names.setdefault(id(tensor), name)
        if tensor.grad_fn in functions:
            labels.setdefault(tensor.grad_fn, f"{name} {list(tensor.shape)}")
    for function in functions:
        if is_accumulate_grad(function):
            variable = function.variable
            labels[function] = f"{leaf_names.get(id(variable), 'leaf')} {list(variable.shape)}"
    return labels


def is_accumulate_grad(function) -> bool:
    return short_name(function) == "AccumulateGrad"


def short_name(function) -> str:
    """``torch::autograd::AccumulateGrad`` -> ``AccumulateGrad``; most names have no namespace."""
    return function.name().rpartition("::")[2]


def describe_nodes(functions, labels) -> list[NodeRecord]:
    records = []
    for function, number in functions.items():
        leaf = is_accumulate_grad(function)
        records.append(
            NodeRecord(
                id=number,
                name=short_name(function),
                is_leaf=leaf,
                label=labels.get(function),
                # AccumulateGrad has the largest number there is, so that it runs as soon as it is ready
                sequence_nr=None if leaf else function._sequence_nr(),
                saved=[note("variable", function.variable)] if leaf else saved_values(function),
                next=[[None if f is None else functions[f], input_nr] for f, input_nr in function.next_functions],
                made_by=line_that_made(function),
            )
        )
    for record in records:
        for target, _ in record.next:
            if target is not None:
                records[target].needs += 1
    return records


# ---- which module made a node


@contextmanager
def module_calls(module, calls):
    """Note the calls of all modules of `module`, if it is one, in `calls`: (path, first number of a node, number after the
    last)."""
    handles = []
    begun = []
    for path, part in module.named_modules() if hasattr(module, "named_modules") else ():
        before = lambda part, inputs: begun.append(next_number(part))
        after = lambda part, inputs, outputs, path=path: calls.append((path, begun.pop(), next_number(part)))
        handles += [part.register_forward_pre_hook(before), part.register_forward_hook(after)]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def next_number(part) -> int:
    """The sequence number that the next node gets. It takes a node to see it."""
    ones = library_of(part).ones((), requires_grad=True)
    return (ones * 1).grad_fn._sequence_nr() + 1


def assign_modules(records, calls):
    """Note [ Which module made a node ]

    Where the forward pass was watched, a node belongs to the innermost call that its number falls into. Where it was
    not, the names of the parameters say a part of it: a node that reads a parameter of a module belongs to that, and one
    whose number lies between two such nodes to what their modules have in common. A leaf belongs where its name says.
    """
    for record in records:
        if record.is_leaf:
            record.module = (record.label or "").partition(" ")[0].rpartition(".")[0]
    inner = sorted((record for record in records if not record.is_leaf), key=lambda record: record.sequence_nr)
    if calls:
        for record in inner:
            around = [call for call in calls if call[1] <= record.sequence_nr < call[2]]
            record.module = min(around, key=lambda call: call[2] - call[1])[0] if around else ""
        return
    homes = [home_of(record, records) for record in inner]
    for i, record in enumerate(inner):
        before = next((home for home in reversed(homes[: i + 1]) if home is not None), "")
        after = next((home for home in homes[i:] if home is not None), "")
        record.module = common_module(before, after)


def home_of(record, records) -> str | None:
    """The module whose parameter the node reads, perhaps through views of it; None if it reads none."""
    for target, _ in record.next:
        while target is not None and not records[target].is_leaf and len(records[target].next) == 1:
            target = records[target].next[0][0]
        if target is not None and records[target].is_leaf and records[target].module:
            return records[target].module
    return None


def common_module(one: str, other: str) -> str:
    return ".".join(
        a for a, b in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(one.split("."), other.split(".")))
    )


def saved_values(function) -> list:
    notes = []
    for attribute in sorted(a for a in dir(function) if a.startswith("_saved_")):
        name = attribute.removeprefix("_saved_")
        try:
            value = getattr(function, attribute)
        except RuntimeError as error:  # released by an earlier backward
            notes.append(note(name, str(error).partition(".")[0]))
            continue
        if isinstance(value, tuple) and any(map(is_tensor, value)):
            notes += [note(f"{name}[{i}]", v) for i, v in enumerate(value)]
        else:
            notes.append(note(name, as_signed(value)))
    return notes


def as_signed(value):
    """PyTorch hands a saved negative int, such as dim=-2, to Python as an unsigned one."""
    if isinstance(value, tuple):
        return tuple(map(as_signed, value))
    if isinstance(value, int) and value > LARGEST_INT64:
        return value - (1 << 64)
    return value


def line_that_made(function) -> str | None:
    """The reader's line of the forward pass. Nodes know it when the forward pass ran under anomaly mode."""
    trace = (getattr(function, "metadata", None) or {}).get("traceback_") or ""
    frames = "".join(trace).split('  File "')[1:]
    own = [frame for frame in frames if not frame.startswith((GENERATED, *library_folders()))]
    code = own[-1].splitlines()[1:] if own else []
    return code[0].strip() if code else None


def library_folders() -> tuple[str, ...]:
    found = [sys.modules[name] for name in ("torch", "readtorch") if name in sys.modules]
    return tuple(os.path.dirname(package.__file__) + os.sep for package in found if package.__file__)


@contextmanager
def grads_put_back(functions):
    """Let backward write into ``.grad`` of the leaves, and restore what was there."""
    leaves = [function.variable for function in functions if is_accumulate_grad(function)]
    before = [leaf.grad for leaf in leaves]
    for leaf in leaves:
        leaf.grad = None if leaf.grad is None else leaf.grad.clone()  # accumulation may happen in place
    try:
        yield
    finally:
        for leaf, grad in zip(leaves, before):
            leaf.grad = grad


def run_with_hooks(outputs, grad, functions, records):
    """One real backward. A pre-hook on every node notes when it runs and with what, a hook what it gave."""
    ran = 0
    handles = []

    def watch(function, record):
        def before(grads_in):
            nonlocal ran
            record.order, ran = ran, ran + 1
            record.grads_in = [note(f"grad {i}", g) for i, g in enumerate(grads_in)]

        def after(grads_out, _grads_in):
            if record.is_leaf:
                record.grads_out = [note(".grad afterwards", function.variable.grad)]
            else:
                record.grads_out = [note(f"to input {i}", g) for i, g in enumerate(grads_out)]

        handles.extend([function.register_prehook(before), function.register_hook(after)])

    for function, number in functions.items():
        watch(function, records[number])
    try:
        library_of(outputs[0]).autograd.backward(outputs, grad, retain_graph=True)
    finally:
        for handle in handles:
            handle.remove()


def as_json(records) -> dict:
    edges = [[record.id, target] for record in records for target, _ in record.next if target is not None]
    return {"nodes": [asdict(record) for record in records], "edges": edges}


def picture_of(data) -> str:
    """The graph, for a page without JavaScript."""
    nodes = data["nodes"]
    lines = [(node["name"], node["label"]) if node["label"] else (node["name"],) for node in nodes]
    layout = layered_layout(lines, data["edges"])
    parts = [tag("path", d="M" + " L".join(f"{x},{y}" for x, y in path), class_="bare") for path in layout.paths]
    for words, (x, y, width, height, _) in zip(lines, layout.boxes):
        parts.append(box(x - width / 2, y - height / 2, width, height))
        first = y + 4 if len(words) == 1 else y - 2
        parts += [text(word, x, first + 14 * i, "mono mid dim" if i else "mono mid") for i, word in enumerate(words)]
    return drawing(layout.width, layout.height, *parts)
