"""Switches between what modules do to their tensors today and what a later version may do by default.

In PyTorch: `torch/__future__.py`. The chapter "Module and __setattr__" shows `_apply`, the chapter
"state_dict, save and load" `load_state_dict`; both ask here.
"""

_overwrite_module_params_on_conversion = False
_swap_module_params_on_conversion = False


def set_overwrite_module_params_on_conversion(value) -> None:
    """True: `module.to`, `float` … make new parameters instead of changing `.data` of the old ones."""
    global _overwrite_module_params_on_conversion
    _overwrite_module_params_on_conversion = value


def get_overwrite_module_params_on_conversion() -> bool:
    return _overwrite_module_params_on_conversion


def set_swap_module_params_on_conversion(value) -> None:
    """True: `module.to` and the like, and `load_state_dict`, use `torch.utils.swap_tensors`.

    Goes before `set_overwrite_module_params_on_conversion`.
    """
    global _swap_module_params_on_conversion
    _swap_module_params_on_conversion = value


def get_swap_module_params_on_conversion() -> bool:
    return _swap_module_params_on_conversion
