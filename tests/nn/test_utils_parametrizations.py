"""`nn.utils.parametrizations` and the old hooks next to the reference."""

import pytest

from tests.programs import same


def trained(T, show, module, x, steps=2):
    """A few steps of training: the results, what the module keeps, the gradients."""
    optimizer = T.optim.SGD(module.parameters(), lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        y = module(x)
        y.square().sum().backward()
        optimizer.step()
        show.numbers(y)
    state(T, show, module)
    show.numbers(*[p.grad for p in module.parameters()])


def state(T, show, module):
    show(module)
    show([(name, tuple(p.shape)) for name, p in module.named_parameters()])
    show([(name, tuple(b.shape)) for name, b in module.named_buffers()])
    show(list(module.state_dict()))
    show.numbers(*module.state_dict().values())


LAYERS = {
    "wide": lambda T: T.nn.Linear(5, 3),
    "tall": lambda T: T.nn.Linear(3, 5),
    "square": lambda T: T.nn.Linear(4, 4),
    "double": lambda T: T.nn.Linear(4, 3, dtype=T.float64),
    "conv": lambda T: T.nn.Conv2d(2, 3, 2),
    "transposed": lambda T: T.nn.ConvTranspose1d(2, 3, 2),
    "one": lambda T: T.nn.Linear(1, 1),
}


def layer_and_input(T, name):
    layer = LAYERS[name](T)
    shapes = {"conv": (2, 2, 4, 4), "transposed": (2, 2, 4)}
    return layer, T.randn(shapes.get(name, (2, layer.weight.shape[-1])), dtype=layer.weight.dtype)


@pytest.mark.parametrize("trivial", [True, False])
@pytest.mark.parametrize("kind", [None, "matrix_exp", "cayley", "householder"])
@pytest.mark.parametrize("name", ["wide", "tall", "square", "double", "conv", "one"])
def test_orthogonal(name, kind, trivial):
    def program(T, show):
        layer, x = layer_and_input(T, name)

        def register():
            T.nn.utils.parametrizations.orthogonal(layer, "weight", kind, use_trivialization=trivial)
            show.numbers(layer.weight)
            trained(T, show, layer, x)
            one = T.eye(*layer.weight.shape[-2:]).expand(layer.weight.shape)
            show.error(lambda: setattr(layer, "weight", one))
            show.error(lambda: setattr(layer, "weight", T.eye(2, 7)))
            show.numbers(layer.weight)
            T.nn.utils.parametrize.remove_parametrizations(layer, "weight")
            state(T, show, layer)

        show.error(register)

    same(program, rtol=2e-4)


def test_orthogonal_keeps_what_is_orthogonal():
    def program(T, show):
        for kind in ("matrix_exp", "cayley", "householder"):
            layer = T.nn.Linear(3, 3)
            T.nn.init.orthogonal_(layer.weight)
            before = layer.weight.detach().clone()
            T.nn.utils.parametrizations.orthogonal(layer, orthogonal_map=kind)
            show(T.allclose(before, layer.weight, atol=1e-6))

    same(program)


def test_orthogonal_batches_and_complex_numbers():
    def program(T, show):
        for dtype in (T.float64, T.complex128):
            for shape in ((2, 3, 3), (2, 4, 2), (2, 2, 4)):
                for kind in (None, "cayley", "householder"):
                    module = T.nn.Module()
                    module.w = T.nn.Parameter(T.randn(shape, dtype=dtype))

                    def register():
                        T.nn.utils.parametrizations.orthogonal(module, "w", kind)
                        w = module.w
                        one = T.eye(min(shape[1:]), dtype=dtype)
                        product = w.mH @ w if shape[1] >= shape[2] else w @ w.mH
                        show(T.allclose(product, one.expand_as(product)))
                        show.numbers(T.view_as_real(w) if dtype.is_complex else w)

                    show.error(register)

    same(program)


def test_orthogonal_errors():
    def program(T, show):
        orthogonal = T.nn.utils.parametrizations.orthogonal
        show.error(lambda: orthogonal(T.nn.Linear(2, 3), "nothing"))
        show.error(lambda: orthogonal(T.nn.Linear(2, 3), "bias"))
        show.error(lambda: orthogonal(T.nn.Linear(2, 3), orthogonal_map="other"))

    same(program)


@pytest.mark.parametrize("dim", [0, 1, -1, None])
@pytest.mark.parametrize("name", ["wide", "tall", "double", "conv", "transposed"])
def test_weight_norm(name, dim):
    def program(T, show):
        layer, x = layer_and_input(T, name)
        T.nn.utils.parametrizations.weight_norm(layer, dim=dim)
        show(layer.weight.grad_fn.name())
        trained(T, show, layer, x)
        layer.weight = T.full_like(layer.weight, 0.5)
        state(T, show, layer)
        T.nn.utils.parametrize.remove_parametrizations(layer, "weight")
        state(T, show, layer)

    same(program)


def test_weight_norm_loads_what_the_old_one_saved():
    def program(T, show):
        old = T.nn.Sequential(T.nn.Linear(3, 2), T.nn.Linear(2, 2))
        show.warnings(lambda: T.nn.utils.weight_norm(old[0]))
        new = T.nn.Sequential(T.nn.utils.parametrizations.weight_norm(T.nn.Linear(3, 2)), T.nn.Linear(2, 2))
        show(new.load_state_dict(old.state_dict()))
        x = T.randn(2, 3)
        show.numbers(old(x), new(x))
        partial = {k: v for k, v in old.state_dict().items() if not k.endswith("_g")}
        show.error(lambda: new.load_state_dict(partial))

    same(program)


@pytest.mark.parametrize("name", ["wide", "tall", "double", "conv", "transposed"])
def test_spectral_norm(name):
    def program(T, show):
        layer, x = layer_and_input(T, name)
        T.nn.utils.parametrizations.spectral_norm(layer, n_power_iterations=2)
        trained(T, show, layer, x)
        layer.eval()
        trained(T, show, layer, x)
        show.numbers(T.rand(1))
        layer.weight = T.ones_like(layer.weight)
        T.nn.utils.parametrize.remove_parametrizations(layer, "weight")
        state(T, show, layer)

    same(program)


def test_spectral_norm_of_a_vector_two_forwards_and_errors():
    def program(T, show):
        spectral_norm = T.nn.utils.parametrizations.spectral_norm
        layer = spectral_norm(T.nn.Linear(3, 4), "bias")
        trained(T, show, layer, T.randn(2, 3))
        layer = spectral_norm(T.nn.Linear(3, 4), dim=1)
        (layer(T.ones(1, 3)) - layer(T.zeros(1, 3))).sum().backward()
        show.numbers(layer.parametrizations.weight.original.grad)
        show.error(lambda: spectral_norm(T.nn.Linear(3, 4), dim=2))
        show.error(lambda: spectral_norm(T.nn.Linear(3, 4), n_power_iterations=0))
        show.error(lambda: spectral_norm(T.nn.Linear(3, 4), "nothing"))

    same(program)


def hooks(module):
    return [len(h) for h in (module._forward_pre_hooks, module._state_dict_hooks)]


@pytest.mark.parametrize("dim", [0, 1, -1, None])
@pytest.mark.parametrize("name", ["wide", "conv", "transposed"])
def test_old_weight_norm(name, dim):
    def program(T, show):
        layer, x = layer_and_input(T, name)
        show.warnings(lambda: T.nn.utils.weight_norm(layer, "weight", dim))
        show.numbers(layer.weight)
        show.error(lambda: T.nn.utils.weight_norm(layer, "weight", dim))
        trained(T, show, layer, x)
        show(hooks(layer), type(layer.weight).__name__)
        show.error(lambda: T.nn.utils.remove_weight_norm(layer, "bias"))
        T.nn.utils.remove_weight_norm(layer)
        state(T, show, layer)
        show(hooks(layer))
        show.error(lambda: T.nn.utils.remove_weight_norm(layer))
        show.error(lambda: T.nn.utils.weight_norm(T.nn.LazyLinear(3)))

    same(program)


@pytest.mark.parametrize("name", ["wide", "tall", "conv", "transposed"])
def test_old_spectral_norm(name):
    def program(T, show):
        layer, x = layer_and_input(T, name)
        T.nn.utils.spectral_norm(layer, n_power_iterations=2)
        show.numbers(layer.weight)
        show.error(lambda: T.nn.utils.spectral_norm(layer))
        trained(T, show, layer, x)
        show(layer.state_dict()._metadata)
        layer.eval()
        show.numbers(layer(x))
        trained(T, show, layer, x)
        T.nn.utils.remove_spectral_norm(layer)
        state(T, show, layer)
        show(hooks(layer), layer.state_dict()._metadata)
        show.error(lambda: T.nn.utils.remove_spectral_norm(layer))

    same(program)


def test_old_spectral_norm_errors():
    def program(T, show):
        spectral_norm = T.nn.utils.spectral_norm
        show.error(lambda: spectral_norm(T.nn.Linear(2, 3, bias=False), "bias"))
        show.error(lambda: spectral_norm(T.nn.Linear(2, 3), n_power_iterations=0))
        show.error(lambda: spectral_norm(T.nn.LazyLinear(3)))
        show.error(lambda: spectral_norm(T.nn.Linear(2, 3), "nothing"))

    same(program)


def test_old_spectral_norm_loads_older_states():
    def program(T, show):
        layer = T.nn.utils.spectral_norm(T.nn.Linear(3, 4))
        layer(T.randn(2, 3))
        saved = layer.state_dict()
        other = T.nn.utils.spectral_norm(T.nn.Linear(3, 4))
        show(other.load_state_dict(saved))
        plain = dict(saved)  # no version, but nothing else missing
        show(other.load_state_dict(plain))
        older = dict(saved)
        del older["weight_v"]
        older["weight"] = layer.weight.detach().clone()
        show(other.load_state_dict(older))
        state(T, show, other.eval())
        show.numbers(other(T.ones(1, 3)))
        del older["weight_u"]
        show.error(lambda: other.load_state_dict(dict(older)))
        show.error(lambda: show(other.load_state_dict(dict(older), strict=False)))

    same(program)
