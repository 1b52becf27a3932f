"""What the parts of `Module` have in common."""
from types import FunctionType


def part_of_module(cls):
    """Class decorator: the methods say that they are Module's, as in PyTorch, where there is one class.

    It shows in what a method prints as, in Python's own errors about arguments, and in pickles of methods.
    """
    for function in vars(cls).values():
        if isinstance(function, FunctionType):
            function.__qualname__ = f"Module.{function.__name__}"
            function.__module__ = "readtorch.nn.modules.module"
    return cls
