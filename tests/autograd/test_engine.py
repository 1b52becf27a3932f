"""The engine: whose gradient is stolen, how long nodes and their hooks live, what runs in which order and thread."""

import gc
import threading
import weakref

import pytest

from tests.programs import same


def leaf(T, *size):
    return T.ones(*size, requires_grad=True)


def share(a, b):
    return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()


def accumulator(x):
    return x.expand_as(x).grad_fn.next_functions[0][0]


# ------------------------------------------------------------------------------------------- the first gradient of a leaf


def test_a_gradient_that_nobody_else_refers_to_is_stolen_with_its_memory():
    def program(T, show):
        a, b, g = leaf(T, 2), leaf(T, 2), T.ones(4)
        T.cat([a, b]).backward(g)
        a.grad.mul_(100)
        show(g, share(a.grad, g), share(b.grad, g), a.grad._is_view(), a.grad._base is None, a.grad._version)
        a, g = leaf(T, 4), T.ones(2, 2)
        a.view(2, 2).backward(g)
        show(share(a.grad, g))
        a, b, g = leaf(T, 2), leaf(T, 2), T.ones(2, 2)
        T.stack([a, b]).backward(g)
        show(share(a.grad, g), share(b.grad, g))
        a, b = leaf(T, 2), leaf(T, 2)
        (T.cat([a, b]) * 3).sum().backward()
        show(share(a.grad, b.grad))
        a, b = leaf(T, 2), leaf(T, 2)
        ((a + b) * 3).sum().backward()  # one tensor is the gradient of both: the first one of them copies
        show(share(a.grad, b.grad))
        a = leaf(T, 4)
        a.backward(g := T.ones(4))  # the caller has it
        show(share(a.grad, g))

    same(program)


def test_the_layout_contract():
    def program(T, show):
        for make, size in (
            (lambda: leaf(T, 2, 3), (3, 2)),
            (lambda: T.ones(3, 2).t().requires_grad_(), (3, 2)),
            (lambda: T.ones(3, 4)[:, ::2].t().requires_grad_(), (3, 2)),
        ):
            a, g = make(), T.ones(size)
            a.t().backward(g)
            show(share(a.grad, g), a.grad.stride())
        a, g = leaf(T, 1), T.ones(())
        a.view(()).backward(g)
        show(share(a.grad, g), a.grad.stride())
        a = leaf(T, 1)
        a.sum().backward()  # a stride of 0
        show(a.grad.stride())
        a, g = T.zeros(4)[::2].requires_grad_(), T.ones(4)[::2]
        a.unsqueeze(0).backward(g.unsqueeze(0))
        show(share(a.grad, g), a.grad.stride())

    same(program)


def test_hooks_that_keep_the_gradient_keep_it_from_being_stolen():
    def program(T, show):
        def once(hook, register="register_hook"):
            a, g = leaf(T, 4), T.ones(2, 2)
            v = a.view(2, 2)
            owner = a if register == "register_hook" else accumulator(a)
            getattr(owner, register)(hook)
            v.backward(g)
            return a.grad, g

        kept = []
        grad, g = once(kept.append)
        show(share(grad, g), share(grad, kept[0]))
        kept = []
        grad, g = once(lambda g: kept.append(g.view(4)))  # a view of it is no reference to it
        show(share(grad, kept[0]))
        show(share(*once(lambda g: None)))

    same(program)


def test_hooks_of_the_accumulator_do_not_hinder_stealing():
    def program(T, show):
        for register, hook in (
            ("register_hook", lambda inputs, outputs: None),
            ("register_prehook", lambda outputs: None),
            ("register_prehook", lambda outputs: (outputs[0].view(4),)),
            ("register_prehook", lambda outputs: (outputs[0] * 2,)),
        ):
            a, g = leaf(T, 4), T.ones(2, 2)
            v, node = a.view(2, 2), accumulator(a)
            getattr(node, register)(hook)
            v.backward(g)
            show(share(a.grad, g), a.grad)

    same(program)


def test_create_graph_copies_and_records_it():
    def program(T, show):
        a, g = leaf(T, 4), T.ones(2, 2)
        a.view(2, 2).backward(g, create_graph=True)
        show(share(a.grad, g), a.grad.requires_grad)
        g = T.ones(2, 2, requires_grad=True)
        a.grad = None
        a.view(2, 2).backward(g, create_graph=True)
        show(share(a.grad, g), a.grad.grad_fn.name())

    same(program)


