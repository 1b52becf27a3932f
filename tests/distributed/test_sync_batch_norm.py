"""SyncBatchNorm over ranks with uneven batches = BatchNorm on the concatenated batch."""

import pickle

import numpy as np
import pytest

import readtorch
from readtorch import distributed as dist
from readtorch import nn
from tests.distributed.launch import needs_mpi, results

# Batch sizes of the ranks, by their number.
SIZES = {2: [(3, 5), (1, 1)], 3: [(1, 4, 2), (5, 0, 3)], 4: [(2, 1, 3, 7), (0, 4, 0, 1)]}
SHAPES = {(4,): nn.BatchNorm1d, (3, 5): nn.BatchNorm1d, (2, 3, 4): nn.BatchNorm2d, (2, 2, 3, 2): nn.BatchNorm3d}
OPTIONS = [{}, {"affine": False}, {"momentum": None}, {"track_running_stats": False}, {"bias": False, "eps": 0.1}]
BOUND = 1e-10


def tensors(sizes, shape):
    rng = np.random.default_rng(sum(sizes) + len(shape))
    return [readtorch.tensor(rng.standard_normal((sum(sizes), *shape)) * 3 + 1) for _ in range(2)]


def layer(shape, options):
    made = SHAPES[shape](shape[0], **options).double()
    with readtorch.no_grad():
        for p in made.parameters():
            p.copy_(readtorch.arange(1.0, shape[0] + 1))
    return made


def two_steps(made, x, weights):
    """Everything that can be seen after two forwards and backwards: (of each sample, sums over samples, states)"""
    for _ in range(2):
        made.zero_grad()
        x = x.detach().requires_grad_()
        y = made(x)
        (y * weights + y**3).sum().backward()
    states = [b for b in made.buffers()]
    return [y.detach(), x.grad], [p.grad for p in made.parameters()], states


def compare(rank, sizes, shape, options):
    """The largest difference on this rank."""
    x, weights = tensors(sizes, shape)
    samples, sums, states = two_steps(layer(shape, options), x, weights)
    part = slice(sum(sizes[:rank]), sum(sizes[: rank + 1]))
    synced = nn.SyncBatchNorm.convert_sync_batchnorm(layer(shape, options))
    own_samples, own_sums, own_states = two_steps(synced, x[part], weights[part])
    for s in own_sums:
        dist.all_reduce(s)
    pairs = [*zip(own_samples, [s[part] for s in samples]), *zip(own_sums, sums), *zip(own_states, states, strict=True)]
    return max(
        ((a - b).abs().max().item() if a.numel() else 0.0) / (1 + (b.abs().max().item() if b.numel() else 0))
        for a, b in pairs
    )


def all_cases(rank, several_sizes):
    return {
        (sizes, shape, i): compare(rank, sizes, shape, options)
        for sizes in several_sizes
        for shape in SHAPES
        for i, options in enumerate(OPTIONS)
    }


@pytest.mark.parametrize("ranks", SIZES)
def test_threads(ranks):
    for differences in dist.run_threads(lambda rank: all_cases(rank, SIZES[ranks]), ranks):
        assert max(differences.values()) < BOUND, differences


@needs_mpi
@pytest.mark.parametrize("ranks", SIZES)
def test_mpi(ranks, tmp_path):
    for differences in results("sync_batch_norm", "readtorch", "mpi", ranks, tmp_path):
        assert max(differences.values()) < BOUND, differences


def test_it_can_see_a_difference():
    """Without syncing the values are others."""

    def fn(rank):
        x, weights = tensors((3, 5), (4,))
        part = slice(0, 3) if rank == 0 else slice(3, 8)
        whole, own = layer((4,), {}), layer((4,), {})
        return (
            (two_steps(whole, x, weights)[0][0][part] - two_steps(own, x[part], weights[part])[0][0]).abs().max().item()
        )

    assert min(dist.run_threads(fn, 2)) > 1e-3


def test_16_bit_inputs_have_32_bit_statistics():
    def fn(rank):
        synced = nn.SyncBatchNorm(3)
        x = readtorch.randn(8, 3).to(readtorch.bfloat16).requires_grad_()
        y = synced(x)
        y.sum().backward()
        return y.dtype, x.grad.dtype, synced.running_mean.dtype, synced.weight.grad.dtype

    half, whole = readtorch.bfloat16, readtorch.float32
    assert dist.run_threads(fn, 2) == [(half, half, whole, whole)] * 2


