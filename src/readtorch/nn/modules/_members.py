"""Walking the tree of modules: parameters, buffers, children, by iteration and by name.

In PyTorch: part of `torch/nn/modules/module.py`. The chapter "Module and __setattr__" shows why everything
shared is met once.

Only `Module` inherits from `_Members`: `isinstance(x, _Members)` asks whether x is a module.
"""
from collections.abc import Iterator
from typing import Any

from readtorch.nn.modules._parts import part_of_module
from readtorch.nn.parameter import Parameter


@part_of_module
class _Members:
    """The part of `Module` that finds what was registered."""

    # Iteration, in the order of registration, the module itself before its children

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

    def modules(self, remove_duplicate=True) -> Iterator[Any]:
        """Yield this module and all below it, each once."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_children(self) -> Iterator[tuple[str, Any]]:
        """Yield `(name, module)` for the direct children, each module once."""
        memo = set()
        for name, module in self._modules.items():
            if module is not None and module not in memo:
                memo.add(module)
                yield name, module

    def children(self) -> Iterator[Any]:
        """Yield the direct children, each once."""
        for _, module in self.named_children():
            yield module

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

    def named_parameters(self, prefix="", recurse=True, remove_duplicate=True) -> Iterator[tuple[str, Parameter]]:
        """Yield `(name, parameter)`; a parameter with two names only once, if `remove_duplicate`."""
        yield from self._named_members(
            lambda module: module._parameters.items(), prefix, recurse, remove_duplicate
        )

    def parameters(self, recurse=True) -> Iterator[Parameter]:
        """Yield all parameters, each once; those of this module alone if not `recurse`."""
        for _, param in self.named_parameters(recurse=recurse):
            yield param

    def named_buffers(self, prefix="", recurse=True, remove_duplicate=True):
        """Yield `(name, buffer)`, persistent or not."""
        yield from self._named_members(
            lambda module: module._buffers.items(), prefix, recurse, remove_duplicate
        )

    def buffers(self, recurse=True):
        """Yield all buffers, each once; those of this module alone if not `recurse`."""
        for _, buf in self.named_buffers(recurse=recurse):
            yield buf

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
            if not isinstance(mod, _Members):
                raise AttributeError("`" + name + "` is not an nn.Module")
        return mod

    def set_submodule(self, target, module, strict=False) -> None:
        """Put `module` at the path `target`, whose parent must exist; strict: `target` itself must exist."""
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        *parents, name = target.split(".")
        if not isinstance(module, _Members):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        parent = self.get_submodule(".".join(parents))
        if hasattr(parent, name):
            if not isinstance(getattr(parent, name), _Members):
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
