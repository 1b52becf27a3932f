"""The kernels that follow from what an operator's page says: its shape rule (`@op.meta`), and what computes on a backend.

    functional   describe the outputs, allocate them, fill them (`@op.impl`)
    in place     compute, then copy to `self`, which must have the result's shape
    out=         describe the outputs, check and resize the caller's, fill them
    Meta         describe the outputs, and allocate nothing

The one place where outputs that a caller gave are checked, resized and written, and where their versions are counted.

In PyTorch: `StructuredRegisterDispatchKey` in `torchgen/dest/register_dispatch_key.py` writes these kernels. Explained in
the chapter "One operator call".
"""

import functools
import warnings

import numpy as np

from readtorch.c10 import scalar_type
from readtorch.c10.dispatch_key import AUTOCAST, CONJUGATE, CPU, CUDA, HISTORY, MATH_BITS, META
from readtorch.c10.local_dispatch_key_set import AutoGradMode, KeyGuard, tls
from readtorch.c10.tensor_impl import (
    TensorImpl,
    contiguous_strides,
    dtype_of,
    storage_impl,
    storage_nbytes,
    storage_offset,
    strides_of,
)

from .common_device import MIXED
from .dispatcher import registry, structured_kernels, writers
from .empty_tensor import empty_cpu, empty_meta, still_on_meta
from .memory_overlap import check_no_overlap, check_no_partial_overlap, overlap_error, same_elements
from .operator_entry import highest_backend
from .tensor_meta import TensorMeta

# ------------------------------------------------------------------------------------------------- functional


def functional_kernel(operator, fill, empty):
    """The kernel of a structured operator: `fill(*inputs, *outputs)` gets outputs that `empty` made of a TensorMeta."""
    describe = operator.shape_rule
    if len(operator.schema.returns) == 1:

        def kernel(*arguments):
            out = empty(describe(*arguments))
            fill(*arguments, out)
            return out

    else:

        def kernel(*arguments):
            outs = [output and empty(output) for output in describe(*arguments)]  # None: a gradient nobody wants
            fill(*arguments, *outs)
            return returned(operator, outs)

    return kernel


structured_kernels[CPU] = lambda operator: functional_kernel(operator, operator.impls[CPU], empty_cpu)


def returned(operator, outs):
    """Several results as the operator returns them: in a named tuple where they have names."""
    named = return_type_of(operator)
    return tuple(outs) if named is None else named(*outs)


@functools.cache
def return_type_of(operator):
    from .native import return_types  # the package of operators imports this module

    fields = tuple(r.name for r in operator.schema.returns)
    named = getattr(return_types, operator.schema.name, None)
    return named if named is not None and return_types.fields_of(named) == fields else None


def any_device(kernel):
    """Decorator for a CPU kernel that only calls operators: it serves the tensors of every device."""
    kernel.any_device = True
    return kernel


def only_geometry(kernel):
    """Decorator for a CPU kernel that reads and changes sizes and strides alone: it serves the tensors of every device."""
    kernel.only_geometry = True
    return kernel


def computed(operator, *inputs):
    """What the functional form returns, for an in-place or `out=` form: on the lists of autocast are functional forms only."""
    if tls.excluded & AUTOCAST == AUTOCAST:
        return operator.call(*inputs)
    with KeyGuard(exclude=AUTOCAST):
        return operator.call(*inputs)


# --------------------------------------------------------------------------------------------------- in place


def inplace_kernel(operator):
    """The kernel of the in-place form that was derived from `operator`."""

    def compute_then_copy(self, *arguments):
        keys = self._keys
        for a in arguments:
            if isinstance(a, TensorImpl):
                keys |= a._keys
                if a._counter is self._counter and a is not self:
                    check_no_partial_overlap(self, a)
        if not keys & HISTORY:
            return write_result(self, computed(operator, self, *arguments))
        with AutoGradMode(False):  # the in-place operator is what autograd has recorded
            return write_result(self, computed(operator, self, *arguments))

    return compute_then_copy


def write_result(self, result):
    """Finish an in-place call: copy `result` into `self`, whose shape must already be the result's."""
    check_inplace_result(self, result)
    return store(result, self)


def check_inplace_result(self, result):
    """Raises RuntimeError unless `result`, a tensor or a TensorMeta, may be written to `self`."""
    shape = result.shape if type(result) is TensorMeta else result._array.shape
    if shape != self._array.shape:
        raise RuntimeError(
            f"output with shape {list(self._array.shape)} doesn't match the broadcast shape {list(shape)}"
        )
    check_result_type(result, self)
    check_no_overlap(self)


def check_result_type(result, target):
    """Raises RuntimeError unless `result`'s dtype may be written to `target`."""
    have, want = described_dtype(result), dtype_of(target)
    if have is not want and not scalar_type.can_cast(have, want):
        raise RuntimeError(
            f"result type {scalar_type.SCALAR_TYPE_NAMES[have]} can't be cast to the desired "
            f"output type {scalar_type.SCALAR_TYPE_NAMES[want]}"
        )


