"""The autograd graph of an expression is the reference's: nodes, edges, and the order backward takes.

Each case is written once, as a function of the implementation `T` and its `nn`, and run on both.
"""

import functools
import importlib
import time

import pytest
import torch

import readtorch as rt
from tests.reference import assert_close, seed_both, tensors_in, to_readtorch

CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def leaf(T, *shape):
    """Numbers from 0.5 to 1.5, all different: inside every function's domain, and sortable without ties."""
    count = functools.reduce(lambda a, b: a * b, shape, 1)
    return (T.arange(count, dtype=T.float64).mul(1 / count).add(0.5)).reshape(shape).requires_grad_()


# What is compared


def nodes_of(tensor):
    """The nodes reachable from `tensor.grad_fn`, depth first, each once."""
    found, seen, stack = [], set(), [tensor.grad_fn]
    while stack:
        node = stack.pop()
        if node is None or id(node) in seen:
            continue
        seen.add(id(node))
        found.append(node)  # holds the Python object, so that its id stays its own
        stack.extend(reversed([n for n, _ in node.next_functions]))
    return found


def graph_of(tensor):
    """A graph as plain data: for each node its name and its edges (number of the node, its input)."""
    nodes = nodes_of(tensor)
    number = {id(node): i for i, node in enumerate(nodes)}
    return [(node.name(), [n and (number[id(n)], slot) for n, slot in node.next_functions]) for node in nodes]


def order_of_backward(tensor):
    """The numbers of the nodes in the order in which the engine runs them."""
    order = []
    nodes = nodes_of(tensor)
    handles = [node.register_prehook(functools.partial(_note, order, i)) for i, node in enumerate(nodes)]
    tensor.backward(tensor.detach().clone().fill_(1), retain_graph=True)
    for handle in handles:
        handle.remove()
    return order


def _note(order, i, _gradients):
    order.append(i)


def drawing(graph):
    """One line a node, for the message of a failing test."""
    return "\n".join(
        f"{i:3} {name} -> {', '.join('-' if e is None else f'{e[0]}.{e[1]}' for e in edges)}"
        for i, (name, edges) in enumerate(graph)
    )


# Pointwise and broadcasting


@case
def add(T, nn):
    return leaf(T, 3) + leaf(T, 3)


@case
def add_of_a_number(T, nn):
    return 2 + leaf(T, 3) + 1


@case
def add_broadcasting_both_ways(T, nn):
    return leaf(T, 3, 1) + leaf(T, 4)


@case
def add_with_one_constant(T, nn):
    return T.ones(3) + leaf(T, 3)


@case
def add_of_a_half_precision_tensor(T, nn):
    return leaf(T, 3) + T.ones(2, 3, dtype=T.float16, requires_grad=True)


@case
def the_same_leaf_twice(T, nn):
    x = leaf(T, 3)
    return x * x + x


@case
def arithmetic(T, nn):
    a, b = leaf(T, 2, 3), leaf(T, 3)
    return (a - b) / (a * b) + (-a) ** 2 + b**a + 2**a


@case
def reversed_arithmetic(T, nn):
    x = leaf(T, 3)
    return (1 - x) + (2 / x) * (3**x)


@case
def exponentials(T, nn):
    x = leaf(T, 3)
    return x.exp() + x.log() + x.log1p() + x.expm1() + x.log2() + x.sqrt() + x.rsqrt() + x.reciprocal()


@case
def trigonometry(T, nn):
    x = leaf(T, 3)
    return x.sin() + x.cos() + x.tan() + x.tanh() + T.atan2(x, x) + x.sigmoid() + x.erf()


@case
def rounding(T, nn):
    x = leaf(T, 3)
    return x.floor() + x.ceil() + x.round() + x.trunc() + x.sign() + x.abs()


@case
def bounds(T, nn):
    x, y = leaf(T, 3), leaf(T, 3)
    return x.clamp(0, 1) + x.clamp(min=0) + T.maximum(x, y) + T.minimum(x, y) + x.clamp_max(1)