def test_sparse_gradients():
    def program(T, show):
        weight = leaf(T, 5, 2)
        i = T.tensor([1, 3, 1])
        T.nn.functional.embedding(i, weight, sparse=True).sum().backward()
        show(weight.grad.is_sparse, weight.grad.is_coalesced(), weight.grad.to_dense())
        T.nn.functional.embedding(i, weight).sum().backward()
        show(weight.grad.is_sparse, weight.grad)
        T.nn.functional.embedding(i, weight, sparse=True).sum().backward()
        show(weight.grad.is_sparse, weight.grad)

    same(program)


def test_a_leaf_that_stopped_requiring_grad_gets_none():
    def program(T, show):
        x, w = leaf(T, 2), leaf(T, 2)
        y = x * w
        x.requires_grad_(False)
        y.sum().backward()
        show(x.grad, w.grad)

    same(program)


# ------------------------------------------------------------------------------------------------- hooks and lifetimes


def test_a_leaf_holds_its_accumulator_weakly_and_its_hooks_itself():
    def program(T, show):
        x, calls = leaf(T, 2), []
        node = accumulator(x)
        show(accumulator(x) is node, node.variable is x)
        x.register_hook(lambda g: calls.append("tensor"))
        node.register_prehook(lambda g: calls.append("before"))
        node.register_hook(lambda i, o: calls.append("after"))
        (x * 1).sum().backward()
        show(list(calls))
        del node
        (x * 1).sum().backward()
        show(calls)

    same(program)


def test_the_accumulator_dies_with_the_last_graph():
    def program(T, show):
        class Mark:
            pass

        x = leaf(T, 2)
        y, mark = x * 2, Mark()
        died = weakref.ref(mark)
        y.grad_fn.next_functions[0][0].metadata["mark"] = mark
        del mark
        show(died() is None)
        del y
        gc.collect()
        show(died() is None)

    same(program)


def test_order_of_hooks_around_a_node():
    def program(T, show):
        calls = []
        x = leaf(T, 2)
        y = x * 2
        node = accumulator(x)

        def note(what, seen=lambda: None):
            return lambda *grads: calls.append((what, seen()))

        def y_has_grad():
            return y.grad is not None

        def x_has_grad():
            return x.grad is not None

        x.register_hook(note("x: tensor", x_has_grad))
        y.register_hook(note("y: tensor", y_has_grad))
        y.retain_grad()
        y.register_hook(note("y: second of tensor", y_has_grad))
        y.grad_fn.register_prehook(note("y: before", y_has_grad))
        y.grad_fn.register_hook(note("y: after", y_has_grad))
        node.register_prehook(note("x: before", x_has_grad))
        node.register_hook(note("x: after", x_has_grad))
        x.register_post_accumulate_grad_hook(note("x: accumulated", x_has_grad))
        x.register_hook(note("x: second of tensor", x_has_grad))
        y.sum().backward()
        show(calls)

    same(program)


def test_hooks_stay_with_what_was_there_before_a_write():
    def program(T, show):
        x, calls = leaf(T, 2), []
        y = x * 2
        y.register_hook(lambda g: calls.append("old"))
        y.retain_grad()
        show(y._backward_hooks is None, type(y._backward_hooks).__name__, len(y._backward_hooks))
        y.mul_(3)
        show(y._backward_hooks, y.retains_grad)
        y.register_hook(lambda g: calls.append("new"))
        y.sum().backward()
        show(calls, y.grad, x.grad)
        base = leaf(T, 2).clone()
        view = base[:1]
        base.retain_grad()
        view.retain_grad()
        view.register_hook(lambda g: calls.append("view"))
        base.register_hook(lambda g: calls.append("base"))
        view.mul_(2)
        show(view._backward_hooks, base._backward_hooks)
        calls.clear()
        view.sum().backward()
        show(calls, base.grad, view.grad)

    same(program)


def test_what_hooks_may_return():
    def program(T, show):
        def run(register, hook):
            x = leaf(T, 2)
            y = x * 2
            register(x, y)(hook)
            show.error(lambda: y.sum().backward())
            show(x.grad)

        def of_node(x, y):
            return y.grad_fn.register_hook

        def before_node(x, y):
            return y.grad_fn.register_prehook

        def of_tensor(x, y):
            return y.register_hook

        def accumulated(x, y):
            return x.register_post_accumulate_grad_hook

        for hook in (
            lambda i, o: 3,
            lambda i, o: (i[0],),
            lambda i, o: (i[0], None),
            lambda i, o: [i[0], None],
            lambda i, o: (T.ones(3), None),
            lambda i, o: (i[0].double(), None),
            lambda i, o: (i[0], T.ones(2)),
            lambda i, o: ("a", None),
        ):
            run(of_node, hook)
        for hook in (lambda o: ("a",), lambda o: T.ones(2), lambda o: (T.ones(2), T.ones(2)), lambda o: (o[0] * 2,)):
            run(before_node, hook)
        for hook in (lambda g: "a", lambda g: (g,), lambda g: T.ones(3), lambda g: g * 2, lambda g: g, 3):
            run(of_tensor, hook)
        for hook in (lambda p: 3, lambda p: p, lambda p: None):
            run(accumulated, hook)

    same(program)


