"""Quoting source: the right lines, from the right file, and nothing that has changed unnoticed."""

import importlib
import inspect
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch

from readtorch import show
from readtorch.show import _chapters, _links, _render
from readtorch.show._locate import Quote, locate
from readtorch.viz.record_core import CoreFunction

SETATTR = "torch.nn.Module.__setattr__"
SITE_PACKAGES = Path(torch.__file__).parents[1]
OUTSIDE = os.environ | {"PYTHONPATH": str(Path(show.__file__).parents[2])}


@pytest.fixture(autouse=True)
def same_seed_everywhere():
    """In place of the suite's fixture of that name: nothing here is random."""


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A module readtorch.quoted, written for the occasion: text -> None"""
    file = tmp_path / "quoted.py"
    monkeypatch.setattr("readtorch.__path__", [*sys.modules["readtorch"].__path__, str(tmp_path)])
    monkeypatch.setattr(_links, "our_root", lambda: tmp_path)

    def write(text):
        file.write_text(textwrap.dedent(text))
        sys.modules.pop("readtorch.quoted", None)

    yield write
    sys.modules.pop("readtorch.quoted", None)


# -- finding ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name, thing",
    [
        (SETATTR, torch.nn.Module.__setattr__),
        ("torch.nn.Module", torch.nn.Module),
        ("torch.nn.Module.__call__", torch.nn.Module._wrapped_call_impl),
        ("torch.nn.functional.relu", torch.nn.functional.relu),
        ("torch.Tensor.backward", torch.Tensor.backward),
        ("torch.nn.Linear.forward", torch.nn.Linear.forward),
        ("torch.optim.Optimizer.zero_grad", torch.optim.Optimizer.zero_grad),
        ("torch.fx.Node.args.fset", torch.fx.Node.args.fset),
    ],
)
def test_python_objects_are_quoted_as_inspect_finds_them(name, thing):
    lines, first = inspect.getsourcelines(inspect.unwrap(thing))
    quote = locate(name)
    assert "\n".join(quote.lines) == textwrap.dedent("".join(lines)).rstrip("\n")
    assert (quote.first, quote.last) == (max(first, 1), max(first, 1) + len(quote.lines) - 1)
    assert (SITE_PACKAGES / quote.path).samefile(inspect.getsourcefile(inspect.unwrap(thing)))


def test_a_link_holds_tag_path_and_lines():
    quote = locate(SETATTR)
    assert (
        quote.url
        == f"https://github.com/pytorch/pytorch/blob/v2.13.0/torch/nn/modules/module.py#L{quote.first}-L{quote.last}"
    )


def test_wrappers_are_taken_off(module):
    module("""
        import functools

        def noisy(f):
            @functools.wraps(f)
            def wrapper(*args):
                return f(*args)
            return wrapper

        class Thing:
            @property
            def size(self):
                return 1

            @classmethod
            @noisy
            def make(cls):
                return cls()

            @staticmethod
            def still():
                return 2
    """)
    assert locate("readtorch.quoted.Thing.size").lines[1] == "def size(self):"
    assert locate("readtorch.quoted.Thing.make").lines[-1] == "    return cls()"
    assert locate("readtorch.quoted.Thing.still").lines[0] == "@staticmethod"


def test_a_method_that_was_replaced_since_is_quoted_as_written(module):
    """As `torch.compile` replaces `torch.nn.Module.__init__`."""
    module("""
        class Thing:
            def make(self):
                return 1
    """)
    quoted = importlib.import_module("readtorch.quoted")

    def other():
        return 2

    quoted.Thing.make = other
    assert locate("readtorch.quoted.Thing.make").lines == ("def make(self):", "    return 1")


def test_what_an_assignment_computes_is_quoted_as_the_assignment(module):
    module("""
        def make(k):
            def scale(x):
                return k * x
            return scale

        double = make(2)
        alias = make
        TABLE = {
            "a": 1,
        }

        class Thing:
            LIMIT: int = 3 * 4
    """)
    assert locate("readtorch.quoted.double").lines == ("double = make(2)",)
    assert locate("readtorch.quoted.alias").lines[0] == "def make(k):"
    assert locate("readtorch.quoted.TABLE").lines == ("TABLE = {", '    "a": 1,', "}")
    assert locate("readtorch.quoted.Thing.LIMIT").lines == ("LIMIT: int = 3 * 4",)


def test_an_imported_constant_is_found_where_it_is_assigned(module):
    module("from readtorch.show._render import COLOURS as PAINT\n")
    quote = locate("readtorch.quoted.PAINT")
    assert quote.lines[0] == "COLOURS = ["


def test_numba_functions_are_quoted_as_written(module):
    module("""
        import numba

        @numba.njit
        def twice(x):
            return 2 * x
    """)
    assert locate("readtorch.quoted.twice").lines == ("@numba.njit", "def twice(x):", "    return 2 * x")


@pytest.mark.parametrize(
    "name, key, path",
    [
        ("native_functions.yaml:add.Tensor", "func", "aten/src/ATen/native/native_functions.yaml"),
        ("native_functions.yaml:relu_", "func", "aten/src/ATen/native/native_functions.yaml"),
        ("derivatives.yaml:mul.Tensor", "name", "tools/autograd/derivatives.yaml"),
    ],
)
def test_operator_tables(name, key, path):
    quote = locate(name)
    assert quote.path == path
    assert quote.lines[0].startswith(f"- {key}: {name.partition(':')[2]}(")
    assert all(line.startswith("  ") for line in quote.lines[1:])


def test_lines_of_a_python_file_that_belong_to_no_object():
    quote = locate("torch/__init__.py:444-445")
    assert quote.lines[1].startswith("from torch._C import *") and quote.language == "python"
    assert quote.url.endswith("/torch/__init__.py#L444-L445")
    template = locate("torch/_inductor/kernel/flex/templates/common.py.jinja:111-140")
    assert template.lines[0].startswith("m_ij = ") and template.language == "python"
    with pytest.raises(LookupError, match="has no such file"):
        locate("torch/_nowhere.py:1-2")


def test_headers_are_numbered_as_in_the_repository():
    """The wheel puts a line before the first and some after the last."""
    quote = locate("torch/csrc/autograd/edge.h:1-2")
    assert quote.lines == ("#pragma once", "")
    assert locate("c10/core/DispatchKey.h:1").lines == ("#pragma once",)
    assert locate("ATen/core/TensorBase.h:1").path == "aten/src/ATen/core/TensorBase.h"


@pytest.mark.parametrize(
    "name, message",
    [
        ("torch.add", "torch.add has no Python source (is it implemented in C++?)"),
        ("torch.nn.Module.nothing", "torch.nn.Module.nothing: there is no 'nothing' there"),
        ("no_such_package.thing", "no module of that name can be imported"),
        ("native_functions.yaml:no_such_operator", "no entry begins with '- func: no_such_operator('"),
        ("other.yaml:add", "the tables are native_functions.yaml, derivatives.yaml"),
        ("torch/csrc/autograd/engine.cpp:1-2", "only headers that the installed reference ships"),
        ("torch/csrc/autograd/edge.h", "not of the form path/file.cpp:first-last"),
    ],
)
def test_what_cannot_be_quoted_says_why(name, message):
    with pytest.raises(LookupError, match=re.escape(message)):
        locate(name)


def test_a_module_that_fails_to_import_is_not_called_missing(module):
    module("import no_such_package\n")
    with pytest.raises(ModuleNotFoundError, match="no_such_package"):
        locate("readtorch.quoted.anything")


# -- digests ------------------------------------------------------------------------------------


def test_a_change_of_ours_is_noticed(module):
    module("def f():\n    return 1\n")
    told = show.digest("readtorch.quoted.f")
    show.source("readtorch.quoted.f", keep="1", digest=told)
    module("def f():\n    return 2\n")
    with pytest.raises(ValueError, match="the source of readtorch.quoted.f has changed") as caught:
        show.source("readtorch.quoted.f", keep="1", digest=told)
    assert f'digest="{show.digest("readtorch.quoted.f")}"' in str(caught.value)


def test_both_sides_need_a_digest():
    with pytest.raises(ValueError) as caught:
        show.source(SETATTR, ours="readtorch.show.digest")
    assert f'digest="{show.digest(SETATTR)}"' in str(caught.value)
    assert f'ours_digest="{show.digest("readtorch.show.digest")}"' in str(caught.value)
    with pytest.raises(ValueError, match="has changed"):
        show.source(SETATTR, ours="readtorch.show.digest", digest=show.digest(SETATTR), ours_digest="00000000")
    with pytest.raises(ValueError, match="has changed"):
        show.source(
            SETATTR, ours="readtorch.show.digest", digest="00000000", ours_digest=show.digest("readtorch.show.digest")
        )


def test_one_side_without_line_numbers_needs_none():
    assert "rt-single" in show.source(SETATTR).html


def test_moving_an_object_does_not_change_its_digest(module):
    module("def f():\n    return 1\n")
    told = show.digest("readtorch.quoted.f")
    module("\n\nclass C:\n    pass\n\ndef f():\n    return 1\n")
    assert show.digest("readtorch.quoted.f") == told


# -- lines --------------------------------------------------------------------------------------


def rows(html):
    """-> [(number, classes, letter or None)] of all lines, folded ones too"""
    found = re.findall(
        r'<span class="(rt-line[^"]*)" data-n="(\d+)"[^>]*>(?:<span class="rt-letter" data-letter="(\w)">)?', html
    )
    return [(int(number), classes.split(), letter or None) for classes, number, letter in found]


def test_every_line_is_there_once_and_numbered_as_in_its_file():
    quote = locate(SETATTR)
    html = show.source(SETATTR, keep="1, 10-22", emph="11", digest=quote.digest).html
    assert [number for number, _, _ in rows(html)] == list(range(quote.first, quote.last + 1))
    assert [number - quote.first + 1 for number, classes, _ in rows(html) if "rt-emphasis" in classes] == [11]
    assert [int(n) for n in re.findall(r"(\d+) lines folded", html)] == [8, len(quote.lines) - 22]


def test_pairs_mark_both_sides_and_start_with_their_letter():
    ours = "readtorch.show.digest"
    html = show.source(
        SETATTR,
        ours,
        pairs=["2-3, 7 ~ 2: the note", "10 ~ 3"],
        digest=show.digest(SETATTR),
        ours_digest=show.digest(ours),
    ).html
    theirs, mine = html.split('<div class="rt-pane rt-ours">')
    first = locate(SETATTR).first
    marked = [(number - first + 1, letter) for number, classes, letter in rows(theirs) if "rt-pair" in classes]
    assert marked == [(2, "A"), (3, None), (7, "A"), (10, "B")]
    assert [letter for _, classes, letter in rows(mine) if "rt-pair" in classes] == ["A", "B"]
    assert "the note" in html


def test_aligned_panes():
    """First lines of pairs come to stand in the same row; what is folded away or crosses another pair is left alone."""
    quote = lambda count: Quote("f", "python", tuple(f"x{n}" for n in range(1, count + 1)), 11, "f.py", None)
    theirs = _render.Pane("theirs", "PyTorch", quote(30), keep=[range(1, 5), range(15, 31)])
    ours = _render.Pane("ours", "readtorch", quote(12))
    pairs = [
        _render.Pair(letter, [range(a, a + 1)], [range(b, b + 1)], "")
        for letter, a, b in (("A", 2, 5), ("B", 8, 7), ("C", 20, 8), ("D", 22, 3), ("E", 25, 12))
    ]
    _render.align(theirs, ours, pairs)
    rows = {
        pair.letter: (theirs.rows_above(pair.theirs[0].start), ours.rows_above(pair.ours[0].start)) for pair in pairs
    }
    assert theirs.gaps == {2: 3} and set(ours.gaps) == {8, 12}
    above = lambda pane, line: pane.rows_above(line) + pane.gaps.get(line, 0)
    for a, b in ((2, 5), (20, 8), (25, 12)):
        assert above(theirs, a) == above(ours, b)
    assert rows["B"][0] is None
    html = _render.panel([theirs, ours], pairs, "group")
    assert html.count('class="rt-gap"') == 3 and html.count('class="rt-align"') == 1


def test_a_comment_on_the_last_line_of_a_quote_has_its_colour():
    quote = locate("c10/util/intrusive_ptr.h::Note [PyObject preservation for Tensor and Storages]")
    assert all(line.startswith('<span class="rt-c">//') for line in _render.colour(quote))


def test_text_is_kept_to_the_letter():
    """What the browser shows is the source: no line lost, nothing taken for markup."""
    for name in (
        SETATTR,
        "torch.nn.Module",
        "native_functions.yaml:add.Tensor",
        "torch/csrc/autograd/function.h:1-400",
    ):
        quote = locate(name)
        seen = [re.sub(r"<[^>]*>", "", line) for line in _render.colour(quote)]
        unescaped = [
            line.replace("&lt;", "<")
            .replace("&gt;", ">")
            .replace("&quot;", '"')
            .replace("&#x27;", "'")
            .replace("&amp;", "&")
            for line in seen
        ]
        assert tuple(unescaped) == quote.lines


def test_a_long_docstring_starts_folded():
    quote = locate("torch.nn.functional.relu")
    assert [list(part)[:1] for part in _render.unfolded(quote)] == [[1], [7]]
    assert _render.unfolded(locate(SETATTR)) == [range(1, len(locate(SETATTR).lines) + 1)]


@pytest.mark.parametrize(
    "options, message",
    [
        ({"keep": "1-9999"}, "has lines 1-"),
        ({"keep": "0-3"}, "has lines 1-"),
        ({"keep": "10-12, 3"}, "is not in rising order"),
        ({"keep": "three"}, 'lines look like "3, 10-22"'),
        ({"pairs": ["1 ~ 2"]}, "need ours="),
        ({"ours": "readtorch.show.digest", "pairs": ["1 2"]}, "a pair looks like"),
        ({"ours": "readtorch.show.digest", "pairs": ["1 ~ 999"]}, "readtorch.show.digest has lines 1-3"),
    ],
)
def test_wrong_line_numbers_are_refused(options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        show.source(SETATTR, digest=show.digest(SETATTR), **options)


# -- what is shown ------------------------------------------------------------------------------


def test_names_within_a_page_do_not_collide():
    ours = "readtorch.show.digest"
    digests = {"digest": show.digest(SETATTR), "ours_digest": show.digest(ours)}
    groups = [re.search(r'name="(rt-show-\d+)"', show.source(SETATTR, ours, **digests).html)[1] for _ in range(2)]
    assert groups[0] != groups[1]


def test_a_notebook_gets_the_style_along():
    shown = show.source("readtorch.show.digest")
    assert shown._repr_html_() == f"{show.CSS_BEGIN}<style>{show.stylesheet()}</style>{show.CSS_END}{shown.html}"
    assert repr(shown).splitlines()[1] == "def digest(name: str) -> str:"


def test_table_of_places():
    quote = locate(SETATTR)
    shown = show.table(
        [
            ("what `it` <does>", SETATTR, "readtorch.show.digest"),
            ("in C++", "torch::autograd::Engine::execute @ torch/csrc/autograd/engine.cpp:10-20"),
            ("ours alone", None, "readtorch.show.digest"),
        ]
    )
    assert "what <code>it</code> &lt;does&gt;" in shown.html
    assert f'href="{quote.url}">{quote.where}</a>' in shown.html.replace("<wbr>", "")
    assert "<wbr>" in shown.html, "long names go on in the next line after a separator"
    assert 'href="https://github.com/pytorch/pytorch/blob/v2.13.0/torch/csrc/autograd/engine.cpp#L10-L20"' in shown.html
    assert shown.html.count("rt-none") == 2
    assert (
        repr(shown).splitlines()[0]
        == f"what `it` <does>  {SETATTR} ({quote.where})  "
        + f"readtorch.show.digest ({locate('readtorch.show.digest').where})"
    )


def test_a_place_given_by_hand_must_name_lines():
    with pytest.raises(LookupError, match="path/file.cpp:first-last"):
        show.table([("x", "Engine @ torch/csrc/autograd/engine.cpp")])


# -- where this checkout is published -----------------------------------------------------------


@pytest.mark.parametrize(
    "remote, url",
    [
        ("https://github.com/someone/readtorch.git", "https://github.com/someone/readtorch"),
        ("git@github.com:someone/readtorch.git", "https://github.com/someone/readtorch"),
        ("https://github.com/someone/read.torch", "https://github.com/someone/read.torch"),
        ("file:///srv/readtorch", None),
        ("", None),
    ],
)
def test_our_links_follow_the_remote(monkeypatch, remote, url):
    monkeypatch.delenv("GITHUB_REPOSITORY", raising=False)
    monkeypatch.setattr(_links, "_git", lambda *arguments: remote)
    assert _links.repository.__wrapped__() == url


def test_the_runner_knows_the_repository(monkeypatch):
    monkeypatch.setenv("GITHUB_REPOSITORY", "someone/fork")
    assert _links.repository.__wrapped__() == "https://github.com/someone/fork"


def test_the_command_prints_numbered_lines_and_the_digest():
    done = subprocess.run(
        [sys.executable, "-m", "readtorch.show", "readtorch.show.digest"], capture_output=True, text=True, env=OUTSIDE
    )
    assert done.returncode == 0, done.stderr
    head, *lines = done.stdout.splitlines()
    assert head.endswith(f"digest {show.digest('readtorch.show.digest')}")
    assert lines[0] == "   1  def digest(name: str) -> str:"


def test_importing_show_does_not_import_the_reference():
    done = subprocess.run(
        [sys.executable, "-c", "import sys, readtorch.show; sys.exit('torch' in sys.modules)"], env=OUTSIDE
    )
    assert done.returncode == 0


def test_without_the_reference_it_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(LookupError, match="needs PyTorch installed"):
        _links._torch()


# -- chapters -----------------------------------------------------------------------------------

CHAPTERS = sorted((Path(__file__).parents[1] / "book").glob("*.md"))

TEXT = """# Title

