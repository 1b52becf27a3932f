"""`ShapeEnv`: what is known of sizes that a trace leaves open.

    symbols        s77 for a size of an input; 0 and 1 are always fixed, and sizes that are equal have one symbol (duck shaping)
    ranges         between which values a symbol lies: from 2 on, until a guard says more
    replacements   s77 -> 3, or another expression, after a guard that says so
    guards         what the trace has asked and was not known; the graph is right wherever all of them hold

Dynamo keeps guards on expressions of its own (`_dynamo/variables/tensor.py`).

In PyTorch: `torch/fx/experimental/symbolic_shapes.py`. Left out: sizes that depend on elements (unbacked symbols).
"""

import hashlib
from enum import Enum
from typing import NamedTuple

from readtorch._guards import ShapeGuard
from readtorch._tensor import Tensor
from readtorch.c10.sym_int import SYM_TYPES, SymInt
from readtorch.utils._sympy.functions import INFINITY, Expr, expression, symbol
from readtorch.utils._sympy.printers import python_code

from .sym_node import CLASSES, SymNode

__all__ = ["ShapeEnv", "ShapeGuard", "DimDynamic", "StatelessSymbolicContext", "ConstraintViolationError"]


class ConstraintViolationError(RuntimeError):
    """A program works for one size alone, or not for all that it was said to work for."""


class DimDynamic(Enum):
    """What becomes of a size: DYNAMIC, a symbol of its own; DUCK, the symbol of sizes that are equal; STATIC, a number."""

    DYNAMIC = 0
    DUCK = 1
    STATIC = 2


class StatelessSymbolicContext(NamedTuple):
    """dynamic_sizes: a DimDynamic for each size. constraint_sizes: for each (least, greatest) or None."""

    dynamic_sizes: list
    constraint_sizes: list


