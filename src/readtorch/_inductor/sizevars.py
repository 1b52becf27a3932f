"""Index expressions: where in memory an element lies, as a function of the loops' variables.

    Symbol("i0", 4) * 8 + Symbol("i1", 8)       the text is 8*i0 + i1

Almost all are sums of variables times numbers. A `view` that cuts dimensions where no loop ends needs `//` and `%`, too: `FloorDiv` and
`ModularIndexing`, which disappear again where the variables' ranges allow it.

Sizes are plain numbers. (A size that may change would be one more kind of atom, with a lower bound and no upper one; `bounds` is the
only place that would ask.)

In PyTorch: `torch/_inductor/sizevars.py`, with expressions of sympy and `torch/utils/_sympy/functions.py`.
"""

import math
from functools import cached_property
from typing import NamedTuple


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
        low, high = self.base.bounds()
        return low // self.divisor, high // self.divisor

    def symbols(self):
        return self.base.symbols()

    def replace(self, values):
        quotient = self.base.replace(values).floor_div(self.divisor)
        return quotient if self.modulus is None else quotient.mod(self.modulus)

    def __str__(self):
        text = f"({self.base})" if self.divisor == 1 else f"({self.base}) // {self.divisor}"
        return f"({text})" if self.modulus is None else f"({text} % {self.modulus})"


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
        low = high = self.constant
        for atom, factor in self.terms.items():
            ends = [end * factor for end in atom.bounds()]
            low, high = low + min(ends), high + max(ends)
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
        """(The part that n divides, what is left of it)."""
        whole = {atom: factor for atom, factor in self.terms.items() if factor % n == 0}
        rest = {atom: factor for atom, factor in self.terms.items() if factor % n}
        left = self.constant % n
        return Expr(whole, self.constant - left), Expr(rest, left)

    def floor_div(self, n):
        whole, rest = self._split(n)
        whole = Expr({atom: factor // n for atom, factor in whole.terms.items()}, whole.constant // n)
        low, high = rest.bounds()
        return whole if low >= 0 and high < n else whole + _floor_div(rest, n)

    def mod(self, n):
        _, rest = self._split(n)
        low, high = rest.bounds()
        return rest if low >= 0 and high < n else _mod(rest, n)


def expression(value):
    """A number or an atom as an Expr."""
    if isinstance(value, Expr):
        return value
    return Expr({}, value) if isinstance(value, int) else Expr({value: 1}, 0)


def _only_quotient(expr):
    """(base, divisor) if the expression is one FloorDiv."""
    if len(expr.terms) == 1 and not expr.constant:
        ((atom, factor),) = expr.terms.items()
        if factor == 1 and isinstance(atom, ModularIndexing) and atom.modulus is None:
            return atom.base, atom.divisor
    return expr, 1


def _coarse(expr, n):
    """(d, A, B) with expr = d·A + B, where B is less than d, which divides n. None if there are none."""
    for d in sorted({f for f in expr.terms.values() if 1 < f < n and n % f == 0}, reverse=True):
        whole, rest = expr._split(d)
        low, high = rest.bounds()
        if low >= 0 and high < d:
            return d, Expr({atom: f // d for atom, f in whole.terms.items()}, whole.constant // d), rest
    return None


def _floor_div(expr, n):
    coarse = _coarse(expr, n)
    if coarse is not None:
        return coarse[1].floor_div(n // coarse[0])
    common = math.gcd(n, *expr.terms.values(), expr.constant)
    expr = Expr({atom: factor // common for atom, factor in expr.terms.items()}, expr.constant // common)
    base, divisor = _only_quotient(expr)
    return expression(ModularIndexing(base, divisor * (n // common), None))


def _mod(expr, n):
    coarse = _coarse(expr, n)
    if coarse is not None:
        d, whole, rest = coarse
        return whole.mod(n // d) * d + rest
    common = math.gcd(n, *expr.terms.values(), expr.constant)
    expr = Expr({atom: factor // common for atom, factor in expr.terms.items()}, expr.constant // common)
    base, divisor = _only_quotient(expr)
    return expression(ModularIndexing(base, divisor, n // common)) * common


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
