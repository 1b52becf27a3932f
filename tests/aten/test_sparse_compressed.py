"""Tensors of the layouts CSR, CSC, BSR and BSC beside PyTorch's: conversions, products, sums, what is refused."""

import copy
import io
import pickle

import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from hypothesis import given

import readtorch

pytestmark = pytest.mark.filterwarnings("ignore:Sparse")

LAYOUTS = ("sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc")
SOURCES = ("strided", "sparse_coo", *LAYOUTS)
DENSE = [[1.0, 0, 2, 0], [0, 0, 0, 3], [4, 5, 0, 0], [0, 0, 0, 6]]
BLOCK = (2, 2)


def of_layout(lib, data, name, dtype="float64", blocksize=BLOCK):
    t = lib.tensor(data, dtype=getattr(lib, dtype))
    if name == "strided":
        return t
    return t.to_sparse(layout=getattr(lib, name), blocksize=blocksize if "_bs" in name else None)


def shown(value):
    """A result as text: layout, numbers, dtypes, nodes; of an error its words."""
    return repr(value).replace("readtorch.", "torch.")


def told(lib, run):
    try:
        return shown(run(lib))
    except Exception as error:
        refused = str(error).split("\n")[0].split(' at "')[0]
        return f"{type(error).__name__}: {refused[:90]}"


def same(run):
    theirs, ours = told(torch, run), told(readtorch, run)
    assert ours == theirs
    return ours


# ------------------------------------------------------------------------------------------------- conversions


@pytest.mark.parametrize("target", SOURCES)
@pytest.mark.parametrize("source", SOURCES)
def test_each_layout_becomes_each_other_one_or_is_refused_with_pytorchs_words(source, target):
    blocksize = BLOCK if "_bs" in target else None
    same(lambda lib: of_layout(lib, DENSE, source).to_sparse(layout=getattr(lib, target), blocksize=blocksize))
    same(lambda lib: of_layout(lib, DENSE, source).to_dense())


matrices = st.tuples(
    st.integers(1, 3), st.integers(1, 3), st.sampled_from([(1, 1), (2, 1), (1, 3), (2, 2)]), st.integers(0, 2**32)
)


def drawn(rows, columns, block, seed, batch=()):
    generator = np.random.default_rng(seed)
    values = generator.integers(-2, 3, (*batch, rows * block[0], columns * block[1]))
    return (values * (generator.random(values.shape) < 0.4)).tolist()


@given(matrices, st.sampled_from(SOURCES), st.sampled_from(LAYOUTS))
def test_conversions_of_random_matrices(matrix, source, target):
    data, block = drawn(*matrix), matrix[2]
    blocksize = block if "_bs" in target else None

    def run(lib):
        t = of_layout(lib, data, source, blocksize=block).to_sparse(layout=getattr(lib, target), blocksize=blocksize)
        return t, t.to_sparse(), t.to_dense(), t.t().to_dense()

    same(run)


# In PyTorch: "MKL Sparse doesn't support matrices with non-square blocks."
square = matrices.map(lambda m: (m[0], m[1], (m[2][0], m[2][0]), m[3]))


@given(square, st.sampled_from(LAYOUTS), st.sampled_from(LAYOUTS), st.integers(1, 3))
def test_products_of_random_matrices(matrix, left, right, width):
    rows, columns, block, seed = matrix
    first, second = drawn(*matrix), drawn(columns, width, (block[1], 1), seed + 1)
    other = drawn(width, rows, (1, block[0]), seed + 2)

    def products(lib):
        sparse, dense, before = (
            of_layout(lib, first, left, blocksize=block),
            *[lib.tensor(d).double() for d in (second, other)],
        )
        yield lambda: sparse @ dense
        yield lambda: before @ sparse
        yield lambda: sparse @ dense[:, 0]
        yield lambda: lib.addmm(lib.ones(1, 1).double(), sparse, dense, beta=2, alpha=3)
        yield lambda: lib.sparse.mm(sparse, dense)
        yield lambda: sparse @ of_layout(lib, second, right, blocksize=(block[1], 1))

    for theirs, ours in zip(products(torch), products(readtorch)):
        assert told(readtorch, lambda lib: ours()) == told(torch, lambda lib: theirs())


