"""`TensorBase`: what a tensor is to Python before `Tensor` adds its conveniences.

Its operator methods come from the registry, as PyTorch's come from a generated table (`variable_methods`).
In PyTorch: `torch/csrc/autograd/python_variable.cpp`, `tools/autograd/templates/python_variable_methods.cpp`.
Explained in the chapters "Tensor and Storage" and "Autograd".
"""

import weakref

from readtorch.aten import gen_python_functions
from readtorch.aten.functorch.batched_tensor_impl import NO_DATA_OF_BATCH
from readtorch.aten.native.tensor_shape.reshape import matrix_H, mH, mT, numpy_T
from readtorch.aten.native.tensor_shape.view import alias_, detach_
from readtorch.aten.native.unary_ops.complex import imag, real
from readtorch.aten.native_function import packets
from readtorch.aten.python_fallback_kernel import python_detach
from readtorch.aten.sparse_csr_tensor_impl import is_sparse_compressed, is_strided, layout_of
from readtorch.aten.sparse_tensor_impl import is_sparse
from readtorch.aten.torch_function import (
    Public,
    PublicEq,
    class_key,
    is_overridden,
    overridable,
    overridable_alone,
    overridable_property,
    override_property,
    overriders,
)
from readtorch.c10 import scalar_type
from readtorch.c10.cow import mutable_array
from readtorch.c10.device import cpu
from readtorch.c10.dispatch_key import BACKENDS, BATCHED, COPY_ON_WRITE, INFERENCE_TENSOR, MATH_BITS, PYTHON, ZEROTENSOR
from readtorch.c10.layout import sparse_csr
from readtorch.c10.local_dispatch_key_set import threads_with_modes, tls
from readtorch.c10.memory_format import contiguous_format, has_format
from readtorch.c10.size import new_size
from readtorch.c10.tensor_impl import (
    TensorImpl,
    detached,
    has_compatible_shallow_copy_type,
    host_array,
    key_set,
    new,
    set_key_set,
    storage_impl,
    storage_offset,
    strides_of,
)
from readtorch.c10.torch_dispatch_mode_tls import StashTorchDispatchModes, _disabled_torch_dispatch_impl, mode_tls
from readtorch.c10.wrap_dim import wrap_dim_of_some
from readtorch.csrc.utils import tensor_apply, tensor_new  # noqa: F401  (what is no operator)
from readtorch.csrc.utils.tensor_new import legacy_tensor_new

from . import wrapper_subclass
from .node import peek_sequence_nr
from .python_variable_indexing import getitem, setitem
from .variable import (
    autograd_meta,
    grad_dtype,
    keep_input_metadata,
    no_node,
    refresh_view,
    requires_grad,
    set_backward_hooks,
    set_grad_dtype,
    set_requires_grad,
)

INCOMPATIBLE = (
    "Attempted to call `variable.set_data(tensor)`, but `variable` and `tensor` have incompatible tensor type."
)


def operator_methods():
    """Name -> function for every operator that is a method, and for Python's infix operators."""
    methods = {}
    for (module, name), packet in packets.items():
        if packet.is_method:
            methods[name] = gen_python_functions.make_binding(packet, is_method=True)
    methods.update(infix_methods())
    return methods


# Python's name -> (operator, reflected).
_INFIX = {
    "__add__": ("add", False),
    "__radd__": ("add", False),
    "__sub__": ("sub", False),
    "__mul__": ("mul", False),
    "__rmul__": ("mul", False),
    "__truediv__": ("div", False),
    "__floordiv__": ("floor_divide", False),
    "__div__": ("div", False),
    "__idiv__": ("div_", False),
    "__matmul__": ("matmul", False),
    "__rmatmul__": ("matmul", True),
    "__eq__": ("eq", False),
    "__ne__": ("ne", False),
    "__lt__": ("lt", False),
    "__le__": ("le", False),
    "__gt__": ("gt", False),
    "__ge__": ("ge", False),
    "__and__": ("bitwise_and", False),
    "__or__": ("bitwise_or", False),
    "__xor__": ("bitwise_xor", False),
    "__rand__": ("bitwise_and", True),
    "__ror__": ("bitwise_or", True),
    "__rxor__": ("bitwise_xor", True),
    "__lshift__": ("bitwise_left_shift", False),
    "__rshift__": ("bitwise_right_shift", False),
    "__iadd__": ("add_", False),
    "__isub__": ("sub_", False),
    "__imul__": ("mul_", False),
    "__itruediv__": ("div_", False),
    "__ifloordiv__": ("floor_divide_", False),
    "__iand__": ("bitwise_and_", False),
    "__ior__": ("bitwise_or_", False),
    "__ixor__": ("bitwise_xor_", False),
}