```{code-cell} python
:tags: [remove-input]

%matplotlib inline
show.source("readtorch.quoted.f", keep="1", digest="DIGEST")
```

````{code-cell} python
---
tags: [remove-input]
---
show.table([("x", "torch.nowhere")])
show.source(computed)
````
"""


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda file: file.stem)
def test_a_chapter_quotes_what_is_there(chapter):
    assert _chapters.problems(chapter) == []


def test_a_chapter_is_checked_without_running_it(module, tmp_path):
    module("def f():\n    return 1\n")
    chapter = tmp_path / "chapter.md"
    chapter.write_text(TEXT.replace("DIGEST", show.digest("readtorch.quoted.f")))
    nowhere = f"{chapter}:14: torch.nowhere: there is no 'nowhere' there"
    assert _chapters.problems(chapter) == [nowhere]

    module("def f():\n    return 2\n")
    changed, *rest = _chapters.problems(chapter)
    assert changed.startswith(f"{chapter}:7: the source of readtorch.quoted.f has changed") and rest == [nowhere]

    assert _chapters.accept(chapter) == [changed, nowhere]
    assert _chapters.problems(chapter) == [nowhere]
    assert show.digest("readtorch.quoted.f") in chapter.read_text()


# -- the functions that a program runs ----------------------------------------------------------


def test_functions_stand_under_their_chapters_in_the_book_s_order(tmp_path):
    book = tmp_path / "book"
    book.mkdir()
    for name, title in (("second", "B"), ("first", "A `x`"), ("unlisted", "C")):
        (book / f"{name}.md").write_text(f"# {title}\n")
    (tmp_path / "_toc.yml").write_text('chapters:\n- file: book/first\n  title: "1. A"\n- file: book/second\n')
    ran = [
        CoreFunction("c10/size.py", "Size.<lambda>", 2, 3, "B", "Sizes."),
        CoreFunction("generated", "add(a)", 1, 7, "A x", ""),
        CoreFunction("c10/size.py", "Size.f", 5, 5, "A x", "Sizes."),
    ]
    shown = show.functions(ran, book)
    assert shown.html.index("1. A x: 2 functions") < shown.html.index("B: 1 function<")
    assert '<a href="first.html">1. A x</a>' in shown.html and "Size.<wbr>&lt;lambda&gt;" in shown.html
    assert "unlisted" not in shown.html and "7 lines" in shown.html
    assert repr(shown).splitlines()[0] == "c10/size.py:2–3 Size.<lambda>"