def described_dtype(result):
    """The dtype of a tensor or of a TensorMeta."""
    return result.dtype if type(result) is TensorMeta else dtype_of(result)


# ------------------------------------------------------------------------------------------------------- out=


def out_kernel(operator):
    """The kernel of the `out=` form that was derived from `operator`, on every device.

    Results are described before they are computed where `impl` may write them itself, where nothing is computed, and where the
    functional form may return an input as it is.
    """
    count = len(operator.schema.returns)

    @any_device
    def kernel(*arguments):
        inputs, outs = arguments[:-count], arguments[-count:]
        check_apart(operator, inputs, outs)
        if (
            CPU in operator.impls
            or operator.composite is not None
            or outs[0]._keys & META
            or writes_on_gpu(operator, outs)
        ):
            if operator.shape_rule is not None:
                return described_then_filled(operator, inputs, outs)
        results = computed(operator, *inputs)
        if operator.out_check is None:
            return write_out(results, outs)
        prepare(operator, inputs, outs, results)
        return stored(results, outs)

    return kernel


def described_then_filled(operator, inputs, outs):
    """The outputs are made fit for what the shape rule describes, and written by `impl` if that can be, else from the results."""
    outputs = operator.shape_rule(*inputs)
    prepare(operator, inputs, outs, outputs)
    if fits(operator, inputs, outs, outputs):
        return filled(operator, inputs, outs)
    return write_out(computed(operator, *inputs), outs)


def check_apart(operator, inputs, outs):
    """Raises RuntimeError for an output that shares memory with an input in a way that the operator does not allow."""
    refuse = operator.out_shares_memory
    is_loop = operator.out_check is None or operator.scalar_function is not None
    for t in tensors_among(inputs) if refuse or is_loop else ():
        for out in outs:
            if refuse and refuse(t, out):
                raise overlap_error()
            if is_loop and t._counter is out._counter and t is not out:
                check_no_partial_overlap(out, t)


def tensors_among(arguments):
    """The tensors among an operator's arguments and in its lists."""
    found = []
    for a in arguments:
        if isinstance(a, TensorImpl):
            found.append(a)
        elif isinstance(a, (list, tuple)):
            found += [t for t in a if isinstance(t, TensorImpl)]
    return found


def prepare(operator, inputs, outs, results):
    """Check the outputs against their results (tensors, or TensorMetas) and give them the results' shapes."""
    check, row_major = operator.out_check, operator.out_is_row_major
    for i, out in enumerate(outs):
        result = results if len(outs) == 1 else results[i]
        if check is not None:
            check(i, out, result, inputs)
        fit_output(out, result, row_major and not is_conjugate(result))


def is_conjugate(result):
    """Whether it is a view that is still to be conjugated. In PyTorch a loop writes that, and keeps the order of dimensions."""
    return isinstance(result, TensorImpl) and bool(result._keys & CONJUGATE)


def fit_output(out, result, row_major=False):
    """What every caller's output must pass: device, dtype, no overlap; then it gets the shape of the result (a tensor, or a
    TensorMeta), and its strides unless row_major."""
    array = out._array
    if type(result) is TensorMeta:
        shape, dtype = tuple(result.shape), result.dtype.numpy
    else:
        shape, dtype = result._array.shape, result._array.dtype
        if (out._keys | result._keys) & NOT_HERE:
            check_same_backend(result, out)
    if array.dtype is not dtype:
        check_result_type(result, out)
    if 0 in array.strides:
        check_no_overlap(out)
    if array.shape != shape:
        strides = result.strides if type(result) is TensorMeta else strides_of(result)
        resize_output(out, shape, None if row_major else strides, stacklevel=6)


NOT_HERE = CUDA | META  # what NumPy cannot write
NOT_AS_IT_LIES = NOT_HERE | MATH_BITS  # or not by copying what lies in memory


def writes_on_gpu(operator, outs):
    return bool(outs[0]._keys & CUDA) and CUDA in operator.impls


def fits(operator, inputs, outs, outputs):
    """Whether the backend's `impl` may write into these outputs as if they had been made for it."""
    backend = highest_backend(outs[0]._keys)
    if backend == META:
        return True
    if backend not in operator.impls:
        return False
    tensors = list(tensors_among(inputs))
    if any(t._array.ndim and highest_backend(t._keys) != backend for t in tensors):
        return False
    is_loop = (
        backend == CUDA and operator.scalar_function is not None
    )  # it takes any strides, and an input as the output
    for out, output in zip(outs, (outputs,) if len(outs) == 1 else outputs):
        if out._array.dtype is not output.dtype.numpy:
            return False
        if not is_loop and strides_of(out) != (output.strides or contiguous_strides(output.shape)):
            return False
        for t in tensors:
            if np.may_share_memory(t._array, out._array) and not (is_loop and same_elements(t._array, out._array)):
                return False
    return True


def filled(operator, inputs, outs):
    """`outs`, written to by the backend's `impl`."""
    if not outs[0]._keys & META:
        operator.impls[highest_backend(outs[0]._keys)](*inputs, *outs)
    return outs[0] if len(outs) == 1 else returned_out(return_type_of(operator), outs)


