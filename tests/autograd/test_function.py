"""Custom autograd.Function."""

from tests.programs import same


def leaf(T, *values):
    return T.tensor(values, dtype=T.float64, requires_grad=True)


def test_save_for_backward_and_twice_differentiable():
    def program(T, show):
        class Cube(T.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x**3

            @staticmethod
            def backward(ctx, g):
                (x,) = ctx.saved_tensors
                return g * 3 * x**2

        x = leaf(T, 1.0, 2.0)
        y = Cube.apply(x)
        show(y, y.grad_fn.name(), [n.name() for n, _ in y.grad_fn.next_functions])
        (g,) = T.autograd.grad(y.sum(), x, create_graph=True)
        show(g, T.autograd.grad(g.sum(), x))
        show(T.autograd.gradcheck(Cube.apply, x), T.autograd.gradgradcheck(Cube.apply, x))

    same(program)


def test_needs_input_grad_and_values_that_are_not_tensors():
    def program(T, show):
        class Scale(T.autograd.Function):
            @staticmethod
            def forward(ctx, x, factor, w):
                ctx.factor = factor
                show(ctx.needs_input_grad)
                return x * factor * w

            @staticmethod
            def backward(ctx, g):
                show(ctx.needs_input_grad)
                return g * ctx.factor, None, None

        x = leaf(T, 1.0, 2.0)
        Scale.apply(x, 3, T.ones(2, dtype=T.float64)).sum().backward()
        show(x.grad)

    same(program)


def test_setup_context_and_default_arguments():
    def program(T, show):
        class Power(T.autograd.Function):
            @staticmethod
            def forward(x, n=3):
                return x**n

            @staticmethod
            def setup_context(ctx, inputs, output):
                x, n = inputs
                ctx.n = n
                ctx.save_for_backward(x, output)

            @staticmethod
            def backward(ctx, g):
                x, y = ctx.saved_tensors
                show(y.grad_fn.name())
                return g * ctx.n * x ** (ctx.n - 1), None

        x = leaf(T, 1.0, 2.0)
        Power.apply(x, 2).sum().backward()
        show(x.grad)

    same(program)


def test_mark_dirty():
    def program(T, show):
        class Double(T.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.mark_dirty(x)
                x.mul_(2)
                return x

            @staticmethod
            def backward(ctx, g):
                return g * 2

        x = leaf(T, 1.0, 2.0)
        y = x * 1
        z = Double.apply(y)
        show(z is y, y.grad_fn.name(), y)
        z.sum().backward()
        show(x.grad)
        show.error(lambda: Double.apply(x))

    same(program)


def test_non_differentiable_and_several_outputs():
    def program(T, show):
        class MaxAndPlace(T.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                i = x.argmax()
                ctx.mark_non_differentiable(i)
                ctx.save_for_backward(i)
                ctx.shape = x.shape
                return x[i].clone(), i, x * 2

            @staticmethod
            def backward(ctx, g, _, h):
                (i,) = ctx.saved_tensors
                grad = T.zeros(ctx.shape, dtype=T.float64)
                grad[i] = g
                return grad + h * 2

        x = leaf(T, 1.0, 5.0, 2.0)
        m, i, d = MaxAndPlace.apply(x)
        show(m, i, i.requires_grad, d.output_nr)
        m.backward(retain_graph=True)
        show(x.grad)
        d.sum().backward()
        show(x.grad)

    same(program)


def test_materialize_grads():
    def program(T, show):
        class Two(T.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.set_materialize_grads(False)
                return x * 1, x * 2

            @staticmethod
            def backward(ctx, a, b):
                show(a, b)
                return a

        x = leaf(T, 1.0)
        Two.apply(x)[0].backward()

    same(program)


def test_once_differentiable():
    def program(T, show):
        class Once(T.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            @T.autograd.function.once_differentiable
            def backward(ctx, g):
                return g * 2

        x = leaf(T, 1.0, 2.0)
        (g,) = T.autograd.grad(Once.apply(x).pow(2).sum(), x, create_graph=True)
        show(g)
        show.error(lambda: g.sum().backward())

    same(program)


def test_wrong_numbers_of_gradients():
    def program(T, show):
        def function(returned):
            class Bad(T.autograd.Function):
                @staticmethod
                def forward(ctx, x, n):
                    return x * n

                @staticmethod
                def backward(ctx, g):
                    return returned(g)

            return Bad

        x = leaf(T, 1.0, 2.0)
        for returned in (
            lambda g: g,
            lambda g: (g, g),
            lambda g: (g, None, None),
            lambda g: (g, None, g),
            lambda g: ("text", None),
            lambda g: (g[:0], None),
        ):
            show.error(lambda: function(returned).apply(x, 2).sum().backward())

    same(program)


def test_no_graph_when_none_is_needed():
    def program(T, show):
        class Id(T.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x

            @staticmethod
            def backward(ctx, g):
                return g

        x = leaf(T, 1.0)
        with T.no_grad():
            show(Id.apply(x).requires_grad)
        show(Id.apply(T.ones(1)).requires_grad, Id.apply(x).grad_fn.name())
        show.error(lambda: Id()(x))

    same(program)
