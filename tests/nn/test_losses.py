"""All losses next to the reference: modules (repr, state), values, gradients, graphs, errors, warnings."""

import numpy as np
import pytest
import torch

import readtorch
from tests.nn.test_margin_losses import graph
from tests.programs import same

SCORES = [  # (class, settings, inputs), for scores (3, 4)
    ("HingeEmbeddingLoss", {"margin": 0.5}, "x s4"),
    ("SoftMarginLoss", {}, "x s4"),
    ("CosineEmbeddingLoss", {"margin": 0.2}, "x y s"),
    ("MarginRankingLoss", {"margin": 0.3}, "x y s4"),
    ("MultiMarginLoss", {"p": 2, "margin": 0.7}, "x c"),
    ("MultiMarginLoss", {"weight": True}, "x c"),
    ("MultiLabelMarginLoss", {}, "x labels"),
    ("MultiLabelSoftMarginLoss", {"weight": True}, "x p4"),
    ("TripletMarginLoss", {"margin": 2.0, "swap": True}, "x y z"),
    ("TripletMarginWithDistanceLoss", {"swap": True, "margin": 3.0}, "x y z"),
    ("PoissonNLLLoss", {}, "x p4"),
    ("PoissonNLLLoss", {"log_input": False, "full": True, "eps": 0.1}, "positive p4"),
    ("GaussianNLLLoss", {"full": True}, "x y positive"),
    ("GaussianNLLLoss", {"eps": 0.5}, "x y column"),
    ("NLLLoss", {"weight": True, "ignore_index": 1}, "x c"),
    ("BCEWithLogitsLoss", {"pos_weight": True}, "x p4"),
    ("LinearCrossEntropyLoss", {}, "x c"),
    ("LinearCrossEntropyLoss", {"bias": True, "label_smoothing": 0.1}, "x c"),
]


def inputs(T):
    x, y, z = (T.randn(3, 4, requires_grad=True) for _ in range(3))
    positive = (T.rand(3, 4) + 0.1).requires_grad_()
    return {
        "x": x,
        "y": y,
        "z": z,
        "positive": positive,
        "column": (T.rand(3) + 0.2).requires_grad_(),
        "s": T.tensor([1.0, -1.0, 1.0]),
        "s4": T.tensor([1.0, -1.0, 1.0])[:, None].expand(3, 4),
        "c": T.tensor([2, 0, 1]),
        "p4": T.tensor([[1.0, 0, 2, 0], [0, 3, 1, 1], [1, 1, 0, 0]]) / 3,
        "labels": T.tensor([[1, 0, -1, 2], [3, -1, 1, 1], [-1, 0, 0, 0]]),
    }


@pytest.mark.parametrize("name, settings, names", SCORES, ids=str)
def test_loss(name, settings, names):
    def program(T, show):
        given = inputs(T)
        tensors = [given[n] for n in names.split()]
        more = {
            k: T.tensor([0.5, 1.0, 2.0, 3.0]) if v is True and k.endswith("weight") else v for k, v in settings.items()
        }
        sizes = (4, 4) if name.startswith("Linear") else ()
        for reduction in ("none", "mean", "sum"):
            loss = getattr(T.nn, name)(*sizes, **more, reduction=reduction)
            show(loss, list(loss.state_dict()), loss.reduction, getattr(loss, "__constants__", None))
            result = loss(*tensors)
            show(graph(result))
            leaves = [t for t in tensors if t.requires_grad] + list(loss.parameters())
            show.numbers(result, *T.autograd.grad((result * result).sum(), leaves, allow_unused=True))

    same(program)


def test_old_arguments():
    def program(T, show):
        x, c = T.randn(3, 4), T.tensor([2, 0, 1])
        for old in ({"size_average": False}, {"reduce": False}, {"size_average": True, "reduce": True}):
            show.warnings(lambda: show(T.nn.MultiMarginLoss(**old).reduction))
            show.warnings(lambda: show.numbers(T.nn.functional.multi_margin_loss(x, c, **old)))
            show.warnings(lambda: show.numbers(T.nn.functional.poisson_nll_loss(x, x.abs(), **old)))
            show.warnings(lambda: show.numbers(T.nn.functional.multilabel_soft_margin_loss(x, x.sign(), **old)))
        show.warnings(lambda: show(T.nn.NLLLoss2d()))

    same(program)


