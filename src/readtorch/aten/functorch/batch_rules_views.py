"""Batching rules of views and of what only moves elements: the batch goes to the front, and dimensions are counted behind it.

In PyTorch: `aten/src/ATen/functorch/BatchRulesViews.cpp`. Explained in the chapter "Forward mode, vmap and torch.func".
"""

import math

from readtorch.aten.dispatcher import registry
from readtorch.aten.functions import at
from readtorch.c10.local_dispatch_key_set import tls
from readtorch.c10.tensor_impl import storage_offset
from readtorch.c10.wrap_dim import wrap_dim

from .batch_rules_helper import batch_rule, is_batched_here, physical, rule_for, to_front
from .batched_tensor_impl import refresh_metadata
from .gen_vmap_plumbing import plumbed


def at_dims(operator):
    """The kernel of an operator of one tensor whose other ints called dim… are dimensions of it."""
    places = [i for i, a in enumerate(operator.schema.arguments) if a.name in _DIMENSIONS]
    returns_list = operator.schema.returns[0].type.is_list
    call = operator.call

    def rule(self, self_bdim, *others):
        self = to_front(self, self_bdim)
        rank = self._array.ndim - 1
        if not rank:
            self = at.unsqueeze(self, 1)
        arguments = [self, *others]
        for i in places:
            dim = arguments[i]
            arguments[i] = wrap_dim(dim, rank) + 1 if isinstance(dim, int) else [wrap_dim(d, rank) + 1 for d in dim]
        result = call(*arguments)
        return (result if rank or returns_list else at.reshape(result, self._array.shape[:1])), 0

    return plumbed(operator, rule)


_DIMENSIONS = {"dim", "dim0", "dim1", "dim2", "dims", "dimension"}

rule_for(
    at_dims,
    "slice.Tensor transpose.int flip split.Tensor split_with_sizes unsafe_split.Tensor unsafe_split_with_sizes "
    "unbind.int select.int diagonal unfold",
)


@batch_rule("unfold")
def unfold_batch_rule(self, self_bdim, dimension, size, step):
    self = to_front(self, self_bdim)
    rank = self._array.ndim - 1
    if not rank:
        return at.squeeze(at.unfold(at.unsqueeze(self, 1), 1, size, step), 1), 0
    return at.unfold(self, wrap_dim(dimension, rank) + 1, size, step), 0


@batch_rule("select.int")
def select_batch_rule(self, self_bdim, dim, index):
    rank = self._array.ndim - 1
    if rank == 0:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    dim = wrap_dim(dim, rank)
    if dim < self_bdim:
        return at.select(self, dim, index), self_bdim - 1
    return at.select(self, dim + 1, index), self_bdim


@batch_rule("t")
def t_batch_rule(self, self_bdim):
    self = to_front(self, self_bdim)
    rank = self._array.ndim - 1
    if rank > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {rank}D")
    return (at.transpose(self, 1, 2) if rank == 2 else self), 0


@batch_rule("permute")
def permute_batch_rule(self, self_bdim, dims):
    rank = self._array.ndim - 1
    if len(dims) != rank:
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired ordering of "
            f"dimensions i.e. input.dim() = {rank} is not equal to len(dims) = {len(dims)}"
        )
    return at.permute(to_front(self, self_bdim), [0, *[wrap_dim(d, rank) + 1 for d in dims]]), 0


@batch_rule("unsqueeze")
def unsqueeze_batch_rule(self, self_bdim, dim):
    return at.unsqueeze(to_front(self, self_bdim), physical(dim, self._array.ndim)), 0


@batch_rule("squeeze")
def squeeze_batch_rule(self, self_bdim):
    sizes = self._array.shape
    dims = [d for d, n in enumerate(sizes) if n == 1 and d != self_bdim]
    return at.squeeze(self, dims), self_bdim - len([d for d in dims if d < self_bdim])


@batch_rule("squeeze.dim")
def squeeze_dim_batch_rule(self, self_bdim, dim):
    return squeeze_dims_batch_rule(self, self_bdim, [dim])


@batch_rule("squeeze.dims")
def squeeze_dims_batch_rule(self, self_bdim, dim):
    self = to_front(self, self_bdim)
    rank = self._array.ndim - 1
    dims = [wrap_dim(d, rank) + 1 for d in dim]
    return at.squeeze(self, dims if rank else []), 0


@batch_rule("view", "_unsafe_view", "_reshape_alias")
def view_batch_rule(self, self_bdim, size, *strides):
    self = to_front(self, self_bdim)
    sizes = self._array.shape
    batch, numel = sizes[0], math.prod(sizes[1:])
    return at.view(self, (batch, *inferred(size, numel))), 0


