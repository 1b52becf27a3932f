"""`LKJCholesky`. In PyTorch: `torch/distributions/lkj_cholesky.py`."""

import math

import readtorch
from readtorch import Size, finfo

from . import constraints
from .beta import Beta
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """Cholesky factors L, (dim, dim), of correlation matrices L Lᵀ with a density proportional to det^(concentration - 1).

    dim: the number of variables, at least 2. concentration: a positive number or tensor; 1 makes all correlation
    matrices equally probable, more favours those near to the identity. Raises ValueError for a smaller dim.
    The "onion method" of D. Lewandowski, D. Kurowicka, H. Joe: Generating random correlation matrices (2009).
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(self, dim, concentration=1.0, validate_args=None):
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        marginal = self.concentration + 0.5 * (dim - 2)
        offset = readtorch.arange(dim - 1, dtype=self.concentration.dtype, device=self.concentration.device)
        offset = readtorch.cat([offset.new_zeros((1,)), offset])
        self._beta = Beta(offset + 0.5, marginal.unsqueeze(-1) - 0.5 * offset)
        super().__init__(self.concentration.size(), Size((dim, dim)), validate_args)

    def expand(self, batch_shape, _instance=None):
        return self._expanded(LKJCholesky, batch_shape, _instance, "concentration", "_beta", kept=["dim"])

    def sample(self, sample_shape=()):
        """Row by row: Beta says how much of its length 1 lies before the diagonal, normal numbers in which direction."""
        share = self._beta.sample(sample_shape).unsqueeze(-1)
        direction = readtorch.randn(self._extended_shape(sample_shape), dtype=share.dtype, device=share.device).tril(-1)
        direction = direction / direction.norm(dim=-1, keepdim=True)
        direction[..., 0, :].fill_(0.0)  # 0 / 0
        rows = share.sqrt() * direction
        left = (1 - (rows**2).sum(dim=-1)).clamp(min=finfo(rows.dtype).tiny)
        return rows + left.sqrt().diag_embed()

    def log_prob(self, value):
        self._check(value)
        diagonal = value.diagonal(dim1=-1, dim2=-2)[..., 1:]
        order = readtorch.arange(2, self.dim + 1, device=self.concentration.device)
        order = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - order
        n = self.dim - 1
        alpha = self.concentration + 0.5 * n
        normalizer = 0.5 * n * math.log(math.pi) + readtorch.mvlgamma(alpha - 0.5, n) - alpha.lgamma() * n
        return (order * diagonal.log()).sum(dim=-1) - normalizer
