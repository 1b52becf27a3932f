"""Batching rules of products and of what solves equations: nearly all of them know batches of matrices already.

In PyTorch: `aten/src/ATen/functorch/BatchRulesLinearAlgebra.cpp`. Explained in the chapter "Forward mode, vmap and torch.func".
"""

from readtorch.aten.functions import at
from readtorch.c10.tensor_impl import TensorImpl

from .batch_rules_binary_ops import tensor_places, without_bdims
from .batch_rules_helper import (
    batch_rule,
    batch_size_of,
    changed,
    decomposition,
    logical_rank,
    padded,
    paired,
    physical,
    rule_for,
    to_front,
    vmap_support,
    with_bdim,
)
from .gen_vmap_plumbing import plumbed

# --------------------------------------------------------------------------------------- of a matrix, or of several
# What errors call an operator, where it is not its name.
CALLED = {
    "linalg_cholesky_ex": "cholesky",
    "_linalg_eigh": "linalg.eigh",
    "_linalg_svd": "linalg.svd",
    "_linalg_det": "linalg.det",
    "_linalg_slogdet": "linalg.slogdet",
    "linalg_inv_ex": "linalg.inv",
    "linalg_lu_factor_ex": "torch.lu_factor_ex",
    "linalg_matrix_exp": "torch.matrix_exp",
}


def check_matrix(operator, t, bdim, name="A"):
    if logical_rank(t, bdim) < 2:
        called = CALLED.get(operator.schema.name, operator.schema.name.replace("linalg_", "linalg."))
        raise RuntimeError(f"{called}: The input tensor {name} must have at least 2 dimensions.")


def in_front(results):
    """Results as a rule returns them, batched in front, but for those that were not asked for: these are empty."""
    if isinstance(results, TensorImpl):
        return results, 0
    return paired(results, tuple([None if r._array.shape == (0,) else 0 for r in results]))


def of_batches(operator):
    """The kernel of an operator of one matrix, or of any number, counted by the dimensions in front: `VARIADIC_BDIMS` in PyTorch."""

    def rule(self, self_bdim, *others):
        check_matrix(operator, self, self_bdim)
        return in_front(operator.call(to_front(self, self_bdim), *others))

    return plumbed(operator, rule)


rule_for(
    of_batches,
    "linalg_cholesky_ex cholesky cholesky_inverse _linalg_svd _linalg_eigh linalg_eig linalg_inv_ex _linalg_det _linalg_slogdet "
    "linalg_matrix_exp linalg_qr linalg_lu_factor_ex linalg_lu linalg_ldl_factor_ex geqrf linalg_matrix_rank "
    "linalg_matrix_rank.atol_rtol_float",
)


def broadcasting(operator):
    """The kernel of an operator of several tensors, whose dimensions before the last two broadcast."""
    places = tensor_places(operator)

    def rule(*flat):
        pairs = [(flat[i], flat[i + 1]) for i in places]
        for (t, bdim), name in zip(pairs, "AB"):
            check_matrix(operator, t, bdim, name)
        rank = max([logical_rank(t, bdim) for t, bdim in pairs])
        return in_front(operator.call(*without_bdims(flat, places, [padded(t, bdim, rank) for t, bdim in pairs])))

    return plumbed(operator, rule)


rule_for(broadcasting, "cholesky_solve linalg_solve_triangular triangular_solve _cdist_forward _euclidean_dist")


def all_batched(operator):
    """The kernel of an operator of several tensors whose dimensions in front do not broadcast: each gets a batch dimension."""

    def rule(*flat):
        size = batch_size_of(flat)
        return in_front(operator.call(*changed(operator, flat, lambda t, bdim: with_bdim(t, bdim, size))))

    return plumbed(operator, rule)


rule_for(all_batched, "linalg_householder_product ormqr lu_unpack linalg_ldl_solve")


