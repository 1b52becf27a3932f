"""make reference: what its report says of two runs of a chapter."""

import sys

import pytest

from .conftest import ROOT

sys.path.insert(0, str(ROOT / "tools"))
pytest.importorskip("nbformat")

import reference  # noqa: E402
from nbformat.v4 import new_code_cell, new_output  # noqa: E402


def printed(text):
    return new_code_cell("…", outputs=[new_output("stream", text=text)])


def raised(name, text):
    return new_code_cell("…", outputs=[new_output("error", ename=name, evalue=text)])


def shown(html):
    return new_code_cell("…", outputs=[new_output("display_data", {"text/html": html})])


def test_what_differs_is_told_apart():
    before = [
        printed("3.1 us\n"),
        printed("add_\nmul\n"),
        printed("same"),
        shown("<b>one</b> line"),
        raised("KeyError", "k"),
    ]
    after = [
        printed("2.9 us\n"),
        printed("add\nmul\n"),
        printed("same"),
        shown("<i>one</i> line"),
        raised("KeyError", "k"),
    ]
    found = list(reference.compare(before, after))
    assert found == [("numbers", 1, []), ("words", 2, ["-add_", "+add"])]
    assert list(reference.compare([printed("a")], [raised("TypeError", "no")])) == [("raises", 1, ["TypeError: no"])]
    with pytest.raises(ValueError):  # cells that do not belong together
        list(reference.compare(before, after[:-1]))


def test_the_report_shows_all_but_numbers():
    chapters = {"fx": [("numbers", 1, []), ("words", 2, ["-add_", "+add"])], "hooks": [], "jit": "It did not run."}
    text = reference.report("2.0.1", ["fx.md: the digest of torch.fx.Node"], chapters)
    assert "| fx | 0 | 1 | 1 |" in text and "| hooks | 0 | 0 | 0 |" in text and "| jit" not in text
    assert "- fx.md: the digest" in text and "It did not run." in text
    assert "Code cell 2 says in other words" in text and "Code cell 1" not in text and "## hooks" not in text


def test_its_environment_has_no_second_reference():
    found = reference.needs(["book", "test"])
    assert "jupytext>=1.19" in found and "numpy>=2.1" in found
    assert not [one for one in found if one.startswith(("torch==", "readtorch"))]
