"""Operators on CUDA tensors, results and gradients, thread by thread on the kernel simulator: equal to the
CPU's, and without a race."""

import gc

import numpy as np
import pytest

import readtorch as rt
from readtorch import cuda
from readtorch.aten.native.cuda import copy, multinomial_kernel
from readtorch.c10.cuda import philox_rng_engine, simulator
from readtorch.c10.cuda.launch import launching_by
from readtorch.nn import functional as F
from tests.cuda.launches import floats, launched_by


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
PLACES = rt.tensor([[1, 0, 1, 1, 0], [0, 1, 1, 0, 1]])
IMAGE, VOLUME = numbers(1, 2, 3, 4), numbers(1, 1, 2, 3, 3)

TABLE = {
    "searchsorted": (lambda s, v: rt.searchsorted(s, v), SORTED, numbers(2, 3)),
    "searchsorted right, by a sorter": (
        lambda s, v, order: rt.searchsorted(s.flip(1), v, side="right", sorter=order),
        SORTED,
        numbers(2, 3),
        rt.tensor([[3, 2, 1, 0]] * 2),
    ),
    "bucketize": (lambda s, v: rt.bucketize(v, s[0], out_int32=True), SORTED, numbers(3, 2)),
    "bucketize of a number": (lambda s: rt.bucketize(2, s[0], right=True), SORTED),
    "sums of nothing": (
        lambda x: (x[:, :, :0].sum(), x[:0].sum((0, 2)), x[:0].prod(), x[:, :0].mean((1, 2))),
        numbers(2, 3, 2),
    ),
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
    "unfold a dimension": (lambda x: x.unfold(1, 3, 1), ROWS[:1]),
    "bitwise_not": (lambda n: (~n, ~(n > 1)), WORDS),
    "trace": (lambda x: x.trace(), numbers(2, 5)),
    "count_nonzero": (lambda n: n.count_nonzero(0), PLACES),
    "isin": (lambda n, m: rt.isin(n, m[0], invert=True), WORDS, PLACES),
    "nan_to_num": (lambda x: rt.nan_to_num(x / 0, posinf=2.0), numbers(2, 5)),
    "threshold": (lambda x: F.threshold(x, 0.5, 9.0), numbers(2, 5)),
    "hardshrink": (lambda x: F.hardshrink(x, 0.75), numbers(2, 5)),
    "softshrink": (lambda x: F.softshrink(x, 0.75), numbers(2, 5)),
    "adaptive_max_pool2d": (lambda x: F.adaptive_max_pool2d(x, (2, 3), return_indices=True), IMAGE),
    **{
        f"grid_sample {mode} {padding} {align}": (
            lambda x, g, m=mode, p=padding, a=align: F.grid_sample(x, g * 0.75 - 1, m, p, a),
            IMAGE,
            numbers(1, 2, 2, 2),
        )
        for mode, padding, align in [
            ("bilinear", "zeros", False),
            ("bilinear", "reflection", True),
            ("nearest", "border", True),
            ("bicubic", "zeros", True),
            ("bicubic", "reflection", False),
        ]
    },
    "ctc_loss": (lambda x, n: F.ctc_loss(x.log_softmax(2), n[:2, :2], (5, 4), (2, 1)), numbers(5, 2, 4), WORDS),
    "ctc_loss, lengths of tensors": (
        lambda x, n: F.ctc_loss(x.log_softmax(2), n[:2, :2], rt.tensor([5, 4]), n[0, :2].clamp(1, 2)),
        numbers(5, 2, 4),
        WORDS,
    ),
    "ctc_loss, impossible": (
        lambda x, n: F.ctc_loss(x.log_softmax(2), n[:3, 0], (1, 5), (2, 1), reduction="sum", zero_infinity=True),
        numbers(5, 2, 4),
        WORDS,
    ),
    "channels last": (lambda x: F.max_pool2d(x.to(memory_format=rt.channels_last), 2, 1), IMAGE),
    "prelu": (lambda x, w: F.prelu(x, w), IMAGE, rt.tensor([0.25, -2.0])),
    "glu": (lambda x: F.glu(x, 1), IMAGE),
    "xlogy": (lambda x, y: rt.xlogy(x, y.abs() + 0.5), IMAGE, numbers(3, 4)),
    "scatter multiply": (lambda x, i: x.detach().scatter(0, i, 2.0, reduce="multiply"), numbers(2, 5), PLACES),
    "scatter_reduce sum": (lambda x, i, y: x.scatter_reduce(0, i, y, "sum"), numbers(2, 5), PLACES, ROWS),
    "scatter_reduce mean": (
        lambda x, i, y: x.detach().scatter_reduce(0, i, y.detach(), "mean", include_self=False),
        numbers(2, 5),
        PLACES,
        numbers(2, 5),
    ),
    "scatter_reduce prod": (lambda n, i: n.scatter_reduce(0, i, n + 1, "prod"), PLACES, PLACES),
    "scatter_reduce amax": (
        lambda x, i, y: x.scatter_reduce(1, i, y.double(), "amax"),
        numbers(2, 5).double(),
        PLACES,
        numbers(2, 5),
    ),
    "scatter_reduce amin": (
        lambda x, i, y: x.detach().scatter_reduce(1, i, y.detach(), "amin", include_self=False),
        numbers(2, 5),
        PLACES,
        ROWS,
    ),
    "embedding max_norm": (lambda w, i: F.embedding(i, w.detach(), max_norm=1.0), numbers(2, 3), PLACES),
    "embedding_bag sum": (
        lambda w, i, p, o: F.embedding_bag(i[0], w, o, mode="sum", per_sample_weights=p),
        numbers(2, 3),
        PLACES,
        numbers(5),
        rt.tensor([0, 2, 2]),
    ),
    "embedding_bag mean": (lambda w, i: F.embedding_bag(i, w, padding_idx=1), numbers(2, 3), PLACES),
    "embedding_bag max": (lambda w, i: F.embedding_bag(i, w, mode="max"), numbers(2, 3), PLACES),
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


def compare(function, arguments, rtol=1e-4, atol=1e-5):
    """Results and gradients are the CPU's, and no launch has a race."""
    with launching_by(simulator.check):
        ours = results_on("cuda", function, arguments)
    expected = results_on("cpu", function, arguments)
    assert len(ours) == len(expected)
    for result, other in zip(ours, expected):
        assert result.dtype == other.dtype and result.shape == other.shape
        assert rt.allclose(result, other, rtol=rtol, atol=atol, equal_nan=True), (result, other)


@pytest.mark.parametrize("name", TABLE)
def test_as_on_the_cpu(name):
    function, *arguments = TABLE[name]
    compare(function, arguments)


MATRICES = rt.tensor(
    [[[4.0, 2.0, -1.0], [2.0, 5.0, 0.5], [-1.0, 0.5, 3.0]], [[2.0, 0.0, 1.0], [0.0, 1.0, 0.5], [1.0, 0.5, 6.0]]]
)
SIDES = numbers(2, 3, 2)
FACTORS = {
    "cholesky": lambda a, b: rt.linalg.cholesky(a, upper=True),
    "inv": lambda a, b: rt.linalg.inv(a),
    "solve": lambda a, b: rt.linalg.solve(a - 1, b),
    "solve from the left": lambda a, b: rt.linalg.solve(a[0], b.mT, left=False),
    "lu_factor": lambda a, b: rt.linalg.lu_factor_ex((a - 2)[:, :, :2])[:2],
    "lu_solve": lambda a, b: rt.linalg.lu_solve(*rt.linalg.lu_factor((a - 2).detach()), b, adjoint=True),
    "solve_triangular": lambda a, b: rt.linalg.solve_triangular(a, b.mT, upper=True, left=False),
    "det": lambda a, b: rt.linalg.det(a - 2),
    "slogdet": lambda a, b: tuple(rt.linalg.slogdet(a - 2)),
    "qr": lambda a, b: tuple(rt.linalg.qr(b)),
    "qr, wide": lambda a, b: tuple(rt.linalg.qr(b.mT)),
    "qr, complete": lambda a, b: tuple(rt.linalg.qr(b.detach(), "complete")),
    "eigvalsh": lambda a, b: rt.linalg.eigvalsh(a),
    "svdvals": lambda a, b: rt.linalg.svdvals(b),
}


@pytest.mark.parametrize("name", FACTORS)
def test_factors(name):
    """Gradients are products of matrices, for which races are looked for elsewhere."""
    with launching_by(simulator.check):
        FACTORS[name](*(t.cuda() for t in (MATRICES, SIDES)))
    ours, expected = (results_on(place, FACTORS[name], (MATRICES, SIDES)) for place in ("cuda", "cpu"))
    assert all(rt.allclose(a, b, rtol=1e-3, atol=1e-4) for a, b in zip(ours, expected, strict=True))


@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 2), (2, 3), (1, 1)])
def test_singular_vectors(shape):
    """They put the matrix together again, and are orthogonal, also where a singular value is 0."""
    a = numbers(*shape).round().cuda()
    a[..., 0] = 0
    u, s, v = (t.cpu() for t in rt.linalg.svd(a))
    k = s.shape[-1]
    assert rt.allclose(u[..., :k] * s.unsqueeze(-2) @ v[..., :k, :], a.cpu(), atol=1e-4)
    assert all(rt.allclose(t @ t.mT, rt.eye(t.shape[-1]).expand(t.shape), atol=1e-5) for t in (u, v))


