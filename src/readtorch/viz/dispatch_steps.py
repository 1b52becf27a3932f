"""One operator call, watched from the Python name down to the kernel, written down for the dispatch stepper.

Nothing is predicted: the call runs once under ``watch_calls``, and each step is a function that really
started. What it ORs and masks is read from its operands and from the dispatcher at that moment.

Note [ What a frame tells ]
Every function through which a call passes on its way was generated with what it needs as its globals. One
that has a ``DispatchTable`` among them is an entry: it ORs the keys of its operands, masks them and looks
in the table. The next function that it starts, other than those that convert its operands, is the kernel
which the table gave. A generated kernel with a ``kernel`` of its own among its globals (autograd's) hands
the call down to it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from functools import partial
from operator import attrgetter

from readtorch.aten.operator_entry import BindingTable, DispatchTable, fallbacks
from readtorch.c10.dispatch_key import BY_PRIORITY, FOLLOWED, GRAD_FACTS, NAMES, WRAPPED_NUMBER
from readtorch.c10.local_dispatch_key_set import tls

from .tensor_notes import note
from .watch_calls import GENERATED, SourceNote, in_package, plain_name, source_note, watch_calls

MOST_CALLS = 40
HANDED_DOWN = (
    "Autograd's kernel hands the call to the kernel below, found without its own keys; "
    "around that call it notes what backward will need."
)


@dataclass
class KernelCall:
    """A kernel that ran, and why it was this one. ``closed_over``: what it was made with, such as a ufunc."""

    name: str
    why: str
    source: SourceNote
    closed_over: list


@dataclass
class OperatorCall:
    """One pass through an operator's entry. ``operands``: [name, keys, text]; ``depth``: calls around it."""

    operator: str
    schema: str
    depth: int
    entry: SourceNote
    operands: list
    mask: int
    given: set  # ids of what the caller passed
    path: list  # [SourceNote, line] of the functions through which the call came here
    filled: bool = False  # whether the table had to ask resolve() first
    kernels: list = field(default_factory=list)
    registered: list = field(default_factory=list)  # [key name, kernel name]
    table: list = field(default_factory=list)  # [keys, kernel name]: what is resolved so far

    @property
    def keys(self) -> int:
        union = 0
        for _, keys, _ in self.operands:
            union |= keys
        return union


@dataclass
class Step:
    """What the figure shows at once. ``columns``: [label, key set] for the table of keys."""

    title: str
    text: str
    depth: int
    operator: str
    columns: list = field(default_factory=list)
    chosen: int = 0
    source: SourceNote | None = None
    mark: int | None = None  # the line of `source` that is being run
    operands: list = field(default_factory=list)
    registered: list = field(default_factory=list)
    table: list = field(default_factory=list)


def record_dispatch(function, args=(), kwargs=None) -> dict:
    """Run ``function(*args, **kwargs)`` once and return its way through the dispatcher as JSON.

    ``function`` may be the name of a function of the package, such as "add". Raises ValueError when the call
    passes no dispatcher.
    """
    face = find_face(function) if isinstance(function, str) else function
    watcher = Watcher()
    result = watch_calls(partial(face, *args, **(kwargs or {})), watcher.on_call)
    calls = watcher.calls[:MOST_CALLS]
    if not calls:
        raise ValueError(f"{function!r} called no operator of readtorch")
    steps = [python_call(function, face, calls[0])] + [step for call in calls for step in steps_of(call)]
    steps.append(
        Step(
            "back in Python",
            "The result travels back up through every function above.",
            0,
            calls[0].operator,
            operands=[asdict(note("result", result))],
        )
    )
    facts = [bit for bit in NAMES if bit not in BY_PRIORITY]
    keys = [{"name": NAMES[bit], "bit": bit} for bit in (*facts, *BY_PRIORITY)]
    left_out = len(watcher.calls) - len(calls)
    return {"keys": keys, "steps": [asdict(step) for step in steps], "left_out": left_out}


def find_face(name):
    """A Python function by name: ``add``, ``relu_``, ``nn.functional.linear``."""
    import readtorch

    for place in ("", "Tensor.", "nn.functional."):
        try:
            return attrgetter(place + name)(readtorch)
        except AttributeError:
            continue
    raise ValueError(f"readtorch has no function called {name!r}")


