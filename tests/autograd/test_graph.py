"""torch.autograd.graph and the arguments of backward and grad: edges, hooks on several tensors and on what is saved, errors."""

import collections

import readtorch
from tests.programs import same


def leaf(T, *values):
    return T.tensor(values, dtype=T.float64, requires_grad=True)


def test_public_names():
    import torch

    for name in ("graph", "functional", "grad_mode", "anomaly_mode", "function", "variable"):
        theirs = __import__(f"torch.autograd.{name}", fromlist=["x"])
        ours = __import__(f"readtorch.autograd.{name}", fromlist=["x"])
        if hasattr(theirs, "__all__"):
            assert set(ours.__all__) == set(theirs.__all__), name
            assert not [n for n in ours.__all__ if not hasattr(ours, n)]
    assert set(readtorch.autograd.__all__) == set(torch.autograd.__all__)


def test_gradient_edges_as_roots_and_inputs():
    def program(T, show):
        E, backward, grad = T.autograd.graph.get_gradient_edge, T.autograd.backward, T.autograd.grad
        x = leaf(T, 1.0, 2.0)
        y = x * 3
        show(grad((y * y).sum(), [E(y), E(x), x]))
        y = x * 3
        show(grad(E(y), x, T.ones(2, dtype=T.float64)), grad([E((x * 2).sum())], x))
        backward(E((x * 4).sum()), inputs=E(x))
        show(x.grad)
        backward([E((x * 4).sum()), x.sum()])
        show(x.grad)
        a, b = (x * 2).split(1)
        show(grad((a + b * 3).sum(), [E(a), E(b)]), E(b).output_nr, E(x).node.name(), E(x).ownership_token)
        show.error(lambda: grad(E(x * 2), x))
        show.error(lambda: grad(E(x * 2), x, T.ones(3)))
        show.error(lambda: grad(E(x * 2), x, T.ones(2, dtype=T.complex64)))
        show.error(lambda: grad(E((x * 2j).sum()), x))
        show.error(lambda: grad(x.sum(), T.autograd.graph.GradientEdge(None, 0)))
        show.error(lambda: grad(x.sum(), E(leaf(T, 1.0)), materialize_grads=True))
        show.error(lambda: grad(E(x * 2), x, T.ones(3, 3), is_grads_batched=True))
        show(isinstance(E(x).node, T.autograd.graph.Node), issubclass(type(E(y).node), T.autograd.graph.Node))
        show.error(lambda: T.autograd.graph.Node())
        show(isinstance(3, T.autograd.graph.Node))

    same(program)


def test_forms_of_backward_and_grad():
    def program(T, show):
        backward, grad = T.autograd.backward, T.autograd.grad
        x, w = leaf(T, 1.0, 2.0), leaf(T, 3.0)
        one = T.ones((), dtype=T.float64)
        y = lambda: (x * 2).sum()
        show.error(lambda: backward([], []))
        show.error(lambda: backward([y()], []))
        show.error(lambda: backward([y()], [None, None]))
        show.error(lambda: backward([y(), 3]))
        show.error(lambda: backward(3))
        show.error(lambda: backward(y(), inputs=[]))
        for inputs in ([], {}, [3], [None], collections.UserDict(a=x), T.ones(1), 3):
            show.error(lambda: grad(y(), inputs))
            show.error(lambda: backward(y(), inputs=inputs))
        show(grad(y(), {"a": x}), grad(y(), (x, x)), grad((y(), y() * 3), (x,), (one, None)))
        show(grad(y(), w, allow_unused=True), grad(y(), w, materialize_grads=True))
        show(grad(y(), w, materialize_grads=True, create_graph=True))
        show.error(lambda: grad(y(), w))
        show.error(lambda: grad(y(), w, allow_unused=False, materialize_grads=True))
        for vector in (3, "a", ["a"], T.ones(1), T.ones((), dtype=T.complex64), T.ones((), dtype=T.int64)):
            show.error(lambda: grad(y(), x, vector))
        show.error(lambda: grad(x * 2j, x, T.ones(2)))
        show.error(lambda: backward([y(), T.ones(())], [None, T.ones(())]))
        show.error(lambda: backward(T.ones(2, dtype=T.int64)))
        show.warnings(lambda: backward(y(), grad_variables=one))
        show.error(lambda: backward(y(), one, grad_variables=one))
        show.warnings(lambda: grad(y(), x, only_inputs=False))
        backward(iter([y()]), iter([one]), inputs=iter([x]))
        show(x.grad)
        h = x * 2
        backward((h * h).sum(), inputs={"h": h, "w": w})
        show(h.grad, w.grad)
        show(T.autograd.Variable(T.ones(2), True), isinstance(x, T.autograd.Variable), T.autograd.Variable())
        show.error(lambda: T.autograd.Variable(3))
        show.error(lambda: T.autograd.Variable(x, True, True))
        show.error(lambda: T.autograd.variable(3))

    same(program)


