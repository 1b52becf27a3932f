"""`Module`: a tree of parameters, buffers and further modules, built by assigning attributes.

In PyTorch: `torch/nn/modules/module.py`, whose order this file keeps. The chapter "Module and __setattr__" reads
registration, attribute access and `_apply`, the chapter "Parameter and Buffer" `Parameter`, the chapter "Hooks and __call__" the hooks, the
chapter "state_dict, save and load" the checkpoints.
"""

import functools
import inspect
import warnings
import weakref
from collections import OrderedDict, namedtuple
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self, TypeVar

import readtorch
from readtorch._tensor import Tensor
from readtorch.c10.local_dispatch_key_set import threads_with_modes, tls, trace_under_way
from readtorch.c10.tensor_impl import has_compatible_shallow_copy_type
from readtorch.csrc.profiler.python_tracer import module_calls
from readtorch.nn.parameter import Buffer, Parameter, is_lazy
from readtorch.utils import swap_tensors
from readtorch.utils.hooks import BackwardHook, RemovableHandle

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
_EXTRA_STATE_KEY_SUFFIX = "_extra_state"

_ISSUE = (
    "Please file an issue at https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml to report this bug."
)


class _IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    """What `load_state_dict` returns."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


# Every hook is kept in a dictionary from its id to the hook, in the order in which hooks run; `RemovableHandle` holds the
# id. Options of a hook ("with keyword arguments") are marks under its id in a second dictionary.

# Hooks on the registration of any buffer, module or parameter, in any module.
_global_buffer_registration_hooks = OrderedDict()
_global_module_registration_hooks = OrderedDict()
_global_parameter_registration_hooks = OrderedDict()

# Hooks that run around the forward and backward of every module.
_global_backward_pre_hooks = OrderedDict()
_global_backward_hooks = OrderedDict()
_global_is_full_backward_hook = None  # None until the first one is registered: both kinds cannot be mixed
_global_forward_pre_hooks = OrderedDict()
_global_forward_hooks = OrderedDict()
_global_forward_hooks_always_called = OrderedDict()
_global_forward_hooks_with_kwargs = OrderedDict()


class _WrappedHook:
    """A hook that may get its module as first argument, without keeping the module alive."""

    def __init__(self, hook, module=None) -> None:
        self.hook = hook
        functools.update_wrapper(self, hook)
        self.with_module = module is not None
        if self.with_module:
            self.module = weakref.ref(module)

    def __call__(self, *args, **kwargs):
        if not self.with_module:
            return self.hook(*args, **kwargs)
        module = self.module()
        if module is None:
            raise RuntimeError("You are trying to call the hook of a dead Module!")
        return self.hook(module, *args, **kwargs)

    def __getstate__(self):
        state = {"hook": self.hook, "with_module": self.with_module}
        if self.with_module:
            state["module"] = self.module()
        return state

    def __setstate__(self, state):
        self.hook = state["hook"]
        self.with_module = state["with_module"]
        if self.with_module:
            if state["module"] is None:
                raise RuntimeError("You are trying to revive the hook of a dead Module!")
            self.module = weakref.ref(state["module"])


def _register(hooks, hook, *, marks=(), prepend=False):
    """Put `hook` into the dictionary `hooks`. marks: pairs (dictionary, whether to mark the hook there)."""
    handle = RemovableHandle(hooks, extra_dict=[mark for mark, _ in marks])
    hooks[handle.id] = hook
    for mark, is_marked in marks:
        if is_marked:
            mark[handle.id] = True
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def register_module_buffer_registration_hook(hook):
    """Call `hook(module, name, buffer)` before any buffer is registered; a result replaces it."""
    return _register(_global_buffer_registration_hooks, hook)


def register_module_module_registration_hook(hook):
    """Call `hook(module, name, submodule)` before any module is registered; a result replaces it."""
    return _register(_global_module_registration_hooks, hook)


def register_module_parameter_registration_hook(hook):
    """Call `hook(module, name, param)` before any parameter is registered; a result replaces it."""
    return _register(_global_parameter_registration_hooks, hook)


def register_module_forward_pre_hook(hook):
    """Call `hook(module, args)` before every module's `forward`; a result replaces the arguments."""
    return _register(_global_forward_pre_hooks, hook)


def register_module_forward_hook(hook, *, with_kwargs=False, always_call=False):
    """Call `hook(module, args, [kwargs,] output)` after every `forward`; a result replaces the output."""
    marks = [(_global_forward_hooks_always_called, always_call)]
    handle = _register(_global_forward_hooks, hook, marks=marks)
    if with_kwargs:  # a mark that the handle leaves: a hook removed while hooks run still gets its kwargs
        _global_forward_hooks_with_kwargs[handle.id] = True
    return handle