def returned_out(named, outs):
    """Several outputs as an `out=` call returns them. named: the class of the functional form's results."""
    from .native import return_types  # the package of operators imports this module

    out_type = return_types.OUT_TYPES.get(named)
    return tuple(outs) if out_type is None else out_type(outs)


def write_out(results, outs):
    """Finish an `out=` call: resize each output to its result and copy."""
    if len(outs) == 1:
        fit_output(outs[0], results)
        return store(results, outs[0])
    for result, out in zip(results, outs):
        fit_output(out, result)
    return stored(results, outs)


def stored(results, outs):
    """The outputs, which have their results' shapes, written to."""
    if len(outs) == 1:
        return store(results, outs[0])
    return returned_out(type(results), [store(r, o) for r, o in zip(results, outs)])


def store(result, out):
    if (out._keys | result._keys) & NOT_AS_IT_LIES:
        return registry["aten::copy_"].call(out, result, False)
    out._array[...] = result._array
    return out


def check_same_backend(result, out):
    """Raises RuntimeError for an output on another device."""
    if (out._keys ^ result._keys) & NOT_HERE or out._keys & CUDA and out.device != result.device:
        raise RuntimeError(f"Expected out tensor to have device {result.device}, but got {out.device} instead")


def resize_output(out, shape, strides=None, stacklevel=5):
    """Give `out` a new shape; warns when it held elements (`resize_output` in `aten/src/ATen/native/Resize.cpp`)."""
    if out._array.size:
        warnings.warn(
            f"An output with one or more elements was resized since it had shape {list(out._array.shape)}, which does "
            f"not match the required output shape {list(shape)}. This behavior is deprecated, and in a future PyTorch "
            "release outputs will not be resized unless they have zero elements. You can explicitly reuse an out "
            "tensor t by resizing it, inplace, to zero elements with t.resize_(0).",
            stacklevel=stacklevel,
        )
    resize(out, shape, strides)


def resize(out, shape, strides=None):
    """Change sizes and strides in place; the storage grows if it must, and keeps its bytes."""
    array = out._array
    strides = contiguous_strides(shape) if strides is None else strides
    if max(strides, default=0) >= 1 << 63:
        raise RuntimeError("Stride calculation overflowed")
    storage = storage_impl(out)
    offset = storage_offset(out)
    needed = storage_nbytes(shape, strides, array.itemsize, offset)
    if needed > storage.nbytes:
        storage.resize(needed)
    out._array = storage.as_strided(array.dtype, tuple(shape), strides, offset)


# ------------------------------------------------------------------------------------------------------- Meta


def meta_kernel(operator, keys):
    """The kernel of `operator` on the Meta device, or None if nothing says what
    its results look like: Note [ The Meta device ].
    """
    kernel = _meta_kernel(operator)
    if kernel is None or operator.schema.is_inplace or operator.schema.name in MIXED:
        return kernel

    def on_one_device(*arguments):
        check_device(arguments)
        return kernel(*arguments)

    return on_one_device


writers[META] = meta_kernel


def _meta_kernel(operator):
    compute = operator.kernels.get(CPU)
    if getattr(compute, "any_device", False):
        return compute
    if operator.shape_rule is None and (operator.schema.is_view or getattr(compute, "only_geometry", False)):
        return lambda *arguments: still_on_meta(compute(*arguments))
    if operator.schema.is_inplace:
        return inplace_meta_kernel(operator)
    if operator.shape_rule is not None:
        return functional_kernel(operator, lambda *arguments: None, empty_meta)
    return None


def inplace_meta_kernel(operator):
    """In place on the Meta device: the arguments are checked, and the write is counted."""
    functional = operator.variant_of or functional_form(operator)
    describe = operator.shape_rule or functional and (functional.shape_rule or functional.call)

    def kernel(self, *arguments):
        output = describe(self, *arguments) if describe else None
        if output is not None:
            check_inplace_result(self, output)
        return self

    return kernel


def functional_form(operator):
    """The operator that makes a new tensor of what this one writes in place; None if there is none."""
    base, dot, overload = operator.name.removeprefix("aten::").partition(".")
    found = registry.get(f"aten::{base.removesuffix('_')}{dot}{overload}")
    derived = found is not None and getattr(found.kernels.get(CPU), "made_of", None) is operator
    return None if derived else found  # native_function_generation.py: it would ask this one


def inplace_form(operator):
    """The operator that does in place what this one does, if it is declared for itself; else None."""
    base, dot, overload = operator.name.removeprefix("aten::").partition(".")
    return registry.get(f"aten::{base}_{dot}{overload}")


def check_device(arguments):
    """Raises RuntimeError for a tensor that is not on the device of the first one; numbers may be on the CPU."""
    tensors = list(tensors_among(arguments))
    leading = [t for t in tensors if t._array.ndim] or [t for t in tensors if t._keys & META]
    expected = leading[0].device if leading else None  # a factory has no tensors
    for t in tensors:
        if t.device != expected and (t._array.ndim or t._keys & META):
            raise RuntimeError(f"Tensor on device {t.device} is not on the expected device {expected}!")
