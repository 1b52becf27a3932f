"""What the random tests of functions share: playing a text twice, and the command that plays many."""

import json
import random
import sys
from pathlib import Path

from readtorch._dynamo import eval_frame


def text_that_differs(source, play, seed):
    """None if `play` finds the same in a function compiled and as it is written; else the function's text."""
    text = source(random.Random(seed))
    expected = play(text, seed, lambda f: f)
    reached = play(text, seed, lambda f: eval_frame.optimize(f, backend="eager"))
    return None if repr(expected) == repr(reached) else text


RECORD = Path(__file__).with_name("random_programs.json")


def main(differs):
    """FIRST COUNT [record]: the seeds to play, and whether the page "How close is it?" shall show what came out."""
    first, count = map(int, sys.argv[1:3])
    found = {seed: text for seed in range(first, first + count) if (text := differs(seed))}
    for seed, text in found.items():
        print(f"seed {seed}\n{text}\n")
    print(f"{len(found)} of {count} are wrong")
    if sys.argv[3:] == ["record"]:
        record(Path(sys.argv[0]).stem, first, count, len(found))


def record(name, first, count, wrong):
    rows = json.loads(RECORD.read_text(encoding="utf8")) if RECORD.exists() else {}
    rows[name] = {"first": first, "programs": count, "wrong": wrong}
    RECORD.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf8")
