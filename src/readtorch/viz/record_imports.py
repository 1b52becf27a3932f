"""What a program imports, in which order and how long it takes, for the import timeline.

It is recorded in a fresh interpreter; the watch that runs there is in watch_imports.py.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from . import watch_imports

MOST_RUNS = 8
KINDS = [
    "its own Python files",
    "its own extension modules",
    "other packages",
    "standard library",
    "looked for, not there",
]
OWN, EXTENSION, OTHER, STANDARD, ABSENT = range(len(KINDS))


def record_imports(programs) -> dict:
    """Recordings of one or several programs -> JSON.

    programs: the text of a program, such as "import torch", or a dict ``{label: text}``. Each runs twice, in fresh
    interpreters that find the same packages as this one; the second is recorded, when all files are compiled. A module is [name, place of its importer among the
    modules, begin, time with what it imports, kind, file]; times are whole microseconds, the first one is the
    program itself. A file that follows from the name is "" (a/b.py) or "/" (a/b/__init__.py).
    ValueError for too many programs and for none; RuntimeError with the message of a program that failed.
    """
    pairs = list(programs.items()) if hasattr(programs, "items") else [(programs, programs)]
    if not 1 <= len(pairs) <= MOST_RUNS:
        raise ValueError(f"{len(pairs)} programs; the import timeline draws 1 to {MOST_RUNS}")
    return {"kinds": KINDS, "runs": [run_of(label, program) for label, program in pairs]}


def run_of(label, program) -> dict:
    records = records_of(program)
    own = package_of(records)
    began = records[watch_imports.PROGRAM][2]
    modules = [module_of(record, own, began) for record in records]
    return {"label": label, "program": program, "own": own, "modules": modules}


def records_of(program) -> list:
    """The watch's records of a program that fresh interpreters run: the first compiles, the second is watched.

    Packages differ in whether bytecode lies beside their files, so that times without a folder of our own would too.
    """
    with tempfile.TemporaryDirectory() as bytecode:
        watched(program, bytecode)
        return watched(program, bytecode)


def watched(program, bytecode) -> list:
    paths = [str(Path(__file__).parents[2]), *sys.path]
    kept = {"PYTHONPYCACHEPREFIX": bytecode, "PYTHONDONTWRITEBYTECODE": ""}  # empty: it is written
    done = subprocess.run(
        # -P: the folder of the watch is not searched for modules
        [sys.executable, "-P", watch_imports.__file__, program],
        capture_output=True,
        text=True,
        env=os.environ | kept | {"PYTHONPATH": os.pathsep.join(filter(None, paths))},
    )
    if done.returncode:
        raise RuntimeError(f"the program failed:\n{done.stderr}")
    return json.loads(done.stdout.rstrip("\n").rpartition("\n")[2])


def package_of(records) -> str:
    """The package that the program is about: the last one that it asks for itself."""
    asked = [record[0] for record in records if record[1] == watch_imports.PROGRAM]
    return asked[-1].partition(".")[0] if asked else ""


def module_of(record, own, began) -> list:
    name, importer, begin, end, loader, file, package = record
    begin_us = round(1e6 * (begin - began))
    expected = name.replace(".", "/") + ("/__init__.py" if package else ".py")
    short = ("/" if package else "") if file.replace(os.sep, "/") == expected else file
    total_us = round(1e6 * (end - began)) - begin_us
    return [name, importer, begin_us, total_us, kind_of(name, loader, own), short]


def kind_of(name, loader, own) -> int:
    top = name.partition(".")[0]
    if loader == "not found":
        return ABSENT
    if top in ("", own):  # "" is the program itself
        return EXTENSION if loader == "ExtensionFileLoader" else OWN
    return STANDARD if top in sys.stdlib_module_names else OTHER
