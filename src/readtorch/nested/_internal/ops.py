"""What a NestedTensor does in each function and operator: the tables that `__torch_function__` and `__torch_dispatch__` ask.

    FUNCTIONS   by name, above autograd: written with `values()` and `_like`, so gradients come by themselves
    OPERATORS   by operator, below autograd: copies, tensors of the same structure, the sums of broadcasting; pointwise operators are
                known by their tag and need no entry

What neither has is refused with NotImplementedError, which names the operator. In PyTorch all stand below autograd, each beside the
operator of its derivative, and `grad_fn` has other names. In PyTorch: `torch/nested/_internal/ops.py`.
"""

import math

import readtorch
from readtorch.c10.wrap_dim import wrap_dim
from readtorch.ops import aten

from .nested_int import is_nested_int
from .nested_tensor import (
    FUNCTIONS,
    OPERATORS,
    POINTWISE,
    NestedTensor,
    jagged_from_list,
    nested_view_from_values_offsets_lengths,
    offsets_of,
    share_ragged_size,
)
from .sdpa import jagged_scaled_dot_product_attention


def function(*names):
    """Decorator: stands for functions and methods of these names. It is given the one that was called, and the arguments."""

    def register(implementation):
        FUNCTIONS.update(dict.fromkeys(names, implementation))
        return implementation

    return register


def operator(*names):
    """Decorator: stands for these operators, in the same way."""

    def register(implementation):
        OPERATORS.update({getattr(aten, name): implementation for name in names})
        return implementation

    return register


# ------------------------------------------------------------------------------------------------------------- dimensions


def inner_dim(nt, dim, name, *, ndim=None, ragged=False, batch=False):
    """The dimension of the values that is `dim` of the NestedTensor: one less, and for dim 0 the ragged one.

    ragged, batch: whether `dim` may be these. ndim: of the result, if it has other dimensions.
    """
    dim = wrap_dim(dim, ndim or len(nt._size))
    if dim == nt._ragged_idx and not ragged:
        raise RuntimeError(f"{name}(): not supported for NestedTensor on ragged dim")
    if dim == 0 and not batch:
        raise RuntimeError(f"{name}(): not supported for NestedTensor on dim=0")
    return nt._ragged_idx - 1 if dim == 0 else dim - 1


def raggedness_matches(nt, size):
    """Whether `size` begins as the tensor's does, up to the ragged dimension; -1 matches anything."""
    end = nt._ragged_idx + 1
    return len(size) >= end and all(ours == theirs or theirs == -1 for ours, theirs in zip(nt._size[:end], size))


def inner_size(nt, size):
    """`size` of a NestedTensor with the lengths of this one, as the size of the values."""
    total = nt._values.shape[nt._ragged_idx - 1]
    return [total if d == nt._ragged_idx else size[d] for d in range(1, len(size))]


def check_contiguous(nt, schema):
    """ValueError where there are holes, or another dimension than 1 is ragged."""
    if nt._lengths is not None or nt._ragged_idx != 1:
        name = schema.partition("(")[2].partition(":")[0]
        raise ValueError(f"NestedTensor {schema}: expected {name} to be a contiguous jagged layout NestedTensor")


# -------------------------------------------------------------------------------------------------------------- pointwise


# Those derivatives that have no tag.
@operator(
    "elu_backward",
    "hardshrink_backward",
    "hardsigmoid_backward",
    "hardtanh_backward",
    "leaky_relu_backward",
    "softplus_backward",
    "softshrink_backward",
)
def jagged_unary_pointwise(func, *args, **kwargs):
    """With values in place of NestedTensors, all of which have the same lengths."""
    nt = next(arg for arg in args if isinstance(arg, NestedTensor))
    return nt._like(func(*(arg._values if isinstance(arg, NestedTensor) else arg for arg in args), **kwargs))


