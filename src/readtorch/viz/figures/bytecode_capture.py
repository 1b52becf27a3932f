"""How Dynamo interprets a function's bytecode, what it guards, and which later call needs a new graph (the chapter "Dynamo").

In PyTorch: `torch/_dynamo/symbolic_convert.py`, `torch/_dynamo/guards.py`. `tests/viz/test_bytecode_capture.py` compiles the
same functions with PyTorch.
"""

import re

from readtorch.viz.figure_kit import Figure
from readtorch.viz.inputs import Choice, Refusal, Text
from readtorch.viz.picture import box, drawing, text
from readtorch.viz.wording import counted

MOST_CALLS, LIMIT = 10, 8  # LIMIT: PyTorch's recompile_limit
DYNAMIC = "dynamic"

# Each: its source, and its instructions as (offset, line, name, argument). What CPython alone needs (RESUME, PRECALL) is left out.
PROGRAMS = {
    "scale": (
        ["def f(x):", "    return torch.relu(x) * cfg.scale"],
        [
            (2, 1, "LOAD_GLOBAL", "torch"), (14, 1, "LOAD_METHOD", "relu"), (36, 1, "LOAD_FAST", "x"), (42, 1, "CALL", 1),
            (52, 1, "LOAD_GLOBAL", "cfg"), (64, 1, "LOAD_ATTR", "scale"), (74, 1, "BINARY_OP", "*"), (78, 1, "RETURN_VALUE", ""),
        ],
    ),
    "branch": (
        ["def f(x):", "    if cfg.scale > 2:", "        x = torch.tanh(x)", "    return x + OFFSET"],
        [
            (2, 1, "LOAD_GLOBAL", "cfg"), (14, 1, "LOAD_ATTR", "scale"), (24, 1, "LOAD_CONST", "2"), (26, 1, "COMPARE_OP", ">"),
            (32, 1, "POP_JUMP_FORWARD_IF_FALSE", 86), (34, 2, "LOAD_GLOBAL", "torch"), (46, 2, "LOAD_METHOD", "tanh"),
            (68, 2, "LOAD_FAST", "x"), (74, 2, "CALL", 1), (84, 2, "STORE_FAST", "x"), (86, 3, "LOAD_FAST", "x"),
            (88, 3, "LOAD_GLOBAL", "OFFSET"), (100, 3, "BINARY_OP", "+"), (104, 3, "RETURN_VALUE", ""),
        ],
    ),
    "shape": (
        ["def f(x):", "    return x / x.shape[0] + OFFSET"],
        [
            (2, 1, "LOAD_FAST", "x"), (4, 1, "LOAD_FAST", "x"), (6, 1, "LOAD_ATTR", "shape"), (16, 1, "LOAD_CONST", "0"),
            (18, 1, "BINARY_SUBSCR", ""), (28, 1, "BINARY_OP", "/"), (32, 1, "LOAD_GLOBAL", "OFFSET"), (44, 1, "BINARY_OP", "+"),
            (48, 1, "RETURN_VALUE", ""),
        ],
    ),
    "print": (
        ["def f(x):", "    y = x * cfg.scale", "    print('seen')", "    return y + OFFSET"],
        [
            (2, 1, "LOAD_FAST", "x"), (4, 1, "LOAD_GLOBAL", "cfg"), (16, 1, "LOAD_ATTR", "scale"), (26, 1, "BINARY_OP", "*"),
            (30, 1, "STORE_FAST", "y"), (32, 2, "LOAD_GLOBAL", "print"), (44, 2, "LOAD_CONST", "'seen'"), (50, 2, "CALL", 1),
            (60, 2, "POP_TOP", ""), (62, 3, "LOAD_FAST", "y"), (64, 3, "LOAD_GLOBAL", "OFFSET"), (76, 3, "BINARY_OP", "+"),
            (80, 3, "RETURN_VALUE", ""),
        ],
    ),
    "tensor": (
        ["def f(x):", "    if x.sum() > 0:", "        return x * cfg.scale", "    return x - OFFSET"],
        [
            (2, 1, "LOAD_FAST", "x"), (4, 1, "LOAD_METHOD", "sum"), (30, 1, "CALL", 0), (40, 1, "LOAD_CONST", "0"),
            (42, 1, "COMPARE_OP", ">"), (48, 1, "POP_JUMP_FORWARD_IF_FALSE", 80), (50, 2, "LOAD_FAST", "x"),
            (52, 2, "LOAD_GLOBAL", "cfg"), (64, 2, "LOAD_ATTR", "scale"), (74, 2, "BINARY_OP", "*"), (78, 2, "RETURN_VALUE", ""),
            (80, 3, "LOAD_FAST", "x"), (82, 3, "LOAD_GLOBAL", "OFFSET"), (94, 3, "BINARY_OP", "-"), (98, 3, "RETURN_VALUE", ""),
        ],
    ),
    "loop": (
        ["def f(x):", "    for i in range(2):", "        x = x * cfg.scale", "        if cfg.scale > 2:", "            print('big')", "    return x + OFFSET"],
        [
            (2, 1, "LOAD_GLOBAL", "range"), (14, 1, "LOAD_CONST", "2"), (20, 1, "CALL", 1), (30, 1, "GET_ITER", ""), (32, 1, "FOR_ITER", 130),
            (34, 1, "STORE_FAST", "i"), (36, 2, "LOAD_FAST", "x"), (38, 2, "LOAD_GLOBAL", "cfg"), (50, 2, "LOAD_ATTR", "scale"),
            (60, 2, "BINARY_OP", "*"), (64, 2, "STORE_FAST", "x"), (66, 3, "LOAD_GLOBAL", "cfg"), (78, 3, "LOAD_ATTR", "scale"),
            (88, 3, "LOAD_CONST", "2"), (90, 3, "COMPARE_OP", ">"), (96, 3, "POP_JUMP_FORWARD_IF_FALSE", 128), (98, 4, "LOAD_GLOBAL", "print"),
            (110, 4, "LOAD_CONST", "'big'"), (116, 4, "CALL", 1), (126, 4, "POP_TOP", ""), (128, 1, "JUMP_BACKWARD", 32),
            (130, 5, "LOAD_FAST", "x"), (132, 5, "LOAD_GLOBAL", "OFFSET"), (144, 5, "BINARY_OP", "+"), (148, 5, "RETURN_VALUE", ""),
        ],
    ),
}  # fmt: skip
# What a program reads, besides the rows of x.
READS = {
    "scale": ("scale",),
    "branch": ("scale", "offset"),
    "shape": ("offset",),
    "print": ("scale", "offset"),
    "tensor": ("scale", "fill", "offset"),
    "loop": ("scale", "offset"),
}
UNREAD = {"rows": 3, "fill": 1, "scale": "2.0", "offset": 1}
TITLES = {
    "scale": "a setting",
    "branch": "a branch on a setting",
    "shape": "a size",
    "print": "a print in the middle",
    "tensor": "a branch on a tensor",
    "loop": "a print in a loop",
}
NAMES = {"*": "mul", "+": "add", "-": "sub", "/": "truediv", ">": "gt"}


