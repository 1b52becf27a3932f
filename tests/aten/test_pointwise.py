"""Element by element: values, layouts, special numbers, gradients of two orders, in-place, out=, errors."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import readtorch
from tests.reference import FUSES, both, tensor_lists, tensors

UNARY = [
    "neg",
    "abs",
    "sign",
    "sgn",
    "square",
    "sqrt",
    "rsqrt",
    "reciprocal",
    "exp",
    "exp2",
    "expm1",
    "log",
    "log2",
    "log10",
    "log1p",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "asinh",
    "acosh",
    "atanh",
    "tanh",
    "sigmoid",
    "erf",
    "erfc",
    "erfinv",
    "ceil",
    "floor",
    "round",
    "trunc",
    "frac",
    "deg2rad",
    "rad2deg",
    "nan_to_num",
    "sinc",
]
BINARY = [
    "add",
    "sub",
    "mul",
    "div",
    "atan2",
    "maximum",
    "minimum",
    "fmax",
    "fmin",
    "hypot",
    "logaddexp",
    "logaddexp2",
    "copysign",
    "xlogy",
    "fmod",
    "remainder",
]
SPECIAL = torch.tensor([0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.5, 1e30, -1e-30, float("inf"), -float("inf"), float("nan")])


@pytest.mark.parametrize("name", UNARY)
@given(tensors(low=-0.95, high=0.95, requires_grad=True))
def test_unary(name, x):
    both(lambda T, x: getattr(T, name)(x), x)


@pytest.mark.parametrize("name", UNARY)
def test_unary_at_the_edges(name):
    both(lambda T, x: getattr(T, name)(x), SPECIAL)
    both(lambda T, x: getattr(x, name)(), torch.tensor([0.25, 0.5, 0.75], dtype=torch.float64).requires_grad_(), grad=2)


@pytest.mark.parametrize("name", BINARY)
@given(tensor_lists(2, low=0.1, high=3.0, requires_grad=True))
def test_binary(name, pair):
    both(lambda T, x, y: getattr(T, name)(x, y), *pair, rtol=1e-5, atol=1e-5, strides=False)


@pytest.mark.parametrize("name", BINARY)
def test_binary_at_the_edges(name):
    both(lambda T, x, y: getattr(T, name)(x, y), SPECIAL[:, None], SPECIAL)
    x, y = (torch.rand(3, dtype=torch.float64).requires_grad_() for _ in range(2))
    both(lambda T, x, y: getattr(T, name)(x, y), x, y, grad=2)


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "exp", "sqrt", "pow", "clamp", "lerp", "addcmul"])
def test_in_place_and_out(name):
    rest = {"add": 1, "sub": 1, "mul": 1, "div": 1, "pow": 1, "lerp": 2, "addcmul": 2}.get(name, 0)
    numbers = (0.2, 0.7) if name == "clamp" else ()
    inputs = [torch.rand(4) for _ in range(1 + rest)]
    both(
        lambda T, x, *t: (
            getattr(T, name)(x, *t, *numbers, out=T.empty(0)),
            getattr(x, name + "_")(*t, *numbers),
            x._version,
        ),
        *inputs,
    )


def test_gradients_through_in_place_chains():
    both(
        lambda T, x: x.clone().mul_(x).add_(1).sub_(x).div_(3).mul_(x).neg_(),
        torch.rand(4, dtype=torch.float64).requires_grad_(),
        grad=2,
    )


def test_ties_and_corners_of_gradients():
    x = torch.tensor([-1.0, 0.0, 1.0, 2.0]).requires_grad_()
    both(lambda T, x: T.maximum(x, T.ones(4)), x)
    both(lambda T, x: x.clamp(0, 1), x)
    both(lambda T, x: x.clamp(T.zeros(4), T.ones(4)), x)
    both(lambda T, x: x.abs() + x.clamp_min(0) + x.clamp_max(1), x)
    both(lambda T, x: (x**0, x**1, x**2, x**3, x ** T.tensor([0.0, 1.0, 2.0, 0.0])), x)


def test_division_of_integers():
    x, y = torch.arange(-5, 6)[:, None], torch.tensor([-3, -1, 1, 2, 7])
    both(lambda T, x, y: (x // y, x % y, T.fmod(x, y), T.div(x, y, rounding_mode="trunc"), x / y), x, y)
    both(lambda T, x: x // 0, torch.arange(3))
    both(lambda T, x: x % T.zeros(3, dtype=T.int64), torch.arange(3))


@pytest.mark.parametrize("mode", [None, "trunc", "floor"])
@given(tensor_lists(2, st.sampled_from([torch.float32, torch.int64]), low=1.0, high=9.0))
def test_rounding_modes(mode, pair):
    both(lambda T, x, y: T.div(x, -y, rounding_mode=mode), *pair)


def test_powers():
    x = torch.tensor([0.0, 0.5, 1.0, 2.0, 3.0])
    for exponent in (0, 0.5, 1, 2, 3, -0.5, -1, -2, 1.7):
        both(lambda T, x: x**exponent, x.clone().requires_grad_())
        both(lambda T, x: exponent**x, x.clone().requires_grad_())
    whole = torch.tensor([-2, -1, 0, 1, 2])
    both(lambda T, x: (x**2, x**3, x ** x[None].t(), T.float_power(x, 2)), whole)
    both(lambda T, x: x**-1, whole)


def test_names_of_nodes():
    x = torch.rand(3).requires_grad_()
    both(
        lambda T, x: (
            2 - x,
            x - 2,
            2 / x,
            x % 2,
            x % x,
            x.square(),
            T.lerp(x, x, 0.5),
            T.lerp(x, x, x),
            x.clamp(0),
            x.fix(),
            x.clamp(x),
            T.div(x, 2, rounding_mode=None),
            T.copysign(x, 2),
            T.xlogy(2, x),
            x.absolute(),
            x.negative(),
        ),
        x,
    )


def test_a_missing_derivative_is_told_in_backward():
    both(lambda T, x: (x // 2).sum().backward(), torch.rand(3).requires_grad_())
    both(lambda T, x: (2 % x).sum().backward(), torch.rand(3).requires_grad_())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_sixteen_bits_are_computed_wide_and_rounded_once(dtype):
    x, y = (torch.linspace(-3, 3, 64).to(dtype), torch.linspace(1, 2, 64).to(dtype))
    both(
        lambda T, x, y: (
            x.exp(),
            y.sqrt(),
            x * y,
            x / y,
            x.tanh(),
            T.add(x, y, alpha=0.3),
            T.lerp(x, y, 0.3),
            y**1.7,
            T.addcdiv(x, y, y, value=0.3),
            x.sin(),
        ),
        x,
        y,
        exact=False,
        **({} if FUSES else dict(rtol=0.016, atol=1e-3)),
    )  # x + 0.3 y, where little is left of it


@given(tensors(dtype=torch.complex128, requires_grad=True, low=-2.0, high=2.0))
def test_complex(z):
    both(lambda T, z: (z * z, z.exp(), z.abs(), z.sgn(), z.sin(), z.tanh(), z**2, z + 1j, 2j * z), z)


COMPARISONS = ["eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor", "isclose"]


@pytest.mark.parametrize("name", COMPARISONS)
def test_comparisons(name):
    both(lambda T, x, y: getattr(T, name)(x, y), SPECIAL[:, None], SPECIAL, versions=name != "isclose")


@pytest.mark.parametrize(
    "name", ["isnan", "isinf", "isfinite", "isposinf", "isneginf", "isreal", "signbit", "logical_not"]
)
@given(tensors(special=True))
def test_questions(name, x):
    both(lambda T, x: getattr(T, name)(x), x)


def test_whole_tensor_questions():
    x = torch.tensor([1.0, 2.0])
    both(
        lambda T, x: (T.equal(x, x), T.equal(x, x[:1]), T.allclose(x, x + 1e-9), x.allclose(x + 1), T.is_nonzero(x[0])),
        x,
    )
    both(lambda T, x: T.allclose(x, x.double()), x)
    both(lambda T, x: T.isclose(x, x, rtol=-1.0), x)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int64, torch.bool], ids=str)
def test_bits(dtype):
    x, y = torch.arange(8).to(dtype), torch.arange(8).flip(0).to(dtype)
    both(lambda T, x, y: (x & y, x | y, x ^ y, ~x, x & 3 if x.dtype != T.bool else x & True), x, y)
    if dtype != torch.bool:
        both(lambda T, x, y: (x << y, x >> y, x << 1, x >> 1, 1 << x, x << 70, x >> -1), x, y)


ERRORS = {
    "bool minus": lambda T: T.ones(2, dtype=T.bool) - T.ones(2, dtype=T.bool),
    "minus bool": lambda T: T.ones(2) - T.ones(2, dtype=T.bool),
    "negative bool": lambda T: -T.ones(2, dtype=T.bool),
    "shapes": lambda T: T.ones(2) + T.ones(3),
    "in-place shape": lambda T: T.ones(1).add_(T.ones(3)),
    "in-place dtype": lambda T: T.ones(2, dtype=T.int64).mul_(1.5),
    "out dtype": lambda T: T.add(T.ones(2), T.ones(2), out=T.ones(2, dtype=T.int64)),
    "alpha": lambda T: T.add(T.ones(2, dtype=T.int64), T.ones(2, dtype=T.int64), alpha=1.5),
    "rounding mode": lambda T: T.div(T.ones(2), T.ones(2), rounding_mode="up"),
    "clamp nothing": lambda T: T.ones(2).clamp(),
    "floor complex": lambda T: T.ones(2, dtype=T.complex64).floor(),
    "less complex": lambda T: T.ones(2, dtype=T.complex64) < 1,
    "sign complex": lambda T: T.ones(2, dtype=T.complex64).sign(),
    "invert float": lambda T: ~T.ones(2),
    "and float": lambda T: T.ones(2) & T.ones(2),
    "lerp dtypes": lambda T: T.lerp(T.ones(2), T.ones(2, dtype=T.float64), 0.5),
    "addcdiv integers": lambda T: T.addcdiv(*[T.ones(2, dtype=T.int64)] * 3),
    "heaviside": lambda T: T.heaviside(T.ones(2), T.ones(2, dtype=T.float64)),
    "power of bool": lambda T: T.ones(2, dtype=T.bool) ** T.ones(2, dtype=T.bool),
    "leaf in place": lambda T: T.ones(2, requires_grad=True).add_(1),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    both(ERRORS[name])


def test_special_functions():
    x = torch.tensor([0.3, 1.0, 2.5, 7.0], dtype=torch.float64)
    both(
        lambda T, x: (
            x.lgamma(),
            x.digamma(),
            T.polygamma(1, x),
            T.special.expit(x),
            T.special.gammaln(x),
            T.special.xlog1py(x, x),
            T.special.entr(x),
            T.special.i0(x),
            T.special.ndtr(x),
            T.logit(x, eps=0.1),
        ),
        x.requires_grad_(),
    )


def test_no_warning_reaches_the_user():
    import warnings

    with warnings.catch_warnings(record=True) as seen:
        warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"readtorch\.")
        both(lambda T, x: (1 / x, x.log(), (x - 1).sqrt(), (x + 1e30) ** 3), torch.zeros(3))
    assert not seen


@pytest.mark.parametrize("name", ["add", "sub", "rsub"])
@pytest.mark.parametrize("alpha", [1, 2, -0.5, 0])
def test_gradients_of_sums_with_alpha(name, alpha):
    x, y = (torch.rand(3, dtype=torch.float64).requires_grad_() for _ in range(2))
    both(lambda T, x, y: getattr(T, name)(x, y, alpha=alpha), x, y, grad=2)
    if name != "rsub":
        both(lambda T, x, y: getattr(x.clone(), name + "_")(y, alpha=alpha), x, y, grad=2)


IN_PLACE = [
    "relu",
    "threshold",
    "clamp",
    "exp",
    "tan",
    "tanh",
    "sigmoid",
    "sub",
    "lerp",
    "addcdiv",
    "pow",
    "round",
    "abs",
]


@pytest.mark.parametrize("name", IN_PLACE)
def test_in_place_makes_what_was_saved_stale(name):
    """An operator saves its input; overwriting that must be noticed by backward."""
    rest = {"threshold": (0.3, 0.1), "clamp": (0.2, 0.7), "sub": (1,), "pow": (2,)}.get(name, ())

    def program(T, x, a, b):
        y = x * 1
        z = y * y
        tensors = {"lerp": (a, 0.5), "addcdiv": (a, b)}.get(name, ())
        owner = y if hasattr(y, name + "_") else None
        with T.no_grad():
            (getattr(owner, name + "_") if owner is not None else lambda *r: getattr(T, name + "_")(y, *r))(
                *tensors, *rest
            )
        z.sum().backward()

    both(program, torch.rand(4).requires_grad_(), torch.rand(4), torch.rand(4) + 1)


def test_gradients_of_xlogy_and_xlog1py_at_their_edges():
    x = torch.tensor([0.0, 0.0, 0.0, 0.0, 1.0, 1.0, -2.0], requires_grad=True)
    y = torch.tensor([-1.0, -2.0, -0.5, 0.0, -1.0, 0.0, 3.0], requires_grad=True)
    for name in ("xlogy", "xlog1py"):
        both(lambda T, a, b: getattr(T.special, name)(a, b), x, y)
        both(lambda T, a: getattr(T.special, name)(a, -1.0 if name == "xlog1py" else 0.0), x)
        both(lambda T, b: getattr(T.special, name)(0.0, b), y)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["gammainc", "gammaincc", "zeta"])
def test_edges_of_functions_of_two_numbers(name, dtype):
    """nan, infinities, zeros, poles; terms too small for the type."""
    inf, nan = float("inf"), float("nan")
    values = [nan, inf, -inf, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, 7.5, 200.0, 300.0, 1e5, 1e30, -1e30]
    found = []
    for T in (torch, readtorch):
        a = T.tensor(values, dtype=getattr(T, dtype))
        found.append(torch.tensor(getattr(T.special, name)(a[:, None], a).tolist()))
    torch.testing.assert_close(found[1], found[0], equal_nan=True, rtol=1e-5, atol=1e-8)
