"""autograd.functional and checkpointing."""

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


def test_all_forms_of_functional():
    def program(T, show):
        A = T.autograd.functional
        x, y, z = leaf(T, 1.0, 2.0), leaf(T, 0.5), leaf(T, 3.0)
        v, w = T.tensor([3.0, 4.0], dtype=T.float64), T.tensor([5.0], dtype=T.float64)
        pair = lambda a, b: (a * b, (a * a).sum())
        show(A.vjp(pair, (x, y), (v, w[0])), A.jvp(pair, (x, y), (v, w)))
        show(A.vjp(pair, (x, y), (v, w[0]), create_graph=True), A.jvp(pair, (x, y), (v, w), create_graph=True))
        scalar = lambda a, b: (a**3 * b).sum()
        show(A.vhp(scalar, (x, y), (v, w)), A.hvp(scalar, (x, y), (v, w)))
        show(A.vhp(scalar, (x, y), (v, w), create_graph=True), A.hvp(scalar, (x, y), (v, w), create_graph=True))
        show(A.vjp(lambda a: a * 2, z), A.jvp(lambda a: a * a, z), A.vhp(lambda a: a**3, z), A.hvp(lambda a: a**3, z))
        with T.no_grad():
            show(A.vjp(pair, (x, y), (v, w[0])), A.jvp(pair, (x, y), (v, w)), A.vhp(scalar, (x, y), (v, w)))
        for many in (pair, lambda a, b: (a * 2).sum(), lambda a, b: (b.exp(),)):
            show(A.jacobian(many, (x, y)), A.jacobian(many, (x, y), create_graph=True))
            show(A.jacobian(many, (x, y), vectorize=True), A.jacobian(many, (x, y), create_graph=True, vectorize=True))
        show(
            A.hessian(scalar, (x, y)),
            A.hessian(scalar, (x, y), vectorize=True),
            A.hessian(scalar, (x, y), create_graph=True),
        )
        show(A.hessian(lambda a: (a**3).sum(), x, vectorize=True), A.hessian(lambda a: a.sum(), x))

    same(program)


def test_functional_by_forward_mode():
    def program(T, show):
        A = T.autograd.functional
        x, y = T.tensor([1.0, 2.0], dtype=T.float64), T.tensor([[0.5, 1.5]], dtype=T.float64)
        forward = dict(strategy="forward-mode", vectorize=True)
        show(A.jacobian(lambda a: a**3 * a.sum(), x, **forward))
        for function in (lambda a, b: (a * b, (a * a).sum()), lambda a, b: (a * 2).sum(), lambda a, b: (b.exp(),)):
            show(A.jacobian(function, (x, y), **forward))
        hessian = dict(outer_jacobian_strategy="forward-mode", vectorize=True)
        show(A.hessian(lambda a: (a**3).sum(), x, **hessian))
        show(A.hessian(lambda a, b: (a**3 * b).sum() + (b * b).sum(), (x, y), **hessian))

    same(program)


def test_strict_functional():
    def program(T, show):
        A = T.autograd.functional
        x, y = leaf(T, 1.0, 2.0), leaf(T, 0.5)
        v, w = T.tensor([3.0, 4.0], dtype=T.float64), T.tensor([5.0], dtype=T.float64)
        functions = {
            "linear": lambda a, b: a.sum() * 2 + b.sum(),
            "square": lambda a, b: (a * a).sum() + b.sum(),
            "cube": lambda a, b: (a**3).sum() * (b**3).sum(),
            "first": lambda a, b: (a * a).sum(),
            "detached": lambda a, b: a.detach().sum(),
            "two": lambda a, b: (a * b, b * 2),
        }
        for name, f in functions.items():
            for create_graph in (False, True):
                show(name, create_graph)
                settings = dict(strict=True, create_graph=create_graph)
                one = None if name != "two" else (v, w)
                show.error(lambda: show(A.vjp(f, (x, y), one, **settings)))
                for function in (A.jvp, A.vhp, A.hvp):
                    show.error(lambda: show(function(f, (x, y), (v, w), **settings)))
                show.error(lambda: show(A.jacobian(f, (x, y), **settings)))
                show.error(lambda: show(A.hessian(f, (x, y), **settings)))
        show.error(lambda: A.jacobian(functions["cube"], (x, y), strict=True, vectorize=True))
        show.error(lambda: A.jacobian(functions["detached"], (x, y), strict=True, vectorize=True))
        show.error(lambda: A.jacobian(functions["cube"], (x, y), strategy="sideways"))
        show.error(lambda: A.hessian(functions["cube"], (x, y), outer_jacobian_strategy="sideways"))
        for vectorize in (False, True):
            show.error(
                lambda: A.jacobian(functions["cube"], (x, y), strategy="forward-mode", strict=True, vectorize=vectorize)
            )
        show.error(lambda: A.jacobian(functions["cube"], (x, y), strategy="forward-mode", create_graph=True))
        show.error(lambda: A.jacobian(functions["cube"], (x, y), strategy="forward-mode"))
        show.error(lambda: A.hessian(functions["cube"], (x, y), outer_jacobian_strategy="forward-mode"))
        for function in (A.vjp, A.jvp, A.vhp, A.hvp):
            show.error(lambda: function(functions["cube"], (x, y)))
            show.error(lambda: function(functions["cube"], (x, y), (v,)))
            show.error(lambda: function(functions["cube"], (x, y), (w, v)))
            show.error(lambda: function(functions["cube"], (x, y), (3, v)))
            show.error(lambda: function(functions["cube"], [x, y]))
            show.error(lambda: function(lambda a: [a], x, v))
            show.error(lambda: function(lambda a: a, x, w))
            show.error(lambda: function(lambda a: (a.sum(), a), x, v))

    same(program)


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
