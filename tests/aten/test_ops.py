"""readtorch.ops: operators by name, packets that choose an overload, and what does not fit."""

import inspect

import pytest
import torch

import readtorch as rt
from tests.reference import assert_close, both, to_readtorch


@pytest.mark.parametrize(
    "call",
    [
        lambda T, x: T.ops.aten.add(x, 1),
        lambda T, x: T.ops.aten.add(x, x, alpha=2),
        lambda T, x: T.ops.aten.sum(x, [0]),
        lambda T, x: T.ops.aten.sum(x),
        lambda T, x: T.ops.aten.view(x, [3, 2]),
        lambda T, x: T.ops.aten.mul.Tensor(x, 2),
        lambda T, x: T.ops.aten._softmax(x, 1, False),
    ],
)
def test_a_packet_calls_the_overload_that_fits(call):
    both(call, torch.randn(2, 3))


def test_an_overload_says_what_does_not_fit():
    x = torch.randn(3)
    both(lambda T, x: T.ops.aten.add.Tensor(x, "a"), x)
    both(lambda T, x: T.ops.aten.relu.default(x, x), x)
    both(lambda T, x: T.ops.aten.relu.default(), x)


def test_a_packet_lists_all_failures():
    with pytest.raises(RuntimeError, match="failed to match any schema") as error:
        rt.ops.aten.relu("a")
    assert str(error.value).count("Expected a value of type 'Tensor' for argument 'self'") == 2


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize(
    "call",
    [
        lambda T, x: x + 0.3,
        lambda T, x: 1.7 - x,
        lambda T, x: x * 0.1,
        lambda T, x: x / 3.14159,
        lambda T, x: x // 0.3,
        lambda T, x: T.add(x, 0.7, alpha=0.3),
        lambda T, x: T.fmod(x, 0.3),
        lambda T, x: x < 0.3,
        lambda T, x: T.logspace(0, 1.7, 9, dtype=x.dtype),
    ],
)
def test_numbers_beside_16_bit_tensors(call, dtype):
    """They are rounded to 16 bits first, except by mul and div."""
    torch.manual_seed(0)
    x = torch.randn(64).to(dtype)
    assert_close(call(rt, to_readtorch(x)), call(torch, x), exact=True)


@pytest.mark.parametrize("name", ["asinh", "acosh", "atanh"])
def test_inplace_forms_without_derivative(name):
    both(lambda T, x: getattr(x.clone(), name + "_")().sum().backward(), torch.full((2,), 1.5, requires_grad=True))


def test_an_operator_has_no_attributes_but_its_own():
    from readtorch.aten.dispatcher import registry

    assert not hasattr(registry["aten::neg"], "cal") and hasattr(registry["aten::neg"], "call")
    with pytest.raises(AttributeError, match="colour"):
        registry["aten::neg"].colour


def defaults_of(function):
    try:
        parameters = inspect.signature(inspect.unwrap(function)).parameters.values()
    except (ValueError, TypeError):  # written in C++
        return {}
    return {p.name: p.default for p in parameters if p.default is not p.empty}


def test_defaults_of_functions_that_are_written_in_python():
    functional = [name for name in dir(torch.nn.functional) if not name.startswith("_")]
    compared = 0
    for T, R, names in ((torch, rt, torch.functional.__all__), (torch.nn.functional, rt.nn.functional, functional)):
        for name in names:
            expected = defaults_of(getattr(T, name)) if callable(getattr(R, name, None)) else {}
            ours = defaults_of(getattr(R, name)) if expected else {}
            for parameter in expected.keys() & ours.keys():
                assert ours[parameter] == expected[parameter], (name, parameter)
                compared += 1
    assert compared > 200


def test_lu_gives_infos_only_when_asked():
    for T in (rt, torch):
        a = T.eye(2)
        assert [len(T.lu(a)), len(T.lu(a, get_infos=True)), len(a.lu()), len(a.lu(True, True))] == [2, 3, 2, 3]
