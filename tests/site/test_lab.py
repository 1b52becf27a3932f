"""JupyterLab on the chapters: through its own contents API, as `make lab` configures it."""

import asyncio
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from . import pages
from .conftest import ROOT

sys.path.insert(0, str(ROOT / "book/_lab"))
pytest.importorskip("jupyter_server")

import book_contents  # noqa: E402

CHAPTERS = sorted((ROOT / "book").glob("*.md"))  # with the pages that have no cells


def waited_for(coroutine):
    """In a thread of its own: the browser of other tests keeps a loop running in this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, coroutine).result()


@pytest.fixture
def lab(tmp_path):
    """A contents manager over copies of the chapters: (the folder, get, save)"""
    (tmp_path / "book").mkdir()
    (tmp_path / "_toc.yml").write_bytes((ROOT / "_toc.yml").read_bytes())
    for file in CHAPTERS:
        (tmp_path / "book" / file.name).write_bytes(file.read_bytes())
    manager = book_contents.BookContents(root_dir=str(tmp_path))
    return (
        tmp_path,
        lambda path, **options: waited_for(manager.get(path, **options)),
        lambda model, path: waited_for(manager.save(model, path)),
    )


def as_lab_saves_it(model):
    """A notebook that was opened and run: Lab adds what the kernel said of itself, counts and outputs."""
    content = model["content"]
    content["metadata"]["kernelspec"] = {
        "name": "python3",
        "display_name": "Python 3 (ipykernel)",
        "language": "python",
    }
    content["metadata"]["language_info"] = {
        "name": "python",
        "version": "3.11.7",
        "mimetype": "text/x-python",
        "file_extension": ".py",
    }
    for n, cell in enumerate(content["cells"]):
        if cell["cell_type"] == "code":
            cell["execution_count"] = n
            cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "shown\n"}]
            cell["metadata"]["trusted"] = True
    return {"type": "notebook", "format": "json", "content": content}


def test_a_chapter_that_was_run_and_saved_has_not_changed(lab):
    folder, get, save = lab
    changed = []
    for file in CHAPTERS:
        model = get(f"book/{file.name}", type="notebook")
        assert model["type"] == "notebook" and model["content"]["metadata"]["kernelspec"]["name"] == "python3"
        save(as_lab_saves_it(model), f"book/{file.name}")
        if (folder / "book" / file.name).read_bytes() != file.read_bytes():
            changed.append(file.name)
    assert changed == []


def test_an_edit_changes_its_lines_alone(lab):
    folder, get, save = lab
    model = get("book/autograd.md", type="notebook")
    cell = next(
        cell for cell in model["content"]["cells"] if cell["cell_type"] == "code" and "tags" not in cell["metadata"]
    )
    cell["source"] += "\n1 + 1"
    cell["metadata"]["jupyter"] = {"source_hidden": True}  # no tag asks for it: it is the reader's
    save(as_lab_saves_it(model), "book/autograd.md")
    before = (ROOT / "book/autograd.md").read_text(encoding="utf8").splitlines()
    after = (folder / "book/autograd.md").read_text(encoding="utf8").splitlines()
    assert "1 + 1" in after and [line for line in before if line not in after] == []
    assert len(after) - len(before) <= 8


def test_a_new_notebook_is_written_as_jupytext_writes_it(lab):
    folder, get, save = lab
    model = get("book/hooks.md", type="notebook")
    save(as_lab_saves_it(model), "new.md")
    assert "format_version" in (folder / "new.md").read_text(encoding="utf8")


def test_helpers_comparisons_and_solutions_come_folded(lab):
    _, get, _ = lab
    cells = get("book/one_operator_call.md", type="notebook")["content"]["cells"]
    hidden = [cell for cell in cells if cell["metadata"].get("jupyter", {}).get("source_hidden")]
    assert {tag for cell in hidden for tag in cell["metadata"].get("tags", [])} >= {
        "parity",
        "hide-input",
        "remove-input",
    }
    solving = False
    for cell in cells:
        if cell["cell_type"] == "markdown":
            solving = "{solution-start}" in cell["source"] or (solving and "{solution-end}" not in cell["source"])
        else:
            assert not solving or cell in hidden
    assert any(cell not in hidden for cell in cells if cell["cell_type"] == "code")


def test_the_folder_lists_the_chapters_in_the_book_s_order(lab):
    _, get, _ = lab
    entries = {entry["path"]: entry["name"] for entry in get("book")["content"]}
    listed = [page.removesuffix(".html") + ".md" for page in pages.listed(ROOT / "_toc.yml")]
    numbered = [entries[path] for path in listed if path in entries and entries[path][0].isdigit()]
    assert len(numbered) > 20 and numbered == sorted(numbered, key=lambda name: int(name.partition(".")[0]))
    assert (
        entries["book/autograd.md"].endswith("Autograd.md")
        and get("book/autograd.md", content=False)["name"] == "autograd.md"
    )
