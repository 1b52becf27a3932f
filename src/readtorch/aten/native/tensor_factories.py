"""Operators that make a tensor: empty, zeros, ones, full, eye and their `_like` and `new_` forms; random ones (rand,
randn, randint, randperm, normal); windows for spectra.

In PyTorch: `aten/src/ATen/native/TensorFactories.cpp`; `normal` in `aten/src/ATen/native/DistributionTemplates.h`.
Explained in the chapter "Tensor and Storage".
"""

import math

import numpy as np

from readtorch.aten.dispatcher import NO_TENSOR_KEYS
from readtorch.aten.empty_tensor import zero_tensor
from readtorch.aten.expand_utils import broadcast_shape
from readtorch.aten.functions import at
from readtorch.aten.map_allocator import map_file
from readtorch.aten.native_function import below_autograd, native_function, packets, python_binding
from readtorch.aten.numpy_errors import restate
from readtorch.aten.python_arg_parser import make_parser
from readtorch.aten.register_dispatch_key import any_device, resize, resize_output
from readtorch.aten.tensor_meta import TensorMeta
from readtorch.c10 import layout as layouts
from readtorch.c10 import scalar_type
from readtorch.c10.device import has_accelerator
from readtorch.c10.dispatch_key import BACKENDS, CPU, META, ZEROTENSOR
from readtorch.c10.local_dispatch_key_set import DEFAULT_MASK, threads_with_modes, tls
from readtorch.c10.memory_format import (
    contiguous_format,
    format_strides_of,
    preserve_format,
    strides_in_format,
    strides_in_order,
)
from readtorch.c10.overflows import number_as
from readtorch.c10.scalar_type import SCALAR_TYPE_NAMES
from readtorch.c10.tensor_impl import TensorImpl, contiguous_strides, detached, dtype_of, wrap

from .copy import allocate, allocate_like, lies_plainly
from .cpu import distribution_kernels as kernels
from .distribution_templates import DRAWN
from .distributions import check_std, generator_of, never_written, normal_, random_from, run, uniform_
from .tensor_iterator import refuse_overlap

OPTIONS = "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"
LIKE_OPTIONS = f"{OPTIONS}, MemoryFormat? memory_format=None"


# -------------------------------------------------------------------------------------------------- arguments


def check_size(size):
    """Raises RuntimeError for a negative dimension."""
    for n in size:
        if n < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {n}: {list(size)}")


def numpy_type(dtype):
    return (dtype or scalar_type.get_default_dtype()).numpy


def check_options(layout, device, pin_memory=None):
    """Raises for a layout that has no tensors here; of the jagged one strided tensors are made. The device was checked before."""
    if pin_memory and not has_accelerator():
        raise RuntimeError(
            "pin_memory=True requires a CUDA or other accelerator backend; no pinned memory allocator "
            "is available on this system."
        )
    if layout is not None and layout is not layouts.strided and layout is not layouts.jagged:
        raise RuntimeError(f"readtorch has strided tensors only, no {layout}")


def made(array, pin_memory):
    """A tensor over `array`, or over a copy of it in pinned memory."""
    t = wrap(array)
    return t.pin_memory() if pin_memory else t


def contiguous_array(make, size, numpy_dtype):
    """`make(size, dtype)`, with PyTorch's strides also if there are no elements (NumPy then makes them all 0)."""
    try:
        array = make(size, numpy_dtype)
    except (ValueError, MemoryError) as error:
        refuse_size(size, error)
    return array if array.size else allocate(size, contiguous_strides(size), numpy_dtype)


def refuse_size(size, error):
    """Raise what PyTorch says of a size that NumPy refused with `error`."""
    check_size(size)
    if isinstance(error, MemoryError):
        restate(error)
    if len(size) > 64:  # in PyTorch: there may be any number of dimensions, and few operators for more than 64
        raise RuntimeError("only tensors with up to 64 dims are supported") from None
    if 0 in size:
        raise RuntimeError("Stride calculation overflowed") from None
    raise RuntimeError(f"Storage size calculation overflowed with sizes={list(size)}") from None


def described(size, dtype, strides=None):
    """A new tensor of this size as a shape rule says it. Raises RuntimeError for a negative dimension."""
    check_size(size)
    return TensorMeta(tuple(size), dtype or scalar_type.get_default_dtype(), strides)


# ------------------------------------------------------------------------------------------------ from a size

empty = native_function(
    f"empty.memory_format(SymInt[] size, *, {OPTIONS}, MemoryFormat? memory_format=None) -> Tensor",
    "function",
    out=True,
)


@empty.meta
def empty_meta(size, dtype, layout, device, pin_memory, memory_format):
    check_options(layout, device, pin_memory)
    if memory_format in (None, contiguous_format):
        return described(size, dtype)
    if memory_format is preserve_format:
        raise RuntimeError("unsupported memory format Preserve")
    return described(size, dtype, format_strides_of(tuple(size), memory_format))


