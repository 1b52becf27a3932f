"""Sparse COO tensors next to the reference: made, asked, added, multiplied, and what they refuse."""

import copy
import io
import pickle
import warnings

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import readtorch
from tests.programs import same
from tests.reference import assert_close, both, to_readtorch, to_torch

pytestmark = pytest.mark.filterwarnings("ignore:Sparse invariant checks")


@st.composite
def sparse_tensors(draw, shape=None, requires_grad=False, dtype=torch.float64):
    """With indices that occur several times, with dense dimensions, without elements."""
    dims = draw(st.integers(1, 3))
    shape = shape or tuple(draw(st.lists(st.integers(1, 4), min_size=dims, max_size=dims)))
    sparse_dim = draw(st.integers(1, len(shape)))
    nnz = draw(st.integers(0, 7))
    columns = [[draw(st.integers(0, n - 1)) for _ in range(nnz)] for n in shape[:sparse_dim]]
    indices = torch.tensor(columns, dtype=torch.int64).reshape(sparse_dim, nnz)
    numbers = draw(st.lists(st.integers(-9, 9), min_size=1, max_size=5))
    values = torch.zeros(nnz, *shape[sparse_dim:], dtype=dtype)
    values.view(-1)[:] = torch.tensor((numbers * values.numel())[: values.numel()], dtype=dtype) / 4
    made = torch.sparse_coo_tensor(indices, values, shape)
    made = made.coalesce() if draw(st.booleans()) else made
    return made.requires_grad_(requires_grad)


@st.composite
def pairs(draw):
    """Two of one shape and as many sparse dimensions."""
    first = draw(sparse_tensors())
    alike = sparse_tensors(tuple(first.shape)).filter(lambda t: t.sparse_dim() == first.sparse_dim())
    return first, draw(alike)


def facts(T, t):
    return (
        t._nnz(),
        t.sparse_dim(),
        t.dense_dim(),
        t._dimI(),
        t._dimV(),
        t.is_coalesced(),
        t.is_sparse,
        str(t.layout),
        tuple(t.shape),
        t.dim(),
        t.numel(),
        t.type(),
        t.stride(),
        t.storage_offset(),
        t.element_size(),
        t.is_contiguous(),
        t.device.type,
        len(t),
        t.is_floating_point(),
        T.is_tensor(t),
    )


@given(sparse_tensors())
@settings(max_examples=60, deadline=None)
def test_facts_and_text(t):
    ours = to_readtorch(t)
    assert facts(readtorch, ours) == facts(torch, t)
    assert repr(ours) == repr(t)


@given(sparse_tensors(requires_grad=True))
@settings(max_examples=60, deadline=None)
def test_copies_and_conversions(t):
    def program(T, t):
        whole = t.coalesce()
        return (
            whole,
            whole.values(),
            whole.indices(),
            t.to_dense(),
            t.clone(),
            t.detach(),
            t.detach().float(),
            t.to(T.int32),
            t.to_sparse(),
            T.zeros_like(t),
            T.empty_like(t),
            t._values(),
            t._indices(),
            t.sum(),
        )

    # in PyTorch: values() is a view of the sparse tensor, indices() a window in longer memory
    both(program, t, alias=False, strides=False)


@given(sparse_tensors(), st.sampled_from([2, -0.5, 0]))
@settings(max_examples=60, deadline=None)
def test_arithmetic_with_numbers_and_dense_tensors(t, number):
    def program(T, t, dense, number):
        zero_dim = T.tensor(3.0, dtype=T.float64)
        return (
            t * number,
            number * t,
            t / 4,
            t / zero_dim,
            zero_dim * t,
            -t,
            t * dense,
            dense * t,
            dense + t,
            dense - t,
            T.add(dense, t, alpha=number),
            dense.sparse_mask(t),
            dense.clone().add_(t, alpha=3),
            dense.clone().mul_(t),
            t.abs(),
            t.sin(),
            t.sqrt(),
            t.relu(),
            t.sign(),
            t.pow(2),
            t.int() * 2,
        )

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        both(program, t, torch.randn(t.shape, dtype=torch.float64), number)


