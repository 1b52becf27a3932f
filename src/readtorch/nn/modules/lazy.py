"""Modules that learn the sizes of their parameters from their first input.

In PyTorch: `torch/nn/modules/lazy.py`. See the chapter "Where numbers come from: init and random".
"""

import itertools

import readtorch
from readtorch.nn.parameter import is_lazy

__all__ = ["LazyModuleMixin"]


class LazyModuleMixin:
    """Put before a module class: `class LazyLinear(LazyModuleMixin, Linear)`.

    The subclass registers `UninitializedParameter`s and defines `initialize_parameters(input)`, which gives them
    their shapes. That runs once, in a forward pre-hook of the first call; then the module takes the class
    `cls_to_become`, and is an ordinary one. Move and cast a lazy module before its first call, not after.
    """

    # The class of the module once all its parameters have shapes; None: it keeps its own.
    cls_to_become = None

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._load_hook = self._register_load_state_dict_pre_hook(self._lazy_load_hook)
        self._initialize_hook = self.register_forward_pre_hook(self._infer_parameters, with_kwargs=True)

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        """As in Module, but what is uninitialized is saved as it is: it cannot be detached."""
        hidden = self._non_persistent_buffers_set
        buffers = {name: buf for name, buf in self._buffers.items() if name not in hidden}
        for name, tensor in itertools.chain(self._parameters.items(), buffers.items()):
            if tensor is not None:
                is_kept = is_lazy(tensor) or keep_vars
                destination[prefix + name] = tensor if is_kept else tensor.detach()

    def _lazy_load_hook(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
        """Before loading: give a parameter the shape of what will be copied into it."""
        for name, param in itertools.chain(self._parameters.items(), self._buffers.items()):
            key = prefix + name
            if key in state_dict and param is not None:
                input_param = state_dict[key]
                if is_lazy(param) and not is_lazy(input_param):
                    with readtorch.no_grad():
                        param.materialize(input_param.shape)

    def initialize_parameters(self, *args, **kwargs):
        """Override: materialize the parameters for this input, and give them their initial values."""
        raise NotImplementedError(f"initialize_parameters is not implemented for {self.__class__.__name__}")

    def has_uninitialized_params(self):
        """Whether a parameter or buffer of this module has no shape yet."""
        return any(is_lazy(param) for param in itertools.chain(self._parameters.values(), self._buffers.values()))

    def _infer_parameters(self, module, args, kwargs=None):
        """The forward pre-hook of the first call."""
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(f"module {self._get_name()} has not been fully initialized")
        module._initialize_hook.remove()
        module._load_hook.remove()
        delattr(module, "_initialize_hook")
        delattr(module, "_load_hook")
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become

    def _replicate_for_data_parallel(self):
        raise RuntimeError(
            "Modules with uninitialized parameters can't be used with `DataParallel`. "
            "Run a dummy forward pass to correctly initialize the modules"
        )
