"""The streams of one rank over a training step with `fully_shard`, in virtual time (the chapter "Shards: FSDP and DTensor").

A stack of blocks, each `Linear(d, 4d)`, ReLU and `Linear(4d, d)`, in bfloat16; the first block's input needs no gradient. The
host is always ahead, so only streams and events decide what waits. `tests/viz/test_shard_time.py` runs readtorch's
`fully_shard` on simulated devices and compares every interval.
"""

from readtorch.viz.figure_kit import Figure
from readtorch.viz.inputs import Choice, Integer, Number, Switch
from readtorch.viz.picture import lanes

LANES = {"compute": "compute", "copy_in": "copy in", "gather": "gather", "reduce": "scatter"}
MEMORY = 3.35e6  # bytes a microsecond in a device's own memory: an H100's
SIZE = 2  # bytes of a bfloat16
WIDTHS = ["512", "1024", "2048", "4096", "8192", "16384"]
RANKS = ["2", "4", "8", "16", "32", "64"]  # each divides each width: no shard is padded


class Step:
    """Intervals (start, end, kind, group) on four streams; times in microseconds."""

    def __init__(self, inputs):
        self.inputs, self.width, self.rows = inputs, int(inputs["width"]), inputs["rows"]
        self.ranks, self.speed = int(inputs["ranks"]), inputs["speed"] * 1e6
        blocks, each = inputs["blocks"], inputs["each"]
        self.groups = [min(each, blocks - start) for start in range(0, blocks, each)]
        self.blocks = {lane: [] for lane in LANES}
        self.free = dict.fromkeys(LANES, 0.0)
        self.communicator = 0.0  # when it has done what it was asked for
        self.arrives = {}  # group -> when its all-gather will be over
        self.whole = set()
        self.kept = None  # when the last all-gather of forward was copied out
        self.scattered = None  # when the last reduce-scatter will be over

    # -- streams

    def take(self, lane, duration, kind, group, ready=0.0):
        start = max(self.free[lane], ready)
        self.free[lane] = start + duration
        if duration > 0:
            self.blocks[lane].append((start, start + duration, kind, group))
        return start + duration

    def wait(self, event, kind, group):
        """The stream that computes goes on when `event` has come."""
        if event > self.free["compute"]:
            self.blocks["compute"].append((self.free["compute"], event, kind, group))
            self.free["compute"] = event

    def gathers_wait(self, event):
        for lane in ("copy_in", "gather"):
            self.free[lane] = max(self.free[lane], event)

    def collective(self, lane, group, ready, own=False):
        """(N − 1)/N of the group's bytes go over the link. One communicator does one at a time."""
        sent = self.bytes(group) * (self.ranks - 1) / self.ranks
        after = 0.0 if own else self.communicator
        end = self.take(
            lane, self.inputs["latency"] + sent / (self.inputs["link"] * 1e3), lane, group, max(ready, after)
        )
        if not own:
            self.communicator = end
        return end

    # -- how long kernels take

    def bytes(self, group):
        return SIZE * self.groups[group] * (8 * self.width**2 + 5 * self.width)

    def product(self, biases=0):
        """Any of a block's, of as many rows, d and 4d: it moves two factors and the result, or arithmetic holds it up."""
        moved = 4 * self.width**2 + (5 * self.rows + biases) * self.width
        return max(SIZE * moved / MEMORY, 8 * self.rows * self.width**2 / self.speed)

    def forward(self, group):
        one = self.product(biases=4) + self.pointwise(8) + self.product(biases=1)
        self.take("compute", self.groups[group] * one, "forward", group)

    def backward(self, group):
        """Two products for each layer, but one for the very first; sums for the biases; the derivative of ReLU."""
        sums = SIZE * 5 * (self.rows + 1) * self.width / MEMORY
        one = sums + self.pointwise(12)
        products = 4 * self.groups[group] - (group == 0)
        self.take("compute", self.groups[group] * one + products * self.product(), "backward", group)

    def pointwise(self, tensors):
        return SIZE * tensors * self.rows * self.width / MEMORY

    def copy(self, size):
        return 2 * size / MEMORY  # read and written

    # -- a group: what `_fsdp_param_group.py` asks for, in its order

    def unshard(self, group):
        if group in self.arrives or group in self.whole:
            return
        copied = self.take("copy_in", self.copy(self.bytes(group) / self.ranks), "copy", group)
        self.arrives[group] = self.collective("gather", group, copied)

    def wait_for_unshard(self, group, forward):
        if group not in self.arrives:
            return
        if forward and self.kept is not None:
            self.gathers_wait(self.kept)
            self.kept = None
        self.wait(self.arrives.pop(group), "late_forward" if forward else "late_backward", group)
        event = self.take("compute", self.copy(self.bytes(group)), "copy", group)
        self.whole.add(group)
        if forward:
            self.kept = event
        else:
            self.gathers_wait(event)

    def run_forward(self):
        for group in range(len(self.groups)):
            self.unshard(group)
            self.wait_for_unshard(group, forward=True)
            self.forward(group)
            if self.inputs["reshard"]:
                self.whole.discard(group)
        self.gathers_wait(self.kept)
        self.take(
            "compute", SIZE * (self.rows * self.width + 1) / MEMORY, "forward", len(self.groups)
        )  # the loss, a sum

    def run_backward(self):
        for group in reversed(range(len(self.groups))):
            self.unshard(group)
            self.wait_for_unshard(group, forward=False)
            if self.inputs["prefetch"] and group > 0:
                self.unshard(group - 1)
            self.backward(group)
            self.whole.discard(group)
            self.reduce(group)
        self.wait(self.scattered, "late_reduce", 0)

    def reduce(self, group):
        """The buffer of the last reduce-scatter is given back first: what computes waits for its end."""
        if self.scattered is not None:
            self.wait(self.scattered, "late_reduce", group + 1)
        copied = self.take("compute", self.copy(self.bytes(group)), "copy", group)
        self.scattered = self.collective("reduce", group, copied, self.inputs["own"])


