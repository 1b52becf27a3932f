"""Lazy modules next to the reference: what an uninitialized tensor allows, and how it gets its shape."""

import copy
import pickle

from tests.programs import same


def test_what_is_allowed():
    def program(T, show):
        P = T.nn.parameter
        for t in (P.UninitializedParameter(), P.UninitializedBuffer(dtype=T.float64)):
            show(
                t,
                P.is_lazy(t),
                isinstance(t, P.Parameter),
                isinstance(t, P.Buffer),
                t.size(),
                t.ndim,
                t.dtype,
                t.device,
            )
            show(t.is_floating_point(), t.is_complex(), t.get_device(), t.is_leaf, t.requires_grad, t.grad, t.grad_fn)
            show(t.cpu() is t, t.to(t.dtype) is t, isinstance(hash(t), int))
            again = pickle.loads(pickle.dumps(t))
            show(again, again is t)
            with T.no_grad():
                show(type(t.half()).__name__, t.half().dtype)
        p = P.UninitializedParameter(requires_grad=False, dtype=T.float64)
        show(copy.deepcopy(p), copy.deepcopy(p).requires_grad, copy.deepcopy(p).dtype)
        show(P.UninitializedParameter().copy_ is not None, P.is_lazy(T.ones(1)), P.is_lazy(None))

    same(program)


def test_what_is_refused():
    def program(T, show):
        p, x = T.nn.UninitializedParameter(), T.ones(2, 2)
        for refused in (
            lambda: p.shape,
            p.share_memory_,
            p.dim,
            p.numel,
            p.detach,
            p.clone,
            p.requires_grad_,
            p.bfloat16,
            p.zero_,
            p.stride,
            p.is_contiguous,
            lambda: p == p,
            lambda: p.add(1),
        ):
            show.error(refused)
        for refused in (
            lambda: T.add(p, 1),
            lambda: T.nn.functional.linear(x, p),
            lambda: p + 1,
            lambda: p[0],
            lambda: x @ p,
            lambda: T.nn.init.zeros_(p),
            lambda: len(p),
            lambda: T.empty_like(p),
        ):
            try:
                show("no error", refused())
            except ValueError as e:
                show(str(e).partition(" in <")[0].partition(" in an operator")[0], str(e).partition("This error")[2])

    same(program)


def test_materialize():
    def program(T, show):
        p = T.nn.UninitializedParameter(dtype=T.float64)
        held = [p]
        p.materialize((2, 3))
        show(type(p), p.shape, p.dtype, held[0] is p, p.requires_grad)
        (p.detach().zero_(), (p * 2).sum().backward())
        show(p.grad)
        b = T.nn.UninitializedBuffer(persistent=False)
        b.materialize((2,), dtype=T.int64)
        show(type(b).__name__, b.shape, b.dtype, b.persistent, isinstance(b, T.nn.Buffer))

    same(program)


def test_first_call_infers_sizes():
    def program(T, show):
        for settings in ({}, {"bias": False}, {"dtype": T.float64}):
            net = T.nn.Sequential(T.nn.LazyLinear(4, **settings), T.nn.ReLU(), T.nn.LazyLinear(2, **settings))
            optimizer = T.optim.SGD(net.parameters(), lr=0.1)
            show(net, net.state_dict(), list(net[0]._forward_pre_hooks) != [])
            show.error(lambda: [p.numel() for p in net.parameters()])
            x = T.ones(3, 5, dtype=settings.get("dtype"))
            net(x).sum().backward()
            optimizer.step()
            show(net, type(net[0]), hasattr(net[0], "_load_hook"), net[0]._forward_pre_hooks)
            show.numbers(*net.parameters(), *[p.grad for p in net.parameters()])
        show(T.nn.LazyLinear(3).double()(T.ones(2, dtype=T.float64)).dtype)
        show.error(lambda: T.nn.LazyLinear(3).to_empty(device="cpu") and None)

    def without_operator_names(T, show):
        class Show(type(show)):
            def __call__(self, *values):
                show(
                    *[
                        str(v).replace("an operator", "<built-in method empty_like of type object at 0x1>")
                        for v in values
                    ]
                )

        inner = Show()
        inner.arrays = show.arrays
        program(T, inner)

    same(without_operator_names)


def test_loading():
    def program(T, show):
        full = T.nn.Linear(5, 3)
        lazy = T.nn.LazyLinear(3)
        show(lazy.load_state_dict(full.state_dict()), lazy, lazy.has_uninitialized_params())
        show.numbers(lazy(T.ones(2, 5)), full(T.ones(2, 5)))
        show(lazy)
        again = T.nn.LazyLinear(3)
        again.load_state_dict(full.state_dict())
        show.error(lambda: again(T.ones(2, 4)))
        show(T.nn.LazyLinear(3).load_state_dict(T.nn.LazyLinear(3).state_dict()))
        show.error(lambda: T.nn.Linear(5, 3).load_state_dict(T.nn.LazyLinear(3).state_dict()))
        show.error(lambda: T.nn.LazyLinear(3).load_state_dict({"weight": T.ones(3, 5)}))

    same(program)


def test_own_lazy_modules():
    def program(T, show):
        from_lazy = __import__(f"{T.__name__}.nn.modules.lazy", fromlist=["LazyModuleMixin"]).LazyModuleMixin

        class Scale(from_lazy, T.nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = T.nn.UninitializedParameter()
                self.register_buffer("seen", T.nn.UninitializedBuffer())
                self.register_buffer("hidden", T.nn.UninitializedBuffer(), persistent=False)

            def initialize_parameters(self, x, *, scale=1.0):
                with T.no_grad():
                    self.weight.materialize(x.shape)
                    self.weight.fill_(scale)
                    self.seen.materialize((1,))

            def forward(self, x, *, scale=1.0):
                return self.weight * x

        class Nothing(from_lazy, T.nn.Module):
            pass

        show(Scale().state_dict(), Scale().has_uninitialized_params())
        show.error(lambda: Scale()(T.ones(2)))
        module = Scale()
        module.hidden = None
        show(module(T.ones(2), scale=3.0).tolist(), module.double().weight.dtype)
        show.error(lambda: Nothing()(T.ones(2)))
        show.error(module._replicate_for_data_parallel)
        show(Scale().double().seen)
        show.error(lambda: Scale().share_memory())
        show(copy.deepcopy(T.nn.LazyLinear(2)), pickle.loads(pickle.dumps(T.nn.LazyLinear(2))))

    same(program)