def test_batched_gradients():
    def program(T, show):
        grad = T.autograd.grad
        x, w = leaf(T, 1.0, 2.0), leaf(T, 3.0)
        v = T.tensor([[1.0, 0.0], [0.0, 1.0], [2.0, 3.0]], dtype=T.float64)
        show(grad(x * x, x, v, is_grads_batched=True))
        show(grad((x * x, x.exp() * w), (x, w), (v, v), is_grads_batched=True))
        show(grad(x * x, (x, w), v, is_grads_batched=True, allow_unused=True))
        show(grad(x * x, (x, w), v, is_grads_batched=True, materialize_grads=True))
        show.error(lambda: grad(x * x, (x, w), v, is_grads_batched=True))
        show.error(lambda: grad(x * x, x, T.ones(3, 4, 2), is_grads_batched=True))

    same(program)


def test_increment_version():
    def program(T, show):
        increment = T.autograd.graph.increment_version
        a, b = T.ones(2), T.ones(3)
        increment(a), increment([a, b]), increment(t for t in (a[:1], b))
        with T.inference_mode():
            still = T.ones(2)
        increment([a, still])
        show(a._version, b._version)
        for wrong in ([3], None, 3, "ab"):
            show.error(lambda: increment(wrong))
        x = leaf(T, 1.0)
        y = x * x
        increment(x)
        show.error(lambda: y.backward())

    same(program)


def test_multi_grad_hooks_wait_for_what_a_backward_reaches():
    def program(T, show):
        for mode in ("all", "any"):
            a, b = leaf(T, 1.0), leaf(T, 2.0)
            c, d = a * b, a + b
            seen = lambda grads, mode=mode: show(mode, grads)
            handle = T.autograd.graph.register_multi_grad_hook((a, b, c, d), seen, mode=mode)
            c.sum().backward(retain_graph=True)
            c.sum().backward(inputs=(a,), retain_graph=True)
            (c + d).sum().backward(retain_graph=True)
            show.error(lambda: T.autograd.grad(c.sum(), (a, b), retain_graph=True))
            leaf(T, 3.0).exp().sum().backward()
            handle.remove()
            d.sum().backward()
        show.error(lambda: T.autograd.graph.register_multi_grad_hook((a,), print, mode="some"))
        show.error(lambda: T.autograd.graph.register_multi_grad_hook((T.ones(1),), print))
        T.autograd.graph.register_multi_grad_hook((T.ones(1), a), lambda g: show("one", g), mode="any")
        (a * 2).sum().backward()
        show(T._C._current_graph_task_id(), T._C._current_autograd_node())
        show.error(lambda: T._C._will_engine_execute_node(a.exp().grad_fn))
        show.error(lambda: T._C._will_engine_execute_node(3))

    same(program)


def test_nested_saved_tensor_hooks():
    def program(T, show):
        graph = T.autograd.graph

        def hooks(name):
            return graph.saved_tensors_hooks(
                lambda t: show("pack", name, t.tolist()) or (name, t.detach()),
                lambda kept: show("unpack", name, kept[0]) or kept[1],
            )

        x = leaf(T, 1.0, 2.0)
        with hooks("outer"):
            y = x * x
            with hooks("inner"):
                z = y * x
            z = z.exp()
        z.sum().backward()
        show(x.grad)

        def disabled():
            with graph.disable_saved_tensors_hooks("not here"):
                with graph.disable_saved_tensors_hooks("nor here"):
                    pass
                show(T._C._autograd._saved_tensors_hooks_is_enabled())
                with graph.save_on_cpu():
                    pass

        show.error(disabled)
        show(T._C._autograd._saved_tensors_hooks_is_enabled())

        def disabled_inside():
            with hooks("around"), graph.disable_saved_tensors_hooks("too late"):
                pass

        show.error(disabled_inside)
        with hooks("after"):
            x.exp()
        with graph.save_on_cpu(pin_memory=True):
            y = x.exp()
        show(T.autograd.grad(y.sum(), x))

        def fails():
            with graph.saved_tensors_hooks(lambda t: t / "a", lambda t: t):
                x.exp()

        show.error(fails)
        x.exp()

    same(program)


