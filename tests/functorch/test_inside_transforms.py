"""What tensors say and refuse inside a transform: what is made there, what requires grad, what is copied; and `linearize`."""

import copy

import pytest
import torch

import readtorch as rt
from tests.functorch.test_transforms import both
from tests.programs import same


def inputs(T):
    return T.arange(6.0).reshape(2, 3) + 0.5


def around(T, x, inner):
    """`inner(a)`, then a sum, under each transform: (name, call)"""
    func = lambda a: (inner(a), a.sum())[1]
    yield "grad", lambda: T.func.grad(func)(x.clone())
    yield "vmap", lambda: T.vmap(func)(x.clone())
    yield "jvp", lambda: T.func.jvp(func, (x.clone(),), (x,))


def test_what_is_made_inside_is_wrapped():
    def program(T, show):
        import numpy

        for make in (
            lambda a: T.tensor([1.0, 2.0]),
            lambda a: T.tensor(2.0),
            lambda a: T.as_tensor([1.0, 2.0]),
            lambda a: T.from_numpy(numpy.ones(2)),
            lambda a: T.Tensor([1.0, 2.0]),
            lambda a: a.new_tensor([1.0]),
            lambda a: T.tensor([1.0], requires_grad=True),
            lambda a: T.ones(2, requires_grad=True),
        ):
            for _, call in around(T, inputs(T), lambda a: show(make(a))):
                show(call())

    same(program)


def test_requires_grad_inside():
    def program(T, show):
        def captured(a, x=inputs(T)):
            x.requires_grad = flag

        def set_to(make):
            def inner(a):
                make(a).requires_grad = flag

            return inner

        for flag in (False, True):
            for inner in (
                set_to(lambda a: a),
                set_to(lambda a: T.ones(3)),
                set_to(lambda a: a * 2),
                captured,
                lambda a: a.requires_grad_(flag),
                lambda a: T.ones(3).requires_grad_(flag),
                lambda a: a.detach().requires_grad_(flag),
                lambda a: (a * 2).retain_grad(),
            ):
                for _, call in around(T, inputs(T), inner):
                    show.error(call)

    same(program)


def test_copies_inside():
    def program(T, show):
        for inner in (copy.deepcopy, copy.copy, lambda a: copy.deepcopy(T.ones(2)), lambda a: copy.deepcopy(a * 2)):
            for _, call in around(T, inputs(T), inner):
                show.error(call)
        show.error(lambda: T.vmap(lambda a: a.data)(inputs(T)))
        show.error(lambda: T.vmap(lambda a: T.nn.Parameter(a))(inputs(T)))

    same(program)


def test_the_stack_of_interpreters():
    def program(T, show):
        def look(a):
            show([(i.key(), str(i.key()), i.level()) for i in T._C._functorch.get_interpreter_stack()])
            top = T._functorch.pyfunctorch.retrieve_current_functorch_interpreter()
            show(type(top).__name__, top.get_state())
            return a.sum()

        T.vmap(T.func.grad(look))(inputs(T))
        T.func.grad(lambda a: T.vmap(look, randomness="same")(a).sum())(inputs(T))
        T.func.jvp(look, (inputs(T),), (inputs(T),))
        show(T._C._functorch.get_interpreter_stack(), T._C._functorch.peek_interpreter_stack())

    same(program)


def test_duals_are_refused_by_vmap_but_not_by_autograds_own():
    def program(T, show):
        forward_ad, x = T.autograd.forward_ad, inputs(T)

        def double(t):
            dual = forward_ad.make_dual(x[0], t)
            return tuple(forward_ad.unpack_dual(dual * dual))

        with forward_ad.dual_level():
            show(T._vmap_internals._vmap(double)(x))
            show.error(lambda: T.vmap(double)(x))
            dual = forward_ad.make_dual(x, x * 2)
            show(forward_ad.unpack_dual(T.vmap(lambda a: a.sin())(dual)))
            for vmap in (T.vmap, T._vmap_internals._vmap):
                show.error(lambda: vmap(lambda a: forward_ad.unpack_dual(a.sin()).tangent)(dual))
        show.error(lambda: T._vmap_internals._vmap(lambda a: a.sum().item())(x))
        show.error(lambda: T._vmap_internals._vmap(lambda a: a if a.sum() > 0 else -a)(x))
        show.error(lambda: T._vmap_internals._vmap(lambda a: a + T.rand(3))(x))

    import readtorch._vmap_internals  # noqa: F401

    same(program)


