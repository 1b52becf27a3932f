"""Apple's GPUs: not here. In PyTorch: `torch/mps/__init__.py`, which is like this in a build without them."""

__all__ = ["device_count", "empty_cache", "is_available", "manual_seed", "seed", "synchronize"]


def is_available() -> bool:
    """Whether there is one."""
    return False


def device_count() -> int:
    """How many there are."""
    return 0


def _refuse(what):
    raise RuntimeError(f"Cannot execute {what}() without MPS backend.")


def synchronize() -> None:
    """Raises RuntimeError: only a build for such GPUs has any."""
    _refuse("deviceSynchronize")


def empty_cache() -> None:
    """Raises RuntimeError: only a build for such GPUs has any."""
    _refuse("emptyCache")


def manual_seed(seed: int) -> None:
    """Does nothing: there is no generator to seed."""


def seed() -> None:
    """Raises RuntimeError: only a build for such GPUs has a generator."""
    _refuse("getDefaultGenerator")
