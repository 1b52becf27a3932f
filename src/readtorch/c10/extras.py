"""Packages that only a part of readtorch needs, and which `pip install readtorch` leaves out.

PyTorch has no such file: each of its modules that needs such a package says so in its own words.
"""

import contextlib


@contextlib.contextmanager
def extra(name, what):
    """`with extra("show", "readtorch.show"): import pygments`: if it is not there, the error says what to install.

    Raises ModuleNotFoundError, also for packages that the missing one comes with.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing in ("", "readtorch"):
            raise
        raise ModuleNotFoundError(
            f'{what} needs {missing}, which is not installed: pip install "readtorch[{name}]"', name=error.name
        ) from None
