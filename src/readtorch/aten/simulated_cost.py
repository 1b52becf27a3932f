"""How long a kernel would keep a device busy: an estimate, for timelines in virtual time.

Note [ The roofline ]
A kernel must move its operands and results through the device's memory, and it must do its arithmetic; it takes as long as
the slower of the two, and never less than a launch. Memory that nobody fills is no kernel and takes no time. Only products
of matrices and convolutions do more arithmetic than they move. Copies are as fast as the link between their two ends. The defaults are round numbers of the order of a data
centre's GPU of 2020: what a timeline shows is who waits for whom, not how long.

PyTorch has no such file: its devices are real.
"""

import dataclasses
import math

from readtorch.c10.tensor_impl import TensorImpl

# Operators that multiply matrices: their arguments that hold the two factors.
PRODUCTS = {"mm": (0, 1), "bmm": (0, 1), "addmm": (1, 2), "baddbmm": (1, 2), "linear": (0, 1)}


@dataclasses.dataclass(frozen=True)
class CostModel:
    """Speeds in bytes and operations a microsecond."""

    shortest: float = 3.0  # µs that any kernel takes
    memory: float = 1.5e6  # the device's own memory
    arithmetic: float = 1.0e7
    host: float = 2.0e4  # between the host and a device
    peer: float = 1.0e5  # between two devices
    message: float = 3.0  # µs that any collective takes

    def duration(self, operator, arguments, results, place):
        """Microseconds for one call on the device `place`."""
        name = operator.schema.name
        if name.startswith("empty"):
            return 0.0
        tensors = list(flat((*arguments, results)))
        moved = sum(t._array.nbytes for t in tensors)
        if name in ("_to_copy", "copy_"):
            return max(self.shortest, max(t._array.nbytes for t in tensors) / self.route(flat(arguments), place))
        return max(self.shortest, moved / self.memory, operations(name, arguments, results) / self.arithmetic)

    def collective(self, name, nbytes, ranks):
        """Microseconds for a collective of `nbytes` a rank, counted as its source, along a ring of `ranks`."""
        steps = {"all_gather": ranks - 1, "reduce_scatter": (ranks - 1) / ranks, "all_reduce": 2 * (ranks - 1) / ranks}
        return self.message + steps.get(name, 1) * nbytes / self.peer

    def route(self, tensors, place):
        """The speed between the places of a copy. Its result does not count: it is on its way to `place` still."""
        others = {t.device for t in tensors} - {place}
        if not others:
            return self.memory / 2
        return self.host if any(d.type == "cpu" for d in others) else self.peer


def flat(values):
    """The tensors in nested tuples and lists."""
    for value in values:
        if isinstance(value, TensorImpl):
            yield value
        elif isinstance(value, (tuple, list)):
            yield from flat(value)


def operations(name, arguments, results):
    """Additions and multiplications of a product or a convolution; 0 for other operators, which memory holds up."""
    if name in PRODUCTS:
        left = arguments[PRODUCTS[name][0]]._array.shape
        return 2 * math.prod(next(flat([results]))._array.shape) * left[-1]
    if name.startswith(("convolution", "_convolution")):
        weight = next(t for t in list(flat(arguments))[1:] if t._array.ndim > 2)._array.shape
        places = max(
            math.prod(t._array.shape[2:]) * t._array.shape[0]
            for t in flat((*arguments[:1], results))
            if t._array.ndim > 2
        )
        return 2 * places * math.prod(weight) * (2 if "backward" in name else 1)
    return 0