def test_a_batch_has_as_many_elements_in_each_matrix():
    data = [[[1, 0], [0, 2]], [[0, 3], [0, 4]]]
    for name in LAYOUTS:
        same(lambda lib: of_layout(lib, data, name, blocksize=(1, 1)))
        same(lambda lib: of_layout(lib, data, name, blocksize=(1, 1))[1])
    same(lambda lib: of_layout(lib, [[[1, 0]], [[1, 1]]], "sparse_csr"))
    same(lambda lib: of_layout(lib, data, "sparse_csr").to_sparse_csc())
    same(lambda lib: of_layout(lib, data, "sparse_csr").to_sparse())
    same(lambda lib: of_layout(lib, data, "sparse_csr").transpose(1, 2))


def test_dense_dimensions():
    same(lambda lib: lib.arange(12.0).reshape(2, 2, 3).to_sparse_csr(dense_dim=1))
    same(lambda lib: lib.arange(12.0).reshape(2, 2, 3).to_sparse_bsc((1, 2), dense_dim=1).to_dense())
    same(lambda lib: lib.ones(2, 2).to_sparse_csr(dense_dim=1))


# ------------------------------------------------------------------------------------------------ constructors


def test_constructors_take_lists_and_find_the_size():
    same(lambda lib: lib.sparse_csr_tensor([0, 2, 3], [0, 1, 1], [1.0, 2, 3]))
    same(lambda lib: lib.sparse_csc_tensor([0, 2, 3], [0, 1, 1], [1, 2, 3], (2, 2), dtype=lib.float64))
    same(lambda lib: lib.sparse_bsr_tensor([0, 1], [0], [[[1.0, 2], [3, 4]]]))
    same(lambda lib: lib.sparse_bsc_tensor([0, 1, 1], [0], [[[1.0, 2], [3, 4]]], (4, 4)))
    same(lambda lib: lib.sparse_compressed_tensor([0, 1], [2], [5], layout=lib.sparse_csr))
    indices = [[0, 2, 3], [0, 1, 1]]
    same(
        lambda lib: lib.sparse_csr_tensor(
            *[lib.tensor(i, dtype=lib.int32) for i in indices], [1.0, 2, 3]
        ).to_sparse_csc()
    )
    same(lambda lib: lib.sparse_csr_tensor([0, 1], [0], [1.0], requires_grad=True).requires_grad)


@pytest.mark.parametrize(
    ("compressed", "plain", "values", "size"),
    [
        ([0, 2, 2], [0, 1, 1], [1.0, 2, 3], None),
        ([1, 2, 3], [0, 1, 1], [1.0, 2, 3], None),
        ([0, 4, 3], [1, 0, 2], [1.0, 2, 3], (2, 3)),
        ([0, 2, 3], [0, 7, 1], [1.0, 2, 3], (2, 3)),
        ([0, 3, 3], [1, 0, 2], [1.0, 2, 3], (2, 3)),
        ([0, 2, 3], [0, 1, 1], [1.0, 2], (2, 2)),
        ([0, 2, 3], [0, 1, 1], [1.0, 2, 3], (3, 3)),
        ([[0, 1], [0, 1]], [0, 1], [[1.0], [2.0]], None),
        (5, [0], [1.0], None),
        ([0, 2, 3], [0, 1, 1], [1.0, 2, 3], (2,)),
        ([0.0, 1.0], [0.0], [1.0], (1, 1)),
    ],
)
def test_indices_that_do_not_fit(compressed, plain, values, size):
    said = same(
        lambda lib: lib.sparse_csr_tensor(compressed, plain, values, *(size and [size] or ()), check_invariants=True)
    )
    assert "Error" in said


def test_what_constructors_refuse():
    assert "Error" in same(lambda lib: lib.sparse_csr_tensor([0, 1], [0], [1.0], layout=lib.sparse_csc))
    assert "Error" in same(lambda lib: lib.sparse_compressed_tensor([0, 1], [0], [1.0]))
    assert "Error" in same(lambda lib: lib.sparse_compressed_tensor([0, 1], [0], [1.0], layout=lib.strided))
    assert "Error" in same(lambda lib: lib.sparse_csr_tensor([0, 1]))
    assert "Error" in same(
        lambda lib: lib.sparse_bsr_tensor([0, 1], [0], [[[1.0, 2], [3, 4]]], (3, 2), check_invariants=True)
    )
    with pytest.raises(RuntimeError, match="0 <= col_indices < ncols"):
        readtorch.sparse_csr_tensor([0, 1], [7], [1.0], (1, 2))  # in PyTorch: only when it is asked to look


# ---------------------------------------------------------------------------------------- questions, arithmetic

QUESTIONS = """
    crow_indices col_indices ccol_indices row_indices values indices _nnz sparse_dim dense_dim is_coalesced coalesce numel stride
    is_contiguous data_ptr untyped_storage numpy type sum t zero_ clone detach double abs sin relu neg sqrt isnan signbit angle
""".split()


