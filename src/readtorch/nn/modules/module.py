"""`Module`: a tree of parameters, buffers and further modules, built by assigning attributes.

In PyTorch: `torch/nn/modules/module.py`, one class of 2,600 lines. Here the class is put together from parts:

    this file         state, registration, attribute access, training mode, repr
    _members.py       iteration and lookup by name
    _convert.py       apply, to, float, cuda …
    _hooks.py         registration of hooks; hooks common to all modules
    _call.py          what happens around `forward`
    _state_dict.py    state_dict, load_state_dict

The chapter "Module and __setattr__" reads this file, the chapter "Parameter and Buffer" `Parameter`, the
chapter "Hooks and __call__" the hooks, the chapter "state_dict, save and load" the checkpoints.
"""
import inspect
import warnings
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Self

import readtorch
from readtorch.nn.modules._call import _Call
from readtorch.nn.modules._convert import _Convert
from readtorch.nn.modules._hooks import (  # noqa: F401
    _global_buffer_registration_hooks,
    _global_module_registration_hooks,
    _global_parameter_registration_hooks,
    _HookRegistration,
    _WrappedHook,
    register_module_backward_hook,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from readtorch.nn.modules._members import _Members
from readtorch.nn.modules._state_dict import _EXTRA_STATE_KEY_SUFFIX, _IncompatibleKeys, _is_tensor_like, _StateDict  # noqa: F401
from readtorch.nn.parameter import Buffer, Parameter

__all__ = [
    "register_module_forward_pre_hook",
    "register_module_forward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_backward_hook",
    "register_module_full_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
    "Module",
]


def _forward_unimplemented(self, *input) -> None:
    """Define the computation of a call. Call the module, not `forward`: only the call runs the hooks."""
    raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')


class Module(_Call, _Members, _Convert, _HookRegistration, _StateDict):
    """Base class of all neural network modules.

    Assigning a `Parameter`, a `Buffer` or a `Module` to an attribute registers it: it is then found by
    `parameters()`, moved by `to()`, saved by `state_dict()`. Everything else is an ordinary attribute.
    """

    dump_patches = False
    _version = 1  # of the state_dict, saved with it: a subclass that changes its names there counts up
    _compiled_call_impl = None  # what `compile` makes: calls go there
    call_super_init = False  # True: `__init__` goes on to the next class of the MRO, with the arguments

    def __init__(self, *args, **kwargs) -> None:
        if not self.call_super_init:
            self._refuse_arguments(args, kwargs)
        # `__setattr__` below looks into these dictionaries: they must be made without it.
        set_attribute = super().__setattr__
        set_attribute("training", True)
        set_attribute("_parameters", {})
        set_attribute("_buffers", {})
        set_attribute("_non_persistent_buffers_set", set())
        set_attribute("_backward_pre_hooks", OrderedDict())
        set_attribute("_backward_hooks", OrderedDict())
        set_attribute("_is_full_backward_hook", None)
        set_attribute("_forward_hooks", OrderedDict())
        set_attribute("_forward_hooks_with_kwargs", OrderedDict())
        set_attribute("_forward_hooks_always_called", OrderedDict())
        set_attribute("_forward_pre_hooks", OrderedDict())
        set_attribute("_forward_pre_hooks_with_kwargs", OrderedDict())
        set_attribute("_state_dict_hooks", OrderedDict())
        set_attribute("_state_dict_pre_hooks", OrderedDict())
        set_attribute("_load_state_dict_pre_hooks", OrderedDict())
        set_attribute("_load_state_dict_post_hooks", OrderedDict())
        set_attribute("_modules", {})
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    def _refuse_arguments(self, args, kwargs):
        name = f"{type(self).__name__}.__init__()"
        if kwargs:
            raise TypeError(f"{name} got an unexpected keyword argument '{next(iter(kwargs))}'")
        if args:
            raise TypeError(f"{name} takes 1 positional argument but {len(args) + 1} were given")

    forward: Callable[..., Any] = _forward_unimplemented

    # Registration

    def register_parameter(self, name, param) -> None:
        """Register a `Parameter`, or None: a parameter that the module could have and has not."""
        if "_parameters" not in self.__dict__:
            raise AttributeError("cannot assign parameter before Module.__init__() call")
        self._check_name(name, "parameter", self._parameters)
        if param is None:
            self._parameters[name] = None
            return
        if not isinstance(param, Parameter):
            raise TypeError(
                f"cannot assign '{readtorch.typename(param)}' object to parameter '{name}' "
                "(torch.nn.Parameter or None required)"
            )
        if param.grad_fn:
            raise ValueError(
                f"Cannot assign non-leaf Tensor to parameter '{name}'. Model "
                f"parameters must be created explicitly. To express '{name}' "
                "as a function of another Tensor, compute the value in "
                "the forward() method."
            )
        self._parameters[name] = self._run_hooks(_global_parameter_registration_hooks, name, param)

    def register_buffer(self, name, tensor, persistent=True) -> None:
        """Register a tensor, or None, as state that is not trained; persistent: part of the state_dict."""
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        self._check_name(name, "buffer", self._buffers)
        if tensor is not None and not _is_tensor_like(tensor):
            raise TypeError(
                f"cannot assign '{readtorch.typename(tensor)}' object to buffer '{name}' "
                "(torch Tensor or None required)"
            )
        self._buffers[name] = self._run_hooks(_global_buffer_registration_hooks, name, tensor)
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def add_module(self, name, module) -> None:
        """Register a child module, or None, under `name`."""
        if not isinstance(module, Module) and module is not None:
            raise TypeError(f"{readtorch.typename(module)} is not a Module subclass")
        if not isinstance(name, str):
            raise TypeError(f"module name should be a string. Got {readtorch.typename(name)}")
        if hasattr(self, name) and name not in self._modules:
            raise KeyError(f"attribute '{name}' already exists")
        if "." in name:
            raise KeyError(f'module name can\'t contain ".", got: {name}')
        if name == "":
            raise KeyError('module name can\'t be empty string ""')
        self._modules[name] = self._run_hooks(_global_module_registration_hooks, name, module)

    def register_module(self, name, module) -> None:
        """Another name for `add_module`."""
        self.add_module(name, module)

    def _check_name(self, name, kind, registered):
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {readtorch.typename(name)}")
        if "." in name:
            raise KeyError(f'{kind} name can\'t contain "."')
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')
        if hasattr(self, name) and name not in registered:
            raise KeyError(f"attribute '{name}' already exists")

    def _run_hooks(self, hooks, name, value):
        for hook in hooks.values():
            output = hook(self, name, value)
            if output is not None:
                value = output
        return value

    # Attribute access

    def __setattr__(self, name, value) -> None:
        """Register what is to be registered, and keep each name in one place only.

        A name that is registered as a parameter, module or buffer stays one: it takes another of its kind, or
        None, and refuses everything else. But a `Parameter` or a `Module` replaces whatever had its name.
        """
        params = self.__dict__.get("_parameters")
        if isinstance(value, Parameter):
            if params is None:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._remove_from(
                name, self.__dict__, self._buffers, self._modules, self._non_persistent_buffers_set
            )
            self.register_parameter(name, value)
        elif params is not None and name in params:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{readtorch.typename(value)}' as parameter '{name}' "
                    "(torch.nn.Parameter or None expected)"
                )
            self.register_parameter(name, value)
        else:
            self._set_module_or_other(name, value)

    def _set_module_or_other(self, name, value):
        modules = self.__dict__.get("_modules")
        if isinstance(value, Module):
            if modules is None:
                raise AttributeError("cannot assign module before Module.__init__() call")
            self._remove_from(
                name, self.__dict__, self._parameters, self._buffers, self._non_persistent_buffers_set
            )
            modules[name] = self._run_hooks(_global_module_registration_hooks, name, value)
        elif modules is not None and name in modules:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{readtorch.typename(value)}' as child module '{name}' "
                    "(torch.nn.Module or None expected)"
                )
            modules[name] = self._run_hooks(_global_module_registration_hooks, name, value)
        else:
            self._set_buffer_or_other(name, value)

    def _set_buffer_or_other(self, name, value):
        buffers = self.__dict__.get("_buffers")
        if isinstance(value, Buffer) or buffers is not None and name in buffers:
            if value is not None and not _is_tensor_like(value):
                raise TypeError(
                    f"cannot assign '{readtorch.typename(value)}' as buffer '{name}' "
                    "(torch.nn.Buffer, torch.Tensor or None expected)"
                )
            if isinstance(value, Buffer):
                persistent = value.persistent
            else:
                persistent = name not in self._non_persistent_buffers_set
            self._register_assigned_buffer(name, value, persistent)
        else:
            super().__setattr__(name, value)

    def _register_assigned_buffer(self, name, value, persistent):
        # A subclass may have a `register_buffer` from the time when it had no argument `persistent`.
        is_own = getattr(self.register_buffer, "__func__", None) is Module.register_buffer
        if is_own or "persistent" in inspect.signature(self.register_buffer).parameters:
            self.register_buffer(name, value, persistent)
        elif persistent:
            self.register_buffer(name, value)
        else:
            raise RuntimeError(
                "Registering a non-persistent buffer on a Module subclass that implements "
                "register_buffer() without the persistent argument is not allowed."
            )

    def _remove_from(self, name, *dicts_or_sets):
        for d in dicts_or_sets:
            if name in d:
                d.pop(name) if isinstance(d, dict) else d.discard(name)

    def __getattr__(self, name):
        """Called by Python when a name is no ordinary attribute: look where registration put it."""
        attributes = self.__dict__
        for kind in ("_parameters", "_buffers", "_modules"):
            # Before `__init__` and while unpickling the dictionaries do not exist: asking for them by
            # `self._parameters` would end here again, and never end.
            if kind in attributes and name in attributes[kind]:
                return attributes[kind][name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __delattr__(self, name) -> None:
        if name in self._parameters:
            del self._parameters[name]
        elif name in self._buffers:
            del self._buffers[name]
            self._non_persistent_buffers_set.discard(name)
        elif name in self._modules:
            del self._modules[name]
        else:
            super().__delattr__(name)

    def __dir__(self):
        keys = [*dir(type(self)), *self.__dict__, *self._parameters, *self._modules, *self._buffers]
        return sorted(key for key in keys if not key[0].isdigit())

    # Training

    def train(self, mode=True) -> Self:
        """Set `training` here and in all children; Dropout and BatchNorm, for example, look at it."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Self:
        """Set evaluation mode: `train(False)`. Returns self."""
        return self.train(False)

    def requires_grad_(self, requires_grad=True) -> Self:
        """Set `requires_grad` of all parameters: False freezes the module. Returns self."""
        for p in self.parameters():
            p.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none=True) -> None:
        """Forget the gradients of all parameters, or fill them with zeros if not `set_to_none`."""
        if getattr(self, "_is_replica", False):
            warnings.warn(
                "Calling .zero_grad() from a module created with nn.DataParallel() has no effect. "
                "The parameters are copied (in a differentiable manner) from the original module. "
                "This means they are not leaf nodes in autograd and so don't accumulate gradients. "
                "If you need gradients in your forward method, consider using autograd.grad instead.",
                stacklevel=2,
            )
        for p in self.parameters():
            if p.grad is None:
                continue
            if set_to_none:
                p.grad = None
            else:
                p.grad.detach_() if p.grad.grad_fn is not None else p.grad.requires_grad_(False)
                p.grad.zero_()

    def compile(self, *args, **kwargs) -> None:
        """Compile the calls of this module, in place, with `readtorch.compile`'s arguments."""
        self._compiled_call_impl = readtorch.compile(self._call_uncompiled, *args, **kwargs)

    # Text

    def extra_repr(self) -> str:
        """Override to show the module's settings between the brackets of its repr."""
        return ""

    def _get_name(self):
        return type(self).__name__

    def __repr__(self) -> str:
        extra_repr = self.extra_repr()
        extra_lines = extra_repr.split("\n") if extra_repr else []
        child_lines = [f"({key}): {_addindent(repr(module), 2)}" for key, module in self._modules.items()]
        if len(extra_lines) == 1 and not child_lines:
            return f"{self._get_name()}({extra_lines[0]})"
        lines = extra_lines + child_lines
        return self._get_name() + "(" + ("\n  " + "\n  ".join(lines) + "\n" if lines else "") + ")"

    # Copies

    def __getstate__(self):
        # A copy: a subclass may take out of it what cannot be pickled.
        state = self.__dict__.copy()
        state.pop("_compiled_call_impl", None)
        return state

    def __setstate__(self, state):
        self.__dict__.update(state)
        # Modules that were pickled by older versions lack what was added since.
        for name in (
            "_forward_pre_hooks", "_forward_pre_hooks_with_kwargs", "_forward_hooks_with_kwargs",
            "_forward_hooks_always_called", "_state_dict_hooks", "_state_dict_pre_hooks",
            "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks", "_backward_pre_hooks",
        ):
            self.__dict__.setdefault(name, OrderedDict())
        self.__dict__.setdefault("_non_persistent_buffers_set", set())
        self.__dict__.setdefault("_is_full_backward_hook", None)

    def _replicate_for_data_parallel(self):
        """A copy without parameters of its own, for one device of `DataParallel`, which fills it."""
        replica = self.__new__(type(self))
        replica.__dict__ = self.__dict__.copy()
        replica._parameters = {}
        replica._buffers = replica._buffers.copy()
        replica._modules = replica._modules.copy()
        replica._is_replica = True
        return replica


def _addindent(text, spaces):
    """Indent all lines but the first; blank lines stay empty."""
    first, *rest = text.split("\n")
    return "\n".join([first, *(" " * spaces + line if line.strip() else "" for line in rest)])
