"""A share of `python -m tests.attack.threads`."""

import pytest

from tests.attack import threads


@pytest.mark.parametrize("number", range(11))
def test_threads(number):
    outcome = threads.attack(seed=1, number=number)
    assert not outcome.startswith("BAD"), outcome
