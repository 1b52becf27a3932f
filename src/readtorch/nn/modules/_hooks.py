"""Hooks of modules: where they are kept, and how they are registered. `_call.py` says when they run.

In PyTorch: part of `torch/nn/modules/module.py`. The chapter "Hooks and __call__" shows all of them at work.

Every hook is kept in a dictionary from its id to the hook, in the order in which hooks run; `RemovableHandle`
knows the id. What a hook asks for ("with keyword arguments") is a mark under its id in a second dictionary.
"""
import functools
import warnings
import weakref
from collections import OrderedDict

from readtorch._tensor import Tensor
from readtorch.nn.modules._parts import part_of_module
from readtorch.utils.hooks import RemovableHandle

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


def register_module_full_backward_pre_hook(hook):
    """Call `hook(module, grad_output)` before every module's backward; a result replaces `grad_output`."""
    return _register(_global_backward_pre_hooks, hook)


def register_module_backward_hook(hook):
    """Deprecated in favor of `register_module_full_backward_hook`: sees only the module's last operation."""
    _set_global_backward_kind(full=False)
    return _register(_global_backward_hooks, hook)


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


@part_of_module
class _HookRegistration:
    """The part of `Module` that registers forward and backward hooks."""

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
        marks = [
            (self._forward_hooks_with_kwargs, with_kwargs),
            (self._forward_hooks_always_called, always_call),
        ]
        return _register(self._forward_hooks, hook, marks=marks, prepend=prepend)

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
