"""Making tensors of random numbers: rand, randn, randint, randperm and their `_like` forms, and normal.

In PyTorch: `aten/src/ATen/native/TensorFactories.cpp`; `normal` is in `DistributionTemplates.h`. Each makes
an empty tensor and fills it with an operator of `distributions.py`. Explained in the chapter "Tensor and
Storage".
"""
import numpy as np

from ...c10 import scalar_type
from ...c10.scalar_type import SCALAR_TYPE_NAMES
from ...c10.tensor_impl import TensorImpl, dtype_of, wrap
from ..functions import at
from ..native_function import below_autograd, native_function, packets, python_face, resize, resize_output
from ..python_arg_parser import make_parser
from .cpu import distribution_kernels as kernels
from .distributions import check_std, generator_of, normal_, random_from, run, uniform_
from .integer_ranges import DRAWN
from .tensor_factories import check_options, check_size, empty
from .tensor_iterator import broadcast_error

OPTIONS = "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"
LONG_OPTIONS = OPTIONS.replace("dtype=None", "dtype=long", 1)
LIKE_OPTIONS = f"{OPTIONS}, MemoryFormat? memory_format=None"
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
    with_generator.compose(lambda *a: draw(new(*a[-6:-5], *a[-4:], None), a[-5], *a[:-6]))
    plain.compose(lambda *a: draw(new(*a[-5:], None), None, *a[:-5]))
    generator_out.kernel(lambda *a: make_out(a[:-2], a[-2], a[-1]))
    plain_out.kernel(lambda *a: make_out(a[:-1], None, a[-1]))
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


# ----------------------------------------------------------------------------------------------------- faces

def parsed_face(name):
    """A Python face that takes every option: `out` and `requires_grad` beside what the schemas name."""
    parse = make_parser(packets["torch", name], False)

    def face(*args, out=None, requires_grad=False, **options):
        if out is not None:
            check_out_type(options.pop("dtype", None), out)
            for name_of_option in ("layout", "device", "pin_memory"):
                options.pop(name_of_option, None)
            return parse(args, drop_unset({**options, "out": out}))
        result = parse(args, drop_unset(options))
        return require_grad(result) if requires_grad else result
    face.__name__ = face.__qualname__ = name
    return face


def drop_unset(options):
    """Options without `generator=None`, which means the overload that takes none."""
    if "generator" in options and options["generator"] is None:
        del options["generator"]
    return options


def check_out_type(dtype, out):
    if dtype is not None and dtype is not dtype_of(out):
        raise RuntimeError(f"dtype {SCALAR_TYPE_NAMES[dtype]} does not match dtype of out parameter "
                           f"({SCALAR_TYPE_NAMES[dtype_of(out)]})")


def require_grad(result):
    if dtype_of(result).category < scalar_type.FLOAT:
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    return result.requires_grad_()


def sized_face(name, operators):
    """The face of rand and randn: sizes as loose ints or as a sequence go straight to the operator."""
    plain, with_generator = operators
    parse = parsed_face(name)

    def face(*size, generator=None, out=None, dtype=None, layout=None, device=None, pin_memory=False,
             requires_grad=False, **others):
        loose = size[0] if len(size) == 1 and isinstance(size[0], (tuple, list)) else size
        if (out is not None or layout is not None or device is not None or others
                or not (dtype is None or type(dtype) is scalar_type.dtype)
                or not (generator is None or hasattr(generator, "_impl"))
                or not all([type(n) is int for n in loose])):
            given = {"generator": generator, "out": out, "dtype": dtype, "layout": layout, "device": device,
                     "pin_memory": pin_memory or None, "requires_grad": requires_grad or None}
            return parse(*size, **{k: v for k, v in given.items() if v is not None}, **others)
        if generator is None:
            result = plain.call(loose, dtype, None, None, pin_memory)
        else:
            result = with_generator.call(loose, generator, dtype, None, None, pin_memory)
        return require_grad(result) if requires_grad else result
    face.__name__ = face.__qualname__ = name
    return face


python_face("rand", "function")(sized_face("rand", rand))
python_face("randn", "function")(sized_face("randn", randn))
parse_randint = parsed_face("randint")


