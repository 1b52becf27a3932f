"""Whether attention layers may compute with one operator that records no graph.

In PyTorch: `torch/backends/mha/__init__.py`.
"""

from readtorch._jit_internal import is_scripting

_is_fastpath_enabled: bool = True


def get_fastpath_enabled() -> bool:
    """What `set_fastpath_enabled` has set, True at first, and True in a script. The fast path has other conditions, too."""
    if not is_scripting():
        return _is_fastpath_enabled
    return True


def set_fastpath_enabled(value: bool) -> None:
    """Allow or forbid the fast path of `nn.MultiheadAttention` and `nn.TransformerEncoderLayer`."""
    global _is_fastpath_enabled
    _is_fastpath_enabled = value
