"""vmap, grad, vjp and their nestings do what PyTorch's do, in what they return, print and refuse."""

import pytest
import torch
from torch.utils._pytree import tree_map

import readtorch as rt
from tests.reference import to_torch


def both(program, rtol=1e-6):
    """The program's results with torch and with readtorch, which must be the same; errors, too."""
    outcomes = []
    for T in (torch, rt):
        T.manual_seed(3)
        try:
            result = program(T)
            outcomes.append(tree_map(lambda t: to_torch(t) if isinstance(t, rt.Tensor) else t, result))
        except Exception as error:
            outcomes.append((type(error).__name__, str(error).replace("readtorch", "torch")))
    theirs, ours = outcomes
    torch.testing.assert_close(ours, theirs, rtol=rtol, atol=1e-9, check_stride=False) if not isinstance(
        theirs, tuple
    ) or not theirs or not isinstance(theirs[0], str) else None
    if isinstance(theirs, tuple) and theirs and isinstance(theirs[0], str):
        assert ours == theirs


def matrix(T):
    return T.arange(6.0).reshape(2, 3) + 1


def wave(a):
    return (a.sin() * a.sum()).sum()


def change(a):
    b = a.clone()
    b[0] = 1
    b.add_(a)
    b[1:].mul_(2)
    return (b**2).sum()


PROGRAMS = {
    "vmap": lambda T: T.func.vmap(lambda a: (a * 2).sum())(matrix(T)),
    "in_dims None": lambda T: T.func.vmap(lambda a, b: a @ b, in_dims=(0, None))(matrix(T), T.ones(3)),
    "in_dims 1, out_dims 1": lambda T: T.func.vmap(lambda a: a.cumsum(0), in_dims=1, out_dims=1)(matrix(T)),
    "trees": lambda T: T.vmap(lambda d: {"s": d["x"] + d["y"][0]}, in_dims=({"x": 0, "y": [None]},))(
        {"x": matrix(T), "y": [T.ones(3)]}
    ),
    "chunks": lambda T: T.vmap(lambda a: a * a.sum(), chunk_size=2)(T.arange(15.0).reshape(5, 3)),
    "grad": lambda T: T.func.grad(lambda a: (a.sin() * a).sum())(matrix(T)),
    "vmap of grad": lambda T: T.func.vmap(T.func.grad(lambda a: (a.sin() * a).sum()))(matrix(T)),
    "grad of vmap": lambda T: T.func.grad(lambda a: T.vmap(lambda b: (b**2).sum())(a).sum())(matrix(T)),
    "grad of grad": lambda T: T.func.grad(T.func.grad(lambda a: a.sin()))(T.tensor(1.0)),
    "vmap of vmap": lambda T: T.vmap(T.vmap(lambda a: a * a))(matrix(T)),
    "three deep": lambda T: T.vmap(T.func.grad(T.func.grad(lambda a: a.sin() * a)))(T.arange(4.0)),
    "writes": lambda T: T.vmap(T.func.grad(change))(matrix(T)),
    "writes, grad outside": lambda T: T.func.grad(lambda q: T.vmap(change)(q).sum())(matrix(T)),
    "vjp": lambda T: T.func.vjp(lambda a: (a.exp(), a.sum()), matrix(T))[1]((T.ones(2, 3), T.tensor(2.0))),
    "grad_and_value": lambda T: T.func.grad_and_value(lambda a, b: ((a * b).sum(), b), (0, 1), has_aux=True)(
        matrix(T), matrix(T).cos()
    ),
    "no_grad inside": lambda T: T.func.grad(lambda a: a - _without_grad(T, a))(T.tensor(3.0)),
    "no_grad outside": lambda T: _outside(T),
    "different": lambda T: T.vmap(lambda a: a + T.rand(3), randomness="different")(matrix(T)),
    "same": lambda T: T.vmap(lambda a: a + T.rand(3), randomness="same")(matrix(T)),
    "dropout": lambda T: T.vmap(lambda a: T.nn.functional.dropout(a), randomness="different")(matrix(T)),
    "jvp": lambda T: T.func.jvp(lambda a: a.sin() * a, (matrix(T),), (matrix(T).cos(),)),
    "jvp of grad": lambda T: T.func.jvp(T.func.grad(wave), (matrix(T),), (matrix(T),)),
    "jvp of jvp": lambda T: T.func.jvp(
        lambda a: T.func.jvp(lambda b: a * b * b, (a,), (a,))[1], (matrix(T),), (matrix(T),)
    ),
    "jvp of vmap": lambda T: T.func.jvp(
        lambda a: T.vmap(lambda b: b.cumsum(0).tanh())(a), (matrix(T).double(),), (matrix(T).double(),)
    ),
    "grad of jvp": lambda T: T.func.grad(lambda a: T.func.jvp(lambda b: (b.exp() * a).sum(), (a,), (a.cos(),))[1])(
        matrix(T)
    ),
    "jacrev": lambda T: T.func.jacrev(lambda a: a.sin() * a.sum())(matrix(T)),
    "jacrev in chunks": lambda T: T.func.jacrev(lambda a: a.sin() * a.sum(), chunk_size=2)(matrix(T)),
    "jacfwd": lambda T: T.func.jacfwd(lambda a, b: (a * b, a.sum()), argnums=(0, 1))(matrix(T), matrix(T) + 1),
    "hessian": lambda T: T.func.hessian(wave)(matrix(T)),
    "hessian, forward twice": lambda T: T.func.jacfwd(T.func.jacfwd(wave))(matrix(T)),
    "hessian, backward twice": lambda T: T.func.jacrev(T.func.jacrev(wave))(matrix(T)),
    "vmap of hessian": lambda T: T.vmap(T.func.hessian(wave))(matrix(T)),
    "scalars in promotion": lambda T: T.vmap(lambda a, b: a * b)(T.ones(2, dtype=T.float64), T.ones(2, 3)),
}