# What `__torch_function__` is told of these, if it is not the operator's method: PyTorch has them as methods of their own.
_TOLD_AS = {
    name: Public(name, "torch.Tensor", in_python=name in ("__floordiv__", "__rmatmul__"))
    for name in "__and__ __or__ __xor__ __lshift__ __rshift__ __iand__ __ior__ __ixor__ __floordiv__ __rmatmul__".split()
}
_TOLD_AS["__eq__"] = PublicEq(tensor_new.tensor_of_array)


def infix_methods():
    found = {}
    for name, (operator, reflected) in _INFIX.items():
        packet = packets.get(("torch", operator))
        if packet is not None:
            infix = gen_python_functions.make_infix(name, packet, reflected, _TOLD_AS.get(name))
            found[name] = _named_in_traces(name, infix) if name in _NAMED_IN_TRACES else infix
    return found


# A trace knows these by Python's name: `aten::__and__`. In PyTorch: operators of their own, which call the other.
_NAMED_IN_TRACES = {f"__{i}{name}__" for name in ("and", "or", "xor", "lshift", "rshift") for i in ("", "i")}


def _named_in_traces(name, operator):
    def infix(self, other):
        if threads_with_modes and tls.tracer is not None:
            return tls.tracer.call(f"aten::{name}", [self, other], lambda: operator(self, other))
        return operator(self, other)

    infix.__name__ = infix.__qualname__ = name
    return infix


def refuse_without_storage(t):
    if not is_strided(t) or t._keys & BATCHED:
        raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")


def refuse_compressed(t, what):
    if is_sparse_compressed(t):
        raise RuntimeError(f"Sparse {t._array.layout.name[-3:].upper()} tensors do not have {what}")


SIZE = Public("size", "torch.Tensor")
DIM = Public("dim", "torch.Tensor", alone=True)
NUMEL = Public("numel", "torch.Tensor", alone=True)


def check_inside_transform(name):
    """RuntimeError for `requires_grad_()` or `retain_grad()` in a function that a transform differentiates itself."""
    layer = tls.functorch[-1]
    if layer.legacy or name == "requires_grad_" and layer.inplace_requires_grad_allowed:
        return
    apis = " (or perhaps using torch.autograd.functional.* APIs)" if name == "requires_grad_" else ""
    raise RuntimeError(
        f"You are attempting to call Tensor.{name}(){apis} inside of a function being transformed by a functorch transform. This is "
        "unsupported, please attempt to use the functorch transforms (e.g. grad, vjp, jacrev, jacfwd, hessian) or call "
        f"{name}() outside of a function being transformed instead."
    )


def follow_leaf(t, flag):
    """Make autograd follow a leaf, or not; returns it."""
    if flag and not (t.dtype.is_floating_point or t.dtype.is_complex):
        raise RuntimeError("only Tensors of floating point dtype can require gradients")
    if flag and t._keys & INFERENCE_TENSOR and not tls.inference_mode:
        raise RuntimeError("Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.")
    set_requires_grad(t, flag)
    return t


def _dim_named(dim):
    return dim


_NEVER = ("is_quantized", "is_mkldnn", "is_nested")
_NEVER += ("is_xpu", "is_xla", "is_ipu", "is_mps", "is_mtia", "is_maia", "is_vulkan")


