"""An expression of sizes, worked out with other numbers in place of its symbols. In PyTorch: `torch/utils/_sympy/interp.py`."""

import functools
import math
import operator

from readtorch._sym_functions import sym_float, sym_max, sym_min

from .functions import Symbol

HANDLERS = {
    "FloorDiv": operator.floordiv,
    "Mod": operator.mod,
    "Max": sym_max,
    "Min": sym_min,
    "IntTrueDiv": operator.truediv,
    "FloatTrueDiv": operator.truediv,
    "ToFloat": sym_float,
    "FloorToInt": math.floor,
    "CeilToInt": math.ceil,
    "TruncToInt": math.trunc,
    "FloatPow": operator.pow,
}


def interpreted(expr, values):
    """The expression by Python's operators. values: {symbol: what computes, a Proxy say}."""
    parts = []
    for product, factor in expr.terms.items():
        factors = [_of_atom(atom, values) for atom, power in product for _ in range(power)]
        parts.append(functools.reduce(operator.mul, factors if factor == 1 and factors else [*factors, factor]))
    return functools.reduce(operator.add, parts)


def _of_atom(atom, values):
    if isinstance(atom, Symbol):
        return values[atom]
    return HANDLERS[atom.name](*[interpreted(a, values) for a in atom.arguments])
