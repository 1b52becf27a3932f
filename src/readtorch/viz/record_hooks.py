"""One call of a module and one backward, with every hook that runs, written down for the hook timeline.

Nothing is predicted: while the call is made, each hook that the module or a part of it has, each global hook and
each ``forward`` stands behind a function that notes when it runs, and then runs it.
"""

from __future__ import annotations

import contextlib
from dataclasses import asdict, dataclass

MOST_EVENTS = 80
MOST_VALUES = 8  # of a tensor, to be shown

# where a Module keeps its hooks -> what the figure calls them; the global ones are in "_global" + the name
KINDS = {
    "_forward_pre_hooks": "pre",
    "_forward_hooks": "hook",
    "_backward_pre_hooks": "bpre",
    "_backward_hooks": "back",
}


@dataclass
class Event:
    """Something that ran. ``lane``: the number of the module; ``got``, ``gave``: texts; ``gave`` may be None."""

    kind: str  # a value of KINDS, or "begin" and "end" of a forward
    lane: int
    name: str  # of the hook's function
    is_global: bool
    got: str
    gave: str | None = None


def record_hooks(module, args, kwargs=None) -> dict:
    """Call ``module(*args, **kwargs)``, sum the result and walk back; what ran, in order."""
    recorder = _Recorder(module)
    error = None
    with recorder.watching():
        try:
            result = module(*args, **(kwargs or {}))
            total = _total(result)
            if total is not None and total.requires_grad:
                total.backward()
        except Exception as e:
            error = f"{type(e).__name__}: {e}"
    events = recorder.events
    return {
        "lanes": [{"path": path or "net", "type": type(m).__name__} for path, m in recorder.modules],
        "events": [asdict(event) for event in events[:MOST_EVENTS]],
        "spans": _spans(events),
        "left_out": max(0, len(events) - MOST_EVENTS),
        "error": error,
    }


class _Recorder:
    def __init__(self, module):
        self.modules = list(module.named_modules())
        self.lanes = {id(m): lane for lane, (_, m) in enumerate(self.modules)}
        self.events = []

    @contextlib.contextmanager
    def watching(self):
        with contextlib.ExitStack() as stack:
            for _, module in self.modules:
                stack.enter_context(self.watched_forward(module))
                for place, kind in KINDS.items():
                    stack.enter_context(self.watched_hooks(getattr(module, place), kind, False))
            # the function that calls hooks knows the global ones, in either library
            names = type(module)._call_impl.__globals__
            for place, kind in KINDS.items():
                stack.enter_context(self.watched_hooks(names[f"_global{place}"], kind, True))
            yield

    @contextlib.contextmanager
    def watched_forward(self, module):
        own = vars(module).get("forward")
        forward = module.forward

        def watched(*args, **kwargs):
            self.note("begin", module, "forward", False, args)
            result = forward(*args, **kwargs)
            self.note("end", module, "forward", False, (), result)
            return result

        vars(module)["forward"] = watched
        try:
            yield
        finally:
            if own is None:
                del vars(module)["forward"]
            else:
                vars(module)["forward"] = own

    @contextlib.contextmanager
    def watched_hooks(self, hooks, kind, is_global):
        originals = dict(hooks)
        for number, hook in originals.items():
            hooks[number] = self.watched_hook(hook, kind, is_global)
        try:
            yield
        finally:
            for number in originals.keys() & hooks.keys():  # a hook may have removed itself
                hooks[number] = originals[number]

    def watched_hook(self, hook, kind, is_global):
        name = getattr(hook, "__name__", type(hook).__name__)

        def watched(module, *values):
            event = self.note(kind, module, name, is_global, values)
            result = hook(module, *values)
            if event is not None and result is not None:
                event.gave = describe(result)
            return result

        return watched

    def note(self, kind, module, name, is_global, got, gave=None):
        lane = self.lanes.get(id(module))
        if lane is None:
            return None
        event = Event(
            kind,
            lane,
            name,
            is_global,
            ", ".join(describe(value) for value in got),
            None if gave is None else describe(gave),
        )
        self.events.append(event)
        return event


def _spans(events):
    """[lane, number of the event where a forward began, … where it returned]; one that raised has no end."""
    spans, begun = [], []
    for number, event in enumerate(events):
        if event.kind == "begin":
            begun.append(number)
        elif event.kind == "end":
            while begun:  # those that raised
                first = begun.pop()
                if events[first].lane == event.lane:
                    spans.append([event.lane, first, number])
                    break
    return spans


def _total(result):
    """A number to start backward from."""
    if hasattr(result, "sum"):
        return result.sum()
    tensors = [value for value in result if hasattr(value, "sum")] if isinstance(result, (tuple, list)) else []
    return sum(tensor.sum() for tensor in tensors) if tensors else None


def describe(value) -> str:
    """A tensor as its shape, and its values if they are few; what holds tensors as the same with its brackets; all else as it prints."""
    if hasattr(value, "shape"):
        shape = f"[{', '.join(map(str, value.shape))}]"
        if not 0 < value.numel() <= MOST_VALUES:
            return shape
        return f"{shape}: {' '.join(map(short, value.detach().flatten().tolist()))}"
    if isinstance(value, tuple):
        return f"({', '.join(map(describe, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {describe(entry)}" for key, entry in value.items()) + "}"
    text = repr(value)
    return text if len(text) <= 40 else text[:39] + "…"


def short(number):
    """A number with four digits."""
    return f"{number:.4g}" if isinstance(number, float) else str(number)