@empty.out.kernel
@any_device
def empty_out(size, dtype, layout, device, pin_memory, memory_format, out):
    """`out` itself, which gets the size."""
    if memory_format is not None:
        raise RuntimeError("'memory_format' argument is incompatible with 'out' tensor argument")
    return at.resize_(out, size)


@empty.impl()
def unfilled(*arguments_and_out):
    """Nothing is to be written."""


empty_structured = empty.kernels[CPU]


@empty.kernel
def empty_cpu(size, dtype, layout, device, pin_memory, memory_format):
    if memory_format is not None:
        return made(empty_structured(size, dtype, layout, device, pin_memory, memory_format)._array, pin_memory)
    check_options(layout, device, pin_memory)
    return made(contiguous_array(np.empty, size, numpy_type(dtype)), pin_memory)


zeros = native_function(f"zeros(SymInt[] size, *, {OPTIONS}) -> Tensor", "function", out=True)
ones = native_function(f"ones(SymInt[] size, *, {OPTIONS}) -> Tensor", "function", out=True)


@zeros.meta
@ones.meta
def zeros_meta(size, dtype, layout, device, pin_memory):
    check_options(layout, device, pin_memory)
    return described(size, dtype)


def of_size(make):
    """The CPU kernel that makes a tensor by `make(size, dtype)`, a function of NumPy's."""

    def kernel(size, dtype, layout, device, pin_memory):
        check_options(layout, device, pin_memory)
        return made(contiguous_array(make, size, numpy_type(dtype)), pin_memory)

    return kernel


zeros.kernel(of_size(np.zeros))

_efficientzerotensor = native_function(f"_efficientzerotensor(SymInt[] size, *, {OPTIONS}) -> Tensor")


@_efficientzerotensor.kernel
@any_device
def efficient_zero_tensor(size, dtype, layout, device, pin_memory):
    """Zeros that are never written and, on the CPU, take no memory."""
    t = zeros.call(size, dtype, layout, device, pin_memory)
    if t._keys & BACKENDS == CPU:
        t = zero_tensor(t._array.shape, t._array.dtype)
    t._keys |= ZEROTENSOR
    return t


ones.kernel(of_size(np.ones))


full = native_function(f"full(SymInt[] size, Scalar fill_value, *, {OPTIONS}) -> Tensor", "function", out=True)


@full.meta
def full_meta(size, fill_value, dtype, layout, device, pin_memory):
    check_options(layout, device, pin_memory)
    return described(size, dtype or infer_full_type(fill_value))


@full.kernel
def full_cpu(size, fill_value, dtype, layout, device, pin_memory):
    check_options(layout, device, pin_memory)
    dtype = dtype or infer_full_type(fill_value)
    number = number_as(fill_value, dtype)
    return made(contiguous_array(lambda size, kind: np.full(size, number, kind), size, dtype.numpy), pin_memory)


def infer_full_type(value):
    """full's dtype if none is given: that of the number, floats in the default dtype."""
    if isinstance(value, float):
        return scalar_type.get_default_dtype()
    if isinstance(value, complex):
        return scalar_type.get_default_complex_dtype()
    return scalar_type.bool if isinstance(value, bool) else scalar_type.int64  # a number of a trace is a subclass


empty_strided = native_function(f"empty_strided(SymInt[] size, SymInt[] stride, *, {OPTIONS}) -> Tensor", "function")


@empty_strided.meta
def empty_strided_meta(size, stride, dtype, layout, device, pin_memory):
    check_options(layout, device, pin_memory)
    if len(size) != len(stride):
        raise RuntimeError(
            f"dimensionality of sizes ({len(size)}) must match dimensionality of strides ({len(stride)})"
        )
    return described(size, dtype, tuple(stride))


@empty_strided.kernel
def empty_strided_cpu(size, stride, dtype, layout, device, pin_memory):
    empty_strided_meta(size, stride, dtype, layout, device, pin_memory)
    return made(allocate(size, stride, numpy_type(dtype)), pin_memory)


empty_permuted = native_function(
    f"empty_permuted(SymInt[] size, int[] physical_layout, *, {OPTIONS}) -> Tensor", "function"
)


@empty_permuted.meta
def empty_permuted_meta(size, physical_layout, dtype, layout, device, pin_memory):
    """Memory without gaps; `physical_layout` names the dimensions from the slowest to the fastest."""
    check_options(layout, device)
    if len(size) != len(physical_layout):
        raise RuntimeError(
            "Number of dimensions in size does not match the length of the physical_layout; i.e. "
            f"len(size) = {len(size)} is not equal to len(physical_layout) = {len(physical_layout)}"
        )
    for i, d in enumerate(physical_layout):
        if not 0 <= d < len(size):
            raise RuntimeError(
                f"Dimension out of range (expected to be between 0 and {len(size) - 1}, but got {d} at "
                f"index {i}).  NB: negative dims not currently supported; file an issue if you want it."
            )
        if d in physical_layout[:i]:
            raise RuntimeError("Duplicate dim not allowed")
    return described(size, dtype, strides_in_order(size, reversed(physical_layout)))


