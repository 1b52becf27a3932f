"""Expressions of sizes: whole numbers, symbols, sums, products, `//` and `%`.

    s0 = symbol("s0")
    s0 * 2 + s0        is 3*s0
    (s0 * 4) // 4      is s0

An expression is kept as a sum of products with whole coefficients, so two that are the same polynomial are equal. What is no polynomial,
`//`, `%`, max, min and all that gives a float, is an atom of it: a `Function` of expressions.

In PyTorch: `torch/utils/_sympy/functions.py`, functions for the library sympy, whose sums and products are used there.
"""

import math
import operator
from functools import cached_property
from typing import NamedTuple

INFINITY = math.inf


class Symbol(NamedTuple):
    """A size that is left open."""

    name: str

    def __str__(self):
        return self.name


class Function(NamedTuple):
    """A function of expressions that is no polynomial."""

    name: str
    arguments: tuple

    def __str__(self):
        if self.name == "FloorDiv":
            return f"({'//'.join(_parenthesized(a) for a in self.arguments)})"
        return f"{self.name}({', '.join(map(str, self.arguments))})"


def _parenthesized(expr):
    text = str(expr)
    return text if text.isidentifier() or text.isdigit() else f"({text})"


class Expr:
    """A sum of products of atoms. terms: {((atom, power), …): whole coefficient}, () for the number without atoms."""

    __slots__ = ("terms", "__dict__")

    def __init__(self, terms):
        self.terms = {product: factor for product, factor in terms.items() if factor}

    @cached_property
    def key(self):
        return frozenset(self.terms.items())

    def __eq__(self, other):
        return self.key == expression(other).key

    def __hash__(self):
        return hash(self.key)

    def __add__(self, other):
        terms = dict(self.terms)
        for product, factor in expression(other).terms.items():
            terms[product] = terms.get(product, 0) + factor
        return Expr(terms)

    def __neg__(self):
        return Expr({product: -factor for product, factor in self.terms.items()})

    def __sub__(self, other):
        return self + -expression(other)

    def __mul__(self, other):
        terms = {}
        for a, factor_a in self.terms.items():
            for b, factor_b in expression(other).terms.items():
                product = _times(a, b)
                terms[product] = terms.get(product, 0) + factor_a * factor_b
        return Expr(terms)

    @property
    def number(self):
        """The number that it is, or None."""
        return self.terms.get((), 0) if self.terms.keys() <= {()} else None

    @property
    def symbol(self):
        """The Symbol that it is, or None."""
        if len(self.terms) != 1:
            return None
        ((product, factor),) = self.terms.items()
        is_atom = factor == 1 and len(product) == 1 and product[0][1] == 1
        return product[0][0] if is_atom and isinstance(product[0][0], Symbol) else None

    def atoms(self):
        return {atom for product in self.terms for atom, _ in product}

    def symbols(self):
        """All symbols in it, those within functions too."""
        found = set()
        for atom in self.atoms():
            inner = [a.symbols() for a in atom.arguments] if isinstance(atom, Function) else [{atom}]
            found = found.union(*inner)
        return found

    def map_atoms(self, value_of):
        """The expression with what `value_of` makes of each atom in its place; numbers and floats may come out as well."""
        total = expression(0)
        for product, factor in self.terms.items():
            part = expression(factor)
            for atom, power in product:
                for _ in range(power):
                    part = part * value_of(atom)
            total = total + part
        return total

    def replace(self, values):
        """The expression with other expressions in place of symbols."""
        return self.map_atoms(lambda atom: _replaced(atom, values)) if self.symbols() & values.keys() else self

    def value(self, values):
        """The number that it is for {symbol: number}."""
        total = 0
        for product, factor in self.terms.items():
            for atom, power in product:
                factor = factor * _value(atom, values) ** power
            total = total + factor
        return total

    def exact_quotient(self, divisor):
        """The expression that times `divisor` is this one, where that can be seen; else None. divisor: a single product."""
        ((divided, by),) = divisor.terms.items()
        quotient = {}
        for product, factor in self.terms.items():
            powers = dict(product)
            for atom, power in divided:
                powers[atom] = powers.get(atom, 0) - power
            if factor % by or min(powers.values(), default=0) < 0:
                return None
            quotient[_product(powers)] = factor // by
        return Expr(quotient)

    def __str__(self):
        names = sorted(self.atoms(), key=lambda atom: (isinstance(atom, Function), str(atom)))
        order = sorted(self.terms, key=lambda product: [dict(product).get(name, 0) for name in names], reverse=True)
        text = ""
        for product in order:
            factor = self.terms[product]
            sign = " - " if factor < 0 else " + "
            sign = sign if text else sign.strip().replace("+", "")
            text += sign + _term(abs(factor), product, len(self.terms) > 1)
        return text or "0"

    __repr__ = __str__


