"""Many 16-bit numbers that come to one element: which sums are kept in float32, and which are rounded at each step."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import readtorch

HALVES = ("float16", "bfloat16")
REDUCTIONS = ("sum", "mean", "prod")


def all_forms(T, own, src, places, dim, include_self):
    """Every operator that sends slices of `src` to `own`; `places` is a vector. Each only where both libraries know it."""
    shape = [1] * own.dim()
    shape[dim] = -1
    each = places.long().reshape(shape).expand(src.shape)
    yield "index_add", own.index_add(dim, places, src)
    yield "scatter_add", own.scatter_add(dim, each, src)
    yield "scatter, add", own.clone().scatter_(dim, each, 0.3, reduce="add")
    for reduce in REDUCTIONS:
        yield f"scatter_reduce {reduce}", own.scatter_reduce(dim, each, src, reduce, include_self=include_self)
    for reduce in REDUCTIONS[1:]:
        yield f"index_reduce {reduce}", own.index_reduce(dim, places, src, reduce, include_self=include_self)
    yield "put", own.put(each, src, accumulate=True)
    yield "index_put", own.movedim(dim, 0).index_put((places,), src.movedim(dim, 0), accumulate=True)


def gradients_of_lookups(T, own, src, places, dim):
    shape = [1] * own.dim()
    shape[dim] = -1
    each = places.long().reshape(shape).expand(src.shape)
    for name, read in {
        "index_select": lambda t: t.index_select(dim, places),
        "gather": lambda t: t.gather(dim, each),
        "index": lambda t: t.movedim(dim, 0)[places].movedim(0, dim),
    }.items():
        leaf = own.clone().requires_grad_()
        read(leaf).backward(src)
        yield name, leaf.grad


@pytest.mark.filterwarnings("ignore:index_reduce", "ignore:The reduce argument")
@settings(max_examples=60, deadline=None)
@given(st.data())
def test_what_many_numbers_add_up_to(data):
    dtype, index_type = data.draw(st.sampled_from(HALVES)), data.draw(st.sampled_from(("int64", "int32")))
    dims = data.draw(st.integers(1, 3))
    dim, count = data.draw(st.integers(0, dims - 1)), data.draw(st.integers(1, 700))
    torch.manual_seed(data.draw(st.integers(0, 1000)))
    sizes = [3 if d == dim else 2 for d in range(dims)]
    own = torch.rand(sizes).to(getattr(torch, dtype))
    sizes[dim] = count
    src, places = torch.rand(sizes).add(0.5).to(own.dtype), torch.randint(0, 3, (count,)).to(getattr(torch, index_type))
    include_self = data.draw(st.booleans())
    arguments = [(T, *[_in(T, t) for t in (own, src, places)], dim) for T in (torch, readtorch)]
    for one, other in zip(all_forms(*arguments[0], include_self), all_forms(*arguments[1], include_self)):
        assert_equal(one, other)
    for one, other in zip(gradients_of_lookups(*arguments[0]), gradients_of_lookups(*arguments[1])):
        assert_equal(one, other)


def _in(T, t):
    return t.clone() if T is torch else readtorch.tensor(t.tolist(), dtype=getattr(readtorch, str(t.dtype)[6:]))


def assert_equal(theirs, ours):
    assert theirs[0] == ours[0] and str(theirs[1].dtype) == str(ours[1].dtype)
    assert torch.equal(theirs[1].float(), torch.tensor(ours[1].tolist()).float()), theirs[0]


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("settings", [(-1, False), (1, False), (-1, True), (1, True)], ids=str)
def test_the_gradient_of_an_embedding_is_rounded_at_each_step(dtype, settings):
    torch.manual_seed(0)
    rows, numbers = torch.randn(3000, 3).to(getattr(torch, dtype)), torch.randint(0, 3, (3000,))
    results = [
        (dtype, T.ops.aten.embedding_dense_backward(_in(T, rows), _in(T, numbers), 4, *settings))
        for T in (torch, readtorch)
    ]
    assert_equal(*results)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_the_gradient_of_a_bag_is_rounded_at_each_step(dtype, mode):
    """All its indices are equal, so their order is the same."""
    found = []
    for T in (torch, readtorch):
        weight = T.ones(2, 3, dtype=getattr(T, dtype), requires_grad=True)
        T.nn.functional.embedding_bag(T.ones(5000, 1, dtype=T.int64), weight, mode=mode).sum().backward()
        found.append((dtype, weight.grad))
    assert_equal(*found)
    assert found[0][1][1, 0] < 5000


@pytest.mark.parametrize("dtype", HALVES)
def test_index_add_with_a_factor(dtype):
    torch.manual_seed(0)
    own, src, places = torch.rand(4, 3), torch.randn(500, 3), torch.randint(0, 4, (500,))
    own, src = own.to(getattr(torch, dtype)), src.to(getattr(torch, dtype))
    assert_equal(
        *[(dtype, _in(T, own).index_add(0, _in(T, places), _in(T, src), alpha=0.3)) for T in (torch, readtorch)]
    )
