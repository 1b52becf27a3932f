"""`annotate` and `isinstance`: what programs say about types, as Python functions.

In PyTorch: `torch/jit/__init__.py`. Explained in the chapter "JIT: scripting".
"""

import builtins
import types as _types
import typing

__all__ = ["annotate", "isinstance"]


def annotate(the_type, the_value):
    """`the_value`; in TorchScript it has the type `the_type`, which its literal may leave open."""
    return the_value


def isinstance(obj, target_type):
    """Python's `isinstance`, which also looks into containers: `isinstance(x, List[int])`."""
    if builtins.isinstance(target_type, tuple):
        return any(isinstance(obj, t) for t in target_type)
    origin, args = typing.get_origin(target_type), typing.get_args(target_type)
    if origin in (typing.Union, _types.UnionType):
        return any(isinstance(obj, t) for t in args)
    if origin is None:
        return builtins.isinstance(obj, target_type)
    if not builtins.isinstance(obj, origin):
        return False
    if origin is list:
        return all(isinstance(x, args[0]) for x in obj)
    if origin is dict:
        return all(isinstance(k, args[0]) and isinstance(v, args[1]) for k, v in obj.items())
    if origin is tuple:
        return len(obj) == len(args) and all(map(isinstance, obj, args))
    return True
