"""A training loop under a profiler with a schedule: which steps are recorded, and the trace that comes of it (the chapter
"The profiler").

The schedule goes through the actions of `torch/profiler/profiler.py`, and a step calls what PyTorch's profile of it shows: names,
nesting, shapes and operations. Times are those of a simple machine. `tests/viz/test_profiled_steps.py` compares with PyTorch. With a
device, each operator that computes or copies launches a kernel instead, and the kernels run one after another.
"""

from dataclasses import dataclass

from readtorch.viz.figure_kit import Figure
from readtorch.viz.inputs import Choice, Integer, Integers, Number, Refusal, Switch
from readtorch.viz.picture import drawing, tag, text

NONE, WARMUP, RECORD, SAVE = "none", "warmup", "record", "save"
FLOPS_A_US, BYTES_A_US = 50_000, 10_000  # of the machine: 50 GFLOP/s, 10 GB/s
# Of a GPU: 10 TFLOP/s, 1 TB/s, the shortest kernel, what a launch takes, and how long it takes to arrive.
GPU_FLOPS_A_US, GPU_BYTES_A_US, KERNEL_US, LAUNCH_US, ARRIVAL_US = 10_000_000, 1_000_000, 2.0, 4.0, 3.0
DEVICES = {"cpu": "CPU", "gpu": "GPU"}
AVERAGES = {"none": "no average", "loop": "a loop of e.lerp_(p, 0.1)", "foreach": "torch._foreach_lerp_"}


# ---- the schedule


def action_of(step, wait, warmup, active, repeat):
    """As `torch.profiler.schedule` says."""
    length = wait + warmup + active
    if repeat and step >= repeat * length:
        return NONE
    place = step % length
    if place < wait:
        return NONE
    if place < wait + warmup:
        return WARMUP
    return RECORD if place < length - 1 else SAVE


class Run:
    """The loop under `profile`: the action of each step, the traces that `on_trace_ready` gets, and what is left in the end.

    traces: [(the number of the step that begins, the steps recorded)]. left: the steps of the last cycle that was prepared, or None.
    """

    def __init__(self, inputs):
        self.settings = inputs["schedule"]
        self.actions, self.traces, self.left = [], [], None
        self.is_recording = False
        steps = inputs["iterations"] if inputs["stepping"] else 0
        before = NONE
        for step in range(steps + 1):
            before = self.begin(step, before)
        self.change(steps, before, None)

    def begin(self, step, before):
        action = action_of(step, *self.settings)
        self.actions.append(action)
        self.change(step, before, action)
        if self.is_recording:
            self.left.append(step)
        return action

    def change(self, step, before, action):
        """What `_transit_action` calls between two steps."""
        if before in (RECORD, SAVE) and action is None or before == SAVE:
            self.is_recording = False
            self.traces.append((step, list(self.left)))
        if action == WARMUP and before != WARMUP or action in (RECORD, SAVE) and before in (NONE, SAVE):
            self.left = []  # a new profiler: what the last one had is gone
        if action in (RECORD, SAVE):
            self.is_recording = True


# ---- what a step calls


@dataclass
class Call:
    """An event to be: `own` microseconds of its own, and the calls inside."""

    name: str
    shapes: list
    inside: list
    own: float
    flops: int = 0
    is_block: bool = (
        False  # of Python: `own` passes before each call that Python makes inside, and once more behind the last
    )
    is_engines: bool = False  # called by the engine, not by Python
    kernel: float = 0.0  # how long the kernel runs that it launches
    waits: bool = False  # until the device has nothing left to do