def jagged_binary_pointwise(func, a, b, *rest, **kwargs):
    """(B, j, D) with the same j, or with a dense tensor: without the first two dimensions, or with sizes 1 for j."""
    nt, other = (a, b) if isinstance(a, NestedTensor) else (b, a)
    mismatch = "cannot call binary pointwise function {} with inputs of shapes {} and {}"
    if isinstance(other, NestedTensor):
        if not raggedness_matches(nt, other._size):
            raise RuntimeError(mismatch.format(func.__name__, tuple(nt._size), tuple(other._size)))
        return nt._like(func(nt._values, other._values, *rest, **kwargs))
    if other.dim() > nt.dim():
        raise NotImplementedError("NYI: broadcasting NT with T with larger dim")
    dense = other
    while dense.dim() > 0 and dense.shape[0] == 1:
        dense = dense.squeeze(0)
    if dense.dim() > nt.dim() - 2:
        if other.dim() != nt.dim() or other.shape[0] != nt._size[0]:
            raise RuntimeError(mismatch.format(func.__name__, a.shape, b.shape))
        dense = values_from_padded(_with_rows_for_all(other, nt), nt)
    operands = (nt._values, dense) if nt is a else (dense, nt._values)
    return nt._like(func(*operands, *rest, **kwargs))


def _with_rows_for_all(dense, nt):
    return dense.expand([nt._get_max_seqlen() if d == nt._ragged_idx else n for d, n in enumerate(dense.shape)])


@operator("where")
def where(func, condition, self, other):
    tensors = condition, self, other
    nt = next(t for t in tensors if isinstance(t, NestedTensor))
    for t in tensors:
        if isinstance(t, NestedTensor) and not raggedness_matches(nt, t._size):
            raise RuntimeError("Shape mismatch: objects cannot be broadcast to a single shape")
        if not isinstance(t, NestedTensor) and t.dim() >= nt.dim():
            raise ValueError(
                "broadcast_tensors(): broadcasting nested tensors with dense tensors of equal "
                "or higher dim is not currently supported"
            )
    return jagged_unary_pointwise(func, *tensors)


POINTWISE.update({1: jagged_unary_pointwise, 2: jagged_binary_pointwise})


# ------------------------------------------------------------------------------------------------------- copies and views


@operator("detach", "alias")
def detach(func, self):
    return NestedTensor(func(self._values), **self._structure())


@function("numel")
def numel(func, input):
    return input.numel()


@function("contiguous")
def contiguous(func, input, memory_format=readtorch.contiguous_format):
    """The tensor itself, or a copy, without holes."""
    if input.is_contiguous(memory_format):
        return input
    if input._lengths is None:
        return input.clone(memory_format=memory_format)
    if input._ragged_idx != 1:
        raise AssertionError("NJT with ragged_idx != 1 not supported for contiguous clone")
    return jagged_from_list(entries(input))


@operator("clone")
def clone(func, self, *, memory_format=None):
    return self._like(func(self._values, memory_format=memory_format))


@operator("_to_copy", "empty_like", "zeros_like", "ones_like", "full_like", "rand_like", "randn_like", "randint_like")
def copied_with_offsets(func, self, *args, layout=None, **kwargs):
    """What has the same lengths; the offsets come along to another device."""
    values = func(self._values, *args, **kwargs)
    structure = self._structure()
    for part in ("offsets", "lengths"):
        source = structure[part]
        if source is not None and source.device != values.device:
            structure[part] = source.to(values.device)
            share_ragged_size(structure[part], self._size[self._ragged_idx])
    return NestedTensor(values, **structure)


@operator("new_empty_strided")
def new_empty_strided(func, self, size, stride, layout=None, **kwargs):
    """What autograd copies a gradient to that shall have its leaf's strides."""
    return NestedTensor(func(self._values, inner_size(self, size), stride[1:], **kwargs), **self._structure())


@operator("copy_")
def copy_(func, self, src, non_blocking=False):
    if not isinstance(src, NestedTensor) or not isinstance(self, NestedTensor):
        raise ValueError(
            "NestedTensor copy_default(self: jt_all, src: jt_all, non_blocking: any?): expected src to be a jagged layout NestedTensor"
        )
    if [t.shape for t in entries(self)] != [t.shape for t in entries(src)]:
        raise RuntimeError(f"copy_(): expected compatible input and src shapes, but got: {self.shape} and {src.shape}")
    self._values.copy_(src._values)
    return self


@operator("zero_", "fill_", "bernoulli_", "uniform_", "normal_")
def written(func, self, *args, **kwargs):
    func(self._values, *args, **kwargs)
    return self


@operator("fill")
def fill(func, self, value):
    return self._like(func(self._values, value))


