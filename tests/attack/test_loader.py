"""A share of `python -m tests.attack.loader`."""

import pytest

from tests.attack import loader


@pytest.mark.parametrize("number", range(12))
def test_loader(number):
    outcome = loader.attack(seed=1, number=number)
    assert not outcome.startswith("BAD"), outcome
