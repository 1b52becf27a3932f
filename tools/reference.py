"""python tools/reference.py VERSION [CHAPTER …]: try the book against another release of PyTorch (make reference VERSION=2.12.1).

It is a report, not a port: nothing of the book changes. An environment with that release is made in _build/reference/VERSION, and
there every chapter runs to its end, whatever fails. What came of each cell is compared with what the built book shows (make book).
The report, _build/reference/VERSION.md, says which quotations no longer fit, which cells raise, and whose words or numbers are
others: stacks, schemas, error messages. Times change from run to run: numbers alone are counted, not shown.
"""

import difflib
import html
import os
import re
import subprocess
import sys
from multiprocessing.pool import ThreadPool
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BOOK = ROOT / "book"
SECONDS = 600  # for one cell, where kernels are compiled for the first time
SHOWN = 12  # lines of one difference
NUMBER = re.compile(r"0x[0-9a-f]+|\d+(?:[.,]\d+)*(?:e[-+]?\d+)?")
COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def environment(version):
    """The Python of an environment with all that the book needs, and another PyTorch. Made once."""
    folder = ROOT / "_build/reference" / version
    python = folder / "bin/python"
    if not (folder / ".ready").exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        required = (ROOT / "requirements.txt").read_text(encoding="utf8")
        other, found = re.subn(r"(?m)^torch==.*$", f"torch=={version}", required)
        assert found == 1, "requirements.txt names the reference once"
        # the package itself asks for the release that it was written after: it is found where it lies
        extras = re.search(r"(?m)^-e \.\[(.*)\]$", required)[1].split(",")
        names = folder / "requirements.txt"
        names.write_text(other.replace(f"-e .[{','.join(extras)}]", "\n".join(needs(extras))), encoding="utf8")
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--requirement", names], check=True)
        (folder / ".ready").touch()
    return python


def needs(extras):
    """What the extras of pyproject.toml ask for, without the reference."""
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf8"))["project"]
    found, todo = set(project["dependencies"]), list(extras)
    while todo:
        for one in project["optional-dependencies"][todo.pop()]:
            own = re.fullmatch(r"readtorch\[(.*)\]", one)
            if own:
                todo += own[1].split(",")
            elif not one.startswith("torch=="):
                found.add(one)
    return sorted(found)


# ---- what the built book shows, and what the other release says ----


def shown_by_the_book():
    """{code of a chapter's cells: its cells, with outputs}, as `make book` has kept them."""
    from jupyter_cache import get_cache

    found = {}
    for folder in sorted((ROOT / "_build/.jupyter_cache").glob("*/"), key=os.path.getmtime):  # the newest counts
        cache = get_cache(folder)
        for record in cache.list_cache_records():
            notebook = cache.get_cache_bundle(record.pk).nb
            found[code_of(notebook)] = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return found


def code_of(notebook):
    return tuple(cell.source.strip() for cell in notebook.cells if cell.cell_type == "code")


def run(file):
    """The code cells of a chapter with what came of each, under this Python's PyTorch; an error ends only its cell."""
    import jupytext
    from nbclient import NotebookClient

    notebook = jupytext.read(file)
    resources = {"metadata": {"path": str(file.parent)}}
    NotebookClient(notebook, timeout=SECONDS, allow_errors=True, kernel_name="python3", resources=resources).execute()
    return notebook


def words_of(cell):
    """All text that a cell printed, showed or raised. Of a figure, which is a page of its own, nothing."""
    found = []
    for output in cell.outputs:
        if output.output_type == "stream" and output.name == "stdout":
            found.append(output.text)
        elif output.output_type == "error":
            found.append(f"{output.ename}: {output.evalue}")
        elif output.output_type in ("execute_result", "display_data"):
            page = output.data.get("text/html")
            found.append(
                re.sub(r"<[^>]+>", "", page) if page and len(page) < 50_000 else output.data.get("text/plain", "")
            )
    lines = COLOURS.sub("", html.unescape("\n".join(found))).splitlines()
    return "\n".join(line.rstrip() for line in lines if line.strip())


def error_of(cell):
    return next((f"{one.ename}: {one.evalue.strip()}" for one in cell.outputs if one.output_type == "error"), None)


def compare(before, after):
    """(kind, cell, lines) of each cell that differs; kind: "raises", "words" or "numbers"."""
    for number, (old, new) in enumerate(zip(before, after, strict=True), 1):
        error = error_of(new)
        if error and not error_of(old):
            yield "raises", number, [line for line in error.splitlines() if line.strip()][:SHOWN]
            continue
        was, now = words_of(old), words_of(new)
        if was == now:
            continue
        if NUMBER.sub("#", was) == NUMBER.sub("#", now):
            yield "numbers", number, []
            continue
        both = (NUMBER.sub("#", text).splitlines() for text in (was, now))
        changed = [
            line for line in difflib.unified_diff(*both, lineterm="", n=0) if not line.startswith(("---", "+++", "@@"))
        ]
        yield "words", number, changed[:SHOWN]


