"""Index expressions: where in memory an element lies, as a function of the loops' variables.

    Symbol("i0", 4) * 8 + Symbol("i1", 8)       the text is 8*i0 + i1

Almost all are sums of variables times numbers. A `view` that cuts dimensions where no loop ends needs `//` and `%`, too: `FloorDiv` and
`ModularIndexing`, which disappear again where the variables' ranges allow it.

Sizes are plain numbers, or a `Size`: an expression of symbols, where the trace has left them open. Numbers of a sum may be such sizes, too:

    Symbol("i0", s77) * s27 + Symbol("i1", s27)

What is simplified must hold for all values: `least` says below what a size never is. Two sizes count as equal if they are the same expression.

In PyTorch: `torch/_inductor/sizevars.py`, with expressions of sympy and `torch/utils/_sympy/functions.py`.
"""

import math
from functools import cached_property
from typing import NamedTuple

from readtorch.c10.sym_int import SYM_TYPES, SymFloat
from readtorch.utils._sympy import functions
from readtorch.utils._sympy.printers import python_code

from .virtualized import V

# ------------------------------------------------------------------------------------------------------------ sizes


class Size:
    """A size that is left open. In a text it is the arithmetic of its symbols, `8*s77 + 1`, in parentheses where it is a sum."""

    __slots__ = ("expr",)

    def __init__(self, expr):
        self.expr = expr

    def __eq__(self, other):
        return isinstance(other, Size) and self.expr == other.expr

    def __hash__(self):
        return hash(self.expr)

    def __add__(self, other):
        return size_of(self.expr + _expr(other))

    def __sub__(self, other):
        return size_of(self.expr - _expr(other))

    def __rsub__(self, other):
        return size_of(_expr(other) - self.expr)

    def __mul__(self, other):
        return size_of(self.expr * _expr(other))

    __radd__, __rmul__ = __add__, __mul__

    def __repr__(self):
        if any(isinstance(a, functions.Function) for a in self.expr.atoms()):
            return python_code(self.expr, {s: s.name for s in self.expr.symbols()})
        return f"({self.expr})" if len(self.expr.terms) > 1 else str(self.expr)


class Float(Size):
    """A number with a fraction that depends on sizes, as what a variance is divided by."""


def size_of(number):
    """A number of a trace, or an expression, as a Size; as an int if it is one."""
    if isinstance(number, int | float):
        return number
    expr = number.node.expr if isinstance(number, SYM_TYPES) else number
    if expr.number is not None:
        return expr.number
    return Float(expr) if isinstance(number, SymFloat) else Size(expr)


def sizes_of(numbers):
    return tuple(map(size_of, numbers))


def _expr(size):
    return size.expr if isinstance(size, Size) else functions.expression(size)


def hint(size):
    """The value that the trace has for a size: for choices that are right for all values."""
    return size.expr.value(V.graph.hints) if isinstance(size, Size) else size


def least(size):
    """A number below which a size never is."""
    if not isinstance(size, Size):
        return size
    ranges = V.graph.ranges
    low = functions.bounds(size.expr, ranges)[0]
    floors = {atom: functions.bounds(functions.expression(atom), ranges)[0] for atom in size.expr.atoms()}
    if -math.inf in floors.values():
        return low
    above = size.expr.map_atoms(
        lambda atom: functions.expression(atom) + floors[atom]
    )  # of what each atom is more than its least
    grows = all(factor >= 0 for product, factor in above.terms.items() if product)
    return max(low, above.terms.get((), 0)) if grows else low


def exact_quotient(size, divisor):
    """The size that times `divisor` is `size`; None if there is none to be seen."""
    if isinstance(size, int) and isinstance(divisor, int):
        return None if size % divisor else size // divisor
    size, divisor = _expr(size), _expr(divisor)
    if len(divisor.terms) == 1:
        found = size.exact_quotient(divisor)
        return None if found is None else size_of(found)
    first = functions.Expr(dict([next(iter(divisor.terms.items()))]))
    for term in size.terms.items():
        found = functions.Expr(dict([term])).exact_quotient(first)
        if found is not None and found * divisor == size:
            return size_of(found)
    return None


