"""`config.load.mmap = True` and the like: the defaults of `load` and `save`.

In PyTorch: `torch/utils/serialization/config.py`, with the methods that `torch/utils/_config_module.py` gives such a module.
Explained in the chapter "state_dict, save and load".
"""

import contextlib
import copy
import pickle
import sys
import types
import warnings

from readtorch.serialization.config import load, save

_GROUPS = {"load": load, "save": save}


def get_config_copy():
    """All options by their names, {"load.mmap": False, …}, as a dictionary of its own."""
    return {
        f"{group}.{name}": copy.deepcopy(getattr(options, name))
        for group, options in _GROUPS.items()
        for name in options._default
    }


def to_dict():
    warnings.warn(
        "`config.to_dict()` has been deprecated. It no longer changes the underlying config. use `config.get_config_copy()` "
        "instead if you just want a copy of the config, or config.load_config if you need mutable access",
        FutureWarning,
        stacklevel=2,
    )
    return get_config_copy()


shallow_copy_dict = get_config_copy


def save_config():
    """All options as bytes, for `load_config`."""
    return pickle.dumps(get_config_copy(), protocol=2)


def load_config(maybe_pickled_config):
    """Set the options that `save_config` wrote, or those of a dictionary."""
    given = maybe_pickled_config
    for name, value in (given if isinstance(given, dict) else pickle.loads(given)).items():
        _set(name, value)


@contextlib.contextmanager
def patch(arg1=None, arg2=None, **kwargs):
    """Set options within a `with` block or a decorated function: patch("load.mmap", True) or patch({"load.mmap": True})."""
    changes = {arg1: arg2} if isinstance(arg1, str) else {**(arg1 or {}), **kwargs}
    before = get_config_copy()
    try:
        for name, value in changes.items():
            _set(name, value)
        yield
    finally:
        load_config(before)


def _set(name, value):
    group, _, option = name.partition(".")
    if group not in _GROUPS:
        raise AttributeError(f"torch.utils.serialization.config.{name} does not exist")
    setattr(_GROUPS[group], option, value)


class _ConfigModule(types.ModuleType):
    """A module of which only options can be set."""

    def __setattr__(self, name, value):
        if name not in vars(self) and not name.startswith("__"):
            raise AttributeError(f"{__name__.replace('readtorch', 'torch', 1)}.{name} does not exist")
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _ConfigModule
