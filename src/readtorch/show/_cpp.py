"""Where a function, class or note stands in a C++ file: found by its name and by matched braces, without a compiler.

What is needed to read definitions is little: comments and strings are skipped, of `#if … #else … #endif` the first branch
counts, and every `{` is judged by the text before it: it opens a namespace, a class, a function, or something else.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

TOKEN = re.compile(
    r"""
      (?P<comment> //[^\n]* | /\*.*?\*/ )
    | (?P<raw> R"(?P<mark>[^\s()\\]{0,16})\(.*?\)(?P=mark)" )
    | (?P<string> "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])' | '\\[0-7x][0-9a-fA-F]*' )
    | (?P<directive> ^[ \t]*\#(?:\\\n|[^\n])* )
    | (?P<brace> [{};] )
    """,
    re.X | re.S | re.M,
)
ACCESS = re.compile(r"^\s*(?:public|private|protected)\s*:(?!:)")
NAMESPACE = re.compile(r"(?:^|[\s)])namespace\b\s*([\w:\s]*)$")
MACRO = re.compile(
    r"\s*[A-Z][A-Z0-9_]+(?:[a-z]\w*)?\s*\([^()]*\)\s*(?=[\w\[])"
)  # a call that is a statement without a semicolon
CLASS = re.compile(
    r"""
    \b(?:class | struct | union | enum(?:\s+class)?)\s+
    (?:(?:alignas\s*\((?:[^()] | \([^()]*\))*\) | [A-Z][A-Z0-9_]*(?:\([^()]*\))?)\s+)*
    ([\w:]+)(?:<[^{}]*>)?\s*(?:final\s*)?(?::(?!:).*)?$
    """,
    re.X | re.S,
)
NAME = re.compile(
    r"((?:[\w~]+(?:<[^()<>]*>)?::)*(?:operator\s*[^\s\w(]+|operator\s*\(\)|operator\s+[\w:*& ]+|[\w~]+))(?:<(?:[^<>()]|<[^<>()]*>)*>)?\s*$"
)
INITIALIZER = re.compile(r"\)[\w\s]*(?<!:):(?!:).*[\w>]\s*$", re.S)  # of a member, in a constructor: `) : size_`
CONTROL = {"if", "for", "while", "switch", "catch", "return", "do", "else", "sizeof", "decltype", "noexcept"}
NOTE = re.compile(r"Note \[\s*(.*?)\s*\]")


@dataclass(frozen=True)
class Definition:
    """A named piece of a file; lines are counted from 1, both ends are inside."""

    name: str  # with its namespaces and classes: torch::autograd::Engine::execute
    heading: str  # the text before its brace, in one line: what a macro's user wrote
    first: int
    last: int


def find(text: str, name: str) -> list[Definition]:
    """What a file defines under a name, in the order of the file.

    name: a function's or class's, with as many of its namespaces and classes as it takes to tell it from others; the call
    of a macro that begins a definition, `TORCH_IMPL_FUNC(add_out)`; or `Note [ … ]`, the comment that has it.
    """
    if note := NOTE.fullmatch(name.strip()):
        return _notes(text, note[1])
    if not all(word in text for word in re.findall(r"\w+", name.replace("operator()", ""))):
        return []  # at once: most shards of a generated file
    if "(" in name.replace("operator()", ""):
        wanted = _squeezed(name)
        return [found for found in definitions(text) if _squeezed(found.heading).startswith(wanted)]
    named = [found for found in definitions(text) if f"::{found.name}".endswith(f"::{name}")]
    shortest = min((found.name.count("::") for found in named), default=0)  # the class, not its constructors
    return [found for found in named if found.name.count("::") == shortest]


def definitions(text: str) -> Iterator[Definition]:
    """All classes and functions of a file. What stands inside a function is not looked at."""
    open_scopes: list[tuple[str, str, int, str]] = []  # (kind, name, where its heading begins, heading)
    start = 0  # where the text of the next heading begins
    for position, mark, code in _marks(text):
        if mark == "{":
            heading = code(start, position)
            kind, name = _inside(open_scopes) or _judge(heading)
            open_scopes.append((kind, name, start, heading))
            if kind == "initializer":  # what follows its `}` belongs to the same statement
                continue
        elif mark == "}" and open_scopes:
            kind, name, begin, heading = open_scopes.pop()
            if kind in ("class", "function"):
                first = _first_line(text, begin, heading)
                full = "::".join([*(scope for k, scope, *_ in open_scopes if scope), name])
                yield Definition(full, " ".join(heading.split()), first, _line(text, position))
            if kind == "initializer":
                start = begin if _is_open(heading) else start  # a lambda's semicolons end no statement around it
                continue
        start = position + 1


def _inside(scopes) -> tuple[str, str] | None:
    """What a brace within a function or an initializer is, for which nobody will ask."""
    kind = scopes[-1][0] if scopes else None
    return {"function": ("body", ""), "body": ("body", ""), "initializer": ("initializer", "")}.get(kind)


def _judge(heading: str) -> tuple[str, str]:
    """What a brace opens, by the text before it: (kind, name)"""
    while match := ACCESS.match(heading):
        heading = heading[match.end() :]
    if namespace := NAMESPACE.search(heading):
        return "namespace", re.sub(r"\s", "", namespace[1])
    if _is_open(heading) or INITIALIZER.search(heading):
        return "initializer", ""
    if re.fullmatch(r"\s*extern\s*", heading):  # `extern "C" {`: the string is blanked
        return "namespace", ""
    while macro := MACRO.match(heading):
        heading = heading[macro.end() :]
    bare = _without_templates(heading)
    arguments = _first_parenthesis(bare)
    if arguments is None:
        match = CLASS.search(bare)
        return ("class", match[1]) if match else ("initializer", "")
    name = NAME.search(bare[:arguments])
    if not name or name[1] in CONTROL or re.search(r"(?<![=!<>])=(?!=)\s*$|\breturn\b", bare[:arguments]):
        match = CLASS.search(bare)
        return ("class", match[1]) if match else ("initializer", "")
    if "=" in re.sub(r"operator\s*[=!<>+*/-]*=+|[=!<>]=", "", bare[:arguments]):
        return "initializer", ""  # a variable that a call or a lambda begins
    if match := CLASS.search(bare):
        return "class", match[1]
    return "function", re.sub(r"\s+(?=\w)", " ", re.sub(r"\s+(?=\W)|\s+$", "", name[1]))


def _is_open(heading: str) -> bool:
    """Whether a brace after it stands within parentheses."""
    return heading.count("(") != heading.count(")")


def _without_templates(heading: str) -> str:
    """A heading without `template <…>` and attributes in front."""
    while match := re.match(r"\s*(?:template\s*(?=<)|\[\[[^]]*\]\])", heading):
        heading = heading[match.end() :]
        if match[0].strip() == "template":
            heading = heading[_end_of_angles(heading) :]
    return heading


def _end_of_angles(text: str) -> int:
    """Where the bracket that a text begins with is closed; `>` within parentheses compares."""
    angles = parentheses = 0
    for i, letter in enumerate(text):
        parentheses += (letter == "(") - (letter == ")")
        if not parentheses:
            angles += (letter == "<") - (letter == ">" and text[i - 1] != "-")
        if not angles:
            return i + 1
    return len(text)


def _first_parenthesis(heading: str) -> int | None:
    """Where the arguments begin: the first `(` outside of angle brackets' and alignas' own."""
    for match in re.finditer(r"\(", heading):
        before = heading[: match.start()].rstrip()
        if before.endswith("operator") and heading[match.start() :].startswith("()"):
            continue
        brackets = re.sub(r"operator\s*[^\s\w]+|->|<=|>=|<<", "", before)
        if brackets.count("<") > brackets.count(">"):
            continue
        word = re.search(r"\w+$", before)
        if word and word[0] in ("alignas", "__attribute__", "__declspec", "decltype", "noexcept"):
            continue
        return match.start()
    return None


def _marks(text: str):
    """Braces and semicolons that count: (position, mark, what gives a stretch of text with comments and strings blanked)"""
    blank: list[tuple[int, int]] = []

    def code(first, last):
        piece = list(text[first:last])
        for a, b in reversed(blank):
            if b <= first:
                break
            for i in range(max(a, first), min(b, last)):
                if piece[i - first] != "\n":
                    piece[i - first] = " "
        return "".join(piece)

    skipped, since = 0, 0  # in a branch that does not count: how deep the #ifs are inside of it, where it began
    for token in TOKEN.finditer(text):
        if not token["directive"]:
            if skipped:
                continue
            if token["brace"]:
                yield token.start(), token["brace"], code
            else:
                blank.append(token.span())
            continue
        word = re.match(r"\s*#\s*(\w*)", token["directive"])[1]
        if skipped:
            skipped += (word in ("if", "ifdef", "ifndef")) - (word == "endif")
            if not skipped:
                blank.append((since, token.end()))
        elif word in ("else", "elif"):
            skipped, since = 1, token.start()
        else:
            blank.append(token.span())


def _line(text: str, position: int) -> int:
    return bisect_left(_newlines(text), position) + 1


@lru_cache(maxsize=4)
def _newlines(text: str) -> list[int]:
    return [match.start() for match in re.finditer("\n", text)]


def _first_line(text: str, start: int, heading: str) -> int:
    """The line of a heading's first word."""
    while match := ACCESS.match(heading):
        start, heading = start + match.end(), heading[match.end() :]
    begin = start + len(heading) - len(heading.lstrip("\\ \t\n"))  # a template may end in the backslash of a macro
    return _line(text, begin)


def _notes(text: str, title: str) -> list[Definition]:
    """The comments, whole blocks of them, that hold a note of this title."""
    lines = text.split("\n")
    found = []
    for block in re.finditer(r"(?:^[ \t]*//[^\n]*\n)+|/\*.*?\*/", text, re.M | re.S):
        heads = [note for note in NOTE.finditer(block[0]) if note[1] == title]
        starts = [
            h for h in heads if re.fullmatch(r"[\s/*]*", block[0][block[0].rfind("\n", 0, h.start()) + 1 : h.start()])
        ]
        if not starts:
            continue
        first = _line(text, block.start() + starts[0].start())
        last = _line(text, block.end() - 1)
        while last > first and not lines[last - 1].strip(" /*"):
            last -= 1
        found.append(Definition(f"Note [{title}]", "", first, last))
    return found


def _squeezed(text: str) -> str:
    return re.sub(r"\s", "", text)
