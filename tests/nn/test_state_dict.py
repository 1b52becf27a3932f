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
        for change in (
            {"mean": T.zeros(2)},
            {"other": 1},
            {"child.x.y": T.zeros(1)},
            {"child2.x": T.zeros(1)},
            {"mean": 3},
            {"hidden": T.zeros(1)},
            {"none": T.zeros(1)},
            {"child.weight": "text"},
            {"mean": T.zeros(())},
            {"_extra_state": 3},
            {"child._extra_state": 3},
        ):
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


# Details of loading


def test_order_of_hooks_in_a_tree():
    def program(T, show):
        net = T.nn.Sequential(T.nn.Linear(1, 1), T.nn.Sequential(T.nn.Linear(1, 1)))
        for name, module in net.named_modules():
            module.register_state_dict_pre_hook(lambda m, prefix, keep, n=name: show("pre", n, prefix))
            module.register_state_dict_post_hook(lambda m, sd, prefix, meta, n=name: show("post", n, list(sd)))
            module.register_load_state_dict_pre_hook(
                lambda m, sd, prefix, *rest, n=name: show("load pre", n, list(sd), rest)
            )
            module.register_load_state_dict_post_hook(lambda m, keys, n=name: show("load post", n, keys))
        state = net.state_dict()
        del state["1.0.bias"]
        state["1.0.more"] = state["nobody"] = 3
        show.error(lambda: net.load_state_dict(state))

    same(program)


def test_a_post_hook_can_excuse_what_is_missing():
    def program(T, show):
        net = T.nn.Sequential(T.nn.Linear(1, 1))
        net.register_load_state_dict_post_hook(lambda m, keys: keys.missing_keys.clear())
        show(net.load_state_dict({}))
        net.register_load_state_dict_post_hook(lambda m, keys: keys.unexpected_keys.append("more"))
        show.error(lambda: net.load_state_dict({}))

    same(program)


def test_what_cannot_be_copied():
    def program(T, show):
        m = T.nn.Module()
        m.register_buffer("wide", T.zeros(1).expand(3))
        m.register_buffer("number", T.zeros((), dtype=T.int64))
        m.p = T.nn.Parameter(T.zeros(2))
        state = {"wide": T.ones(3), "number": T.tensor([2.9]), "p": T.ones(2, dtype=T.bool)}
        show.error(lambda: m.load_state_dict(state))
        show(m.number, m.p)
        show.error(lambda: m.load_state_dict({**state, "p": T.ones(3), "x": 1}, strict=False))
        show.error(lambda: m.load_state_dict({**state, "p": [1.0, 2.0]}, strict=False))
        show.error(lambda: m.load_state_dict({"wide": T.ones(3), "p": T.ones(2, dtype=T.int64)}, assign=True))
        show(m.wide, m.p, m.p.dtype)

    same(program)


def test_assigned_again_by_the_same_metadata():
    """`assign` leaves a note in the dictionary's metadata, so that the next load assigns, too."""

    def program(T, show):
        state = T.nn.Linear(1, 1).state_dict()
        T.nn.Linear(1, 1).load_state_dict(state, assign=True)
        show(state._metadata)
        m = T.nn.Linear(1, 1)
        m.load_state_dict(state)
        show(m.weight.data_ptr() == state["weight"].data_ptr())

    same(program)


def test_tied_weights():
    def program(T, show):
        def tied():
            net = T.nn.Sequential(T.nn.Linear(2, 2, bias=False), T.nn.Linear(2, 2, bias=False))
            net[1].weight = net[0].weight
            return net

        state = {"0.weight": T.ones(2, 2), "1.weight": T.full((2, 2), 2.0)}
        for options in ({}, {"assign": True}):
            net = tied()
            show(net.load_state_dict(state, **options), net[0].weight is net[1].weight, net[0].weight, net[1].weight)
            show(list(net.state_dict()), len(list(net.parameters())))

    same(program)


def test_own_saving_and_loading():
    def program(T, show):
        class Packed(T.nn.Linear):
            _version = 3

            def _save_to_state_dict(self, destination, prefix, keep_vars):
                destination[prefix + "all"] = T.cat([self.weight.detach().flatten(), self.bias.detach()])

            def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing, unexpected, errors):
                show(prefix, local_metadata, strict, list(state_dict))
                packed = state_dict.pop(prefix + "all")
                if local_metadata.get("version", 1) < 3:
                    errors.append("too old")
                state_dict[prefix + "weight"] = packed[:2].reshape(1, 2)
                state_dict[prefix + "bias"] = packed[2:]
                super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, missing, unexpected, errors)

        net = T.nn.Sequential(Packed(2, 1))
        state = net.state_dict()
        show(list(state), state._metadata)
        show(net.load_state_dict(state))
        show.error(lambda: net.load_state_dict(dict(state)))
        show.error(lambda: net.load_state_dict({}))

    same(program)


# Dictionaries and modules of older versions


def test_batch_norm_before_it_counted_batches():
    def program(T, show):
        for version in (None, 1, 2):
            for track in (True, False):
                m = T.nn.Sequential(T.nn.BatchNorm1d(2, track_running_stats=track))
                if track:
                    m[0].num_batches_tracked.fill_(5)
                state = T.nn.Sequential(T.nn.BatchNorm1d(2, track_running_stats=track)).state_dict()
                state._metadata["0"] = {} if version is None else {"version": version}
                state.pop("0.num_batches_tracked", None)
                show.error(lambda: show(m.load_state_dict(state)))
                show(m[0].num_batches_tracked)

    same(program)


def test_instance_norm_before_it_stopped_tracking():
    def program(T, show):
        state = T.nn.BatchNorm1d(2, affine=False).state_dict()
        for metadata in ({}, {"": {"version": 1}}, {"": {"version": 2}}, None):
            old = type(state)(state)
            if metadata is not None:
                old._metadata = metadata
            show.error(lambda: T.nn.InstanceNorm1d(2).load_state_dict(old))
            show.error(lambda: show(T.nn.InstanceNorm1d(2, track_running_stats=True).load_state_dict(old)))

    same(program)


def test_modules_without_what_was_added_later():
    def program(T, show):
        nn = T.nn
        for module, name in (
            (nn.MultiheadAttention(2, 1), "_qkv_same_embed_dim"),
            (nn.Conv2d(1, 1, 1), "padding_mode"),
            (nn.Softmax(0), "dim"),
            (nn.Softmin(0), "dim"),
            (nn.LogSoftmax(0), "dim"),
            (nn.Upsample(2), "recompute_scale_factor"),
            (nn.TransformerEncoderLayer(2, 1, 2), "activation"),
            (nn.TransformerDecoderLayer(2, 1, 2), "activation"),
            (nn.LSTM(1, 1), "proj_size"),
            (nn.FractionalMaxPool2d(1, output_size=1), "return_indices"),
            (nn.MaxPool2d(1), "padding"),
            (nn.ReLU(), "_non_persistent_buffers_set"),
            (nn.ReLU(), "_backward_pre_hooks"),
        ):
            state = module.__getstate__()
            state.pop(name, None)
            old = type(module).__new__(type(module))
            show.error(lambda: old.__setstate__(state))
            value = getattr(old, name, "none")
            show(
                type(module).__name__,
                name,
                getattr(value, "__name__", value),
                sorted(set(module.__dict__) - set(old.__dict__)),
            )

    same(program)
