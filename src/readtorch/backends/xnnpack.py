"""A library of layers for phones: not here. In PyTorch: `torch/backends/xnnpack/__init__.py`."""

import sys

from ._settings import PropModule


class _Enabled:
    def __get__(self, module, kind):
        return False

    def __set__(self, module, value):
        raise RuntimeError("Assignment not supported")


class _XnnpackModule(PropModule):
    enabled = _Enabled()


sys.modules[__name__].__class__ = _XnnpackModule