BOOLS = ("True", "False")
# inf is more than the field takes otherwise; nan is no more than 2, and another number than all that the field takes
SPECIAL = {"True": 1.0, "False": 0.0, "inf": 1e6, "-inf": -1e6, "nan": -1e9}


def written(number):
    """A float as Python writes it."""
    return f"{number:.1f}" if number == int(number) else str(number)


# A value on the stack: kind "tensor", "known", "symbol", "object" or "null"; words: what is shown. A known number has a source.
def value(kind, words, source="", number=None):
    return {"kind": kind, "words": words, "source": source, "number": number}


NULL = value("null", "NULL")


class Entry:
    """What one capture has made: guards as (words, source, what is asked, of what), and a graph."""

    def __init__(self, number):
        self.number, self.guards, self.graph = number, [], []
        self.returns = True
        self.goes_on = []  # where it resumes: (name of the frame, index, stack, locals) for True and for False


class FrameState:
    """The entries of a function or of a resume function, most recently used first, and the numbers that were seen.

    is_skipped: whether it runs as it is written, for good. prologue: the instructions in front of its code. PyTorch keeps what was
    seen by file, line and name: both sides of a branch share it.
    """

    def __init__(self, prologue, seen):
        self.entries, self.made, self.is_skipped = [], 0, False
        self.prologue, self.seen = prologue, seen


