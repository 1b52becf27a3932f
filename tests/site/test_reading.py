"""What a reader does on a page: unfold, switch, copy, search, change colours. Without a server."""

import base64
from urllib.parse import quote

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture
def parts(fixture_site):
    return fixture_site / "book/parts.html"


def test_two_panes_stand_side_by_side_where_there_is_room(visit, parts):
    with visit(parts, width=1400) as seen:
        theirs, ours = (
            seen.page.locator(f".rt-source:not(.rt-single) .rt-{side}").bounding_box() for side in ("theirs", "ours")
        )
        assert theirs["y"] == ours["y"]
        assert ours["x"] >= theirs["x"] + theirs["width"]
        assert not seen.page.locator(".rt-switch").is_visible()


def test_one_pane_at_a_time_where_there_is_not(visit, parts):
    with visit(parts, width=390) as seen:
        theirs, ours = (seen.page.locator(f".rt-source:not(.rt-single) .rt-{side}") for side in ("theirs", "ours"))
        assert theirs.is_visible() and not ours.is_visible()
        seen.page.locator(".rt-pick-theirs").focus()
        seen.page.keyboard.press("ArrowRight")
        assert ours.is_visible() and not theirs.is_visible()


def test_corresponding_lines_can_be_aligned(visit, book_site):
    """In the chapter on the dispatcher: the first lines of each pair, side by side, until the switch is put back."""
    tops = """() => [...new Set([...document.querySelectorAll('.rt-source:has(.rt-align) .rt-letter')]
        .map(e => e.dataset.letter))].map(letter => ['theirs', 'ours'].map(side => {
            const source = document.querySelector('.rt-source:has(.rt-align)');
            const found = source.querySelector(`.rt-${side} .rt-letter[data-letter="${letter}"]`);
            return found && Math.round(found.parentElement.getBoundingClientRect().top - source.getBoundingClientRect().top);
        })).filter(([a, b]) => a && b)"""
    with visit(book_site / "book/one_operator_call.html", width=1400) as seen:
        before = seen.page.evaluate(tops)
        seen.page.locator(".rt-align").first.check()
        aligned = seen.page.evaluate(tops)
        assert len(aligned) >= 2 and sum(abs(a - b) <= 1 for a, b in aligned) >= 2
        assert sum(abs(a - b) <= 1 for a, b in before) < sum(abs(a - b) <= 1 for a, b in aligned)
        seen.page.locator(".rt-align").first.uncheck()
        assert seen.page.evaluate(tops) == before


def test_folded_lines_open_in_place(visit, parts):
    with visit(parts) as seen:
        folded = seen.page.locator(".rt-theirs .rt-folded").first
        line = folded.locator(".rt-line").first
        assert not line.is_visible()
        folded.locator("summary").focus()
        seen.page.keyboard.press("Enter")
        assert line.is_visible()


def test_the_line_that_says_the_same_opens_the_code_that_compared(visit, parts):
    with visit(parts) as seen:
        cell = seen.page.locator(".cell:has(.rt-same)")
        line, code = cell.locator("summary"), cell.locator("pre")
        assert line.inner_text().strip() == "✓ the same in readtorch: values"
        assert not code.is_visible()
        line.focus()
        seen.page.keyboard.press("Enter")
        assert 'show.same("values")' in code.inner_text() and code.is_visible()
        assert "run once more" in cell.inner_text()


def test_a_long_line_of_code_hangs_on_a_phone_and_is_copied_whole(visit, parts):
    copied = """selector => {
        getSelection().selectAllChildren([...document.querySelectorAll(selector)].at(-1));
        return getSelection().toString();
    }"""
    longest = ".tag_hide-input .cell_input pre"
    texts = []
    for width in (1400, 390):
        with visit(parts, width=width) as seen:
            seen.page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
            texts.append(seen.page.evaluate(copied, longest))
            lines = seen.page.locator(f"{longest} .rt-l")
            heights = [line.bounding_box()["height"] for line in lines.all()]
    assert texts[0] == texts[1] and texts[0].startswith("for i in range(3):\n    print(i, ")
    assert heights[-1] > 2 * heights[-2]


