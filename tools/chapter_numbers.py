"""Writes the numbers of chapters into the links that name them: `[chapter 6](autograd.md)`, `[6](autograd.md)`.

    python tools/chapter_numbers.py            writes them
    python tools/chapter_numbers.py --check    says which are not those of _toc.yml, and exits with 1 if there are any

The numbers are given in `_toc.yml` alone. A number without a link is not changed, for nobody knows which chapter is meant;
`--check` asks at least that there is a chapter of that number. Docstrings cite chapters by their titles.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LISTED = re.compile(r'file: book/(\w+)\n\s+title: "(\w+)\. ')
LINKED = re.compile(
    r"(?P<before>\[(?:[Cc]hapter |[Aa]ppendix )?)(?P<number>\d+|[A-Z])(?P<between>\]\()(?P<file>\w+)(?=\.md)"
)
ALONE = re.compile(r"(?<!\[)\b(?:[Cc]hapters?|[Aa]ppendix) (\d+|[A-Z])\b")


def numbers(toc: str) -> dict[str, str]:
    """The numbered chapters of a table of contents: name of the file -> its number or letter"""
    return dict(LISTED.findall(toc))


def numbered(text: str, number_of: dict[str, str]) -> str:
    """A chapter's text with the right numbers in its links."""

    def link(found):
        number = number_of.get(found["file"], found["number"])
        return f"{found['before']}{number}{found['between']}{found['file']}"

    return LINKED.sub(link, text)


def problems(name: str, text: str, number_of: dict[str, str]) -> list[str]:
    """The numbers of a text that are not right, each with its line."""
    found = []
    for line, (is_, should) in enumerate(zip(text.split("\n"), numbered(text, number_of).split("\n")), 1):
        if is_ != should:
            found.append(f"{name}:{line}: a link has another number than _toc.yml")
        unknown = [number for number in ALONE.findall(is_) if number not in number_of.values()]
        found += [f"{name}:{line}: _toc.yml has no chapter {number}" for number in unknown]
    return found


def main(arguments: list[str]) -> int:
    number_of = numbers((ROOT / "_toc.yml").read_text(encoding="utf8"))
    chapters = {path: path.read_text(encoding="utf8") for path in sorted((ROOT / "book").glob("*.md"))}
    if "--check" in arguments:
        wrong = [line for path, text in chapters.items() for line in problems(f"book/{path.name}", text, number_of)]
        print(*wrong, sep="\n", end="\n" if wrong else "")
        return bool(wrong)
    for path, text in chapters.items():
        if numbered(text, number_of) != text:
            path.write_text(numbered(text, number_of), encoding="utf8")
            print(path.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
