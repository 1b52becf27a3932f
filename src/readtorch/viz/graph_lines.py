"""The text of a graph, line by line, with what each line defines and uses; and what passes make of it.

Only names are asked for that ``torch._C.Graph`` and ours have in common, so graphs of either library will do.
"""

from __future__ import annotations

import difflib
import inspect
import linecache
import re
import textwrap
from dataclasses import asdict, dataclass, field

MOST_LINES = 400
_COMMENT = re.compile(r" # [^#]*:\d+:\d+$")
_SCOPE = re.compile(r", scope: \S+$")
_OF_EXAMPLE = re.compile(r"(?:, )?\b(?:strides=\[[\d, *]*\]|requires_grad=[01]|device=[\w:]+)(?=[,)])")
_CLASS = re.compile(r"(?<=: )__torch__\.(?:\w+\.)*(?=\w+ =|\w+[,)])")
_NUMBER = re.compile(r"%\d+\b")
_TRACED = re.compile(r"^(?P<file>.+)\((?P<line>\d+)\): (?P<function>.+)$", re.M)
_SCRIPTED = re.compile(r'File "(?P<file>.+)", line (?P<line>\d+)(?:, in (?P<function>.+))?')


def shortened(text: str) -> str:
    """Types as short as they can be told apart: `Float(4, 2)`, `Linear`. The details have them in full."""
    return _CLASS.sub("", _OF_EXAMPLE.sub("", text)).replace("(, ", "(")


@dataclass
class Line:
    """One line of a graph's text.

    defines: [name, type] of what it makes; uses: names of what it takes. ``key``: the same for the same line of
    all stages. ``mark``: what the pass did: "+" new, "~" changed, "-" gone (and only shown), or "".
    """

    text: str
    depth: int
    defines: list = field(default_factory=list)
    uses: list = field(default_factory=list)
    space: str = ""  # names are unique in a graph; a graph inside a node has names of its own
    node: bool = False
    scope: str = ""
    place: str = ""  # file:line, and the function
    source: str = ""  # that line of the program
    key: int = -1
    mark: str = ""
    was: str = ""  # the text before a change


def short_run(run: dict) -> dict:
    """A run for the page, where its lines say only what differs from `LINE` in ir.js: most have few of their ten facts."""
    stages = [{**stage, "lines": [short_line(line) for line in stage["lines"]]} for stage in run["stages"]]
    return {**run, "stages": stages}


def short_line(line: dict) -> dict:
    return {name: value for name, value in line.items() if name in ("key", "depth") or value}


def key_of(stage: dict, word: str) -> int:
    """The key of the first line of a stage that contains `word`; ValueError if none does."""
    for line in stage["lines"]:
        if word in line["text"] and line["mark"] != "-":
            return line["key"]
    raise ValueError(f"no line of the graph contains {word!r}")


def graph_stages(graph, passes=()) -> dict:
    """The stages of the IR viewer.

    graph: a Graph, something that has one (``.graph``), or pairs (name, graph). passes: functions of a graph,
    or pairs (name, function); each is run on one copy of the graph, after the other.
    """
    if isinstance(graph, (list, tuple, dict)):
        pairs = graph.items() if isinstance(graph, dict) else graph
        return _numbered([(name, graph_lines(_graph_of(each))) for name, each in pairs], exact=False)
    work = _graph_of(graph)
    if passes:
        work = work.copy()  # with new numbers: only where something is changed
    stages = [("before any pass", graph_lines(work))]
    for each in passes:
        name, function = each if isinstance(each, tuple) else (each.__name__, each)
        function(work)
        stages.append((name, graph_lines(work)))
    return _numbered(stages, exact=True)


def _graph_of(thing):
    return thing if hasattr(thing, "nodes") else thing.graph


# ------------------------------------------------------------------------------------------------ one graph


def graph_lines(graph) -> list[Line]:
    """The lines of `graph`: its inputs, its nodes with their blocks, what it returns."""
    lines = _Lines()
    lines.graph(graph, 0, "")
    return lines.lines


