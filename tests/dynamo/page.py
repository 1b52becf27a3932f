"""The mutation table as the chapter "How close is it?" shows it: ours is counted when the page is built, PyTorch's half is recorded."""

import functools
import json
import logging

from tests.dynamo import fuzzing, table
from tests.dynamo.known_differences import DIFFERENCES

COUNTED = ("graphs", "recompiles")
RANDOM = {
    "fuzz": "control flow, side effects, graph breaks",
    "world_fuzz": "a world of objects that changes between the calls",
    "shape_fuzz": "sizes, strides and ranks that change",
    "control_fuzz": "choices and loops that elements decide, in Python and as operators, with gradients",
}


@functools.cache
def rows():
    """(name, PyTorch's counts, whether ours equals the program as it is written, our counts, whether ours passes with fullgraph)"""
    logger = logging.getLogger("readtorch._dynamo")
    logger.disabled = True
    try:
        return list(table.rows())
    finally:
        logger.disabled = False


def differs(theirs, ours, passes):
    """Whether a program differs for another reason than that PyTorch's result is not the program's."""
    same_counts = all(theirs[key] == ours[key] for key in COUNTED)
    return theirs["equal"] and not (same_counts and passes >= theirs["fullgraph"])


def summary():
    """A table: of how many programs what is true."""
    found = rows()
    judged = [(theirs, ours) for _, theirs, _, ours, _ in found if theirs["equal"]]
    whole = [passes for _, theirs, _, _, passes in found if theirs["fullgraph"]]
    same = sum(all(theirs[key] == ours[key] for key in COUNTED) for theirs, ours in judged)
    lines = [
        ("programs", "", len(found)),
        ("the result is that of the program as it is written", "here", sum(equal for _, _, equal, _, _ in found)),
        ("", "`torch.compile`", len(judged)),
        ("where both are right: as many graphs and recompilations", "both", f"{same} of {len(judged)}"),
        ("`fullgraph=True` passes where PyTorch's does", "both", f"{sum(whole)} of {len(whole)}"),
    ]
    return _table(("", "Compiled", "Programs"), lines)


def wrong_in_pytorch():
    """The names of the programs in which PyTorch's compiled result is another."""
    return ", ".join(f"`{name}`" for name, theirs, *_ in rows() if not theirs["equal"])


def differences():
    """A table: each program that differs, with its reason."""
    lines = [
        (f"`{name}`", _counts(theirs, theirs["fullgraph"]), _counts(ours, passes), DIFFERENCES[name])
        for name, theirs, _, ours, passes in rows()
        if differs(theirs, ours, passes)
    ]
    return _table(("Program", "PyTorch", "Here", "Why"), lines)


def random_programs():
    """A table: how many random programs of each kind were played, and how many of them did something else when they were compiled."""
    found = json.loads(fuzzing.RECORD.read_text(encoding="utf8"))
    lines = [(what, found[name]["programs"], found[name]["wrong"]) for name, what in RANDOM.items()]
    return _table(("Random programs with", "Programs", "Wrong"), lines)


def _counts(counts, passes):
    return f"{counts['graphs']} / {counts['recompiles']}{' / whole' if passes else ''}"


def _table(head, lines):
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |" for row in rows)
