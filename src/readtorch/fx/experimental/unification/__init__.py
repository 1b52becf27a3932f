"""Equations between terms, and what must be put for their variables. In PyTorch: `torch/fx/experimental/unification/__init__.py`."""

__all__ = ["Var", "unify"]


class Var:
    """A variable. Two of the same token are equal."""

    def __init__(self, token):
        self.token = token

    def __eq__(self, other):
        return type(self) is type(other) and self.token == other.token

    def __hash__(self):
        return hash((type(self), self.token))

    def __str__(self):
        return f"~{self.token}"

    __repr__ = __str__


def unify(u, v, s=None):
    """The substitution, a dict of variables, that makes two terms equal; False if there is none. s: one to begin with."""
    s = {} if s is None else s
    u, v = _walked(u, s), _walked(v, s)
    if u == v:
        return s
    if isinstance(u, Var):
        return {**s, u: v}
    if isinstance(v, Var):
        return {**s, v: u}
    if not isinstance(u, tuple) or type(u) is not type(v) or len(u) != len(v):
        return False
    for a, b in zip(u, v):
        s = unify(a, b, s)
        if s is False:
            return False
    return s


def _walked(term, s):
    while isinstance(term, Var) and term in s:
        term = s[term]
    return term