class _Lines:
    def __init__(self):
        self.lines = []

    def graph(self, graph, depth, space):
        self.inputs("graph", list(graph.inputs()), depth, space)
        for node in graph.nodes():
            self.node(node, depth + 1, space)
        self.add(f"return ({_names(graph.outputs())})", depth + 1, space, uses=graph.outputs())

    def node(self, node, depth, space):
        text = _SCOPE.sub("", _COMMENT.sub("", str(node).split("\n")[0].strip()))
        place, source = where(node)
        self.add(
            text,
            depth,
            space,
            defines=node.outputs(),
            uses=node.inputs(),
            node=True,
            scope=node.scopeName(),
            place=place,
            source=source,
        )
        for number, block in enumerate(node.blocks()):
            self.inputs(f"block{number}", list(block.inputs()), depth + 1, space)
            for inner in block.nodes():
                self.node(inner, depth + 2, space)
            self.add(f"-> ({_names(block.outputs())})", depth + 2, space, uses=block.outputs())
        if node.hasAttribute("Subgraph"):
            self.graph(node.g("Subgraph"), depth + 1, f"{space}{len(self.lines)}/")

    def inputs(self, word, values, depth, space):
        typed = ", ".join(f"%{v.debugName()} : {_type(v)}" for v in values)
        self.add(f"{word}({typed}):", depth, space, defines=values)

    def add(self, text, depth, space, defines=(), uses=(), node=False, scope="", place="", source=""):
        made = [[v.debugName(), _type(v)] for v in defines]
        taken = [v.debugName() for v in uses]
        self.lines.append(Line(shortened(text), depth, made, taken, space, node, scope, place, source))


def _names(values):
    return ", ".join(f"%{v.debugName()}" for v in values)


def _type(value):
    return value.type().str()


def where(node) -> tuple[str, str]:
    """(file:line, in which function; that line's text) of a node; empty strings if it has no place."""
    range = node.sourceRange()
    text = range.highlight() if hasattr(range, "highlight") else str(range or "")
    found = _TRACED.search(text) or _SCRIPTED.search(text)
    if not found:
        return "", ""
    file, line, function = found["file"], int(found["line"]), found["function"]
    place = f"{_short(file)}:{line}" + (f", in {function}" if function else "")
    return place, linecache.getline(file, line).strip() or _marked(text)


def program_of(function) -> dict:
    """The text of a function, and the number of its first line in its file."""
    lines, first = inspect.getsourcelines(function)
    return {"first": first, "lines": textwrap.dedent("".join(lines)).splitlines()}


def _short(file):
    """The part of a file's name that is the same on every machine."""
    if "ipykernel" in file or file.startswith("<ipython"):
        return "this notebook"
    parts = re.split(r"[/\\]", file)
    package = next((i for i, part in enumerate(parts) if part in ("torch", "readtorch")), len(parts) - 1)
    return "/".join(parts[package:])


def _marked(text):
    """The line above the first underlined one."""
    lines = text.split("\n")
    return next((a.strip() for a, b in zip(lines, lines[1:]) if b.strip().startswith("~")), "")


# ------------------------------------------------------------------------------------------- several graphs


def _numbered(stages, exact) -> dict:
    """Give the lines keys, and marks where a stage differs from the one before.

    exact: the stages are one graph, changed in place, so names stay; else a number as a name says nothing.
    """
    keys = iter(range(10**9))
    shown, before = [], None
    for name, lines in stages:
        if before is None:
            for line in lines:
                line.key = next(keys)
            rows = lines
        else:
            rows = (_follow if exact else _compare)(before, lines, keys)
        counts = {mark: sum(row.mark == mark for row in rows) for mark in "+-~"}
        shown.append(
            {
                "name": name,
                "lines": [asdict(row) for row in rows[:MOST_LINES]],
                "left_out": max(0, len(rows) - MOST_LINES),
                "counts": counts,
                "left": len(lines),
            }
        )
        before = lines
    return {"stages": shown}


def _follow(before, after, keys):
    """The rows to show for one graph that a pass has changed in place: its lines, marked, and those that are gone behind the lines
    that they stood behind.
    """
    old_lines, kept = _Known(before, {line.text for line in after}), set()
    for new, graph, place in _places(after):
        old = old_lines.find(new, graph, place, kept)
        if old is None:
            new.key, new.mark = next(keys), "+"
        else:
            _is_still(new, old)
        kept.add(new.key)
    for new, old in _renamed(before, after, kept):
        _is_still(new, old)
        kept.add(new.key)
    rows, last = [*after], None
    for old in before:
        if old.key not in kept:
            at = next((i + 1 for i, row in enumerate(rows) if row.key == last), 0)
            rows.insert(at, Line(**{**asdict(old), "mark": "-"}))
        last = old.key
    return rows