def test_errors():
    def program(T, show):
        F, nn, g = T.nn.functional, T.nn, inputs(T)
        x, c, labels, positive = g["x"], g["c"], g["labels"], g["positive"]
        for wrong in (
            lambda: F.multi_margin_loss(x, c, p=3),
            lambda: F.multi_margin_loss(x, c[:2]),
            lambda: F.multi_margin_loss(x, c + 3),
            lambda: F.multi_margin_loss(x, c.float()),
            lambda: F.multi_margin_loss(x, c, weight=T.ones(2)),
            lambda: F.multi_margin_loss(x, c, weight=x),
            lambda: F.multi_margin_loss(x[None], c),
            lambda: F.multi_margin_loss(x.half(), c),
            lambda: F.multilabel_margin_loss(x, labels[0]),
            lambda: F.multilabel_margin_loss(x, labels + 3),
            lambda: F.multilabel_margin_loss(x, labels.float()),
            lambda: F.gaussian_nll_loss(x, x, -0.5),
            lambda: F.gaussian_nll_loss(x, x, -positive),
            lambda: F.gaussian_nll_loss(x, x, positive[0, :3]),
            lambda: F.gaussian_nll_loss(x, x, positive, reduction="a"),
            lambda: F.poisson_nll_loss(x, x, reduction="a"),
            lambda: F.multilabel_soft_margin_loss(x, x, reduction="a"),
            lambda: F.triplet_margin_with_distance_loss(x, x, x, reduction="a"),
            lambda: F.triplet_margin_with_distance_loss(x, x, x, margin=0),
            lambda: F.triplet_margin_with_distance_loss(x, x, x[0]),
            lambda: F.soft_margin_loss(x, x, reduction="a"),
            lambda: nn.MultiMarginLoss(p=3),
            lambda: nn.MultiMarginLoss(weight=x),
            lambda: nn.TripletMarginLoss(margin=0),
            lambda: nn.TripletMarginWithDistanceLoss(margin=-1.0),
            lambda: nn.GaussianNLLLoss(True),
            lambda: T.autograd.grad(T.autograd.grad(F.multi_margin_loss(x, c), x, create_graph=True)[0].sum(), x),
        ):
            show.error(wrong)

    same(program)


# ctc_loss


def ctc_arguments(T, dtype="float32"):
    scores = T.tensor(np.sin(np.arange(5 * 2 * 4.0) * 0.37).reshape(5, 2, 4), dtype=getattr(T, dtype))
    return scores.log_softmax(-1).detach().requires_grad_(), T.tensor([[1, 2, 2], [2, 1, 2]])


