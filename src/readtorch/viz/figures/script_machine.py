"""A scripted function of an int, run instruction by instruction: frames, registers, stack (the chapter "JIT: scripting").

In PyTorch: `torch/csrc/jit/runtime/interpreter.cpp`. `tests/viz/test_script_machine.py` scripts the same functions, with PyTorch and with
readtorch, and compares instructions and results.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, field

from readtorch.viz.figure_kit import Figure
from readtorch.viz.inputs import Choice, Integer
from readtorch.viz.picture import box, drawing, text

MOST = 2**63 - 1  # the limit of a `while`
OPERATORS = {"gt": operator.gt, "add": operator.add, "mul": operator.mul, "sub": operator.sub}


@dataclass
class Code:
    """instructions: as they are listed. operators, functions: what OP and CALL number."""

    instructions: str
    constants: list
    operators: list
    functions: list = field(default_factory=list)

    def __post_init__(self):
        lines = (line.split() for line in self.instructions.split("; "))
        self.parsed = [(line[0], *map(int, line[1:]), *[0] * (3 - len(line))) for line in lines]


PROGRAMS = {  # source, functions; the first is called
    "squares": (
        [
            "def square_of(n: int):",
            "    return n * n",
            "",
            "def squares(n: int):",
            "    total = 0",
            "    for i in range(n):",
            "        if i > 0:",
            "            total = total + square_of(i)",
            "    return total",
        ],
        {
            "squares": Code(
                "STORE 0; LOADC 2; MOVE 0; LOADC 0; LOADC 1; LOOP 18 3; STOREN 1 2; LOAD 1; LOADC 1; OP 0; JF 6; LOAD 2; LOAD 1; CALL 0; "
                "OP 1; JMP 2; LOAD 2; STORE 3; DROPR 2; DROPR 1; LOADC 0; MOVE 3; JMP -17; STORE 4; MOVE 4; RET",
                [True, 0, 0],
                ["gt", "add"],
                ["square_of"],
            ),
            "square_of": Code("STORE 0; LOAD 0; MOVE 0; OP 0; RET", [], ["mul"]),
        },
    ),
    "doubled": (
        [
            "def doubled(n: int):",
            "    total = 1",
            "    while n > 0:",
            "        total = total * 2",
            "        n = n - 1",
            "    return total",
        ],
        {
            "doubled": Code(
                "STORE 0; LOADC 4; LOADC 2; LOAD 0; LOADC 1; OP 0; LOADC 3; MOVE 0; LOOP 17 4; STOREN 1 3; DROPR 1; MOVE 2; LOADC 0; OP 1; "
                "STORE 4; MOVE 3; LOADC 3; OP 2; STORE 5; LOAD 5; LOADC 1; OP 3; MOVE 4; MOVE 5; JMP -16; STOREN 6 2; DROPR 7; MOVE 6; RET",
                [2, 0, MOST, 1, 0],
                ["gt", "mul", "sub", "gt"],
            )
        },
    ),
    "at_most": (
        ["def at_most(n: int):", "    if n > 3:", "        n = 3", "    return n * n"],
        {
            "at_most": Code(
                "STORE 0; LOAD 0; LOADC 0; OP 0; JF 3; LOADC 0; JMP 2; LOAD 0; STORE 1; DROPR 0; LOAD 1; MOVE 1; OP 1; RET",
                [3],
                ["gt", "mul"],
            )
        },
    ),
}


@dataclass
class Frame:
    name: str
    code: Code
    pc: int = 0
    registers: dict = field(default_factory=dict)


def words(value):
    return "2**63 - 1" if value == MOST else str(value)


class Machine:
    """What is said of an instruction, is said by the method that runs it."""

    def __init__(self, functions, name, argument):
        self.functions, self.stack = functions, [argument]
        self.frames = [Frame(name, functions[name])]
        self.steps, self.say = [], []

    def run(self):
        while self.frames:
            frame = self.frames[-1]
            name, x, n = frame.code.parsed[frame.pc]
            self.see()
            at = f"At {frame.pc} in {frame.name}: "
            frame.pc += 1
            self.say.append(at + getattr(self, name)(frame, x, n))
        self.steps.append({"frames": [], "registers": [], "stack": [words(one) for one in self.stack]})
        self.say.append(f"The machine stops. The result is {words(self.stack[-1])}.")

    def see(self):
        """What there is before the next instruction."""
        top = self.frames[-1]
        registers = [[str(number), words(top.registers[number])] for number in sorted(top.registers)]
        frames = [[frame.name, frame.pc] for frame in self.frames]
        self.steps.append({"frames": frames, "registers": registers, "stack": [words(one) for one in self.stack]})

    def LOAD(self, frame, x, n):
        self.stack.append(frame.registers[x])
        return f"LOAD pushes {words(frame.registers[x])}, which stays in register {x}."

    def MOVE(self, frame, x, n):
        self.stack.append(frame.registers.pop(x))
        return f"MOVE pushes {words(self.stack[-1])} and empties register {x}: this was its last use."

    def LOADC(self, frame, x, n):
        self.stack.append(frame.code.constants[x])
        return f"LOADC pushes the constant {words(self.stack[-1])}."

    def STORE(self, frame, x, n):
        frame.registers[x] = self.stack.pop()
        return f"STORE pops {words(frame.registers[x])} into register {x}."

    def STOREN(self, frame, x, n):
        values = self.stack[-n:]
        del self.stack[-n:]
        frame.registers |= {x + i: value for i, value in enumerate(values)}
        return f"STOREN pops {', '.join(map(words, values))} into registers {x} to {x + n - 1}."

    def DROPR(self, frame, x, n):
        gone = frame.registers.pop(x)
        return f"DROPR empties register {x}: nobody reads {words(gone)} any more."

    def OP(self, frame, x, n):
        name = frame.code.operators[x]
        b, a = self.stack.pop(), self.stack.pop()
        self.stack.append(OPERATORS[name](a, b))
        return f"OP calls aten::{name}({words(a)}, {words(b)}), which leaves {words(self.stack[-1])}."

    def JF(self, frame, x, n):
        if self.stack.pop():
            return "JF pops True, and does nothing."
        frame.pc += x - 1
        return f"JF pops False, and goes to {frame.pc}."

    def JMP(self, frame, x, n):
        frame.pc += x - 1
        return f"JMP goes to {frame.pc}."

    def LOOP(self, frame, x, n):
        base = len(self.stack) - n - 1
        begun, most, go_on = self.stack[base : base + 3]
        if begun < most and go_on:
            self.stack[base : base + 3] = [begun + 1, most, begun]
            return f"LOOP: {begun} of at most {words(most)} begun, and it may go on: iteration {begun} begins."
        del self.stack[base : base + 3]
        frame.pc += x - 1
        why = "it may not go on" if begun < most else f"all {begun} have been run"
        return f"LOOP: {why}. The loop is left, to {frame.pc}."

    def CALL(self, frame, x, n):
        name = frame.code.functions[x]
        self.frames.append(Frame(name, self.functions[name]))
        return f"CALL adds a frame for {name}; its argument is on the stack, and {frame.name} stands at {frame.pc}."

    def RET(self, frame, x, n):
        self.frames.pop()
        return f"RET takes the frame of {frame.name} away; its result stays on the stack."


def model(inputs):
    source, functions = PROGRAMS[inputs["program"]]
    name = inputs["program"]
    machine = Machine(functions, name, inputs["n"])
    machine.run()
    listings = {one: code.instructions.split("; ") for one, code in functions.items()}
    constants = {one: [words(value) for value in code.constants] for one, code in functions.items()}
    return {"source": source, "listings": listings, "constants": constants, "steps": machine.steps, "say": machine.say}


def picture(result, step):
    one = result["steps"][step]
    name, pc = one["frames"][-1] if one["frames"] else (next(iter(result["listings"])), -1)
    first = max(0, min(pc - 3, len(result["listings"][name]) - 8))
    lines = [(first + i, line) for i, line in enumerate(result["listings"][name][first : first + 8])]
    parts = [
        text("instructions", 8, 18, "dim"),
        text("stack, top first", 220, 18, "dim"),
        text("registers", 400, 18, "dim"),
    ]
    parts += [
        text(f"{'▸ ' if i == pc else ''}{i} {line}", 8, 40 + 18 * row, "mono") for row, (i, line) in enumerate(lines)
    ]
    parts += [box(220, 26 + 26 * i, 130, 22, "pale", value) for i, value in enumerate(reversed(one["stack"]))]
    parts += [
        text(f"{number}: {value}", 400, 40 + 18 * i, "mono") for i, (number, value) in enumerate(one["registers"])
    ]
    return drawing(560, 190, *parts)


TITLES = {"squares": "a loop, a branch and a call", "doubled": "while", "at_most": "if"}
FIGURE = Figure(
    name="script_machine",
    title="Instruction by instruction",
    inputs=(Choice("program", "function", "squares", TITLES), Integer("n", "n", 3, low=0, high=5)),
    model=model,
    picture=picture,
)
