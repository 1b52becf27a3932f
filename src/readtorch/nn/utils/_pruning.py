"""What every way of pruning has in common. In PyTorch: in `torch/nn/utils/prune.py`.

A pruned `weight` has become three things: the parameter `weight_orig`, the buffer `weight_mask`, and a plain
attribute `weight`, their product, which a hook computes again before every forward. The hook is the pruning
method itself; a second pruning of the same tensor puts both methods into a PruningContainer.
"""
from abc import ABC, abstractmethod

import readtorch


class BasePruningMethod(ABC):
    """A way to choose what is pruned: a subclass has a PRUNING_TYPE and `compute_mask`."""

    __module__ = "readtorch.nn.utils.prune"  # where everybody finds it

    def __call__(self, module, inputs):
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t, default_mask):
        """`default_mask`, which earlier prunings left, with more zeros: where the scores `t` say so."""

    def apply_mask(self, module):
        """The product of the original tensor and the mask."""
        if self._tensor_name is None:
            raise AssertionError(f"Module {module} has to be pruned")
        mask = getattr(module, self._tensor_name + "_mask")
        orig = getattr(module, self._tensor_name + "_orig")
        return mask.to(dtype=orig.dtype) * orig

    @classmethod
    def apply(cls, module, name, *args, importance_scores=None, **kwargs):
        """Prune the tensor `name` of `module` by this method, on top of what pruned it already.

        importance_scores: of the tensor's shape; by default the tensor itself. Other arguments are the
        method's own. Returns the method, or the container that it was added to.
        """
        method = _on_top_of(_take_hook(module, name), cls(*args, **kwargs), name)
        orig = getattr(module, name)
        if importance_scores is None:
            importance_scores = orig
        elif importance_scores.shape != orig.shape:
            raise AssertionError(f"importance_scores should have the same shape as parameter "
                                 f"{name} of {module}, got {importance_scores.shape} vs {orig.shape}")
        first = not isinstance(method, PruningContainer)
        default_mask = _first_mask(module, name, orig) if first else _present_mask(module, name)
        try:
            mask = method.compute_mask(importance_scores, default_mask=default_mask)
            module.register_buffer(name + "_mask", mask)
            setattr(module, name, method.apply_mask(module))
            module.register_forward_pre_hook(method)
        except Exception:
            if first:
                module.register_parameter(name, getattr(module, name + "_orig"))
                del module._parameters[name + "_orig"]
            raise
        return method

    def prune(self, t, default_mask=None, importance_scores=None):
        """`t` with zeros where this method prunes it, without a module."""
        if importance_scores is None:
            importance_scores = t
        elif importance_scores.shape != t.shape:
            raise AssertionError("importance_scores should have the same shape as tensor t, "
                                 f"got {importance_scores.shape} vs {t.shape}")
        default_mask = default_mask if default_mask is not None else readtorch.ones_like(t)
        return t * self.compute_mask(importance_scores, default_mask=default_mask)

    def remove(self, module):
        """Make the pruned tensor a parameter again: the object that it was, with zeros in it."""
        if self._tensor_name is None:
            raise AssertionError(f"Module {module} has to be pruned before pruning can be removed")
        weight = self.apply_mask(module)
        if hasattr(module, self._tensor_name):
            delattr(module, self._tensor_name)
        orig = module._parameters[self._tensor_name + "_orig"]
        orig.data = weight.data
        del module._parameters[self._tensor_name + "_orig"]
        del module._buffers[self._tensor_name + "_mask"]
        setattr(module, self._tensor_name, orig)


def _first_mask(module, name, orig):
    """Ones; the parameter gets its new name."""
    module.register_parameter(name + "_orig", orig)
    del module._parameters[name]
    return readtorch.ones_like(orig)


def _present_mask(module, name):
    return getattr(module, name + "_mask").detach().clone(memory_format=readtorch.contiguous_format)


def _take_hook(module, name):
    """The pruning hook of this tensor, no longer a hook; None if there is none."""
    hooks = module._forward_pre_hooks
    keys = [key for key, hook in hooks.items()
            if isinstance(hook, BasePruningMethod) and hook._tensor_name == name]
    if len(keys) > 1:
        raise AssertionError("Avoid adding multiple pruning hooks to the "
                             f"same tensor {name} of module {module}. Use a PruningContainer.")
    return hooks.pop(keys[0]) if keys else None


def _on_top_of(old, method, name):
    """`method`, or a container with it in the last place."""
    method._tensor_name = name
    if old is None:
        return method
    container = old if isinstance(old, PruningContainer) else PruningContainer(old)
    container.add_pruning_method(method)
    return container


class PruningContainer(BasePruningMethod):
    """Several pruning methods of one tensor, in the order in which they were applied."""

    __module__ = "readtorch.nn.utils.prune"

    def __init__(self, *args):
        self._pruning_methods = ()
        if len(args) == 1:
            self._tensor_name = args[0]._tensor_name
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method):
        """Raises TypeError if it is no pruning method, ValueError if it prunes another tensor."""
        if not isinstance(method, BasePruningMethod) and method is not None:
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        elif method is not None and self._tensor_name != method._tensor_name:
            raise ValueError("Can only add pruning methods acting on "
                             f"the parameter named '{self._tensor_name}' to PruningContainer {self}."
                             f" Found '{method._tensor_name}'")
        self._pruning_methods += (method,)

    def __len__(self):
        return len(self._pruning_methods)

    def __iter__(self):
        return iter(self._pruning_methods)

    def __getitem__(self, idx):
        return self._pruning_methods[idx]

    def compute_mask(self, t, default_mask):
        """The last method's mask, which it computes for what is not pruned yet, within `default_mask`."""
        method = self._pruning_methods[-1]
        mask = default_mask.to(dtype=t.dtype)
        place = _not_pruned_yet(method, t, default_mask)
        partial = method.compute_mask(t[place], default_mask=default_mask[place])
        mask[place] = partial.to(dtype=mask.dtype)
        return mask


def _not_pruned_yet(method, t, mask):
    """The index of what `method` may still prune: elements, channels along `method.dim`, or everything."""
    if method.PRUNING_TYPE == "unstructured":
        return mask == 1
    if method.PRUNING_TYPE not in ("structured", "global"):
        raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
    place = [slice(None)] * t.dim()
    if method.PRUNING_TYPE == "structured":
        dim = _channel_dim(method, t.dim())
        place[dim] = mask.sum(dim=[d for d in range(t.dim()) if d != dim]) != 0
    return tuple(place)


def _channel_dim(method, n_dims):
    if not hasattr(method, "dim"):
        raise AttributeError('Pruning methods of PRUNING_TYPE "structured" need to have '
                             'the attribute `dim` defined.')
    dim = method.dim if method.dim >= 0 else method.dim + n_dims
    if dim < 0:
        raise IndexError(f"Index is out of bounds for tensor with dimensions {n_dims}")
    return dim
