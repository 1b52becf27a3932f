"""Arithmetic as the device does it: in the width of its arguments.

Note [ Numbers as on the device ]
Elements of arrays are NumPy scalars: float32 times float32 is rounded to float32, and unsigned integers wrap
around. Python's `math` would compute in float64, so `device_math` takes its place. A literal such as 2.0 is a
float64, as for numba: a kernel that is to stay in float32 must write np.float32(2).

Differences that remain: numba widens every integer operation to 64 bits, NumPy keeps the width of the
elements (kernels that count on wrapping around say np.uint32(...)); whole numbers that are not elements are
Python's and never overflow; the compiler may fuse a·b + c into one rounding; exp, log and their like may
differ in the last place.
"""

import math
from fractions import Fraction
from types import SimpleNamespace

import numpy as np

BY_NUMPY = {
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "atanh": np.arctanh,
    "fabs": np.abs,
    "pow": np.power,
    **{
        name: getattr(np, name)
        for name in (
            "cbrt",
            "copysign",
            "cos",
            "cosh",
            "exp",
            "exp2",
            "expm1",
            "fmod",
            "hypot",
            "log",
            "log10",
            "log1p",
            "log2",
            "nextafter",
            "sin",
            "sinh",
            "sqrt",
            "tan",
            "tanh",
            "isfinite",
            "isinf",
            "isnan",
            "degrees",
            "radians",
        )
    },
}
BY_PYTHON = {name: getattr(math, name) for name in ("erf", "erfc", "gamma", "lgamma")}


def device_float(x=0.0):
    """`float` in a kernel: a float64."""
    return np.float64(x)


def width_of(*numbers):
    """The type that a function of these numbers computes in."""
    kind = np.result_type(*(n if isinstance(n, np.generic) else np.float64 for n in numbers))
    return kind.type if kind.kind == "f" else np.float64


def in_width(function):
    """`function` of NumPy, on numbers of which Python's own count as float64."""

    def call(*numbers):
        if all(isinstance(n, np.floating) for n in numbers):
            return function(*numbers)
        return function(*map(width_of(*numbers), numbers))

    return call


def by_float64(function):
    """A function that NumPy lacks: computed by Python, then rounded to the argument's width."""

    def call(*numbers):
        kind = width_of(*numbers)
        try:
            return kind(function(*map(float, numbers)))
        except (ValueError, OverflowError):
            return kind(np.nan if function is math.gamma else np.inf)

    return call


def to_integer(function):
    return lambda x: int(function(x))


def fma(a, b, c):
    """a·b + c, rounded once."""
    kind = width_of(a, b, c)
    if not all(map(np.isfinite, (a, b, c))):
        return kind(a) * kind(b) + kind(c)
    if kind is np.float64:
        exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
        return np.float64(float(exact)) if exact else kind(a) * kind(b) + kind(c)
    return kind(sum_to_odd(float(a) * float(b), float(c)))


def sum_to_odd(x, y):
    """x + y in float64, its last bit set if something was lost: narrowed then, it is rounded only once."""
    total = x + y
    back = total - x
    lost = (x - (total - back)) + (y - back)
    if lost and not np.float64(total).view(np.int64) & 1:
        return float(np.nextafter(total, math.copysign(math.inf, lost)))
    return total


device_math = SimpleNamespace(
    **{name: in_width(function) for name, function in BY_NUMPY.items()},
    **{name: by_float64(function) for name, function in BY_PYTHON.items()},
    floor=to_integer(math.floor),
    ceil=to_integer(math.ceil),
    trunc=to_integer(math.trunc),
    ldexp=lambda x, n: np.ldexp(width_of(x)(x), int(n)),
    frexp=lambda x: np.frexp(width_of(x)(x)),
    pi=np.float64(math.pi),
    e=np.float64(math.e),
    inf=np.float64(math.inf),
    nan=np.float64(math.nan),
)


# ---------------------------------------------------------------------------------------------------- bits


def bits_in(x):
    """How wide an integer is: Python's count as 64 bits, as for numba."""
    return x.dtype.itemsize * 8 if isinstance(x, np.generic) else 64


def pattern(x):
    return int(x) & (1 << bits_in(x)) - 1


def popc(x):
    """How many bits are 1."""
    return pattern(x).bit_count()


def clz(x):
    """How many zeros are above the highest 1."""
    return bits_in(x) - pattern(x).bit_length()


def ffs(x):
    """The place of the lowest 1, counted from 1; 0 if there is none."""
    return (pattern(x) & -pattern(x)).bit_length()


def brev(x):
    """The bits in reverse order."""
    turned = int(format(pattern(x), f"0{bits_in(x)}b")[::-1], 2)
    return type(x)(turned) if isinstance(x, np.unsignedinteger) else turned


def wrapped(kind, value):
    """`value` as a number of type `kind`; whole numbers wrap around as in a register."""
    if isinstance(value, int) and np.issubdtype(kind, np.integer):
        return np.uint64(value & 0xFFFFFFFFFFFFFFFF).astype(kind)
    return np.asarray(value).astype(kind)[()]


# ------------------------------------------------------------------------------------------------ libdevice


def high_product(kind):
    """The upper half of the product of two integers."""
    bits = np.dtype(kind).itemsize * 8
    return lambda a, b: wrapped(kind, int(a) * int(b) >> bits)


def normcdf(x):
    return width_of(x)(0.5 * math.erfc(-float(x) / math.sqrt(2)))


def reinterpreted(source, target):
    return lambda x: source(x).view(target)


LIBDEVICE = {
    "mulhi": high_product(np.int32),
    "umulhi": high_product(np.uint32),
    "mul64hi": high_product(np.int64),
    "umul64hi": high_product(np.uint64),
    "float_as_int": reinterpreted(np.float32, np.int32),
    "int_as_float": reinterpreted(np.int32, np.float32),
    "float_as_uint": reinterpreted(np.float32, np.uint32),
    "uint_as_float": reinterpreted(np.uint32, np.float32),
    "double_as_longlong": reinterpreted(np.float64, np.int64),
    "longlong_as_double": reinterpreted(np.int64, np.float64),
    "normcdf": normcdf,
    "rsqrt": lambda x: type(x)(1) / np.sqrt(x),
    "rcbrt": lambda x: type(x)(1) / np.cbrt(x),
    "sincos": lambda x: (np.sin(x), np.cos(x)),
    "exp10": lambda x: np.power(type(x)(10), x),
    "sinpi": lambda x: np.sin(x * width_of(x)(np.pi)),
    "cospi": lambda x: np.cos(x * width_of(x)(np.pi)),
    "fdivide": lambda x, y: x / y,
    "saturate": lambda x: np.clip(x, type(x)(0), type(x)(1)),
    "fma": fma,
    "fmin": np.fmin,
    "fmax": np.fmax,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "rint": np.rint,
    "nearbyint": np.rint,
    "popc": popc,
    "clz": clz,
    "ffs": ffs,
    "brev": brev,
}


class LibDevice:
    """`cuda.libdevice`: fast_expf, expf and exp are all e to the power of a float32 or of a float64."""

    def __getattr__(self, name):
        stem = name.removeprefix("fast_")
        for known in (stem, stem.removesuffix("f")):
            function = LIBDEVICE.get(known) or getattr(device_math, known, None)
            if function is not None:
                return function
        raise AttributeError(f"the simulator has no libdevice.{name}")
