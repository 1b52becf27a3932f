"""`out=` on a device: the kernel writes where it shall, without a second one that copies, and where it must not it does not."""

import gc

import pytest
import torch

import readtorch as rt
from readtorch import cuda
from tests.cuda.launches import counted_launches


@pytest.fixture(autouse=True)
def devices():
    cuda.simulate(2, "64MiB", kernels=True)
    yield
    gc.collect()
    cuda.simulate(0)


CALLS = {
    "add": lambda T, x, y, i, **out: T.add(x, y, alpha=2, **out),
    "mul by a number": lambda T, x, y, i, **out: T.mul(x, 3, **out),
    "exp": lambda T, x, y, i, **out: T.exp(x, **out),
    "eq": lambda T, x, y, i, **out: T.eq(x, y, **out),
    "addcmul": lambda T, x, y, i, **out: T.addcmul(x, x, y, **out),
    "clamp": lambda T, x, y, i, **out: T.clamp(x, 0, 0.5, **out),
    "where": lambda T, x, y, i, **out: T.where(x > y, x, y, **out),
    "mm": lambda T, x, y, i, **out: T.mm(x, y, **out),
    "addmm": lambda T, x, y, i, **out: T.addmm(x, x, y, **out),
    "mv": lambda T, x, y, i, **out: T.mv(x, y[0], **out),
    "sum": lambda T, x, y, i, **out: T.sum(x, 1, **out),
    "amax": lambda T, x, y, i, **out: T.amax(x, 0, **out),
    "prod": lambda T, x, y, i, **out: T.prod(x, 1, **out),
    "max": lambda T, x, y, i, **out: T.max(x, 1, **out),
    "topk": lambda T, x, y, i, **out: T.topk(x, 2, **out),
    "argmax": lambda T, x, y, i, **out: T.argmax(x, 1, **out),
    "gather": lambda T, x, y, i, **out: T.gather(x, 1, i, **out),
    "index_select": lambda T, x, y, i, **out: T.index_select(x, 0, i[0], **out),
    "scatter": lambda T, x, y, i, **out: T.scatter(x, 1, i, y, **out),
    "cat": lambda T, x, y, i, **out: T.cat([x, y], **out),
    "tril": lambda T, x, y, i, **out: T.tril(x, **out),
}


def inputs():
    x, y = ((torch.arange(16.0) * step % 7 / 4 - 0.5).view(4, 4) for step in (3, 5))
    return x, y, torch.tensor([[0, 1], [1, 0]])


def on_device(tensors):
    return [rt.tensor(t.tolist(), device="cuda") for t in tensors]


def parts(result):
    return list(result) if isinstance(result, tuple) else [result]


def as_list(result):
    return [t.tolist() for t in parts(result)]


@pytest.mark.parametrize("name", CALLS)
def test_no_second_kernel(name):
    ours, expected = on_device(inputs()), CALLS[name](torch, *inputs())
    with counted_launches() as kernels:
        result = CALLS[name](rt, *ours)
    out = tuple(rt.empty_like(t) for t in result) if isinstance(result, tuple) else rt.empty_like(result)
    before = cuda.memory_stats()["allocation.all.allocated"]
    with counted_launches() as again:
        CALLS[name](rt, *ours, out=out)
    assert again == kernels
    if name in ("add", "exp", "mm", "sum", "gather"):
        assert cuda.memory_stats()["allocation.all.allocated"] == before
    assert as_list(out) == as_list(result)
    for mine, theirs in zip(parts(result), parts(expected)):
        assert rt.allclose(mine.cpu(), rt.tensor(theirs.tolist()))


@pytest.mark.parametrize("how", ["an input", "transposed", "every other"])
def test_a_loop_writes_anywhere(how):
    (x, y, _), theirs = on_device(inputs()), inputs()
    out = {
        "an input": x,
        "transposed": rt.empty(4, 4, device="cuda").t(),
        "every other": rt.zeros(4, 8, device="cuda")[:, ::2],
    }
    with counted_launches() as kernels:
        rt.add(x, y, out=out[how])
    assert len(kernels) == 1 and out[how].tolist() == (theirs[0] + theirs[1]).tolist()
    assert out[how]._version == 1


@pytest.mark.parametrize(
    "call",
    [
        lambda T, x, y: T.add(x[:2], y[:2], out=x[1:3]),
        lambda T, x, y: T.add(x, y, out=T.zeros(4, 1, device=x.device).expand(4, 4)),
        lambda T, x, y: T.cumsum(x, 1, out=x),
        lambda T, x, y: T.add(x, y, out=T.zeros(4, 4, dtype=T.float64, device=x.device)),
        lambda T, x, y: T.mul(x, 2, out=T.zeros(4, 4, dtype=T.int32, device=x.device)),
        lambda T, x, y: T.mm(x, y, out=T.zeros(4, 4, device=x.device).t()),
        lambda T, x, y: T.sum(x, (0, 1), out=T.zeros((), device=x.device)),
    ],
)
def test_where_it_must_not(call):
    """What overlaps, or has another dtype or other strides, is what the reference makes of it, errors included."""
    outcomes = []
    for T, tensors in ((torch, inputs()), (rt, on_device(inputs()))):
        try:
            outcomes.append((call(T, *tensors[:2]).tolist(), tensors[0].tolist()))
        except RuntimeError as error:
            outcomes.append(str(error))
    assert outcomes[0] == outcomes[1]


def test_a_product_into_its_own_factor():
    """The reference's CPU gives zeros or the product, as the processor's BLAS writes: here it is the product."""
    x, y = inputs()[:2]
    on_gpu, other, *_ = on_device(inputs())
    assert rt.mm(on_gpu, other, out=on_gpu).tolist() == (x @ y).tolist()


def test_an_output_elsewhere():
    x = rt.ones(3, device="cuda")
    for out in (rt.empty(()), rt.empty((), device="cuda:1")):
        with pytest.raises(RuntimeError, match="Expected"):
            rt.sum(x, 0, out=out)
