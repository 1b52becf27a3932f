"""DistributedDataParallel over several ranks = one process with the whole batch."""

import io
import pickle
import time

import numpy as np
import pytest

import readtorch
from readtorch import distributed as dist
from readtorch import nn
from readtorch.csrc.distributed import timeline
from readtorch.distributed.algorithms.ddp_comm_hooks import default_hooks
from readtorch.nn.parallel import DistributedDataParallel as DDP
from tests.distributed import programs
from tests.distributed.launch import needs_mpi, results
from tests.distributed.programs import BATCH, OPTIMIZERS, arrays, make_model, plain, train

WAYS = [
    {},
    {"gradient_as_bucket_view": True},
    {"find_unused_parameters": True},
    {"static_graph": True},
    {"bucket_cap_mb": 1e-4},
    {"bucket_cap_mb_list": [1e-4, 3e-4], "gradient_as_bucket_view": True},
]


@pytest.fixture(scope="module", params=OPTIMIZERS)
def whole(request):
    """(optimizer, parameters after 20 steps of one process)"""
    return request.param, train(readtorch, make_model(readtorch), request.param, slice(None))[1]


def assert_close(ours, theirs, atol=1e-13):
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=atol)


@pytest.mark.parametrize("ranks", [2, 3, 4])
@pytest.mark.parametrize("way", WAYS, ids=str)
def test_twenty_steps(whole, ranks, way):
    optimizer, expected = whole

    def fn(rank):
        part = slice(rank * BATCH // ranks, (rank + 1) * BATCH // ranks)
        return train(readtorch, DDP(make_model(readtorch), **way), optimizer, part)[1]

    for parameters in dist.run_threads(fn, ranks):
        assert_close(parameters, expected)


def test_with_a_simulated_network(whole):
    """When results come late, nothing is used too early."""
    optimizer, expected = whole
    network = dist.Network(latency=2e-3, bandwidth=1e6)

    def fn(rank):
        return train(
            readtorch, DDP(make_model(readtorch), bucket_cap_mb=1e-4), optimizer, slice(6 * rank, 6 * rank + 6)
        )[1]

    for parameters in dist.run_threads(fn, 2, network=network):
        assert_close(parameters, expected)


@needs_mpi
def test_mpi(tmp_path):
    for seen in results("data_parallel", "readtorch", "mpi", 4, tmp_path):
        for optimizer in OPTIMIZERS:
            assert_close(seen[optimizer], train(readtorch, make_model(readtorch), optimizer, slice(None))[1])


def test_sockets(tmp_path):
    for seen in results("data_parallel", "readtorch", "tcp", 2, tmp_path):
        for optimizer in OPTIMIZERS:
            assert_close(seen[optimizer], train(readtorch, make_model(readtorch), optimizer, slice(None))[1])


def test_rank_0s_values_come_first():
    for seen in dist.run_threads(lambda rank: programs.data_parallel(readtorch, rank), 2):
        assert_close(seen["SGD"], train(readtorch, make_model(readtorch), "SGD", slice(None))[1])


# -- gradients added up -------------------------------------------------------------------------


@pytest.mark.parametrize("view", [False, True])
def test_no_sync(view):
    """Two micro-batches, of which only the second one communicates, give the gradient of both."""
    x = readtorch.tensor(arrays(1, 2, 4, 6))

    def fn(rank):
        model = DDP(make_model(readtorch), gradient_as_bucket_view=view)
        mine = x[:, 2 * rank : 2 * rank + 2]
        for _ in range(2):
            model.zero_grad()
            with model.no_sync():
                model(mine[0]).sum().backward()
            sequence = model.process_group.sequence
            model(mine[1]).sum().backward()
            assert model.process_group.sequence > sequence
        return plain([p.grad for p in model.parameters()])

    alone = make_model(readtorch)
    (alone(x[0]).sum() + alone(x[1]).sum()).backward()
    for grads in dist.run_threads(fn, 2):
        assert_close(grads, [p.grad.numpy() / 2 for p in alone.parameters()])


def test_gradients_are_views_of_the_buckets():
    def fn(rank):
        model = DDP(make_model(readtorch), gradient_as_bucket_view=True)
        for _ in range(2):
            model(readtorch.ones(2, 6).double()).sum().backward()
        bucket = model.reducer.buckets[0].flat
        return all(
            p.grad.untyped_storage().data_ptr() == bucket.untyped_storage().data_ptr() for p in model.parameters()
        )

    assert dist.run_threads(fn, 2) == [True, True]


def test_hooks_of_the_user_run_too():
    """A tensor hook before the average, and one that sees what the parameter has gathered."""

    def fn(rank):
        model, seen = DDP(nn.Linear(1, 1, bias=False)), []
        (weight,) = model.parameters()
        weight.register_hook(lambda g: seen.append(g.item()) or g * 10)
        weight.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.item()))
        model(readtorch.full((1, 1), rank + 1.0)).sum().backward()
        return seen, weight.grad.item()

    assert dist.run_threads(fn, 2) == [([1.0, 10.0], 15.0), ([2.0, 20.0], 15.0)]


