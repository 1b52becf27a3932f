"""Every page, in a real browser, opened as a file: of the book in _build/html, and of the fixture book."""

import zipfile
from urllib.parse import quote

import pytest

from tests.browsing import Visit

from . import keyboard, pages

pytestmark = [pytest.mark.browser, pytest.mark.slow]

# One generator makes all pages of the API reference: the heaviest and one of classes stand for the others.
LISTED = pages.listed(pages.ROOT / "_toc.yml")
ALIKE = {name for name in LISTED if "/api/" in name} - {"book/api/operators.html", "book/api/optim.html"}
BOOK = [*(name for name in LISTED if name not in ALIKE), "search.html", "status.html"]
FIXTURE = [*pages.listed(pages.ROOT / "tests/site/fixture/_toc.yml"), "search.html", "status.html"]
# An audit takes long, and what is prose or code has the same colours on every page; each figure is audited by itself.
AUDITED_IN_THE_DARK = {*BOOK[::4], *FIXTURE}
# Bytes of a page and all that it loads, before compression. The heaviest are the figure with what PyTorch generates from 28
# entries, and the search, which loads the words of the whole book: it grows with each chapter.
HEAVIEST, HEAVIEST_SEARCH = 1_550_000, 1_600_000
LONGEST = 700 * 1024  # bytes of a page by itself
PAPER = 700  # CSS pixels between the margins of an A4 sheet

CUT_OFF = """() => [...document.querySelectorAll('.bd-article pre, .bd-article .rt-code')].filter(one => one.getClientRects().length
    && (one.scrollWidth > one.clientWidth + 1 || one.getBoundingClientRect().right > innerWidth + 1
        || (one.scrollHeight > one.clientHeight + 1 && getComputedStyle(one).overflowY !== 'visible'))
    ).map(one => one.textContent.slice(0, 80))"""

# Paper shows the first moment, and Chromium moves what begins as an empty box: nothing fades in, and what holds code is a
# block that may break between lines.
NOT_PRINTED = """() => [...document.querySelectorAll('.bd-article .cell_input, .bd-article pre, .solution > *')].filter(one => {
    for (let at = one; at !== document.body; at = at.parentElement) if (getComputedStyle(at).opacity !== '1') return true;
    return !one.getClientRects().length && !one.closest('.rt-folded, .rt-same, .rt-static, [hidden], .sd-d-none');
    }).map(one => one.textContent.slice(0, 80))"""
MOVED = """() => [...document.querySelectorAll('.cell_input, .cell_output, .cell_input .highlight, .cell details, .bd-article table')].filter(one => {
    const style = getComputedStyle(one);
    return !one.closest('.rt-static') && (style.display.includes('flex') || style.breakInside !== 'auto');
    }).map(one => `${one.className}: ${one.textContent.slice(0, 80)}`)"""
# a canvas keeps the width that it was drawn with on the screen
WIDE_PICTURES = """() => [...document.querySelectorAll('.rt-static canvas')].filter(one => {
    const width = one.style.width;
    one.style.width = '1400px';
    const wide = one.getBoundingClientRect().right > one.closest('.rt-w').getBoundingClientRect().right;
    one.style.width = width;
    return wide;
    }).map(one => one.className)"""

# Code and what it prints; figures are judged by themselves.
SIDEWAYS = """() => [...document.querySelectorAll('.bd-article pre, .bd-article .highlight, .bd-article .rt-code')].filter(one =>
    one.getClientRects().length && one.scrollWidth > one.clientWidth + 1 && !one.closest('.rt-static')
    && getComputedStyle(one).overflowX !== 'hidden').map(one => one.textContent.slice(0, 80))"""

# Figures and pages have style sheets of their own, on one page.
UNREADABLE = """() => [...document.querySelectorAll('.rt-static *')].filter(one => {
    const style = getComputedStyle(one), own = [...one.childNodes].some(child => child.nodeType === 3 && child.data.trim());
    return own && one.getClientRects().length && one.localName !== 'option'
        && (parseFloat(style.fontSize) < 9 || style.color === 'rgba(0, 0, 0, 0)'
            || (['text', 'tspan'].includes(one.localName) && style.fill === 'rgb(0, 0, 0)'));  // no colour: black in the dark, too
    }).map(one => one.outerHTML.slice(0, 80))"""

