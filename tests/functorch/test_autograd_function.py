"""A custom `autograd.Function` under transforms gives what PyTorch's gives, and is refused where that is, in the same words."""

from tests.programs import same


def functions(T):
    """Functions of one kind or another, by their names."""
    Function = T.autograd.Function

    class Sin(Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return x.sin()

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)
            ctx.shape = inputs[0].shape

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g.expand(ctx.shape) * Cos.apply(x)

        @staticmethod
        def jvp(ctx, t):
            (x,) = ctx.saved_tensors
            return t * Cos.apply(x)

    class Cos(Function):
        seen = []

        @staticmethod
        def forward(x):
            return x.cos()

        setup_context = Sin.setup_context

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return -g * Sin.apply(x)

        @staticmethod
        def jvp(ctx, t):
            (x,) = ctx.saved_tensors
            return -t * Sin.apply(x)

        @staticmethod
        def vmap(info, in_dims, x):
            Cos.seen.append((info, in_dims))
            return Cos.apply(x), in_dims[0]

    class Mul(Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x, y, k=2):
            return x * y * k, x + y

        @staticmethod
        def setup_context(ctx, inputs, output):
            x, y, ctx.k = inputs
            ctx.save_for_backward(x, y)
            ctx.save_for_forward(x, y)

        @staticmethod
        def backward(ctx, g, h):
            x, y = ctx.saved_tensors
            return g * y * ctx.k + h, g * x * ctx.k + h, None

        @staticmethod
        def jvp(ctx, of_x, of_y, _):
            x, y = ctx.saved_tensors
            return (of_x * y + x * of_y) * ctx.k, of_x + of_y

    class Double(Function):  # in place
        @staticmethod
        def forward(x):
            return x.mul_(2)

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.mark_dirty(inputs[0])

        @staticmethod
        def backward(ctx, g):
            return g * 2

        @staticmethod
        def jvp(ctx, t):
            return t.mul_(2)

        @staticmethod
        def vmap(info, in_dims, x):
            return x.mul_(2), in_dims[0]

    return {f.__name__: f for f in (Sin, Cos, Mul, Double)}


