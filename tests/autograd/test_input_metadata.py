"""What a gradient must be like: `grad_dtype`, complex numbers, the Meta device; what nodes say of it."""

import copy
import warnings

import pytest

from tests.programs import same


def tried(show, function):
    """What it returns, or the first line of its error."""
    try:
        show(function())
    except Exception as error:
        show(type(error).__name__, str(error).split(' at "')[0].split("\n")[0])


def functions_of(T):
    class To(T.autograd.Function):
        """The identity, whose gradient has another dtype or device, or is another tensor."""

        @staticmethod
        def forward(ctx, x, wanted):
            ctx.wanted = wanted
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            wanted = ctx.wanted
            return wanted if isinstance(wanted, T.Tensor) else grad.to(wanted), None

    return To.apply


def set_dtype(t, dtype):
    t.grad_dtype = dtype
    return t.grad_dtype


def set_grad(t, grad):
    t.grad = grad
    return t.grad


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def test_grad_dtype_of_leaves():
    def program(T, show):
        def leaf(dtype=T.float32):
            return T.ones(3, dtype=dtype, requires_grad=True)

        x = leaf()
        show(x.grad_dtype, T.ones(3).grad_dtype, T.ones(3, dtype=T.int64).grad_dtype)
        tried(show, lambda: (x * 2).grad_dtype)
        tried(show, lambda: x[:2].grad_dtype)
        tried(show, lambda: set_dtype(x * 2, T.float64))
        tried(show, lambda: set_dtype(x[:2], T.float64))
        tried(show, lambda: set_dtype(x, "a"))
        tried(show, lambda: set_dtype(T.ones(3), T.float64))
        for dtype in (T.float64, T.float16, None):
            x = leaf()
            y = x * 2  # its graph is there already
            show(set_dtype(x, dtype), y.grad_fn.next_functions[0][0]._input_metadata[0].dtype)
            y.sum().backward()
            (x * 2).sum().backward()
            show(x.grad, T.autograd.grad((x * 2).sum(), x))
            seen = []
            x.register_hook(lambda grad: seen.append(grad.dtype))
            x.grad = None
            (x * 2).sum().backward(create_graph=True)
            show(seen, x.grad.dtype)
            x.grad = None
        x = T.ones(2, dtype=T.float64, requires_grad=True)
        x.grad_dtype = T.float32
        for dtype in (T.float32, T.float64):
            x.grad = None
            T.autograd.backward(x, T.ones(2, dtype=dtype))
            show(x.grad)

    same(program)


def test_grad_dtype_and_a_gradient_that_is_there():
    def program(T, show):
        x = T.ones(3, requires_grad=True)
        x.grad = T.ones(3)
        tried(show, lambda: set_dtype(x, T.float64))
        tried(show, lambda: set_dtype(x, None))
        tried(show, lambda: set_dtype(x, T.float32))
        for dtype in (None, T.float16, T.bfloat16, T.int64):
            x.grad = None
            set_dtype(x, dtype)
            for given in (T.float32, T.float16, T.complex64, T.int64, T.bool):
                x.grad = None
                tried(show, lambda: set_grad(x, T.ones(3, dtype=given)))

    same(program)


def test_what_becomes_of_grad_dtype():
    def program(T, show):
        x = T.ones(3, requires_grad=True)
        set_dtype(x, T.float64)
        show(copy.deepcopy(x).grad_dtype, x.data.grad_dtype, x.detach().grad_dtype, x.clone().detach().grad_dtype)
        x.data = T.ones(3).half()
        show(x.grad_dtype)
        x.requires_grad_(False)
        show(x.grad_dtype)
        x.mul_(T.ones(3, requires_grad=True))
        tried(show, lambda: x.grad_dtype)
        show(x.detach_().grad_dtype)
        x = T.ones(3, requires_grad=True)
        x.data = T.ones(3).half()
        show(x.grad_dtype, T.nn.Parameter(T.ones(2)).grad_dtype)

    same(program)