UNFOLD = "dispatchEvent(new Event('beforeprint'))"  # solutions and hidden cells open, as they do for paper
FOLD = "dispatchEvent(new Event('afterprint'))"


@pytest.fixture(scope="module", params=[*(f"book:{name}" for name in BOOK), *(f"fixture:{name}" for name in FIXTURE)])
def seen(request, browser):
    """One visit for all that is asked of a page, from a wide and light screen to a narrow and dark one."""
    book, name = request.param.split(":")
    with Visit(browser, request.getfixturevalue(f"{book}_site") / name) as visit:
        visit.name = name
        yield visit


def test_a_page_loads_cleanly(seen):
    assert seen.problems == []
    assert seen.width() <= 1400, "the page scrolls sideways"


def test_the_words_of_figures_can_be_read(seen):
    assert seen.page.evaluate(UNREADABLE) == []


def test_a_page_is_light(seen):
    searches = seen.page.url.partition("?")[0].endswith("search.html")
    assert seen.weight() < (HEAVIEST_SEARCH if searches else HEAVIEST)


def test_no_page_of_the_book_is_long(book_site):
    sizes = {page: (book_site / page).stat().st_size for page in pages.built(book_site)}
    assert len(sizes) > 50
    assert {page: size for page, size in sizes.items() if size > LONGEST} == {}


def test_figures_are_worked_by_keyboard(seen):
    seen.page.evaluate(UNFOLD)
    for figure in seen.page.query_selector_all(".rt-static"):
        looks, left_out = keyboard.walk(seen.page, figure)
        assert looks, "no control of the figure is reached by Tab"
        assert left_out == [], "Tab does not reach these"
        assert not seen.page.evaluate(keyboard.INSIDE, figure), "Tab does not leave the figure"
        assert [what for focused, plain, what in looks if focused == plain] == [], "focus is not seen"
        assert keyboard.work(seen.page, figure), "no key changes the figure"
    seen.page.evaluate(FOLD)
    assert seen.problems == []


def test_paper_cuts_nothing_off(seen):
    seen.page.set_viewport_size({"width": PAPER, "height": 900})
    seen.page.emulate_media(media="print")
    seen.page.evaluate(UNFOLD)
    assert seen.page.evaluate(NOT_PRINTED) == [], "at the first moment"
    assert seen.page.evaluate(CUT_OFF) == []
    assert seen.page.evaluate(MOVED) == []
    assert seen.page.evaluate(WIDE_PICTURES) == []
    contents, text = (seen.page.locator(one).first for one in ("#jb-print-toc h2", ".bd-article h2"))
    assert not contents.is_visible() or contents.bounding_box()["x"] >= text.bounding_box()["x"], "hangs at the edge"
    assert seen.width() <= PAPER
    assert not seen.page.locator(".bd-sidebar-primary, .bd-header-article, .copybtn").filter(visible=True).count()
    seen.page.evaluate(FOLD)
    seen.page.emulate_media(media="screen")
    seen.page.set_viewport_size({"width": 1400, "height": 900})


def test_an_audit_finds_nothing(seen, axe):
    """After all that is done to the page as it is: the audit thins out its code."""
    seen.view(1400, "light")
    assert seen.audit(axe) == []


def test_a_telephone_in_the_dark(seen, axe):
    seen.view(390, "dark")
    assert seen.problems == []
    assert seen.width() <= 390, "the page scrolls sideways"
    seen.page.evaluate(UNFOLD)
    assert seen.page.evaluate(SIDEWAYS) == [], "code scrolls sideways"
    seen.page.evaluate(FOLD)
    if seen.name in AUDITED_IN_THE_DARK:
        assert seen.audit(axe) == []


# -- the book as a whole ------------------------------------------------------------------------------


def test_every_listed_page_is_built(book_site):
    assert {*BOOK, "404.html"} <= set(pages.built(book_site)), "make book"


def test_links_lead_somewhere(book_site):
    assert pages.dead_links(book_site) == []