class ShapeEnv:
    """duck_shape: whether sizes that are equal have one symbol. specialize_zero_one: whether 0 and 1 are fixed."""

    def __init__(self, *, duck_shape=True, specialize_zero_one=True):
        self.duck_shape, self.specialize_zero_one = duck_shape, specialize_zero_one
        self.guards = []
        self.var_to_range = {}  # Symbol -> (least, greatest)
        self.backed_var_to_val = {}  # Symbol -> its value in this trace
        self.var_to_sources = {}  # Symbol -> the names of what it is read from
        self.source_to_var = {}
        self.val_to_var = {}  # a value -> the symbol of all sizes that have it
        self.replacements = {}  # Symbol -> expression
        self.unique_ids = set()

    # ---------------------------------------------------------------------------------------------------- symbols

    def create_symbol(self, val, source, dynamic_dim=DimDynamic.DUCK, constraint=None, positive=True):
        """The expression for a number that was read from `source`: a symbol, or the number itself."""
        if dynamic_dim is DimDynamic.STATIC or self.specialize_zero_one and val in (0, 1):
            return expression(val)
        duck = self.duck_shape and dynamic_dim is DimDynamic.DUCK
        if duck and val in self.val_to_var:
            made = self.val_to_var[val]
            self.var_to_sources[made.symbol].append(source)
            self.source_to_var[source] = made
            return made
        made = symbol(f"s{self._generate_unique_id(source)}")
        if duck:
            self.val_to_var[val] = made
        self.source_to_var[source] = made
        self.backed_var_to_val[made.symbol] = val
        self.var_to_sources[made.symbol] = [source]
        low, high = constraint or (0, INFINITY)
        self.var_to_range[made.symbol] = (max(low, 2), high) if positive else (-INFINITY, INFINITY)
        return made

    def _generate_unique_id(self, source_name):
        number = int(hashlib.sha256(source_name.encode()).hexdigest(), 16) % 100
        while number in self.unique_ids:
            number += 1
        self.unique_ids.add(number)
        return number

    def create_symnode(self, expr, pytype, hint):
        """A number for an expression; a plain one if the expression has no symbols."""
        is_constant = isinstance(expr, Expr) and expr.number is not None
        return pytype(expr.number) if is_constant else CLASSES[pytype](SymNode(expr, self, pytype, hint))

    def create_symintnode(self, expr, *, hint, source=None):
        return self.create_symnode(expr, int, hint)

    def create_symbolic_sizes_strides_storage_offset(self, t, source, *, symbolic_context=None):
        """(sizes, strides, storage offset) of a tensor that was read from `source`, left open as the context says."""
        sizes, strides = tuple(t.size()), tuple(t.stride())
        context = symbolic_context or StatelessSymbolicContext([DimDynamic.DUCK] * len(sizes), [None] * len(sizes))
        opened = [
            self.create_symbol(n, f"{source}.size()[{i}]", kind, constraint)
            for i, (n, kind, constraint) in enumerate(zip(sizes, context.dynamic_sizes, context.constraint_sizes))
        ]
        steps = self._compute_symbolic_stride(source, sizes, strides, opened)
        offset = self.create_symbol(t.storage_offset(), f"{source}.storage_offset()")
        numbers = [
            [self.create_symnode(e, int, n) for e, n in zip(*pair)] for pair in ((opened, sizes), (steps, strides))
        ]
        return *map(tuple, numbers), self.create_symnode(offset, int, t.storage_offset())

    def _compute_symbolic_stride(self, source, sizes, strides, opened):
        """A stride is a number of its own only if it is no size times stride of another dimension."""
        steps, candidates = [None] * len(sizes), {}
        for i in sorted(range(len(sizes)), key=lambda i: (strides[i], -i)):
            if strides[i] in (0, 1):
                steps[i] = expression(strides[i])
            else:
                found = candidates.get(strides[i])
                steps[i] = self.create_symbol(strides[i], f"{source}.stride()[{i}]") if found is None else found
            candidates.setdefault(sizes[i] * strides[i], opened[i] * steps[i])
        return steps

    # ------------------------------------------------------------------------------------------------- what is known

    def replace(self, expr):
        return expr.replace(self.replacements) if self.replacements else expr

    def bound(self, expr):
        """The value of an expression in this trace."""
        return expr.value(self.backed_var_to_val)

    def evaluate(self, relation):
        """Whether a relation holds. What is not known for all values becomes a guard."""
        relation = self.replace(relation)
        known = relation.known(self.var_to_range)
        if known is None:
            known = self._known_from_guards(relation)
        if known is not None:
            return known
        holds = relation.value(self.backed_var_to_val)
        self._guard(relation if holds else relation.negated())
        return holds

    def _known_from_guards(self, relation):
        for other, answer in ((relation, True), (relation.negated(), False)):
            if any(self.replace(guard.expr) == other for guard in self.guards):
                return answer
        return None

    def _guard(self, relation):
        self.guards.append(ShapeGuard(relation))
        if relation.op == "==":
            self._set_replacement(relation.lhs - relation.rhs)
        elif relation.op != "!=":
            self._refine_range(relation)

    def _set_replacement(self, difference):
        """An expression is 0: a symbol that follows from the others is one less."""
        inside = [s for atom in difference.atoms() if not _is_symbol(atom) for s in atom_symbols(atom)]
        for s in sorted(difference.symbols(), key=lambda s: (self.backed_var_to_val[s], s), reverse=True):
            factor = difference.terms.get(((s, 1),))
            powers = [product for product in difference.terms if s in dict(product)]
            if factor is None or len(powers) > 1 or s in inside:
                continue
            rest = -(difference - symbol(s.name) * factor)
            value = rest.exact_quotient(expression(factor))
            if value is not None:
                self._replace_symbol(s, value)
                return

    def _replace_symbol(self, s, value):
        self.replacements = {k: v.replace({s: value}) for k, v in self.replacements.items()} | {s: value}
        if value.number is not None:
            self.var_to_range[s] = (value.number, value.number)
        elif value.symbol is not None:
            (a, b), (c, d) = self.var_to_range[s], self.var_to_range[value.symbol]
            self.var_to_range[s] = self.var_to_range[value.symbol] = (max(a, c), min(b, d))

    def _refine_range(self, relation):
        """`2*s0 - 7 >= 0` bounds s0."""
        difference = relation.lhs - relation.rhs
        symbols = difference.symbols()
        factor = difference.terms.get(((s := next(iter(symbols), None), 1),))
        constant = difference.terms.get((), 0)
        if len(symbols) != 1 or factor is None or len(difference.terms) > 1 + (() in difference.terms):
            return
        low, high = self.var_to_range[s]
        op = relation.op
        if factor < 0:
            factor, constant = -factor, -constant
            op = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}.get(op, op)
        edge = -constant / factor
        if op in (">", ">="):
            low = max(low, _next_above(edge) if op == ">" else -(-edge // 1))
        else:
            high = min(high, -_next_above(-edge) if op == "<" else edge // 1)
        self.var_to_range[s] = tuple(int(n) if abs(n) != INFINITY else n for n in (low, high))

    # ------------------------------------------------------------------------------------------- for other arguments

    def bind_symbols(self, placeholders, args):
        """{Symbol: value} for other arguments; None if sizes that the trace knows to be equal are not."""
        pairs = [pair for p, arg in zip(placeholders, args) for pair in _expressions(p, arg)]
        values = {e.symbol: n for e, n in pairs if isinstance(e, Expr) and e.symbol is not None}
        for expr, n in pairs:
            if isinstance(expr, Expr) and expr.symbols() <= values.keys():
                if expr.value(values) != n:
                    return None
        return values

    def evaluate_guards_for_args(self, placeholders, args, *, ignore_static=True):
        """Whether a graph with these placeholders' values was made for these arguments, too."""
        values = self.bind_symbols(placeholders, args)
        if values is None:
            return False
        for s, replacement in self.replacements.items():
            if s in values and replacement.symbols() <= values.keys() and replacement.value(values) != values[s]:
                return False
        in_range = all(low <= values[s] <= high for s, (low, high) in self.var_to_range.items() if s in values)
        guards = (g.expr for g in self.guards if g.expr.symbols() <= values.keys())
        return in_range and all(guard.value(values) for guard in guards)

    def names_of_symbols(self):
        """{Symbol: the name of what it is read from}"""
        return {s: sources[0] for s, sources in self.var_to_sources.items()}

    def guards_code(self):
        """The guards as Python code that reads the inputs."""
        names = self.names_of_symbols()
        return [python_code(guard.expr, names) for guard in self.guards]


def _next_above(edge):
    return edge // 1 + 1


def _is_symbol(atom):
    return not hasattr(atom, "arguments")


def atom_symbols(atom):
    return expression(atom).symbols()


def _expressions(placeholder, arg):
    """(expression, number) for each size of an input that was noted as `placeholder` and is given as `arg`."""
    if isinstance(placeholder, Tensor):
        for kind in ("size", "stride"):
            for seen, n in zip(getattr(placeholder, kind)(), getattr(arg, kind)()):
                yield _unreplaced(seen), n
    elif isinstance(placeholder, SymInt):
        yield _unreplaced(placeholder), arg


def _unreplaced(number):
    return number.node._expr if isinstance(number, SYM_TYPES) else expression(number)


def free_symbols(value):
    """The symbols in a number, or in the sizes, strides and offset of a tensor."""
    numbers = [value]
    if isinstance(value, Tensor):
        numbers = [*value.size(), *value.stride(), value.storage_offset()]
    return set().union(*[n.node.expr.symbols() for n in numbers if isinstance(n, SYM_TYPES)])


def is_symbol_binding_fx_node(node):
    """The symbol that an input of a graph is, or None."""
    value = node.meta.get("val")
    return value.node.expr.symbol if node.op == "placeholder" and isinstance(value, SymInt) else None


def find_symbol_binding_fx_nodes(graph):
    """{symbol: the first input that is this symbol}"""
    found = {}
    for node in graph.find_nodes(op="placeholder"):
        s = is_symbol_binding_fx_node(node)
        if s is not None:
            found.setdefault(s, node)
    return found


def is_accessor_node(node):
    """Whether a node of a graph only reads a size, a stride, an offset or the number of elements."""
    name = getattr(getattr(node.target, "_schema", None), "name", "")
    return node.op == "call_function" and name in (
        "aten::sym_size",
        "aten::sym_stride",
        "aten::sym_numel",
        "aten::sym_storage_offset",
    )
