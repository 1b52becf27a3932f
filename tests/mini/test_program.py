"""`show.program`: a module of the reader's program with what it imports, folded, and the number of lines."""

import pytest

from readtorch import show
from readtorch.show import _program


def test_a_module():
    shown = show.program("tensor")
    lines = (_program.resources.files(_program.PACKAGE) / "tensor.py").read_text().count("\n")
    assert repr(shown).startswith(f"Your program now: 1 module, {lines} lines\n")
    assert f"<summary>Your program now: 1 module, {lines} lines</summary>" in shown._repr_html_()
    assert "readtorch.mini.tensor" in shown.html and "def as_strided" in repr(shown)


def test_what_it_imports_comes_before_it(monkeypatch, tmp_path):
    for name, text in {"c": "from .a import x\nfrom .b import y\n", "b": "from .a import x\n", "a": "x = 1\n"}.items():
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.setattr(_program.resources, "files", lambda package: tmp_path)
    assert _program.modules("c") == ["a", "b", "c"]
    assert _program.modules("b", "c") == ["a", "b", "c"]


def test_what_earlier_chapters_show_is_named_with_its_chapter():
    shown = show.program("tensor_impl")
    lines = [
        (_program.resources.files(_program.PACKAGE) / f"{name}.py").read_text().count("\n")
        for name in ("tensor", "tensor_impl")
    ]
    assert f"Your program now: 2 modules, {sum(lines)} lines" in shown.html
    chapter = '<a href="tensor_and_storage.html">Tensor and Storage</a>'
    assert f"<li><code>readtorch.mini.tensor</code>, {lines[0]} lines: {chapter}</li>" in shown.html
    assert 'Source of readtorch.mini.tensor"' not in shown.html and "def as_strided" in repr(shown)


def test_a_module_that_is_not_there():
    with pytest.raises(FileNotFoundError):
        show.program("nothing")
