"""The modules of normalization next to the reference: repr, state, training, checkpoints, errors."""

import pytest

from tests.programs import same


def data(T, *shape):
    n = 1
    for size in shape:
        n *= size
    return (T.arange(n, dtype=T.float32) * 0.37).sin().reshape(shape) * 2 + 1


def show_state(show, layer):
    for name, value in layer.state_dict().items():
        show(name)
        show.numbers(value)


LAYERS = [
    ("BatchNorm1d", (4,), {}, (3, 4)),
    ("BatchNorm1d", (4,), {"momentum": None}, (3, 4, 5)),
    ("BatchNorm2d", (4,), {"affine": False}, (2, 4, 3, 3)),
    ("BatchNorm2d", (4,), {"track_running_stats": False, "eps": 0.1}, (2, 4, 3, 3)),
    ("BatchNorm3d", (4,), {"bias": False, "momentum": 0.5}, (2, 4, 2, 2, 2)),
    ("InstanceNorm1d", (4,), {}, (2, 4, 5)),
    ("InstanceNorm1d", (4,), {"affine": True}, (4, 5)),
    ("InstanceNorm2d", (4,), {"affine": True, "track_running_stats": True}, (2, 4, 3, 3)),
    ("InstanceNorm3d", (4,), {"track_running_stats": True, "momentum": None}, (2, 4, 2, 2, 2)),
    ("GroupNorm", (2, 4), {}, (2, 4, 3)),
    ("GroupNorm", (4, 4, 0.1, False), {}, (2, 4, 3)),
    ("LayerNorm", (5,), {"bias": False}, (3, 5)),
    ("RMSNorm", ((4, 5),), {}, (2, 4, 5)),
    ("RMSNorm", (5, 0.1, False), {}, (2, 5)),
]


@pytest.mark.parametrize("name, args, options, shape", LAYERS)
def test_training_then_evaluation(name, args, options, shape):
    def program(T, show):
        layer = getattr(T.nn, name)(*args, **options)
        show(layer, layer.__constants__)
        x = data(T, *shape).requires_grad_()
        for training in (True, True, False):
            layer.train(training)
            y = layer(x)
            y.backward(data(T, *y.shape).cos())
            show.numbers(y, x.grad, *[p.grad for p in layer.parameters()])
        show_state(show, layer)
        layer.reset_parameters()
        show_state(show, layer)

    same(program)


def test_statistics_that_are_there_but_not_tracked_do_not_move():
    def program(T, show):
        layer = T.nn.BatchNorm1d(3)
        layer.track_running_stats = False
        layer(data(T, 4, 3))
        show_state(show, layer)
        show.numbers(layer.eval()(data(T, 4, 3)))

    same(program)


def test_old_checkpoints():
    """Before version 2 there was no num_batches_tracked; before version 1 instance norm had statistics."""

    def program(T, show):
        layer = T.nn.BatchNorm1d(2)
        old = T.nn.BatchNorm1d(2).state_dict()
        del old["num_batches_tracked"]
        show(list(old), old._metadata[""])
        show.error(lambda: T.nn.BatchNorm1d(2).load_state_dict(old))
        old._metadata[""]["version"] = 1
        layer.num_batches_tracked.fill_(7)
        show(layer.load_state_dict(old), layer.num_batches_tracked)
        instance = T.nn.InstanceNorm1d(2)
        show.error(lambda: instance.load_state_dict({"running_mean": T.zeros(2), "running_var": T.ones(2)}))

    same(program)


def test_lazy_forms_become_ordinary_ones():
    def program(T, show):
        shapes = {1: (2, 4, 3), 2: (2, 4, 3, 3), 3: (2, 4, 2, 2, 2)}
        for name, shape in [(f"{kind}Norm{d}d", shapes[d]) for kind in ("Batch", "Instance") for d in shapes]:
            layer = getattr(T.nn, f"Lazy{name}")(affine=True, bias=name != "BatchNorm2d")
            show(layer, layer.has_uninitialized_params())
            show.numbers(layer(data(T, *shape)))
            show(layer, type(layer).__name__)
            show_state(show, layer)

    same(program)


