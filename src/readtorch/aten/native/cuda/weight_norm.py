"""weight_norm: v scaled to the norms g, and its gradients.

In PyTorch: `aten/src/ATen/native/cuda/WeightNorm.cu`.
"""

from readtorch.aten.native.weight_norm import check_types

from .reduce_ops import converted
from .register_dispatch_key import cuda_kernel, operator_named, owned
from .softmax import wide


def summed_but(t, dim):
    """The sums over every dimension but `dim`, kept as sizes of 1."""
    return t.sum([d for d in range(t._array.ndim) if d != dim], True)


@cuda_kernel(operator_named("_weight_norm_interface"))
def weight_norm_cuda(v, g, dim):
    """(w, the norms of v's slices)."""
    check_types(v, g)
    x = wide(v)
    norms = summed_but(x * x, dim).sqrt()
    w = x * (wide(g).view(norms._array.shape) / norms)
    return converted(w, v._array.dtype), owned(norms.view(g._array.shape))


@cuda_kernel(operator_named("_weight_norm_interface_backward"))
def weight_norm_backward_cuda(grad_w, saved_v, saved_g, saved_norms, dim):
    gw, v, g, own = wide(grad_w), wide(saved_v), wide(saved_g), saved_v._array.dtype
    products = summed_but(gw * v, dim)
    g, norms = (t.reshape(products._array.shape) for t in (g, saved_norms))
    to_g = products / norms
    to_v = g / norms * (gw - to_g / norms * v)
    return converted(to_v, own), converted(owned(to_g.view(saved_g._array.shape)), own)
