"""CUDA graphs on simulated devices of both kinds: capture, replay, memory, random numbers, errors, virtual time."""

import inspect

import pytest
import torch

import readtorch as rt
from readtorch import cuda
from readtorch.aten.simulated_cost import CostModel
from readtorch.c10.cuda import runtime
from readtorch.c10.cuda.simulated_streams import Latencies


@pytest.fixture(params=["CPU's kernels", "CUDA kernels"])
def device(request):
    cuda.simulate(2, "64MiB", kernels=request.param == "CUDA kernels")
    yield
    cuda.simulate(0)


@pytest.fixture
def timed():
    cuda.simulate(1, "64MiB", latencies=Latencies(launch=5.0), costs=CostModel())
    yield runtime.driver().streams
    cuda.simulate(0)


def captured(function, **options):
    """(a graph of it, what it returned)"""
    graph = cuda.CUDAGraph()
    with cuda.graph(graph, **options):
        result = function()
    return graph, result


UNSUPPORTED = (
    "CUDA error: operation not permitted when stream is capturing\nSearch for `cudaErrorStreamCaptureUnsupported'"
)
RUINED = "CUDA error: operation failed due to a previous error during capture\nSearch for `cudaErrorStreamCaptureInvalidated'"

# --------------------------------------------------------------------------------------------------- the names


def test_the_names_are_pytorchs():
    assert cuda.graphs.__all__ == torch.cuda.graphs.__all__
    assert all(getattr(cuda, name) is getattr(cuda.graphs, name) for name in cuda.graphs.__all__)


@pytest.mark.parametrize(
    "name", ["graph", "make_graphed_callables", "graph_pool_handle", "is_current_stream_capturing"]
)
def test_arguments_and_defaults_are_pytorchs(name):
    ours, theirs = (inspect.signature(getattr(library.cuda, name)).parameters for library in (rt, torch))
    missing = {"enable_annotations", "check_input_liveness"}
    assert {n: p.default for n, p in ours.items()} == {n: p.default for n, p in theirs.items() if n not in missing}


def test_methods_of_a_graph_are_pytorchs(device):
    theirs = {
        name for name, value in vars(torch.cuda.CUDAGraph).items() if inspect.isfunction(value) and name[0] != "_"
    }
    ours = {name for name in dir(cuda.CUDAGraph) if name[0] != "_"}
    assert theirs - ours == {"get_graph_data"}
    for name in theirs & ours - {"capture_begin"}:
        one, other = (inspect.signature(getattr(graph, name)) for graph in (cuda.CUDAGraph, torch.cuda.CUDAGraph))
        assert list(one.parameters) == list(other.parameters)


# ------------------------------------------------------------------------------------------- capture and replay


def test_captured_work_is_done_by_replays_only(device):
    x, total = rt.arange(6.0, device="cuda"), rt.zeros(3, device="cuda")

    def work():
        total.add_(1)
        return (x.reshape(2, 3) * 2).sum(0)

    graph, y = captured(work)
    assert total.tolist() == [0, 0, 0]
    for times in (1, 2):
        graph.replay()
        assert total.tolist() == [times] * 3 and y.tolist() == [6, 10, 14]
    x.fill_(1)
    graph.replay()
    assert y.tolist() == [4, 4, 4]


def test_is_current_stream_capturing(device):
    assert not cuda.is_current_stream_capturing()
    captured(lambda: (rt.ones(2, device="cuda"), cuda.is_current_stream_capturing() or pytest.fail()))
    assert not cuda.is_current_stream_capturing()
    cuda.simulate(0)
    assert not cuda.is_current_stream_capturing()


def train(graphed, steps=5):
    rt.manual_seed(3)
    layers = rt.nn.Linear(6, 8), rt.nn.BatchNorm1d(8), rt.nn.ReLU(), rt.nn.Dropout(0.3), rt.nn.Linear(8, 3)
    model = rt.nn.Sequential(*layers).to("cuda")
    optimizer = rt.optim.AdamW(model.parameters(), lr=0.05, fused=True)
    x, y = rt.randn(4, 6).to("cuda"), rt.tensor([0, 2, 1, 2]).to("cuda")

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = rt.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    losses = [step().item() for _ in range(2 if graphed else steps)]
    if graphed:
        graph, loss = captured(step)
        for _ in range(steps - 2):
            graph.replay()
            losses.append(loss.item())
    return losses, [t.tolist() for t in model.state_dict().values() if t.is_floating_point()]


