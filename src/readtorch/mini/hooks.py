"""Written in the chapter "Hooks and __call__": its cells are this file, put together by `tools/mini.py`."""

from .autograd import Tensor, derivative, operator
from .module import Linear, Module, Sequential


class RemovableHandle:
    next_id = 0

    def __init__(self, hooks, hook):
        self.hooks, self.id = hooks, RemovableHandle.next_id
        RemovableHandle.next_id += 1
        hooks[self.id] = hook

    def remove(self):
        self.hooks.pop(self.id, None)


KINDS = ("_forward_pre_hooks", "_forward_hooks",
         "_backward_pre_hooks", "_backward_hooks")


class Module(Module):
    """Runs hooks around its forward."""

    def __init__(self):
        super().__init__()
        vars(self).update({kind: {} for kind in KINDS})

    def register_forward_pre_hook(self, hook):
        return RemovableHandle(self._forward_pre_hooks, hook)

    def register_forward_hook(self, hook):
        return RemovableHandle(self._forward_hooks, hook)

    def _run_pre_hooks(self, args):
        for hook in list(self._forward_pre_hooks.values()):
            new = hook(self, args)
            if new is not None:
                args = new if isinstance(new, tuple) else (new,)
        return args

    def _run_hooks(self, args, result):
        for hook in list(self._forward_hooks.values()):
            new = hook(self, args, result)
            result = result if new is None else new
        return result

    def __call__(self, *args):
        args = self._run_pre_hooks(args)
        pair = BackwardHook(self)
        if pair.pre_hooks or pair.hooks:
            args = [pair.node(t, pair.at_input) for t in args]
        result = self._run_hooks(args, self.forward(*args))
        if pair.pre_hooks or pair.hooks:
            result = pair.node(result, pair.at_output)
        return result

    def register_full_backward_pre_hook(self, hook):
        return RemovableHandle(self._backward_pre_hooks, hook)

    def register_full_backward_hook(self, hook):
        return RemovableHandle(self._backward_hooks, hook)


identity = operator("identity", lambda x: x)
derivative(identity, a=lambda grad: grad)


class BackwardHook:
    """The two nodes around one call of a module."""

    def __init__(self, module):
        self.module = module
        self.pre_hooks = list(module._backward_pre_hooks.values())
        self.hooks = list(module._backward_hooks.values())
        self.grad_output = None

    def node(self, t, hook):
        if not (isinstance(t, Tensor) and t.requires_grad):
            return t
        t = identity(t)
        t.register_hook(hook)
        return t

    def at_output(self, grad):
        for hook in self.pre_hooks:
            new = hook(self.module, (grad,))
            grad = grad if new is None else new[0]
        self.grad_output = (grad,)
        return grad

    def at_input(self, grad):
        if self.grad_output is None:
            return grad
        for hook in self.hooks:
            new = hook(self.module, (grad,), self.grad_output)
            grad = grad if new is None else new[0]
        self.grad_output = None
        return grad


class Linear(Linear, Module):
    pass


class Sequential(Sequential, Module):
    pass