def split(size, divisor):
    """(quotient, rest): size = quotient·divisor + rest, where the rest has no part that the divisor divides."""
    if isinstance(size, int) and isinstance(divisor, int):
        return divmod(size, divisor)
    whole = exact_quotient(size, divisor)
    if whole is not None:
        return whole, 0
    parts = [size_of(functions.Expr(dict([term]))) for term in _expr(size).terms.items()]
    quotients = [exact_quotient(part, divisor) for part in parts]
    rest = sum(part for part, q in zip(parts, quotients) if q is None)
    return sum(q for q in quotients if q is not None), rest


def floor_div(size, divisor):
    if isinstance(size, int) and isinstance(divisor, int):
        return size // divisor
    quotient, rest = split(size, divisor)
    if least(rest) >= 0 and least(divisor - rest) > 0:
        return quotient
    if least(0 - rest) > 0 and least(rest + divisor) >= 0:
        return quotient - 1
    return size_of(functions.floor_div(_expr(size), _expr(divisor)))


def may_be_empty(sizes):
    return least(math.prod(sizes)) < 1


# ---------------------------------------------------------------------------------------------------------- indices


class Symbol(NamedTuple):
    """A loop's variable: 0 … size - 1."""

    name: str
    size: int

    def bounds(self):
        return 0, self.size - 1

    def symbols(self):
        return {self}

    def replace(self, values):
        return values.get(self) or expression(self)

    def __str__(self):
        return self.name


class ModularIndexing(NamedTuple):
    """base // divisor % modulus. modulus: None for FloorDiv, which takes no remainder."""

    base: "Expr"
    divisor: int
    modulus: int | None

    def bounds(self):
        if self.modulus is not None:
            return 0, self.modulus - 1
        ends = self.base.bounds()
        return ends and (floor_div(ends[0], self.divisor), floor_div(ends[1], self.divisor))

    def symbols(self):
        return self.base.symbols()

    def replace(self, values):
        quotient = self.base.replace(values).floor_div(self.divisor)
        return quotient if self.modulus is None else quotient.mod(self.modulus)

    def __str__(self):
        text = f"({self.base})" if self.divisor == 1 else f"({self.base}) // {_operand(self.divisor)}"
        return f"({text})" if self.modulus is None else f"({text} % {_operand(self.modulus)})"


def _operand(size):
    return f"({size})" if "*" in str(size) else str(size)


class Expr:
    """A sum of atoms times numbers, and a number."""

    def __init__(self, terms, constant):
        self.terms = {atom: factor for atom, factor in terms.items() if factor}
        self.constant = constant

    @cached_property
    def key(self):
        return frozenset(self.terms.items()), self.constant

    def __eq__(self, other):
        return isinstance(other, Expr) and self.key == other.key

    def __hash__(self):
        return hash(self.key)

    def __add__(self, other):
        other = expression(other)
        terms = dict(self.terms)
        for atom, factor in other.terms.items():
            terms[atom] = terms.get(atom, 0) + factor
        return _recombined(Expr(terms, self.constant + other.constant))

    def __mul__(self, number):
        return Expr({atom: factor * number for atom, factor in self.terms.items()}, self.constant * number)

    def __str__(self):
        parts = [str(atom) if factor == 1 else f"{factor}*{atom}" for atom, factor in self.terms.items()]
        if self.constant or not parts:
            parts.append(str(self.constant))
        return " + ".join(parts)

    def bounds(self):
        """(The least value, the greatest); None if a size would have to be known for that."""
        low = high = self.constant
        for atom, factor in self.terms.items():
            ends = atom.bounds()
            if ends is None or least(factor) < 0 and least(0 - factor) < 0:
                return None
            first, last = ends if least(factor) >= 0 else ends[::-1]
            low, high = low + first * factor, high + last * factor
        return low, high

    def symbols(self):
        return set().union(*[atom.symbols() for atom in self.terms])

    def replace(self, values):
        """With expressions in place of symbols."""
        result = Expr({}, self.constant)
        for atom, factor in self.terms.items():
            result = result + atom.replace(values) * factor
        return result

    def coefficient(self, symbol):
        """What one step of a variable adds; None if that is not always the same."""
        if any(symbol in atom.symbols() for atom in self.terms if not isinstance(atom, Symbol)):
            return None
        return self.terms.get(symbol, 0)

    def _split(self, n):
        """(The part that n divides, divided by it, what is left)."""
        quotients = {atom: exact_quotient(factor, n) for atom, factor in self.terms.items()}
        whole = {atom: quotient for atom, quotient in quotients.items() if quotient is not None}
        rest = {atom: factor for atom, factor in self.terms.items() if quotients[atom] is None}
        quotient, left = split(self.constant, n)
        return Expr(whole, quotient), Expr(rest, left)

    def is_below(self, n):
        """Whether it is one of 0 … n - 1 for all values."""
        ends = self.bounds()
        return ends is not None and least(ends[0]) >= 0 and least(n - ends[1]) > 0

    def floor_div(self, n):
        whole, rest = self._split(n)
        return whole if rest.is_below(n) else whole + _floor_div(rest, n)

    def mod(self, n):
        _, rest = self._split(n)
        return rest if rest.is_below(n) else _mod(rest, n)


