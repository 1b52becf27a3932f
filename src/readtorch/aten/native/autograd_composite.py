"""Making a dual of a value and its tangent, taking it apart, and the memory for a tangent; clones that are copied late.

What autograd does in them stands in csrc/autograd/variable_type_manual.py.
In PyTorch: `aten/src/ATen/native/AutogradComposite.cpp`. Explained in the chapter "Forward mode, vmap and torch.func".
"""

from readtorch.aten.functions import at
from readtorch.aten.native import return_types
from readtorch.aten.native_function import BOTH, below_autograd, native_function
from readtorch.aten.operator_entry import writers
from readtorch.aten.register_dispatch_key import any_device
from readtorch.aten.tensor_meta import TensorMeta
from readtorch.c10.cow import lazy_clone_storage, mutable_array
from readtorch.c10.dispatch_key import COPY_ON_WRITE, INFERENCE_TENSOR, MATH_BITS
from readtorch.c10.local_dispatch_key_set import tls
from readtorch.c10.tensor_impl import (
    AutogradMetaFactory,
    dtype_of,
    storage_impl,
    storage_offset,
    strides_of,
    view,
    wrap,
)

_fw_primal = native_function("_fw_primal(Tensor(a) self, int level) -> Tensor(a)", "")


@_fw_primal.kernel
@any_device
def fw_primal(self, level):
    """The tensor again, which autograd gives no tangent."""
    return view(self, self._array)


@_fw_primal.backward
class Identity:
    namespace = "torch::autograd::"

    def self(grad):
        return grad


_make_dual = native_function("_make_dual(Tensor(a) primal, Tensor tangent, int level) -> Tensor(a)")


@_make_dual.kernel
@any_device
def make_dual(primal, tangent, level):
    """The tensor again, to which autograd gives the tangent."""
    if tls.inference_mode and not primal._keys & tangent._keys & INFERENCE_TENSOR:
        raise RuntimeError(
            "Expected this function to only be reached in inference mode and when all the inputs are inference tensors. You should "
            "NOT call this function directly as native::_make_dual. Please use the dispatcher, i.e., at::_make_dual. Please file an "
            "issue if you come across this error otherwise."
        )
    return view(primal, primal._array)


@_make_dual.backward
class ViewBackward0:
    def primal(grad, primal_sym_sizes):
        return grad.reshape(primal_sym_sizes)


_lazy_clone = native_function("_lazy_clone(Tensor self) -> Tensor", BOTH)


@_lazy_clone.meta
def lazy_clone_meta(self):
    return TensorMeta(self._array.shape, dtype_of(self), strides_of(self))


@_lazy_clone.kernel
def lazy_clone(self):
    """A clone whose elements are copied when it or `self` is first written to: Note [ Copy on write ]."""
    storage = lazy_clone_storage(storage_impl(self))
    if storage is None:
        raise RuntimeError(
            "Expected storage != nullptr to be true, but got false.  (Could this error message be improved?  If so, please report an "
            "enhancement request to PyTorch.)"
        )
    clone = wrap(self._array)
    clone._storage_impl, clone._keys = storage, storage.keys | self._keys & MATH_BITS
    return clone


@_lazy_clone.backward
class LazyCloneBackward0:
    def self(grad):
        return grad

    result = "auto_linear"


# Written to without a word in the schema.
WRITES_UNSAID = {"aten::native_batch_norm": ("running_mean", "running_var")}


def materializing(operator, kernel):
    """The kernel of an operator for operands that may share their memory: those that it writes to get memory of their own before."""
    unsaid = WRITES_UNSAID.get(operator.name, ())
    written = [i for i, a in enumerate(operator.schema.arguments) if a.type.writes or a.name in unsaid]
    if not written or kernel is operator.composite or getattr(kernel, "only_geometry", False):
        return kernel

    def materializing_kernel(*arguments):
        for i in written:
            for t in arguments[i] if isinstance(arguments[i], (list, tuple)) else (arguments[i],):
                if t is not None:
                    mutable_array(t)
        return kernel(*arguments)

    return materializing_kernel


writers[COPY_ON_WRITE] = materializing


_unpack_dual = native_function("_unpack_dual(Tensor(a) dual, int level) -> (Tensor(a) primal, Tensor tangent)")


@_unpack_dual.compose
def unpack_dual(dual, level):
    """The value, a view without the tangent, and the tangent as it is; None if there is none."""
    return return_types._unpack_dual(_fw_primal.call(dual, level), AutogradMetaFactory.fw_grad(dual, level))


_new_zeros_with_same_feature_meta = native_function(
    "_new_zeros_with_same_feature_meta(Tensor self, Tensor other, *, int self_num_batch_dims=0) -> Tensor", ""
)


@_new_zeros_with_same_feature_meta.kernel
@any_device
def new_zeros_with_same_feature_meta(self, other, self_num_batch_dims):
    """Zeros with the sizes, strides, offset and dtype of `other`, in a storage as large as its; the first dimensions of `self` come
    before, each of them over as much memory again."""
    batch = tuple(self._array.shape[:self_num_batch_dims])
    steps, count = [], storage_impl(other).nbytes // other._array.itemsize
    for size in reversed(batch):
        steps.append(count)
        count *= size
    sizes, strides = batch + tuple(other._array.shape), tuple(reversed(steps)) + strides_of(other)
    with below_autograd():
        zeros = at.zeros((count,), dtype=other.dtype, device=other.device)
        return at.as_strided(zeros, sizes, strides, storage_offset(other))


_has_same_storage_numel = native_function("_has_same_storage_numel(Tensor self, Tensor other) -> bool", "")


@_has_same_storage_numel.kernel
@any_device
def has_same_storage_numel(self, other):
    """Whether the storages have room for as many elements."""
    here, there = [storage_impl(t).nbytes // t._array.itemsize for t in (self, other)]
    return here == there
