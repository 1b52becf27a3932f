"""Building a small book with the real configuration, and looking at pages with a real browser."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

try:
    from playwright.sync_api import sync_playwright
except ModuleNotFoundError:
    sync_playwright = None

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
QUIET = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync"]


@pytest.fixture(autouse=True)
def same_seed_everywhere():
    """In place of the suite's fixture of that name: pages are looked at from outside, no tensors are made here."""


def need(what, reason):
    """Skip without `what`, except where CI is set: there nothing may be left out quietly."""
    if not what:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)
    return what


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


@pytest.fixture(scope="session")
def browser():
    need(sync_playwright, "Playwright is not installed: make test")
    program = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)
    need(program, "no Chromium on this machine: install one, or name it in the environment variable CHROMIUM")
    with sync_playwright() as started:
        running = started.chromium.launch(executable_path=program, args=QUIET)
        yield running
        running.close()


class Visit:
    """One page, opened as a file, with everything that went wrong while it loaded."""

    LOCAL = ("file:", "data:", "blob:", "about:")

    def __init__(self, browser, file, width=1400, scheme="light", query=""):
        self.context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        self.page = self.context.new_page()
        self.problems = []
        self.page.on("console", lambda m: self._note("console", m.text) if m.type == "error" else None)
        self.page.on("pageerror", lambda e: self._note("exception", e))
        self.page.on("request", lambda r: None if r.url.startswith(self.LOCAL) else self._note("request", r.url))
        self.page.on("requestfailed", lambda r: self._note("failed request", r.url))
        self.page.goto(f"file://{file}{query}")
        for figure in self.page.query_selector_all(".rt-static"):
            self.page.wait_for_function("figure => figure.dataset.rtMounted === 'yes'", arg=figure, timeout=10_000)
        self.page.wait_for_timeout(250)  # what the theme does after loading

    def _note(self, kind, what):
        self.problems.append(f"{kind}: {what}")

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.context.close()


@pytest.fixture
def visit(browser):
    """visit(file, width=…, scheme=…, query=…) as a context manager"""
    return lambda file, **options: Visit(browser, file, **options)
