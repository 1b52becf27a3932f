"""Batching rules of what reads and writes at indices.

In PyTorch: `aten/src/ATen/functorch/BatchRulesScatterOps.cpp`. Explained in the chapter "Forward mode, vmap and torch.func".
"""

from readtorch.aten.functions import at
from readtorch.c10.scalar_type import bool as BOOL
from readtorch.c10.wrap_dim import wrap_dim

from .batch_rules_helper import (
    batch_size_of,
    decomposition,
    logical_rank,
    padded,
    physical,
    to_front,
    vmap_support,
    with_bdim,
)
from .batched_fallback import incompatible_inplace

# ----------------------------------------------------------------------------------------- gather and scatter
# Rows go by themselves along all dimensions but one: a batch dimension before them is one more. A number is read as a row of one.


def as_rows(*pairs):
    """Each tensor with a batch dimension in front and at least one behind it."""
    size = batch_size_of(pairs)
    batches = [with_bdim(t, bdim, size) for t, bdim in zip(pairs[::2], pairs[1::2])]
    return [t.unsqueeze(-1) if t.dim() == 1 else t for t in batches]


def like_example(result, rank):
    """A row of one as the number that it stands for."""
    return result.squeeze(-1) if rank == 0 else result


@vmap_support("gather")
def gather_rule(call, self, self_bdim, dim, index, index_bdim, sparse_grad):
    rank = logical_rank(index, index_bdim)
    self, index = as_rows(self, self_bdim, index, index_bdim)
    return like_example(call(self, physical(dim, self.dim() - 1), index, sparse_grad), rank), 0


@vmap_support("scatter.value scatter.value_reduce")
def scatter_number_rule(call, self, self_bdim, dim, index, index_bdim, value, *reduce):
    rank = logical_rank(self, self_bdim)
    self, index = as_rows(self, self_bdim, index, index_bdim)
    return like_example(call(self, physical(dim, self.dim() - 1), index, value, *reduce), rank), 0


@vmap_support("scatter.src scatter.reduce scatter_add scatter_reduce.two")
def scatter_rule(call, self, self_bdim, dim, index, index_bdim, src, src_bdim, *reduce):
    rank = logical_rank(self, self_bdim)
    self, index, src = as_rows(self, self_bdim, index, index_bdim, src, src_bdim)
    return like_example(call(self, physical(dim, self.dim() - 1), index, src, *reduce), rank), 0


# ----------------------------------------------------------------------------------- one list of places for all rows


def expanded_index(index, sizes, dim):
    """A list of places along `dim`, for each row of a tensor of `sizes`."""
    if not sizes:
        return index
    dim = wrap_dim(dim, len(sizes))
    index = index.unsqueeze(0) if index.dim() == 0 else index
    index = index.reshape([-1 if d == dim else 1 for d in range(len(sizes))])
    return index.expand([index.shape[dim] if d == dim else n for d, n in enumerate(sizes)])


@decomposition("index_select")
def index_select_decomposition(self, dim, index):
    found = at.gather(self, dim, expanded_index(index, self.shape, dim))
    return found.squeeze(-1) if self.dim() == 0 and found.dim() else found


@decomposition("index_copy")
def index_copy_decomposition(self, dim, index, source):
    return at.scatter(self, dim, expanded_index(index, self.shape, dim), source)


def own_places(index, self, dim):
    """The examples' lists of places, each for the rows of its example."""
    index = index.unsqueeze(-1) if index.dim() == 1 else index
    index = index.reshape([index.shape[0], *[index.shape[1] if d == dim else 1 for d in range(1, self.dim())]])
    return index.expand([index.shape[d] if d == dim else n for d, n in enumerate(self.shape)])


def at_places(scatter):
    """The rule of an operator `f(self, dim, index, source, …)`: one call while the list of places is shared; else `scatter`, which
    has a place for each element.
    """

    def rule(call, self, self_bdim, dim, index, index_bdim, source, source_bdim, *rest):
        rank = logical_rank(self, self_bdim)
        if index_bdim is None:
            self, source = as_rows(self, self_bdim, source, source_bdim)
            return like_example(call(self, physical(dim, self.dim() - 1), index, source, *rest), rank), 0
        self, index, source = as_rows(self, self_bdim, index, index_bdim, source, source_bdim)
        dim = physical(dim, self.dim() - 1)
        return like_example(scatter(self, dim, own_places(index, self, dim), source, *rest), rank), 0

    return rule


