"""Figures with inputs: both models of each give the same, and the kit does what it promises in a real browser."""

import json
import math
import random
import re
from pathlib import Path

import pytest
import torch

from readtorch import viz
from readtorch.viz._base import STATIC, front_end
from readtorch.viz._widgets import FigureWidget, widget_of
from readtorch.viz.figure_kit import Figure, find, last_step, names, sentence
from readtorch.viz.inputs import Choice, Expression, Integer, Integers, Number, Refusal, Switch, Text
from tests.browsing import examine

NAMES = pytest.mark.parametrize("name", names())
VIEWS = [(1400, "light"), (390, "dark")]  # both widths and both schemes, in half of the time of all four
SCREEN = 900  # pixels: what the reader changes and what comes of it stand on one screen
GUIDE = Path(__file__).resolve().parents[2] / "CONTRIBUTING.md"
DRAWS = 200

INPUTS = (
    Number("x", "rate", 0.5, low=-1, high=2.5),
    Integer("n", "count", 3, low=0, high=1_000_000, slider=True, unit="bytes"),
    Integers("sizes", "sizes", [3, 4], low=-2, high=9, longest=3),
    Choice("dtype", "type", "float32", options=["float32", "int64"]),
    Switch("on", "gradients", False),
    Text("word", "name", "x", longest=5),
    Expression("code", "program", "x.t()", longest=9, examples=("x", "x.t()")),
)


# ---- both models


class Scripts:
    """Front ends without a figure to draw: their models and their readers of inputs, in a page of the browser."""

    RUN = """([source, what, calls]) => {
        const { model, readInput, Refusal } = new Function(source)();
        return JSON.stringify(JSON.parse(calls).map(call => {
            try {
                return { value: what === "model" ? model(call) : readInput(...call) };
            } catch (error) {
                if (!(error instanceof Refusal)) throw error;
                return { refusal: error.message, instead: error.instead ?? null };
            }
        }));
    }"""

    def __init__(self, browser):
        self.page = browser.new_page()

    def run(self, esm, what, calls):
        source = re.sub(r"^export default.*", "return { model, readInput, Refusal };", esm, flags=re.MULTILINE)
        return json.loads(self.page.evaluate(self.RUN, [source, what, json.dumps(calls)]))


@pytest.fixture
def scripts(browser):
    made = Scripts(browser)
    yield made
    made.page.close()


def outcome(function, *arguments):
    try:
        return {"value": function(*arguments)}
    except Refusal as refusal:
        return {"refusal": str(refusal), "instead": refusal.instead}


def equal(one, other):
    """JSON is equal when its numbers are, up to what rounding does to them."""
    if isinstance(one, dict):
        return isinstance(other, dict) and one.keys() == other.keys() and all(equal(one[k], other[k]) for k in one)
    if isinstance(one, (list, tuple)):
        return isinstance(other, (list, tuple)) and len(one) == len(other) and all(map(equal, one, other))
    if isinstance(one, bool) or not isinstance(one, (int, float)):
        return type(one) is type(other) and one == other
    return type(other) is not bool and math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)


def assert_equal_models(scripts, figure, esm):
    generator = random.Random(21)
    inputs = [figure.read({}), *(figure.random_inputs(generator) for _ in range(DRAWS))]
    python = [outcome(figure.model, one) for one in inputs]
    for one, ours, theirs in zip(inputs, python, scripts.run(esm, "model", inputs), strict=True):
        assert equal(ours, theirs), f"{figure.name}({one})\nPython:     {ours}\nJavaScript: {theirs}"
    given = sum("value" in one for one in python)
    assert given > DRAWS / 4, f"{given} of {DRAWS} random inputs have a result: give the figure a `sample`"


@pytest.mark.browser
@pytest.mark.slow
@NAMES
def test_both_models_give_the_same(scripts, name):
    figure = find(name)
    assert_equal_models(scripts, figure, str(widget_of(figure)._esm))


