"""Operators on CUDA tensors that look at places rather than at numbers: pooling of volumes, scans, elements
put and taken, distances, segments, samples, factors. Results and gradients, thread by thread, are the CPU's, and
without a race.
"""

import numpy as np
import pytest

import readtorch as rt
from readtorch import cuda
from readtorch.c10.cuda import simulator
from readtorch.c10.cuda.launch import launching_by
from readtorch.nn import functional as F
from tests.cuda.test_operator_table import compare, device, numbers, results_on  # noqa: F401  (device: a fixture)

VOLUME, IMAGE = numbers(1, 2, 4, 5, 3), numbers(2, 1, 5, 6)
ROWS = rt.tensor([[3.0, 1.0, 2.0, 1.0, 3.0], [0.5, float("nan"), 4.0, float("nan"), 0.5]])
PLACES, ORDER = rt.tensor([[7, 2, 9], [4, 0, 5]]), rt.tensor([[2, 0, 3], [4, 1, 5]])
LENGTHS = rt.tensor([[2, 0, 3], [2, 1, 2]])

TABLE = {
    "avg_pool3d": (lambda x: F.avg_pool3d(x, (2, 3, 2), (1, 2, 1), (1, 1, 0)), VOLUME),
    "avg_pool3d, ceil": (lambda x: F.avg_pool3d(x[0], 3, 2, 1, True, False), VOLUME.double()),
    "avg_pool3d, divisor": (lambda x: F.avg_pool3d(x, 2, divisor_override=3), VOLUME),
    "max_pool3d": (lambda x: F.max_pool3d(x, (2, 3, 2), (1, 2, 1), (1, 1, 0), return_indices=True), VOLUME),
    "max_pool3d, dilated": (lambda x: F.max_pool3d(x[0], 2, 1, 0, (2, 1, 2), True, return_indices=True), VOLUME),
    "max_pool3d, overlapping": (lambda x: F.max_pool3d(x.to(memory_format=rt.channels_last_3d), 2, 1), VOLUME.double()),
    "adaptive_max_pool3d": (lambda x: F.adaptive_max_pool3d(x, (3, 2, 3), return_indices=True), VOLUME),
    "fractional_max_pool2d": (
        lambda x, s: F.fractional_max_pool2d(x, (2, 3), (3, 2), return_indices=True, _random_samples=s.detach()),
        IMAGE,
        rt.tensor([[[0.3, 0.8]], [[0.6, 0.1]]]),
    ),
    "fractional_max_pool3d": (
        lambda x, s: F.fractional_max_pool3d(
            x[0], (2, 2, 1), (2, 3, 1), return_indices=True, _random_samples=s.detach()
        ),
        VOLUME,
        rt.tensor([[[0.3, 0.8, 0.9], [0.2, 0.5, 0.7]]]),
    ),
    "max_unpool2d": (lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2, output_size=(5, 6)), IMAGE),
    "max_unpool3d": (
        lambda x: F.max_unpool3d(*F.max_pool3d(x, 2, return_indices=True), 2, output_size=(4, 5, 3)),
        VOLUME,
    ),
    "cummax": (lambda x: x.cummax(1), ROWS),
    "cummax of columns": (lambda x: x.cummax(0), ROWS.double()),
    "cummin": (lambda x: x.cummin(-1), ROWS),
    "cummin of integers": (lambda x: x.cummin(0), rt.tensor([3, 1, 2, 1, 0, 4], dtype=rt.int16)),
    "cummax, several pieces": (lambda x: x.cummax(1), numbers(1, 300)),
    "cummax of a number": (lambda x: x.cummax(0), rt.tensor(2.0)),
    "logcumsumexp": (lambda x: x.logcumsumexp(0), numbers(5, 3)),
    "logcumsumexp, infinite": (
        lambda x: x.detach().logcumsumexp(1),
        rt.tensor([[-float("inf"), -float("inf"), 1.0], [2.0, float("inf"), float("inf")]]),
    ),
    "take": (lambda x, n: x.t().take(n), IMAGE[0, 0], PLACES),
    "put": (lambda x, n, y: x.put(n, y[:2]), IMAGE[0, 0], PLACES, numbers(3, 3)),
    "put in place": (lambda x, n, y: x.t().clone().t().put_(n, y[:2]), IMAGE[0, 0], PLACES, numbers(3, 3)),
    "put, adding": (lambda x, n, y: x.put(n % 2, y[:2], True), IMAGE[0, 0], PLACES, numbers(3, 3)),
    "take_along_dim": (lambda x, n: rt.take_along_dim(x, n % 5 - 5, 0), IMAGE[0, 0, :, :3], PLACES),
    "masked_scatter": (lambda x, m, y: x.masked_scatter(m > 3, y), numbers(3), PLACES, numbers(2, 4)),
    "masked_scatter_": (lambda x, m, y: x.clone().masked_scatter_(m[0] > 3, y), numbers(2, 3), PLACES, numbers(2, 4)),
    "index_fill": (lambda x, n: x.index_fill(1, n[0], 7), IMAGE[0, 0, :, :6], ORDER),
    "index_fill by a tensor": (lambda x, n, v: x.index_fill(0, n[0].int(), v), IMAGE[0, 0], ORDER, rt.tensor(2.0)),
    "index_fill_": (lambda x, n: x.clone().index_fill_(-1, n[1], -1), IMAGE[0, 0], ORDER),
    **{
        f"index_reduce {how} {own}": (
            lambda x, n, y, how=how, own=own: x.index_reduce(1, n[0] % (2 if own else 5), y, how, include_self=own),
            numbers(2, 4),
            ORDER,
            numbers(2, 3) + 0.75,
        )
        for how in ("prod", "mean", "amax", "amin")
        for own in (True, False)
    },
    "index_reduce of integers": (lambda n, m: n.index_reduce(1, m[0] % 3, m + 1, "mean"), PLACES, ORDER),
    "nonzero_static": (
        lambda n: (rt.nonzero_static(n > 3, size=2), rt.nonzero_static(n > 3, size=9, fill_value=-3)),
        PLACES,
    ),
    "renorm": (lambda x: x.renorm(2, 1, 1.5), numbers(2, 3)),
    "histc": (lambda x: (x.histc(4), x.histc(3, -0.5, 0.75), x.histc(2, 1, 2)), numbers(2, 3)),
    **{
        f"cdist {p}": (lambda x, y, p=p: rt.cdist(x, y, p), numbers(2, 3, 2), numbers(4, 2) + 0.25)
        for p in (0, 1, 1.5, 2, 3, float("inf"))
    },
    "cdist by a product": (
        lambda x, y: rt.cdist(x, y, compute_mode="use_mm_for_euclid_dist"),
        numbers(2, 3),
        numbers(4, 3) + 0.25,
    ),
    **{f"pdist {p}": (lambda x, p=p: F.pdist(x, p), numbers(4, 3).double()) for p in (0, 1, 2, 2.5, float("inf"))},
    **{
        f"segment_reduce {how}": (
            lambda x, n, how=how: rt.segment_reduce(x, how, lengths=n[0], axis=0),
            numbers(5, 2),
            LENGTHS,
        )
        for how in ("sum", "mean", "prod", "max", "min")
    },
    "segment_reduce, offsets": (
        lambda x, n: rt.segment_reduce(x, "mean", offsets=n.cumsum(1) - 2, axis=1, initial=1),
        numbers(2, 5),
        LENGTHS,
    ),
    **{
        f"grid_sample of a volume {mode} {padding} {align}": (
            lambda x, g, m=mode, p=padding, a=align: F.grid_sample(x, g * 0.15 - 1, m, p, a),
            VOLUME,
            numbers(1, 1, 2, 2, 3),
        )
        for mode, padding, align in [
            ("bilinear", "zeros", False),
            ("bilinear", "reflection", True),
            ("nearest", "border", True),
        ]
    },
    "copies of views": (
        lambda x: (
            rt.expand_copy(x[:, :, :1], (2, 1, 4, 6)),
            rt.select_copy(x, 0, 1),
            *rt.unbind_copy(x),
            rt.t_copy(x[0, 0]),
            rt.narrow_copy(x, 2, 1, 2),
            rt.unfold_copy(x, 3, 2, 3),
        ),
        IMAGE,
    ),
    "slice_scatter": (lambda x, y: rt.slice_scatter(x, y, 1, 1, 6, 2), IMAGE[0, 0], numbers(5, 3)),
    "select_scatter": (lambda x, y: rt.select_scatter(x.t(), y, 0, 2), IMAGE[0, 0], numbers(5)),
    "diagonal_scatter": (lambda x, y: rt.diagonal_scatter(x, y, 1), IMAGE[0, 0], numbers(5)),
    "as_strided_scatter": (lambda x, y: rt.as_strided_scatter(x, y, (2, 2), (1, 3), 1), IMAGE[0, 0], numbers(2, 2)),
    "diagonal_copy": (lambda x: rt.diagonal_copy(x, 1), IMAGE[0, 0]),
    "chunk_cat": (lambda x, y: rt._chunk_cat([x.detach(), y.detach()], 0, 2), numbers(5, 2), numbers(4)),
    "rot90": (lambda x: (rt.rot90(x), rt.rot90(x, 2), rt.rot90(x, -1), rt.rot90(x, 4)), IMAGE[0, 0]),
    "block_diag": (lambda x, y: rt.block_diag(x, y[0], y[0, 0]), numbers(2, 3), numbers(2, 2)),
    "weight_norm": (lambda v, g: rt._weight_norm(v, g[0], 0), numbers(3, 2, 2) + 0.1, numbers(1, 3, 1, 1)),
    "weight_norm of columns": (lambda v, g: rt._weight_norm(v, g, 1), numbers(3, 2) + 0.1, numbers(1, 2)),
    "pack_padded_sequence": (lambda x: rt._pack_padded_sequence(x, rt.tensor([3, 2]), False)[0], numbers(3, 2, 2)),
    "channel_shuffle": (lambda x: F.channel_shuffle(x, 3), numbers(1, 6, 1, 2)),
    "affine_grid": (lambda t: F.affine_grid(t, (1, 1, 3, 2), True), numbers(1, 2, 3)),
    "rrelu": (lambda x: F.rrelu(x - 1), numbers(2, 3)),
    "conv_tbc": (lambda x, w, b: rt.conv_tbc(x, w, b, 1), numbers(4, 1, 2), numbers(2, 2, 3), numbers(3)),
    "masked softmax": (lambda x, m: rt._masked_softmax(x, m > 4, 1, 2), numbers(2, 3), PLACES),
    "windows": (
        lambda x: (
            rt.hann_window(5, device=x.device),
            rt.kaiser_window(1, False, device=x.device),
            rt.blackman_window(4, False, dtype=rt.float64, device=x.device),
            rt.bartlett_window(4, device=x.device),
            rt.hamming_window(3, device=x.device),
        ),
        ROWS,
    ),
    "numbers in a row": (
        lambda x: (
            rt.logspace(0, 2, 5, device=x.device),
            rt.logspace(1, 3, 3, 2, dtype=rt.int64, device=x.device),
            rt.tril_indices(3, 4, 1, device=x.device),
            rt.triu_indices(2, 3, device=x.device),
            rt.empty_permuted((2, 3), (1, 0), device=x.device).zero_(),
        ),
        ROWS,
    ),
    "nansum": (lambda x: (x.nansum(), x.nansum(1), x.nanmean(0)), ROWS),
    "isin of numbers": (lambda n: (rt.isin(n, 4), rt.isin(7, n, invert=True)), PLACES),
    "masked index": (lambda x, n: rt.ops.aten._unsafe_masked_index(x, n > 4, [n, None], 3.0), numbers(5), PLACES),
    "native_batch_norm": (lambda x: rt._native_batch_norm_legit(x, None, None, True, 0.1, 1e-5), numbers(3, 2)),
}