@pytest.mark.parametrize(
    "lengths", [((5, 4), (3, 2)), ((2, 4), (3, 2)), ((0, 4), (0, 2)), ((0, 4), (1, 2)), ((5, 5), (0, 3))]
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_ctc(lengths, dtype):
    def program(T, show):
        log_probs, targets = ctc_arguments(T, dtype)
        for settings in (
            {},
            {"reduction": "sum"},
            {"reduction": "none", "zero_infinity": True},
            {"blank": 3, "reduction": "none"},
        ):
            for numbers in (lengths, [T.tensor(n) for n in lengths], [T.tensor(n, dtype=T.int32) for n in lengths]):
                result = T.nn.functional.ctc_loss(log_probs, targets, *numbers, **settings)
                show(graph(result))
                show.numbers(result, *T.autograd.grad(result.sum(), log_probs))
        in_one = T.cat([row[:n] for row, n in zip(targets, lengths[1])])
        show.numbers(T.nn.functional.ctc_loss(log_probs, in_one, *lengths, reduction="none"))

    same(program, rtol=2e-5)


def test_ctc_layouts():
    def program(T, show):
        log_probs, targets = ctc_arguments(T)
        loss = T.nn.CTCLoss(zero_infinity=True, reduction="none")
        show(loss, loss.blank)
        one = loss(log_probs[:, 0], targets[0], T.tensor(5), T.tensor(3))
        show(graph(one), one.shape)
        turned = log_probs.detach().transpose(0, 2).contiguous().transpose(0, 2).requires_grad_()
        result = loss(turned, targets.int(), (5, 4), (3, 2))
        show.numbers(one, result, *T.autograd.grad(result.sum(), turned))
        show(T._ctc_loss(log_probs, targets, T.tensor([5, 4]), T.tensor([3, 2]))[0].grad_fn.name())
        show([t.requires_grad for t in T._ctc_loss(log_probs, targets, (5, 4), (3, 2))])

    same(program)


def test_ctc_errors():
    def program(T, show):
        (lp, tg), (il, tl) = ctc_arguments(T), (T.tensor([5, 4]), T.tensor([3, 2]))
        F = T.nn.functional
        for wrong in (
            lambda: F.ctc_loss(lp.half(), tg, il, tl),
            lambda: F.ctc_loss(lp[:0], tg, il, tl),
            lambda: F.ctc_loss(lp, tg, il, tl, blank=4),
            lambda: F.ctc_loss(lp, tg, il[:1], tl),
            lambda: F.ctc_loss(lp, tg, il, tl[:1]),
            lambda: F.ctc_loss(lp, tg, il + 1, tl),
            lambda: F.ctc_loss(lp, tg, il, tl + 1),
            lambda: F.ctc_loss(lp, tg.reshape(-1)[:4], il, tl),
            lambda: F.ctc_loss(lp, tg[:1], il, tl),
            lambda: F.ctc_loss(lp, tg[None], il, tl),
            lambda: F.ctc_loss(lp, tg, il.float(), tl),
            lambda: F.ctc_loss(lp, tg, il, tl.float()),
            lambda: T._ctc_loss(lp, tg.float(), (5, 4), (3, 2)),
            lambda: T.autograd.grad(T.autograd.grad(F.ctc_loss(lp, tg, il, tl), lp, create_graph=True)[0].sum(), lp),
        ):
            show.error(wrong)

    same(program)


def test_ctc_labels_that_do_not_exist_are_refused():
    log_probs, targets = ctc_arguments(readtorch)
    with pytest.raises(IndexError, match="4 labels"):
        readtorch.nn.functional.ctc_loss(log_probs, targets + 3, (5, 4), (3, 2))


# linear_cross_entropy


@pytest.mark.parametrize(
    "settings",
    [{}, {"batch_chunk_size": 2}, {"chunking_method": "aspect_ratio:3"}, {"acc_policy": "balanced"}],
    ids=str,
)
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_linear_cross_entropy_in_chunks(settings, dtype):
    def program(T, show):
        dt = getattr(T, dtype)
        x, w, b = (T.randn(*size).to(dt).requires_grad_() for size in ((7, 3), (5, 3), (5,)))
        target, weight = T.tensor([0, 4, 1, 1, 3, 2, 0]), T.tensor([0.5, 1, 2, 1, 3]).to(dt)
        options = T.nn.LinearCrossEntropyOptions(allow_retain_graph=True, **settings)
        for reduction in ("mean", "sum", "none"):
            for more in ({}, {"linear_bias": b, "weight": weight, "ignore_index": 1}):
                result = T.nn.functional.linear_cross_entropy(
                    x, w, target, reduction=reduction, options=options, **more
                )
                show(result.grad_fn.name(), result.shape, result.dtype)
                show.numbers(result, *T.autograd.grad((result * result).sum(), (x, w, b), allow_unused=True))

    same(program, rtol=3e-2 if dtype == "bfloat16" else 1e-5)


def test_linear_cross_entropy_settings():
    def program(T, show):
        O, F = T.nn.LinearCrossEntropyOptions, T.nn.functional
        show(O(), O() == O(), O(batch_chunk_size=3) == O())
        for size, method in (
            (None, "auto"),
            (5, "auto"),
            (None, "aspect_ratio"),
            (None, "aspect_ratio:4"),
            (None, None),
        ):
            for shape in ((64, 8, 100), (7, 30, 5), (1, 1, 1)):
                for dtype in (T.float32, T.bfloat16):
                    adjusted = O(batch_chunk_size=size, chunking_method=method)._adjust(*shape, dtype, T.device("cpu"))
                    show(adjusted.batch_chunk_size, adjusted.chunking_method, adjusted.acc_policy, adjusted.acc_dtype)
        for wrong in (
            {"acc_policy": "a"},
            {"chunking_method": "aspect_ratio:0"},
            {"chunking_method": "x"},
            {"batch_chunk_size": 0},
            {"acc_dtype": T.int64},
        ):
            show.error(lambda: O(**wrong))
        show.error(lambda: O(batch_chunk_size=3, chunking_method="aspect_ratio")._adjust(64, 8, 100, T.float32))
        x, w, t = T.randn(3, 4, requires_grad=True), T.randn(5, 4), T.tensor([0, 1, 4])
        result = F.linear_cross_entropy(x, w, t, options=O())
        result.backward(retain_graph=True)
        show.error(result.backward)
        show.warnings(lambda: F.linear_cross_entropy(x, w, t, label_smoothing=0.1, options=O()))
        show.numbers(
            F.linear_cross_entropy(x[0], w, t[0], options=O()), F.linear_cross_entropy(x, w, T.softmax(x @ w.T, 1))
        )
        show.numbers(
            F.linear_cross_entropy(x, w.reshape(5, 1, 4), t.reshape(3, 1)),
            F.linear_cross_entropy(x[:0], w, t[:0], options=O()),
        )
        show.error(lambda: T.nn.LinearCrossEntropyLoss(4, 5, weight=T.ones(4)))
        show.error(lambda: T.nn.LinearCrossEntropyLoss(4, 5, label_smoothing=2.0))

    same(program)


# The rest


def test_adaptive_softmax():
    def program(T, show):
        layer = T.nn.AdaptiveLogSoftmaxWithLoss(16, 20, [5, 10, 15], div_value=2.0, head_bias=True)
        show(layer, list(layer.state_dict()))
        x, target = T.randn(8, 16, requires_grad=True), T.tensor([0, 17, 10, 19, 4, 6, 12, 5])
        result = layer(x, target)
        show(type(result).__name__, result._fields)
        show.numbers(*result, *T.autograd.grad(result.loss, [x, *layer.parameters()]))
        show.numbers(layer.log_prob(x), layer.predict(x), layer.predict(x * 0), *layer(x[0], target[0]))
        for wrong in (
            lambda: layer(x, target + 1),
            lambda: layer(x, target[:2]),
            lambda: layer(x[0], target[:1]),
            lambda: layer(x, target[0]),
            lambda: layer(x, target[None]),
            lambda: T.nn.AdaptiveLogSoftmaxWithLoss(4, 5, []),
            lambda: T.nn.AdaptiveLogSoftmaxWithLoss(4, 5, [2, 1]),
            lambda: T.nn.AdaptiveLogSoftmaxWithLoss(4, 5, [5]),
        ):
            show.error(wrong)

    same(program)


def test_distances():
    def program(T, show):
        x, y = T.randn(4, 3, requires_grad=True), T.randn(4, 3)
        for layer in (T.nn.PairwiseDistance(p=1.0, keepdim=True), T.nn.CosineSimilarity(dim=0)):
            show(layer, layer.__constants__)
            show.numbers(layer(x, y))
        for p in (0, 0.5, 1, 1.5, 2, 3, float("inf")):
            result = T.nn.functional.pdist(T.cat((x, x[:1])), p)
            show(graph(result)[:2])
            show.numbers(result, *T.autograd.grad(result.sum(), x))
        for wrong in (
            lambda: T.pdist(x[0]),
            lambda: T.pdist(x, -1),
            lambda: T.pdist(x.long()),
            lambda: T.pdist(x.half()),
        ):
            show.error(wrong)

    same(program, rtol=2e-5)


def test_half_precision_rounds_as_the_reference():
    generator = np.random.default_rng(1)
    x, t = generator.standard_normal((2, 3, 9, 9)), generator.integers(0, 3, (2, 9, 9))
    for reduction in ("mean", "sum"):
        ours, theirs = (
            float(T.nn.functional.nll_loss(T.tensor(x).half(), T.tensor(t), reduction=reduction))
            for T in (readtorch, torch)
        )
        assert ours == theirs
