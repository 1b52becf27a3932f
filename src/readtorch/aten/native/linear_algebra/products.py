"""Products of several matrices or along one dimension: kron, multi_dot, chain_matmul, vecdot.

In PyTorch: `aten/src/ATen/native/LinearAlgebra.cpp`.
Explained in the chapter "Layers: convolution, embedding, recurrence".
"""

from readtorch.aten.functions import at
from readtorch.aten.native.exact_out import c_name, exact_out
from readtorch.aten.native.tensor_iterator import conj
from readtorch.aten.native_function import BOTH, native_function, python_binding
from readtorch.c10.exception import warn_once
from readtorch.c10.tensor_impl import dtype_of

from .matmul import vdot

# ------------------------------------------------------------------------------------------------------- kron

kron = native_function("kron(Tensor self, Tensor other) -> Tensor", BOTH, out=True)


@kron.compose
def kron_composite(self, other):
    """Each element of `self` times the whole of `other`: an outer product, its dimensions interleaved."""
    ndim = max(self._array.ndim, other._array.ndim)
    a = (1,) * (ndim - self._array.ndim) + self._array.shape
    b = (1,) * (ndim - other._array.ndim) + other._array.shape
    left = at._unsafe_view(self, [n for size in a for n in (size, 1)])
    right = at._unsafe_view(other, [n for size in b for n in (1, size)])
    return at._unsafe_view((left * right).contiguous(), [m * n for m, n in zip(a, b)])


# ----------------------------------------------------------------------------------------- chains of matrices

multi_dot = native_function(
    "linalg_multi_dot(Tensor[] tensors) -> Tensor",
    module="linalg",
    name="multi_dot",
    out=exact_out(
        lambda out, result, *_: f"multi_dot(): expected out tensor to have dtype {c_name(result)} but got {c_name(out)}"
    ),
)
chain_matmul = native_function("chain_matmul(Tensor[] matrices) -> Tensor", "", out=True)


@multi_dot.compose
def multi_dot_composite(tensors):
    """The product of many matrices, in the order that costs the fewest multiplications. The ends may be vectors."""
    check_chain(tensors)
    first, last = tensors[0], tensors[-1]
    shape = (list(first._array.shape[:1]) if first._array.ndim == 2 else []) + (
        list(last._array.shape[1:]) if last._array.ndim == 2 else []
    )
    matrices = [*tensors]
    matrices[0] = first if first._array.ndim == 2 else first.unsqueeze(0)
    matrices[-1] = last if last._array.ndim == 2 else last.unsqueeze(-1)
    check_chain_sizes(matrices)
    return multiply_range(matrices, cheapest_splits(matrices), 0, len(matrices) - 1).view(shape)


def check_chain(tensors):
    if len(tensors) < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {len(tensors)}")
    for i, t in enumerate(tensors):
        ndim = t._array.ndim
        if i in (0, len(tensors) - 1):
            if ndim not in (1, 2):
                raise RuntimeError(
                    f"multi_dot(): the {'first' if i == 0 else 'last'} tensor must be 1D or 2D but got {ndim}D"
                )
        elif ndim != 2:
            raise RuntimeError(f"multi_dot(): tensor {i} must be 2D but got {ndim}D")


def check_chain_sizes(matrices):
    for i, (a, b) in enumerate(zip(matrices, matrices[1:])):
        if a._array.shape[1] != b._array.shape[0]:
            raise RuntimeError(
                f"multi_dot(): tensors {i} and {i + 1} with shapes {list(a._array.shape)} and "
                f"{list(b._array.shape)} cannot be multiplied"
            )


def cheapest_splits(matrices):
    """splits[i, j]: after which matrix to cut the product i … j, found from short products to long ones."""
    sizes = [m._array.shape[0] for m in matrices] + [matrices[-1]._array.shape[1]]
    count = len(matrices)
    cost, splits = {(i, i): 0 for i in range(count)}, {}
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            cost[i, j], splits[i, j] = min(
                (cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)
            )
    return splits


def multiply_range(matrices, splits, i, j):
    if i == j:
        return matrices[i]
    k = splits[i, j]
    return at.mm(multiply_range(matrices, splits, i, k), multiply_range(matrices, splits, k + 1, j))


@chain_matmul.compose
def chain_matmul_composite(matrices):
    warn_once(
        "torch.chain_matmul is deprecated and will be removed in a future PyTorch release. Use "
        "torch.linalg.multi_dot instead, which accepts a list of two or more tensors rather than multiple "
        "parameters.",
        stacklevel=3,
    )
    for t in matrices:
        if t._array.ndim != 2:
            raise RuntimeError(f"Tensor dimension is {t._array.ndim}, expected 2 instead.")
    return matrices[0] if len(matrices) == 1 else multi_dot_composite(matrices)


@python_binding("chain_matmul", "function")
def chain_matmul_binding(*matrices, out=None):
    """The product of the matrices, in the cheapest order. In PyTorch: `torch/functional.py`."""
    return chain_matmul.call(matrices) if out is None else chain_matmul.out.call(matrices, out)


vecdot = native_function(
    "linalg_vecdot(Tensor x, Tensor y, *, int dim=-1) -> Tensor", module="linalg", name="vecdot", out=True
)


@vecdot.compose
def vecdot_composite(x, y, dim):
    if dtype_of(x).category < 2:
        raise RuntimeError(
            f"linalg.vecdot: Expected a floating point or complex tensor as input. Got {x.dtype}".replace("torch.", "")
        )
    if dtype_of(x) is not dtype_of(y):
        raise RuntimeError(
            "linalg.vecdot: Expected x and y to have the same dtype, but found x of type "
            f"{x.dtype} and y of type {y.dtype} instead".replace("torch.", "")
        )
    if x._array.ndim == y._array.ndim == 1:
        return vdot.call(x, y)
    return (conj(x) * y).sum(dim)
