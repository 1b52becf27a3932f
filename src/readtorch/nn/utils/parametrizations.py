"""Ready-made parametrizations of weights. In PyTorch: `torch/nn/utils/parametrizations.py`."""

from enum import Enum, auto

import readtorch
from readtorch import Tensor
from readtorch.nn import functional as F
from readtorch.nn.modules import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from readtorch.nn.modules.module import Module

from . import parametrize

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


def _weight_of(module, name):
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    return weight


# ------------------------------------------------------------------------------------------------- orthogonal


class _OrthMaps(Enum):
    matrix_exp = auto()
    cayley = auto()
    householder = auto()


def _is_orthogonal(Q):
    rows, columns = Q.shape[-2:]
    one = readtorch.eye(columns, dtype=Q.dtype, device=Q.device)
    return readtorch.allclose(Q.mH @ Q, one, atol=10.0 * rows * readtorch.finfo(Q.dtype).eps)


def _make_orthogonal(A):
    """The factor Q of A = Q R in which the diagonal of R is real and not negative. A must not be wide."""
    packed, tau = readtorch.geqrf(A)
    Q = readtorch.linalg.householder_product(packed, tau)
    Q *= packed.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)
    return Q


def _tall(X):
    """(X or its transpose, whichever is not wide; whether it was transposed)."""
    return (X.mT, True) if X.size(-2) < X.size(-1) else (X, False)


class _Orthogonal(Module):
    """Maps any matrix to one with orthonormal columns, or rows if those are fewer.

    matrix_exp, cayley: of a skew-symmetric matrix. householder: the product of reflections in the columns of
    the lower triangle. With use_trivialization, `base` holds an orthogonal matrix that the result is
    multiplied with: then the matrix that is learnt stays near 0 (M. Lezcano-Casado: Trivializations for
    gradient-based optimization on manifolds, 2019).
    """

    def __init__(self, weight, orthogonal_map, *, use_trivialization=True):
        super().__init__()
        # The n(n-1) real numbers below the diagonal do not say which tau makes a complex reflection unitary.
        if weight.is_complex() and orthogonal_map == _OrthMaps.householder:
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X):
        X, transposed = _tall(X)
        Q = _reflected(X) if self.orthogonal_map == _OrthMaps.householder else self._rotated(X)
        if hasattr(self, "base"):
            Q = self.base @ Q
        return Q.mT if transposed else Q

    def _rotated(self, X):
        """The first columns of exp(A), or of (I + A/2)(I - A/2)⁻¹, which is near it, with A = X - Xᴴ."""
        n, k = X.shape[-2:]
        X = X.tril()
        if n != k:
            X = readtorch.cat([X, X.new_zeros(n, n - k).expand(*X.shape[:-2], -1, -1)], dim=-1)
        A = X - X.mH
        if self.orthogonal_map == _OrthMaps.matrix_exp:
            Q = readtorch.matrix_exp(A)
        else:
            one = readtorch.eye(n, dtype=A.dtype, device=A.device)
            Q = readtorch.linalg.solve(readtorch.add(one, A, alpha=-0.5), readtorch.add(one, A, alpha=0.5))
        return Q if n == k else Q[..., :k]

    @readtorch.no_grad()
    def right_inverse(self, Q):
        """Sets `base` so that the matrix returned, with -1 on its diagonal, gives Q made orthogonal."""
        if Q.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of shape {Q.shape}."
            )
        if not hasattr(self, "base"):
            return self._inverse_without_base(Q)
        self.base = _complete(_tall(Q)[0])
        zero = readtorch.zeros_like(Q)  # with -1, a sign to the householder map, it is mapped to the identity
        zero.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
        return zero

    def _inverse_without_base(self, Q):
        if self.orthogonal_map != _OrthMaps.householder:
            raise NotImplementedError(
                "It is not possible to assign to the matrix exponential "
                "or the Cayley parametrizations when use_trivialization=False."
            )
        Q, transposed = _tall(Q)
        A, tau = readtorch.geqrf(Q)
        signs = A.diagonal(dim1=-2, dim2=-1)
        signs.sign_()
        signs[tau == 0.0] *= -1  # LAPACK writes exactly 0 for a reflection that it leaves out
        return A.mT if transposed else A


def _reflected(X):
    """The product of the reflections, times X's diagonal, which holds signs and has no gradient."""
    A = X.tril(diagonal=-1)
    tau = 2.0 / (1.0 + (A * A).sum(dim=-2))
    Q = readtorch.linalg.householder_product(A, tau)
    return Q * X.diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)


def _complete(Q):
    """A square orthogonal matrix that begins with the columns of Q, if those are orthonormal."""
    n, k = Q.shape[-2:]
    if n == k:
        return Q.clone() if _is_orthogonal(Q) else _make_orthogonal(Q)
    noise = readtorch.randn(*Q.shape[:-2], n, n - k, dtype=Q.dtype, device=Q.device)
    return _make_orthogonal(readtorch.cat([Q, noise], dim=-1))