class Machine:
    """The calls of a step of training, for a chain of linear layers with tanh between them."""

    def __init__(self, inputs):
        self.widths, self.batch = inputs["widths"], inputs["batch"]
        self.overhead, self.python = inputs["overhead"], inputs["python"]
        self.average, self.blocks = inputs["average"], inputs["blocks"]
        self.has_gpu, self.asks = inputs["device"] == "gpu", inputs["item"]
        shapes = list(zip(self.widths[1:], self.widths, strict=False))
        self.parameters = [shape for out, size in shapes for shape in ([out, size], [out])]

    def op(self, name, shapes, *inside, flops=0, elements=0):
        """An operator: a call costs, and so do its operations and the numbers that it moves."""
        if self.has_gpu and (flops or elements):
            kernel = KERNEL_US + flops / GPU_FLOPS_A_US + 4 * elements / GPU_BYTES_A_US
            launch = Call("cudaLaunchKernel", [], [], LAUNCH_US, kernel=kernel)
            return Call(name, shapes, [*inside, launch], self.overhead, flops)
        own = self.overhead + flops / FLOPS_A_US + 4 * elements / BYTES_A_US
        return Call(name, shapes, list(inside), own, flops)

    def block(self, name, *inside):
        return Call(name, [], list(inside), self.python, 0, True)

    def named(self, name, *inside):
        """The program's own block, if it has one: a list of calls."""
        return [self.block(name, *inside)] if self.blocks else list(inside)

    def step(self, number, iterations):
        one = [
            self.block("Optimizer.zero_grad#SGD.zero_grad"),
            *self.named("forward", *self.forward()),
            *self.named("backward", *self.backward()),
            self.block("Optimizer.step#SGD.step", *self.update()),
            *([self.item()] if self.asks else []),
            *(self.named("average", *self.averaged()) if self.average != "none" else []),
        ]
        return self.block(f"ProfilerStep#{number}", *one * iterations)

    # ---- operators

    def strided(self, name, shape, more):
        """A view: `as_strided` is what makes it."""
        return self.op(name, [shape, *[[]] * more], self.op("aten::as_strided", [shape, [], [], []]))

    def t(self, shape):
        return self.op("aten::t", [shape], self.strided("aten::transpose", shape, 2))

    def copy_(self, shape):
        return self.op("aten::copy_", [shape, shape, []], elements=2 * size(shape))

    def conj(self, shape):
        return self.op("aten::resolve_conj", [shape])

    def expanded(self, shape):
        """A gradient that one number fills has no strides that a product of matrices could use."""
        empty = self.op("aten::empty_like", [shape, *[[]] * 5], self.op("aten::empty", [[]] * 6))
        return self.op("aten::clone", [shape, []], empty, self.copy_(shape))

    # ---- forward

    def forward(self):
        calls = []
        for layer, (size_in, size_out) in enumerate(zip(self.widths, self.widths[1:], strict=False)):
            if layer:
                hidden = [self.batch, size_in]
                calls.append(self.op("aten::tanh", [hidden], elements=2 * size(hidden)))
            calls.append(self.linear([self.batch, size_in], size_out))
        out = [self.batch, self.widths[-1]]
        begin = self.op("aten::as_strided", [[], [], [], []]), self.op("aten::fill_", [[1, 1], []])
        return [*calls, self.op("aten::sum", [out, []], *begin, elements=size(out))]

    def linear(self, given, size_out):
        batch, size_in = given
        made = [batch, size_out]
        inside = self.strided("aten::expand", [size_out], 2), self.copy_(made), self.conj(made), self.conj(given)
        shapes = [[size_out], given, [size_in, size_out], [], []]
        addmm = self.op("aten::addmm", shapes, *inside, flops=2 * batch * size_in * size_out)
        return self.op("aten::linear", [given, [size_out, size_in], [size_out]], self.t([size_out, size_in]), addmm)

    # ---- backward

    def node(self, name, shape, *inside, after=()):
        ran = self.op(name, [shape], *inside)
        call = self.op(f"autograd::engine::evaluate_function: {name}", [], ran, *after)
        call.is_engines = True
        return call

    def backward(self):
        empty = self.op("aten::empty_like", [[]] * 6, self.op("aten::empty_strided", [[]] * 6))
        yield self.op("aten::ones_like", [[]] * 6, empty, self.op("aten::fill_", [[], []]))
        yield self.node("SumBackward0", [], self.strided("aten::expand", [], 2))
        last = len(self.widths) - 2
        for layer in range(last, -1, -1):
            size_in, size_out = self.widths[layer : layer + 2]
            yield self.addmm_backward(size_in, size_out, layer == 0, layer == last)
            yield self.accumulate([size_out])
            yield self.node("TBackward0", [size_in, size_out], self.t([size_in, size_out]))
            yield self.accumulate([size_out, size_in])
            if layer:
                hidden = [self.batch, size_in]
                steps = self.op("aten::tanh_backward", [hidden, hidden], elements=3 * size(hidden))
                yield self.node("TanhBackward0", hidden, steps)

    def addmm_backward(self, size_in, size_out, is_first, is_last):
        """is_first: the data wants no gradient. is_last: the gradient that comes in is expanded."""
        came, flops = [self.batch, size_out], 2 * self.batch * size_in * size_out
        given, weight = [self.batch, size_in], [size_out, size_in]

        def product(one, other, made, is_transposed):
            again = [self.expanded(one)] if is_last else [] if is_transposed else [self.conj(one)]
            return self.op("aten::mm", [one, other], self.conj(made), self.conj(other), *again, flops=flops)

        calls = [] if is_first else [self.t(weight[::-1]), product(came, weight, given, False)]
        calls += [self.t(came), product(came[::-1], given, weight, True), self.t(weight)]
        total = self.op(
            "aten::sum", [came, [], [], []], self.op("aten::fill_", [[1, size_out], []]), elements=size(came)
        )
        return self.node("AddmmBackward0", came, *calls, after=(total, self.op("aten::view", [[1, size_out], []])))

    def accumulate(self, shape):
        return self.node(
            "torch::autograd::AccumulateGrad", shape, self.op("aten::detach", [shape], self.op("detach", [shape]))
        )

    # ---- behind it

    def update(self):
        return [self.op("aten::add_", [p, p, []], elements=3 * size(p)) for p in self.parameters]

    def item(self):
        """`loss.item()`: a copy from the device, and a wait until it is there."""
        copy = Call("cudaMemcpyAsync", [], [], LAUNCH_US, kernel=KERNEL_US)
        wait = Call("cudaStreamSynchronize", [], [], 1.0, waits=True)
        return self.op("aten::item", [[]], self.op("aten::_local_scalar_dense", [[]], *[copy, wait] * self.has_gpu))

    def averaged(self):
        if self.has_gpu and self.average == "foreach":  # one kernel for all
            return [self.op("aten::_foreach_lerp_", [[], [], []], elements=3 * sum(map(size, self.parameters)))]
        each = [self.op("aten::lerp_", [p, p, []], elements=3 * size(p)) for p in self.parameters]
        return each if self.average == "loop" else [self.op("aten::_foreach_lerp_", [[], [], []], *each)]


