"""Whether a module that shall pickle is young enough.

In PyTorch: `check_module_version_greater_or_equal` and `_check_dill_version` of `torch/serialization.py`.
"""

import warnings


def check_module_version_greater_or_equal(module, req_version_tuple, error_if_malformed=True):
    """Whether `module.__version__` is at least `req_version_tuple`.

    Raises RuntimeError, or only warns, if it cannot be read as numbers.
    """
    try:
        parts = module.__version__.split(".")
        version = tuple(type(wanted)(parts[i]) for i, wanted in enumerate(req_version_tuple))
        return version >= req_version_tuple
    except Exception as error:
        message = (
            f"'{module.__name__}' module version string is malformed '{module.__version__}' and "
            "cannot be compared"
            f" with tuple {req_version_tuple}"
        )
        if error_if_malformed:
            raise RuntimeError(message) from error
        warnings.warn(message + ", but continuing assuming that requirement is met", stacklevel=2)
        return True


def check_dill_version(pickle_module):
    """Raises ValueError for a dill of before 0.3.1."""
    if pickle_module is None or pickle_module.__name__ != "dill":
        return
    if not check_module_version_greater_or_equal(pickle_module, (0, 3, 1), False):
        raise ValueError(
            f"'torch' supports dill >= 0.3.1, but you have dill {pickle_module.__version__}. Please upgrade dill or switch "
            "to 'pickle'"
        )
