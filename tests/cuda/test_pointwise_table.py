"""Pointwise operators on CUDA tensors, results and gradients, thread by thread on the kernel simulator: equal
to the CPU's, in float32 and in float64, and without a race."""

import math

import pytest

import readtorch as rt
from readtorch import special
from readtorch.aten.native.binary_ops.polynomials import POLYNOMIALS
from readtorch.c10.cuda import simulator
from readtorch.c10.cuda.launch import launching_by
from readtorch.nn import functional as F
from tests.cuda.test_operator_table import compare, device, numbers, results_on  # noqa: F401  (device: a fixture)

TOLERANCES = {rt.float32: (2e-6, 1e-5), rt.float64: (1e-7, 1e-9)}
EDGES = [0.0, -0.0, math.inf, -math.inf, math.nan, 1.0, -1.0, -2.0]
X = rt.tensor([0.3, -0.7, 0.45, 0.55, 1.5, -2.5, 3.25, 7.9, 12.0, 25.0, -30.0, 1e-5, 0.9999, -0.2, *EDGES])
# Between poles its terms cancel out: the CPU, which adds up in float64, keeps digits that a GPU's float32 loses.
X_OF_ZETA = X.masked_fill((X < 0) & (X != X.floor()), 0.75)
INSIDE = rt.tensor([0.001, 0.2, 0.3, 0.5, 0.62, 0.76, 0.98])
ABOVE = rt.tensor([0.4, 1.5, 2.5, 6.5, 11.0, 24.0, 0.05])
WHOLE = rt.tensor([0, 1, -1, 6, 12, -18, 40, 100, 127])
SCORES, LABELS = numbers(3, 4), rt.tensor([2, 0, 3])
LISTS = rt.tensor([[2, 0, -1, 1], [3, -1, -1, -1], [0, 1, 2, 3]])


def pairs(x):
    """Everything with everything."""
    return x.unsqueeze(0), x.unsqueeze(1)


def of_pairs(function):
    return lambda x: function(*pairs(x))