def size(shape):
    count = 1
    for length in shape:
        count *= length
    return count


# ---- the trace


def place(call, start, parent, events, kernels):
    """Put the call and what is inside into `events`: [name, start, end, parent, depth, shapes, flops, self], and what it launches into
    `kernels`: [name, start, end, the number of the launch]. Returns its end."""
    number = len(events)
    depth = events[parent][4] + 1 if parent >= 0 else 0
    events.append([call.name, start, 0.0, parent, depth, call.shapes, call.flops, 0.0])
    before, after = (0.0, call.own) if call.is_block else (call.own / 2, call.own / 2)
    now, inside = start + before, 0.0
    for child in call.inside:
        begin = now + call.own if call.is_block and not child.is_engines else now
        now = place(child, begin, number, events, kernels)
        inside += now - begin
    now += after
    free = kernels[-1][2] if kernels else 0.0
    if call.waits:
        now = max(now, free)
    if call.kernel:
        begin = max(now + ARRIVAL_US, free)
        kernels.append([events[parent][0], begin, begin + call.kernel, number])
    events[number][2], events[number][7] = now, now - start - inside
    return now


def averages(events):
    """[[name, self, total, calls, flops]] as `key_averages` sums them, by self time."""
    rows = {}
    for name, start, end, _, _, _, flops, own in events:
        key = "ProfilerStep*" if name.startswith("ProfilerStep#") else name
        row = rows.setdefault(key, [key, 0.0, 0.0, 0, 0])
        for column, value in enumerate((own, end - start, 1, flops), 1):
            row[column] += value
    return sorted(rows.values(), key=lambda row: -round(row[1], 6))


