"""The figure "A training loop under the profiler": its schedule goes PyTorch's way, and its steps call what PyTorch's profiler sees."""

import random
import re
import warnings

import pytest
import torch
from torch.profiler import profile, record_function, schedule

from readtorch import viz
from readtorch.viz.figures import profiled_steps as figure


def training_step(inputs):
    """A function that does a step, as the figure's program does."""
    net = torch.nn.Sequential()
    for i, (size_in, size_out) in enumerate(zip(inputs["widths"], inputs["widths"][1:], strict=False)):
        net.extend([torch.nn.Tanh()] * bool(i) + [torch.nn.Linear(size_in, size_out)])
    x = torch.randn(inputs["batch"], inputs["widths"][0])
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    params = list(net.parameters())
    averages = [p.detach().clone() for p in params]

    def step():
        optimizer.zero_grad()
        with record_function("forward"):
            loss = net(x).sum()
        with record_function("backward"):
            loss.backward()
        optimizer.step()
        if inputs["item"]:
            loss.item()
        if inputs["average"] == "none":
            return
        with record_function("average"), torch.no_grad():
            if inputs["average"] == "foreach":
                torch._foreach_lerp_(averages, params, 0.1)
            else:
                for e, p in zip(averages, params, strict=True):
                    e.lerp_(p, 0.1)

    return step


def their_tree(step):
    """[(name, depth, shapes, FLOPs)] of a step in PyTorch's profile."""
    step()
    with profile(record_shapes=True, with_flops=True) as prof:
        step()
    found = []

    def walk(event, depth):
        found.append((event.name, depth, event.input_shapes, event.flops or 0))
        for child in event.cpu_children:
            walk(child, depth + 1)

    for event in prof.events():
        if event.cpu_parent is None:
            walk(event, 0)
    return found


@pytest.mark.parametrize("seed", range(12))
def test_a_step_calls_what_pytorchs_calls(seed):
    draw = random.Random(seed)
    inputs = figure.FIGURE.read(
        {
            "widths": [draw.choice([2, 3, 16, 33, 300]) for _ in range(draw.randint(2, 4))],
            "batch": draw.choice([2, 5, 64]),
            "average": draw.choice(list(figure.AVERAGES)),
            "item": draw.random() < 0.5,
            "schedule": [0, 0, 1, 1],
        }
    )
    result = figure.model(inputs)
    mine = [(name, depth - 1, shapes, flops) for name, _, _, _, depth, shapes, flops, _ in result["events"]]
    assert mine[0][0] == "ProfilerStep#0"
    assert mine[1:] == their_tree(training_step(inputs))


def run_theirs(inputs):
    """(the steps of each trace, those that are left in the end or None) of PyTorch's profiler over an empty loop."""
    wait, warmup, active, repeat = inputs["schedule"]
    traces = []

    def steps(prof):
        names = [event.trace_name for event in prof.events()]
        return [int(name.split("#")[1]) for name in names if name.startswith("ProfilerStep#")]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plan = schedule(wait=wait, warmup=warmup, active=active, repeat=repeat)
        ready = lambda prof: traces.append([prof.step_num, steps(prof)])  # noqa: E731
        with profile(schedule=plan, on_trace_ready=ready) as prof:
            for _ in range(inputs["iterations"]):
                torch.ones(1)
                if inputs["stepping"]:
                    prof.step()
        try:
            return traces, steps(prof)
        except AssertionError:
            return traces, None


@pytest.mark.parametrize("seed", range(25))
def test_the_schedule_goes_pytorchs_way(seed):
    inputs = figure.FIGURE.random_inputs(random.Random(seed))
    inputs["schedule"][2] = max(1, inputs["schedule"][2])
    result = figure.model(inputs)
    assert (result["traces"], result["left"]) == run_theirs(inputs)


@pytest.mark.parametrize("seed", range(20))
def test_times_add_up(seed):
    inputs = figure.FIGURE.random_inputs(random.Random(seed))
    inputs["schedule"][2] = max(1, inputs["schedule"][2])
    result = figure.model(inputs)
    events = result["events"]
    for name, start, end, parent, depth, _, _, own in events:
        inside = (
            [event for event in events if event[3] >= 0 and events[event[3]] is events[parent]] if parent >= 0 else []
        )
        assert own >= -1e-9 and end >= start, name
        if inside:
            assert events[parent][1] - 1e-9 <= start and end <= events[parent][2] + 1e-9
            assert depth == events[parent][4] + 1
    tops = sum(end - start for _, start, end, parent, *_ in events if parent < 0)
    assert result["total"] == pytest.approx(tops)
    assert sum(row[3] for row in result["rows"]) == len(events)


