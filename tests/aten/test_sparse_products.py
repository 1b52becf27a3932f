"""Products and sums of sparse COO matrices next to the reference: layouts, graphs, gradients, words of errors."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.aten.test_sparse import sparse_tensors
from tests.programs import same
from tests.reference import both

pytestmark = pytest.mark.filterwarnings("ignore:Sparse invariant checks")


def matrix(requires_grad=False, coalesced=True, dtype=torch.float64):
    """A 2 × 3 matrix of four elements; uncoalesced it lists one twice."""
    indices, values = torch.tensor([[0, 1, 1, 1], [2, 0, 2, 2]]), torch.tensor([3, 4, 5, 6], dtype=dtype)
    made = torch.sparse_coo_tensor(indices, values, (2, 3))
    return (made.coalesce() if coalesced else made).requires_grad_(requires_grad)


def dense(*shape, requires_grad=False, dtype=torch.float64):
    count = torch.Size(shape).numel()
    return (torch.arange(count).reshape(shape) - count // 3).to(dtype).requires_grad_(requires_grad)


# Functions of a sparse 2 × 3 matrix and a dense 3 × 4 one.
PRODUCTS = {
    "@": lambda T, s, d: s @ d,
    "mm": lambda T, s, d: s.mm(d),
    "matmul": lambda T, s, d: T.matmul(s, d),
    "spmm": lambda T, s, d: T.spmm(s, d),
    "dsmm": lambda T, s, d: T.dsmm(s, d),
    "vector": lambda T, s, d: s @ d[:, 1],
    "mv": lambda T, s, d: T.mv(s, d[:, 0]),
    "dense first": lambda T, s, d: d[1:].t() @ s,
    "addmm": lambda T, s, d: T.addmm(T.ones(2, 4, dtype=d.dtype), s, d, beta=2, alpha=3),
    "addmm row": lambda T, s, d: T.addmm(T.ones(4, dtype=d.dtype), s, d, beta=0),
    "addmm_": lambda T, s, d: T.ones(2, 4, dtype=d.dtype).addmm_(s, d),
    "linear": lambda T, s, d: T.nn.functional.linear(d.t(), s),
    "sparse.mm": lambda T, s, d: T.sparse.mm(s, d),
    "sparse.mm dense first": lambda T, s, d: T.sparse.mm(d[1:].t(), s),
    "sparse.addmm": lambda T, s, d: T.sparse.addmm(T.ones(2, 4, dtype=d.dtype), s, d, beta=0.5, alpha=2),
    "out": lambda T, s, d: T.mm(s, d, out=T.zeros(0, dtype=d.dtype)),
    "turned": lambda T, s, d: s.t().mm(d[:2]),
    "T": lambda T, s, d: s.T @ d[:2],
    "mT": lambda T, s, d: s.mT @ d[:2],
}


@pytest.mark.parametrize("coalesced", [True, False])
@pytest.mark.parametrize("graph", [False, True])
@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name, graph, coalesced):
    both(PRODUCTS[name], matrix(graph, coalesced), dense(3, 4, requires_grad=graph))


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex128, torch.int64], ids=str)
def test_dtypes(dtype):
    graph = dtype != torch.int64
    for name in ("@", "mv", "addmm", "sparse.mm"):
        both(PRODUCTS[name], matrix(graph, dtype=dtype), dense(3, 4, requires_grad=graph, dtype=dtype))


@given(sparse_tensors((3, 4)).filter(lambda t: t.sparse_dim() == 2), st.integers(1, 3))
def test_any_matrix(s, columns):
    d = dense(4, columns)
    both(
        lambda T, s, d: (
            s @ d,
            s.t(),
            T.sparse.mm(s, s.t()).to_dense(),
            s @ d[:, 0],
            T.sparse.sum(s, 0).to_dense(),
            T.hspmm(s, d),
            T.smm(s, d).to_dense(),
        ),
        s,
        d,
        alias=False,
    )


def test_products_of_sparse_matrices():
    for call in (lambda T, s: s @ s.t(), lambda T, s: T.mm(s.t(), s), lambda T, s: T.sparse.mm(s, s.t())):
        both(call, matrix(), alias=False)

    def gradients(T, show):
        s = T.sparse_coo_tensor(T.tensor([[0, 1, 1], [2, 0, 2]]), T.tensor([3.0, 4.0, 5.0]), (2, 3)).requires_grad_()
        d = T.eye(3)[:, :2].to_sparse().requires_grad_()
        result = product(T, s, d)
        show(result.grad_fn.name(), result.is_coalesced())
        result.to_dense().square().sum().backward()
        show(s.grad.coalesce().to_dense(), d.grad.coalesce().to_dense())

    for product in (lambda T, s, d: T.sparse.mm(s, d), lambda T, s, d: s @ d):
        same(gradients)


def test_products_that_stay_sparse():
    both(lambda T, s, d: (T.smm(s, d), T.hspmm(s, d), s.smm(d)), matrix(), dense(3, 4), alias=False, versions=False)
    start = torch.sparse_coo_tensor([[1, 0], [1, 3]], torch.ones(2, dtype=torch.float64), (2, 4))
    both(lambda T, b, s, d: T.sspaddmm(b, s, d, beta=2, alpha=3).coalesce(), start, matrix(), dense(3, 4), alias=False)
    for call in (lambda T, s, d: T.smm(s, d), lambda T, s, d: T.hspmm(s, d)):  # without a derivative
        both(lambda T, s, d: call(T, s, d).to_dense().sum().backward(), matrix(True), dense(3, 4))


def test_turned_over():
    for call in (
        lambda T, s: s.t(),
        lambda T, s: s.T,
        lambda T, s: s.transpose(1, 0),
        lambda T, s: s.mT,
        lambda T, s: s.permute(1, 0),
        lambda T, s: s.permute(0, -1),
    ):
        both(
            lambda T, s: (call(T, s)._indices(), call(T, s)._values(), call(T, s).is_coalesced()), matrix(), alias=False
        )
        both(lambda T, s: call(T, s).to_dense(), matrix(True), alias=False)
    hybrid = torch.sparse_coo_tensor([[0, 2], [1, 1]], dense(2, 2, 3), (3, 2, 2, 3))
    both(lambda T, s: (s.transpose(0, 1).to_dense(), s.permute(1, 0, 3, 2).to_dense()), hybrid, alias=False)
    both(lambda T, s: s.transpose(1, 2), hybrid)
    both(lambda T, s: s.transpose(2, 3), hybrid)


SUMS = [(), (0,), (1,), (-1,), ((0, 1),), ([1],)]


@pytest.mark.parametrize("dims", SUMS, ids=str)
def test_sums(dims):
    hybrid = torch.sparse_coo_tensor([[0, 2, 0], [1, 1, 0]], dense(3, 2), (3, 2, 2))
    for s in (matrix(), matrix(coalesced=False), hybrid):
        both(lambda T, s: T.sparse.sum(s, *dims), s, alias=False)
    both(lambda T, s: T.sparse.sum(s, *dims, dtype=T.float32), matrix(), alias=False)

    def gradient(T, s):
        total = T.sparse.sum(s, *dims)
        (total.to_dense() if total.is_sparse else total).square().sum().backward()
        return s.grad.coalesce(), total.grad_fn.name()

    both(gradient, matrix(True))
    both(gradient, hybrid.coalesce().requires_grad_())


def test_batches():
    batch = torch.stack([matrix().to_dense(), matrix().to_dense().flip(0)]).to_sparse()
    both(lambda T, s, d: T.bmm(s, d), batch, dense(2, 3, 4))


def test_a_graph_convolution():
    """A layer of pygcn: features times weights, then the sparse adjacency times that."""

    def program(T, adjacency, features):
        torch_linear = T.nn.functional.linear
        weight = T.ones(3, 4, dtype=T.float64).requires_grad_()
        hidden = T.spmm(adjacency, torch_linear(features, weight)).relu()
        T.nn.functional.mse_loss(T.spmm(adjacency, hidden), features[:, :3]).backward()
        return hidden, weight.grad

    adjacency = torch.sparse_coo_tensor(
        [[0, 1, 2, 2], [1, 0, 2, 0]], torch.full((4,), 0.5, dtype=torch.float64), (3, 3)
    )
    both(program, adjacency, dense(3, 4), grad=False)


REFUSED = [
    lambda T, s, d: s.mm(d.float()),
    lambda T, s, d: s.mm(d.t()),
    lambda T, s, d: s.mv(d[:, :1]),
    lambda T, s, d: s.mv(T.ones(5, dtype=d.dtype)),
    lambda T, s, d: s.mv(d[:, 0].float()),
    lambda T, s, d: T.sparse.sum(s, 5),
    lambda T, s, d: T.sparse.sum(s, (0, 0)),
    lambda T, s, d: T.sparse.mm(s, s),
    lambda T, s, d: T.mm(s.requires_grad_(), d, out=T.zeros(0, dtype=d.dtype)),
]


@pytest.mark.parametrize("call", REFUSED, ids=range(len(REFUSED)))
def test_refusals(call):
    both(call, matrix(), dense(3, 4))