@given(pairs(), st.sampled_from([1, 2, -0.5]))
@settings(max_examples=80, deadline=None)
def test_sums_of_sparse_tensors(two, alpha):
    """Equal to the last index: the sum lists them in the same order."""

    def program(T, a, b, alpha):
        total = T.add(a, b, alpha=alpha)
        added = a.clone().add_(b, alpha=alpha)
        return total, added, a - b, a.clone().sub_(b), a.float() + b, a.sparse_mask(b.coalesce())

    both(program, *two, alpha)
    both(lambda T, a, b: a.coalesce() * b.coalesce(), *two)


def test_a_long_sum_is_walked_by_a_compiled_loop():
    torch.manual_seed(0)
    parts = [(torch.randint(300, (1, 400)), torch.randn(400, 3)) for _ in range(2)]
    both(
        lambda T, a, b: (
            T.sparse_coo_tensor(*a, (300, 3)) + T.sparse_coo_tensor(*b, (300, 3)),
            T.sparse_coo_tensor(*a, (300, 3)).coalesce() + T.sparse_coo_tensor(*b, (300, 3)).coalesce(),
        ),
        *parts,
        grad_fn=False,
    )


@given(sparse_tensors())
@settings(max_examples=40, deadline=None)
def test_writes_in_place(t):
    def program(T, t):
        shared = t.detach()
        versions = [t._version]
        seen = []
        for write in (
            lambda: t.mul_(2),
            lambda: t.div_(4),
            lambda: t.neg_(),
            lambda: t.add_(t),
            lambda: t.copy_(t + t),
            lambda: t.zero_(),
        ):
            write()
            versions.append(t._version > versions[-1])
            seen += [t.clone(), shared.clone()]
        return seen, versions[1:]

    both(program, t)


def test_new_tensors():
    def program(T, show):
        i, v = T.tensor([[0, 1, 1], [2, 0, 2]]), T.tensor([3.0, 4, 5])
        new = T.sparse_coo_tensor
        for made in (
            new(i, v, (2, 3)),
            new(i, v),
            new((2, 3)),
            new(size=(2, 3)),
            new(i.float(), v),
            new(i.int(), v, [4, 4]),
            new([[0, 1]], [1, 2.5], (2,), dtype=T.float64),
            new(i, T.ones(3, 2), (2, 3, 2)),
            new(i, v.bool()),
            new(i, v, (2, 3), is_coalesced=True),
            new([[0]], [1 + 2j], (2,)),
            new(T.zeros(0, 1).long(), [5.0], ()),
            new(T.zeros(1, 0).long(), T.zeros(0, 2), (3, 2)),
            new(i, v, (2, 3), requires_grad=True),
            new([[1]], 5.0),
            new(i, v * 1.0, (2, 3), dtype=T.int32),
            T.eye(3).to_sparse(),
            T.eye(3).to_sparse(1),
            T.tensor(3.0).to_sparse(),
            T.tensor(0.0).to_sparse(),
            T.zeros(2, 2).to_sparse(),
            new(T.arange(2000)[None], T.arange(2000.0)),
        ):
            show(made)
            show(made.is_coalesced(), made.requires_grad, str(made.dtype).split(".")[1])
        for wrong in (
            lambda: new(i, v, (2, 2), check_invariants=True),
            lambda: new(-i, v),
            lambda: new(i, v, (2, 3, 4)),
            lambda: new(-i, v, (2, 3), check_invariants=True),
            lambda: new(i, v[:2], (2, 3)),
            lambda: new(i[0], v, (2,), check_invariants=True),
            lambda: new([0, 1], v[:2]),
            lambda: new(i, 2.0),
            lambda: new(i, T.ones(3, 2), (2, 3, 4)),
            lambda: new(T.eye(2).to_sparse(), v),
            lambda: new(i.flip(1), v, (2, 3), is_coalesced=True, check_invariants=True),
            lambda: T.eye(2).to_sparse(0),
            lambda: T.eye(2).to_sparse(3),
            lambda: T.eye(2).to_sparse(-1),
            lambda: new([[0]], [1], (3,), requires_grad=True),
        ):
            show.error(wrong)
        for wrong in (lambda: new(i, v, 2), lambda: new(), lambda: new(i)):
            try:
                wrong()
            except TypeError as error:
                show(str(error).partition(" - ")[0])

    same(program)


def test_an_index_out_of_range_is_refused():
    """PyTorch makes such a tensor unless asked to check, and reads memory that is not its own."""
    with pytest.raises(RuntimeError, match="size is inconsistent with indices: for dim 0, size is 2 but found index 5"):
        readtorch.sparse_coo_tensor([[0, 5]], [1.0, 2.0], (2,))


