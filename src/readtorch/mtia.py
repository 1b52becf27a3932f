"""Meta's accelerators: not here. In PyTorch: `torch/mtia/__init__.py`, which is like this in a build without them."""

__all__ = [
    "current_device",
    "device_count",
    "empty_cache",
    "is_available",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "synchronize",
]


def is_available() -> bool:
    """Whether there is one."""
    return False


def device_count() -> int:
    """How many there are."""
    return 0


def is_initialized() -> bool:
    """Whether one is in use."""
    return False


def _refuse(what):
    raise RuntimeError(f"Cannot execute {what}() without MTIA backend.")


def current_device() -> int:
    """Raises RuntimeError: only a build for such devices has any."""
    _refuse("getCurrentDevice")


def synchronize(device=None) -> None:
    """Raises RuntimeError: only a build for such devices has any."""
    _refuse("getCurrentDevice")


def empty_cache() -> None:
    """Raises RuntimeError: only a build for such devices has any."""
    _refuse("emptyCache")


def manual_seed(seed: int) -> None:
    """Does nothing: there is no generator to seed."""


def manual_seed_all(seed: int) -> None:
    """Does nothing: there is no generator to seed."""