empty_permuted.impl()(unfilled)


eye_square = native_function(f"eye(SymInt n, *, {OPTIONS}) -> Tensor", "function", out=True)
eye = native_function(f"eye.m(SymInt n, SymInt m, *, {OPTIONS}) -> Tensor", "function", out=True)


@eye_square.kernel
@any_device
def eye_square_composite(n, dtype, layout, device, pin_memory):
    return eye.call(n, n, dtype, layout, device, pin_memory)


@eye.meta
def eye_meta(n, m, dtype, layout, device, pin_memory):
    check_options(layout, device)
    for name, size in (("n", n), ("m", m)):
        if size < 0:
            raise RuntimeError(f"{name} must be greater or equal to 0, got {size}")
    return described((n, m), dtype)


@eye.impl()
def eye_cpu(n, m, dtype, layout, device, pin_memory, out):
    out._array[...] = np.eye(n, m, dtype=out._array.dtype)


scalar_tensor = native_function(f"scalar_tensor(Scalar s, *, {OPTIONS}) -> Tensor", "function")


@scalar_tensor.meta
def scalar_tensor_meta(s, dtype, layout, device, pin_memory):
    check_options(layout, device)
    return described((), dtype)


@scalar_tensor.kernel
def scalar_tensor_cpu(s, dtype, layout, device, pin_memory):
    check_options(layout, device)
    return wrap(number_as(s, dtype or scalar_type.get_default_dtype()))


# ------------------------------------------------------------------------------------------------ from a file

from_file = native_function(
    f"from_file(str filename, bool? shared=None, int? size=0, *, {OPTIONS}) -> Tensor", "function"
)


@from_file.kernel
def from_file_cpu(filename, shared, size, dtype, layout, device, pin_memory):
    """A tensor over the first `size` elements of a file, which are read when they are needed. shared: what is written goes to the file.

    Raises RuntimeError if the file cannot be opened, or if it is too short and not shared.
    """
    check_options(layout, device)
    if pin_memory:
        raise RuntimeError("tensors constructed from a file cannot be pinned")
    kind, size = numpy_type(dtype), size or 0
    if size < 0:
        raise RuntimeError(
            f"unable to mmap {size * kind.itemsize} bytes from file <{filename}>: Cannot allocate memory (12)"
        )
    storage = map_file(filename, bool(shared), size * kind.itemsize)
    t = wrap(storage.as_strided(kind, (size,), (1,), 0))
    t._storage_impl = storage
    return t


# --------------------------------------------------------------------------------------- like another tensor

empty_like = native_function(f"empty_like(Tensor self, *, {LIKE_OPTIONS}) -> Tensor", "function")
zeros_like = native_function(f"zeros_like(Tensor self, *, {LIKE_OPTIONS}) -> Tensor", "function")
ones_like = native_function(f"ones_like(Tensor self, *, {LIKE_OPTIONS}) -> Tensor", "function")
full_like = native_function(f"full_like(Tensor self, Scalar fill_value, *, {LIKE_OPTIONS}) -> Tensor", "function")


def like(self, dtype, memory_format, numpy_make):
    """What `numpy_make(size, dtype)` makes, laid out like `self`."""
    array = self._array
    kind = array.dtype if dtype is None else dtype.numpy
    if memory_format is None and array.flags.c_contiguous and 1 not in array.shape and array.size:
        return wrap(numpy_make(array.shape, kind))
    if lies_plainly(array, memory_format):
        return wrap(contiguous_array(numpy_make, array.shape, kind))
    result = allocate_like(array, memory_format, kind)
    if numpy_make is not np.empty:
        result[...] = numpy_make((), kind)
    return wrap(result)


def like_self(make):
    """The CPU kernel that makes a tensor in the likeness of another by `make(size, dtype)`."""

    def kernel(self, dtype, layout, device, pin_memory, memory_format):
        return like(self, dtype, memory_format, make)

    return kernel


empty_like.kernel(like_self(np.empty))
zeros_like.kernel(like_self(np.zeros))
ones_like.kernel(like_self(np.ones))


@empty_like.meta
@zeros_like.meta
@ones_like.meta
def empty_like_meta(self, dtype, layout, device, pin_memory, memory_format):
    return described(self._array.shape, dtype or dtype_of(self), strides_in_format(self._array, memory_format))


@full_like.meta
def full_like_meta(self, fill_value, dtype, layout, device, pin_memory, memory_format):
    return empty_like_meta(self, dtype, layout, device, pin_memory, memory_format)


@full_like.kernel
def full_like_cpu(self, fill_value, dtype, layout, device, pin_memory, memory_format):
    number = number_as(fill_value, dtype or dtype_of(self))
    return like(self, dtype, memory_format, lambda size, kind: np.full(size, number, kind))


