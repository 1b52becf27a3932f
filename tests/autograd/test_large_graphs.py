"""Graphs of a hundred thousand nodes, and graphs that several threads walk."""

import sys
import threading

import pytest

import readtorch
from tests.programs import same

NODES = 100_000


@pytest.fixture
def shallow_stack():
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(500)
    yield
    sys.setrecursionlimit(limit)


def test_a_long_graph_is_built_walked_and_freed_without_recursion(shallow_stack):
    def program(T, show):
        x = T.ones(1, requires_grad=True)
        y = x
        for _ in range(NODES):
            y = y * 1.0
        (y * 3).sum().backward()
        show(x.grad)
        del y  # its nodes have been walked
        y = x
        for _ in range(NODES // 4):
            y = y.sin()
        show(T.autograd.grad(y.sum(), x)[0].shape)
        del y
        y = x
        for _ in range(NODES // 8):
            y = y.exp().log()
        del y  # its nodes hold what they have saved

    same(program)


def test_a_long_graph_of_writes_and_of_a_users_functions(shallow_stack):
    def program(T, show):
        class Double(T.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * 2

            @staticmethod
            def backward(ctx, grad):
                return grad + 0 * ctx.saved_tensors[0]

        x = T.ones(1, requires_grad=True)
        y = x * 1
        for _ in range(NODES // 4):
            y.mul_(1.0)
        y.sum().backward()
        y = x * 1
        v = y.view(1)
        for _ in range(NODES // 100):
            v.add_(1.0)
        y.sum().backward()
        y = x * 0
        for _ in range(NODES // 10):
            y = Double.apply(y)
        y.sum().backward()
        show(x.grad)
        y = x * 0
        for _ in range(NODES // 10):
            y = Double.apply(y)
        del y

    same(program)


def test_a_wide_graph(shallow_stack):
    def program(T, show):
        x = T.ones(1, requires_grad=True)
        T.stack([x * i for i in range(NODES // 4)]).sum().backward()
        show(x.grad)
        leaves = [T.ones(1, requires_grad=True) for _ in range(NODES // 4)]
        T.cat(leaves).sum().backward()
        show(sum(leaf.grad.item() for leaf in leaves))

    same(program)


def test_a_graph_that_is_freed_while_another_thread_walks_it():
    def program(T, show):
        x = T.ones(2, requires_grad=True)
        first = x.exp()
        loss = (first * first).sum()
        arrived, go_on, errors = threading.Event(), threading.Event(), []

        def wait(grad):
            if threading.current_thread() is walker:
                arrived.set()
                go_on.wait(10)

        def walk():
            try:
                loss.backward()
            except RuntimeError as error:
                errors.append(str(error))

        first.register_hook(wait)
        walker = threading.Thread(target=walk)
        walker.start()
        arrived.wait(10)
        show.error(lambda: loss.backward())  # the last node is walked and freed
        go_on.set()
        walker.join()
        show(x.grad, errors)

    same(program)


def test_threads_that_walk_one_graph_at_once_raise_nothing_else():
    """Each either gets through or finds the graph freed. (In PyTorch nodes have mutexes; here what is saved is read once.)"""
    interval, unexpected = sys.getswitchinterval(), []
    sys.setswitchinterval(1e-6)

    def walk(loss, gate):
        gate.wait()
        try:
            loss.backward()
        except RuntimeError as error:
            if "Trying to backward through the graph a second time" not in str(error):
                unexpected.append(error)
        except Exception as error:
            unexpected.append(error)

    try:
        for _ in range(20):
            x = readtorch.ones(3, requires_grad=True)
            y = x.exp() * x
            y[1:].mul_(x[1:])
            with readtorch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
                loss = (y.sigmoid() * readtorch.stack([x, y])).prod()
            gate = threading.Barrier(4)
            threads = [threading.Thread(target=walk, args=(loss, gate)) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert not unexpected


@pytest.mark.parametrize("name", ["_saved_self", "_saved_result", "hooks"])
def test_what_is_saved_may_be_freed_at_any_line_of_unpack(name):
    """Another thread frees it when the n-th line is about to run, for every n."""
    line = 0
    while True:
        line, lines = line + 1, 0
        x = readtorch.ones(3, requires_grad=True)
        node = (x.exp() if name == "_saved_result" else x.sin()).grad_fn
        if name == "hooks":
            node._raw_saved_self.register_hooks(lambda t: t, lambda t: t)

        def trace(frame, event, argument):
            nonlocal lines
            if event == "line":
                lines += 1
                if lines == line:
                    node.release_variables()
            return trace

        sys.settrace(trace)
        try:
            saved = getattr(node, "_saved_self" if name == "hooks" else name)
        except RuntimeError as error:
            sys.settrace(None)
            assert "a second time" in str(error)
        else:
            sys.settrace(None)
            assert saved.shape == (3,)
            if lines < line:
                break
    assert line > 5
