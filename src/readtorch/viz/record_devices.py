"""What simulated devices do while a function runs, kernel by kernel, for the device timeline.

The times are those of the devices' own clock (Note [ Virtual time ] in c10/cuda/simulated_streams.py). What a kernel is
for, its phase, is read from the stack of the thread that launches it: the innermost function there that has a phase.
"""

from __future__ import annotations

import sys
import threading
from dataclasses import astuple, dataclass

MOST_PIECES = 1200
MOST_RUNS = 8
PHASES = ["copy", "scatter", "broadcast", "forward", "gather", "backward", "reduce-add", "optimizer"]
COPIES = ("_to_copy", "copy_")


@dataclass
class Piece:
    """A kernel, or a copy. Times are microseconds since the run began; asked: when the host had launched it."""

    device: int
    stream: int
    operator: str
    phase: int  # a place in PHASES
    start: float
    end: float
    asked: float
    nbytes: int  # copied; or read and written


def record_devices(runs, warm=1) -> dict:
    """Call each function and write down what it puts on the devices -> JSON.

    runs: a function, a dict or pairs of label and function. warm: how often each is called before that, unrecorded, so
    that memory is there. RuntimeError if there are no simulated devices, or none that take time.
    """
    pairs = labelled(runs)
    if not 1 <= len(pairs) <= MOST_RUNS:
        raise ValueError(f"{len(pairs)} runs; the device timeline draws 1 to {MOST_RUNS}")
    return {"phases": PHASES, "runs": [record_run(label, function, warm) for label, function in pairs]}


def labelled(runs) -> list:
    pairs = [("", runs)] if callable(runs) else runs.items() if hasattr(runs, "items") else runs
    pairs = list(pairs) if hasattr(pairs, "__iter__") else [pairs]
    for pair in pairs:
        if not (isinstance(pair, tuple) and len(pair) == 2 and callable(pair[1])):
            raise TypeError("expected a function, a dict {label: function} or a list of pairs")
    return pairs


def record_run(label, function, warm) -> dict:
    driver = simulated_driver()
    for _ in range(warm):
        function()
    synchronize(driver)
    watch = _Watch(driver)
    with watch:
        function()
    synchronize(driver)
    since = watch.began
    pieces = sorted(watch.pieces, key=lambda piece: (piece.start, piece.device, piece.asked))
    for piece in pieces:
        piece.start, piece.end, piece.asked = (round(t - since, 3) for t in (piece.start, piece.end, piece.asked))
    ends = [piece.end for piece in pieces]
    return {
        "label": label,
        "total": max([round(watch.ended - since, 3), *ends]),
        "launch": driver.streams.latencies.launch,
        "devices": [device_numbers(pieces, device) for device in range(driver.device_count())],
        "pieces": [astuple(piece) for piece in pieces[:MOST_PIECES]],
        "left_out": max(0, len(pieces) - MOST_PIECES),
    }


def simulated_driver():
    from readtorch.c10.cuda import runtime

    driver = runtime.driver() if runtime.is_available() else None
    if getattr(driver, "costs", None) is None:
        raise RuntimeError(
            "the device timeline needs simulated devices whose kernels take time: "
            "readtorch.cuda.simulate(devices, costs=CostModel())"
        )
    return driver


def synchronize(driver):
    for device in range(driver.device_count()):
        driver.device_synchronize(device)


class _Watch:
    """Stands between the driver and its cost model, which sees the tensors, and takes the driver's timeline."""

    def __init__(self, driver):
        self.driver, self.costs, self.pieces = driver, driver.costs, []
        self.launching = threading.local()  # what this thread is about to put on a stream

    def __enter__(self):
        self.phase_of = phases_of_code()
        self.timeline_before = self.driver.streams.timeline
        self.driver.costs, self.driver.streams.timeline = self, self
        self.began = self.driver.streams.now

    def __exit__(self, *exception):
        self.driver.costs, self.driver.streams.timeline = self.costs, self.timeline_before
        self.ended = self.driver.streams.now

    def duration(self, operator, arguments, results, place):
        """In place of CostModel.duration."""
        name = operator.schema.name
        self.launching.it = self.phase(name), nbytes_of(name, arguments, results)
        return self.costs.duration(operator, arguments, results, place)

    def append(self, entry):
        """In place of list.append: what was put on a stream, right after its duration was asked for."""
        device, stream, name, start, end = entry
        if end == start:
            return  # memory that nobody fills
        phase, nbytes = self.launching.it
        self.pieces.append(
            Piece(device, stream, name, PHASES.index(phase), start, end, self.driver.streams.now, nbytes)
        )

    def phase(self, operator):
        frame = sys._getframe(2)
        while frame is not None:
            phase = self.phase_of.get(frame.f_code)
            if phase:
                return phase
            frame = frame.f_back
        return "copy" if operator in COPIES else "forward"


def phases_of_code() -> dict:
    """The functions that have a phase."""
    from readtorch import autograd
    from readtorch.csrc.autograd import engine
    from readtorch.nn.parallel import comm
    from readtorch.optim import Optimizer

    step = Optimizer.profile_hook_step(lambda: None)  # all functions that it makes have the same code
    functions = {
        "scatter": [comm.scatter],
        "broadcast": [comm.broadcast, comm.broadcast_coalesced],
        "gather": [comm.gather],
        "reduce-add": [comm.reduce_add, comm.reduce_add_coalesced],
        "backward": [autograd.backward, autograd.grad, engine.evaluate_function],  # the last: on a device's own thread
        "optimizer": [step, Optimizer.zero_grad],
    }
    return {function.__code__: phase for phase, several in functions.items() for function in several}


def nbytes_of(operator, arguments, results) -> int:
    from readtorch.aten.simulated_cost import flat

    sizes = [tensor._array.nbytes for tensor in flat((*arguments, results))]
    return max(sizes) if operator in COPIES else sum(sizes)


def device_numbers(pieces, device) -> dict:
    """How long a device was busy, in all and in each phase."""
    own = [piece for piece in pieces if piece.device == device]
    phases = [round(sum(p.end - p.start for p in own if p.phase == number), 3) for number in range(len(PHASES))]
    return {"name": f"cuda:{device}", "busy": round(busy(own), 3), "phases": phases}


def busy(pieces) -> float:
    """The time in which at least one of them runs; they are sorted by their start."""
    total = until = 0.0
    for piece in pieces:
        total += max(0.0, piece.end - max(piece.start, until))
        until = max(until, piece.end)
    return total
