"""Cuts the text of a schema into tokens, and says what is wrong where another one was expected.

In PyTorch: `torch/csrc/jit/frontend/lexer.h`, which also reads TorchScript; here Python's own parser does that.
"""

import re
from dataclasses import dataclass

from .error_report import ErrorReport
from .source_range import Source, SourceRange

_KINDS = [
    ("blank", r"[ \t]+|#[^\n]*"),
    ("newline", r"\n\s*"),
    ("number", r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?j?"),
    ("string_literal", r'"(?:\\.|[^"\\\n])*"|' r"'(?:\\.|[^'\\\n])*'"),
    ("ident", r"[A-Za-z_]\w*"),
    ("arrow", r"->"),
    ("dots", r"\.\.\."),
    ("eq", r"=="),
    ("mark", r"[-+*/%@()\[\]:,.?!={}<>|&^~]"),
    ("unknown", r"[^\n]"),
]
_TOKEN = re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in _KINDS))
_KEYWORDS = frozenset(
    "def if else elif while return is True False None and or not global for in raise assert break continue del pass class "
    "import with as Ellipsis NoneType".split()
)


@dataclass(frozen=True)
class Token:
    """kind: "ident", "number" …; of a keyword and of a mark it is its text."""

    kind: str
    text: str
    start: int


class Lexer:
    """The tokens of a text, one after another: `cur` is the one that comes next."""

    def __init__(self, text):
        self.text = text
        self.tokens = self.cut()
        self.place = 0

    def cut(self):
        tokens, depth = [], 0  # between brackets a new line means nothing
        for match in _TOKEN.finditer(self.text):
            kind, text = match.lastgroup, match[0]
            if kind == "unknown":
                blank = Token(kind, " ", match.start())
                raise RuntimeError(f"expected a valid token but found '{text}' here:\n{self.marked(blank)}")
            depth += (text in ("(", "[")) - (text in (")", "]"))
            if kind != "blank" and not (kind == "newline" and depth):
                own = kind == "mark" or text in _KEYWORDS
                tokens.append(Token(text if own else kind, text, match.start()))
        return [*tokens, Token("eof", "", len(self.text))]

    @property
    def cur(self):
        return self.tokens[self.place]

    def lookahead(self):
        return self.tokens[min(self.place + 1, len(self.tokens) - 1)]

    def next(self):
        """Passes a token and returns it."""
        token = self.cur
        self.place += token.kind != "eof"
        return token

    def next_if(self, kind):
        """Whether a token of this kind comes next; if so, it is passed."""
        if self.cur.kind != kind:
            return False
        self.next()
        return True

    def expect(self, kind):
        """The next token, which must be of this kind."""
        if self.cur.kind != kind:
            raise RuntimeError(f"expected {kind} but found '{self.cur.kind}' here:\n{self.marked(self.cur)}")
        return self.next()

    def list_of(self, parse, begin, end):
        """What `parse` reads, separated by commas, between two marks."""
        self.expect(begin)
        found = []
        if self.cur.kind != end:
            found.append(parse())
            while self.next_if(","):
                found.append(parse())
        self.expect(end)
        return found

    def marked(self, token):
        """The text, and the token underlined."""
        if token.kind == "eof":
            return self.text
        return SourceRange(Source(self.text), token.start, token.start + len(token.text)).highlight()

    def error(self, token, message):
        return ErrorReport(SourceRange(Source(self.text), token.start, token.start + len(token.text)), message)
