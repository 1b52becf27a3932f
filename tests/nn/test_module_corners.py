"""Corners of `nn.Module` next to the reference: properties, odd names and arguments, subclasses that override, handles."""

import pickle
from collections import OrderedDict

from tests.programs import same


def test_lookup_through_properties_and_odd_paths():
    def program(T, show):
        class Net(T.nn.Module):
            def __init__(self):
                super().__init__()
                self.a = T.nn.Sequential(T.nn.ReLU())
                self.w = T.nn.Parameter(T.ones(1))

            broken = property(lambda self: self.missing)
            child = property(lambda self: self.a)

        net = Net()
        for path in (
            "a..0",
            "a.",
            ".a",
            "a.0",
            "child.0",
            "child",
            "broken",
            "__class__",
            "_modules",
            "a.forward",
            None,
            3,
            b"a",
        ):
            show.error(lambda: show(net.get_submodule(path)))
            show.error(lambda: net.get_parameter(path))
            show.error(lambda: net.get_buffer(path))
            show.error(lambda: net.set_submodule(path, T.nn.Tanh()))
            show.error(lambda: net.set_submodule(path, T.nn.Tanh(), True))
            show(net)
        show.error(lambda: net.broken)

    same(program)


def test_assignment_to_properties_and_class_attributes():
    def program(T, show):
        class Net(T.nn.Module):
            number = 3

            @property
            def kept(self):
                return self._kept

            @kept.setter
            def kept(self, value):
                self._kept = value

            fixed = property(lambda self: 1)

        for value in (
            3,
            T.nn.Parameter(T.ones(1)),
            T.nn.ReLU(),
            T.nn.Buffer(T.ones(1)),
            None,
            T.nn.Parameter,
            T.ones(1),
        ):
            for name in ("number", "kept", "fixed", "forward"):
                net = Net()
                show.error(lambda: setattr(net, name, value))
                show(
                    name,
                    *[(d, list(getattr(net, d))) for d in ("_parameters", "_buffers", "_modules")],
                    name in net.__dict__,
                )
                show.error(lambda: show(getattr(net, name)))
        net.forward = lambda x: x + 1
        show(net(3))
        show.error(lambda: net.__setattr__(3, T.nn.ReLU()))
        show(list(net._modules), Net.number)
        net.register_buffer = lambda name, t: show("own", name)
        show.error(lambda: setattr(net, "b", T.nn.Buffer(T.ones(1))))
        show.error(lambda: setattr(net, "b", T.nn.Buffer(T.ones(1), persistent=False)))

    same(program)


def test_odd_arguments():
    def program(T, show):
        m = T.nn.Linear(1, 1)
        for call in (
            lambda: m.train(1),
            lambda: m.train(None),
            lambda: m.to("nowhere"),
            lambda: m.to(T.int64),
            lambda: m.to(T.bool),
            lambda: m.to(T.float32, T.float64),
            lambda: m.to("cpu", copy=True),
            lambda: m.to("cpu", copy=False),
            lambda: m.to(None),
            lambda: m.to(device=None),
            lambda: m.to(memory_format=T.channels_last),
            lambda: m.type("none"),
            lambda: m.type(T.int64),
            lambda: m.to_empty(),
            lambda: m.apply(3),
            lambda: m.zero_grad(3),
            lambda: m.parameters(1, 2),
            lambda: m.register_forward_hook(print, 1),
            lambda: m.register_full_backward_hook(print, True),
            lambda: m.state_dict(3),
            lambda: m.state_dict(prefix=3),
            lambda: m.load_state_dict(),
            lambda: m.load_state_dict({3: 4}),
            lambda: m.load_state_dict({3: 4}, strict=False),
            lambda: m.load_state_dict(m.state_dict(), True, True, True),
            lambda: m.add_module(),
            lambda: m.get_submodule(),
            lambda: m.named_modules(1, 2, 3, 4),
        ):
            show.error(call)
        m.register_forward_hook(3)
        show.error(lambda: m(T.ones(1)))

    same(program)


