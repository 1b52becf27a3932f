"""The result file: everything that is compared, as data that the book's page reads.

    python -m tests.conformance --report tests/conformance/results.json

Operators: all names of op_db, with every CPU sample of four dtypes (or --samples N). Modules: all classes of
torch.nn. Optimizers: all of optim_db. Each is "same", "differs" or "absent", with what was tried and why.
"""

import datetime
import importlib.metadata
import json
import platform

import torch

from tests.conformance import catalog, checks, known_differences, module_checks, optimizer_checks, runner
from tests.conformance.translate import Missing

DTYPES = (torch.float32, torch.float64, torch.int64, torch.bool)
REASONS_EACH = 3
LONGEST = 240
LIBRARIES = ("torch", "numpy", "numba", "scipy")


def write(path, limit, progress):
    """Compare everything; `progress(row)` sees each row as it is made."""
    result = {
        "date": datetime.date.today().isoformat(),
        "versions": versions(),
        "machine": f"{platform.machine()}, {platform.system()}",
        "dtypes": [_short(d) for d in DTYPES],
        "samples": limit or "all",
        "operators": [_seen(progress, operator_row(name, limit)) for name in catalog.all_names()],
        "modules": [_seen(progress, module_row(name, limit)) for name in catalog.module_names()],
        "optimizers": [_seen(progress, optimizer_row(name)) for name in catalog.optimizer_infos()],
    }
    with open(path, "w") as file:
        file.write(_in_lines(result))


def versions():
    libraries = {name: importlib.metadata.version(name) for name in LIBRARIES}
    return {"python": platform.python_version()} | libraries


def _seen(progress, row):
    progress(row)
    return row


def operator_row(name, limit):
    about = {"name": name, "group": catalog.group_of(name), "exact": name in checks.RANDOM}
    why = known_differences.why_left_out(name)
    if why or not checks.exists(name):
        return about | _absent(why)
    report = runner.run_op(name, DTYPES, limit)
    if not report.samples:  # it is for complex numbers only
        report = runner.run_op(name, limit=limit)
    return about | (_absent(None) if _lacks_a_name(report) else _outcome(report))


def _lacks_a_name(report):
    """Some of op_db's functions only say when they are called that something does not exist."""
    functions = [f.reason for f in report.findings if f.form == "function"]
    return bool(functions) and all("has no attribute" in reason for reason in functions)


def module_row(name, limit):
    about = {"name": name, "in_module_db": name in catalog.module_infos()}
    if not _has(module_checks, name):
        return about | _absent(None)
    return about | _outcome(runner.run_module(name, limit=limit))


def optimizer_row(name):
    if not _has(optimizer_checks, name):
        return {"name": name} | _absent(None)
    return {"name": name} | _outcome(runner.run_optimizer(name))


def _has(place, name):
    try:
        return bool(place.our_class(name))
    except Missing:
        return False


def _absent(why):
    return {"state": "absent", "why": why}


def _outcome(report):
    """What a Report says, in a few words."""
    row = {"state": "same" if report.passes and not report.known else "differs", "samples": report.samples}
    if row["state"] == "differs":
        row["failed"] = len({f.number for f in report.findings if f.kind in ("FAIL", "known")})
        row["known"] = sorted({d.why for d in report.known})
        row["failures"] = _distinct(report.failures)[:REASONS_EACH]
    notes = {kind: report.count(kind) for kind in checks.NOTES if report.count(kind)}
    return row | ({"notes": notes} if notes else {})


def _distinct(failures):
    """A few failures that tell different things: no two of one form whose reasons begin alike."""
    first = {}
    for f in failures:
        text = f"{f.form} {f.dtype}: {' '.join(f.reason.split())}"
        first.setdefault((f.form, f.reason[:40]), text[:LONGEST])
    return list(first.values())


def _short(dtype):
    return str(dtype).removeprefix("torch.")


def _in_lines(result):
    """JSON with one row a line, so that a new run shows as the lines that changed."""
    parts = []
    for key, value in result.items():
        text = json.dumps(value)
        if isinstance(value, list) and value and isinstance(value[0], dict):
            text = "[\n" + ",\n".join(f"  {json.dumps(row)}" for row in value) + "\n ]"
        parts.append(f" {json.dumps(key)}: {text}")
    return "{\n" + ",\n".join(parts) + "\n}\n"
