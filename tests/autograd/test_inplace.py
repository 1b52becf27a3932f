"""In-place writes: version counters, leaves, views, and the errors that protect backward."""

from tests.programs import same


def leaf(T, *values):
    return T.tensor(values, dtype=T.float64, requires_grad=True)


def test_version_counters():
    def program(T, show):
        x = T.zeros(4)
        view, data, detached = x[1:], x.data, x.detach()
        x.add_(1)
        view.mul_(2)
        show(x._version, view._version, data._version, detached._version)
        data.add_(1)
        detached.add_(1)
        show(x._version, view._version, data._version, detached._version, x)

    same(program)


def test_a_saved_tensor_that_changed():
    def program(T, show):
        x = leaf(T, 1.0, 2.0)
        y = x.exp()
        y.add_(1)
        show.error(lambda: y.sum().backward())
        a = x * 1
        b = a * a
        a.add_(1)
        show.error(lambda: b.sum().backward())
        w = T.ones(2, dtype=T.float64)
        c = x * w
        w.mul_(2)
        show.error(lambda: c.sum().backward())

    same(program)


def test_leaves_may_not_be_written():
    def program(T, show):
        x = leaf(T, 1.0, 2.0)
        show.error(lambda: x.add_(1))
        show.error(lambda: x[0].add_(1))
        show.error(lambda: x.zero_())
        with T.no_grad():
            x.add_(1)
        show(x, x.is_leaf, x._version)

    same(program)


def test_writes_to_views_reach_the_base():
    def program(T, show):
        x = leaf(T, 1.0, 2.0, 3.0, 4.0)
        base = x * 1
        view, other = base[1:3], base[2:]
        view.mul_(10)
        show(base.grad_fn.name(), view.grad_fn.name(), other.grad_fn.name(), view._base is base)
        (base * T.arange(4.0, dtype=T.float64)).sum().backward()
        show(x.grad)

    same(program)


def test_a_plain_base_gets_history_through_its_view():
    def program(T, show):
        base = T.zeros(4, dtype=T.float64)
        first, second = base[:2], base[2:]
        w = leaf(T, 5.0, 6.0)
        first.copy_(w)
        show(base.requires_grad, second.requires_grad, base.grad_fn.name(), second.grad_fn.name())
        base.sum().backward()
        show(w.grad)

    same(program)


def test_views_of_views_and_transposes():
    def program(T, show):
        x = T.arange(12.0, dtype=T.float64).reshape(3, 4).requires_grad_()
        base = x.clone()
        base.t()[1].mul_(3)
        base[0].view(2, 2)[:, 1].add_(1).mul_(2)
        weights = T.arange(12.0, dtype=T.float64).reshape(3, 4)
        (base * weights).sum().backward()
        show(base, x.grad)

    same(program)


def test_assignment_by_index():
    def program(T, show):
        x = leaf(T, 1.0, 2.0, 3.0)
        y = x.clone()
        y[0] = x[1] * 5
        y[1:] = 7
        show(y.grad_fn.name())
        y.sum().backward()
        show(y, x.grad)

    same(program)


def test_views_that_may_not_be_written():
    def program(T, show):
        x = leaf(T, 1.0, 2.0)
        y = x.clone()
        with T.no_grad():
            made_without_graph = y[:1]
        show.error(lambda: made_without_graph.mul_(2))
        show.error(lambda: y.unbind(0)[0].mul_(2))
        show.error(lambda: y.split(1)[0].mul_(2))

    same(program)


def test_detach_and_data():
    def program(T, show):
        x = leaf(T, 1.0, 2.0)
        y = x * 2
        d = y.detach()
        show(d.requires_grad, d.is_leaf, d._is_view(), d.grad_fn)
        y.detach_()
        show(y.requires_grad, y.is_leaf)
        show.error(lambda: (x * 1)[:1].detach_())
        x.data = T.zeros(3, dtype=T.float64)
        show(x.shape, x.requires_grad, x.is_leaf)

    same(program)


def test_grad_assignment_is_checked():
    def program(T, show):
        x = leaf(T, 1.0, 2.0)
        x.grad = T.ones(2, dtype=T.float64)
        show(x.grad)
        for bad in ("text", T.ones(3, dtype=T.float64), T.ones(2), x):
            show.error(lambda bad=bad: setattr(x, "grad", bad))
        del x.grad
        show(x.grad)

    same(program)


def test_requires_grad_flags():
    def program(T, show):
        x = T.ones(2)
        show(x.requires_grad, x.requires_grad_().requires_grad, x.requires_grad_(False).requires_grad)
        show.error(lambda: T.ones(2, dtype=T.int64).requires_grad_())
        y = leaf(T, 1.0) * 2
        show.error(lambda: setattr(y, "requires_grad", False))
        show(y.is_leaf, y.output_nr, y.grad_fn.name())

    same(program)


def test_views_made_without_a_graph_require_grad_as_leaves():
    def program(T, show):
        x = leaf(T, 1.0, 2.0)
        y = x.clone()
        for context in (T.no_grad, T.inference_mode):
            with context():
                v, w = y[:1], x[:1]
            show(v.requires_grad, v.is_leaf, v.grad_fn, w.requires_grad, v._is_view(), v)
            show.error(lambda: w.mul_(2))

    same(program)
