"""Distances and lengths. In PyTorch: part of `torch/nn/functional.py`."""

import readtorch
from readtorch import Tensor
from readtorch.csrc.utils.disable_torch_function import handle_torch_function, has_torch_function_variadic

__all__ = ["pairwise_distance", "cosine_similarity", "pdist", "normalize"]

# The p-norm of x1 - x2 along the last dimension: (N, D), (N, D) -> (N), or (D), (D) -> ().
pairwise_distance = readtorch.pairwise_distance
# The cosine of the angle between x1 and x2 along `dim`, which broadcast.
cosine_similarity = readtorch.cosine_similarity
# The p-norms of the differences of all pairs of rows: (N, D) -> (N (N - 1) / 2).
pdist = readtorch.pdist


def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Tensor | None = None) -> Tensor:
    """Divide by the p-norm along `dim`, or by eps if that is larger. Result: of the input's shape."""
    if has_torch_function_variadic(input, out):
        return handle_torch_function(normalize, (input, out), input, p=p, dim=dim, eps=eps, out=out)
    length = input.norm(p, dim, keepdim=True).clamp_min(eps).expand_as(input)
    return input / length if out is None else readtorch.div(input, length, out=out)