def test_node_hooks_see_gradients_that_fit():
    def program(T, show):
        a, b = leaf(T, 1, 3), leaf(T, 2, 3)
        c = a + b
        c.grad_fn.register_hook(lambda inputs, outputs: show([g.shape for g in inputs], [g.shape for g in outputs]))
        c.sum().backward()
        a, b = (leaf(T, 2) * 1).unbind()
        a.register_hook(lambda g: show("not reached", g))
        b.register_hook(lambda g: show("reached", g))
        b.backward()

    same(program)


def test_what_grad_catches():
    def program(T, show):
        x = leaf(T, 2)
        y = x * 2
        y.register_hook(lambda g: g * 10)
        x.register_hook(lambda g: g * 100)
        z = (y * 3).sum()
        for inputs in ([y, x], [y], [x], [x, y], [z], [z, x]):
            show(T.autograd.grad(z, inputs, retain_graph=True))
        z.backward(inputs=[x, y], retain_graph=True)
        show(x.grad, y.grad)
        z.backward(inputs=[y])
        show(x.grad, y.grad)

    same(program)


# --------------------------------------------------------------------------------------------------- order and threads


@pytest.mark.parametrize("count", range(1, 12))
def test_leaves_of_one_node_in_pytorchs_order(count):
    def program(T, show):
        leaves, order = [leaf(T, 1) for _ in range(count)], []
        middle = [leaf(T, 1) * i for i in range(3)]
        for i, t in enumerate(leaves + middle):
            t.register_hook(lambda g, i=i: order.append(i))
        T.cat(leaves).sum().backward()
        show(list(order))
        T.cat([*leaves[:2], *middle[:2], *leaves[2:], *middle[2:]]).sum().backward()
        show(order)

    same(program)


class Nested:
    """Programs whose backward calls backward, `depth` times inside one another."""

    def __init__(self, T, at_the_bottom):
        threads = self.threads = []

        class Inner(T.autograd.Function):
            @staticmethod
            def forward(ctx, x, depth):
                ctx.depth = depth
                ctx.save_for_backward(x)
                return x.clone()

            @staticmethod
            def backward(ctx, grad):
                threads.append(threading.get_ident())
                if ctx.depth == 0:
                    return at_the_bottom(grad), None
                (x,) = ctx.saved_tensors
                with T.enable_grad():
                    x = x.detach().requires_grad_()
                    Inner.apply(x, ctx.depth - 1).backward(grad)
                return x.grad, None

        self.apply = Inner.apply

    def calls_by_thread(self):
        return [self.threads.count(thread) for thread in dict.fromkeys(self.threads)]


@pytest.mark.parametrize("depth", [1, 59, 60, 61, 140, 400])
def test_backward_inside_backward(depth):
    def program(T, show):
        nested, x = Nested(T, lambda grad: grad * 2), leaf(T, 2)
        nested.apply(x, depth).sum().backward()
        show(x.grad, nested.calls_by_thread(), nested.threads[0] == threading.get_ident(), T.is_grad_enabled())

    same(program)


@pytest.mark.parametrize("depth", [3, 140])
def test_errors_come_up_from_any_depth(depth):
    def program(T, show):
        def fail(grad):
            raise ValueError("at the bottom")

        x = leaf(T, 2)
        show.error(lambda: Nested(T, fail).apply(x, depth).sum().backward())
        show(x.grad, T.is_grad_enabled())
        (x * 2).sum().backward()  # the engine goes on working
        show(x.grad)

    same(program)


def test_a_hook_cannot_change_the_mode_of_what_runs_after_it():
    def program(T, show):
        x, modes = leaf(T, 2), []
        y = x * 2
        y.register_hook(lambda g: modes.append(T.is_grad_enabled()) or T.set_grad_enabled(True) and None)
        x.register_hook(lambda g: modes.append(T.is_grad_enabled()))
        with T.no_grad():
            y.backward(T.ones(2))
            show(T.is_grad_enabled())
        show(modes)

    same(program)