new_empty = native_function(f"new_empty(Tensor self, SymInt[] size, *, {OPTIONS}) -> Tensor", "method")
new_zeros = native_function(f"new_zeros(Tensor self, SymInt[] size, *, {OPTIONS}) -> Tensor", "method")
new_ones = native_function(f"new_ones(Tensor self, SymInt[] size, *, {OPTIONS}) -> Tensor", "method")
new_full = native_function(f"new_full(Tensor self, SymInt[] size, Scalar fill_value, *, {OPTIONS}) -> Tensor", "method")
new_empty_strided = native_function(
    f"new_empty_strided(Tensor self, SymInt[] size, SymInt[] stride, *, {OPTIONS}) -> Tensor", "method"
)


@new_empty.meta
@new_zeros.meta
@new_ones.meta
def new_empty_meta(self, size, dtype, layout, device, pin_memory):
    return described(size, dtype or dtype_of(self))


@new_full.meta
def new_full_meta(self, size, fill_value, dtype, layout, device, pin_memory):
    return described(size, dtype or dtype_of(self))


@new_empty_strided.meta
def new_empty_strided_meta(self, size, stride, dtype, layout, device, pin_memory):
    return empty_strided_meta(size, stride, dtype or dtype_of(self), layout, device, pin_memory)


def of_type_of_self(make):
    """The CPU kernel that makes a tensor of another's dtype by `make(size, dtype)`."""

    def kernel(self, size, dtype, layout, device, pin_memory):
        return wrap(contiguous_array(make, size, (dtype or dtype_of(self)).numpy))

    return kernel


new_empty.kernel(of_type_of_self(np.empty))
new_zeros.kernel(of_type_of_self(np.zeros))
new_ones.kernel(of_type_of_self(np.ones))


@new_full.kernel
def new_full_cpu(self, size, fill_value, dtype, layout, device, pin_memory):
    return full_cpu(size, fill_value, dtype or dtype_of(self), layout, device, pin_memory)


@new_empty_strided.kernel
def new_empty_strided_cpu(self, size, stride, dtype, layout, device, pin_memory):
    return empty_strided_cpu(size, stride, dtype or dtype_of(self), layout, device, pin_memory)


# --------------------------------------------------------------------------------------------- quick bindings


def _quick(name, operator, *more):
    """The binding of `zeros(2, 3)` for plain sizes and perhaps a dtype; the parser handles all other calls."""
    table, parse = operator.table, None

    def binding(*size, dtype=None, **options):
        nonlocal parse
        sizes = size[0] if len(size) == 1 and isinstance(size[0], (tuple, list)) else size
        plain = not options and size and (dtype is None or type(dtype) is scalar_type.dtype)
        if plain and all([type(n) is int for n in sizes]):
            kernel = table[NO_TENSOR_KEYS & (tls.mask if threads_with_modes else DEFAULT_MASK)]
            return kernel(tuple(sizes), dtype, None, None, None, *more)
        parse = parse or make_parser(packets["torch", name], False)
        return parse(size, options if dtype is None else {"dtype": dtype, **options})

    binding.__name__ = binding.__qualname__ = name
    binding.__doc__ = f"`{operator.schema}`"
    python_binding(name, "function")(binding)


_quick("zeros", zeros)
_quick("ones", ones)
_quick("empty", empty, None)


def _quick_like(name, operator):
    """The binding of `zeros_like(x)`; the parser handles all other calls."""
    table, parse = operator.table, None

    def binding(input=None, **options):
        nonlocal parse
        if not options and hasattr(input, "_keys"):
            kernel = table[input._keys & (tls.mask if threads_with_modes else DEFAULT_MASK)]
            return kernel(input, None, None, None, None, None)
        parse = parse or make_parser(packets["torch", name], False)
        return parse(() if input is None else (input,), options)

    binding.__name__ = binding.__qualname__ = name
    binding.__doc__ = f"`{operator.schema}`"
    python_binding(name, "function")(binding)


_quick_like("empty_like", empty_like)
_quick_like("zeros_like", zeros_like)
_quick_like("ones_like", ones_like)

_parse_full = make_parser(packets["torch", "full"], False)


@python_binding("full", "function")
def full_binding(size=None, fill_value=None, *, dtype=None, **options):
    """A tensor of `size` with every element `fill_value`."""
    plain = not options and type(size) is tuple and all([type(n) is int for n in size])
    if plain and type(fill_value) in (int, float) and (dtype is None or type(dtype) is scalar_type.dtype):
        return full.call(size, fill_value, dtype, None, None, None)
    given = {"size": size, "fill_value": fill_value, "dtype": dtype, **options}
    return _parse_full((), {name: value for name, value in given.items() if value is not None})


# --------------------------------------------------------------------------------------------- random numbers
# Each makes an empty tensor and fills it with an operator of `distributions.py`.