def orthogonal(module, name="weight", orthogonal_map=None, *, use_trivialization=True):
    """Keep a weight orthogonal (or unitary): its columns, or rows if those are fewer, are orthonormal.

    orthogonal_map: "matrix_exp" (the default for square and complex weights), "cayley" or "householder" (the
    default for others). Dimensions before the last two are a batch. The weight becomes the orthogonal matrix
    that QR makes of it. Returns the module. Raises ValueError if the weight is missing or a vector, or the
    map unknown.
    """
    weight = _weight_of(module, name)
    if weight.ndim < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions.")
    if orthogonal_map is None:
        square = weight.size(-2) == weight.size(-1)
        orthogonal_map = "matrix_exp" if square or weight.is_complex() else "householder"
    chosen = getattr(_OrthMaps, orthogonal_map, None)
    if chosen is None:
        raise ValueError(
            f'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: {orthogonal_map}'
        )
    parametrization = _Orthogonal(weight, chosen, use_trivialization=use_trivialization)
    parametrize.register_parametrization(module, name, parametrization, unsafe=True)
    return module


# ------------------------------------------------------------------------------------------------ weight norm


class _WeightNorm(Module):
    """w = g v / |v|, a norm for each slice along `dim`."""

    def __init__(self, dim=0):
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g, weight_v):
        return readtorch._weight_norm(weight_v, weight_g, self.dim)

    def right_inverse(self, weight):
        return readtorch.norm_except_dim(weight, 2, self.dim), weight


def weight_norm(module, name="weight", dim=0):
    """Learn a weight's lengths (`original0`) and its direction (`original1`) apart. Returns the module.

    dim: the dimension along which every slice has its length; None: one length for all.
    T. Salimans, D. Kingma: Weight normalization (2016).
    """
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def rename_old_keys(state_dict, prefix, *others):
        """What `nn.utils.weight_norm` saved, under the names of today."""
        old = f"{prefix}{name}_g", f"{prefix}{name}_v"
        if all(key in state_dict for key in old):
            values = [state_dict.pop(key) for key in old]
            for i, value in enumerate(values):
                state_dict[f"{prefix}parametrizations.{name}.original{i}"] = value

    module._register_load_state_dict_pre_hook(rename_old_keys)
    return module


# ---------------------------------------------------------------------------------------------- spectral norm


class _SpectralNorm(Module):
    """Divides a weight by its largest singular value, sigma ≈ uᵀ W v.

    The singular vectors u and v are buffers, improved by power iteration at every reading in training. They
    are changed in place, and cloned for the product, so that a first forward can be differentiated after a
    second.
    """

    def __init__(self, weight, n_power_iterations=1, dim=0, eps=1e-12):
        super().__init__()
        ndim = weight.ndim
        if dim >= ndim or dim < -ndim:
            raise IndexError(f"Dimension out of range (expected to be in range of [-{ndim}, {ndim - 1}] but got {dim})")
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.dim = dim if dim >= 0 else dim + ndim
        self.eps = eps
        if ndim > 1:  # a vector's singular value is its length
            self.n_power_iterations = n_power_iterations
            self._start(self._reshape_weight_to_matrix(weight))

    def _start(self, weight_mat):
        h, w = weight_mat.size()
        u = weight_mat.new_empty(h).normal_(0, 1)
        v = weight_mat.new_empty(w).normal_(0, 1)
        self.register_buffer("_u", F.normalize(u, dim=0, eps=self.eps))
        self.register_buffer("_v", F.normalize(v, dim=0, eps=self.eps))
        self._power_method(weight_mat, 15)

    def _reshape_weight_to_matrix(self, weight):
        if weight.ndim <= 1:
            raise AssertionError(f"Expected weight to have more than 1 dimension, got {weight.ndim}")
        if self.dim != 0:
            weight = weight.permute(self.dim, *(d for d in range(weight.dim()) if d != self.dim))
        return weight.flatten(1)

    @readtorch.no_grad()
    def _power_method(self, weight_mat, n_power_iterations):
        if weight_mat.ndim <= 1:
            raise AssertionError(f"Expected weight_mat to have more than 1 dimension, got {weight_mat.ndim}")
        for _ in range(n_power_iterations):
            self._u = F.normalize(readtorch.mv(weight_mat, self._v), dim=0, eps=self.eps, out=self._u)
            self._v = F.normalize(readtorch.mv(weight_mat.H, self._u), dim=0, eps=self.eps, out=self._v)

    def forward(self, weight):
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        weight_mat = self._reshape_weight_to_matrix(weight)
        if self.training:
            self._power_method(weight_mat, self.n_power_iterations)
        u = self._u.clone(memory_format=readtorch.contiguous_format)
        v = self._v.clone(memory_format=readtorch.contiguous_format)
        return weight / readtorch.vdot(u, readtorch.mv(weight_mat, v))

    def right_inverse(self, value):
        return value  # its own, if its norm is 1 already


def spectral_norm(module, name="weight", n_power_iterations=1, eps=1e-12, dim=None):
    """Divide a weight by its spectral norm whenever it is read. Returns the module.

    dim: the outputs' dimension, by default 0, and 1 for transposed convolutions; all others are joined to
    make a matrix of the weight. Raises ValueError if the weight is missing. T. Miyato and others: Spectral
    normalization for generative adversarial networks (2018).
    """
    weight = _weight_of(module, name)
    if dim is None:
        dim = 1 if isinstance(module, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)) else 0
    parametrize.register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, dim, eps))
    return module
