"""Parts of tensors.

In PyTorch: `torch/onnx/_internal/torchscript_exporter/symbolic_opset9.py`,
and what later versions changed in `symbolic_opset10.py`, `symbolic_opset11.py`, `symbolic_opset13.py`, `symbolic_opset16.py`.
"""

import readtorch
from readtorch.onnx._constants import INT64_MAX
from readtorch.onnx.registration import onnx_symbolic
from readtorch.onnx.symbolic_helper import (
    cast,
    dim_size,
    dtype,
    is_constant,
    is_none,
    parse_arg,
    parse_args,
    rank,
    reshape,
    shape_of,
    slice_,
    unpack_list,
    unsqueeze,
    unsupported,
    vector_of,
)

from .comparison import nonzero_columns


@onnx_symbolic("aten::select")
def select(g, self, dim, index):
    """A Gather with a number takes the dimension away."""
    index = (
        g.constant(parse_arg(index, "i"), readtorch.int64) if is_constant(index) else cast(g, index, readtorch.int64)
    )
    return g.op("Gather", self, index, axis_i=parse_arg(dim, "i"))


@onnx_symbolic("aten::slice")
def slice(g, self, dim, start, end, step):
    """`x[start:end:step]`; bounds may be numbers of the run."""
    axis = parse_arg(dim, "i")
    bounds = [
        g.constant([otherwise]) if is_none(v) else vector_of(g, v) for v, otherwise in ((start, 0), (end, INT64_MAX))
    ]
    steps = parse_arg(step, "i")
    if steps == 1 and all(map(is_constant, bounds)) and [parse_arg(b, "is") for b in bounds] == [[0], [INT64_MAX]]:
        return self
    return g.op("Slice", self, *bounds, [axis], [steps])


@onnx_symbolic("aten::narrow")
def narrow(g, self, dim, start, length):
    end = g.op("Add", vector_of(g, start), vector_of(g, length))
    if is_constant(start) and is_constant(length):
        end = g.constant([parse_arg(start, "i") + parse_arg(length, "i")])
    return g.op("Slice", self, vector_of(g, start), end, [parse_arg(dim, "i")])


@onnx_symbolic("aten::index_select")
@parse_args("v", "i", "v")
def index_select(g, self, dim, index):
    return g.op("Gather", self, index, axis_i=dim)


@onnx_symbolic("aten::gather")
@parse_args("v", "i", "v", "none")
def gather(g, self, dim, index, sparse_grad=None):
    return g.op("GatherElements", self, index, axis_i=dim)


@onnx_symbolic("aten::take")
def take(g, self, index):
    return g.op("Gather", reshape(g, self, [-1]), index)


@onnx_symbolic("aten::scatter")
def scatter(g, self, dim, index, src, reduce=None):
    """A number as source is as many as there are indices."""
    if reduce is not None and not is_none(reduce):
        raise unsupported("scatter with reduce", self)
    src = cast(g, src, dtype(self))
    if rank(src) == 0 and rank(index) != 0:
        src = g.op("Expand", src, shape_of(g, index))
    return g.op("ScatterElements", self, index, src, axis_i=parse_arg(dim, "i"))


@onnx_symbolic("aten::scatter_add", opset=16)
@parse_args("v", "i", "v", "v")
def scatter_add(g, self, dim, index, src):
    return g.op("ScatterElements", self, index, src, axis_i=dim, reduction_s="add")


def _indices(g, self, indices):
    """The tensors in `x[a, :, b]`, with the dimensions that they index; of a mask, the places where it is
    True.
    """
    found, dim = {}, 0
    for value in unpack_list(indices):
        if is_none(value):
            dim += 1
            continue
        masked = dtype(value) in (readtorch.bool, readtorch.uint8)
        for index in nonzero_columns(g, value) if masked else [value]:
            found[dim] = index
            dim += 1
    return found


@onnx_symbolic("aten::index")
def index(g, self, indices):
    """One index is a Gather. Several go to the front together: GatherND takes one number from each for every
    element.
    """
    found = _indices(g, self, indices)
    if len(found) == 1:
        ((dim, tensor),) = found.items()
        return g.op("Gather", self, tensor, axis_i=dim)
    dims, rest = list(found), [d for d in range(rank(self)) if d not in found]
    moved = self if dims == list(range(len(dims))) else g.op("Transpose", self, perm_i=dims + rest)
    result = g.op("GatherND", moved, joined(g, found.values()))
    count = max(rank(t) for t in found.values())
    if dims[-1] - dims[0] == len(dims) - 1 and dims[0] > 0:  # next to each other: the result stays in their place
        order = [*range(count, count + dims[0]), *range(count), *range(count + dims[0], count + len(rest))]
        return g.op("Transpose", result, perm_i=order)
    return result


def joined(g, tensors):
    """Indices that broadcast, side by side along a last dimension."""
    tensors = list(tensors)
    whole = tensors[0]
    for each in tensors[1:]:
        whole = g.op("Add", whole, each)  # of no use but its shape, which is that of all
    shape = shape_of(g, whole)
    same = [t if t.type().sizes() == whole.type().sizes() is not None else g.op("Expand", t, shape) for t in tensors]
    return g.op("Concat", *[unsqueeze(g, t, [-1]) for t in same], axis_i=-1)


@onnx_symbolic("aten::index_put")
def index_put(g, self, indices, values, accumulate=None):
    """For indices of the first dimensions: ScatterND."""
    found = _indices(g, self, indices)
    if list(found) != list(range(len(found))):
        raise unsupported("index_put of other than the first dimensions", self)
    where = joined(g, found.values()) if len(found) > 1 else unsqueeze(g, found[0], [-1])
    shape = g.op(
        "Concat",
        slice_(g, g.op("Shape", where), [0], [0], [-1]),
        slice_(g, g.op("Shape", self), [0], [len(found)], [INT64_MAX]),
        axis_i=0,
    )
    add = accumulate is not None and parse_arg(accumulate, "b")
    return g.op(
        "ScatterND",
        self,
        where,
        g.op("Expand", cast(g, values, dtype(self)), shape),
        reduction_s="add" if add else None,
    )


@onnx_symbolic("aten::diagonal")
@parse_args("v", "i", "i", "i")
def diagonal(g, self, offset, dim1, dim2):
    """Of square or other matrices of known sizes: the numbers at (i, i + offset)."""
    rows, columns = dim_size(self, dim1), dim_size(self, dim2)
    if rows is None or columns is None:
        raise unsupported("diagonal of a matrix of unknown sizes", self)
    dims = rank(self)
    first, second = dim1 % dims, dim2 % dims
    order = [d for d in range(dims) if d not in (first, second)] + [first, second]
    flat = reshape(g, g.op("Transpose", self, perm_i=order), [0] * (dims - 2) + [-1])
    count = max(0, min(rows + min(offset, 0), columns - max(offset, 0)))
    start = offset if offset >= 0 else -offset * columns
    return g.op("Gather", flat, g.constant([start + i * (columns + 1) for i in range(count)]), axis_i=-1)
