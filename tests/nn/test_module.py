"""`nn.Module` next to the reference: registration, attributes, lookup, iteration, casts, repr, errors word for word."""

import copy

from hypothesis import given
from hypothesis import strategies as st

from tests.programs import same


def block(T):
    """A module with everything: nested, shared, None, buffers of both kinds."""

    class Block(T.nn.Module):
        def __init__(self, d=3):
            super().__init__()
            self.plain = [T.nn.Linear(d, d)]
            self.layers = T.nn.ModuleList([T.nn.Linear(d, d) for _ in range(2)])
            self.table = T.nn.ModuleDict({"norm": T.nn.LayerNorm(d), "drop": T.nn.Dropout(0.25)})
            self.tied = self.layers[0]
            self.scale = T.nn.Parameter(T.ones(1))
            self.same_scale = self.scale
            self.register_parameter("absent", None)
            self.add_module("none", None)
            self.register_buffer("kept", T.zeros(2))
            self.register_buffer("passing", T.zeros(2), persistent=False)
            self.register_buffer("nothing_yet", None)
            self.buf = T.nn.Buffer(T.ones(1), persistent=False)

        def forward(self, x):
            return x * self.scale

        def extra_repr(self):
            return "tied=True"

    return Block()


# Registration and attributes


def test_tree():
    def program(T, show):
        b = block(T)
        show(b)
        for method in ("named_parameters", "named_buffers", "named_modules"):
            for kwargs in ({}, {"remove_duplicate": False}, {"prefix": "top"}):
                show(method, kwargs, [n for n, _ in getattr(b, method)(**kwargs)])
        show([n for n, _ in b.named_parameters(recurse=False)], [n for n, _ in b.named_buffers(recurse=False)])
        show([n for n, _ in b.named_children()], sum(1 for _ in b.modules()), sum(1 for _ in b.children()))
        show(len(list(b.modules(remove_duplicate=False))), len(list(b.parameters())), len(list(b.buffers())))
        show(list(b.state_dict()), dict(b.state_dict()._metadata))
        show(sorted(set(dir(b)) & {"layers", "kept", "scale", "forward", "training", "tied", "absent"}))
        show("0" in dir(b.layers), b.training, b._version, b.dump_patches, b.call_super_init)

    same(program)


def test_lookup_by_name():
    def program(T, show):
        b = block(T)
        show(b.get_submodule("layers.1"), b.get_submodule("") is b, b.get_submodule("table.norm"))
        show(b.get_parameter("layers.0.weight").shape, b.get_parameter("scale") is b.scale, b.get_buffer("kept"))
        for bad in ("layers.9", "nothing", "kept", "scale", "layers.0.weight", "none", "plain"):
            show.error(lambda: b.get_submodule(bad))
        for bad in ("layers.0", "kept", "x", "layers.0.x", "absent", "training"):
            show.error(lambda: b.get_parameter(bad))
            show.error(lambda: b.get_buffer(bad))
        b.set_submodule("table.drop", T.nn.Identity())
        b.set_submodule("layers.new", T.nn.ReLU())
        show(b)
        show.error(lambda: b.set_submodule("", T.nn.ReLU()))
        show.error(lambda: b.set_submodule("table.x", 3))
        show.error(lambda: b.set_submodule("table.x", T.nn.ReLU(), strict=True))
        show.error(lambda: b.set_submodule("x.y", T.nn.ReLU()))
        show.error(lambda: b.set_submodule("kept", T.nn.ReLU()))
        b.set_submodule("table.norm", T.nn.ReLU(), strict=True)
        show(b.table)

    same(program)


def test_registration_errors():
    def program(T, show):
        b = block(T)
        for register, good in (
            (b.register_parameter, T.nn.Parameter(T.ones(1))),
            (b.register_buffer, T.ones(1)),
            (b.add_module, T.nn.ReLU()),
            (b.register_module, T.nn.ReLU()),
        ):
            for name in (3, "a.b", "", "training", "forward", "kept", "scale", "tied", None):
                show.error(lambda: register(name, good))
            for bad in (3, T.ones(1), "text", T.nn.Linear, T.nn.ReLU()):
                show.error(lambda: register("x", bad))
        show.error(lambda: b.register_parameter("leaf", T.nn.Parameter(T.ones(1)) * 2))
        non_leaf = T.nn.Parameter(T.ones(1))
        show.error(lambda: b.register_buffer("grad", non_leaf * 2))
        show(list(b._parameters), list(b._buffers), list(b._modules), b._non_persistent_buffers_set)

    same(program)


