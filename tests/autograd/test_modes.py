"""no_grad, enable_grad, set_grad_enabled, inference_mode, anomaly mode; dispatch modes."""

import threading

import readtorch
from tests.programs import same


def test_grad_modes_nest_and_decorate():
    def program(T, show):
        x = T.ones(2, requires_grad=True)
        with T.no_grad():
            show((x * 2).requires_grad, T.is_grad_enabled())
            with T.enable_grad():
                show((x * 2).requires_grad)
            with T.set_grad_enabled(True):
                show((x * 2).requires_grad)
            show(T.is_grad_enabled())

        @T.no_grad()
        def plain():
            return (x * 2).requires_grad

        @T.no_grad
        def bare():
            return (x * 2).requires_grad

        @T.no_grad()
        def generator():
            yield T.is_grad_enabled()
            yield T.is_grad_enabled()

        values = []
        for v in generator():
            values.append((v, T.is_grad_enabled()))
        show(plain(), bare(), values, T.is_grad_enabled())
        T.set_grad_enabled(False)
        show(T.is_grad_enabled())
        T.set_grad_enabled(True)

        @T.set_grad_enabled(False)
        def switched():
            return T.is_grad_enabled()

        show(T.is_grad_enabled(), switched(), T.is_grad_enabled())

    same(program)


def test_an_error_leaves_the_mode_as_it_was():
    def program(T, show):
        try:
            with T.no_grad():
                raise ValueError
        except ValueError:
            show(T.is_grad_enabled())

    same(program)


def test_inference_mode():
    def program(T, show):
        x = T.ones(2, requires_grad=True)
        with T.inference_mode():
            y = x * 2
            z = T.ones(2)
            z.add_(1)
            show(y.requires_grad, y.is_inference(), z.is_inference(), T.is_inference_mode_enabled(), x.is_inference())
        show.error(lambda: z.requires_grad_())
        show.error(lambda: x * z)
        show.error(lambda: z._version)
        show((x * z.clone()).requires_grad)
        show.error(lambda: z.add_(1))
        with T.inference_mode(False):
            show(T.is_inference_mode_enabled(), (x * 2).requires_grad)

        @T.inference_mode()
        def f():
            return T.is_inference_mode_enabled()

        show(f(), T.is_inference_mode_enabled())

    same(program)


def test_inside_inference_mode_its_tensors_may_require_grad():
    def program(T, show):
        with T.inference_mode():
            z = T.ones(2)
            z.requires_grad_()
            show(z.requires_grad, z.is_leaf, (z * 2).requires_grad)
        show(z.requires_grad, (z * 2).requires_grad)
        show.error(lambda: z.detach().requires_grad_())
        show(z.clone().requires_grad)

    same(program)


def test_an_uncounted_write_gives_a_wrong_gradient():
    def program(T, show):
        x, w = T.tensor([1.0, 2.0]), T.ones(2, requires_grad=True)
        loss = (x * w).sum()
        with T.autograd._unsafe_preserve_version_counter(x):
            x.mul_(10)
            show(x._version)
        show(x._version, x[:1]._version)
        loss.backward()
        show(w.grad)
        with T.autograd._unsafe_preserve_version_counter((x, w)):
            x.add_(1)
            with T.no_grad():
                w.add_(1)
        show(x._version, w._version)
        with T.inference_mode():
            z = T.ones(2)
        show.error(lambda: T.autograd._unsafe_preserve_version_counter(z))

    same(program)


def test_modes_belong_to_their_thread():
    seen = []
    with readtorch.no_grad():
        t = threading.Thread(target=lambda: seen.append(readtorch.is_grad_enabled()))
        t.start()
        t.join()
    assert seen == [True]


def test_anomaly_mode_finds_nan():
    def program(T, show):
        x = T.zeros(2, requires_grad=True)
        with T.autograd.set_detect_anomaly(True):
            y = (x.sqrt() * 0).sum()
            show.warnings(lambda: None)
            show.error(lambda: y.backward())
        with T.autograd.set_detect_anomaly(True, check_nan=False):
            (x.sqrt() * 0).sum().backward()
        show(x.grad)

    same(program)


def test_anomaly_mode_shows_where_forward_was():
    x = readtorch.zeros(2).requires_grad_()

    def the_culprit():
        return (x.sqrt() * 0).sum()

    import warnings

    with readtorch.autograd.set_detect_anomaly(True), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        y = the_culprit()
        try:
            y.backward()
        except RuntimeError as error:
            assert "nan" in str(error)
    assert any("the_culprit" in str(w.message) for w in caught)


def test_observer_sees_every_operator_call():
    from readtorch.aten.record_function import observe

    calls = []
    x = readtorch.ones(2, 3).requires_grad_()
    with observe(lambda operator, arguments, result: calls.append((operator.__name__, tuple(result.shape)))):
        y = (x * 2).sum()
        y.backward()
    assert ("mul", (2, 3)) in calls and ("sum", ()) in calls
    before = len(calls)
    x + 1
    assert len(calls) == before


def test_dispatch_modes_nest():
    from readtorch.utils._python_dispatch import TorchDispatchMode

    class Named(TorchDispatchMode):
        def __init__(self, name, log):
            self.name, self.log = name, log

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.log.append(self.name)
            return func(*args)

    log = []
    with Named("outer", log), Named("inner", log):
        readtorch.ones(2).neg()
    assert log[-2:] == ["inner", "outer"]