def test_batching_rules_are_told_of():
    """Which operators have a kernel at FuncTorchBatched: of those that PyTorch has one for, nearly all."""
    with_rule = [name for name in torch._C._dispatch_get_all_op_names() if has(torch, name) and known(name)]
    ours = [name for name in with_rule if has(rt, name)]
    assert len(ours) >= 0.97 * len(with_rule)
    for name in ("aten::linear", "aten::special_ndtr", "aten::add.out", "aten::_make_dual", "aten::rand"):
        assert not has(rt, name) and not has(torch, name)
    assert rt._C._dispatch_has_kernel_for_dispatch_key("aten::rand", "FuncTorchVmapMode")


def has(T, name):
    return T._C._dispatch_has_kernel_for_dispatch_key(name, "FuncTorchBatched")


def known(name):
    return name in rt.aten.dispatcher.registry


def test_batch_norms_without_statistics():
    def program(T, show):
        nn = T.nn
        net = nn.Sequential(nn.BatchNorm1d(3), nn.Sequential(nn.BatchNorm2d(4, affine=False), nn.Linear(3, 2)))
        show(T.func.replace_all_batch_norm_modules_(net) is net, net, list(net.state_dict()))
        show(net[0].running_mean, T.func.replace_all_batch_norm_modules_(nn.BatchNorm1d(3)))

    same(program)


# ----------------------------------------------------------------------------------------------------- linearize


def in_place(a):
    b = a.new_zeros(2, 3)
    b[0] = a[0]
    b.mul_(a)
    factor = a.exp()
    b = b + a * factor
    factor.mul_(2)
    return (b * factor).cumsum(0)


def wave(a):
    return (a.sin() * a).sum()


LINEARIZED = {
    "pointwise": lambda T: lambda a: a.sin() * a,
    "a number": lambda T: wave,
    "a tree": lambda T: lambda a: (a * a, {"sum": a.sum()}),
    "constant": lambda T: lambda a: (a, a.new_ones(2) * 3),
    "joined": lambda T: lambda a: T.cat([a, T.ones(2, 3)]).relu(),
    "detached": lambda T: lambda a: a.detach() * a,
    "gradient": lambda T: T.func.grad(wave),
    "vmap": lambda T: T.vmap(wave),
    "dropout": lambda T: T.nn.functional.dropout,
    "not a tensor": lambda T: lambda a: (a, 3),
}


@pytest.mark.parametrize("name", LINEARIZED)
def test_linearize(name):
    def program(T):
        value, derivative = T.func.linearize(LINEARIZED[name](T), inputs(T))
        return value, derivative(inputs(T).cos()), derivative(inputs(T)), T.vmap(derivative)(T.eye(6).reshape(6, 2, 3))

    both(program)


def test_linearize_in_place():
    """Not as PyTorch's, which is wrong here: as jvp."""
    x = inputs(rt)
    _, derivative = rt.func.linearize(in_place, x)
    for direction in (x, x.cos(), x):
        expected = rt.func.jvp(in_place, (x,), (direction,))[1]
        torch.testing.assert_close(torch.tensor(derivative(direction).tolist()), torch.tensor(expected.tolist()))


def test_linearize_under_grad():
    x = inputs(rt)
    derivative = lambda a, t: rt.func.linearize(wave, a)[1](t)
    of_jvp = lambda a, t: rt.func.jvp(wave, (a,), (t,))[1]
    for argnums in (0, 1):
        ours, expected = [rt.func.grad(f, argnums)(x, x.cos()) for f in (derivative, of_jvp)]
        torch.testing.assert_close(torch.tensor(ours.tolist()), torch.tensor(expected.tolist()))


def test_linearize_refuses():
    def program(T, show):
        linearize, x = T.func.linearize, inputs(T)
        twice = linearize(lambda a: a * 2, x)[1]
        for tangents in ((x[0],), (x.double(),), (x, x), ((x,),)):
            show.error(lambda: twice(*tangents))
        show.error(lambda: linearize(lambda a: a * 2 if a.sum() > 3 else a, x))
        show.error(lambda: linearize(lambda a: a * a.sum().item(), x))
        show.error(lambda: linearize(lambda a: a * T.tensor(3.0).item(), x))
        show.error(lambda: linearize(lambda a: a * 2, T.arange(3)))
        show.error(lambda: linearize(lambda a: a, 3))
        show.error(lambda: linearize(lambda a: linearize(wave, a)[1](a), x))
        show.error(lambda: T.vmap(lambda a: linearize(wave, a)[1](a))(x))
        show.error(lambda: T.func.jvp(lambda a: linearize(wave, a)[1](x), (x,), (x,)))

    same(program)


