"""`class Tensor`: TensorBase with the methods that PyTorch writes in Python.

In PyTorch: `torch/_tensor.py`. Explained in the chapter "Tensor and Storage".
"""

import functools
import math
import warnings
from collections import OrderedDict

from . import _C, _linalg_utils, _tensor_str, _utils, autograd
from . import storage as storages
from ._dim_order import dim_order
from .aten.functorch.batched_tensor_impl import NO_DATA, refuse_control_flow
from .aten.sparse_csr_tensor_impl import in_words, is_sparse_compressed, is_strided, names_of
from .aten.sparse_tensor_impl import is_sparse
from .aten.torch_function import DisableTorchFunctionSubclass, overridable, overridable_alone, overriders
from .c10 import tensor_impl
from .c10.cow import materialize
from .c10.device import current_device
from .c10.dispatch_key import CONJUGATE, MATH_BITS, NO_STORAGE, PYTHON, ZEROTENSOR
from .c10.local_dispatch_key_set import grad_mode_enabled, threads_with_modes, trace_under_way
from .c10.scalar_type import SCALAR_TYPE_NAMES, get_default_dtype
from .c10.tensor_impl import key_set, only_element, seen_by_python, storage_impl, storage_offset, strides_of
from .c10.torch_dispatch_mode_tls import has_torch_dispatch
from .csrc import storage_sharing
from .csrc.autograd.hooks import RemovableHandle
from .csrc.autograd.python_variable import TensorBase
from .csrc.autograd.variable import requires_grad
from .csrc.tensor.python_tensor import tensortype, type_named
from .csrc.utils.disable_torch_function import (
    _disabled_torch_function_impl,
    handle_torch_function,
    has_torch_function_unary,
    has_torch_function_variadic,
)
from .csrc.utils.tensor_dlpack import let_stream_wait
from .csrc.utils.tensor_new import legacy_tensor_new
from .csrc.utils.tensor_numpy import from_numpy

NOT_NUMPYS = {"bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"}

_REINFORCE = """reinforce() was removed.
Use torch.distributions instead.
See https://pytorch.org/docs/main/distributions.html

Instead of:

probs = policy_network(state)
action = probs.multinomial()
next_state, reward = env.step(action)
action.reinforce(reward)
action.backward()

Use:

probs = policy_network(state)
# NOTE: categorical is equivalent to what used to be called multinomial
m = torch.distributions.Categorical(probs)
action = m.sample()
next_state, reward = env.step(action)
loss = -m.log_prob(action) * reward
loss.backward()
"""