@python_face("randint", "function")
def randint_face(*arguments, generator=None, **options):
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

randperm_generator = native_function(f"randperm.generator(SymInt n, *, {GENERATOR}, {LONG_OPTIONS}) -> "
                                     "Tensor")
randperm = native_function(f"randperm(SymInt n, *, {LONG_OPTIONS}) -> Tensor")
randperm_generator_out = native_function(
    f"randperm.generator_out(SymInt n, *, {GENERATOR}, Tensor(a!) out) -> Tensor(a!)")
randperm_out = native_function("randperm.out(SymInt n, *, Tensor(a!) out) -> Tensor(a!)")
# n up to which all of 0 … n-1 are numbers of the type.
RANDPERM_LIMITS = {
    scalar_type.float16: 2**11 + 1, scalar_type.float32: 2**24 + 1, scalar_type.float64: 2**53 + 1}
INTEGER_NAMES = {scalar_type.uint8: "uint8_t", scalar_type.int8: "int8_t", scalar_type.int16: "int16_t",
                 scalar_type.int32: "int"}


def check_randperm(n, dtype):
    """Raises RuntimeError if the type cannot hold n - 1, NotImplementedError if there is no kernel for it."""
    if n < 0:
        raise RuntimeError(f"n must be non-negative, got{n}")
    if n > RANDPERM_LIMITS.get(dtype, n):
        raise RuntimeError(f"n cannot be greater than {RANDPERM_LIMITS[dtype]} for "
                           f"{SCALAR_TYPE_NAMES[dtype]} type.")
    if dtype in INTEGER_NAMES and n - 1 > np.iinfo(dtype.numpy).max:
        raise RuntimeError(f"value cannot be converted to type {INTEGER_NAMES[dtype]} without overflow")
    if dtype not in DRAWN or dtype is scalar_type.bool:
        raise NotImplementedError(f'"randperm" not implemented for \'{SCALAR_TYPE_NAMES[dtype]}\'')


@randperm_generator.kernel
def randperm_cpu(n, generator, dtype, layout, device, pin_memory):
    check_options(layout, device)
    check_size((n,))
    dtype = dtype or scalar_type.int64
    check_randperm(n, dtype)
    return wrap(run(kernels.randperm, n, dtype.numpy, generator_of(generator)))


@randperm.compose
def randperm_composite(n, dtype, layout, device, pin_memory):
    return randperm_generator.call(n, None, dtype, layout, device, pin_memory)


@randperm_generator_out.kernel
def randperm_out_cpu(n, generator, out):
    check_randperm(n, dtype_of(out))
    if out._array.shape != (n,):
        resize(out, (n,))
    out._array[...] = run(kernels.randperm, n, out._array.dtype, generator_of(generator))
    out._counter[0] += 1
    return out


@randperm_out.compose
def randperm_out_composite(n, out):
    return randperm_generator_out.call(n, None, out)


parse_randperm = parsed_face("randperm")


@python_face("randperm", "function")
def randperm_face(*n, generator=None, **options):
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
    generated = native_function(f"{name}.{with_generator}({arguments}, *, {GENERATOR}, {LIKE_OPTIONS}) -> "
                                "Tensor")

    def make(self, parameters, generator, options):
        dtype, layout, device, pin_memory, memory_format = options
        result = at.empty_like(self, dtype=dtype, layout=layout, device=device, pin_memory=pin_memory,
                               memory_format=memory_format)
        return draw(result, generator, *parameters)
    default.compose(lambda self, *a: make(self, a[:-5], None, a[-5:]))
    generated.compose(lambda self, *a: make(self, a[:-6], a[-6], a[-5:]))


def fill_below_tensor(tensor, generator, high):
    if high._array.ndim:
        raise RuntimeError("high must be a scalar tensor and on CPU")
    return fill_below(tensor, generator, int(high._array.item()))


random_like("rand_like", "Tensor self", fill_uniform, ("", "generator"))
random_like("randn_like", "Tensor self", fill_normal, ("", "generator"))
random_like("randint_like", "Tensor self, SymInt high", fill_below, ("", "generator"))
random_like("randint_like", "Tensor self, Tensor high", fill_below_tensor, ("Tensor", "Tensor_generator"))
random_like("randint_like", "Tensor self, SymInt low, SymInt high", fill_between,
     ("low_dtype", "low_generator_dtype"))
