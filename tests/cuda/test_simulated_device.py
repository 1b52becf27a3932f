"""Tensors on simulated devices: the same values as on the CPU, in memory that the caching allocator lends."""

import copy
import gc
import io
import pickle

import numpy as np
import pytest
import torch

import readtorch as rt
from readtorch import cuda, nn
from readtorch.c10.cuda import runtime
from readtorch.c10.cuda.philox_rng_engine import philox4x32
from tests.conformance import catalog, runner
from tests.reference import tensors_on
from tests.training import models, tasks

MIB = 1 << 20


@pytest.fixture(autouse=True)
def devices():
    cuda.simulate(2, "512MiB")
    yield
    gc.collect()
    cuda.simulate(0)


def allocated(device=0):
    return cuda.memory_allocated(device)


# ------------------------------------------------------------------------------------------------- operators

# In PyTorch, too, these are not the same on a device: other random numbers, a view instead of a new tensor.
DIFFERS = {
    "nn.functional.max_pool1d",
    "rand_like",
    "normal",
    "bernoulli",
    "multinomial",
    "nn.functional.dropout",
    "nn.functional.dropout2d",
}


@pytest.mark.parametrize("name", [n for n in catalog.passing_names() if n in catalog.core_names() and n not in DIFFERS])
def test_operators_compute_the_same(name):
    with tensors_on("cuda"):
        report = runner.run_op(name, [torch.float32], limit=1, errors=False)
    assert not report.failures, report.failures[:2]


def test_results_are_where_the_inputs_are():
    x = rt.randn(3, 4, device="cuda:1")
    for result in (
        x + 1,
        x @ x.T,
        x[1:],
        x.sum(),
        x.max(0).values,
        x > 0,
        x.to(rt.float64),
        rt.zeros_like(x),
        x.new_ones(2),
    ):
        assert result.device == rt.device("cuda:1")
        assert runtime.driver().host(result.data_ptr(), result.element_size()).nbytes


def test_operands_on_different_devices():
    a, b, c = rt.ones(2), rt.ones(2, device="cuda:0"), rt.ones(2, device="cuda:1")
    for left, right in ((a, b), (b, a), (b, c)):
        with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device, but found at least two"):
            left + right
    assert (b + rt.tensor(2.0)).tolist() == [3.0, 3.0]  # a number without dimensions may be anywhere
    assert b[rt.tensor([0])].tolist() == [1.0]  # so may indices


def test_copies_between_devices():
    x = rt.arange(6.0).view(2, 3).t()
    y = x.cuda()
    z = y.to("cuda:1", rt.float64)
    assert (y.stride(), y.device.index, z.device.index) == (x.stride(), 0, 1)
    assert z.cpu().equal(x.double()) and y.cuda() is y and y.to("cuda:0") is y and y.to("cuda") is y
    target = rt.empty(3, 2)
    assert target.copy_(z).equal(x)
    with pytest.raises(TypeError, match="can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu"):
        y.numpy()


def test_default_device_and_devices_as_contexts():
    with rt.device("cuda:1"):
        made = [rt.zeros(2), rt.tensor([1]), rt.rand(2), rt.arange(3), rt.full((2,), 1.0), nn.Linear(2, 2).weight]
    assert {t.device for t in made} == {rt.device("cuda:1")}
    with cuda.device(1):
        assert rt.zeros(1, device="cuda").device.index == 1 and cuda.current_device() == 1
    assert cuda.current_device() == 0
    with pytest.raises(rt.AcceleratorError, match="invalid device ordinal"):
        rt.zeros(1, device="cuda:2")


# ---------------------------------------------------------------------------------------------------- memory


def test_memory_comes_and_goes():
    before = allocated()
    x = rt.zeros(1000, device="cuda")
    view = x[10:20].view(2, 5)
    assert allocated() - before == 4096
    del x
    assert allocated() - before == 4096  # the view still needs it
    del view
    assert allocated() == before


def test_training_leaves_nothing_behind():
    model = nn.Sequential(nn.Linear(10, 20), nn.ReLU(), nn.Linear(20, 2)).cuda()
    optimizer = rt.optim.Adam(model.parameters())

    def steps(number):
        for _ in range(number):
            optimizer.zero_grad()
            target = rt.zeros(5, dtype=rt.int64, device="cuda")
            nn.functional.cross_entropy(model(rt.randn(5, 10, device="cuda")), target).backward()
            optimizer.step()
        return allocated()

    assert steps(2) == steps(3)
    optimizer.zero_grad()
    model = optimizer = None
    gc.collect()
    assert allocated() == 0