@case
def fused_arithmetic(T, nn):
    x, y = leaf(T, 3), leaf(T, 3)
    return T.addcmul(x, y, y) + T.addcdiv(x, y, y) + T.lerp(x, y, 0.5) + T.lerp(x, y, x)


@case
def choice(T, nn):
    x, y = leaf(T, 2, 3), leaf(T, 3)
    return T.where(x.detach() > 1, x, y) + x.masked_fill(x > 1, 0.0)


@case
def conversion(T, nn):
    return leaf(T, 3).float().to(T.float16).double().to(T.float64)


@case
def activations(T, nn):
    x = leaf(T, 3)
    f = nn.functional
    return f.relu(x) + f.leaky_relu(x) + f.gelu(x) + f.silu(x) + f.elu(x) + f.softplus(x) + f.hardtanh(x)


# Views, in-place writes and indexing


@case
def reshaping(T, nn):
    return leaf(T, 2, 6).view(3, 4).reshape(4, 3).flatten().unflatten(0, (2, 6))


@case
def reshape_that_copies(T, nn):
    return leaf(T, 2, 6).t().reshape(12)


@case
def transposing(T, nn):
    x = leaf(T, 2, 3, 4)
    return x.transpose(0, 1).permute(2, 0, 1).movedim(0, 2).mT.sum() + x.swapaxes(0, 1)


@case
def transposing_a_matrix(T, nn):
    return leaf(T, 2, 3).t().T.contiguous()


@case
def dimensions_of_one(T, nn):
    return leaf(T, 2, 1, 3).squeeze(1).unsqueeze(0).squeeze()


@case
def expanding(T, nn):
    x = leaf(T, 3, 1)
    return x.expand(2, 3, 4) + x.expand_as(T.ones(3, 4)) + T.broadcast_to(x, (3, 4)) + x.repeat(1, 4)


@case
def narrowing(T, nn):
    x = leaf(T, 4, 5)
    return x.narrow(0, 1, 2).sum() + x.select(1, 2).sum() + x.diagonal().sum() + x.unfold(0, 2, 1).sum()


@case
def slicing(T, nn):
    x = leaf(T, 4, 5)
    return x[1:3, ::2].sum() + x[0].sum() + x[..., -1].sum() + x[None, :, 2].sum() + x[1, 2]


@case
def slicing_everything(T, nn):
    return leaf(T, 4, 5)[:][...]


@case
def index_with_tensors(T, nn):
    x = leaf(T, 4, 5)
    rows = T.tensor([0, 2, 2])
    return x[rows].sum() + x[rows, 1].sum() + x[:, rows].sum() + x[x.detach() > 1].sum() + x[rows[:, None], rows].sum()


@case
def as_strided_view(T, nn):
    return leaf(T, 4, 5).as_strided((2, 2), (1, 2), 1)


@case
def several_outputs_of_unbind(T, nn):
    a, b, c = leaf(T, 3, 4).unbind(0)
    return a * c


@case
def several_outputs_of_split(T, nn):
    x = leaf(T, 7)
    parts = x.split(3) + x.chunk(2) + x.split([2, 5])
    return T.cat(parts[::2]) * 2


@case
def joining(T, nn):
    x, y = leaf(T, 2, 3), leaf(T, 2, 3)
    return T.cat([x, y, T.ones(2, 3, dtype=T.float64)]).sum() + T.stack([x, y], dim=1).sum()


@case
def rearranging(T, nn):
    x = leaf(T, 3, 4)
    return x.flip(0) + x.roll(1, 0) + x.tril() + x.triu(1)


@case
def repeating_elements(T, nn):
    return leaf(T, 3).repeat_interleave(2)


@case
def gathering(T, nn):
    x = leaf(T, 3, 4)
    i = T.tensor([[0, 1, 2, 0]])
    return x.gather(0, i).sum() + x.index_select(1, i[0]).sum() + T.take_along_dim(x, i, 0).sum()


@case
def scattering(T, nn):
    x, source = leaf(T, 3, 4), leaf(T, 1, 4)
    i = T.tensor([[0, 1, 2, 0]])
    return x.scatter(0, i, source) + x.scatter_add(0, i, source) + x.index_add(0, i[0, :1], source)


