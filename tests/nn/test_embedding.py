"""Embedding and EmbeddingBag next to the reference: values, gradients, graphs, repr, errors."""

import numpy as np
import pytest
import torch

import readtorch
from tests.programs import same
from tests.reference import both


def indices(T):
    return T.tensor([[1, 2, 4], [4, 0, 4]])


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"padding_idx": 4},
        {"padding_idx": -2},
        {"max_norm": 1.0},
        {"max_norm": 1.0, "norm_type": 1.0},
        {"scale_grad_by_freq": True},
        {"padding_idx": 4, "scale_grad_by_freq": True},
        {"dtype": "float64"},
    ],
    ids=str,
)
def test_embedding(settings):
    def program(T, show):
        given = dict(settings, dtype=getattr(T, settings.get("dtype", "float32")))
        layer = T.nn.Embedding(6, 3, **given)
        show(layer, list(layer.state_dict()), layer.padding_idx)
        show.numbers(layer.weight)
        result = layer(indices(T))
        show(result.grad_fn.name(), result.shape)
        (grad,) = T.autograd.grad((result * result).sum(), layer.weight, create_graph=True)
        show.numbers(result, grad, layer.weight, *T.autograd.grad((grad * grad).sum(), layer.weight))
        show.numbers(layer(T.tensor(2, dtype=T.int32)), layer(T.empty(0, 2, dtype=T.int64)))

    same(program)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_embedding_of_many(dtype, threads):
    """Enough elements for the compiled loop, and for two threads to share it."""
    generator = np.random.default_rng(0)
    weight, numbers = generator.standard_normal((50, 1024)), generator.integers(0, 50, (3, 200))
    before = readtorch.get_num_threads()
    readtorch.set_num_threads(threads)
    for settings in ((-1, False), (7, False), (7, True)):
        results = []
        for T in (torch, readtorch):
            w = T.tensor(weight, dtype=getattr(T, dtype), requires_grad=True)
            y = T.embedding(w, T.tensor(numbers), *settings)
            results.append((y, *T.autograd.grad((y**2).sum(), w)))
        for theirs, ours in zip(*results):
            np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=1e-5, atol=1e-5)
        with pytest.raises(IndexError, match="out of range in self"):
            readtorch.embedding(w, readtorch.tensor(numbers + 1))
    readtorch.set_num_threads(before)


def test_pretrained():
    def program(T, show):
        table = T.arange(12.0).reshape(4, 3)
        for layer in (
            T.nn.Embedding.from_pretrained(table),
            T.nn.Embedding.from_pretrained(table, freeze=False, padding_idx=1),
            T.nn.EmbeddingBag.from_pretrained(table, mode="sum"),
            T.nn.EmbeddingBag.from_pretrained(table, freeze=False, padding_idx=0, max_norm=2.0),
        ):
            show(layer, layer.weight.requires_grad, layer.weight.data_ptr() == table.data_ptr())
            show(layer(T.tensor([[1, 2]])))
        show(T.nn.Embedding(3, 2, sparse=True, norm_type=1.0, scale_grad_by_freq=True, max_norm=3))
        show(T.nn.EmbeddingBag(3, 2, norm_type=1.0, scale_grad_by_freq=True, max_norm=3, mode="max", padding_idx=-1))

    same(program)


BAGS = [
    {"mode": mode, "include_last_offset": last, "padding_idx": padding}
    for mode in ("sum", "mean", "max")
    for last in (False, True)
    for padding in (None, 4)
] + [
    {"mode": "sum", "weights": True},
    {"mode": "sum", "weights": True, "padding_idx": 4},
    {"mode": "sum", "scale_grad_by_freq": True},
    {"mode": "mean", "scale_grad_by_freq": True, "max_norm": 0.5},
]


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("settings", BAGS, ids=str)
def test_bags(settings, dtype):
    def program(T, show):
        given = dict(settings)
        dt = getattr(T, dtype)
        weights = T.tensor([0.5, -1, 2, 3, 0.25], dtype=dt).requires_grad_() if given.pop("weights", False) else None
        table = (T.arange(12.0).reshape(6, 2) % 5).to(dt).requires_grad_()
        numbers = T.tensor([1, 2, 4, 5, 4])
        starts = T.tensor([0, 2, 2, 4, 5] if given.get("include_last_offset") else [0, 2, 2, 4])
        leaves = [table] if weights is None else [table, weights]
        result = T.nn.functional.embedding_bag(numbers, table, starts, per_sample_weights=weights, **given)
        show(result.grad_fn.name())
        show.numbers(result, *T.autograd.grad((result * result).sum(), leaves))
        with T.no_grad():
            show.numbers(T.nn.functional.embedding_bag(numbers, table, starts, per_sample_weights=weights, **given))

    same(program, rtol=1e-2 if dtype == "bfloat16" else 1e-5)


def test_bag_layer():
    def program(T, show):
        layer = T.nn.EmbeddingBag(5, 2, mode="max", padding_idx=1)
        show(layer)
        show.numbers(layer.weight, layer(T.tensor([[1, 2], [1, 1]])), layer(T.tensor([3, 4, 0]), T.tensor([0, 1])))
        show.numbers(*T.embedding_bag(layer.weight, T.tensor([3, 4, 0]), T.tensor([0, 1]), mode=1))

    same(program)