def test_callbacks_at_the_end():
    def program(T, show):
        engine = T.autograd.Variable._execution_engine
        calls = []

        def queue_two(grad):
            engine.queue_callback(lambda: (calls.append(1), engine.queue_callback(lambda: calls.append(2))))
            calls.append(0)

        x = leaf(T, 2)
        x.register_hook(queue_two)
        (x * 2).sum().backward()
        show(calls)

        def fail():
            raise ValueError("in a callback")

        x = leaf(T, 2)
        x.register_hook(lambda g: engine.queue_callback(fail))
        show.error(lambda: (x * 2).sum().backward())
        show(x.grad)

    same(program)


# ------------------------------------------------------------------------------------------------------------- checks


def test_gradients_are_checked_where_they_enter_and_where_they_come_out():
    def program(T, show):
        class Returns(T.autograd.Function):
            @staticmethod
            def forward(ctx, x, make):
                ctx.make = make
                return x * 2

            @staticmethod
            def backward(ctx, grad):
                return ctx.make(grad)

        for make in (
            lambda g: (T.ones(3), None),
            lambda g: (T.ones(2, 1, 2), None),
            lambda g: (T.ones(3, 2), None),
            lambda g: g,
            lambda g: (g, None, None),
            lambda g: (g, g),
            lambda g: (g.double(), None),
            lambda g: (T.ones(2, dtype=T.int64), None),
            lambda g: (T.ones(2, dtype=T.bool), None),
            lambda g: ("x", None),
            lambda g: (None, None),
            lambda g: (g.to_sparse(), None),
        ):
            x = leaf(T, 2)
            show.error(lambda: Returns.apply(x, make).backward(T.ones(2)))
            show(None if x.grad is None else x.grad.to_dense())
        x = leaf(T, 2)
        show.error(lambda: (x * 2).backward(T.ones(3)))
        (x * 2).backward(T.ones(2, dtype=T.float64))
        show(x.grad, x.grad.dtype)

    same(program)


def test_a_graph_that_was_freed():
    def program(T, show):
        x = leaf(T, 2)
        y = (x * x).sum()
        y.backward()
        show.error(lambda: y.backward())
        y = (x + 1).sum()  # nothing is saved
        y.backward()
        y.backward()
        show(x.grad)
        y = x.exp().sum()
        y.backward(retain_graph=True)
        y.backward()
        show.error(lambda: y.backward())
        z = x.exp()
        a, b = z * 2, z * 3
        a.sum().backward()
        show.error(lambda: b.sum().backward())  # half of it was
        show(x.grad)
        node = z.grad_fn
        show.error(lambda: node._saved_result)
        show.error(lambda: node._raw_saved_result.register_hooks(lambda t: t, lambda t: t))

    same(program)


def test_only_what_is_needed_is_computed():
    """With `inputs`, a node computes the gradients that lie on a way to them: its hooks see None for the others."""

    def program(T, show):
        def leaf(*values):
            return T.tensor(values, dtype=T.float64, requires_grad=True)

        a, b = leaf(1.0, 2.0), leaf(3.0, 4.0)
        y = a * b
        y.grad_fn.register_hook(lambda ins, outs: show(ins, outs))
        T.autograd.grad(y.sum(), a, retain_graph=True)
        y.sum().backward(inputs=[b], retain_graph=True)
        y.sum().backward(inputs=[y], retain_graph=True)
        y.sum().backward()
        x = leaf(1.0, 2.0) * 1
        x[:1].mul_(b[:1])
        x.grad_fn.register_hook(lambda ins, outs: show(ins, outs))
        T.autograd.grad(x.sum(), b, retain_graph=True)
        x.sum().backward()
        z = T.stack([a, b])
        z.grad_fn.register_hook(lambda ins, outs: show(ins, outs))
        T.autograd.grad(z.sum(), b)

    same(program)


def test_a_gradient_of_a_leaf_is_like_the_leaf_was_when_the_graph_was_made():
    def program(T, show):
        x = leaf(T, 3)
        y = x * 2
        x.data = T.ones(2)
        show(accumulator_of(y)._input_metadata[0].shape)
        y.sum().backward()
        show(x, x.grad)
        x = leaf(T, 2, 3)
        y = x * 2
        x.data = x.data.double()
        y.sum().backward()
        show(x, x.grad)
        (x * 2).sum().backward()
        show(x.grad)
        x = leaf(T, 2, 3)
        y = x * 2
        with T.no_grad():
            x.t_()
        show(accumulator_of(y)._input_metadata[0].shape, (x * 3).shape, accumulator_of(x * 3)._input_metadata[0].shape)
        show.error(lambda: y.sum().backward())

    def accumulator_of(y):
        return y.grad_fn.next_functions[0][0]

    same(program)
