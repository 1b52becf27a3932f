"""A type for a value that is traced. In PyTorch: `torch/fx/annotate.py`."""

from .proxy import Proxy

__all__ = ["annotate"]


def annotate(val, type):
    """Give the node of a Proxy a type. Anything else is returned as it is. Raises RuntimeError if the node has a type."""
    if isinstance(val, Proxy):
        if val.node.type:
            raise RuntimeError(
                f"Tried to annotate a value that already had a type on it! Existing type is {val.node.type} and new type is "
                f"{type}. This could happen if you tried to annotate a function parameter value (in which case you should use "
                f"the type slot on the function signature) or you called annotate on the same value twice"
            )
        val.node.type = type
    return val
