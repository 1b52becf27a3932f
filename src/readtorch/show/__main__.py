"""What authors of chapters ask for:

python -m readtorch.show NAME...              an object's lines, counted as `show.source` counts, and its digest
python -m readtorch.show --check FILE.md...   which quotations of a chapter no longer fit
python -m readtorch.show --accept FILE.md...  the same, and write the new digests: after reading what has changed
"""

import sys
from pathlib import Path

from readtorch.show import _chapters
from readtorch.show._locate import locate


def main(arguments: list[str]) -> int | str:
    match arguments:
        case ["--check", *files]:
            return report(_chapters.problems, files)
        case ["--accept", *files]:
            return report(_chapters.accept, files)
        case [_, *_]:
            return lines(arguments)
        case _:
            return __doc__


def report(look, files: list[str]) -> int:
    found = [problem for file in files for problem in look(Path(file))]
    print("\n".join(found) or "every quotation fits")
    return 1 if found else 0


def lines(names: list[str]) -> int | str:
    for name in names:
        try:
            quote = locate(name)
        except LookupError as error:
            return str(error)
        print(f"{name}  {quote.where}  digest {quote.digest}")
        for number, line in enumerate(quote.lines, 1):
            print(f"{number:4}  {line}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
