"""`state_dict` and `load_state_dict` next to the reference: names, hooks, what is copied, every complaint."""
from tests.programs import same


def test_state_dict_shares_memory():
    def program(T, show):
        m = T.nn.Linear(1, 1)
        state = m.state_dict()
        state["weight"].fill_(7.0)
        show(m.weight, state["weight"].requires_grad, m.state_dict(keep_vars=True)["weight"] is m.weight)
        show(list(m.state_dict(prefix="a.b.")), m.state_dict(prefix="a.")._metadata)
        mine = {}
        show(m.state_dict(destination=mine) is mine, list(mine), hasattr(mine, "_metadata"))
        show.warnings(lambda: show(list(m.state_dict({}, "p."))))

    same(program)


def test_load_state_dict():
    def program(T, show):
        def stats():
            m = T.nn.Module()
            m.register_buffer("mean", T.zeros(1))
            m.register_buffer("hidden", T.zeros(1), persistent=False)
            m.register_buffer("none", None)
            m.child = T.nn.Linear(2, 2)
            return m

        good = stats().state_dict()
        show(stats().load_state_dict(good))
        for change in ({"mean": T.zeros(2)}, {"other": 1}, {"child.x.y": T.zeros(1)}, {"child2.x": T.zeros(1)},
                       {"mean": 3}, {"hidden": T.zeros(1)}, {"none": T.zeros(1)}, {"child.weight": "text"},
                       {"mean": T.zeros(())}, {"_extra_state": 3}, {"child._extra_state": 3}):
            show.error(lambda: stats().load_state_dict({**good, **change}))
            show.error(lambda: show(stats().load_state_dict({**good, **change}, strict=False)))
        missing = {k: v for k, v in good.items() if k not in ("mean", "child.bias")}
        show.error(lambda: stats().load_state_dict(missing))
        show(stats().load_state_dict(missing, strict=False))
        show.error(lambda: stats().load_state_dict({**missing, "x": 1, "mean": T.zeros(3)}))
        for bad in (3, None, [1], "text"):
            show.error(lambda: stats().load_state_dict(bad))

        scalar = T.nn.Module()
        scalar.p = T.nn.Parameter(T.zeros(()))
        show(scalar.load_state_dict({"p": T.ones(1)}), scalar.p)

    same(program)


def test_load_assign():
    def program(T, show):
        m, other = T.nn.Linear(2, 2), T.nn.Linear(2, 2)
        state = {k: v.double() for k, v in other.state_dict().items()}
        m.weight.requires_grad_(False)
        m.load_state_dict(state, assign=True)
        show(m.weight.dtype, m.weight.requires_grad, m.bias.requires_grad, type(m.weight).__name__)
        show(m.weight.data_ptr() == state["weight"].data_ptr())
        own = {k: T.nn.Parameter(v) for k, v in state.items()}
        m.load_state_dict(own, assign=True)
        show(m.weight is own["weight"], m.bias is own["bias"], m.weight.requires_grad)

    same(program)


def test_extra_state():
    def program(T, show):
        class Extra(T.nn.Module):
            def get_extra_state(self):
                return {"a": 3}

            def set_extra_state(self, state):
                show("set", state)

        m = T.nn.Sequential(Extra(), T.nn.ReLU())
        show(m.state_dict())
        show(m.load_state_dict(m.state_dict()))
        show.error(lambda: m.load_state_dict({}))
        show.error(lambda: T.nn.ReLU().get_extra_state())
        show.error(lambda: T.nn.ReLU().set_extra_state(3))

    same(program)


def test_state_dict_hooks():
    def program(T, show):
        m = T.nn.Sequential(T.nn.Linear(1, 1), T.nn.Linear(1, 1))
        inner = m[0]

        def rename(module, state_dict, prefix, metadata):
            show("post", prefix, list(state_dict), metadata)
            state_dict[prefix + "extra"] = T.zeros(1)

        def drop(module, state_dict, prefix, metadata, strict, missing, unexpected, errors):
            show("load pre", prefix, strict, metadata)
            state_dict.pop(prefix + "extra", None)

        handles = [
            inner.register_state_dict_pre_hook(lambda mod, prefix, keep: show("pre", prefix, keep)),
            inner.register_state_dict_post_hook(rename),
            inner.register_load_state_dict_pre_hook(drop),
            inner.register_load_state_dict_post_hook(lambda mod, keys: show("load post", type(mod).__name__, keys)),
            inner._register_load_state_dict_pre_hook(lambda *args: show("no module", len(args))),
        ]
        state = m.state_dict()
        show(list(state))
        show(m.load_state_dict(state))
        show.error(lambda: inner._register_state_dict_hook(rename))
        for h in handles:
            h.remove()
        show(list(m.state_dict()))
        m._register_state_dict_hook(lambda mod, sd, prefix, meta: {"other": 1})
        show(m.state_dict())
        inner.register_state_dict_post_hook(lambda *args: {})
        show.error(lambda: m.state_dict())
        inner.register_load_state_dict_post_hook(lambda *args: {})
        show.error(lambda: m.load_state_dict(state, strict=False))

    same(program)
