"""Primitives that make tensors from Python values, look at tensors, or talk to the world.

In PyTorch: `torch/csrc/jit/runtime/register_special_ops.cpp`, `register_prim_ops.cpp`,
`register_prim_ops_fulljit.cpp`.
"""

import sys
import warnings

from readtorch.aten.functions import at
from readtorch.c10 import scalar_type
from readtorch.c10.device import device as Device
from readtorch.c10.local_dispatch_key_set import grad_mode_enabled, set_grad_mode
from readtorch.c10.tensor_impl import TensorImpl
from readtorch.csrc.jit.ir.constants import type_of_value
from readtorch.csrc.jit.ir.enums import dtype_of, number_of_dtype, number_of_layout
from readtorch.csrc.jit.ir.type import BoolType, DictType, FloatType, IntType, ListType, TensorType, TupleType
from readtorch.csrc.utils.tensor_new import tensor as new_tensor

from .operator import prim, prim_of_node
from .register_prim_ops import plain_text

# ------------------------------------------------------------------------------------------- a tensor's facts


@prim("aten::size(Tensor self) -> int[]")
def size(self):
    return list(self.shape)


@prim("aten::stride(Tensor self) -> int[]")
def stride(self):
    return list(self.stride())


prim("aten::size.int(Tensor self, int dim) -> int")(lambda self, dim: self.size(dim))
prim("aten::stride.int(Tensor self, int dim) -> int")(lambda self, dim: self.stride(dim))
prim("aten::len.Tensor(Tensor t) -> int")(len)
prim("aten::dim(Tensor self) -> int")(lambda self: self.dim())
prim("aten::numel(Tensor self) -> int")(lambda self: self.numel())
prim("aten::element_size(Tensor self) -> int")(lambda self: self.element_size())
prim("aten::item(Tensor self) -> Scalar")(lambda self: self.item())
prim("aten::get_device(Tensor self) -> int")(lambda self: self.get_device())
prim("aten::storage_offset(Tensor self) -> int")(lambda self: self.storage_offset())
prim("aten::is_contiguous(Tensor self) -> bool")(lambda self: self.is_contiguous())
prim("aten::is_floating_point(Tensor self) -> bool")(lambda self: self.is_floating_point())
prim("aten::is_complex(Tensor self) -> bool")(lambda self: self.is_complex())
prim("prim::device(Tensor a) -> Device")(lambda a: a.device)
prim("prim::dtype(Tensor a) -> int")(lambda a: number_of_dtype[a.dtype])
prim("prim::layout(Tensor a) -> Layout")(lambda a: number_of_layout[a.layout])
prim("prim::requires_grad(Tensor a) -> bool")(lambda a: a.requires_grad)
prim("prim::is_cuda(Tensor a) -> bool")(lambda a: a.device.type == "cuda")
prim("prim::is_cpu(Tensor a) -> bool")(lambda a: a.device.type == "cpu")
prim("prim::is_meta(Tensor a) -> bool")(lambda a: a.device.type == "meta")
for _name in ("is_sparse", "is_mkldnn", "is_quantized", "is_nested"):
    prim(f"prim::{_name}(Tensor a) -> bool")(lambda a: False)
prim("prim::itemsize(Tensor a) -> int")(lambda a: a.element_size())
prim("prim::nbytes(Tensor a) -> int")(lambda a: a.element_size() * a.numel())
prim("prim::data(Tensor(a) a) -> Tensor(a)")(lambda a: a.detach())
prim("prim::grad(Tensor a) -> Tensor(*)")(lambda a: a.grad)
prim("prim::name(Tensor a) -> str?")(lambda a: None)
prim("prim::type(Device self) -> str")(lambda self: self.type)
prim("prim::index(Device self) -> int?")(lambda self: self.index)
prim("aten::device(str a) -> Device")(Device)
prim("aten::device.with_index(str type, int index) -> Device")(Device)
prim("aten::cpu(Tensor(a) self) -> Tensor(b|a)")(lambda self: self.cpu())
prim("aten::cuda(Tensor(a) self) -> Tensor(b|a)")(lambda self: self.cuda())


@prim("aten::numpy_T.a(Tensor(a) self) -> Tensor(a)")
def numpy_T(self):
    return self.T


@prim("aten::mT.a(Tensor(a) self) -> Tensor(a)")
def mT(self):
    return self.mT


# ------------------------------------------------------------------------------------------------ new tensors


