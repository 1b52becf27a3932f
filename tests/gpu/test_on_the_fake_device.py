"""The tests that need a GPU, on the fake one. Each group is a process of its own, which alone sees the device.

What has a group here runs with every change; `make fake-gpu` runs all of it in all schedules.
"""

import re
import subprocess
import sys

import pytest

from .fake import ROOT, environment, missing

pytestmark = [pytest.mark.skipif(missing() is not None, reason=str(missing())), pytest.mark.slow]


@pytest.fixture(autouse=True)
def same_seed_everywhere():
    """In place of the suite's fixture of that name: nothing is computed here."""


FEW_OPERATORS = "mul or mm or sum or softmax or sort or cumsum or index_select or conv2d or layer_norm or cat"
GROUPS = {
    "operators": ("test_operators", {}),
    "everything else": ("not test_operators", {}),
    "threads reversed, work held back": (f"not test_operators or {FEW_OPERATORS}", {"order": "reversed", "hold": 1}),
}


def run(expression, **settings):
    """What pytest says of the tests marked gpu."""
    command = [sys.executable, "-m", "pytest", "tests", "-m", "gpu", "-k", expression, "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment(**settings))
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("group", GROUPS)
def test_group(group):
    expression, settings = GROUPS[group]
    status, said = run(expression, **settings)
    assert status == 0, said[-6000:]
    assert re.search(r"\d+ passed", said) and "skipped" not in said.splitlines()[-1], said[-2000:]