def register_module_backward_hook(hook):
    """Deprecated in favor of `register_module_full_backward_hook`: sees only the module's last operation."""
    _set_global_backward_kind(full=False)
    return _register(_global_backward_hooks, hook)


def register_module_full_backward_pre_hook(hook):
    """Call `hook(module, grad_output)` before every module's backward; a result replaces `grad_output`."""
    return _register(_global_backward_pre_hooks, hook)


def register_module_full_backward_hook(hook):
    """Call `hook(module, grad_input, grad_output)` in every backward; a result replaces `grad_input`."""
    _set_global_backward_kind(full=True)
    return _register(_global_backward_hooks, hook)


def _set_global_backward_kind(full):
    global _global_is_full_backward_hook
    if _global_is_full_backward_hook is (not full):
        raise RuntimeError(
            "Cannot use both regular backward hooks and full backward hooks as a "
            "global Module hook. Please use only one of them."
        )
    _global_is_full_backward_hook = full


def _forward_unimplemented(self, *input) -> None:
    """Define the computation of a call. Call the module, not `forward`: only the call runs the hooks."""
    raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')


class Module:
    """Base class of all neural network modules.

    Assigning a `Parameter`, a `Buffer` or a `Module` to an attribute registers it: it is then found by
    `parameters()`, moved by `to()`, saved by `state_dict()`. Everything else is an ordinary attribute.
    """

    dump_patches = False
    _version = 1  # of the state_dict, saved with it: a subclass that changes its names there counts up
    _compiled_call_impl = None  # what `compile` makes: calls go there
    call_super_init = False  # True: `__init__` goes on to the next class of the MRO, with the arguments
    T_destination = TypeVar("T_destination", bound=dict[str, Any])  # a name that annotations use

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

    # Lookup by dotted name

    def get_submodule(self, target):
        """The module at the path `target` ("layers.1"; "" is this one); AttributeError if there is none."""
        if target == "":
            return self
        mod = self
        for name in target.split("."):
            if not hasattr(mod, name):
                raise AttributeError(mod._get_name() + " has no attribute `" + name + "`")
            mod = getattr(mod, name)
            if not isinstance(mod, Module):
                raise AttributeError("`" + name + "` is not an nn.Module")
        return mod

    def set_submodule(self, target, module, strict=False) -> None:
        """Put `module` at the path `target`, whose parent must exist; strict: `target` itself must exist."""
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        *parents, name = target.split(".")
        if not isinstance(module, Module):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        parent = self.get_submodule(".".join(parents))
        if hasattr(parent, name):
            if not isinstance(getattr(parent, name), Module):
                raise AttributeError("`" + name + "` is not an nn.Module")
        elif strict:
            raise AttributeError(parent._get_name() + " has no attribute `" + name + "`")
        setattr(parent, name, module)

    def get_parameter(self, target) -> Parameter:
        """The parameter at the path `target` ("layers.1.weight"); AttributeError if there is none."""
        _, _, param = self._get_member(target)
        if not isinstance(param, Parameter):
            raise AttributeError("`" + target.rpartition(".")[2] + "` is not an nn.Parameter")
        return param

    def get_buffer(self, target):
        """The buffer at the path `target`; AttributeError if there is none."""
        mod, name, buffer = self._get_member(target)
        if name not in mod._buffers:
            raise AttributeError("`" + name + "` is not a buffer")
        return buffer

    def _get_member(self, target):
        module_path, _, name = target.rpartition(".")
        mod = self.get_submodule(module_path)
        if not hasattr(mod, name):
            raise AttributeError(mod._get_name() + " has no attribute `" + name + "`")
        return mod, name, getattr(mod, name)

    # State that is no tensor

    def get_extra_state(self):
        """Override to save more than tensors: the result goes into the state_dict as `_extra_state`."""
        raise RuntimeError(f"Reached a code path in Module.get_extra_state() that should never be called. {_ISSUE}")

    def set_extra_state(self, state) -> None:
        """Override together with `get_extra_state`: receives what that returned."""
        raise RuntimeError(f"Reached a code path in Module.set_extra_state() that should never be called. {_ISSUE}")

    # Conversion of all tensors at once: dtype, device, memory

    def _apply(self, fn, recurse=True):
        """Replace the contents of every parameter, gradient and buffer by `fn` of it. Returns self.

        Parameters stay the same objects: an optimizer that holds them goes on working.
        """
        if recurse:
            for module in self.children():
                module._apply(fn)
        for key, param in self._parameters.items():
            if param is not None:
                self._parameters[key] = _convert_param(fn, param, f"{self._get_name()}.{key}")
        for key, buf in self._buffers.items():
            if buf is not None:
                self._buffers[key] = fn(buf)
        return self

    def apply(self, fn) -> Self:
        """Call `fn(module)` for every module below this one, children first, and for this one last."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def cuda(self, device=None) -> Self:
        """Move all parameters and buffers to a GPU, the current one by default."""
        return self._apply(lambda t: t.cuda(device))

    def ipu(self, device=None) -> Self:
        """Move all parameters and buffers to an IPU."""
        return self._apply(lambda t: t.ipu(device))

    def xpu(self, device=None) -> Self:
        """Move all parameters and buffers to an XPU."""
        return self._apply(lambda t: t.xpu(device))

    def mtia(self, device=None) -> Self:
        """Move all parameters and buffers to an MTIA device."""
        return self._apply(lambda t: t.mtia(device))

    def cpu(self) -> Self:
        """Move all parameters and buffers to the CPU."""
        return self._apply(lambda t: t.cpu())

    def type(self, dst_type) -> Self:
        """Cast all parameters and buffers to `dst_type`."""
        return self._apply(lambda t: t.type(dst_type))

    def float(self) -> Self:
        """Cast all floating point parameters and buffers to float32."""
        return self._apply(lambda t: t.float() if t.is_floating_point() else t)

    def double(self) -> Self:
        """Cast all floating point parameters and buffers to float64."""
        return self._apply(lambda t: t.double() if t.is_floating_point() else t)

    def half(self) -> Self:
        """Cast all floating point parameters and buffers to float16."""
        return self._apply(lambda t: t.half() if t.is_floating_point() else t)

    def bfloat16(self) -> Self:
        """Cast all floating point parameters and buffers to bfloat16."""
        return self._apply(lambda t: t.bfloat16() if t.is_floating_point() else t)

    def to_empty(self, *, device, recurse=True) -> Self:
        """Give all tensors uninitialized memory on `device`: how a module leaves the meta device."""
        return self._apply(lambda t: readtorch.empty_like(t, device=device), recurse=recurse)

    def to(self, *args, **kwargs) -> Self:
        """`to(device, dtype, non_blocking)`, `to(dtype)`, `to(tensor)`, `to(memory_format=…)`. Returns self.

        Only floating point and complex tensors change their dtype; TypeError for a dtype that is neither.
        """
        device, dtype, non_blocking, convert_to_format = readtorch._C._nn._parse_to(*args, **kwargs)
        if dtype is not None:
            _check_dtype(dtype)

        def convert(t):
            new_dtype = dtype if t.is_floating_point() or t.is_complex() else None
            try:
                if convert_to_format is not None and t.dim() in (4, 5):
                    return t.to(device, new_dtype, non_blocking, memory_format=convert_to_format)
                return t.to(device, new_dtype, non_blocking)
            except NotImplementedError as e:
                if str(e) != "Cannot copy out of meta tensor; no data!":
                    raise
                raise NotImplementedError(
                    f"{e} Please use torch.nn.Module.to_empty() instead of torch.nn.Module.to() "
                    f"when moving module from meta to a different device."
                ) from None

        return self._apply(convert)

    # Registration of hooks

    def register_full_backward_pre_hook(self, hook, prepend=False):
        """Call `hook(module, grad_output)` before this module's backward; a result replaces `grad_output`."""
        return _register(self._backward_pre_hooks, hook, prepend=prepend)

    def register_backward_hook(self, hook):
        """Deprecated in favor of `register_full_backward_hook`: sees only the module's last operation."""
        self._set_backward_kind(full=False)
        return _register(self._backward_hooks, hook)

    def register_full_backward_hook(self, hook, prepend=False):
        """Call `hook(module, grad_input, grad_output)` once the gradients of all inputs are known.

        Both are tuples with None for arguments that are no tensors; a result replaces `grad_input`.
        """
        self._set_backward_kind(full=True)
        return _register(self._backward_hooks, hook, prepend=prepend)

    def _set_backward_kind(self, full):
        if self._is_full_backward_hook is (not full):
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a "
                "single Module. Please use only one of them."
            )
        self._is_full_backward_hook = full

    def _get_backward_hooks(self):
        """All backward hooks, global ones first: a list of full ones and a list of deprecated ones."""
        by_kind = {True: [], False: [], None: []}
        by_kind[_global_is_full_backward_hook] += _global_backward_hooks.values()
        by_kind[self._is_full_backward_hook] += self._backward_hooks.values()
        return by_kind[True], by_kind[False]

    def _get_backward_pre_hooks(self):
        return [*_global_backward_pre_hooks.values(), *self._backward_pre_hooks.values()]

    def _maybe_warn_non_full_backward_hook(self, inputs, result, grad_fn) -> None:
        """A deprecated backward hook is right only for a module of one operation: warn about the others."""
        problem = _non_full_hook_problem(inputs, result, grad_fn)
        if problem is not None:
            warnings.warn(problem, FutureWarning, stacklevel=2)

    def register_forward_pre_hook(self, hook, *, prepend=False, with_kwargs=False):
        """Call `hook(module, args)` before `forward`; a result replaces the arguments.

        with_kwargs: call `hook(module, args, kwargs)` and expect None or `(args, kwargs)`.
        prepend: run it before the hooks registered so far. Global hooks run before all of them.
        """
        marks = [(self._forward_pre_hooks_with_kwargs, with_kwargs)]
        return _register(self._forward_pre_hooks, hook, marks=marks, prepend=prepend)

    def register_forward_hook(self, hook, *, prepend=False, with_kwargs=False, always_call=False):
        """Call `hook(module, args, output)` after `forward`; a result replaces the output.

        with_kwargs: call `hook(module, args, kwargs, output)`.
        always_call: also when `forward` or another hook raised an exception.
        """
        marks = [(self._forward_hooks_with_kwargs, with_kwargs), (self._forward_hooks_always_called, always_call)]
        return _register(self._forward_hooks, hook, marks=marks, prepend=prepend)

    # Calls

    def _slow_forward(self, *input, **kwargs):
        """`forward` while a trace is recorded, which notes the module whose call it is."""
        trace = trace_under_way()
        path = trace and trace.path_of(self)
        if path is None:
            return self.forward(*input, **kwargs)
        trace.push_scope(path)
        try:
            return self.forward(*input, **kwargs)
        finally:
            trace.pop_scope()

    def _call_impl(self, *args, **kwargs):
        if not (
            self._backward_hooks
            or self._backward_pre_hooks
            or self._forward_hooks
            or self._forward_pre_hooks
            or _global_backward_pre_hooks
            or _global_backward_hooks
            or _global_forward_hooks
            or _global_forward_pre_hooks
            or self._compiled_call_impl
        ):
            forward = self._slow_forward if threads_with_modes and tls.tracer is not None else self.forward
            return forward(*args, **kwargs)
        return (self._compiled_call_impl or self._call_uncompiled)(*args, **kwargs)

    def _call_uncompiled(self, *args, **kwargs):
        """`forward` with the hooks around it: what `compile` compiles."""
        return _HookedCall(self, args, kwargs).run()

    __call__ = _call_impl
    module_calls.append(__call__.__code__)  # by which a profiler knows that a module is being called

    # Pickles and copies

    def __getstate__(self):
        # A copy: a subclass may take out of it what cannot be pickled.
        state = self.__dict__.copy()
        state.pop("_compiled_call_impl", None)
        return state

    def __setstate__(self, state):
        self.__dict__.update(state)
        # Modules that were pickled by older versions lack what was added since.
        for name in (
            "_forward_pre_hooks",
            "_forward_pre_hooks_with_kwargs",
            "_forward_hooks_with_kwargs",
            "_forward_hooks_always_called",
            "_state_dict_hooks",
            "_state_dict_pre_hooks",
            "_load_state_dict_pre_hooks",
            "_load_state_dict_post_hooks",
            "_backward_pre_hooks",
        ):
            self.__dict__.setdefault(name, OrderedDict())
        self.__dict__.setdefault("_non_persistent_buffers_set", set())
        self.__dict__.setdefault("_is_full_backward_hook", None)

    # Attribute access

    def __getattr__(self, name):
        """Called by Python when a name is no ordinary attribute: look where registration put it."""
        attributes = self.__dict__
        for kind in ("_parameters", "_buffers", "_modules"):
            # Before `__init__` and while unpickling the dictionaries do not exist: asking for them by
            # `self._parameters` would end here again, and never end.
            if kind in attributes and name in attributes[kind]:
                return attributes[kind][name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name, value) -> None:
        """Register what is to be registered, and keep each name in one dictionary only.

        A name that is registered as a parameter, module or buffer stays one: it takes another of its kind, or
        None, and refuses everything else. But a `Parameter` or a `Module` replaces whatever had its name.
        """
        params = self.__dict__.get("_parameters")
        modules = self.__dict__.get("_modules")
        buffers = self.__dict__.get("_buffers")
        if isinstance(value, Parameter):
            if params is None:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._remove_from(name, self.__dict__, buffers, modules, self._non_persistent_buffers_set)
            self.register_parameter(name, value)
        elif params is not None and name in params:
            if value is not None:
                raise _wrong_kind(value, f"parameter '{name}'", "torch.nn.Parameter or None")
            self.register_parameter(name, value)

        elif isinstance(value, Module):
            if modules is None:
                raise AttributeError("cannot assign module before Module.__init__() call")
            self._remove_from(name, self.__dict__, params, buffers, self._non_persistent_buffers_set)
            modules[name] = self._run_hooks(_global_module_registration_hooks, name, value)
        elif modules is not None and name in modules:
            if value is not None:
                raise _wrong_kind(value, f"child module '{name}'", "torch.nn.Module or None")
            modules[name] = self._run_hooks(_global_module_registration_hooks, name, value)

        elif isinstance(value, Buffer) or buffers is not None and name in buffers:
            if value is not None and not _is_tensor_like(value):
                raise _wrong_kind(value, f"buffer '{name}'", "torch.nn.Buffer, torch.Tensor or None")
            is_buffer = isinstance(value, Buffer)
            persistent = value.persistent if is_buffer else name not in self._non_persistent_buffers_set
            # A subclass may override `register_buffer` as it was before it had the argument `persistent`.
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
        else:
            super().__setattr__(name, value)

    def _remove_from(self, name, *dicts_or_sets):
        for d in dicts_or_sets:
            if name in d:
                d.pop(name) if isinstance(d, dict) else d.discard(name)

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

    # Saving

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

    def _save_to_state_dict(self, destination, prefix, keep_vars) -> None:
        """Put this module's own state, without its children's, into `destination`. May be overridden.

        See the chapter "state_dict, save and load".
        """
        for name, param in self._parameters.items():
            if param is not None:
                destination[prefix + name] = param if keep_vars else param.detach()
        for name, buf in self._buffers.items():
            if buf is not None and name not in self._non_persistent_buffers_set:
                destination[prefix + name] = buf if keep_vars else buf.detach()
        if type(self).get_extra_state is not Module.get_extra_state:
            destination[prefix + _EXTRA_STATE_KEY_SUFFIX] = self.get_extra_state()

    def state_dict(self, *args, destination=None, prefix="", keep_vars=False):
        """A dictionary from full name to tensor: all parameters and persistent buffers, parents first.

        The tensors share memory with the module's. keep_vars: keep them attached to autograd.
        The dictionary's `_metadata` maps each module's name to its `_version`. See the chapter "state_dict, save and load".
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

    # Loading

    def _register_load_state_dict_pre_hook(self, hook, with_module=False):
        return _register(self._load_state_dict_pre_hooks, _WrappedHook(hook, self if with_module else None))

    def register_load_state_dict_pre_hook(self, hook):
        """Call `hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys,
        error_msgs)` before this module loads its state."""
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def register_load_state_dict_post_hook(self, hook):
        """Call `hook(module, incompatible_keys)` after this module loaded; it may change the lists."""
        return _register(self._load_state_dict_post_hooks, hook)

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ) -> None:
        """Load this module's own state, without its children's. What goes wrong is appended to the lists.

        See the chapter "state_dict, save and load".
        """
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
        if type(self).set_extra_state is not Module.set_extra_state:
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
            first, *rest = key[len(prefix) :].split(".", 1)
            if first not in (self._modules if rest else local_state):
                yield key

    def load_state_dict(self, state_dict, strict=True, assign=False):
        """Copy the tensors of `state_dict` into this module's, name by name.

        strict: RuntimeError if a name is missing on either side. A wrong shape is always one.
        assign: put the tensors themselves into the module instead of copying. See the chapter "state_dict, save and load".
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
                    load(child, child_state, child_prefix)  # noqa: F821  (deleted below, after the last call)
            _run_load_state_dict_post_hooks(module, _IncompatibleKeys(missing_keys, unexpected_keys))

        load(self, state_dict)
        del load  # it refers to itself through its closure, and to the module
        if strict:
            error_msgs = _strict_errors(missing_keys, unexpected_keys) + error_msgs
        if error_msgs:
            errors = "\n\t".join(error_msgs)
            raise RuntimeError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t{errors}")
        return _IncompatibleKeys(missing_keys, unexpected_keys)

    # Iteration, in the order of registration, the module itself before its children

    def _named_members(self, get_members_fn, prefix="", recurse=True, remove_duplicate=True):
        memo = set()
        if recurse:
            modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
        else:
            modules = [(prefix, self)]
        for module_prefix, module in modules:
            for name, member in get_members_fn(module):
                if member is None or member in memo:
                    continue
                if remove_duplicate:
                    memo.add(member)
                yield module_prefix + ("." if module_prefix else "") + name, member

    def parameters(self, recurse=True) -> Iterator[Parameter]:
        """Yield all parameters, each once; those of this module alone if not `recurse`."""
        for _, param in self.named_parameters(recurse=recurse):
            yield param

    def named_parameters(self, prefix="", recurse=True, remove_duplicate=True) -> Iterator[tuple[str, Parameter]]:
        """Yield `(name, parameter)`; a parameter with two names only once, if `remove_duplicate`."""
        yield from self._named_members(lambda module: module._parameters.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse=True):
        """Yield all buffers, each once; those of this module alone if not `recurse`."""
        for _, buf in self.named_buffers(recurse=recurse):
            yield buf

    def named_buffers(self, prefix="", recurse=True, remove_duplicate=True):
        """Yield `(name, buffer)`, persistent or not."""
        yield from self._named_members(lambda module: module._buffers.items(), prefix, recurse, remove_duplicate)

    def children(self) -> Iterator[Any]:
        """Yield the direct children, each once."""
        for _, module in self.named_children():
            yield module

    def named_children(self) -> Iterator[tuple[str, Any]]:
        """Yield `(name, module)` for the direct children, each module once."""
        memo = set()
        for name, module in self._modules.items():
            if module is not None and module not in memo:
                memo.add(module)
                yield name, module

    def modules(self, remove_duplicate=True) -> Iterator[Any]:
        """Yield this module and all below it, each once."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_modules(self, memo=None, prefix="", remove_duplicate=True) -> Iterator[tuple[str, Any]]:
        """Yield `(name, module)` for this module and all below it; a module with two names only once."""
        if memo is None:
            memo = set()
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                submodule_prefix = prefix + ("." if prefix else "") + name
                yield from module.named_modules(memo, submodule_prefix, remove_duplicate)

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

    def share_memory(self) -> Self:
        """Put all parameters and buffers into memory that other processes can see."""
        return self._apply(lambda t: t.share_memory_())

    # Text

    def _get_name(self):
        return type(self).__name__

    def extra_repr(self) -> str:
        """Override to show the module's settings between the brackets of its repr."""
        return ""

    def __repr__(self) -> str:
        extra_repr = self.extra_repr()
        extra_lines = extra_repr.split("\n") if extra_repr else []
        child_lines = [f"({key}): {_addindent(repr(module), 2)}" for key, module in self._modules.items()]
        if len(extra_lines) == 1 and not child_lines:
            return f"{self._get_name()}({extra_lines[0]})"
        lines = extra_lines + child_lines
        return self._get_name() + "(" + ("\n  " + "\n  ".join(lines) + "\n" if lines else "") + ")"

    def __dir__(self):
        keys = [*dir(type(self)), *self.__dict__, *self._parameters, *self._modules, *self._buffers]
        return sorted(key for key in keys if not key[0].isdigit())

    def _replicate_for_data_parallel(self):
        """A copy without parameters of its own, for one device of `DataParallel`, which fills it."""
        replica = self.__new__(type(self))
        replica.__dict__ = self.__dict__.copy()
        replica._parameters = {}
        replica._buffers = replica._buffers.copy()
        replica._modules = replica._modules.copy()
        replica._is_replica = True
        return replica

    def compile(self, *args, **kwargs) -> None:
        """Compile the calls of this module, in place, with `readtorch.compile`'s arguments."""
        self._compiled_call_impl = readtorch.compile(self._call_uncompiled, *args, **kwargs)


