"""What the random tests of functions share: playing a text twice, and the command that plays many."""

import random
import sys

from readtorch._dynamo import eval_frame


def text_that_differs(source, play, seed):
    """None if `play` finds the same in a function compiled and as it is written; else the function's text."""
    text = source(random.Random(seed))
    expected = play(text, seed, lambda f: f)
    reached = play(text, seed, lambda f: eval_frame.optimize(f, backend="eager"))
    return None if repr(expected) == repr(reached) else text


def main(differs):
    """FIRST COUNT: the seeds to play."""
    first, count = map(int, sys.argv[1:3])
    found = {seed: text for seed in range(first, first + count) if (text := differs(seed))}
    for seed, text in found.items():
        print(f"seed {seed}\n{text}\n")
    print(f"{len(found)} of {count} are wrong")