@pytest.mark.browser
@pytest.mark.slow
def test_a_difference_between_the_models_is_found(scripts):
    inputs = (Integer("n", "n", 1, low=0, high=9),)
    wrong = Figure("wrong", "", inputs, lambda given: {"n": given["n"] // 2, "say": "half"}, lambda result, step: "")
    esm = front_end("_figure") + "const model = ({ n }) => ({ n: n / 2, say: 'half' });\nexport default {};"
    with pytest.raises(AssertionError, match="JavaScript"):
        assert_equal_models(scripts, wrong, esm)


@pytest.mark.browser
@pytest.mark.slow
def test_the_figure_of_the_guide(scripts):
    """The three files that CONTRIBUTING.md shows."""
    part = GUIDE.read_text(encoding="utf8").split("### A figure")[1].split("\n### ")[0]
    (python,) = re.findall(r"```python\n(.*?)```", part, re.DOTALL)
    model, drawing = re.findall(r"```js\n(.*?)```", part, re.DOTALL)
    module = {}
    exec(python, module)
    figure = module["FIGURE"]
    assert_equal_models(scripts, figure, front_end("_figure") + model + drawing)
    assert figure.picture(figure.result(size=1), 0).startswith("<svg")
    assert figure.result(size=1000)["block"] == 1024


TYPED = [
    "",
    " ",
    "3",
    "3.5",
    "-1",
    "1e-1",
    "1,000",
    "1,000,000.",
    "12,5",
    "0,125",
    "1,0000",
    "x",
    "3, 4",
    "(3, 4)",
    "[1 2 3]",
    "3,,4",
    "1, 2, 3, 4",
    "-3",
    "10",
    "on",
    "OFF",
]
TYPED += [
    "true",
    "float32",
    "int8",
    "abcdef",
    "x.t()",
    "a long program",
    "1e999",
    "٣",
    "+2",
    ".5",
    "5.",
    "1_0",
    "nan",
    "( )",
]
VALUES = {"x": [0, 3, 2.5], "n": [0, 2.5], "sizes": [[3, 4], [], [1, 2, 3, 4], [9, 10]], "on": [True, False]}


@pytest.mark.browser
@pytest.mark.slow
def test_both_read_what_is_typed_alike(scripts):
    calls = [(spec, value) for spec in INPUTS for value in [*TYPED, *VALUES.get(spec.name, [])]]
    esm = front_end("_figure") + "const model = null;\nexport default {};"
    found = scripts.run(esm, "read", [(spec.described(), value) for spec, value in calls])
    for (spec, value), theirs in zip(calls, found, strict=True):
        ours = outcome(spec.read, value)
        assert equal(ours, theirs), f"{spec.name}, {value!r}: {ours} in Python, {theirs} in JavaScript"


# ---- inputs and figures in Python


@pytest.mark.parametrize("spec", INPUTS, ids=lambda spec: spec.name)
def test_samples_are_good(spec):
    generator = random.Random(0)
    for _ in range(50):
        value = spec.sample(generator)
        assert spec.read(value) == value
    assert spec.read(spec.default) == spec.default


@pytest.mark.parametrize(
    "place, value, said",
    [
        (0, "3", "Rate takes a number from -1 to 2.5."),
        (0, "1,5", "Rate takes a number from -1 to 2.5."),
        (1, "2000000", "Count takes a whole number from 0 to 1,000,000."),
        (2, "1, x", "Sizes takes 0 to 3 whole numbers from -2 to 9, such as 3, 4."),
        (3, "int8", "Type is one of float32, int64."),
        (4, "perhaps", "Gradients is on or off."),
        (5, "too long", "Name takes at most 5 characters."),
    ],
)
def test_a_refusal_is_a_sentence(place, value, said):
    with pytest.raises(Refusal, match=re.escape(said)):
        INPUTS[place].read(value)


def test_an_unknown_figure_or_input():
    with pytest.raises(ValueError, match="there is no figure 'none'"):
        viz.figure("none")
    with pytest.raises(TypeError, match="has no input colour"):
        viz.figure(names()[0], colour="red")


def test_the_stylesheet_closes_each_block():
    """Without a brace, all that comes after a @container holds on narrow pages alone, and no browser says so."""
    depth = 0
    for number, line in enumerate((STATIC / "widgets.css").read_text(encoding="utf8").splitlines(), start=1):
        depth += line.count("{") - line.count("}")
        assert depth == 0 or not line.startswith("/*"), f"the comment in line {number} stands in an open block"
    assert depth == 0


@NAMES
def test_a_figure_without_javascript_has_a_picture_and_its_sentence(name):
    made = viz.figure(name)
    fallback = made.static_html().partition("<script")[0]
    assert '<img alt="' in fallback and "data:image/svg+xml" in fallback
    said = sentence(made.result, 0)
    assert made.figure.title and said[:1].isupper() | (not said[:1].isalpha()) and said.endswith((".", "!", "?"))
    for step in range(last_step(made.result) + 1):
        assert made.figure.picture(made.result, step).startswith("<svg")


@NAMES
def test_a_figure_has_its_three_files(name):
    figure = find(name)
    assert figure.name == name
    assert (STATIC / f"{name}.js").exists() and (STATIC / "models" / f"{name}.js").exists()
    assert not {one.name for one in figure.inputs} & {"step", "title", "data", "name", "fig"}


@NAMES
def test_a_kernel_sets_inputs_and_asks_for_the_result(name):
    made = viz.figure(name)
    drawn = made.figure.random_inputs(random.Random(1))
    if "value" in outcome(made.figure.model, drawn):
        made.inputs = drawn
        assert made.result == made.figure.model(drawn)
    with pytest.raises(Refusal):
        made.inputs = {made.figure.inputs[0].name: "no such value, and far too long for a text of an input" * 99}


# ---- in a browser


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.parametrize("view", VIEWS, ids=lambda view: f"{view[0]}-{view[1]}")
@NAMES
def test_loads_without_a_request_fits_one_screen_and_is_accessible(visit, axe, page_with, name, view):
    def fits(page):
        assert page.locator(".rt-fig").bounding_box()["height"] <= SCREEN

    examine(visit, axe, page_with(viz.figure(name)), *view, fits)


PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Figures</title><body><main>
<p><a id="go" href="#fig=strides&amp;sizes=2,6&amp;strides=6,1&amp;program=x.view(12)">two rows</a>
<a id="other" href="#fig=strides-2&amp;offset=3&amp;sizes=3&amp;strides=2&amp;program=x">the second</a></p>
<div style="height: 900px"></div>{figures}<div style="height: 900px"></div></main></body></html>"""


@pytest.fixture
def opened(visit, tmp_path):
    """Two stride figures in a long page with links, and the page's file."""
    file = tmp_path / "figures.html"
    figures = viz.strides().static_html() + viz.strides(program="x").static_html()
    file.write_text(PAGE.replace("{figures}", figures), encoding="utf8")
    with visit(file) as seen:
        yield seen
        assert seen.problems == []


class Hands:
    """The first figure of a page, by its parts."""

    def __init__(self, page, number=0):
        self.page = page
        self.figure = page.locator(".rt-fig").nth(number)

    def say(self):
        return self.figure.locator(".rt-now").inner_text()

    def refusal(self):
        return self.figure.locator(".rt-refusal").inner_text()

    def field(self, label):
        return self.figure.get_by_label(label, exact=True)

    def button(self, name):
        return self.figure.get_by_role("button", name=name, exact=True)


X_T = "After x.t() the strides are (1, 4); element [1, 0] is in cell 0 + 1·1 + 0·4 = 1."
X = "For x the strides are (4, 1); element [1, 0] is in cell 0 + 1·4 + 0·1 = 4."


@pytest.mark.browser
@pytest.mark.slow
def test_a_field_changes_the_result_and_a_refusal_keeps_it(opened):
    figure = Hands(opened.page)
    assert figure.say() == X_T
    figure.field("program").fill("x.t().view(12)")
    figure.field("program").press("Enter")
    assert figure.refusal().startswith("RuntimeError: view size is not compatible") and figure.say() == X_T
    assert figure.field("program").get_attribute("aria-invalid") == "true"
    described = figure.field("program").get_attribute("aria-describedby")
    assert opened.page.locator(f"#{described}").inner_text() == figure.refusal()
    figure.field("program").fill("x.t().reshape(12)")
    assert figure.refusal() == "" and "element [0] is in cell 0 + 0·1 = 0 of a new storage." in figure.say()
    assert figure.field("program").get_attribute("aria-invalid") is None
    figure.field("sizes").fill("3, x")
    opened.page.wait_for_timeout(800)
    assert figure.refusal() == "Sizes takes 0 to 4 whole numbers from 0 to 16, such as 3, 4."
    figure.field("sizes").press("Escape")
    assert figure.refusal() == "" and figure.field("sizes").input_value() == "3, 4"


@pytest.mark.browser
@pytest.mark.slow
def test_two_fields_that_must_agree_can_be_changed_one_after_the_other(opened):
    figure = Hands(opened.page, 1)
    figure.field("sizes").fill("12")
    figure.field("sizes").press("Enter")
    assert figure.refusal() == "RuntimeError: mismatch in length of strides and shape"
    figure.field("strides").fill("1")
    assert figure.refusal() == "" and figure.say() == "For x the strides are (1,); element [0] is in cell 0 + 0·1 = 0."


@pytest.mark.browser
@pytest.mark.slow
def test_undo_redo_and_reset(opened):
    page, figure = opened.page, Hands(opened.page, 1)
    figure.field("program").press("End")
    figure.field("program").press_sequentially(".t()")  # what is typed at a time is undone at a time
    assert figure.field("program").input_value() == "x.t()" and figure.say() == X_T
    figure.button(".view(-1)").click()
    assert "view size is not compatible" in figure.refusal()
    figure.button(".reshape(-1)").click()
    assert "of a new storage" in figure.say()
    figure.button("Undo").click()
    assert figure.say() == X_T
    page.keyboard.press("Control+z")
    assert figure.say() == X and figure.button("Undo").get_attribute("aria-disabled") == "true"
    page.keyboard.press("Control+Shift+z")
    assert figure.say() == X_T
    figure.button("Redo").click()
    assert "of a new storage" in figure.say()
    figure.button("Reset").click()
    assert figure.say() == X
    figure.button("Undo").click()
    assert "of a new storage" in figure.say()
    figure.button("Reset").click()
    figure.button("write ✱ to x[1, 0]").click()
    assert figure.figure.locator(".rt-cell.rt-is-pick").inner_text() == "✱"
    figure.button("Undo").click()
    assert figure.figure.locator(".rt-cell.rt-is-pick").inner_text() == "4"


@pytest.mark.browser
@pytest.mark.slow
def test_reset_takes_a_refusal_away_where_nothing_was_changed(opened):
    figure = Hands(opened.page, 1)
    field, stage = figure.field("sizes"), figure.figure.locator(".rt-drawing")
    kept = field.input_value()
    field.fill("3, x")
    field.press("Enter")
    assert figure.refusal() and field.get_attribute("aria-invalid") == "true"
    assert "rt-stale" in stage.get_attribute("class")
    figure.button("Reset").click()
    assert figure.refusal() == "" and field.input_value() == kept
    assert field.get_attribute("aria-invalid") is None
    assert "rt-stale" not in stage.get_attribute("class")
    assert figure.button("Undo").get_attribute("aria-disabled") == "true", "nothing was changed"


@pytest.mark.browser
@pytest.mark.slow
def test_arrows_move_in_the_tensor_in_the_storage_and_in_a_number(opened):
    page, figure = opened.page, Hands(opened.page)
    figure.figure.locator("[role=grid] [tabindex='0']").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    assert "element [2, 1] is in cell 0 + 2·1 + 1·4 = 6." in figure.say()
    assert figure.figure.locator(".rt-cell.rt-is-pick").inner_text() == "6"
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    assert "element [3, 1]" in figure.say()
    assert page.evaluate("document.activeElement.textContent") == "7"
    strides = figure.field("strides")
    strides.focus()
    strides.evaluate("field => field.setSelectionRange(0, 0)")
    page.keyboard.press("ArrowDown")
    assert strides.input_value() == "3, 1" and "After x.t() the strides are (1, 3)" in figure.say()


@pytest.mark.browser
@pytest.mark.slow
def test_a_link_moves_a_figure_and_back_returns(opened):
    page, figure, second = opened.page, Hands(opened.page), Hands(opened.page, 1)
    second.field("program").fill("x[1]")
    page.locator("#go").click()
    assert figure.say().startswith("After x.view(12) the strides are (1,)")
    assert page.evaluate("scrollY") > 500 and "rt-fig" in page.evaluate("document.activeElement.className")
    page.locator("#other").click()
    assert second.say() == "For x the strides are (2,); element [0] is in cell 3 + 0·2 = 3."
    figure.button("x").click()
    page.wait_for_timeout(500)
    assert page.url.endswith("#fig=strides&sizes=2,6&strides=6,1&program=x&fig=strides-2&sizes=3&strides=2&offset=3")
    page.go_back()
    page.wait_for_timeout(200)
    assert figure.say().startswith("After x.view(12)") and second.say().startswith("After x[1] ")
    page.go_back()
    page.wait_for_timeout(200)
    assert figure.say() == X_T and second.say().startswith("After x[1] ") and page.evaluate("scrollY") < 500
    page.go_forward()
    page.wait_for_timeout(200)
    assert figure.say().startswith("After x.view(12)")


@pytest.mark.browser
@pytest.mark.slow
def test_an_address_opens_the_state_and_a_bad_one_is_refused(opened):
    page = opened.page
    plain = page.url
    page.goto("about:blank")
    page.goto(f"{plain}#fig=strides-2&program=x.t()&index=2,1&fig=strides&sizes=nonsense")
    page.wait_for_selector(".rt-static[data-rt-mounted=yes] >> nth=1")
    page.wait_for_function("document.activeElement.classList.contains('rt-fig')")
    first, second = Hands(page), Hands(page, 1)
    assert "element [2, 1] is in cell 0 + 2·1 + 1·4 = 6." in second.say()
    assert first.say() == X_T and first.refusal().startswith("Sizes takes")
    second.button("Copy a link to this state").click()
    page.wait_for_function("[...document.querySelectorAll('.rt-refusal')].some(one => /link/.test(one.textContent))")
    assert page.url == f"{plain}#fig=strides-2&program=x.t()&index=2,1"


@pytest.mark.browser
@pytest.mark.slow
def test_a_link_to_a_refused_program_shows_program_and_refusal(opened):
    page, figure = opened.page, Hands(opened.page)
    page.evaluate("location.hash = '#fig=strides&program=x.t().view(12)'")
    page.wait_for_function("document.querySelector('.rt-refusal').textContent.includes('view size')")
    assert figure.field("program").input_value() == "x.t().view(12)" and figure.say() == X_T
    assert figure.figure.locator(".rt-stale").count() == 0
    page.evaluate("location.hash = '#fig=strides&sizes=3,4&strides=0,1&program=x'")
    page.wait_for_function("document.querySelector('.rt-refusal').textContent === ''")
    assert figure.say().startswith("For x the strides are (0, 1)")
    page.evaluate("location.hash = '#fig=strides&program=x.t().view(12)'")
    page.wait_for_function("document.querySelector('.rt-refusal').textContent.includes('view size')")
    assert figure.say() == X_T and figure.field("strides").input_value() == "4, 1"
    assert figure.field("program").input_value() == "x.t().view(12)"
    page.evaluate("location.hash = '#fig=strides&sizes=9,9&program=x'")
    page.wait_for_function("document.querySelector('.rt-refusal').textContent.includes('out of bounds')")
    assert figure.figure.locator(".rt-stale").count() == 1
    figure.button("x").click()
    assert figure.figure.locator(".rt-stale").count() == 0
    assert figure.refusal() == "" and figure.say() == X and figure.field("program").input_value() == "x"


@pytest.mark.browser
@pytest.mark.slow
def test_one_refused_field_does_not_hold_up_another(visit, page_with):
    with visit(page_with(viz.figure("training_step"))) as seen:
        figure = Hands(seen.page)
        sample, turn = figure.field("sample 1"), figure.field("iteration").first
        sample.fill("1, 2")
        sample.press("Enter")
        turn.fill("7")
        turn.press("Enter")
        assert turn.get_attribute("aria-invalid") is None
        assert "Loss in iteration 7:" in figure.figure.inner_text()
        assert sample.get_attribute("aria-invalid") == "true" and sample.input_value() == "1, 2"
        assert figure.refusal().startswith("A sample is four numbers")
        sample.fill("1, 2, 3, 4")
        assert figure.refusal() == "" and sample.get_attribute("aria-invalid") is None
        assert seen.problems == []


@pytest.mark.browser
@pytest.mark.slow
def test_a_mark_is_seen_in_both_tensors_and_the_storage_and_not_through_a_copy(opened):
    page, figure = opened.page, Hands(opened.page)
    marks = figure.figure.locator(".rt-is-pick, .rt-is-gold").filter(has_text="✱")
    figure.figure.locator("[role=gridcell].rt-is-pick").click()
    assert marks.count() == 3  # x, x.t() and the storage
    figure.button("take ✱ from x.t()[1, 0]").click()
    assert marks.count() == 0
    figure.button(".reshape(-1)").click()
    figure.figure.locator("[role=grid] [tabindex='0']").focus()
    page.keyboard.press("Enter")
    assert marks.count() == 2  # the copy and its storage, not x


@pytest.mark.browser
@pytest.mark.slow
def test_a_link_can_keep_what_the_reader_typed(visit, page_with):
    with visit(page_with(viz.figure("training_step"))) as seen:
        figure = Hands(seen.page)
        figure.field("sample 1").fill("1, 2, 3, 4")
        seen.page.evaluate("location.hash = '#fig=training_step&keep&step=5'")
        seen.page.wait_for_function("document.querySelector('.rt-count').textContent.startsWith('step 5')")
        assert figure.field("sample 1").input_value() == "1, 2, 3, 4"
        seen.page.evaluate("location.hash = '#fig=training_step&step=6'")
        seen.page.wait_for_function("document.querySelector('.rt-count').textContent.startsWith('step 6')")
        assert figure.field("sample 1").input_value().startswith("0.4457")
        assert seen.problems == []


@pytest.mark.browser
@pytest.mark.slow
def test_addresses_move_recordings_too(visit, page_with):
    x = torch.ones(2, requires_grad=True)
    figure = viz.autograd((x * 2).sum(), title="A small graph")
    with visit(page_with(figure)) as seen:
        page = seen.page
        page.locator(".rt-slider").focus()
        page.keyboard.press("ArrowRight")
        page.wait_for_timeout(500)
        assert "#fig=autograd&" in page.url and "&step=1" in page.url
        page.evaluate("location.hash = '#fig=autograd&step=2'")
        page.wait_for_function("document.querySelector('.rt-count').textContent.startsWith('step 2')")
        assert seen.problems == []


# ---- a figure of every kind of input, with steps


def described(given):
    return f"{given['n']} {given['unit']} at {given['x']:g}, {'on' if given['on'] else 'off'}, {given['word']}"


def probe_model(given):
    if given["n"] == 13:
        raise Refusal("Thirteen is refused.")
    return {"say": [f"Step {i} of {described(given)}." for i in range(given["n"])]}


PROBE = Figure(
    name="probe",
    title="Probe",
    inputs=(
        Number("x", "rate", 0.5, low=-1, high=2.5, step=0.25),
        Integer("n", "steps", 3, low=1, high=20, unit="steps", slider=True),
        Choice("unit", "unit", "bytes", options={"bytes": "bytes of it", "bits": "bits of it"}),
        Switch("on", "gradients", False),
        Text("word", "name", "w", longest=5),
    ),
    model=probe_model,
    picture=lambda result, step: "<svg></svg>",
)
PROBE_SCRIPT = """
const model = ({ n, unit, x, on, word }) => {
  if (n === 13) refuse("Thirteen is refused.");
  const about = `${n} ${unit} at ${x}, ${on ? "on" : "off"}, ${word}`;
  return { say: Array.from({ length: n }, (_, i) => `Step ${i} of ${about}.`) };
};
const draw = ({ result, step, go }) =>
  result.say.map((_, i) => h("button", { class: "rt-chip", "data-focus": i, onclick: () => go(i) }, `go to ${i}`));
export default { render: figure(model, draw) };
"""


@pytest.fixture
def probe(page_with):
    own = {"figure": PROBE, "kind": "probe", "_esm": front_end("_figure") + PROBE_SCRIPT}
    return page_with(type("Probe", (FigureWidget,), own)({}))


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.parametrize("view", VIEWS, ids=lambda view: f"{view[0]}-{view[1]}")
def test_every_kind_of_field_is_accessible(visit, axe, probe, view):
    examine(visit, axe, probe, *view)


@pytest.mark.browser
@pytest.mark.slow
def test_every_kind_of_field_by_keyboard(visit, probe):
    with visit(probe) as seen:
        page, figure = seen.page, Hands(seen.page)
        press = page.keyboard.press
        figure.field("rate").focus()
        press("ArrowUp")
        assert figure.say() == "Step 0 of 3 bytes at 0.75, off, w."
        slider = figure.figure.locator(".rt-inslider")
        assert slider.get_attribute("aria-valuetext") == "3 steps"
        slider.focus()
        for _ in range(2):
            press("ArrowRight")
        assert figure.say() == "Step 0 of 5 bytes at 0.75, off, w."
        assert slider.get_attribute("aria-valuetext") == "5 steps"
        figure.figure.get_by_label("unit").select_option("bits")
        figure.field("gradients").focus()
        press("Space")
        figure.field("name").fill("abc")
        assert figure.say() == "Step 0 of 5 bits at 0.75, on, abc."
        figure.field("name").focus()
        press(",")  # is written here, and steps elsewhere
        assert figure.say().endswith("on, abc,.")
        figure.button("go to 2").focus()
        press("Enter")
        assert (
            figure.say().startswith("Step 2 of 5") and page.evaluate("document.activeElement.textContent") == "go to 2"
        )
        press(".")
        assert figure.say().startswith("Step 3 of 5")
        figure.figure.locator("[aria-label='Step of Probe']").focus()
        press("End")
        spoken = figure.figure.locator("[aria-label='Step of Probe']").get_attribute("aria-valuetext")
        assert spoken == f"step 4 of 4: {figure.say()}"
        page.wait_for_timeout(500)
        assert page.url.endswith("#fig=probe&x=0.75&n=5&unit=bits&on=true&word=abc,&step=4")
        figure.field("steps").fill("2")
        assert figure.say().startswith("Step 1 of 2"), "a step that is gone gives way to the last"
        figure.field("steps").fill("13")
        figure.field("steps").press("Enter")
        assert figure.refusal() == "Thirteen is refused." and figure.say().startswith("Step 1 of 2")
        assert seen.problems == []
        page.wait_for_timeout(500)
        page.reload()
        page.wait_for_selector(".rt-static[data-rt-mounted=yes]")
        assert figure.say() == "Step 1 of 2 bits at 0.75, on, abc,."


@pytest.mark.browser
@pytest.mark.slow
def test_a_slider_that_is_dragged_is_undone_at_once(visit, probe):
    with visit(probe) as seen:
        figure = Hands(seen.page)
        box = figure.figure.locator(".rt-inslider").bounding_box()
        middle = box["y"] + box["height"] / 2
        seen.page.mouse.move(box["x"] + 30, middle)
        seen.page.mouse.down()
        for x in range(40, 170, 10):
            seen.page.mouse.move(box["x"] + x, middle)
        seen.page.mouse.up()
        assert "of 3 " not in figure.say()
        figure.button("Undo").click()
        assert figure.say() == "Step 0 of 3 bytes at 0.5, off, w."
        assert figure.button("Undo").get_attribute("aria-disabled") == "true"
