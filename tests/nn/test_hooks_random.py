"""Random sets of hooks on a small net, next to the reference: who is called, in which order, with what, whatever they do.

A hook may replace what it sees, raise, remove itself or another, or register a new one while the net is being called.
"""

import contextlib
from importlib import import_module

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.programs import same

FORWARD = ["pre", "post"]
BACKWARD = ["bpre", "b"]
ACTIONS = [
    "nothing",
    "nothing",
    "replace",
    "raise",
    "remove itself",
    "remove first",
    "remove last",
    "register",
    "wrong length",
    "odd value",
]

hook_specs = st.fixed_dictionaries(
    {
        "where": st.sampled_from(["global", "net", "a", "b"]),
        "kind": st.sampled_from(FORWARD + BACKWARD),
        "action": st.sampled_from(ACTIONS),
        "with_kwargs": st.booleans(),
        "always_call": st.booleans(),
        "prepend": st.booleans(),
    }
)


def net_of(T):
    class Part(T.nn.Module):
        def __init__(self, name):
            super().__init__()
            self.name = name

        def forward(self, x, *, k=2.0, fail=None):
            if fail == self.name:
                raise ValueError(f"forward of {fail}")
            return x * k

    class Net(Part):
        def __init__(self):
            super().__init__("net")
            self.a, self.b = Part("a"), Part("b")

        def forward(self, x, *, k=2.0, fail=None):
            return super().forward(self.b(self.a(x, k=k, fail=fail), fail=fail), fail=fail)

    return Net()


class Hooks:
    """Registers hooks on a net of `T` and remembers their handles, so that hooks can remove each other."""

    def __init__(self, T, show, net):
        self.T, self.show, self.net = T, show, net
        self.handles = []

    def register(self, spec):
        number = len(self.handles)
        target, name, options = self.target(spec)
        hook = {"pre": self.pre, "post": self.post, "bpre": self.bpre, "b": self.b}[spec["kind"]](number, spec)
        self.handles.append(getattr(target, name)(hook, **options))

    def target(self, spec):
        kind, is_global = spec["kind"], spec["where"] == "global"
        name = {"pre": "forward_pre", "post": "forward", "bpre": "full_backward_pre", "b": "full_backward"}[kind]
        allowed = {"pre": ("with_kwargs", "prepend"), "post": ("with_kwargs", "always_call", "prepend")}.get(
            kind, ("prepend",)
        )
        if is_global:
            allowed = ("with_kwargs", "always_call") if kind == "post" else ()
            target, name = import_module(self.T.__name__ + ".nn.modules.module"), f"register_module_{name}_hook"
        else:
            target, name = (
                (self.net if spec["where"] == "net" else getattr(self.net, spec["where"])),
                f"register_{name}_hook",
            )
        return target, name, {option: spec[option] for option in allowed}

    def pre(self, number, spec):
        with_kwargs = spec["with_kwargs"] and spec["where"] != "global"

        def hook(module, args, *rest):
            self.log(number, spec, module, args, rest)
            replaced = tuple(a + 1 for a in args)
            return self.act(number, spec, replaced if not with_kwargs else (replaced, {"k": 3.0}))

        return hook

    def post(self, number, spec):
        def hook(module, args, *rest):
            self.log(number, spec, module, args, rest)
            return self.act(number, spec, rest[-1] * 2)

        return hook

    def bpre(self, number, spec):
        def hook(module, grad_output):
            self.log(number, spec, module, grad_output)
            return self.act(number, spec, tuple(g * 2 for g in grad_output))

        return hook

    def b(self, number, spec):
        def hook(module, grad_input, grad_output):
            self.log(number, spec, module, grad_input, grad_output)
            return self.act(number, spec, tuple(None if g is None else g * 2 for g in grad_input))

        return hook

    def log(self, number, spec, module, *values):
        self.show(number, spec["kind"], spec["where"], module.name, *[_plain(v) for v in values])

    def act(self, number, spec, replacement):
        action = spec["action"]
        if action == "replace":
            return replacement
        if action == "raise":
            raise RuntimeError(f"hook {number}")
        if action == "wrong length":
            return ()
        if action == "odd value":
            return 3
        if action == "register" and len(self.handles) < 8:
            self.register({**spec, "action": "nothing"})
        elif action.startswith("remove"):
            self.handles[{"remove itself": number, "remove first": 0, "remove last": -1}[action]].remove()
        return None


def _plain(value):
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, (tuple, list)):
        return type(value)(_plain(v) for v in value)
    return value


@contextlib.contextmanager
def some_hooks(T, show, net, specs):
    hooks = Hooks(T, show, net)
    try:
        for spec in specs:
            hooks.register(spec)
        yield
    finally:
        for handle in hooks.handles:
            handle.remove()


@settings(max_examples=150)
@given(
    st.lists(hook_specs, min_size=1, max_size=5), st.sampled_from([None, None, None, "net", "a", "b"]), st.booleans()
)
def test_any_hooks(specs, fail, requires_grad):
    def program(T, show):
        net = net_of(T)

        def step():
            x = T.ones(2, requires_grad=requires_grad)
            weight = T.ones(2, requires_grad=True)
            out = net(x, fail=fail) * weight
            out.sum().backward()
            show("gradient", x.grad, weight.grad)

        with some_hooks(T, show, net, specs):
            for _ in range(2):  # the second call sees what the hooks of the first have removed or registered
                show.warnings(lambda: show.error(step))
        show("end")

    same(program)
