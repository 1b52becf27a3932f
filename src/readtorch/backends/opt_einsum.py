"""The package opt_einsum, which finds an order of products in which `einsum` has least to do.

In PyTorch: `torch/backends/opt_einsum/__init__.py`.
"""

import contextlib
import sys

from readtorch.aten.context import context

try:
    import opt_einsum as _opt_einsum
except ImportError:
    _opt_einsum = None

STRATEGIES = ["auto", "greedy", "optimal"]


def is_available() -> bool:
    """Whether the package is installed."""
    return _opt_einsum is not None


def get_opt_einsum():
    """The package, or None."""
    return _opt_einsum


enabled = is_available()  # whether `einsum` of more than two tensors asks it
strategy = "auto" if is_available() else None  # how it looks for an order


def set_flags(_enabled=None, _strategy=None):
    """Set what is not None. Returns what it was before, as a tuple. ValueError for what would have no effect."""
    before = (enabled, strategy)
    if _enabled is not None:
        _set_enabled(_enabled)
    if _strategy is not None:
        _set_strategy(_strategy)
    return before


def _set_enabled(value):
    if value and not is_available():
        raise ValueError(
            f"opt_einsum is not available, so setting `enabled` to {value} will not reap "
            "the benefits of calculating an optimal path for einsum. torch.einsum will "
            "fall back to contracting from left to right. To enable this optimal path "
            "calculation, please install opt-einsum."
        )
    sys.modules[__name__].enabled = value


def _set_strategy(value):
    bypass = "torch.einsum will bypass path calculation and simply contract from left to right."
    if not is_available():
        raise ValueError(
            f"opt_einsum is not available, so setting `strategy` to {value} will not be meaningful. {bypass} "
            "Please install opt_einsum or unset `strategy`."
        )
    if not enabled:
        raise ValueError(
            f"opt_einsum is not enabled, so setting a `strategy` to {value} will not be meaningful. {bypass} "
            "Please set `enabled` to `True` as well or unset `strategy`."
        )
    if value not in STRATEGIES:
        raise ValueError(f"`strategy` must be one of the following: [{', '.join(STRATEGIES)}] but is {value}")
    sys.modules[__name__].strategy = value


@contextlib.contextmanager
def flags(enabled=None, strategy=None):
    """`with flags(strategy="optimal"):`"""
    before = set_flags(enabled, strategy)
    try:
        yield
    finally:
        set_flags(*before)


def _path(equation, operands):
    """Which two operands are multiplied next, as numbers in a row; None if the package is not to be asked."""
    if not enabled:
        return None
    pairs = _opt_einsum.contract_path(equation, *operands, optimize=strategy)[0]
    return [number for pair in pairs for number in pair]


if is_available():
    context.contraction_path = _path
