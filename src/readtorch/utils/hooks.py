"""Handles that remove hooks, and the machine behind a module's backward hooks.

In PyTorch: `torch/utils/hooks.py`. The chapter "Hooks and __call__" walks through it.
"""

import warnings

import readtorch
from readtorch._utils import warn_if_has_hooks
from readtorch.aten.native.return_types import is_return_type, structseq_of
from readtorch.csrc.autograd.hooks import RemovableHandle

__all__ = ["RemovableHandle", "unserializable_hook", "warn_if_has_hooks", "BackwardHook"]


def unserializable_hook(f):
    """Mark a tensor hook so that pickling its tensor does not warn about losing it."""
    f.__torch_unserializable__ = True
    return f


class BackwardHook:
    """Note [ How a module gets backward hooks ]

    Autograd knows tensors and nodes, no modules. So a module with backward hooks is fenced in: its inputs go
    through one identity node, `BackwardHookFunction`, and its outputs through another.

        inputs -> [BackwardHookFunction] -> forward -> [BackwardHookFunction] -> outputs

    In backward the fence behind the outputs is reached first. It sees all gradients of the outputs together,
    calls the pre-hooks, and keeps what they made of them. The fence before the inputs is reached last; it
    sees all gradients of the inputs, and calls the hooks with both. Arguments that are no tensors have no
    gradient: the hooks see None in their places.
    """

    def __init__(self, module, user_hooks, user_pre_hooks) -> None:
        self.module = module
        self.user_hooks = user_hooks
        self.user_pre_hooks = user_pre_hooks
        self.n_inputs = -1
        self.input_tensors_index = None
        self.n_outputs = -1
        self.output_tensors_index = None
        self.grad_outputs = None

    def setup_input_hook(self, args):
        """The module's arguments behind the first fence."""
        res, self.input_tensors_index = self._apply_on_tensors(self._set_user_hook, args)
        self.n_inputs = len(args)
        return res

    def setup_output_hook(self, args):
        """The module's result behind the second fence: a tensor or a tuple, as it came."""
        is_tuple = isinstance(args, tuple)
        if not is_tuple:
            args = (args,)
        res, self.output_tensors_index = self._apply_on_tensors(self._set_output_hook, args)
        self.n_outputs = len(args)
        return res if is_tuple else res[0]

    def _apply_on_tensors(self, fn, args):
        """Send the tensors in `args` through one node, call `fn` with it; return all, and their positions."""
        tensors_idx = [i for i, arg in enumerate(args) if isinstance(arg, readtorch.Tensor)]
        tensors = [args[i] for i in tensors_idx]
        if not (any(t.requires_grad for t in tensors) and readtorch.is_grad_enabled()):
            return args, None
        new_tensors = readtorch.nn.modules._functions.BackwardHookFunction.apply(*tensors)
        fn(next(t.grad_fn for t in new_tensors if t.grad_fn is not None))
        new_args = list(args)
        for i, tensor in zip(tensors_idx, new_tensors):
            new_args[i] = tensor
        if type(args) is tuple:
            return tuple(new_args), tensors_idx
        # A named tuple takes its fields one by one; the class of `x.max(0)` takes one sequence, and raises.
        make = structseq_of(type(args)) if is_return_type(type(args)) else type(args)
        return make(*new_args), tensors_idx

    def _set_output_hook(self, grad_fn) -> None:
        def hook(_, grad_output):
            self.grad_outputs = _pack_with_none(self.output_tensors_index, grad_output, self.n_outputs)
            self._call_user_pre_hooks()
            result = _unpack_none(self.output_tensors_index, self.grad_outputs)
            if self.input_tensors_index is None:
                # No input requires a gradient: there is no first fence, and nothing later to wait for.
                self._call_user_hooks_without_grad_inputs()
            return result

        grad_fn.register_hook(hook)

    def _set_user_hook(self, grad_fn) -> None:
        def hook(grad_input, _):
            if self.grad_outputs is None:
                # A gradient reached the inputs without passing the outputs, as in double backward.
                return None
            res = _pack_with_none(self.input_tensors_index, grad_input, self.n_inputs)
            res = self._call_user_hooks(res)
            self.grad_outputs = None
            return _unpack_none(self.input_tensors_index, res)

        grad_fn.register_hook(hook)

    def _call_user_pre_hooks(self):
        expected_len = len(self.grad_outputs)
        for user_pre_hook in self.user_pre_hooks:
            out = user_pre_hook(self.module, self.grad_outputs)
            if out is None:
                continue
            if len(out) != expected_len:
                raise RuntimeError(
                    "Backward pre hook returned an invalid number of grad_output, "
                    f"got {len(out)}, but expected {expected_len}"
                )
            self.grad_outputs = out

    def _call_user_hooks(self, grad_inputs):
        for user_hook in self.user_hooks:
            out = user_hook(self.module, grad_inputs, self.grad_outputs)
            if out is None:
                continue
            if len(out) != len(grad_inputs):
                raise RuntimeError(
                    "Backward hook returned an invalid number of grad_input, "
                    f"got {len(out)}, but expected {len(grad_inputs)}"
                )
            grad_inputs = out
        return grad_inputs

    def _call_user_hooks_without_grad_inputs(self):
        warnings.warn(
            "Full backward hook is firing when gradients are computed "
            "with respect to module outputs since no inputs require gradients. See "
            "https://docs.pytorch.org/docs/main/generated/torch.nn.Module.html"
            "#torch.nn.Module.register_full_backward_hook for more details.",
            stacklevel=6,
        )
        grad_inputs = (None,) * self.n_inputs
        for user_hook in self.user_hooks:
            res = user_hook(self.module, grad_inputs, self.grad_outputs)
            if res is not None and not (isinstance(res, tuple) and all(el is None for el in res)):
                raise RuntimeError(
                    "Backward hook for Modules where no input requires "
                    "gradient should always return None or None for all gradients."
                )
        self.grad_outputs = None


def _pack_with_none(indices, values, size):
    res = [None] * size
    for idx, val in zip(indices, values):
        res[idx] = val
    return tuple(res)


def _unpack_none(indices, values):
    return tuple(values[idx] for idx in indices)
