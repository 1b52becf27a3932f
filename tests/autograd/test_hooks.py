"""Hooks on tensors and nodes, retain_grad, hooks on saved tensors."""

from tests.programs import same


def leaf(T, *values):
    return T.tensor(values, dtype=T.float64, requires_grad=True)


def test_tensor_hooks_see_and_replace_gradients():
    def program(T, show):
        x = leaf(T, 1.0, 2.0)
        h = x * 3
        h.register_hook(lambda g: show("h", g))
        handle = h.register_hook(lambda g: g * 10)
        h.register_hook(lambda g: show("after", g))
        x.register_hook(lambda g: show("leaf", g))
        h.sum().backward(retain_graph=True)
        show(x.grad)
        handle.remove()
        h.sum().backward()
        show(x.grad)
        show.error(lambda: T.ones(2).register_hook(print))
        show.error(lambda: (h.register_hook(lambda g: g[:1]), (x * 1).sum().backward(), h.sum())[0])

    same(program)


def test_retain_grad():
    def program(T, show):
        x = leaf(T, 1.0, 2.0)
        h = x * 3
        h.retain_grad()
        h.register_hook(lambda g: g * 2)  # registered later, and still before what retain_grad keeps
        (h * h).sum().backward()
        show(h.grad, x.grad, h.retains_grad, x.retains_grad)
        show.error(lambda: T.ones(2).retain_grad())
        show.warnings(lambda: (x * 2).grad)

    same(program)


def test_node_hooks():
    def program(T, show):
        x = leaf(T, 1.0, 2.0)
        y = x * 3
        y.grad_fn.register_prehook(lambda grads: show("pre", grads))
        y.grad_fn.register_hook(lambda ins, outs: show("post", ins, outs))
        y.grad_fn.register_prehook(lambda grads: (grads[0] * 2,))
        y.sum().backward()
        show(x.grad)

    same(program)


def test_post_accumulate_hooks():
    def program(T, show):
        x = leaf(T, 1.0, 2.0)
        x.register_post_accumulate_grad_hook(lambda p: show("now", p.grad))
        (x * 2).sum().backward()
        (x * 2).sum().backward()
        show.error(lambda: (x * 2).register_post_accumulate_grad_hook(print))

    same(program)


def test_hooks_that_return_the_wrong_thing():
    def program(T, show):
        for bad in (lambda g: "text", lambda g: g[:1], lambda g: g.float()):
            x = leaf(T, 1.0, 2.0)
            y = x * 1
            y.register_hook(bad)
            show.error(lambda: y.sum().backward())

    same(program)


def test_node_hooks_that_return_the_wrong_thing():
    def program(T, show):
        wrong = {
            "short": lambda grads: (),
            "long": lambda grads: grads + grads,
            "list": list,
            "a tensor": lambda grads: grads[0],
            "a number": lambda grads: (3,) * len(grads),
            "another dtype": lambda grads: (grads[0].half(), *grads[1:]),
            "another shape": lambda grads: (grads[0][0], *grads[1:]),
            "a gradient for None": lambda grads: (*grads[:-1], T.ones(2)),
        }
        for name, change in wrong.items():
            y = leaf(T, 1.0, 2.0) * 3
            y.grad_fn.register_prehook(lambda grads: change(grads))
            show(name)
            show.error(lambda: y.sum().backward())
            y = leaf(T, 1.0, 2.0) * 3
            y.grad_fn.register_hook(lambda ins, outs: change(ins))
            show.error(lambda: y.sum().backward())

    same(program)


def test_saved_tensor_hooks():
    def program(T, show):
        x = leaf(T, 1.0, 2.0)
        packed = []

        def pack(t):
            packed.append(t)
            return len(packed) - 1

        with T.autograd.graph.saved_tensors_hooks(pack, lambda i: packed[i]):
            y = (x * x).exp()
        show(len(packed))
        y.sum().backward()
        show(x.grad)
        with T.autograd.graph.saved_tensors_hooks(lambda t: t * 10, lambda t: t / 10):
            z = x.exp()
        x.grad = None
        z.sum().backward()
        show(x.grad)
        with T.autograd.graph.save_on_cpu():
            z = x * x
        show(z.grad_fn._saved_self)
        show.error(lambda: z.grad_fn._raw_saved_self.register_hooks(pack, pack))

    same(program)


def test_disabled_saved_tensor_hooks():
    def program(T, show):
        def inner():
            with T.autograd.graph.disable_saved_tensors_hooks("not here"):
                with T.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
                    pass

        show.error(inner)

    same(program)