@pytest.mark.parametrize("name", LAYOUTS)
def test_questions_and_functions_of_each_value(name):
    for question in QUESTIONS:
        same(lambda lib: getattr(of_layout(lib, DENSE, name), question)())
    for question in ("layout", "is_sparse", "is_sparse_csr", "shape", "nbytes"):
        same(lambda lib: getattr(of_layout(lib, DENSE, name), question))
    same(lambda lib: of_layout(lib, DENSE, "strided").crow_indices())
    same(lambda lib: of_layout(lib, DENSE, "sparse_coo").row_indices())


OPERATIONS = {
    "x * 2": lambda lib, x, dense: x * 2,
    "0-dim * x": lambda lib, x, dense: lib.tensor(2) * x,
    "x *= 2": lambda lib, x, dense: x.mul_(2),
    "x * dense": lambda lib, x, dense: x * dense,
    "dense * x": lambda lib, x, dense: dense * x,
    "x * x": lambda lib, x, dense: x * x,
    "x + x": lambda lib, x, dense: x.add(x, alpha=3),
    "x + its copy": lambda lib, x, dense: x + x.clone(),
    "x + dense": lambda lib, x, dense: x + dense,
    "dense + x": lambda lib, x, dense: dense.add(x, alpha=2),
    "x + 1": lambda lib, x, dense: x + 1,
    "-x": lambda lib, x, dense: -x,
    "sums of columns": lambda lib, x, dense: x.sum(0, keepdim=True),
    "sums of rows": lambda lib, x, dense: x.sum(1, keepdim=True),
    "sum without keepdim": lambda lib, x, dense: x.sum(0),
    "x[2]": lambda lib, x, dense: x[2],
    "x[5]": lambda lib, x, dense: x[5],
    "like it": lambda lib, x, dense: (lib.zeros_like(x), lib.ones_like(x)),
    "fill": lambda lib, x, dense: x.fill_(3),
    "copy": lambda lib, x, dense: x.copy_(x.clone() * 2),
    "copy dense": lambda lib, x, dense: x.copy_(dense),
    "mask": lambda lib, x, dense: dense.sparse_mask(x),
    "sampled": lambda lib, x, dense: lib.sparse.sampled_addmm(x, dense, dense, beta=0.5, alpha=2),
    "wrong size": lambda lib, x, dense: x @ dense[:3],
    "wrong dtype": lambda lib, x, dense: x @ dense.float(),
    "wrong vector": lambda lib, x, dense: x @ dense[0, :3],
    "whole numbers": lambda lib, x, dense: x.to(lib.int64) @ dense.to(lib.int64),
    "int to double": lambda lib, x, dense: x.to(lib.int64).sum(),
    "blocks": lambda lib, x, dense: x.to_sparse_bsr((3, 2)),
    "no blocks": lambda lib, x, dense: x.to_sparse(layout=lib.sparse_bsr),
}


@pytest.mark.parametrize("what", OPERATIONS)
def test_arithmetic(what):
    for name in (
        ("sparse_csr", "sparse_csc")
        if what in ("x + its copy", "x + dense", "dense + x", "x + 1", "sampled")
        else LAYOUTS
    ):
        if what in ("x[2]", "sampled") and "_bs" in name:
            continue
        run = OPERATIONS[what]
        same(lambda lib: run(lib, of_layout(lib, DENSE, name), of_layout(lib, DENSE, "strided") + 1))


def test_add_joins_the_elements_of_both():
    other = np.roll(DENSE, 1, 0).tolist()
    same(lambda lib: of_layout(lib, DENSE, "sparse_csr") + of_layout(lib, other, "sparse_csr"))
    same(lambda lib: of_layout(lib, DENSE, "sparse_csr").add_(of_layout(lib, other, "sparse_csr"), alpha=-1))
    assert "Error" in same(lambda lib: of_layout(lib, DENSE, "sparse_csr") + of_layout(lib, DENSE[:3], "sparse_csr"))


# -------------------------------------------------------------------------------------------------- derivatives


@pytest.mark.parametrize("name", LAYOUTS)
def test_gradients_pass_conversions(name):
    def run(lib):
        x = lib.tensor(DENSE, dtype=lib.float64, requires_grad=True)
        sparse = x.to_sparse(layout=getattr(lib, name), blocksize=BLOCK if "_bs" in name else None)
        dense = sparse.to_dense()
        nodes = [t.grad_fn.name() for t in (sparse, dense)]
        return nodes, lib.autograd.grad((dense * lib.arange(16.0).reshape(4, 4)).sum(), x)[0]

    same(run)


