"""What is computed in doubles is right to 12 digits: on the way nothing is rounded to a narrower type."""

import numpy as np
import pytest
import torch

from tests.conformance import catalog, checks, runner
from tests.reference import Outcome, seed_both, tensors_in

SAMPLES_EACH = 3
PRECISION = 1e-12
SMALL = 1e-3  # what is so much smaller than a result's largest element may be off by as much as if it were not
OF_OTHER_SERIES = (
    "special.bessel_j0",
    "special.bessel_j1",
    "special.bessel_y0",
    "special.bessel_y1",
    "special.airy_ai",
)
NOT_DETERMINED = ("svd_lowrank", "pca_lowrank", "linalg.eigh", "empty", "empty_permuted", "empty_like", "new_empty")


def doubles_of(outcome):
    return [
        np.asarray(t.detach().numpy())
        for t in tensors_in(outcome.value)
        if str(t.dtype).endswith("float64") and str(t.layout).endswith("strided")
    ]


def error_of(ours, theirs):
    """The largest relative error, of those elements that are numbers."""
    with np.errstate(all="ignore"):
        largest = np.abs(theirs[np.isfinite(theirs)]).max(initial=0)
        errors = np.abs(ours - theirs) / (np.abs(theirs) + largest * SMALL + 1e-300)
    return errors[np.isfinite(errors)].max(initial=0)


@pytest.mark.parametrize("name", [n for n in catalog.passing_names() if n not in OF_OTHER_SERIES + NOT_DETERMINED])
def test_precision(name):
    for info in catalog.variants()[name]:
        if torch.float64 not in info.supported_dtypes("cpu"):
            continue
        seed_both(0)
        samples = [s for s in info.sample_inputs("cpu", torch.float64) if checks.is_ours(s)]
        form = checks.forms_of(info)[0]
        for sample in runner.spread(samples, SAMPLES_EACH) if callable(form.ours) else ():
            first, rest, named = checks.translate_all((sample.input, sample.args, sample.kwargs))
            seed_both(0)
            theirs = Outcome(form.theirs, sample.input, *sample.args, **sample.kwargs)
            seed_both(0)
            ours = Outcome(form.ours, first, *rest, **named)
            if theirs.error is None and ours.error is None:
                for mine, expected in zip(doubles_of(ours), doubles_of(theirs)):
                    assert mine.shape != expected.shape or error_of(mine, expected) < PRECISION, checks.describe(sample)