# At the edges too, where gradients may be infinite or differ by their sign: without them.
RESULTS = {
    **{
        name: getattr(rt, name)
        for name in (
            "angle",
            "ceil",
            "deg2rad",
            "digamma",
            "erfinv",
            "floor",
            "frac",
            "i0",
            "isneginf",
            "isposinf",
            "isreal",
            "lgamma",
            "logit",
            "rad2deg",
            "round",
            "signbit",
            "sinc",
            "trunc",
        )
    },
    **{
        name: getattr(special, name)
        for name in (
            "bessel_j0",
            "bessel_j1",
            "bessel_y0",
            "bessel_y1",
            "entr",
            "erfcx",
            "i0e",
            "i1",
            "i1e",
            "log_ndtr",
            "modified_bessel_i0",
            "modified_bessel_i1",
            "modified_bessel_k0",
            "modified_bessel_k1",
            "ndtri",
            "scaled_modified_bessel_k0",
            "scaled_modified_bessel_k1",
            "spherical_bessel_j0",
        )
    },
    **{
        name: of_pairs(getattr(rt, name))
        for name in (
            "copysign",
            "fmod",
            "heaviside",
            "hypot",
            "igamma",
            "igammac",
            "logaddexp",
            "logaddexp2",
            "nextafter",
            "remainder",
        )
    },
    **{name: of_pairs(getattr(special, name)) for name in ("xlog1py", "zeta")},
    # above 0 where there are many terms: the GPU adds them in float32, the CPU in float64, and below 0 they cancel
    **{f"polygamma {n}": lambda x, n=n: rt.polygamma(n, x if n < 2 else x.abs()) for n in range(5)},
    "frexp": lambda x: tuple(rt.frexp(x)),
    "logit within": lambda x: rt.logit(x, 0.1),
    "large whole numbers": lambda x: (rt.floor(x * 1e30), rt.round(x * 1e12), rt.round(x, decimals=1)),
    "of numbers": lambda x: (
        special.xlog1py(2.0, x),
        special.xlog1py(x, -0.5),
        special.zeta(2.5, x),
        special.zeta(x, 0.5),
        x.copysign(-2),
    ),
    "nansum": lambda x: (x[:12].nansum(), x[18:].nansum(0, keepdim=True), x[5:6].nansum(dtype=rt.float64)),
    "in place": lambda x: x.clone().erfinv_().copysign_(-x).polygamma_(1),
    "strided": lambda x: special.i0e(x[:20].view(4, 5).t()[::2]),
    "empty": lambda x: (x[:0].lgamma(), rt.hypot(x[:0], x[:1])),
    "one": lambda x: special.ndtri(x[0]),
    "out": lambda x: rt.digamma(x, out=x.new_empty(0)),
}
SMOOTH = {
    **{name: (getattr(rt, name), X[:5]) for name in ("deg2rad", "digamma", "frac", "i0", "rad2deg", "sinc", "angle")},
    **{name: (getattr(special, name), X[:6]) for name in ("erfcx", "i0e", "i1", "i1e", "log_ndtr")},
    "erfinv": (rt.erfinv, X[:4]),
    "lgamma": (rt.lgamma, ABOVE),
    "polygamma": (lambda x: rt.polygamma(2, x), ABOVE),
    "mvlgamma": (lambda x: rt.mvlgamma(x + 1, 3), ABOVE),
    "logit": (rt.logit, INSIDE),
    "logit within": (lambda x: rt.logit(x, 0.1), INSIDE),
    "ndtri": (special.ndtri, INSIDE),
    "entr": (special.entr, INSIDE),
    "frexp": (lambda x: tuple(rt.frexp(x)), X[:6]),
    "ldexp": (rt.ldexp, X[:4], rt.tensor([3.0, -2.0, 0.0, 1.5])),
    "zeta": (lambda q: special.zeta(rt.tensor(2.5, device=q.device), q), ABOVE),
    "igamma": (lambda x: rt.igamma(rt.tensor(1.7, device=x.device), x), ABOVE),
    "igammac": (lambda x: rt.igammac(rt.tensor(1.7, device=x.device), x), ABOVE),
    **{
        name: (of_pairs(getattr(rt, name)), X[:6])
        for name in ("copysign", "hypot", "logaddexp", "logaddexp2", "nextafter")
    },
    "xlog1py": (of_pairs(special.xlog1py), INSIDE),
    "nansum": (lambda x: (x / x.detach().relu()).nansum(), X[:6]),
    "celu": (lambda x: F.celu(x, 0.6), X[:7]),
    "celu_": (lambda x: F.celu(x * 2, 0.6, inplace=True), X[:7]),
    "threshold_": (lambda x: F.threshold(x * 2, 0.5, 9.0, inplace=True), X[:7]),
    "rrelu": (lambda x: F.rrelu(x, 0.2, 0.4), X[:7]),
    "soft_margin_loss": (F.soft_margin_loss, X[:4], rt.tensor([1.0, -1.0, -1.0, 1.0])),
    "multi_margin_loss": (lambda x: F.multi_margin_loss(x, LABELS.to(x.device)), SCORES),
    "multi_margin_loss, weighted": (
        lambda x, w: F.multi_margin_loss(x, LABELS.to(x.device), 2, 0.75, w.detach(), reduction="none"),
        SCORES,
        rt.tensor([1.0, 0.5, 2.0, 3.0]),
    ),
    "multi_margin_loss of one": (lambda x: F.multi_margin_loss(x[0], LABELS[0].to(x.device)), SCORES),
    "multilabel_margin_loss": (lambda x: F.multilabel_margin_loss(x, LISTS.to(x.device)), SCORES),
    "multilabel_margin_loss, unreduced": (
        lambda x: F.multilabel_margin_loss(x, LISTS.to(x.device), reduction="none"),
        SCORES,
    ),
}