LONG_OPTIONS = OPTIONS.replace("dtype=None", "dtype=long", 1)
GENERATOR = "Generator? generator"


# ---------------------------------------------------------------------------------------------- declaration


def factory(name, arguments, draw, options=OPTIONS, overload=""):
    """Declare the four overloads of a factory: with and without a generator, with and without `out`.

    `draw(tensor, generator, *arguments)` fills the new tensor; the last argument is its size.
    """

    def schema(parts, suffix, extra):
        dotted = "_".join(part for part in (overload, suffix) if part)
        result = "Tensor(a!)" if "out" in suffix else "Tensor"
        return f"{name}{'.' if dotted else ''}{dotted}({parts}, *, {extra}) -> {result}"

    def make_out(arguments, generator, out):
        check_size(arguments[-1])
        if out._array.shape != tuple(arguments[-1]):
            resize(out, arguments[-1])
        return draw(out, generator, *arguments[:-1])

    with_generator = native_function(schema(arguments, "generator", f"{GENERATOR}, {options}"))
    plain = native_function(schema(arguments, "", options))
    generator_out = native_function(schema(arguments, "generator_out", f"{GENERATOR}, Tensor(a!) out"))
    plain_out = native_function(schema(arguments, "out", "Tensor(a!) out"))
    new = empty.call
    with_generator.kernel(any_device(lambda *a: never_written(draw(new(*a[-6:-5], *a[-4:], None), a[-5], *a[:-6]))))
    plain.kernel(any_device(lambda *a: never_written(draw(new(*a[-5:], None), None, *a[:-5]))))
    generator_out.kernel(any_device(lambda *a: make_out(a[:-2], a[-2], a[-1])))
    plain_out.kernel(any_device(lambda *a: make_out(a[:-1], None, a[-1])))
    return plain, with_generator


def fill_uniform(tensor, generator):
    return uniform_.call(tensor, 0.0, 1.0, generator)


def fill_normal(tensor, generator):
    return normal_.call(tensor, 0.0, 1.0, generator)


def fill_below(tensor, generator, high):
    return random_from.call(tensor, 0, high, generator)


def fill_between(tensor, generator, low, high):
    return random_from.call(tensor, low, high, generator)


rand = factory("rand", "SymInt[] size", fill_uniform)
randn = factory("randn", "SymInt[] size", fill_normal)
randint = factory("randint", "SymInt high, SymInt[] size", fill_below, LONG_OPTIONS)
randint_low = factory("randint", "SymInt low, SymInt high, SymInt[] size", fill_between, LONG_OPTIONS, "low")


# ----------------------------------------------------------------------------------------------------- bindings


def parsed_binding(name):
    """A Python binding that takes every option: `out` and `requires_grad` beside what the schemas name."""
    parse = make_parser(packets["torch", name], False)

    def binding(*args, out=None, requires_grad=False, **options):
        if out is not None:
            check_out_type(options.pop("dtype", None), out)
            for name_of_option in ("layout", "device", "pin_memory"):
                options.pop(name_of_option, None)
            return parse(args, drop_unset({**options, "out": out}))
        result = parse(args, drop_unset(options))
        return require_grad(result) if requires_grad else result

    binding.__name__ = binding.__qualname__ = name
    return binding


def drop_unset(options):
    """Options without `generator=None`, which means the overload that takes none."""
    if "generator" in options and options["generator"] is None:
        del options["generator"]
    return options


def check_out_type(dtype, out):
    if dtype is not None and dtype is not dtype_of(out):
        raise RuntimeError(
            f"dtype {SCALAR_TYPE_NAMES[dtype]} does not match dtype of out parameter "
            f"({SCALAR_TYPE_NAMES[dtype_of(out)]})"
        )


def require_grad(result):
    if dtype_of(result).category < scalar_type.FLOAT:
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    result.requires_grad = True  # `requires_grad_()` is refused inside a transform, this is not
    return result


def sized_binding(name, operators):
    """The binding of rand and randn: sizes as loose ints or as a sequence go straight to the operator."""
    plain, with_generator = operators
    parse = parsed_binding(name)

    def binding(
        *size,
        generator=None,
        out=None,
        dtype=None,
        layout=None,
        device=None,
        pin_memory=False,
        requires_grad=False,
        **others,
    ):
        loose = size[0] if len(size) == 1 and isinstance(size[0], (tuple, list)) else size
        if (
            out is not None
            or layout is not None
            or device is not None
            or others
            or not (dtype is None or type(dtype) is scalar_type.dtype)
            or not (generator is None or hasattr(generator, "_impl"))
            or not all([type(n) is int for n in loose])
        ):
            given = {
                "generator": generator,
                "out": out,
                "dtype": dtype,
                "layout": layout,
                "device": device,
                "pin_memory": pin_memory or None,
                "requires_grad": requires_grad or None,
            }
            return parse(*size, **{k: v for k, v in given.items() if v is not None}, **others)
        if generator is None:
            result = plain.call(loose, dtype, None, None, pin_memory)
        else:
            result = with_generator.call(loose, generator, dtype, None, None, pin_memory)
        return require_grad(result) if requires_grad else result

    binding.__name__ = binding.__qualname__ = name
    return binding


