"""Functions of single elements on tensors: promotion, broadcasting and the result, around `pointwise`
(loops.py).

    apply(math.mul, [self, other])                     in their common dtype
    apply(math.less, [self, other], result=bool)       computed in the common dtype, stored in another
    apply(math.add, [self, other], (alpha,), out=t)    into a tensor that is there

The functions are those of `aten/native/math.py`.

Note [ Adapted functions ]
A kernel's function computes in the width of its arguments. If tensors have other dtypes than that to compute
in, the function is wrapped in one that converts them as they are read, so that no converted copy is made; a
number (a tensor without dimensions on the host) becomes one of the kernel's scalars. Adapted functions are
kept, for each becomes a kernel that must be compiled once.

In PyTorch: `aten/src/ATen/TensorIterator.cpp`.
"""

import functools

import numpy as np

from readtorch.aten.dispatcher import registry
from readtorch.aten.expand_utils import broadcast_shape, inplace_shape_error
from readtorch.aten.native.copy import cast
from readtorch.aten.native.tensor_iterator import cast_error, not_implemented, refuse_overlap, result_type
from readtorch.aten.register_dispatch_key import inplace_form
from readtorch.aten.tensor_meta import pointwise_strides
from readtorch.c10 import scalar_type
from readtorch.c10.dispatch_key import CUDA
from readtorch.c10.scalar_type import op_math_type
from readtorch.c10.tensor_impl import dtype_of

from .fill_kernel import fill
from .loops import pointwise
from .register_dispatch_key import cuda_impl, cuda_kernel, empty, is_on_device


def apply(function, tensors, scalars=(), common=None, result=None, out=None):
    """The tensor `function(*tensors, scalars)`. common: the dtype to compute in, result: that of the tensor
    made."""
    common = common or result_type(*tensors)
    shape = broadcast_shape(*[t._array.shape for t in tensors])
    if out is None:
        out = empty(shape, (result or common).numpy, pointwise_strides(shape, [t._array for t in tensors]))
    run(function, tensors, scalars, common, out._array)
    return out


def apply_(function, self, others, scalars=(), common=None):
    """The in-place form: `self = function(self, *others, scalars)`."""
    common = common or result_type(self, *others)
    refuse_overlap(self)
    own = dtype_of(self)
    if common is not own and not scalar_type.can_cast(common, own):
        raise cast_error(common, own)
    shapes = [t._array.shape for t in others]
    if any(
        shape != self._array.shape and broadcast_shape(self._array.shape, shape) != self._array.shape
        for shape in shapes
    ):
        raise inplace_shape_error(self._array.shape, *shapes)
    run(function, [self, *others], scalars, common, self._array)
    return self


def register_elementwise():
    """The CUDA kernels of all operators that say what they do to an element, functional and in place."""
    for operator in registry.values():
        if operator.scalar_function is not None and CUDA not in operator.kernels:
            _register(operator, operator.scalar_function)


def _register(operator, loop):
    def compute(arguments, launch_on):
        tensors, others = loop.parted(arguments)
        common = loop.common(*tensors)
        if loop.takes is not None and not loop.takes(common):
            raise not_implemented(f"{loop.kernel_name}_cuda")(common)
        scalars = loop.scalars(*others)
        if loop.constants is not None:
            scalars = (*scalars, *loop.constants(common))
        return launch_on(loop.function(common, *others), tensors, scalars, common)

    @cuda_impl(operator)
    def fill(*arguments):
        compute(arguments[:-1], lambda *loop: run(*loop, arguments[-1]._array))

    inplace = operator.inplace or inplace_form(operator)

    def kernel_(*arguments):
        (inplace.shape_rule or operator.shape_rule)(*arguments)  # for its refusals
        return compute(arguments, lambda function, tensors, *rest: apply_(function, tensors[0], tensors[1:], *rest))

    # A comparison in place stores its truth values as the input's dtype: it is computed, then copied.
    keeps_dtype = loop.result(scalar_type.float32) is scalar_type.float32
    if keeps_dtype and inplace is not None and CUDA not in inplace.kernels:
        cuda_kernel(inplace)(kernel_)


def as_number(n):
    """`n`; of a tensor that was given for a number, the number, for which the host waits."""
    return n.item() if hasattr(n, "_array") else n


def run(function, tensors, scalars, common, out):
    """Launch `function`, adapted to the tensors: Note [ Adapted functions ]."""
    if not out.size:
        return
    number = op_math_type(common).numpy.type
    arrays = [t._array for t in tensors]
    given = tuple(number(as_number(n)) for n in scalars) or (number(0),)
    for place in reversed(range(len(tensors))):
        if not is_on_device(tensors[place]):
            if len(arrays) == 2:
                function, given = (with_number(function, place), (cast(arrays[place], np.dtype(number))[()], given))
                del arrays[place]
            else:
                arrays[place] = on_this_device(arrays[place], np.dtype(number))
    if any(a.dtype.type is not number for a in arrays):
        function = converting(function, number, len(arrays))
    pointwise(function, arrays, out, given)


def on_this_device(array, numpy_dtype):
    """A number as an array on the current device."""
    there = empty((), numpy_dtype)._array
    fill(there, cast(array, numpy_dtype)[()])
    return there


@functools.cache
def with_number(function, place):
    """A function of two elements as one of one: `scalars` is (the other one, the function's scalars)."""

    def number_first(y, scalars):
        return function(scalars[0], y, scalars[1])

    def number_second(x, scalars):
        return function(x, scalars[0], scalars[1])

    return number_second if place else number_first


@functools.cache
def converting(function, number, count):
    """The function of `count` elements, each converted to the type `number`."""
    if number is np.bool_:
        number = truth

    def one(x, scalars):
        return function(number(x), scalars)

    def two(x, y, scalars):
        return function(number(x), number(y), scalars)

    def three(x, y, z, scalars):
        return function(number(x), number(y), number(z), scalars)

    return {1: one, 2: two, 3: three}[count]


def truth(x):
    return x != 0