def test_copied_source_is_code_alone(visit, parts):
    with visit(parts) as seen:
        copied = seen.page.evaluate("""() => {
            const panes = [...document.querySelectorAll('.rt-single .rt-code pre')];
            getSelection().selectAllChildren(panes[0]);
            return getSelection().toString();
        }""")
        assert copied.startswith('def digest(name: str) -> str:\n    """')
        compile(copied, "copied", "exec")


def test_letters_tie_lines_to_the_legend(visit, parts):
    with visit(parts) as seen:
        legend = seen.page.locator(".rt-legend li")
        assert [" ".join(text.split()) for text in legend.all_inner_texts()] == [
            "A: first this is done <here> & there",
            "B: and then that",
        ]
        letters = seen.page.eval_on_selector_all(".rt-ours .rt-letter", "found => found.map(one => one.dataset.letter)")
        assert letters == ["A", "B", "C"]


def test_a_solution_opens_by_keyboard(visit, parts):
    with visit(parts) as seen:
        solution = seen.page.locator(".solution.dropdown").first
        code = solution.locator(".cell_input").first
        assert not code.is_visible()
        seen.page.locator(".solution.dropdown .toggle-button, .solution.dropdown button").first.focus()
        seen.page.keyboard.press("Enter")
        seen.page.wait_for_timeout(300)
        assert code.is_visible()
        assert "right" in solution.locator(".cell_output").first.inner_text()


# Of the formula's picture: the columns that are inked, and the longest unbroken run in one of its uppermost rows.
BAR = """async (source) => {
    const image = new Image();
    image.src = source;
    await image.decode();
    const canvas = Object.assign(document.createElement('canvas'), {width: image.width, height: image.height});
    const g = canvas.getContext('2d');
    g.drawImage(image, 0, 0);
    const {data} = g.getImageData(0, 0, image.width, image.height);
    const inked = (x, y) => data[4 * (y * image.width + x)] < 128;
    let left = image.width, right = 0, longest = 0;
    for (let y = 0; y < image.height; y++) {
        let run = 0;
        for (let x = 0; x < image.width; x++) {
            if (inked(x, y)) [left, right] = [Math.min(left, x), Math.max(right, x + 1)];
            run = inked(x, y) ? run + 1 : 0;
            if (y < image.height / 4) longest = Math.max(longest, run);
        }
    }
    return [right - left, longest];
}"""


def test_the_bar_of_a_mean_reaches_over_all_of_it(visit, parts):
    """Over g alone it would say something else: the square of a mean."""
    with visit(parts) as seen:
        seen.page.locator("math .rt-overbar").wait_for(state="attached")
        formula = seen.page.locator("math:has(.rt-overbar)").first
        formula.evaluate("formula => formula.style.fontSize = '80px'")
        picture = base64.b64encode(formula.screenshot()).decode()
        width, bar = seen.page.evaluate(BAR, f"data:image/png;base64,{picture}")
        assert width > 60 and bar > 0.95 * width, (bar, width)


@pytest.mark.parametrize("motion", ["reduce", "no-preference"])
def test_nothing_fades_in_for_those_who_asked_for_rest(visit, parts, motion):
    with visit(parts) as seen:
        seen.page.emulate_media(reduced_motion=motion)
        moving = seen.page.evaluate("""() => {
            for (const cell of document.querySelectorAll('.cell details')) cell.open = true;
            document.querySelector('.solution .toggle-button').click();
            return document.getAnimations().length;
        }""")
        assert (moving == 0) == (motion == "reduce"), "the theme's own fading is what is switched off"


