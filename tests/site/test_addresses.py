"""What a site offers when it knows the addresses of its repository and of itself, and when it does not."""

import json
import threading
import tomllib
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.browsing import examine

from . import pages
from .conftest import HERE

pytestmark = pytest.mark.slow

REPOSITORY = "https://github.com/somebody/readtorch"
NEEDED = "show,viz,reference,simulator,tensorboard,onnx"
WAYS_OUT = [
    f"{REPOSITORY}/edit/main/book/page.md",
    f"{REPOSITORY}/issues/new?title=Issue%20on%20page%20%2Fbook/page.html&body=Your%20issue%20content%20here.",
    "https://mybinder.org/v2/gh/somebody/readtorch/main?urlpath=lab/tree/book/page.md",
    "https://colab.research.google.com/github/somebody/readtorch/blob/notebooks/book/page.ipynb",
]


@pytest.fixture
def launch(monkeypatch):
    monkeypatch.syspath_prepend(HERE.parents[1] / "book/_ext")
    import rt_launch

    return rt_launch


def test_a_known_repository_is_linked(published_site):
    links = pages.Page(published_site / "book/page.html").links
    assert [way for way in (REPOSITORY, *WAYS_OUT) if way not in links] == []


def test_an_unknown_repository_is_not(fixture_site):
    links = pages.Page(fixture_site / "book/parts.html").links
    assert [link for link in links if any(word in link for word in ("/edit/", "/issues/", "mybinder", "colab"))] == []


def test_a_notebook_installs_what_it_needs(launch, published_site, fixture_site):
    cells = json.loads((published_site / "_sources/book/page.ipynb").read_text())["cells"]
    source = "".join(cells[1]["source"])
    assert cells[1]["cell_type"] == "code"
    assert 'find_spec("readtorch") is None' in source
    assert f'%pip install --quiet "readtorch[{NEEDED}] @ git+{REPOSITORY}"' in source
    project = tomllib.loads((HERE.parents[1] / "pyproject.toml").read_text())["project"]
    assert set(NEEDED.split(",")) <= set(project["optional-dependencies"])
    first = json.loads((fixture_site / "_sources/book/parts.ipynb").read_text())["cells"][0]
    assert "needs the package `readtorch`" in "".join(first["source"])


@pytest.mark.parametrize(
    ("site", "requirement"),
    [
        (
            "https://example.org/book/",
            f"readtorch[{NEEDED}] @ https://example.org/book/_downloads/readtorch-1-py3-none-any.whl",
        ),
        ("", f"./readtorch-1-py3-none-any.whl[{NEEDED}]"),
    ],
)
def test_without_a_repository_the_site_s_wheel_is_installed(launch, site, requirement):
    text = launch.installing(wheel="_downloads/readtorch-1-py3-none-any.whl", site=site)
    assert f'%pip install --quiet "{requirement}"' in text
    assert ("put `readtorch-1-py3-none-any.whl` beside" in text) == (not site)


def test_only_github_has_machines(launch):
    assert launch.launchers("https://gitlab.com/somebody/readtorch", "book/page") == []
    assert launch.launchers("", "book/page") == []


@pytest.mark.parametrize(
    ("repository", "site"),
    [
        ("Somebody/readtorch", "https://somebody.github.io/readtorch/"),
        ("Somebody/somebody.github.io", "https://somebody.github.io/"),
    ],
)
def test_the_runner_of_github_knows_the_site(launch, monkeypatch, repository, site):
    monkeypatch.setenv("GITHUB_REPOSITORY", repository)
    assert launch._site_of_github_pages() == site


def test_a_page_says_what_and_where_it_is(published_site, fixture_site):
    text = (published_site / "book/page.html").read_text()
    assert "<title>A page &amp; its address &#8212; readtorch</title>" in text
    assert '<meta property="og:title" content="A page &amp; its address" />' in text
    assert (
        '<meta name="description" content="What stands here is said of the page to those who link to it: this first '
        'paragraph, as far as the longest description that is shown reaches, which is not to …" />'
    ) in text
    assert '<link rel="canonical" href="https://example.org/book/book/page.html" />' in text
    assert '<meta property="og:image" content="https://example.org/book/_static/cover.png" />' in text
    assert (published_site / "_static/cover.png").is_file()
    without = (fixture_site / "book/parts.html").read_text()
    assert "og:description" in without and "og:url" not in without and "canonical" not in without