class Tensor(TensorBase):
    """A multi-dimensional array of one dtype that remembers how it was computed."""

    __slots__ = ()

    __hash__ = object.__hash__

    def __new__(cls, *args, **kwargs):
        """`Tensor()`, `Tensor(2, 3)`, `Tensor([1, 2])`: the old way; `tensor` and `empty` say what is meant."""
        made = legacy_tensor_new(None, *args, **kwargs)
        return made if cls is Tensor else cls._make_subclass(cls, made)

    def __init_subclass__(cls, **kwargs):
        """A class with a `__torch_dispatch__` does without the default `__torch_function__`."""
        # in PyTorch: the work of the metaclass, `THPVariableMetaType_init`
        super().__init_subclass__(**kwargs)
        is_default = getattr(cls.__torch_function__, "__func__", None) is Tensor.__torch_function__.__func__
        if is_default and has_torch_dispatch(cls):
            cls.__torch_function__ = _disabled_torch_function_impl

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        """Makes the call, and of its results tensors of class `cls`. What subclasses override, and end with."""
        if not all([issubclass(cls, t) for t in types]):
            return NotImplemented
        with DisableTorchFunctionSubclass():
            result = func(*args, **(kwargs or {}))
            return result if func in get_default_nowrap_functions() else _convert(result, cls)

    def backward(self, gradient=None, retain_graph=None, create_graph=False, inputs=None):
        """Add the gradient of this tensor to `.grad` of the leaves it was computed from; see `autograd.backward`."""
        if overriders and has_torch_function_unary(self):
            return handle_torch_function(
                Tensor.backward,
                (self,),
                self,
                gradient=gradient,
                retain_graph=retain_graph,
                create_graph=create_graph,
                inputs=inputs,
            )
        autograd.backward(self, gradient, retain_graph, create_graph, inputs=inputs)

    def register_hook(self, hook):
        """`hook(grad)` runs when the gradient of this tensor is known and may return another to replace it."""
        if overriders and has_torch_function_unary(self):
            return handle_torch_function(Tensor.register_hook, (self,), self, hook)
        if not requires_grad(self):
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        if self._backward_hooks is None:
            self._backward_hooks = OrderedDict()
            if self.grad_fn is not None:
                self.grad_fn._register_hook_dict(self)
        return _registered(self._backward_hooks, hook)

    def register_post_accumulate_grad_hook(self, hook):
        """`hook(tensor)` runs after a gradient was added to this leaf's `.grad`."""
        if overriders and has_torch_function_unary(self):
            return handle_torch_function(Tensor.register_post_accumulate_grad_hook, (self,), self, hook)
        if not requires_grad(self):
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        if self.grad_fn is not None:
            raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
        if self._post_accumulate_grad_hooks is None:
            self._post_accumulate_grad_hooks = OrderedDict()
        return _registered(self._post_accumulate_grad_hooks, hook)

    def __repr__(self, *, tensor_contents=None):
        if overriders and has_torch_function_unary(self):
            return handle_torch_function(Tensor.__repr__, (self,), self, tensor_contents=tensor_contents)
        if trace_under_way():
            trace_under_way().not_recorded("repr")
        return _tensor_str._str(self, tensor_contents=tensor_contents)

    def __len__(self):
        if overriders and has_torch_function_unary(self):
            return handle_torch_function(Tensor.__len__, (self,), self)
        if self._array.ndim == 0:
            raise TypeError("len() of a 0-d tensor")
        if trace_under_way():
            trace_under_way().warn(
                "Using len to get tensor shape might cause the trace to be incorrect. Recommended usage would "
                "be tensor.shape[0]. Passing a tensor of different shape might lead to errors or silently "
                "give incorrect results."
            )
        return self._array.shape[0]

    def __iter__(self):
        if self.dim() == 0:
            raise TypeError("iteration over a 0-d tensor")
        if trace_under_way():
            trace_under_way().warn(
                "Iterating over a tensor might cause the trace to be incorrect. Passing a tensor of different "
                "shape won't change the number of iterations executed (and might lead to errors or silently "
                "give incorrect results)."
            )
        return iter(self.unbind(0))

    __pos__ = TensorBase.positive
    __neg__ = TensorBase.neg
    __abs__ = TensorBase.abs

    def __reversed__(self):
        if overriders and has_torch_function_unary(self):
            return handle_torch_function(Tensor.__reversed__, (self,), self)
        return self if self._array.ndim == 0 else self.flip(0)

    def __delitem__(self, index):
        raise TypeError("Tensor does not support deleting items")

    # ----------------------------------------------------------------------------------------- Python numbers

    @overridable_alone
    def __bool__(self):
        if trace_under_way():
            trace_under_way().warn_of_conversion("boolean")
        if threads_with_modes:
            refuse_control_flow(self)
        if self._array.size != 1:
            kind = "no values" if self._array.size == 0 else "more than one value"
            raise RuntimeError(f"Boolean value of Tensor with {kind} is ambiguous")
        return bool(self.item() if seen_by_python(self) else only_element(self).item())

    __nonzero__ = __bool__

    @overridable_alone
    def __float__(self):
        return float(self._number("float"))

    @overridable_alone
    def __int__(self):
        return int(self._number("integer"))

    def _number(self, kind):
        """The only element. A trace records that it becomes a Python `kind`."""
        if self._array.size != 1:
            raise ValueError("only one element tensors can be converted to Python scalars")
        trace = trace_under_way()
        if trace is None:
            return self.item()
        trace.warn_of_conversion(kind)
        return trace.paused(self.item)

    __long__ = __int__

    @overridable_alone
    def __complex__(self):
        return complex(self._number("complex"))

    @overridable_alone
    def __index__(self):
        if self._array.size != 1 or self._array.dtype.kind not in "iub":
            raise TypeError("only integer tensors of a single element can be converted to an index")
        if trace_under_way():
            trace_under_way().warn_of_conversion("index")
        return int(self.item() if seen_by_python(self) else only_element(self).item())

    def __contains__(self, element):
        if overriders and has_torch_function_unary(self):
            return handle_torch_function(Tensor.__contains__, (self,), self, element)
        if isinstance(element, (TensorBase, int, float, complex, bool)):
            return bool((self == element).any())
        raise RuntimeError(f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}.")

    def __format__(self, format_spec):
        if overriders and has_torch_function_unary(self):
            return handle_torch_function(Tensor.__format__, (self,), self, format_spec)
        if self._array.ndim == 0 and not self.is_meta and type(self) is Tensor:
            return self._number("number").__format__(format_spec)
        return object.__format__(self, format_spec)

    # ----------------------------------------------------------------------------------------- types by name

    @overridable
    def type(self, dtype=None, non_blocking=False):
        """The old name of this tensor's type, "torch.FloatTensor"; with a dtype or such a name, the tensor cast to it."""
        if dtype is None:
            prefix = "" if self.device.type == "cpu" else f"{self.device.type}."
            prefix += "sparse." if is_sparse(self) else ""
            if is_sparse_compressed(self):
                raise RuntimeError("Unimplemented backend SparseCsrCPU")
            return f"torch.{prefix}{SCALAR_TYPE_NAMES[self.dtype]}Tensor"
        if isinstance(dtype, str):
            dtype = type_named(dtype)
        if dtype is Tensor:
            return self.to("cpu", get_default_dtype(), non_blocking=non_blocking)
        if isinstance(dtype, type) and not isinstance(dtype, tensortype):
            raise ValueError(f"invalid type: '{dtype.__name__}'")
        if isinstance(dtype, tensortype):
            return self.to("cuda" if dtype.is_cuda else "cpu", dtype.dtype, non_blocking=non_blocking)
        return self.to(dtype, non_blocking=non_blocking)

    # ----------------------------------------------------------------------------------------- NumPy and copies

    __array_priority__ = 1000  # numpy hands `ndarray + tensor` to us

    @overridable
    def numpy(self, *, force=False):
        """The elements as a NumPy array over the same memory, which cannot be resized from then on."""
        if not is_strided(self):
            raise TypeError(f"can't convert {in_words(self)} layout tensor to numpy. Use Tensor.to_dense() first.")
        if trace_under_way():
            trace_under_way().warn_of_conversion("NumPy array")
        if key_set(self) & PYTHON:
            raise RuntimeError(".numpy() is not supported for tensor subclasses.")
        if key_set(self) & NO_STORAGE and not (requires_grad(self) and grad_mode_enabled()):
            raise RuntimeError(NO_DATA)
        if force:
            return self.detach().cpu().resolve_conj().resolve_neg().numpy()
        if self.device.type != "cpu":
            raise TypeError(
                f"can't convert {self.device} device type tensor to numpy. Use Tensor.cpu() to copy the tensor "
                "to host memory first."
            )
        if requires_grad(self) and grad_mode_enabled():
            raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
        if self._keys & MATH_BITS:
            refuse_math_bits(self)
        if self.dtype.name in NOT_NUMPYS:
            raise TypeError(f"Got unsupported ScalarType {SCALAR_TYPE_NAMES[self.dtype]}")
        materialize(storage_impl(self)).resizable = False
        return self._array

    def __dlpack__(self, *, stream=-1, max_version=None, dl_device=None, copy=None):
        """A DLPack capsule: this tensor's memory for another library. See `readtorch.utils.dlpack`.

        max_version: (1, …) for a capsule that tells its version; None or (0, …) for an older one. dl_device: (type, index) of where
        the other wants it. copy: True for a copy in any case, False for ValueError where one is needed. stream: on a GPU, the handle of
        the stream that will use the memory, which then waits for the current one; None or 1 is the default stream, -1: none waits.

        Raises BufferError for a tensor that requires grad, is conjugated, sparse or without data.
        """
        if overriders and has_torch_function_unary(self):
            asked = {"stream": stream, "max_version": max_version, "dl_device": dl_device, "copy": copy}
            return handle_torch_function(Tensor.__dlpack__, (self,), self, **asked)
        if requires_grad(self):
            raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
        if self._keys & CONJUGATE:
            raise BufferError("Can't export tensors with the conjugate bit set")
        if not is_strided(self):
            raise BufferError("Can't export tensors with layout other than torch.strided")
        if self.device.type == "cuda" and self.device.index != current_device.index:
            raise BufferError(
                f"Can't export tensors on a different CUDA device index. Expected: {self.device.index}. "
                f"Current device: {current_device.index}."
            )
        if stream is not None and type(stream) is not int:
            raise TypeError("stream must be ``int`` or ``none``")
        if self.device.type == "cpu" and stream not in (None, -1):
            raise AssertionError("stream should be None on cpu.")
        if self.device.type == "cuda" and stream != -1:
            let_stream_wait(stream)
        if max_version is None or max_version[0] < 1:
            return _C._to_dlpack(self, dl_device=dl_device, copy=copy)
        return _C._to_dlpack_versioned(self, dl_device=dl_device, copy=copy)

    def __dlpack_device__(self):
        """(`DLDeviceType`, index) of the device that holds the elements."""
        if overriders and has_torch_function_unary(self):
            return handle_torch_function(Tensor.__dlpack_device__, (self,), self)
        from readtorch.utils.dlpack import DLDeviceType

        if self.device.type not in ("cpu", "cuda"):
            raise ValueError(f"Unknown device type {self.device.type} for Dlpack")
        if self.device.type == "cuda":
            return DLDeviceType.kDLCUDA, self.device.index
        return DLDeviceType.kDLCUDAHost if self.is_pinned() else DLDeviceType.kDLCPU, 0

    @property
    def __cuda_array_interface__(self):
        """{typestr, shape, strides (bytes; None: contiguous), data: (address, False), version} of a tensor on a GPU, for
        other libraries that compute there."""
        if overriders and has_torch_function_unary(self):
            return handle_torch_function(Tensor.__cuda_array_interface__.__get__, (self,), self)
        if not self.is_cuda:
            raise AttributeError(
                f"Can't get __cuda_array_interface__ on non-CUDA tensor type: {self.type()} If CUDA data "
                "is required use tensor.cuda() to copy tensor to device memory."
            )
        if self.is_sparse:
            raise AttributeError(
                f"Can't get __cuda_array_interface__ on sparse type: {self.type()} "
                "Use Tensor.to_dense() to convert to a dense tensor first."
            )
        from .c10.cuda.runtime import is_simulated

        if is_simulated(self.device.index):
            raise AttributeError(
                "Can't get __cuda_array_interface__ of a tensor on a simulated device: its address is no GPU's."
            )
        if self.requires_grad:
            raise RuntimeError(
                "Can't get __cuda_array_interface__ on Variable that requires grad. "
                "If gradients aren't required, use var.detach() to get Variable that doesn't require grad."
            )
        array = self._array
        return {
            "typestr": array.dtype.str,
            "shape": tuple(self.shape),
            "strides": None if self.is_contiguous() else array.strides,
            "data": (self.data_ptr() if self.numel() > 0 else 0, False),
            "version": 2,
        }

    @overridable_alone
    def untyped_storage(self):
        """The bytes that this tensor looks at, which its views look at too."""
        if is_sparse(self):
            raise NotImplementedError("Cannot access storage of SparseTensorImpl")
        if is_sparse_compressed(self):
            raise NotImplementedError("Cannot access storage of SparseCsrTensorImpl")
        return storages.untyped(storage_impl(self))

    @overridable_alone
    def to_sparse_coo(self):
        """The same elements in the layout of coordinates and values."""
        return self.to_sparse()

    def dim_order(self, *, ambiguity_check=False):
        """The dimensions from the outermost in memory to the innermost.

        ambiguity_check: whether to raise RuntimeError where several orders would do, or a list of memory formats, exactly
        one of which must then fit.
        """
        if overriders and has_torch_function_unary(self):
            return handle_torch_function(Tensor.dim_order, (self,), self)
        return dim_order(self, ambiguity_check)

    # ---------------------------------------------------------------------------------------- older interfaces

    def resize(self, *sizes):
        """A tensor of other sizes with as many elements, in PyTorch's first versions: `reshape` today."""
        if overriders and has_torch_function_unary(self):
            return handle_torch_function(Tensor.resize, (self,), self, *sizes)
        warnings.warn("non-inplace resize is deprecated", stacklevel=2)
        return _resized(self, sizes)

    def resize_as(self, tensor):
        """The same with the sizes of another tensor."""
        if overriders and has_torch_function_variadic(self, tensor):
            return handle_torch_function(Tensor.resize_as, (self, tensor), self, tensor)
        warnings.warn("non-inplace resize_as is deprecated", stacklevel=2)
        return _resized(self, tensor.size())

    def solve(self, other):
        """Removed. Raises RuntimeError, as do `lstsq`, `eig` and `symeig`."""
        return _linalg_utils.solve(self, other)

    def lstsq(self, other):
        """Removed. Raises RuntimeError."""
        return _linalg_utils.lstsq(self, other)

    def eig(self, eigenvectors=False):
        """Removed. Raises RuntimeError."""
        return _linalg_utils.eig(self, eigenvectors=eigenvectors)

    def symeig(self, eigenvectors=False):
        """Removed. Raises RuntimeError."""
        return _linalg_utils._symeig(self, eigenvectors=eigenvectors)

    def reinforce(self, reward):
        """Removed. Raises RuntimeError, which shows what to write instead."""
        raise RuntimeError(_REINFORCE)

    def storage(self):
        """The same bytes as elements of this tensor's dtype (an older interface)."""
        if overriders and has_torch_function_unary(self):
            return handle_torch_function(Tensor.storage, (self,), self)
        storages._warn_typed_storage_removal()
        return self._typed_storage()

    def _typed_storage(self):
        return storages.TypedStorage(wrap_storage=self.untyped_storage(), dtype=self.dtype, _internal=True)

    def storage_type(self):
        """The class of `storage()` by its older name, such as `FloatStorage`."""
        if overriders and has_torch_function_unary(self):
            return handle_torch_function(Tensor.storage_type, (self,), self)
        storages._warn_typed_storage_removal()
        return self._typed_storage()._get_legacy_storage_class()

    def is_shared(self):
        """Whether other processes see the same memory."""
        if overriders and has_torch_function_unary(self):
            return handle_torch_function(Tensor.is_shared, (self,), self)
        return self.untyped_storage().is_shared()

    def share_memory_(self):
        """Move the storage to memory that other processes see. Not resizable afterwards; see `multiprocessing`."""
        if overriders and has_torch_function_unary(self):
            return handle_torch_function(Tensor.share_memory_, (self,), self)
        storage_sharing.share(storage_impl(self), only=self)
        return self

    def module_load(self, other, assign=False):
        """The tensor that `load_state_dict` puts in this one's place if it swaps: see `readtorch.__future__`."""
        if has_torch_function_variadic(self, other):
            return handle_torch_function(Tensor.module_load, (self, other), self, other, assign=assign)
        return other.detach() if assign else self.copy_(other).detach()

    def __array__(self, dtype=None, copy=None):
        if overriders and has_torch_function_unary(self):
            return handle_torch_function(Tensor.__array__, (self,), self, dtype=dtype)
        array = self.numpy()
        return array if dtype is None else array.astype(dtype, copy=False)

    def __array_wrap__(self, array, context=None, return_scalar=False):
        """What NumPy's functions of a tensor become: tensors."""
        if overriders and has_torch_function_unary(self):
            return handle_torch_function(Tensor.__array_wrap__, (self,), self, array=array)
        if array.dtype == bool:
            array = array.astype("uint8")  # from before there was a bool dtype
        return from_numpy(array)

    def __deepcopy__(self, memo):
        if overriders and has_torch_function_unary(self):
            return handle_torch_function(Tensor.__deepcopy__, (self,), self, memo)
        if not self.is_leaf:
            raise RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) support the "
                "deepcopy protocol at the moment.  If you were attempting to deepcopy a "
                "module, this may be because of a torch.nn.utils.weight_norm usage, see "
                "https://github.com/pytorch/pytorch/pull/103001"
            )
        if id(self) in memo:
            return memo[id(self)]
        if type(self) is not Tensor:
            self._check_deepcopy()
        return _utils.deepcopy_tensor(self, memo)

    def _check_deepcopy(self):
        """PyTorch fills a new tensor of this class; a class of which it can make none has to say itself how it is copied."""
        by_clone = not is_strided(self) or self.is_meta or self.data_ptr() == 0
        made = self.clone() if by_clone else self.new_empty([])
        if type(made) is type(self):
            return
        if by_clone:
            raise RuntimeError(
                "The default implementation of __deepcopy__() for wrapper subclasses only works for subclass types that "
                "implement clone() and for which cloning returns another instance of the same subclass. You should either "
                "properly implement clone() for your subclass or override __deepcopy__() if it is intended behavior for "
                "clone() to return an instance of a different type."
            )
        raise RuntimeError(
            "The default implementation of __deepcopy__() for non-wrapper subclasses only works for subclass types that "
            "implement new_empty() and for which that function returns another instance of the same subclass. You should "
            "either properly implement new_empty() for your subclass or override __deepcopy__() if it is intended behavior "
            "for new_empty() to return an instance of a different type."
        )

    def __reduce_ex__(self, protocol):
        """How a tensor is pickled: as a storage and the numbers that make a tensor over it."""
        state = _utils._get_obj_state(self)
        is_faked = getattr(self, "_mode_key", None) is not None
        if type(self) is Tensor and not state or is_faked and _utils._serialization_tls.materialize_fake_tensors:
            return self._reduce_ex_internal()
        rebuild, args = self._reduce_ex_internal()
        return _rebuild_from_type_v2, (rebuild, type(self), args, state)

    def __setstate__(self, state):
        """What pickles of before 0.4 call: of a Tensor its storage and geometry, of a Variable its data and three flags."""
        if overriders and has_torch_function_unary(self):
            return handle_torch_function(Tensor.__setstate__, (self,), self, state)
        if not self.is_leaf:
            raise RuntimeError("__setstate__ can be only called on leaf Tensors")
        if len(state) == 4:
            self.set_(*state)
            return
        if len(state) == 5:
            self.data, _, hooks, requires_grad, _ = state
            state = requires_grad, None, hooks
        self.requires_grad, _, self._backward_hooks = state

    def _reduce_ex_internal(self):
        _utils.warn_if_has_hooks(self)
        if is_sparse(self):
            parts = self._indices(), self._values(), self.size(), self.is_coalesced()
            return _utils._rebuild_sparse_tensor, (self.layout, parts)
        if is_sparse_compressed(self):
            parts = [getattr(self, name)() for name in (*names_of(self.layout), "values", "size")]
            return _utils._rebuild_sparse_tensor, (self.layout, tuple(parts))
        if self.is_meta:
            layout = tuple(self._array.shape), strides_of(self)
            return _utils._rebuild_meta_tensor_no_storage, (self.dtype, *layout, self.requires_grad)
        if self._keys & NO_STORAGE and type(self).__torch_dispatch__ is not Tensor.__torch_dispatch__:
            layout = tuple(self.size()), self.stride(), self.storage_offset(), self.layout
            return _utils._rebuild_wrapper_subclass, (type(self), self.dtype, *layout, self.device, self.requires_grad)
        parts = self._typed_storage(), storage_offset(self), tuple(self._array.shape), strides_of(self)
        if _utils._serialization_tls.skip_data and getattr(self, "_mode_key", None) is not None:
            parts[0]._fake_device = parts[0]._untyped_storage._fake_device = self.device
        metadata = _utils.get_tensor_metadata(self)
        bits = (metadata,) if metadata else ()
        if self.dtype in storages.DTYPES_WITH_CLASS:
            return _utils._rebuild_tensor_v2, (*parts, self.requires_grad, OrderedDict(), *bits)
        untyped = (self.untyped_storage(), *parts[1:])
        return _utils._rebuild_tensor_v3, (*untyped, self.requires_grad, OrderedDict(), self.dtype, *bits)


