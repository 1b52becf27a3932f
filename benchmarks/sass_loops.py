"""The loops of a kernel's machine code.

Note [ Loops in a graph ]
The compiler moves blocks of instructions about, so that a loop need not be one range of addresses. It is found in the graph
of jumps: a block that lies on every path to another one *dominates* it; a jump back to a block that dominates where it
comes from makes a loop, which consists of all blocks that reach the jump without passing the loop's first block. Jumps for
a warp whose lanes have gone apart (BRA.DIV) are left out, and so are the instructions behind them.
"""

import re


def target(instruction, labels):
    """Where a jump goes to: the place of an instruction. None for all that is no jump."""
    found = re.search(r"\bBRA(?!\.DIV)\S*\s.*`\((\.L_\w+)\)", instruction)
    return found and labels.get(found[1])


def goes_on(instruction):
    """Whether the next instruction may follow."""
    return instruction.startswith("@") or not re.match(r"(BRA(?!\.DIV)|EXIT|RET|BRX|JMP)\b", instruction)


def blocks(instructions, labels):
    """First places of the blocks that can be reached -> (places of their instructions, first places that may follow)."""
    targets = [target(one, labels) for one in instructions]
    starts = {0, *(t for t in targets if t is not None)}
    starts |= {k + 1 for k, one in enumerate(instructions) if targets[k] is not None or not goes_on(one)}
    starts = sorted(start for start in starts if start < len(instructions))
    found = {}
    for start, end in zip(starts, [*starts[1:], len(instructions)]):
        last = end - 1
        follow = {targets[last]} if targets[last] is not None else set()
        if goes_on(instructions[last]) and end < len(instructions):
            follow.add(end)
        found[start] = range(start, end), follow
    return reachable(found)


def reachable(graph):
    seen, waiting = set(), [0]
    while waiting:
        block = waiting.pop()
        if block not in seen:
            seen.add(block)
            waiting += graph[block][1]
    return {block: graph[block] for block in seen}


def dominators(graph):
    """Block -> the blocks that lie on every path to it, itself included."""
    before = {block: [other for other, (_, follow) in graph.items() if block in follow] for block in graph}
    found = {block: set(graph) for block in graph} | {0: {0}}
    changed = True
    while changed:
        changed = False
        for block in sorted(graph.keys() - {0}):
            now = {block} | set.intersection(*(found[other] for other in before[block]))
            changed |= now != found[block]
            found[block] = now
    return found, before


def loops(instructions, labels):
    """The places of the instructions of every loop, as sets: Note [ Loops in a graph ]."""
    graph = blocks(instructions, labels)
    above, before = dominators(graph)
    bodies = {}
    for block, (_, follow) in graph.items():
        for first in follow & above[block]:
            body = bodies.setdefault(first, {first})
            waiting = [block]
            while waiting:
                one = waiting.pop()
                if one not in body:
                    body.add(one)
                    waiting += before[one]
    return [{k for block in body for k in graph[block][0]} for _, body in sorted(bodies.items())]


def executed(instructions, labels):
    """All places that can be reached."""
    return {k for places, _ in blocks(instructions, labels).values() for k in places}