@pytest.mark.parametrize("name", TABLE)
def test_as_on_the_cpu(name):
    function, *arguments = TABLE[name]
    compare(function, arguments)


def test_single_elements_and_numbers_in_tensors():
    x = rt.zeros(2, 3, device="cuda")
    x[1, 2] = rt.tensor(3.0)
    x[0, 0] = 2
    x.add_(rt.ones(3, device="cuda"), alpha=rt.tensor(0.5, device="cuda"))
    assert x.tolist() == [[2.5, 0.5, 0.5], [0.5, 0.5, 3.5]]


def test_views_are_written_in_place():
    """A view knows on a device, too, that autograd follows it."""
    x = rt.ones(2, 3, device="cuda", requires_grad=True)
    y = x.clone()
    y.t()[0].mul_(3.0)
    y.sum().backward()
    assert x.grad.tolist() == [[3.0, 1.0, 1.0]] * 2
    with rt.no_grad():
        cut = y.t()
    with pytest.raises(RuntimeError, match="created in no_grad mode"):
        cut.mul_(2)


# ---------------------------------------------------------------------------------------------------- samples


def empty(n, dtype):
    return rt.empty(n, dtype=dtype, device="cuda")


@pytest.mark.parametrize(
    "draw",
    [
        lambda: empty(9, rt.float32).geometric_(0.25),
        lambda: empty(5, rt.int64).geometric_(0.1),
        lambda: empty(7, rt.float64).cauchy_(1, 2),
        lambda: empty(7, rt.float32).cauchy_(),
        lambda: empty(6, rt.uint8).random_(),
        lambda: empty(6, rt.int64).random_(),
        lambda: empty(6, rt.int32).random_(),
        lambda: empty(6, rt.float32).random_(),
        lambda: rt.randperm(0, device="cuda"),
        lambda: rt.randperm(13, device="cuda", dtype=rt.int32),
        lambda: rt.randperm(70, generator=rt.Generator("cuda").manual_seed(3), device="cuda"),
    ],
)
def test_numbers_of_simulated_devices(draw):
    """NumPy computes them from the same Philox states."""
    results = []
    for kernels in (False, True):
        cuda.simulate(1, "64MiB", kernels=kernels)
        rt.manual_seed(5)
        with launching_by(simulator.check):
            results.append([draw().cpu(), draw().cpu()])
    assert all(rt.allclose(a, b, rtol=1e-5) and a.dtype == b.dtype for a, b in zip(*results))