def test_a_whole_training_step_gives_the_numbers_that_it_gives_without_a_graph(device):
    assert train(True) == train(False)


def test_random_numbers_go_on_as_without_a_graph(device):
    own = rt.Generator("cuda").manual_seed(5)

    def draw():
        x = rt.ones(7, device="cuda")
        return rt.rand(5, device="cuda"), rt.nn.functional.dropout(x, 0.5), rt.randn(3, device="cuda", generator=own)

    graph, results = captured(draw)
    cuda.manual_seed(11), own.manual_seed(5)
    expected = [[t.tolist() for t in draw()] for _ in range(3)]
    cuda.manual_seed(11), own.manual_seed(5)
    for wanted in expected:
        graph.replay()
        assert [t.tolist() for t in results] == wanted
    offset = cuda.get_rng_state()[8:].tolist()
    graph.replay()
    assert cuda.get_rng_state()[8:].tolist() != offset


def test_forked_streams_are_joined(device):
    side = cuda.Stream()
    x = rt.ones(4, device="cuda")

    def work():
        side.wait_stream(cuda.current_stream())
        with cuda.stream(side):
            y = x * 2
        z = x * 3
        cuda.current_stream().wait_stream(side)
        return y + z

    graph, total = captured(work)
    graph.replay()
    assert total.tolist() == [5] * 4


# ---------------------------------------------------------------------------------------------------- memory


def test_memory_comes_from_a_pool_of_its_own(device):
    before = {s["address"] for s in cuda.memory_snapshot()}
    graph, y = captured(lambda: (rt.ones(1000, device="cuda") * 2).clone())
    segments = cuda.memory_snapshot(graph.pool())
    assert segments and {s["address"] for s in segments}.isdisjoint(before)
    assert any(b["address"] == y.data_ptr() for s in segments for b in s["blocks"])
    graph.replay()
    others = [rt.zeros(1000, device="cuda") for _ in range(8)]
    graph.replay()
    assert y.tolist() == [2] * 1000 and all(not t.any() for t in others)


def test_the_pool_goes_with_the_graph(device):
    reserved = cuda.memory_reserved()
    graph, y = captured(lambda: rt.ones(1 << 20, device="cuda") * 2)
    assert cuda.memory_reserved() > reserved
    del y
    cuda.empty_cache()
    assert cuda.memory_reserved() > reserved
    graph.reset()
    cuda.empty_cache()
    assert cuda.memory_reserved() <= reserved
    with pytest.raises(RuntimeError, match="Called CUDAGraph::replay without a preceding successful capture."):
        graph.replay()


def test_graphs_can_share_a_pool(device):
    handle = cuda.graph_pool_handle()
    assert handle[0] == 0 and cuda.graph_pool_handle() != handle
    first, x = captured(lambda: rt.ones(5, device="cuda") + 1, pool=handle)
    second, y = captured(lambda: x * 10, pool=first.pool())
    assert first.pool() == second.pool() == handle
    first.replay(), second.replay()
    assert y.tolist() == [20] * 5
    alone, _ = captured(lambda: rt.ones(5, device="cuda"))
    assert alone.pool()[0] > 0 == alone.pool()[1]


# ---------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    "unsafe",
    [
        lambda x: x.sum().item(),
        lambda x: x.tolist(),
        lambda x: cuda.synchronize(),
        lambda x: cuda.current_stream().synchronize(),
        lambda x: cuda.current_stream().query(),
        lambda x: x.nonzero(),
    ],
)
def test_nobody_can_wait_for_work_that_is_only_captured(device, unsafe):
    x = rt.ones(3, device="cuda")
    graph = cuda.CUDAGraph()
    with pytest.raises(rt.AcceleratorError) as found, cuda.graph(graph):
        unsafe(x)
    assert str(found.value).startswith(RUINED)
    assert str(found.value.__context__).startswith(UNSUPPORTED)
    assert not cuda.is_current_stream_capturing() and x.tolist() == [1, 1, 1]