def test_attribute_errors():
    def program(T, show):
        b = block(T)
        show.error(lambda: b.nothing)
        for name in ("scale", "layers", "kept", "absent", "none", "nothing_yet"):
            for value in ("text", 3, T.ones(1), T.nn.ReLU(), T.nn.ReLU, None, T.nn.Parameter(T.ones(1))):
                show.error(lambda: setattr(b, name, value))
                show(name, list(b._parameters), list(b._buffers), list(b._modules), name in b.__dict__)
        show.error(lambda: delattr(b, "never"))

    same(program)


def test_assignment_before_init():
    def program(T, show):
        class Early(T.nn.Module):
            def __init__(self, value):
                self.x = value

        for value in (T.nn.Parameter(T.zeros(1)), T.nn.ReLU(), T.nn.Buffer(T.zeros(1)), T.zeros(1), 3):
            show.error(lambda: Early(value))
        show.error(lambda: Early(3).parameters)
        show.error(lambda: list(Early(3).parameters()))
        show.error(lambda: Early(3).register_buffer("a", None))
        show.error(lambda: Early(3).register_parameter("a", None))
        show.error(lambda: Early(3).nothing)
        show.error(lambda: Early(3)(1))

    same(program)


def test_names_move_between_kinds():
    def program(T, show):
        m = T.nn.Module()

        def where():
            show(
                *[(d, list(getattr(m, d))) for d in ("_parameters", "_buffers", "_modules")],
                "x" in m.__dict__,
                m._non_persistent_buffers_set,
            )

        m.x = 3
        where()
        m.x = T.nn.Parameter(T.zeros(1))
        where()
        del m.x
        m.x = T.ones(1)
        m.x = T.nn.ReLU()
        where()
        m.x = None
        where()
        del m.x
        m.x = T.nn.Buffer(T.zeros(1), persistent=False)
        where()
        m.x = T.ones(2)
        where()
        show(m.x, type(m.x).__name__)
        m.x = T.nn.Buffer(T.zeros(1))
        where()
        m.x = T.nn.Parameter(T.zeros(1))
        where()
        m.y = T.nn.Parameter(T.zeros(1))
        m.x = m.y
        where()
        m.x = None
        where()
        del m.x, m.y
        where()
        m.z = T.zeros(1)
        m.z = T.nn.ReLU()
        show("z" in m.__dict__, list(m._modules))

    same(program)


KINDS = ["parameter", "module", "buffer", "hidden buffer", "tensor", "none", "number"]


def new_value(T, kind):
    return {
        "parameter": lambda: T.nn.Parameter(T.zeros(1)),
        "module": T.nn.ReLU,
        "buffer": lambda: T.nn.Buffer(T.zeros(1)),
        "hidden buffer": lambda: T.nn.Buffer(T.zeros(1), persistent=False),
        "tensor": lambda: T.zeros(1),
        "none": lambda: None,
        "number": lambda: 3,
    }[kind]()


@given(
    st.lists(
        st.tuples(st.sampled_from(["set", "set", "set", "del", "get"]), st.sampled_from("ab"), st.sampled_from(KINDS)),
        max_size=12,
    )
)
def test_any_sequence_of_assignments(steps):
    def program(T, show):
        m = T.nn.Module()
        for action, name, kind in steps:
            value = new_value(T, kind)
            if action == "set":
                show.error(lambda: setattr(m, name, value))
            elif action == "del":
                show.error(lambda: delattr(m, name))
            else:
                show.error(lambda: getattr(m, name))
            show(
                list(m._parameters.items()),
                list(m._buffers.items()),
                list(m._modules.items()),
                m._non_persistent_buffers_set,
                sorted(set("ab") & set(m.__dict__)),
                list(m.state_dict()),
            )
        show("end")

    same(program)


def test_own_register_buffer():
    def program(T, show):
        class Old(T.nn.Module):
            def register_buffer(self, name, tensor):
                super().register_buffer(name, tensor)
                show("old", name)

        class New(T.nn.Module):
            def register_buffer(self, name, tensor, persistent=True):
                super().register_buffer(name, tensor, persistent)
                show("new", name, persistent)

        for cls in (Old, New):
            m = cls()
            m.a = T.nn.Buffer(T.zeros(1))
            show.error(lambda: setattr(m, "b", T.nn.Buffer(T.zeros(1), persistent=False)))
            m.a = T.ones(1)
            show(list(m.state_dict()))

    same(program)


