"""The tables of the page "How close is it?" that come from result files other than conformance's, as Markdown.

Needs neither torch nor readtorch: what a reader sees was measured when the files were written.
"""

import json
import math
import pathlib
import statistics

from benchmarks.record import RESULTS, is_reached
from tests.conformance.page import code, table

ROOT = pathlib.Path(__file__).resolve().parents[1]


def read(path):
    return json.loads(pathlib.Path(path).read_text(encoding="utf8"))


def about(data):
    """When, where and with what a file was made."""
    versions = ", ".join(f"{name} {version}" for name, version in data["about"]["versions"].items())
    return f"Measured on {data['about']['date']} on {data['about']['machine']} with {versions}."


def lockstep(path=ROOT / "tests/lockstep/results.json"):
    data = read(path)
    rows = [(code(row["name"]), row["about"], row["lines"], _same(row)) for row in data["rows"]]
    return f"{about(data)}\n\n{table(('Program', 'What it does', 'Lines', 'Printed'), rows)}"


def libraries(path=ROOT / "tests/libraries/results.json"):
    """Programs of other libraries: a row each, grouped by library."""
    data = read(path)
    rows = [
        (f"{row['library']} {row['version']}", row["what"], f"{row['numbers']:,}", _ended(row), row.get("time", "–"))
        for row in sorted(data["programs"], key=lambda row: row["library"].lower())
    ]
    about = f"Measured on {data['date']} with Python {data['python']}, beside PyTorch {data['torch']}, one thread."
    same = [row for row in rows if row[3] == "the same"]
    count = f"{len(same)} of {len(rows)} programs run to the end with PyTorch's numbers."
    return f"{about} {count}\n\n{table(('Library', 'What the program does', 'Numbers', 'Result', 'Time'), rows)}"


def _ended(row):
    ends = {
        "same": "the same",
        "differs": "differs: ",
        "stops": "stops: ",
        "the reference stops": "PyTorch itself stops: ",
    }
    return ends[row["result"]] + (code(row["where"]) if "where" in row else "")


def allocator(path=ROOT / "tests/allocator/results.json"):
    data = read(path)
    rows = [
        (
            code(row["name"]),
            row["about"],
            code(row["settings"]) if row["settings"] else "–",
            f"{row['operations']:,}",
            f"{row['driver_calls']:,}",
            _same(row),
        )
        for row in data["rows"]
    ]
    header = ("Recorded run", "What it does", "Settings", "Operations", "Driver calls", "Decisions")
    return f"{about(data)}\n\n{table(header, rows)}"


def _same(row):
    return "the same" if row["difference"] is None else f"differs: {row['difference']}"


# ------------------------------------------------------------------------------------------------------ speed


def speed(path=RESULTS / "cpu.json"):
    """One row a group of cases: the mean and the worst of time here / time of torch, and what they are held to; beside it
    the mean where PyTorch has malloc as glibc sets it up."""
    from benchmarks.cases import GROUPS  # imports no library under test

    data, rows = read(path), []
    for title, group in GROUPS.items():
        ratios = {row["case"]: row["ratio"] for row in data["rows"] if row["group"] == title and "ratio" in row}
        if ratios:
            worst = max(ratios, key=ratios.get)
            by_default = [row[BY_DEFAULT] for row in data["rows"] if row["group"] == title and BY_DEFAULT in row]
            rows.append(
                (
                    title,
                    len(ratios),
                    _ratio(mean(ratios.values()), group.mean),
                    _ratio(ratios[worst], group.each),
                    worst,
                    f"{mean(by_default):.2f}" if by_default else "–",
                )
            )
    header = ("Group", "Cases", "Mean ratio", "Largest ratio", "which is", "Mean ratio, glibc's malloc")
    return f"{about(data)}\n\n{table(header, rows)}"


BY_DEFAULT = "ratio, glibc's malloc"


def mean(ratios):
    """The geometric mean."""
    return math.exp(statistics.fmean(map(math.log, ratios)))


