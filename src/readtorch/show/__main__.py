"""`python -m readtorch.show NAME...`: print an object's source, counted as `show.source` counts, and its digest."""

import sys

from readtorch.show._locate import locate


def main(names: list[str]) -> None:
    for name in names:
        try:
            quote = locate(name)
        except LookupError as error:
            sys.exit(str(error))
        print(f"{name}  {quote.where}  digest {quote.digest}")
        for number, line in enumerate(quote.lines, 1):
            print(f"{number:4}  {line}")


if __name__ == "__main__":
    main(sys.argv[1:])
