"""In PyTorch: `torch/_guards.py`."""

from typing import NamedTuple

from .utils._sympy.functions import Relation


class ShapeGuard(NamedTuple):
    """A condition that the trace relies on."""

    expr: Relation
