"""`j1`: the size of a dimension along which each entry of a batch has a size of its own.

It is a SymInt that is equal to itself alone, so shapes with it can be compared, and two tensors have the same one only if they share
their offsets. It has no value: what would need one raises AttributeError, and a comparison that the sizes would decide ValueError.

In PyTorch: `torch/nested/_internal/nested_int.py`, `aten/src/ATen/core/NestedIntSymNodeImpl.cpp`.
"""

from readtorch.c10.sym_int import SymInt

__all__ = ["NestedIntNode"]


class NestedIntNode:
    """`coeff` times the ragged size number `t_id`; strides have other coefficients than 1."""

    def __init__(self, t_id, coeff=1):
        self.t_id, self.coeff = t_id, coeff

    @property
    def expr(self):
        """How it prints. Equal numbers have equal ones."""
        return f"j{self.t_id}" if self.coeff == 1 else f"{self.coeff}*j{self.t_id}"

    __str__ = __repr__ = lambda self: self.expr

    def is_nested_int(self):
        return True

    def bool_(self):
        return True

    def guarded(self):
        """Asked for by operators that take a number: pointwise ones."""
        raise RuntimeError(f"NestedTensor: invalid argument {self}")

    def binary(self, name, other, reflected=False):
        """An operator of SymInt by its name; `j * 4` is the same as `4 * j`."""
        return getattr(self, name)(other)

    def unary(self, name):
        return getattr(self, name)()

    def mul(self, other):
        if is_nested_int(other):
            raise ValueError(f"unsupported: {type(other.node)}")
        return SymInt(NestedIntNode(self.t_id, self.coeff * other))

    def eq(self, other):
        return is_nested_int(other) and other.node.expr == self.expr

    def ne(self, other):
        return not self.eq(other)

    def ge(self, other):
        """Sizes of one number compare by their coefficients. Every ragged size counts as 2 at least, so 0 and 1 are known."""
        if is_nested_int(other) and other.node.t_id == self.t_id:
            return self.coeff >= other.node.coeff
        if not is_nested_int(other) and other <= 2:
            return True
        raise ValueError("ge: relation is indeterminate")

    def le(self, other):
        if is_nested_int(other):
            return other.node.ge(SymInt(self))
        if other < 2:
            return False
        raise ValueError("ge: relation is indeterminate")

    def gt(self, other):
        return not self.le(other)

    def lt(self, other):
        return not self.ge(other)


def is_nested_int(number):
    """Whether `number` is the size of a ragged dimension, or a multiple of one."""
    return isinstance(number, SymInt) and isinstance(number.node, NestedIntNode)
