"""The rooms of the package, read from its files, written down for the house map.

A room is a folder of modules; a module at the top is a room of its own. What a room is for, where it stands
in PyTorch and which chapter explains it come from its docstring; who imports whom from the ``import``
statements, by ``ast``. Only the floors are said here, since they are the law that the imports should keep.
"""

from __future__ import annotations

import ast
import re
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from .watch_calls import GENERATED, PACKAGE, plain_name, source_note, watch_calls

# Arrows point down. A room stands on the floor that names the first part of its path, else on "public faces".
FLOORS = (
    ("pictures and quotations", ("viz", "show")),
    ("public faces", ()),
    ("tensors", ("_tensor", "_tensor_str", "_C", "storage", "_storage")),
    ("engine", ("csrc",)),
    ("operators", ("aten",)),
    ("ground", ("c10",)),
)
FACES = 1
MOST_STEPS = 600

IN_PYTORCH = re.compile(r"In PyTorch: (.+?)(?:\.(?:\s|$)|\n\n|$)", re.DOTALL)
CHAPTER = re.compile(r'chapters? "([^"]+)"')


@dataclass
class FileRecord:
    name: str
    about: str
    counterpart: str | None
    lines: int
    defines: list


@dataclass
class Room:
    path: str  # "aten/native"; "" is the front door
    floor: int
    about: str
    counterpart: str | None
    chapter: str | None
    files: list = field(default_factory=list)
    lines: int = 0
    imports: dict = field(default_factory=dict)  # path of a room -> the modules that do it
    imported_by: list = field(default_factory=list)


@dataclass
class RoomStep:
    """A call that enters a room from another one. ``line``: where the watched function stood."""

    room: str
    function: str
    where: str
    line: int
    times: int = 1


# ---- survey


def survey(package: Path = PACKAGE) -> dict:
    """All rooms with what they hold and what they import, as JSON."""
    modules = {path: ast.parse(path.read_text(encoding="utf8")) for path in sorted(package.rglob("*.py"))}
    rooms = {}
    for path, tree in modules.items():
        name = room_of(path, package)
        room = rooms.get(name) or rooms.setdefault(name, new_room(name, path, tree, modules))
        record = describe_file(path, tree)
        room.files.append(record)
        room.lines += record.lines
    for path, tree in modules.items():
        room = rooms[room_of(path, package)]
        for target in imported_modules(path, tree, package):
            other = room_of(target, package)
            if other != room.path and other in rooms:
                room.imports.setdefault(other, set()).add(path.stem)
    for room in rooms.values():
        room.imports = {other: sorted(by) for other, by in sorted(room.imports.items())}
        for other in room.imports:
            rooms[other].imported_by.append(room.path)
    floors = [
        {"name": name, "rooms": [asdict(r) for r in rooms.values() if r.floor == number]}
        for number, (name, _) in enumerate(FLOORS)
    ]
    return {"floors": [floor for floor in floors if floor["rooms"]], "package": package.name}


def room_of(path: Path, package: Path = PACKAGE) -> str:
    """A folder's path in the package; a module at the top is a room by its own name, ``__init__`` is ""."""
    relative = path.relative_to(package)
    if len(relative.parts) > 1:
        return relative.parent.as_posix()
    return "" if relative.stem == "__init__" else relative.stem


def floor_of(name: str) -> int:
    first = name.partition("/")[0]
    return next((number for number, (_, rooms) in enumerate(FLOORS) if first in rooms), FACES)


def new_room(name, path, tree, modules) -> Room:
    """A folder is described by its ``__init__``, a module at the top by itself."""
    if name not in ("", path.stem):
        tree = modules.get(path.parent / "__init__.py")
    text = tree and ast.get_docstring(tree) or ""
    chapter = CHAPTER.search(text)
    return Room(
        name, floor_of(name), first_sentence(text), counterpart_in(text), chapter and " ".join(chapter[1].split())
    )


def counterpart_in(text: str) -> str | None:
    """What a docstring says after "In PyTorch:"."""
    found = IN_PYTORCH.search(text)
    return " ".join(found[1].split()).replace("`", "") if found else None


def describe_file(path, tree) -> FileRecord:
    defines = [
        node.name
        for node in tree.body
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and not node.name.startswith("_")
    ]
    lines = len(path.read_text(encoding="utf8").splitlines())
    text = ast.get_docstring(tree) or ""
    return FileRecord(path.name, first_sentence(text), counterpart_in(text), lines, defines)


def first_sentence(text: str) -> str:
    """Of the first paragraph, without quoting marks and without the module's own name in front."""
    paragraph = " ".join(text.partition("\n\n")[0].split())
    sentence = re.sub(
        r"^`?[\w./]+`?: (.)", lambda first: first[1].upper(), re.split(r"(?<=[.!?])\s(?=[A-Z])", paragraph)[0]
    )
    return sentence.replace("`", "")


def imported_modules(path: Path, tree, package: Path) -> set[Path]:
    """The files of the package that this file imports, at the top or inside a function."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            base = import_base(path, node, package)
            if base is not None:
                found |= {module_file(base / alias.name) or module_file(base) for alias in node.names}
        elif isinstance(node, ast.Import):
            names = [alias.name.split(".") for alias in node.names]
            found |= {module_file(package.joinpath(*n[1:])) for n in names if n[0] == package.name}
    return found - {None}


def import_base(path: Path, node: ast.ImportFrom, package: Path) -> Path | None:
    """The folder or module that ``from … import`` names, without suffix; None if it is not ours."""
    parts = (node.module or "").split(".") if node.module else []
    if node.level:
        return path.parents[node.level - 1].joinpath(*parts)
    return package.joinpath(*parts[1:]) if parts and parts[0] == package.name else None


def module_file(stem: Path) -> Path | None:
    for candidate in (stem.with_suffix(".py"), stem / "__init__.py"):
        if candidate.is_file():
            return candidate
    return None


# ---- one real call, room by room


def trace_rooms(call, package: Path = PACKAGE) -> dict:
    """Run ``call()`` and note whenever a function of one room is called from another, as JSON.

    The same function entered again right away is counted, not repeated.
    """
    code = call.__code__
    steps = []

    def on_call(frame):
        room = room_of_frame(frame, package)
        if room is None or room == room_of_frame(frame.f_back, package):
            return
        step = RoomStep(room, plain_name(frame.f_code), where(frame, package), line_in(frame, code))
        if steps and replace(steps[-1], times=1) == step:
            steps[-1].times += 1
        elif step.line and len(steps) < MOST_STEPS:
            steps.append(step)

    watch_calls(call, on_call)
    return {"source": asdict(source_note(code)), "steps": [asdict(step) for step in steps]}


def room_of_frame(frame, package: Path = PACKAGE) -> str | None:
    if frame is None:
        return None
    file = frame.f_code.co_filename
    if file.startswith(GENERATED):
        return room_of_generated(frame)
    path = Path(file)
    return room_of(path, package) if path.is_relative_to(package) else None


def room_of_generated(frame) -> str:
    """Calls and bindings are aten's; what notes or walks the graph was written by csrc/autograd."""
    return "csrc/autograd" if "NO_EDGE" in frame.f_globals else "aten"


def where(frame, package) -> str:
    file = frame.f_code.co_filename
    if file.startswith(GENERATED):
        return "generated"
    return f"{Path(file).relative_to(package).as_posix()}:{frame.f_code.co_firstlineno}"


def line_in(frame, code) -> int:
    """The line at which the watched function stands now; 0 when it is not running."""
    while frame is not None:
        if frame.f_code is code:
            return frame.f_lineno
        frame = frame.f_back
    return 0
