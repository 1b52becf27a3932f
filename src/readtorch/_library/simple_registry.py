"""What is registered for an operator beside kernels: what it does to fake tensors, and to classes with `__torch_dispatch__`.

In PyTorch: `torch/_library/simple_registry.py`. Explained in the chapter "One operator call".
"""

from readtorch.aten.python_fallback_kernel import rules

from .fake_impl import FakeImplHolder
from .utils import RegistrationHandle


class SimpleLibraryRegistry:
    """Operators' full names -> SimpleOperatorEntry."""

    def __init__(self):
        self._data = {}

    def find(self, qualname):
        """The entry of an operator; made if there is none."""
        if qualname not in self._data:
            self._data[qualname] = SimpleOperatorEntry(qualname)
        return self._data[qualname]

    def get(self, qualname):
        return self._data.get(qualname)


class SimpleOperatorEntry:
    """What is registered for one operator."""

    def __init__(self, qualname):
        self.qualname = qualname
        self.fake_impl = FakeImplHolder(qualname)
        self.torch_dispatch_rules = GenericTorchDispatchRuleHolder(qualname)

    @property
    def abstract_impl(self):  # its older name
        return self.fake_impl


class GenericTorchDispatchRuleHolder:
    """Class of tensors or modes -> what an operator does when it meets one."""

    def __init__(self, qualname):
        self.qualname = qualname

    def register(self, torch_dispatch_class, func):
        if self.find(torch_dispatch_class):
            raise RuntimeError(
                f"{torch_dispatch_class} already has a `__torch_dispatch__` rule registered for {self.qualname}"
            )
        key = self.qualname, torch_dispatch_class
        rules[key] = func
        return RegistrationHandle(lambda: rules.pop(key))

    def find(self, torch_dispatch_class):
        return rules.get((self.qualname, torch_dispatch_class))


singleton = SimpleLibraryRegistry()


def find_torch_dispatch_rule(op, torch_dispatch_class):
    """The rule of an OpOverload for a class, or None."""
    return singleton.find(op.__qualname__).torch_dispatch_rules.find(torch_dispatch_class)
