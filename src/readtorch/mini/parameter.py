"""Written in the chapter "Parameter and Buffer": its cells are this file, put together by `tools/mini.py`."""

from .autograd import Tensor
from .module import Parameter


def make_subclass(cls, t, requires_grad=False):
    """`t`'s memory and counter under another class."""
    made = t.detach()
    made.__class__ = cls
    made.base = None
    if requires_grad:
        made.requires_grad_()
    return made


class Parameter(Parameter):
    """A leaf that counts writes together with `t`."""

    def __new__(cls, t, *layout):
        if layout:  # a view or a copy is a plain tensor
            return Tensor(t, *layout)
        return make_subclass(cls, t, True)

    def __init__(self, *parts):
        pass  # `make_subclass` has filled it
