"""How figures say things in words."""

import math

UNITS = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"), (1, "B"))


def counted(number, word):
    """`1 byte`, `2 bytes`."""
    return f"{number} {word}{'' if number == 1 else 's'}"


def size_text(nbytes):
    """`640 B`, `2.5 MiB`, with one digit behind the point if it is not 0. In `static/_common.js`: `sizeInTenths`."""
    unit, name = next(((unit, name) for unit, name in UNITS if nbytes >= unit), UNITS[-1])
    return f"{math.floor(nbytes / unit * 10 + 0.5) / 10:g} {name}"