def test_errors():
    def program(T, show):
        s, dense = T.sparse_coo_tensor([[1, 1, 0]], T.ones(3, 2), (4, 2)), T.ones(4, 2)
        plain = T.ones(2)
        for wrong in (
            lambda: s.indices(),
            lambda: s.values(),
            lambda: s + 1,
            lambda: s + dense,
            lambda: s - dense,
            lambda: plain + s,
            lambda: dense.int().add_(s),
            lambda: s.copy_(dense),
            lambda: dense.copy_(s),
            lambda: s + T.sparse_coo_tensor((4, 3)),
            lambda: s / dense,
            lambda: s.pow(0),
            lambda: s.numpy(),
            lambda: s.tolist(),
            lambda: s.untyped_storage(),
            lambda: s.data_ptr(),
            lambda: s.nbytes,
            lambda: s.contiguous(),
            lambda: s.to_dense(T.float64),
            lambda: dense.indices(),
            lambda: dense.values(),
            lambda: dense.coalesce(),
            lambda: dense.is_coalesced(),
            lambda: T.ones(4, 1).sparse_mask(s),
            lambda: bool(s),
        ):
            show.error(wrong)
        show(plain.sparse_dim(), plain.dense_dim(), plain.to_dense(), plain.is_sparse)
        for wrong in (
            lambda: s.cos_(),
            lambda: s.hypot(s),
            lambda: s.view(8),
            lambda: s.clamp(0, 1),
            lambda: s == s,
            lambda: s.fill_(1),
            lambda: dense.addcdiv_(dense, s),
            lambda: s.softmax(0),
            lambda: plain._nnz(),
            lambda: plain._values(),
            lambda: T.linalg.vector_norm(s),
        ):
            try:
                wrong()
            except NotImplementedError as error:
                show(str(error).partition(". ")[0])

    same(program)


def test_derivatives():
    def program(T, i, v, w):
        made = T.sparse_coo_tensor(i, v, (3, 2))
        return (
            made.to_dense(),
            (made * 2).to_dense(),
            (w + made).sum(),
            made.sum(),
            made.coalesce().values(),
            w.to_sparse(),
        )

    v, w = (torch.randn(3, 2, requires_grad=True) for _ in range(2))
    both(program, torch.tensor([[2, 0, 2]]), v, w, alias=False)
    both(lambda T, v: T.sparse_coo_tensor([[1, 0]], v, (3,)) * 2, torch.randn(2), grad=False)


@pytest.mark.parametrize("dim, index", [(0, [[1, 0], [2, 1]]), (1, [[1, 0, 0], [1, 1, 0]]), (1, [[], []])])
def test_sparse_gradient_of_gather(dim, index):
    def program(T, w, index):
        out = w.gather(dim, index, sparse_grad=True)
        out.backward(T.arange(out.numel(), dtype=T.float64).reshape(out.shape))
        return w.grad

    both(
        program,
        torch.randn(4, 2, requires_grad=True, dtype=torch.float64),
        torch.tensor(index, dtype=torch.int64),
        grad=False,
    )


def test_a_sparse_leaf_has_a_dense_gradient():
    def program(T, show):
        s = T.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (3,), requires_grad=True)
        s.sum().backward()
        show(s.grad)

    same(program)


def test_hooks_see_sparse_gradients():
    def program(T, show):
        w, seen = T.arange(8.0).reshape(4, 2).requires_grad_(), []
        w.register_hook(lambda grad: seen.append(grad) or grad * 2)
        with T.autograd.detect_anomaly(check_nan=True):
            T.nn.functional.embedding(T.tensor([3, 3, 0]), w, sparse=True).sum().backward()
        show(*seen, w.grad)

    same(program)


@pytest.mark.parametrize("grads", ["sparse", "dense"])
def test_clipping_and_zeroing(grads):
    def program(T, show):
        def parameter():
            p = T.nn.Parameter(T.ones(4, 2))
            T.nn.functional.embedding(T.tensor([3, 3, 0]), p, sparse=grads == "sparse").sum().backward()
            return p

        p = parameter()
        for clip in (
            lambda: T.nn.utils.clip_grad_norm_([p], 1.0, foreach=False),
            lambda: T.nn.utils.clip_grad_value_([p], 0.5, foreach=False),
        ):
            try:
                show(clip())
            except NotImplementedError as error:
                show(str(error).partition(". ")[0])
        p = parameter()
        T.optim.SGD([p]).zero_grad(set_to_none=False)
        show(p.grad)

    same(program)


