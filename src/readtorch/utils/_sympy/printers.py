"""Expressions as Python code. In PyTorch: `torch/utils/_sympy/printers.py`."""

from .functions import Relation, Symbol

INFIX = {"FloorDiv": "//", "Mod": "%", "IntTrueDiv": "/", "FloatTrueDiv": "/", "FloatPow": "**"}
CALLS = {
    "Max": "max",
    "Min": "min",
    "ToFloat": "float",
    "FloorToInt": "math.floor",
    "CeilToInt": "math.ceil",
    "TruncToInt": "math.trunc",
}


def python_code(expr, names):
    """The text of an expression or a Relation. names: {symbol: its text}."""
    if isinstance(expr, Relation):
        return f"{python_code(expr.lhs, names)} {expr.op} {python_code(expr.rhs, names)}"
    parts = [
        _product(factor, product, names)
        for product, factor in sorted(expr.terms.items(), key=lambda term: term[0] != ())
    ]
    return f"({' + '.join(parts)})" if len(parts) > 1 else parts[0] if parts else "0"


def _product(factor, product, names):
    atoms = [_atom(atom, names) for atom, power in product for _ in range(power)]
    number = [] if factor == 1 and atoms else [str(factor) if factor >= 0 else f"({factor})"]
    parts = [*number, *atoms]
    return f"({'*'.join(parts)})" if len(parts) > 1 else parts[0]


def _atom(atom, names):
    if isinstance(atom, Symbol):
        return names[atom]
    arguments = [python_code(a, names) for a in atom.arguments]
    if atom.name in INFIX:
        return f"({f' {INFIX[atom.name]} '.join(arguments)})"
    return f"{CALLS[atom.name]}({', '.join(arguments)})"
