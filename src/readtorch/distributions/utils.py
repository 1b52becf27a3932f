"""What distributions share: broadcasting of parameters, probabilities and logits, properties that are computed once.

In PyTorch: `torch/distributions/utils.py`.
"""

import functools

import readtorch
from readtorch import Size, Tensor, broadcast_tensors, finfo
from readtorch.c10.local_dispatch_key_set import trace_under_way
from readtorch.nn.functional import softmax
from readtorch.overrides import is_tensor_like
from readtorch.types import _Number

euler_constant = 0.57721566490153286060  # Euler and Mascheroni's: the mean of the standard Gumbel distribution

__all__ = [
    "broadcast_all",
    "logits_to_probs",
    "clamp_probs",
    "probs_to_logits",
    "lazy_property",
    "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]


def broadcast_all(*values):
    """The values as tensors of one shape. Numbers get the first tensor's dtype and device, or else the default dtype.

    Raises ValueError if a value is neither a number nor a tensor, nor has `__torch_function__`.
    """
    if not all(is_tensor_like(value) or isinstance(value, _Number) for value in values):
        raise ValueError(
            "Input arguments must all be instances of Number, torch.Tensor or objects implementing __torch_function__."
        )
    first = next((value for value in values if isinstance(value, Tensor)), None)
    options = (
        dict(dtype=readtorch.get_default_dtype()) if first is None else dict(dtype=first.dtype, device=first.device)
    )
    return broadcast_tensors(*(v if is_tensor_like(v) else readtorch.tensor(v, **options) for v in values))


def one_of(**given):
    """The name and the value of the one argument, probs or logits, that is not None. Raises ValueError for none or both."""
    named = those_given(**given)
    if len(named) != 1:
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")
    return named[0]


def those_given(**arguments):
    """(name, value) of the arguments that are not None."""
    return [(name, value) for name, value in arguments.items() if value is not None]


def _standard_normal(shape, dtype, device):
    """Normal numbers of mean 0 and deviation 1. A trace records `normal`, for it would not see the write in place."""
    if trace_under_way():
        zeros, ones = (make(shape, dtype=dtype, device=device) for make in (readtorch.zeros, readtorch.ones))
        return readtorch.normal(zeros, ones)
    return readtorch.empty(shape, dtype=dtype, device=device).normal_()


def _sum_rightmost(value, dim):
    """The sum over the last `dim` dimensions."""
    if dim == 0:
        return value
    return value.reshape(value.shape[:-dim] + (-1,)).sum(-1)


def logits_to_probs(logits, is_binary=False):
    """Probabilities: the sigmoid of log-odds if `is_binary`, else the softmax over the last dimension."""
    return logits.sigmoid() if is_binary else softmax(logits, dim=-1)


def clamp_probs(probs):
    """`probs` kept an epsilon of their dtype away from 0 and 1."""
    eps = finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs, is_binary=False):
    """Log-odds of probabilities if `is_binary`, else their logarithms; 0 and 1 are moved inwards first."""
    probs = clamp_probs(probs)
    return probs.log() - (-probs).log1p() if is_binary else probs.log()


class lazy_property:
    """A property that is computed when first asked for, with gradients on, and from then on is a plain attribute.

    On the class it is a `property`, so that tools which read classes take it for one.
    """

    def __init__(self, wrapped):
        self.wrapped = wrapped
        functools.update_wrapper(self, wrapped)

    def __get__(self, instance, obj_type=None):
        if instance is None:
            return _lazy_property_and_property(self.wrapped)
        with readtorch.enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


class _lazy_property_and_property(lazy_property, property):
    def __init__(self, wrapped):
        property.__init__(self, wrapped)


def _tril_mask(n, diag, device):
    """Which elements of an (n, n) matrix are on or below the diagonal `diag`."""
    arange = readtorch.arange(n, device=device)
    return arange < arange.view(-1, 1) + (diag + 1)


def tril_matrix_to_vec(mat, diag=0):
    """The elements on and below the diagonal `diag` of matrices (…, n, n), row by row: (…, m).

    Raises ValueError if the matrix has no such diagonal.
    """
    n = mat.shape[-1]
    if not trace_under_way() and not -n <= diag < n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    return mat[..., _tril_mask(n, diag, mat.device)]


def vec_to_tril_matrix(vec, diag=0):
    """Matrices (…, n, n) with the elements of `vec` (…, m) on and below the diagonal `diag`, row by row, and zeros.

    Raises ValueError if no n gives m such elements.
    """
    b = 1 + 2 * diag  # n² + b n = 2 m + |diag| (diag + 1) counts them; its positive root is n
    n = (-b + (b**2 + 8 * vec.shape[-1] + 4 * abs(diag) * (diag + 1)) ** 0.5) / 2
    if not trace_under_way() and round(n) - n > finfo(vec.dtype).eps:
        raise ValueError(
            f"The size of last dimension is {vec.shape[-1]} which cannot be expressed as "
            "the lower triangular part of a square D x D matrix."
        )
    n = round(n.item() if isinstance(n, Tensor) else n)
    mat = vec.new_zeros(vec.shape[:-1] + Size((n, n)))
    mat[..., _tril_mask(n, diag, vec.device)] = vec
    return mat
