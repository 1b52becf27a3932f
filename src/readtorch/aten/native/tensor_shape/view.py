"""Views: new sizes and strides over the same storage, no element moved. view, expand, permute, transpose, squeeze,
detach …

In PyTorch: `aten/src/ATen/native/TensorShape.cpp`. Explained in the chapter "Tensor and Storage".
"""

import numpy as np

from readtorch.aten.codegen import compile_binding
from readtorch.aten.dispatcher import run_lines
from readtorch.aten.functions import at
from readtorch.aten.gen_python_functions import entry_for, names_of_text
from readtorch.aten.native_function import BOTH, binding_maker, native_function, packets, python_binding
from readtorch.aten.python_arg_parser import make_parser
from readtorch.aten.register_dispatch_key import only_geometry
from readtorch.c10.dispatch_key import ADINPLACEORVIEW, AUTOGRAD, CONJUGATE, CPU, META, NEGATIVE
from readtorch.c10.local_dispatch_key_set import KeyGuard, threads_with_modes, tls
from readtorch.c10.scalar_type import SCALAR_TYPE_NAMES
from readtorch.c10.storage_impl import array_at
from readtorch.c10.tensor_impl import (
    alias,
    contiguous_strides,
    legacy_type_name,
    storage_impl,
    storage_offset,
    strided,
    strides_of,
    type_name,
)
from readtorch.c10.torch_dispatch_mode_tls import mode_tls
from readtorch.c10.wrap_dim import wrap_dim, wrap_dims


def restrided(self, shape, strides, start=0, numpy_dtype=None):
    """The memory of `self` as an array of other sizes, strides and perhaps type; `strides` and `start` count bytes."""
    array = self._array
    numpy_dtype = numpy_dtype or array.dtype
    if self._keys & META:
        return restrided_on_meta(self, shape, strides, start, numpy_dtype)
    if not start and array.flags.c_contiguous and 0 not in shape:
        return np.ndarray(shape, numpy_dtype, array, 0, strides)
    start += storage_offset(self) * array.itemsize
    return array_at(storage_impl(self).buffer, numpy_dtype, shape, strides, start)


