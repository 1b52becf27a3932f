"""gradcheck and gradgradcheck: what passes and what fails, and the words that say why."""

import re

import pytest

from tests.programs import same


def leaf(T, *values, dtype=None):
    return T.tensor(values, dtype=dtype or T.float64, requires_grad=True)


def complex_leaf(T):
    return T.tensor([1 + 2j, 0.5 - 1j], dtype=T.complex128, requires_grad=True)


def refusal(function):
    """Type and text of the error, in one line; numbers that are printed in full are rounded."""
    try:
        return function()
    except Exception as error:
        text = re.sub(r"\d+\.\d{5,}(e-?\d+)?", lambda number: f"{float(number[0]):.5f}", str(error))
        return f"{type(error).__name__} {text!r}"


def wrong(T, kind):
    """A function whose backward is wrong in one way."""
    calls = []

    class Wrong(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone() if kind == "complex" else x * 2

        @staticmethod
        def backward(ctx, g):
            calls.append(1)
            return {
                "factor": lambda: g * 3,
                "constant": lambda: T.full_like(g, 2.0),
                "one element": lambda: g * T.tensor([2.0, 2.5], dtype=T.float64),
                "nearly": lambda: g * (2 + 1e-7 * len(calls)),
                "dtype": lambda: (g * 2).float(),
                "complex": lambda: g * 1j,
                "undefined": lambda: g + 0 * T.ones(3, dtype=g.dtype)[: g.numel() // 0 if not g.any() else None],
            }[kind]()

    return Wrong.apply


def test_right_gradients_pass():
    def program(T, show):
        check, check2 = T.autograd.gradcheck, T.autograd.gradgradcheck
        x, y, z = leaf(T, 0.3, 1.2), leaf(T, 0.7, -0.4), complex_leaf(T)
        still = T.ones(2, dtype=T.float64)
        functions = {
            "one": (lambda a: a.sin() * a, (x,)),
            "two": (lambda a, b: (a * b.exp(), a.sum()), (x, y)),
            "not all": (lambda a, b, c: a * b * c, (x, still, 3.0)),
            "integers beside": (lambda a: (a * 2, a.argmax()), (x,)),
            "a list": (lambda a: [a * 2, a.exp()], [x]),
            "unused": (lambda a, b: a * 2, (x, y)),
            "complex": (lambda a: a * a, (z,)),
            "complex to real": (lambda a: (a * a.conj()).real.sum(), (z,)),
            "real to complex": (lambda a: a * (2 + 1j), (x,)),
            "both": (lambda a, b: (a * b, b.sin()), (z, x)),
            "nothing differentiable": (lambda a: (a > 0).double(), (x,)),
            "empty": (lambda a: a[:0], (x,)),
        }
        for name, (function, inputs) in functions.items():
            for fast in (False, True):
                if name == "nothing differentiable" and fast:
                    continue
                show.error(lambda: show(name, fast, check(function, inputs, fast_mode=fast)))
                if name != "nothing differentiable":
                    show.error(lambda: show(name, fast, check2(function, inputs, fast_mode=fast)))
        show(check(lambda a: a * 2, x, check_grad_dtypes=True))
        show(check2(lambda a: a * a, x, leaf(T, 1.0, 2.0)))
        show(
            check2(
                lambda a: a.t() * a, T.ones(2, 2, dtype=T.float64).requires_grad_(), gen_non_contig_grad_outputs=True
            )
        )

    same(program)


@pytest.mark.parametrize("fast_mode", [False, True])
def test_wrong_gradients_and_what_is_said(fast_mode):
    def program(T, show):
        def check(*args, **kwargs):
            T.manual_seed(0)
            show(refusal(lambda: T.autograd.gradcheck(*args, fast_mode=fast_mode, **kwargs)))

        x, z = leaf(T, 0.5, 1.25), complex_leaf(T)
        for kind in ("factor", "constant", "one element", "nearly"):
            check(wrong(T, kind), x)
        check(wrong(T, "nearly"), x, nondet_tol=1e-3)
        check(wrong(T, "one element"), x, atol=2, rtol=1)
        check(wrong(T, "dtype"), x, check_grad_dtypes=True)
        check(wrong(T, "complex"), z)
        check(lambda a: (a * 2, wrong(T, "factor")(a)), x)
        check(lambda a, b: wrong(T, "factor")(b) * a, (x, leaf(T, 0.1, 0.2)))
        show(T.autograd.gradcheck(wrong(T, "factor"), x, raise_exception=False, fast_mode=fast_mode))
        check(lambda a: a.detach() * 2 + 0 * a.detach(), x)
        check(lambda a: a * len(str(a.tolist())), x)
        T.manual_seed(0)
        show(refusal(lambda: T.autograd.gradgradcheck(wrong(T, "constant"), x, fast_mode=fast_mode)))
        show(issubclass(T.autograd.gradcheck.__globals__["GradcheckError"], RuntimeError))

    same(program)


def test_what_is_refused():
    def program(T, show):
        check, check2 = T.autograd.gradcheck, T.autograd.gradgradcheck
        x = leaf(T, 1.0, 2.0)
        show.error(lambda: check(lambda a: a, T.ones(2)))
        show.error(lambda: check(lambda a: a * 2, leaf(T, 1.0).expand(3)))
        show.warnings(lambda: show.error(lambda: check(lambda a: a * 2, leaf(T, 1.0, dtype=T.float32), eps=1e-2)))
        show.error(lambda: check(lambda a: a.to_sparse(), x))
        show.error(lambda: check(lambda a: a, x, check_backward_ad=False))
        show.error(
            lambda: check(lambda a: a, x, check_backward_ad=False, check_forward_ad=True, check_batched_grad=True)
        )
        show.error(lambda: check(lambda a: a, x, check_batched_forward_grad=True))
        show.error(lambda: check2(lambda a: a, x, check_rev_over_rev=False))
        show.error(lambda: check2(lambda a: a, x, check_fwd_over_rev=True, check_rev_over_rev=False))
        show.error(
            lambda: check2(
                lambda a: a,
                x,
                check_fwd_over_rev=True,
                check_rev_over_rev=False,
                check_undefined_grad=False,
                check_batched_grad=True,
            )
        )
        sizes = iter(range(1, 100))
        show.error(lambda: check(lambda a: a[:1].expand(next(sizes)), x))
        show.error(lambda: check(lambda a: "text", x))

    same(program)


def test_gradients_that_do_not_arrive():
    def program(T, show):
        x, y = leaf(T, 0.5, 1.25), leaf(T, 0.1, 0.2)

        class Strict(T.autograd.Function):
            @staticmethod
            def forward(ctx, a, b):
                ctx.set_materialize_grads(False)
                return a * 2, b * 3

            @staticmethod
            def backward(ctx, g, h):
                return g * 2, h * 3

        class NotZero(T.autograd.Function):
            @staticmethod
            def forward(ctx, a):
                ctx.set_materialize_grads(False)
                return a * 2

            @staticmethod
            def backward(ctx, g):
                return T.ones(2, dtype=T.float64) if g is None else g * 2

        for function, inputs in ((Strict.apply, (x, y)), (NotZero.apply, (x,))):
            show.warnings(lambda: show.error(lambda: T.autograd.gradcheck(function, inputs)))
            show.warnings(
                lambda: show.error(lambda: T.autograd.gradcheck(function, inputs, check_undefined_grad=False))
            )

    same(program)


def test_sparse_inputs():
    def program(T, show):
        dense = T.tensor([[1.0, 0.0], [0.0, 3.0]], dtype=T.float64)
        for fast in (False, True):
            sparse = dense.to_sparse().requires_grad_()
            show(T.autograd.gradcheck(lambda a: a.to_dense(masked_grad=True) * 2, sparse, masked=True, fast_mode=fast))

    same(program)


class Tangents:
    """A function whose jvp is as wrong as asked."""

    def __new__(cls, T, by):
        class Doubled(T.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, g):
                return g * 2

            @staticmethod
            def jvp(ctx, t):
                return t * by

        return Doubled.apply


@pytest.mark.parametrize("fast_mode", [False, True])
def test_forward_mode(fast_mode):
    def program(T, show):
        def check(*args, function=None, **kwargs):
            T.manual_seed(0)
            function = function or T.autograd.gradcheck
            show(refusal(lambda: function(*args, fast_mode=fast_mode, **kwargs)))

        x, y, z = leaf(T, 0.3, 1.2), leaf(T, 0.7, -0.4), complex_leaf(T)
        forward = dict(check_forward_ad=True)
        alone = dict(check_forward_ad=True, check_backward_ad=False)
        for settings in (
            forward,
            alone,
            {**forward, "check_undefined_grad": False},
            {**forward, "check_grad_dtypes": True},
        ):
            check(lambda a: a.sin() * a, x, **settings)
            check(lambda a, b: (a * b.exp(), a.sum()), (x, y), **settings)
            check(lambda a: (a * 2, a.argmax()), x, **settings)
            check(lambda a: a * a, z, **settings)
            check(lambda a, b: (a * b, b.sin()), (z, x), **settings)
            check(lambda a: (a * a.conj()).real.sum(), z, **settings)
            check(Tangents(T, 2), x, **settings)
            check(Tangents(T, 3), x, **settings)
        check(lambda a: a.sin() * a, x, function=T.autograd.gradgradcheck, check_fwd_over_rev=True)
        settings = dict(check_fwd_over_rev=True, check_rev_over_rev=False, check_undefined_grad=False)
        check(lambda a, b: a.sin() * b, (x, y), function=T.autograd.gradgradcheck, **settings)

    same(program)


def test_batched_gradients():
    def program(T, show):
        def check(*args, function=None, **kwargs):
            T.manual_seed(0)
            show(refusal(lambda: (function or T.autograd.gradcheck)(*args, **kwargs)))

        class Alone(T.autograd.Function):  # its backward looks at numbers, which vmap does not allow
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, g):
                return g * 2 if g.sum().item() > -1e9 else g

        x, y, z = leaf(T, 0.3, 1.2), leaf(T, 0.7, -0.4), complex_leaf(T)
        batched = dict(check_batched_grad=True)
        check(lambda a: a.sin() * a, x, **batched)
        check(lambda a, b: (a * b.exp(), a.sum()), (x, y), **batched)
        check(lambda a: (a * a).cumsum(0), z, **batched)
        check(lambda a, b: a * 2, (x, y), **batched)
        check(lambda a: a.sin() * a, x, function=T.autograd.gradgradcheck, **batched)
        check(lambda a: T.linalg.inv(a), (T.eye(2, dtype=T.float64) * 2).requires_grad_(), **batched)
        show(refusal(lambda: T.autograd.gradcheck(Alone.apply, x, check_batched_grad=True))[:80])
        forward = dict(check_forward_ad=True, check_batched_forward_grad=True)
        check(lambda a: a.sin() * a, x, **forward)
        check(lambda a, b: (a * b.exp(), a.sum()), (x, y), **forward)
        check(lambda a, b: a * 2, (x, y), **forward)

    same(program)


def test_old_names():
    def program(T, show):
        import importlib

        module = importlib.import_module(f"{T.__name__}.autograd.gradcheck")
        x, y = leaf(T, 0.5, 1.25), leaf(T, 0.1, 0.2)
        show.warnings(lambda: show(module.get_numerical_jacobian(lambda xs: xs[0] * xs[1].exp(), (x, y), eps=1e-6)))
        show.warnings(lambda: show(module.get_analytical_jacobian((x, y), x * y.exp())))
        show.warnings(lambda: show.error(lambda: module.get_numerical_jacobian(lambda xs: xs[0], (x,), grad_out=2)))
        show.warnings(lambda: show.error(lambda: module.get_analytical_jacobian((x,), x * 1j)))
        show.warnings(lambda: show.error(lambda: module.get_analytical_jacobian((x,), x, grad_out=2)))
        show.error(lambda: module.get_numerical_jacobian_wrt_specific_input(lambda a: a, 0, (T.ones(1),), (x,), 1e-6))
        show(module.get_numerical_jacobian_wrt_specific_input(lambda a, b: a * b, 1, (x, y), (x * y,), 1e-6))

    same(program)
