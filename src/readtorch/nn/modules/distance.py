"""Distances as modules. In PyTorch: `torch/nn/modules/distance.py`. See the chapter
"Layers: convolution, embedding, recurrence".
"""

from readtorch.nn import functional as F

from .module import Module

__all__ = ["PairwiseDistance", "CosineSimilarity"]


class PairwiseDistance(Module):
    """The p-norm of the difference: (N, D) and (N, D) to (N), or (N, 1) with keepdim; eps keeps it off 0."""

    __constants__ = ["norm", "eps", "keepdim"]

    def __init__(self, p=2.0, eps=1e-6, keepdim=False) -> None:
        super().__init__()
        self.norm = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1, x2):
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


class CosineSimilarity(Module):
    """The cosine of the angle along `dim`. See `nn.functional.cosine_similarity`."""

    __constants__ = ["dim", "eps"]

    def __init__(self, dim=1, eps=1e-8) -> None:
        super().__init__()
        self.dim = dim
        self.eps = eps

    def forward(self, x1, x2):
        return F.cosine_similarity(x1, x2, self.dim, self.eps)
