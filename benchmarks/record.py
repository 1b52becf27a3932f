"""Result files: what was measured, when and with what. The book's page "How close is it?" shows them.

A file is `{"about": {date, machine, versions}, "rows": […]}`. A row of the general kind says what was measured, the value,
its unit, and what it is held to (None for nothing): at most the target, or at least, where more is better.
"""

import datetime
import importlib.metadata
import json
import os
import pathlib
import platform

RESULTS = pathlib.Path(__file__).parent / "results"


def about():
    """Date, machine and versions of a measurement that is made now."""
    versions = {name: importlib.metadata.version(name) for name in ("torch", "numpy", "numba")}
    return {
        "date": datetime.date.today().isoformat(),
        "machine": f"{_processor()}, {os.cpu_count()} cores",
        "versions": {"python": platform.python_version()} | versions,
    }


def _processor():
    """The processor's name where Linux tells it."""
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf8").split("\n")
    except OSError:
        return platform.machine()
    return next((line.split(": ")[1] for line in lines if line.startswith("model name")), platform.machine())


def row(what, value, unit, target=None, more_is_better=False):
    return {"what": what, "value": value, "unit": unit, "target": target, "more_is_better": more_is_better}


def is_reached(row):
    """Whether a row holds its target; None without one."""
    if row["target"] is None:
        return None
    return row["value"] >= row["target"] if row["more_is_better"] else row["value"] <= row["target"]


def write(name, rows, folder=None, **more):
    """Write NAME.json into the folder, or among the results; returns its path."""
    folder = folder or RESULTS
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}.json"
    lines = ",\n ".join(json.dumps(row, ensure_ascii=False) for row in rows)
    others = "".join(f',\n"{key}": {json.dumps(value)}' for key, value in more.items())
    path.write_text(f'{{"about": {json.dumps(about())},\n"rows": [\n {lines}]{others}}}\n', encoding="utf8")
    return path


def merge(name, rows, **more):
    """The same, keeping the rows of cases that were not measured this time. Each row has its own date."""
    path = RESULTS / f"{name}.json"
    old = json.loads(path.read_text(encoding="utf8")) if path.exists() else {"rows": []}
    new = {row["case"]: row | {"date": about()["date"]} for row in rows}
    kept = [row for row in old["rows"] if row["case"] not in new]
    for key, value in old.items():
        if key not in ("about", "rows") and not more.get(key):
            more[key] = value
    return write(name, [*kept, *new.values()], **more)
