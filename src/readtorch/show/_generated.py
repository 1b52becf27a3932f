"""PyTorch's generated C++: node classes, kernels that record the graph, registrations, Python bindings.

A build of PyTorch writes these files and no repository holds them. The wheel ships what writes them (`torchgen`, with its
templates), so the same files are made here, once a release, and kept in a folder.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from readtorch.c10.cache_dir_utils import cache_directory
from readtorch.show import _links

# where a build of PyTorch puts them: the folders that the generators are told to write to
ROOMS = {"torch/csrc/autograd/generated": ("autograd", "python"), "build/aten/src/ATen": ("aten",)}

# Run in a process of its own: the generators import by the names of their folders, print, and change what they import.
PROGRAM = """
import subprocess, sys
from pathlib import Path

import torchgen
from torchgen.selective_build.selector import SelectiveBuilder

packaged, out = Path(torchgen.__file__).parent / "packaged", Path(sys.argv[1])
sys.path.insert(0, str(packaged))
from autograd.gen_autograd import gen_autograd, gen_autograd_python

for name in ("autograd", "python", "aten"):
    (out / name).mkdir()
functions, tags = (str(packaged / "ATen/native" / name) for name in ("native_functions.yaml", "tags.yaml"))
gen_autograd(functions, tags, str(out / "autograd"), str(packaged / "autograd"), SelectiveBuilder.get_nop_selector())
gen_autograd_python(functions, tags, str(out / "python"), str(packaged / "autograd"))
ops = ["-m", "torchgen.gen", "-s", str(packaged / "ATen"), "-d", str(out / "aten")]
subprocess.run([sys.executable, *ops], check=True)
"""


def files(path: str) -> list[Path]:
    """The generated files of this path in a build of PyTorch; `VariableType.cpp` names all its shards, `VariableType_0.cpp` …"""
    room, _, name = path.rpartition("/")
    if room not in ROOMS:
        return []
    stem, suffix = os.path.splitext(name)
    places = [folder() / part for part in ROOMS[room]]
    whole = [place / name for place in places if (place / name).exists()]
    return whole or sorted(file for place in places for file in place.glob(f"{stem}_[0-9]*{suffix}"))


# The dispatcher says where each kernel was registered: rows of its table, and the keys that the generated files register for.
KEYS = {"Autograd": "AutogradCPU", "ADInplaceOrView": "ADInplaceOrView", "Tracer": "Tracer"}


def misplaced(operator: str, table: str) -> list[str]:
    """Where the generated files are not those that the installed library was built from; nothing if they are.

    operator: "add.Tensor"; table: the text of `torch._C._dispatch_dump_table("aten::add.Tensor")`. At the place that it names for a
    key the files must have the registration; where it says fallthrough, they may have none.
    """
    return [problem for key, row in KEYS.items() if (problem := _misplaced(operator, key, row, table))]


def _misplaced(operator: str, key: str, row: str, table: str) -> str | None:
    place = re.search(rf"^{row}: registered at \S*?(torch/csrc/\S+):(\d+)", table, re.M)
    if place is None:
        if re.search(rf"^{row}: fallthrough ", table, re.M) and not _registers(key, operator):
            return None
        return f"{operator}: the dispatch table and the generated files differ about {key}"
    path, line = place[1], int(place[2])
    found = files(path)
    if found and operator in _block(found[0], key, line):
        return None
    return f"{operator}: {path}:{line} does not register it for {key}"


def _registers(key: str, operator: str) -> bool:
    name = {"Autograd": "VariableType", "ADInplaceOrView": "ADInplaceOrViewType", "Tracer": "TraceType"}[key]
    shards = files(f"torch/csrc/autograd/generated/{name}.cpp")
    return any(f'm.impl("{operator}",' in _text(file) for file in shards)


def _block(file: Path, key: str, line: int) -> set[str]:
    """The operators that the TORCH_LIBRARY_IMPL which begins in this line registers for the key."""
    lines = _text(file).split("\n")
    if line > len(lines) or not lines[line - 1].startswith(f"TORCH_LIBRARY_IMPL(aten, {key}, m)"):
        return set()
    block = "\n".join(lines[line:]).partition("TORCH_LIBRARY_IMPL")[0]
    return set(re.findall(r'm\.impl\("([^"]+)",', block))


@cache
def _text(file: Path) -> str:
    return file.read_text(encoding="utf8")


def are_there() -> bool:
    """Whether they have been made. (A book that quotes none of them need not wait for them.)"""
    return _place().exists()


def _place() -> Path:
    return kept() / f"generated-{_links.torch_release()}"


def path_of(file: Path) -> str:
    """Where a build of PyTorch has this file."""
    room = next(room for room, parts in ROOMS.items() if file.parent.name in parts)
    return f"{room}/{file.name}"


def kept() -> Path:
    """The folder for what is made or brought once: `_build/pytorch` of a checkout, else one of the user's cache."""
    checkout = _links.our_root().parents[1]
    if (checkout / "_config.yml").exists():
        return checkout / "_build" / "pytorch"
    directory = cache_directory()
    return (directory.parent if directory else Path(tempfile.mkdtemp())) / "pytorch"


def folder() -> Path:
    """The folder with the generated files of the installed release; they are made if they are not there yet."""
    done = _place()
    if not done.exists():
        done.parent.mkdir(parents=True, exist_ok=True)
        with _one_at_a_time(done.with_name(f"{done.name}.lock")):
            if not done.exists():
                _make(done)
    return done


def _make(done: Path) -> None:
    """Half a minute. A folder is there whole or not at all."""
    with tempfile.TemporaryDirectory(dir=done.parent) as out:
        Path(out, "here").mkdir()  # some files are written to where the generator runs
        made = subprocess.run([sys.executable, "-c", PROGRAM, out], capture_output=True, text=True, cwd=f"{out}/here")
        if made.returncode:
            raise LookupError(f"PyTorch's generators failed: {made.stderr.strip().splitlines()[-1]}")
        for file in Path(out).glob("aten/*Everything.cpp"):  # all shards of a kind once more
            file.unlink()
        shutil.rmtree(f"{out}/here")
        shutil.copytree(out, f"{done}.part", dirs_exist_ok=True)
    os.replace(f"{done}.part", done)


@contextlib.contextmanager
def _one_at_a_time(lock: Path):
    """Chapters are run side by side: one of them makes the files, the others wait."""
    try:
        import fcntl
    except ImportError:  # not on Windows: two may make them, and the second finds them there
        yield
        return
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
