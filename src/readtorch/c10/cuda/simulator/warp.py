"""Operations among the 32 lanes of a warp: shuffles and votes. Each brings a value, all are answered at once.

Note [ The lanes of a mask ] The mask of a shuffle or a vote names the lanes that take part, and `_sync` waits until all
of them have come, wherever each of them is: since Volta the lanes of a warp have instruction counters of their own. So
the two arms of an `if` may each hold a shuffle, and their lanes meet; not so `mma` (mma.py), which is *aligned*: all
lanes execute it at one place. CUDA asks that every lane which the mask names and which has not left the kernel executes
the same operation with the same mask; otherwise the result is undefined. Reported is a lane that waits elsewhere, with
another mask, or at an operation that its own mask leaves it out of. Whether a lane has left *by then* is a question of
timing, so a kernel that is right whatever the timing names no lane that leaves without the operation: that is reported,
too. So is reading from a lane that the mask leaves out. Lanes that the block does not have (it ends within the warp)
may be named, not read.
"""

from . import mma
from .errors import InactiveLane
from .schedule import WARP, whereabouts


def segment(lane, width):
    """The first lane of the part of a warp that shuffles among itself."""
    return lane // width * width


def source_of_shfl(lane, operand, width):
    return segment(lane, width) + int(operand) % width


def source_of_up(lane, operand, width):
    return lane - int(operand) if lane - int(operand) >= segment(lane, width) else lane


def source_of_down(lane, operand, width):
    return lane + int(operand) if lane + int(operand) < segment(lane, width) + width else lane


def source_of_xor(lane, operand, width):
    """A lane of a later segment keeps its own value; one of an earlier segment may be read."""
    source = lane ^ int(operand)
    return source if source < segment(lane, width) + width else lane


SOURCES = {
    "shfl_sync": source_of_shfl,
    "shfl_up_sync": source_of_up,
    "shfl_down_sync": source_of_down,
    "shfl_xor_sync": source_of_xor,
}


def shuffle(kind, group):
    """Each lane's waits.value is (value, operand, width)."""
    values = {thread.lane: thread.waits.value[0] for thread in group}
    for thread in group:
        _, operand, width = thread.waits.value
        source = SOURCES[kind](thread.lane, operand, int(width))
        if source not in values:
            raise InactiveLane(
                f"{kind} reads from lane {source} of {WARP}, which does not take part (mask "
                f"{thread.waits.mask:#010x}). {whereabouts(thread)}"
            )
        thread.answer = values[source]


def ballot(group):
    return sum(1 << thread.lane for thread in group if thread.waits.value)


def answer_all(answer):
    def give(group):
        for thread in group:
            thread.answer = answer(group)

    return give


def match_any(group):
    """Which lanes have the same value as this one?"""
    for thread in group:
        thread.answer = sum(1 << other.lane for other in group if other.waits.value == thread.waits.value)


def match_all(group):
    """(the lanes, True) if all have the same value, else (0, False)."""
    same = len({thread.waits.value for thread in group}) == 1
    mask = sum(1 << thread.lane for thread in group) if same else 0
    for thread in group:
        thread.answer = mask, same


VOTES = {
    "syncwarp": answer_all(lambda group: None),
    "ballot_sync": answer_all(ballot),
    "all_sync": answer_all(lambda group: ballot(group).bit_count() == len(group)),
    "any_sync": answer_all(lambda group: ballot(group) != 0),
    "eq_sync": answer_all(lambda group: len({bool(thread.waits.value) for thread in group}) == 1),
    "match_any_sync": match_any,
    "match_all_sync": match_all,
}


def answer(kind, group):
    """Give every lane of a complete group its answer."""
    if kind in SOURCES:
        shuffle(kind, group)
    elif kind.startswith("mma."):
        mma.multiply(kind.removeprefix("mma."), group)
    else:
        VOTES[kind](group)
