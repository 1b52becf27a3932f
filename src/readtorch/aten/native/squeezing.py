"""Dimensions of size 1 taken away and put in: squeeze and unsqueeze.

In PyTorch: `aten/src/ATen/native/TensorShape.cpp`. Explained in the chapter "Tensor and Storage".
"""
from ...c10.tensor_impl import view as view_of
from ...c10.wrap_dim import wrap_dim, wrap_dims
from ..native_function import native_function, python_face
from .views import becomes_view, restrided

BOTH = "function, method"

unsqueeze = native_function("unsqueeze(Tensor(a) self, int dim) -> Tensor(a)", BOTH, direct=True)


@unsqueeze.kernel
def unsqueeze_cpu(self, dim):
    array = self._array
    shape = array.shape
    dim = wrap_dim(dim, len(shape) + 1)
    sizes = (*shape[:dim], 1, *shape[dim:])
    if 1 not in shape and array.flags.c_contiguous:
        return view_of(self, array.reshape(sizes))
    strides = array.strides
    step = shape[dim] * strides[dim] if dim < len(shape) else array.itemsize
    return view_of(self, restrided(self, sizes, (*strides[:dim], step, *strides[dim:])))


@unsqueeze.backward
class UnsqueezeBackward0:
    def self(grad, dim):
        return grad.squeeze(dim)


squeeze = native_function("squeeze(Tensor(a) self) -> Tensor(a)", BOTH)
squeeze_dim = native_function("squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)", BOTH)
squeeze_dims = native_function("squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)", BOTH)


@squeeze.kernel
def squeeze_cpu(self):
    return view_of(self, self._array.squeeze())


@squeeze_dim.kernel
def squeeze_dim_cpu(self, dim):
    array = self._array
    dim = wrap_dim(dim, array.ndim)
    return view_of(self, array.squeeze(dim) if array.ndim and array.shape[dim] == 1 else array)


@squeeze_dims.kernel
def squeeze_dims_cpu(self, dims):
    array = self._array
    ones = tuple([d for d in wrap_dims(dims, array.ndim) if array.ndim and array.shape[d] == 1])
    return view_of(self, array.squeeze(ones))


@python_face("squeeze")
def squeeze_face(input, dim=None):
    """`input` without its dimensions of size 1, or without those among `dim` that are of size 1."""
    if dim is None:
        return squeeze.call(input)
    if type(dim) is int:
        return squeeze_dim.call(input, dim)
    if isinstance(dim, (tuple, list)):
        return squeeze_dims.call(input, dim)
    return squeeze_dim.call(input, dim.__index__())


def unsqueeze_to(grad, sizes, dims=None):
    """`grad` with the dimensions back that squeeze took away."""
    dims = range(len(sizes)) if dims is None else sorted(wrap_dims(dims, len(sizes)))
    for dim in dims:
        if sizes and sizes[dim] == 1:
            grad = grad.unsqueeze(dim)
    return grad


@squeeze.backward
class SqueezeBackward0:
    def self(grad, self_sym_sizes):
        return unsqueeze_to(grad, self_sym_sizes)


@squeeze_dim.backward
class SqueezeBackward1:
    def self(grad, self_sym_sizes, dim):
        return unsqueeze_to(grad, self_sym_sizes, (dim,))


@squeeze_dims.backward
class SqueezeBackward2:
    def self(grad, self_sym_sizes, dim):
        return unsqueeze_to(grad, self_sym_sizes, dim)


becomes_view(squeeze, "squeeze_(Tensor(a!) self) -> Tensor(a!)", "SqueezeBackward3")
becomes_view(squeeze_dim, "squeeze_.dim(Tensor(a!) self, int dim) -> Tensor(a!)", "SqueezeBackward4")
becomes_view(squeeze_dims, "squeeze_.dims(Tensor(a!) self, int[] dim) -> Tensor(a!)", "SqueezeBackward5")
becomes_view(unsqueeze, "unsqueeze_(Tensor(a!) self, int dim) -> Tensor(a!)", "UnsqueezeBackward1")