def _resized(t, sizes):
    if t.numel() != math.prod(sizes):
        raise RuntimeError(
            f"requested resize to {'x'.join(map(str, sizes))} ({math.prod(sizes)} elements in total), but the given tensor "
            f"has a size of {'x'.join(map(str, t.size()))} ({t.numel()} elements). autograd's resize can only change the "
            "shape of a given tensor, while preserving the number of elements. "
        )
    return t.contiguous().view(*sizes)


def refuse_math_bits(t):
    """Raises RuntimeError: NumPy would see what lies in memory, which is not what the tensor says."""
    if t._keys & ZEROTENSOR:
        raise RuntimeError(" Cannot convert a ZeroTensor to numpy. Set force=True if you need the zero array.")
    kind, name = ("conjugate", "conj") if t._keys & CONJUGATE else ("negative", "neg")
    raise RuntimeError(
        f"Can't call numpy() on Tensor that has {kind} bit set. Use tensor.resolve_{name}().numpy() instead."
    )


def _rebuild_from_type_v2(func, new_type, args, state):
    """A tensor with attributes, or of a subclass, from its pickled parts: `func(*args)` makes the tensor."""
    t = func(*args)
    if type(t) is not new_type:
        t = new_type._make_subclass(new_type, t, t.requires_grad)
    if type(t).__setstate__ is not Tensor.__setstate__:
        t.__setstate__(state)
        return t
    return _utils._set_obj_state(t, state)


def _registered(hooks, hook):
    """Puts `hook` into the dictionary; returns the handle that takes it out."""
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


@functools.cache
def get_default_nowrap_functions():
    """Functions whose result the default `Tensor.__torch_function__` gives as it is: they return a tensor that is kept
    somewhere, the same one each time."""
    return {Tensor._base.__get__, Tensor.grad.__get__, Tensor._grad.__get__}


def _convert(result, cls):
    """A tensor, or those in tuples and lists, as tensors of class `cls`."""
    if cls is Tensor:
        return result
    if isinstance(result, Tensor) and not isinstance(result, cls):
        return result.as_subclass(cls)
    if isinstance(result, (tuple, list)):
        return type(result)([_convert(r, cls) for r in result])
    return result


tensor_impl.set_tensor_class(Tensor)