def test_a_reducer_of_ten_lines_in_hooks():
    """All ranks may wait in hooks of leaves at once: nothing is held there that another rank needs."""

    def fn(rank):
        model = make_model(readtorch)
        for p in model.parameters():
            p.register_post_accumulate_grad_hook(lambda p: dist.all_reduce(p.grad))
        model(readtorch.ones(2, 6).double() * (rank + 1)).sum().backward()
        return plain([p.grad for p in model.parameters()])

    seen = dist.run_threads(fn, 4)
    for grads in seen[1:]:
        assert_close(grads, seen[0])


# -- communication hooks ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "hook, atol",
    [
        (default_hooks.allreduce_hook, 1e-13),
        (default_hooks.fp16_compress_hook, 1e-3),
        (default_hooks.bf16_compress_hook, 1e-2),
        (default_hooks.fp16_compress_wrapper(default_hooks.allreduce_hook), 1e-3),
    ],
)
def test_communication_hooks(hook, atol):
    x = readtorch.tensor(arrays(3, 4, 6))

    def fn(rank):
        model = DDP(make_model(readtorch))
        model.register_comm_hook(None, hook)
        model(x[2 * rank : 2 * rank + 2]).mean().backward()
        return plain([p.grad for p in model.parameters()])

    alone = make_model(readtorch)
    alone(x).mean().backward()
    for grads in dist.run_threads(fn, 2):
        assert_close(grads, [p.grad.numpy() for p in alone.parameters()], atol)


def test_what_a_hook_sees():
    def fn(rank):
        model, seen = DDP(make_model(readtorch), bucket_cap_mb=1e-4), []

        def hook(state, bucket: dist.GradBucket) -> readtorch.futures.Future:
            seen.append(
                (
                    bucket.index(),
                    bucket.buffer().numel(),
                    len(bucket.parameters()),
                    bucket.is_last(),
                    [tuple(g.shape) for g in bucket.gradients()],
                )
            )
            done = readtorch.futures.Future()
            done.set_result(bucket.buffer() * 0 + 7)
            return done

        model.register_comm_hook("state", hook)
        with pytest.raises(RuntimeError, match="can only be called once"):
            model.register_comm_hook(None, hook)
        for _ in range(2):
            seen.clear()
            model.zero_grad()
            model(readtorch.ones(2, 6).double()).sum().backward()
        assert all((p.grad == 7).all() for p in model.parameters())
        return seen

    (seen,) = dist.run_threads(fn, 1)
    assert [s[:4] for s in seen] == [(0, 27, 2, False), (1, 64, 1, False), (2, 56, 2, True)]
    assert [sorted(s[4]) for s in seen] == [[(3,), (3, 8)], [(8, 8)], [(8,), (8, 6)]]


def test_a_hook_without_a_future():
    def fn(rank):
        model = DDP(make_model(readtorch))
        model.register_comm_hook(None, lambda state, bucket: bucket.buffer())
        with pytest.raises(RuntimeError, match="callback must return a torch.futures.Future object, but got"):
            model(readtorch.ones(2, 6).double()).sum().backward()

    dist.run_threads(fn, 1)


# -- uneven inputs ------------------------------------------------------------------------------


@pytest.mark.parametrize("by_all", [True, False])
@pytest.mark.parametrize("way", [{}, {"find_unused_parameters": True}, {"bucket_cap_mb": 1e-4}], ids=str)
def test_join(by_all, way):
    """Ranks with 1, 4 and 2 batches: each gradient is over those that still have inputs, divided by all or by them."""
    counts = [1, 4, 2]
    x = readtorch.tensor(arrays(5, 4, 3, 2, 6))  # iteration, rank, sample

    def fn(rank):
        model = DDP(make_model(readtorch), **way)
        step = readtorch.optim.SGD(model.parameters(), lr=0.1)
        with model.join(divide_by_initial_world_size=by_all):
            for i in range(counts[rank]):
                step.zero_grad()
                model(x[i, rank]).pow(2).mean().backward()
                step.step()
        return plain(list(model.parameters()))

    alone = make_model(readtorch)
    step = readtorch.optim.SGD(alone.parameters(), lr=0.1)
    for i in range(max(counts)):
        active = [r for r in range(3) if counts[r] > i]
        step.zero_grad()
        (sum(alone(x[i, r]).pow(2).mean() for r in active) / (3 if by_all else len(active))).backward()
        step.step()
    for parameters in dist.run_threads(fn, 3):
        assert_close(parameters, plain(list(alone.parameters())))