def _wrong_kind(value, target, expected):
    return TypeError(f"cannot assign '{readtorch.typename(value)}' as {target} ({expected} expected)")


def _addindent(text, spaces):
    """Indent all lines but the first; blank lines stay empty."""
    first, *rest = text.split("\n")
    return "\n".join([first, *(" " * spaces + line if line.strip() else "" for line in rest)])


# ---- conversion


def _check_dtype(dtype):
    if not (dtype.is_floating_point or dtype.is_complex):
        raise TypeError(f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}")
    if dtype.is_complex:
        warnings.warn(
            "Complex modules are a new feature under active development whose design may change, "
            "and some modules might not work as expected when using complex tensors as parameters "
            "or buffers. "
            "Please file an issue at https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml "
            "if a complex module does not work as expected.",
            stacklevel=3,
        )


# Note [ Three ways to convert a parameter ]
#
# An optimizer, a tied module or a variable of the user may hold the parameter, so it stays the same
# object: its `.data` becomes the converted tensor. Only where that is not allowed a new Parameter takes its
# place. `readtorch.__future__` can ask for a new Parameter always, or for `swap_tensors`: this too keeps the
# object, but gives it everything of the converted tensor, so it works where `.data` cannot be set. A gradient
# goes the same way.


def _convert_param(fn, param, name):
    """The parameter with `fn` of its contents. See Note [ Three ways to convert a parameter ]."""
    with readtorch.no_grad():  # parameters are leaves: moving one is no operation that autograd shall see
        applied = fn(param)
    if readtorch.__future__.get_swap_module_params_on_conversion():
        return _convert_by_swap(fn, param, applied, name)
    grad = param.grad
    if _may_set_data(param, applied):
        param.data = applied
        result = param
    else:
        result = Parameter(applied, param.requires_grad)
    if grad is not None:
        _convert_grad(fn, grad, result)
    return result


