"""`state_dict` and `load_state_dict`: a module's parameters and buffers under their full names.

In PyTorch: part of `torch/nn/modules/module.py`. The chapter "state_dict, save and load" compares
checkpoints with it.
"""
import warnings
from collections import OrderedDict, namedtuple
from collections.abc import Mapping
from typing import Any, TypeVar

import readtorch
from readtorch._tensor import Tensor
from readtorch.nn.modules._hooks import _register, _WrappedHook
from readtorch.nn.modules._parts import part_of_module
from readtorch.nn.parameter import Parameter, is_lazy
from readtorch.utils import swap_tensors

_EXTRA_STATE_KEY_SUFFIX = "_extra_state"

_ISSUE = (
    "Please file an issue at https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml "
    "to report this bug."
)


class _IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    """What `load_state_dict` returns."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


@part_of_module
class _StateDict:
    """The part of `Module` that saves and loads state."""

    T_destination = TypeVar("T_destination", bound=dict[str, Any])  # a name that annotations use

    # Saving

    def state_dict(self, *args, destination=None, prefix="", keep_vars=False):
        """A dictionary from full name to tensor: all parameters and persistent buffers, parents first.

        The tensors share memory with the module's. keep_vars: keep them attached to autograd.
        The dictionary's `_metadata` maps each module's name to its `_version`.
        """
        if args:
            destination, prefix, keep_vars = _positional_args(args, destination, prefix, keep_vars)
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        local_metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local_metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=prefix + name + ".", keep_vars=keep_vars)
        return self._run_state_dict_hooks(destination, prefix, local_metadata)

    def _save_to_state_dict(self, destination, prefix, keep_vars) -> None:
        """Put this module's own state, without its children's, into `destination`. May be overridden."""
        for name, param in self._parameters.items():
            if param is not None:
                destination[prefix + name] = param if keep_vars else param.detach()
        for name, buf in self._buffers.items():
            if buf is not None and name not in self._non_persistent_buffers_set:
                destination[prefix + name] = buf if keep_vars else buf.detach()
        if type(self).get_extra_state is not _StateDict.get_extra_state:
            destination[prefix + _EXTRA_STATE_KEY_SUFFIX] = self.get_extra_state()

    def _run_state_dict_hooks(self, destination, prefix, local_metadata):
        for hook in self._state_dict_hooks.values():
            hook_result = hook(self, destination, prefix, local_metadata)
            if hook_result is None:
                continue
            if getattr(hook, "_from_public_api", False):
                raise RuntimeError("state_dict post-hook must return None")
            # A private hook may return another dictionary; only the root module's answer reaches the caller.
            destination = hook_result
        return destination

    def get_extra_state(self):
        """Override to save more than tensors: the result goes into the state_dict as `_extra_state`."""
        raise RuntimeError(
            f"Reached a code path in Module.get_extra_state() that should never be called. {_ISSUE}"
        )

    def set_extra_state(self, state) -> None:
        """Override together with `get_extra_state`: receives what that returned."""
        raise RuntimeError(
            f"Reached a code path in Module.set_extra_state() that should never be called. {_ISSUE}"
        )

    def _register_state_dict_hook(self, hook):
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError(
                "Cannot register the same function as the state dict post hook that was "
                "previously registered via register_state_dict_post_hook"
            )
        return _register(self._state_dict_hooks, hook)

    def register_state_dict_post_hook(self, hook):
        """Call `hook(module, state_dict, prefix, local_metadata)`, which returns None, after `state_dict`."""
        hook._from_public_api = True
        return _register(self._state_dict_hooks, hook)

    def register_state_dict_pre_hook(self, hook):
        """Call `hook(module, prefix, keep_vars)` at the start of `state_dict`."""
        return _register(self._state_dict_pre_hooks, hook)

    # Loading

    def load_state_dict(self, state_dict, strict=True, assign=False):
        """Copy the tensors of `state_dict` into this module's, name by name.

        strict: RuntimeError if a name is missing on either side. A wrong shape is always one.
        assign: put the tensors themselves into the module instead of copying.
        Returns the names that did not match.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        missing_keys, unexpected_keys, error_msgs = [], [], []
        metadata = getattr(state_dict, "_metadata", None)
        # `_load_from_state_dict` may change the dictionary (old names become new ones): give it a copy.
        state_dict = OrderedDict(state_dict)
        if metadata is not None:
            state_dict._metadata = metadata

        def load(module, local_state_dict, prefix=""):
            local_metadata = {} if metadata is None else metadata.get(prefix[:-1], {})
            if assign:
                local_metadata["assign_to_params_buffers"] = assign
            module._load_from_state_dict(
                local_state_dict, prefix, local_metadata, True, missing_keys, unexpected_keys, error_msgs
            )
            for name, child in module._modules.items():
                if child is not None:
                    child_prefix = prefix + name + "."
                    child_state = {k: v for k, v in local_state_dict.items() if k.startswith(child_prefix)}
                    load(child, child_state, child_prefix)
            _run_load_state_dict_post_hooks(module, _IncompatibleKeys(missing_keys, unexpected_keys))

        load(self, state_dict)
        del load  # it refers to itself through its closure, and to the module
        if strict:
            error_msgs = _strict_errors(missing_keys, unexpected_keys) + error_msgs
        if error_msgs:
            errors = "\n\t".join(error_msgs)
            raise RuntimeError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t{errors}")
        return _IncompatibleKeys(missing_keys, unexpected_keys)

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ) -> None:
        """Load this module's own state, without its children's. What goes wrong is appended to the lists."""
        for hook in self._load_state_dict_pre_hooks.values():
            hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        local_state = self._local_state()
        assign = local_metadata.get("assign_to_params_buffers", False)
        for name, param in local_state.items():
            key = prefix + name
            if key in state_dict:
                self._load_tensor(name, param, key, state_dict[key], assign, error_msgs)
            elif strict:
                missing_keys.append(key)
        self._load_extra_state(state_dict, prefix, strict, missing_keys, unexpected_keys)
        if strict:
            unexpected_keys += self._keys_without_owner(state_dict, prefix, local_state)

    def _local_state(self):
        hidden = self._non_persistent_buffers_set
        persistent_buffers = {k: v for k, v in self._buffers.items() if k not in hidden}
        return {k: v for k, v in {**self._parameters, **persistent_buffers}.items() if v is not None}

    def _load_tensor(self, name, param, key, input_param, assign, error_msgs):
        if not _is_tensor_like(input_param):
            error_msgs.append(
                f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object '
                f"from checkpoint but received {type(input_param)}"
            )
            return
        has_shape = not is_lazy(param)  # `LazyModuleMixin._lazy_load_hook` has given one to what it could
        if has_shape and len(param.shape) == 0 and tuple(input_param.shape) == (1,):
            input_param = input_param[0]  # checkpoints of PyTorch 0.3 know no 0-dimensional tensors
        if has_shape and input_param.shape != param.shape:
            error_msgs.append(
                f"size mismatch for {key}: copying a param with shape {input_param.shape} from checkpoint, "
                f"the shape in current model is {param.shape}."
            )
            return
        if param.is_meta and not input_param.is_meta and not assign:
            _warn_meta_copy(key)
        swap = readtorch.__future__.get_swap_module_params_on_conversion()
        try:
            with readtorch.no_grad():
                if swap:
                    _swap_in(param, input_param, assign)
                elif assign:
                    setattr(self, name, _like_param(input_param, param))
                else:
                    param.copy_(input_param)
        except Exception as ex:
            error_msgs.append(
                f'While {"swapping" if swap else "copying"} the parameter named "{key}", '
                f"whose dimensions in the model are {param.size()} and "
                f"whose dimensions in the checkpoint are {input_param.size()}, "
                f"an exception occurred : {ex.args}."
            )

    def _load_extra_state(self, state_dict, prefix, strict, missing_keys, unexpected_keys):
        key = prefix + _EXTRA_STATE_KEY_SUFFIX
        if type(self).set_extra_state is not _StateDict.set_extra_state:
            if key in state_dict:
                self.set_extra_state(state_dict[key])
            elif strict:
                missing_keys.append(key)
        elif strict and key in state_dict:
            unexpected_keys.append(key)

    def _keys_without_owner(self, state_dict, prefix, local_state):
        """Keys under `prefix` that name neither something here nor something in a child."""
        for key in state_dict:
            if not key.startswith(prefix) or key == prefix + _EXTRA_STATE_KEY_SUFFIX:
                continue
            first, *rest = key[len(prefix):].split(".", 1)
            if first not in (self._modules if rest else local_state):
                yield key

    def _register_load_state_dict_pre_hook(self, hook, with_module=False):
        return _register(self._load_state_dict_pre_hooks, _WrappedHook(hook, self if with_module else None))

    def register_load_state_dict_pre_hook(self, hook):
        """Call `hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys,
        error_msgs)` before this module loads its state."""
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def register_load_state_dict_post_hook(self, hook):
        """Call `hook(module, incompatible_keys)` after this module loaded; it may change the lists."""
        return _register(self._load_state_dict_post_hooks, hook)