def inferred(size, numel):
    """A size with its -1 replaced, for examples of so many elements."""
    if -1 not in size:
        if math.prod(size) != numel:
            raise RuntimeError(f"shape '{list(size)}' is invalid for input of size {numel}")
        return size
    known = math.prod([n for n in size if n != -1])
    if list(size).count(-1) > 1:
        raise RuntimeError("only one dimension can be inferred")
    if known == 0:
        raise RuntimeError(
            f"cannot reshape tensor of 0 elements into shape {list(size)} because the unspecified dimension size -1 can be any value "
            "and is ambiguous"
        )
    if numel % known:
        raise RuntimeError(f"shape '{list(size)}' is invalid for input of size {numel}")
    return [numel // known if n == -1 else n for n in size]


@batch_rule("view.dtype")
def view_dtype_batch_rule(self, self_bdim, dtype):
    if self._array.ndim == 1 and self.dtype.itemsize != dtype.itemsize:
        raise RuntimeError(
            f"self.dim() cannot be 0 to view {self.dtype} as {dtype} (different element sizes)".replace("torch.", "")
        )
    return at.view(to_front(self, self_bdim), dtype), 0


@batch_rule("view_as_real")
def view_as_real_batch_rule(self, self_bdim):
    return at.view_as_real(self), self_bdim


@batch_rule("view_as_complex")
def view_as_complex_batch_rule(self, self_bdim):
    if self._array.ndim == 1:
        raise RuntimeError("Input tensor must have one or more dimensions")
    return at.view_as_complex(to_front(self, self_bdim)), 0


@batch_rule("expand")
def expand_batch_rule(self, self_bdim, size, implicit):
    self = to_front(self, self_bdim)
    shape = self._array.shape
    missing = len(size) - (len(shape) - 1)
    if missing < 0:
        raise RuntimeError(
            f"expand: the number of sizes provided ({len(size)}) must be greater or equal to the number of dimensions in the tensor "
            f"({len(shape) - 1})"
        )
    for _ in range(missing):
        self = at.unsqueeze(self, 1)
    return at.expand(self, (shape[0], *size), implicit=bool(implicit)), 0


@batch_rule("as_strided")
def as_strided_batch_rule(self, self_bdim, size, stride, offset):
    """Each example begins at its own place, which the batch dimension's stride says.

    In PyTorch: `as_strided_batching_rule`, which refuses what would leave an example's memory.
    """
    strides = self.stride()
    begin = storage_offset(self) if offset is None else offset
    batch, step = self._array.shape[self_bdim], strides[self_bdim]
    return at.as_strided(self, (batch, *size), (step, *stride), begin), 0


@batch_rule("repeat")
def repeat_batch_rule(self, self_bdim, repeats):
    self = to_front(self, self_bdim)
    missing = len(repeats) - (self._array.ndim - 1)
    if missing < 0:
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
    for _ in range(missing):
        self = at.unsqueeze(self, 1)
    return at.repeat(self, (1, *repeats)), 0


@batch_rule("roll")
def roll_batch_rule(self, self_bdim, shifts, dims):
    self = to_front(self, self_bdim)
    rank = self._array.ndim - 1
    if dims:
        return at.roll(self if rank else self, shifts, [wrap_dim(d, rank) + 1 for d in dims] if rank else [0]), 0
    flat = at.reshape(self, (self._array.shape[0], -1))
    return at.reshape(at.roll(flat, list(shifts), [1] * len(shifts)), self._array.shape), 0


@batch_rule("rot90")
def rot90_batch_rule(self, self_bdim, k, dims):
    rank = self._array.ndim - 1
    return at.rot90(to_front(self, self_bdim), k, [wrap_dim(d, rank) + 1 for d in dims]), 0


def on_last_dims(operator):
    """The kernel of an operator of one tensor that treats all but the last dimensions as batches already."""

    def rule(self, self_bdim, *others):
        return operator.call(to_front(self, self_bdim), *others), 0

    return plumbed(operator, rule)


rule_for(on_last_dims, "tril triu pixel_shuffle pixel_unshuffle")


@batch_rule("diag_embed")
def diag_embed_batch_rule(self, self_bdim, offset, dim1, dim2):
    self = to_front(self, self_bdim)
    rank = self._array.ndim
    return at.diag_embed(self, offset, wrap_dim(dim1, rank) + 1, wrap_dim(dim2, rank) + 1), 0


@batch_rule("trace")
def trace_batch_rule(self, self_bdim):
    return at.sum(at.diagonal(to_front(self, self_bdim), 0, 1, 2), [1]), 0


# -------------------------------------------------------------------------------- gradients of views, which fill zeros


@batch_rule("select_backward")
def select_backward_batch_rule(grad, grad_bdim, sizes, dim, index):
    grad = to_front(grad, grad_bdim)
    batch = grad._array.shape[0]
    return at.select_backward(grad, (batch, *sizes), wrap_dim(dim, len(sizes)) + 1, index), 0


@batch_rule("slice_backward")
def slice_backward_batch_rule(grad, grad_bdim, sizes, dim, start, end, step):
    grad = to_front(grad, grad_bdim)
    batch = grad._array.shape[0]
    return at.slice_backward(grad, (batch, *sizes), wrap_dim(dim, len(sizes)) + 1, start, end, step), 0


@batch_rule("diagonal_backward")
def diagonal_backward_batch_rule(grad, grad_bdim, sizes, offset, dim1, dim2):
    grad = to_front(grad, grad_bdim)
    batch, rank = grad._array.shape[0], len(sizes)
    return at.diagonal_backward(grad, (batch, *sizes), offset, wrap_dim(dim1, rank) + 1, wrap_dim(dim2, rank) + 1), 0


@batch_rule("unfold_backward")
def unfold_backward_batch_rule(grad, grad_bdim, sizes, dim, size, step):
    grad = to_front(grad, grad_bdim)
    if not sizes:
        result = registry["aten::unfold_backward"].call(at.unsqueeze(grad, 1), (grad._array.shape[0], 1), 1, size, step)
        return at.squeeze(result, 1), 0
    call = registry["aten::unfold_backward"].call
    return call(grad, (grad._array.shape[0], *sizes), wrap_dim(dim, len(sizes)) + 1, size, step), 0


# ------------------------------------------------------------------------------------------------- of several tensors


@batch_rule("cat")
def cat_batch_rule(tensors, tensors_bdim, dim):
    together, rank = _same_batches(tensors, tensors_bdim)
    return at.cat(together, wrap_dim(dim, rank) + 1), 0


@batch_rule("stack")
def stack_batch_rule(tensors, tensors_bdim, dim):
    together, rank = _same_batches(tensors, tensors_bdim)
    return at.stack(together, wrap_dim(dim, rank + 1) + 1), 0


def _same_batches(tensors, bdims):
    """The tensors with batches of the same size in front, and the rank of examples. Old empty vectors stay what they are."""
    batch = next(t._array.shape[b] for t, b in zip(tensors, bdims) if b is not None)
    together = [
        to_front(t, b) if b is not None else at.expand(at.unsqueeze(t, 0), (batch, *t._array.shape))
        for t, b in zip(tensors, bdims)
    ]
    ranks = [t._array.ndim - 1 for t in together if t._array.shape[1:] != (0,)]
    if ranks:
        together = [t for t in together if t._array.shape[1:] != (0,) or ranks[0] == 1]
    return together, (ranks or [1])[0]


@batch_rule("block_diag")
def block_diag_batch_rule(tensors, tensors_bdim):
    batch = next(t._array.shape[b] for t, b in zip(tensors, tensors_bdim) if b is not None)
    chunks = []
    for i in range(batch):
        chunks.append(at.block_diag([t if b is None else at.select(t, b, i) for t, b in zip(tensors, tensors_bdim)]))
    return at.stack(chunks), 0


# ------------------------------------------------------------------------------------------------------- in place


def _of_metadata(operator):
    """The kernel of a view in place: the batch dimension goes to the front first, for good."""
    name = operator.schema.name

    def change(self, *others):
        if not is_batched_here(self):
            return tls.functorch[-1].send_below(operator.call, (self, *others))
        impl = self._storage_impl
        layer = tls.functorch[-1]
        layer.send_below(_change, (operator, name, impl, others))
        refresh_metadata(self)
        return self

    return change


def _change(operator, name, impl, others):
    if impl.bdim:
        impl.value, impl.bdim = at.movedim(impl.value, impl.bdim, 0), 0
    value = impl.value
    rank = value._array.ndim - 1
    if name == "t_":
        if rank == 2:
            at.transpose_(value, 1, 2)
    elif name == "squeeze_" and not others:
        at.squeeze_(value, [d for d in range(1, rank + 1) if value._array.shape[d] == 1])
    elif name == "squeeze_":
        dims = others[0] if isinstance(others[0], (list, tuple)) else [others[0]]
        at.squeeze_(value, [wrap_dim(d, rank) + 1 for d in dims] if rank else [])
    elif name == "unsqueeze_":
        at.unsqueeze_(value, wrap_dim(others[0], rank + 1) + 1)
    else:
        operator.call(value, *[wrap_dim(d, rank) + 1 for d in others])


rule_for(_of_metadata, "t_ squeeze_ squeeze_.dim squeeze_.dims unsqueeze_ transpose_")


@batch_rule("resize_")
def resize__batch_rule(self, self_bdim, size, memory_format):
    if self_bdim != 0:
        raise RuntimeError("NYI: batching rule for resize_ with a batch dimension that is not the first")
    at.resize_(self, (self._array.shape[0], *size), memory_format=memory_format)