def _convert_grad(fn, grad, param):
    with readtorch.no_grad():
        applied = fn(grad)
    if _may_set_data(grad, applied):
        grad.data = applied
    else:
        param.grad = applied.requires_grad_(grad.requires_grad)


def _may_set_data(tensor, applied):
    """Whether `tensor.data = applied` shall be used, and can."""
    overwrite = readtorch.__future__.get_overwrite_module_params_on_conversion()
    return has_compatible_shallow_copy_type(tensor, applied) and not overwrite


def _convert_by_swap(fn, param, applied, name):
    grad, param.grad = param.grad, None
    try:
        swap_tensors(param, Parameter(applied, requires_grad=param.requires_grad))
    except Exception as e:
        param.grad = grad
        raise RuntimeError(f"_apply(): Couldn't swap {name}") from e
    if grad is not None:
        with readtorch.no_grad():
            applied_grad = fn(grad)
        try:
            swap_tensors(grad, applied_grad.requires_grad_(grad.requires_grad))
        except Exception as e:
            raise RuntimeError(f"_apply(): Couldn't swap {name}.grad") from e
        param.grad = grad
    return param


# ---- deprecated backward hooks


def _non_full_hook_problem(inputs, result, grad_fn):
    advice = "Please use register_full_backward_hook to get the documented behavior."
    deprecated = "is deprecated and will be removed in future versions. This hook will be missing"
    if not _is_tensor_or_tuple(result):
        return (
            "Using non-full backward hooks on a Module that does not return a single Tensor or a tuple of "
            f"Tensors {deprecated} some of the grad_output. {advice}"
        )
    if not _is_tensor_or_tuple(inputs):
        return (
            "Using non-full backward hooks on a Module that does not take as input a single Tensor or a "
            f"tuple of Tensors {deprecated} some of the grad_input. {advice}"
        )
    out_grad_fn = _grad_fns(result)
    if not out_grad_fn or (len(out_grad_fn) == 1 and grad_fn not in out_grad_fn):
        return (
            "Using a non-full backward hook when outputs are nested in python data structure "
            f"{deprecated} some grad_output."
        )
    if len(out_grad_fn) > 1:
        return (
            "Using a non-full backward hook when outputs are generated by different autograd Nodes "
            f"{deprecated} some grad_output. {advice}"
        )
    if _grad_fns(inputs) != {node for node, _ in grad_fn.next_functions}:
        return (
            "Using a non-full backward hook when the forward contains multiple autograd Nodes "
            f"{deprecated} some grad_input. {advice}"
        )
    return None