python_binding("rand", "function")(sized_binding("rand", rand))
python_binding("randn", "function")(sized_binding("randn", randn))
parse_randint = parsed_binding("randint")


@python_binding("randint", "function")
def randint_binding(*arguments, generator=None, **options):
    """`randint(high, size)` or `randint(low, high, size)`; with no options straight to the operator."""
    *ends, size = arguments or (None,)
    plain = not options and isinstance(size, (tuple, list)) and all([type(n) is int for n in (*ends, *size)])
    if not plain or len(ends) not in (1, 2) or not (generator is None or hasattr(generator, "_impl")):
        return parse_randint(*arguments, generator=generator, **options)
    default, with_generator = randint if len(ends) == 1 else randint_low
    if generator is None:
        return default.call(*ends, size, scalar_type.int64, None, None, False)
    return with_generator.call(*ends, size, generator, scalar_type.int64, None, None, False)


# -------------------------------------------------------------------------------------------------- randperm

randperm_generator = native_function(f"randperm.generator(SymInt n, *, {GENERATOR}, {LONG_OPTIONS}) -> Tensor")
randperm = native_function(f"randperm(SymInt n, *, {LONG_OPTIONS}) -> Tensor")
randperm_generator_out = native_function(
    f"randperm.generator_out(SymInt n, *, {GENERATOR}, Tensor(a!) out) -> Tensor(a!)"
)
randperm_out = native_function("randperm.out(SymInt n, *, Tensor(a!) out) -> Tensor(a!)")
# n up to which all of 0 … n-1 are numbers of the type.
RANDPERM_LIMITS = {scalar_type.float16: 2**11 + 1, scalar_type.float32: 2**24 + 1, scalar_type.float64: 2**53 + 1}
INTEGER_NAMES = {
    scalar_type.uint8: "uint8_t",
    scalar_type.int8: "int8_t",
    scalar_type.int16: "int16_t",
    scalar_type.int32: "int",
}


def check_randperm(n, dtype):
    """Raises RuntimeError if the type cannot hold n - 1, NotImplementedError if there is no kernel for it."""
    if n < 0:
        raise RuntimeError(f"n must be non-negative, got{n}")
    if n > RANDPERM_LIMITS.get(dtype, n):
        raise RuntimeError(f"n cannot be greater than {RANDPERM_LIMITS[dtype]} for {SCALAR_TYPE_NAMES[dtype]} type.")
    if dtype in INTEGER_NAMES and n - 1 > np.iinfo(dtype.numpy).max:
        raise RuntimeError(f"value cannot be converted to type {INTEGER_NAMES[dtype]} without overflow")
    if dtype not in DRAWN or dtype is scalar_type.bool:
        raise NotImplementedError(f"\"randperm\" not implemented for '{SCALAR_TYPE_NAMES[dtype]}'")


@randperm_generator.meta
def randperm_meta(n, generator, dtype, layout, device, pin_memory):
    check_options(layout, device)
    check_size((n,))
    check_randperm(n, dtype or scalar_type.int64)
    return described((n,), dtype or scalar_type.int64)


@randperm_generator.impl()
def randperm_cpu(n, generator, dtype, layout, device, pin_memory, out):
    out._array[...] = run(kernels.randperm, n, out._array.dtype, generator_of(generator))


@randperm.kernel
@any_device
def randperm_composite(n, dtype, layout, device, pin_memory):
    return randperm_generator.call(n, None, dtype, layout, device, pin_memory)


@randperm_generator_out.kernel
@any_device
def randperm_out_of_copy(n, generator, out):
    check_randperm(n, dtype_of(out))
    if out._array.shape != (n,):
        resize(out, (n,))
    return out.copy_(randperm_generator.call(n, generator, dtype_of(out), None, out.device, None))


@randperm_out.kernel
@any_device
def randperm_out_composite(n, out):
    return randperm_generator_out.call(n, None, out)


parse_randperm = parsed_binding("randperm")


@python_binding("randperm", "function")
def randperm_binding(*n, generator=None, **options):
    """`randperm(n)`; with no options straight to the operator."""
    known = generator is None or hasattr(generator, "_impl")
    if options or not known or len(n) != 1 or type(n[0]) is not int:
        return parse_randperm(*n, generator=generator, **options)
    return randperm_generator.call(n[0], generator, scalar_type.int64, None, None, False)


# ----------------------------------------------------------------------------------------------------- _like