def test_a_link_in_the_text_moves_a_figure(browser, fixture_site):
    assert not [link for link in pages.dead_links(fixture_site) if "fig=" in link]
    with Visit(browser, fixture_site / "book/parts.html") as seen:
        page, said = seen.page, seen.page.locator(".rt-fig .rt-now")
        before = said.inner_text()
        page.get_by_role("link", name="the same element of the transpose").click()
        assert said.inner_text().startswith("After x.t() the strides are")
        assert page.locator(".rt-fig").evaluate("figure => figure === document.activeElement")
        page.go_back()
        page.wait_for_function("text => document.querySelector('.rt-fig .rt-now').textContent === text", arg=before)
        assert seen.problems == []


def test_the_button_to_the_top_does_not_lie_on_a_figure_in_use(browser, fixture_site):
    with Visit(browser, fixture_site / "book/parts.html") as seen:
        button = seen.page.locator("#pst-back-to-top")
        for place, visibility in ((".rt-fig button", "hidden"), (".bd-article a", "visible")) * 2:
            seen.page.locator(place).filter(visible=True).first.focus()
            assert button.evaluate("one => getComputedStyle(one).visibility") == visibility


def test_nothing_is_loaded_from_elsewhere(book_site):
    assert pages.foreign_loads(book_site) == []


def test_the_site_carries_the_package_that_its_notebooks_need(book_site):
    [wheel] = (book_site / "_downloads").glob("*.whl")
    assert "readtorch/_checkout/tests/allocator/replay.py" in zipfile.ZipFile(wheel).namelist()
    notebook = (book_site / "_sources/book/autograd.ipynb").read_text(encoding="utf8")
    assert f"./{wheel.name}[" in notebook or "readtorch[show" in notebook  # else from the repository or the site
    assert f"_downloads/{wheel.name}" in (book_site / "book/autograd.html").read_text(encoding="utf8")


def test_the_front_door_leads_to_the_first_page(browser, book_site):
    page = browser.new_page()
    page.goto(f"file://{book_site}/index.html")
    page.wait_for_url("**/book/index.html", timeout=5_000)
    page.context.close()


CHAPTERS = {  # what is typed: how the chapter that is about it begins
    "__setattr__": "Module and __setattr__",
    "torch.nn.Module": "Module and __setattr__",
    "state_dict": "state_dict",
    "c10::Storage": "Tensor and Storage",
    "hooks": "Hooks",
}


@pytest.mark.parametrize("query", CHAPTERS)
def test_search_names_the_chapter_among_the_first(browser, book_site, query):
    with Visit(browser, book_site / "search.html", query=f"?q={quote(query)}") as seen:
        first = seen.page.locator("#rt-search-results a").all_inner_texts()[:5]  # the API reference is there, too
        assert any(title.startswith(CHAPTERS[query]) for title in first)


QUESTIONS = {  # what is typed: what stands among the first five, and in which chapter ("": it is a chapter)
    "what does pin_memory do": ("What does pin_memory do?", "Questions"),
    "what is contiguous": ("contiguous", "Glossary"),
    "how does the dispatcher choose a kernel": ("dispatcher", "Glossary"),
    "why does my model give different results in eval": (
        "Why does my model give different results in eval()?",
        "Questions",
    ),
    "what is a strided tensor": ("What is a strided tensor?", "Questions"),
    "what does retain_graph do": ("What does retain_graph keep?", "Questions"),
    "why is my gpu memory not freed": ("Why is my GPU memory not freed?", "Questions"),
    "what does retain_graph keep": ("What does retain_graph keep?", "Questions"),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_search_answers_questions_in_words(browser, book_site, question):
    """The words that make it a question stand everywhere and nowhere: the others decide, and not all of them are needed."""
    with Visit(browser, book_site / "search.html", query=f"?q={quote(question)}") as seen:
        found = seen.page.eval_on_selector_all(
            "#rt-search-results li",
            """found => found.map(one => [
            one.querySelector('a'), one.querySelector('.rt-search-page')].map(part => (part?.textContent ?? '').trim()))""",
        )
        title, chapter = QUESTIONS[question]
        assert [title, chapter and f"in {chapter}"] in found[:5]


@pytest.mark.parametrize("name", ["CUDACachingAllocator", "aten::add", "Engine::execute", "native_functions.yaml"])
def test_search_knows_names_of_the_reference(browser, book_site, name):
    with Visit(browser, book_site / "search.html", query=f"?q={quote(name)}") as seen:
        seen.page.locator("#rt-search-results mark", has_text=name).first.wait_for(timeout=5_000)