class Watcher:
    """Turns the frames of a call into OperatorCalls. Note [ What a frame tells ]"""

    def __init__(self):
        self.calls = []
        self.open = {}  # frame -> the OperatorCall that it is the entry of, or whose kernel it is

    def on_call(self, frame):
        parent = self.open.get(frame.f_back)
        if is_entry(frame):
            self.open[frame] = self.enter(frame)
        elif parent is not None:
            self.inside(parent, frame)

    def enter(self, frame) -> OperatorCall:
        operator = frame.f_globals["table"].operator
        call = OperatorCall(
            operator.name,
            str(operator.schema),
            self.depth(frame),
            source_note(frame.f_code),
            operands_of(frame),
            tls.mask,
            given=set(map(id, frame.f_locals.values())),
            path=self.path_to(frame),
        )
        call.registered = [[NAMES[key], function_name(kernel)] for key, kernel in operator.kernels.items()]
        if operator.composite:
            call.registered.append(["composite", function_name(operator.composite)])
        if operator.derivative:
            call.registered.append(["derivative", operator.derivative.__name__])
        call.table = operator.table  # read when the call is over, see `steps_of`
        self.calls.append(call)
        return call

    def path_to(self, frame) -> list:
        """The package's functions between this entry and the kernel, or the caller, that wanted it."""
        path, above = [], frame.f_back
        while above and above not in self.open and in_package(above.f_code) and above.f_code not in OURS:
            path.insert(0, [source_note(above.f_code), above.f_lineno])
            above = above.f_back
        return path

    def depth(self, frame) -> int:
        """How many operators' entries are still running around this one."""
        depth, above = 0, frame.f_back
        while above is not None:
            depth += above in self.open and is_entry(above)
            above = above.f_back
        return depth

    def inside(self, call, frame):
        """A function started by an entry or by a kernel that hands down."""
        above = frame.f_back
        if frame.f_code is DispatchTable.__missing__.__code__:
            call.filled = True
        elif is_entry(above) and not call.kernels and runs_kernel(frame):
            call.operands += wrapped_numbers(call, frame)
            self.add_kernel(call, frame, why_this(call, frame.f_code))
        elif not is_entry(above) and getattr(above.f_globals.get("kernel"), "__code__", None) is frame.f_code:
            self.add_kernel(call, frame, HANDED_DOWN)

    def add_kernel(self, call, frame, why):
        closed_over = [asdict(note(free, frame.f_locals.get(free))) for free in frame.f_code.co_freevars]
        call.kernels.append(KernelCall(plain_name(frame.f_code), why, source_note(frame.f_code), closed_over))
        self.open[frame] = call


OURS = {record_dispatch.__code__, watch_calls.__code__}


def is_entry(frame) -> bool:
    code = frame.f_code
    being_defined = code.co_name == "<module>"
    return (
        code.co_filename.startswith(GENERATED)
        and not being_defined
        and isinstance(frame.f_globals.get("table"), (BindingTable, DispatchTable))
    )


def runs_kernel(frame) -> bool:
    """Is it what the table gave, and not a helper of the entry such as the argument parser?"""
    entry = frame.f_back
    candidates = set(entry.f_globals["table"].values())
    return any(getattr(kernel, "__code__", None) is frame.f_code for kernel in candidates)


def operands_of(frame) -> list:
    """[name, keys, text] of each tensor among the arguments; a list of tensors counts one by one."""
    found = []
    names = frame.f_code.co_varnames[: frame.f_code.co_argcount + frame.f_code.co_kwonlyargcount]
    for name in names:
        value = frame.f_locals[name]
        for i, part in enumerate(value if isinstance(value, (list, tuple)) else [value]):
            if hasattr(part, "_keys"):
                label = f"{name}[{i}]" if part is not value else name
                found.append([label, part._keys, shown(part)])
            elif not isinstance(value, (list, tuple)):
                found.append([name, 0, repr(value)])
    return found


