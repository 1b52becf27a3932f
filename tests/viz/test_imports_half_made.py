"""The figure of half-made modules: its model against Python's own import, on random packages."""

import ast
import json
import random
import re
import subprocess
import sys

import pytest

from readtorch import viz
from readtorch.viz.figures import imports_half_made
from readtorch.viz.figures.imports_half_made import EXAMPLES, FIGURE, resolved
from readtorch.viz.inputs import Refusal

# Runs each case with Python's import. Its two switches are Python's `_load_unlocked`, written anew.
HARNESS = """
import contextlib, importlib.util, io, json, pathlib, re, sys, tempfile, types, warnings
from importlib import _bootstrap

sys.dont_write_bytecode = True
warnings.simplefilter("ignore")


def loader(early, removed):
    def _load_unlocked(spec):
        module = _bootstrap.module_from_spec(spec)
        spec._initializing = True
        try:
            if early:
                sys.modules[spec.name] = module
            try:
                spec.loader.exec_module(module)
            except BaseException:
                if removed:
                    sys.modules.pop(spec.name, None)
                raise
            sys.modules.pop(spec.name, None)
            sys.modules[spec.name] = module
        finally:
            spec._initializing = False
        return module
    return _load_unlocked


class Extension:
    def __init__(self, text):
        self.text = text

    def create_module(self, spec):
        module = types.ModuleType(spec.name)
        exec(self.text, vars(module))
        return module

    def exec_module(self, module):
        pass


class Finder:
    def __init__(self, folder, texts):
        self.folder, self.texts = folder, texts

    def find_spec(self, name, path=None, target=None):
        if name in self.texts and name.rpartition(".")[2] == "_C":
            file = self.folder / (name.replace(".", "/") + ".so")
            return importlib.util.spec_from_file_location(name, file, loader=Extension(self.texts[name]))


def run(case, folder):
    texts = case["texts"]
    for name, text in texts.items():
        path = folder / name.replace(".", "/")
        if any(other.startswith(name + ".") for other in texts):
            path = path / "__init__"
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.rpartition(".")[2] != "_C":
            path.with_suffix(".py").write_text(text)
    main, output = {"__name__": "__main__"}, []
    clean = lambda words: re.sub(" at 0x[0-9a-f]+", "", words.replace(str(folder), "…"))
    sys.displayhook = lambda value: value is None or print(repr(value))
    sys.path.insert(0, str(folder))
    sys.meta_path.insert(0, Finder(folder, texts))
    patched = _bootstrap._load_unlocked
    if not (case["early"] and case["removed"]):
        _bootstrap._load_unlocked = loader(case["early"], case["removed"])
    try:
        for line in case["program"]:
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                try:
                    exec(compile(line, "<program>", "single"), main)
                    error = None
                except Exception as raised:
                    error = f"{type(raised).__name__}: {raised}"
            output += [clean(words) for words in [*printed.getvalue().splitlines(), *([error] if error else [])]]
        names = lambda space: [
            (name, clean(repr(value))) for name, value in space.items() if name == "__all__" or not name.startswith("__")
        ]
        found = {name: names(vars(sys.modules[name])) if name in sys.modules else None for name in texts}
    finally:
        del sys.path[0], sys.meta_path[0]
        _bootstrap._load_unlocked = patched
        for name in texts:
            sys.modules.pop(name, None)
    return {"output": output, "modules": found, "main": names(main)}


base = pathlib.Path(tempfile.mkdtemp())
sys.setrecursionlimit(300)
for number, case in enumerate(json.load(sys.stdin)):
    print(json.dumps(run(case, base / str(number))))
"""