REFUSED = {
    "item": lambda T: T.vmap(lambda a: a.sum().item())(matrix(T)),
    "branch": lambda T: T.vmap(lambda a: a if a.sum() > 0 else -a)(matrix(T)),
    "branch below grad": lambda T: T.vmap(T.func.grad(lambda a: a.sum() if a.sum() > 0 else -a.sum()))(matrix(T)),
    "nonzero": lambda T: T.vmap(lambda a: a.nonzero())(matrix(T)),
    "copy to what is not batched": lambda T: T.vmap(lambda a: T.zeros(3).copy_(a))(matrix(T)),
    "mutated capture": lambda T: T.func.grad(lambda a, x=matrix(T): x.add_(a).sum())(matrix(T)),
    "requires_grad_": lambda T: T.func.grad(lambda a: a.requires_grad_().sum())(matrix(T)),
    "backward": lambda T: T.func.grad(lambda a: a.sum().backward())(matrix(T)),
    "random": lambda T: T.vmap(lambda a: T.rand(3) + a)(matrix(T)),
    "not a scalar": lambda T: T.func.grad(lambda a: a)(matrix(T)),
    "no inputs": lambda T: T.vmap(len)(),
    "sizes": lambda T: T.vmap(lambda a, b: a)(T.ones(2), T.ones(3)),
    "in_dims": lambda T: T.vmap(change, in_dims=3)(matrix(T)),
    "chunk_size": lambda T: T.vmap(change, chunk_size=0),
    "randomness": lambda T: T.vmap(change, randomness="x"),
    "no tensor": lambda T: T.vmap(lambda a: 3)(matrix(T)),
    "out=": lambda T: T.vmap(lambda a: T.add(a, a, out=T.zeros(3)))(matrix(T)),
    "escaped": lambda T: _escaped(T) + 1,
    "numpy": lambda T: T.vmap(lambda a: a.numpy())(matrix(T)),
}


def _without_grad(T, a):
    with T.no_grad():
        return a**2


def _outside(T):
    with T.no_grad():
        return T.func.grad(lambda a: T.func.grad(lambda b: b**3)(a))(T.tensor(2.0))


def _escaped(T):
    kept = []
    T.vmap(lambda a: (kept.append(a), a)[1])(matrix(T))
    return kept[0]


@pytest.mark.parametrize("name", PROGRAMS)
def test_results(name):
    both(PROGRAMS[name])


@pytest.mark.parametrize("name", REFUSED)
def test_errors(name):
    both(REFUSED[name])


def printed(T):
    lines = []
    note = lambda t: (lines.append(repr(t)), t)[1]
    x = matrix(T)
    T.vmap(lambda a: note(a) * 2)(x)
    T.func.grad(lambda a: note(note(a) * 2).sum())(x)
    T.vmap(T.func.grad(lambda a: note(a).sum()))(x)
    T.func.grad(lambda a: T.vmap(lambda b: note(b).sum(), in_dims=1)(a).sum())(x)
    lines.append(repr(_escaped(T)))
    kept = []
    T.func.grad(lambda a: (kept.append(a * 2), a.sum())[1])(x)
    return [*lines, repr(kept[0]), repr(kept[0] + 1)]


def test_wrapped_tensors_print_as_pytorchs():
    assert printed(rt) == printed(torch)


def test_a_backward_through_a_vmap():
    def program(T):
        y = matrix(T).requires_grad_()
        T.vmap(T.func.grad(lambda a: (a.sin() * a).sum()))(y).sum().backward()
        return y.grad

    both(program)


def test_the_stack_is_empty_after_an_error():
    with pytest.raises(RuntimeError):
        rt.vmap(lambda a: rt.func.grad(lambda b: b.item())(a[0]))(matrix(rt))
    assert rt._C._functorch.peek_interpreter_stack() is None
    assert repr(rt._C._dispatch_tls_local_include_set()) == repr(torch._C._dispatch_tls_local_include_set())