def compare_in(dtype, function, arguments):
    compare(function, [a.to(dtype) for a in arguments], *TOLERANCES[dtype])


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("name", RESULTS)
def test_results(name, dtype):
    compare_in(dtype, lambda x: RESULTS[name](x.detach()), [X_OF_ZETA if name == "zeta" else X])


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("name", SMOOTH)
def test_gradients(name, dtype):
    function, *arguments = SMOOTH[name]
    compare_in(dtype, function, arguments)


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_polynomials(name):
    """float32 numbers are compared with those of float64: the compiled kernels may compute so."""
    x = rt.tensor([0.3, -0.7, 1.0, -1.0]).unsqueeze(1)
    n = rt.tensor([-1.0, 0.0, 1.0, 2.5, 7.0, 200.0, math.nan, math.inf, 1e30])
    compare_in(rt.float64, getattr(special, name), [x, n])
    of_number = getattr(special, name)(x.cuda(), 3).cpu()
    assert rt.allclose(of_number, getattr(special, name)(x, 3), rtol=1e-5)


INTEGERS = {
    "gcd": of_pairs(rt.gcd),
    "lcm": of_pairs(rt.lcm),
    "shifts": of_pairs(lambda x, y: (x << y, x >> y)),
    "shifts by numbers": lambda x: (x << 3, x >> 1, 3 << x, 100 >> x, x >> 100),
    "bits of numbers": lambda x: (rt.bitwise_and(5, x), rt.bitwise_or(5, x), rt.bitwise_xor(5, x)),
    "remainder of a number": lambda x: rt.remainder(7, x[1:]),
    "isin": lambda x: (rt.isin(x, 6), rt.isin(x, 6, invert=True), rt.isin(6, x), rt.isin(6, x[:2], invert=True)),
    "signs": lambda x: (x.signbit(), x.isposinf(), x.isreal(), x.angle(), rt.heaviside(x, x + 1)),
    "floats": lambda x: (x.erfinv(), special.i0e(x), x.deg2rad(), x.copysign(x), special.xlog1py(x.abs(), x.abs())),
    "conjugates": lambda x: rt.conj_physical(x),
}


@pytest.mark.parametrize("dtype", [rt.uint8, rt.int8, rt.int32, rt.int64])
@pytest.mark.parametrize("name", INTEGERS)
def test_integers(name, dtype):
    with launching_by(simulator.check):
        ours = results_on("cuda", INTEGERS[name], [WHOLE.to(dtype)])
    for result, other in zip(ours, results_on("cpu", INTEGERS[name], [WHOLE.to(dtype)]), strict=True):
        assert result.dtype == other.dtype and rt.allclose(result, other, equal_nan=True), (result, other)


def test_bools():
    truths = rt.tensor([True, False, True])
    for function in (rt.signbit, rt.isneginf, rt.isreal, rt.erfinv, lambda x: rt.heaviside(x, x)):
        assert function(truths.cuda()).cpu().equal(function(truths))


def test_complex_numbers():
    z = rt.tensor([1 + 2j, -1 - 1j, 0j, 3 + 0j])
    for function in (
        rt.abs,
        rt.angle,
        rt.isreal,
        rt.conj_physical,
        rt.conj,
        rt.sgn,
        lambda z: z.clone().conj_physical_(),
    ):
        assert function(z.cuda()).cpu().allclose(function(z))
    assert rt.vdot(z.cuda(), z.cuda()).cpu().allclose(rt.vdot(z, z))


@pytest.mark.parametrize("function", [rt.complex, rt.polar])
def test_numbers_of_two_parts(function):
    compare_in(rt.float32, lambda *parts: rt.view_as_real(function(*parts)), [X[:4], X[3:7]])
    both = X[:4].view(2, 2), X[5]
    assert function(*(t.cuda() for t in both)).cpu().allclose(function(*both))


