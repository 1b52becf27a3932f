"""SymInt, SymFloat, SymBool: numbers that stand for expressions of sizes which a trace leaves open.

They compute as numbers do, and their results are such numbers again. Who wants the value itself, with `if`, `int()`, as an index or in a
function of C, is given the one that this trace has, and the trace notes on which condition it works: a guard. None is an `int`, so no
value is taken unseen. `node` (`fx/experimental/sym_node.py`) does the work.

In PyTorch: `c10/core/SymInt.h`; the classes stand in `torch/__init__.py`, as do the functions of `_sym_functions.py`.
"""

BINARY = "add sub mul truediv floordiv mod pow".split()
COMPARISONS = "eq ne lt le gt ge".split()


class _SymNumber:
    __slots__ = ("node", "__weakref__")
    __hash__ = None

    def __init__(self, node):
        self.node = node

    def __repr__(self):
        return str(self.node.expr)

    def __bool__(self):
        return self.node.bool_()

    def __format__(self, spec):
        return format(str(self), spec)


class SymBool(_SymNumber):
    """A truth value that depends on sizes: asked for, it becomes a guard."""

    __slots__ = ()

    def __and__(self, other):
        return bool(self) and other

    def __or__(self, other):
        return bool(self) or other

    def __sym_not__(self):
        return self.node.unary("sym_not")

    def __int__(self):
        return int(bool(self))

    __index__ = __int__


class _SymArithmetic(_SymNumber):
    __slots__ = ()

    def __neg__(self):
        return self.node.unary("neg")

    def __pos__(self):
        return self

    def __abs__(self):
        return self if self >= 0 else -self

    def __int__(self):
        return self.node.int_()

    def __float__(self):
        return float(self.node.guarded())

    def conjugate(self):
        return self

    def __complex__(self):
        return complex(float(self))

    def __round__(self, ndigits=None):
        return round(self.node.guarded(), ndigits)

    def __sym_max__(self, other):
        return self.node.binary("sym_max", other)

    def __sym_min__(self, other):
        return self.node.binary("sym_min", other)

    def __sym_float__(self):
        return self.node.unary("sym_float")

    def __divmod__(self, other):
        return self // other, self % other


class SymInt(_SymArithmetic):
    """A whole number that depends on sizes."""

    __slots__ = ()

    def __hash__(self):
        """Of a nested tensor's ragged size: whether others are equal would be a guard."""
        if not self.node.is_nested_int():
            raise TypeError("unhashable type: non-nested SymInt")
        return hash(self.node.expr)

    def __index__(self):
        return self.node.int_()

    def __trunc__(self):
        return self

    __floor__ = __ceil__ = __sym_int__ = __trunc__


class SymFloat(_SymArithmetic):
    """A float that depends on sizes."""

    __slots__ = ()

    def __trunc__(self):
        return self.node.unary("trunc")

    __sym_int__ = __trunc__

    def __floor__(self):
        return self.node.unary("floor")

    def __ceil__(self):
        return self.node.unary("ceil")

    def is_integer(self):
        return self == self.__floor__()


def _add_operators():
    def operator_of(name, reflected):
        def method(self, other):
            if not isinstance(other, (int, float, _SymNumber)):
                return NotImplemented
            if isinstance(self, SymInt) and isinstance(other, (float, SymFloat)):
                self = self.__sym_float__()
            return self.node.binary(name, other, reflected)

        return method

    for name in BINARY:
        setattr(_SymArithmetic, f"__{name}__", operator_of(name, False))
        setattr(_SymArithmetic, f"__r{name}__", operator_of(name, True))
    for name in COMPARISONS:
        setattr(_SymArithmetic, f"__{name}__", operator_of(name, False))
    _SymArithmetic.__hash__ = None


_add_operators()
SYM_TYPES = (SymInt, SymFloat, SymBool)
for _class in SYM_TYPES:
    _class.__module__ = "readtorch"


def hint_of(number):
    """The value that this trace has for a number, without a guard."""
    return number.node.hint if isinstance(number, _SymNumber) else number


def by_expr(number):
    """What is equal for two numbers that are surely equal, and can be a key of a dict. In PyTorch: `SymIntEqByExpr`."""
    return number.node.expr if isinstance(number, _SymNumber) else number


def is_symbolic(sizes):
    """Whether one of these sizes is left open."""
    return any([isinstance(n, _SymNumber) for n in sizes])
