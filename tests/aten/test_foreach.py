"""Operators on lists of tensors: all that PyTorch has, their results, versions, gradients and words."""

import pytest
import torch

import readtorch as rt
from readtorch.aten.dispatcher import registry
from tests.operator_arguments import arguments_of
from tests.reference import both, rebuild

FOREACH = [name for name in registry if name.startswith("aten::_foreach_")]


def names(T):
    return sorted(name for name in dir(T) if name.startswith("_foreach_"))


WITHOUT_DERIVATIVE = {"aten::_foreach_powsum.Scalar", "aten::_foreach_addcdiv.Tensor", "aten::_foreach_addcmul.Tensor"}


def overloads(name):
    return sorted(getattr(torch.ops.aten, name).overloads())


def test_all_of_them_are_here():
    assert names(rt) == names(torch)
    ours = {name.removeprefix("aten::") for name in FOREACH}
    for name in names(torch):
        theirs = [o for o in overloads(name) if not o.endswith("out")]
        assert {f"{name}.{o}" if o != "default" else name for o in theirs} <= ours, name


def leaves(value):
    return rebuild(value, lambda t: t.clone().requires_grad_() if isinstance(t, torch.Tensor) else t)


@pytest.mark.parametrize("name", FOREACH)
def test_each(name):
    arguments = arguments_of(name)
    schema = registry[name].schema
    given = arguments[: len(arguments) - sum(a.keyword_only for a in schema.arguments)]

    def call(T, *given):
        namespace = T if hasattr(torch, schema.name) else T.ops.aten  # forms that do not write: only there
        return getattr(namespace, schema.name)(*given)

    both(call, *given)
    if not schema.is_inplace:  # in PyTorch: one node for all results, and for some no derivative
        both(call, *map(leaves, given), grad_fn=False, grad=name not in WITHOUT_DERIVATIVE)


@pytest.mark.parametrize("dtype", [torch.int64, torch.float16, torch.complex64, torch.float64], ids=str)
def test_dtypes(dtype):
    tensors = [torch.tensor([1, 2, 3], dtype=dtype), torch.tensor([[4]], dtype=dtype)]
    both(
        lambda T, x: (
            T._foreach_add(x, 2),
            T._foreach_mul(x, [2, 3]),
            T._foreach_sub(x, x, alpha=2),
            T._foreach_neg(x),
        ),
        tensors,
    )
    for call in (
        lambda T, x: T._foreach_add_(x, 1),
        lambda T, x: T._foreach_add_(x, 1.5),
        lambda T, x: T._foreach_div_(x, 2),
        lambda T, x: T._foreach_sqrt(x),
        lambda T, x: T._foreach_copy_(x, [t.double() for t in x]),
    ):
        both(call, tensors)


def test_in_place_the_given_list_comes_back():
    def program(T):
        x = [T.ones(2), T.zeros(3)]
        y = tuple(x)
        return (
            T._foreach_add_(x, 1) is x,
            T._foreach_mul_(y, 2.0) is y,
            T._foreach_zero_(self=x) is x,
            type(T._foreach_exp(x)),
            x[0]._version,
        )

    both(program)


def test_in_place_with_a_graph():
    def program(T, x, z):
        y = x * 1
        T._foreach_mul_([y, z], 3.0)
        T._foreach_exp_([y, z])
        return y, z

    both(program, torch.rand(3, dtype=torch.float64).requires_grad_(), torch.rand(2, dtype=torch.float64))
    both(lambda T, x: T._foreach_add_([x], 1), torch.rand(2).requires_grad_())


REFUSED = [
    lambda T, x: T._foreach_add([], 1),
    lambda T, x: T._foreach_zero_([]),
    lambda T, x: T._foreach_norm([]),
    lambda T, x: T._foreach_add(x, []),
    lambda T, x: T._foreach_add(x, x[:1]),
    lambda T, x: T._foreach_add(x, [1.0]),
    lambda T, x: T._foreach_add(x, T.ones(3)),
    lambda T, x: T._foreach_addcmul(x, x[:1], x),
    lambda T, x: T._foreach_addcmul(x, x, x, [1.0]),
    lambda T, x: T._foreach_addcmul(x, x, x, T.ones(3)),
    lambda T, x: T._foreach_addcmul(x, x, x, T.ones(2, 2)),
    lambda T, x: T._foreach_lerp(x[:1], x[:1], x),
    lambda T, x: T._foreach_max([T.empty(0)]),
    lambda T, x: T._foreach_mm(x, x),
    lambda T, x: T._foreach_abs(x[0]),
    lambda T, x: T._foreach_exp(3),
    lambda T, x: T._foreach_addcmul(x, x),
    lambda T, x: T._foreach_copy_(x, x[:1]),
    lambda T, x: T._foreach_copy_([T.zeros(3)], [T.ones(2)]),
    lambda T, x: T._foreach_norm([T.ones(2).long()]),
    lambda T, x: T._foreach_powsum([T.ones(2).long()]),
    lambda T, x: T._foreach_sub([T.ones(2) > 0], 1),
]


@pytest.mark.parametrize("call", REFUSED, ids=range(len(REFUSED)))
def test_refusals(call):
    both(call, [torch.ones(2), torch.ones(3)])


LONG = (
    *[(name, 1, None) for name in ("sqrt", "neg", "abs", "reciprocal")],
    *[(name, 1, 0.3) for name in ("add", "mul")],
    *[(name, 1, [i - 20.5 for i in range(40)]) for name in ("mul", "div")],
    *[(name, 2, None) for name in ("add", "sub", "mul", "div", "maximum")],
    *[("lerp", 2, weight) for weight in (0.1, 0.9)],
    *[(name, 3, 0.3) for name in ("addcmul", "addcdiv")],
    ("addcdiv", 3, [i - 20.5 for i in range(40)]),
)


@pytest.mark.parametrize("dtype, inplace", [(torch.float32, True), (torch.float64, False)], ids=str)
def test_long_lists(dtype, inplace):
    """One loop for all tensors, which lie in one piece, and the composition for those that do not, or that need a graph."""
    for name, count, number in LONG:
        lists = [[torch.randn(7, i % 5, dtype=dtype).abs() + 0.1 for i in range(40)] for _ in range(count)]
        numbers = [] if number is None else [number]
        function = f"_foreach_{name}{'_' * inplace}"
        both(lambda T, *given: getattr(T, function)(*given), *lists, *numbers)
        lists[0][3] = lists[0][3].t().contiguous().t()
        both(lambda T, *given: getattr(T, function)(*given), *lists, *numbers)
        if not inplace and name != "addcdiv":  # whose derivative in PyTorch mixes up shapes
            both(lambda T, *given: getattr(T, function)(*given), *map(leaves, lists), *numbers, grad_fn=False)


def test_what_does_not_fit_in_long_lists():
    def of_length(count, *shape):
        return [torch.ones(*shape) for _ in range(count)]

    for call in (
        lambda T, x, y: T._foreach_add_(x, y),
        lambda T, x, y: T._foreach_addcmul_(x, x, y),
        lambda T, x, y: T._foreach_mul_(x, [1.0, 2.0]),
        lambda T, x, y: T._foreach_add(x, 1e300),
        lambda T, x, y: T._foreach_mul_(x, 1j),
        lambda T, x, y: T._foreach_add_(x, x, alpha=True),
    ):
        for other in (of_length(40, 3), of_length(39, 2), of_length(40, 1)):
            both(call, of_length(40, 2), other)
