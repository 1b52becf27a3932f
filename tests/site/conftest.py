"""Building a small book with the real configuration."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.browsing import need

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent


@pytest.fixture(autouse=True)
def same_seed_everywhere():
    """In place of the suite's fixture of that name: pages are looked at from outside, no tensors are made here."""


def build_book(folder, chapters, **environment):
    """Lay out a book in `folder` from the repository's configuration and these chapters; build it strictly."""
    for part in ("_ext", "_static", "_templates"):
        shutil.copytree(ROOT / "book" / part, folder / "book" / part, dirs_exist_ok=True)
    shutil.copy(ROOT / "_config.yml", folder)
    shutil.copytree(chapters, folder, dirs_exist_ok=True)
    return run_builder(folder, **environment)


def run_builder(folder, **environment):
    """-> the finished process of one strict build; .stdout has the whole log

    The addresses of repository and site are those of `environment`, none otherwise, wherever the tests run.
    """
    builder = Path(sys.executable).with_name("jupyter-book")
    need(builder.exists(), "Jupyter Book is not installed beside this Python: make test")
    python_path = os.pathsep.join(filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH")]))
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("GITHUB_", "READTORCH_"))}
    settings = {"PYTHONPATH": python_path, "NO_COLOR": "1", "JUPYTER_PREFER_ENV_PATH": "1", "READTORCH_REPOSITORY": ""}
    return subprocess.run(
        [builder, "build", folder, "-W", "--keep-going"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        env=inherited | settings | environment,
    )


@pytest.fixture(scope="session")
def fixture_book(tmp_path_factory):
    """The fixture book, built: (its folder, the build's log)"""
    folder = tmp_path_factory.mktemp("fixture_book")
    done = build_book(folder, HERE / "fixture")
    assert done.returncode == 0, done.stdout[-6000:]
    return folder, done.stdout


@pytest.fixture(scope="session")
def fixture_site(fixture_book):
    return fixture_book[0] / "_build/html"


@pytest.fixture(scope="session")
def book_site():
    site = ROOT / "_build/html"
    need((site / "index.html").exists(), "the book is not built: make book")
    return site


@pytest.fixture(scope="session")
def published_site(tmp_path_factory):
    """A book of one page, built as it is where the addresses of its repository and of its site are known."""
    folder = tmp_path_factory.mktemp("published_book")
    done = build_book(
        folder,
        HERE / "published",
        READTORCH_REPOSITORY="https://github.com/somebody/readtorch",
        READTORCH_SITE="https://example.org/book",
    )
    assert done.returncode == 0, done.stdout[-6000:]
    return folder / "_build/html"
