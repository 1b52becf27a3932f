"""Looking at the graph and hooking into it: nodes, gradient edges, hooks on saved tensors.

In PyTorch: `torch/autograd/graph.py`. Explained in the chapter "Autograd".
"""

import contextlib
import functools
from typing import NamedTuple

from readtorch.c10.tensor_impl import TensorImpl
from readtorch.csrc.autograd import saved_variable
from readtorch.csrc.autograd.engine import tasks
from readtorch.csrc.autograd.hooks import RemovableHandle
from readtorch.csrc.autograd.node import Node
from readtorch.csrc.autograd.variable import gradient_edge

__all__ = [
    "Node",
    "GradientEdge",
    "get_gradient_edge",
    "increment_version",
    "saved_tensors_hooks",
    "save_on_cpu",
    "disable_saved_tensors_hooks",
    "register_multi_grad_hook",
]


class GradientEdge(NamedTuple):
    """Where in the graph a gradient arrives: input `output_nr` of `node`."""

    node: Node
    output_nr: int
    ownership_token: object = None


def get_gradient_edge(tensor):
    """The edge along which the gradient of `tensor` flows. Raises RuntimeError if it has none."""
    if not tensor.requires_grad:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    return GradientEdge(*gradient_edge(tensor))


def increment_version(tensor):
    """Tell autograd that `tensor` (or each of several) was written to in a way that it could not see."""
    for t in (tensor,) if isinstance(tensor, TensorImpl) else tensor:
        t._counter[0] += 1


class saved_tensors_hooks:
    """Inside, `pack(tensor)` is kept instead of each tensor that is saved for backward, which then calls `unpack`."""

    def __init__(self, pack_hook, unpack_hook):
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self):
        saved_variable.push_default_hooks(self.pack_hook, self.unpack_hook)

    def __exit__(self, *exception):
        saved_variable.pop_default_hooks()


class save_on_cpu(saved_tensors_hooks):
    """Keep what operations save in host memory and bring it back when backward needs it."""

    def __init__(self, pin_memory=False, device_type="cuda"):
        def pack_to_cpu(tensor):
            return tensor.device, tensor.cpu()

        def unpack_from_cpu(packed):
            device, tensor = packed
            return tensor.to(device, non_blocking=pin_memory)

        super().__init__(pack_to_cpu, unpack_from_cpu)


@contextlib.contextmanager
def disable_saved_tensors_hooks(error_message):
    """Entering `saved_tensors_hooks` inside raises RuntimeError(error_message)."""
    hooks = saved_variable.default_hooks
    previous, hooks.disabled_message = hooks.disabled_message, error_message
    if hooks.stack:
        hooks.disabled_message = previous
        raise RuntimeError(error_message)
    try:
        yield
    finally:
        hooks.disabled_message = previous


class _MultiHandle(RemovableHandle):
    """Removes several hooks at once."""

    def __init__(self, handles):
        self.handles = handles

    def remove(self):
        for handle in self.handles:
            handle.remove()


def register_multi_grad_hook(tensors, fn, *, mode="all"):
    """Call `fn` once per backward: with all gradients when the last has arrived, or ("any") with the first one."""
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    calls = {}  # id of the running backward -> [gradients so far, how many are still to come]

    def hook_all(i, grad):
        task = tasks.stack[-1]
        state = calls.get(id(task))
        if state is None:
            expected = sum(_will_run(task, t) for t in tensors)
            state = calls[id(task)] = [[None] * len(tensors), expected]
        state[0][i] = grad
        state[1] -= 1
        if state[1] == 0:
            del calls[id(task)]
            fn(state[0])

    def hook_any(i, grad):
        task = tasks.stack[-1]
        if calls.get("last") is not task:
            calls["last"] = task
            fn(grad)

    hook = hook_all if mode == "all" else hook_any
    return _MultiHandle([t.register_hook(functools.partial(hook, i)) for i, t in enumerate(tensors)])


def _will_run(task, tensor):
    """Whether the running backward reaches `tensor`."""
    node = gradient_edge(tensor)[0]
    return node in task.dependencies and (task.needed is None or task.needed.get(node, False) or node in task.captures)
