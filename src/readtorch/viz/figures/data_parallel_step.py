"""One training step on several devices, in virtual time: who works, who copies and who waits (the chapter "DataParallel").

A model of equal linear layers. What runs where, and in which order, is PyTorch's: `torch/nn/parallel/data_parallel.py`,
`torch/csrc/cuda/comm.cpp` and, for the other strategy, `torch/csrc/distributed/c10d/reducer.cpp`. How long it takes is a
model: bytes over a link, multiplications over a device's speed, and a host that needs the same time for each launch.
With NCCL, as in PyTorch's CUDA wheels for Linux, a buffer goes around a ring; else device 0 copies to and from one device after another.
"""

import math

from readtorch.viz.figure_kit import Figure
from readtorch.viz.inputs import Choice, Integer, Number, Switch
from readtorch.viz.picture import lanes

MOST_DEVICES = 8
BUFFER = 10 * 2**20  # bytes at which `take_tensors` closes a buffer
BUCKETS = (2**20, 25 * 2**20)  # DistributedDataParallel's first bucket, and the others
HOST_LINK = 25e3  # bytes a microsecond from the host's memory
MEMORY = 3e6  # bytes a microsecond in a device's own memory
LEAST = 3  # microseconds of the smallest kernel

COMPUTING, MOVING = ("forward", "backward", "update"), ("copy", "sum")
ONE_PROCESS, MANY_PROCESSES = "DataParallel", "DistributedDataParallel"


class Lane:
    """What one device (or the host) does: intervals (start, end, phase), and when it is free; times in microseconds."""

    def __init__(self):
        self.blocks = []
        self.free = 0.0

    def take(self, phase, ready, duration):
        """Work that begins when the lane is free and `ready` has come. Returns its end."""
        start = max(self.free, ready)
        self.free = start + duration
        if self.blocks and self.blocks[-1][2] == phase and start <= self.blocks[-1][1]:
            self.blocks[-1] = (self.blocks[-1][0], self.free, phase)
        elif duration > 0:
            self.blocks.append((start, self.free, phase))
        return self.free

    def time_in(self, phases):
        return sum(end - start for start, end, phase in self.blocks if phase in phases)


class Step:
    """One training step of `devices` devices with either strategy."""

    def __init__(self, inputs, devices=None):
        self.devices = devices or inputs["devices"]
        self.launch = inputs["launch"]
        self.link = inputs["link"] * 1e3  # GB/s in bytes a microsecond
        self.flops = inputs["speed"] * 1e6  # TFLOP/s in operations a microsecond
        self.layers, self.width, self.samples = inputs["layers"], inputs["width"], inputs["samples"]
        self.layer_bytes = 4 * self.width * (self.width + 1)
        self.bytes = self.layers * self.layer_bytes
        self.lanes = [Lane() for _ in range(self.devices)]

    def parts(self):
        """Rows for each device, as `chunk` cuts them: some may get none."""
        size = math.ceil(self.samples / self.devices)
        return [max(0, min(size, self.samples - i * size)) for i in range(self.devices)]

    def rows_bytes(self, rows):
        return 4 * rows * self.width

    def product(self, rows):
        """A layer's matrix product, or one of the two of its backward."""
        return max(LEAST, 2 * rows * self.width * self.width / self.flops)

    def update(self, lane, host):
        lane.take("update", host + 4 * self.launch, max(LEAST, 3 * self.bytes / MEMORY))

    def total(self):
        return max(lane.free for lane in self.lanes)