@operator("transpose")
def transpose(func, input, dim0, dim1):
    dim0, dim1 = (wrap_dim(d, input.dim()) for d in (dim0, dim1))
    r = input._ragged_idx
    if r not in (dim0, dim1):
        inner = [inner_dim(input, d, "transpose") for d in (dim0, dim1)]
        return input._like(input.values().transpose(*inner))
    if 0 in (dim0, dim1):
        raise ValueError("Transpose is not supported on the batch dimension for jagged NT")
    return input._like(input.values().transpose(dim0 - 1, dim1 - 1), dim0 + dim1 - r)


@operator("permute")
def permute(func, input, dims):
    if len(dims) != input.dim():
        raise ValueError(
            f"permute(): number of dimensions in the tensor input ({input.dim()}) "
            f"does not match the length of the desired ordering of dimensions ({len(dims)})."
        )
    dims = [wrap_dim(d, input.dim()) for d in dims]
    if len(set(dims)) != len(dims):
        raise ValueError("permute(): duplicate dims are not allowed.")
    if input._lengths is not None:
        raise ValueError("permute(): not supported on jagged layout nested tensor with holes")
    if dims[0] != 0:
        raise ValueError("Permute is not supported on the batch dimension for jagged NT")
    return input._like(input._values.permute([d - 1 for d in dims[1:]]), dims.index(input._ragged_idx))


@operator("view", "_unsafe_view")
def view(func, input, size):
    """Of (B, j, D) to (B, -1, …): -1, or j itself, stands for the ragged dimension."""
    if input._ragged_idx != 1 and tuple(input._size) != tuple(size):
        raise RuntimeError(
            "view(): does not support ragged_idx != 1 except when inp._size == size. "
            f"inp._size is ({tuple(input._size)}) and size is ({size})."
        )
    if len(size) < 3 or not raggedness_matches(input, size):
        raise RuntimeError(f"view(): cannot view shape {tuple(input._size)} as {list(size)}")
    return input._like(func(input.values(), inner_size(input, size)))


@function("flatten")
def flatten(func, input, start_dim=0, end_dim=-1):
    start, end = (inner_dim(input, d, "flatten") + 1 for d in (start_dim, end_dim))
    size = input._size
    return input if start == end else input.reshape(*size[:start], math.prod(size[start : end + 1]), *size[end + 1 :])


@function("unflatten")
def unflatten(func, input, dim, sizes):
    inner, r = inner_dim(input, dim, "unflatten"), input._ragged_idx
    return input._like(input.values().unflatten(inner, sizes), r if inner >= r else r + len(sizes) - 1)


@operator("expand")
def expand(func, input, size):
    if not raggedness_matches(input, size):
        raise RuntimeError(f"expand(): cannot expand shape {tuple(input._size)} -> {list(size)}")
    return input._like(input.values().expand(inner_size(input, size)))


@function("expand_as")
def expand_as(func, input, other):
    if isinstance(input, NestedTensor):
        return input.expand(*other.shape)
    return other._like(input.expand_as(other.values()))


@operator("unsqueeze")
def unsqueeze(func, input, dim):
    inner = inner_dim(input, dim, "unsqueeze", ndim=input.dim() + 1, ragged=True)
    return input._like(input.values().unsqueeze(inner), input._ragged_idx + (inner < input._ragged_idx))


@operator("squeeze")
def squeeze(func, input, dim=None):
    if dim is None:
        raise NotImplementedError(func)
    inner = inner_dim(input, dim, "squeeze")
    gone = input._size[inner + 1] == 1 and inner < input._ragged_idx - 1
    return input._like(input.values().squeeze(inner), input._ragged_idx - gone)


@function("select")
def select(func, input, dim, index):
    inner = inner_dim(input, dim, "select", batch=True)
    if wrap_dim(dim, input.dim()) == 0:
        return entries(input)[index]
    if input._lengths is not None:
        raise ValueError("select(): not yet supported on dim != 0 for non-contiguous nested tensor with holes")
    return input._like(input.values().select(inner, index), input._ragged_idx - (inner < input._ragged_idx - 1))


@function("narrow")
def narrow(func, input, dim, start, length):
    return input._like(input.values().narrow(inner_dim(input, dim, "narrow"), start, length))