def _is_still(new, old):
    new.key = old.key
    new.mark, new.was = ("", "") if old.text == new.text else ("~", old.text)


def _renamed(before, after, kept):
    """(new, old): lines that do the same for the same operand of the same line, while the old name has gone to another value."""
    taken = {(line.key, i): name for line in before for i, name in enumerate(line.uses)}
    gone = {line.defines[0][0]: line for line in before if line.node and line.defines and line.key not in kept}
    there = {name for line in after for name, _ in line.defines}
    added = {name: line for line in after if line.mark == "+" and line.node for name, _ in line.defines}
    for user in after:
        for i, name in enumerate(user.uses):
            was = taken.get((user.key, i))
            if name in added and was in gone and was in there and _identity(added[name]) == _identity(gone[was]):
                yield added.pop(name), gone.pop(was)


class _Known:
    """The lines before a pass. A name stays with its value, so a line is the one that defined the same before.

    What defines nothing, before or afterwards, is known by its place in what it is part of: a loop gets outputs and stays a loop.
    A line that is still there as it was, somewhere else, is not taken for another.
    """

    def __init__(self, before, still_there):
        self.names, self.texts, self.places, self.still_there = {}, {}, {}, still_there
        for line, graph, place in _places(before):
            self.names.update({(graph, name): line for name, _ in line.defines if line.node})
            self.texts.setdefault((place[0], line.text), []).append(line)
            self.places[place] = line

    def find(self, new, graph, place, kept):
        free = [old for old in self._candidates(new, graph, place) if old is not None and old.key not in kept]
        return free[0] if free else None

    def _candidates(self, new, graph, place):
        at_its_place = self.places.get(place)
        if not new.node:
            return [at_its_place]
        named = [self.names.get((graph, name)) for name, _ in new.defines]
        alike = [old for old in named if old and _identity(old) == _identity(new)]
        same = [] if new.defines else self.texts.get((place[0], new.text), [])
        old = at_its_place
        fits = (
            old
            and (not (old.defines and new.defines) or _branches_alike(old, new))
            and old.text not in self.still_there
        )
        return [*alike, *same, old if fits else None, *named]


def _branches_alike(old, new):
    """An `if` on the same condition, whose outputs have got other names and another order."""
    return "= prim::If(" in new.text and old.uses == new.uses


def _places(lines):
    """(line, key of the graph it is in, its place: in what, which of its kind). A line has its key when the next one is asked for."""
    above, counts = [], {}
    for line in lines:
        while above and above[-1].depth >= line.depth:
            above.pop()
        graph = next((up.key for up in reversed(above) if up.text.startswith("graph(")), None)
        kind = (above[-1].key if above else None, _identity(line))
        counts[kind] = counts.get(kind, 0) + 1
        yield line, graph, (*kind, counts[kind])
        above.append(line)


def _compare(before, after, keys):
    """The rows to show for another graph: its lines, marked, and between them those of `before` that are gone."""
    rows = []
    sides = [[_identity(line) for line in side] for side in (before, after)]
    matcher = difflib.SequenceMatcher(None, *sides, autojunk=False)
    for what, i, i_end, j, j_end in matcher.get_opcodes():
        if what == "equal":
            for old, new in zip(before[i:i_end], after[j:j_end]):
                new.key = old.key
                if _NUMBER.sub("%", old.text) != _NUMBER.sub("%", new.text):
                    new.mark, new.was = "~", old.text
                rows.append(new)
            continue
        for old in before[i:i_end]:
            rows.append(Line(**{**asdict(old), "mark": "-"}))
        for new in after[j:j_end]:
            new.key, new.mark = next(keys), "+"
            rows.append(new)
    return rows


def _identity(line):
    """Two lines with this in common are one line that may have changed: what is done, not to which values."""
    if not line.node:
        return line.depth == 0, re.sub(r"\(.*", "", line.text)
    return re.sub(r"^[^=]*= ", "", re.sub(r"%[\w.]+", "%", line.text).rpartition("(")[0])
