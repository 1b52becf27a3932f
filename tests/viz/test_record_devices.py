"""What the device timeline draws: a real run on simulated devices, piece by piece."""

import json
from collections import Counter

import pytest

import readtorch as rt
from readtorch import cuda, nn, viz
from readtorch.aten.simulated_cost import CostModel
from readtorch.c10.cuda import runtime
from readtorch.c10.cuda.simulated_streams import Latencies
from readtorch.viz.record_devices import PHASES, Piece, busy, device_numbers, record_devices


@pytest.fixture
def devices():
    cuda.simulate(3, "64MiB", costs=CostModel(), latencies=Latencies(launch=2.0, malloc=50.0))
    yield
    cuda.simulate(0)


def training(count):
    net = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Linear(8, 8, bias=False)).cuda()
    model = nn.DataParallel(net, list(range(count)))
    optimizer = rt.optim.SGD(net.parameters(), lr=0.1)
    x = rt.ones(6, 8)

    def step():
        optimizer.zero_grad()
        model(x).square().sum().backward()
        optimizer.step()

    return step


def pieces_of(run):
    return [Piece(*values) for values in run["pieces"]]


def phases_on(run, device):
    return Counter(PHASES[piece.phase] for piece in pieces_of(run) if piece.device == device)


def test_phases_of_a_training_step(devices):
    recorded = record_devices({"one": training(1), "two": training(2)})
    assert json.loads(json.dumps(recorded)) == json.loads(json.dumps(recorded | {"phases": PHASES}))
    one, two = recorded["runs"]
    assert set(phases_on(one, 0)) == {"scatter", "forward", "backward", "optimizer"}
    assert phases_on(one, 1) == phases_on(two, 2) == Counter()
    everything = {"scatter", "broadcast", "forward", "gather", "backward", "reduce-add", "optimizer"}
    assert set(phases_on(two, 0)) == everything
    assert set(phases_on(two, 1)) == everything - {"gather", "optimizer"}
    # the parameters, the statistics, the count of batches: one buffer for each broadcast and dtype
    assert [p.operator for p in pieces_of(two) if p.device == 1 and PHASES[p.phase] == "broadcast"] == ["_to_copy"] * 3
    # the input, and backward the gradient of the output
    assert phases_on(two, 1)["scatter"] == 2
    assert phases_on(one, 0)["forward"] == phases_on(two, 1)["forward"] + 2, (
        "square and sum are done where the output is"
    )


def test_times_and_bytes(devices):
    a = rt.ones(1 << 18).cuda()  # 1 MiB

    def twice():
        a.to("cuda:1").mul_(2.0)

    (run,) = record_devices(twice)["runs"]
    copy, mul = pieces_of(run)
    assert (copy.device, copy.operator, copy.nbytes, copy.stream) == (1, "_to_copy", 1 << 20, 0)
    assert PHASES[copy.phase] == "copy" and PHASES[mul.phase] == "forward"
    assert copy.asked == 2.0 and mul.asked == 4.0, "its memory was there since the first call"
    assert copy.end - copy.start == pytest.approx((1 << 20) / CostModel().peer, abs=2e-3) and mul.start == copy.end
    assert run["total"] == mul.end and run["launch"] == 2.0
    assert [d["name"] for d in run["devices"]] == ["cuda:0", "cuda:1", "cuda:2"]
    assert run["devices"][1]["busy"] == pytest.approx(mul.end - copy.start, abs=2e-3)
    assert run["devices"][0]["busy"] == 0.0


def test_the_driver_is_as_before(devices):
    driver = runtime.driver()
    costs, driver.streams.timeline = driver.costs, []
    mine = driver.streams.timeline

    def fails():
        rt.ones(2, device="cuda")
        raise KeyError("stop")

    with pytest.raises(KeyError):
        record_devices(fails, warm=0)
    assert driver.costs is costs and driver.streams.timeline is mine


def test_two_streams_are_busy_once():
    pieces = [
        Piece(0, stream, "mm", 0, start, end, 0.0, 1)
        for stream, start, end in [(0, 0.0, 10.0), (1, 5.0, 12.0), (0, 20.0, 21.0), (1, 20.0, 20.5)]
    ]
    assert busy(pieces) == 13.0
    assert device_numbers(pieces, 0)["phases"][0] == 18.5 and device_numbers(pieces, 1)["busy"] == 0


def test_what_is_refused(devices):
    with pytest.raises(ValueError, match="9 runs"):
        record_devices({str(i): print for i in range(9)})
    for bad in (3, {"a": 3}, [print]):
        with pytest.raises(TypeError, match="expected a function"):
            record_devices(bad)
    for without_costs in (lambda: cuda.simulate(1, "64MiB"), lambda: cuda.simulate(0)):
        without_costs()
        with pytest.raises(RuntimeError, match="needs simulated devices whose kernels take time"):
            record_devices(print)


def test_a_run_that_puts_nothing_on_a_device(devices):
    (run,) = record_devices(lambda: None)["runs"]
    assert run["pieces"] == [] and run["total"] == 0.0


def test_the_figure_carries_the_runs(devices):
    figure = viz.device_timeline({"one": training(1), "both": training(2)}, run=1)
    assert [run["label"] for run in figure.data["runs"]] == ["one", "both"]
    assert (figure.run, figure.step, figure.zoom) == (1, 0, 1)
    assert "both" in figure.static_html()
