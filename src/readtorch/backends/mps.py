"""Apple's GPUs: not here. In PyTorch: `torch/backends/mps/__init__.py`."""

__all__ = ["get_core_count", "get_name", "is_built", "is_available", "is_macos13_or_newer", "is_macos_or_newer"]


def is_built() -> bool:
    """Whether this build can use such a GPU."""
    return False


def is_available() -> bool:
    """Whether there is one."""
    return False


def is_macos_or_newer(major: int, minor: int) -> bool:
    """Raises RuntimeError: only a build for such GPUs knows."""
    raise RuntimeError("Cannot execute isOnMacOSorNewer() without MPS backend.")


def is_macos13_or_newer(minor: int = 0) -> bool:
    """Raises RuntimeError: only a build for such GPUs knows."""
    return is_macos_or_newer(13, minor)


def get_name() -> str:
    """Raises AttributeError: only a build for such GPUs knows."""
    raise AttributeError("module 'torch._C' has no attribute '_mps_get_name'")


def get_core_count() -> int:
    """Raises AttributeError: only a build for such GPUs knows."""
    raise AttributeError("module 'torch._C' has no attribute '_mps_get_core_count'")
