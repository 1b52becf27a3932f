"""Functions of signs, bits and divisors of single elements, for `pointwise` (loops.py).

In PyTorch: `aten/src/ATen/native/cuda/{CopysignKernel,StepKernel,GcdLcmKernel,BinaryShiftOpsKernels,
BinaryGeometricKernels,UnaryFractionKernels,UnaryComplexKernels,UnarySignKernels}.cu`.
"""
import math

# ------------------------------------------------------------------------------------------------------ signs


def copysign(x, y, scalars):
    return math.copysign(x, y)


def signbit(x, scalars):
    """Also of -0."""
    return math.copysign(type(x)(1), x) < type(x)(0)


def is_negative(x, scalars):
    """The sign bit of an integer."""
    return x < type(x)(0)


def is_infinite(x, scalars):
    """scalars: which infinity."""
    return x == type(x)(scalars[0])


def heaviside(x, at_zero, scalars):
    return at_zero if x == type(x)(0) else type(x)(int(x > type(x)(0)))


def angle(x, scalars):
    """In the complex plane: π for what is less than 0. A nan stays."""
    return x if x != x else (type(x)(math.pi) if x < type(x)(0) else type(x)(0))


def angle_of_complex(z, scalars):
    return math.atan2(z.imag, z.real)


def conjugate(z, scalars):
    return z.conjugate()


def direction(z, scalars):
    """The number on the unit circle; 0 of 0."""
    return z / math.hypot(z.real, z.imag) if z != type(z)(0) else z


# ------------------------------------------------------------------------------------------ parts of a number


def times(x, scalars):
    return x * type(x)(scalars[0])


def fraction(x, scalars):
    """What is behind the point, with the sign of x; nan of an infinity."""
    return x - x if x - x != type(x)(0) else math.fmod(x, type(x)(1))


def mantissa(x, scalars):
    return math.frexp(x)[0]


def exponent(x, scalars):
    return math.frexp(x)[1]


def nextafter(x, y, scalars):
    return math.nextafter(x, y)


def hypot(x, y, scalars):
    return math.hypot(x, y)


# ---------------------------------------------------------------------------------------- divisors and shifts


def common_divisor(x, y):
    """Euclid's: the remainder takes the place of the larger number until nothing remains."""
    x, y = abs(x), abs(y)
    while y != 0:
        x, y = y, x % y
    return x


def gcd(x, y, scalars):
    return common_divisor(x, y)


def lcm(x, y, scalars):
    divisor = common_divisor(x, y)
    return abs(x) // divisor * abs(y) if divisor != 0 else divisor


def shift_left(x, y, scalars):
    """scalars: how many bits x has. Shifting by so many or more, or by a negative number, gives 0."""
    return x << y if y >= 0 and y < scalars[0] else type(x)(0)


def shift_right(x, y, scalars):
    """Shifting by as many bits as x has, or by a negative number, leaves only the sign."""
    return x >> y if y >= 0 and y < scalars[0] else type(x)(-int(x < 0))