def in_python(cases):
    done = subprocess.run(
        [sys.executable, "-c", HARNESS], input=json.dumps(cases), capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def case_of(inputs):
    words, texts = resolved(inputs)
    return {"texts": texts, "program": words.splitlines(), "early": inputs["early"], "removed": inputs["removed"]}


def in_figure(inputs, monkeypatch):
    """What the figure's model says at the end, in the words of the harness."""
    monkeypatch.setattr(imports_half_made, "short", imports_half_made.repr_of)
    result = FIGURE.model(inputs)
    last = result["steps"][-1]
    names = lambda entries: [[entry["name"], entry["value"]] for entry in entries]
    modules = {
        name: names(seen["names"]) if seen["state"] != "absent" else None
        for name, seen in zip(result["names"], last["modules"])
    }
    return {"output": last["output"], "modules": modules, "main": names(last["names"])}


def without_words(told):
    """Python's releases differ in the words of errors."""
    return [re.sub(r"^(\w+Error): .*", r"\1", line) for line in told]


def assert_as_python(inputs, ours, theirs):
    about = f"{json.dumps(inputs, indent=1)}\nfigure {ours}\nPython {theirs}"
    if any("RecursionError" in line for line in ours["output"] + theirs["output"]):
        at = [[line.startswith("RecursionError") for line in one["output"]].index(True) for one in (ours, theirs)]
        assert at[0] <= at[1], about  # a line that prints does it oftener where the recursion is deeper
        return
    if sys.version_info[:2] != (3, 11):
        ours["output"], theirs["output"] = without_words(ours["output"]), without_words(theirs["output"])
    assert ours == theirs, about


@pytest.mark.parametrize("seed", range(4))
def test_random_packages(monkeypatch, seed):
    generator, drawn, told = random.Random(seed), [], []
    while len(drawn) < 400:
        inputs = FIGURE.random_inputs(generator)
        try:
            told.append(in_figure(inputs, monkeypatch))
        except Refusal:
            continue
        drawn.append(inputs)
    for inputs, ours, theirs in zip(drawn, told, in_python([case_of(one) for one in drawn]), strict=True):
        assert_as_python(inputs, ours, theirs)


SWITCHES = [(True, True), (True, False), (False, True)]


@pytest.mark.parametrize("early, removed", SWITCHES)
def test_the_examples(monkeypatch, early, removed):
    every = [FIGURE.read({"example": key, "early": early, "removed": removed}) for key in EXAMPLES]
    for inputs, theirs in zip(every, in_python([case_of(one) for one in every]), strict=True):
        assert_as_python(inputs, in_figure(inputs, monkeypatch), theirs)


@pytest.mark.parametrize(
    "example, first",
    [
        ("order", "\"Python's\""),
        ("too_late", "\"C's\""),
        ("too_early", "AttributeError: partially initialized module 'tiny' has no attribute 'float32' (most likely due to a circular import)"),
        ("torch_py", "AttributeError: partially initialized module 'torch' has no attribute 'ones' (most likely due to a circular import)"),
        ("D", "ImportError: cannot import name 'x' from partially initialized module 'tiny_a' (most likely due to a circular import) (…/tiny_a.py)"),
    ],
)  # fmt: skip
def test_what_the_chapter_says_of_them(example, first):
    assert FIGURE.result(example=example)["steps"][-1]["output"][0] == first


def test_who_set_a_name():
    """The chapter's riddles: what C++ has put into a half-made module, and who replaced what."""
    last = FIGURE.result()["steps"][-1]["modules"][0]
    history = {entry["name"]: entry["history"] for entry in last["names"]}
    assert [(one["module"], one["line"]) for one in history["float32"]] == [("tiny._C", 3)]
    assert [(one["line"], one["value"]) for one in history["split"]] == [(6, '"C\'s"'), (7, '"Python\'s"')]
    assert history["_C"][0]["by"] == "the import" and list(history)[0] == "_C"


def test_an_extension_is_entered_when_its_code_has_run():
    steps = FIGURE.result()["steps"]
    inside = [
        step
        for step in steps
        if step["stack"] and step["stack"][-1]["module"] == "tiny._C" and not step["stack"][-1]["function"]
    ]
    assert inside and all(
        step["modules"][0]["state"] == "half made" and step["modules"][1]["state"] == "absent" for step in inside
    )


@pytest.mark.parametrize(
    "changes, said",
    [
        ({"names": "a, b.c"}, "b.c needs a module b."),
        ({"names": "a, a"}, "Two modules have the same name."),
        ({"names": "1a"}, "1a is not a name, or names joined by dots, such as tiny.functional."),
        ({"names": ""}, "Name one to four modules, separated by commas."),
        ({"names": "time"}, "time is built into Python, which looks for no file of that name."),
        ({"names": "os, os.path"}, "os is in sys.modules when Python starts: no file of that name is looked for."),
        ({"one": "x = 1; def f(): pass"}, "a, line 1: “x = 1; def f(): pass” is not known here."),
        ({"program": "import a\nif a: pass"}, "The program, line 2: “if a: pass” is not known here."),
        ({"one": "if x: pass"}, "a, line 1: “if x: pass” is not known here."),
        ({"one": "x = 1\n  y = 2"}, "a, line 2 begins with a space"),
        ({"one": "x = len"}, "a, line 1: len is a name of Python's own."),
        ({"one": "x = 1\ny = x.real"}, "The attributes of a int, such as real, are not known here."),
        ({"one": "\n".join("x" * 20)}, "a has more than 14 lines."),
        ({"one": "def f(): g(); g()\ndef g(): h(); h()\ndef h(): i(); i()\ndef i(): j(); j()\ndef j(): k(); k()\ndef k(): l(); l()\ndef l(): m(); m()\ndef m(): n(); n()\ndef n(): pass\nf()"}, "These modules take more than 400 steps."),
    ],
)  # fmt: skip
def test_refusals(changes, said):
    with pytest.raises(Refusal) as refused:
        FIGURE.result(**({"example": "", "program": "import a", "names": "a", "one": "x = 1"} | changes))
    assert str(refused.value).startswith(said)


def test_an_error_ends_its_line_of_the_program():
    told = lambda program: FIGURE.result(example="", names="a", one="x = 1\ny = missing", program=program)["steps"][-1][
        "output"
    ]
    error = "NameError: name 'missing' is not defined"
    assert told("import a; import a; 5") == [error] and told("import a\nimport a\n5") == [error, error, "5"]


@pytest.mark.skipif(
    sys.version_info[:2] != (3, 11) or sys.platform != "linux",
    reason="what is built in differs between releases and systems",
)
def test_names_that_no_file_can_take():
    program = (
        "import sys, _imp; print([*sys.builtin_module_names, *_imp._frozen_module_names()]); print([*sys.modules])"
    )
    bare, with_site = (
        [ast.literal_eval(line) for line in subprocess.check_output([sys.executable, *flags, "-c", program], text=True).splitlines()]
        for flags in (["-I", "-S"], ["-I"])
    )  # fmt: skip
    assert set(imports_half_made.BUILT_IN) <= set(bare[0]) and set(imports_half_made.LOADED) <= set(with_site[1])
    refused = {*imports_half_made.BUILT_IN, *imports_half_made.LOADED}
    assert {name.partition(".")[0] for name in bare[1]} <= refused


# ---- in a browser


@pytest.fixture
def opened(visit, page_with):
    with visit(page_with(viz.figure("imports_half_made"))) as seen:
        yield seen.page
        assert seen.problems == []


def output(page):
    return page.locator(".rt-hm-out").inner_text()


@pytest.mark.browser
@pytest.mark.slow
def test_a_line_is_moved_and_another_split_wins(opened):
    tiny = opened.get_by_label("the text of tiny", exact=True)
    tiny.focus()
    opened.keyboard.press("Control+End")
    opened.keyboard.press("Alt+ArrowUp")
    assert output(opened) == '"C\'s"' and tiny.input_value().endswith("split = _C._VariableFunctions.split")
    assert opened.locator("[data-focus=example]").input_value() == ""
    opened.keyboard.press("Alt+ArrowUp")
    assert output(opened).startswith("AttributeError: partially initialized module 'tiny' has no attribute 'float32'")
    opened.get_by_role("button", name="Move the line at the caret down in tiny", exact=True).click()
    opened.get_by_role("button", name="Move the line at the caret down in tiny", exact=True).click()
    assert output(opened) == '"Python\'s"'
    opened.get_by_role("button", name="Undo").click()
    assert output(opened) == '"C\'s"'


@pytest.mark.browser
@pytest.mark.slow
def test_what_is_typed_runs_and_what_is_not_known_waits(opened):
    tiny = opened.get_by_label("the text of tiny", exact=True)
    tiny.focus()
    opened.keyboard.press("Control+End")
    opened.keyboard.type("\nsplit = 5, p.", delay=5)
    refusal = opened.locator(".rt-refusal")
    assert "tiny, line 8" in refusal.inner_text() and tiny.get_attribute("aria-invalid") is not None
    for _ in range(4):
        opened.keyboard.press("Backspace")
    assert refusal.inner_text() == "" and output(opened) == "5" and tiny.input_value().endswith("\nsplit = 5")
    opened.get_by_role("button", name="split 5", exact=False).first.click()
    assert "replaced with 5, by line 8 of tiny" in opened.locator(".rt-hm-who").inner_text()
    opened.locator("[data-focus=example]").select_option("torch_py")
    assert tiny.count() == 0 and output(opened) == "no output yet"


@pytest.mark.browser
@pytest.mark.slow
def test_what_ran_last_is_pale_while_a_text_cannot_be_read(opened):
    paleness = lambda: {
        opened.locator(part).first.evaluate("part => getComputedStyle(part).opacity")
        for part in (
            ".rt-now",
            ".rt-hm-row:has(.rt-hm-stack)",
            ".rt-hm-head .rt-hm-state",
            ".rt-hm-names",
            ".rt-hm-out",
        )
    }
    tiny = opened.get_by_label("the text of tiny", exact=True)
    tiny.focus()
    opened.keyboard.press("Control+End")
    opened.keyboard.type("\nfor", delay=5)
    assert paleness() == {"0.45"} and tiny.evaluate("text => getComputedStyle(text).opacity") == "1"
    opened.keyboard.press("Escape")
    assert paleness() == {"1"}


@pytest.mark.browser
@pytest.mark.slow
def test_a_tab_says_whose_dictionary_has_changed(opened):
    opened.set_viewport_size({"width": 390, "height": 800})
    opened.evaluate("location.hash = '#fig=imports_half_made&example=order&step=19'")
    opened.wait_for_function("document.querySelector('.rt-count').textContent.startsWith('step 19')")
    shown = opened.locator(".rt-hm-tab[aria-pressed=true]")
    assert shown.inner_text().startswith("tiny._C")
    (marked,) = opened.locator(".rt-hm-tab", has=opened.locator(".rt-hm-mark")).all()
    assert marked.inner_text().startswith("● tiny ")


@pytest.mark.browser
@pytest.mark.slow
def test_undo_of_a_moved_line_and_a_program_of_two_lines(opened):
    tiny = opened.get_by_label("the text of tiny", exact=True)
    before = tiny.input_value()
    tiny.focus()
    opened.keyboard.press("Control+End")
    opened.keyboard.press("Alt+ArrowUp")
    opened.keyboard.press("Control+z")
    assert tiny.input_value() == before
    opened.keyboard.press("Control+y")
    assert output(opened) == '"C\'s"'
    program = opened.get_by_label("the program", exact=True)
    program.focus()
    opened.keyboard.press("Control+End")
    opened.keyboard.type("\nmissing; 1\n2", delay=5)
    assert output(opened).splitlines() == ['"C\'s"', "NameError: name 'missing' is not defined", "2"]


@pytest.mark.browser
@pytest.mark.slow
def test_arrows_are_the_players_and_a_link_leads_to_a_step(opened):
    opened.evaluate("location.hash = '#fig=imports_half_made&example=too_early&step=22'")
    opened.wait_for_function("document.querySelector('.rt-count').textContent.startsWith('step 22')")
    assert opened.locator("[data-focus=example]").input_value() == "too_early"
    opened.locator(".rt-fig").evaluate("figure => figure.focus()")
    opened.keyboard.press(".")
    assert opened.locator(".rt-count").inner_text().startswith("step 23")
    opened.locator(".rt-hm-tab, .rt-hm-module").first.wait_for(state="attached")
