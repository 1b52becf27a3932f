"""What the transforms take, return and refuse: trees, argument numbers, `has_aux`, dimensions, models; in PyTorch's words."""

import functools

from tests.programs import same


def inputs(T):
    return T.arange(6.0).reshape(2, 3) + 0.5


def total(a):
    return a.sin().sum()


def with_aux(a):
    return a.sin().sum(), {"doubled": a * 2}


def compare(cases):
    """cases: (T, x) -> programs; each shows its result or its error."""

    def program(T, show):
        for i, case in enumerate(cases(T, T.func, inputs(T))):
            show.error(lambda: show(i, case()))
            show.lines[-1] = show.lines[-1].replace("torch._tensor.Tensor", "torch.Tensor")

    same(program)


def test_has_aux():
    def cases(T, f, x):
        yield lambda: f.grad(with_aux, has_aux=True)(x)
        yield lambda: f.grad_and_value(with_aux, has_aux=True)(x)
        yield lambda: f.vjp(with_aux, x, has_aux=True)[2]
        yield lambda: f.vjp(with_aux, x, has_aux=True)[1](T.tensor(1.0))
        yield lambda: f.jvp(with_aux, (x,), (x,), has_aux=True)
        yield lambda: f.jacrev(lambda a: (a.sin(), a), has_aux=True)(x[0])
        yield lambda: f.jacfwd(lambda a: (a.sin(), a), has_aux=True)(x[0])
        yield lambda: f.grad(lambda a: (a.sum(), 3), has_aux=True)(x)
        yield lambda: f.grad(lambda a: (a.sum(), 1, 2), has_aux=True)(x)
        yield lambda: f.grad(total, has_aux=True)(x)
        yield lambda: f.vjp(total, x, has_aux=True)
        yield lambda: f.jvp(total, (x,), (x,), has_aux=True)

    compare(cases)


def test_jvp_and_vjp():
    def cases(T, f, x):
        whole = T.arange(3)
        yield lambda: f.jvp(lambda a: T.ones(2), (x,), (x,), strict=True)
        for primals, tangents in (
            (x, x),
            ([x], [x]),
            ((x,), x),
            ((x,), (x[0],)),
            ((x,), (x.double(),)),
            ((3,), (3,)),
            ((whole,), (whole,)),
        ):
            yield lambda: f.jvp(total, primals, tangents)
        yield lambda: f.jvp(lambda: x, (), ())
        for function in (lambda a: 3, lambda a: None, lambda a: (), lambda a: a.long()):
            yield lambda: f.jvp(function, (x,), (x,))
            yield lambda: f.vjp(function, x)
        yield lambda: f.vjp(lambda a: (a, a), x)[1](x)
        yield lambda: f.vjp(lambda a: a, x)[1](x[0])
        yield lambda: f.vjp(lambda: x)[0]
        yield lambda: f.vjp(lambda a: a * 1.0, whole)[0]
        yield lambda: f.vjp(lambda a: a, 3)[0]

    compare(cases)


def test_grad():
    def cases(T, f, x):
        product = lambda a, b: (a * b).sum()
        yield lambda: f.grad(lambda a: a.sum())(T.arange(3))
        for function in (lambda a: 3, lambda a: a, lambda a: (a.sum(),), lambda a: a.sum() * 1j):
            yield lambda: f.grad(function)(x)
        yield lambda: f.grad(lambda a: a)(3)
        for argnums in (1, -1, (0, -2), (0, 1), 2, 1.5, ("a",), (), "a"):
            yield lambda: f.grad(product, argnums=argnums)(x, x)
        yield lambda: f.grad(lambda d: (d["a"] * d["b"][0]).sum())({"a": x, "b": [x]})
        yield lambda: f.grad(lambda a, b=None: (a * b).sum())(x, b=x)
        yield lambda: f.grad(functools.partial(product, b=x))(x)
        yield lambda: (f.grad(total).__name__, f.vmap(total).__name__, f.jacrev(total).__name__, T.vmap is f.vmap)

        def under_hooks():
            with T.autograd.graph.saved_tensors_hooks(lambda a: a, lambda a: a):
                return f.grad(total)(x)

        yield under_hooks

    compare(cases)


