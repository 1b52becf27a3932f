"""Operators whose results FakeTensorMode makes by rules of their own: factories, copies between devices, and those whose results
depend on elements.

In PyTorch: `torch/_subclasses/fake_impls.py`. Explained in the chapter "One operator call".
"""

from readtorch._C import device
from readtorch.c10 import scalar_type
from readtorch.c10.sym_int import is_symbolic
from readtorch.c10.symbolic_shape_meta import SymbolicArray
from readtorch.c10.tensor_impl import storage_impl, storage_offset, strides_of

from .fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
    aten,
    in_kernel_invocation_manager,
)

_meta, _cpu = device("meta"), device("cpu")


def implementation_of(func):
    """The rule f(fake_mode, func, *args, **kwargs) for an operator, or None."""
    found = _rules.get(func.name())
    if found is not None:
        return found
    tags = {getattr(tag, "name", tag) for tag in func.tags}
    if "dynamic_output_shape" in tags:
        return size_depends_on_elements
    if "data_dependent_output" in tags:
        return number_depends_on_elements
    if func._operator.schema.name.startswith("_foreach_"):
        return foreach
    return constructors if _is_tensor_constructor(func) or is_like(func) else None


def _is_tensor_constructor(func):
    """Whether an operator makes a tensor of numbers alone."""
    schema = func._operator.schema
    if any(a.type.is_tensor for a in schema.arguments):
        return False
    return len(schema.returns) == 1 and schema.returns[0].type.is_tensor and not schema.returns[0].type.is_list


def is_like(func):
    """Whether an operator makes a tensor after the pattern of another."""
    name = func._operator.schema.name
    return name.endswith("_like") or name in ("new_empty", "new_empty_strided", "new_full", "new_zeros", "new_ones")


def constructors(fake_mode, func, *args, **kwargs):
    """A factory: made on the Meta device, for the device that was asked for."""
    names = [a.name for a in func._operator.schema.arguments]
    given = dict(zip(names, args)) | kwargs
    place = given.get("device") or (args[0].device if is_like(func) else _cpu)
    if "device" in names[: len(args)]:
        args = tuple(_meta if name == "device" else a for name, a in zip(names, args))
    else:
        kwargs = kwargs | {"device": _meta}
    with in_kernel_invocation_manager(fake_mode):
        made = func(*args, **kwargs)
    return FakeTensor(fake_mode, made, place)


def size_depends_on_elements(fake_mode, func, *args, **kwargs):
    raise DynamicOutputShapeException(func)


def by_its_meta_kernel(fake_mode, func, *args, **kwargs):
    return NotImplemented


def repeat_interleave(fake_mode, func, repeats, output_size=None):
    """The sum of `repeats` says how large the result is, unless the caller does."""
    if output_size is None:
        raise DynamicOutputShapeException(func)
    return repeats.new_empty(output_size)


def number_depends_on_elements(fake_mode, func, *args, **kwargs):
    raise DataDependentOutputException(func)


def local_scalar_dense(fake_mode, func, t):
    """The number in a tensor, if it is known."""
    if t.constant is not None:
        return t.constant.item()
    raise DataDependentOutputException(func)


def index_tensor(fake_mode, func, self, indices, *rest):
    """`x[indices]`: a mask would say how large the result is."""
    if any(i is not None and i.dtype in _MASKS for i in indices):
        raise DynamicOutputShapeException(aten.nonzero.default)
    with in_kernel_invocation_manager(fake_mode):
        out = func(self, indices, *rest)
    return out if out is self else FakeTensor(fake_mode, out, self.device)


def slice_tensor(fake_mode, func, self, dim=0, *places):
    """A slice between places that are left open leaves its size open, of a tensor whose own sizes are known, too."""
    array = self._array
    if is_symbolic(places) and type(array) is not SymbolicArray:
        self._array = SymbolicArray(
            storage_impl(self), array.dtype, array.shape, strides_of(self), storage_offset(self)
        )
    try:
        with in_kernel_invocation_manager(fake_mode):
            out = func(self, dim, *places)
    finally:
        self._array = array
    return FakeTensor(fake_mode, out, self.device)


def writes_first(fake_mode, func, self, *args, **kwargs):
    """Operators whose result is on the device of `self`, wherever the other operands are."""
    with in_kernel_invocation_manager(fake_mode):
        out = func(self, *args, **kwargs)
    return self if out is self else FakeTensor(fake_mode, out, self.device)


def foreach(fake_mode, func, *args, **kwargs):
    """Operators of lists of tensors: each result is on the device of its operand."""
    lists = [a for a in (*args, *kwargs.values()) if isinstance(a, list) and a and isinstance(a[0], FakeTensor)]
    places = [t.device for t in lists[0]]
    with in_kernel_invocation_manager(fake_mode):
        out = func(*args, **kwargs)
    if not out or not isinstance(out, (list, tuple)):
        return out
    return [t if fake_mode.is_our_fake(t) else FakeTensor(fake_mode, t, p) for t, p in zip(out, places)]


def to_copy(fake_mode, func, self, **kwargs):
    """A copy, perhaps on another device, which need not be there."""
    place = kwargs.pop("device", None) or self.device
    with in_kernel_invocation_manager(fake_mode):
        made = func(self, **kwargs, device=_meta)
    return FakeTensor(fake_mode, made, place)


def is_pinned(fake_mode, func, self, device=None):
    return False


_MASKS = (scalar_type.bool, scalar_type.uint8)
_rules = {
    "aten::_local_scalar_dense": local_scalar_dense,
    "aten::item": local_scalar_dense,
    "aten::index.Tensor": index_tensor,
    "aten::is_pinned": is_pinned,
    "aten::_to_copy": to_copy,
    "aten::nonzero_static": by_its_meta_kernel,
    "aten::repeat_interleave.Tensor": repeat_interleave,
    "aten::slice.Tensor": slice_tensor,
    **dict.fromkeys(("aten::nonzero", "aten::masked_select", "aten::bincount"), size_depends_on_elements),
    **dict.fromkeys(("aten::_unique2", "aten::unique_dim", "aten::unique_consecutive"), size_depends_on_elements),
    **dict.fromkeys(("aten::equal", "aten::is_nonzero", "aten::allclose"), number_depends_on_elements),
    **dict.fromkeys(
        ("aten::copy_", "aten::copy", "aten::index_put", "aten::index_put_", "aten::resize_as_"), writes_first
    ),
    **dict.fromkeys(("aten::slice_scatter", "aten::diagonal_scatter", "aten::set_.source_Tensor"), writes_first),
}

FakeTensorMode.implementation_of = staticmethod(implementation_of)
