"""Matrix products: values, layouts, graphs, gradients of two orders, and errors."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import readtorch
from tests.reference import both, tensors
from tests.test_graphs import graph_of


def assert_same_graph(ours, theirs):
    if theirs.grad_fn is not None:
        assert graph_of(ours) == graph_of(theirs)


# Every path through matmul: dot, mv, mm, folding from either side, bmm with and without broadcasting; no rows.
SHAPES = [
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((3,), (3, 2)),
    ((2, 3), (3, 4)),
    ((2, 3, 4), (4,)),
    ((2, 3, 4), (4, 5)),
    ((2, 3, 4), (2, 4, 5)),
    ((4, 3), (2, 3, 5)),
    ((2, 3, 4), (1, 4, 5)),
    ((1, 3, 4), (2, 4, 5)),
    ((3,), (2, 3, 4)),
    ((2, 1, 3, 4), (5, 4, 2)),
    ((2, 3, 3, 4), (4,)),
    ((2, 0), (0, 3)),
    ((0,), (0,)),
    ((3, 5, 0), (0, 2)),
]


@pytest.mark.parametrize("a, b", SHAPES, ids=str)
@pytest.mark.parametrize("needs_grad", [(False, False), (True, False), (False, True), (True, True)], ids=str)
def test_matmul_takes_the_same_path(a, b, needs_grad):
    x, y = (torch.randn(shape).requires_grad_(g) for shape, g in zip((a, b), needs_grad))
    ours, theirs = both(lambda T, x, y: x @ y, x, y, grad=2)
    assert_same_graph(ours, theirs)


@given(st.sampled_from(SHAPES), st.data())
def test_matmul_in_any_layout(shapes, data):
    a, b = (data.draw(tensors(shape, torch.float64, requires_grad=True)) for shape in shapes)
    both(lambda T, a, b: T.matmul(a, b), a, b)


@pytest.mark.parametrize(
    "dtype", [torch.float16, torch.bfloat16, torch.float64, torch.complex64, torch.int64, torch.int8], ids=str
)
def test_types(dtype):
    a, b = (torch.arange(-6, 6).reshape(s).to(dtype) for s in ((3, 4), (4, 3)))
    both(
        lambda T, a, b: (
            T.mm(a, b),
            T.mv(a, b[:, 0]),
            T.dot(a[0], b[:, 1]),
            T.bmm(a[None], b[None]),
            T.addmm(a[:, :3], a, b, beta=2, alpha=3),
            T.outer(a[0], b[0]),
        ),
        a,
        b,
    )


ADDED = {
    "addmm": ((3,), (2, 4), (4, 3)),
    "addmv": ((2,), (2, 3), (3,)),
    "addr": ((2, 3), (2,), (3,)),
    "baddbmm": ((2, 3, 3), (2, 3, 4), (2, 4, 3)),
    "addbmm": ((3, 3), (2, 3, 4), (2, 4, 3)),
}


@pytest.mark.parametrize("name", ADDED)
@pytest.mark.parametrize("factors", [{}, {"beta": 2, "alpha": 0.5}, {"beta": 0, "alpha": 3}], ids=str)
def test_products_that_are_added(name, factors):
    inputs = [torch.randn(s, dtype=torch.float64).requires_grad_() for s in ADDED[name]]
    both(lambda T, *t: getattr(T, name)(*t, **factors), *inputs, grad=2)


def test_addmm_in_place_and_out():
    a, x, y = torch.randn(2, 3), torch.randn(2, 4), torch.randn(4, 3)
    both(lambda T, a, x, y: (a.addmm_(x, y, beta=0.5), T.addmm(a, x, y, out=T.empty(2, 3)))[1], a, x, y)


def test_nan_in_self_counts_nothing_with_beta_0():
    both(lambda T, a, x: T.addmm(a, x, x, beta=0), torch.full((2, 2), float("nan")), torch.randn(2, 2))


def test_addr_lies_as_self_does():
    x, y = torch.arange(2.0), torch.arange(3.0)
    both(lambda T, a, x, y: T.addr(a, x, y), torch.ones(3, 2).t(), x, y)
    both(lambda T, a, x, y: T.addr(a, x, y), torch.ones(2, 1).expand(2, 3), x, y)


def test_products_on_meta_have_the_dtypes_that_only_kernels_refuse():
    def program(T):
        b = T.empty(2, 2, dtype=T.bool, device="meta")
        return [T.mm(b, b).dtype, T.mv(b, b[0]).dtype, T.dot(b[0], b[0]).dtype, T.addmm(b, b, b).dtype]

    assert [str(d) for d in program(torch)] == [f"torch.{str(d).split('.')[-1]}" for d in program(readtorch)]


LINEAR = [
    ((2, 3), (4, 3), (4,)),
    ((2, 5, 3), (4, 3), (4,)),
    ((3,), (4, 3), (4,)),
    ((2, 3), (4, 3), None),
    ((2, 5, 3), (4, 3), None),
    ((2, 2, 2, 3), (4, 3), (4,)),
    ((3,), (4, 3), None),
    ((3,), (3,), None),
    ((2, 3), (3,), None),
]


@pytest.mark.parametrize("shapes", LINEAR, ids=str)
@pytest.mark.parametrize("grad", [False, True])
def test_linear(shapes, grad):
    inputs = [None if s is None else torch.randn(s).requires_grad_(grad) for s in shapes]
    ours, theirs = both(lambda T, x, w, b: T.nn.functional.linear(x, w, b), *inputs, grad=2)
    assert_same_graph(ours, theirs)


def test_linear_of_a_transposed_input():
    inputs = [torch.randn(s).requires_grad_() for s in ((5, 2, 3), (4, 3), (4,))]
    ours, theirs = both(lambda T, x, w, b: T.nn.functional.linear(x.transpose(0, 1), w, b), *inputs, versions=False)
    assert_same_graph(ours, theirs)


EINSUMS = [
    ("ij,jk->ik", (2, 3), (3, 4)),
    ("ij,jk", (2, 3), (3, 4)),
    ("bij,bjk->bik", (5, 2, 3), (5, 3, 4)),
    ("ii->i", (3, 3)),
    ("ii", (3, 3)),
    ("i,j->ij", (3,), (4,)),
    ("...ij,...jk->...ik", (2, 1, 2, 3), (5, 3, 4)),
    ("ij->", (2, 3)),
    ("ij->ji", (2, 3)),
    ("bn,anm,bm->ba", (2, 5), (3, 5, 4), (2, 4)),
    ("ijk,jil->kl", (2, 3, 4), (3, 2, 5)),
    ("ij,j->i", (2, 1), (3,)),
    ("abc,d->cab", (2, 3, 4), (5,)),
    ("iij,jk->ik", (3, 3, 4), (4, 2)),
]


@pytest.mark.parametrize("case", EINSUMS, ids=lambda c: c[0])
def test_einsum(case):
    inputs = [torch.randn(s).requires_grad_() for s in case[1:]]
    ours, theirs = both(lambda T, *t: T.einsum(case[0], *t), *inputs)
    assert_same_graph(ours, theirs)


def test_einsum_with_numbers_for_letters():
    both(lambda T, a, b: T.einsum(a, [0, 1], b, [1, 2], [0, 2]), torch.randn(2, 3), torch.randn(3, 4))


ERRORS = [
    "T.mm(a(3), a(3, 3))",
    "T.mm(a(3, 3), a(3))",
    "T.mm(a(3, 2), a(3, 2))",
    "T.mm(a(2, 2), a(2, 2).double())",
    "T.mm(a(2, 2).bool(), a(2, 2).bool())",
    "T.bmm(a(2, 2), a(2, 2))",
    "T.bmm(a(1, 2, 3), a(2, 3, 3))",
    "T.bmm(a(1, 2, 2), a(1, 2, 2).long())",
    "T.mv(a(2), a(2))",
    "T.mv(a(2, 2), a(3))",
    "T.dot(a(2), a(3))",
    "T.dot(a(2, 2), a(2))",
    "T.outer(a(2), a(2, 2))",
    "T.matmul(a(1)[0], a(2))",
    "a(2, 2, 3) @ a(2)",
    "a(2, 3, 3) @ a(3, 3, 3)",
    "T.addmm(a(3), a(2, 2), a(2, 2))",
    "T.addmm(a(2), a(2, 3), a(2, 2))",
    "T.addmm(a(2), a(2), a(2, 2))",
    "T.addmv(a(3), a(2, 2), a(2))",
    "T.baddbmm(a(3), a(2, 2, 2), a(2, 2, 2))",
    "T.addr(a(3), a(2), a(2))",
    "T.nn.functional.linear(a(2, 3), a(4, 2), a(4))",
    "T.inner(a(2, 3), a(2, 2))",
    "T.mm(a(2, 2), a(2, 2), out=a(2, 2).long())",
    "T.einsum('ij,jk->ik', a(2, 3))",
    "T.einsum('ij->k', a(2, 3))",
    "T.einsum('i$->i', a(2, 3))",
    "T.einsum('ij,jk', a(2, 3), a(4, 4))",
    "T.einsum('i.j->i', a(2, 3))",
    "T.einsum('iij->ij', a(2, 3, 4))",
    "T.einsum('ij->ii', a(2, 3))",
    "T.trace(a(3))",
    "T.tensordot(a(2, 3), a(4, 3), 2)",
    "T.linalg.multi_dot([a(2, 3)])",
    "T.linalg.multi_dot([a(2, 3), a(2, 3)])",
]


@pytest.mark.parametrize("expression", ERRORS)
def test_errors_use_the_same_words(expression):
    ours, _ = both(lambda T: eval(expression, {"T": T, "a": T.ones}))
    assert isinstance(ours, Exception)


FORMS = {
    "tensordot": (lambda T, a, b: T.tensordot(a, b, 2), (2, 3, 4), (3, 4, 5)),
    "tensordot of pairs": (lambda T, a, b: T.tensordot(a, b, ([1, 0], [0, 1])), (2, 3, 4), (3, 2, 5)),
    "inner": (lambda T, a, b: T.inner(a, b), (2, 3), (4, 3)),
    "kron": (lambda T, a, b: T.kron(a, b), (2, 3), (2, 4, 3)),
    "bilinear": (lambda T, a, b, w, c: T.bilinear(a, b, w, c), (2, 3), (2, 4), (5, 3, 4), (5,)),
    "multi_dot": (lambda T, *m: T.linalg.multi_dot(m), (2, 3), (3, 5), (5, 2), (2, 4)),
    "multi_dot of vectors": (lambda T, *m: T.linalg.multi_dot(m), (3,), (3, 5), (5,)),
    "cross": (lambda T, a, b: T.cross(a, b, dim=1), (2, 3), (2, 3)),
    "cross with broadcasting": (lambda T, a, b: T.linalg.cross(a, b), (2, 3), (1, 3)),
    "vecdot": (lambda T, a, b: T.linalg.vecdot(a, b), (2, 3), (2, 3)),
    "vdot": (lambda T, a, b: T.vdot(a, b), (3,), (3,)),
}


@pytest.mark.parametrize("name", FORMS)
def test_other_products(name):
    function, *shapes = FORMS[name]
    ours, theirs = both(function, *[torch.randn(s, dtype=torch.float64).requires_grad_() for s in shapes], grad=2)
    assert_same_graph(ours, theirs)


def test_trace():
    both(lambda T, a: T.trace(a), torch.randn(2, 3, requires_grad=True))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_factors_of_16_bit_products_are_float32_numbers(dtype):
    """1.3 and 0.7 are not rounded to 16 bits before they are used."""
    x, y, z = (torch.randn(6, 6, dtype=dtype) for _ in range(3))
    both(lambda T, x, y, z: T.addmm(x, y, z, beta=1.3, alpha=0.7), x, y, z, exact=True)
