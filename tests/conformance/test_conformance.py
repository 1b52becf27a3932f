"""The operators of passing.txt and the modules of passing_modules.txt agree with the reference.

On the reference's own inputs, a bounded number each; --full-conformance (or READTORCH_FULL_CONFORMANCE=1) runs them all.
"""

import pytest
import torch

import readtorch as rt
from tests.conformance import catalog, checks, known_differences, runner

SAMPLES_EACH = 4
BEYOND_THE_LIST = 3  # samples of an operator that core_ops.txt does not name: the first, the last and one between
CALLS_EACH = 2


def failures_of(report):
    return "\n".join(f"{f.form} {f.dtype} {f.sample}: {f.reason}" for f in report.failures[:5])


@pytest.mark.parametrize("name", catalog.passing_names())
def test_operator(name, request):
    full = request.config.getoption("--full-conformance")
    limit = SAMPLES_EACH if name in catalog.core_names() else BEYOND_THE_LIST
    report = runner.run_op(name, limit=None if full else limit)
    assert report.samples > 0
    assert report.passes, failures_of(report)


@pytest.mark.parametrize("name", catalog.passing_modules())
def test_module(name, request):
    full = request.config.getoption("--full-conformance")
    report = runner.run_module(name, limit=None if full else CALLS_EACH)
    assert report.passes, failures_of(report)


def test_known_differences_happen():
    for name in {difference.name for difference in known_differences.DIFFERENCES}:
        report = runner.run(name)
        assert report.passes, failures_of(report)


def test_what_is_left_out_is_absent():
    """A reason for an operator that has come would be a lie."""
    left_out = [name for name in catalog.variants() if known_differences.why_left_out(name)]
    assert left_out and {name for name in left_out if checks.is_public(name)} == known_differences.OTHER_FORM


def test_known_differences_are_strict(monkeypatch):
    differs = known_differences.Difference("Linear", "forward float64", "for this test")
    monkeypatch.setattr(known_differences, "DIFFERENCES", [differs])
    assert [f.form for f in runner.run("Linear").failures] == ["known difference"]
    wrong = type("Linear", (rt.nn.Linear,), WRONG_LINEARS["forward"] | {"__module__": "readtorch.nn"})
    monkeypatch.setattr(rt.nn, "Linear", wrong)
    report = runner.run("Linear")
    assert report.known and {f.dtype for f in report.failures} == {"float32"}


def test_every_operator_of_the_list_exists():
    assert set(catalog.core_names()) <= set(catalog.variants())
    assert set(catalog.passing_names()) <= set(catalog.variants())


def test_wrong_results_are_found():
    """The runner itself: an operator that computes something else must fail."""
    info = catalog.variants()["add"][0]
    sample = next(iter(info.sample_inputs("cpu", checks.torch.float64, requires_grad=True)))
    form = checks.Form("function", info.op, lambda a, b, **named: a + b * 1.001)
    with pytest.raises(AssertionError):
        checks.check_form(info, form, sample, checks.torch.float64)


def test_every_module_of_the_list_exists():
    assert len(catalog.module_infos()) == 114
    assert set(catalog.passing_modules()) <= set(catalog.module_names())


def without_gradient_of_weight(self, input):
    return rt.nn.functional.linear(input, self.weight.detach(), self.bias)


WRONG_LINEARS = {
    "class": dict(__constants__=["in_features"]),
    "construct": dict(extra_repr=lambda self: "in_features"),
    "forward": dict(forward=without_gradient_of_weight),
    "deepcopy": dict(__deepcopy__=lambda self, memo: self),
}


@pytest.mark.parametrize("where", WRONG_LINEARS)
def test_wrong_modules_are_found(where, monkeypatch):
    """The runner itself: a Linear that does one thing otherwise must fail, there and nowhere else."""
    wrong = type("Linear", (rt.nn.Linear,), WRONG_LINEARS[where] | {"__module__": "readtorch.nn"})
    monkeypatch.setattr(rt.nn, "Linear", wrong)
    report = runner.run_module("Linear", [torch.float64], limit=1)
    assert {finding.form for finding in report.failures} == {where}