@vmap_support("index_add")
@at_places
def index_add_rule(self, dim, index, source, alpha):
    return at.scatter_add(self, dim, index, source if alpha == 1 else source * alpha)


@vmap_support("index_reduce")
@at_places
def index_reduce_rule(self, dim, index, source, reduce, include_self):
    return at.scatter_reduce(self, dim, index, source, reduce, include_self=include_self)


@vmap_support("index_fill.int_Scalar")
def index_fill_number_rule(call, self, self_bdim, dim, index, index_bdim, value):
    rank = logical_rank(self, self_bdim)
    if index_bdim is None:
        (self,) = as_rows(self, self_bdim)
        return like_example(call(self, physical(dim, self.dim() - 1), index, value), rank), 0
    self, index = as_rows(self, self_bdim, index, index_bdim)
    dim = physical(dim, self.dim() - 1)
    return like_example(at.scatter(self, dim, own_places(index, self, dim), value), rank), 0


@vmap_support("index_fill.int_Tensor")
def index_fill_rule(call, self, self_bdim, dim, index, index_bdim, value, value_bdim):
    """A value is spread over the places that it fills."""
    rank = logical_rank(self, self_bdim)
    self, index, value = as_rows(self, self_bdim, index, index_bdim, value, value_bdim)
    dim = physical(dim, self.dim() - 1)
    places = own_places(index, self, dim)
    values = value.to(self.dtype).reshape([-1] + [1] * (self.dim() - 1)).expand(places.shape)
    return like_example(at.scatter(self, dim, places, values), rank), 0


@decomposition("take")
def take_decomposition(self, index):
    flat = self.flatten()
    places = at.where(index < 0, index + flat.shape[0], index)
    return at.gather(flat, 0, places.flatten()).reshape(index.shape)


@decomposition("put")
def put_decomposition(self, index, source, accumulate):
    flat = at.index_put(self.flatten(), (index.flatten(),), source.flatten(), accumulate)
    return flat.reshape(self.shape)


# --------------------------------------------------------------------------------------- the scatters of views


def both(self, self_bdim, src, src_bdim):
    size = batch_size_of((self, self_bdim, src, src_bdim))
    return with_bdim(self, self_bdim, size), with_bdim(src, src_bdim, size)


@vmap_support("slice_scatter select_scatter")
def scatter_along_rule(call, self, self_bdim, src, src_bdim, dim, *places):
    self, src = both(self, self_bdim, src, src_bdim)
    return call(self, src, physical(dim, self.dim() - 1), *places), 0


@vmap_support("diagonal_scatter")
def diagonal_scatter_rule(call, self, self_bdim, src, src_bdim, offset, dim1, dim2):
    self, src = both(self, self_bdim, src, src_bdim)
    rank = self.dim() - 1
    return call(self, src, offset, physical(dim1, rank), physical(dim2, rank)), 0


# -------------------------------------------------------------------------------------------- index, index_put
# Note [ Advanced indices ]
# Where all index tensors stand side by side, the dimensions that they make stand in their place; else, in front. A batch
# dimension of self before them is taken by `:`, or, if examples have indices of their own, by one more index, 0, 1, 2, …: then the
# dimensions that the indices make may have to be moved.


def advanced(indices):
    return [i for i, index in enumerate(indices) if index is not None]


def are_adjacent(indices):
    places = advanced(indices)
    return places == list(range(places[0], places[0] + len(places))) if places else True


def batched_indices(indices, bdims, size, self_is_batched):
    """The physical indices, and the logical rank of the dimensions that they make."""
    rank = max([logical_rank(t, b) for t, b in zip(indices, bdims) if t is not None])
    whole = []
    for t, bdim in zip(indices, bdims):
        if t is not None:
            if t.dtype is BOOL and bdim is not None:
                raise RuntimeError(
                    "vmap: We do not support batching operators that can support dynamic shape. Attempting to batch over "
                    "indexing with a boolean mask."
                )
            t = padded(t, bdim, rank)
        whole.append(t)
    are_batched = any([b is not None for b in bdims])
    if self_is_batched:
        examples = at.arange(size).reshape([size] + [1] * rank) if are_batched else None
        whole.insert(0, examples)
    return whole, rank, are_batched


