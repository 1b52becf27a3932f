"""Sizes that one block of threads does not cover: each kernel launches as many as it needs, and the last one stops in time."""

import pytest

import readtorch as rt
from readtorch.nn import functional as F
from tests.cuda.test_operator_table import device  # noqa: F401  a fixture

SIZE = 1030  # of four blocks of 256 threads and a rest, of one of 1024 and a rest
X = (rt.arange(SIZE * 2) * 37 % 101 * 0.02 - 1).reshape(SIZE, 2)
TARGET = rt.arange(SIZE) * 7 % 2

TABLE = {
    "nll_loss": lambda x, t: F.nll_loss(x, t),
    "nll_loss, each": lambda x, t: F.nll_loss(x, t, reduction="none"),
    "nll_loss, weight": lambda x, t: F.nll_loss(x, t, x[0].abs() + 1),
    "nll_loss, ignored": lambda x, t: F.nll_loss(x, t, ignore_index=1, reduction="sum"),
    "cross_entropy": lambda x, t: F.cross_entropy(x, t),
    "mse_loss": lambda x, t: F.mse_loss(x, x * 2),
    "multi_margin_loss": lambda x, t: F.multi_margin_loss(x, t),
    "smooth_l1_loss": lambda x, t: F.smooth_l1_loss(x, -x),
    "embedding": lambda x, t: F.embedding(t, x[:2]),
    "embedding_bag": lambda x, t: F.embedding_bag(t.reshape(103, 10), x[:2], mode="sum"),
    "index_select": lambda x, t: x.index_select(0, t),
    "gather": lambda x, t: x.gather(0, t[:, None]),
    "scatter_add": lambda x, t: x[:2, :1].clone().scatter_add(0, t[:, None], x[:, :1]),
    "index_add": lambda x, t: x[:2].index_add(0, t, x),
    "index_put": lambda x, t: x.index_put((t,), x, True),
    "cat": lambda x, t: rt.cat([x, x * 2, x[:3]]),
    "where": lambda x, t: rt.where(t[:, None] > 0, x, -x),
    "sum": lambda x, t: x.sum(),
    "sum of columns": lambda x, t: x.sum(0),
    "max": lambda x, t: x.max(0)[0],
    "argmax": lambda x, t: x.argmax(),
    "cumsum": lambda x, t: x.cumsum(0),
    "sort": lambda x, t: x[:, 0].sort()[0],
    "softmax": lambda x, t: x.softmax(0),
    "layer_norm": lambda x, t: F.layer_norm(x.t(), (SIZE,)),
    "batch_norm": lambda x, t: F.batch_norm(x, None, None, training=True),
    "nonzero": lambda x, t: (x > 0).nonzero(),
    "masked_select": lambda x, t: x[x > 0.5],
    "bincount": lambda x, t: rt.bincount(t),
    "unique": lambda x, t: rt.unique(x.detach()[:, 0]),
    "repeat": lambda x, t: x.repeat(1, 2),
    "flip": lambda x, t: x.flip(0),
    "transpose": lambda x, t: x.t().contiguous(),
    "copy": lambda x, t: x.t().double(),
    "prelu": lambda x, t: F.prelu(x, x[0].abs()),
    "glu": lambda x, t: F.glu(x),
    "avg_pool1d": lambda x, t: F.avg_pool1d(x.t()[None], 3),
    "max_pool1d": lambda x, t: F.max_pool1d(x.t()[None], 3),
    "avg_pool2d": lambda x, t: F.avg_pool2d(x.reshape(1, 1, 103, 20), 3, 1),
    "max_pool2d": lambda x, t: F.max_pool2d(x.reshape(1, 1, 103, 20), 2),
    "adaptive": lambda x, t: F.adaptive_avg_pool2d(x.reshape(1, 1, 103, 20), (40, 20)),
    "interpolate": lambda x, t: F.interpolate(x.reshape(1, 1, 103, 20), scale_factor=1.5, mode="bilinear"),
    "pad": lambda x, t: F.pad(x.reshape(1, 1, 103, 20), (1, 2, 3, 4), "reflect"),
    "unfold": lambda x, t: F.unfold(x.reshape(1, 1, 103, 20), 2),
    "conv1d": lambda x, t: F.conv1d(x.t()[None], x[:6].reshape(3, 2, 2)),
    "matmul": lambda x, t: x[:40].reshape(40, 2) @ x[:40].t(),
    "bce": lambda x, t: F.binary_cross_entropy_with_logits(x[:, 0], t.float()),
    "norm": lambda x, t: x.norm(),
    "tril": lambda x, t: x.reshape(103, 20).tril(-1),
    "diag": lambda x, t: x[:40, 0].diag(),
    "roll": lambda x, t: x.roll(5, 0),
    "lerp": lambda x, t: x.lerp(-x, 0.3),
    "addmm": lambda x, t: rt.addmm(x[0], x[:99], x[:2]),
}


@pytest.mark.parametrize("name", TABLE)
def test_more_than_one_block(name):
    results = []
    for place in ("cpu", "cuda"):
        x = X.clone().to(place).detach().requires_grad_()
        result = TABLE[name](x, TARGET.to(place))
        if result.requires_grad:
            (result * result).sum().backward()
        results.append((result.detach().cpu(), x.grad.cpu() if result.requires_grad else None))
    for expected, ours in zip(*results):
        assert (
            ours is expected is None
            or ours.shape == expected.shape
            and ours.dtype == expected.dtype
            and rt.allclose(ours, expected, 1e-3, 1e-4)
        )


@pytest.mark.parametrize("size", [0, 2, 5, 40])
def test_a_storage_that_is_resized_keeps_its_bytes(size):
    for place in ("cpu", "cuda"):
        x = rt.arange(5, dtype=rt.uint8, device=place)
        storage = x.untyped_storage()
        storage.resize_(size)
        kept = min(size, 5)
        assert storage.nbytes() == size and rt.empty(0, dtype=rt.uint8, device=place).set_(
            storage, 0, (kept,), (1,)
        ).tolist() == list(range(kept))
