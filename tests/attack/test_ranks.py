"""A share of `python -m tests.attack.ranks`."""

import pytest

from tests.attack import ranks

pytestmark = pytest.mark.alone  # it measures how soon the others know


@pytest.mark.parametrize("number", range(8))
def test_ranks(number):
    outcome = ranks.attack(seed=1, number=number)
    assert not outcome.startswith("BAD"), outcome