def test_a_known_site_has_a_map(published_site, fixture_site):
    assert "<loc>https://example.org/book/book/page.html</loc>" in (published_site / "sitemap.xml").read_text()
    assert "Sitemap: https://example.org/book/sitemap.xml" in (published_site / "robots.txt").read_text()
    assert not (fixture_site / "sitemap.xml").exists()


# -- the page for addresses that lead nowhere ---------------------------------------------------------


class Host(SimpleHTTPRequestHandler):
    """As static hosts do: the site below a folder, and 404.html for what is not there; some say that all is well."""

    below, status = "/book", 404

    def do_GET(self):
        if not self._find():
            return self._lost()
        super().do_GET()

    def do_HEAD(self):
        if not self._find():
            return self._lost()
        super().do_HEAD()

    def _find(self):
        inside = self.path.startswith(self.below + "/")
        self.path = self.path.removeprefix(self.below)
        return inside and Path(self.translate_path(self.path.partition("?")[0])).is_file()

    def _lost(self):
        page = (Path(self.directory) / "404.html").read_bytes()
        self.send_response(self.status)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(page)

    def log_message(self, *anything):
        pass


@pytest.fixture
def serve():
    """serve(site, below=…, status=…) -> the address of the site"""
    servers = []

    def start(site, below="/book", status=404):
        handler = type("SomeHost", (Host,), {"below": below, "status": status})
        server = ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=str(site)))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}{below}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def find_back(page, home, front):
    """A reader who is lost on that page searches; all its links lead into the site at `home`."""
    assert page.locator("h1").inner_text() == "This page does not exist"
    page.wait_for_function("home => document.baseURI === home + '/'", arg=home, timeout=5_000)
    links = page.eval_on_selector_all("a", "links => links.map(link => link.href)")
    assert f"{home}/{front}" in links and all(link.startswith(f"{home}/") for link in links)
    # its look is its own: nothing is loaded that could be missing
    assert (
        page.evaluate("performance.getEntriesByType('resource').filter(one => one.initiatorType !== 'fetch').length")
        == 0
    )
    assert page.evaluate("getComputedStyle(document.querySelector('main')).maxWidth") != "none"
    page.get_by_label("Search the book").fill("__setattr__")
    page.keyboard.press("Enter")
    page.wait_for_url(f"{home}/search.html?q=__setattr__")
    page.context.close()


@pytest.mark.browser
@pytest.mark.parametrize("address", ["nothing.html", "no/such/place/at/all.html", "404.html", "no/folder/"])
@pytest.mark.parametrize(
    ("known", "below", "status"),
    [
        (True, "/book", 404),
        (True, "/elsewhere/preview", 404),
        (False, "", 404),
        (False, "/a/b", 404),
        (False, "/book", 200),
    ],
)
def test_a_lost_reader_finds_back(browser, serve, request, address, known, below, status):
    """From any depth, wherever the site is served, whether it knows its address or not."""
    site = request.getfixturevalue("published_site" if known else "fixture_site")
    home, page = serve(site, below, status), browser.new_page()
    page.goto(f"{home}/{address}")
    find_back(page, home, "book/page.html" if known else "book/parts.html")


@pytest.mark.browser
@pytest.mark.parametrize("site", ["published_site", "fixture_site"])
def test_a_lost_reader_of_files_finds_back(browser, request, site):
    site, page = request.getfixturevalue(site), browser.new_page()
    page.goto(f"file://{site}/404.html")
    find_back(page, f"file://{site}", pages.listed(site.parents[1] / "_toc.yml")[0])


@pytest.mark.browser
@pytest.mark.parametrize(("width", "scheme"), [(1400, "light"), (1400, "dark"), (390, "light"), (390, "dark")])
def test_the_page_for_the_lost_looks_well(visit, axe, fixture_site, width, scheme):
    examine(visit, axe, fixture_site / "404.html", width, scheme)


def test_the_page_for_the_lost_lists_the_chapters(fixture_site):
    assert (
        {"search.html", *pages.listed(fixture_site.parents[1] / "_toc.yml")}
        >= set(pages.Page(fixture_site / "404.html").links) - {""}
        >= set(pages.listed(fixture_site.parents[1] / "_toc.yml"))
    )