@vmap_support("linalg_lu_solve")
def lu_solve_batch_rule(call, LU, LU_bdim, pivots, pivots_bdim, B, B_bdim, left, adjoint):
    """LU and its pivots go together; B may broadcast against them."""
    for name, t, bdim, least in (("LU", LU, LU_bdim, 2), ("pivots", pivots, pivots_bdim, 1), ("B", B, B_bdim, 2)):
        rank = logical_rank(t, bdim)
        if rank < least:
            raise RuntimeError(f"{name} should have at least {least} dimensions, but has {rank} dimensions instead.")
    if LU_bdim is not None or pivots_bdim is not None:
        size = batch_size_of((LU, LU_bdim, pivots, pivots_bdim))
        LU, pivots = with_bdim(LU, LU_bdim, size), with_bdim(pivots, pivots_bdim, size)
        LU_bdim = pivots_bdim = 0
    rank = max(logical_rank(LU, LU_bdim), logical_rank(B, B_bdim))
    LU, B, pivots = padded(LU, LU_bdim, rank), padded(B, B_bdim, rank), padded(pivots, pivots_bdim, rank - 1)
    return call(LU, pivots, B, left, adjoint), 0


@vmap_support("_linalg_solve_ex")
def solve_ex_batch_rule(call, A, A_bdim, B, B_bdim, left, check_errors):
    """A B of one dimension less than A holds vectors."""
    size = batch_size_of((A, A_bdim, B, B_bdim))
    A_rank, B_rank = logical_rank(A, A_bdim), logical_rank(B, B_bdim)
    rank, of_vectors = max(A_rank, B_rank), A_rank > B_rank
    if A_rank < 2:
        raise RuntimeError("linalg.solve: The input tensor A must have at least 2 dimensions.")
    if B_rank < (1 if of_vectors else 2):
        raise RuntimeError("linalg.solve: The input tensor B must have at least 2 dimensions.")
    A, B = padded(with_bdim(A, A_bdim, size), 0, rank), padded(with_bdim(B, B_bdim, size), 0, rank - of_vectors)
    return call(A, B, left, check_errors), 0


@vmap_support("linalg_lstsq")
def lstsq_batch_rule(call, self, self_bdim, b, b_bdim, rcond, driver):
    rank, b_rank = logical_rank(self, self_bdim), logical_rank(b, b_bdim)
    if rank < 2:
        raise RuntimeError("torch.linalg.lstsq: input must have at least 2 dimensions.")
    if b_rank < 1:
        raise RuntimeError("torch.linalg.lstsq: other must have at least 1 dimension.")
    size = batch_size_of((self, self_bdim, b, b_bdim))
    of_vectors, rank = rank > b_rank, max(rank, b_rank)
    self, b = (
        padded(with_bdim(self, self_bdim, size), 0, rank),
        padded(with_bdim(b, b_bdim, size), 0, rank - of_vectors),
    )
    results = call(self, b, rcond, driver)
    return results, tuple([None if r._array.shape == (0,) else 0 for r in results])


@vmap_support("linalg_pinv.atol_rtol_tensor linalg_matrix_rank.atol_rtol_tensor")
def with_tolerances(call, input, input_bdim, atol, atol_bdim, rtol, rtol_bdim, hermitian):
    """The tolerances broadcast against the dimensions before the matrix's two."""
    if logical_rank(input, input_bdim) < 2:
        raise RuntimeError("linalg.pinv: The input tensor input must have at least 2 dimensions.")
    size = batch_size_of((input, input_bdim, atol, atol_bdim, rtol, rtol_bdim))
    tolerances = (atol, atol_bdim), (rtol, rtol_bdim)
    rank = max(
        [logical_rank(input, input_bdim) - 2] + [logical_rank(t, bdim) for t, bdim in tolerances if t is not None]
    )
    atol, rtol = (t if t is None else padded(t, bdim, rank) for t, bdim in tolerances)
    return call(padded(with_bdim(input, input_bdim, size), 0, rank + 2), atol, rtol, hermitian), 0


@vmap_support("linalg_cross")
def cross_batch_rule(call, self, self_bdim, other, other_bdim, dim):
    rank = logical_rank(self, self_bdim)
    if rank != logical_rank(other, other_bdim):
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    size = batch_size_of((self, self_bdim, other, other_bdim))
    return call(with_bdim(self, self_bdim, size), with_bdim(other, other_bdim, size), physical(dim, rank)), 0


