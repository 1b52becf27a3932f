"""Hooks of modules next to the reference: what is called, in which order, with which arguments, and what it changes."""

from collections import namedtuple
from importlib import import_module

from tests.programs import same


def shapes(value):
    if hasattr(value, "shape"):
        return tuple(value.shape)
    return tuple(shapes(v) for v in value) if isinstance(value, (tuple, list)) else value


def test_order_of_everything():
    def program(T, show):
        module = import_module(T.__name__ + ".nn.modules.module")
        net = T.nn.Sequential(T.nn.Linear(4, 3), T.nn.ReLU(), T.nn.Linear(3, 1))
        handles = [
            module.register_module_forward_pre_hook(lambda m, a: show("global pre", type(m).__name__, shapes(a))),
            module.register_module_forward_hook(lambda m, a, o: show("global post", type(m).__name__, shapes(o))),
            module.register_module_full_backward_pre_hook(
                lambda m, g: show("global bpre", type(m).__name__, shapes(g))
            ),
            module.register_module_full_backward_hook(lambda m, i, o: show("global b", type(m).__name__, shapes(i))),
        ]
        try:
            for name, m in net.named_modules():
                for prepend in (False, True):
                    label = (name, "first" if prepend else "second")
                    m.register_forward_pre_hook(lambda m, a, n=label: show("pre", n), prepend=prepend)
                    m.register_forward_hook(lambda m, a, o, n=label: show("post", n), prepend=prepend)
                    m.register_full_backward_pre_hook(lambda m, g, n=label: show("bpre", n), prepend=prepend)
                    m.register_full_backward_hook(lambda m, i, o, n=label: show("b", n, shapes(o)), prepend=prepend)
            x = T.ones(2, 4, requires_grad=True)
            x.register_hook(lambda g: show("tensor", shapes(g)))
            net(x).sum().backward()
            with T.no_grad():
                net(x)
        finally:
            for handle in handles:
                handle.remove()
        show("own hooks only")
        net(x)

    same(program)


def test_forward_hooks_replace():
    def program(T, show):
        m = T.nn.Identity()
        m.forward = lambda *args, **kwargs: (args, kwargs)
        handles = []

        def check(*args, **kwargs):
            show.error(lambda: show(m(*args, **kwargs)))

        for hook, options in (
            (lambda mod, a: None, {}),
            (lambda mod, a: a[0] + 1, {}),
            (lambda mod, a: (a[0] + 2, 7), {}),
            (lambda mod, a: [a[0]], {}),
            (lambda mod, a, k: None, {"with_kwargs": True}),
            (lambda mod, a, k: ((5,), {"b": 6}), {"with_kwargs": True}),
            (lambda mod, a, k: a, {"with_kwargs": True}),
            (lambda mod, a, k: 3, {"with_kwargs": True}),
        ):
            handle = m.register_forward_pre_hook(hook, **options)
            check(1)
            check(1, b=2)
            handle.remove()
        for hook, options in (
            (lambda mod, a, o: None, {}),
            (lambda mod, a, o: 3, {}),
            (lambda mod, a, o: (o, a), {}),
            (lambda mod, a, k, o: (o, k), {"with_kwargs": True}),
        ):
            handles.append(m.register_forward_hook(hook, **options))
            check(1, b=2)
        for handle in handles:
            handle.remove()
        check(1)
        show(m._forward_hooks, m._forward_hooks_with_kwargs, m._forward_pre_hooks_with_kwargs)

    same(program)


def test_always_called_hooks():
    def program(T, show):
        module = import_module(T.__name__ + ".nn.modules.module")

        class Fails(T.nn.Module):
            def forward(self, x, fail=True):
                if fail:
                    raise ValueError("no")
                return x

        m = Fails()
        handle = module.register_module_forward_hook(lambda mod, a, o: show("global", a, o), always_call=True)
        try:
            m.register_forward_hook(lambda mod, a, o: show("own", a, o), always_call=True)
            m.register_forward_hook(lambda mod, a, k, o: show("kwargs", a, k, o), always_call=True, with_kwargs=True)
            m.register_forward_hook(lambda mod, a, o: show("not always", a, o))
            show.error(lambda: m(1))
            show.error(lambda: m(1, fail=False))

            def breaks(mod, a, o):
                raise KeyError("hook")

            m.register_forward_hook(breaks, always_call=True, prepend=True)
            show.warnings(lambda: show.error(lambda: m(1)))
            show.warnings(lambda: show.error(lambda: m(1, fail=False)))
        finally:
            handle.remove()

    same(program)