def _new_tensor(data, dtype, device, requires_grad=False):
    return new_tensor(
        data, dtype=None if dtype is None else dtype_of[dtype], device=device, requires_grad=requires_grad
    )


def _as_tensor(data, dtype, device):
    return _new_tensor(data, dtype, device)


for _kind in ("bool", "float", "int", "complex"):
    prim(
        f"aten::tensor.{_kind}({_kind} t, *, ScalarType? dtype=None, Device? device=None, bool requires_grad=False) "
        "-> Tensor"
    )(_new_tensor)
    prim(f"aten::as_tensor.{_kind}({_kind} t, *, ScalarType? dtype=None, Device? device=None) -> Tensor")(_as_tensor)
prim("aten::tensor(t[] data, *, ScalarType? dtype=None, Device? device=None, bool requires_grad=False) -> Tensor")(
    _new_tensor
)
prim("aten::as_tensor.list(t[] data, *, ScalarType? dtype=None, Device? device=None) -> Tensor")(_as_tensor)


@prim("aten::as_tensor(Tensor(a) data, *, ScalarType? dtype=None, Device? device=None) -> Tensor(b|a)")
def as_tensor(data, dtype, device):
    return data.to(dtype=data.dtype if dtype is None else dtype_of[dtype], device=device or data.device)


@prim("prim::NumToTensor.Scalar(Scalar a) -> Tensor")
@prim("prim::NumToTensor.bool(bool a) -> Tensor")
def num_to_tensor(a):
    """In contrast to `tensor(a)`, a float becomes a double: nothing is lost on the way."""
    return new_tensor(a, dtype=scalar_type.float64 if isinstance(a, float) else None)


def _to(self, device, dtype, non_blocking, copy):
    return self.to(
        device=device or self.device,
        dtype=self.dtype if dtype is None else dtype_of[dtype],
        non_blocking=non_blocking,
        copy=copy,
    )


prim(
    "aten::to.prim_Device(Tensor(a) self, Device? device, int? dtype=None, bool non_blocking=False, bool copy=False) "
    "-> Tensor(b|a)"
)(_to)
prim("aten::to.prim_dtype(Tensor(a) self, int? dtype=None, bool non_blocking=False, bool copy=False) -> Tensor(b|a)")(
    lambda self, dtype, non_blocking, copy: _to(self, None, dtype, non_blocking, copy)
)
prim("aten::to.prim_other(Tensor(a) self, bool non_blocking=False, bool copy=False) -> Tensor(b|a)")(
    lambda self, non_blocking, copy: _to(self, None, None, non_blocking, copy)
)


@prim_of_node("prim::tolist(...) -> ...")
def tolist(node):
    return lambda data, depth, kind: data.tolist()


# ----------------------------------------------------------------------------------------- Python's built-ins


@prim("prim::Print(...) -> ()")
def print_values(*values):
    sys.stdout.write(" ".join(map(plain_text, values)) + "\n")


@prim("aten::warn(str message, int stacklevel=2) -> ()")
def warn(message, stacklevel):
    warnings.warn(message, stacklevel=stacklevel)


@prim_of_node("prim::PythonOp(...) -> ...")
def python_op(node):
    """A call of a Python function that was not compiled."""
    return node.pyobj()


@prim_of_node("prim::isinstance(Any to_check) -> bool")
def isinstance_of(node):
    types = node.attribute("types")
    return lambda value: any(holds(value, t) for t in types)


def holds(value, type):
    """Whether a Python value has a type; an empty list or dict has every element type."""
    if isinstance(type, ListType):
        return isinstance(value, list) and all(holds(v, type.elem) for v in value)
    if isinstance(type, DictType):
        return isinstance(value, dict) and all(holds(k, type.key) and holds(v, type.value) for k, v in value.items())
    if isinstance(type, TupleType):
        same_length = isinstance(value, tuple) and len(value) == len(type.types)
        return same_length and all(map(holds, value, type.types))
    if isinstance(type, TensorType):
        return isinstance(value, TensorImpl)
    if isinstance(type, (IntType, FloatType, BoolType)):
        return value.__class__ is {IntType: int, FloatType: float, BoolType: bool}[type.__class__]
    return type_of_value(value).isSubtypeOf(type)