def restrided_on_meta(self, shape, strides, start, numpy_dtype):
    """The same where sizes, strides and offset may be expressions."""
    item = numpy_dtype.itemsize
    start = start // item + storage_offset(self) * self._array.itemsize // item
    return storage_impl(self).as_strided(numpy_dtype, shape, [s // item for s in strides], start)


def sizes_binding(name, operator, variants="method", extra=""):
    """The Python binding of an operator that takes a list of ints, also as loose ints: `x.view(2, 3)`.

    What is not simply ints goes to the argument parser. extra: the operator's other arguments, as the text of a call has them.
    For `view` it writes:

        def binding(self, *sizes, **kwargs):
            try:
                for n in sizes:
                    if type(n) is not int: break
                else:
                    if sizes and not kwargs:
                        try: return table[self._keys & (tls.mask if threads_with_modes else DEFAULT_MASK)](self, sizes)
                        except FOREIGN as error:
                            restate(error)
                            raise
                if len(sizes) == 1 and not kwargs and are_ints(sizes[0]): return call(self, tuple(sizes[0]))
                return parse((self, *sizes), kwargs)
            except AttributeError:
                if hasattr(self, '_keys'): raise
                return parse((self, *sizes), kwargs)
            except Overridden: pass
            return public.override((self, *sizes), kwargs)
    """
    run = run_lines(
        f"table[self._keys & (tls.mask if threads_with_modes else DEFAULT_MASK)](self, sizes{extra})", indent=16
    )
    source = (
        "def binding(self, *sizes, **kwargs):\n"
        "    try:\n"
        "        for n in sizes:\n"
        "            if type(n) is not int: break\n"
        "        else:\n"
        "            if sizes and not kwargs:\n"
        f"{run}"
        f"        if len(sizes) == 1 and not kwargs and are_ints(sizes[0]): return call(self, tuple(sizes[0]){extra})\n"
        "        return parse((self, *sizes), kwargs)\n"
        "    except AttributeError:\n"
        "        if hasattr(self, '_keys'): raise\n"
        "        return parse((self, *sizes), kwargs)\n"
        "    except Overridden: pass\n"
        "    return public.override((self, *sizes), kwargs)\n"
    )

    @binding_maker(name, variants)
    def make(public):
        names = {**names_of_text(operator, public), "are_ints": are_ints, "call": entry_for(operator, public)}
        names["parse"] = make_parser(packets["torch", name], variants == "method", public)
        binding = compile_binding(name, source, names)
        binding.__doc__ = f"`{operator.schema}`"
        return binding


def are_ints(sizes):
    """Whether it is a tuple or a list of nothing but ints, none of a subclass."""
    return isinstance(sizes, (tuple, list)) and _INT.issuperset(map(type, sizes))


_INT = frozenset({int})


# ------------------------------------------------------------------------------------------ sizes and strides

view = native_function("view(Tensor(a) self, SymInt[] size) -> Tensor(a)", "method")
view_dtype = native_function("view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a)", "method")


def infer_size(size, numel):
    """`size` with its -1 replaced by what `numel` leaves for it. Raises RuntimeError if it does not fit."""
    known, unknown = 1, None
    for dim, n in enumerate(size):
        if n == -1:
            if unknown is not None:
                raise RuntimeError("only one dimension can be inferred")
            unknown = dim
        elif n < 0:
            raise RuntimeError(f"invalid shape dimension {n} at index {dim} of shape {list(size)}")
        else:
            known *= n
    if unknown is None:
        if known == numel:
            return size
    elif known and numel % known == 0:
        return (*size[:unknown], numel // known, *size[unknown + 1 :])
    elif known == 0 and numel == 0:
        raise RuntimeError(
            f"cannot reshape tensor of 0 elements into shape {list(size)} because the unspecified "
            "dimension size -1 can be any value and is ambiguous"
        )
    raise RuntimeError(f"shape '{list(size)}' is invalid for input of size {numel}")


def compute_strides(shape, strides, sizes, item):
    """Byte strides with which `sizes` view memory laid out as `shape` and `strides`, or None if there are none.

    Neighbouring dimensions that could be one ("chunks") may be divided anew; no new dimension may reach across two.
    In PyTorch: `at::detail::computeStride` (`aten/src/ATen/TensorUtils.cpp`).
    """
    if 0 in shape:
        return strides if shape == tuple(sizes) else [s * item for s in contiguous_strides(sizes)]
    if not shape:
        return [item] * len(sizes)
    result = [0] * len(sizes)
    d, filled = len(sizes) - 1, 1
    step, chunk = strides[-1], 1
    for i in reversed(range(len(shape))):
        chunk *= shape[i]
        if i and (shape[i - 1] == 1 or strides[i - 1] == chunk * step):
            continue
        while d >= 0 and (filled < chunk or sizes[d] == 1):
            result[d] = filled * step
            filled *= sizes[d]
            d -= 1
        if filled != chunk:
            return None
        if i:
            step, chunk, filled = strides[i - 1], 1, 1
    return result if d == -1 else None


@view.view_kernel
def view_cpu(self, size):
    array = self._array
    shape = array.shape
    if array.flags.c_contiguous and 1 not in shape and 0 not in shape:  # mostly; NumPy's strides are right
        try:
            seen = array.reshape(size)
            if seen.shape == size or size.count(-1) == 1 and min(size) == -1:
                return seen
        except ValueError:
            pass  # what is wrong, infer_size says in PyTorch's words
    if not array.size:
        array = strided(self)
    size = infer_size(size, array.size)
    strides = compute_strides(array.shape, array.strides, size, array.itemsize)
    if strides is None:
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at least one dimension "
            "spans across two contiguous subspaces). Use .reshape(...) instead."
        )
    return restrided(self, size, strides)


@view.backward
class ViewBackward0:
    def self(grad, self_sym_sizes):
        return grad.reshape(self_sym_sizes)

    result = "auto_linear"


sizes_binding("view", view)


@view_dtype.kernel
def view_dtype_cpu(self, dtype):
    """The same bytes read as another type; with another element size the last dimension grows or shrinks."""
    if self._keys & (CONJUGATE | NEGATIVE):
        kind = "conjugate view tensors" if self._keys & CONJUGATE else "tensors with negative bit set"
        raise RuntimeError(f"torch.Tensor.view is not supported for {kind} when converting to a different dtype.")
    array, target = self._array if self._array.size else strided(self), dtype.numpy
    if target.itemsize == array.itemsize:
        return alias(self, array.view(target))
    shape, strides = list(array.shape), list(array.strides)
    have, want = array.itemsize, target.itemsize
    if not shape:
        raise RuntimeError(
            f"self.dim() cannot be 0 to view {type_name(self)} as {SCALAR_TYPE_NAMES[dtype]} (different element sizes)"
        )
    if want > have:
        check_widening(self, dtype, want // have)
    elif strides[-1] != have:
        raise stride_error(self, dtype)
    shape[-1], strides[-1] = shape[-1] * have // want, want
    return alias(self, restrided(self, shape, strides, 0, target))  # autograd does not follow it


def stride_error(self, dtype):
    return RuntimeError(
        f"self.stride(-1) must be 1 to view {type_name(self)} as {SCALAR_TYPE_NAMES[dtype]} "
        f"(different element sizes), but got {strides_of(self)[-1]}"
    )


def check_widening(self, dtype, ratio):
    """Raises RuntimeError unless size, offset and strides count whole elements of the wider type."""
    shape, strides = self._array.shape, strides_of(self)
    types = f"to view {type_name(self)} as {SCALAR_TYPE_NAMES[dtype]} (different element sizes)"
    if shape[-1] % ratio:
        raise RuntimeError(f"self.size(-1) must be divisible by {ratio} {types}, but got {shape[-1]}")
    if storage_offset(self) % ratio:
        raise RuntimeError(
            f"self.storage_offset() must be divisible by {ratio} {types}, but got {storage_offset(self)}"
        )
    if strides[-1] != 1:
        raise stride_error(self, dtype)
    for d, step in enumerate(strides[:-1]):
        if step % ratio:
            raise RuntimeError(f"self.stride({d}) must be divisible by {ratio} {types}, but got {step}")


expand = native_function("expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)", "method")


@expand.view_kernel
def expand_cpu(self, size, implicit):
    """Dimensions of size 1 repeated, and new ones in front, by strides of 0. -1 keeps a size."""
    array = self._array if self._array.size else strided(self)
    shape, added = array.shape, len(size) - array.ndim
    if added < 0:
        raise RuntimeError(
            f"expand({legacy_type_name(self)}{{{list(shape)}}}, size={list(size)}): the number of sizes "
            f"provided ({len(size)}) must be greater or equal to the number of dimensions in the tensor "
            f"({array.ndim})"
        )
    sizes, strides = list(size), [0] * len(size)
    for dim in range(len(size) - 1, added - 1, -1):
        wanted, own = size[dim], shape[dim - added]
        if wanted == own or wanted == -1:
            sizes[dim], strides[dim] = own, array.strides[dim - added]
        elif own != 1:
            raise RuntimeError(
                f"The expanded size of the tensor ({wanted}) must match the existing size ({own}) at "
                f"non-singleton dimension {dim}.  Target sizes: {list(size)}.  Tensor sizes: "
                f"{list(shape)}"
            )
    if shape:  # in front of no dimension, each new one has a stride of 0
        for dim in reversed(range(added)):
            if sizes[dim] == -1:
                raise RuntimeError(
                    f"The expanded size of the tensor (-1) isn't allowed in a leading, non-existing dimension {dim}"
                )
            if sizes[dim] == 1:
                strides[dim] = sizes[dim + 1] * strides[dim + 1]
    try:
        if not shape and -1 in sizes:
            raise ValueError
        return restrided(self, sizes, strides)
    except ValueError:  # a size below 0 counts as one above 2**63
        raise RuntimeError("numel: integer multiplication overflow") from None


sizes_binding("expand", expand, extra=", False")


@expand.backward
class ExpandBackward0:
    def self(grad, self_sym_sizes):
        return at.sum_to_size(grad, self_sym_sizes)

    result = "auto_linear"


transpose = native_function("transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)", BOTH, direct=True)


@transpose.view_kernel
def transpose_cpu(self, dim0, dim1):
    array = self._array
    if array.size > 1:
        return array.swapaxes(dim0, dim1)  # whose error `restate` puts into PyTorch's words
    ndim = array.ndim
    dim0, dim1 = wrap_dim(dim0, ndim), wrap_dim(dim1, ndim)
    array = array if array.size else strided(self)
    return array.swapaxes(dim0, dim1) if ndim else array


@transpose.backward
class TransposeBackward0:
    def self(grad, dim0, dim1):
        return grad.transpose(dim0, dim1)

    result = "auto_linear"


t = native_function("t(Tensor(a) self) -> Tensor(a)", BOTH, direct=True)


@t.view_kernel
def t_cpu(self, name="t()"):
    array = self._array
    if array.ndim > 2:
        raise RuntimeError(f"{name} expects a tensor with <= 2 dimensions, but self is {array.ndim}D")
    return array.T if array.size else strided(self).T


@t.backward
class TBackward0:
    def self(grad):
        return grad.t()

    result = "auto_linear"


permute = native_function("permute(Tensor(a) self, int[] dims) -> Tensor(a)", BOTH)


@permute.view_kernel
def permute_cpu(self, dims):
    array = self._array
    if not array.size:
        array = strided(self)
    try:
        if len(dims) == array.ndim:
            return array.transpose(dims)
    except ValueError:
        for d in dims:
            wrap_dim(d, array.ndim)
        raise RuntimeError("permute(): duplicate dims are not allowed.") from None
    raise RuntimeError(
        "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the "
        f"desired ordering of dimensions i.e. input.dim() = {array.ndim} is not equal to len(dims) = "
        f"{len(dims)}"
    )


sizes_binding("permute", permute, "function, method")


@permute.backward
class PermuteBackward0:
    def self(grad, dims):
        inverse = [0] * len(dims)
        for place, d in enumerate(dims):
            inverse[d % len(dims)] = place
        return grad.permute(inverse)

    result = "auto_linear"


# ----------------------------------------------------------------------------------------------------- detach

detach = native_function("detach(Tensor(a) self) -> Tensor(a)", BOTH, direct=True)


@detach.kernel
def detach_cpu(self):
    return alias(self, self._array)


alias_ = native_function("alias(Tensor(a) self) -> Tensor(a)", BOTH, direct=True)


@alias_.view_kernel
def alias_cpu(self):
    return self._array


@alias_.backward
class AliasBackward0:
    def self(grad):
        return grad

    def result(self_t):
        return self_t


detach_ = native_function("detach_(Tensor(a!) self) -> Tensor(a!)", "")


@detach_.compose
def detach_in_place(self):
    """The method, which autograd writes: see python_variable.py. Only modes above autograd see that it is an operator."""
    return self.detach_()


lift_fresh = native_function("lift_fresh(Tensor(a) self) -> Tensor(a)", "")


@lift_fresh.kernel
def lift_fresh_cpu(self):
    """The tensor itself. Dispatch modes are told by it that `torch.tensor` has made one."""
    return self


def told_of(t):
    """A tensor that was made without an operator, as the thread's dispatch modes and transforms want it."""
    if threads_with_modes and tls.functorch:
        return lift_fresh.call(t)
    if not mode_tls.modes and mode_tls.pre_dispatch is None:
        return t
    with KeyGuard(exclude=AUTOGRAD | ADINPLACEORVIEW):
        return lift_fresh.call(t)


# -------------------------------------------------------------------------------------------- views in place


def becomes_view(functional, text, node_name, array_of=None):
    """Declare `x.squeeze_()` and its like: x itself gets the sizes and strides of the view that `functional` gives.

    PyTorch counts them as operators of their own, so their nodes have numbers of their own.
    """
    operator = native_function(text, "method")
    array_of = array_of or functional.kernels[CPU].array_of

    @operator.kernel
    @only_geometry
    def become_view(self, *arguments):
        self._storage_impl = storage_impl(self)
        self._array = array_of(self, *arguments)
        return self

    formulas = {"self": vars(functional.derivative)["self"], "result": "auto_linear", "writes_no_elements": True}
    operator.backward(type(node_name, (), formulas))
    return operator


transpose_ = becomes_view(
    transpose, "transpose_(Tensor(a!) self, int dim0, int dim1) -> Tensor(a!)", "TransposeBackward1"
)
becomes_view(t, "t_(Tensor(a!) self) -> Tensor(a!)", "TBackward1", lambda self: t_cpu(self, "t_()"))


# ----------------------------------------------------------------------------------------- squeeze, unsqueeze

unsqueeze = native_function("unsqueeze(Tensor(a) self, int dim) -> Tensor(a)", BOTH, direct=True)


@unsqueeze.view_kernel
def unsqueeze_cpu(self, dim):
    array = self._array
    shape = array.shape
    if 0 in shape:
        array = strided(self)
    dim = wrap_dim(dim, len(shape) + 1)
    sizes = (*shape[:dim], 1, *shape[dim:])
    if 1 not in shape and array.size and array.flags.c_contiguous:
        return array.reshape(sizes)
    strides = array.strides
    step = shape[dim] * strides[dim] if dim < len(shape) else array.itemsize
    return restrided(self, sizes, (*strides[:dim], step, *strides[dim:]))


@unsqueeze.backward
class UnsqueezeBackward0:
    def self(grad, dim):
        return grad.squeeze(dim)

    result = "auto_linear"


squeeze = native_function("squeeze(Tensor(a) self) -> Tensor(a)", BOTH)
squeeze_dim = native_function("squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)", BOTH)
squeeze_dims = native_function("squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)", BOTH)


@squeeze.view_kernel
def squeeze_cpu(self):
    array = self._array
    return array.squeeze() if array.size else strided(self).squeeze()


@squeeze_dim.view_kernel
def squeeze_dim_cpu(self, dim):
    array = self._array
    if not array.size:
        array = strided(self)
    dim = wrap_dim(dim, array.ndim)
    return array.squeeze(dim) if array.ndim and array.shape[dim] == 1 else array


@squeeze_dims.view_kernel
def squeeze_dims_cpu(self, dims):
    array = self._array if self._array.size else strided(self)
    ones = tuple([d for d in wrap_dims(dims, array.ndim) if array.ndim and array.shape[d] == 1])
    return array.squeeze(ones)


@python_binding("squeeze")
def squeeze_binding(input, dim=None):
    """`input` without its dimensions of size 1, or without those among `dim` that are of size 1."""
    if dim is None:
        return squeeze.call(input)
    if type(dim) is int:
        return squeeze_dim.call(input, dim)
    if isinstance(dim, (tuple, list)):
        return squeeze_dims.call(input, dim)
    return squeeze_dim.call(input, dim.__index__())


def unsqueeze_to(grad, sizes, dims=None):
    """`grad` with the dimensions back that squeeze took away."""
    dims = range(len(sizes)) if dims is None else sorted(wrap_dims(dims, len(sizes)))
    for dim in dims:
        if sizes and sizes[dim] == 1:
            grad = grad.unsqueeze(dim)
    return grad


@squeeze.backward
class SqueezeBackward0:
    def self(grad, self_sym_sizes):
        return unsqueeze_to(grad, self_sym_sizes)

    result = "auto_linear"


@squeeze_dim.backward
class SqueezeBackward1:
    def self(grad, self_sym_sizes, dim):
        return unsqueeze_to(grad, self_sym_sizes, (dim,))

    result = "auto_linear"


@squeeze_dims.backward
class SqueezeBackward2:
    def self(grad, self_sym_sizes, dim):
        return unsqueeze_to(grad, self_sym_sizes, dim)

    result = "auto_linear"


becomes_view(squeeze, "squeeze_(Tensor(a!) self) -> Tensor(a!)", "SqueezeBackward3")
becomes_view(squeeze_dim, "squeeze_.dim(Tensor(a!) self, int dim) -> Tensor(a!)", "SqueezeBackward4")
becomes_view(squeeze_dims, "squeeze_.dims(Tensor(a!) self, int[] dim) -> Tensor(a!)", "SqueezeBackward5")
becomes_view(unsqueeze, "unsqueeze_(Tensor(a!) self, int dim) -> Tensor(a!)", "UnsqueezeBackward1")
