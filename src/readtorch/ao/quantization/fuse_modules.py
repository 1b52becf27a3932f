"""Layers of a model become one. In PyTorch: `torch/ao/quantization/fuse_modules.py`."""

import copy

from readtorch import nn
from readtorch.nn.utils.parametrize import type_before_parametrizations

from .fuser_method_mappings import get_fuser_method

__all__ = ["fuse_known_modules", "fuse_modules", "fuse_modules_qat"]


def fuse_known_modules(mod_list, is_qat, additional_fuser_method_mapping=None):
    """The layer that does what those in `mod_list` do, and an Identity for each of the others. Hooks move to the new layer."""
    types = tuple(type_before_parametrizations(module) for module in mod_list)
    fused = get_fuser_method(types, additional_fuser_method_mapping)(is_qat, *mod_list)
    for hook in mod_list[0]._forward_pre_hooks.values():
        fused.register_forward_pre_hook(hook)
    mod_list[0]._forward_pre_hooks.clear()
    for hook in mod_list[-1]._forward_hooks.values():
        fused.register_forward_hook(hook)
    mod_list[-1]._forward_hooks.clear()
    return [fused, *(nn.Identity().train(mod_list[0].training) for _ in mod_list[1:])]


def fuse_modules(model, modules_to_fuse, inplace=False, fuser_func=fuse_known_modules, fuse_custom_config_dict=None):
    """The model, in eval mode, with a single layer for each list of names in `modules_to_fuse`, such as
    `[["conv1", "bn1", "relu1"], ["block.conv", "block.relu"]]`; a list of names is one such list.

    fuse_custom_config_dict: `{"additional_fuser_method_mapping": {classes: function(is_qat, *layers)}}`.
    """
    return _fuse_modules(model, modules_to_fuse, False, inplace, fuser_func, fuse_custom_config_dict)


def fuse_modules_qat(
    model, modules_to_fuse, inplace=False, fuser_func=fuse_known_modules, fuse_custom_config_dict=None
):
    """The same for a model that is trained on: batch norms stay."""
    return _fuse_modules(model, modules_to_fuse, True, inplace, fuser_func, fuse_custom_config_dict)


def _fuse_modules(model, modules_to_fuse, is_qat, inplace, fuser_func, custom):
    if not inplace:
        model = copy.deepcopy(model)
    one = all(isinstance(name, str) for name in modules_to_fuse)
    for names in [modules_to_fuse] if one else modules_to_fuse:
        methods = (custom or {}).get("additional_fuser_method_mapping", {})
        fused = fuser_func([_get_module(model, name) for name in names], is_qat, methods)
        for name, module in zip(names, fused):
            _set_module(model, name, module)
    return model


def _get_module(model, name):
    for part in name.split("."):
        model = getattr(model, part)
    return model


def _set_module(model, name, module):
    path, _, last = name.rpartition(".")
    setattr(_get_module(model, path) if path else model, last, module)