def test_randomized_slopes():
    """What uniform_ draws, where the input is not positive; backward multiplies by the same slopes."""
    x = rt.tensor([[1.0, -2.0, 0.0], [-4.0, 5.0, -6.0]])
    there = x.cuda().requires_grad_()
    rt.manual_seed(4)
    with launching_by(simulator.check):
        result = F.rrelu(there, 0.25, 0.5, training=True)
    result.sum().backward()
    rt.manual_seed(4)
    drawn = rt.empty(2, 3, device="cuda").uniform_(0.25, 0.5).cpu()
    slopes = rt.where(x <= 0, drawn, 1.0)
    assert result.detach().cpu().equal(x * slopes) and there.grad.cpu().equal(slopes)
    rt.manual_seed(4)
    assert F.rrelu(x.cuda(), 0.25, 0.5, training=True, inplace=True).cpu().equal(x * slopes)


REFUSED = {
    "hypot": lambda t: rt.hypot(t.int(), t.int()),
    "gcd": lambda t: rt.gcd(t, t),
    "frac": lambda t: rt.frac(t.int()),
    "lshift": lambda t: t << t,
    "nextafter": lambda t: rt.nextafter(t.half(), t.half()),
    "erfcx": lambda t: special.erfcx(t.half()),
    "zeta": lambda t: special.zeta(t.half(), t.half()),
    "logaddexp": lambda t: rt.logaddexp(t.int(), t.int()),
}


REFUSED |= {
    "abs": lambda t: t.bool().abs(),
    "ceil": lambda t: t.bool().ceil(),
    "frac": lambda t: t.int().frac(),
    "erf": lambda t: t.to(rt.complex64).erf(),
    "silu": lambda t: F.silu(t.int()),
    "mish": lambda t: F.mish(t.int()),
    "gelu": lambda t: F.gelu(t.to(rt.complex64)),
    "elu": lambda t: F.elu(t.int()),
    "softplus": lambda t: F.softplus(t.int()),
    "threshold": lambda t: F.threshold(t.bool(), 1, 0),
    "addcmul": lambda t: rt.addcmul(t.bool(), t.bool(), t.bool()),
}


@pytest.mark.parametrize("name", REFUSED)
def test_types_without_a_kernel(name):
    with pytest.raises(NotImplementedError, match=f'"{name}_cuda" not implemented for'):
        REFUSED[name](rt.ones(2, device="cuda"))


def test_errors_are_the_cpus():
    def message(place, function):
        with pytest.raises((RuntimeError, NotImplementedError)) as caught:
            function(rt.ones(2, 2, device=place))
        return caught.type, str(caught.value)

    for function in (
        lambda t: rt.heaviside(t, t.double()),
        lambda t: rt.signbit(t.to(rt.complex64)),
        lambda t: rt.polygamma(-1, t),
        lambda t: rt.mvlgamma(t, 0),
        lambda t: F.celu(t, 0),
        lambda t: rt.frexp(t.int()),
        lambda t: F.multi_margin_loss(t, t.long()),
        lambda t: F.multi_margin_loss(t, t[0].int()),
        lambda t: F.multilabel_margin_loss(t, t[0].long()),
        lambda t: rt.isposinf(t, out=t.clone()),
        lambda t: t.to(rt.complex64).abs_(),
        lambda t: -t.bool(),
        lambda t: t.to(rt.complex64).sign(),
        lambda t: t.to(rt.complex64).floor(),
        lambda t: t.to(rt.complex64).deg2rad(),
        lambda t: t.bool().relu(),
        lambda t: F.hardtanh(t.bool()),
        lambda t: F.hardtanh(t.to(rt.uint8), -1, 1),
        lambda t: F.softshrink(t, -1),
        lambda t: F.gelu(t, approximate="no"),
        lambda t: F.glu(t[0, 0]),
        lambda t: rt.lerp(t, t.double(), 0.5),
        lambda t: rt.addcdiv(t.int(), t.int(), t.int()),
        lambda t: rt.ops.aten.leaky_relu_backward(t, t, -1, True),
        lambda t: rt.nansum(t, out=t.long()),
    ):
        assert message("cuda", function) == message("cpu", function)
