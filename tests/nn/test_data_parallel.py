"""DataParallel on simulated devices computes what one device computes, and fails as the reference does."""

import gc
from collections import namedtuple

import pytest

import readtorch as rt
from readtorch import cuda, nn
from readtorch.nn.parallel import comm, data_parallel, gather, parallel_apply, replicate, scatter

DEVICES = 4


@pytest.fixture(autouse=True)
def devices():
    cuda.simulate(DEVICES, "256MiB")
    rt.manual_seed(0)
    yield
    gc.collect()
    cuda.simulate(0)


def close(a, b):
    return rt.allclose(a.cpu().double(), b.cpu().double(), rtol=1e-10, atol=1e-12)


class Net(nn.Module):
    """Shared parameters, a buffer, nested inputs, keyword arguments, nested outputs."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(6, 6)
        self.second = nn.Linear(6, 6)
        self.second.weight = self.first.weight
        self.frozen = nn.Parameter(rt.randn(6), requires_grad=False)
        self.register_buffer("shift", rt.randn(6))
        self.register_buffer("nothing", None)

    def forward(self, pair, scale=None, *, extra):
        x, y = pair["x"], pair["more"][0]
        h = self.second(rt.tanh(self.first(x) + self.shift)) * scale + y * self.frozen
        return {"h": h, "sums": (h.sum(1), [extra["z"] + h.mean()])}


def call(net, batch):
    rt.manual_seed(1)
    x, y, z = (rt.randn(batch, 6, dtype=rt.float64, device="cuda") for _ in range(3))
    x.requires_grad_()
    out = net({"x": x, "more": [y]}, scale=2.0, extra={"z": z})
    (out["h"].pow(2).sum() + out["sums"][0].sum() + out["sums"][1][0].sum()).backward()
    return out, x.grad


@pytest.mark.parametrize("count", [1, 2, 3, 4])
@pytest.mark.parametrize("batch", [12, 7, 4])
def test_many_devices_compute_what_one_computes(count, batch):
    net = Net().double().cuda()
    expected, x_grad = call(lambda *a, **k: one_by_one(net, count, *a, **k), batch)
    grads = [None if p.grad is None else p.grad.clone() for p in net.parameters()]
    net.zero_grad()
    out, dx = call(nn.DataParallel(net, list(range(count))), batch)
    assert out["h"].device.index == 0
    for a, b in (
        (out["h"], expected["h"]),
        (out["sums"][0], expected["sums"][0]),
        (out["sums"][1][0], expected["sums"][1][0]),
        (dx, x_grad),
    ):
        assert close(a, b)
    for p, g in zip(net.parameters(), grads):
        assert p.grad is None and g is None or close(p.grad, g)


def one_by_one(net, count, pair, scale, extra):
    """Chunks of the batch, one after the other on one device (`mean` of a part is not the mean of all)."""
    parts = zip(pair["x"].chunk(count), pair["more"][0].chunk(count), extra["z"].chunk(count))
    outs = [net({"x": x, "more": [y]}, scale, extra={"z": z}) for x, y, z in parts]
    return {
        "h": rt.cat([o["h"] for o in outs]),
        "sums": (rt.cat([o["sums"][0] for o in outs]), [rt.cat([o["sums"][1][0] for o in outs])]),
    }


def test_training_is_that_of_one_device():
    nets = [nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 2)).double().cuda() for _ in range(2)]
    nets[1].load_state_dict(nets[0].state_dict())
    many = nn.DataParallel(nets[1])
    x, labels = rt.randn(10, 5, dtype=rt.float64), rt.randint(0, 2, (10,)).cuda()
    optimizers = [rt.optim.Adam(net.parameters(), lr=0.01) for net in nets]
    for _ in range(5):
        for model, optimizer in zip((nets[0], many), optimizers):
            optimizer.zero_grad()
            given = x.cuda() if model is nets[0] else x  # DataParallel takes it from the host
            nn.functional.cross_entropy(model(given), labels).backward()
            optimizer.step()
    assert all(close(a, b) for a, b in zip(*[net.parameters() for net in nets]))


def test_running_statistics_are_those_of_the_first_device():
    net = nn.BatchNorm1d(3).cuda()
    x = rt.randn(8, 3, device="cuda")
    nn.DataParallel(net, [0, 1])(x)
    alone = nn.BatchNorm1d(3).cuda()
    alone(x[:4])
    assert close(net.running_mean, alone.running_mean) and net.num_batches_tracked.item() == 1


def test_a_replicas_parameters_belong_to_the_graph():
    net = nn.Linear(2, 3).cuda()
    one, two = replicate(net, [0, 1])
    assert not list(two.parameters()) and two._former_parameters["weight"].device.index == 1
    assert two.weight.grad_fn.name() == "BroadcastBackward" and not two.weight.is_leaf
    assert not replicate(net, [0, 1], detach=True)[1].weight.requires_grad


def test_scatter_and_gather_of_anything():
    Pair = namedtuple("Pair", "a b")
    x = rt.arange(10.0).view(5, 2)
    first, second = scatter([Pair(x, "text"), {"k": (x, 1)}], [0, 1])
    assert first[0].a.shape == (3, 2) and second[1]["k"][0].tolist() == x[3:].tolist() and second[0].b == "text"
    whole = gather([first[0].a, second[0].a], "cpu")
    assert whole.tolist() == x.tolist() and whole.device.type == "cpu"
    assert gather([Pair(first[0].a, None), Pair(second[0].a, None)], 1).a.device.index == 1
    with pytest.warns(UserWarning, match="Was asked to gather along dimension 0, but all input tensors were scalars"):
        assert gather([rt.ones((), device=d) for d in ("cuda:0", "cuda:1")], 0).tolist() == [1.0, 1.0]


def test_gradients_of_scatter_and_gather():
    x = rt.randn(5, 3, dtype=rt.float64, requires_grad=True)
    parts = scatter(x, [0, 1, 2])
    (gather([p * (i + 1) for i, p in enumerate(parts)], 0) ** 2).sum().backward()
    factor = rt.tensor([1.0, 1, 2, 2, 3], dtype=rt.float64)[:, None]
    assert close(x.grad, 2 * x.detach() * factor**2) and x.grad.device.type == "cpu"


def test_comm():
    x = rt.arange(6.0, device="cuda")
    assert comm.broadcast(x, [0, 1])[0] is x
    tensors = [rt.randn(3, 2, device="cuda"), rt.randint(0, 9, (4,), device="cuda"), rt.randn(5, device="cuda")]
    for size in (1, 30, 10**6):
        copies = comm.broadcast_coalesced(tensors, [0, 1, 3], size)
        assert (
            all(a.equal(b.to(a.device)) for row in copies for a, b in zip(row, tensors)) and copies[0][0] is tensors[0]
        )
        assert [t.device.index for row in copies for t in row] == [0] * 3 + [1] * 3 + [3] * 3
        copies[1][0].zero_()
        assert copies[1][2]._version == 0  # neighbours in a buffer do not count each other's writes
    sums = comm.reduce_add_coalesced([[t.to(f"cuda:{i}") for t in tensors] for i in range(3)], 1)
    assert all(close(s, 3 * t) and s.device.index == 1 for s, t in zip(sums, tensors))
    target = [rt.empty(2, device="cuda:1"), rt.empty(4, device="cuda:2")]
    assert comm.scatter(x, out=target)[1].tolist() == [2, 3, 4, 5]
    assert comm.gather(target, out=rt.empty(6)).tolist() == x.tolist()


def test_an_exception_in_a_replica_is_raised_with_its_traceback():
    class Fails(nn.Module):
        def forward(self, x):
            if x.device.index == 2:
                raise ValueError("no luck here")
            return x

    with pytest.raises(
        ValueError, match="(?s)Caught ValueError in replica 2 on device 2.*Original Traceback.*no luck here"
    ):
        nn.DataParallel(Fails())(rt.ones(4, 1))


def test_threads_take_over_the_grad_mode():
    net = nn.DataParallel(nn.Linear(2, 2).cuda())
    with rt.no_grad():
        assert not net(rt.ones(4, 2)).requires_grad
    assert net(rt.ones(4, 2)).requires_grad


def test_fewer_samples_than_devices():
    assert nn.DataParallel(nn.Linear(2, 2).cuda())(rt.ones(3, 2)).shape == (3, 2)


def test_one_device_needs_no_replicas():
    net = nn.DataParallel(nn.Linear(2, 2), device_ids=[1])
    assert net.module.weight.device.index == 1 and net(rt.ones(3, 2)).device.index == 1
    assert nn.DataParallel(nn.Flatten(), output_device=2)(rt.ones(8, 2)).device.index == 2


def test_without_inputs_one_device_does_it():
    class Constant(nn.Module):
        def forward(self):
            return rt.ones(2, device="cuda")

    assert nn.DataParallel(Constant())().tolist() == [1.0, 1.0]


def test_the_function():
    net = nn.Linear(2, 2).cuda()
    x = rt.randn(6, 2)
    assert close(data_parallel(net, x, [0, 1, 2]), net(x.cuda()))
    assert data_parallel(net, x, [0, 1], output_device=2).device.index == 2


def test_wrong_places():
    net = nn.DataParallel(nn.Linear(2, 2))
    with pytest.raises(
        RuntimeError,
        match=r"module must have its parameters and buffers on device cuda:0 \(device_ids\[0\]\) "
        "but found one of them on device: cpu",
    ):
        net(rt.ones(4, 2))
    with pytest.raises(RuntimeError, match=r"all tensors must be on devices\[0\]"):
        comm.broadcast_coalesced([rt.ones(2, device="cuda:1")], [0, 1])
    with pytest.raises(AssertionError, match="Gather function not implemented for CPU tensors"):
        gather([rt.ones(2), rt.ones(2)], 0)
    with pytest.raises(AssertionError, match="The number of modules 1 is not equal to the number of inputs 2"):
        parallel_apply([net], [1, 2])
    with pytest.raises(RuntimeError, match="Exactly one of 'devices' and 'out' must be specified"):
        comm.broadcast(rt.ones(2))
    with pytest.raises(RuntimeError, match=r"Gather got an input of invalid size: got \[2, 2\], but expected \[2, 3\]"):
        comm.gather([rt.ones(2, 3, device="cuda:0"), rt.ones(2, 2, device="cuda:1")], 0)
    with pytest.raises(
        RuntimeError, match="reduce_add expects destination to be on the same GPU with one of the tensors"
    ):
        comm.reduce_add([rt.ones(2, device="cuda:1")], 0)


def test_unequal_devices_are_told():
    cuda.simulate(2, ["1GiB", "512MiB"])
    with pytest.warns(UserWarning, match="There is an imbalance between your GPUs. You may want to exclude GPU 1"):
        nn.DataParallel(nn.Linear(2, 2).cuda())


def test_without_devices():
    cuda.simulate(0)
    net = nn.Linear(2, 2)
    x = rt.ones(3, 2)
    assert nn.DataParallel(net)(x).equal(net(x))
    with pytest.raises(RuntimeError, match="device type could not be determined"):
        data_parallel(net, x)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_scripted_module():
    net = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.ReLU()).double().cuda().eval()
    x = rt.randn(5, 4, dtype=rt.float64, device="cuda")
    net(x).sum().backward()
    scripted = rt.jit.script(net)
    wanted = [p.grad.clone() for p in net.parameters()]
    net.zero_grad()
    assert close(nn.DataParallel(scripted)(x), net(x))
    nn.DataParallel(scripted)(x).sum().backward()
    for p, grad in zip(net.parameters(), wanted):
        assert close(p.grad, grad)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_python_module_in_a_scripted_one():
    scripted = rt.jit.script(nn.Sequential(nn.Linear(4, 3)).cuda())
    scripted._modules["added"] = nn.ReLU()
    with pytest.raises(
        RuntimeError, match="Cannot replicate network where python modules are children of ScriptModule"
    ):
        replicate(scripted, [0, 1])