@pytest.mark.parametrize("name", ("sparse_csr", "sparse_csc"))
def test_gradients_of_products(name):
    def run(lib):
        x = of_layout(lib, DENSE, name).requires_grad_()
        weight = lib.arange(8.0, dtype=lib.float64).reshape(4, 2).requires_grad_()
        y = lib.sparse.mm(x, weight)
        found = lib.autograd.grad((y**2).sum(), (x, weight))
        return y, y.grad_fn.name(), found[0].to_dense(), found[1]

    same(run)


def test_gradient_of_a_sampled_product():
    def run(lib):
        x = of_layout(lib, DENSE, "sparse_csr").requires_grad_()
        a, b = (lib.arange(8.0, dtype=lib.float64).reshape(shape).requires_grad_() for shape in ((4, 2), (2, 4)))
        y = lib.sparse.sampled_addmm(x, a, b, beta=2)
        return [g.to_dense() for g in lib.autograd.grad(y.to_dense().pow(2).sum(), (x, a, b))]

    same(run)


def test_a_leaf_adds_up_gradients_of_its_layout():
    def run(lib):
        x = of_layout(lib, DENSE, "sparse_csr").requires_grad_()
        for _ in range(2):
            x.to_dense().sum().backward()
        return x.grad

    same(run)


# ------------------------------------------------------------------------------------------------------- copies


@pytest.mark.parametrize("name", LAYOUTS)
def test_pickled_and_saved(name):
    x = of_layout(readtorch, DENSE, name)
    file = io.BytesIO()
    readtorch.save(x, file)
    file.seek(0)
    for back in (pickle.loads(pickle.dumps(x)), readtorch.load(file)):
        readtorch.testing.assert_close(back, x)
    same(lambda lib: copy.deepcopy(of_layout(lib, DENSE, name)))
    file = io.BytesIO()
    torch.save(of_layout(torch, DENSE, name), file)
    file.seek(0)
    assert shown(readtorch.load(file)) == shown(of_layout(torch, DENSE, name))


def test_compared_by_assert_close():
    x = of_layout(readtorch, DENSE, "sparse_csr")
    with pytest.raises(AssertionError, match="specified values"):
        readtorch.testing.assert_close(x, of_layout(readtorch, [[1.0] * 4] * 4, "sparse_csr"))
    with pytest.raises(AssertionError, match="not close"):
        readtorch.testing.assert_close(x, x * 2)


# --------------------------------------------------------------------------------- what is new for coordinates

COORDINATES = {
    "softmax": lambda lib, x: (lib.sparse.softmax(x, 0), lib.sparse.log_softmax(x, 1)),
    "softmax of a dense dimension": lambda lib, x: lib.sparse.softmax(x.unsqueeze(2), 2),
    "softmax of whole numbers": lambda lib, x: lib.sparse.softmax(x.long(), 0),
    "an element": lambda lib, x: (x[0], x[0, 2], x[:, 1], x[-1, 0]),
    "outside": lambda lib, x: x[9],
    "index_select": lambda lib, x: (x.index_select(0, lib.tensor([2, 0, 2])), x.index_select(1, lib.tensor([3]))),
    "cat": lambda lib, x: (lib.cat([x, x]), lib.cat([x, x], 1), lib.stack([x, x]), lib.stack([x, x], 2)),
    "cat of others": lambda lib, x: lib.cat([x, lib.ones(3, 3).to_sparse()]),
    "unsqueeze": lambda lib, x: (x.unsqueeze(0), x.unsqueeze(1), x.unsqueeze(2)),
    "more functions": lambda lib, x: (x.isnan(), x.deg2rad(), x.signbit(), x.frac()),
}


@pytest.mark.parametrize("what", COORDINATES)
def test_coordinates(what):
    same(lambda lib: COORDINATES[what](lib, of_layout(lib, DENSE, "sparse_coo")))


@pytest.mark.parametrize(("name", "dim"), [("softmax", 0), ("softmax", 1), ("log_softmax", 0), ("log_softmax", 1)])
def test_gradient_of_softmax(name, dim):
    def run(lib):
        x = of_layout(lib, DENSE, "sparse_coo").requires_grad_()
        y = getattr(lib.sparse, name)(x, dim)
        return y.grad_fn.name(), lib.autograd.grad(y.to_dense().pow(2).sum(), x)[0].to_dense()

    same(run)