def random_like(name, arguments, draw, overloads):
    """Declare a factory that takes shape, dtype and layout from a tensor: without and with a generator."""
    plain, with_generator = overloads
    suffix = f".{plain}" if plain else ""
    default = native_function(f"{name}{suffix}({arguments}, *, {LIKE_OPTIONS}) -> Tensor")
    generated = native_function(f"{name}.{with_generator}({arguments}, *, {GENERATOR}, {LIKE_OPTIONS}) -> Tensor")

    def make(self, parameters, generator, options):
        dtype, layout, device, pin_memory, memory_format = options
        result = at.empty_like(
            self, dtype=dtype, layout=layout, device=device, pin_memory=pin_memory, memory_format=memory_format
        )
        return never_written(draw(result, generator, *parameters))

    default.kernel(any_device(lambda self, *a: make(self, a[:-5], None, a[-5:])))
    generated.kernel(any_device(lambda self, *a: make(self, a[:-6], a[-6], a[-5:])))


def fill_below_tensor(tensor, generator, high):
    if high._array.ndim:
        raise RuntimeError("high must be a scalar tensor and on CPU")
    return fill_below(tensor, generator, int(high._array.item()))


random_like("rand_like", "Tensor self", fill_uniform, ("", "generator"))
random_like("randn_like", "Tensor self", fill_normal, ("", "generator"))
random_like("randint_like", "Tensor self, SymInt high", fill_below, ("", "generator"))
random_like("randint_like", "Tensor self, Tensor high", fill_below_tensor, ("Tensor", "Tensor_generator"))
random_like("randint_like", "Tensor self, SymInt low, SymInt high", fill_between, ("low_dtype", "low_generator_dtype"))
for like_name in ("rand_like", "randn_like", "randint_like"):
    python_binding(like_name, "function")(parsed_binding(like_name))


# ---------------------------------------------------------------------------------------------------- normal

NORMAL = "*, Generator? generator=None"
normal_tensors = native_function(f"normal.Tensor_Tensor(Tensor mean, Tensor std, {NORMAL}) -> Tensor", out=True)
normal_mean = native_function(f"normal.Tensor_float(Tensor mean, float std=1, {NORMAL}) -> Tensor", out=True)
normal_std = native_function(f"normal.float_Tensor(float mean, Tensor std, {NORMAL}) -> Tensor", out=True)
normal_size = native_function(
    f"normal.float_float(float mean, float std, SymInt[] size, {NORMAL}, {OPTIONS}) -> Tensor"
)
normal_size_out = native_function(
    f"normal.float_float_out(float mean, float std, SymInt[] size, {NORMAL}, Tensor(a!) out) -> Tensor(a!)"
)


def check_std_tensor(std):
    if dtype_of(std).is_complex:
        raise RuntimeError("normal expects standard deviation to be non-complex")
    if std._array.size and not std._keys & META and not (std >= 0).all().item():
        raise RuntimeError("normal expects all elements of std >= 0.0")


def is_number(value):
    return not isinstance(value, TensorImpl)


def draw_normal(out, mean, std, generator):
    """Fill `out` with mean + std * (standard normal numbers); a tensor `std` multiplies afterwards.

    The steps do not count as writes to `out`. On Meta they are not taken: PyTorch accepts an `out` of every dtype there.
    """
    if out._keys & META:
        return
    for t in (mean, std):
        if not is_number(t):
            refuse_overlap(out, t)
    drawn = detached(out)
    with below_autograd():
        if is_number(std):
            normal_.call(drawn, 0.0, std, generator)
        else:
            normal_.call(drawn, 0.0, 1.0, generator)
            at.mul_(drawn, std)
        at.add_(drawn, mean)


def normal_shape(mean, std):
    return broadcast_shape(*[t._array.shape for t in (mean, std) if not is_number(t)])


@any_device
def normal_new(mean, std, generator):
    check_std(std) if is_number(std) else check_std_tensor(std)
    like = std if is_number(mean) else mean
    new = empty.call(normal_shape(mean, std), dtype_of(like), None, like.device, None, None)
    draw_normal(new, mean, std, generator)
    return new


@any_device
def normal_out(mean, std, generator, out):
    check_std(std) if is_number(std) else check_std_tensor(std)
    shape = normal_shape(mean, out if is_number(std) else std)  # a mean alone must fit what is there
    if out._array.shape != shape:
        resize_output(out, shape)
    draw_normal(out, mean, std, generator)
    return out


for operator in (normal_tensors, normal_mean, normal_std):
    operator.kernel(normal_new)
    operator.out.kernel(normal_out)


@normal_size.kernel
@any_device
def normal_of_size(mean, std, size, generator, dtype, layout, device, pin_memory):
    return normal_.call(empty.call(size, dtype, layout, device, pin_memory, None), mean, std, generator)


@normal_size_out.kernel
@any_device
def normal_size_out_cpu(mean, std, size, generator, out):
    if out._array.shape != tuple(size):
        resize(out, size)
    return normal_.call(out, mean, std, generator)