class Machine:
    """The calls one after the other; `say` and `steps` are what there is to see."""

    def __init__(self, program):
        self.source, code = PROGRAMS[program]
        self.code = code
        self.at = {offset: i for i, (offset, *_) in enumerate(code)}
        self.frames, self.steps, self.say, self.calls = {}, [], [], []
        self.values, self.frame, self.seen = {}, "f", ({}, {})
        self.stack, self.shown, self.locals = [], None, {}

    def see(self, say, at=-1, guards=None, in_prologue=False):
        entry, state = self.shown, self.frames.get(self.frame)
        is_captured = at >= 0 or in_prologue
        listed = [{"words": g[0], "state": ""} for g in entry.guards] if entry else []
        self.steps.append(
            {
                "call": len(self.calls) - 1,
                "frame": self.frame,
                "at": at,
                "stack": [v["words"] for v in self.stack],
                "locals": [named(name, v["words"]) for name, v in self.locals.items()] if is_captured else [],
                "prologue": state.prologue if state else [],
                "in_prologue": in_prologue,
                "guards": guards if guards is not None else listed,
                "graph": list(entry.graph) if entry else [],
                "entry": entry.number if entry else -1,
            }
        )
        self.say.append(say)

    def left(self):
        """What the calls have left behind: the entries of all frames, in the order in which they were made."""
        return [
            {"frame": name, "number": one.number, "guards": [guard[0] for guard in one.guards], "graph": one.graph, "unused": state.is_skipped}
            for name, state in self.frames.items()
            for one in sorted(state.entries, key=lambda one: one.number)
        ]  # fmt: skip

    # ---- a call

    def call(self, values):
        self.values = values
        self.calls.append({"values": shown_values(values), "made": 0, "fitted": 0, "written": 0})
        self.frame, self.shown, self.stack = "f", None, []
        number = len(self.calls)
        self.see(f"Call {number}: x has the shape [{values['rows']}, 2].")
        self.enter("f", 0, [], {"x": value("tensor", "x", "x")})

    def enter(self, frame, start, stack, locals):
        """A call of the function, or of one of its resume functions."""
        self.frame = frame
        pushed = [f"LOAD_FAST ___stack{i}" for i in range(len(stack))]
        prologue = [*pushed, f"JUMP_FORWARD to {self.code[start][0]}"] if frame != "f" else []
        state = self.frames.setdefault(frame, FrameState(prologue, self.seen[frame != "f"]))
        entry = None if state.is_skipped else self.fitting(state)
        if entry is not None:
            self.calls[-1]["fitted"] += 1
        elif not state.is_skipped and len(state.entries) < LIMIT:
            entry = self.capture(state, start, stack, dict(locals))
            self.calls[-1]["made"] += not state.is_skipped
        if entry is None or state.is_skipped:
            self.as_written(state)
            return
        state.entries = [entry, *(one for one in state.entries if one is not entry)]
        if not entry.returns:
            self.go_on(entry)

    def as_written(self, state):
        """The frame is left to Python."""
        self.shown, self.stack = None, []
        self.calls[-1]["written"] += 1
        reason = "was given up" if state.is_skipped else f"has {LIMIT} entries, the limit"
        self.see(f"{self.frame} {reason}: it runs as it is written.")

    def fitting(self, state):
        if not state.entries:
            self.shown, self.stack = None, []
            self.see(f"{self.frame} has no entry yet: it is captured.")
        for entry in state.entries:
            self.shown, self.stack = entry, []
            failing = [i for i, guard in enumerate(entry.guards) if not self.holds(guard)]
            first = failing[0] if failing else len(entry.guards)
            marks = ["ok"] * first + ["fails"] * bool(failing)
            marks += [""] * (len(entry.guards) - len(marks))
            guards = [{"words": guard[0], "state": mark} for guard, mark in zip(entry.guards, marks)]
            if not failing:
                say = f"Entry {entry.number} of {self.frame}: every guard holds.{self.zeros(entry)} Its graph runs."
                self.see(say, guards=guards)
                return entry
            self.see(f"Entry {entry.number} of {self.frame}: the guard {entry.guards[first][0]} fails.", guards=guards)
        return None

    def zeros(self, entry):
        """What is to be said of a zero whose sign nobody asks for."""
        scale = self.values["scale"]
        others = [of for _, source, asks, of in entry.guards if source == "cfg.scale" and asks == "is" and of != scale]
        return f" {scale} == {others[0]}, so PyTorch's guard takes both." if others else ""

    def holds(self, guard):
        _, source, asks, of = guard
        if asks == "same":
            return True
        words = str(
            {"rows": self.values["rows"], "cfg.scale": self.values["scale"], "OFFSET": self.values["offset"]}[source]
        )
        if asks in ("is", "float"):
            return unsigned(words) == unsigned(str(of)) if asks == "is" else is_float(words)
        if asks == "number":
            return words != "nan"
        seen = float_of(words)
        return {"from": seen >= of, "above": seen > of, "upto": seen <= of}[asks]

    def go_on(self, entry):
        self.shown, self.stack = None, []
        if len(entry.goes_on) == 1:
            rest = entry.goes_on[0]
            self.see(
                f"Python does the call: it prints. Then {rest[0]} is called with y and the None that print returned."
            )
            self.enter(*rest)
            return
        is_positive = self.values["fill"] > 0 and self.values["rows"] > 0
        outcome = "true" if is_positive else "false"
        rest = entry.goes_on[0 if is_positive else 1]
        self.see(f"Python asks the tensor gt: it is {outcome}. {rest[0]} is called with x.")
        self.enter(*rest)

    # ---- a capture

    def capture(self, state, start, stack, locals):
        self.state, self.stack, self.locals = state, list(stack), locals
        self.entry = self.shown = Entry(state.made)
        self.used = {}
        state.made += 1
        if state.prologue:
            pushes = "pushes what stood on the stack, and jumps" if stack else "jumps"
            say = f"The variables have come as arguments. The prologue {pushes} to {self.code[start][0]}."
            self.see(say, in_prologue=True)
        at = start
        while at >= 0:
            at = self.step(at)
        return self.entry

    def step(self, at):
        """One instruction. Returns the index of the next one, -1 at the end."""
        _, _, name, argument = self.code[at]
        after, say = getattr(self, name)(argument, at + 1)
        self.see(say, at)
        return after

    def guard(self, words, source="", asks="same", of=0):
        if all(words != guard[0] for guard in self.entry.guards):
            self.entry.guards.append((words, source, asks, of))

    def is_dynamic(self, source, number):
        """Whether the number has been another one in an earlier capture of this frame."""
        before = self.state.seen.get(source, number)
        self.state.seen[source] = number if before == number else DYNAMIC
        return self.state.seen[source] == DYNAMIC

    def tensor(self, one):
        """A tensor is looked at: its guard, once."""
        if one["source"] and one["source"] not in self.used:
            rows = self.values["rows"]
            is_open = self.is_dynamic(one["source"], rows) and rows > 1
            self.used[one["source"]] = is_open
            words = (
                f"{one['words']}: a float32 tensor of [{'s0' if is_open else rows}, 2]{', s0 ≥ 2' if is_open else ''}"
            )
            self.guard(words, "rows", "from" if is_open else "is", 2 if is_open else rows)
        return one

    def setting(self):
        """cfg.scale: a constant, or a symbol when it is a float and has been another number. An int stays a constant.

        So do a bool, which PyTorch doesn't remember as a number that was seen, and nan and the infinities, which it does.
        """
        words = self.values["scale"]
        if words not in BOOLS and self.is_dynamic("cfg.scale", float_of(words)) and "." in words:
            self.guard("cfg.scale is a float", "cfg.scale", "float")
            self.guard("cfg.scale is not nan", "cfg.scale", "number")
            return value("symbol", "cfg.scale", "cfg.scale", words)
        return value("known", words, "cfg.scale", words)

    def operand(self, one):
        """The text of a value in the graph; its guard if it is a number."""
        if one["kind"] == "tensor":
            return self.tensor(one)["words"]
        if one["kind"] == "known" and one["source"]:
            self.guard(f"{one['source']} is {typed(one['words'])}", one["source"], "is", one["number"])
        return one["words"]

    def node(self, name, call):
        names = [line.split(" = ")[0] for line in self.entry.graph]
        made = name if name not in names else f"{name}_1"
        self.entry.graph.append(f"{made} = {call}")
        return value("tensor", made)

    # ---- the instructions

    def LOAD_FAST(self, name, after):
        self.stack.append(self.locals[name])
        return after, f"The variable {name} is pushed."

    def STORE_FAST(self, name, after):
        self.locals[name] = self.stack.pop()
        return after, f"The top of the stack becomes the variable {name}."

    def LOAD_CONST(self, words, after):
        self.stack.append(value("known", words))
        return after, f"The constant {words} is pushed: it stands in the code and needs no guard."

    def LOAD_GLOBAL(self, name, after):
        if name == "OFFSET":
            number = self.values["offset"]
            self.stack.append(value("known", str(number), "OFFSET", number))
            return after, f"The global OFFSET is {number} now, and the interpreter remembers where that came from."
        if name == "cfg":
            self.stack.append(value("object", "cfg"))
            return after, "The global cfg, an object of Python, is pushed."
        if name in ("print", "range"):
            self.stack += [NULL, value("object", name)]
            self.guard(f"no global is named {name}")
            say = f"{name} is pushed, with NULL below it: no method's object. It is a built-in, if no global hides it."
            return after, say
        self.stack.append(value("object", name))
        self.guard(f"{name} is the same module")
        return after, f"The module {name} is pushed."

    def LOAD_ATTR(self, name, after):
        owner = self.stack.pop()
        if name == "shape":
            self.tensor(owner)
            self.stack.append(value("object", "x.shape"))
            return after, "The shape of x is known without its elements."
        self.guard("cfg is a Settings")
        one = self.setting()
        self.stack.append(one)
        if one["kind"] == "symbol":
            return after, "cfg.scale has been another number before: it becomes a symbol, an input of the graph."
        return (
            after,
            f"cfg.scale is {one['words']} now. Only cfg's type is guarded; the number is not until it matters.",
        )

    def LOAD_METHOD(self, name, after):
        owner = self.stack.pop()
        if owner["words"] == "torch":
            self.guard(f"torch.{name} is the same function")
            self.stack += [NULL, value("object", f"torch.{name}")]
            return after, f"torch.{name} is an operator. It is no method, so NULL stands below it."
        self.tensor(owner)
        self.stack += [value("object", f"Tensor.{name}"), owner]
        return after, f"The method {name} and its object are pushed."

    def CALL(self, count, after):
        args = self.stack[len(self.stack) - count :] if count else []
        del self.stack[len(self.stack) - count :]
        function, below = self.stack.pop(), self.stack.pop()
        if function["words"] == "range":
            self.stack.append(value("object", "range(2)"))
            return after, "range and its argument are known: it is called now, and leaves no trace in the graph."
        if function["words"] == "print" and self.is_in_a_loop(after):
            self.state.is_skipped = True
            return (
                -1,
                "print cannot be captured, and stands in a loop: the whole frame is given up, what was captured too.",
            )
        if function["words"] == "print":
            self.entry.returns = False
            rest = {"y": value("tensor", "y", "y")}
            self.entry.goes_on = [(rest_at(self.code[after][0]), after, [value("known", "None")], rest)]
            return -1, "print cannot be captured: the graph ends here. Behind the call a resume function goes on."
        if below["kind"] == "object":  # a method: its object lies above it
            self.stack.append(self.node("sum", f"{function['words']}.sum()"))
            return after, "A tensor takes part: the operator becomes a line of the graph."
        name = function["words"].split(".")[1]
        self.stack.append(self.node(name, f"{function['words']}({self.operand(args[0])})"))
        return after, "A tensor takes part: the operator becomes a line of the graph."

    def is_in_a_loop(self, after):
        """Whether the code behind an instruction jumps back in front of it."""
        here = self.code[after - 1][0]
        return any(name == "JUMP_BACKWARD" and target < here for _, _, name, target in self.code[after:])

    def GET_ITER(self, _, after):
        self.stack[-1] = value("iterator", "iterator, at 0", number=0)
        return after, "The iterator over the range is known, too."

    def FOR_ITER(self, target, after):
        i = self.stack[-1]["number"]
        if i == 2:
            self.stack.pop()
            return self.at[
                target
            ], "The iterator is exhausted: behind the loop. The graph has no loop, but both iterations."
        self.stack[-1] = value("iterator", f"iterator, at {i + 1}", number=i + 1)
        self.stack.append(value("known", str(i)))
        return after, f"The iterator gives {i}."

    def JUMP_BACKWARD(self, target, after):
        return self.at[target], "Back to the head of the loop."

    def BINARY_OP(self, sign, after):
        b, a = self.stack.pop(), self.stack.pop()
        left, right = self.operand(a), self.operand(b)
        self.stack.append(self.node(NAMES[sign], f"{left} {sign} {right}"))
        if b["kind"] == "known" and b["source"]:
            return after, f"A line of the graph, with the number {right} in it: so {b['source']} has to stay {right}."
        return after, "A line of the graph."

    def COMPARE_OP(self, sign, after):
        b, a = self.stack.pop(), self.stack.pop()
        if a["kind"] == "tensor":
            self.stack.append(self.node("gt", f"{a['words']} > {b['words']}"))
            return after, "A tensor takes part: the comparison becomes a line of the graph."
        outcome = float_of(str(a["number"])) > 2
        if a["kind"] == "symbol":
            words = "cfg.scale > 2" if outcome else "cfg.scale <= 2"
            self.guard(words, "cfg.scale", "above" if outcome else "upto", 2)
            say = f"The symbol is {a['number']} in this call. The decision is guarded: {words}."
        else:
            say = f"Both are known: the result is computed now, and {self.operand(a)} is guarded."
        self.stack.append(value("known", "True" if outcome else "False"))
        return after, say

    def BINARY_SUBSCR(self, _, after):
        self.stack.pop()
        self.stack.pop()
        if self.used["x"]:
            self.stack.append(value("symbol", "s0"))
            return after, "The size has been another one before: it is the symbol s0."
        self.stack.append(value("known", str(self.values["rows"])))
        return after, "The size is a number that the guard of x already holds fast."

    def POP_JUMP_FORWARD_IF_FALSE(self, target, after):
        one = self.stack.pop()
        if one["kind"] == "tensor":
            rest = {"x": value("tensor", "x", "x")}
            self.entry.returns = False
            self.entry.goes_on = [(rest_at(self.code[i][0]), i, [], rest) for i in (after, self.at[target])]
            say = "What decides is an element of a tensor, which is not there before the graph has run: the graph ends here."
            return -1, say
        if one["words"] == "True":
            return after, "The value is known: the branch is taken, and leaves no trace in the graph."
        return self.at[target], "The value is known: the branch is jumped over, and leaves no trace in the graph."

    def POP_TOP(self, _, after):
        self.stack.pop()
        return after, "What print returned is dropped."

    def RETURN_VALUE(self, _, after):
        one = self.stack[-1]
        return -1, f"{one['words']} is returned. Guards and graph become entry {self.entry.number} of {self.frame}."