def test_gradients_are_stolen_on_devices_too():
    w = rt.ones(1000, device="cuda", requires_grad=True)
    x = rt.ones(1000, device="cuda")
    before = allocated()
    (w * x).sum().backward()
    assert allocated() - before == 4096  # the gradient, and no second copy of it


def test_out_of_memory_and_on():
    with pytest.raises(
        rt.OutOfMemoryError, match="CUDA out of memory. Tried to allocate 1024.00 MiB. GPU 0 has a total"
    ):
        rt.empty(256 * MIB, device="cuda")
    assert rt.ones(3, device="cuda").sum().item() == 3


# -------------------------------------------------------------------------------------------------- programs

NETWORKS = {
    "mlp": (models.mlp, lambda: tasks.vectors(rt, 8), tasks.classification_loss),
    "cnn": (models.mnist_cnn, lambda: tasks.images(rt, 4, 1, 28), tasks.classification_loss),
    "lstm": (models.lstm_language_model, lambda: tasks.texts(rt, 2, 12, 100), tasks.language_loss),
    "gpt": (lambda T: models.gpt(T, layers=2, d=32, context=16), lambda: tasks.texts(rt, 2, 16), tasks.language_loss),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_train_as_on_the_cpu(name):
    build, make_batch, loss_of = NETWORKS[name]
    losses = {}
    for place in ("cpu", "cuda"):
        rt.manual_seed(0)
        model = build(rt).to(place)
        for dropout in [m for m in model.modules() if isinstance(m, nn.Dropout)]:
            dropout.p = 0.0  # a device draws other numbers
        batch = [t.to(place) for t in make_batch()]
        optimizer = rt.optim.AdamW(model.parameters(), lr=1e-3)
        losses[place] = []
        for _ in range(3):
            optimizer.zero_grad()
            loss = loss_of(rt, model, *batch)
            loss.backward()
            optimizer.step()
            losses[place].append(loss.item())
    assert losses["cpu"] == pytest.approx(losses["cuda"], rel=1e-5)


def test_modules_checkpoints_and_copies():
    model = nn.BatchNorm1d(4).to("cuda:1")
    model(rt.randn(8, 4, device="cuda:1"))
    twin = copy.deepcopy(model)
    assert twin.weight.device == model.weight.device and twin.weight.data_ptr() != model.weight.data_ptr()
    file = io.BytesIO()
    rt.save(model.state_dict(), file)
    for place, expected in ((None, "cuda:1"), ("cpu", "cpu"), ("cuda:0", "cuda:0")):
        file.seek(0)
        loaded = rt.load(file, map_location=place)
        assert str(loaded["running_mean"].device) == expected
        assert loaded["running_mean"].cpu().equal(model.running_mean.cpu())
    again = pickle.loads(pickle.dumps(model.weight.detach()))
    assert again.device == model.weight.device and again.cpu().equal(model.weight.detach().cpu())


# ---------------------------------------------------------------------------------------- streams and events


def test_streams_and_events():
    stream = cuda.Stream(1)
    assert cuda.current_stream(1) == cuda.default_stream(1)
    with cuda.stream(stream):
        assert (cuda.current_device(), cuda.current_stream()) == (1, stream)
        x = rt.ones(10, device="cuda")
        done = stream.record_event()
    assert cuda.current_device() == 0
    cuda.current_stream(1).wait_event(done)
    x.record_stream(cuda.default_stream(1))
    cuda.synchronize(1)
    assert stream.query() and done.query()
    with pytest.raises(NotImplementedError, match="Could not run 'aten::record_stream' with arguments from the 'CPU'"):
        rt.ones(1).record_stream(stream)


def test_33_streams_are_32():
    streams = [cuda.Stream() for _ in range(33)]
    assert len(set(streams[:32])) == 32 and streams[32] == streams[0]


def test_time_between_events_is_the_devices():
    cuda.simulate(1, "64MiB", latencies=None)
    start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
    start.record()
    runtime.driver().enqueue(0, 0, lambda: None, duration=1500.0)
    end.record()
    cuda.synchronize()
    assert start.elapsed_time(end) == pytest.approx(1.5)
    with pytest.raises(ValueError, match="Both events must be created with argument 'enable_timing=True'"):
        start.elapsed_time(cuda.Event())


# -------------------------------------------------------------------------------------------- random numbers


def test_each_device_has_its_numbers():
    rt.manual_seed(3)
    assert cuda.initial_seed() == 3
    state = cuda.get_rng_state(0)
    first = rt.rand(5, device="cuda")
    cuda.set_rng_state(state, 0)
    assert rt.rand(5, device="cuda").equal(first)
    on_host = rt.get_rng_state()
    rt.rand(5, device="cuda:1")
    assert rt.get_rng_state().equal(on_host)
    generator = rt.Generator("cuda").manual_seed(3)
    assert rt.rand(5, generator=generator, device="cuda").equal(first)


def printed(values):
    return [round(v, 4) for v in values.flatten().tolist()]


def test_numbers_are_those_of_real_gpus():
    """As torch prints them on NVIDIA GPUs; they stand in the tests and issues of many projects."""
    rt.manual_seed(0)
    assert printed(rt.rand(10, device="cuda")) == [
        0.3990,
        0.5167,
        0.0249,
        0.9401,
        0.9459,
        0.7967,
        0.4150,
        0.8203,
        0.2290,
        0.9096,
    ]
    assert printed(rt.rand(10, device="cuda")) == [
        0.9722,
        0.7910,
        0.4690,
        0.3300,
        0.3345,
        0.3783,
        0.7640,
        0.6405,
        0.1103,
        0.3594,
    ]
    rt.manual_seed(0)
    assert printed(rt.randn(3, 8, device="cuda")) == [
        -0.9247,
        -0.4253,
        -2.6438,
        0.1452,
        -0.1209,
        -0.5797,
        -0.6229,
        -0.3284,
        -1.0745,
        -0.3631,
        -1.6711,
        2.2655,
        0.3117,
        -0.1842,
        1.2866,
        1.1820,
        -0.1271,
        1.2169,
        1.4353,
        1.0605,
        -0.4941,
        -1.4244,
        -0.7244,
        -1.2973,
    ]


def test_philox_gives_the_known_answers():
    """The vectors that come with Random123."""
    ones, word = 0xFFFFFFFF, np.uint64
    assert [int(x) for x in philox4x32([word(0)] * 4, (0, 0))] == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    assert [int(x) for x in philox4x32([word(ones)] * 4, (ones, ones))] == [
        0x408F276D,
        0x41C83B0E,
        0xA20BC7C6,
        0x6D5451FD,
    ]


@pytest.mark.parametrize(
    "draw, mean, std",
    [
        (lambda x: x.uniform_(2, 4), 3, 12**-0.5 * 2),
        (lambda x: x.normal_(1, 2), 1, 2),
        (lambda x: x.exponential_(2), 0.5, 0.5),
        (lambda x: x.bernoulli_(0.25), 0.25, (3 / 16) ** 0.5),
        (lambda x: x.geometric_(0.5), 2, 2**0.5),
        (lambda x: x.random_(0, 10), 4.5, (99 / 12) ** 0.5),
    ],
)
@pytest.mark.parametrize("dtype", [rt.float32, rt.float64])
def test_distributions(draw, mean, std, dtype):
    x = draw(rt.empty(200, 100, dtype=dtype, device="cuda").t()[:, ::2])
    assert x.mean().item() == pytest.approx(mean, abs=5 * std / 100)
    assert x.std().item() == pytest.approx(std, rel=0.1)


@pytest.mark.parametrize("n", [0, 1, 5, 3000])
def test_permutations(n):
    assert rt.randperm(n, device="cuda").sort().values.tolist() == list(range(n))


def test_a_generator_of_another_device():
    with pytest.raises(RuntimeError, match="Expected a 'cuda' device type for generator but found 'cpu'"):
        rt.rand(2, generator=rt.Generator(), device="cuda")
    with pytest.raises(RuntimeError, match="Expected a 'cpu' device type for generator but found 'cuda'"):
        rt.rand(2, generator=rt.Generator("cuda"))


@pytest.mark.parametrize("kernels", [False, True])
def test_no_sparse_tensors(kernels):
    cuda.simulate(1, "64MiB", kernels=kernels)
    eye, weight = rt.eye(3), nn.Embedding(3, 2, sparse=True).cuda()
    with pytest.raises(NotImplementedError, match="no sparse tensors on 'cuda'"):
        eye.to_sparse().cuda()
    with pytest.raises(NotImplementedError, match="no sparse tensors on 'cuda'|Could not run 'aten::_to_sparse'"):
        eye.cuda().to_sparse()
    with pytest.raises(NotImplementedError, match="no sparse tensors on 'cuda'|Could not run 'aten::_sparse_coo"):
        weight(rt.tensor([1, 2], device="cuda")).sum().backward()
