"""`SymNode`: the expression behind a SymInt, SymFloat or SymBool, and how it computes.

    x.shape[0] * 2      binary("mul", 2): a new node with the expression 2*s0; under make_fx a node of the graph as well
    if x.shape[0] > 4   bool_(): the ShapeEnv decides, and notes a guard if that depends on the value

In PyTorch: `torch/fx/experimental/sym_node.py`.
"""

import math
import operator

from readtorch._sym_functions import sym_float, sym_max, sym_min, sym_not
from readtorch.c10.sym_int import SYM_TYPES, SymBool, SymFloat, SymInt
from readtorch.c10.symbolic_shape_meta import PROXY
from readtorch.c10.torch_dispatch_mode_tls import get_mode, mode_tls
from readtorch.utils._sympy.functions import MAKERS, Relation, expression

__all__ = ["SymNode"]

CLASSES = {int: SymInt, float: SymFloat, bool: SymBool}
RELATIONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


FUNCTIONS = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "truediv": operator.truediv,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "pow": operator.pow,
    "neg": operator.neg,
    **{name: getattr(operator, name) for name in RELATIONS},
    "sym_max": sym_max,
    "sym_min": sym_min,
    "sym_float": sym_float,
    "sym_not": sym_not,
    "trunc": math.trunc,
    "floor": math.floor,
    "ceil": math.ceil,
}
ROUNDINGS = {"trunc": "TruncToInt", "floor": "FloorToInt", "ceil": "CeilToInt"}


def tracing_mode():
    """The ProxyTorchDispatchMode that records now, or None."""
    return mode_tls.pre_dispatch or get_mode(PROXY)


class SymNode:
    """An expression, or a Relation for a bool, of sizes that `shape_env` knows. hint: its value in this trace."""

    def __init__(self, expr, shape_env, pytype, hint):
        self._expr, self.shape_env, self.pytype, self.hint = expr, shape_env, pytype, hint

    @property
    def expr(self):
        return self.shape_env.replace(self._expr)

    def is_nested_int(self):
        """Whether this is the ragged size of a nested tensor, which has a node of its own."""
        return False

    # ------------------------------------------------------------------------------------------------- the value

    def guarded(self):
        """The value. From here on the trace is for this one alone."""
        if self.pytype is bool:
            return self.shape_env.evaluate(self.expr)
        if self.pytype is int:
            return self.int_()
        self.shape_env.evaluate(Relation("==", self.expr, expression(self.hint)))
        return self.hint

    def int_(self):
        if self.pytype is not int:
            return int(self.guarded())
        self.shape_env.evaluate(Relation("==", self.expr, expression(self.hint)))
        return self.hint

    def bool_(self):
        if self.pytype is bool:
            return self.shape_env.evaluate(self.expr)
        return self.shape_env.evaluate(Relation("!=", self.expr, expression(0)))

    # ------------------------------------------------------------------------------------------------- arithmetic

    def binary(self, name, other, reflected=False):
        operands = (other, self.wrapped) if reflected else (self.wrapped, other)
        return self._call(name, operands)

    def unary(self, name):
        return self._call(name, (self.wrapped,))

    @property
    def wrapped(self):
        number = CLASSES[self.pytype](self)
        return number

    def _call(self, name, operands):
        mode = tracing_mode()
        if mode is not None:
            return mode.__sym_dispatch__(FUNCTIONS[name], (), operands, {})
        hint = FUNCTIONS[name](*[o.node.hint if isinstance(o, SYM_TYPES) else o for o in operands])
        if any(isinstance(o, SymBool) for o in operands) and name != "sym_not":
            operands = [int(o) if isinstance(o, SymBool) else o for o in operands]
        expr = _result(name, operands)
        if expr is None:  # no expression says it: with the values, which are guarded
            return FUNCTIONS[name](*[o.node.guarded() if isinstance(o, SYM_TYPES) else o for o in operands])
        return self.shape_env.create_symnode(expr, type(hint), hint)


def _result(name, operands):
    """The expression of a result; None if there is none."""
    if name == "sym_not":
        return operands[0].node.expr.negated()
    exprs = [o.node.expr if isinstance(o, SYM_TYPES) else expression(o) for o in operands]
    is_float = any(isinstance(o, SymFloat | float) for o in operands)
    if name == "sym_float":
        return _float(exprs[0])
    if name in ROUNDINGS:
        return MAKERS[ROUNDINGS[name]](exprs[0])
    if name == "neg":
        return -exprs[0]
    if name == "truediv":
        return MAKERS["FloatTrueDiv" if is_float else "IntTrueDiv"](*exprs)
    if is_float and name not in RELATIONS:
        exprs = [e if isinstance(o, SymFloat | float) else _float(e) for e, o in zip(exprs, operands)]
    if name in RELATIONS:
        return Relation(RELATIONS[name], *exprs)
    if name in ("add", "sub", "mul"):
        return FUNCTIONS[name](*exprs)
    if name in ("sym_max", "sym_min"):
        return MAKERS[name.removeprefix("sym_").title()](*exprs)
    if name == "pow":
        return _power(exprs, operands, is_float)
    return None if is_float else MAKERS[{"floordiv": "FloorDiv", "mod": "Mod"}[name]](*exprs)


def _power(exprs, operands, is_float):
    if is_float:
        return MAKERS["FloatPow"](*exprs)
    if type(operands[1]) is not int or operands[1] < 0:
        return None
    return math.prod([exprs[0]] * operands[1], start=expression(1))


def _float(expr):
    return expr if expr.number is not None else MAKERS["ToFloat"](expr)
