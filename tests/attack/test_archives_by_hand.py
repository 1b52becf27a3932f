"""TorchScript archives made by hand: nothing runs, nothing that lives is changed, and readtorch refuses what PyTorch refuses."""

import ast
import io
import json

import pytest
import torch

import readtorch
import readtorch.jit
from readtorch.csrc.jit.frontend.definition import Text
from tests.attack import limits
from tests.attack.archives_by_hand import CLASS, DEADLY, DIFFERENT, FORWARD, all_cases, archive, with_body


@pytest.fixture(scope="module")
def outcomes():
    return json.loads(limits.run_module("tests.attack.archives_by_hand"))


def kind(outcome):
    return outcome[0].partition(":")[0]


def test_nothing_runs_and_nothing_is_changed(outcomes):
    assert set(outcomes["readtorch"]) == set(all_cases()) and len(all_cases()) > 400
    bad = {
        name: outcome
        for name, outcome in outcomes["readtorch"].items()
        if kind(outcome) not in ("loaded", "RuntimeError") or outcome[1] or outcome[2] > limits.GIGABYTE // 2
    }
    assert not bad


def test_both_load_or_both_refuse(outcomes):
    differ = {
        name: (outcomes["readtorch"][name], theirs)
        for name, theirs in outcomes["torch"].items()
        if (kind(theirs) == "loaded") != (kind(outcomes["readtorch"][name]) == "loaded") and name not in DIFFERENT
    }
    assert not differ


@pytest.mark.parametrize("constant", ["c7", "c", "cx", "c99999999999999999999"])
@pytest.mark.parametrize("place", ["default", "body"])
def test_an_absent_constant_is_named(constant, place):
    text = f"CONSTANTS.{constant}"
    data = with_body("return x", f"x: Tensor, n: Tensor={text}") if place == "default" else with_body(f"return {text}")
    messages = []
    for T in (torch, readtorch):
        with pytest.raises(RuntimeError) as caught:
            T.jit.load(io.BytesIO(data))
        messages.append(str(caught.value).split("\n")[1])
    assert messages[0] == messages[1]


def test_what_differs_does(outcomes):
    assert all(kind(outcomes["torch"][name]) != kind(outcomes["readtorch"][name]) for name in DIFFERENT)
    assert all(kind(outcomes["readtorch"][name]) == "RuntimeError" for name in DEADLY)


def test_both_happen(outcomes):
    loaded = sum(kind(outcome) == "loaded" for outcome in outcomes["readtorch"].values())
    assert loaded > 100 and len(all_cases()) - loaded > 150


def both(data):
    return [library.jit.load(io.BytesIO(data)) for library in (torch, readtorch)]


def test_code_of_a_method_whose_self_has_another_name():
    theirs, ours = both(archive(CLASS + FORWARD.replace("self", "s")))
    assert ours.code == theirs.code and ours.code.startswith("def forward(s,\n")


@pytest.mark.parametrize(
    "expression",
    [
        "'{0.__class__}'.format(x)",
        "'{0.__class__.__init__.__globals__}'.format(x)",
        "'a'.format(x)",
        "'{}'.format(1, x)",
        "'{:>3}'.format(1)",
        "'{} {0}'.format(1)",
        "'{{}}'.format(1)",
        "'{}'.format('a', 'b')",
    ],
)
def test_format_reaches_nothing(expression):
    theirs, ours = both(with_body(f"return {expression}", returns="str"))
    assert ours(readtorch.ones(1)) == theirs(torch.ones(1))


class Line(str):
    """Counts how often a part of it is taken."""

    count = 0

    def __getitem__(self, part):
        self.count += 1
        return super().__getitem__(part)


def test_a_line_beyond_ascii_is_measured_once():
    """And not for every tree in it, which takes hours for one long line."""
    source = "ä = ['ü€'" + ", 345" * 50 + "]"
    text = Text(source)
    text.lines[0] = Line(source)
    ranges = [text.range(node) for node in ast.parse(source).body[0].value.elts]
    assert [source[r.start :][:3] for r in ranges] == ["'ü€", *["345"] * 50]
    assert text.lines[0].count == 1


def test_no_file_is_opened_for_a_wrong_text(tmp_path, monkeypatch):
    """Python shows a wrong line from the file that it thinks the text is in."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "code").mkdir()
    for name in ("<unknown>", "<string>", "code/__torch__.py"):
        (tmp_path / name).write_text("secret\n" * 100)
    with pytest.raises(RuntimeError) as caught:
        readtorch.jit.load(io.BytesIO(archive("this is wrong")))
    assert "this is wrong" in str(caught.value) and "secret" not in str(caught.value)
