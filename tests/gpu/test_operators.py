"""Operators on the fake GPU, against PyTorch on the CPU: tests/cuda/test_gpu_operators.py in a process that has one."""

import pytest

from .fake import missing
from .groups import LONG, OPERATORS, check_tests

pytestmark = [pytest.mark.skipif(missing() is not None, reason=str(missing())), pytest.mark.slow]


@pytest.fixture(autouse=True)
def same_seed_everywhere():
    """In place of the suite's fixture of that name: nothing is computed here."""


def test_operators():
    check_tests(OPERATORS, f"not ({LONG})")