def float_of(words):
    """A number's text as a float. Python's bools are the numbers 1 and 0."""
    return SPECIAL[words] if words in SPECIAL else float(words)


def is_float(words):
    return "." in words or words in ("inf", "-inf", "nan")


def typed(words):
    """A number with its type, which a guard asks for, too. The names True, False and nan say it."""
    return words if words in (*BOOLS, "nan") else f"the {'float' if is_float(words) else 'int'} {words}"


def unsigned(words):
    """A number's text, the same for both zeros."""
    return "0.0" if words == "-0.0" else words


def named(name, words):
    """A variable and what it is, if that has not the same name."""
    return name if words == name else f"{name} = {words}"


def rest_at(offset):
    return f"resume_in_f_at_{offset}"


def shown_values(values):
    return [values["rows"], values["fill"], values["scale"], values["offset"]]


# ---- inputs

NUMBER = {
    "rows": r"[0-9]",
    "fill": r"-?[0-9]",
    "scale": r"(-?[0-9]{1,3}(\.[0-9]{1,3})?|-?inf|nan|True|False)",
    "offset": r"-?[0-9]{1,2}",
}
WANTED = {
    "rows": "Rows of x are whole numbers from 0 to 9, one for each call, such as 3, 4, 5.",
    "fill": "The elements of x are whole numbers from -9 to 9, one for each call, such as 1, -1.",
    "scale": "cfg.scale takes floats with at most three decimals, ints, bools, inf and nan, one for each call, such as 2.0, 2, True.",
    "offset": "OFFSET takes whole numbers from -99 to 99, one for each call, such as 1, 1, 2.",
}


