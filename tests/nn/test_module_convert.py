"""What `to`, `float` and the rest of `_apply` do to parameters, gradients and buffers, in each of the three ways."""

import contextlib
import weakref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.programs import same


@contextlib.contextmanager
def future(T, overwrite=False, swap=False):
    T.__future__.set_overwrite_module_params_on_conversion(overwrite)
    T.__future__.set_swap_module_params_on_conversion(swap)
    try:
        yield
    finally:
        T.__future__.set_overwrite_module_params_on_conversion(False)
        T.__future__.set_swap_module_params_on_conversion(False)


def net_of(T):
    class Net(T.nn.Module):
        def __init__(self):
            super().__init__()
            self.a = T.nn.Linear(2, 2)
            self.b = T.nn.Linear(2, 2, bias=False)
            self.b.weight = self.a.weight
            self.frozen = T.nn.Parameter(T.ones(2), requires_grad=False)
            self.complex = T.nn.Parameter(T.ones(1, dtype=T.complex64))
            self.register_buffer("count", T.zeros(1, dtype=T.int64))
            self.register_buffer("mean", T.zeros(2))
            self.same_mean = self.mean

        def forward(self, x):
            return self.b(self.a(x)) + self.frozen

    return Net()


CASTS = {
    "double": lambda T, m: m.double(),
    "float": lambda T, m: m.float(),
    "half": lambda T, m: m.half(),
    "bfloat16": lambda T, m: m.bfloat16(),
    "cpu": lambda T, m: m.cpu(),
    "to float64": lambda T, m: m.to(T.float64),
    "to complex": lambda T, m: m.to(T.complex64),
    "to tensor": lambda T, m: m.to(T.zeros(1, dtype=T.float64)),
    "to device": lambda T, m: m.to("cpu"),
    "to both": lambda T, m: m.to("cpu", T.float64, True),
    "type": lambda T, m: m.type(T.float64),
    "type name": lambda T, m: m.type("torch.DoubleTensor"),
    "to_empty": lambda T, m: m.to_empty(device="cpu"),
    "to_empty here": lambda T, m: m.to_empty(device="cpu", recurse=False),
    "own": lambda T, m: m._apply(lambda t: t * 2),
    "own here": lambda T, m: m._apply(lambda t: t + 1, recurse=False),
}


@given(
    st.lists(st.sampled_from(sorted(CASTS)), min_size=1, max_size=3),
    st.sampled_from(["data", "overwrite", "swap"]),
    st.booleans(),
)
@pytest.mark.filterwarnings("ignore")  # of complex modules: `test_module.test_casts` has it
def test_any_casts(casts, way, with_gradient):
    def program(T, show):
        net = net_of(T)
        if with_gradient:
            net(T.ones(1, 2)).sum().backward()
        held = dict(net.named_parameters())
        grads = {name: p.grad for name, p in held.items()}
        buffers = dict(net.named_buffers())
        with future(T, overwrite=way == "overwrite", swap=way == "swap"):
            for name in casts:
                show.error(lambda: show(CASTS[name](T, net) is net))
                if name.startswith("to_empty"):
                    fill(T, net)
        for name, p in net.named_parameters(remove_duplicate=False):
            show(name, p, p.dtype, p.requires_grad, p is held.get(name), type(p).__name__, p.is_leaf)
            show(p.grad, p.grad is grads.get(name), p.grad is not None and p.grad.requires_grad)
        for name, b in net.named_buffers(remove_duplicate=False):
            show(name, b, b is buffers.get(name))
        show(net.a.weight is net.b.weight, net.mean is net.same_mean)

    same(program)


def fill(T, net):
    with T.no_grad():
        for t in [*net.parameters(), *net.buffers(), *[p.grad for p in net.parameters() if p.grad is not None]]:
            t.fill_(1)