prim("prim::Uninitialized() -> Any")(lambda: None)
prim("prim::TupleIndex(Any tup, int i) -> Any")(lambda tup, i: tup[i])
prim("prim::unchecked_cast(t x) -> t")(lambda x: x)
prim("prim::unchecked_unwrap_optional(t(a)? optional) -> t(a)")(lambda optional: optional)


@prim("aten::_unwrap_optional(t(a)? optional) -> t(a)")
def unwrap(optional):
    if optional is None:
        raise RuntimeError("Unwrapping null optional")
    return optional


prim("prim::EnumName(AnyEnumType enum) -> str")(lambda enum: enum.name)
for _kind in ("int", "float", "str"):
    prim(f"prim::EnumValue.{_kind}(AnyEnumType enum) -> {_kind}")(lambda enum: enum.value)
prim("prim::id(AnyClassType? x) -> int")(id)
prim("aten::is_scripting() -> bool")(lambda: True)
prim("aten::_get_tracing_state() -> bool")(lambda: False)
prim("aten::is_autocast_enabled() -> bool")(lambda: False)
prim("aten::is_autocast_cpu_enabled() -> bool")(lambda: False)
prim("aten::has_torch_function(...) -> bool")(lambda *values: False)
prim("aten::is_grad_enabled() -> bool")(grad_mode_enabled)


@prim("aten::set_grad_enabled(bool val) -> ()")
def set_grad_enabled(val):
    set_grad_mode(val)


@prim("aten::backward(Tensor self, Tensor? gradient=None, bool? retain_graph=None, bool create_graph=False) -> ()")
def backward(self, gradient, retain_graph, create_graph):
    self.backward(gradient, retain_graph=retain_graph, create_graph=create_graph)


@prim("aten::wait(Future(t) self) -> t")
def wait(self):
    return self.wait()


# ----------------------------------------------------------------------------------------------------- shapes


@prim("aten::broadcast_shapes(int[] a, int[] b) -> int[]")
@prim("aten::_infer_size(int[] a, int[] b) -> int[]")
def infer_size(a, b):
    rank = max(len(a), len(b))
    a, b = [1] * (rank - len(a)) + a, [1] * (rank - len(b)) + b
    for i, (x, y) in enumerate(zip(a, b)):
        if x != y and 1 not in (x, y):
            raise RuntimeError(
                f"The size of tensor a ({x}) must match the size of tensor b ({y}) at non-singleton dimension {i}"
            )
    return [y if x == 1 else x for x, y in zip(a, b)]


@prim("aten::_size_if_not_equal(int[] self_size, int[] other_size) -> int[]?")
def size_if_not_equal(self_size, other_size):
    return None if self_size == other_size else self_size


@prim("aten::_grad_sum_to_size(Tensor(a) self, int[]? size) -> Tensor(a)")
def grad_sum_to_size(self, size):
    return self if size is None else at.sum_to_size(self, size)


@prim("prim::BroadcastSizes(...) -> int[]")
def broadcast_sizes(*sizes):
    result = sizes[0]
    for other in sizes[1:]:
        result = infer_size(result, other)
    return result


@prim("prim::AutogradZero() -> Tensor")
def autograd_zero():
    """No gradient at all: None, as everywhere in this house. In PyTorch: an undefined tensor."""


@prim("prim::AutogradAdd(Any a, Any b) -> Any")
def autograd_add(a, b):
    return b if a is None else a if b is None else a + b


# ----------------------------------------------------------------------------------- index with optional list


@prim("aten::index.Tensor_hacked_twin(Tensor self, Tensor[] indices) -> Tensor")
def index(self, indices):
    return self[tuple(indices)]


@prim(
    "aten::index_put_.hacked_twin(Tensor(a!) self, Tensor[] indices, Tensor values, bool accumulate=False) -> Tensor(a!)"
)
def index_put_(self, indices, values, accumulate):
    return self.index_put_(tuple(indices), values, accumulate)


@prim("aten::index_put.hacked_twin(Tensor self, Tensor[] indices, Tensor values, bool accumulate=False) -> Tensor")
def index_put(self, indices, values, accumulate):
    return self.index_put(tuple(indices), values, accumulate)


@prim("aten::split(Tensor(a -> *) self, int[] split_sizes, int dim=0) -> Tensor(a)[]")
def split(self, split_sizes, dim):
    return list(self.split(split_sizes, dim))


@prim("aten::manual_seed(int seed) -> ()")
def manual_seed(seed):
    from readtorch.csrc.generator import default_generator

    default_generator.manual_seed(seed)
