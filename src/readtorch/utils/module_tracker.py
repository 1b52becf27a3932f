"""Which modules are running, in forward and in backward.

In PyTorch: `torch/utils/module_tracker.py`. Explained in the chapter "Module and `__setattr__`".
"""

import logging
import weakref

from readtorch.autograd import Variable
from readtorch.autograd.graph import register_multi_grad_hook
from readtorch.c10.tensor_impl import TensorImpl
from readtorch.csrc.autograd.python_engine import current_graph_task_id
from readtorch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

from ._pytree import tree_leaves

logger = logging.getLogger(__name__)

__all__ = ["ModuleTracker"]


class ModuleTracker:
    """`with ModuleTracker() as tracker:` keeps in `tracker.parents` the names of the modules that run, and "Global".

    A module is named by its class, what it holds by the way to it: "Sequential.0". In backward a module begins when the gradients of all
    its outputs are there, and ends when those of its inputs are.
    """

    def __init__(self):
        self.parents = {"Global"}
        self._known_modules = weakref.WeakKeyDictionary()  # module -> its name
        self._seen_modules = weakref.WeakSet()  # those whose children have names
        self._has_callback = False
        self._hooks = []

    @property
    def is_bw(self):
        """Whether backward is running."""
        return current_graph_task_id() != -1

    def __enter__(self):
        self._fw_pre_handle = register_module_forward_pre_hook(self._fw_pre_hook)
        self._fw_post_handle = register_module_forward_hook(self._fw_post_hook)
        return self

    def __exit__(self, *exception):
        self._fw_pre_handle.remove()
        self._fw_post_handle.remove()
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()

    def _fw_pre_hook(self, module, inputs):
        name = self._name_of(module)
        self._begin(name, "forward")
        self._when_gradients_are_there(inputs, lambda *grads: self._end(name, "backward"))

    def _fw_post_hook(self, module, inputs, output):
        name = self._name_of(module)
        self._end(name, "forward")
        self._when_gradients_are_there(output, lambda *grads: self._begin(name, "backward"))

    def _when_gradients_are_there(self, values, function):
        tensors = [t for t in tree_leaves(values) if isinstance(t, TensorImpl) and t.requires_grad]
        if tensors:
            self._hooks.append(register_multi_grad_hook(tensors, function))

    def _name_of(self, module):
        name = self._known_modules.setdefault(module, type(module).__name__)
        if module not in self._seen_modules:
            for child_name, child in module.named_children():
                self._known_modules[child] = f"{name}.{child_name}"
                self._name_of(child)
            self._seen_modules.add(module)
        return name

    def _begin(self, name, direction):
        if direction == "backward":
            self._forget_after_backward()
        if name in self.parents:
            logger.info("%s was already entered, during %s: the hierarchy of modules is not known", name, direction)
        self.parents.add(name)

    def _end(self, name, direction):
        if name in self.parents:
            self.parents.remove(name)
        else:
            logger.info("%s was never entered, during %s: the hierarchy of modules is not known", name, direction)

    def _forget_after_backward(self):
        """A module whose inputs need no gradients has no end in backward."""
        if self._has_callback:
            return

        def forget():
            self.parents = {"Global"}
            self._has_callback = False

        Variable._execution_engine.queue_callback(forget)
        self._has_callback = True