@function("__getitem__")
def getitem(func, input, index):
    """An entry, nt[i]; or nt[..., i], nt[:, :, a:b] and the like, which leave batch and ragged dimension as they are."""
    index = list(index) if isinstance(index, tuple) else [index]
    if Ellipsis in index:
        at = index.index(Ellipsis)
        index[at : at + 1] = [slice(None)] * (input.dim() - len(index) + 1)
    if isinstance(index[0], int):
        entry = entries(input)[index[0]]
        return entry[tuple(index[1:])] if index[1:] else entry
    for dim in (0, input._ragged_idx):
        if dim < len(index) and index[dim] != slice(None):
            inner_dim(input, dim, "slice")  # raises
    if not all(isinstance(i, (int, slice)) for i in index):
        raise NotImplementedError(aten.index.Tensor)
    before = sum(isinstance(i, int) for i in index[: input._ragged_idx])
    return input._like(input.values()[tuple(index[1:])], input._ragged_idx - before)


@function("unbind")
def unbind(func, input, dim=0):
    if dim != 0:
        raise RuntimeError("unbind(): only supported for NestedTensor on dim=0")
    return entries(input)


def entries(nt):
    """The tensors of which it is a batch, as a tuple: views of the values."""
    values, inner = nt.values(), nt._ragged_idx - 1
    if nt._lengths is None:
        return readtorch.split(values, nt._offsets.diff().tolist(), dim=inner)
    begins_and_lengths = zip(nt._offsets.tolist(), nt._lengths.tolist())
    return tuple(values.narrow(inner, begin, length) for begin, length in begins_and_lengths)


@function("chunk")
def chunk(func, input, chunks, dim=0):
    check_contiguous(input, "chunk_default(self: jt, chunks: any, dim: any?)")
    inner = inner_dim(input, dim, "chunk", batch=True)
    if wrap_dim(dim, input.dim()) != 0:
        return tuple(input._like(part) for part in input.values().chunk(chunks, inner))
    lengths = input._entry_lengths().chunk(chunks)
    parts = input.values().split([int(part.sum()) for part in lengths])
    return tuple(nested_view_from_values_offsets_lengths(part, offsets_of(n)) for part, n in zip(parts, lengths))


@function("split", "split_with_sizes")
def split(func, input, split_size, dim=0):
    check_contiguous(input, "split_tensor(self: jt, split_size: any, dim: any?)")
    inner = inner_dim(input, dim, "split")
    return tuple(input._like(part) for part in readtorch.split(input.values(), split_size, inner))


@function("cat", "concat", "concatenate")
def cat(func, tensors, dim=0):
    first = next(t for t in tensors if isinstance(t, NestedTensor))
    tensors = [t if isinstance(t, NestedTensor) else t.expand_as(first) for t in tensors]
    inner = inner_dim(first, dim, "cat")
    return tensors[0]._like(readtorch.cat([t.values() for t in tensors], inner))


@function("stack")
def stack(func, tensors, dim=0):
    first = tensors[0]
    for t in tensors:
        if not isinstance(t, NestedTensor):
            raise RuntimeError("stack(): expected all nested tensors inputs")
        if t.dim() != first.dim():
            raise RuntimeError("stack(): expected all nested tensors to have the same dim")
        if not raggedness_matches(t, first._size):
            raise RuntimeError("stack(): expected all nested tensors to have the same nested structure")
    inner = inner_dim(first, dim, "stack", ndim=first.dim() + 1)
    return first._like(readtorch.stack([t.values() for t in tensors], inner))


# ---------------------------------------------------------------------------------------------------------------- padding


def to_padded_tensor(input, padding, output_size=None):
    """A dense tensor, every entry filled up with `padding` to the same length.

    That is `output_size`'s, else the longest where it is known. in PyTorch, too: else as many as all entries have together.
    """
    if not isinstance(input, NestedTensor):
        raise NotImplementedError("Could not run 'aten::to_padded_tensor' with arguments from the 'CPU' backend.")
    if input._lengths is not None:
        raise RuntimeError("to_padded_tensor(): not supported for nested tensors with holes")
    values, r = input.values().movedim(input._ragged_idx - 1, 0), input._ragged_idx
    if output_size is not None:
        length = output_size[r]
    else:
        length = values.shape[0] if input._maybe_max_seqlen is None else input._maybe_max_seqlen
    positions = input._offsets[:-1, None] + readtorch.arange(length, device=input.device)
    positions = positions.where(positions < input._offsets[1:, None], values.shape[0])
    with_padding = readtorch.cat([values, values.new_full((1, *values.shape[1:]), padding)])
    return with_padding[positions].movedim(1, r)


