"""Pipelines: what all stages together compute, and in which order each does."""

import pytest
import torch
from torch.distributed.pipelining import schedules as reference

import readtorch
from readtorch import distributed as dist
from readtorch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe


def layers(lib, stages):
    lib.manual_seed(3)
    sizes = [4, 6, 5, 7, 3, 2]
    return [lib.nn.Sequential(lib.nn.Linear(a, b), lib.nn.Tanh()).double() for a, b in zip(sizes, sizes[1:])][:stages]


def batch(lib, size=12):
    lib.manual_seed(5)
    return lib.randn(size, 4, dtype=lib.float64)


def loss_fn(output, target):
    return (output - target).square().mean()


def whole(lib, stages):
    """(loss, output, gradients) of the model in one piece."""
    parts = layers(lib, stages)
    output = lib.nn.Sequential(*parts)(batch(lib))
    loss = loss_fn(output, lib.ones_like(output) / 2)
    loss.backward()
    return loss.item(), output.tolist(), [p.grad.tolist() for part in parts for p in part.parameters()]


def run_stage(rank, stages, kind, pieces, steps=1, scale=True):
    torch_like = readtorch
    part = layers(torch_like, stages)[rank]
    stage = PipelineStage(part, rank, stages, "cpu")
    schedule = kind(stage, pieces, loss_fn=loss_fn, scale_grads=scale)
    order, alive, most = [], set(), 0
    forward, backward = stage.forward_one_chunk, stage.backward_one_chunk

    def forward_noted(i, *args):
        nonlocal most
        order.append((rank, "F", i))
        alive.add(i)
        most = max(most, len(alive))
        return forward(i, *args)

    def backward_noted(i, *args):
        order.append((rank, "B", i))
        alive.discard(i)
        return backward(i, *args)

    stage.forward_one_chunk, stage.backward_one_chunk = forward_noted, backward_noted
    for _ in range(steps):
        part.zero_grad()
        losses = []
        args = (batch(torch_like),) if rank == 0 else ()
        target = readtorch.full((12, part[0].out_features), 0.5, dtype=readtorch.float64)
        output = schedule.step(*args, target=target if rank == stages - 1 else None, losses=losses)
    return {
        "order": order,
        "most": most,
        "grads": [p.grad.tolist() for p in part.parameters()],
        "losses": [loss.item() for loss in losses],
        "output": None if output is None else output.tolist(),
    }


@pytest.mark.parametrize("kind", [ScheduleGPipe, Schedule1F1B])
@pytest.mark.parametrize("stages, pieces", [(1, 3), (2, 2), (3, 4), (5, 6)])
def test_gradients_and_loss_are_those_of_the_whole_model(kind, stages, pieces):
    results = dist.run_threads(lambda rank: run_stage(rank, stages, kind, pieces, steps=2), stages)
    loss, output, grads = whole(torch, stages)
    assert sum(results[-1]["losses"]) / pieces == pytest.approx(loss, rel=1e-12)
    torch.testing.assert_close(results[-1]["output"], output, rtol=1e-12, atol=1e-14)
    torch.testing.assert_close([g for r in results for g in r["grads"]], grads, rtol=1e-10, atol=1e-13)


class _Noted:
    """A stage that computes nothing and notes what PyTorch's schedule asks of it."""

    def __init__(self, rank, stages):
        self.stage_index, self.num_stages, self.is_last = rank, stages, rank == stages - 1
        self.order = []

    def get_fwd_recv_ops(self, i):
        return []

    get_fwd_send_ops = get_bwd_recv_ops = get_bwd_send_ops = get_fwd_recv_ops

    def forward_one_chunk(self, i, *args, **kwargs):
        self.order.append((self.stage_index, "F", i))

    def backward_one_chunk(self, i, *args, **kwargs):
        self.order.append((self.stage_index, "B", i))

    def perform_reduce_grad(self, factor):
        self.order.append(factor)


@pytest.mark.parametrize("ours, theirs", [(ScheduleGPipe, "ScheduleGPipe"), (Schedule1F1B, "Schedule1F1B")])
@pytest.mark.parametrize("stages, pieces", [(2, 4), (4, 4), (4, 6)])
def test_the_order_is_pytorchs(ours, theirs, stages, pieces):
    results = dist.run_threads(lambda rank: run_stage(rank, stages, ours, pieces), stages)
    for rank, result in enumerate(results):
        stage = _Noted(rank, stages)
        schedule = getattr(reference, theirs)(stage, pieces, loss_fn=lambda output, target: 0)
        schedule._initialize_stage = lambda *args: None
        schedule._step_microbatches([()] * pieces, [{}] * pieces, [None] * pieces)
        assert [*result["order"], pieces] == stage.order
        assert result["most"] == (pieces if ours is ScheduleGPipe else min(pieces, stages - rank))


def test_a_sum_is_not_scaled():
    mean = dist.run_threads(lambda rank: run_stage(rank, 2, ScheduleGPipe, 4), 2)[0]["grads"]
    total = dist.run_threads(lambda rank: run_stage(rank, 2, ScheduleGPipe, 4, scale=False), 2)[0]["grads"]
    torch.testing.assert_close([torch.tensor(g) / 4 for g in total], [torch.tensor(g) for g in mean])


def test_without_gradients():
    def run(rank):
        part = layers(readtorch, 2)[rank]
        schedule = ScheduleGPipe(PipelineStage(part, rank, 2, "cpu"), 3, loss_fn=None)
        output = schedule.eval(batch(readtorch)) if rank == 0 else schedule.eval()
        return None if output is None else output.tolist()

    torch.testing.assert_close(dist.run_threads(run, 2)[1], whole(torch, 2)[1], rtol=1e-12, atol=1e-14)


def test_errors():
    def run(rank):
        part = layers(readtorch, 2)[rank]
        with pytest.raises(ValueError, match="Stage index 2 is out of range of 2"):
            PipelineStage(part, 2, 2, "cpu")
        with pytest.raises(RuntimeError, match="Pipeline group size 2 cannot be larger than number of stages 1"):
            PipelineStage(part, 0, 1, "cpu")
        stage = PipelineStage(part, rank, 2, "cpu")
        with pytest.raises(ValueError, match="must be greater than"):
            Schedule1F1B(stage, 1)
        with readtorch.no_grad(), pytest.raises(RuntimeError, match="requires gradients to be enabled"):
            ScheduleGPipe(stage, 2, loss_fn).step()
        with pytest.raises(RuntimeError, match="is smaller than the number of chunks"):
            ScheduleGPipe(stage, 13, loss_fn).step(batch(readtorch))

    dist.run_threads(run, 2)
