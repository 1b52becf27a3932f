"""`nn.functional`, compiled as it stands, here and in the reference: which functions, with which types, and what they compute."""

import inspect

import pytest
import torch
import torch.nn.functional as their_functional
from torch._jit_internal import boolean_dispatched as their_dispatched

import readtorch as rt
import readtorch.jit
from readtorch._jit_internal import boolean_dispatched
from readtorch.nn import functional as our_functional
from tests.reference import assert_close, own_copy, seed_both, to_readtorch

pytestmark = pytest.mark.filterwarnings("ignore")


def functions():
    """(name, theirs, ours) of what can be compiled there; of a boolean dispatch both functions."""
    for name, theirs in sorted(vars(their_functional).items()):
        ours = getattr(our_functional, name, None)
        if ours is None or getattr(theirs, "__module__", "") != "torch.nn.functional" or not inspect.isfunction(theirs):
            continue
        if theirs in their_dispatched:
            pair = their_dispatched[theirs]
            yield f"{name} True", pair["if_true"], boolean_dispatched[ours][3]
            yield f"{name} False", pair["if_false"], boolean_dispatched[ours][4]
        elif name not in OVERLOADED + NOT_THERE:
            yield name, theirs, ours


OVERLOADED = ("interpolate", "upsample", "upsample_bilinear", "upsample_nearest")
# Keyword-only arguments with defaults, and a list comprehension with a condition.
NOT_THERE = ("gaussian_nll_loss", "linear_cross_entropy", "triplet_margin_with_distance_loss")


def schema(function):
    """As text, lists that one number may stand for as plain ones: the reference cannot print a default of these."""
    arguments = [(a.name, str(a.type), a.has_default_value()) for a in function.schema.arguments]
    return function.qualified_name, arguments, [str(r.type) for r in function.schema.returns]


@pytest.mark.parametrize("name, theirs, ours", list(functions()), ids=lambda x: x if isinstance(x, str) else "")
def test_schema(name, theirs, ours):
    assert schema(rt.jit.script(ours)) == schema(torch.jit.script(theirs))


def test_there_are_many():
    assert len(list(functions())) > 80


def both_programs(program, *given):
    """The results of a program compiled there and here; its global `F` is looked up by each library's compiler."""
    seed_both(0)
    expected = torch.jit.script(program(torch, their_functional))(*given)
    seed_both(0)
    found = rt.jit.script(program(rt, our_functional))(*to_readtorch(own_copy(given)))
    assert_close(found, expected, rtol=1e-5, atol=1e-6)


def sizes(lib, F):
    def resized(x):
        a = F.interpolate(x, 3), F.interpolate(x, [3, 5]), F.interpolate(x, scale_factor=2.0)
        return a, F.interpolate(x, scale_factor=[2.0, 0.5], mode="bilinear", align_corners=True)

    return resized


def dispatched(lib, F):
    def pooled(x):
        return F.max_pool2d(x, 2), F.max_pool2d(x, 2, return_indices=True), F.adaptive_max_pool2d(x, 2, True)

    return pooled


def sampled(lib, F):
    def sample(x, theta):
        grid = F.affine_grid(theta, x.size(), align_corners=False)
        return F.grid_sample(x, grid, padding_mode="border", align_corners=False)

    return sample


def chosen(lib, F):
    def choose(x):
        return F.gumbel_softmax(x, hard=True, dim=0), F.softmax(x, 1), F.softmin(x, 0), F.dropout1d(x[0], 0.5)

    return choose


@pytest.mark.parametrize(
    "program, given",
    [
        (sizes, (torch.randn(1, 2, 4, 4),)),
        (dispatched, (torch.randn(1, 2, 4, 4),)),
        (sampled, (torch.randn(1, 2, 4, 4), torch.tensor([[[0.5, 0.1, 0], [0, 1, 0.2]]]))),
        (chosen, (torch.randn(2, 3, 4),)),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_values(program, given):
    both_programs(program, *given)


def not_constant(lib, F):
    def pooled(x, flag: bool):
        return F.max_pool2d(x, 2, return_indices=flag)

    return pooled


def by_position(lib, F):
    def pooled(x, flag: bool):
        return F.max_pool2d(x, 2, 2, 0, 1, False, flag)

    return pooled


@pytest.mark.parametrize("program", [not_constant, by_position])
def test_a_dispatch_needs_a_constant(program):
    messages = []
    for lib, F in ((torch, their_functional), (rt, our_functional)):
        with pytest.raises(RuntimeError) as error:
            lib.jit.script(program(lib, F))
        messages.append(str(error.value).split("\n")[1])
    assert messages[0] == messages[1] != ""


def test_eager_dispatch():
    x = rt.ones(1, 1, 2, 2)
    assert isinstance(our_functional.max_pool2d(x, 2), rt.Tensor)
    assert len(our_functional.max_pool2d(x, 2, return_indices=True)) == 2
    assert len(our_functional.max_pool2d(x, 2, None, 0, 1, False, True)) == 2
    assert "return_indices" in inspect.signature(our_functional.max_pool2d).parameters


def test_unpooling_is_compiled():
    """In the reference it is not: the expected values are those of its layer."""
    maxima, indices = their_functional.max_pool2d(torch.randn(1, 2, 6, 6), 2, return_indices=True)
    theirs, ours = torch.nn.MaxUnpool2d(2), rt.jit.script(rt.nn.MaxUnpool2d(2))
    for size in ([], [[7, 7]]):
        found = ours(*to_readtorch([maxima, indices]), *size)
        assert_close(found, theirs(maxima, indices, *size))


def test_transposed_convolutions_take_an_output_size():
    theirs, ours = torch.nn.ConvTranspose2d(2, 3, 3, stride=2), rt.nn.ConvTranspose2d(2, 3, 3, stride=2)
    ours.load_state_dict({name: to_readtorch(value) for name, value in theirs.state_dict().items()})
    x = torch.randn(1, 2, 4, 4)
    expected = torch.jit.script(theirs)(x, [10, 9])
    assert_close(rt.jit.script(ours)(to_readtorch(x), [10, 9]), expected, rtol=1e-5, atol=1e-6)