class TensorBase(TensorImpl):
    """Attributes and methods that PyTorch implements in C++."""

    __slots__ = ("__dict__",)

    methods = operator_methods()
    locals().update(methods)

    __getitem__ = getitem
    __setitem__ = setitem
    getitem.__name__, setitem.__name__ = "__getitem__", "__setitem__"
    methods["__pow__"].__name__, methods["__ipow__"].__name__ = (
        "pow",
        "pow_",
    )  # wrapped, they keep their names in PyTorch
    del methods

    # Views that are spelled as attributes.
    T = overridable_property(numpy_T.call, name="T")
    H = overridable_property(matrix_H.call, name="H")
    mT = overridable_property(mT.call, name="mT")
    mH = overridable_property(mH.call, name="mH")
    real = overridable_property(real.call, lambda self, value: real.call(self).copy_(value), name="real")
    imag = overridable_property(imag.call, lambda self, value: imag.call(self).copy_(value), name="imag")

    # ------------------------------------------------------------------------------------ sizes, type, device

    @overridable_property.quick
    def shape(self):
        if overriders and is_overridden((self,)):
            return override_property("shape", "__get__", self)
        if threads_with_modes and tls.tracer is not None:
            return tls.tracer.shape(self)
        return new_size(self._array.shape)

    def size(self, dim=None, /, **named):
        """The shape, or the size of one dimension."""
        if overriders and is_overridden((self,)):
            return SIZE.override((self,) if dim is None else (self, dim), named)
        dim = _dim_named(**named) if named else dim
        shape = self._array.shape
        if threads_with_modes and tls.tracer is not None:
            return tls.tracer.shape(self) if dim is None else tls.tracer.size(self, dim)
        return new_size(shape) if dim is None else shape[wrap_dim_of_some(dim, len(shape))]

    @overridable
    def stride(self, dim=None):
        """The strides counted in elements, or one of them."""
        refuse_compressed(self, "strides")
        strides = strides_of(self)
        return strides if dim is None else strides[wrap_dim_of_some(dim, len(strides))]

    @overridable_alone
    def storage_offset(self):
        """How many elements of the storage lie before the first element."""
        return storage_offset(self) if is_strided(self) else 0

    def dim(self):
        if overriders and is_overridden((self,)):
            return DIM.override((self,), {})
        return self._array.ndim

    def ndimension(self):
        return self.dim()

    ndim = overridable_property(lambda self: self._array.ndim, name="ndim")

    def numel(self):
        if overriders and is_overridden((self,)):
            return NUMEL.override((self,), {})
        if threads_with_modes and tls.tracer is not None:
            return tls.tracer.numel(self)
        return self._array.size

    def nelement(self):
        return self.numel()

    @overridable_alone
    def element_size(self):
        return self._array.itemsize

    itemsize = overridable_property(lambda self: self._array.itemsize, name="itemsize")

    @overridable_property
    def nbytes(self):
        if is_sparse(self):
            raise RuntimeError(
                "nbytes is not defined for sparse tensors.  If you want the size of the "
                "constituent tensors, add the nbytes of the indices and values.  If you want the "
                "size of the  equivalent dense tensor, multiply numel() by element_size()"
            )
        return self._array.nbytes

    @overridable_property.quick
    def dtype(self):
        if overriders and is_overridden((self,)):
            return override_property("dtype", "__get__", self)
        return scalar_type.by_numpy[self._array.dtype]

    @overridable_property.quick
    def device(self):
        if overriders and is_overridden((self,)):
            return override_property("device", "__get__", self)
        return cpu if self._storage_impl is None else self._storage_impl.device

    @overridable_property
    def layout(self):
        return layout_of(self)

    is_cuda = overridable_property(lambda self: self.device.type == "cuda", name="is_cuda")
    is_cpu = overridable_property(lambda self: self.device.type == "cpu", name="is_cpu")
    is_meta = overridable_property(lambda self: self.device.type == "meta", name="is_meta")
    is_sparse = overridable_property(is_sparse)
    is_sparse_csr = overridable_property(lambda self: layout_of(self) is sparse_csr, name="is_sparse_csr")
    # Kinds and devices that PyTorch knows and this book does not build.
    locals().update({name: overridable_property(lambda self: False, name=name) for name in _NEVER})

    @overridable_alone
    def get_device(self):
        return -1 if self.device.index is None else self.device.index

    @overridable_alone
    def data_ptr(self):
        """The address of the first element, for writing, too."""
        mutable_array(self)
        return self.const_data_ptr()

    @overridable_alone
    def const_data_ptr(self):
        """The address of the first element, for reading only."""
        refuse_without_storage(self)
        if not self._array.size:
            return 0
        return storage_impl(self).data_ptr() + storage_offset(self) * self._array.itemsize

    @overridable
    def new(self, *args, **kwargs):
        """A tensor of this one's dtype, made the old way: see `legacy_tensor_new`."""
        return legacy_tensor_new(self.dtype, *args, **kwargs)

    @overridable
    def is_contiguous(self, memory_format=contiguous_format):
        """Whether the elements lie in memory in the order of `memory_format`."""
        refuse_compressed(self, "is_contiguous")
        return not is_sparse(self) and has_format(self._array, memory_format)

    # -------------------------------------------------------------------------------------- autograd's state

    @overridable_property.quick
    def requires_grad(self):
        if overriders and is_overridden((self,)):
            return override_property("requires_grad", "__get__", self)
        return requires_grad(self)

    @requires_grad.setter
    def requires_grad(self, flag):
        if not self.is_leaf:
            advice = (
                " If you want to use a computed variable in a subgraph that doesn't require differentiation "
                "use var_no_grad = var.detach()."
            )
            raise RuntimeError("you can only change requires_grad flags of leaf variables." + ("" if flag else advice))
        follow_leaf(self, flag)

    @overridable
    def requires_grad_(self, requires_grad=True):
        """Make autograd follow this leaf (or not). Returns self. Raises RuntimeError for what cannot have a gradient."""
        if threads_with_modes and tls.functorch:
            check_inside_transform("requires_grad_")
        if not self.is_leaf:
            if not requires_grad:
                raise RuntimeError(
                    "you can only change requires_grad flags of leaf variables. If you want "
                    "to use a computed variable in a subgraph that doesn't require "
                    "differentiation use var_no_grad = var.detach()."
                )
            return self
        return follow_leaf(self, requires_grad)

    @overridable_property.quick
    def is_leaf(self):
        if overriders and is_overridden((self,)):
            return override_property("is_leaf", "__get__", self)
        if self._base is not None:
            refresh_view(self)
        return self._edge is None or self._edge[0] is None

    @overridable_property.quick
    def grad_fn(self):
        if overriders and is_overridden((self,)):
            return override_property("grad_fn", "__get__", self)
        if self._base is not None:
            refresh_view(self)
        return None if self._edge is None else self._edge[0]

    @overridable_property
    def output_nr(self):
        return 0 if self._edge is None else self._edge[1]

    @overridable_property.quick
    def grad(self):
        if overriders and is_overridden((self,)):
            return override_property("grad", "__get__", self)
        meta = self._autograd_meta
        grad = None if meta is None else meta.grad
        if grad is None and self._edge is not None and self._edge[0] is not None and not (meta and meta.retains_grad):
            _warn_non_leaf_grad()
        return grad

    @grad.setter
    def grad(self, value):
        if value is None:
            if self._autograd_meta is not None:
                self._autograd_meta.grad = None
            return
        _check_assigned_grad(self, value)
        autograd_meta(self).grad = value

    @grad.deleter
    def grad(self):
        self.grad = None

    @overridable_property
    def grad_dtype(self):
        """The dtype to which backward brings this leaf's gradients; None if they stay what they are."""
        if not self.is_leaf:
            raise RuntimeError("grad_dtype can only be accessed on leaf tensors.")
        return grad_dtype(self)

    @grad_dtype.setter
    def grad_dtype(self, dtype):
        if dtype is not None and not isinstance(dtype, scalar_type.dtype):
            raise RuntimeError(f"grad_dtype must be a torch.dtype or None, but got {type(dtype).__name__}")
        if not self.is_leaf:
            raise RuntimeError("grad_dtype can only be set on leaf tensors.")
        grad = None if self._autograd_meta is None else self._autograd_meta.grad
        if dtype is not None and grad is not None and grad.dtype is not dtype:
            raise RuntimeError(
                f"Cannot set grad_dtype to '{scalar_type.SCALAR_TYPE_NAMES[dtype]}' because there is already a gradient "
                f"with dtype '{scalar_type.C_TYPE_NAMES[grad.dtype]}'. Please clear the gradient (.grad = None) before changing grad_dtype, or ensure "
                "the new grad_dtype matches the existing gradient's dtype."
            )
        set_grad_dtype(self, dtype)

    # for code that gives its own class a property `grad`; `__torch_function__` is told of `grad`
    _grad = overridable_property(*grad.parts[:3], name="grad", quick=True)

    @overridable_property
    def retains_grad(self):
        return self._autograd_meta is not None and self._autograd_meta.retains_grad

    @overridable_alone
    def retain_grad(self):
        """Keep the gradient of this non-leaf in `.grad`, too."""
        if not requires_grad(self):
            raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
        if threads_with_modes and tls.functorch:
            check_inside_transform("retain_grad")
        if self.is_leaf or self.retains_grad:
            return
        meta = autograd_meta(self)
        meta.retains_grad = True
        node, nr = self._edge

        target = weakref.ref(self)  # the node must not keep its own result alive

        def keep(grad):
            tensor = target()
            if tensor is not None:
                old = tensor._autograd_meta.grad
                tensor._autograd_meta.grad = grad.clone(memory_format=contiguous_format) if old is None else old + grad

        node._own_hooks().retains_grad[nr] = keep

    @overridable_property
    def _backward_hooks(self):
        """What `register_hook` registered since this tensor was last written to: an OrderedDict id -> hook, or None."""
        return None if self._autograd_meta is None else self._autograd_meta.backward_hooks

    @_backward_hooks.setter
    def _backward_hooks(self, hooks):
        set_backward_hooks(self, hooks)

    @overridable_property
    def _post_accumulate_grad_hooks(self):
        """What `register_post_accumulate_grad_hook` registered: an OrderedDict id -> hook, or None."""
        return None if self._autograd_meta is None else self._autograd_meta.post_accumulate_grad_hooks

    @_post_accumulate_grad_hooks.setter
    def _post_accumulate_grad_hooks(self, hooks):
        autograd_meta(self).post_accumulate_grad_hooks = hooks

    @overridable_property
    def _version(self):
        if self._keys & INFERENCE_TENSOR:
            raise RuntimeError("Inference tensors do not track version counter.")
        return self._counter[0]

    @overridable_alone
    def _is_view(self):
        return self._base is not None

    @overridable_property.quick
    def data(self):
        """The same elements without history, and with a version counter of their own."""
        if overriders and is_overridden((self,)):
            return override_property("data", "__get__", self)
        if key_set(self) & BATCHED:
            raise RuntimeError(NO_DATA_OF_BATCH)
        seen = python_detach(self)
        return detached(self) if seen is None else seen

    @data.setter
    def data(self, other):
        if not isinstance(other, TensorImpl):
            raise TypeError(f"Variable data has to be a tensor, but got {type(other).__name__}")
        if not has_compatible_shallow_copy_type(self, other):
            raise RuntimeError(INCOMPATIBLE)
        if self.requires_grad and not (other.dtype.is_floating_point or other.dtype.is_complex):
            raise RuntimeError("data set to a tensor that requires gradients must be floating point or complex dtype")
        keep_input_metadata(self)
        if self._autograd_meta is not None and (other.dtype is not self.dtype or other.device != self.device):
            self._autograd_meta.grad_accumulator = (
                no_node  # graphs from before end in a node for another kind of gradient
            )
            self._autograd_meta.is_plain = False
        self._array = other._array
        of_memory = BACKENDS | MATH_BITS | COPY_ON_WRITE
        set_key_set(self, key_set(self) & ~of_memory | key_set(other) & of_memory)
        self._storage_impl = storage_impl(other)

    @data.deleter
    def data(self):
        raise RuntimeError("Deleting tensor data is not allowed. Delete tensor instead!")

    @overridable_property
    def name(self):
        return None if self._autograd_meta is None else self._autograd_meta.name

    @overridable_alone
    def detach_(self):
        """Cut this tensor off from the graph that made it."""
        if mode_tls.pre_dispatch is not None:
            return detach_.call(self)
        if self._base is not None:
            raise RuntimeError(
                "Can't detach views in-place. Use detach() instead. If you are using "
                "DistributedDataParallel (DDP) for training, and gradient_as_bucket_view is "
                "set as True, gradients are views of DDP buckets, and hence detach_() cannot "
                "be called on these gradients. To fix this error, please refer to the "
                "Optimizer.zero_grad() function in torch/optim/optimizer.py as the solution."
            )
        if self.grad_fn is not None:
            autograd_meta(self).detached_at = peek_sequence_nr()
        set_requires_grad(self, False)
        if self._autograd_meta is not None:
            self._autograd_meta.forward_grad = None
        return self

    @overridable_alone
    def tolist(self):
        """The elements as nested lists of Python numbers; a plain number if there are no dimensions."""
        refuse_without_storage(self)
        if key_set(self) & PYTHON:
            raise RuntimeError(f".tolist() is not supported for tensor subclasses, got {type(self).__name__}")
        if threads_with_modes and tls.tracer is not None:
            tls.tracer.warn_of_conversion("list")
        if self._keys & ZEROTENSOR:
            raise RuntimeError("tolist() shouldn't be called on a tensor with unallocated storage")
        array = host_array(self)
        return array.tolist() if array.dtype.kind != "V" and array.dtype.isbuiltin == 1 else array.astype("f4").tolist()

    _make_subclass = staticmethod(wrapper_subclass._make_subclass)
    _make_wrapper_subclass = staticmethod(wrapper_subclass._make_wrapper_subclass)
    __torch_dispatch__ = staticmethod(_disabled_torch_dispatch_impl)

    def as_subclass(self, cls):
        """The same elements and history as a tensor of class `cls`. Raises TypeError for what is no subclass of Tensor."""
        wrapper_subclass.check_tensor_class(cls)
        with StashTorchDispatchModes():
            made, t = alias_.call(self), new(cls)
        t._array, t._keys, t._counter, t._edge = made._array, made._keys | class_key(cls), made._counter, made._edge
        t._storage_impl, t._base, t._autograd_meta = made._storage_impl, made._base, made._autograd_meta
        if hasattr(made, "_creation"):
            t._creation, t._view_version = made._creation, made._view_version
        return t


