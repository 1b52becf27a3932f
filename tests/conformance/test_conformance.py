"""The operators of passing.txt agree with the reference on op_db's own inputs.

A bounded number of samples each; --full-conformance (or READTORCH_FULL_CONFORMANCE=1) runs them all.
"""
import pytest

from tests.conformance import catalog, runner

SAMPLES_EACH = 4


@pytest.mark.parametrize("name", catalog.passing_names())
def test_operator(name, request):
    full = request.config.getoption("--full-conformance")
    report = runner.run_op(name, limit=None if full else SAMPLES_EACH)
    assert report.samples > 0
    assert report.passes, "\n".join(f"{f.form} {f.dtype} {f.sample}: {f.reason}" for f in report.failures[:5])


def test_every_operator_of_the_list_exists():
    names = [name for group in catalog.groups().values() for name in group]
    assert set(catalog.ACTIVE_GROUPS) <= set(catalog.groups())
    assert set(catalog.passing_names()) <= set(names) <= set(catalog.variants())


def test_wrong_results_are_found():
    """The runner itself: an operator that computes something else must fail."""
    from tests.conformance import checks
    info = catalog.variants()["add"][0]
    sample = next(iter(info.sample_inputs("cpu", checks.torch.float64, requires_grad=True)))
    form = checks.Form("function", info.op, lambda a, b, **named: a + b * 1.001)
    with pytest.raises(AssertionError):
        checks.check_form(info, form, sample, checks.torch.float64)
