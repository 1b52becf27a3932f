"""functional_call and what it uses, stack_module_state, skip_init, factory_kwargs next to the reference."""

from importlib import import_module

from tests.programs import same


def func(T):
    return T.func


class Tied:
    """Makes a module with a parameter that has two names, and buffers that it changes."""

    def __new__(cls, T):
        class Net(T.nn.Module):
            def __init__(self):
                super().__init__()
                self.a = T.nn.Linear(2, 2)
                self.b = T.nn.Linear(2, 2)
                self.b.weight = self.a.weight
                self.register_buffer("count", T.zeros(()))
                self.register_buffer("seen", T.zeros(2))

            def forward(self, x, scale=1):
                self.count = self.count + 1
                self.seen.add_(x.detach().sum(0))
                return self.b(self.a(x)) * scale

        return Net()


def test_gradients_flow_to_what_is_given():
    def program(T, show):
        net = T.nn.Sequential(T.nn.Linear(2, 3), T.nn.BatchNorm1d(3), T.nn.Linear(3, 1))
        x = T.randn(4, 2)
        parameters = {name: T.randn(p.shape, requires_grad=True) for name, p in net.named_parameters()}
        before = {name: t.clone() for name, t in net.state_dict().items()}
        y = func(T).functional_call(net, parameters, x)
        y.square().sum().backward()
        show.numbers(y, *[p.grad for p in parameters.values()])
        show([p.grad for p in net.parameters()])
        buffers = {name: b.clone() for name, b in net.named_buffers()}
        show.numbers(func(T).functional_call(net, (parameters, buffers), (x,)), *buffers.values())
        show([(k, bool((v == before[k]).all())) for k, v in net.state_dict().items()])
        show([type(p).__name__ for p in net.parameters()])

    same(program)


def test_ties_and_assignments():
    def program(T, show):
        call = func(T).functional_call
        x = T.ones(1, 2)
        net = Tied(T)
        one, two = T.ones(2, 2), T.full((2, 2), 2.0)
        for given in (
            {"a.weight": one},
            {"b.weight": one},
            {"a.weight": one, "b.weight": two},
            {"a.weight": one, "b.weight": one},
        ):
            for tie in (True, False):
                show.error(lambda: show.numbers(call(net, given, x, tie_weights=tie)))
                show(list(given))
        state = {"count": T.tensor(5.0), "seen": T.zeros(2)}
        kept = state["seen"]
        show.numbers(call(net, state, x, {"scale": 3}), state["count"], state["seen"], net.count, net.seen)
        show(state["seen"] is kept, net.a.weight is net.b.weight)
        show.error(lambda: call(net, {"a.weight": T.ones(3, 3)}, x))
        show(net.a.weight is net.b.weight, net.a.weight.shape)

    same(program)


def test_strict_and_other_errors():
    def program(T, show):
        call = func(T).functional_call
        net = Tied(T)
        x = T.ones(1, 2)
        everything = {**dict(net.named_parameters()), **dict(net.named_buffers())}
        show.error(lambda: call(net, everything, x, strict=True))
        show.error(lambda: call(net, {"a.weight": T.ones(2, 2)}, x, strict=True))
        show.error(lambda: call(net, {**everything, "other": x}, x, strict=True))
        show.error(lambda: call(net, {"a.other": x}, x))
        show(hasattr(net.a, "other"))
        show.error(lambda: call(net, {"c.weight": x}, x))
        show.error(lambda: call(net, {"a": x}, x))
        show.error(lambda: call(net, {"a.weight": 3}, x))
        show.error(lambda: call(net, 3, x))
        show.error(lambda: call(net, [3], x))
        show.error(lambda: call(net, [everything, everything], x))
        show.warnings(lambda: T.nn.utils.stateless.functional_call(net, everything, x))

    same(program)


def test_parametrized():
    def program(T, show):
        net = T.nn.utils.parametrizations.weight_norm(T.nn.Linear(2, 2))
        x = T.ones(1, 2)
        name = "parametrizations.weight.original0"
        show.numbers(func(T).functional_call(net, {name: T.ones(2, 1)}, x), net(x))

    same(program)


def test_stacked_states():
    def program(T, show):
        stack = func(T).stack_module_state
        models = [T.nn.Sequential(T.nn.Linear(2, 3), T.nn.BatchNorm1d(3)) for _ in range(3)]
        parameters, buffers = stack(models)
        show([(k, tuple(v.shape), v.requires_grad, v.is_leaf) for k, v in {**parameters, **buffers}.items()])
        show.numbers(*parameters.values(), *buffers.values())
        show.error(lambda: stack([]))
        show.error(lambda: stack([T.nn.Linear(1, 1), T.nn.ReLU()]))
        show.error(lambda: stack([T.nn.Linear(1, 1), T.nn.Linear(1, 1).eval()]))
        show.error(lambda: stack([T.nn.Linear(1, 1), T.nn.Linear(1, 1).requires_grad_(False)]))

    same(program)