def test_eigenvectors():
    values, vectors = (t.cpu() for t in rt.linalg.eigh(MATRICES.cuda()))
    assert rt.allclose(MATRICES @ vectors, vectors * values.unsqueeze(-2), atol=1e-4)
    assert rt.allclose(vectors.mT @ vectors, rt.eye(3).expand(2, 3, 3), atol=1e-5)


def test_matrices_without_a_factor():
    with pytest.raises(rt.linalg.LinAlgError, match="the leading minor of order 2 is not positive-definite"):
        rt.linalg.cholesky(rt.tensor([[1.0, 2.0], [2.0, 1.0]], device="cuda"))
    with pytest.raises(rt.linalg.LinAlgError, match="The diagonal element 2 is zero"):
        rt.linalg.inv(rt.ones(2, 2, device="cuda"))


CONVOLUTIONS = {
    "conv3d": lambda x, w, b: F.conv3d(x, w, b, (2, 1, 1), (1, 0, 2), (1, 2, 1), groups=2),
    "conv_transpose3d": lambda x, w, b: F.conv_transpose3d(x, w.transpose(0, 1).reshape(2, 2, 2, 2, 1), b[:2], 2, 1),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions_of_volumes(name):
    """The tiles are those of matmul, for which races are looked for elsewhere."""
    arguments = numbers(1, 2, 2, 4, 3), numbers(4, 1, 2, 2, 1), numbers(4)
    ours = results_on("cuda", CONVOLUTIONS[name], arguments)
    expected = results_on("cpu", CONVOLUTIONS[name], arguments)
    assert all(rt.allclose(a, b, rtol=1e-4, atol=1e-4) for a, b in zip(ours, expected, strict=True))


REFUSED = {
    "sum": lambda out: rt.sum(rt.ones(2, 2, device=out.device), 0, dtype=rt.float32, out=out),
    "mm": lambda out: rt.mm(*[rt.ones(2, 2, device=out.device)] * 2, out=out),
    "all": lambda out: rt.all(rt.ones(2, device=out.device), out=out),
    "cat": lambda out: rt.cat([rt.ones(2, device=out.device)], out=out),
    "stack": lambda out: rt.stack([rt.ones(2, device=out.device)], out=out),
    "kthvalue": lambda out: rt.kthvalue(rt.ones(2, device=out.device), 1, out=(out, out)),
    "gather": lambda out: rt.gather(rt.ones(2, device=out.device), 0, rt.tensor([0], device=out.device), out=out),
    "searchsorted": lambda out: rt.searchsorted(rt.ones(2, device=out.device), 1.0, out_int32=True, out=out),
}


@pytest.mark.parametrize("name", REFUSED)
def test_outputs_of_another_type_are_refused_as_on_the_cpu(name):
    errors = []
    for place in ("cpu", "cuda"):
        with pytest.raises((RuntimeError, TypeError)) as caught:
            REFUSED[name](rt.empty(0, dtype=rt.int64, device=place))
        errors.append((caught.type, str(caught.value)))
    assert errors[0] == errors[1]


def test_cumsum_into_integers_computes_in_them():
    out = rt.empty(0, dtype=rt.int64, device="cuda")
    rt.cumsum(rt.tensor([1.75, 2.75], device="cuda"), 0, out=out)
    assert out.tolist() == [1, 3]


# ------------------------------------------------------------------------------------------------- random numbers


def drawn_again(draw):
    """What two calls draw from one seed."""
    rt.manual_seed(5)
    with launching_by(simulator.check):
        return [draw().cpu(), draw().cpu()]


@pytest.mark.parametrize(
    "draw",
    [
        lambda place: rt.bernoulli(numbers(3, 3).abs().clamp(max=1).to(place)),
        lambda place: rt.empty(7, dtype=rt.float64, device=place).bernoulli_(rt.full((7,), 0.4).to(place)),
        lambda place: rt.multinomial(rt.tensor([[1.0, 0.0, 3.0, 2.0]] * 2).to(place), 3),
        lambda place: rt.multinomial(rt.tensor([1.0, 0.0, 3.0]).to(place), 1, replacement=True),
    ],
)
def test_samples_are_those_of_simulated_devices(draw):
    """Whose numbers NumPy computes, from the same Philox states as a GPU."""
    ours = drawn_again(lambda: draw("cuda"))
    cuda.simulate(1, "64MiB")
    expected = drawn_again(lambda: draw("cuda"))
    cuda.simulate(1, "64MiB", kernels=True)
    assert all(a.equal(b) for a, b in zip(ours, expected))


def test_multinomial_with_replacement():
    """Each thread's first number, looked up in the running sums; the generator moves on by 4 a distribution."""
    chances = rt.tensor([[0.2, 0.0, 0.5, 0.3], [1.0, 0.0, 0.0, 0.0]])
    rt.manual_seed(11)
    with launching_by(simulator.check):
        found = rt.multinomial(chances.cuda(), 6, replacement=True)
    words = philox_rng_engine.draws(11, 0, 2 * 128, 1)[0, 0]
    units = words.astype(np.float32) * np.float32(2.0**-32) + np.float32(2.0**-33)
    for row, ends in enumerate(chances.cumsum(1).tolist()):
        assert found[row].tolist() == np.searchsorted(ends, units[128 * row : 128 * row + 6]).tolist()


@pytest.mark.parametrize("rows, categories, draws", [(1, 5, 4), (2, 5, 4), (3, 2, 8), (5, 2, 12)])
def test_the_generator_moves_on_by_the_rows_that_a_block_samples(rows, categories, draws, monkeypatch):
    monkeypatch.setattr(multinomial_kernel, "MOST_ROWS", 2)
    generator = rt.Generator("cuda").manual_seed(1)
    rt.multinomial(rt.ones(rows, categories).cuda(), 3, replacement=True, generator=generator)
    assert generator.get_offset() == draws


@pytest.mark.parametrize("shape", [(32, 40), (3, 33, 32)])
def test_a_matrix_is_turned_in_tiles(shape):
    """Rows are read and columns written together; what lies alike, or is small, is copied element by element."""
    x = floats(*shape)
    turned, alike = np.zeros(x.swapaxes(-1, -2).shape, np.float32), np.zeros_like(x)
    by_columns = np.zeros_like(x).swapaxes(-1, -2)
    for source, target, in_tiles in (
        (x.swapaxes(-1, -2), turned, True),
        (x, alike, False),
        (x.swapaxes(-1, -2), by_columns, False),
        (x[..., :31].swapaxes(-1, -2), np.zeros_like(turned[..., :31, :]), False),
    ):
        [(kernel, _)] = launched_by(copy.copy, source, target)
        assert (kernel.__name__ == "transpose") == in_tiles


def test_normal_about_tensors():
    mean, std = rt.tensor([[1.0], [-1.0]]), rt.tensor([0.0, 2.0])
    rt.manual_seed(2)
    both, only_std = rt.normal(mean.cuda(), std.cuda()).cpu(), rt.normal(3.0, std.cuda()).cpu()
    assert both[:, 0].tolist() == [1.0, -1.0] and only_std[0] == 3.0 and both[0, 1] != 1.0
    with pytest.raises(RuntimeError, match="all elements of std"):
        rt.normal(1.0, -std.cuda())