def test_equal_keys_are_shuffled():
    from readtorch.aten.native.cpu.philox_kernels import _shuffle_islands
    from readtorch.aten.native.cuda.randperm import shuffle_equal

    class Engine:
        def philox_state(self, n):
            return 7, 12

    keys, ours = np.repeat([3, 4, 9, 11], [1, 7, 2, 1]), np.arange(11)
    theirs = ours.copy()
    with launching_by(simulator.check):
        shuffle_equal((7, 12), keys, ours)
    _shuffle_islands(theirs, keys, Engine())
    assert ours.tolist() == theirs.tolist() != sorted(theirs)


@pytest.mark.parametrize(
    "draw, mean, variance",
    [
        (lambda ones: rt.poisson(ones * 2.5), 2.5, 2.5),
        (lambda ones: rt.poisson(ones * 40), 40, 40),
        (lambda ones: rt.binomial(ones * 12, ones * 0.75), 9, 2.25),
        (lambda ones: rt.binomial(ones * 100, ones * 0.3), 30, 21),
        (lambda ones: rt._standard_gamma(ones * 0.5), 0.5, 0.5),
        (lambda ones: rt._standard_gamma(ones * 3), 3, 3),
        (lambda ones: rt._sample_dirichlet(ones.view(-1, 2) * 2)[:, 0], 0.5, 0.05),
    ],
)
def test_moments_of_samples(draw, mean, variance):
    rt.manual_seed(1)
    found = draw(rt.ones(600, device="cuda")).cpu()
    deviation = (variance / found.numel()) ** 0.5
    assert abs(found.mean().item() - mean) < 4 * deviation
    assert 0.7 < found.var().item() / variance < 1.4


