"""Between which values an expression lies. In PyTorch: `torch/utils/_sympy/value_ranges.py`."""

from typing import NamedTuple

from .functions import INFINITY


class ValueRanges(NamedTuple):
    """lower, upper: whole numbers, or infinite."""

    lower: float
    upper: float

    def __str__(self):
        return f"VR[{_text(self.lower)}, {_text(self.upper)}]"

    __repr__ = __str__


def _text(end):
    return {INFINITY: "int_oo", -INFINITY: "-int_oo"}.get(end, str(end))