def wrapped_numbers(call, kernel) -> list:
    """The operands that the entry made from Python numbers: the kernel has them, the caller did not."""
    return [
        ["wrapped number", keys, text]
        for name, keys, text in operands_of(kernel)
        if keys & WRAPPED_NUMBER and id(kernel.f_locals.get(name)) not in call.given
    ]


def shown(tensor) -> str:
    return f"{str(tensor.dtype).rpartition('.')[2]} {list(tensor.shape)}"


def why_this(call, code) -> str:
    """Which rule of ``Operator.resolve`` gave this kernel."""
    operator = call.table.operator
    if code is getattr(operator.composite, "__code__", None):
        return (
            "The operator is composed of other operators: its composition serves every backend, "
            "and autograd sees its parts."
        )
    for key, kernel in operator.kernels.items():
        if code is getattr(kernel, "__code__", None):
            return f"The operator has a kernel of its own for {NAMES[key]}."
    key = operator.stops_at(call.keys & call.mask)
    if key in fallbacks:
        return f"No kernel is registered for {NAMES[key]}: the fallback of that key serves every operator."
    return f"No kernel is registered for {NAMES[key]}: one was written from the schema when it was first needed."


def function_name(function) -> str:
    code = getattr(function, "__code__", None)
    return plain_name(code) if code else repr(function)


# ---- steps


def python_call(function, face, first) -> Step:
    """What the reader wrote: a name, or the lines of a function."""
    if isinstance(function, str):
        return Step(
            "Python call", f"{function}() is called. In Python it is a function like any other.", 0, first.operator
        )
    code = getattr(face, "__code__", None)
    return Step("Python call", "The call as it was written.", 0, first.operator, source=code and source_note(code))


def steps_of(call) -> list[Step]:
    masked = call.keys & call.mask
    common = {"depth": call.depth, "operator": call.operator}
    on_the_way = [
        Step(
            f"through {source.name}",
            "On its way to the operator the call passes here.",
            source=source,
            mark=line,
            **common,
        )
        for source, line in call.path
    ]
    look_up = [look_up_step(call, masked, common)] if masked else []
    kernels = [
        kernel_step(call, kernel, masked & ~(GRAD_FACTS | FOLLOWED) if number else masked, common)
        for number, kernel in enumerate(call.kernels)
    ]
    return on_the_way + [entry_step(call, common), *key_steps(call, masked, common), *look_up, *kernels]


def entry_step(call, common) -> Step:
    text = f"The call arrives at the entry of {call.operator}. Its schema: {call.schema}"
    values = [{"name": name, "value": shown} for name, _, shown in call.operands]
    return Step("entry", text, source=call.entry, operands=values, registered=call.registered, **common)


def key_steps(call, masked, common) -> list[Step]:
    sets = [[name, keys] for name, keys, _ in call.operands if keys] + [["OR", call.keys]]
    return [
        Step(
            "key sets",
            "Every tensor carries a set of dispatch keys. The entry ORs those of its operands.",
            columns=sets,
            source=call.entry,
            **common,
        ),
        Step(
            "mask",
            "What this thread does not let through is masked off: a mode that is not active, or "
            "the fact that a tensor may require grad under no_grad().",
            columns=[*sets, ["mask", call.mask], ["left", masked]],
            **common,
        ),
    ]


def look_up_step(call, masked, common) -> Step:
    chosen = call.table.operator.stops_at(masked)
    found = (
        "had no kernel for this set yet, so resolve() found one and the table keeps it."
        if call.filled
        else "has a kernel for this set."
    )
    resolved = [[keys, function_name(kernel)] for keys, kernel in sorted(call.table.items())]
    text = f"The highest key that is left and has a kernel is {NAMES[chosen]}. The table of {call.operator} {found}"
    return Step(
        "look-up", text, columns=[["left", masked]], chosen=chosen, registered=call.registered, table=resolved, **common
    )


def kernel_step(call, kernel, keys, common) -> Step:
    return Step(
        f"kernel {kernel.name}",
        kernel.why,
        columns=[["left", keys]],
        source=kernel.source,
        chosen=call.table.operator.stops_at(keys) if keys else 0,
        operands=kernel.closed_over,
        **common,
    )