def test_backward_hooks_replace():
    def program(T, show):
        def run(hook, pre=False, inputs_need_grad=True, module=None):
            m = module or T.nn.Linear(2, 2)
            T.nn.init.ones_(m.weight) if module is None else None
            handle = m.register_full_backward_pre_hook(hook) if pre else m.register_full_backward_hook(hook)
            x = T.ones(1, 2, requires_grad=inputs_need_grad)
            show.warnings(lambda: show.error(lambda: m(x).sum().backward()))
            show(x.grad, None if module else m.weight.grad)
            handle.remove()

        run(lambda m, i, o: None)
        run(lambda m, i, o: (i[0] * 2,))
        run(lambda m, i, o: (i[0], i[0]))
        run(lambda m, o: (o[0] * 3,), pre=True)
        run(lambda m, o: None, pre=True)
        run(lambda m, o: (), pre=True)
        run(lambda m, i, o: show(shapes(i), shapes(o)), inputs_need_grad=False)
        run(lambda m, i, o: (T.ones(1),), inputs_need_grad=False)
        run(lambda m, i, o: (None,), inputs_need_grad=False)

    same(program)


Pair = namedtuple("Pair", "a b")


def test_backward_hooks_and_other_arguments():
    def program(T, show):
        class Many(T.nn.Module):
            def forward(self, x, number, y, text="t"):
                return (x * y, 3, y * number) if text == "t" else {"a": x * number}

        m = Many()
        m.register_full_backward_pre_hook(lambda m, o: show("pre", shapes(o)))
        m.register_full_backward_hook(lambda m, i, o: show("hook", shapes(i), shapes(o)))
        x, y = T.ones(2, requires_grad=True), T.ones(2)
        out = m(x, 2, y)
        show(type(out).__name__, len(out), out[0].requires_grad, out[2].requires_grad, out[0].grad_fn.name())
        out[0].sum().backward()
        show.warnings(lambda: show(m(x, 2, y, text="dict").keys()))
        m(x, 2, y)[2].requires_grad

        identity = T.nn.Identity()
        identity.register_full_backward_hook(lambda m, i, o: show("identity", shapes(i), shapes(o)))
        identity(x).sum().backward()
        show(identity(3), identity(y).requires_grad)

    same(program)


def test_double_backward_through_hooks():
    def program(T, show):
        m = T.nn.Tanh()
        m.register_full_backward_hook(lambda m, i, o: show("hook", i[0].requires_grad))
        x = T.full((2,), 0.5, requires_grad=True)
        (g,) = T.autograd.grad(m(x).sum(), x, create_graph=True)
        (gg,) = T.autograd.grad(g.sum(), x)
        show(g, gg)

    same(program)


def test_deprecated_backward_hooks():
    def program(T, show):
        def run(module, *inputs):
            handle = module.register_backward_hook(lambda m, i, o: show(shapes(i), shapes(o)))
            show.warnings(lambda: show.error(lambda: first(module(*inputs)).sum().backward()))
            handle.remove()

        def first(out):
            while not isinstance(out, T.Tensor):
                out = next(iter(out.values())) if isinstance(out, dict) else out[0]
            return out

        def module(function):
            m = T.nn.Identity()
            m.forward = function
            return m

        x = T.ones(2, requires_grad=True)
        y = x * 2
        run(T.nn.ReLU(), y)
        run(module(lambda x: (x * 2) + 1), y)
        run(module(lambda x: {"a": x * 2}), y)
        run(module(lambda x: [x * 2]), y)
        run(module(lambda x: (x * 2, x * 3)), y)
        run(module(lambda x, n: x * n), y, 3)
        run(module(lambda x: x), T.ones(2))

        m = T.nn.ReLU()
        m.register_backward_hook(print)
        show.error(lambda: m.register_full_backward_hook(print))
        m = T.nn.ReLU()
        m.register_full_backward_hook(print)
        show.error(lambda: m.register_backward_hook(print))

    same(program)


def test_handles():
    def program(T, show):
        m = T.nn.ReLU()
        with m.register_forward_hook(lambda *args: None, with_kwargs=True, always_call=True) as handle:
            show(list(m._forward_hooks) == [handle.id], len(m._forward_hooks_always_called))
        show(m._forward_hooks, m._forward_hooks_with_kwargs, m._forward_hooks_always_called)
        handle.remove()
        show(m._forward_hooks)
        handle = m.register_forward_hook(lambda *args: None)
        del m
        handle.remove()

    same(program)