def test_errors_and_warnings():
    def program(T, show):
        nn = T.nn
        for dims in range(1, 7):
            x = data(T, *[2] * dims)
            for layer in (
                nn.BatchNorm1d(2),
                nn.BatchNorm2d(2),
                nn.BatchNorm3d(2),
                nn.InstanceNorm1d(2),
                nn.InstanceNorm2d(2),
                nn.InstanceNorm3d(2),
                nn.LazyBatchNorm2d(),
            ):
                show.error(lambda: layer(x))
        show.error(lambda: nn.GroupNorm(3, 4))
        show.error(lambda: nn.GroupNorm(2, 4)(data(T, 2, 3, 5)))
        show.error(lambda: nn.BatchNorm1d(3)(data(T, 1, 3)))
        show.error(lambda: nn.BatchNorm1d(3)(data(T, 2, 4)))
        show.error(lambda: nn.InstanceNorm1d(3, affine=True)(data(T, 2, 4, 3)))
        show.warnings(lambda: nn.InstanceNorm1d(3)(data(T, 2, 4, 3)))
        show.error(lambda: nn.LayerNorm(3)(data(T, 2, 4)))
        show.error(lambda: nn.RMSNorm(3)(data(T, 2, 4)))

    same(program)


def test_rows_and_groups_of_nothing():
    """Their mean is 0, 1 / deviation is nan; the gradients of the parameters follow from that."""

    def program(T, show):
        F = T.nn.functional
        for shape in ((3, 0), (0, 3), (0, 0), (2, 0, 3)):
            for normalized in (shape[-1:], shape[1:]):
                x, w, b = (T.ones(s, requires_grad=True) for s in (shape, normalized, normalized))
                show([(t.shape, t.stride(), t.tolist()) for t in T.native_layer_norm(x, normalized, w, b, 1e-5)])
                show(*(g.tolist() for g in T.autograd.grad(F.layer_norm(x, normalized, w, b).sum(), (x, w, b))))
                show(F.rms_norm(x, normalized, w).shape)
        for dtype in (T.float32, T.float16):
            x, w, b = (T.ones(shape, dtype=dtype, requires_grad=True) for shape in ((2, 4, 0), (4,), (4,)))
            show([t.tolist() for t in T.native_group_norm(x, w, b, 2, 4, 0, 2, 1e-5)])
            show(*(g.tolist() for g in T.autograd.grad(F.group_norm(x, 2, w, b).sum(), (x, w, b))))
        show.error(lambda: F.group_norm(T.ones(2, 4, 0).long(), 2))
        show(F.group_norm(T.ones(1, 3, 1, 1).expand(2, 3, 1, 1)[:, :, :0], 1).stride())

    same(program)


def test_rows_that_do_not_lie_one_after_another():
    """The result is contiguous, whatever the input is; so is its gradient."""

    def program(T, show):
        for dtype in (T.float32, T.bfloat16):
            for x in (
                T.randn(4, 5).t(),
                T.randn(4, 3, 6).transpose(0, 1),
                T.randn(3, 1).expand(3, 4),
                T.randn(3, 8)[:, ::2],
            ):
                x = x.to(dtype).requires_grad_()
                y = T.nn.functional.layer_norm(x, x.shape[-1:])
                (grad,) = T.autograd.grad((y * y * y).sum(), x)
                show(y.stride(), grad.stride())
                show.numbers(y, grad)

    same(program, rtol=3e-2)


def test_running_statistics_of_another_type():
    """instance_norm keeps them in the weight's type, or the input's, while it computes; batch_norm refuses."""

    def program(T, show):
        F = T.nn.functional
        for own in (T.float32, T.float64, T.float16):
            for kept in (T.float32, T.float64):
                for of_weight in (None, T.float32, own):
                    for training in (True, False):
                        x = T.arange(24.0).reshape(4, 2, 3).to(own)
                        weight = None if of_weight is None else T.ones(2, dtype=of_weight)
                        mean, var = T.zeros(2, dtype=kept), T.ones(2, dtype=kept)
                        for norm in (F.instance_norm, F.batch_norm):
                            show.error(lambda: show.numbers(norm(x, mean, var, weight, weight, training)))
                            show.numbers(mean, var)

    same(program, rtol=1e-3)