def test_copies_from_memory_that_is_not_pinned(device):
    x, there = rt.ones(3, device="cuda"), rt.zeros(3)
    message = "Cannot copy between CPU and CUDA tensors during CUDA graph capture unless the CPU tensor is pinned. "
    message += "Please use tensor.pin_memory\\(\\) or allocate the tensor with pin_memory=True."
    for copy in (lambda: x.copy_(there), lambda: there.copy_(x), lambda: there.to("cuda"), lambda: x.cpu()):
        graph = cuda.CUDAGraph()
        with pytest.warns(UserWarning, match="The CUDA Graph is empty."), pytest.raises(RuntimeError, match=message):
            with cuda.graph(graph):
                copy()


def test_a_captured_copy_from_pinned_memory_reads_what_is_there_when_it_is_replayed(device):
    x, source = rt.zeros(3, device="cuda"), rt.ones(3).pin_memory()
    graph, _ = captured(lambda: x.copy_(source, non_blocking=True) + 1)
    source.fill_(4)
    graph.replay()
    assert x.tolist() == [4, 4, 4]


def test_calls_out_of_order(device):
    graph = cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match="CUDA graphs must be captured on a non-default stream."):
        graph.capture_begin()
    for call, message in (
        (graph.replay, "Called CUDAGraph::replay without a preceding successful capture."),
        (graph.pool, "Called CUDAGraph::pool\\(\\) without a preceding successful capture."),
        (graph.instantiate, "capture_end\\(\\) must have been called before calling instantiate"),
        (graph.capture_end, "state|stream"),
    ):
        with pytest.raises(RuntimeError, match=message):
            call()
    with pytest.raises(
        RuntimeError, match="Unknown capture error mode. Expected `global`, `thread_local`, or `relaxed`, got x"
    ):
        with cuda.graph(graph, capture_error_mode="x"):
            pass
    graph, _ = captured(lambda: rt.ones(2, device="cuda"))
    with pytest.raises(RuntimeError, match="This CUDAGraph instance already owns a captured graph."):
        with cuda.stream(cuda.Stream()):
            graph.capture_begin()
    with pytest.raises(RuntimeError, match="You cannot access the raw cudaGraph_t instance unless CUDAGraph was init"):
        graph.raw_cuda_graph()
    with pytest.raises(
        RuntimeError, match="instantiate\\(\\) is intended to be called by the user only when keep_graph=true"
    ):
        graph.instantiate()


def test_a_capture_must_end_where_it_began(device):
    one, other, graph = cuda.Stream(), cuda.Stream(), cuda.CUDAGraph()
    with cuda.stream(one):
        graph.capture_begin()
        with cuda.stream(other), pytest.raises(RuntimeError, match="Capture must end on the same stream it began on."):
            graph.capture_end()
        rt.ones(2, device="cuda")
        graph.capture_end()


def test_work_on_another_stream_must_be_joined(device):
    side, x = cuda.Stream(), rt.ones(2, device="cuda")

    def fork():
        side.wait_stream(cuda.current_stream())
        with cuda.stream(side):
            return x + 1

    with pytest.raises(rt.AcceleratorError, match="capturing stream has unjoined work"):
        captured(lambda: (x * 2, fork()))


def test_a_dependency_on_work_that_is_not_captured(device):
    before = cuda.current_stream().record_event()
    with pytest.raises(rt.AcceleratorError, match="previous error during capture") as found:
        captured(lambda: cuda.current_stream().wait_event(before))
    assert "dependency created on uncaptured work in another stream" in str(found.value.__context__)


@pytest.mark.parametrize("mode, allowed", [("global", False), ("thread_local", False), ("relaxed", True)])
def test_what_is_unsafe_is_allowed_in_relaxed_mode(device, mode, allowed):
    def allocate():
        rt.ones(1, device="cuda")
        address = runtime.driver().malloc(0, 512)
        return address

    if allowed:
        captured(allocate, capture_error_mode=mode)
    else:
        with pytest.raises(rt.AcceleratorError, match="previous error during capture") as found:
            captured(allocate, capture_error_mode=mode)
        assert str(found.value.__context__).startswith(UNSUPPORTED)


def test_the_generators_state_is_not_to_be_touched(device):
    for touch in (lambda: cuda.manual_seed(0), cuda.get_rng_state, cuda.seed):
        with pytest.raises(
            RuntimeError, match="during CUDA graph capture. If you need this call to be captured, please file an i"
        ):
            captured(lambda: (rt.ones(1, device="cuda"), touch()))


# ------------------------------------------------------------------------------------------------ keeping, dumping


