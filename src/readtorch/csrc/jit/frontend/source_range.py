"""Where in a program's text a node comes from.

In PyTorch: `torch/csrc/jit/frontend/source_range.h`. Explained in the chapter "JIT: scripting".
"""

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property

CONTEXT = 2  # how many lines around the marked one `highlight` shows


@dataclass(frozen=True, eq=False)
class Source:
    """A text, and the file and line at which it begins (None if it has none).

    leading: how many blanks were cut from the left of every line, so that columns can be given as in the
    file.
    """

    text: str
    filename: str | None = None
    starting_line_no: int = 0
    leading: int = 0

    @cached_property
    def line_starts(self):
        """The position of each line's first character."""
        return [0] + [i + 1 for i, c in enumerate(self.text) if c == "\n"]

    def line_at(self, position):
        """The number of the line (from 0) that holds character `position`."""
        return bisect_right(self.line_starts, position) - 1

    def line_start(self, line):
        return self.line_starts[line]


@dataclass(frozen=True)
class SourceRange:
    """The characters from `start` up to `end` of a source."""

    source: Source
    start: int = 0
    end: int = 0

    def text(self):
        return self.source.text[self.start : self.end]

    def file_line_col(self):
        """(file, line from 1, column from 0), or None for a text that is in no file."""
        if self.source.filename is None:
            return None
        line = self.source.line_at(self.start)
        column = self.start - self.source.line_start(line)
        return self.source.filename, line + self.source.starting_line_no, column + self.source.leading

    def highlight(self, function=None):
        """The lines around the range, and it underlined. function: the name of the function that they are in.

        In PyTorch: `format_stack_trace`, `highlight` and `print_with_context` of `source_range.cpp`.
        """
        if self.start == 0 and self.end == len(self.source.text):
            return self.source.text  # of a traced node: the calls that led to it
        where = self.file_line_col()
        inside = f", in {function}" if function else ""
        header = f'  File "{where[0]}", line {where[1]}{inside}\n' if where else ""
        return header + self._context()

    def _context(self):
        text = self.source.text
        lines = text.split("\n")
        first, last = self.source.line_at(self.start), self.source.line_at(max(self.end - 1, self.start))
        shown = []
        for number in range(max(first - CONTEXT, 0), min(last + CONTEXT + 1, len(lines))):
            shown.append(lines[number])
            if first <= number <= last:
                shown.append(self._underline(lines[number], self.source.line_start(number), number == last))
        return "\n".join(shown).rstrip("\n") + "\n"

    def _underline(self, line, start, is_last):
        here = max(self.start - start, len(line) - len(line.lstrip()))
        length = max(min(self.end - start, len(line)) - here, 1)
        return " " * here + "~" * length + (" <--- HERE" if is_last else "")


def fake_range():
    """A range for what has no program text."""
    return SourceRange(Source(""), 0, 0)
