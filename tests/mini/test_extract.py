"""`tools/mini.py`: the files of readtorch.mini are the chapters' cells, and every stage stands by itself."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tools import mini

MOST_LINES = 3110  # a long weekend of reading; two dozen subjects, from bytes to shards
CHAPTER = """# A `chapter`

```{code-cell} python
:tags: [mini-one]

import math

# Where it begins.
START = 1


class Thing:
    \"\"\"What it is.\"\"\"

    # It comes with its comment.
    @property
    def size(self):
        return START

    @size.setter
    def size(self, n):
        self.n = math.floor(n)
```

A cell between: `1 + 1`.

```{code-cell} python
print(Thing().size)
```

```{code-cell} python
---
tags: [mini-one, hide-input]
---
import os
import math


def start():
    return os.sep


class Thing(Thing):
    # Again.
    def __len__(self):
        return 1

    @property
    def size(self):
        return 2
```
"""
EXPECTED = '''"""Written in the chapter "A chapter": its cells are this file, put together by `tools/mini.py`."""

import math
import os

# Where it begins.
START = 1


class Thing:
    """What it is."""

    @property
    def size(self):
        return 2

    @size.setter
    def size(self, n):
        self.n = math.floor(n)

    # Again.
    def __len__(self):
        return 1


def start():
    return os.sep
'''
LATER = """# Later

```{code-cell} python
:tags: [mini-two]

from readtorch.mini.one import *


class Thing(Thing):
    def twice(self):
        return 2 * len(self), start()
```
"""


@pytest.fixture(autouse=True)
def same_seed_everywhere():
    """In place of the suite's fixture of that name: source is read here, nothing is computed."""


@pytest.fixture
def book(tmp_path, monkeypatch):
    """Makes the tool read these chapters: a function of their texts."""

    def write(*texts):
        files = [tmp_path / f"chapter_{n}.md" for n in range(len(texts))]
        for file, text in zip(files, texts, strict=True):
            file.write_text(text, encoding="utf8")
        monkeypatch.setattr(mini, "chapters", lambda: files)

    return write


def test_cells_become_one_file(book):
    book(CHAPTER)
    assert mini.program() == {"one": EXPECTED}


def test_a_later_module_imports_what_it_uses_and_keeps_its_subclass(book):
    book(CHAPTER, LATER)
    assert mini.program()["two"].split("\n\n")[1] == "from .one import Thing, start"
    assert "class Thing(Thing):\n    def twice(self):" in mini.program()["two"]
    assert mini.stages() == {"chapter_0": ["one"], "chapter_1": ["one", "two"]}
    assert list(mini.program("chapter_0")) == ["one"]


@pytest.mark.parametrize(
    "cell, why",
    [
        ("1 + 1", "does nothing in a program"),
        ("import torch\nx = 1", "NumPy and the standard library alone"),
        ("x = 1\nimport os", "imports come first"),
        ('class A:\n    x = 1\nclass A(A):\n    """More."""', "has a docstring already"),
    ],
)
def test_what_is_no_piece_of_a_program(book, cell, why):
    book(f"# A\n\n```{{code-cell}} python\n:tags: [mini-a]\n\n{cell}\n```\n")
    with pytest.raises(mini.Unfit, match=why):
        mini.program()


def test_a_module_belongs_to_one_chapter(book):
    book(CHAPTER, CHAPTER)
    with pytest.raises(mini.Unfit, match="belongs to chapter_0.md"):
        mini.program()


def test_the_files_are_what_the_chapters_say():
    assert mini.differences() == [], "write them: .venv/bin/python tools/mini.py"


def test_it_can_be_read_in_a_weekend():
    lines = [line for text in mini.program().values() for line in text.splitlines() if line.strip()]
    assert len(lines) <= MOST_LINES


@pytest.mark.parametrize("chapter", mini.stages() or ["none"])
def test_each_stage_stands_alone(chapter, tmp_path):
    """Copied to an empty folder under another name, with NumPy as all that can be imported besides."""
    modules = mini.stages().get(chapter, [])
    done = run_alone(modules, "import sys\n" + "".join(f"import mine.{name}\n" for name in modules) + LOADED, tmp_path)
    assert set(done.split()) <= {"mine", "numpy"}


LOADED = (
    "print(*{m.split('.')[0] for m in sys.modules} - sys.stdlib_module_names - {'__main__', '__mp_main__'} - BEFORE)\n"
)


def run_alone(modules, program, folder):
    """What a program prints in an empty folder where there are NumPy and the package `mine` of these modules."""
    (folder / "mine").mkdir()
    (folder / "mine" / "__init__.py").touch()
    for name in modules:
        shutil.copy(mini.MINI / f"{name}.py", folder / "mine")
    packages = Path(np.__file__).parents[1]
    for name in ("numpy", *(p.name for p in packages.glob("numpy*.libs"))):
        os.symlink(packages / name, folder / name)
    (folder / "program.py").write_text(program.replace(mini.PACKAGE, "mine"), encoding="utf8")
    command = "import sys; sys.path.insert(0, '.'); BEFORE = {m.split('.')[0] for m in sys.modules}; exec(open('program.py').read())"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", command], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_runner_hides_everything_else(tmp_path):
    assert re.match(
        r"ModuleNotFoundError",
        run_alone([], "try:\n    import readtorch\nexcept ImportError as e:\n    print(type(e).__name__)", tmp_path),
    )