def _positional_args(args, destination, prefix, keep_vars):
    warnings.warn(
        "Positional args are being deprecated, use kwargs instead. Refer to "
        "https://pytorch.org/docs/main/generated/torch.nn.Module.html#torch.nn.Module.state_dict"
        " for details.",
        FutureWarning,
        stacklevel=3,
    )
    if destination is None:
        destination = args[0]
    if len(args) > 1 and prefix == "":
        prefix = args[1]
    if len(args) > 2 and keep_vars is False:
        keep_vars = args[2]
    return destination, prefix, keep_vars


def _run_load_state_dict_post_hooks(module, incompatible_keys):
    for hook in module._load_state_dict_post_hooks.values():
        if hook(module, incompatible_keys) is not None:
            raise AssertionError(
                "Hooks registered with ``register_load_state_dict_post_hook`` are not "
                "expected to return new values, if incompatible_keys need to be modified, "
                "it should be done inplace."
            )


def _strict_errors(missing_keys, unexpected_keys):
    errors = []
    for kind, keys in (("Missing", missing_keys), ("Unexpected", unexpected_keys)):
        if keys:
            quoted = ", ".join(f'"{k}"' for k in keys)
            errors.append(f"{kind} key(s) in state_dict: {quoted}. ")
    return errors


def _is_tensor_like(value):
    return isinstance(value, Tensor) or hasattr(value, "__torch_function__")


def _swap_in(param, input_param, assign):
    new = param.module_load(input_param, assign=assign)
    if new is input_param or new is param:
        raise RuntimeError(
            "module_load returned one of self or other, please .detach() "
            "the result if returning one of the inputs in module_load"
        )
    swap_tensors(param, _like_param(new, param))


def _like_param(tensor, param):
    """`tensor` in the role of `param`: a parameter that asks for gradients as `param` does, or a buffer."""
    if not isinstance(param, Parameter):
        return tensor
    if not isinstance(tensor, Parameter):
        return Parameter(tensor, requires_grad=param.requires_grad)
    return tensor.requires_grad_(param.requires_grad)


def _warn_meta_copy(key):
    warnings.warn(
        f"for {key}: copying from a non-meta parameter in the checkpoint to a meta "
        "parameter in the current model, which is a no-op. (Did you mean to "
        "pass `assign=True` to assign items in the state dictionary to their "
        "corresponding key in the module instead of copying them in place?)",
        stacklevel=4,
    )
