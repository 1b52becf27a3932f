"""CUDA tensors: every operator runs our CUDA kernels, here on the kernel simulator, and gives what the CPU
gives."""

import gc
import json
import math
import os
import pathlib
import subprocess
import sys
import warnings

import numpy as np
import pytest
import torch

import readtorch as rt
from readtorch import cuda, nn
from readtorch.aten.dispatcher import registry
from readtorch.c10.cuda import runtime, simulator
from readtorch.c10.cuda.launch import launching_by
from readtorch.c10.dispatch_key import CPU, CUDA
from readtorch.nn import functional as F
from tests.conformance import runner
from tests.reference import tensors_on

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def devices():
    cuda.simulate(2, "64MiB", kernels=True)
    yield
    gc.collect()
    cuda.simulate(0)


def close(result, expected):
    if isinstance(result, (tuple, list)):
        return len(result) == len(expected) and all(map(close, result, expected))
    if not isinstance(result, rt.Tensor):
        return result == expected
    assert result.is_cuda and result.dtype == expected.dtype and result.stride() == expected.stride()
    return rt.allclose(result.cpu(), expected, rtol=1e-5, atol=1e-6, equal_nan=True)


# ------------------------------------------------------------------------------------------------ one
# operator

X = rt.tensor([[0.5, -1.25, 2.0], [-0.75, 0.125, 3.5]])
Y = rt.tensor([[1.5, 2.5, -0.5], [4.0, -2.0, 0.25]])
N = rt.tensor([[3, -7, 2], [5, 4, -1]])
I = rt.tensor([[1, 0, 1], [0, 1, 0]])