def refused_functions(T):
    class Old(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    class Plain(T.autograd.Function):
        @staticmethod
        def forward(x):
            return x * 2

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def backward(ctx, g):
            return g * 2

    def with_rule(name, rule, **names):
        return type(name, (Plain,), {"vmap": staticmethod(rule), **names})

    return [
        Old,
        Plain,
        with_rule("Both", lambda info, in_dims, x: (x, 0), generate_vmap_rule=True),
        with_rule("OneResult", lambda info, in_dims, x: x * 2),
        with_rule("ThreeResults", lambda info, in_dims, x: (x, 0, 0)),
        with_rule("OtherDims", lambda info, in_dims, x: (x, (0, 0))),
    ]


def inputs(T):
    return T.arange(6.0).reshape(2, 3) + 0.5


def test_one_function_under_every_transform():
    def program(T, show):
        f, F, x = T.func, functions(T), inputs(T)
        Sin, Cos = F["Sin"], F["Cos"]
        total = lambda a: Sin.apply(a).sum()
        show(f.grad(total)(x))
        show(f.grad(lambda b: f.grad(total)(b).sum())(x))
        show(T.vmap(Sin.apply)(x), T.vmap(Cos.apply)(x), T.vmap(T.vmap(Sin.apply))(x))
        show(T.vmap(f.grad(total))(x), f.grad(lambda a: T.vmap(Sin.apply)(a).sum())(x))
        show(f.jvp(Sin.apply, (x,), (x,)), f.jvp(f.grad(total), (x,), (x,)))
        show.numbers(f.hessian(total)(x), f.jacrev(Sin.apply)(x), f.jacfwd(Sin.apply)(x))
        show(Cos.seen)

    same(program)


def test_several_inputs_and_outputs():
    def program(T, show):
        f, Mul, x = T.func, functions(T)["Mul"], inputs(T)
        both = lambda a, b: T.vmap(Mul.apply, in_dims=(0, None))(a, b)
        show(both(x, x[0]))
        show(T.vmap(Mul.apply, in_dims=(None, 1), out_dims=1)(x[:, 0], x))
        of_both = f.grad(lambda a, b: Mul.apply(a, b, 3)[0].sum(), argnums=(0, 1))
        show(T.vmap(of_both, in_dims=(0, None))(x, x[0]))
        show(f.grad(lambda a, b: both(a, b)[0].sum(), argnums=(0, 1))(x, x[0]))
        show(f.jvp(both, (x, x[0]), (x, x[0])))
        show(f.jacrev(Mul.apply, argnums=(0, 1))(x[0], x[1]))
        show(f.grad(lambda a: Mul.apply(a, y=a, k=1)[0].sum())(x))

    same(program)


def test_written_in_place():
    def program(T, show):
        f, Double, x = T.func, functions(T)["Double"], inputs(T)
        show(T.vmap(Double.apply)(x.clone()))
        twice = lambda a: Double.apply(a.clone())
        show(f.grad(lambda a: twice(a).sum())(x), f.jvp(twice, (x,), (x.clone(),)))
        show(T.vmap(f.grad(lambda a: twice(a).sum()))(x))

    same(program)


def test_names_of_nodes():
    def program(T, show):
        Sin, x = functions(T)["Sin"], inputs(T).requires_grad_()
        T.func.grad(lambda a: (show(Sin.apply(a).grad_fn.name()), a.sum())[1])(x)
        y = T.vmap(Sin.apply)(x)
        show(y.grad_fn.name())
        y.sum().backward()
        show(x.grad)

    same(program)


def test_a_wrapper_that_outlived_its_transform():
    def program(T, show):
        class Exp(T.autograd.Function):
            @staticmethod
            def forward(x):
                return x.exp()

            @staticmethod
            def setup_context(ctx, inputs, output):
                ctx.save_for_backward(output)

            @staticmethod
            def backward(ctx, g):
                return functions(T)["Mul"].apply(g, ctx.saved_tensors[0])[0]

        x, g = T.tensor(0.5, requires_grad=True), T.tensor(2.0, requires_grad=True)
        show(T.func.vjp(Exp.apply, x)[1](g))

    same(program)


def test_what_is_refused():
    def program(T, show):
        x = inputs(T)
        for F in refused_functions(T):
            show.error(lambda: T.vmap(F.apply)(x))
            show.error(lambda: T.vmap(lambda a: a + F.apply(x[0]))(x))
            show.error(lambda: T.func.grad(lambda a: F.apply(a).sum())(x))
            show.error(lambda: T.func.jvp(F.apply, (x,), (x,)))
        Sin = functions(T)["Sin"]
        keyword = type("Keyword", (Sin,), {"forward": staticmethod(lambda x, *, w: x * w)})
        show.error(lambda: T.vmap(lambda a: keyword.apply(a, w=T.ones(3)))(x))

    same(lambda T, show: program(T, _Plainly(show)))


class _Plainly:
    """`show` that names the class of tensors as PyTorch does."""

    def __init__(self, show):
        self.show = show

    def error(self, function):
        self.show.error(function)
        self.show.lines[-1] = self.show.lines[-1].replace("torch._tensor.Tensor", "torch.Tensor")


def test_rules_of_operators():
    def program(T, show):
        x, library = inputs(T), T.library

        @library.custom_op("tests_functorch::cube", mutates_args=())
        def cube(x: T.Tensor) -> T.Tensor:
            return T.from_numpy(x.detach().numpy() ** 3)

        def rule(info, in_dims, x):
            show(info, in_dims)
            return x**3, in_dims[0]

        cube.register_vmap(rule)
        show(T.vmap(cube)(x), T.vmap(cube, in_dims=1, out_dims=1)(x), T.vmap(T.vmap(cube))(x))
        cube.register_vmap(lambda info, in_dims, x: (x * 2, in_dims[0]))
        show(T.vmap(cube)(x))
        library.define("tests_functorch::both", "(Tensor x, Tensor y, int k) -> (Tensor, Tensor)")
        library.impl("tests_functorch::both", "default", lambda x, y, k: (x * y * k, x + y))
        both = T.ops.tests_functorch.both

        @library.register_vmap("tests_functorch::both")
        def _(info, in_dims, x, y, k):
            show(info, in_dims, k)
            return both(x, y, k), (0, 0)

        show(T.vmap(both, in_dims=(0, None, None))(x, x[0], 3))
        show(T.vmap(lambda a: a + both(x[0], x[1], 2)[0])(x))
        library.define("tests_functorch::keyword", "(Tensor x, *, Tensor y) -> Tensor")
        show.error(lambda: library.register_vmap("tests_functorch::keyword", lambda *a: None))
        has = T._C._dispatch_has_kernel_for_dispatch_key
        show([has(f"tests_functorch::{name}", "FuncTorchBatched") for name in ("cube", "both", "keyword")])

    same(program)


# ------------------------------------------------------------------------------------------------- corner cases


def made(T, forward, setup=lambda ctx, inputs, output: None, backward=None, jvp=None, **names):
    """A Function of plain functions, with a generated rule."""
    names |= {"forward": forward, "setup_context": setup, "backward": backward, "jvp": jvp}
    static = {name: staticmethod(function) for name, function in names.items() if function is not None}
    return type("Made", (T.autograd.Function,), {**static, "generate_vmap_rule": True})


def everywhere(T, show, function, x, several=False):
    """Show a Function of one tensor under each transform; several: it returns a tuple, of which the first counts."""
    first = (lambda a: function.apply(a)[0]) if several else function.apply
    for program in (
        lambda: first(x),
        lambda: T.func.grad(lambda a: first(a).sum())(x),
        lambda: T.vmap(function.apply)(x),
        lambda: T.vmap(T.func.grad(lambda a: first(a).sum()))(x),
        lambda: T.func.grad(lambda a: T.vmap(first)(a).sum())(x),
        lambda: T.func.grad(lambda a: T.vmap(T.vmap(first))(a.reshape(2, 3, 1)).sum())(x),
        lambda: T.func.jvp(function.apply, (x,), (x,)),
        lambda: T.func.jvp(T.vmap(function.apply), (x,), (x,)),
        lambda: T.func.grad(lambda b: T.func.grad(lambda a: first(a).sum())(b).sum())(x),
    ):
        show.error(lambda: show(program()))


def test_what_a_ctx_may_be_told():
    def program(T, show):
        x = inputs(T)

        def marked(ctx, inputs, output):
            ctx.mark_non_differentiable(output[1])

        def unfilled(ctx, inputs, output):
            ctx.set_materialize_grads(False)

        def mixed(ctx, inputs, output):
            ctx.save_for_backward(None, inputs[0])
            ctx.factor = 4

        def told(name, value):
            show(name, value)
            return value

        backward = lambda ctx, g, h: (told("is None", h is None), g * 2)[1]
        everywhere(
            T,
            show,
            made(T, lambda a: (a * 2, a.argsort(-1)), marked, backward, lambda ctx, t: (t * 2, None)),
            x,
            several=True,
        )
        backward = lambda ctx, g, h: g * 2 if told("is None", h is None) else g * 2 + h * 3
        forward_mode = lambda ctx, t: (t * 2, t * 3)
        everywhere(T, show, made(T, lambda a: (a * 2, a * 3), unfilled, backward, forward_mode), x, several=True)
        backward = lambda ctx, g: g * 2 * ctx.saved_tensors[1] * ctx.factor / 4
        everywhere(T, show, made(T, lambda a: a * a, mixed, backward), x)
        everywhere(
            T, show, made(T, lambda a: (a * 2, 3, "s", None), backward=lambda ctx, g, *rest: g * 2), x, several=True
        )

    same(program)


def test_inputs_and_views_as_outputs():
    def program(T, show):
        x = inputs(T)
        everywhere(T, show, made(T, lambda a: a, backward=lambda ctx, g: g * 5, jvp=lambda ctx, t: t), x)

        def shape(ctx, inputs, output):
            ctx.shape = inputs[0].shape

        backward = lambda ctx, g: g.view(ctx.shape)
        everywhere(T, show, made(T, lambda a: a.view(-1), shape, backward, lambda ctx, t: t.view(-1)), x)

    same(program)


def test_which_inputs_need_a_gradient():
    def program(T, show):
        x, f = inputs(T), T.func

        def save(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        def backward(ctx, g):
            show(ctx.needs_input_grad)
            a, b = ctx.saved_tensors
            return g * b, g * a

        product = made(T, lambda a, b: a * b, save, backward)
        show(f.grad(lambda a: product.apply(a, x).sum())(x))
        show(f.grad(lambda a, b: product.apply(a, b).sum(), argnums=1)(x, x))
        show(T.vmap(f.grad(lambda a, b: product.apply(a, b).sum(), argnums=1), in_dims=(0, None))(x, x[0]))
        show(f.grad(lambda a: T.vmap(product.apply, in_dims=(0, None))(a, x[0]).sum())(x))
        both = lambda a, b: T.vmap(product.apply, in_dims=(None, 0))(a, b).sum()
        show(f.grad(both, argnums=(0, 1))(x, x[:, :1]))  # of which one is broadcast

    same(program)


def test_functions_that_are_wrong():
    def program(T, show):
        x, f = inputs(T), T.func

        def reserved(ctx, inputs, output):
            ctx._pt_inner_ctx = 3

        for function in (
            made(T, lambda a: a * 2, reserved, lambda ctx, g: g),
            made(T, lambda a: a * 2),
            made(T, lambda a: a * 2, backward=lambda ctx, g: (g, g)),
            made(T, lambda a: a + T.rand(3), backward=lambda ctx, g: g),
            made(T, lambda a: a * 2, vjp=lambda ctx, g: g * 2),
        ):
            everywhere(T, show, function, x)
        once = T.autograd.function.once_differentiable(lambda ctx, g: g * 2)
        total = lambda a: made(T, lambda a: a * a, backward=once).apply(a).sum()
        show.error(lambda: f.grad(lambda b: f.grad(total)(b).sum())(x))
        show.error(lambda: f.jvp(f.grad(total), (x,), (x,)))
        for randomness in ("same", "different"):
            T.manual_seed(0)
            show(T.vmap(made(T, lambda a: a + T.rand(3)).apply, randomness=randomness)(x))

    same(program)
