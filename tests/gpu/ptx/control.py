"""Branches, calls, ends."""

from .instructions import instruction
from .module import identifier


@instruction("bra")
def branch(this):
    return f"goto Q_{identifier(this.operands[0])};"


@instruction("call")
def call(this):
    operands = list(this.operands)
    result = operands.pop(0).strip("() \n") if operands[0].startswith("(") else None
    given = [f"PV_{name.strip()}" for name in operands[1].strip("() \n").split(",")] if len(operands) > 1 else []
    if operands[0] == "__assertfail":  # message, file, line, function, size of a letter
        return f"assert_failed(t, {', '.join(given[:4])});"
    return f"FN_{identifier(operands[0])}({', '.join(['t', f'PV_{result}' if result else '0', *given])});"


@instruction("ret", "exit")
def leave(this):
    return "return;"


@instruction("trap")
def trap(this):
    return "t->services->trap(t);"


@instruction("membar", "fence", "nanosleep", "prefetch", "prefetchu", "griddepcontrol", "discard", "pragma")
def nothing(this):
    """Blocks run one after the other, and threads by turns: what one wrote the next one sees."""
    return ""
