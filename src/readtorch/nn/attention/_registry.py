"""Other implementations of flash attention, by name: who has one registers a function that puts it in place.

In PyTorch: `torch/nn/attention/_registry.py`; two are registered there, `_fa3.py` and `_fa4.py`, each of which needs a package
of NVIDIA's kernels, without which they cannot be activated. They are listed here, too.
"""

import importlib
import logging

logger = logging.getLogger(__name__)

_implementations = {}  # name -> function that puts it in place and returns a handle with `remove`, or None
_active = None  # (name, handle)


def register_flash_attention_impl(impl, *, register_fn):
    """Let `activate_flash_attention_impl(impl)` call `register_fn`, which returns something with `remove()`, or None."""
    _implementations[impl] = register_fn


def activate_flash_attention_impl(impl):
    """Put a registered implementation in place of that before. ValueError for an unknown name."""
    global _active
    restore_flash_attention_impl(_raise_warn=False)
    if impl not in _implementations:
        raise ValueError(
            f"Unknown flash attention impl '{impl}'. Available implementations: {list_flash_attention_impls()}"
        )
    handle = _implementations[impl]()
    if handle is not None:
        _active = (impl, handle)


def list_flash_attention_impls():
    """The names of all that are registered."""
    return sorted(_implementations)


def current_flash_attention_impl():
    """The name of the one that is active, or None."""
    return None if _active is None else _active[0]


def restore_flash_attention_impl(_raise_warn=True):
    """Remove what is active. A message in the log if there is nothing."""
    global _active
    if _active is not None:
        _active[1].remove()
    elif _raise_warn:
        logger.warning("Trying to restore default FA2 impl when no custom impl was activated")
    _active = None


def _needs(module):
    """For an implementation whose kernels a package has: ModuleNotFoundError without it."""

    def register(module_path=module):
        importlib.import_module(module_path)
        raise RuntimeError(f"readtorch cannot use the kernels of '{module_path}'")

    return register


register_flash_attention_impl("FA3", register_fn=_needs("flash_attn_interface"))
register_flash_attention_impl("FA4", register_fn=_needs("flash_attn.cute.interface"))
