"""Intel's GPUs: not here. In PyTorch: `torch/xpu/__init__.py`, which is like this in a build without them."""

__all__ = [
    "current_device",
    "device_count",
    "empty_cache",
    "is_available",
    "is_bf16_supported",
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


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether the current one computes with bfloat16."""
    return False


def current_device() -> int:
    """Raises AssertionError: only a build for such GPUs has any."""
    raise AssertionError("Torch not compiled with XPU enabled")


def synchronize(device=None) -> None:
    """Raises AssertionError: only a build for such GPUs has any."""
    raise AssertionError("Torch not compiled with XPU enabled")


def empty_cache() -> None:
    """Does nothing: there is no cache."""


def manual_seed(seed: int) -> None:
    """Does nothing: there is no generator to seed."""


def manual_seed_all(seed: int) -> None:
    """Does nothing: there is no generator to seed."""
