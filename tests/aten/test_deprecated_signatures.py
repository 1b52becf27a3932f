"""The orders of arguments that old programs use give PyTorch's values, warnings and errors."""

import re
import warnings

import pytest
import torch

import readtorch as rt

CALLS = [
    "T.add(m, 2, a)",
    "m.add(2, a)",
    "m.clone().add_(2, a)",
    "T.add(m, 2, a, out=T.empty(2, 2))",
    "T.sub(m, 2, a)",
    "m.clone().sub_(2, a)",
    "T.addcmul(m, 2, a, b)",
    "m.addcmul(0.5, a, b)",
    "m.clone().addcdiv_(2, a, b)",
    "T.addcdiv(m, T.tensor(2), a, b, out=T.empty(2, 2))",
    "T.addmm(2, m, 3, a, b)",
    "T.addmm(2, m, a, b)",
    "m.addmm(2, 3, a, b)",
    "m.clone().addmm_(2, a, b)",
    "T.addmv(2, v, 3, a, v)",
    "v.addmv(2, a, v)",
    "T.addr(2, m, 3, v, v)",
    "m.addr(2, v, v)",
    "T.addbmm(2, m, 3, a[None], b[None])",
    "m[None].baddbmm(2, a[None], b[None])",
    "T.baddbmm(2, m[None], a[None], b[None], out=T.empty(1, 2, 2))",
]


def done(library, call):
    """What a call gives, and what it warns of."""
    m = library.arange(4.0).reshape(2, 2)
    names = {"T": library, "m": m, "a": m + 1, "b": m * 2 + 1, "v": library.tensor([1.0, -2.0])}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = eval(call, names)
    # without the place in C++, and without the overloads that only CUDA has
    texts = [re.sub(r" \(Triggered internally.*|\n\t[^\n]*out_dtype[^\n]*", "", str(w.message)) for w in caught]
    return result.tolist(), texts, [w.category for w in caught]


@pytest.fixture
def each_time():
    before = rt.is_warn_always_enabled()
    for library in (rt, torch):
        library.set_warn_always(True)
    yield
    for library in (rt, torch):
        library.set_warn_always(before)


@pytest.mark.parametrize("call", CALLS)
def test_values_and_warnings(call, each_time):
    theirs = done(torch, call)
    assert done(rt, call) == theirs
    assert len(theirs[1]) == 1 and "deprecated" in theirs[1][0]


def test_gradients_and_versions():
    grads = []
    for library in (torch, rt):
        a = library.tensor([1.0, 2.0], requires_grad=True)
        x = library.addcmul(a, 3, a, a)
        y = library.ones(2)
        y.addcmul_(2, x, a)
        y.sum().backward()
        grads.append((a.grad.tolist(), y._version))
    assert grads[0] == grads[1]


@pytest.mark.parametrize("call", ["T.addcmul(m, 2, a)", "T.addcmul(m, 'x', a, b)", "T.add(m, 2, 'a')"])
def test_what_fits_no_order(call):
    errors = []
    for library in (torch, rt):
        with pytest.raises(TypeError) as error:
            done(library, call)
        errors.append(str(error.value))
    assert errors[0] == errors[1]


@pytest.mark.parametrize(
    "call", ["m.add_(2, alpha=3)", "m.sub_(2, other=1)", "m.add_(2, nothing=1)", "m.add(2, nothing=1)"]
)
def test_arguments_beside_a_number_are_not_dropped(call):
    outcomes = []
    for library in (torch, rt):
        try:
            outcomes.append(done(library, call)[0])
        except TypeError as error:
            outcomes.append(str(error))
    assert outcomes[0] == outcomes[1]
