"""Some of the random programs of programs.py. All 5,000: `python -m tests.jit.programs`."""

import warnings

import pytest

from tests.jit.programs import check


@pytest.mark.parametrize("first", range(0, 100, 10))
def test_random_programs(first):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(first, first + 10):
            check(seed)