def without_masks(indices, bdims):
    """Each mask that all examples share, as the indices of its elements: one for each of its dimensions."""
    places, place_bdims = [], []
    for t, bdim in zip(indices, bdims):
        if t is not None and t.dtype is BOOL and bdim is None:
            found = t.nonzero(as_tuple=True) if t.dim() else t.unsqueeze(0).nonzero(as_tuple=True)
            places += found
            place_bdims += [None] * len(found)
        else:
            places.append(t)
            place_bdims.append(bdim)
    return places, place_bdims


def swap_regions(t, first, second):
    """The `first` dimensions behind the batch dimension, and the `second` after these, change places."""
    order = [0, *range(1 + first, 1 + first + second), *range(1, 1 + first), *range(1 + first + second, t.dim())]
    return t.permute(order)


@vmap_support("index.Tensor")
def index_rule(call, self, self_bdim, indices, indices_bdims):
    """See Note [ Advanced indices ]."""
    indices, indices_bdims = without_masks(indices, indices_bdims)
    self = to_front(self, self_bdim)
    size = self.shape[0] if self_bdim is not None else None
    whole, rank, are_batched = batched_indices(indices, indices_bdims, size, self_bdim is not None)
    found = call(self, whole)
    leading = advanced(indices)[0]
    if not are_batched:
        return found, 0 if are_adjacent(indices) else rank
    if self_bdim is None:
        return found, leading if are_adjacent(indices) else 0
    return swap_regions(found, rank, leading) if are_adjacent(indices) and leading else found, 0


def index_put_operands(self, self_bdim, indices, indices_bdims, values, values_bdim):
    """Their physical forms, each with a batch dimension. The values lie as `self[indices]` would."""
    pairs = [x for pair in zip(indices, indices_bdims) for x in pair]
    size = batch_size_of((self, self_bdim, values, values_bdim, *pairs))
    indices, indices_bdims = without_masks(indices, indices_bdims)
    self, values = with_bdim(self, self_bdim, size), with_bdim(values, values_bdim, size)
    whole, rank, are_batched = batched_indices(indices, indices_bdims, size, True)
    leading = advanced(indices)[0]
    indexed_rank = self.dim() - 1 - len(advanced(indices)) + rank
    values = padded(values, 0, indexed_rank)
    if not are_batched:
        values = values if are_adjacent(indices) else values.movedim(0, rank)
    elif are_adjacent(indices) and leading:
        values = swap_regions(values, leading, rank)
    return self, whole, values


@vmap_support("index_put")
def index_put_rule(call, self, self_bdim, indices, indices_bdims, values, values_bdim, accumulate):
    self, indices, values = index_put_operands(self, self_bdim, indices, indices_bdims, values, values_bdim)
    return call(self, indices, values, accumulate), 0


@vmap_support("_index_put_impl_")
def index_put_impl_rule(call, self, self_bdim, indices, indices_bdims, values, values_bdim, accumulate, unsafe):
    if self_bdim is None:
        raise RuntimeError(incompatible_inplace("_index_put_impl_"))
    self, indices, values = index_put_operands(self, self_bdim, indices, indices_bdims, values, values_bdim)
    call(self, indices, values, accumulate, unsafe)
    return None, None


def inside(indices, sizes):
    """Places outside a tensor, which a mask hides, as its outermost."""
    return [None if i is None else at.clamp(i, -n, n - 1) for i, n in zip(indices, sizes)]


@decomposition("_unsafe_masked_index")
def unsafe_masked_index_decomposition(self, mask, indices, fill):
    return at.index(self, inside(indices, self.shape)).masked_fill(~mask, fill)


@decomposition("_unsafe_masked_index_put_accumulate")
def unsafe_masked_index_put_accumulate_decomposition(self, mask, indices, values):
    return at.index_put(self, inside(indices, self.shape), values.masked_fill(~mask, 0), True)
