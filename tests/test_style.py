"""One formatter, one linter and one style of imports: pyproject.toml says which, ruff says where they are not kept."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MISSING = importlib.util.find_spec("ruff") is None
pytestmark = pytest.mark.skipif(MISSING and not os.environ.get("CI"), reason="ruff is not installed: pip install ruff")


@pytest.fixture(autouse=True)
def same_seed_everywhere():
    """In place of the suite's fixture of that name: nothing is computed here."""


def ruff(*arguments, text=None):
    command = [sys.executable, "-m", "ruff", *arguments]
    return subprocess.run(command, cwd=ROOT, input=text, capture_output=True, text=True)


@pytest.mark.parametrize("command", [["check"], ["format", "--check"]], ids=lambda c: c[0])
def test_style(command):
    done = ruff(*command, "--no-cache", ".")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "text, rule",
    [
        ("from ..c10 import size\n\nprint(size)\n", "TID252"),
        ("import sys\nimport os\n\nprint(os, sys)\n", "I001"),
        ("import os\n", "F401"),
        ("print(nothing)\n", "F821"),
    ],
)
def test_faults_are_found(text, rule):
    done = ruff("check", "--no-cache", "--stdin-filename=src/readtorch/nn/x.py", "-", text=text)
    assert done.returncode == 1 and rule in done.stdout