def test_join_with_buffers_and_no_sync():
    """Buffers come from a rank that still trains, and an iteration without reduction is shadowed as such."""

    def fn(rank):
        model = DDP(nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)).double())
        with model.join():
            for i in range(2 + 2 * rank):
                x = readtorch.tensor(arrays(10 * rank + i, 3, 2))
                if i == 3:
                    with model.no_sync():
                        model(x).sum().backward()
                else:
                    model(x).sum().backward()
        return plain(list(model.module.buffers()))

    first, second = dist.run_threads(fn, 2)
    assert_close(first, second)
    assert second[2] == 4


def test_join_that_ends_early():
    def fn(rank):
        model = DDP(make_model(readtorch))
        words = "exhausted all inputs" if rank == 0 else "Detected at least one rank that exhausted inputs"
        with pytest.raises(RuntimeError, match=words), model.join(throw_on_early_termination=True):
            for _ in range(1 + rank):
                model(readtorch.ones(2, 6).double()).sum().backward()

    dist.run_threads(fn, 2)


# -- states -------------------------------------------------------------------------------------


@pytest.mark.parametrize("sync", [True, False])
def test_buffers_of_rank_0_come_before_each_forward(sync):
    def fn(rank):
        model = DDP(nn.BatchNorm1d(1).double(), forward_sync_buffers=sync)
        for _ in range(3):
            model(readtorch.full((2, 1), float(rank)).double() + readtorch.arange(2.0)[:, None]).sum().backward()
        model.eval()(readtorch.ones(1, 1).double())
        return model.module.running_mean.item()

    first, second = dist.run_threads(fn, 2)
    assert (first == second) is sync


def test_names_and_checkpoints():
    """Keys begin with "module."; a checkpoint goes from a wrapped model into a plain one and back."""

    def fn(rank):
        model = DDP(make_model(readtorch))
        train(readtorch, model, "SGD", slice(rank, None, 2))
        names = list(model.state_dict())
        assert names == ["module." + name for name in model.module.state_dict()]
        file = io.BytesIO()
        readtorch.save(model.state_dict(), file)
        file.seek(0)
        loaded = readtorch.load(file)
        nn.modules.utils.consume_prefix_in_state_dict_if_present(loaded, "module.")
        plain_model = make_model(readtorch)
        plain_model.load_state_dict(loaded)
        again = pickle.loads(pickle.dumps(model))
        return all(
            (a == b).all() and (a == c).all()
            for a, b, c in zip(model.parameters(), plain_model.parameters(), again.parameters())
        )

    assert dist.run_threads(fn, 2) == [True, True]


# -- threads and random numbers -----------------------------------------------------------------


def test_each_rank_draws_the_same_numbers_whatever_the_others_do():
    def fn(rank):
        readtorch.manual_seed(5)
        numbers = []
        for _ in range(50):
            numbers.append(readtorch.rand(1).item())
            time.sleep(1e-4 * rank)
        return numbers

    readtorch.manual_seed(3)
    seen = dist.run_threads(fn, 4)
    assert all(numbers == seen[0] for numbers in seen)
    after = readtorch.rand(1)
    readtorch.manual_seed(3)
    assert readtorch.rand(1) == after


# -- timeline -----------------------------------------------------------------------------------


@pytest.mark.alone
def test_timeline():
    """Buckets are on their way while backward still runs; nothing is reduced before its gradients are there."""
    layers, network = 6, dist.Network(latency=1e-3, bandwidth=1e9)

    def fn(rank):
        model = DDP(nn.Sequential(*[nn.Linear(400, 400) for _ in range(layers)]), bucket_cap_mb=0.6)
        x = readtorch.ones(256, 400)
        for i in range(3):
            recording = timeline.Timeline(rank)
            with timeline.record(recording):
                model(x).sum().backward()
        return recording.export()

    for seen in dist.run_threads(fn, 2, network=network):
        buckets = [s for s in seen["spans"] if s["lane"] == "communication"]
        arrived = {i["parameter"]: i["at"] for i in seen["instants"] if i["name"] == "gradient"}
        (backward,) = [s for s in seen["spans"] if s["name"] == "backward"]
        (wait,) = [s for s in seen["spans"] if s["lane"] == "wait"]
        assert [s["bucket"] for s in buckets] == list(range(len(buckets))) and len(buckets) > 2
        assert buckets[0]["begin"] < backward["end"] <= wait["end"]
        for span in buckets:
            assert all(arrived[p] <= span["begin"] for p in span["parameters"]) and span["moving"] <= span["end"]
            assert span["end"] - span["moving"] >= 1e-3
        assert 0 <= timeline.hidden_share(seen) <= 1