def step_of(inputs):
    step = Step(inputs)
    step.run_forward()
    step.run_backward()
    return step


def spent(blocks, *kinds):
    return sum(end - start for start, end, kind, _ in blocks if kind in kinds)


def model(inputs):
    step = step_of(inputs)
    total, compute = step.free["compute"], step.blocks["compute"]
    sent = spent(step.blocks["gather"], "gather") + spent(step.blocks["reduce"], "reduce")
    late = {kind: spent(compute, kind) for kind in ("late_forward", "late_backward", "late_reduce")}
    return {
        "lanes": step.blocks,
        "groups": len(step.groups),
        "total": total,
        "late": late,
        "hidden": max(0.0, 1 - sum(late.values()) / sent),
        "say": sentence(total, sent, compute, late),
    }


def sentence(total, sent, compute, late):
    waits = sum(late.values())
    parts = {
        "all-gathers in forward": late["late_forward"],
        "all-gathers in backward": late["late_backward"],
        "reduce-scatters": late["late_reduce"],
    }
    named = ", ".join(f"{amount(time)} for {what}" for what, time in parts.items() if time > 0)
    return (
        f"A step takes {amount(total)}: {amount(spent(compute, 'forward', 'backward'))} of computing, {amount(spent(compute, 'copy'))} of "
        f"copies, and {amount(waits)} in which this stream waits ({named}). Collectives take {amount(sent)}; "
        f"{100 * max(0.0, 1 - waits / sent) * (1 + 1e-12):.0f} % of that is hidden."
    )


def amount(time):
    """Milliseconds, or microseconds where they are few."""
    time *= 1 + 1e-12
    return f"{time / 1000:,.2f} ms" if time >= 1000 else f"{time:,.0f} µs"


LOOKS = {"forward": "pick", "backward": "pick", "copy": "pale", "gather": "pale", "reduce": "gold"}


def picture(result, step):
    drawn = [(words, [block[:3] for block in result["lanes"][lane]]) for lane, words in LANES.items()]
    return lanes(drawn, result["total"], lambda row, kind: LOOKS.get(kind, "free"))


def sample(random):
    """Sizes and speeds of which no two events come at the same moment."""
    return {
        "rows": random.randint(1, 40000),
        "blocks": random.randint(1, 24),
        "each": random.randint(1, 24),
        **{
            name: random.uniform(low, high)
            for name, low, high in (("latency", 1, 200), ("link", 1, 900), ("speed", 20, 2000))
        },
    }


FIGURE = Figure(
    name="shard_time",
    title="The streams of a rank over a step",
    inputs=(
        Choice("ranks", "ranks", "8", options=RANKS),
        Number("link", "link", 100, low=1, high=10_000, unit="GB/s", step=10),
        Number("latency", "latency", 20, low=0.1, high=10_000, unit="µs a collective", step=10),
        Number("speed", "speed", 400, low=1, high=10_000, unit="TFLOP/s", step=50),
        Choice("width", "width d", "4096", options=WIDTHS),
        Integer("rows", "tokens a rank", 4096, low=1, high=1_000_000, step=512),
        Integer("blocks", "blocks", 6, low=1, high=24),
        Integer("each", "blocks a call", 1, low=1, high=24, hint="one fully_shard for so many"),
        Switch("reshard", "reshard after forward", True),
        Switch("prefetch", "prefetch in backward", True),
        Switch("own", "reduce-scatters in a group of their own", False),
    ),
    model=model,
    picture=picture,
    helpers=("_lanes",),
    sample=sample,
)  # fmt: skip
