"""The importer of the chapter "import torch": what it does is what Python's own does, up to PyTorch."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from readtorch.mini import imports

IMPORTER = Path(imports.__file__).read_text(encoding="utf8")
TIMES = {
    "plain": {"a": "x = 1", "main": "import a\nprint(a.x)"},
    "package": {"p/__init__": "", "p/b": "y = 2", "main": "import p.b\nfrom p import b as c\nprint(p.b.y, c is p.b)"},
    "relative": {"p/__init__": "from .b import y\nfrom . import c", "p/b": "y = 2", "p/c": "from . import b", "main": "import p\nprint(p.y, p.c.b)"},
    "star": {"p/__init__": "__all__ = ['b', 'z']\nz = 3", "p/b": "y = 2", "main": "from p import *\nprint(b.y, z)"},
    "circle": {"a": "import b\nx = 1", "b": "import a\ny = hasattr(a, 'x')", "main": "import a, b\nprint(b.y)"},
    "circle of a package": {"p/__init__": "import p.b\nx = 1", "p/b": "from p import c\nimport p", "p/c": "", "main": "import p.b\nprint(p.x, p.c)"},
    "not there": {"main": "import nothing.at.all"},
    "no submodule": {"p/__init__": "", "main": "import p.c"},
    "no such name": {"p/__init__": "", "main": "from p import c"},
    "inner not there": {"p/__init__": "", "p/b": "import gone", "main": "from p import b"},
    "no package": {"a": "x = 1", "main": "import a.b"},
    "no package, asked for its parts": {"a": "x = 1", "main": "try:\n    from a.b import c\nexcept ImportError as error:\n    print(error.name)"},
    "a part that still runs": {"p/__init__": "import p.a", "p/a": "import p.b", "p/b": "from p import a\nprint(a.__name__)", "main": "import p"},
    "replaces itself": {"a": "import sys\nsys.modules['a'] = 'me'", "main": "import a\nprint(a)"},
}  # fmt: skip
TWICE = """
for _ in range(2):
    try:
        import {0}
        print("no error")
    except Exception as error:
        print(type(error).__name__)
"""


def run(program, folder):
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=folder)
    return done.stdout, done.stderr.splitlines()[-1:]


def by_hand(program):
    return f"{IMPORTER}\nwith by_hand():\n{textwrap.indent(program, '    ')}"


def written(folder, modules):
    for name, text in modules.items():
        file = folder / f"{name}.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    return modules["main"]


@pytest.mark.parametrize("what", TIMES)
def test_as_python(tmp_path, what):
    program = written(tmp_path, TIMES[what])
    theirs, ours = run(program, tmp_path), run(by_hand(program), tmp_path)
    if what == "no package":  # Python says why
        assert ours[1] == ["ModuleNotFoundError: No module named 'a.b'"]
        theirs[1][0] = theirs[1][0].partition(";")[0]
    assert ours == theirs


def test_what_failed_is_not_there_afterwards(tmp_path):
    written(tmp_path, {"a": "x = 1\n1 / 0", "main": ""})
    program = TWICE.format("a")
    assert run(by_hand(program), tmp_path) == run(program, tmp_path) == ("ZeroDivisionError\nZeroDivisionError\n", [])


@pytest.mark.parametrize("beside", [[], ["cuda"]])
def test_it_imports_pytorch(tmp_path, beside):
    """Also where a file has the name of a package that PyTorch looks for."""
    for name in beside:
        (tmp_path / f"{name}.py").write_text("")
    names = "print(*vars(torch)); print(*sorted(n for n in sys.modules if n.startswith('torch')))"
    env = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    told = [
        subprocess.run([sys.executable, "-c", f"import sys\n{program}\n{names}"], capture_output=True, text=True, env=env, cwd=tmp_path, check=True).stdout
        for program in (by_hand("import torch"), "import torch")
    ]  # fmt: skip
    assert told[0] == told[1] and len(told[0].split()) > 2000