NestedTensor.to_padded_tensor = to_padded_tensor  # in PyTorch: every tensor has the method


def values_from_padded(padded, nt):
    """The values of a tensor with the lengths of `nt` of which this is the padded form."""
    padded = padded.movedim(nt._ragged_idx, 1)
    there = readtorch.arange(padded.shape[1], device=padded.device) < nt._entry_lengths()[:, None]
    return padded[there].movedim(0, nt._ragged_idx - 1)


# ------------------------------------------------------------------------------------------------------------- reductions


def _largest(dtype):
    return readtorch.finfo(dtype).max if dtype.is_floating_point else readtorch.iinfo(dtype).max


def _smallest(dtype):
    return readtorch.finfo(dtype).min if dtype.is_floating_point else readtorch.iinfo(dtype).min


# What changes no result: entries are filled up with it where the ragged dimension is reduced.
IDENTITIES = {
    "sum": lambda dtype: 0,
    "mean": lambda dtype: 0,
    "prod": lambda dtype: 1,
    "any": lambda dtype: False,
    "all": lambda dtype: True,
    **dict.fromkeys(("max", "amax", "argmax"), _smallest),
    **dict.fromkeys(("min", "amin", "argmin"), _largest),
}


@function(*IDENTITIES)
@operator("sum")
def reduce(func, input, dim=None, keepdim=False, **kwargs):
    """A dense tensor if the ragged dimension is reduced, alone or with the batch; a NestedTensor if another one is."""
    name = func.__name__.partition(".")[0]
    if dim is None or dim == () or dim == []:
        return func(input.values(), **kwargs)
    r, several = input._ragged_idx, isinstance(dim, (tuple, list))
    dims = {wrap_dim(d, input.dim()) for d in (dim if several else (dim,))}
    _check_reduced(name, input, dims)
    if dims == {r}:
        return _reduce_ragged(func, name, input, [r] if several else r, keepdim, **kwargs)
    inner = sorted({r - 1 if d == 0 else d - 1 for d in dims})
    result = func(input.values(), inner if several else inner[0], keepdim, **kwargs)
    if r in dims:
        return result.unsqueeze(0) if keepdim else result
    ragged_idx = r if keepdim else r - sum(d < r for d in dims)
    if not isinstance(result, tuple):
        return input._like(result, ragged_idx)
    return type(result)([input._like(part, ragged_idx) for part in result])


def _check_reduced(name, input, dims):
    r = input._ragged_idx
    if r in dims and input._lengths is not None:
        raise RuntimeError(
            f"{name}(): reducing across the ragged dimension is not supported for non-contiguous nested tensors with holes"
        )
    if r in dims and 0 not in dims and len(dims) > 1:
        raise RuntimeError(
            f"{name}(): reducing along a ragged and non-batch dimension is not supported for nested tensors"
        )
    if 0 in dims and r not in dims:
        raise RuntimeError(
            f"{name}(): reducing along the batch dimension but not "
            "the ragged dimension is not supported for nested tensors"
        )


def _reduce_ragged(func, name, input, dim, keepdim, **kwargs):
    padded = to_padded_tensor(input, IDENTITIES[name](input.dtype))
    if name != "mean":
        return func(padded, dim, keepdim, **kwargs)
    total = padded.sum(dim, keepdim, **kwargs)
    return total / input._entry_lengths().reshape(-1, *[1] * (total.dim() - 1))


# --------------------------------------------------------------------------------------------------------- neural networks


@function("softmax", "log_softmax")
def softmax(func, input, dim, *args, **kwargs):
    """Along the ragged dimension, of the entries padded with -inf."""
    name, r, wrapped = func.__name__, input._ragged_idx, wrap_dim(dim, input.dim())
    if wrapped == 0:
        raise RuntimeError(f"{name}(): not supported when reducing across the batch dimension for NestedTensor")
    if wrapped != r:
        return input._like(func(input.values(), wrapped - 1, *args, **kwargs))
    if name == "log_softmax":
        raise RuntimeError("log_softmax(): not supported when reducing along the ragged dimension for NestedTensor")
    if r > 1:
        raise RuntimeError(
            "softmax(): not supported when reducing along the ragged dimension for ragged_idx > 1 for NestedTensor"
        )
    if input._lengths is not None:
        raise RuntimeError(
            "softmax(): not supported where lengths is not None if reducing across the ragged dimension for NestedTensor"
        )
    padded = to_padded_tensor(input, -math.inf)
    return input._like(values_from_padded(func(padded, r, *args, **kwargs), input))


