"""Sizes that may change, as files hold them. In PyTorch: parts of `torch/_export/serde/serialize.py`, which gives the text to `sympy.sympify`.

An expression is written as sympy's `srepr`, a guard as Python:

    Add(Mul(Integer(2), Symbol('s77', positive=True, integer=True)), Integer(1))
    L['x'].size()[0] // 2 != 1

`sympify` evaluates its text. Here the text is only parsed: its tree may have few kinds of nodes, and a limited length, depth and size.
"""

import ast
import functools
import operator

from readtorch._export.guards_code import ARITHMETIC, CALLS, COMPARISONS
from readtorch._sym_functions import sym_max, sym_min
from readtorch.c10.sym_int import SymInt
from readtorch.fx.experimental.symbolic_shapes import ShapeEnv
from readtorch.utils._sympy.functions import INFINITY, MAKERS, Symbol, expression, symbol
from readtorch.utils._sympy.value_ranges import ValueRanges

from .schema import SerializeError

MOST_CHARACTERS, MOST_DEPTH, MOST_TERMS, MOST_POWER, BOUND = 10_000, 50, 200, 8, 2**62

# How files name the arithmetic of sizes.
SYM_OPS = {f"_operator.{name}": getattr(operator, name) for name in "add sub mul floordiv mod neg pow".split()}
SYM_OPS |= {"torch.sym_max": sym_max, "torch.sym_min": sym_min}
SYM_OP_NAMES = {function: name for name, function in SYM_OPS.items()}


# ----------------------------------------------------------------------------------------------------------- writing


def serialize_sym_int(n):
    """A number, or an expression with its value in the trace."""
    if not isinstance(n, SymInt):
        return {"as_int": n}
    expr, env = n.node.expr, n.node.shape_env
    if expr.number is not None:
        return {"as_int": expr.number}
    return {"as_expr": {"expr_str": _srepr(expr, env), "hint": {"as_int": n.node.hint}}}


def _srepr(expr, env):
    terms = [_srepr_term(product, factor, env) for product, factor in expr.terms.items()]
    return _call("Add", terms) if terms else "Integer(0)"


def _srepr_term(product, factor, env):
    powers = [_srepr_atom(a, env) if n == 1 else f"Pow({_srepr_atom(a, env)}, Integer({n}))" for a, n in product]
    return _call("Mul", [f"Integer({factor})", *powers] if factor != 1 or not powers else powers)


def _call(name, arguments):
    return arguments[0] if len(arguments) == 1 else f"{name}({', '.join(arguments)})"


def _srepr_atom(atom, env):
    if isinstance(atom, Symbol):
        positive = "positive=True, " if env.var_to_range[atom][0] > 0 else ""
        return f"Symbol({atom.name!r}, {positive}integer=True)"
    return f"{atom.name}({', '.join(_srepr(a, env) for a in atom.arguments)})"


def serialize_range_constraints(constraints):
    return {str(expr): {"min_val": _finite(low), "max_val": _finite(high)} for expr, (low, high) in constraints.items()}


def _finite(n):
    return None if abs(n) == INFINITY else n


# ----------------------------------------------------------------------------------------------------------- parsing


def parsed_expression(text):
    """The expression that a text stands for. Raises SerializeError."""
    try:
        return _expression(_tree(text), text)
    except (ArithmeticError, TypeError, ValueError) as error:
        raise _refused(text, error) from error


def _tree(text):
    if len(text) > MOST_CHARACTERS:
        raise _refused(text, f"it has {len(text)} characters, more than {MOST_CHARACTERS}")
    if not text.isprintable() or "#" in text or "\\" in text:
        raise _refused(text, "it has characters that no expression has")
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise _refused(text, error) from error
    level = [tree]
    for _ in range(MOST_DEPTH):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            return tree
    raise _refused(text, f"it is nested more than {MOST_DEPTH} deep")


def _refused(text, why):
    shown = text if len(text) < 100 else f"{text[:97]}..."
    return SerializeError(f"{shown!r} is no expression of sizes: {why}")


def _expression(node, text):
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
        raise _refused(text, f"{ast.unparse(node)[:50]} stands where a function must")
    name = node.func.id
    if name == "Symbol":
        return symbol(_symbol_name(node, text))
    if node.keywords:
        raise _refused(text, f"{name} has keywords")
    if name == "Integer":
        return expression(_integer(node.args, text))
    arguments = [_expression(a, text) for a in node.args]
    if name in ("Add", "Mul", "Max", "Min") and arguments:
        combine = {"Add": operator.add, "Mul": functools.partial(_product, text=text)}.get(name) or MAKERS[name]
        return _small(functools.reduce(combine, arguments), text)
    if name == "Pow" and len(arguments) == 2:
        return _power(*arguments, text)
    makers = {"PythonMod": "Mod", "CleanDiv": "FloorDiv"}
    maker = makers.get(name, name)
    if maker not in ("FloorDiv", "Mod", "Max", "Min", "IntTrueDiv", "FloorToInt", "CeilToInt", "TruncToInt", "ToFloat"):
        raise _refused(text, f"{name} is no function of sizes that readtorch has")
    return _small(MAKERS[maker](*arguments), text)


