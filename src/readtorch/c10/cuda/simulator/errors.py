"""What a simulated kernel can do wrong, and where in its source that is."""

import dis
import linecache
import sys


class SimulatorError(Exception):
    """A kernel did what a GPU would not have reported."""


class OutOfBounds(SimulatorError, IndexError):
    """A thread went past the end of an array, or before its beginning."""


class BarrierDivergence(SimulatorError):
    """Some threads wait for others that will never come."""


class InactiveLane(SimulatorError):
    """A lane takes part in an operation of the warp that its mask, or a lane which the mask names, does not
    agree to: on a GPU the answer is undefined. See Note [ The lanes of a mask ].
    """


class DataRace(SimulatorError):
    """Two threads used one address, one of them wrote, and nothing put the two in order."""


class Place:
    """One instruction of a kernel or of a device function. There is one object for each instruction."""

    def __init__(self, code, offset):
        self.code, self.offset = code, offset  # offset: in the bytecode
        self.line = next(line for line, *_ in self.positions() if line is not None)

    def positions(self):
        """Where this instruction and those behind it stand in the source; two bytes make an instruction."""
        return list(self.code.co_positions())[self.offset // 2 :] + [(self.code.co_firstlineno,)]

    @property
    def source(self):
        return linecache.getline(self.code.co_filename, self.line).strip()

    def __str__(self):
        """As one finds it in a kernel on the screen: its `def` (or its first decorator) is line 1."""
        source = self.source
        number = self.line - self.code.co_firstlineno + 1
        return f"line {number} of {self.code.co_name}" + (f": {source}" if source else "")


places = {}  # (id of the code, what the interpreter says) -> Place


def place_of(frame):
    """The instruction that a frame is at."""
    key = id(frame.f_code), frame.f_lasti
    return places.get(key) or places.setdefault(key, find_place(frame.f_code, frame.f_lasti))


def find_place(code, offset):
    """The interpreter may stand in the cache behind an instruction: go back to the instruction."""
    start = max(i.offset for i in dis.get_instructions(code) if i.offset <= offset)
    return places.get((id(code), start)) or places.setdefault((id(code), start), Place(code, start))


def kernel_frame():
    """The innermost frame that is the kernel's or a device function's, not the simulator's."""
    frame = sys._getframe(1)
    while frame.f_globals.get("__package__") == __package__:
        frame = frame.f_back
    return frame


def call_path():
    """Where the kernel stands and where each device function above it does, the innermost first."""
    frame, path = kernel_frame(), []
    while frame.f_globals.get("__package__") != __package__:
        path.append(place_of(frame))
        frame = frame.f_back
    return tuple(path)


def counted(number, things):
    """1 thread, 2 threads."""
    return f"{number} {things}" if number != 1 else f"1 {things[:-1]}"