def test_optimizers_go_on():
    def program(T, show):
        for way in ({}, {"overwrite": True}, {"swap": True}):
            net = T.nn.Linear(2, 1)
            optimizer = T.optim.SGD(net.parameters(), lr=0.5)
            with future(T, **way):
                net.double()
            net(T.ones(1, 2, dtype=T.float64)).sum().backward()
            before = net.weight.detach().clone()
            optimizer.step()
            show(way, T.equal(before, net.weight))

    same(program)


def test_gradient_hooks_and_names_move_along():
    def program(T, show):
        for way in ({}, {"swap": True}):
            p = T.nn.Parameter(T.ones(2))
            m = T.nn.Module()
            m.p, p.note = p, "kept"
            p.register_hook(lambda g: show("hook", g))
            p.register_post_accumulate_grad_hook(lambda p: show("accumulated", p.grad))
            with future(T, **way):
                m.double()
            (m.p * 3).sum().backward()
            show(way, p is m.p, getattr(p, "note", None), p.grad)

    same(program)


def test_swap_tensors():
    def program(T, show):
        class Own(T.Tensor):
            pass

        class Slots(T.Tensor):
            __slots__ = ("a", "b")

        swap = T.utils.swap_tensors
        a, b = T.ones(2), T.nn.Parameter(T.zeros(3, dtype=T.float64))
        a.mark, b.other = 1, 2
        swap(a, b)
        show(a, b, type(a).__name__, vars(a), vars(b), a.requires_grad, b.requires_grad)
        (a * 2).sum().backward()
        show(a.grad, b.grad)
        own = T.Tensor._make_subclass(Own, T.ones(1))
        swap(own, b)
        show(type(own).__name__, type(b).__name__, own, T.Tensor(b))
        show.error(lambda: swap(T.Tensor._make_subclass(Slots, T.ones(1)), b))
        s, t = (T.Tensor._make_subclass(Slots, T.full((1,), n)) for n in (1.0, 2.0))
        s.a, t.b = 3, 4
        swap(s, t)
        show(T.Tensor(s), hasattr(s, "a"), s.b, t.a, hasattr(t, "b"))
        view = T.arange(4.0)[1:3]
        plain = T.zeros(1)
        swap(view, plain)
        show(view, plain, plain.storage_offset())
        weak = weakref.ref(a)
        show.error(lambda: swap(a, plain))
        show.error(lambda: swap(plain, a))
        del weak

    same(program)


def test_a_graph_from_before_a_swap_is_refused():
    def program(T, show):
        m = T.nn.Module()
        m.p = T.nn.Parameter(T.ones(2))
        out = (m.p + 1).sum()
        with future(T, swap=True):
            m.double()
        show(m.p)
        show.error(out.backward)
        (m.p + 1).sum().backward()
        show(m.p.grad)

    same(program)


def test_own_module_load():
    def program(T, show):
        class Scaled(T.Tensor):
            def module_load(self, other, assign=False):
                show("module_load", assign)
                return self if mode == "self" else other if mode == "other" else (other * 2).detach()

        for mode in ("new", "self", "other"):
            m = T.nn.Module()
            m.register_buffer("b", T.Tensor._make_subclass(Scaled, T.ones(2)))
            held = m.b
            for options in ({}, {"assign": True}):
                with future(T, swap=True):
                    show.error(lambda: m.load_state_dict({"b": T.full((2,), 3.0)}, **options))
                show(type(m.b).__name__, T.Tensor(m.b), held is m.b)

    same(program)


def test_meta_device():
    def program(T, show):
        m = T.nn.Linear(2, 2, device="meta")
        show(m.weight.device, m.weight.is_meta)
        show.error(lambda: m.to("cpu"))
        old = m.weight
        m.to_empty(device="cpu")
        show(m.weight.device, m.weight is old, m.weight.requires_grad, type(m.weight).__name__)
        show.warnings(lambda: T.nn.Linear(2, 2, device="meta").load_state_dict(T.nn.Linear(2, 2).state_dict()))

    same(program)