@case
def in_place_on_a_result(T, nn):
    y = leaf(T, 3) * 2
    y.add_(1).mul_(leaf(T, 3))
    return y.relu_()


@case
def in_place_on_a_view(T, nn):
    base = leaf(T, 3, 4).clone()
    base[1].mul_(2)
    return base


@case
def the_view_after_an_in_place_write(T, nn):
    base = leaf(T, 3, 4).clone()
    view = base[1]
    view.mul_(2)
    return view


@case
def a_second_view_after_an_in_place_write(T, nn):
    base = leaf(T, 3, 4).clone()
    other = base.t()
    base[1].mul_(2)
    return other


@case
def in_place_on_the_base_then_the_view(T, nn):
    base = leaf(T, 3, 4).clone()
    view = base.view(12)
    base.mul_(2)
    return view.sum()


@case
def a_chain_of_views_written_in_place(T, nn):
    base = leaf(T, 3, 4).clone()
    base.t()[1:3].select(0, 1).mul_(3)
    base.diagonal().zero_()
    return base.sum()


@case
def in_place_on_a_constant(T, nn):
    y = T.zeros(3, dtype=T.float64)
    y[1:] = leaf(T, 2)
    return y


@case
def assigning_with_an_index_tensor(T, nn):
    y = leaf(T, 4).clone()
    y[T.tensor([0, 2])] = leaf(T, 2)
    return y


@case
def assigning_with_a_mask(T, nn):
    y = leaf(T, 4) * 1
    y[y > 1] = 0.0
    return y


@case
def copy_into_a_tensor(T, nn):
    y = T.zeros(2, 3, dtype=T.float64)
    y.copy_(leaf(T, 3))
    return y


@case
def filled_and_zeroed(T, nn):
    y = leaf(T, 3) * 2
    return y.fill_(1.0) + (leaf(T, 3) * 2).zero_()


# Reductions and sorting


@case
def sums(T, nn):
    x = leaf(T, 2, 3)
    return x.sum() + x.sum(0).sum() + x.sum((0, 1), keepdim=True) + x.mean() + x.mean(1).mean()


@case
def products(T, nn):
    x = leaf(T, 2, 3)
    return x.prod() + x.prod(1).sum() + x.cumsum(0).sum() + x.cumprod(1).sum()


@case
def extremes(T, nn):
    x = leaf(T, 2, 3)
    return x.max() + x.min(1).values.sum() + x.amax(0).sum() + x.amin() + x.max(0)[0].sum() + x.median()


@case
def spread(T, nn):
    x = leaf(T, 2, 3)
    return x.var() + x.std(0).sum() + T.var_mean(x)[1] + x.std(unbiased=False)


@case
def norms(T, nn):
    x = leaf(T, 2, 3)
    return x.norm() + x.norm(1) + x.norm(dim=0).sum() + T.linalg.vector_norm(x) + T.linalg.norm(x)


@case
def log_sum_exp(T, nn):
    return leaf(T, 2, 3).logsumexp(1)


@case
def sorting(T, nn):
    x = leaf(T, 5)
    return x.sort(descending=True).values + x.topk(5).values + x[x.argsort()]


# Matrix products


@case
def matmul_in_all_ranks(T, nn):
    vector, matrix, batch = leaf(T, 3), leaf(T, 3, 3), leaf(T, 2, 3, 3)
    return (
        (vector @ vector)
        + (vector @ matrix)
        + (matrix @ vector)
        + (matrix @ matrix)
        + (batch @ matrix)
        + (matrix @ batch)
        + (batch @ batch)
        + (batch @ vector)[..., None]
        + (vector @ batch)[..., None]
    )


@case
def matmul_broadcasting_batches(T, nn):
    return leaf(T, 2, 1, 3, 4) @ leaf(T, 5, 4, 2)


@case
def batches_folded_into_one_matrix(T, nn):
    return leaf(T, 2, 5, 3) @ leaf(T, 3, 4)


