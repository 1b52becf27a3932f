"""AMD's counterpart of cuDNN: its one setting is kept. In PyTorch: `torch/backends/miopen/__init__.py`."""

import sys

from ._settings import PropModule, changed, flags_of, setting


def set_flags(_immediate=None):
    """Set what is not None, frozen or not. Returns what it was before, as a tuple."""
    return tuple(changed(sys.modules[__name__], immediate=_immediate).values())


def flags(immediate=False):
    """`with flags(immediate=True):`"""
    return flags_of(sys.modules[__name__], immediate=immediate)


class _MiopenModule(PropModule):
    immediate = setting("miopen_immediate", "set_immediate_miopen")


sys.modules[__name__].__class__ = _MiopenModule
