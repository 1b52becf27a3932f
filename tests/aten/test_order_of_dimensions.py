"""How a result lies in memory where its operands contradict each other: as the first that says anything, as in PyTorch."""

import itertools
import random

import pytest
import torch

import readtorch

OF_TWO = (
    "add sub mul div true_divide floor_divide remainder fmod pow eq ne lt logical_and logical_xor maximum fmax atan2 copysign "
    "hypot logaddexp heaviside isclose nextafter clamp_min ldexp"
).split()
OF_INTEGERS = "bitwise_and bitwise_or bitwise_left_shift gcd lcm add eq".split()
SHAPE = (2, 3, 4)
ORDERS = list(itertools.permutations(range(3)))


def laid_out(T, order, gaps, dtype="float32", device="cpu"):
    """A tensor of SHAPE whose dimensions lie in this order, the last one fastest; with gaps: every second element of one."""
    sizes = [SHAPE[d] for d in order]
    x = T.ones(*sizes[:-1], sizes[-1] * (1 + gaps), dtype=getattr(T, dtype), device=device)
    return x[..., :: 1 + gaps].permute([order.index(d) for d in range(3)])


def strides(T, name, layouts, dtype="float32", device="cpu"):
    return getattr(T, name)(*[laid_out(T, *layout, dtype, device) for layout in layouts]).stride()


@pytest.mark.parametrize("name", OF_TWO)
def test_two_operands(name):
    for first, second in itertools.product(ORDERS, ORDERS):
        layouts = (first, False), (second, len({*first[:2], *second[:2]}) == 3)
        expected = strides(torch, name, layouts)
        assert strides(readtorch, name, layouts) == expected, layouts
        assert strides(readtorch, name, layouts, device="meta") == expected, layouts


@pytest.mark.parametrize("name", OF_INTEGERS)
def test_two_operands_of_integers(name):
    for layouts in itertools.product(itertools.product(ORDERS, (False,)), repeat=2):
        assert strides(readtorch, name, layouts, "int64") == strides(torch, name, layouts, "int64"), layouts


def test_operands_of_other_dtypes():
    """What is cast first keeps its order."""
    for first, second in itertools.product(ORDERS, ORDERS):
        found = [
            (laid_out(T, first, False) + laid_out(T, second, False, "float64")).stride() for T in (readtorch, torch)
        ]
        assert found[0] == found[1], (first, second)


def test_three_operands():
    chance = random.Random(0)
    for _ in range(100):
        orders = [chance.choice(ORDERS) for _ in range(3)]
        found = []
        for T in (readtorch, torch):
            condition, x, y = [
                laid_out(T, order, False, dtype) for order, dtype in zip(orders, ("bool", "float32", "float32"))
            ]
            found.append(T.where(condition, x, y).stride())
        assert found[0] == found[1], orders


def test_a_dimension_that_is_repeated_says_nothing():
    """The other operand decides where the first is repeated, and where it has fewer dimensions."""
    found = []
    for T in (readtorch, torch):
        repeated, vector = T.ones(2, 1, 4).expand(SHAPE), T.ones(4)
        found.append([(x + laid_out(T, order, False)).stride() for x in (repeated, vector, 2.0) for order in ORDERS])
    assert found[0] == found[1]


def strides_of_gradients(T, function, *operands):
    operands = [t.requires_grad_() for t in operands]
    result = function(*operands)
    return [grad.stride() for grad in T.autograd.grad(result, operands, T.ones_like(result))]


@pytest.mark.parametrize("order", ORDERS)
def test_a_gradient_summed_over_what_was_broadcast_lies_row_by_row(order):
    found = [
        strides_of_gradients(T, lambda x, y: x * y, laid_out(T, order, False), T.ones(SHAPE[1:]))
        for T in (readtorch, torch)
    ]
    assert found[0] == found[1]


@pytest.mark.parametrize("cotangent", ORDERS)
@pytest.mark.parametrize("order", ORDERS)
def test_logsigmoid_s_gradient_lies_as_what_arrives(order, cotangent):
    found = []
    for T in (readtorch, torch):
        x = laid_out(T, order, False).requires_grad_()
        result = T.nn.functional.logsigmoid(x)
        arriving = laid_out(T, cotangent, False), T.ones(2, 3, 1).expand(SHAPE)
        found.append([T.autograd.grad(result, x, g, retain_graph=True)[0].stride() for g in arriving])
    assert found[0] == found[1]


@pytest.mark.parametrize("order", ORDERS)
def test_an_operand_of_fewer_dimensions(order):
    """It decides where the first operand says nothing."""
    found = []
    for T in (readtorch, torch):
        matrices = T.ones(3, 4), T.ones(4, 3).t(), T.ones(4).expand(3, 4), T.ones(3, 1)
        firsts = laid_out(T, order, False), laid_out(T, order, True), laid_out(T, order, False)[:1].expand(SHAPE)
        found.append([(f(x, y)).stride() for x in firsts for y in matrices for f in (T.add, T.mul, lambda a, b: b - a)])
    assert found[0] == found[1]