def trace_of(inputs, steps):
    """The events of these steps, one after another, and the kernels that they launch."""
    machine, events, kernels, now = Machine(inputs), [], [], 0.0
    for step in steps:
        iterations = step < inputs["iterations"] if inputs["stepping"] else inputs["iterations"]
        now = place(machine.step(step, int(iterations)), now, -1, events, kernels)
    return events, kernels


def model(inputs):
    wait, warmup, active, repeat = inputs["schedule"]
    if not active:
        raise Refusal(
            f"PyTorch raises AssertionError: Invalid profiler schedule arguments. Got wait={wait} (need >= 0), warmup={warmup} (need >= 0), "
            f"active=0 (need > 0), repeat={repeat} (need >= 0), skip_first=0 (need >= 0)."
        )
    run = Run(inputs)
    shown = max([steps for _, steps in run.traces], key=lambda steps: worked(inputs, steps), default=[])
    events, kernels = trace_of(inputs, shown)
    rows = averages(events)
    say = [recorded(inputs, run, shown, events, rows), on_the_device(events, kernels), afterwards(inputs, run)]
    return {
        "actions": run.actions,
        "traces": [list(trace) for trace in run.traces],
        "left": run.left,
        "shown": shown,
        "events": events,
        "kernels": kernels,
        "rows": rows,
        "total": sum(row[1] for row in rows),
        "at": max(min(inputs["at"], len(events)), 1),
        "zoom": inputs["zoom"] if inputs["zoom"] <= len(events) else 0,
        "say": " ".join(filter(None, say)),
    }


def worked(inputs, steps):
    """How many iterations of the loop lie in these steps."""
    return sum(step < inputs["iterations"] for step in steps) if inputs["stepping"] else inputs["iterations"]


def recorded(inputs, run, shown, events, rows):
    if not run.traces:
        why = (
            "the loop ends too early"
            if inputs["stepping"]
            else "without prof.step() the whole loop is step 0, which is not recorded"
        )
        return f"No trace: on_trace_ready is never called, for {why}."
    calls = f"{len(run.traces)} time{'s' * (len(run.traces) != 1)}"
    total = short(sum(row[1] for row in rows))
    count = f"{len(events)} event{'s' * (len(events) != 1)}"
    say = f"The trace of {steps_text(shown)} has {count} in {total}; on_trace_ready is called {calls}."
    top = rows[0]
    share = 100 * top[1] / sum(row[1] for row in rows)
    return f"{say} Most self time has {top[0]}, {share * (1 + 1e-12):.0f} %."


def on_the_device(events, kernels):
    if not kernels:
        return ""
    busy = sum(end - start for _, start, end, _ in kernels) / (kernels[-1][2] - kernels[0][1])
    arrow = max(start - events[launch][2] for _, start, _, launch in kernels)
    waited = sum(event[2] - event[1] for event in events if event[0] == "cudaStreamSynchronize")
    say = f"The GPU is busy {100 * busy * (1 + 1e-12):.0f} % of the time from its first kernel to its last; the longest arrow is {short(arrow)}."
    return f"{say} The CPU waits {short(waited)}." if waited else say


