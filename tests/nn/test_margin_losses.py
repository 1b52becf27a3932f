"""Distances and the losses with a margin, next to the reference: values, gradients, graphs, errors."""

from tests.programs import same


def graph(t):
    """The names of all nodes, breadth first."""
    names, waiting = [], [t.grad_fn]
    while waiting:
        node = waiting.pop(0)
        if node is not None:
            names.append(node.name())
            waiting += [following for following, _ in node.next_functions]
    return names


def calls(F, a, b, c, sign):
    yield lambda: F.pairwise_distance(a, b)
    yield lambda: F.pairwise_distance(a, b, p=1.0, eps=0.1, keepdim=True)
    yield lambda: F.pairwise_distance(a, b[0])
    yield lambda: F.cosine_similarity(a, b)
    yield lambda: F.cosine_similarity(a, b[0], dim=-1)
    yield lambda: F.cosine_similarity(a * 0, b, dim=0, eps=0.5)
    yield lambda: F.normalize(a)
    yield lambda: F.normalize(a, p=1.0, dim=0, eps=2.0)
    for reduction in ("none", "mean", "sum"):
        yield lambda: F.margin_ranking_loss(a[:, 0], b[:, 0], sign, margin=0.5, reduction=reduction)
        yield lambda: F.hinge_embedding_loss(a, sign[:, None].expand(3, 4), margin=0.5, reduction=reduction)
        yield lambda: F.cosine_embedding_loss(a, b, sign, margin=0.2, reduction=reduction)
        yield lambda: F.cosine_embedding_loss(a[0], b[0], sign[0], reduction=reduction)
        yield lambda: F.triplet_margin_loss(a, b, c, reduction=reduction)
        yield lambda: F.triplet_margin_loss(a, b, c, margin=2.0, p=1, swap=True, reduction=reduction)


def test_values_gradients_and_graphs():
    def program(T, show):
        a, b, c = (T.randn(3, 4, requires_grad=True) for _ in range(3))
        for call in calls(T.nn.functional, a, b, c, T.tensor([1.0, -1.0, 1.0])):
            result = call()
            show(graph(result))
            show.numbers(result, *T.autograd.grad((result * result).sum(), (a, b, c), allow_unused=True))
            with T.no_grad():
                show.numbers(call())

    same(program)


def test_errors():
    def program(T, show):
        F, x, one = T.nn.functional, T.ones(3, 4), T.tensor(1.0)
        for wrong in (
            lambda: F.cosine_similarity(x.long(), x.long()),
            lambda: F.cosine_similarity(x, x[:2]),
            lambda: F.cosine_embedding_loss(x, x, x),
            lambda: F.cosine_embedding_loss(x[0], x, x[:, 0]),
            lambda: F.cosine_embedding_loss(x, x, one),
            lambda: F.triplet_margin_loss(x, x, x[0]),
            lambda: F.triplet_margin_loss(x, x, x, margin=0),
            lambda: F.margin_ranking_loss(x, x, x[0]),
            lambda: F.hinge_embedding_loss(x, x, reduction="foo"),
        ):
            show.error(wrong)
        show(F.cosine_similarity(x, x[0].double()), F.pairwise_distance(x, x.long()))
        out = T.empty(0)
        F.normalize(x, out=out)
        show(out)

    same(program)
