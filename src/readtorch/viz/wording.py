"""How figures say things in words."""


def counted(number, word):
    """`1 byte`, `2 bytes`."""
    return f"{number} {word}{'' if number == 1 else 's'}"