def _is_tensor_or_tuple(value):
    values = value if isinstance(value, tuple) else (value,)
    return all(isinstance(v, Tensor) for v in values)


def _grad_fns(value):
    tensors = (value,) if isinstance(value, Tensor) else value
    return {t.grad_fn for t in tensors if t.grad_fn is not None}


# ---- calls with hooks


class _HookedCall:
    """One call of a module with hooks: the arguments and the result as the hooks have left them.

    In PyTorch: the function `inner` in `_call_impl`; what is an attribute here is `nonlocal` there.
    """

    def __init__(self, module, args, kwargs):
        self.module = module
        self.args = args
        self.kwargs = kwargs
        self.result = None
        self.called_always_called_hooks = set()

    def run(self):
        try:
            return self.inner()
        except Exception:
            self.run_always_called_hooks()
            raise

    def inner(self):
        module = self.module
        # Collected before the pre-hooks run: a backward hook that one of them registers has to wait.
        backward_pre_hooks = module._get_backward_pre_hooks()
        full_backward_hooks, non_full_backward_hooks = module._get_backward_hooks()
        self.run_forward_pre_hooks()
        bw_hook = None
        if full_backward_hooks or backward_pre_hooks:
            bw_hook = BackwardHook(module, full_backward_hooks, backward_pre_hooks)
            self.args = bw_hook.setup_input_hook(self.args)
        forward = module._slow_forward if trace_under_way() else module.forward
        self.result = forward(*self.args, **self.kwargs)
        self.run_forward_hooks()
        if bw_hook:
            self.warn_if_no_tensor()
            self.result = bw_hook.setup_output_hook(self.result)
        if non_full_backward_hooks:
            self.attach_non_full_backward_hooks(non_full_backward_hooks)
        return self.result

    def run_forward_pre_hooks(self):
        module = self.module
        for hook_id, hook in (*_global_forward_pre_hooks.items(), *module._forward_pre_hooks.items()):
            if hook_id in module._forward_pre_hooks_with_kwargs:
                self.replace_args_and_kwargs(hook(module, self.args, self.kwargs))
            else:
                self.replace_args(hook(module, self.args))

    def replace_args(self, args):
        if args is not None:
            self.args = args if isinstance(args, tuple) else (args,)

    def replace_args_and_kwargs(self, args_kwargs):
        if args_kwargs is None:
            return
        if not (isinstance(args_kwargs, tuple) and len(args_kwargs) == 2):
            raise RuntimeError(
                f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {args_kwargs}."
            )
        self.args, self.kwargs = args_kwargs

    def run_forward_hooks(self):
        for hook_id, hook in (*_global_forward_hooks.items(), *self.module._forward_hooks.items()):
            if self.is_always_called(hook_id):
                self.called_always_called_hooks.add(hook_id)
            with_kwargs = hook_id in self.module._forward_hooks_with_kwargs
            self.run_forward_hook(hook, with_kwargs or hook_id in _global_forward_hooks_with_kwargs)

    def run_forward_hook(self, hook, with_kwargs):
        kwargs = (self.kwargs,) if with_kwargs else ()
        hook_result = hook(self.module, self.args, *kwargs, self.result)
        if hook_result is not None:
            self.result = hook_result

    def is_always_called(self, hook_id):
        own = self.module._forward_hooks_always_called
        return hook_id in own or hook_id in _global_forward_hooks_always_called

    def run_always_called_hooks(self):
        """After an exception: `always_call` hooks that have not run; their errors become warnings."""
        module = self.module
        for kind, hooks, with_kwargs in (
            ("global module", _global_forward_hooks, ()),  # here it gets no kwargs even if it asked for them
            ("module", module._forward_hooks, module._forward_hooks_with_kwargs),
        ):
            for hook_id, hook in hooks.items():
                if not self.is_always_called(hook_id) or hook_id in self.called_always_called_hooks:
                    continue
                try:
                    self.run_forward_hook(hook, hook_id in with_kwargs)
                except Exception as e:
                    warnings.warn(
                        f"{kind} forward hook with ``always_call=True`` raised an exception "
                        f"that was silenced as another error was raised in forward: {e}",
                        stacklevel=2,
                    )

    def warn_if_no_tensor(self):
        if not isinstance(self.result, (Tensor, tuple)):
            warnings.warn(
                "For backward hooks to be called, module output should be a Tensor or a tuple of Tensors"
                f" but received {type(self.result)}",
                stacklevel=2,
            )

    def attach_non_full_backward_hooks(self, hooks):
        """The deprecated kind: a hook on the node that made the (first) result."""
        var = self.result
        while not isinstance(var, Tensor):
            var = next(v for v in var.values() if isinstance(v, Tensor)) if isinstance(var, dict) else var[0]
        grad_fn = var.grad_fn
        if grad_fn is not None:
            for hook in hooks:
                grad_fn.register_hook(_WrappedHook(hook, self.module))
            self.module._maybe_warn_non_full_backward_hook(self.args, self.result, grad_fn)


# ---- state_dict


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
