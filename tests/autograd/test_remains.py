"""What the other files of this folder leave out: refusals, what a node tells of itself, and the smaller types that tensors are made of."""

import copy
import pickle

import pytest

import readtorch
from tests.programs import same


def test_what_a_custom_function_may_not_do():
    def program(T, show):
        def make(forward, backward=lambda ctx, g: g):
            return type(
                "F", (T.autograd.Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)}
            )

        def run(forward, backward=lambda ctx, g: g, inputs=1):
            x = [T.ones(2, requires_grad=True) for _ in range(inputs)]
            y = make(forward, backward).apply(*x)
            y.sum().backward()
            show.numbers(y, *[t.grad for t in x])

        def dirty(ctx, x):
            ctx.mark_dirty(x)
            return x * 2

        def saved_number(ctx, x):
            ctx.save_for_backward(3)
            return x * 2

        def nothing_saved(ctx, x):
            return x * 2

        for extra in (1, 2):
            show.error(lambda: run(nothing_saved, lambda ctx, g: (g, *[None] * extra)))
        show.error(lambda: run(nothing_saved, lambda ctx, g: (g, g)))
        show.error(lambda: run(lambda ctx, x, y: x * y, lambda ctx, g: g, inputs=2))
        show.error(lambda: run(lambda ctx, x, y: x * y, lambda ctx, g: (g, None), inputs=2))
        show.error(lambda: run(dirty))
        show.error(lambda: run(saved_number))
        show.error(lambda: run(nothing_saved, lambda ctx, g: show(ctx.saved_tensors, ctx.needs_input_grad) or g * 2))
        show.error(lambda: run(nothing_saved, lambda ctx, g: g[:1]))
        show.error(lambda: run(nothing_saved, lambda ctx, g: g.double()))
        show.error(lambda: run(nothing_saved, lambda ctx, g: 3))
        show.error(lambda: run(nothing_saved, lambda ctx, g: None))
        show(
            make(lambda ctx, x: 3).apply(T.ones(1, requires_grad=True)), make(lambda ctx, x: (3, "a")).apply(T.ones(1))
        )

        class WithoutBackward(T.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

        show.error(lambda: WithoutBackward.apply(T.ones(1, requires_grad=True)).backward())

    same(program)


def test_what_is_kept_for_backward_and_refused_afterwards():
    def program(T, show):
        x = T.ones(2, requires_grad=True)
        y = x.exp()
        z = y * y
        z.sum().backward()
        show.error(lambda: z.grad_fn._saved_self)
        show.error(lambda: y.grad_fn._saved_result)
        show.error(lambda: z.sum().backward())
        y = x.exp()
        y.mul_(2)
        show.error(lambda: y.sum().backward())
        leaf = T.ones(2, requires_grad=True)
        z = leaf * leaf
        with T.no_grad():
            leaf.add_(1)
        show.error(lambda: z.sum().backward())
        with T.inference_mode():
            stored = T.ones(2)
        show.error(lambda: x * stored)
        show.error(lambda: stored.mul_(x))
        show.error(lambda: T.autograd.Variable._execution_engine.queue_callback(lambda: None))

        def hooks(pack, unpack):
            with T.autograd.graph.saved_tensors_hooks(pack, unpack):
                out = x.exp() * x
            out.sum().backward()

        show.error(lambda: hooks(lambda t: t.detach(), lambda t: 3))
        show.error(lambda: hooks(lambda t: 3, lambda t: T.ones(2)))
        show.error(lambda: hooks(lambda t: (t.detach(), 1), lambda pair: pair[0]))

    same(program)


def test_nodes_tell():
    def program(T, show):
        x = T.ones(2, requires_grad=True)
        y = x.exp()
        a, b = (y * 1).split(1)
        node = y.grad_fn
        show(
            type(repr(node)).__name__,
            repr(node).split(" at ")[0],
            node.name(),
            a.grad_fn.next_functions[0][1],
            b.output_nr,
            node.next_functions[0][1],
        )
        show(node._sequence_nr() < a.grad_fn._sequence_nr(), type(node._sequence_nr()).__name__)
        show(
            node.next_functions[0][0].variable is x,
            node.metadata,
            T.empty(0).data_ptr(),
            x.name,
            x.grad_fn,
            x.is_leaf,
            y.is_leaf,
            y.retains_grad,
        )
        show((x * T.ones(2)).grad_fn.next_functions[1], (T.ones(2) * x).grad_fn.next_functions[0])
        show.error(lambda: y.requires_grad_(False))
        show.error(lambda: setattr(y, "requires_grad", False))
        show.error(lambda: y.requires_grad_(True))
        show.error(lambda: T.tensor([1]).requires_grad_())
        show.error(lambda: T.ones(1).retain_grad())
        y.retain_grad()
        y.retain_grad()
        x.retain_grad()
        y.sum().backward()
        show(y.grad, x.grad, x.retains_grad, y.retains_grad)
        show.error(lambda: setattr(x, "grad", T.ones(3)))
        show.error(lambda: setattr(x, "grad", T.ones(2).double()))
        show.error(lambda: setattr(x, "grad", 3))
        show.error(lambda: setattr(x, "grad", x))
        show.error(lambda: x.backward())
        show.error(lambda: T.ones(1).backward())
        show.error(lambda: x.sum().backward(T.ones(2)))
        show.error(lambda: T.autograd.backward([x.sum()], [T.ones(()), T.ones(())]))
        show.error(lambda: T.autograd.grad(x.sum(), T.ones(1, requires_grad=True)))
        show(
            T.autograd.grad(x.sum(), T.ones(1, requires_grad=True), allow_unused=True),
            T.autograd.grad(x.sum(), T.ones(1, requires_grad=True), materialize_grads=True),
        )
        show.error(lambda: T.autograd.grad(x.sum(), T.ones(1)))
        show.error(lambda: x.view(2).detach_())
        show.error(lambda: x.mul_(2))
        show.error(lambda: x[:1].mul_(2))
        show.error(lambda: x.data.sum().backward())

    same(program)


def test_gradients_are_added_up_in_place_or_not():
    def program(T, show):
        for create_graph in (False, True):
            x = T.ones(2, requires_grad=True)
            (x * 2).sum().backward(create_graph=create_graph)
            first = x.grad
            (x * x).sum().backward(create_graph=create_graph)
            show(first is x.grad, first.tolist(), x.grad.tolist(), x.grad.requires_grad)
            x = T.ones(2, requires_grad=True)
            x.expand(3, 2).sum().backward()
            show(x.grad.stride(), x.grad.is_contiguous())
            given = T.ones(2)
            x = T.ones(2, requires_grad=True)
            x.backward(given)
            show(x.grad is given, x.grad.data_ptr() == given.data_ptr())
            whole = T.ones(4)
            x = T.ones(2, requires_grad=True)
            x.backward(whole[:2])
            show(x.grad.data_ptr() == whole.data_ptr())

    same(program)


def test_anomalies_are_traced_to_their_origin():
    def program(T, show):
        x = T.tensor([-1.0], requires_grad=True)
        y = x.sqrt()
        with T.autograd.set_detect_anomaly(True):
            show.error(lambda: (y * 1).sum().backward())
        y = x.sqrt()
        with T.autograd.set_detect_anomaly(True, check_nan=False):
            y.sum().backward()
        show(x.grad)

    same(program)


def test_devices_sizes_layouts_and_the_default_dtype():
    def program(T, show):
        for arguments in (("x",), ("cpu:x",), ("cpu:-1",), ("cpu:0", 0), ("",), ("cpu:01",)):
            show.error(lambda: T.device(*arguments))
        show(
            T.device("cuda", 1),
            T.device("cpu") == "cpu",
            T.device("cuda:1").index,
            hash(T.device("cpu")) == hash(T.device("cpu")),
        )
        show.error(lambda: setattr(T.device("cpu"), "index", 3))
        size = T.Size([2, 3])
        show(
            size + (4,),
            type(size + (4,)).__name__,
            size * 2,
            type(size * 2).__name__,
            2 * size,
            size[1:],
            type(size[1:]).__name__,
            size.numel(),
        )
        for constant in (
            T.strided,
            T.sparse_coo,
            T.channels_last,
            T.contiguous_format,
            T.preserve_format,
            T.float32,
            T.bfloat16,
        ):
            show(
                pickle.loads(pickle.dumps(constant)) is constant,
                copy.deepcopy(constant) is constant,
                repr(constant),
                constant == T.strided,
            )
        for wrong in (T.int64, T.complex64):
            show.error(lambda: T.set_default_dtype(wrong))
        show(T.get_default_dtype())
        show.error(lambda: T.promote_types(T.float8_e5m2, T.float32))
        show.error(lambda: T.promote_types(T.float8_e5m2, T.float8_e4m3fn))
        for wrong in (
            lambda: T.tensor(1.0).sum(1),
            lambda: T.tensor(1.0).sum(-2),
            lambda: T.tensor(1.0).squeeze(1),
            lambda: T.tensor(1.0).size(0),
            lambda: T.ones(2).size(1),
            lambda: T.ones(2).stride(1),
            lambda: T.ones(1, 2, 2).to(memory_format=T.channels_last),
            lambda: T.empty(2, memory_format=T.channels_last),
            lambda: T.ones(2).contiguous(memory_format=T.preserve_format),
            lambda: T.empty_like(T.ones(2, 3), memory_format=T.channels_last_3d),
        ):
            show.error(wrong)
        show(
            T.tensor(1.0).sum(0),
            T.tensor(1.0).sum(-1),
            T.empty_like(T.ones(2, 3, 4, 5).permute(0, 2, 3, 1)).stride(),
            T.zeros_like(T.ones(2, 3).expand(4, 2, 3)).stride(),
        )

    same(program)


def test_a_generator_s_state():
    def program(T, show):
        generator = T.Generator()
        show(generator.initial_seed(), generator.device, generator.get_state().shape, generator.get_state().dtype)
        generator.manual_seed(5)
        for dtype in (T.float32, T.float64):
            for size in (1, 3, 15, 16, 17):
                generator.manual_seed(5)
                T.randn(size, generator=generator, dtype=dtype)
                state = generator.get_state()
                first = (
                    T.randn(3, generator=generator, dtype=dtype),
                    T.rand(2, generator=generator),
                    T.randint(0, 9, (3,), generator=generator),
                )
                generator.set_state(state)
                again = (
                    T.randn(3, generator=generator, dtype=dtype),
                    T.rand(2, generator=generator),
                    T.randint(0, 9, (3,), generator=generator),
                )
                show([bool((a == b).all()) for a, b in zip(first, again)])
                show.numbers(*first)
        for wrong in (T.zeros(3, dtype=T.uint8), T.zeros(5056), 3, T.zeros(5056, dtype=T.uint8)):
            show.error(lambda: generator.set_state(wrong))
        show.error(lambda: generator.manual_seed("a"))
        show.error(lambda: generator.manual_seed(1 << 70))
        show(generator.manual_seed(-1).initial_seed(), generator.clone_state().initial_seed())
        show.error(lambda: T.Generator("x"))

    same(program)


def test_every_state_of_the_engine_within_and_without_its_bounds():
    """Where in its 624 words a generator stands is believed if it can be; the numbers go on from there."""
    import numpy as np

    def program(T, show):
        generator = T.Generator()
        fresh = generator.manual_seed(3).get_state()
        fields = fresh.numpy().view(np.uint8).copy()
        for left in (-1, 0, 1, 2, 300, 623, 624, 625, 1 << 20):
            for position in (0, 1, 2, 324, 325, 622, 623, 624, 625):
                for seeded in (0, 1):
                    changed = fields.copy()
                    for offset, number in ((8, left), (12, seeded), (16, position)):
                        changed[offset : offset + 4] = np.array([number], np.int32).view(np.uint8)
                    if left + position not in (625, 1) and 0 < left <= 624 and position <= 624 and seeded:
                        continue  # PyTorch believes it, and reads beyond its words

                    def go_on():
                        generator.set_state(T.from_numpy(changed.copy()))
                        show(left, position, T.randint(1 << 30, (3,), generator=generator).tolist())

                    show.error(go_on)

    same(program)


def test_every_number_of_draws_and_the_state_after_it():
    def program(T, show):
        for count in (0, 1, 2, 311, 312, 313, 622, 623, 624, 625, 1248, 1249):
            generator = T.Generator().manual_seed(count)
            T.randint(9, (count,), generator=generator)
            state = generator.get_state()
            show(count, state[:24].tolist(), T.rand(3, generator=generator).tolist())
            other = T.Generator()
            other.set_state(state)
            show(
                T.rand(3, generator=other).tolist(),
                other.initial_seed(),
                T.Generator().manual_seed(-count - 1).initial_seed(),
            )

    same(program)


def test_data_that_was_put_in_is_used():
    def program(T, show):
        x = T.ones(2, requires_grad=True)
        x.data = T.tensor([2.0, 3.0, 4.0])
        y = (x * x).sum()
        y.backward()
        show(
            y,
            x,
            x.device,
            x.grad,
            x.relu_().shape if not x.requires_grad else None,
            x.data_ptr() == x.detach().data_ptr(),
        )
        z = T.ones(2)
        z.data = T.arange(6).reshape(2, 3).t()
        z.add_(1)
        show(z, z + 1, z.dtype, z.stride(), z.storage_offset(), z.untyped_storage().nbytes(), z._version)
        for wrong in (3, None, T.ones(2, dtype=T.int64)):
            show.error(lambda: setattr(x, "data", wrong))

    same(program)


def test_what_operators_on_lists_return():
    def program(T, show):
        for name, arguments in (("add", (1.0,)), ("mul", (2.0,)), ("abs", ()), ("sqrt", ()), ("zero", ()), ("neg", ())):
            xs = [T.ones(2), T.ones(1)]
            if name != "zero":
                show(getattr(T, f"_foreach_{name}")(xs, *arguments))
            show(getattr(T, f"_foreach_{name}_")(xs, *arguments) is xs or name, xs)
            overload = {"add": "Scalar", "mul": "Scalar"}.get(name, "default")
            show(getattr(getattr(T.ops.aten, f"_foreach_{name}_"), overload)(xs, *arguments))

    same(program)


def test_hooks_of_what_is_kept():
    def program(T, show):
        leaf = T.ones(2, requires_grad=True)
        with T.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            z, w = leaf * leaf, leaf.exp()
        show(T.autograd.grad(w.sum(), leaf, retain_graph=True))
        z.sum().backward()
        w.sum().backward()
        show(leaf.grad)
        show.error(lambda: w.sum().backward())
        x = T.ones(2, requires_grad=True)
        y = x.exp() * x
        y.grad_fn._raw_saved_self.register_hooks(lambda t: t * 2, lambda t: t + 1)
        show.error(lambda: y.grad_fn._raw_saved_self.register_hooks(lambda t: t, lambda t: t))
        y.sum().backward()
        show(x.grad)
        kept = (x * x).grad_fn
        raw = kept._raw_saved_self
        show.error(lambda: raw.register_hooks(lambda: 1, lambda t: t))

    same(program)


def test_uses_are_logged_once_if_that_is_asked_for(monkeypatch, capfd):
    readtorch._C._log_api_usage_once("tests.not_asked")
    monkeypatch.setenv("PYTORCH_API_USAGE_STDERR", "1")
    for event in ("tests.a", "tests.b", "tests.a"):
        readtorch._C._log_api_usage_once(event)
    assert [line.split()[-1] for line in capfd.readouterr().err.splitlines()] == ["tests.a", "tests.b"]
    with pytest.raises(TypeError):
        readtorch._C._log_api_usage_once(3)


def test_outputs_that_nobody_used_have_zeros_on_their_device():
    readtorch.cuda.simulate(1, "16MiB", kernels=True)
    try:
        seen = []

        class Two(readtorch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2, x.double() * 3

            @staticmethod
            def backward(ctx, first, second):
                seen.append([(str(g.device), g.dtype, g.tolist()) for g in (first, second)])
                return first

        for place in ("cpu", "cuda"):
            x = readtorch.ones(2, device=place, requires_grad=True)
            Two.apply(x)[0].sum().backward()
            assert x.grad.tolist() == [1.0, 1.0] and x.grad.device == x.device
        assert seen == [
            [(place, readtorch.float32, [1.0, 1.0]), (place, readtorch.float64, [0.0, 0.0])]
            for place in ("cpu", "cuda:0")
        ]
    finally:
        x = place = None
        readtorch.cuda.simulate(0)


def test_slices_in_a_trace_hold_for_other_sizes():
    def program(T, show):
        def function(x):
            return x[0:3], x[:, 0:2], x[:], x[0:3, 1]

        traced = T.jit.trace(function, T.arange(6.0).reshape(3, 2))
        show(*traced(T.arange(20.0).reshape(5, 4)))
        show(*function(T.arange(6.0).reshape(3, 2)))

    same(program)


def test_the_names_of_a_tensor_s_keys():
    from readtorch.c10 import dispatch_key

    everything = dispatch_key.BY_PRIORITY
    assert dispatch_key.key_names(dispatch_key.FACTS)[:2] == ["CopyOnWrite", "NoStorage"]
    for chosen in ([], everything[:1], everything[::2], everything[1::2], everything):
        assert dispatch_key.key_names(sum(chosen)) == [dispatch_key.NAMES[key] for key in chosen]


def test_gradients_more_than_inputs():
    def program(T, show):
        def function(*extra):
            class F(T.autograd.Function):
                @staticmethod
                def forward(ctx, x, n):
                    return x * n

                @staticmethod
                def backward(ctx, g):
                    return (g * 2, None, *extra)

            return F

        for extra in ((), (None,), (None, None), (1,), (None, T.ones(2))):
            x = T.ones(2, requires_grad=True)
            show.error(lambda: function(*extra).apply(x, 3).sum().backward())
            show(x.grad)

        class Short(function()):
            @staticmethod
            def backward(ctx, g):
                return g

        show.error(lambda: Short.apply(T.ones(2, requires_grad=True), 3).sum().backward())

    same(program)


def test_hooks_where_no_gradient_comes():
    """Of several outputs only one is used: hooks and retain_grad of the others are not called."""

    def program(T, show):
        x = T.arange(6.0).reshape(3, 2).requires_grad_()
        for keep in (0, 1, 2):
            parts = (x * 2).unbind(0)
            values, places = (x * 2).max(0)
            for i, part in enumerate((*parts, values)):
                part.register_hook(lambda g, i=i: show("hook", i, g))
                part.retain_grad()
            (parts[keep] * 3).sum().backward()
            show([p.grad for p in parts], values.grad, x.grad)

        class Two(T.autograd.Function):
            @staticmethod
            def forward(ctx, a, b):
                ctx.set_materialize_grads(False)
                return a * 1, b * 1

            @staticmethod
            def backward(ctx, *grads):
                show(grads)
                return grads

        for used in (0, 1):
            a, b = T.ones(2, requires_grad=True), T.ones(2, requires_grad=True)
            results = Two.apply(a, b)
            for i, result in enumerate(results):
                result.register_hook(lambda g, i=i: show("hook", i, g))
                result.retain_grad()
            results[used].sum().backward()
            show(a.grad, b.grad, [r.grad for r in results])

    same(program)


def test_nodes_called_by_hand():
    def program(T, show):
        x = T.ones(2, requires_grad=True)
        y = x.exp()
        show(y.grad_fn(T.full((2,), 3.0)), x.grad)
        show((x * T.ones(2)).grad_fn(T.ones(2)))
        show(x.unbind()[0].grad_fn.name(), y.grad_fn.name())
        hooks = {0: lambda g: (g[0] * 10,)}
        y = x * 2
        y.grad_fn.register_prehook(hooks[0])
        y.sum().backward()
        show(x.grad)

    same(program)


def test_saved_tensors_of_custom_functions():
    """None among them, none at all, after they were freed, raw; and a function without a backward."""

    def program(T, show):
        class F(T.autograd.Function):
            @staticmethod
            def forward(ctx, x, how):
                if how == "mixed":
                    ctx.save_for_backward(x, None, x * 2)
                elif how == "empty":
                    ctx.save_for_backward()
                return x * 2

            @staticmethod
            def backward(ctx, g):
                show([None if t is None else t.tolist() for t in ctx.saved_tensors])
                return g, None

        class Bare(T.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

        for how in ("mixed", "empty", "nothing"):
            x = T.ones(2, requires_grad=True)
            y = F.apply(x, how)
            show(len(y.grad_fn._raw_saved_tensors) if how == "mixed" else how, len(y.grad_fn.saved_tensors))
            with T.autograd.graph.saved_tensors_hooks(lambda t: show("pack", t.tolist()) or t, lambda t: t):
                z = F.apply(x, how)
            (y + z).sum().backward()
            show.error(lambda: y.grad_fn.saved_tensors)
            show.error(lambda: y.sum().backward())
            show(x.grad)
        show.error(lambda: Bare.apply(T.ones(2, requires_grad=True)).sum().backward())

    same(program)


def test_what_a_graph_does_not_know():
    def program(T, show):
        x = T.ones(2, requires_grad=True)
        y = x * 2
        for t in (x, y, y.detach()):
            for flag in (True, False):
                show.error(lambda t=t, flag=flag: setattr(t, "requires_grad", flag))
                show(t.requires_grad)
        show(x.name, y.name)
        with T.autograd.set_detect_anomaly(True):
            z = T.ones(2, requires_grad=True).exp()
            w = z * z
            z.detach().mul_(2)
            show.error(lambda: show.warnings(lambda: w.sum().backward()))
        with T.inference_mode():
            inferred = T.ones(2)
            show(
                inferred[0].is_inference(),
                [t.is_inference() for t in inferred.unbind()],
                inferred.view(1, 2).is_inference(),
            )
        show.error(lambda: inferred * x)
        show.error(lambda: T.ones(2, requires_grad=True).exp().mul(inferred))

    same(program)


def test_indices_of_other_types():
    import datetime

    import numpy as np

    class Three:
        def __index__(self):
            return 3

    class Nothing:
        pass

    def program(T, show):
        x = T.arange(12).reshape(3, 4)
        for index in (
            slice(Three()),
            slice(np.int64(1), Three()),
            slice(None, None, np.int32(2)),
            (slice(None), slice(Three(), None)),
            np.int64(2),
            T.tensor(1),
            (T.tensor(1), slice(T.tensor(1), T.tensor(3))),
        ):
            show(x[index])
        for index in (
            Nothing(),
            datetime.timedelta(1),
            {},
            object,
            1.5,
            "x",
            3,
            (0, 4),
            (0, 0, 0),
            -4,
            slice(0, 2, 0),
            slice(0, 2, -1),
            None and 0,
        ):
            show.error(lambda: x[index])
        show.error(lambda: T.tensor(1)[0])
        show.error(lambda: T.tensor(1)[(0, 0)])

    same(program)