def afterwards(inputs, run):
    if run.left is None:
        return "After the block prof.events() raises AssertionError: no profiler was ever made."
    if not worked(inputs, run.left) or not run.left:
        if not run.traces:
            return "After the block prof.events() is empty."
        return "After the block prof.events() has no iteration: the next cycle was prepared, and that cleared them."
    return f"After the block prof.events() has {steps_text(run.left)}."


def steps_text(steps):
    return f"step {steps[0]}" if len(steps) == 1 else f"steps {steps[0]} to {steps[-1]}"


def short(us):
    """12.50 µs, 1.20 ms, 3.05 s."""
    number, unit = (us / 1e6, "s") if us >= 1e6 else (us / 1000, "ms") if us >= 1000 else (us, "µs")
    return f"{number * (1 + 1e-12):.2f} {unit}"


def picture(result, step):
    colours = {NONE: "free", WARMUP: "", RECORD: "pale", SAVE: "pick"}
    wide = 380 / len(result["actions"])
    parts = [text("what the profiler does in each step", 10, 16, "dim")]
    parts += [
        tag("rect", x=f"{10 + wide * i:.1f}", y=22, width=f"{wide:.1f}", height=16, class_=colours[action])
        for i, action in enumerate(result["actions"])
    ]
    end = max((event[2] for event in result["events"]), default=1.0)
    parts += [
        tag(
            "rect",
            x=f"{10 + 380 * start / end:.1f}",
            y=52 + 14 * depth,
            width=f"{max(0.4, 380 * (stop - start) / end):.1f}",
            height=13,
            class_="pale",
        )
        for _, start, stop, _, depth, *_ in result["events"]
        if depth < 4
    ]
    return drawing(400, 120, *parts)


def sample(random):
    """Small programs: a trace of twenty steps is as right as one of two."""
    return {
        "widths": [random.choice([2, 3, 16, 64, 500]) for _ in range(random.randint(2, 4))],
        "batch": random.choice([2, 7, 64, 1000]),
        "schedule": [
            random.randint(0, 2),
            random.randint(0, 2),
            random.randint(0 if random.random() < 0.1 else 1, 3),
            random.randint(0, 2),
        ],
        "iterations": random.randint(1, 9),
        "stepping": random.random() < 0.8,
        "overhead": random.uniform(0, 20),
        "python": random.uniform(0, 20),
        "device": random.choice(["cpu", "gpu"]),
        "item": random.random() < 0.5,
        "zoom": random.choice([0, 1, 40]),
    }


FIGURE = Figure(
    name="profiled_steps",
    title="A training loop under the profiler",
    inputs=(
        Integers("schedule", "wait, warmup, active, repeat", [1, 1, 2, 1], low=0, high=20, longest=4, shortest=4),
        Integer("iterations", "iterations", 6, low=1, high=20),
        Switch("stepping", "prof.step()", True),
        Integers("widths", "widths", [256, 512, 512, 10], low=2, high=4096, longest=5, shortest=2),
        Integer("batch", "batch", 64, low=2, high=65536),
        Choice("average", "average", "loop", options=AVERAGES),
        Choice("device", "device", "cpu", options=DEVICES),
        Switch("item", "loss.item()", False, hint="in each iteration, behind optimizer.step()"),
        Switch("blocks", "blocks", True, hint="record_function around forward, backward and average"),
        Number("overhead", "a call", 2, low=0, high=100, unit="µs", step=1, hint="what every call of an operator costs"),
        Number("python", "Python", 5, low=0, high=1000, unit="µs", step=1, hint="what Python takes before each call of a block"),
        Integer("at", "event", 1, low=1, high=100_000, hidden=True),
        Integer("zoom", "event that fills the width", 0, low=0, high=100_000, hidden=True),
    ),
    model=model,
    picture=picture,
    hint="← and → go through the events, Enter zooms to one, Escape zooms out.",
    sample=sample,
)  # fmt: skip