def test_hidden_share():
    def spans(*waits):
        return {
            "spans": [
                {"lane": "communication", "moving": 0.0, "end": 4.0},
                {"lane": "communication", "moving": 3.0, "end": 8.0},
                *[{"lane": "wait", "begin": b, "end": e} for b, e in waits],
            ]
        }

    assert timeline.hidden_share(spans()) == 1
    assert timeline.hidden_share(spans((6.0, 8.0))) == 0.75
    assert timeline.hidden_share(spans((0.0, 9.0))) == 0


# -- simulated devices --------------------------------------------------------------------------


@pytest.fixture
def two_devices():
    readtorch.cuda.simulate(2, "64MiB")
    yield
    readtorch.cuda.simulate(0)


@pytest.mark.parametrize("view", [False, True])
def test_each_rank_on_a_device_of_its_own(whole, two_devices, view):
    """As on a machine with several GPUs: `device_ids=[rank]`, inputs come from the CPU."""
    optimizer, expected = whole

    def fn(rank):
        model = make_model(readtorch).to(f"cuda:{rank}")
        model = DDP(model, device_ids=[rank], gradient_as_bucket_view=view)
        step = getattr(readtorch.optim, optimizer)(model.parameters(), **OPTIMIZERS[optimizer])
        for i in range(programs.STEPS):
            x, y = (readtorch.tensor(arrays(2 * i + k, BATCH, n))[6 * rank : 6 * rank + 6] for k, n in ((0, 6), (1, 3)))
            step.zero_grad()
            out = model(x)
            assert out.device.index == rank
            ((out - y.to(out.device)) ** 2).mean().backward()
            step.step()
        assert all(p.grad.device.index == rank for p in model.parameters())
        return plain([p.cpu() for p in model.parameters()])

    for parameters in dist.run_threads(fn, 2):
        assert_close(parameters, expected)


# -- sparse gradients ---------------------------------------------------------------------------


class Words(nn.Module):
    """An embedding with sparse gradients below a dense layer."""

    def __init__(self):
        super().__init__()
        self.table, self.last = nn.Embedding(10, 4, sparse=True), nn.Linear(4, 1)
        with readtorch.no_grad():
            for i, p in enumerate(self.parameters()):
                p.copy_(readtorch.tensor(arrays(i, *p.shape)))

    def forward(self, words):
        return self.last(self.table(words)).pow(2)


@pytest.mark.parametrize("way", [{}, {"gradient_as_bucket_view": True}, {"bucket_cap_mb": 1e-4}], ids=str)
def test_sparse_gradients(way):
    """Ranks that see different words; the average is sparse too."""
    words = readtorch.tensor([[1, 1, 2, 3], [3, 9, 9, 9], [0, 0, 0, 0]])

    def steps(model, part):
        step = readtorch.optim.SGD(model.parameters(), lr=0.1)
        for row in words:
            step.zero_grad()
            model(row[part]).mean().backward()
            step.step()
        return plain(list(model.parameters()))

    def fn(rank):
        model = DDP(Words().double(), **way)
        states = steps(model, slice(2 * rank, 2 * rank + 2))
        assert model.module.table.weight.grad.is_sparse
        return states

    for states in dist.run_threads(fn, 2):
        assert_close(states, steps(Words().double(), slice(None)))


def test_join_with_sparse_gradients():
    def fn(rank):
        model = DDP(Words().double())
        with model.join():
            for i in range(1 + 2 * rank):
                model.zero_grad()
                model(readtorch.tensor([i, rank])).sum().backward()
        return model.module.table.weight.grad.to_dense()[2].tolist()

    alone = Words().double()
    alone(readtorch.tensor([2, 1])).sum().backward()  # the last iteration, in which rank 0 had no inputs
    _, second = dist.run_threads(fn, 2)
    assert_close([second], [alone.table.weight.grad.to_dense()[2].numpy() / 2])