def numbers(name, words):
    parts = [part.strip(" ") for part in words.split(",")]
    if len(parts) > MOST_CALLS:
        raise Refusal(f"At most {MOST_CALLS} calls, please.")
    if not all(re.fullmatch(NUMBER[name], part) for part in parts):
        raise Refusal(WANTED[name])
    if name == "scale":  # as texts: 2 and 2.0 are two values
        return [part if part in SPECIAL else written(float(part)) if "." in part else str(int(part)) for part in parts]
    return [int(part) for part in parts]


def model(inputs):
    lists = {name: numbers(name, inputs[name]) for name in ("rows", *READS[inputs["program"]])}
    machine = Machine(inputs["program"])
    for i in range(max(map(len, lists.values()))):
        machine.call(UNREAD | {name: found[min(i, len(found) - 1)] for name, found in lists.items()})
    made = sum(call["made"] for call in machine.calls)
    machine.frame, machine.shown, machine.stack = "f", None, []
    machine.see(f"{counted(len(machine.calls), 'call')}, {counted(made, 'graph')}.")
    code = [[offset, line, name, str(argument)] for offset, line, name, argument in machine.code]
    return {"source": machine.source, "code": code, "calls": machine.calls, "left": machine.left(), "steps": machine.steps, "say": machine.say}  # fmt: skip