def test_jacobians():
    def cases(T, f, x):
        tree = lambda a, b: {"product": a * b, "sums": (a.sum(),)}
        for jacobian in (f.jacrev, f.jacfwd):
            yield lambda: jacobian(lambda a: a)(x * 1j)
            yield lambda: jacobian(tree, argnums=(0, 1))(x[0], x[1])
            yield lambda: jacobian(lambda a: 3)(x)
            yield lambda: jacobian(total, argnums=3)(x)
            yield lambda: jacobian(lambda a: a * T.rand(3))(x[0])
        yield lambda: f.jacrev(total, chunk_size=0)
        yield lambda: f.jacrev(lambda a: a.sin(), chunk_size=2)(x[0])
        yield lambda: f.jacrev(lambda a: a.sin(), chunk_size=1, _preallocate_and_copy=True)(x[0])
        yield lambda: f.hessian(lambda a, b: (a * b * b).sum(), argnums=(0, 1))(x[0], x[1])

    compare(cases)


def test_vmap():
    def cases(T, f, x):
        vmap, product = T.vmap, lambda a, b: a * b
        yield lambda: vmap(product)(x, b=x[0])
        yield lambda: vmap(product)(x, b=x)
        yield lambda: vmap(lambda d: d["a"] * d["b"], in_dims=({"a": 0, "b": None},))({"a": x, "b": x[0]})
        yield lambda: vmap(lambda d: d["a"], in_dims=({"c": 0},))({"a": x})
        for out_dims in ((1, 0), (1, 0, 0), 5, (0, None), None, "a"):
            yield lambda: vmap(lambda a: (a, a.sum()), out_dims=out_dims)(x)
            yield lambda: vmap(lambda a: a, out_dims=out_dims)(x)
        yield lambda: vmap(lambda a: (a, 3), out_dims=(0, None))(x)
        for in_dims in ([0], (0.5,), None, (None,), -1, 3):
            yield lambda: vmap(lambda a: a * 2, in_dims=in_dims)(x)
        yield lambda: vmap(lambda a, b: a)(x, 3)
        yield lambda: vmap(lambda a: a)(T.tensor(1.0))
        yield lambda: vmap(lambda a: a.sum())(T.ones(0, 3))
        yield lambda: vmap(functools.partial(product, b=3), in_dims=3)(x)
        yield lambda: vmap(T.nn.Linear(3, 2, bias=False), in_dims=2)(x)
        yield lambda: vmap(total, chunk_size=-1)
        yield lambda: vmap(lambda a, b: (a * b).sum(), in_dims=(0, None), chunk_size=1)(x, x[0])
        yield lambda: vmap(total, randomness="z")(x)

    compare(cases)


def test_functional_call():
    def cases(T, f, x):
        nn = T.nn
        net = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
        weight, bias = {"0.weight": T.ones(2, 3)}, {"0.bias": T.zeros(2)}
        for parameters in ({**weight, **bias}, (weight, bias), (weight, weight), 3, ({"0.weight": 1}, 3)):
            yield lambda: tuple(f.functional_call(net, parameters, (x,)).shape)
        for parameters in (weight, {"unknown": T.ones(2)}):
            yield lambda: f.functional_call(net, parameters, (x,), strict=True)
        yield lambda: tuple(f.functional_call(net, {}, x).shape)
        yield lambda: tuple(f.functional_call(net, {}, (), {"input": x}).shape)
        linear = lambda: nn.Linear(3, 2)
        for nets in (
            [linear(), linear()],
            [],
            [linear(), nn.ReLU()],
            [linear(), linear().eval()],
            [linear(), linear().requires_grad_(False)],
        ):
            yield lambda: {name: tuple(p.shape) for name, p in f.stack_module_state(nets)[0].items()}

    compare(cases)