def test_accessor():
    def program(T, show):
        accessors = import_module(T.__name__ + ".nn.utils._named_member_accessor")
        net = T.nn.Sequential(T.nn.Linear(2, 2), T.nn.Sequential(T.nn.BatchNorm1d(2)))
        net[0].plain, net[0].number = T.zeros(1), 3
        a = accessors.NamedMemberAccessor(net)
        x = T.ones(2)
        for path in ("", "0", "1.0", "1.2", "0.weight", "3"):
            show.error(lambda: show(type(a.get_submodule(path)).__name__))
        for path in ("0.weight", "1.0.running_mean", "0.plain", "0.none", "0.number"):
            show.error(lambda: show.numbers(a.get_tensor(path)))
            show.error(lambda: a.swap_tensor(path, x))
            show.error(lambda: show.numbers(a.swap_tensor(path, None)))
            show.error(lambda: a.set_tensor(path, x))
            show.error(lambda: a.set_tensor(path, 3))
            show.error(lambda: a.del_tensor(path))
        show.error(lambda: a.swap_submodule("1.0", T.nn.ReLU()))
        show.error(lambda: a.swap_submodule("1.1", T.nn.ReLU()))
        show.error(lambda: a.swap_submodule("1.0", 3))
        show(net)
        show(a.check_keys(["0.bias", "0.other"]))
        show.error(lambda: a.set_tensors(["0.bias"], [x, x]))
        show.error(lambda: show.numbers(*a.swap_tensors(["0.bias", "0.new"], [x, x])))
        show.error(lambda: show(a.swap_tensors_dict({"0.bias": x, "0.newer": x})))
        show.error(lambda: show(a.swap_tensors_dict({"0.bias": x, "0.newer": 3})))
        a.set_tensors_dict({"0.bias": x * 2})
        show.numbers(*a.get_tensors(["0.bias"]))
        a.del_tensors(["0.bias"])
        show(list(net.state_dict()), [n for n, _ in a.named_tensors()], [n for n, _ in a.named_modules()])
        for name in ("", "a.b"):
            show.error(lambda: accessors.set_tensor(net, name, x))
            show.error(lambda: accessors.swap_tensor(net, name, x))
        show.error(lambda: accessors.set_tensor(3, "a", x))

    same(program)


def test_skip_init():
    def program(T, show):
        skip_init = T.nn.utils.skip_init
        for make in (
            lambda: skip_init(T.nn.Linear, 3, 2),
            lambda: skip_init(T.nn.Conv2d, 1, 2, 3),
            lambda: skip_init(T.nn.LSTMCell, 2, hidden_size=3, device="cpu", dtype=T.float64),
            lambda: skip_init(T.nn.BatchNorm1d, 3),
            lambda: skip_init(T.nn.Embedding, 3, 2),
            lambda: skip_init(T.nn.MultiheadAttention, 4, 2),
        ):
            module = make()
            show(module)
            for name, t in module.state_dict(keep_vars=True).items():
                show(name, tuple(t.shape), t.dtype, t.requires_grad)
        show.numbers(T.rand(1), T.nn.Linear(2, 2).weight)  # none was drawn before, and filling works again
        show.error(lambda: T.nn.utils.skip_init(T.nn.ReLU))
        show.error(lambda: T.nn.utils.skip_init(T.nn.LSTM, 2, 3))
        show.error(lambda: T.nn.utils.skip_init(dict))

    same(program)


def test_init_functions_leave_everything_as_it_is_while_skipping():
    import readtorch

    class Fills(readtorch.nn.Module):
        def __init__(self, device=None):
            super().__init__()
            self.weight = readtorch.nn.Parameter(readtorch.full((3, 3), 100.0))
            for name in (
                "uniform_",
                "normal_",
                "trunc_normal_",
                "ones_",
                "zeros_",
                "eye_",
                "xavier_uniform_",
                "kaiming_normal_",
                "orthogonal_",
            ):
                getattr(readtorch.nn.init, name)(self.weight)
                assert (self.weight == 100).all(), name
            readtorch.nn.init.sparse_(self.weight, 0.5)
            assert (self.weight == 100).all()

    module = readtorch.nn.utils.skip_init(Fills)
    assert module.weight.shape == (3, 3)


def test_factory_kwargs():
    def program(T, show):
        for kwargs in (
            None,
            {},
            {"device": "cpu"},
            {"dtype": T.float64, "factory_kwargs": {"device": "cpu"}},
            {"dtype": 1, "factory_kwargs": {"dtype": 2}},
            {"other": 1},
        ):
            show.error(lambda: show(sorted(T.nn.factory_kwargs(kwargs).items())))

    same(program)
