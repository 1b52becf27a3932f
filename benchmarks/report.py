"""The table: Markdown for readers, JSON for programs."""

import math
import os
import platform
import statistics

from benchmarks import record
from benchmarks.cases import CASES, GROUPS
from benchmarks.contestants import libraries
from benchmarks.record import RESULTS


def summarize(name, samples):
    """One row: medians in seconds; the ratio is the median over pairs of neighbouring samples.

    A machine that is slow for a while is slow for both of a pair, so their ratio holds.
    """
    pairs = ratios(samples["readtorch"], samples["torch"])
    quartiles = statistics.quantiles(pairs, n=4) if len(pairs) > 1 else [pairs[0]] * 3
    row = {
        "case": name,
        "group": CASES[name].group,
        "readtorch": statistics.median(samples["readtorch"]),
        "torch": statistics.median(samples["torch"]),
        "ratio": statistics.median(pairs),
        "quartiles": [quartiles[0], quartiles[2]],
    }
    by_default = samples.get("torch, glibc's malloc")
    return (
        row
        if by_default is None
        else row
        | {
            "torch, glibc's malloc": statistics.median(by_default),
            "ratio, glibc's malloc": statistics.median(ratios(samples["readtorch"], by_default)),
        }
    )


def ratios(ours, theirs):
    return [a / b for a, b in zip(ours, theirs)]


def verdicts(rows):
    """(what, ratio, target) for each bar that this run can judge."""
    found = []
    for title, group in GROUPS.items():
        timed = [row for row in rows if row["group"] == title and "ratio" in row]
        if timed and group.mean is not None:
            mean = math.exp(statistics.fmean(math.log(row["ratio"]) for row in timed))
            found.append((f"{title}: geometric mean of {len(timed)}", mean, group.mean))
        if group.each is not None:
            found += [(f"{title}: {row['case']}", row["ratio"], group.each) for row in timed]
    return found


def in_microseconds(seconds):
    return f"{seconds * 1e6:.2f}" if seconds < 1e-4 else f"{seconds * 1e6:,.0f}"


def row_text(row):
    if "error" in row:
        return f"| {row['case']} | | | {row['error'][:80]} | |"
    low, high = row["quartiles"]
    return (
        f"| {row['case']} | {in_microseconds(row['readtorch'])} | {in_microseconds(row['torch'])} "
        f"| {row['ratio']:.2f} | {low:.2f}–{high:.2f} |"
    )


HEADER = "| case | readtorch, µs | torch, µs | ratio | its quartiles |\n|---|---:|---:|---:|---|"


def markdown(rows, imports, about):
    lines = ["# readtorch against its reference", "", about, ""]
    for title in GROUPS:
        chosen = [row for row in rows if row["group"] == title]
        if chosen:
            lines += [f"## {title.capitalize()}", "", HEADER, *map(row_text, chosen), ""]
    lines += ["## Targets", "", "| what | ratio | target | |", "|---|---:|---:|---|"]
    lines += [
        f"| {what} | {ratio:.2f} | {target} | {'reached' if ratio <= target else 'missed'} |"
        for what, ratio, target in verdicts(rows)
    ]
    if imports:
        lines += ["", "## Import", "", "| module | seconds, with Python's own start |", "|---|---:|"]
        lines += [f"| `{module}` | {seconds:.2f} |" for module, seconds in imports.items()]
    return "\n".join(lines) + "\n"


def about_this_machine(versions, rounds):
    found = ", ".join(f"{name} {version}" for name, version in versions.items())
    return (
        f"Medians of up to {rounds} interleaved samples: CPU time of one thread on one core, or wall time where two "
        f"threads work ({platform.machine()}, {os.cpu_count()} cores), Python {platform.python_version()}, {found}. "
        "Ratio: time of readtorch / time of torch; below 1 readtorch is faster. Both have the same malloc thresholds "
        "(benchmarks/contestants.py). " + " ".join(f"BLAS of {side}: {found}." for side, found in libraries().items())
    )


def write(rows, imports, about, stem):
    """The table of this run as STEM.md; its rows go into STEM.json, beside those of cases that did not run."""
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{stem}.md").write_text(markdown(rows, imports, about))
    record.merge(stem, rows, **{"import": imports, "libraries": libraries()})
    return RESULTS / f"{stem}.md"