def test_copies_and_pickles():
    for t in (torch.eye(3).to_sparse(), torch.sparse_coo_tensor([[1, 1]], torch.ones(2, 3), (4, 3))):
        ours = to_readtorch(t)
        file = io.BytesIO()
        readtorch.save({"a": ours}, file)
        file.seek(0)
        theirs = torch.load(file)["a"]
        for copied in (copy.deepcopy(ours), copy.copy(ours), pickle.loads(pickle.dumps(ours)), to_readtorch(theirs)):
            assert_close(copied, t)
        file = io.BytesIO()
        torch.save({"a": t}, file)
        file.seek(0)
        assert_close(readtorch.load(file)["a"], t)
        assert torch.equal(to_torch(ours).to_dense(), t.to_dense())


def test_sparse_and_meta_tensors_do_not_meet():
    for T in (readtorch, torch):
        sparse, dense = T.ones(3, 3).to_sparse(), T.empty(3, 3, device="meta")
        for call in (lambda: T.mm(sparse, dense), lambda: sparse * dense, lambda: dense.sparse_mask(sparse)):
            with pytest.raises(NotImplementedError, match="from the 'SparseMeta' backend"):
                call()
        with pytest.raises(NotImplementedError):
            dense.to_sparse()


def test_gradients_of_what_is_not_there():
    def program(T, show):
        indices = T.tensor([[0, 0, 1], [1, 1, 0]])
        for masked in (None, True, False):
            sparse = T.sparse_coo_tensor(indices, T.tensor([2.0, 3.0, 4.0]), (2, 3)).requires_grad_()
            dense = sparse.to_dense(masked_grad=masked)
            (dense * T.arange(6.0).reshape(2, 3)).sum().backward()
            show(dense, sparse.grad)

    same(program)


NORMS = (
    lambda T, x: x.norm(),
    lambda T, x: T.norm(x, 1),
    lambda T, x: T.norm(x, 0),
    lambda T, x: T.norm(x, 3.5),
    lambda T, x: T.norm(x, -1),
    lambda T, x: T.norm(x, float("inf")),
    lambda T, x: T.norm(x, None),
    lambda T, x: T.norm(x, "fro", tuple(range(x.dim()))),
    lambda T, x: T.norm(x, 2, tuple(range(-x.dim(), 0))),
    lambda T, x: T.norm(x, 2, ()),
    lambda T, x: T.ops.aten.norm.Scalar(x, 3),
    lambda T, x: x.half().norm(),
)


@given(sparse_tensors())
def test_norms(x):
    """Of the values of the coalesced tensor."""
    for norm in NORMS:
        both(norm, x)


def test_a_norm_has_a_gradient():
    def program(T, show):
        x = T.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3.0, -4.0, 5.0], (2, 3)).requires_grad_()
        y = T.norm(x, 1)
        y.backward()
        show(y.grad_fn.name(), x.grad.to_dense(), T.norm(x).detach())

    same(program)


@pytest.mark.parametrize(
    "norm",
    [
        lambda T, x: T.norm(x, 2, 0),
        lambda T, x: T.norm(x, 2, 5),
        lambda T, x: T.norm(x, 2, (0, 0)),
        lambda T, x: T.norm(x, 2, (0, 3)),
        lambda T, x: T.norm(x, 2, (0, 1), True),
        lambda T, x: T.norm(x, 2, dtype=T.float64),
        lambda T, x: T.norm(x, dtype=T.float64),
        lambda T, x: T.norm(x, "nuc", dtype=T.float64),
        lambda T, x: T.norm(x, "nuc"),
        lambda T, x: T.norm(x, "spectral"),
        lambda T, x: T.norm(x.long()),
        lambda T, x: T.norm(x, out=T.empty(())),
        lambda T, x: T.linalg.norm(x),
        lambda T, x: T.linalg.matrix_norm(x),
    ],
)
def test_norms_that_are_refused(norm):
    ours, theirs = both(norm, torch.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3)), message=False)
    if not isinstance(theirs, NotImplementedError):  # which lists the kernels that there are
        assert str(ours) == str(theirs)