def sample(random):
    """Numbers that come again, and mostly good ones."""

    def some(pool):
        return ", ".join(random.choice(pool) for _ in range(random.randint(1, MOST_CALLS)))

    many = random.random() < 0.2
    return {
        "rows": ", ".join("0123456789")
        if many and random.random() < 0.5
        else some(["3", "3", "3", "4", "5", "1", "0"]),
        "fill": some(["1", "1", "-1", "0"]),
        "scale": ", ".join("1234567892")
        if many
        else some(
            ["2.0", "2.0", "3", "2", "1.5", "2.25", "-1.0", "0.0", "-0.0", "True", "False", "1", "inf", "-inf", "nan"]
        ),
        "offset": some(["1", "1", "1", "2", "0"]),
    }


def picture(result, step):
    one = result["steps"][step]
    parts = [text("stack", 8, 18, "dim"), text("graph", 150, 18, "dim"), text("guards", 330, 18, "dim")]
    parts += [box(8, 26 + 26 * i, 130, 22, "pale", words) for i, words in enumerate(reversed(one["stack"]))]
    parts += [text(line, 150, 40 + 18 * i, "mono") for i, line in enumerate(one["graph"])]
    parts += [text(guard["words"], 330, 40 + 18 * i, "mono") for i, guard in enumerate(one["guards"])]
    return drawing(680, 150, *parts)


def readers(name):
    """The functions that read a field."""
    return "program", *(program for program, names in READS.items() if name in names)


HINT = "one number for each call, separated by commas"
FIGURE = Figure(
    name="bytecode_capture",
    title="Bytecode, stack, graph, guards",
    inputs=(
        Choice("program", "function", "scale", TITLES),
        Text("scale", "cfg.scale", "2.0, 3.0, 4.0, 2", hint=HINT, longest=72, only=readers("scale")),
        Text("rows", "rows of x", "3", hint=HINT, longest=40),
        Text("fill", "elements of x", "1", hint=HINT, longest=40, only=readers("fill")),
        Text("offset", "OFFSET", "1", hint=HINT, longest=40, only=readers("offset")),
    ),
    model=model,
    picture=picture,
    sample=sample,
)
