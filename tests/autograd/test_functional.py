"""autograd.functional, gradcheck and checkpointing."""

import pytest

import readtorch
from tests.programs import same


def leaf(T, *values):
    return T.tensor(values, dtype=T.float64, requires_grad=True)


def test_matrices_and_products():
    def program(T, show):
        A = T.autograd.functional
        x, v = leaf(T, 1.0, 2.0), T.tensor([3.0, 4.0], dtype=T.float64)

        def f(t):
            return t**3 * t.sum()

        def s(t):
            return f(t).sum()

        show(A.jacobian(f, x))
        show(A.jacobian(lambda a, b: (a * b, a.sum()), (x, v)))
        show(A.jacobian(f, x, vectorize=True), A.jacobian(f, x, create_graph=True).requires_grad)
        show(A.hessian(s, x), A.hessian(lambda a, b: (a * b).pow(2).sum(), (x, v)))
        show(A.vjp(f, x, v), A.jvp(f, x, v), A.vhp(s, x, v), A.hvp(s, x, v))

    same(program)


def test_errors_of_functional():
    def program(T, show):
        A = T.autograd.functional
        x = leaf(T, 1.0, 2.0)
        show.error(lambda: A.vjp(lambda t: t, x))
        show.error(lambda: A.vjp(lambda t: t, x, T.ones(3, dtype=T.float64)))
        show.error(lambda: A.jvp(lambda t: t, x))
        show.error(lambda: A.vhp(lambda t: t, x, x))
        show.error(lambda: A.jacobian(lambda t: "text", x))
        show.error(lambda: A.jacobian(lambda t: t, "text"))
        show.error(lambda: A.jacobian(lambda t: t.detach(), x, strict=True))
        show.error(lambda: A.hessian(lambda t: t.sum(), x, strict=True))
        show.error(lambda: A.hessian(lambda t: t, x))

    same(program)


def test_gradcheck_accepts_right_and_refuses_wrong_gradients():
    T = readtorch

    class Wrong(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 3

    x = leaf(T, 0.3, 1.2)
    assert T.autograd.gradcheck(lambda t: (t.sin() * t).sum(0), x)
    assert T.autograd.gradgradcheck(lambda t: t.exp() * t, x)
    assert T.autograd.gradcheck(lambda t: t.sin(), x, fast_mode=True)
    with pytest.raises(T.autograd.gradcheck.__globals__["GradcheckError"], match="Jacobian mismatch"):
        T.autograd.gradcheck(Wrong.apply, x)
    assert not T.autograd.gradcheck(Wrong.apply, x, raise_exception=False)
    with pytest.raises(ValueError, match="at least one input tensor"):
        T.autograd.gradcheck(lambda t: t, T.ones(2))


def test_gradcheck_of_complex_functions():
    T = readtorch
    z = T.tensor([1 + 2j, 0.5 - 1j], dtype=T.complex128).requires_grad_()
    assert T.autograd.gradcheck(lambda t: t * t, z)
    assert T.autograd.gradcheck(lambda t: (t * t.conj()).real.sum(), z)
    assert T.autograd.gradcheck(lambda t: t * (2 + 1j), leaf(T, 1.0, 2.0))


@pytest.mark.parametrize("use_reentrant", [True, False])
def test_checkpoint(use_reentrant):
    def program(T, show):
        import importlib

        checkpoint = importlib.import_module(T.__name__ + ".utils.checkpoint").checkpoint
        calls = []

        def part(t):
            calls.append(T.is_grad_enabled())
            return (t * T.rand(3, dtype=T.float64)).exp() * t

        x = leaf(T, 1.0, 2.0, 3.0)
        y = checkpoint(part, x, use_reentrant=use_reentrant)
        show(calls, y.requires_grad)
        state = T.rand(1)
        y.sum().backward()
        show(calls, x.grad, state, T.rand(1))

    same(program)


def test_checkpoint_forgets_what_forward_saved():
    """The peak of what is saved shows that the first forward keeps only the input."""
    T = readtorch
    from readtorch.utils.checkpoint import CheckpointError, checkpoint

    x = T.ones(1000).requires_grad_()
    y = checkpoint(lambda t: t.exp().exp(), x, use_reentrant=False)
    assert y.grad_fn._raw_saved_result.packed.tensor is None
    y.sum().backward()
    flip = []

    def unsteady(t):
        flip.append(1)
        return t.exp() if len(flip) == 1 else t[:5].exp()

    with pytest.raises(CheckpointError):
        checkpoint(unsteady, x, use_reentrant=False).sum().backward()


def test_checkpoint_sequential():
    def program(T, show):
        import importlib

        module = importlib.import_module(T.__name__ + ".utils.checkpoint")
        x = leaf(T, 0.1, 0.2)
        layers = [lambda t: t.exp(), lambda t: t * t, lambda t: t.sin()]
        module.checkpoint_sequential(layers, 2, x, use_reentrant=False).sum().backward()
        show(x.grad)

    same(program)
