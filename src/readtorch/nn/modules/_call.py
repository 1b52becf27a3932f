"""What happens around `forward` when a module is called.

In PyTorch: `Module._call_impl` in `torch/nn/modules/module.py`. The chapter "Hooks and __call__" shows the
order.

    global forward pre-hooks, own forward pre-hooks      may replace the arguments
    [ fence before the inputs, if there are backward hooks ]
    forward
    global forward hooks, own forward hooks              may replace the result
    [ fence behind the outputs ]

An exception anywhere on the way runs the forward hooks that asked for it with `always_call`, then goes on.
"""
import warnings

from readtorch._tensor import Tensor
from readtorch.c10.dispatch_key import changed, tls, trace_under_way
from readtorch.nn.modules._hooks import (
    _global_backward_hooks,
    _global_backward_pre_hooks,
    _global_forward_hooks,
    _global_forward_hooks_always_called,
    _global_forward_hooks_with_kwargs,
    _global_forward_pre_hooks,
    _WrappedHook,
)
from readtorch.nn.modules._parts import part_of_module
from readtorch.utils.hooks import BackwardHook


@part_of_module
class _Call:
    """The part of `Module` that calls `forward` and the hooks around it."""

    def _call_impl(self, *args, **kwargs):
        if not (self._backward_hooks or self._backward_pre_hooks
                or self._forward_hooks or self._forward_pre_hooks
                or _global_backward_pre_hooks or _global_backward_hooks
                or _global_forward_hooks or _global_forward_pre_hooks or self._compiled_call_impl):
            return (self._slow_forward if changed and tls.tracer is not None else self.forward)(*args, **kwargs)
        return (self._compiled_call_impl or self._call_uncompiled)(*args, **kwargs)

    def _call_uncompiled(self, *args, **kwargs):
        """`forward` with the hooks around it: what `compile` compiles."""
        return _HookedCall(self, args, kwargs).run()

    def _slow_forward(self, *input, **kwargs):
        """`forward` while a trace is written: the trace is told whose call it is."""
        trace = trace_under_way()
        path = trace and trace.path_of(self)
        if path is None:
            return self.forward(*input, **kwargs)
        trace.push_scope(path)
        try:
            return self.forward(*input, **kwargs)
        finally:
            trace.pop_scope()

    __call__ = _call_impl


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
                "forward pre-hook must return None or a tuple of (new_args, new_kwargs), "
                f"but got {args_kwargs}."
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
