"""Looking at pages with a real browser: fixtures for the tests of the site and of the figures."""

import os
import shutil
from importlib import resources

import pytest

try:
    from playwright.sync_api import sync_playwright
except ModuleNotFoundError:
    sync_playwright = None

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
QUIET = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync"]

AUDIT = """async () => (await axe.run(document, {resultTypes: ['violations']})).violations.flatMap(
    violation => violation.nodes.map(node => `${violation.id}: ${node.target} ${node.html.slice(0, 120)}`))"""


def need(what, reason):
    """Skip without `what`, except where CI is set: there nothing may be left out quietly."""
    if not what:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)
    return what


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


@pytest.fixture(scope="session")
def axe():
    """The source of axe-core, which audits accessibility."""
    return resources.files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf8")


def examine(visit, axe, file, width, scheme):
    """Fail unless the page loads cleanly, fits the width, and passes the audit."""
    with visit(file, width=width, scheme=scheme) as seen:
        assert seen.problems == []
        assert seen.page.evaluate("document.documentElement.scrollWidth") <= width, "the page scrolls sideways"
        seen.page.evaluate(axe)
        assert seen.page.evaluate(AUDIT) == []