def test_constructor_arguments():
    def program(T, show):
        class Mixin:
            def __init__(self, a=1, **kwargs):
                show("mixin", a, kwargs)

        class Plain(T.nn.Module, Mixin):
            pass

        class Cooperative(T.nn.Module, Mixin):
            call_super_init = True

        Plain()
        Cooperative()
        Cooperative(a=3, b=4)
        show.error(lambda: Plain(1))
        show.error(lambda: Plain(a=1, b=2))
        show.error(lambda: T.nn.Module(1, 2))

    same(program)


def test_missing_forward():
    def program(T, show):
        class NoForward(T.nn.Module):
            pass

        show.error(lambda: NoForward()(1, 2))
        show.error(lambda: T.nn.ModuleList()(1))

    same(program)


def test_registration_hooks():
    def program(T, show):
        from importlib import import_module

        module = import_module(T.__name__ + ".nn.modules.module")
        handles = [
            module.register_module_parameter_registration_hook(lambda m, n, p: show("param", n)),
            module.register_module_buffer_registration_hook(lambda m, n, b: b * 2 if b is not None else None),
            module.register_module_module_registration_hook(lambda m, n, c: show("module", n) or T.nn.Identity()),
        ]
        try:
            m = T.nn.Module()
            m.register_buffer("b", T.ones(1))
            m.p = T.nn.Parameter(T.ones(1))
            m.p = None
            m.c = T.nn.ReLU()
            m.add_module("d", T.nn.ReLU())
            show(m, m.b)
        finally:
            for handle in handles:
                handle.remove()
        m.e = T.nn.ReLU()
        show(m)

    same(program)


# Modes and conversion


def test_train_eval_requires_grad_zero_grad():
    def program(T, show):
        b = block(T)
        show(b.eval() is b, [m.training for m in b.modules()])
        b.train()
        show.error(lambda: b.train("yes"))
        b.requires_grad_(False)
        show([p.requires_grad for p in b.parameters()])
        b.requires_grad_()
        b(T.ones(2)).sum().backward()
        show(b.scale.grad)
        b.zero_grad(set_to_none=False)
        show(b.scale.grad)
        b.zero_grad()
        show(b.scale.grad)

    same(program)


def test_apply_visits_children_first():
    def program(T, show):
        b = block(T)
        show(b.apply(lambda m: show(type(m).__name__)) is b)

    same(program)


def test_casts():
    def program(T, show):
        b = block(T)
        b.register_buffer("count", T.zeros(1, dtype=T.int64))
        scale = b.scale
        b(T.ones(2)).sum().backward()
        for cast in (
            lambda: b.double(),
            lambda: b.half(),
            lambda: b.bfloat16(),
            lambda: b.float(),
            lambda: b.to(T.float64),
            lambda: b.to(dtype=T.float32),
            lambda: b.to("cpu"),
            lambda: b.cpu(),
            lambda: b.to(T.zeros(1, dtype=T.float64)),
            lambda: b.type(T.float32),
            lambda: b.to("cpu", T.float64),
        ):
            show(cast() is b, b.scale.dtype, b.kept.dtype, b.count.dtype, b.scale.grad.dtype, b.scale is scale)
        show(
            c.layers[0] is c.tied if (c := copy.deepcopy(b)) else None, c.scale is not b.scale, c.scale is c.same_scale
        )
        show.error(lambda: b.to(T.int64))
        show.warnings(lambda: T.nn.Linear(1, 1).to(T.complex64))

    same(program)


# Text


def test_repr():
    def program(T, show):
        class Lines(T.nn.Module):
            def __init__(self, extra, child=None):
                super().__init__()
                self.extra = extra
                if child is not None:
                    self.child = child

            def extra_repr(self):
                return self.extra

        for extra in ("", "one", "one\ntwo", "one\n\ntwo"):
            show(Lines(extra))
            show(Lines(extra, Lines("inner\nlines")))
            show(T.nn.Sequential(Lines(extra), T.nn.ModuleList([Lines(extra)] * 3)))
        show(T.nn.Module(), T.nn.Sequential(), T.nn.ModuleList(), T.nn.ModuleDict(), T.nn.ParameterList())

    same(program)


# Copies


def test_replica_for_data_parallel():
    def program(T, show):
        m = block(T)
        replica = m._replicate_for_data_parallel()
        show(list(replica._parameters), list(replica._buffers), list(replica._modules), replica._is_replica)
        replica._modules.clear()
        show(len(m._modules))
        show.warnings(replica.zero_grad)

    same(program)