# ------------------------------------------------------------------------------------------------------ products
# In PyTorch: the same, each by the product that takes the operands with their batches as they are.


@batch_rule("dot")
def dot_batch_rule(self, self_bdim, other, other_bdim):
    if logical_rank(self, self_bdim) != 1 or logical_rank(other, other_bdim) != 1:
        raise RuntimeError("Got wrong shapes for dot")
    self, other = to_front(self, self_bdim), to_front(other, other_bdim)
    if self_bdim is None or other_bdim is None:
        return at.matmul(self, at.t(other)), 0
    product = at.matmul(at.unsqueeze(self, -2), at.unsqueeze(other, -1))
    return at.squeeze(at.squeeze(product, -1), -1), 0


@batch_rule("vdot")
def vdot_batch_rule(self, self_bdim, other, other_bdim):
    return dot_batch_rule(at.conj(self), self_bdim, other, other_bdim)


@batch_rule("mv")
def mv_batch_rule(self, self_bdim, vector, vector_bdim):
    """A matrix that all examples share is multiplied by the matrix of their vectors."""
    ranks = logical_rank(self, self_bdim), logical_rank(vector, vector_bdim)
    if ranks != (2, 1):
        raise RuntimeError(
            f"Shape mismatch: Got incorrect dims for mv(a, b). a has dim {ranks[0]}and b has dim {ranks[1]}but expected them "
            "to have dim 2 and dim 1"
        )
    if self_bdim is None:
        return at.matmul(self, at.movedim(vector, vector_bdim, -1)), 1
    self = to_front(self, self_bdim)
    if vector_bdim is None:
        return at.matmul(self, vector), 0
    return at.squeeze(at.matmul(self, at.unsqueeze(to_front(vector, vector_bdim), -1)), -1), 0


@batch_rule("mm")
def mm_batch_rule(self, self_bdim, other, other_bdim):
    """No operand is expanded: `matmul` merges the examples into the rows of one matrix if they share the other."""
    ranks = logical_rank(self, self_bdim), logical_rank(other, other_bdim)
    if ranks != (2, 2):
        raise RuntimeError(
            f"Shape mismatch: Got incorrect dims for mm(a, b). a has dim {ranks[0]}and b has dim {ranks[1]}but expected them "
            "to have dim 2 and dim 2"
        )
    return at.matmul(to_front(self, self_bdim), to_front(other, other_bdim)), 0


@batch_rule("bmm")
def bmm_batch_rule(self, self_bdim, other, other_bdim):
    for t, bdim in ((self, self_bdim), (other, other_bdim)):
        if logical_rank(t, bdim) != 3:
            raise RuntimeError("batch1 must be a 3D tensor" if t is self else "batch2 must be a 3D tensor")
    return at.matmul(to_front(self, self_bdim), to_front(other, other_bdim)), 0


def _scaled_sum(product):
    def decomposed(self, a, b, beta, alpha):
        result = product(a, b)
        if alpha != 1:
            result = at.mul(result, alpha)
        if beta == 0:
            return result
        return at.add(self if beta == 1 else at.mul(self, beta), result)

    return decomposed


decomposition("addmm")(_scaled_sum(lambda a, b: at.mm(a, b)))
decomposition("addmv")(_scaled_sum(lambda a, b: at.mv(a, b)))
decomposition("baddbmm")(_scaled_sum(lambda a, b: at.bmm(a, b)))
decomposition("addbmm")(_scaled_sum(lambda a, b: at.sum(at.bmm(a, b), [0])))
decomposition("addr")(_scaled_sum(lambda a, b: at.mul(at.unsqueeze(a, -1), b)))


@decomposition("_trilinear")
def trilinear_decomposition(i1, i2, i3, expand1, expand2, expand3, sumdim, unroll_dim):
    for tensor_dims in sorted(expand1):
        i1 = at.unsqueeze(i1, tensor_dims)
    for d in sorted(expand2):
        i2 = at.unsqueeze(i2, d)
    for d in sorted(expand3):
        i3 = at.unsqueeze(i3, d)
    product = at.mul(at.mul(i1, i2), i3)
    return at.sum(product, list(sumdim)) if sumdim else product
