"""Operators on CUDA tensors, results and gradients, thread by thread on the kernel simulator: equal to the CPU's,
and without a race."""
import gc

import pytest

import readtorch as rt
from readtorch import cuda
from readtorch.c10.cuda import simulator
from readtorch.c10.cuda.launch import launching_by
from readtorch.nn import functional as F


@pytest.fixture(autouse=True, scope="module")
def device():
    cuda.simulate(1, "64MiB", kernels=True)
    yield
    gc.collect()
    cuda.simulate(0)


def numbers(*shape):
    """Different numbers in no order, none of them close to another."""
    count = rt.Size(shape).numel()
    return (rt.arange(count) * 7 % max(count, 1) * 0.25 - 0.5).reshape(shape)


ROWS = rt.tensor([[3.0, 1.0, 2.0, 1.0, 3.0], [0.5, float("nan"), 4.0, -1.0, 0.5]])
WORDS = rt.tensor([[2, 1], [1, 3], [2, 1], [1, 2], [1, 3]])
SORTED = rt.tensor([[1.0, 2.0, 2.0, 5.0], [-1.0, 0.0, 3.0, 4.0]])
IMAGE, VOLUME = numbers(1, 2, 3, 4), numbers(1, 1, 2, 3, 3)

TABLE = {
    "searchsorted": (lambda s, v: rt.searchsorted(s, v), SORTED, numbers(2, 3)),
    "searchsorted right, by a sorter": (
        lambda s, v, order: rt.searchsorted(s.flip(1), v, side="right", sorter=order), SORTED, numbers(2, 3),
        rt.tensor([[3, 2, 1, 0]] * 2)),
    "bucketize": (lambda s, v: rt.bucketize(v, s[0], out_int32=True), SORTED, numbers(3, 2)),
    "bucketize of a number": (lambda s: rt.bucketize(2, s[0], right=True), SORTED),
    "kthvalue": (lambda x: x[:1].kthvalue(2, 1), ROWS),
    "median": (lambda x: x.median(1), ROWS),
    "median of all": (lambda x: x[:1].median(), ROWS),
    "nanmedian": (lambda x: x.nanmedian(1, keepdim=True), ROWS),
    "mode": (lambda x: x.mode(1), ROWS),
    "unique": (lambda n: rt.unique(n, return_inverse=True, return_counts=True), WORDS),
    "unique rows": (lambda n: rt.unique(n, return_inverse=True, return_counts=True, dim=0), WORDS),
    "unique_consecutive": (lambda n: rt.unique_consecutive(n.sort(0).values.t(), True, True), WORDS),
    "repeat_interleave": (lambda x, n: x.repeat_interleave(n[0], 0), ROWS, WORDS),
    "bincount": (lambda n: rt.bincount(n.flatten(), minlength=6), WORDS),
    "bincount, weighted": (lambda n, w: rt.bincount(n[0], w), WORDS, rt.tensor([0.5, 2.0])),
    "reflection_pad1d": (lambda x: F.pad(x[0], (1, 3), "reflect"), IMAGE),
    "reflection_pad2d": (lambda x: F.pad(x, (3, 0, 1, 2), "reflect"), IMAGE),
    "reflection_pad3d": (lambda x: F.pad(x, (1, 1, 2, 0, 0, 1), "reflect"), VOLUME),
    "replication_pad1d": (lambda x: F.pad(x[0], (2, 1), "replicate"), IMAGE),
    "replication_pad2d": (lambda x: F.pad(x, (-1, 2, 1, 0), "replicate"), IMAGE),
    "replication_pad3d": (lambda x: F.pad(x, (0, 1, 2, 0, 1, 1), "replicate"), VOLUME),
    "unfold": (lambda x: F.unfold(x, (2, 3), dilation=(1, 2), padding=(1, 1), stride=(2, 1)), IMAGE),
    "fold": (lambda x: F.fold(x, (3, 4), 2, padding=1, stride=(2, 1)), numbers(1, 8, 10)),
    "nearest": (lambda x: F.interpolate(x, scale_factor=1.7), IMAGE),
    "nearest-exact": (lambda x: F.interpolate(x[0], 7, mode="nearest-exact"), IMAGE),
    "linear": (lambda x: F.interpolate(x[0], 6, mode="linear", align_corners=True), IMAGE),
    "bilinear": (lambda x: F.interpolate(x, (2, 7), mode="bilinear"), IMAGE),
    "bilinear, smoothed": (lambda x: F.interpolate(x, (2, 2), mode="bilinear", antialias=True), IMAGE),
    "bicubic": (lambda x: F.interpolate(x, (5, 2), mode="bicubic"), IMAGE),
    "trilinear": (lambda x: F.interpolate(x, (3, 2, 4), mode="trilinear"), VOLUME),
    "area": (lambda x: F.interpolate(x, (2, 2, 2), mode="area"), VOLUME),
    "pixel_shuffle": (lambda x: F.pixel_shuffle(x.reshape(4, 3, 2), 2), IMAGE),
    "pixel_unshuffle": (lambda x: F.pixel_unshuffle(x[..., :2, :], 2), IMAGE),
}


def results_on(place, function, arguments):
    """The function's results and, of those that have one, the gradients of its arguments; all on the host."""
    leaves = [a.detach().clone().to(place) for a in arguments]
    leaves = [a.requires_grad_() if a.is_floating_point() else a for a in leaves]
    found = function(*leaves)
    found = list(found) if isinstance(found, tuple) else [found]
    smooth = [r for r in found if r.grad_fn is not None]
    if smooth:
        sum((r * rt.arange(1.0, r.numel() + 1).view(r.shape).to(place)).sum() for r in smooth).backward()
    gradients = [a.grad for a in leaves if a.grad is not None]
    assert all(str(r.device).startswith(place) for r in found + gradients)
    return [r.detach().cpu() for r in found + gradients]


@pytest.mark.parametrize("name", TABLE)
def test_as_on_the_cpu(name):
    function, *arguments = TABLE[name]
    with launching_by(simulator.check):
        ours = results_on("cuda", function, arguments)
    expected = results_on("cpu", function, arguments)
    assert len(ours) == len(expected)
    for result, other in zip(ours, expected):
        assert result.dtype == other.dtype and result.shape == other.shape
        assert rt.allclose(result, other, rtol=1e-4, atol=1e-5, equal_nan=True), (result, other)