def test_alone_or_in_evaluation_it_is_batch_norm():
    x, _ = tensors((8,), (4,))
    for made in (nn.SyncBatchNorm(4).double(), nn.SyncBatchNorm(4).double().eval()):
        plain = nn.BatchNorm1d(4).double().train(made.training)
        assert (made(x) == plain(x)).all()
    assert dist.run_threads(
        lambda rank: (nn.SyncBatchNorm(4).double()(x) == nn.BatchNorm1d(4).double()(x)).all().item(), 1
    )

    def evaluates(rank):
        return (
            (nn.SyncBatchNorm(4).double().eval()(x[rank:]) == nn.BatchNorm1d(4).double().eval()(x[rank:])).all().item()
        )

    assert dist.run_threads(evaluates, 2) == [True, True]


def test_within_a_group():
    """Only the ranks of process_group share statistics."""

    def fn(rank):
        pairs, _ = dist.new_subgroups(2)
        synced = nn.SyncBatchNorm(1, affine=False, process_group=pairs)
        return synced(readtorch.full((1, 1), float(10**rank)))

    values = [t.item() for t in dist.run_threads(fn, 4)]
    np.testing.assert_allclose(values, [-1, 1, -1, 1], atol=1e-4)


def test_conversion():
    """The whole tree, with parameters and buffers taken over as they are."""
    model = nn.Sequential(
        nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Sequential(nn.BatchNorm1d(5, affine=False, momentum=None))
    ).eval()
    before, names = [*model.parameters(), *model.buffers()], list(model.state_dict())
    converted = nn.SyncBatchNorm.convert_sync_batchnorm(model)
    assert converted is model and type(model[1]) is type(model[2][0]) is nn.SyncBatchNorm
    assert all(a is b for a, b in zip([*model.parameters(), *model.buffers()], before, strict=True))
    assert list(model.state_dict()) == names and not model[1].training
    assert model[2][0].momentum is None and not model[2][0].affine
    assert repr(model[1]) == (
        "SyncBatchNorm(2, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)"
    )
    assert type(pickle.loads(pickle.dumps(model))[1]) is nn.SyncBatchNorm


@pytest.mark.parametrize("shape, words", [((3,), "at least 2D input"), ((3, 0), "input channels should be non-zero")])
def test_refusals(shape, words):
    with pytest.raises(ValueError, match=words):
        nn.SyncBatchNorm(1)(readtorch.ones(shape))


def test_no_second_derivative():
    """The sums over ranks are not part of a graph, so it says so instead of being wrong."""

    def fn(rank):
        x = readtorch.randn(4, 2, requires_grad=True)
        (grad,) = readtorch.autograd.grad((nn.SyncBatchNorm(2)(x) ** 3).sum(), x, create_graph=True)
        with pytest.raises(RuntimeError, match="once_differentiable"):
            grad.sum().backward()

    dist.run_threads(fn, 2)


def test_training_with_data_parallel():
    """A network with synced layers in DistributedDataParallel = one process with the whole batch, step by step."""
    x, y = (
        readtorch.tensor(np.random.default_rng(0).standard_normal((5, 8, 1, 6, 6))),
        readtorch.arange(40).view(5, 8) % 3,
    )

    def network():
        readtorch.manual_seed(0)
        return nn.Sequential(
            nn.Conv2d(1, 4, 3),
            nn.BatchNorm2d(4),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(64, 8),
            nn.BatchNorm1d(8),
            nn.Linear(8, 3),
        ).double()

    def train(model, part):
        step = readtorch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        for i in range(5):
            step.zero_grad()
            nn.functional.cross_entropy(model(x[i, part]), y[i, part]).backward()
            step.step()
        return [t.detach().numpy() for t in model.state_dict().values()]

    def fn(rank):
        model = nn.SyncBatchNorm.convert_sync_batchnorm(network())
        return train(nn.parallel.DistributedDataParallel(model), slice(2 * rank, 2 * rank + 2))

    expected = train(network(), slice(None))
    for states in dist.run_threads(fn, 4):
        for a, b in zip(states, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=0, atol=BOUND)
