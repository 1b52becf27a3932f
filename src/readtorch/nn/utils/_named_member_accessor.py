"""Members of a module by their dotted names. In PyTorch: `torch/nn/utils/_named_member_accessor.py`.

Unlike `setattr`, this puts any tensor in the place of a parameter or a buffer, also one that is neither.
"""

from readtorch import Tensor
from readtorch.nn.modules.module import Module

_MISSING = object()  # stands for a tensor that is not there


def _check_module(module):
    if not isinstance(module, Module):
        raise TypeError(f"{module} is not an instance of torch.nn.Module")


def _check_tensor(tensor, message="{} is not an instance of torch.Tensor"):
    if tensor is not _MISSING and tensor is not None and not isinstance(tensor, Tensor):
        raise TypeError(message.format(tensor))


def _check_name(name, kind):
    if "." in name:
        raise KeyError(f'{kind} name can\'t contain "."')
    if name == "":
        raise KeyError(f'{kind} name can\'t be empty string ""')


def _members(module, name):
    """The dict that the tensor `name` is registered in, or None."""
    return next((members for members in (module._parameters, module._buffers) if name in members), None)


def set_tensor(module, name, tensor):
    """Make `tensor`, or None, the member `name` of `module`."""
    _check_module(module)
    if tensor is _MISSING:
        raise TypeError(f"{tensor} is not an instance of torch.Tensor")
    _check_tensor(tensor)
    _check_name(name, "tensor")
    members = _members(module, name)
    if members is None:
        setattr(module, name, tensor)
    else:
        members[name] = tensor


def swap_tensor(module, name, tensor, allow_missing=False):
    """Make `tensor` the member `name` of `module`, or take the member away if it is _MISSING.

    Returns what it was before. Raises AttributeError if it was not there, unless `allow_missing`.
    """
    _check_module(module)
    _check_tensor(tensor)
    _check_name(name, "tensor")
    members = _members(module, name)
    if members is None:
        return _swap_attribute(module, name, tensor, allow_missing)
    before = members[name]
    if tensor is _MISSING:
        del members[name]
    else:
        members[name] = tensor
    return before


def _swap_attribute(module, name, tensor, allow_missing):
    before = getattr(module, name, _MISSING)
    if before is _MISSING and not allow_missing:
        raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
    _check_tensor(before, f"attribute `{name}`: {{}} is not an instance of torch.Tensor")
    if tensor is not _MISSING:
        setattr(module, name, tensor)
    elif hasattr(module, name):
        delattr(module, name)
    return before


def swap_submodule(module, name, submodule):
    """Make `submodule` the child `name` of `module`; returns the one before. KeyError if there is none."""
    _check_module(module)
    _check_module(submodule)
    _check_name(name, "submodule")
    if name not in module._modules:
        raise KeyError(f"submodule {name} does not exist")
    before = module._modules[name]
    if not isinstance(before, Module):
        raise TypeError(f"{name} attribute is not an instance of torch.nn.Module")
    module._modules[name] = submodule
    return before


def _pairs(names, values):
    names, values = (v if isinstance(v, (list, tuple)) else list(v) for v in (names, values))
    if len(names) != len(values):
        raise AssertionError(
            f"names and values must have the same length, got {len(names)} names and {len(values)} values"
        )
    return zip(names, values)


class NamedMemberAccessor:
    """Tensors and submodules of `module` by paths like "layer1.conv1.weight". Remembers submodules."""

    def __init__(self, module):
        self.module = module
        self.memo = {}

    # One member

    def get_submodule(self, name):
        if not name:
            return self.module
        if name not in self.memo:
            self.memo[name] = self._find_submodule(name)
        return self.memo[name]

    def _find_submodule(self, name):
        prefix, _, attr = name.rpartition(".")
        module = self.get_submodule(prefix)
        try:
            submodule = getattr(module, attr)
        except AttributeError as error:
            raise AttributeError(f"{module._get_name()} has no attribute `{attr}`") from error
        if not isinstance(submodule, Module):
            raise TypeError(f"submodule `{name}`: {submodule} is not an instance of torch.nn.Module")
        return submodule

    def _split(self, path):
        prefix, _, attr = path.rpartition(".")
        return self.get_submodule(prefix), attr

    def swap_submodule(self, path, value):
        return swap_submodule(*self._split(path), value)

    def get_tensor(self, name):
        submodule, attr = self._split(name)
        try:
            tensor = getattr(submodule, attr)
        except AttributeError as error:
            raise AttributeError(f"{submodule._get_name()} has no attribute `{name}`") from error
        _check_tensor(tensor)
        return tensor

    def set_tensor(self, name, value):
        set_tensor(*self._split(name), value)

    def del_tensor(self, name):
        submodule, attr = self._split(name)
        try:
            delattr(submodule, attr)
        except AttributeError as error:
            raise AttributeError(f"{submodule._get_name()} has no attribute `{name}`") from error

    def swap_tensor(self, name, value, allow_missing=False):
        return swap_tensor(*self._split(name), value, allow_missing=allow_missing)

    # Many

    def get_tensors(self, names):
        return [self.get_tensor(name) for name in names]

    def set_tensors(self, names, values):
        for name, value in _pairs(names, values):
            self.set_tensor(name, value)

    def set_tensors_dict(self, named_tensors):
        for name, value in named_tensors.items():
            self.set_tensor(name, value)

    def del_tensors(self, names):
        for name in names:
            self.del_tensor(name)

    def swap_tensors(self, names, values, allow_missing=False):
        return [self.swap_tensor(name, value, allow_missing=allow_missing) for name, value in _pairs(names, values)]

    def swap_tensors_dict(self, named_tensors, allow_missing=False):
        """Returns (the tensors before, the names that were missing). An error leaves all as it was."""
        before = {}
        try:
            for name, tensor in named_tensors.items():
                before[name] = self.swap_tensor(name, tensor, allow_missing=True)
        except Exception:
            self._put_back(before)
            raise
        missing = [name for name, tensor in before.items() if tensor is _MISSING]
        if missing and not allow_missing:
            self._put_back(before)
            raise RuntimeError(f"Missing key(s): {', '.join(map(repr, missing))}.")
        return before, missing

    def _put_back(self, named_tensors):
        for name, tensor in named_tensors.items():
            self.swap_tensor(name, tensor, allow_missing=True)

    def check_keys(self, keys):
        """(names of tensors that `keys` lack, keys that are no tensor's name), sorted."""
        keys = set(keys)
        valid = {name for name, _ in self.named_tensors(remove_duplicate=False)}
        return sorted(valid - keys), sorted(keys - valid)

    # All of them

    def named_parameters(self, remove_duplicate=True):
        yield from self.module.named_parameters(remove_duplicate=remove_duplicate)

    def named_buffers(self, remove_duplicate=True):
        yield from self.module.named_buffers(remove_duplicate=remove_duplicate)

    def named_tensors(self, remove_duplicate=True):
        yield from self.named_parameters(remove_duplicate)
        yield from self.named_buffers(remove_duplicate)

    def named_modules(self, remove_duplicate=True):
        yield from self.module.named_modules(remove_duplicate=remove_duplicate)