def test_methods_say_whose_they_are():
    def program(T, show):
        m = T.nn.Linear(1, 1)
        show(m.parameters, m.to, m.state_dict, m.register_forward_hook, m.train)
        show(pickle.loads(pickle.dumps(T.nn.Module.load_state_dict)) is T.nn.Module.load_state_dict)

    same(program)


def test_memory_format_and_gradients():
    def program(T, show):
        conv = T.nn.Conv2d(2, 2, 2)
        conv.to(memory_format=T.channels_last)
        show(conv.weight.stride(), conv.weight.is_contiguous(memory_format=T.channels_last), conv.bias.stride())
        m = T.nn.Linear(1, 1)
        (g,) = T.autograd.grad(m(T.ones(1, 1)).sum(), m.weight, create_graph=True)
        m.weight.grad = g * 1
        m.zero_grad(set_to_none=False)
        show(m.weight.grad)
        m.weight.grad = T.ones(1, 1, requires_grad=True)
        m.zero_grad(False)
        show(m.weight.grad)

    same(program)


def test_subclasses_that_override():
    def program(T, show):
        class Dynamic(T.nn.Module):
            def __getattr__(self, name):
                return 42 if name == "dynamic" else super().__getattr__(name)

            def __setattr__(self, name, value):
                show("set", name)
                super().__setattr__(name, value)

            def __call__(self, *args):
                show("call", args)
                return super().__call__(*args)

            def forward(self, x):
                return x

        m = Dynamic()
        m.child = T.nn.ReLU()
        show(m.dynamic, m, m(3))
        show.error(lambda: m.nothing)

        class Called(T.nn.ModuleList):
            def forward(self, x):
                for module in self:
                    x = module(x)
                return x

        class Named(T.nn.Sequential):
            pass

        c, s = Called([T.nn.ReLU(), T.nn.Tanh()]), Named(T.nn.ReLU())
        show(c(T.ones(1)), c[0:1], c + [T.nn.ReLU()], s + s, s * 2, s[:])

    same(program)


def test_handles():
    def program(T, show):
        Handle = T.utils.hooks.RemovableHandle
        hooks, marks = OrderedDict(), OrderedDict()
        handle = Handle(hooks, extra_dict=marks)
        hooks[handle.id], marks[handle.id] = "hook", "mark"
        again = pickle.loads(pickle.dumps(handle))
        show(len(handle.__getstate__()), again.id == handle.id, again.hooks_dict_ref())
        with handle as entered:
            show(entered is handle, len(hooks), len(marks))
        show(hooks, marks)
        beyond = Handle.next_id + 1000  # ids are the process's: other tests have drawn some
        handle.__setstate__((None, beyond))
        show(handle.hooks_dict_ref(), handle.extra_dict_ref, Handle.next_id - beyond, Handle(hooks).id - beyond)
        handle.__setstate__((None, 0))
        show(handle.id, Handle.next_id - beyond)
        handle.remove()

    same(program)


def test_lazy_modules_load_in_every_way():
    def program(T, show):
        def lazy():
            return T.nn.Sequential(T.nn.LazyLinear(2), T.nn.LazyBatchNorm1d(), T.nn.LazyConv2d(1, 1))

        full = T.nn.Sequential(T.nn.Linear(3, 2), T.nn.BatchNorm1d(2), T.nn.Conv2d(1, 1, 1))
        for swap in (False, True):
            for options in ({}, {"assign": True}, {"strict": False}):
                for missing in ((), ("0.weight",), ("1.running_mean", "1.num_batches_tracked"), ("2.bias", "0.bias")):
                    state = full.state_dict()
                    for name in missing:
                        del state[name]
                    m = lazy()
                    T.__future__.set_swap_module_params_on_conversion(swap)
                    show.error(lambda: show(m.load_state_dict(state, **options)))
                    T.__future__.set_swap_module_params_on_conversion(False)
                    show(
                        [(n, type(t).__name__, t.requires_grad) for n, t in [*m.named_parameters(), *m.named_buffers()]]
                    )
                    show(m.state_dict())

    same(program)