OPERATORS = {
    "add": lambda x, y, n, i: x + y,
    "add alpha": lambda x, y, n, i: rt.add(x, y, alpha=3),
    "rsub": lambda x, y, n, i: 2 - x,
    "mul": lambda x, y, n, i: x * y.t().t(),
    "div": lambda x, y, n, i: x / y,
    "integers": lambda x, y, n, i: n * 2 - n // 3,
    "mixed": lambda x, y, n, i: x * n,
    "int div": lambda x, y, n, i: n / 4,
    "pow": lambda x, y, n, i: x.abs() ** 1.5,
    "remainder": lambda x, y, n, i: n % 4,
    "transposed": lambda x, y, n, i: x.t() + y.t(),
    "broadcast": lambda x, y, n, i: x + y[0],
    "compare": lambda x, y, n, i: (x > y) | (n == 2),
    "where": lambda x, y, n, i: rt.where(x > 0, y, 1.5),
    "exp": lambda x, y, n, i: x.exp(),
    "exp of integers": lambda x, y, n, i: n.exp(),
    "sigmoid": lambda x, y, n, i: x.sigmoid(),
    "gelu": lambda x, y, n, i: F.gelu(x),
    "silu": lambda x, y, n, i: F.silu(x),
    "elu": lambda x, y, n, i: F.elu(x),
    "clamp": lambda x, y, n, i: x.clamp(-1, 1),
    "lerp": lambda x, y, n, i: x.lerp(y, 0.25),
    "addcmul": lambda x, y, n, i: rt.addcmul(x, x, y, value=2),
    "masked_fill": lambda x, y, n, i: x.masked_fill(x > 0, 7),
    "float64": lambda x, y, n, i: x.double() * y,
    "to int": lambda x, y, n, i: x.to(rt.int32),
    "half": lambda x, y, n, i: x.half() + 1,
    "sum": lambda x, y, n, i: x.sum(),
    "sum dim": lambda x, y, n, i: x.sum(0, keepdim=True),
    "sum int": lambda x, y, n, i: n.sum(1),
    "mean": lambda x, y, n, i: x.t().mean(1),
    "std": lambda x, y, n, i: x.std(1),
    "max": lambda x, y, n, i: x.max(1),
    "argmin": lambda x, y, n, i: x.argmin(),
    "amax": lambda x, y, n, i: x.amax((0, 1)),
    "any": lambda x, y, n, i: (x > 3).any(),
    "norm": lambda x, y, n, i: x.norm(),
    "logsumexp": lambda x, y, n, i: x.logsumexp(1),
    "cumsum": lambda x, y, n, i: x.cumsum(1),
    "sort": lambda x, y, n, i: x.sort(1, descending=True),
    "topk": lambda x, y, n, i: x.topk(2, 1),
    "softmax": lambda x, y, n, i: x.softmax(0),
    "log_softmax": lambda x, y, n, i: x.log_softmax(1),
    "mm": lambda x, y, n, i: x @ y.t(),
    "bmm": lambda x, y, n, i: rt.bmm(rt.stack([x, y]), rt.stack([y.t(), x.t()])),
    "addmm": lambda x, y, n, i: rt.addmm(x[:, :2], x, y.t(), beta=0.5, alpha=2),
    "mv": lambda x, y, n, i: x @ y[0],
    "dot": lambda x, y, n, i: x[0].dot(y[1]),
    "linear": lambda x, y, n, i: F.linear(x, y, x[:, 0]),
    "layer_norm": lambda x, y, n, i: F.layer_norm(x, (3,), y[0], y[1]),
    "group_norm": lambda x, y, n, i: F.group_norm(x.reshape(1, 2, 3), 1, y[0, :2], y[1, :2]),
    "batch_norm": lambda x, y, n, i: F.batch_norm(x, None, None, y[0], y[1], training=True),
    "conv1d": lambda x, y, n, i: F.conv1d(x[None], y[None, :, :2], padding=1),
    "conv_transpose2d": lambda x, y, n, i: F.conv_transpose2d(x[None, None], y[None, None], stride=2),
    "max_pool2d": lambda x, y, n, i: F.max_pool2d(x[None, None], 2, 1),
    "avg_pool2d": lambda x, y, n, i: F.avg_pool2d(x[None], 2, 1),
    "cat": lambda x, y, n, i: rt.cat([x, y[:1]]),
    "cat dtypes": lambda x, y, n, i: rt.cat([x, n], 1),
    "stack": lambda x, y, n, i: rt.stack([x, y], 1),
    "flip": lambda x, y, n, i: x.flip(0, 1),
    "roll": lambda x, y, n, i: x.roll(1, 1),
    "repeat": lambda x, y, n, i: x.repeat(2, 1, 2),
    "tril": lambda x, y, n, i: x.tril(),
    "pad": lambda x, y, n, i: F.pad(x, (1, -1), value=9),
    "clone": lambda x, y, n, i: x.t().clone(),
    "views": lambda x, y, n, i: x.t()[1:].unsqueeze(0).expand(2, 2, 2),
    "reshape": lambda x, y, n, i: x.t().reshape(6),
    "gather": lambda x, y, n, i: x.gather(0, i),
    "scatter": lambda x, y, n, i: x.scatter(0, i, y),
    "index_select": lambda x, y, n, i: x.index_select(1, i[0]),
    "scatter_add": lambda x, y, n, i: x.scatter_add(1, i, y),
    "index_add": lambda x, y, n, i: x.index_add(1, i[0], y),
    "index": lambda x, y, n, i: x[i[0], :2],
    "index inner": lambda x, y, n, i: rt.stack([x, y])[:, i[:, :2], 0],
    "mask": lambda x, y, n, i: x[x > 0],
    "index of the host": lambda x, y, n, i: x[rt.tensor([1, 0])],
    "nonzero": lambda x, y, n, i: (x > 0).nonzero(),
    "item": lambda x, y, n, i: x[1, 2].item(),
    "index_put": lambda x, y, n, i: x.index_put((i[0], i[1]), y[0], accumulate=True),
    "embedding": lambda x, y, n, i: F.embedding(i, x),
    "tolist": lambda x, y, n, i: x.tolist(),
    "equal": lambda x, y, n, i: bool((x == x).all()),
    "cross_entropy": lambda x, y, n, i: F.cross_entropy(x, i[0, :2]),
    "mse_loss": lambda x, y, n, i: F.mse_loss(x, y),
    "attention": lambda x, y, n, i: F.scaled_dot_product_attention(
        x[None, None], y[None, None], x[None, None], is_causal=True
    ),
    "zeros_like": lambda x, y, n, i: rt.zeros_like(x.t()),
    "full": lambda x, y, n, i: rt.full((2, 2), 3.5, device=x.device),
    "arange": lambda x, y, n, i: rt.arange(1, 8, 2, device=x.device),
    "eye": lambda x, y, n, i: rt.eye(2, 3, device=x.device),
    "empty": lambda x, y, n, i: x[:0].sum(0),
    "in place": lambda x, y, n, i: x.clone().mul_(y).add_(1),
    "copy_": lambda x, y, n, i: x.clone().copy_(n),
    "out": lambda x, y, n, i: rt.mul(x, y, out=rt.empty(0, device=x.device)),
    "row in place": lambda x, y, n, i: x.clone()[1].fill_(2),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_give_what_the_cpu_gives(name):
    arguments = X, Y, N, I
    assert close(OPERATORS[name](*[t.cuda() for t in arguments]), OPERATORS[name](*arguments))


# What PyTorch's own inputs find, samples of one dtype with gradients; `make gpu` runs all of them on a real
# device.
@pytest.mark.parametrize("name", ["where", "mean", "gather", "flip"])
def test_conformance(name):
    with tensors_on("cuda"):
        report = runner.run_op(name, [torch.float32], limit=1, errors=False)
    assert not report.failures, report.failures[:2]


def test_an_operator_without_a_kernel_says_so():
    with pytest.raises(NotImplementedError, match="Could not run 'aten::linalg_eig' with arguments from the 'CUDA'"):
        rt.linalg.eig(rt.eye(2, device="cuda"))


def test_no_kernel_is_the_cpus():
    """A kernel for CUDA is either one of ours or one that looks at sizes and strides alone."""
    for operator in registry.values():
        assert CUDA not in operator.kernels or operator.kernels[CUDA] is not operator.kernels.get(CPU)


def test_kernels_have_no_races():
    x = rt.randn(3, 40)
    there = x.cuda()
    with launching_by(simulator.check):
        results = [there.sum(), there.softmax(1), there @ there.t(), there.sort(1).values]
    assert close(results, [x.sum(), x.softmax(1), x @ x.t(), x.sort(1).values])


# -------------------------------------------------------------------------------------------------- where
# things are


def test_copies_between_host_and_devices():
    x = rt.arange(12.0).view(3, 4)
    gaps = x.cuda()[:, 1:3]
    assert gaps.cpu().equal(x[:, 1:3]) and gaps.t().to("cuda:1").cpu().equal(x[:, 1:3].t())
    target = rt.zeros(3, 4, device="cuda:1")
    target[:, ::2] = x.cuda("cuda:0")[:, 1::2]
    assert target.cpu()[:, ::2].equal(x[:, 1::2])
    host = rt.zeros(4, 3)
    assert host.copy_(x.cuda().t()).equal(x.t())
    with pytest.raises(TypeError, match="can't convert cuda:0 device type tensor to numpy"):
        gaps.numpy()
    assert repr(gaps[0]) == "tensor([1., 2.], device='cuda:0')"


def test_operands_on_different_devices():
    with pytest.raises(
        RuntimeError, match="Expected all tensors to be on the same device, but found at least two devices"
    ):
        rt.ones(2, device="cuda:0") + rt.ones(2, device="cuda:1")
    assert (rt.ones(2, device="cuda") + rt.tensor(2.0)).tolist() == [3.0, 3.0]


def test_memory_comes_and_goes():
    before = cuda.memory_allocated()
    x = rt.ones(1000, device="cuda")
    assert cuda.memory_allocated() - before == 4096
    x.std()  # needs memory for steps in between
    del x
    gc.collect()
    assert cuda.memory_allocated() == before


def test_work_goes_to_the_current_stream():
    stream = cuda.Stream()
    launches = []

    class Noting(runtime.SimulatedDriver):
        def launch(self, device, stream, *rest, **more):
            launches.append((device, stream))
            super().launch(device, stream, *rest, **more)

    runtime.driver().__class__ = Noting
    x = rt.ones(2, device="cuda")
    with cuda.stream(stream):
        x + x
    assert launches == [(0, 0), (0, stream.cuda_stream)]


def test_errors_of_the_device_name_the_operator(monkeypatch):
    monkeypatch.setenv("CUDA_LAUNCH_BLOCKING", "1")
    table, place = rt.ones(2, 2, device="cuda"), rt.tensor([5], device="cuda")
    with pytest.raises(rt.AcceleratorError, match="device-side assert triggered") as caught:
        F.embedding(place, table)
    assert caught.value.__notes__ == ["It came to light in the operator 'aten::embedding'."]
    cuda.simulate(kernels=True)


def test_gradients_and_hooks():
    x = rt.tensor([1.0, 2.0, 3.0], device="cuda", requires_grad=True)
    y = (x * x).sum()
    (first,) = rt.autograd.grad(y, x, create_graph=True)
    first.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0, 2.0] and x.grad.is_cuda
    with (
        rt.autograd.detect_anomaly(),
        pytest.raises(RuntimeError, match="returned nan values"),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        (x.detach().requires_grad_() * math.nan).sum().backward()


# ------------------------------------------------------------------------------------------------- random
# numbers


@pytest.mark.parametrize(
    "draw",
    [
        lambda: rt.rand(5, device="cuda"),
        lambda: rt.randn(7, device="cuda"),
        lambda: rt.randint(0, 9, (3, 2), device="cuda"),
        lambda: rt.randn(3, dtype=rt.float64, device="cuda"),
        lambda: rt.empty(4, device="cuda").exponential_(2),
        lambda: rt.empty(3, 2, device="cuda").t().uniform_(-1, 1),
        lambda: rt.empty(4, device="cuda").bernoulli_(0.5),
    ],
)
def test_numbers_are_those_of_simulated_devices(draw):
    """Which were checked against numbers that real GPUs gave: test_simulated_device.py."""
    rt.manual_seed(3)
    ours = [draw().cpu(), draw().cpu()]
    cuda.simulate(1, "64MiB")
    rt.manual_seed(3)
    assert all(rt.allclose(numbers, draw().cpu(), rtol=1e-5, atol=1e-6) for numbers in ours)


def laid_out_for_dropout(dtype):
    """How many elements a thread takes follows from their size, number and layout."""
    for n in (1, 2, 4, 6, 8, 40, 41, 1032, 2050):
        yield rt.ones(n, dtype=dtype, device="cuda")
    yield rt.ones(2, 4, 3, 4, dtype=dtype, device="cuda").contiguous(memory_format=rt.channels_last)
    yield rt.ones(9, 6, dtype=dtype, device="cuda").t()
    yield rt.ones(41, dtype=dtype, device="cuda")[1:]
    yield rt.ones(9, 6, dtype=dtype, device="cuda")[:, :4]


@pytest.mark.parametrize("dtype", [rt.float16, rt.float32, rt.float64], ids=str)
def test_dropout_draws_as_on_simulated_devices(dtype):
    def draw_all():
        rt.manual_seed(5)
        pairs = [rt.native_dropout(x, 0.3, True) for x in laid_out_for_dropout(dtype)]
        results = [(y.tolist(), y.stride(), mask.tolist(), mask.stride()) for y, mask in pairs]
        return results, rt.cuda.get_rng_state().tolist()

    ours = draw_all()
    cuda.simulate(1, "64MiB")
    assert ours == draw_all()


def test_dropout():
    x = rt.ones(64, device="cuda", requires_grad=True)
    y = F.dropout(x, 0.25)
    assert y.grad_fn.name() == "NativeDropoutBackward0"
    y.sum().backward()
    assert set(y.tolist()) == {0.0, float(np.float32(4 / 3))} and x.grad.equal(y)


# -------------------------------------------------------------------------------------------------------
# training


@pytest.mark.parametrize("name", ["mlp", "cnn", "lstm", "gpt"])
def test_training_stays_on_the_device(name):
    """On memory that the host cannot read: see networks.py."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    done = subprocess.run(
        [sys.executable, "-m", "tests.cuda.networks", name],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    results = json.loads(done.stdout)
    assert results["cuda"] == pytest.approx(results["cpu"], rel=1e-4)


def test_modules_and_state():
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)).cuda()
    twin = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    twin.load_state_dict(model.state_dict())
    x = rt.tensor([[1.0, 2.0], [3.0, 5.0]])
    assert close(model(x.cuda()), twin(x))
    assert model[1].running_mean.cpu().allclose(twin[1].running_mean)