def test_errors():
    def program(T, show):
        F, table, numbers = T.nn.functional, T.arange(12.0).reshape(6, 2), T.tensor([1, 2, 4])
        starts = T.tensor([0, 2])
        for wrong in (
            lambda: F.embedding(numbers, table[0]),
            lambda: F.embedding(numbers.float(), table),
            lambda: F.embedding(numbers + 3, table),
            lambda: F.embedding(-numbers, table),
            lambda: F.embedding(numbers, table, padding_idx=6),
            lambda: T.nn.Embedding(3, 2, padding_idx=3),
            lambda: T.nn.EmbeddingBag(3, 2, padding_idx=-4),
            lambda: T.nn.Embedding(3, 2, _weight=table),
            lambda: T.nn.Embedding.from_pretrained(table[0]),
            lambda: T.embedding_renorm_(table[0], numbers, 1.0, 2.0),
            lambda: T.embedding_renorm_(table.clone(), numbers + 3, 1.0, 2.0),
            lambda: F.embedding_bag(numbers, table),
            lambda: F.embedding_bag(numbers, table, starts[None]),
            lambda: F.embedding_bag(numbers, table[0], starts),
            lambda: F.embedding_bag(numbers[0], table, starts),
            lambda: F.embedding_bag(numbers, table, starts, mode="min"),
            lambda: F.embedding_bag(numbers, table, starts, mode="max", scale_grad_by_freq=True),
            lambda: F.embedding_bag(numbers, table, starts, mode="max", sparse=True),
            lambda: F.embedding_bag(numbers, table, starts, per_sample_weights=table),
            lambda: F.embedding_bag(numbers, table, starts, per_sample_weights=table[:3, 0]),
            lambda: F.embedding_bag(numbers, table, T.tensor([0, 4])),
            lambda: F.embedding_bag(numbers, table, starts, padding_idx=7),
            lambda: F.embedding_bag(numbers + 2, table, starts),
            lambda: F.embedding_bag(numbers + 2, table, starts, padding_idx=0),
            lambda: F.embedding_bag(numbers + 2, table, starts, mode="max"),
        ):
            show.error(wrong)
        for wrong in (
            lambda: F.embedding_bag(numbers[None], table, starts),
            lambda: F.embedding_bag(numbers, table, starts + 1),
        ):
            try:
                wrong()
            except (ValueError, RuntimeError) as e:  # both go on with how the library prints a type or a tensor
                show(str(e).partition("type")[0].partition("\n")[0])

    same(program)


def test_argument_order_of_old():
    both(
        lambda T, w, i: T.nn.functional.embedding_bag(w, i, T.tensor([0, 1])),
        torch.randn(4, 2),
        torch.tensor([1, 3, 2]),
    )


def sparse_gradient(T, look_up):
    """The gradient of a table after two backward passes, and after one whose table is used twice."""
    table = T.arange(12.0).reshape(6, 2).requires_grad_()
    gradients = []
    for uses in (1, 1, 2):
        out = sum(look_up(table) for _ in range(uses))
        (out * T.arange(out.numel()).reshape(out.shape)).sum().backward()
        gradients.append(table.grad.clone())
    return gradients


@pytest.mark.parametrize(
    "settings", [{}, {"padding_idx": 2}, {"padding_idx": -1}, {"max_norm": 1.0}, {"scale_grad_by_freq": True}], ids=str
)
@pytest.mark.parametrize("numbers", [[[2, 0, 2], [3, 5, 2]], [1], [[]]], ids=str)
def test_sparse_gradients(settings, numbers):
    def program(T, i):
        return sparse_gradient(T, lambda w: T.nn.functional.embedding(i, w.clone(), sparse=True, **settings))

    both(program, torch.tensor(numbers, dtype=torch.int64))


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("settings", [{}, {"padding_idx": 2}, {"scale_grad_by_freq": True}], ids=str)
def test_sparse_gradients_of_bags(mode, settings):
    def program(T, numbers, starts):
        return sparse_gradient(
            T, lambda w: T.nn.functional.embedding_bag(numbers, w.clone(), starts, mode=mode, sparse=True, **settings)
        )

    both(program, torch.tensor([2, 0, 2, 3, 1]), torch.tensor([0, 2, 2, 4]))


def test_sparse_gradients_of_weighted_bags():
    def program(T, numbers, starts, weights):
        gradients = sparse_gradient(
            T,
            lambda w: T.nn.functional.embedding_bag(
                numbers, w.clone(), starts, mode="sum", sparse=True, per_sample_weights=weights
            ),
        )
        return gradients, weights.grad

    weights = torch.tensor([1.0, -2, 3, 0.5], requires_grad=True)
    both(program, torch.tensor([2, 0, 2, 3]), torch.tensor([0, 1]), weights, grad=False)


@pytest.mark.parametrize("first, second", [(True, False), (False, True), (True, True)])
def test_sparse_and_dense_gradients_of_one_table(first, second):
    def program(T, i):
        look_up = T.nn.functional.embedding
        at_once, in_turn = (T.ones(5, 3).requires_grad_() for _ in range(2))
        a, b = look_up(i, at_once, sparse=first), look_up(i + 1, at_once, sparse=second)
        (a.sum() + 2 * b.sum()).backward()
        for table_is_sparse in (first, second):
            look_up(i, in_turn, sparse=table_is_sparse).square().sum().backward()
        return at_once.grad, in_turn.grad

    both(program, torch.tensor([3, 0, 3]), versions=False)


def test_sparse_gradients_can_be_differentiated():
    def program(T, i, w):
        out = T.nn.functional.embedding(i, w, sparse=True)
        (grad,) = T.autograd.grad(out.pow(3).sum(), w, create_graph=True)
        return grad, T.autograd.grad(grad.to_dense().sum(), w)

    both(program, torch.tensor([2, 0, 2]), torch.randn(4, 3, requires_grad=True), grad=False)