@case
def named_products(T, nn):
    m, v, b = leaf(T, 3, 3), leaf(T, 3), leaf(T, 2, 3, 3)
    return m.mm(m) + m.mv(v) + v.dot(v) + b.bmm(b) + T.outer(v, v) + T.addmm(m, m, m, beta=2)


@case
def einsum_of_two(T, nn):
    return T.einsum("bij,bjk->bik", leaf(T, 2, 3, 4), leaf(T, 2, 4, 5))


@case
def einsum_with_a_trace_and_a_sum(T, nn):
    return T.einsum("ii,jk->k", leaf(T, 3, 3), leaf(T, 4, 5))


@case
def einsum_of_three(T, nn):
    return T.einsum("i,ij,j->", leaf(T, 3), leaf(T, 3, 4), leaf(T, 4))


@case
def tensordot(T, nn):
    return T.tensordot(leaf(T, 2, 3, 4), leaf(T, 4, 3, 5), dims=([1, 2], [1, 0]))


@case
def linear_with_bias(T, nn):
    return nn.functional.linear(leaf(T, 4, 3), leaf(T, 2, 3), leaf(T, 2))


@case
def linear_without_bias(T, nn):
    return nn.functional.linear(leaf(T, 4, 3), leaf(T, 2, 3))


@case
def linear_of_one_row(T, nn):
    return nn.functional.linear(leaf(T, 3), leaf(T, 2, 3), leaf(T, 2))


@case
def linear_of_a_batch_of_matrices(T, nn):
    return nn.functional.linear(leaf(T, 2, 4, 3), leaf(T, 2, 3), leaf(T, 2))


@case
def solving(T, nn):
    m = leaf(T, 3, 3) + 3 * T.eye(3, dtype=T.float64)
    return T.linalg.inv(m).sum() + T.linalg.det(m) + T.linalg.solve(m, leaf(T, 3)).sum()


# Losses and models


@case
def softmax_both(T, nn):
    x = leaf(T, 2, 3)
    return x.softmax(1) + x.log_softmax(0) + nn.functional.softmax(x, dim=-1)


@case
def cross_entropy(T, nn):
    return nn.functional.cross_entropy(leaf(T, 2, 3), T.tensor([2, 0]))


@case
def cross_entropy_of_probabilities(T, nn):
    return nn.functional.cross_entropy(leaf(T, 2, 3), T.full((2, 3), 1 / 3, dtype=T.float64))


@case
def negative_log_likelihood(T, nn):
    return nn.functional.nll_loss(leaf(T, 2, 3).log_softmax(1), T.tensor([2, 0]), reduction="sum")


@case
def regression_losses(T, nn):
    x, y = leaf(T, 4), T.ones(4, dtype=T.float64)
    f = nn.functional
    return f.mse_loss(x, y) + f.l1_loss(x, y) + f.smooth_l1_loss(x, y) + f.huber_loss(x, y)


@case
def binary_losses(T, nn):
    x, y = leaf(T, 4), T.ones(4, dtype=T.float64)
    f = nn.functional
    return f.binary_cross_entropy(x.sigmoid(), y) + f.binary_cross_entropy_with_logits(x, y)


@case
def one_linear_module(T, nn):
    return nn.Linear(3, 2)(T.ones(4, 3))


@case
def sequential_classifier(T, nn):
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 3))
    return nn.CrossEntropyLoss()(model(T.ones(5, 4)), T.tensor([0, 1, 2, 0, 1]))


@case
def model_with_shared_weights(T, nn):
    layer = nn.Linear(3, 3)
    return nn.Sequential(layer, nn.Sigmoid(), layer)(T.ones(2, 3)).mean()


@case
def residual_model(T, nn):
    layers = [nn.Linear(3, 3) for _ in range(3)]
    x = T.ones(2, 3)
    for layer in layers:
        x = x + nn.functional.relu(layer(x))
    return x.sum()


@case
def attention_by_hand(T, nn):
    x = T.ones(2, 5, 8)
    q, k, v = (nn.Linear(8, 8)(x).view(2, 5, 2, 4).transpose(1, 2) for _ in range(3))
    weights = (q @ k.transpose(-2, -1) / 2.0).masked_fill(T.ones(5, 5).tril() == 0, float("-inf")).softmax(-1)
    return (weights @ v).transpose(1, 2).reshape(2, 5, 8)


