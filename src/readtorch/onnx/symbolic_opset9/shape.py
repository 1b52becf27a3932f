"""Other shapes for the same numbers. A view is a copy in ONNX: that makes no difference, as nothing is written in place.

In PyTorch: `torch/onnx/_internal/torchscript_exporter/symbolic_opset9.py`,
and what later versions changed in `symbolic_opset11.py`, `symbolic_opset13.py`.
"""

import readtorch
from readtorch.onnx.registration import onnx_symbolic
from readtorch.onnx.symbolic_helper import (
    as_shape,
    cast,
    dim_size,
    is_none,
    parse_arg,
    parse_args,
    rank,
    reshape,
    shape_of,
    slice_,
    squeeze,
    transpose,
    unpack_list,
    unsqueeze,
    unsupported,
)


@onnx_symbolic("aten::view", "aten::reshape", "aten::_unsafe_view")
def view(g, self, size):
    return reshape(g, self, as_shape(g, size))


@onnx_symbolic("aten::reshape_as", "aten::view_as")
def reshape_as(g, self, other):
    return reshape(g, self, shape_of(g, other))


@onnx_symbolic("aten::flatten")
@parse_args("v", "i", "i")
def flatten(g, self, start_dim, end_dim):
    """Flatten makes a matrix; other forms are a Reshape to the sizes around what is flattened."""
    dims = rank(self)
    if dims == 0:
        return reshape(g, self, [1])
    start, end = start_dim % dims, end_dim % dims
    if start == end:
        return self
    if start == 1 and end == dims - 1:
        return g.op("Flatten", self, axis_i=1)
    if dims - 1 == end:
        return reshape(g, self, [0] * start + [-1])
    before, after = [0] * start, [dim_size(self, d) for d in range(end + 1, dims)]
    if None not in after:
        return reshape(g, self, [*before, -1, *after])
    shape = g.op("Shape", self)
    return reshape(
        g,
        self,
        g.op(
            "Concat",
            slice_(g, shape, [0], [0], [start]),
            g.constant([-1]),
            slice_(g, shape, [0], [end + 1], [dims]),
            axis_i=0,
        ),
    )


@onnx_symbolic("aten::unflatten")
def unflatten(g, self, dim, size):
    axis = parse_arg(dim, "i") % rank(self)
    shape = g.op("Shape", self)
    parts = [slice_(g, shape, [0], [0], [axis]), as_shape(g, size), slice_(g, shape, [0], [axis + 1], [rank(self)])]
    return reshape(g, self, g.op("Concat", *parts, axis_i=0))


@onnx_symbolic("aten::transpose")
@parse_args("v", "i", "i")
def transpose_(g, self, dim0, dim1):
    return self if dim0 == dim1 else transpose(g, self, dim0, dim1)


@onnx_symbolic("aten::permute")
@parse_args("v", "is")
def permute(g, self, dims):
    return g.op("Transpose", self, perm_i=[d % rank(self) for d in dims])


@onnx_symbolic("aten::movedim")
@parse_args("v", "is", "is")
def movedim(g, self, source, destination):
    dims = rank(self)
    source, destination = ([d % dims for d in each] for each in (source, destination))
    rest = iter(d for d in range(dims) if d not in source)
    came = dict(zip(destination, source))
    return g.op("Transpose", self, perm_i=[came[d] if d in came else next(rest) for d in range(dims)])


@onnx_symbolic("aten::mT", "aten::adjoint")
def matrix_transpose(g, self):
    return transpose(g, self, -2, -1)


@onnx_symbolic("aten::unsqueeze")
@parse_args("v", "i")
def unsqueeze_(g, self, dim):
    return unsqueeze(g, self, [dim if dim >= 0 else dim + rank(self) + 1])


@onnx_symbolic("aten::squeeze")
def squeeze_(g, self, dim=None):
    """A dimension that is not 1 stays in PyTorch; ONNX would refuse it. So its size has to be known."""
    dims = range(rank(self)) if is_none(dim) else parse_arg(dim, "is")
    ones = [d % rank(self) for d in dims if _is_one(self, d)]
    return squeeze(g, self, ones) if ones else self


def _is_one(self, dim):
    size = dim_size(self, dim)
    if size is None:
        raise unsupported(f"squeeze of dimension {dim}, whose size only a run tells", self)
    return size == 1


@onnx_symbolic("aten::expand", "aten::broadcast_to")
def expand(g, self, size, implicit=None):
    """-1 keeps a size; ONNX says that with a 1."""
    shape = as_shape(g, size)
    if shape.node().kind() == "onnx::Constant":
        shape = g.constant([1 if n == -1 else n for n in parse_arg(shape, "is")])
    else:
        shape = g.op("Where", g.op("Equal", shape, g.constant([-1])), g.constant([1]), shape)
    return g.op("Expand", self, shape)


@onnx_symbolic("aten::expand_as")
def expand_as(g, self, other):
    return g.op("Expand", cast(g, self, g.result_dtype), shape_of(g, other))


