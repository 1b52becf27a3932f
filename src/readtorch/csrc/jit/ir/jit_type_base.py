"""What all types of TorchScript have in common.

In PyTorch: `aten/src/ATen/core/jit_type_base.h`, `type.cpp`. Explained in the chapter "JIT: scripting".
"""


class Type:
    """A type. Two are equal when they have the same class and the same parts."""

    def kind(self):
        """The name of the class, as PyTorch spells it."""
        return type(self).__name__

    def containedTypes(self):
        """The types of its parts."""
        return []

    def withContained(self, types):
        """The same type with other parts."""
        return self

    def _parts(self):
        return tuple(self.containedTypes())

    def __eq__(self, other):
        return self is other or (type(self) is type(other) and self._parts() == other._parts())

    def __hash__(self):
        return hash((type(self).__name__, self._parts()))

    def isSubtypeOf(self, other):
        """Whether a value of this type may be used where `other` is expected."""
        return self == other or other.includes(self)

    def includes(self, other):
        """Whether `other`, a type of another class, is one of those that this type stands for, as in a Union."""
        return False

    def hasFreeVariables(self):
        return any(t.hasFreeVariables() for t in self.containedTypes())

    def is_interface_type(self):
        return False

    def is_module(self):
        return False

    def __repr__(self):
        return self.annotation_str