def test_multi_grad_hooks():
    def program(T, show):
        a, b = leaf(T, 1.0), leaf(T, 2.0)
        handle = T.autograd.graph.register_multi_grad_hook((a, b), lambda grads: show("all", grads))
        (a * b).backward()
        (a * 2).backward()
        handle.remove()
        (a * b).backward()
        T.autograd.graph.register_multi_grad_hook((a, b), lambda grad: show("any", grad), mode="any")
        (a * b).backward()

    same(program)


def test_gradient_edges():
    def program(T, show):
        x = leaf(T, 1.0, 2.0)
        y = x * 2
        edge = T.autograd.graph.get_gradient_edge(y)
        show(edge.node.name(), edge.output_nr)
        show(T.autograd.grad((y * y).sum(), edge))
        show.error(lambda: T.autograd.graph.get_gradient_edge(T.ones(1)))

    same(program)


def test_states_of_handles_old_and_new():
    """A handle that was pickled has the state (hooks, id) or (hooks, id, marks); what it removes, and the next number, follow."""
    from collections import OrderedDict

    def program(T, show):
        Handle = T.utils.hooks.RemovableHandle
        for more in ((), (None,), ((),), ("marks",), ("two",)):
            hooks, marks, others = (
                OrderedDict({10**6: "hook", 3: "other"}),
                OrderedDict({10**6: 1}),
                OrderedDict({10**6: 2}),
            )
            state = (
                hooks,
                10**6,
                *({"marks": ((marks,)), "two": (marks, others)}.get(m, m) if isinstance(m, str) else m for m in more),
            )
            if more == ("marks",):
                state = (hooks, 10**6, (marks,))
            handle = Handle.__new__(Handle)
            handle.__setstate__(state)
            show(handle.id, len(handle.__getstate__()), handle.__getstate__()[1], Handle(hooks).id > 10**6)
            handle.remove()
            show(list(hooks), list(marks), list(others))
            handle.remove()
        handle = Handle.__new__(Handle)
        handle.__setstate__((None, 5))
        handle.remove()
        show(Handle(hooks).id > 10**6)

    same(program)


def test_a_leaf_that_was_written_to_since_its_hooks_packed_it():
    def program(T, show):
        for make in (lambda x, y: x * y, lambda x, y: y * x, lambda x, y: x * x, lambda x, y: (x * 1).exp() * x):
            for written in ("leaf", "value", "none"):
                leaf, value = T.ones(2, requires_grad=True), T.full((2,), 3.0)
                with T.autograd.graph.saved_tensors_hooks(lambda t: t.detach().clone(), lambda t: t):
                    out = make(leaf, value)
                with T.no_grad():
                    {"leaf": leaf, "value": value, "none": T.ones(2)}[written].add_(1)
                show.error(lambda: out.sum().backward())
                show(leaf.grad)

    same(program)


def test_hooks_that_write_to_what_they_pack():
    def program(T, show):
        for write in (
            lambda t: t.add_(1),
            lambda t: t.data.add_(1),
            lambda t: t[0].zero_(),
            lambda t: t.detach().mul_(2),
            lambda t: t,
        ):
            for make in (lambda x: x * x, lambda x: x.exp(), lambda x: x * T.ones(2)):

                def go(write=write, make=make):
                    x = T.ones(2, requires_grad=True)
                    with T.autograd.graph.saved_tensors_hooks(lambda t: (write(t), t.clone())[1], lambda t: t):
                        make(x).sum().backward()
                    show(x.grad, x._version)

                show.error(go)

    same(program)


def test_where_nodes_were_made_is_noted_only_while_anomalies_are_looked_for():
    def program(T, show):
        x = leaf(T, 1.0)
        seen = []
        for enabled in (True, False, True):
            with T.autograd.set_detect_anomaly(enabled):
                seen.append("traceback_" in (x * 2).grad_fn.metadata)
            seen.append("traceback_" in (x * 2).grad_fn.metadata)
        T.autograd.set_detect_anomaly(True)
        seen.append("traceback_" in x.exp().grad_fn.metadata)
        T.autograd.set_detect_anomaly(False)
        seen.append("traceback_" in x.exp().grad_fn.metadata)
        with T.autograd.detect_anomaly(check_nan=False):
            y = x.exp()
        show(seen, "traceback_" in y.grad_fn.metadata)

    same(program)