@onnx_symbolic("aten::repeat", "aten::tile")
def repeat(g, self, repeats):
    """Dimensions that are added come first."""
    times = as_shape(g, repeats)
    more = dim_size(times, 0) - rank(self)
    if more > 0:
        self = unsqueeze(g, self, range(more))
    elif more < 0:  # tile: the repeats are too few
        times = g.op("Concat", g.constant([1] * -more), times, axis_i=0)
    return g.op("Tile", self, times)


@onnx_symbolic("aten::repeat_interleave")
@parse_args("v", "i", "i", "none")
def repeat_interleave(g, self, repeats, dim=None, output_size=None):
    """A new dimension after `dim`, expanded, and merged with it."""
    if dim is None:
        self, dim = reshape(g, self, [-1]), 0
    dim %= rank(self)
    tiles = [1] * (rank(self) + 1)
    tiles[dim + 1] = repeats
    longer = g.op("Tile", unsqueeze(g, self, [dim + 1]), tiles)
    shape = g.op("Shape", self)
    parts = [slice_(g, shape, [0], [0], [dim]), g.constant([-1]), slice_(g, shape, [0], [dim + 1], [rank(self)])]
    return reshape(g, longer, g.op("Concat", *parts, axis_i=0))


@onnx_symbolic("aten::cat", "aten::concat", "aten::concatenate")
@parse_args("v", "i")
def cat(g, tensors, dim):
    """Tensors without any number are left out, as in PyTorch, which lets them have any shape."""
    parts = [cast(g, t, g.result_dtype) for t in unpack_list(tensors) if t.type().sizes() != [0]]
    return g.op("Concat", *parts, axis_i=dim)


@onnx_symbolic("aten::stack")
@parse_args("v", "i")
def stack(g, tensors, dim):
    parts = [unsqueeze(g, cast(g, t, g.result_dtype), [dim]) for t in unpack_list(tensors)]
    return g.op("Concat", *parts, axis_i=dim)


def split_into(g, self, sizes, dim):
    """Parts of given sizes, as a list."""
    parts = g.op("Split", self, list(sizes), axis_i=dim, outputs=len(sizes))
    return list(parts) if isinstance(parts, tuple) else [parts]


@onnx_symbolic("aten::split_with_sizes", "aten::unsafe_split_with_sizes")
@parse_args("v", "is", "i")
def split_with_sizes(g, self, split_sizes, dim):
    return g.pack(split_into(g, self, split_sizes, dim))


@onnx_symbolic("aten::split", "aten::unsafe_split")
def split(g, self, size, dim):
    """Of one size; the last part may be smaller. How many there are the trace knows."""
    sizes, axis = parse_arg(size, "is"), parse_arg(dim, "i")
    if len(sizes) == 1 and size.type().dim() == 0:
        sizes = _equal_sizes(g, self, sizes[0], axis)
    return g.pack(split_into(g, self, sizes, axis))


def _equal_sizes(g, self, size, dim):
    total, count = dim_size(self, dim), g.number_of_results()
    last = size if total is None else total - size * (count - 1)
    return [size] * (count - 1) + [last]


@onnx_symbolic("aten::chunk", "aten::unsafe_chunk")
@parse_args("v", "i", "i")
def chunk(g, self, chunks, dim):
    total = dim_size(self, dim)
    if total is None:
        raise unsupported(f"chunk along dimension {dim}, whose size only a run tells", self)
    return g.pack(split_into(g, self, _equal_sizes(g, self, -(-total // chunks), dim), dim))


@onnx_symbolic("aten::unbind")
@parse_args("v", "i")
def unbind(g, self, dim):
    parts = split_into(g, self, [1] * g.number_of_results(), dim)
    return g.pack([squeeze(g, part, [dim]) for part in parts])


@onnx_symbolic("aten::to", "aten::_to_copy")
def to(g, self, *arguments):
    """`to(dtype)`, `to(device)`, `to(device, dtype)`, `to(other)`: the trace knows which type came out."""
    return cast(g, self, g.result_dtype)


@onnx_symbolic("aten::type_as")
def type_as(g, self, other):
    return cast(g, self, g.result_dtype)


@onnx_symbolic("aten::roll")
@parse_args("v", "is", "is")
def roll(g, self, shifts, dims):
    """The end is put in front."""
    if not dims:
        raise unsupported("roll without dims", self)
    for shift, dim in zip(shifts, dims):
        ends = slice_(g, self, [dim], [-shift], [readtorch.iinfo(readtorch.int64).max])
        self = g.op("Concat", ends, slice_(g, self, [dim], [0], [-shift]), axis_i=dim)
    return self


@onnx_symbolic("aten::flip")
@parse_args("v", "is")
def flip(g, self, dims):
    lowest = -readtorch.iinfo(readtorch.int64).max
    return slice_(g, self, dims, [-1] * len(dims), [lowest] * len(dims), [-1] * len(dims))


@onnx_symbolic("aten::pixel_shuffle")
@parse_args("v", "i")
def pixel_shuffle(g, self, upscale_factor):
    return g.op("DepthToSpace", self, blocksize_i=upscale_factor, mode_s="CRD")