for like_name in ("rand_like", "randn_like", "randint_like"):
    python_face(like_name, "function")(parsed_face(like_name))


# ---------------------------------------------------------------------------------------------------- normal

NORMAL = "*, Generator? generator=None"
normal_tensors = native_function(
    f"normal.Tensor_Tensor(Tensor mean, Tensor std, {NORMAL}) -> Tensor", out=True)
normal_mean = native_function(f"normal.Tensor_float(Tensor mean, float std=1, {NORMAL}) -> Tensor", out=True)
normal_std = native_function(f"normal.float_Tensor(float mean, Tensor std, {NORMAL}) -> Tensor", out=True)
normal_size = native_function(f"normal.float_float(float mean, float std, SymInt[] size, {NORMAL}, "
                              f"{OPTIONS}) -> Tensor")
normal_size_out = native_function(
    f"normal.float_float_out(float mean, float std, SymInt[] size, {NORMAL}, Tensor(a!) out) -> Tensor(a!)")


def check_std_tensor(std):
    if dtype_of(std).is_complex:
        raise RuntimeError("normal expects standard deviation to be non-complex")
    if std._array.size and not std._array.min() >= 0:
        raise RuntimeError("normal expects all elements of std >= 0.0")


def is_number(value):
    return not isinstance(value, TensorImpl)


def normal_into(out, mean, std, generator):
    """`out` filled with mean + std * (standard normal numbers); a tensor `std` multiplies afterwards."""
    with below_autograd():
        if is_number(std):
            normal_.call(out, 0.0, std, generator)
        else:
            normal_.call(out, 0.0, 1.0, generator)
            at.mul_(out, std)
        return at.add_(out, mean)


def normal_shape(mean, std):
    shapes = [t._array.shape for t in (mean, std) if not is_number(t)]
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise broadcast_error(*shapes) from None


def normal_new(mean, std, generator):
    check_std(std) if is_number(std) else check_std_tensor(std)
    like = std if is_number(mean) else mean
    return normal_into(wrap(np.empty(normal_shape(mean, std), like._array.dtype)), mean, std, generator)


def normal_out(mean, std, generator, out):
    check_std(std) if is_number(std) else check_std_tensor(std)
    shape = normal_shape(mean, out if is_number(std) else std)  # a mean alone must fit what is there
    if out._array.shape != shape:
        resize_output(out, shape)
    return normal_into(out, mean, std, generator)


for operator in (normal_tensors, normal_mean, normal_std):
    operator.kernel(normal_new)
    operator.out.kernel(normal_out)


@normal_size.kernel
def normal_size_cpu(mean, std, size, generator, dtype, layout, device, pin_memory):
    return normal_.call(empty.call(size, dtype, layout, device, pin_memory, None), mean, std, generator)


@normal_size_out.kernel
def normal_size_out_cpu(mean, std, size, generator, out):
    if out._array.shape != tuple(size):
        resize(out, size)
    return normal_.call(out, mean, std, generator)


@normal_mean.backward
class NormalBackward1:
    def mean(grad, mean_sym_sizes):
        return at.zeros(mean_sym_sizes, dtype=grad.dtype, device=grad.device)


@normal_std.backward
class NormalBackward2:
    def std(grad, std_sym_sizes):
        return at.zeros(std_sym_sizes, dtype=grad.dtype, device=grad.device)


@normal_tensors.backward
class NormalBackward3:
    def mean(grad, mean_sym_sizes):
        return at.zeros(mean_sym_sizes, dtype=grad.dtype, device=grad.device)

    def std(grad, std_sym_sizes):
        return at.zeros(std_sym_sizes, dtype=grad.dtype, device=grad.device)


parse_normal = parsed_face("normal")


@python_face("normal", "function")
def normal(*args, generator=None, **options):
    """Normal numbers; `mean` and `std` are tensors or numbers (then with a size)."""
    if generator is not None:
        options["generator"] = generator
    return parse_normal(*args, **options)
