"""Backward on devices: a thread and a queue for each, the streams of forward again, the state of the thread that called.

The reference has no device here, so these say what its notes say: "Stream semantics of backward passes", Note [Streaming
backwards].
"""

import gc
import threading
import weakref

import pytest

import readtorch as rt
from readtorch.c10.cuda import runtime


@pytest.fixture(autouse=True)
def two_devices():
    rt.cuda.simulate(devices=2)
    yield
    rt.cuda.simulate(0)


def thread_name():
    return threading.current_thread().name


def leaf(device="cuda:0", n=3):
    return rt.ones(n, device=device, requires_grad=True)


def where(t):
    """The thread in which the gradient of `t` is known, and the device that is the current one there."""
    seen = []
    t.register_hook(lambda grad: seen.append((thread_name(), rt.cuda.current_device(), str(grad.device))))
    return seen


def test_each_device_has_a_thread_and_the_host_is_the_calling_one():
    x, other = rt.ones(3, requires_grad=True), leaf("cuda:1")
    on_device = x.to("cuda:0")
    seen = [where(t) for t in (x, on_device, other)]
    (on_device * 2 + (other * 3).to("cuda:0")).sum().backward()
    assert seen[0] == [(thread_name(), 0, "cpu")]
    assert seen[1] == [("pt_autograd_0", 0, "cuda:0")]
    assert seen[2] == [("pt_autograd_1", 1, "cuda:1")]
    assert x.grad.tolist() == [2, 2, 2] and x.grad.device.type == "cpu"
    assert other.grad.tolist() == [3, 3, 3] and str(other.grad.device) == "cuda:1"
    assert rt.cuda.current_device() == 0


def test_backward_runs_on_the_stream_of_forward():
    stream, seen = rt.cuda.Stream(), []
    x = leaf()

    def note(grad):
        seen.append(rt.cuda.current_stream())

    with rt.cuda.stream(stream):
        y = x * 2
    y.register_hook(note)
    z = y * 3
    z.register_hook(note)
    z.sum().backward()
    assert seen == [rt.cuda.default_stream(), stream]
    assert rt.cuda.current_stream() == rt.cuda.default_stream()


def test_streams_wait_for_one_another(monkeypatch):
    stream, x = rt.cuda.Stream(), leaf()
    with rt.cuda.stream(stream):
        y = x * 2
    waits, driver = [], runtime.driver()
    wait = driver.stream_wait_event
    monkeypatch.setattr(driver, "stream_wait_event", lambda *call: (waits.append(call[:2]), wait(*call)))
    (y * 3).sum().backward()
    # y's gradient comes from the default stream; the leaf's was noted inside, and at last the caller's waits for that
    assert waits == [(0, stream.cuda_stream), (0, rt.cuda.default_stream().cuda_stream)]
    assert x.grad.tolist() == [6, 6, 6]


def test_errors_come_to_the_caller_and_the_thread_goes_on():
    x = leaf("cuda:1")
    y = x * 2

    def fail(grad):
        raise ValueError("in a thread")

    y.register_hook(fail)
    with pytest.raises(ValueError, match="in a thread"):
        y.sum().backward()
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2, 2, 2]


def test_threads_can_be_forbidden():
    x = leaf()
    seen = where(x)
    with rt.autograd.set_multithreading_enabled(False):
        (x * 2).sum().backward()
    assert [name for name, *_ in seen] == [thread_name()]


def test_what_a_devices_thread_takes_over():
    x, seen = leaf(), []

    def note(grad):
        seen.append((rt.is_grad_enabled(), rt.is_inference_mode_enabled(), rt.autograd.graph.Node is not None))
        rt.set_grad_enabled(True)  # for this node alone

    def packed(t):
        seen.append("packed")
        return t

    y = x * x
    y.register_hook(note)
    x.register_hook(note)
    y.sum().backward(create_graph=False)
    assert seen == [(False, False, True)] * 2
    seen.clear()
    y = (x * x).exp()
    with rt.autograd.graph.saved_tensors_hooks(packed, lambda t: t):
        (grad,) = rt.autograd.grad(y.sum(), x, create_graph=True)
    assert "packed" in seen and grad.requires_grad


def test_backward_inside_backward_on_a_device():
    names = []

    class Inner(rt.autograd.Function):
        @staticmethod
        def forward(ctx, x, depth):
            ctx.depth = depth
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            names.append(thread_name())
            if ctx.depth == 0:
                return grad * 2, None
            with rt.enable_grad():
                x = leaf()
                Inner.apply(x, ctx.depth - 1).backward(grad)
            return x.grad, None

    x = leaf()
    Inner.apply(x, 70).sum().backward()
    assert x.grad.tolist() == [2, 2, 2]
    assert names[:61] == ["pt_autograd_0"] * 61 and "pt_autograd_0" not in names[61:]


def test_threads_keep_nothing_of_what_they_ran():
    class Mark:
        pass

    x = leaf()
    y = x * 2
    y.grad_fn.metadata["mark"] = mark = Mark()
    died = weakref.ref(mark)
    y.sum().backward()
    del y, mark
    for _ in range(100):
        gc.collect()
        if died() is None:
            break
    assert died() is None


def test_many_threads_into_one_leaf():
    x = leaf("cpu")
    device = [leaf(f"cuda:{i}") for i in (0, 1)]

    def run():
        for _ in range(20):
            sum([(d.cpu() * x).sum() for d in device]).backward()

    threads = [threading.Thread(target=run) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert x.grad.tolist() == [160, 160, 160]
    assert [d.grad.tolist() for d in device] == [[80, 80, 80]] * 2
