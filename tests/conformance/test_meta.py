"""The operators of passing_meta.txt give on the Meta device what they give on the CPU, but the numbers.

A bounded number of op_db's inputs each; --full-conformance runs them all. `python -m tests.conformance.meta` says which are missing.
"""

import ctypes

import pytest
import torch

import readtorch as rt
from tests.conformance import catalog, checks, meta, meta_checks, workers

# What they return depends on numbers: torch refuses them on meta, each with its own words.
DEPEND_ON_NUMBERS = "item nonzero argwhere masked_select unique unique_consecutive bincount histogram equal".split()


@pytest.fixture(scope="module")
def worker():
    started = workers.Worker(meta.run_cases)
    yield started
    started.close()


@pytest.mark.parametrize("name", meta.passing_names())
def test_operator(name, worker, request):
    full = request.config.getoption("--full-conformance")
    report = meta.run(name, worker, limit=None if full else meta.SAMPLES_EACH)
    assert report.passes, "\n".join(f"{f.form} {f.dtype} {f.sample}: {f.reason}" for f in report.why())


@pytest.mark.parametrize("name", DEPEND_ON_NUMBERS)
def test_what_depends_on_numbers_is_refused(name, worker):
    report = meta.run(name, worker, limit=1)
    assert report.state == "refused", report.findings
    assert not [f for f in report.findings if f.kind == "more"]


def test_every_operator_of_the_list_exists():
    assert set(meta.passing_names()) <= set(catalog.variants())


# The instrument itself: what is wrong must be found.


def test_a_case_that_ends_its_process_is_a_result():
    def cases(job):
        yield "before", lambda: []
        yield "reads", lambda: ctypes.string_at(1 << 54)
        yield "behind", lambda: [job]

    started = workers.Worker(cases)
    (_, before), (label, ended), (_, behind) = workers.do(started, "a job")
    started.close()
    assert (before, label, behind) == ([], "reads", ["a job"])
    assert "signal 11" in ended.how


def clone_that(change):
    """clone, of which `change(input, result)` makes something else on meta."""

    def clone(x, **named):
        result = rt.clone(x, **named)
        return change(x, result) if x.device.type == "meta" else result

    return checks.Form("function", torch.clone, clone)


def write_to(x):
    x.detach().zero_()


WRONG = {
    "shape": lambda x, result: result[:1],
    "dtype": lambda x, result: result.double(),
    "strides": lambda x, result: rt.empty_strided((2, 3), (1, 2), device="meta"),
    "requires_grad": lambda x, result: result.detach(),
    "grad_fn": lambda x, result: result.double().float(),
    "a result on cpu": lambda x, result: rt.ones(2, 3, requires_grad=True).clone(),
    "version": lambda x, result: write_to(x) or result,
}


def ones():
    return torch.ones(2, 3, requires_grad=True), (), {}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_results_are_found(what):
    meta_checks.check_form(clone_that(lambda x, result: result), ones())
    with pytest.raises(AssertionError, match=what):
        meta_checks.check_form(clone_that(WRONG[what]), ones())


def test_wrong_gradients_are_found():
    _, four = meta_checks.check_form(clone_that(lambda x, result: result), ones())
    assert meta_checks.check_backward(four, lambda result: result) == []
    four.ours_meta.value.register_hook(lambda grad: rt.empty_strided((2, 3), (1, 2), device="meta"))
    with pytest.raises(AssertionError, match="gradient: strides"):
        meta_checks.check_backward(four, lambda result: result)