@case
def frozen_first_layer(T, nn):
    model = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 1))
    model[0].requires_grad_(False)
    return model(T.ones(2, 3)).sum()


# Grad modes, detaching, functions of one's own, higher orders


@case
def a_part_without_grad(T, nn):
    x = leaf(T, 3)
    with T.no_grad():
        scale = (x * 2).exp()
    return x * scale


@case
def a_detached_part(T, nn):
    x = leaf(T, 3)
    return x * x.detach() + (x * 2).detach().requires_grad_()


@case
def enabled_inside_disabled(T, nn):
    x = leaf(T, 3)
    with T.no_grad():
        with T.enable_grad():
            y = x * 2
        z = x * 3
    return y + z


@case
def own_function(T, nn):
    class Square(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return 2 * x * grad

    return Square.apply(leaf(T, 3) * 2) + 1


@case
def own_function_of_several(T, nn):
    class Swap(T.autograd.Function):
        @staticmethod
        def forward(ctx, a, number, b):
            return b * number, a * number

        @staticmethod
        def backward(ctx, grad_b, grad_a):
            return grad_a, None, grad_b

    first, second = Swap.apply(leaf(T, 3), 2.0, leaf(T, 3))
    return first * second


@case
def reentrant_checkpoint(T, nn):
    checkpoint = importlib.import_module(f"{T.__name__}.utils.checkpoint")
    return checkpoint.checkpoint(lambda x: x.sin().exp(), leaf(T, 3) * 2, use_reentrant=True).sum()


@case
def checkpoint_without_reentry(T, nn):
    checkpoint = importlib.import_module(f"{T.__name__}.utils.checkpoint")
    return checkpoint.checkpoint(lambda x: x.sin().exp(), leaf(T, 3) * 2, use_reentrant=False).sum()


def gradient(T, result, *inputs):
    return T.autograd.grad(result.sum(), inputs, create_graph=True)


@case
def second_derivative_of_products(T, nn):
    x, y = leaf(T, 3), leaf(T, 3)
    gx, gy = gradient(T, x * y * x + x / y, x, y)
    return gx + gy


@case
def second_derivative_of_functions(T, nn):
    x = leaf(T, 3)
    return gradient(T, x.sin() + x.exp() + x.tanh() + x.sigmoid() + x.log() + x**3 + x.sqrt(), x)[0]


@case
def second_derivative_of_matmul(T, nn):
    a, b = leaf(T, 3, 4), leaf(T, 4, 2)
    ga, gb = gradient(T, (a @ b) ** 2, a, b)
    return ga.sum() + gb.sum()


@case
def second_derivative_of_a_loss(T, nn):
    x = leaf(T, 2, 3)
    return gradient(T, nn.functional.cross_entropy(x, T.tensor([2, 0])), x)[0].pow(2).sum()


@case
def second_derivative_of_broadcasting_and_reduction(T, nn):
    x, y = leaf(T, 3, 1), leaf(T, 4)
    return gradient(T, ((x * y).mean(0) ** 2).sum(), x)[0]


@case
def second_derivative_of_indexing(T, nn):
    x = leaf(T, 4, 5)
    return gradient(T, (x[1:3, 2] * x[0, 0] + x[T.tensor([0, 1])].sum()) ** 2, x)[0]


@case
def third_derivative(T, nn):
    x = leaf(T, 3)
    (first,) = gradient(T, x.sin() * x**2, x)
    (second,) = gradient(T, first, x)
    return gradient(T, second, x)[0]


@case
def gradient_penalty(T, nn):
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    x = T.ones(2, 3, requires_grad=True)
    (g,) = gradient(T, model(x), x)
    return (g.norm(2, dim=1) - 1).pow(2).mean()


# The tests


def made(function, T):
    seed_both(0)
    return function(T, T.nn)


@pytest.mark.parametrize("name", CASES)
def test_graph_equals_the_references(name):
    ours, theirs = (graph_of(made(CASES[name], T)) for T in (rt, torch))
    assert ours == theirs, f"\nours:\n{drawing(ours)}\nthe reference's:\n{drawing(theirs)}"


@pytest.mark.parametrize("name", CASES)
def test_backward_takes_the_references_order(name):
    ours, theirs = (order_of_backward(made(CASES[name], T)) for T in (rt, torch))
    assert ours == theirs


def test_a_different_graph_is_noticed():
    x = rt.ones(3, requires_grad=True)
    assert graph_of(x * 2 + 1) != graph_of(x + 1)
    assert graph_of(x * x) != graph_of(x * x.detach())


def test_there_are_enough_cases():
    assert len(CASES) >= 60


# Depth


@pytest.mark.slow
def test_a_chain_of_200_000_additions_needs_no_recursion():
    x = rt.ones(1, requires_grad=True)
    y = x
    for _ in range(200_000):
        y = y + 1
    y.backward()
    assert x.grad.item() == 1.0
    del y  # and letting go of the chain must not recurse either


def test_doubling_64_times_takes_linear_time():
    x = rt.ones(1, dtype=rt.float64, requires_grad=True)
    y = x
    for _ in range(64):
        y = y + y
    order = order_of_backward(y)
    assert len(order) == 65  # 64 additions and the leaf: each node runs once, though 2 ** 64 paths lead to it
    assert x.grad.item() == 2.0**64


def test_the_time_of_backward_grows_linearly():
    """Four times the length, about four times the time (eight allowed); quadratic would be sixteen."""

    def seconds(length):
        y = x = rt.ones(1, requires_grad=True)
        for _ in range(length):
            y = y + x
        began = time.process_time()  # of this process alone: the machine may be busy
        y.backward()
        return time.process_time() - began

    seconds(100)
    assert min(seconds(20_000) for _ in range(5)) < 8 * min(seconds(5_000) for _ in range(5))


SMOOTH = {
    "polynomial": lambda T, x: x**5 - 2 * x**3 + x,
    "power of a number": lambda T, x: 2**x,
    "exp sin": lambda T, x: x.exp() * x.sin(),
    "tanh": lambda T, x: x.tanh(),
    "sigmoid": lambda T, x: x.sigmoid(),
    "log": lambda T, x: x.log() + x.log1p() + x.log2(),
    "roots": lambda T, x: x.sqrt() + x.rsqrt() + x.reciprocal(),
    "erf": lambda T, x: x.erf(),
    "quotient": lambda T, x: x.cos() / (1 + x * x),
    "atan2": lambda T, x: T.atan2(x, 1 + x),
    "softmax": lambda T, x: x.softmax(0) * x,
    "log_softmax": lambda T, x: x.log_softmax(0) * x,
    "logsumexp": lambda T, x: x.logsumexp(0),
    "norm": lambda T, x: x.norm(),
    "variance": lambda T, x: x.var() * x.std(),
    "product": lambda T, x: x.prod(),
    "cumulative": lambda T, x: x.cumsum(0) ** 2 * x.cumprod(0),
    "matmul": lambda T, x: x @ T.outer(x, x) @ x,
    "views and indexing": lambda T, x: x[1:] * x[:-1] * x.flip(0)[T.tensor([0, 0, 1])],
    "gelu": lambda T, x: T.nn.functional.gelu(x),
    "softplus": lambda T, x: T.nn.functional.softplus(x),
    "cross entropy": lambda T, x: T.nn.functional.cross_entropy(x * x, T.tensor(1)),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_derivatives_up_to_the_third(name):
    def derivatives(T, x):
        found, y = [], SMOOTH[name](T, x)
        for _ in range(3):
            (y,) = T.autograd.grad((y * y).sum(), x, create_graph=True)
            found.append(y)
        return found

    theirs = derivatives(torch, leaf(torch, 4))
    ours = derivatives(rt, to_readtorch(leaf(torch, 4)))
    assert_close(ours, theirs, where=name)
    assert len(tensors_in(ours)) == 3