def _product(powers):
    return tuple(
        sorted([(a, n) for a, n in powers.items() if n], key=lambda pair: (isinstance(pair[0], Function), str(pair[0])))
    )


def _times(a, b):
    powers = dict(a)
    for atom, power in b:
        powers[atom] = powers.get(atom, 0) + power
    return _product(powers)


def _term(factor, product, in_sum):
    alone = not in_sum and factor == 1 and len(product) == 1
    parts = [] if factor == 1 and product else [str(factor)]
    for atom, power in product:
        inside = isinstance(atom, Function) and atom.name == "FloorDiv" and not alone
        parts.append((f"({atom})" if inside else str(atom)) + (f"**{power}" if power > 1 else ""))
    return "*".join(parts)


def expression(value):
    """A number or an atom as an expression."""
    if isinstance(value, Expr):
        return value
    if isinstance(value, (Symbol, Function)):
        return Expr({((value, 1),): 1})
    return Expr({(): int(value) if isinstance(value, bool) else value})


def symbol(name):
    return expression(Symbol(name))


# ------------------------------------------------------------------------------------------------------- functions


def floor_div(base, divisor):
    """base // divisor, without what the divisor divides."""
    if divisor.number == 1:
        return base
    if base.number is not None and divisor.number is not None:
        return expression(base.number // divisor.number)
    if len(divisor.terms) == 1:
        whole = base.exact_quotient(divisor)
        if whole is not None:
            return whole
    if divisor.number is not None:
        whole = Expr({product: factor for product, factor in base.terms.items() if factor % divisor.number == 0})
        if whole.terms:
            return whole.exact_quotient(divisor) + floor_div(base - whole, divisor)
    return expression(Function("FloorDiv", (base, divisor)))


def mod(base, divisor):
    """base % divisor, without what the divisor divides."""
    if base.number is not None and divisor.number is not None:
        return expression(base.number % divisor.number)
    if len(divisor.terms) == 1 and base.exact_quotient(divisor) is not None:
        return expression(0)
    return expression(Function("Mod", (base, divisor)))


def _opaque(name, compute):
    """A function that is worked out where all arguments are numbers."""

    def make(*arguments):
        numbers = [a.number for a in arguments]
        if None not in numbers:
            return expression(compute(*numbers))
        return expression(Function(name, arguments))

    return make


def _extreme(name, choose):
    def make(a, b):
        a, b = sorted((a, b), key=lambda e: (e.number is None, str(e)))
        return a if a == b else _opaque(name, choose)(a, b)

    return make


COMPUTED = {
    "FloorDiv": operator.floordiv,
    "Mod": operator.mod,
    "Max": max,
    "Min": min,
    "IntTrueDiv": operator.truediv,
    "FloatTrueDiv": operator.truediv,
    "ToFloat": float,
    "FloorToInt": math.floor,
    "CeilToInt": math.ceil,
    "TruncToInt": math.trunc,
    "FloatPow": operator.pow,
    "OpaqueUnaryFn_sqrt": math.sqrt,
}
MAKERS = {name: _opaque(name, compute) for name, compute in COMPUTED.items()}
MAKERS |= {"FloorDiv": floor_div, "Mod": mod, "Max": _extreme("Max", max), "Min": _extreme("Min", min)}


def _replaced(atom, values):
    if isinstance(atom, Symbol):
        return values.get(atom, atom)
    return MAKERS[atom.name](*[a.replace(values) for a in atom.arguments])


def _value(atom, values):
    if isinstance(atom, Symbol):
        return values[atom]
    return COMPUTED[atom.name](*[a.value(values) for a in atom.arguments])


# ------------------------------------------------------------------------------------------------------- ranges


def bounds(expr, ranges):
    """(the least, the greatest) value that an expression may have, where {symbol: (least, greatest)}: no tighter range can be seen."""
    low, high = _bounds_of_sum(expr, ranges)
    constant = expr.terms.get((), 0)
    shared, rest = _common_factor(expr - constant, ranges)
    if rest is None or len(rest.terms) < 2:
        return low, high
    ends = _times_range(_bounds_of_sum(shared, ranges), _bounds_of_sum(rest, ranges))
    return max(low, ends[0] + constant), min(high, ends[1] + constant)


def _bounds_of_sum(expr, ranges):
    low = high = 0
    for product, factor in expr.terms.items():
        ends = (factor, factor)
        for atom, power in product:
            for _ in range(power):
                ends = _times_range(ends, _bounds_of_atom(atom, ranges))
        low, high = low + ends[0], high + ends[1]
    return low, high


def _times_range(a, b):
    products = [0 if 0 in (x, y) else x * y for x in a for y in b]
    return min(products), max(products)


def _bounds_of_atom(atom, ranges):
    if isinstance(atom, Symbol):
        return ranges[atom]
    given = [bounds(a, ranges) for a in atom.arguments]
    if atom.name in ("Max", "Min"):
        choose = max if atom.name == "Max" else min
        return choose(low for low, _ in given), choose(high for _, high in given)
    if atom.name == "FloorDiv" and given[0][0] >= 0 and given[1][0] > 0:
        (low, high), (least, most) = given
        return (0 if most == INFINITY else low // most), (high if high == INFINITY else high // least)
    if atom.name == "Mod" and given[1][0] > 0:
        return 0, given[1][1] - 1
    return -INFINITY, INFINITY


def _common_factor(expr, ranges):
    """(the product of what all parts of a sum share and is above 0, what it leaves); (1, None) if they share nothing."""
    products = [dict(product) for product in expr.terms]
    shared = {atom: min(p.get(atom, 0) for p in products) for atom in (products[0] if products else ())}
    positive = Expr({_product({a: n for a, n in shared.items() if _bounds_of_atom(a, ranges)[0] > 0}): 1})
    return (positive, expr.exact_quotient(positive)) if positive.number is None else (positive, None)


# ------------------------------------------------------------------------------------------------------- relations

NEGATED = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
COMPARE = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class Relation(NamedTuple):
    """lhs op rhs, of two expressions."""

    op: str
    lhs: Expr
    rhs: Expr

    def negated(self):
        return self._replace(op=NEGATED[self.op])

    def symbols(self):
        return self.lhs.symbols() | self.rhs.symbols()

    def replace(self, values):
        return Relation(self.op, self.lhs.replace(values), self.rhs.replace(values))

    def value(self, values):
        return COMPARE[self.op](self.lhs.value(values), self.rhs.value(values))

    def known(self, ranges):
        """Whether it holds for all values in these ranges; None if that depends on the values."""
        difference = self.lhs - self.rhs
        shared, rest = _common_factor(difference, ranges)
        low, high = bounds(difference if rest is None else rest, ranges)
        if self.op in ("==", "!="):
            if low == high == 0:
                return self.op == "=="
            return None if low <= 0 <= high else self.op == "!="
        answers = {COMPARE[self.op](end, 0) for end in (low, high)}
        return answers.pop() if len(answers) == 1 else None

    def __str__(self):
        if self.op in ("==", "!="):
            return f"{'Eq' if self.op == '==' else 'Ne'}({self.lhs}, {self.rhs})"
        return f"{self.lhs} {self.op} {self.rhs}"