_TensorMeta = type(TensorBase)  # in PyTorch a metaclass of its own


def _warn_non_leaf_grad():
    import warnings

    warnings.warn(
        "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad "
        "attribute won't be populated during autograd.backward(). If you indeed want the .grad "
        "field to be populated for a non-leaf Tensor, use .retain_grad() on the non-leaf Tensor. "
        "If you access the non-leaf Tensor by mistake, make sure you access the leaf Tensor "
        "instead. See github.com/pytorch/pytorch/pull/30531 for more information.",
        UserWarning,
        stacklevel=3,
    )


def _check_assigned_grad(t, grad):
    if not isinstance(grad, TensorImpl):
        raise TypeError(f"assigned grad expected to be a Tensor or None but got grad of type {type(grad).__name__}")
    if grad is t:
        raise RuntimeError("can't assign Variable as its own grad")
    expected = grad_dtype(t) if t.is_leaf else t.dtype
    if expected is not None and grad.dtype is not expected:
        raise RuntimeError(
            f"attempting to assign a gradient with dtype '{scalar_type.C_TYPE_NAMES[grad.dtype]}' to a tensor with "
            f"grad_dtype '{scalar_type.SCALAR_TYPE_NAMES[expected]}'. The gradient must match "
            "the tensor's grad_dtype (defaults to the tensor's dtype). You can set the "
            "tensor's grad_dtype attribute with a specific dtype, or None to allow any "
            "dtype. Set grad_dtype with caution. Diverging the dtypes of a tensor and its "
            "gradient may break downstream systems that assume they match."
        )
    if (grad._keys ^ t._keys) & BACKENDS and grad.device.type != t.device.type:
        raise RuntimeError(
            f"attempting to assign a gradient with device type '{grad.device.type}' to a tensor with device type "
            f"'{t.device.type}'. Please ensure that the gradient and the tensor are on the same device"
        )
    if grad._array.shape != t._array.shape:
        raise RuntimeError(
            f"attempting to assign a gradient of size '{list(grad._array.shape)}' to a "
            f"tensor of size '{list(t._array.shape)}'. Please ensure that the gradient and "
            "the tensor are the same size"
        )