def test_edges_of_samples():
    zero, one = rt.zeros(2, device="cuda"), rt.ones(2, device="cuda")
    assert rt.poisson(zero).tolist() == [0, 0] and rt.binomial(5 * one, zero).tolist() == [0, 0]
    assert rt.binomial(5 * one, one).tolist() == [5, 5] and rt.binomial(one * float("nan"), one).isnan().all()


def test_attention_without_a_graph():
    """The fast path: a whole encoder layer in one operator."""
    layer = rt.nn.TransformerEncoderLayer(4, 2, 6, batch_first=True, dropout=0.0).eval()
    x, hidden = numbers(2, 3, 4) * 0.1, rt.tensor([[False, False, True], [False, False, False]])
    with rt.no_grad():
        expected = [layer(x), layer.self_attn(x, x, x, key_padding_mask=hidden)[1]]
        layer = layer.cuda()
        ours = [layer(x.cuda()), layer.self_attn(*[x.cuda()] * 3, key_padding_mask=hidden.cuda())[1]]
    assert all(rt.allclose(a.cpu(), b, rtol=1e-4, atol=1e-5) for a, b in zip(ours, expected))


def test_rrelu_in_training():
    x = rt.full((40,), -2.0, device="cuda", requires_grad=True)
    y = F.rrelu(x, 0.25, 0.5, training=True)
    y.sum().backward()
    assert ((0.25 <= x.grad) & (x.grad < 0.5)).all() and rt.allclose(y, x * x.grad) and x.grad.std() > 0