@function("linear")
def linear(func, input, weight, bias=None):
    check_contiguous(input, "linear_default(input: jt, weight: t, bias: t?)")
    return input._like(func(input.values(), weight, bias))


@function("dropout")
def dropout(func, input, *args, **kwargs):
    return input._like(func(input.values(), *args, **kwargs))


@function("embedding")
def embedding(func, input, *args, **kwargs):
    """F.embedding(indices, weight), as modules call it."""
    return input._like(func(input.values(), *args, **kwargs))


@function("layer_norm")
def layer_norm(func, input, normalized_shape, *args, **kwargs):
    if input.dim() <= 2:
        raise RuntimeError("layer_norm(): not supported for NestedTensor objects with 2 or fewer dimensions")
    if len(normalized_shape) == input.dim():
        raise RuntimeError("layer_norm(): not supported when normalizing over the batch dimension for NestedTensor")
    if any(map(is_nested_int, normalized_shape)):
        raise NotImplementedError(
            "layer_norm(): readtorch does not normalize over the ragged dimension of a NestedTensor"
        )
    return input._like(func(input.values(), normalized_shape, *args, **kwargs))


@function("rms_norm")
def rms_norm(func, input, normalized_shape, *args, **kwargs):
    if len(normalized_shape) > input.dim() - input._ragged_idx - 1:
        raise ValueError("rms_norm(): Normalization over the ragged dim not supported for nested tensors")
    return input._like(func(input.values(), normalized_shape, *args, **kwargs))


@function("matmul", "__matmul__", "__rmatmul__")
def matmul(func, input, other):
    """With a dense matrix (D, E), a batch of dense ones (B, D, E), or a NestedTensor."""
    if func.__name__ == "__rmatmul__":
        input, other = other, input
    left, right = isinstance(input, NestedTensor), isinstance(other, NestedTensor)
    result = (_nested_by_nested if left and right else _nested_by_dense if left else _dense_by_nested)(input, other)
    if result is None:
        shapes = f"{tuple(input.shape) if left else input.shape} and {other.shape}"
        raise RuntimeError(f"matmul(): not supported between inputs of shapes {shapes}")
    return result


def _nested_by_dense(nt, dense):
    if nt._ragged_idx == nt.dim() - 1:
        return None
    if nt.dim() == dense.dim() >= 3:  # (B, j, D) @ (B, D, E)
        return nt._like(values_from_padded(_padded(nt) @ dense, nt))
    if dense.dim() == 2 < nt.dim():  # (B, j, D) @ (D, E)
        return nt._like(nt.values() @ dense)
    return None


def _dense_by_nested(dense, nt):
    if nt._ragged_idx < 2:
        return None
    if nt.dim() == dense.dim() >= 3:  # (B, D, E) @ (B, E, j)
        return nt._like(values_from_padded(dense @ _padded(nt), nt))
    if dense.dim() == 2 < nt.dim():  # (D, E) @ (B, E, j)
        return nt._like(dense @ nt.values())
    return None


def _nested_by_nested(a, b):
    if a.dim() > 3 and b.dim() > 3 and raggedness_matches(a, b._size):  # (B, j, D, E) @ (B, j, E, F)
        return a._like(a.values() @ b.values())
    same = a._size[a._ragged_idx] == b._size[b._ragged_idx]
    if a.dim() == b.dim() == 3 and (a._ragged_idx, b._ragged_idx) == (2, 1) and same:  # (B, D, j) @ (B, j, E)
        return readtorch.stack([x @ y for x, y in zip(entries(a), entries(b))])
    return None


def _padded(nt):
    nt._get_max_seqlen()  # now it is known
    return to_padded_tensor(nt, 0)


@function("bmm")
def bmm(func, input, mat2):
    if input.dim() != 3:
        raise ValueError("bmm(): input must be 3D")
    if mat2.dim() != 3:
        raise ValueError("bmm(): mat2 must be 3D")
    return readtorch.matmul(input, mat2)


@function("scaled_dot_product_attention")
def scaled_dot_product_attention(func, *args, **kwargs):
    return jagged_scaled_dot_product_attention(*args, **kwargs)
