"""What a Module holds and which of its dicts holds it, written down for the module tree.

Which attributes are a Module's own bookkeeping is not listed here: it asks an empty Module of the same
library.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

from .tensor_notes import dtype_name, is_tensor, library_of, tensor_text

LONGEST_REPR = 60


@dataclass
class Entry:
    """One thing in the tree. ``kind``: module, parameter, buffer or attribute; ``path``: its dotted name."""

    kind: str
    name: str
    path: str
    lives_in: str
    type: str
    text: str = ""  # what stands beside the name
    facts: list = field(default_factory=list)  # (name, value) for the details
    shared_with: list = field(default_factory=list)
    warning: str | None = None
    evaluating: bool = False  # a module whose training flag is off
    children: list = field(default_factory=list)


def walk_module(module, name="net") -> dict:
    """The tree of a Module of torch or readtorch as JSON. A thing met twice names its other paths."""
    Module = library_of(module).nn.Module
    if not isinstance(module, Module):
        raise TypeError(f"expected a Module, got {type(module).__name__}")
    walk = Walk(Module)
    root = walk.module_entry(module, name, "", "", set())
    walk.mark_shared()
    return {"root": asdict(root)}


class Walk:
    def __init__(self, Module):
        self.Module = Module
        self.bookkeeping = set(vars(Module()))
        self.seen = {}  # id -> (object, its entries); the object is kept, so that its id stays its own

    def remember(self, thing, entry):
        if thing is not None:
            self.seen.setdefault(id(thing), (thing, []))[1].append(entry)
        return entry

    def mark_shared(self):
        for _, entries in self.seen.values():
            for entry in entries:
                entry.shared_with = [other.path for other in entries if other is not entry]

    # ---- one entry a thing

    def module_entry(self, module, name, path, lives_in, above) -> Entry:
        if module is None:
            return Entry("module", name, path, lives_in, "None", "None: a place kept for a module")
        entry = Entry("module", name, path, lives_in, type(module).__name__, module.extra_repr())
        self.remember(module, entry)
        entry.facts, entry.evaluating = module_facts(module), not module.training
        if id(module) in above:  # a module that holds itself
            entry.warning = "holds itself: not drawn again"
            return entry
        inside = above | {id(module)}
        prefix = f"{path}." if path else ""
        state = vars(module)
        entry.children += [self.parameter_entry(p, n, prefix + n) for n, p in state["_parameters"].items()]
        entry.children += [
            self.buffer_entry(b, n, prefix + n, n not in state["_non_persistent_buffers_set"])
            for n, b in state["_buffers"].items()
        ]
        entry.children += [
            self.module_entry(m, n, prefix + n, "_modules", inside) for n, m in state["_modules"].items()
        ]
        entry.children += [
            self.attribute_entry(v, n, prefix + n) for n, v in state.items() if n not in self.bookkeeping
        ]
        return entry

    def parameter_entry(self, parameter, name, path) -> Entry:
        entry = Entry("parameter", name, path, "_parameters", type(parameter).__name__)
        if parameter is None:
            entry.text = "None: registered, but without a value"
            return entry
        entry.text = f"{dtype_name(parameter.dtype)} {list(parameter.shape)}"
        entry.facts = tensor_facts(parameter) + [("in state_dict()", f"yes, as {path!r}")]
        if not parameter.requires_grad:
            entry.warning = "frozen: requires_grad is False"
        return self.remember(parameter, entry)

    def buffer_entry(self, buffer, name, path, persistent) -> Entry:
        entry = Entry("buffer", name, path, "_buffers", type(buffer).__name__)
        where = f"yes, as {path!r}" if persistent else "no: it is in _non_persistent_buffers_set"
        if buffer is None:
            entry.text = "None: registered, but without a value"
            return entry
        entry.text = f"{dtype_name(buffer.dtype)} {list(buffer.shape)}"
        entry.text += "" if persistent else ", not persistent"
        entry.facts = tensor_facts(buffer) + [("persistent", str(persistent)), ("in state_dict()", where)]
        return self.remember(buffer, entry)

    def attribute_entry(self, value, name, path) -> Entry:
        text = repr(value) if not is_tensor(value) else f"{dtype_name(value.dtype)} {list(value.shape)}"
        text = " ".join(text.split())
        entry = Entry(
            "attribute",
            name,
            path,
            "__dict__",
            type(value).__name__,
            text if len(text) <= LONGEST_REPR else text[: LONGEST_REPR - 1] + "…",
        )
        entry.warning = self.unregistered(value)
        if is_tensor(value):
            entry.facts = tensor_facts(value) + [("in state_dict()", "no")]
            self.remember(value, entry)
        return entry

    def unregistered(self, value) -> str | None:
        """Does a plain attribute hide what parameters() and state_dict() then cannot find?"""
        if is_tensor(value):
            return "a tensor, but not registered: buffers(), parameters(), to() and state_dict() miss it"
        inside = value.values() if isinstance(value, dict) else value
        inside = inside if isinstance(value, (dict, list, tuple)) else ()
        modules = sum(isinstance(v, self.Module) for v in inside)
        counts = {"module": modules, "tensor": sum(is_tensor(v) for v in inside)}
        hidden = [f"{n} unregistered {kind}{'s' * (n > 1)}" for kind, n in counts.items() if n]
        if hidden:
            return f"holds {' and '.join(hidden)}: not seen by parameters(), to() and state_dict()"
        return None


def module_facts(module) -> list:
    parameters = list(module.parameters())
    trainable = sum(p.numel() for p in parameters if p.requires_grad)
    hooks = {name: len(value) for name, value in vars(module).items() if name.endswith("_hooks") and value}
    return [
        ("class", f"{type(module).__module__}.{type(module).__qualname__}"),
        ("training", str(module.training)),
        ("parameters()", f"{len(parameters)}, together {sum(p.numel() for p in parameters):,} numbers"),
        ("… that train", f"{trainable:,} numbers"),
        ("buffers()", f"{len(list(module.buffers()))}"),
        *((f"{name}", f"{count} registered") for name, count in hooks.items()),
    ]


def tensor_facts(tensor) -> list:
    history = (
        ("grad", "None" if tensor.grad is None else "a tensor")
        if tensor.is_leaf
        else ("grad_fn", tensor.grad_fn.name())
    )
    return [
        ("shape", str(list(tensor.shape))),
        ("dtype", dtype_name(tensor.dtype)),
        ("device", str(tensor.device)),
        ("requires_grad", str(tensor.requires_grad)),
        ("is_leaf", str(tensor.is_leaf)),
        history,
        ("values", tensor_text(tensor) or f"{tensor.numel():,} numbers"),
    ]