def test_what_the_sentence_says():
    say = lambda **inputs: figure.FIGURE.result(**inputs)["say"]  # noqa: E731
    assert say().startswith("The trace of steps 2 to 3 has") and "called 1 time." in say()
    assert "without prof.step() the whole loop is step 0" in say(stepping=False)
    assert "raises AssertionError" in say(stepping=False)
    assert "is empty" in say(stepping=False, schedule=[0, 1, 1, 0])
    assert "that cleared them" in say(schedule=[0, 1, 2, 0], iterations=3)
    assert "has steps 2 to 3" in say()
    with pytest.raises(AssertionError) as theirs:
        schedule(wait=1, warmup=1, active=0, repeat=1)
    refusal = re.escape(str(theirs.value))
    with pytest.raises(figure.Refusal, match=refusal):
        say(schedule=[1, 1, 0, 1])


def test_a_foreach_average_saves_no_kernels_but_pythons_time():
    loop, foreach = (figure.FIGURE.result(average=kind) for kind in ("loop", "foreach"))
    calls = lambda result: {row[0]: row[3] for row in result["rows"]}  # noqa: E731
    assert calls(loop)["aten::lerp_"] == calls(foreach)["aten::lerp_"]
    assert foreach["total"] < loop["total"]


def test_a_foreach_average_is_one_kernel_of_a_gpu():
    count = lambda kind: len(figure.FIGURE.result(average=kind, device="gpu", schedule=[0, 0, 1, 1])["kernels"])  # noqa: E731
    assert count("foreach") == count("none") + 1 and count("loop") == count("none") + 6


@pytest.mark.parametrize("seed", range(20))
def test_a_stream_runs_kernels_in_the_order_of_their_launches(seed):
    inputs = figure.FIGURE.random_inputs(random.Random(seed)) | {"device": "gpu"}
    inputs["schedule"][2] = max(1, inputs["schedule"][2])
    result = figure.model(inputs)
    events, kernels = result["events"], result["kernels"]
    launched = [i for i, event in enumerate(events) if event[0] in ("cudaLaunchKernel", "cudaMemcpyAsync")]
    assert [launch for *_, launch in kernels] == launched
    for (_, start, _, launch), (_, _, free, _) in zip(kernels[1:], kernels, strict=False):
        assert start == pytest.approx(max(events[launch][2] + figure.ARRIVAL_US, free))
    for i, event in enumerate(events):
        if event[0] == "cudaStreamSynchronize":
            before = [end for _, _, end, launch in kernels if launch < i]
            assert event[2] == pytest.approx(max(event[1] + 1, before[-1]))


def test_a_gpu_changes_no_call_but_adds_launches():
    """The calls of PyTorch stay: what is added is what CUDA is called for."""
    names = lambda **inputs: [e[0] for e in figure.FIGURE.result(item=True, **inputs)["events"]]  # noqa: E731
    assert [name for name in names(device="gpu") if not name.startswith("cuda")] == names()
    assert figure.FIGURE.result()["kernels"] == []


def test_who_is_the_limit():
    large = figure.FIGURE.result(device="gpu", batch=65536)
    small = figure.FIGURE.result(device="gpu", batch=4)
    gaps = lambda kernels: sum(b[1] > a[2] for a, b in zip(kernels, kernels[1:], strict=False))  # noqa: E731
    assert gaps(small["kernels"]) > 0.9 * len(small["kernels"]) and gaps(large["kernels"]) < 0.5 * len(large["kernels"])
    assert "The CPU waits" not in large["say"]
    assert "The CPU waits" in figure.FIGURE.result(device="gpu", item=True)["say"]


@pytest.mark.browser
@pytest.mark.slow
def test_a_forgotten_step_leaves_no_trace(visit, page_with):
    with visit(page_with(viz.figure("profiled_steps"))) as seen:
        seen.page.get_by_role("slider", name="event").press("ArrowRight")
        assert "zero_grad" in seen.page.locator(".rt-fig .rt-event").inner_text()
        seen.page.get_by_label("prof.step()").uncheck()
        assert "No trace" in seen.page.locator(".rt-now").inner_text()
        assert seen.problems == []