def test_writing_to_what_is_saved():
    def program(T, show):
        graph = T.autograd.graph
        with graph.allow_mutation_on_saved_tensors() as ctx:
            a = T.ones(2, 3, dtype=T.float64, requires_grad=True)
            b = a.clone()
            out = (b**2).sum()
            b.sin_()
            show(len(ctx.cloned), len(ctx.original))
            out.backward()
            show(a.grad)
            b = a.clone()
            view = b[0]
            out = (b * b).sum() + view.exp().sum()
            view.mul_(3)
            b.add_(1)
            T.exp(b.detach(), out=b.detach())
            T._foreach_mul_([b], 2)
            show(T.autograd.grad(out, a))
        show(len(ctx.cloned), len(ctx.original), len(ctx.sid_to_tid))

        def nested():
            with graph.allow_mutation_on_saved_tensors(), graph.allow_mutation_on_saved_tensors():
                pass

        show.error(nested)

        def outside():
            with graph.allow_mutation_on_saved_tensors():
                out = (a.clone() ** 2).sum()
            out.backward()

        show.error(outside)

    same(program)


def test_what_acts_on_streams_and_compiled_regions():
    def program(T, show):
        graph = T.autograd.graph
        show(graph.set_warn_on_accumulate_grad_stream_mismatch(False), graph.set_override_stale_capture_stream(False))
        graph.set_warn_on_accumulate_grad_stream_mismatch(True)
        for budget in (0.5, 3, True, "a"):
            show.error(lambda: graph.region_activation_memory_budget(budget))

    same(program)


def test_modes_of_the_thread():
    def program(T, show):
        autograd = T.autograd
        show(autograd.is_multithreading_enabled(), autograd.is_view_replay_enabled())
        with autograd.set_multithreading_enabled(False):
            show(autograd.is_multithreading_enabled())
        with autograd._force_original_view_tracking(True):
            show(autograd.is_view_replay_enabled())
        decorated = autograd._force_original_view_tracking(True)(autograd.is_view_replay_enabled)
        show(autograd.is_view_replay_enabled(), decorated())
        with autograd.enforce_grad_layout_policy(False):
            pass
        show(autograd.is_multithreading_enabled(), autograd.is_view_replay_enabled())
        show.warnings(lambda: autograd.no_grad()(type("A", (), {})))
        show.warnings(lambda: autograd.detect_anomaly())

    same(program)


def test_nodes_are_logged():
    import logging

    def program(T, show):
        log = logging.getLogger(f"{T.__name__}.autograd.graph")
        lines = []
        handler = logging.Handler()
        handler.emit = lambda record: lines.append(record.getMessage())
        log.addHandler(handler)
        log.setLevel(logging.DEBUG)
        try:
            (leaf(T, 1.0, 2.0) * 2).float().bfloat16().sum().backward()
        finally:
            log.removeHandler(handler)
            log.setLevel(logging.NOTSET)
        for line in lines:
            show(line)

    same(program)


def test_the_order_in_which_a_node_saves():
    def program(T, show):
        def pack(t):
            show("packs", t)
            return t

        x, y, z = (T.tensor([value, 2 * value], requires_grad=True) for value in (0.25, 0.5, 0.75))
        m = T.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
        uses = (
            lambda: T.tanh(x).sum(),
            lambda: T.sigmoid(x).sum(),
            lambda: x / y,
            lambda: T.addcdiv(x, y, z),
            lambda: T.lerp(x, y, z),
            lambda: T.nn.functional.gelu(x).sum(),
            lambda: T.nn.functional.smooth_l1_loss(x, y),
            lambda: m @ m.exp(),
            lambda: T.nn.functional.layer_norm(m, (2,), x, y),
            lambda: T.nn.functional.linear(m, m, x),
            lambda: T.atan2(x, y),
        )
        for i, use in enumerate(uses):
            with T.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
                show("forward")
                result = use().sum()
                if i < 3:
                    show("backward")
                    T.autograd.grad(result, [x, y, z, m], create_graph=True, allow_unused=True)

    same(program)
