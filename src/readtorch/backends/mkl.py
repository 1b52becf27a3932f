"""Intel's library of linear algebra: not here, NumPy brings its own. In PyTorch: `torch/backends/mkl/__init__.py`."""

VERBOSE_OFF = 0
VERBOSE_ON = 1


def is_available():
    """Whether the library is there."""
    return False


class verbose:
    """`with verbose(VERBOSE_ON):` has the library tell of every call. AssertionError: it is not there."""

    def __init__(self, enable):
        self.enable = enable

    def __enter__(self):
        if self.enable != VERBOSE_OFF:
            raise AssertionError("Failed to set MKL into verbose mode. Please consider to disable this verbose scope.")

    def __exit__(self, exc_type, exc_val, exc_tb):
        return False
