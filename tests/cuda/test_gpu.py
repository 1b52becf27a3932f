"""On a real GPU: training, streams, memory, tensor cores. Skipped where there is none. Operators: test_gpu_operators.py
(against PyTorch), test_gpu_kernels.py (against our CPU).

No run has been recorded yet: benchmarks/results/gpu/README.md.
"""

import math
import os
import re
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

import readtorch as rt
from readtorch import cuda
from readtorch.aten.native.cuda.mma import mma_bf16, mma_f16
from readtorch.c10.cuda.launch import on_chip
from tests.cuda import networks
from tests.cuda.test_tensor_cores import by_tf32, halves

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("gpu")]


@pytest.mark.parametrize("name", networks.NETWORKS)
def test_training(name):
    assert networks.trained(name, "cuda") == pytest.approx(networks.trained(name, "cpu"), rel=1e-3)


def test_events_measure_time():
    x = rt.randn(512, 512, device="cuda")
    x @ x
    start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
    start.record()
    x @ x
    end.record()
    end.synchronize()
    assert start.elapsed_time(end) > 0


def test_streams_run_side_by_side():
    stream, x = cuda.Stream(), rt.randn(1000, device="cuda")
    stream.wait_stream(cuda.current_stream())
    with cuda.stream(stream):
        y = x * 2
    cuda.current_stream().wait_stream(stream)
    assert rt.allclose((y / 2).cpu(), x.cpu())


def test_copies_from_pinned_memory_need_not_be_waited_for():
    before = cuda.host_memory_stats()["num_host_alloc"]
    x = rt.randn(1 << 20).pin_memory()
    assert cuda.host_memory_stats()["num_host_alloc"] == before + 1  # the driver made it, and knows it
    assert cuda.runtime.driver().is_host_pinned(x[1000:].data_ptr()) and x[1000:].is_pinned()
    there, total = x.to("cuda", non_blocking=True), x.sum().item()
    del x
    rt.zeros(1 << 20, pin_memory=True).to("cuda", non_blocking=True)
    assert there.sum().item() == pytest.approx(total, rel=1e-3, abs=1)
    back = there.to("cpu", non_blocking=True)
    cuda.synchronize()
    assert back.is_pinned() and back.equal(there.cpu())
    assert not rt.ones(2).is_pinned()


WITHOUT_SIMULATOR = """
import sys, warnings
sys.modules["greenlet"] = None
import readtorch as rt
warnings.simplefilter("error")
warnings.simplefilter("ignore", ResourceWarning)
x = rt.ones(3, device="cuda")
print((x + x).softmax(0).sum().item())
"""


def test_neither_greenlet_nor_a_warning_comes_with_a_launch():
    done = subprocess.run([sys.executable, "-c", WITHOUT_SIMULATOR], capture_output=True, text=True, timeout=300)
    assert float(done.stdout) == pytest.approx(1) and "Warning" not in done.stderr, done.stderr


ENDS_BADLY = """
import readtorch as rt
x = rt.ones(3, 4, device="cuda")
try:
    y = x.gather(1, rt.tensor([[4]], device="cuda"))
    print("later", y.sum().item())
except rt.AcceleratorError as error:
    print(error)
for call in (rt.cuda.synchronize, x.cpu, lambda: x + x, rt.cuda.Event().record, lambda: rt.ones(1 << 26, device="cuda")):
    try:
        call()
    except rt.AcceleratorError as error:
        print(str(error).splitlines()[0])
"""


@pytest.mark.parametrize("blocking", [False, True])
def test_an_assertion_of_a_kernel(blocking):
    """In a process of its own, which loses its context."""
    environment = os.environ | {"CUDA_LAUNCH_BLOCKING": str(int(blocking))}
    done = subprocess.run(
        [sys.executable, "-c", ENDS_BADLY], capture_output=True, text=True, env=environment, timeout=300
    )
    assert re.search(
        r"scatter_gather_kernel.py:\d+: in_bounds: block: \[0,0,0\], thread: \[0,0,0\] "
        r'Assertion `0 <= index < size and "index out of bounds"` failed.',
        done.stderr,
    ), done.stderr
    assert done.stdout.count("CUDA error: device-side assert triggered\n") == 6
    assert ("might be asynchronously reported" in done.stdout) != blocking


def test_a_graph_does_at_each_replay_what_was_captured():
    x, weight = rt.ones(8, device="cuda"), rt.randn(8, 8, device="cuda")

    def forward():
        return (x @ weight).relu() + 1

    side = cuda.Stream()
    side.wait_stream(cuda.current_stream())
    with cuda.stream(side):  # what is made at the first call is no part of a graph
        forward()
    cuda.current_stream().wait_stream(side)
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        y = forward()
    for value in (2.0, -3.0):
        x.fill_(value)
        graph.replay()
        assert rt.allclose(y, forward(), atol=1e-5)


