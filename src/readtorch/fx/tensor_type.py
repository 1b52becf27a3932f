"""Types of tensors with known and unknown sizes. In PyTorch: `torch/fx/tensor_type.py`.

A size that is not known is Dyn, which fits every size: such types are *gradual*. They can stand as annotations in the `forward`
that is traced, and `graph_gradual_typechecker.py` carries them through a graph.
"""

from .experimental.unification import Var

__all__ = ["Dyn", "TensorType", "is_consistent", "is_more_precise"]


class TensorType:
    """The type of tensors of these sizes: `TensorType((1, 2, Dyn))`, or `TensorType[1, 2, Dyn]`."""

    def __init__(self, dim):
        self.__origin__ = TensorType
        self.__args__ = dim

    @property
    def dims(self):
        return self.__args__

    def __repr__(self):
        return f"TensorType[{self.dims}]"

    def __eq__(self, other):
        return isinstance(other, self.__class__) and list(self.dims) == list(other.dims)

    __hash__ = None

    def __class_getitem__(cls, dim):
        return TensorType(dim if isinstance(dim, tuple) else (dim,))


class _DynType:
    """The type of what nothing is known of."""

    def __init__(self):
        self.__name__ = "_DynType"

    def __eq__(self, other):
        return isinstance(other, self.__class__)

    __hash__ = None

    def __str__(self):
        return "Dyn"

    __repr__ = __str__


Dyn = _DynType()


def is_consistent(t1, t2):
    """Whether something may be of both types. Not transitive: 1 and 2 are consistent with Dyn, and not with one another."""
    if t1 == t2 or t1 == Dyn or t2 == Dyn or isinstance(t1, Var) or isinstance(t2, Var):
        return True
    return _of_all_dims(is_consistent, t1, t2)


def is_more_precise(t1, t2):
    """Whether whatever is of type `t1` is of type `t2`, too."""
    return t1 == t2 or isinstance(t2, _DynType) or _of_all_dims(is_more_precise, t1, t2)


def _of_all_dims(relation, t1, t2):
    if not (isinstance(t1, TensorType) and isinstance(t2, TensorType)) or len(t1.dims) != len(t2.dims):
        return False
    return all(relation(a, b) for a, b in zip(t1.dims, t2.dims))