def test_what_is_told_of_wrappers(capfd):
    def told(T):
        functorch = T._C._functorch

        def look(a):
            functorch.dump_tensor(a)
            functorch.dump_dls()
            return a.sum()

        T.vmap(T.func.grad(look))(inputs(T))
        functorch.dump_tensor(T.ones(2))
        functorch.dump_dls()
        dead = []
        T.func.grad(lambda a: (dead.append(a), a.sum())[1])(inputs(T))
        functorch.dump_tensor(dead[0])
        return capfd.readouterr().out, functorch.is_dead_tensor_wrapper(dead[0]), functorch.maybe_current_level()

    assert told(rt) == told(torch)
    missing = {name for name in dir(torch._C._functorch) if not hasattr(rt._C._functorch, name)}
    # Functionalization, and a way to break a wrapper.
    assert all(
        "unctional" in name or name in ("_func_increment_nesting", "_func_decrement_nesting", "_maybe_unsafe_set_level")
        for name in missing
    )


def test_writes_to_a_dual_are_writes_to_its_tangent():
    def program(T, show):
        def first(a):
            a[0] = 7.0
            return a * 2

        for function, tangent in (
            (lambda a: a.mul_(3) * 2, T.arange(6.0).reshape(2, 3)),
            (first, T.arange(6.0).reshape(2, 3)),
            (first, T.arange(6.0).reshape(3, 2).t()),
        ):
            x = T.ones(2, 3)
            show(T.func.jvp(function, (x,), (tangent,)), x, tangent)
        x, mean, var = inputs(T).reshape(1, 2, 3), T.zeros(2), T.ones(2)
        norm = lambda x, mean, var: T.nn.functional.instance_norm(x, mean, var) * x
        show.numbers(*T.func.jvp(norm, (x, mean, var), (x, mean + 1, var)), mean, var)

    same(program)


def test_rearrange():
    def program(T, show):
        rearrange = T.func.rearrange
        x = T.arange(24.0).reshape(2, 3, 4)
        for pattern, lengths in PATTERNS:
            show.error(
                lambda: show(rearrange(x, pattern, **lengths).tolist(), rearrange(x, pattern, **lengths).stride())
            )
        show(
            rearrange([x, x], "l a b c -> a l (b c)"),
            rearrange(T.tensor(1.0), "->"),
            rearrange(T.ones(1, 2), "1 a -> a"),
        )
        show(T.vmap(lambda t: rearrange(t, "a b -> b a"))(x))
        show(T.func.grad(lambda t: rearrange(t, "a b c -> (b a) c")[0].sum())(x))
        show.error(lambda: rearrange(3, "a -> a"))

    same(program)


PATTERNS = [
    ("a b c -> c a b", {}),
    ("a b (c d) -> (d a) (b c)", {"c": 2}),
    ("a b (c d e) -> a b e c d", {"c": 2, "d": 2}),
    ("... c -> c ...", {}),
    ("a ... -> (...) a", {}),
    ("... -> ...", {}),
    ("a b c -> b a c () 1", {}),
    ("a b c -> 1 (a b c)", {}),
    ("1 b c -> b c", {}),
    ("a b c -> a b c", {"a": 2}),
    ("a b c -> a b c", {"a": 5}),
    ("a b (c d) -> a b c d", {}),
    ("a b (c d) -> a b c d", {"c": 3}),
    ("a b (c d) -> a b c d", {"c": 3, "d": 2}),
    ("a b c -> a b", {}),
    ("a b c", {}),
    ("a b -> b a", {}),
    ("a a b -> a b", {}),
    ("a b 4 -> a b 4", {}),
    ("a (b c) d -> a b c d", {"b": 1.5}),
    ("a b c -> a b c", {"z": 2}),
    ("a b c -> ... a b c", {}),
    ("(...) a -> a ...", {}),
    ("a b ((c)) -> a b c", {}),
    ("a b (c -> a b c", {}),
    ("a b c) -> a b c", {}),
    ("a_ b c -> b c a_", {}),
    ("a b c- -> a b c", {}),
    ("a b .. -> a b", {}),
    ("a ... b c d -> a ... b c d e", {}),
]