def expression(value):
    """A number or an atom as an Expr."""
    if isinstance(value, Expr):
        return value
    return Expr({}, value) if isinstance(value, int | Size) else Expr({value: 1}, 0)


def _only_quotient(expr):
    """(base, divisor) if the expression is one FloorDiv."""
    if len(expr.terms) == 1 and not expr.constant:
        ((atom, factor),) = expr.terms.items()
        if factor == 1 and isinstance(atom, ModularIndexing) and atom.modulus is None:
            return atom.base, atom.divisor
    return expr, 1


def _coarse(expr, n):
    """(d, A, B) with expr = d·A + B, where B is less than d, which divides n. None if there are none."""
    divisors = {f for f in expr.terms.values() if least(f) > 1 and f != n and exact_quotient(n, f) is not None}
    for d in sorted(divisors, key=hint, reverse=True):
        whole, rest = expr._split(d)
        if rest.is_below(d):
            return d, whole, rest
    return None


def _without_common(expr, n):
    """(what is left of an expression and of a number, what divides both)."""
    numbers = [n, *expr.terms.values(), expr.constant]
    common = 1 if any(isinstance(number, Size) for number in numbers) else math.gcd(*numbers)
    if common == 1:
        return expr, n, 1
    return Expr({atom: f // common for atom, f in expr.terms.items()}, expr.constant // common), n // common, common


def _floor_div(expr, n):
    coarse = _coarse(expr, n)
    if coarse is not None:
        return coarse[1].floor_div(exact_quotient(n, coarse[0]))
    expr, n, _ = _without_common(expr, n)
    base, divisor = _only_quotient(expr)
    return expression(ModularIndexing(base, divisor * n, None))


def _mod(expr, n):
    coarse = _coarse(expr, n)
    if coarse is not None:
        d, whole, rest = coarse
        return whole.mod(exact_quotient(n, d)) * d + rest
    expr, n, common = _without_common(expr, n)
    base, divisor = _only_quotient(expr)
    return expression(ModularIndexing(base, divisor, n)) * common


def _recombined(expr):
    """x // n * n + x % n is x."""
    for low in [atom for atom in expr.terms if isinstance(atom, ModularIndexing) and atom.modulus is not None]:
        factor = expr.terms[low]
        for high in expr.terms:
            if not isinstance(high, ModularIndexing) or high.base != low.base:
                continue
            if high.divisor == low.divisor * low.modulus and expr.terms[high] == factor * low.modulus:
                rest = Expr({a: f for a, f in expr.terms.items() if a is not low and a is not high}, expr.constant)
                whole = low.base.floor_div(low.divisor)
                whole = whole if high.modulus is None else whole.mod(low.modulus * high.modulus)
                return rest + whole * factor
    return expr


def flatten(index, sizes):
    """The number of an element, row by row."""
    flat = expression(0)
    for position, size in zip(index, sizes):
        flat = flat * size + position
    return flat


def unflatten(flat, sizes):
    """The index of the element with that number."""
    index = []
    for k, size in enumerate(sizes):
        position = flat.floor_div(math.prod(sizes[k + 1 :]))
        index.append(position if k == 0 else position.mod(size))
    return index
