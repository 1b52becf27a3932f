"""Which modules a model is sharded by: policies of the first FSDP, that libraries still name and call.

In PyTorch: `torch/distributed/fsdp/wrap.py`. A policy is called as `policy(module, recurse, nonwrapped_numel)`: with
`recurse`, whether to look at the children; without, whether to wrap. `enable_wrap` refuses: it would wrap in the first FSDP.
"""

import copy

from readtorch import nn

__all__ = [
    "CustomPolicy",
    "ModuleWrapPolicy",
    "always_wrap_policy",
    "enable_wrap",
    "lambda_auto_wrap_policy",
    "size_based_auto_wrap_policy",
    "transformer_auto_wrap_policy",
    "wrap",
]


def always_wrap_policy(*args, **kwargs):
    """Every module."""
    return True


class _Policy:
    """Chooses modules of a model all at once: `_run_policy` gives for each its keyword arguments."""

    def _run_policy(self, root_module, ignored_modules, root_kwargs):
        raise NotImplementedError


class ModuleWrapPolicy(_Policy):
    """The modules of some classes."""

    def __init__(self, module_classes):
        self._module_classes = set(module_classes)

    def _run_policy(self, root_module, ignored_modules, root_kwargs):
        chosen = tuple(self._module_classes)
        modules = [module for module in root_module.modules() if module not in ignored_modules]
        return {module: copy.copy(root_kwargs) for module in modules if isinstance(module, chosen)}

    def __call__(self, module, recurse, *args, **kwargs):
        return recurse or isinstance(module, tuple(self._module_classes))

    def __repr__(self):
        return f"{super().__repr__()}({self._module_classes})"


class CustomPolicy(_Policy):
    """The modules for which a function gives True, or a dict of keyword arguments that differ."""

    def __init__(self, lambda_fn):
        self._lambda_fn = lambda_fn

    def _run_policy(self, root_module, ignored_modules, root_kwargs):
        chosen = {}
        for module in root_module.modules():
            if module in ignored_modules:
                continue
            answer = self._lambda_fn(module)
            if not isinstance(answer, (dict, bool)):
                raise ValueError(
                    "The lambda_fn passed to CustomPolicy should return "
                    f"False/True or a kwarg dict, but it returned {answer}"
                )
            if answer:
                chosen[module] = {**root_kwargs, **(answer if isinstance(answer, dict) else {})}
        return chosen


def lambda_auto_wrap_policy(module, recurse, nonwrapped_numel, lambda_fn):
    """The modules for which `lambda_fn` gives True."""
    return recurse or lambda_fn(module)


def transformer_auto_wrap_policy(module, recurse, nonwrapped_numel, transformer_layer_cls):
    """A model's layers, by their classes."""
    return recurse or isinstance(module, tuple(transformer_layer_cls))


def _or_policy(module, recurse, nonwrapped_numel, policies):
    return any(policy(module=module, recurse=recurse, nonwrapped_numel=nonwrapped_numel) for policy in policies)


def size_based_auto_wrap_policy(
    module, recurse, nonwrapped_numel, min_num_params=int(1e8), force_leaf_modules=None, exclude_wrap_modules=None
):
    """Modules with so many parameters, those of their wrapped children not counted.

    force_leaf_modules: classes whose children are not looked at; exclude_wrap_modules: classes that are not wrapped.
    """
    if nonwrapped_numel < min_num_params:
        return False
    policy = size_based_auto_wrap_policy
    if recurse:
        return not isinstance(
            module, tuple(policy.FORCE_LEAF_MODULES if force_leaf_modules is None else force_leaf_modules)
        )
    return not isinstance(
        module, tuple(policy.EXCLUDE_WRAP_MODULES if exclude_wrap_modules is None else exclude_wrap_modules)
    )


size_based_auto_wrap_policy.EXCLUDE_WRAP_MODULES = {nn.ModuleList, nn.ModuleDict}
size_based_auto_wrap_policy.FORCE_LEAF_MODULES = {nn.MultiheadAttention}


def enable_wrap(*, wrapper_cls, **wrapper_kwargs):
    """Raises NotImplementedError."""
    raise NotImplementedError("readtorch has no enable_wrap: use torch.distributed.fsdp.fully_shard")


def wrap(module, **wrap_overrides):
    """The module as it is: outside of `enable_wrap` nothing is wrapped."""
    return module