def _symbol_name(node, text):
    flags = {k.arg: getattr(k.value, "value", None) for k in node.keywords}
    names = [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
    if len(names) != 1 or len(node.args) != 1 or any(v not in (True, False) for v in flags.values()):
        raise _refused(text, "a symbol is not written as it must be")
    if not (names[0].isascii() and names[0].isidentifier() and names[0].startswith("s")):
        raise _refused(text, f"{names[0]!r} is no name of a size of an input")
    return names[0]


def _integer(args, text):
    value = _number(args[0]) if len(args) == 1 else None
    if value is None:
        raise _refused(text, "an Integer is not written as it must be")
    return value


def _number(node):
    """The whole number that a node of a tree is, or None."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = _number(node.operand)
        return None if value is None else -value
    is_number = isinstance(node, ast.Constant) and type(node.value) is int and node.value < BOUND
    return node.value if is_number else None


def _product(a, b, text):
    if len(a.terms) * len(b.terms) > MOST_TERMS:
        raise _refused(text, f"a product has more than {MOST_TERMS} terms")
    return _small(a * b, text)


def _power(base, exponent, text):
    if exponent.number is None or not 0 < exponent.number <= MOST_POWER:
        raise _refused(text, f"a power is not from 1 to {MOST_POWER}")
    total = base
    for _ in range(exponent.number - 1):
        total = _product(total, base, text)
    return total


def _small(expr, text):
    if len(expr.terms) > MOST_TERMS or any(abs(factor) >= BOUND for factor in expr.terms.values()):
        raise _refused(text, "its numbers are too large")
    return expr


# ------------------------------------------------------------------------------------------------------------ guards


def checked_guard(text):
    """`text`, if it is arithmetic of sizes of inputs. Raises SerializeError."""
    _check_guard(_tree(text), text)
    return text


def _check_guard(node, text):
    if isinstance(node, ast.Constant) and type(node.value) in (int, float, bool) and abs(node.value) < BOUND:
        return
    if _is_source(node):
        return
    inner = _operands(node)
    if inner is None:
        raise _refused(text, f"a guard may not have {ast.unparse(node)[:50]}")
    for operand in inner:
        _check_guard(operand, text)


def _operands(node):
    """What arithmetic is of, or None if it is none."""
    if isinstance(node, ast.BoolOp):
        return node.values
    if isinstance(node, ast.UnaryOp) and type(node.op) in ARITHMETIC:
        return [node.operand]
    if isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
        return [node.left, node.right]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) and _number(node.right) in range(MOST_POWER + 1):
        return [node.left]
    if isinstance(node, ast.Compare) and all(type(op) in COMPARISONS for op in node.ops):
        return [node.left, *node.comparators]
    is_known = isinstance(node, ast.Call) and not node.keywords and ast.unparse(node.func) in CALLS
    return node.args if is_known and not any(isinstance(a, ast.Starred) for a in node.args) else None


def _is_source(node):
    """L['x']['a'][0], or a size, stride or offset of it."""
    if isinstance(node, ast.Subscript) and _is_call_of(node.value, ("size", "stride")):
        return _number(node.slice) is not None and _is_input(node.value.func.value)
    if _is_call_of(node, ("storage_offset",)):
        return _is_input(node.func.value)
    return _is_input(node)


def _is_call_of(node, methods):
    is_method = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in methods
    return is_method and not node.args and not node.keywords


def _is_input(node):
    is_inside = False
    while isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        key = node.slice.value
        if type(key) is not int and not (isinstance(key, str) and not set(key) & set("'\"[]")):
            return False
        node, is_inside = node.value, True
    return is_inside and isinstance(node, ast.Name) and node.id == "L"


# ----------------------------------------------------------------------------------------------------------- reading


class SymbolReader:
    """The sizes of a program, in a ShapeEnv. records: all SymInts of the program; ranges: {text of an expression: its range}."""

    def __init__(self, records, ranges):
        self.env = ShapeEnv()
        self.known = {}  # text in the file -> expression
        hints = {}
        for record in records:
            text = record["expr_str"]
            if text not in self.known:
                self.known[text] = parsed_expression(text)
                hints[self.known[text]] = (record["hint"] or {}).get("as_int")
        for expr, hint in hints.items():
            self._find_value(expr, hint)
        exprs = {str(e): e for e in [*hints, *(symbol(s.name) for e in hints for s in e.symbols())]}
        self.range_constraints = {exprs[k]: _range(k, v) for k, v in ranges.items() if k in exprs}
        for s in {s for expr in hints for s in expr.symbols()}:
            if s not in self.env.backed_var_to_val:
                raise SerializeError(f"the value of {s} in the trace is not noted")
            self.env.var_to_range[s] = tuple(self.range_constraints.get(symbol(s.name), (-INFINITY, INFINITY)))
            self.env.var_to_sources[s] = []

    def _find_value(self, expr, hint):
        """Note the value of the symbol in s, or in 2*s + 1."""
        symbols = expr.symbols()
        if hint is None or len(symbols) != 1:
            return
        (s,) = symbols
        factor, constant = expr.terms.get(((s, 1),), 0), expr.terms.get((), 0)
        if factor and expr == symbol(s.name) * factor + constant and (hint - constant) % factor == 0:
            self.env.backed_var_to_val.setdefault(s, (hint - constant) // factor)

    def number(self, union):
        """The int or SymInt that a SymInt of a file is."""
        if "as_int" in union:
            return union["as_int"]
        text = union["as_expr"]["expr_str"]
        expr = self.known[text]
        try:
            return self.env.create_symintnode(expr, hint=expr.value(self.env.backed_var_to_val))
        except (ArithmeticError, ValueError) as error:
            raise _refused(text, error) from error


def _range(name, record):
    low = -INFINITY if record["min_val"] is None else record["min_val"]
    high = INFINITY if record["max_val"] is None else record["max_val"]
    if low > high:
        raise SerializeError(f"the range of {name} is empty: from {low} to {high}")
    return ValueRanges(low, high)


def sym_ints(record):
    """The records of all expressions in a program's json."""
    if isinstance(record, dict):
        if "expr_str" in record:
            yield record
        for value in record.values():
            yield from sym_ints(value)
    elif isinstance(record, list):
        for value in record:
            yield from sym_ints(value)
