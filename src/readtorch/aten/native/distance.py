"""How far apart, or how alike, two tensors are along one dimension.

In PyTorch: `aten/src/ATen/native/Distance.cpp`.
"""
from ...c10.dispatch_key import GRAD_KEYS, MaskGuard
from ...c10.scalar_type import SCALAR_TYPE_NAMES
from ..functions import at
from ..native_function import native_function
from .norms import norm_gradient, vector_norm_cpu
from .scalar_ops import add_scalar
from .tensor_iterator import result_type
from .tensor_shape import broadcast_shape

pairwise_distance = native_function(
    "pairwise_distance(Tensor x1, Tensor x2, float p=2, float eps=1e-06, bool keepdim=False) -> Tensor")
cosine_similarity = native_function(
    "cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor")

# What C++ calls the p-norm; Python's `norm` has become a face of linalg_vector_norm.
p_norm = native_function("norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False) -> Tensor", "")
p_norm_of_all = native_function("norm.Scalar(Tensor self, Scalar p=2) -> Tensor", "")


@p_norm_of_all.kernel
def p_norm_of_all_cpu(self, p):
    return vector_norm_cpu(self, p, None, False, None)


@p_norm_of_all.backward
class NormBackward0:
    def self(grad, self, p, result):
        return norm_gradient(grad, self, p, result, None, False)


@p_norm.kernel
def p_norm_cpu(self, p, dim, keepdim):
    return vector_norm_cpu(self, p, dim, keepdim, None)


@p_norm.backward
class NormBackward1:
    def self(grad, self, p, result, dim, keepdim):
        return norm_gradient(grad, self, p, result, dim, keepdim)


@pairwise_distance.compose
def pairwise_distance_composite(x1, x2, p, eps, keepdim):
    """The p-norm of the difference along the last dimension. eps keeps it off 0, where the norm has no slope."""
    last = max(x1.dim(), x2.dim()) - 1
    return p_norm.call(add_scalar.call(x1 - x2, eps, 1), p, (last,), keepdim)


@cosine_similarity.compose
def cosine_similarity_composite(x1, x2, dim, eps):
    """The dot product of both, each divided by its length first: more exact than one division at the end."""
    common = result_type(x1, x2)
    if not (common.is_floating_point or common.is_complex):
        raise RuntimeError("expected common dtype to be floating point, yet common dtype is "
                           f"{SCALAR_TYPE_NAMES[common]}")
    x1, x2 = broadcast(x1.to(common), x2.to(common))
    return at.sum((x1 / length(x1, dim, eps)) * (x2 / length(x2, dim, eps)), dim)


def broadcast(x1, x2):
    """Both with the sizes that they have together."""
    if x1._array.shape == x2._array.shape:
        return x1, x2
    shape = broadcast_shape(x1._array.shape, x2._array.shape)
    return x1.expand(shape), x2.expand(shape)


def length(x, dim, eps):
    """The Euclidean norms along `dim`, at least eps. The cut at eps is hidden from autograd: the slope stays."""
    result = at.linalg_vector_norm(x, 2, dim, True).clone()
    with MaskGuard(exclude=GRAD_KEYS):
        result.clamp_min_(eps)
    return result