def test_a_capture_forbids_to_wait():
    x = rt.ones(8, device="cuda")
    x.sum()
    with (
        cuda.stream(cuda.current_stream()),  # a capture that fails does not leave its stream, as in PyTorch
        pytest.raises(cuda.AcceleratorError, match="operation failed due to a previous error during capture"),
        cuda.graph(cuda.CUDAGraph()),
    ):
        x.sum().item()
    assert (x + 1).sum().item() == 16


def test_numba_takes_our_memory():
    from numba import cuda as numba_cuda

    before = cuda.memory_allocated()
    array = numba_cuda.device_array(1000)
    assert cuda.memory_allocated() - before >= 8000
    del array
    assert cuda.memory_allocated() == before


def test_numba_computes_in_our_tensors_and_we_in_its_arrays():
    from numba import cuda as numba_cuda

    @numba_cuda.jit
    def double(x):
        i = numba_cuda.grid(1)
        if i < x.size:
            x[i] *= 2

    x = rt.arange(10.0, device="cuda")
    double[1, 32](numba_cuda.as_cuda_array(x[::2]))
    numba_cuda.synchronize()
    assert x.tolist() == [0, 1, 4, 3, 8, 5, 12, 7, 16, 9]
    array = numba_cuda.to_device(x.cpu().numpy()[3:])
    ours = rt.as_tensor(array)
    assert ours.device == x.device and ours.equal(x[3:])
    ours.add_(1)
    assert array.copy_to_host().tolist() == (x[3:] + 1).tolist()
    assert rt.as_tensor(numba_cuda.device_array((0, 3))).shape == (0, 3)


@pytest.mark.parametrize("dtype", [rt.float32, rt.bfloat16, rt.bool])
def test_capsules_of_our_memory(dtype):
    x = rt.arange(6, device="cuda").view(2, 3).to(dtype)
    shared = rt.utils.dlpack.from_dlpack(x.t())
    shared.zero_()
    assert x.__dlpack_device__() == (2, 0) and shared.data_ptr() == x.data_ptr() and not x.any().item()
    assert rt.ones(1, pin_memory=True).__dlpack_device__() == (3, 0)


def test_random_numbers_are_those_of_a_simulated_device():
    """For so few elements the number of multiprocessors plays no part."""
    rt.manual_seed(0)
    found = [round(v, 4) for v in rt.rand(10, device="cuda").tolist()]
    assert found == [0.3990, 0.5167, 0.0249, 0.9401, 0.9459, 0.7967, 0.4150, 0.8203, 0.2290, 0.9096]


def test_nan_and_infinity_survive():
    x = rt.tensor([math.nan, math.inf, -math.inf, 0.0], device="cuda")
    assert math.isnan(x.amax().item()) and x.isnan().tolist() == [True, False, False, False]


def product_of(kernel, *operands):
    """What a warp writes to its last argument, 16 × 8 numbers."""
    from numba import cuda as numba_cuda

    arrays = [numba_cuda.to_device(array) for array in (*operands, np.zeros((16, 8), np.float32))]
    on_chip(kernel, 1, 32, *arrays)
    return arrays[-1].copy_to_host()


@pytest.mark.parametrize("from_rows", [False, True])
@pytest.mark.parametrize("mma, dtype", [(mma_bf16, ml_dtypes.bfloat16), (mma_f16, np.float16)], ids=["bf16", "f16"])
def test_tensor_cores(mma, dtype, from_rows):
    random = np.random.default_rng(0)
    a, b = random.standard_normal((16, 16)).astype(dtype), random.standard_normal((16, 8)).astype(dtype)
    words = [np.ascontiguousarray(x).reshape(-1).view(np.uint32) for x in (a, b if from_rows else b.T)]
    wanted = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(product_of(halves(mma, from_rows), *words), wanted, rtol=1e-5, atol=1e-5)


def test_tensor_cores_of_tf32():
    random = np.random.default_rng(0)
    a, b = random.standard_normal((16, 8)).astype(np.float32), random.standard_normal((8, 8)).astype(np.float32)
    words = a.view(np.uint32), b.view(np.uint32)
    np.testing.assert_allclose(product_of(by_tf32, *words), a @ b, rtol=2e-3, atol=5e-3)


def test_attention():
    """The fused kernels: several tiles, heads that share keys, and backward."""
    q, k, v, grad = (
        rt.randn(1, heads, length, 24).bfloat16() for heads, length in ((2, 70), (1, 130), (1, 130), (2, 70))
    )

    def trained(device, dtype):
        inputs = [x.to(device, dtype).requires_grad_() for x in (q, k, v)]
        out = rt.nn.functional.scaled_dot_product_attention(*inputs, enable_gqa=True)
        out.backward(grad.to(device, dtype))
        return [x.detach().cpu().double() for x in (out, *(i.grad for i in inputs))]

    for found, expected in zip(trained("cuda", rt.bfloat16), trained("cpu", rt.float64)):
        np.testing.assert_allclose(found, expected, rtol=2**-7, atol=2**-6)