class OneProcess(Step):
    """`DataParallel`: one host launches for all; device 0 has the model. One device alone is this without the copies."""

    def __init__(self, inputs, devices=None):
        super().__init__(inputs, devices)
        self.host, self.nccl = Lane(), inputs["nccl"]
        self.rows = [rows for rows in self.parts() if rows]

    def run(self):
        working = self.lanes[: len(self.rows)]
        ready = self.scatter_inputs()
        for size in self.buffers():
            self.move(working, size, "copy")
        for _ in range(self.layers):
            for lane, rows, there in zip(working, self.rows, ready):  # threads take turns at the interpreter
                lane.take("forward", max(there, self.launched()), self.product(rows))
        self.exchange(working, "copy")  # the outputs to device 0
        for _ in range(2):
            self.lanes[0].take("forward", self.launched(), LEAST)  # the loss
        self.backward(working)
        self.add_gradients(working)
        self.update(self.lanes[0], self.host.free)
        return self

    def launched(self):
        return self.host.take("launch", 0, self.launch)

    def scatter_inputs(self):
        """From the host's memory, over a link for each device. Returns when each part is there."""
        return [self.launched() + self.rows_bytes(rows) / HOST_LINK for rows in self.rows]

    def buffers(self):
        """The bytes of each buffer: weights and biases end to end until the limit is reached; no tensor is cut."""
        full, filling = [], 0
        for size in (4 * self.width**2, 4 * self.width) * self.layers:
            filling += size
            if filling >= BUFFER:
                full.append(filling)
                filling = 0
        return full + [filling] * (filling > 0)

    def move(self, working, size, phase, adding=0):
        """A buffer between device 0 and all others. adding: time for each sum on device 0, which NCCL makes on the way."""
        if self.nccl and len(working) > 1:
            launched = [self.launched() for _ in working]
            start = max(launched[-1], *(lane.free for lane in working))
            for lane in working:
                lane.take(phase, start, size / self.link)  # each passes on what comes, so all links work at once
        else:
            for lane in working[1:]:
                self.both(lane, self.launched(), size, phase)
                self.lanes[0].take(phase, 0, adding)

    def exchange(self, working, phase):
        """Rows between device 0 and each other device; both ends are busy."""
        for lane, rows in zip(working[1:], self.rows[1:]):
            self.both(lane, self.launched(), self.rows_bytes(rows), phase)

    def both(self, lane, ready, size, phase):
        start = max(ready, lane.free, self.lanes[0].free)
        self.lanes[0].take(phase, start, size / self.link)
        lane.take(phase, start, size / self.link)

    def backward(self, working):
        """The engine has a thread for each device, so here launches do not wait for each other."""
        self.exchange(working, "copy")  # the gradients of the outputs
        for lane, rows in zip(working, self.rows):
            thread = self.host.free
            for _ in range(2 * self.layers):
                thread += self.launch
                lane.take("backward", thread, self.product(rows))

    def add_gradients(self, working):
        """One node, so it begins when all gradients of all devices are there."""
        done = max(lane.free for lane in working)
        self.host.take("launch", done, 0)
        for size in self.buffers():
            self.move(working, size, "sum", 3 * size / MEMORY)


class ManyProcesses(Step):
    """`DistributedDataParallel`: a process for each device; rings of sums begin while backward goes on."""

    def __init__(self, inputs):
        super().__init__(inputs)
        self.rings = Lane()

    def run(self):
        rows = math.ceil(self.samples / self.devices)  # DistributedSampler gives all ranks equally many
        self.host = Lane()
        there = self.host.take("launch", 0, self.launch) + self.rows_bytes(rows) / HOST_LINK
        for phase, count, time in (("forward", self.layers, self.product(rows)), ("forward", 2, LEAST)):
            for _ in range(count):
                launched = self.host.take("launch", 0, self.launch)
                self.all_take(phase, max(there, launched), time)
        self.backward(rows)
        self.host.take("launch", 0, 4 * self.launch)
        for lane in self.lanes:
            self.update(lane, max(self.rings.free, self.host.free - 4 * self.launch))
        return self

    def all_take(self, phase, ready, duration):
        for lane in self.lanes:
            lane.take(phase, ready, duration)

    def backward(self, rows):
        waiting, limit = 0, BUCKETS[0]
        for layer in range(self.layers):
            for _ in range(2):
                self.all_take("backward", self.host.take("launch", 0, self.launch), self.product(rows))
            waiting += self.layer_bytes
            if waiting >= limit or layer == self.layers - 1:
                self.ring(waiting)
                waiting, limit = 0, BUCKETS[1]

    def ring(self, size):
        """Each device sends and receives 2 (n - 1) / n of the bytes, all at the same time."""
        if self.devices > 1:
            duration = 2 * (self.devices - 1) * size / (self.devices * self.link)
            self.rings.take("sum", self.lanes[0].free, duration)


