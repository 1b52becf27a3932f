"""Guards of exported programs as functions: `L['x'].size()[0] // 2 != 1` for arguments of which x is the first.

Guards may come from a file. Their text is parsed and never run: each node of the tree becomes a function of the arguments, and there is
one for arithmetic, comparisons, and sizes of inputs only.

In PyTorch: `torch/export/_unlift.py` puts `args[0]` in the place of `L['x']`, and executes the text.
"""

import ast
import math
import operator

ARITHMETIC = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.USub: operator.neg,
    ast.Not: operator.not_,
}
COMPARISONS = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
CALLS = {
    "max": max,
    "min": min,
    "float": float,
    "math.floor": math.floor,
    "math.ceil": math.ceil,
    "math.trunc": math.trunc,
}
# What only the guards that `module()` makes itself have: powers of any size, and floats that have no digits.
OPERATORS = ARITHMETIC | COMPARISONS | {ast.Pow: operator.pow}
FUNCTIONS = CALLS | {"math.isnan": math.isnan}
METHODS = ("size", "stride", "storage_offset")


def guard_function(text, sources):
    """args -> the value of a guard. sources: of each argument what the guard calls it. Raises ValueError if it has other parts."""
    return _GuardReader(sources).function(_parsed(text))


def shown_guard(text):
    """A guard as messages have it: `x.size()[0]` for `L['x'].size()[0]`."""
    return ast.unparse(_WithoutL().visit(_parsed(text)))


def _parsed(text):
    return ast.parse(text, mode="eval").body


class _WithoutL(ast.NodeTransformer):
    def visit_Subscript(self, node):
        if isinstance(node.value, ast.Name) and node.value.id == "L":
            return ast.Name(node.slice.value)
        return self.generic_visit(node)


def _operator(op):
    if type(op) not in OPERATORS:
        raise ValueError(f"a guard may not have the operator {type(op).__name__}")
    return OPERATORS[type(op)]


class _GuardReader:
    """The functions of a guard's parts. Each has the arguments as its one parameter."""

    def __init__(self, sources):
        self.numbers = {ast.unparse(_parsed(source)): i for i, source in enumerate(sources)}

    def function(self, node):
        text = ast.unparse(node)
        if text in self.numbers:
            return operator.itemgetter(self.numbers[text])
        if text == "math.inf":
            return lambda args: math.inf
        read = getattr(self, type(node).__name__, None)
        if read is None:
            raise ValueError(f"a guard may not have {text[:50]}")
        return read(node)

    def applied(self, function, *operands):
        parts = [self.function(operand) for operand in operands]
        return lambda args: function(*[part(args) for part in parts])

    # One for each kind of node.

    def Constant(self, node):
        return lambda args: node.value

    def UnaryOp(self, node):
        return self.applied(_operator(node.op), node.operand)

    def BinOp(self, node):
        return self.applied(_operator(node.op), node.left, node.right)

    def BoolOp(self, node):
        parts, decide = [self.function(value) for value in node.values], all if isinstance(node.op, ast.And) else any
        return lambda args: decide(part(args) for part in parts)

    def Compare(self, node):
        """`a < b <= c` is `a < b and b <= c`."""
        operands = [node.left, *node.comparators]
        pairs = [self.applied(_operator(op), a, b) for op, a, b in zip(node.ops, operands, operands[1:])]
        return pairs[0] if len(pairs) == 1 else lambda args: all(pair(args) for pair in pairs)

    def Call(self, node):
        name = ast.unparse(node.func)
        if name in FUNCTIONS and not node.keywords:
            return self.applied(FUNCTIONS[name], *node.args)
        is_method = isinstance(node.func, ast.Attribute) and node.func.attr in METHODS
        if not is_method or node.args or node.keywords:
            raise ValueError(f"a guard may not call {name[:50]}")
        return self.applied(operator.methodcaller(node.func.attr), node.func.value)

    def Subscript(self, node):
        """One number of a size. What is an input has been found by its text."""
        if not isinstance(node.value, ast.Call):
            raise ValueError(f"a guard may not have {ast.unparse(node)[:50]}")
        return self.applied(operator.itemgetter(ast.literal_eval(node.slice)), node.value)
