"""A share of `python -m tests.attack.strangers`."""

import pytest

from tests.attack import strangers

pytestmark = pytest.mark.alone  # it measures how long an honest rank waits


@pytest.fixture(scope="module", autouse=True)
def processes():
    yield
    strangers.end()


@pytest.mark.parametrize("number", [*range(40), 49])
def test_strangers(number):
    outcome = strangers.attack(seed=1, number=number)
    assert not outcome.startswith("BAD"), outcome
