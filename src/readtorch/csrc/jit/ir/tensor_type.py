"""The type of tensors, with as much as is known of dtype, sizes, strides, device and requires_grad.

    Float(4, 3, strides=[3, 1], requires_grad=0, device=cpu)        what the tracer saw
    Float(4, *)                                                     what a pass worked out
    Tensor                                                          nothing is known

In PyTorch: `aten/src/ATen/core/tensor_type.cpp`. Explained in the chapter "JIT: tracing".
"""

from readtorch.c10.scalar_type import SCALAR_TYPE_NAMES

from .jit_type_base import Type


class TensorType(Type):
    """dtype, device, requires_grad: None where unknown. sizes, strides: a tuple with None for each unknown
    number, or None if not even the number of dimensions is known. undefined: whether it is the type of a
    missing gradient.
    """

    _any = _inferred = None

    def __init__(self, dtype=None, sizes=None, strides=None, device=None, requires_grad=None, undefined=None):
        self._dtype = dtype
        self._sizes = None if sizes is None else tuple(sizes)
        self._strides = None if strides is None else tuple(strides)
        self._device = device
        self._requires_grad = requires_grad
        self._undefined = undefined

    @classmethod
    def get(cls):
        """A tensor of which nothing is known."""
        if cls._any is None:
            cls._any = cls()
        return cls._any

    @classmethod
    def getInferred(cls):
        """The same, of a parameter without annotation: errors say that it was taken for a tensor."""
        if cls._inferred is None:
            cls._inferred = cls()
        return cls._inferred

    def isInferredType(self):
        return self is TensorType._inferred

    @classmethod
    def create_from_tensor(cls, t):
        """All that can be said of one tensor."""
        return cls(t.dtype, tuple(t.shape), t.stride(), t.device, t.requires_grad)

    def _parts(self):
        return (self._dtype, self._sizes, self._strides, self._device, self._requires_grad, self._undefined)

    def isSubtypeOf(self, other):
        if isinstance(other, TensorType):
            return self._refines(other)
        return super().isSubtypeOf(other)

    def _refines(self, other):
        """Whether nothing that `other` knows is left open or denied by this one."""
        return all(
            theirs is None or _number_list_fits(mine, theirs) for mine, theirs in zip(self._parts(), other._parts())
        )

    def isComplete(self):
        """Whether dtype, device and every size and stride are known."""
        return (
            self._dtype is not None
            and self._device is not None
            and self.concrete_sizes() is not None
            and self._strides is not None
            and None not in self._strides
        )

    def concrete_sizes(self):
        """The sizes, or None if one is unknown."""
        return self._sizes if self._sizes is not None and None not in self._sizes else None

    # What PyTorch's Python binding offers.
    def scalarType(self):
        return None if self._dtype is None else SCALAR_TYPE_NAMES[self._dtype]

    def dtype(self):
        return self._dtype

    def device(self):
        return self._device

    def dim(self):
        return None if self._sizes is None else len(self._sizes)

    def sizes(self):
        return None if self.concrete_sizes() is None else list(self._sizes)

    def varyingSizes(self):
        return None if self._sizes is None else list(self._sizes)

    def strides(self):
        return None if self._strides is None or None in self._strides else list(self._strides)

    def requires_grad(self):
        return bool(self._requires_grad)

    requiresGrad = requires_grad

    def undefined(self):
        return self._undefined

    def with_(self, **changes):
        """A copy with other dtype, sizes, strides, device, requires_grad or undefined."""
        known = dict(zip(("dtype", "sizes", "strides", "device", "requires_grad", "undefined"), self._parts()))
        return TensorType(**(known | changes))

    def with_sizes(self, sizes):
        return self.with_(sizes=tuple(sizes), strides=None)

    def with_dtype(self, dtype):
        return self.with_(dtype=dtype)

    def with_device(self, device):
        return self.with_(device=device)

    def contiguous(self):
        """The same with row-major strides."""
        strides, step = [], 1
        for size in reversed(self._sizes):
            strides.append(step)
            step *= max(size, 1)
        return self.with_(strides=tuple(reversed(strides)))

    def merge(self, other):
        """What holds for this type and for `other`."""
        mine, theirs = self._parts(), other._parts()
        return TensorType(*[_merge_known(a, b) for a, b in zip(mine, theirs)])

    annotation_str = "Tensor"

    def str(self):
        name = "Tensor" if self._dtype is None else SCALAR_TYPE_NAMES[self._dtype]
        if self._dtype is not None and self._sizes is None:
            name += "Tensor"
        facts = ["*" if n is None else f"{n}" for n in self._sizes or ()]
        if facts and self.isComplete() and len(self._strides) == len(self._sizes):
            facts.append(f"strides=[{', '.join(map(str, self._strides))}]")
        if self._requires_grad is not None:
            facts.append(f"requires_grad={int(self._requires_grad)}")
        if self._device is not None:
            facts.append(f"device={self._device}")
        bracket = f"({', '.join(facts)})" if facts or self._sizes is not None else ""
        return name + bracket + ("[Undefined]" if self._undefined else "")


def _number_list_fits(mine, theirs):
    if isinstance(theirs, tuple):
        return mine is not None and len(mine) == len(theirs) and all(t is None or m == t for m, t in zip(mine, theirs))
    return mine == theirs


def _merge_known(a, b):
    if isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b):
        return tuple(x if x == y else None for x, y in zip(a, b))
    return a if a == b else None