SEARCHES = {  # what is typed: title of the section that comes first
    "footnotes": "Every part of a chapter",
    "exercises": "Exercises",
    "torch.nn.Module.__setattr__": "Where to read it",
    "__SETATTR__": "Side by side",
    "setattr": "Side by side",
    "nn.Module.__set": "Where to read it",
    "torch::autograd::Engine": "Where to read it",
    "autograd.Engine.execute": "Where to read it",
    "native_functions.yaml": "Where to read it",
    "source_sink_of_nothing": None,
    "TORCH_CHECK": "Cells",
    "matplotlib.pyplot": "Cells",
    "somewhere.else.savefig_of": None,
    "every part of a chapter": "Every part of a chapter",
}


@pytest.mark.parametrize("query", SEARCHES)
def test_search_knows_words_and_code_names(visit, fixture_site, query):
    with visit(fixture_site / "search.html", query=f"?q={quote(query)}") as seen:
        # (the fixture's index of objects has the names as well)
        found = seen.page.locator("#rt-search-results a[href*='parts.html']").all_inner_texts()
        assert found[:1] == ([SEARCHES[query]] if SEARCHES[query] else [])
        assert query in seen.page.locator("#rt-search-status").inner_text()
        assert seen.problems == []


def test_what_is_found_is_shown_and_leads_to_its_section(visit, fixture_site):
    with visit(fixture_site / "search.html", query="?q=ones(3)") as seen:
        around = seen.page.locator(".rt-search-excerpt").first
        around.locator("mark").first.wait_for(timeout=5_000)
        assert "torch.ones(2) @ torch.ones(3)" in around.inner_text()
        assert around.locator("mark").first.inner_text() == "ones"
        seen.page.locator("#rt-search-results a").first.click()
        seen.page.wait_for_url("**/book/parts.html#cells")
        assert seen.problems == []


@pytest.mark.parametrize(
    ("query", "title", "anchor"),
    [
        ("update_bn", "readtorch.optim.swa_utils.update_bn", "readtorch.optim.swa_utils.update_bn"),
        ("update bn", "readtorch.optim.swa_utils.update_bn", "readtorch.optim.swa_utils.update_bn"),
        ("quoin", "quoin (of a wall)", "term-quoin-of-a-wall"),
    ],
)
def test_entries_and_terms_are_found_one_by_one(visit, fixture_site, query, title, anchor):
    with visit(fixture_site / "search.html", query=f"?q={quote(query)}") as seen:
        link = seen.page.locator("#rt-search-results a").first
        assert link.inner_text() == title
        link.click()
        seen.page.wait_for_url(f"**/book/api.html#{anchor}")
        assert seen.page.locator(f"[id='{anchor}']").count() == 1
        assert seen.problems == []


@pytest.mark.parametrize(("query", "better"), [("exercsies", "exercises"), ("setatrt", "__setattr__")])
def test_a_misspelt_word_gets_a_suggestion(visit, fixture_site, query, better):
    with visit(fixture_site / "search.html", query=f"?q={quote(query)}") as seen:
        status = seen.page.locator("#rt-search-status")
        assert "Did you mean" in status.inner_text() and better in status.inner_text()
        status.locator("a").click()
        seen.page.wait_for_url(f"**/search.html?q=*{better}*")
        seen.page.locator("#rt-search-results a").first.wait_for(timeout=5_000)
        assert seen.problems == []


def test_search_is_reached_from_every_page_by_keyboard(visit, parts):
    with visit(parts) as seen:
        seen.page.keyboard.press("Control+k")
        seen.page.keyboard.type("numbers")
        seen.page.keyboard.press("Enter")
        seen.page.wait_for_url("**/search.html?q=numbers")


def test_the_colour_button_goes_through_both_modes(visit, parts):
    with visit(parts) as seen:
        modes = set()
        for _ in range(3):
            seen.page.locator(".theme-switch-button").first.click()
            modes.add(seen.page.evaluate("document.documentElement.dataset.theme"))
        assert modes == {"light", "dark"}


def test_the_notebook_is_in_the_download_menu(visit, parts):
    with visit(parts) as seen:
        link = seen.page.locator("a.btn-download-notebook-button, a[href$='_sources/book/parts.ipynb']")
        assert link.count() == 1