def test_dtypes_that_functions_return():
    def program(T, show):
        to = functions_of(T)
        for own in (T.float32, T.complex64):
            for expected in (own, None, T.float64):
                for returned in (T.float32, T.float16, T.complex64, T.int32):
                    x = T.ones(3, dtype=own, requires_grad=True)
                    if expected is not own:
                        x.grad_dtype = expected
                    tried(show, lambda: to(x, returned).abs().sum().backward())
                    show(x.grad)
        x = T.ones(3, requires_grad=True)
        tried(show, lambda: to(x * 1, T.complex64).sum().backward())
        tried(show, lambda: T.autograd.grad(to(x, T.complex64).sum(), x))

    same(program)


def test_gradients_on_the_meta_device():
    def program(T, show):
        to, meta = functions_of(T), {"device": "meta"}
        x, c, s = (
            T.ones(3, requires_grad=True, **meta),
            T.ones(3, requires_grad=True),
            T.ones((), requires_grad=True, **meta),
        )
        for _ in range(2):
            (x * 2).sum().backward()
            show(x.grad.device, x.grad.shape)
        y = x * 2
        show(y.grad_fn._input_metadata[0].device, y.grad_fn.next_functions[0][0]._input_metadata[0].device)
        tried(show, lambda: y.backward(T.ones(3)))
        tried(show, lambda: y.backward(T.ones(3, **meta)))
        tried(show, lambda: (c * 2).backward(T.ones(3, **meta)))
        tried(show, lambda: c.backward(T.ones(3, **meta)))
        tried(show, lambda: (c.to("meta") * 2).sum().backward())
        tried(show, lambda: to(c, "meta").sum().backward())
        tried(show, lambda: to(c * 1, "meta").sum().backward())
        tried(show, lambda: to(x, T.ones(3)).sum().backward())
        tried(show, lambda: to(x * 1, T.ones(3)).sum().backward())
        tried(show, lambda: to(s, T.ones(())).backward())
        show(s.grad.device, c.grad)
        tried(show, lambda: T.autograd.grad(x.sum(), x, T.ones(()))[0].device)
        tried(show, lambda: set_grad(c, T.ones(3, **meta)))
        tried(show, lambda: set_grad(x, T.ones(3)))
        with T.autograd.detect_anomaly():
            tried(show, lambda: (x * 2).sum().backward())

    same(program)


def test_a_module_on_the_meta_device():
    def program(T, show):
        model = T.nn.Sequential(T.nn.Linear(3, 4), T.nn.ReLU(), T.nn.LayerNorm(4)).to("meta")
        out = model(T.ones(2, 3, device="meta"))
        out[0].mul_(2)
        T.nn.functional.cross_entropy(T.cat([out, out]), T.zeros(4, dtype=T.int64, device="meta")).backward()
        show([(p.grad.shape, p.grad.stride(), p.grad.device) for p in model.parameters()])

    same(program)


def test_what_torch_c_says_of_metadata_and_views():
    def program(T, show):
        c = T._C._autograd
        x = T.ones(4, requires_grad=True)
        metadata = (x * 2).grad_fn._input_metadata[0]
        show(
            repr(metadata).split(" at ")[0],
            isinstance(metadata, c._InputMetadata),
            metadata.shape,
            metadata.is_nested_tensor,
        )
        y = x * 1
        show([c._get_creation_meta(t) for t in (y[:2], *y.chunk(2))], int(c.CreationMeta.NO_GRAD_MODE))
        with T.no_grad():
            show(repr(c._get_creation_meta(y.view(2, 2))))
        view = y[:2]
        c._set_creation_meta(view, c.CreationMeta.IN_CUSTOM_FUNCTION)
        show.error(lambda: view.mul_(2))
        show.error(lambda: c._get_creation_meta(x))
        before = c._get_sequence_nr()
        node = (x * 3).grad_fn
        show(node._sequence_nr() - before, c._get_sequence_nr() - before, c._get_current_graph_task_keep_graph())
        seen = []
        y = x * 1
        y.register_hook(lambda grad: seen.append(c._get_current_graph_task_keep_graph()))
        y.sum().backward(retain_graph=True)
        y.sum().backward()
        show(seen, c._get_data_attr(y).grad_fn)

    same(program)


def test_cov_of_one_observation_warns_once():
    def program(T, show):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            T.cov(T.ones(2, 1))
        show([str(w.message).split(" (Triggered")[0] for w in caught])

    same(program)