@normal_mean.backward
class NormalBackward1:
    def mean(grad, mean_sym_sizes):
        return at.zeros(mean_sym_sizes, dtype=grad.dtype, device=grad.device)

    result = "auto_element_wise"


@normal_std.backward
class NormalBackward2:
    def std(grad, std_sym_sizes):
        return at.zeros(std_sym_sizes, dtype=grad.dtype, device=grad.device)

    result = "auto_element_wise"


@normal_tensors.backward
class NormalBackward3:
    def mean(grad, mean_sym_sizes):
        return at.zeros(mean_sym_sizes, dtype=grad.dtype, device=grad.device)

    def std(grad, std_sym_sizes):
        return at.zeros(std_sym_sizes, dtype=grad.dtype, device=grad.device)

    def result(mean_t):
        return at.zeros_like(mean_t)


parse_normal = parsed_binding("normal")


@python_binding("normal", "function")
def normal(*args, generator=None, **options):
    """Normal numbers; `mean` and `std` are tensors or numbers (then with a size)."""
    if generator is not None:
        options["generator"] = generator
    return parse_normal(*args, **options)


# ---------------------------------------------------------------------------------------------------- windows
# A periodic window of n elements is the first n of the symmetric one of n + 1.

_C_NAMES = scalar_type.C_TYPE_NAMES


def window_function(name, values, **parameters):
    """Declare the overloads of a window: without and with `periodic`, and with each more of its parameters.

    values(n, length, …): the window, from the tensor 0 … length - 1 and the parameters.
    """
    given = []
    _declare(name, "", "", values, (), parameters)
    _declare(name, ".periodic", ", bool periodic", values, (), parameters)
    for parameter in parameters:
        given.append(parameter)
        overload = ".periodic_" + "_".join(given) if len(parameters) > 1 else f".{parameter}"
        taken = "".join(f", float {p}" for p in given)
        _declare(name, overload, f", bool periodic{taken}", values, tuple(given), parameters)


def _declare(name, overload, taken, values, given, parameters):
    operator = native_function(f"{name}{overload}(int window_length{taken}, *, {OPTIONS}) -> Tensor")
    has_periodic = bool(taken)

    @operator.kernel
    @any_device
    def window(window_length, *arguments):
        own, (dtype, layout, device, _) = arguments[:-4], arguments[-4:]
        dtype = dtype or scalar_type.get_default_dtype()
        check(name, window_length, dtype)
        check_options(layout, device)
        periodic = own[0] if has_periodic else True
        chosen = {**parameters, **dict(zip(given, own[1:]))}
        with below_autograd():
            if window_length < 2:
                return at.ones(window_length, dtype=dtype, device=device)
            whole = window_length + 1 if periodic else window_length
            numbers = at.arange(whole, dtype=dtype, device=device)
            return detached(values(numbers, whole, *chosen.values()).narrow(0, 0, window_length))


def check(name, window_length, dtype):
    if not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(
            f"{name} expects floating point dtypes, got: TensorOptions(dtype={_C_NAMES[dtype]}, "
            "device=cpu, layout=Strided (default), requires_grad=false (default), pinned_memory=false, "
            "memory_format=(nullopt))"
        )
    if window_length < 0:
        raise RuntimeError(f"{name} requires non-negative window_length, got window_length={window_length}")


# ------------------------------------------------------------------------------------------------- the windows


def bartlett(n, length):
    """A triangle."""
    up = n.mul_(2.0 / (length - 1))
    half = (length - 1) // 2 + 1
    up.narrow(0, half, length - half).mul_(-1).add_(2)
    return up


def hamming(n, length, alpha, beta):
    """A cosine, from alpha - beta up to alpha + beta and back."""
    return n.mul_(math.pi * 2.0 / (length - 1)).cos_().mul_(-beta).add_(alpha)


def hann(n, length):
    """A cosine from 0 up to 1 and back."""
    return hamming(n, length, 0.5, 0.5)


def blackman(n, length):
    """A cosine and one of twice the frequency, which makes the ends flatter."""
    n = n.mul_(math.pi / (length - 1))
    return n.mul(4).cos_().mul_(0.08) - n.mul(2).cos_().mul_(0.5) + 0.42


def kaiser(n, length, beta):
    """A Bessel function of the height of a half circle; beta: how narrow."""
    middle = (length - 1) / 2
    x = ((n.double() if n.dtype is scalar_type.float64 else n.float()) - middle) / middle
    whole = at.i0(at.full((), beta, dtype=x.dtype, device=x.device))
    return (at.i0(beta * at.sqrt(1 - x * x)) / whole).to(n.dtype)


window_function("bartlett_window", bartlett)
window_function("blackman_window", blackman)
window_function("hamming_window", hamming, alpha=0.54, beta=0.46)
window_function("hann_window", hann)
window_function("kaiser_window", kaiser, beta=12.0)
