"""How a write to a view becomes a new base: for each view operator the base with the written view put back into it.

In PyTorch: `aten/src/ATen/FunctionalInverses.cpp`. Each takes the base as it was, the view as it is now, `views` (whether the graph
may have views, or only copies of them) and the arguments of the view operator; one of several results has its number, too.
"""

from readtorch._ops import ops

aten = ops.aten
INVERSES = {}  # name of an overload, as "aten::select.int" -> its inverse


def inverse(name):
    def register(function):
        INVERSES[f"aten::{name}"] = function
        return function

    return register


def view_or_copy(views, operator, overload, *args):
    """`operator.overload` of the arguments, or its form that copies."""
    if views:
        return getattr(getattr(aten, operator), overload)(*args)
    return getattr(getattr(aten, f"{operator}_copy"), overload)(*args)


# ---- the view has every element of the base: look at it the other way round


@inverse("alias")
def alias_inverse(base, view, views):
    return view_or_copy(views, "alias", "default", view)


@inverse("detach")
@inverse("lift_fresh")
def identity_inverse(base, view, views):
    return view


@inverse("view")
@inverse("_unsafe_view")
def view_inverse(base, view, views, size):
    return view_or_copy(views, "view", "default", view, list(base.shape))


@inverse("_reshape_alias")
def reshape_alias_inverse(base, view, views, size, stride):
    return view_or_copy(views, "view", "default", view, list(base.shape))


@inverse("view.dtype")
def view_dtype_inverse(base, view, views, dtype):
    return view_or_copy(views, "view", "dtype", view, base.dtype)


@inverse("t")
def t_inverse(base, view, views):
    return view_or_copy(views, "t", "default", view)


@inverse("transpose.int")
def transpose_inverse(base, view, views, dim0, dim1):
    return view_or_copy(views, "transpose", "int", view, dim0, dim1)


@inverse("permute")
def permute_inverse(base, view, views, dims):
    back = [0] * len(dims)
    for place, dim in enumerate(dims):
        back[dim % len(dims)] = place
    return view_or_copy(views, "permute", "default", view, back)


@inverse("unsqueeze")
def unsqueeze_inverse(base, view, views, dim):
    return view_or_copy(views, "squeeze", "dim", view, dim)


@inverse("squeeze")
def squeeze_inverse(base, view, views):
    return unsqueezed(view, views, range(base.dim()), base.shape)


@inverse("squeeze.dim")
def squeeze_dim_inverse(base, view, views, dim):
    return unsqueezed(view, views, [dim], base.shape)


@inverse("squeeze.dims")
def squeeze_dims_inverse(base, view, views, dim):
    return unsqueezed(view, views, dim, base.shape)


def unsqueezed(view, views, dims, shape):
    """The dimensions of one element that `squeeze` took away."""
    for dim in sorted(dim % len(shape) for dim in dims) if shape else ():
        if shape[dim] == 1:
            view = view_or_copy(views, "unsqueeze", "default", view, dim)
    return view


@inverse("_conj")
def conj_inverse(base, view, views):
    return view_or_copy(views, "_conj", "default", view)


@inverse("_neg_view")
def neg_view_inverse(base, view, views):
    return view_or_copy(views, "_neg_view", "default", view)


@inverse("view_as_real")
def view_as_real_inverse(base, view, views):
    return view_or_copy(views, "view_as_complex", "default", view)


@inverse("view_as_complex")
def view_as_complex_inverse(base, view, views):
    return view_or_copy(views, "view_as_real", "default", view.resolve_conj())


@inverse("expand")
def expand_inverse(base, view, views, size, implicit=False):
    """Several elements of the view are one of the base: what all of them gained is added to it."""
    return base + (view - base).sum_to_size(base.shape)


# ---- the view has a part of the base: scatter it


@inverse("select.int")
def select_inverse(base, view, views, dim, index):
    return aten.select_scatter.default(base, view, dim, index)


@inverse("slice.Tensor")
def slice_inverse(base, view, views, dim=0, start=None, end=None, step=1):
    return aten.slice_scatter.default(base, view, dim, start, end, step)


@inverse("diagonal")
def diagonal_inverse(base, view, views, offset=0, dim1=0, dim2=1):
    return aten.diagonal_scatter.default(base, view, offset, dim1, dim2)


@inverse("as_strided")
def as_strided_inverse(base, view, views, size, stride, storage_offset=None):
    return aten.as_strided_scatter.default(base, view, size, stride, storage_offset)


@inverse("unfold")
def unfold_inverse(base, view, views, dimension, size, step):
    if size > step:
        raise RuntimeError(
            "While executing unfold, functionalization encountered a tensor being mutated that has internal overlap. "
            "When using torch.compile (or running functionalization directly), this is banned "
            "as the behavior is not well defined. Consider cloning the tensor before mutating it, "
            "or removing the mutation from your model."
        )
    return aten.unfold_backward.default(view, list(base.shape), dimension, size, step)


@inverse("unbind.int")
def unbind_inverse(base, view, views, number, dim=0):
    return aten.select_scatter.default(base, view, dim % base.dim(), number)


@inverse("split.Tensor")
def split_inverse(base, view, views, number, split_size, dim=0):
    return part_scattered(base, view, dim, split_size * number, split_size)


@inverse("split_with_sizes")
def split_with_sizes_inverse(base, view, views, number, split_sizes, dim=0):
    return part_scattered(base, view, dim, sum(split_sizes[:number]), split_sizes[number])


def part_scattered(base, view, dim, start, length):
    dim = dim % base.dim()
    return aten.slice_scatter.default(base, view, dim, start, min(start + length, base.shape[dim]))