STRATEGIES = {ONE_PROCESS: OneProcess, MANY_PROCESSES: ManyProcesses}


def step_of(inputs):
    return STRATEGIES[inputs["strategy"]](inputs).run()


def faster(inputs):
    """The step's time with one device over that with all of them."""
    return OneProcess(inputs, 1).run().total() / step_of(inputs).total()


def model(inputs):
    step = step_of(inputs)
    total = step.total()
    rings = step.rings if isinstance(step, ManyProcesses) else Lane()
    computes = [lane.time_in(COMPUTING) / total for lane in step.lanes]
    moves = [(lane.time_in(MOVING) + rings.time_in(MOVING)) / total for lane in step.lanes]
    return {
        "host": step.host.blocks,
        "lanes": [lane.blocks for lane in step.lanes],
        "rings": rings.blocks,
        "total": total,
        "computes": computes,
        "bytes": step.bytes,
        "moves": moves,
        "say": sentence(inputs, total, computes, moves),
    }


def sentence(inputs, total, computes, moves):
    n = inputs["devices"]
    if n == 1:
        return f"One device takes {whole(total)} µs and computes for {percent(computes[0])} of them."
    alone = OneProcess(inputs, 1).run().total()
    others, moved = (sum(shares[1:]) / (n - 1) for shares in (computes, moves))
    return (
        f"{n} devices take {whole(total)} µs, one takes {whole(alone)}: {times(alone / total)} times as fast. Device 0 computes for "
        f"{percent(computes[0])} of the step and copies or adds gradients for {percent(moves[0])}; the others for "
        f"{percent(others)} and {percent(moved)}. With launches that cost nothing: "
        f"{times(faster(inputs | {'launch': 0}))} times; with links that cost nothing: {times(faster(inputs | {'link': math.inf}))} times."
    )


def whole(number):
    return f"{number * (1 + 1e-12):,.0f}"


def times(ratio):
    """With two decimals where it is slower."""
    return f"{ratio * (1 + 1e-12):.{1 if ratio >= 1 else 2}f}"


def percent(share):
    return f"{100 * share * (1 + 1e-12):.0f} %"


def picture(result, step):
    rows = [("host", result["host"]), *((f"device {i}", lane) for i, lane in enumerate(result["lanes"]))]
    return lanes(rows, result["total"], lambda row, phase: "pick" if phase in COMPUTING else "pale")


def sample(random):
    """Sizes and speeds of which no two events come at the same moment."""
    return {
        "samples": random.randint(1, 9000),
        "width": random.randint(16, 3000),
        **{
            name: random.uniform(low, high)
            for name, low, high in (("launch", 0.5, 40), ("link", 5, 900), ("speed", 3, 900))
        },
    }


FIGURE = Figure(
    name="data_parallel_step",
    title="One training step, in virtual time",
    inputs=(
        Choice("strategy", "strategy", ONE_PROCESS, list(STRATEGIES)),
        Switch("nccl", "NCCL", True, hint="DataParallel's copies and sums as rings"),
        Integer("devices", "devices", 4, low=1, high=MOST_DEVICES, slider=True),
        Integer("samples", "samples", 4096, low=1, high=1_000_000),
        Integer("layers", "layers", 6, low=1, high=48),
        Integer("width", "width", 2048, low=1, high=16384, hint="Linear(width, width)"),
        Number("launch", "a launch", 10, low=0, high=1000, unit="µs", step=1),
        Number("link", "link", 50, low=0.1, high=10_000, unit="GB/s", step=10),
        Number("speed", "speed", 20, low=0.1, high=2000, unit="TFLOP/s", step=10),
    ),
    model=model,
    picture=picture,
    helpers=("_lanes",),
    sample=sample,
)  # fmt: skip
