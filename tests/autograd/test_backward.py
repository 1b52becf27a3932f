"""`backward` and `autograd.grad`: values, accumulation, errors, orders higher than one, threads."""

import threading

import pytest

import readtorch
from tests.programs import same


def leaf(T, *values):
    return T.tensor(values, dtype=T.float64, requires_grad=True)


def test_gradients_accumulate_until_they_are_cleared():
    def program(T, show):
        x = leaf(T, 1.0, 2.0, 3.0)
        for _ in range(2):
            (x * x).sum().backward()
            show(x.grad)
        x.grad = None
        (x * 3).sum().backward()
        show(x.grad, x.grad.requires_grad, x.grad.is_leaf)

    same(program)


def test_gradient_arguments_and_their_errors():
    def program(T, show):
        x = leaf(T, 1.0, 2.0)
        y = x * x
        y.backward(T.tensor([10.0, 1.0], dtype=T.float64), retain_graph=True)
        show(x.grad)
        show.error(lambda: y.backward())
        show.error(lambda: y.backward(T.ones(3, dtype=T.float64)))
        show.error(lambda: y.backward("text"))
        show.error(lambda: T.ones(2).sum().backward())
        show.error(lambda: T.autograd.backward(y.sum(), inputs=[]))
        y.sum().backward()
        show.error(lambda: y.sum().backward())

    same(program)


def test_grad_of_chosen_inputs():
    def program(T, show):
        x, w, unused = leaf(T, 1.0, 2.0), leaf(T, 3.0, 4.0), leaf(T, 5.0)
        h = x * w
        y = (h * h).sum()
        show(T.autograd.grad(y, [x, h], retain_graph=True), x.grad)
        show(T.autograd.grad(y, (w, unused), retain_graph=True, allow_unused=True))
        show(T.autograd.grad(y, (w, unused), retain_graph=True, materialize_grads=True))
        show(T.autograd.grad(y, {"w": w, "x": x}, retain_graph=True))
        show.error(lambda: T.autograd.grad(y, unused, retain_graph=True))
        show.error(lambda: T.autograd.grad(y, T.ones(2), retain_graph=True))
        show.error(lambda: T.autograd.grad(y, unused, allow_unused=False, materialize_grads=True))
        y.backward(inputs=[w])
        show(x.grad, w.grad)

    same(program)


def test_inputs_that_are_not_leaves():
    def program(T, show):
        x = leaf(T, 1.0, 2.0)
        h = x * 2
        z = (h * h).sum()
        z.backward(inputs=[h], retain_graph=True)
        show(h.grad, x.grad)
        z.backward(inputs=[x, h])
        show(h.grad, x.grad)

    same(program)


def test_batched_vectors():
    def program(T, show):
        x = leaf(T, 1.0, 2.0, 3.0)
        show(T.autograd.grad(x * x, x, T.eye(3, dtype=T.float64), is_grads_batched=True))

    same(program)


def test_third_derivatives():
    def program(T, show):
        x = leaf(T, 0.5, 1.5)
        y = (x.sin() * x**3 / (1 + x.exp())).sum()
        for _ in range(3):
            (g,) = T.autograd.grad(y, x, create_graph=True)
            show(g)
            y = g.sum()

    same(program)


def test_create_graph_through_grad_fields():
    def program(T, show):
        x = leaf(T, 2.0, 3.0)
        (x**3).sum().backward(create_graph=True)
        show(x.grad.grad_fn is not None)
        penalty = (x.grad**2).sum()
        show(T.autograd.grad(penalty, x))

    same(program)


def test_an_undefined_gradient_stops():
    def program(T, show):
        x = leaf(T, 2.0, 3.0)
        values, indices = x.sort(descending=True)
        show(indices.requires_grad, values.requires_grad)
        a, b = x.unbind()
        a.backward()
        show(x.grad)

    same(program)


def test_shared_gradients_are_not_aliased():
    """`a + b` hands one gradient to both; neither may steal it."""

    def program(T, show):
        a, b = leaf(T, 1.0), leaf(T, 2.0)
        g = T.ones(1, dtype=T.float64)
        (a + b).backward(g)
        a.grad.add_(5)
        show(a.grad, b.grad, g)

    same(program)


def test_a_gradient_for_two_is_given_to_neither():
    def program(T, show):
        a, b = leaf(T, 1.0, 2.0), leaf(T, 3.0, 4.0)
        w = T.tensor([5.0, 6.0], dtype=T.float64)
        ((a + b) * w).sum().backward()  # the product's gradient is new, and both leaves get it
        a.grad.zero_()
        show(a.grad, b.grad)
        (a * w).sum().backward()
        w.zero_()
        show(a.grad)

    same(program)


def test_a_gradient_that_nobody_else_sees_is_not_copied():
    T = readtorch
    x = T.ones(1000).requires_grad_()
    seen = []
    y = x * 2
    y.grad_fn.register_hook(lambda inputs, outputs: seen.append(inputs[0].data_ptr()))
    (y * T.ones(1000)).sum().backward()
    assert x.grad.data_ptr() == seen[0]


def test_a_view_is_stolen_only_when_it_is_the_last_one():
    T = readtorch
    w, x = T.ones(3, 4).requires_grad_(), T.arange(8.0).reshape(2, 4)
    kept = []
    y = T.nn.functional.linear(x, w)
    y.grad_fn.next_functions[-1][0].register_hook(lambda inputs, outputs: kept.append(inputs[0]))
    y.sum().backward()
    assert w.grad.data_ptr() != kept[0].data_ptr() and not w.grad._is_view()
    w.grad = None
    T.nn.functional.linear(x, w).sum().backward()
    assert w.grad.tolist() == kept[0].tolist() and not w.grad._is_view() and w.grad.is_contiguous()


def test_threads_run_backward_at_the_same_time():
    x = readtorch.ones(50, dtype=readtorch.float64).requires_grad_()
    shared = x * 2

    def work():
        for _ in range(20):
            (shared * 3).sum().backward(retain_graph=True)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert x.grad.tolist() == [6 * 20 * 6.0] * 50


def test_backward_inside_backward():
    def program(T, show):
        class Inner(T.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, g):
                with T.enable_grad():
                    y = T.ones(2, dtype=T.float64, requires_grad=True)
                    (y * y).sum().backward()
                return g * y.grad

        x = leaf(T, 1.0, 2.0)
        Inner.apply(x).sum().backward()
        show(x.grad)

    same(program)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "complex64"])
def test_mixed_types_give_each_leaf_its_own(dtype):
    def program(T, show):
        x = T.ones(3, dtype=getattr(T, dtype), requires_grad=True)
        w = leaf(T, 1.0, 2.0, 3.0)
        (x * w).abs().sum().backward()
        show(x.grad.dtype, w.grad.dtype, x.grad, w.grad)

    same(program)


def test_gradient_layout_follows_the_leaf():
    def program(T, show):
        w = T.arange(6.0).reshape(2, 3).t().requires_grad_()
        (w * 2).sum().backward()
        show(w.grad.stride())
        v = T.arange(6.0).reshape(2, 3).requires_grad_()
        (v.t() @ T.ones(2, 2)).sum().backward()
        show(v.grad.stride(), v.grad)

    same(program)


def test_queue_callback_runs_after_backward():
    order = []

    class Last(readtorch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            readtorch.autograd.Variable._execution_engine.queue_callback(lambda: order.append("callback"))
            order.append("node")
            return g

    x = readtorch.ones(1).requires_grad_()
    Last.apply(x * 1).sum().backward()
    assert order == ["node", "callback"]
