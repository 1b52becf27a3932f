"""What a site offers when it knows the addresses of its repository and of itself, and when it does not."""

import json
import threading
import tomllib
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from . import pages
from .conftest import HERE

pytestmark = pytest.mark.slow

REPOSITORY = "https://github.com/somebody/readtorch"
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
    assert f"git clone --quiet --depth 1 {REPOSITORY} " in source
    project = tomllib.loads((HERE.parents[1] / "pyproject.toml").read_text())["project"]
    assert set(launch.NEEDED.split(",")) <= set(project["optional-dependencies"])
    first = json.loads((fixture_site / "_sources/book/parts.ipynb").read_text())["cells"][0]
    assert "needs the package `readtorch`" in "".join(first["source"])


def test_only_github_has_machines(launch):
    assert launch.launchers("https://gitlab.com/somebody/readtorch", "book/page") == []
    assert launch.launchers("", "book/page") == []


@pytest.mark.parametrize(("repository", "site"), [
    ("Somebody/readtorch", "https://somebody.github.io/readtorch/"),
    ("Somebody/somebody.github.io", "https://somebody.github.io/"),
])
def test_the_runner_of_github_knows_the_site(launch, monkeypatch, repository, site):
    monkeypatch.setenv("GITHUB_REPOSITORY", repository)
    assert launch._site_of_github_pages() == site


def test_a_page_says_what_and_where_it_is(published_site, fixture_site):
    text = (published_site / "book/page.html").read_text()
    assert "<title>A page &amp; its address &#8212; readtorch</title>" in text
    assert '<meta property="og:title" content="A page &amp; its address" />' in text
    assert ('<meta name="description" content="What stands here is said of the page to those who link to it: this first '
            'paragraph, as far as the longest description that is shown reaches, which is not to …" />') in text
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
    """As static hosts do: the site below /book/, and 404.html for what is not there."""

    def do_GET(self):
        self.path = self.path.removeprefix("/book")
        if not self.translate_path(self.path).startswith(self.directory) or not self._is_there():
            self.path = "/404.html"
        super().do_GET()

    def _is_there(self):
        try:
            return open(self.translate_path(self.path), "rb").close() is None
        except OSError:
            return False

    def log_message(self, *anything):
        pass


@pytest.fixture
def host(published_site):
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Host, directory=str(published_site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/book"
    server.shutdown()
    server.server_close()


@pytest.mark.browser
@pytest.mark.parametrize("address", ["nothing.html", "no/such/place/at/all.html"])
def test_a_lost_reader_finds_back(browser, host, address):
    page = browser.new_page()
    failed = []
    page.on("requestfailed", lambda request: failed.append(request.url))
    page.on("response", lambda answer: failed.append(answer.url) if "/_static/" in answer.url and
            "text/html" in answer.headers.get("content-type", "") else None)
    page.goto(f"{host}/{address}")
    assert page.locator("article h1").inner_text() == "This page does not exist"
    assert page.locator("article a", has_text="the front page").evaluate("link => link.href") == f"{host}/book/page.html"
    page.locator("article a", has_text="the search").click()
    page.wait_for_url("**/book/search.html")
    assert failed == []
    page.context.close()
