"""Chapters in JupyterLab: a contents manager that opens them folded, lists them in the book's order, and saves only what was edited.

A chapter is Markdown; jupytext shows it as a notebook and writes it back. It would give the file a header of its own and another
word for code cells. Here the header stays the file's, so a chapter that was opened, run and saved has not changed by a byte.
"""

from __future__ import annotations

import copy
import re

from jupyter_server.services.contents.largefilemanager import AsyncLargeFileManager
from jupytext import build_async_jupytext_contents_manager_class

BOOK = "book"  # the folder of the chapters
HEADER = re.compile(r"\A---\n.*?\n---\n", re.S)
CELL = re.compile(r"^(`{3,}\{code-cell\}) \w+$", re.M)
KERNEL = {"name": "python3", "display_name": "Python 3", "language": "python"}
FOLDED = {"hide-input", "hide-cell", "remove-input", "remove-cell", "parity"}
MARK = re.compile(r"^`{3,}\{solution-(start|end)\}", re.M)
LISTED = re.compile(r"^ *- file: (\S+)\n +title: \"(.*)\"$", re.M)


class KeptHeaders(AsyncLargeFileManager):
    """What jupytext saves through: text goes into a file as its first cells and its header have it."""

    async def save(self, model, path=""):
        if path.endswith(".md") and model.get("type") == "file" and await self.file_exists(path):
            before = (await super().get(path, content=True, type="file", format="text"))["content"]
            model = model | {"content": as_before(before, model["content"])}
        return await super().save(model, path)


def as_before(before: str, text: str) -> str:
    """The text of a notebook, with the header that its file has, or none, and with code cells named as there."""
    head, written, name = HEADER.match(before), HEADER.match(text), CELL.search(before)
    end = head.end() if head else 0
    body = text[written.end() if written else 0 :].lstrip("\n")
    if name:
        body = CELL.sub(lambda cell: f"{cell[1]} {name[0].rpartition(' ')[2]}", body)
    blank = re.match(r"\n*", before[end:])[0]
    return before[:end] + blank + body


class BookContents(build_async_jupytext_contents_manager_class(KeptHeaders)):
    """Chapters with their helpers and solutions folded, and a folder that lists them as they are read."""

    async def get(self, path, content=True, **options):
        model = await super().get(path, content=content, **options)
        if content and model["type"] == "notebook" and path.endswith(".md"):
            fold(model["content"]["cells"])
            model["content"]["metadata"].setdefault("kernelspec", KERNEL)  # else Lab asks for one
        if content and model["type"] == "directory" and path.strip("/") == BOOK:
            await self._name_as_listed(model["content"])
        return model

    async def save(self, model, path=""):
        if model.get("type") == "notebook" and path.endswith(".md") and model.get("content"):
            model = model | {"content": copy.deepcopy(model["content"])}
            unfold(model["content"]["cells"])
        return await super().save(model, path)

    async def _name_as_listed(self, entries) -> None:
        """Lab sorts by name: a chapter's is its number and title. Its path stays what it is."""
        if not await self.file_exists("_toc.yml"):
            return
        contents = (await super().get("_toc.yml", type="file", format="text"))["content"]
        titles = {f"{BOOK}/index.md": "(Front page)"} | {
            f"{file}.md": title for file, title in LISTED.findall(contents)
        }
        for entry in entries:
            if title := titles.get(entry["path"]):
                entry["name"] = f"{title.replace('/', ' ')}.md"


def foldable(cells):
    """The code cells that come folded: helpers, comparisons, and the solutions of exercises."""
    solving = False
    for cell in cells:
        if cell["cell_type"] == "code":
            if solving or FOLDED.intersection(cell["metadata"].get("tags", [])):
                yield cell
        elif marks := MARK.findall(cell["source"]):
            solving = marks[-1] == "start"


def fold(cells) -> None:
    for cell in foldable(cells):
        cell["metadata"]["jupyter"] = cell["metadata"].get("jupyter", {}) | {"source_hidden": True}


def unfold(cells) -> None:
    """Whether a cell was folded or open on the screen is not the chapter's."""
    for cell in foldable(cells):
        settings = cell["metadata"].get("jupyter", {})
        settings.pop("source_hidden", None)
        if not settings:
            cell["metadata"].pop("jupyter", None)
