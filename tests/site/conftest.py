"""Building a small book with the real configuration."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ..browsing import need

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent


@pytest.fixture(autouse=True)
def same_seed_everywhere():
    """In place of the suite's fixture of that name: pages are looked at from outside, no tensors are made here."""


def build_book(folder, chapters):
    """Lay out a book in `folder` from the repository's configuration and these chapters; build it strictly."""
    shutil.copytree(ROOT / "book/_ext", folder / "book/_ext", dirs_exist_ok=True)
    shutil.copytree(ROOT / "book/_static", folder / "book/_static", dirs_exist_ok=True)
    shutil.copy(ROOT / "_config.yml", folder)
    shutil.copytree(chapters, folder, dirs_exist_ok=True)
    return run_builder(folder)


def run_builder(folder):
    """-> the finished process of one strict build; .stdout has the whole log"""
    builder = Path(sys.executable).with_name("jupyter-book")
    need(builder.exists(), "Jupyter Book is not installed beside this Python: make test")
    python_path = os.pathsep.join(filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH")]))
    return subprocess.run(
        [builder, "build", folder, "-W", "--keep-going"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300,
        env=os.environ | {"PYTHONPATH": python_path, "NO_COLOR": "1", "JUPYTER_PREFER_ENV_PATH": "1"},
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
