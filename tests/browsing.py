"""Looking at pages with a real browser: fixtures for the tests of the site and of the figures."""

import os
import shutil
from importlib import resources
from pathlib import Path
from urllib.parse import unquote

import pytest

try:
    from playwright.sync_api import sync_playwright
except ModuleNotFoundError:
    sync_playwright = None

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

# A page is there when all its figures are.
MOUNTED = """() => document.readyState === 'complete'
    && [...document.querySelectorAll('.rt-static')].every(figure => figure.dataset.rtMounted === 'yes')"""

AUDIT = """async () => (await axe.run(document, {resultTypes: ['violations'], preload: false})).violations.flatMap(
    violation => violation.nodes.map(node => `${violation.id}: ${node.target} ${node.html.slice(0, 120)}`))"""

# A page of code has five thousand coloured tokens, and the audit looks at each by itself. Of the tokens that no
# style rule tells apart (the same classes all the way up) the first stands for all; the others become plain text.
ONE_OF_A_KIND = """() => {
    const kind = element => {
        const parts = [];
        for (let at = element; at !== document.body; at = at.parentElement) parts.push(at.localName, at.className);
        return parts.join('|');
    };
    const kinds = new Set(), repeated = [];
    for (const token of document.querySelectorAll('pre span')) {
        const own = kind(token);
        if (kinds.has(own)) repeated.push(token);
        kinds.add(own);
    }
    for (const token of repeated) token.replaceWith(...token.childNodes);
    for (const pre of document.querySelectorAll('pre')) pre.normalize();
}"""


def need(what, reason):
    """Skip without `what`, except where CI is set: there nothing may be left out quietly."""
    if not what:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)
    return what


def chromium():
    """The path of the Chromium of this machine, or None."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)


@pytest.fixture(scope="session")
def browser():
    need(sync_playwright, "Playwright is not installed: make test")
    program = chromium()
    need(program, "no Chromium on this machine: install one, or name it in the environment variable CHROMIUM")
    with sync_playwright() as started:
        running = started.chromium.launch(executable_path=program, args=QUIET)
        yield running
        running.close()


# A while after a change of size the theme looks which code needs a tab stop; the audit says if it never does.
CHANGED = "window.rtChanged = performance.now()"
TAB_STOPS = """() => performance.now() > rtChanged + 2000 || [...document.querySelectorAll('pre')].every(
    code => code.scrollWidth <= code.clientWidth || code.tabIndex === 0)"""


def is_dropped_icon(request):
    """Whether the browser gave up fetching the page's icon, as it does when the page's address changes meanwhile."""
    return request.url.endswith("/favicon.svg") and request.failure == "net::ERR_ABORTED"


class Visit:
    """One page, opened as a file, with everything that it loaded, and that went wrong while it did."""

    LOCAL = ("file:", "data:", "blob:", "about:")

    def __init__(self, browser, file, width=1400, scheme="light", query=""):
        self.context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        self.page = self.context.new_page()
        self.problems, self.loaded = [], set()
        self.page.on("console", lambda m: self._note("console", m.text) if m.type == "error" else None)
        self.page.on("pageerror", lambda e: self._note("exception", e))
        self.page.on("request", lambda r: None if r.url.startswith(self.LOCAL) else self._note("request", r.url))
        self.page.on("request", lambda r: self.loaded.add(r.url.partition("?")[0].partition("#")[0]))
        self.page.on("requestfailed", lambda r: None if is_dropped_icon(r) else self._note("failed request", r.url))
        self.page.goto(f"file://{file}{query}")
        self._settle()

    def view(self, width, scheme):
        """The page as it loads on a screen of that width and in that colour scheme."""
        self.page.set_viewport_size({"width": width, "height": 900})
        self.page.emulate_media(color_scheme=scheme)
        self.page.reload()
        self._settle()

    def _settle(self):
        """Wait until the figures are there and the theme has done what it does after loading."""
        self.page.wait_for_function(MOUNTED, timeout=20_000)
        self.page.evaluate("() => new Promise(done => requestAnimationFrame(() => setTimeout(done)))")

    def width(self):
        return self.page.evaluate("document.documentElement.scrollWidth")

    def weight(self):
        """Bytes of all files that the page has loaded."""
        files = (Path(unquote(url.removeprefix("file://"))) for url in self.loaded if url.startswith("file://"))
        return sum(file.stat().st_size for file in files)

    def audit(self, axe):
        """What the accessibility audit finds wrong. Most of the code's colours are gone afterwards."""
        self.page.evaluate(CHANGED)
        self.page.wait_for_function(TAB_STOPS)
        self.page.evaluate(ONE_OF_A_KIND)
        self.page.evaluate(axe)
        return self.page.evaluate(AUDIT)

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


def examine(visit, axe, file, width, scheme, also=lambda page: None):
    """Fail unless the page loads cleanly, fits the width, and passes the audit. also: looks at it before the audit changes it."""
    with visit(file, width=width, scheme=scheme) as seen:
        assert seen.problems == []
        assert seen.width() <= width, "the page scrolls sideways"
        also(seen.page)
        assert seen.audit(axe) == []
