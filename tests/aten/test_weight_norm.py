"""Weight normalization and the products of reflections, where the reference's own samples do not reach."""

import pytest
import torch

from tests.reference import both

SHAPES = {0: (3, 1, 1), 1: (1, 4, 1), 2: (1, 1, 5), -1: ()}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("dim", SHAPES)
def test_every_dimension(dim, dtype):
    v, g = torch.randn(3, 4, 5, dtype=dtype), torch.rand(SHAPES[dim], dtype=dtype)
    orders = 2 if dtype.itemsize > 2 else 1
    both(lambda T, v, g: T._weight_norm(v, g, dim), v.requires_grad_(), g.requires_grad_(), grad=orders)
    both(lambda T, v: T.norm_except_dim(v, 2, dim), v, grad=orders)


def test_other_layouts_and_both_results():
    v, g = torch.randn(3, 4, requires_grad=True), torch.rand(3, 1, requires_grad=True)
    both(lambda T, v, g: T._weight_norm(v.t(), g.t(), 1), v, g, grad=2)
    both(lambda T, v, g: T._weight_norm_interface(v, g, 0), v, g)
    both(lambda T, v, g: T._weight_norm_interface(v, g, 0), v.detach().half(), g.detach().half())


def test_errors():
    v, g = torch.randn(3, 4), torch.rand(3, 1)
    both(lambda T, v, g: T._weight_norm(v, g, 3), v, g)
    both(lambda T, v, g: T._weight_norm(v, g, 0), v.long(), g.long())
    both(lambda T, v, g: T._weight_norm(v, g, 0), v, g.double())
    both(lambda T, v: T.norm_except_dim(v, 2, 5), v)


@pytest.mark.parametrize("columns", [3, 2, 1])
def test_more_columns_than_reflections(columns):
    packed, tau = torch.geqrf(torch.randn(2, 5, 3, dtype=torch.complex128))
    tau = tau[..., :columns].contiguous()
    both(lambda T, a, t: T.linalg.householder_product(a, t), packed.requires_grad_(), tau.requires_grad_(), grad=2)


def test_a_reflection_that_is_singular():
    """|v|² tau = 1: the product of the reflections has a derivative all the same, which PyTorch's way misses."""
    import readtorch

    packed = readtorch.tensor([[0.0, 0.0], [1.0, 0.0]], dtype=readtorch.float64, requires_grad=True)
    tau = readtorch.tensor([0.5, 0.25], dtype=readtorch.float64, requires_grad=True)
    assert readtorch.autograd.gradcheck(readtorch.linalg.householder_product, (packed, tau))


REFUSED = [
    lambda T, a, t: T.linalg.householder_product(a.mT, t),
    lambda T, a, t: T.linalg.householder_product(a[:, :2], t),
    lambda T, a, t: T.linalg.householder_product(a[0], t),
    lambda T, a, t: T.linalg.householder_product(a, t.double()),
    lambda T, a, t: T.geqrf(t),
    lambda T, a, t: T.geqrf(a.half()),
    lambda T, a, t: T.geqrf(a.requires_grad_())[0].sum().backward(),
    lambda T, a, t: T.ormqr(a, t, a[:3]),
    lambda T, a, t: T.ormqr(a, t[:2], a),
    lambda T, a, t: T.ormqr(a, t, a[0]),
    lambda T, a, t: T.ormqr(a, t.double(), a),
    lambda T, a, t: T.matrix_exp(a),
    lambda T, a, t: T.matrix_exp(a[:3].long()),
]


@pytest.mark.parametrize("call", REFUSED)
def test_refusals(call):
    both(call, torch.randn(4, 3), torch.rand(3))