# ---- the report ----


def quotations(python):
    """The quotations of PyTorch's source that no longer fit, as `python -m readtorch.show --check` says it."""
    asked = [python, "-m", "readtorch.show", "--check", *sorted(BOOK.glob("*.md"))]
    answer = subprocess.run(asked, capture_output=True, text=True, env=settings(), cwd=ROOT)
    if answer.returncode not in (0, 1):
        raise SystemExit(answer.stderr[-2000:])
    # what follows a colon there tells an author what to do
    found = answer.stdout.replace(f"{BOOK}/", "").replace(": read it again", "\0").splitlines()
    return [line.partition("\0")[0] for line in found] if answer.returncode else []


def settings():
    return os.environ | {"PYTHONPATH": str(ROOT / "src"), "JUPYTER_PREFER_ENV_PATH": "1"}


def inside(python, file, folder):
    """Run one chapter in the other environment. -> its executed notebook"""
    import nbformat

    out = folder / f"{file.stem}.ipynb"
    ran = subprocess.run(
        [python, __file__, "--run", file, out], capture_output=True, text=True, env=settings(), cwd=ROOT
    )
    if ran.returncode:
        raise RuntimeError(f"{file.name} did not run: {ran.stderr[-2000:]}")
    return nbformat.read(out, 4)


def report(version, quoted, chapters):
    """The text of the report; chapters: {name: [(kind, cell, lines)] or the reason why it was not compared}."""
    compared = {name: found for name, found in chapters.items() if not isinstance(found, str)}
    lines = [f"# The book against PyTorch {version}", ""]
    lines += [f"{len(quoted)} quotations no longer fit; of {len(chapters)} chapters {len(compared)} were compared.", ""]
    lines += ["| chapter | cells that raise | other words | other numbers alone |", "|---|---|---|---|"]
    for name, found in compared.items():
        kinds = [kind for kind, _, _ in found]
        lines.append(
            "| " + " | ".join([name, *(str(kinds.count(kind)) for kind in ("raises", "words", "numbers"))]) + " |"
        )
    lines += ["", "## Quotations", "", *(f"- {line}" for line in quoted or ["every quotation fits"])]
    for name, found in chapters.items():
        if isinstance(found, str):
            lines += ["", f"## {name}", "", found]
        elif any(kind != "numbers" for kind, _, _ in found):
            lines += ["", f"## {name}"]
            for kind, number, said in found:
                if kind != "numbers":
                    what = "raises" if kind == "raises" else "says in other words (- the book, + this release)"
                    lines += ["", f"Code cell {number} {what}:", "", "```", *said, "```"]
    return "\n".join(lines) + "\n"


def main(version, names):
    shown = shown_by_the_book()
    if not shown:
        raise SystemExit("there is nothing to compare with: make book")
    python = environment(version)
    folder = ROOT / "_build/reference" / version
    quoted = quotations(python)
    files = [BOOK / f"{name}.md" for name in names] or sorted(
        file for file in BOOK.glob("*.md") if "kernelspec:" in file.read_text(encoding="utf8")[:500]
    )

    def look(file):
        try:
            notebook = inside(python, file, folder)
        except RuntimeError as error:
            return file.stem, str(error)
        before = shown.get(code_of(notebook))
        after = [cell for cell in notebook.cells if cell.cell_type == "code"]
        return file.stem, list(compare(before, after)) if before else "The built book has another text: make book."

    found = {}
    with ThreadPool(len(os.sched_getaffinity(0))) as pool:
        for name, differences in pool.imap_unordered(look, files):
            found[name] = differences
            print(
                f"{name}: {differences if isinstance(differences, str) else f'{len(differences)} cells differ'}",
                flush=True,
            )
    out = ROOT / f"_build/reference/{version}.md"
    out.write_text(report(version, quoted, dict(sorted(found.items()))), encoding="utf8")
    print(out.relative_to(ROOT))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--run"]:
        import nbformat

        nbformat.write(run(Path(sys.argv[2])), sys.argv[3])
    elif len(sys.argv) < 2 or not re.fullmatch(r"\d+\.\d+\.\d+[\w.+]*", sys.argv[1]):
        raise SystemExit(__doc__)
    else:
        main(sys.argv[1], sys.argv[2:])