def test_a_kept_graph_is_made_launchable_when_that_is_wanted(device, tmp_path):
    graph = cuda.CUDAGraph(keep_graph=True)
    with cuda.graph(graph):
        y = rt.ones(2, device="cuda") + 1
    assert isinstance(graph.raw_cuda_graph(), int)
    with pytest.raises(RuntimeError, match="until instantiate\\(\\) has been called"):
        graph.raw_cuda_graph_exec()
    graph.replay()
    assert y.tolist() == [2, 2]
    before = graph.raw_cuda_graph_exec()
    graph.instantiate()
    assert graph.raw_cuda_graph_exec() != before
    with pytest.warns(UserWarning, match="DEBUG: calling debug_dump()"):
        graph.debug_dump(str(tmp_path / "graph.dot"))
    text = (tmp_path / "graph.dot").read_text()
    assert text.startswith("digraph") and "->" in text


def test_nothing_is_dumped_unless_that_was_asked_for(device, tmp_path):
    graph, _ = captured(lambda: rt.ones(2, device="cuda"))
    with pytest.warns(UserWarning, match="CUDA Graphs debug not enabled, set with"):
        graph.debug_dump(str(tmp_path / "graph.dot"))
    assert not list(tmp_path.iterdir())


# -------------------------------------------------------------------------------------------------- virtual time


def test_a_replay_costs_the_host_one_launch(timed):
    x = rt.ones(1 << 16, device="cuda")

    def work():
        y = x
        for _ in range(20):
            y = y * 2
        return y

    began = timed.now
    work()
    apart = timed.now - began
    graph, _ = captured(work)
    cuda.synchronize()
    began = timed.now
    graph.replay()
    assert timed.now - began == timed.latencies.launch == apart / 20
    began = timed.now
    cuda.synchronize()
    assert timed.now - began == pytest.approx(20 * CostModel().shortest)


def test_branches_of_a_graph_run_side_by_side(timed):
    side, x = cuda.Stream(), rt.ones(16, device="cuda")

    def work():
        side.wait_stream(cuda.current_stream())
        with cuda.stream(side):
            y = x * 2 * 2 * 2
        z = x * 3 * 3
        cuda.current_stream().wait_stream(side)
        return y + z

    graph, _ = captured(work)
    cuda.synchronize()
    graph.replay()
    began = timed.now
    cuda.synchronize()
    assert timed.now - began == pytest.approx(4 * CostModel().shortest)


# ------------------------------------------------------------------------------------------------ graphed callables


def test_make_graphed_callables(device):
    rt.manual_seed(0)
    module = rt.nn.Sequential(rt.nn.Linear(3, 4), rt.nn.Tanh()).to("cuda")
    function = lambda x: (x * x).sum(1)
    sample = rt.randn(2, 3).to("cuda").requires_grad_(), rt.randn(2, 4).to("cuda").requires_grad_()
    x = rt.randn(2, 3).to("cuda").requires_grad_()

    def run(one, two):
        x.grad = None
        module.zero_grad()
        result = two(one(x))
        result.sum().backward()
        return result.tolist(), x.grad.tolist(), [p.grad.tolist() for p in module.parameters()]

    expected = run(module, function)
    one, two = cuda.make_graphed_callables((module, function), ((sample[0],), (sample[1],)))
    assert one is module
    for _ in range(2):
        found = run(one, two)
        for ours, wanted in zip(found, expected):
            assert rt.tensor(ours[0]).allclose(rt.tensor(wanted[0]))
        assert found[1] == expected[1] or rt.tensor(found[1]).allclose(rt.tensor(expected[1]))
    module.eval()
    assert rt.tensor(module(x).tolist()).allclose(rt.tensor(rt.nn.Sequential.forward(module, x).tolist()))


def test_what_cannot_be_graphed(device):
    module = rt.nn.Linear(2, 2).to("cuda")
    with pytest.raises(
        AssertionError, match="In the beta API, sample_args for each callable must contain only Tensors."
    ):
        cuda.make_graphed_callables(module, (1.0,))
    module.register_forward_hook(lambda *_: None)
    with pytest.raises(AssertionError, match="Modules must not have hooks registered at the time they are passed."):
        cuda.make_graphed_callables(module, (rt.ones(2, 2, device="cuda"),))
    with pytest.raises(RuntimeError, match="make_graphed_callables does not support the autocast caching."):
        with rt.autocast("cuda"):
            cuda.make_graphed_callables(module, (rt.ones(2, 2, device="cuda"),))