MATRICES = rt.tensor(
    [[[4.0, 2.0, -1.0], [2.0, 5.0, 0.5], [-1.0, 0.5, 3.0]], [[2.0, 0.0, 1.0], [0.0, 1.0, 0.5], [1.0, 0.5, 6.0]]]
)
SIDES = numbers(2, 3, 2)
FACTORS = {
    "lu": lambda a, b: rt.linalg.lu(a - 2)[1:],
    "lu, tall": lambda a, b: rt.linalg.lu(b),
    "lu_unpack": lambda a, b: rt.lu_unpack(*rt.linalg.lu_factor((a - 2)[:, :2].detach())),
    "lu_solve": lambda a, b: rt.linalg.lu_solve(*rt.linalg.lu_factor(a - 2), b),
    "cholesky_solve": lambda a, b: rt.cholesky_solve(b, rt.linalg.cholesky(a)),
    "cholesky_solve, upper": lambda a, b: rt.cholesky_solve(b[0], a.triu(), upper=True),
    "cholesky_inverse": lambda a, b: rt.cholesky_inverse(a.tril()),
    "triangular_solve": lambda a, b: rt.triangular_solve(b, a)[0],
    "triangular_solve, transposed": lambda a, b: rt.triangular_solve(b, a, False, True, True)[0],
    "geqrf": lambda a, b: rt.geqrf(b.detach()),
    "householder_product": lambda a, b: rt.linalg.householder_product(b * 0.1, a[:, 0, :2] * 0.1),
    "ormqr": lambda a, b: rt.ormqr(b * 0.1, a[:, 0, :2] * 0.1, a, transpose=True),
    "ormqr from the right": lambda a, b: rt.ormqr(b * 0.1, a[:, 0, :2] * 0.1, a, left=False),
    "pinv": lambda a, b: rt.linalg.pinv(b[0]),
    "pinv of a symmetric one": lambda a, b: rt.linalg.pinv(a[0], hermitian=True),
    "pinv, some values left out": lambda a, b: rt.linalg.pinv(a.detach(), atol=3.0),
    "matrix_rank": lambda a, b: (
        rt.linalg.matrix_rank(a),
        rt.linalg.matrix_rank(a, atol=3.0, rtol=0.1),
        rt.linalg.matrix_rank(a, 3.0, hermitian=True),
    ),
    "lstsq": lambda a, b: rt.linalg.lstsq(b[0], a[0], driver="gels")[:2],
    "lstsq, wide": lambda a, b: rt.linalg.lstsq(b[0].mT, b[0, :2, 0], driver="gels")[0],
    "matrix_exp": lambda a, b: rt.linalg.matrix_exp(a[0, :2, :2] / 2),
    "cross": lambda a, b: rt.linalg.cross(a, b[:1, :, :1], dim=1),
    "vdot and dist": lambda a, b: (rt.vdot(a[0, 0], a[1, 1]), rt.dist(a[0], a[1], 3)),
}


@pytest.mark.parametrize("name", FACTORS)
def test_factors(name):
    """Made of factors and products of matrices, for whose kernels races are looked for elsewhere."""
    ours, expected = (results_on(place, FACTORS[name], (MATRICES, SIDES)) for place in ("cuda", "cpu"))
    assert all(rt.allclose(a, b, rtol=1e-3, atol=1e-4) for a, b in zip(ours, expected, strict=True))


@pytest.mark.parametrize("dtype, edge", [(np.float32, 2.0**-23), (np.float64, 0.0)])
def test_only_float32_stays_away_from_the_poles_of_the_tangent(dtype, edge, monkeypatch):
    """Numbers so near 0 or 1 are too rare to be drawn here. In PyTorch: `cauchy` in `TransformationHelper.h`."""
    from readtorch.aten.native.cuda import distribution_templates

    given = []
    monkeypatch.setattr(distribution_templates, "run", lambda draw, state, out, scalars, blocks: given.append(scalars))
    distribution_templates.cauchy((1, 4), np.empty(4, dtype), 0.5, 2.0)
    assert given == [(0.5, 2.0, dtype(np.pi), edge)]
