"""`readtorch.__version__`: a text that compares as versions do. In PyTorch: `torch/torch_version.py`."""

import operator
from collections.abc import Iterable

from .version import __version__ as _text

__all__ = ["TorchVersion"]


def _comparison(name):
    as_versions, as_texts = getattr(operator, name), getattr(str, f"__{name}__")

    def compare(self, other):
        from packaging.version import InvalidVersion, Version  # here: not every program asks

        try:
            # in PyTorch: Version is its own copy of that class, and one of packaging's is no version to it
            return as_versions(Version(self), other if isinstance(other, Version) else Version(_as_text(other)))
        except (InvalidVersion, TypeError):
            return as_texts(self, other)

    return compare


def _as_text(version):
    return ".".join(map(str, version)) if isinstance(version, Iterable) and not isinstance(version, str) else version


class TorchVersion(str):
    """A text that compares with texts, tuples and packaging's versions as a version: "2.13.0" > (2, 9).

    What is no version, "parrot", is compared as a text; numbers raise TypeError.
    """

    __slots__ = ()
    __lt__, __le__, __eq__, __gt__, __ge__ = map(_comparison, ("lt", "le", "eq", "gt", "ge"))
    __hash__ = str.__hash__


__version__ = TorchVersion(_text)