def given(path=RESULTS / "cpu.json"):
    """What each side computed with: BLAS and the kernels that it chose on the machine that was measured."""
    found = read(path).get("libraries", {})
    return table(("Side", "Libraries, as they describe themselves"), list(found.items()))


def _ratio(value, target):
    verdict = "" if target is None else f" (at most {target}{'' if value <= target else ': missed'})"
    return f"{value:.2f}{verdict}"


def cases(path=RESULTS / "cpu.json"):
    """Every case: times in microseconds, the ratio and its quartiles."""
    rows = [
        (
            row["case"],
            f"{row['readtorch'] * 1e6:,.2f}",
            f"{row['torch'] * 1e6:,.2f}",
            f"{row['ratio']:.2f}",
            "–".join(f"{q:.2f}" for q in row["quartiles"]),
            f"{row[BY_DEFAULT]:.2f}" if BY_DEFAULT in row else "–",
            row["date"],
        )
        for row in read(path)["rows"]
        if "ratio" in row
    ]
    return table(("Case", "readtorch, µs", "torch, µs", "Ratio", "Quartiles", "Ratio, glibc's malloc", "Date"), rows)


def fused(path=RESULTS / "fusion.json"):
    """Eight pointwise operators, by number of elements."""
    data = read(path)
    ways = [name for name in data["rows"][0] if name not in ("chain", "elements")]
    rows = [(row["chain"], f"{row['elements']:,}", *(f"{row[way]:,.1f}" for way in ways)) for row in data["rows"]]
    return f"{about(data)}\n\n{table(('Chain', 'Elements', *(f'{way}, µs' for way in ways)), rows)}"


def precision(path=RESULTS / "precision.json"):
    """The largest errors of functions, in units in the last place: one row a function, both dtypes beside each other."""
    rows, found = read(path)["rows"], {}
    for row in rows:
        found.setdefault(row["function"], []).extend(f"{row[way]:.2f}" for way in WAYS)
    header = ["Function", *(f"{way}, {dtype}" for dtype in dict.fromkeys(row["dtype"] for row in rows) for way in WAYS)]
    return table(header, [(code(name), *errors) for name, errors in found.items()])


WAYS = ("eager", "fused", "PyTorch")


def others(names=("simulator", "allocator", "distributed", "footprint", "profiler", "autocast")):
    """Everything that is not a time beside PyTorch's on one thread."""
    rows, dates = [], set()
    for data in (read(RESULTS / f"{name}.json") for name in names):
        dates.add(data["about"]["date"])
        rows += [(row["what"], f"{row['value']:,g} {row['unit']}".strip(), _target(row)) for row in data["rows"]]
    return f"Measured on {' and '.join(sorted(dates))}.\n\n{table(('What', 'Measured', 'Held to'), rows)}"


def _target(row):
    if row["target"] is None:
        return "–"
    words = "at least" if row["more_is_better"] else "at most"
    return f"{words} {row['target']}" + ("" if is_reached(row) else ": missed")


def gpu(folder=RESULTS / "gpu"):
    """What `make gpu` measured on a real device, or that nothing was."""
    path = folder / "benchmarks.json"
    if not path.exists():
        return (
            "No run on a real GPU has been recorded yet. The CUDA kernels are checked thread by thread on the kernel "
            "simulator and compiled for two chips; `make gpu` measures them where there is a device."
        )
    data = read(path)
    parts = [f"On {data['about']['device']}, {data['about']['date']}:"]
    for title, rows in data.items():
        if title != "about":
            several = all(isinstance(row, dict) for row in rows.values())
            rows = [{"what": what, **row} for what, row in (rows if several else {title: rows}).items()]
            columns = list(dict.fromkeys(column for row in rows for column in row))
            parts.append(table(columns, [[_number(row.get(column, "–")) for column in columns] for row in rows]))
    return "\n\n".join(parts)


def _number(value):
    return f"{value:,.4g}" if isinstance(value, float) else value
