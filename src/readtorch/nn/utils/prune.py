"""Pruning: setting weights to zero for good. In PyTorch: `torch/nn/utils/prune.py`.

A pruned `weight` has become three things: the parameter `weight_orig`, the buffer `weight_mask`, and a plain
attribute `weight`, their product, which a hook computes again before every forward. The hook is the pruning
method itself; a second pruning of the same tensor puts both methods into a PruningContainer.

A function for each way to choose the weights, and the class behind it. `amount`, everywhere: how many, or if
it is a float which fraction. `importance_scores`, of the tensor's shape: what the choice looks at instead of
the tensor.
"""

import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable

import readtorch

from .convert_parameters import parameters_to_vector


class BasePruningMethod(ABC):
    """A way to choose what is pruned: a subclass has a PRUNING_TYPE and `compute_mask`."""

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
            raise AssertionError(
                f"importance_scores should have the same shape as parameter "
                f"{name} of {module}, got {importance_scores.shape} vs {orig.shape}"
            )
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
            raise AssertionError(
                f"importance_scores should have the same shape as tensor t, got {importance_scores.shape} vs {t.shape}"
            )
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
    keys = [key for key, hook in hooks.items() if isinstance(hook, BasePruningMethod) and hook._tensor_name == name]
    if len(keys) > 1:
        raise AssertionError(
            f"Avoid adding multiple pruning hooks to the same tensor {name} of module {module}. Use a PruningContainer."
        )
    return hooks.pop(keys[0]) if keys else None


def _on_top_of(old, method, name):
    """`method`, or a container in which it is the last."""
    method._tensor_name = name
    if old is None:
        return method
    container = old if isinstance(old, PruningContainer) else PruningContainer(old)
    container.add_pruning_method(method)
    return container


class PruningContainer(BasePruningMethod):
    """Several pruning methods of one tensor, in the order in which they were applied."""

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
            raise ValueError(
                "Can only add pruning methods acting on "
                f"the parameter named '{self._tensor_name}' to PruningContainer {self}."
                f" Found '{method._tensor_name}'"
            )
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
        index = _not_pruned_yet(method, t, default_mask)
        partial = method.compute_mask(t[index], default_mask=default_mask[index])
        mask[index] = partial.to(dtype=mask.dtype)
        return mask


def _not_pruned_yet(method, t, mask):
    """The index of what `method` may still prune: elements, channels along `method.dim`, or everything."""
    if method.PRUNING_TYPE == "unstructured":
        return mask == 1
    if method.PRUNING_TYPE not in ("structured", "global"):
        raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
    index = [slice(None)] * t.dim()
    if method.PRUNING_TYPE == "structured":
        dim = _channel_dim(method, t.dim())
        index[dim] = mask.sum(dim=[d for d in range(t.dim()) if d != dim]) != 0
    return tuple(index)


def _channel_dim(method, n_dims):
    if not hasattr(method, "dim"):
        raise AttributeError('Pruning methods of PRUNING_TYPE "structured" need to have the attribute `dim` defined.')
    dim = method.dim if method.dim >= 0 else method.dim + n_dims
    if dim < 0:
        raise IndexError(f"Index is out of bounds for tensor with dimensions {n_dims}")
    return dim


# --------------------------------------------------------------------------------------------- single weights


class Identity(BasePruningMethod):
    """Prunes nothing: the mask is ones."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t, default_mask):
        return default_mask

    @classmethod
    def apply(cls, module, name):
        return super().apply(module, name)


class _Unstructured(BasePruningMethod):
    """Prunes `amount` elements; a subclass ranks them."""

    PRUNING_TYPE = "unstructured"

    def __init__(self, amount):
        _validate_pruning_amount_init(amount)
        self.amount = amount

    def compute_mask(self, t, default_mask):
        count = _number_to_prune(self.amount, t.nelement())
        mask = default_mask.clone(memory_format=readtorch.contiguous_format)
        if count != 0:
            mask.view(-1)[self._chosen(t, count)] = 0
        return mask


class RandomUnstructured(_Unstructured):
    """Prunes elements at random."""

    def _chosen(self, t, count):
        return readtorch.topk(readtorch.rand_like(t).view(-1), k=count).indices

    @classmethod
    def apply(cls, module, name, amount):
        return super().apply(module, name, amount=amount)


class L1Unstructured(_Unstructured):
    """Prunes the elements nearest to 0."""

    def _chosen(self, t, count):
        return readtorch.topk(readtorch.abs(t).view(-1), k=count, largest=False).indices

    @classmethod
    def apply(cls, module, name, amount, importance_scores=None):
        return super().apply(module, name, amount=amount, importance_scores=importance_scores)


# --------------------------------------------------------------------------------------------- whole channels


class _Structured(BasePruningMethod):
    """Prunes `amount` channels along `dim`; a subclass says which stay."""

    PRUNING_TYPE = "structured"

    def compute_mask(self, t, default_mask):
        """Raises ValueError for a vector, IndexError if `dim` does not exist."""
        _validate_structured_pruning(t)
        _validate_pruning_dim(t, self.dim)
        channels = t.shape[self.dim]
        count = _number_to_prune(self.amount, channels)
        kept = self._kept(t, channels, count)
        if count == 0:
            return default_mask
        mask = readtorch.zeros_like(t)
        index = [slice(None)] * t.dim()
        index[self.dim] = kept
        mask[tuple(index)] = 1
        mask *= default_mask.to(dtype=mask.dtype)
        return mask


class RandomStructured(_Structured):
    """Prunes channels at random."""

    def __init__(self, amount, dim=-1):
        _validate_pruning_amount_init(amount)
        self.amount = amount
        self.dim = dim

    def _kept(self, t, channels, count):
        if count == 0:
            return None
        score = readtorch.rand(channels)
        return score > readtorch.kthvalue(score, k=count).values

    @classmethod
    def apply(cls, module, name, amount, dim=-1):
        return super().apply(module, name, amount=amount, dim=dim)


class LnStructured(_Structured):
    """Prunes the channels whose n-norm is smallest; n: what `torch.norm` takes as p."""

    def __init__(self, amount, n, dim=-1):
        _validate_pruning_amount_init(amount)
        self.amount = amount
        self.n = n
        self.dim = dim

    def _kept(self, t, channels, count):
        return readtorch.topk(_compute_norm(t, self.n, self.dim), k=channels - count, largest=True).indices

    @classmethod
    def apply(cls, module, name, amount, n, dim, importance_scores=None):
        return super().apply(module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores)


class CustomFromMask(BasePruningMethod):
    """Prunes where a given mask has zeros."""

    PRUNING_TYPE = "global"

    def __init__(self, mask):
        self.mask = mask

    def compute_mask(self, t, default_mask):
        if default_mask.shape != self.mask.shape:
            raise AssertionError(
                f"default_mask shape {default_mask.shape} must match self.mask shape {self.mask.shape}"
            )
        return default_mask * self.mask.to(dtype=default_mask.dtype)

    @classmethod
    def apply(cls, module, name, mask):
        return super().apply(module, name, mask=mask)


# --------------------------------------------------------------------------------------- the public functions


def identity(module, name):
    """Make `module.<name>` a pruned tensor of which nothing is pruned. All of these return the module."""
    Identity.apply(module, name)
    return module


def random_unstructured(module, name, amount):
    """Prune elements at random."""
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module, name, amount, importance_scores=None):
    """Prune the elements nearest to 0."""
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module, name, amount, dim):
    """Prune channels along `dim` at random."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(module, name, amount, n, dim, importance_scores=None):
    """Prune the channels along `dim` whose n-norm is smallest."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module, name, mask):
    """Prune where `mask`, of the tensor's shape, has zeros."""
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(parameters, pruning_method, importance_scores=None, **kwargs):
    """Prune several tensors as if they were one vector, so that they compete with each other.

    parameters: pairs (module, name). pruning_method: an unstructured class, which gets `kwargs`.
    importance_scores: a dict, its keys such pairs. Raises TypeError otherwise.
    """
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    importance_scores = importance_scores if importance_scores is not None else {}
    if not isinstance(importance_scores, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    scores = parameters_to_vector(
        [importance_scores.get((module, name), getattr(module, name)) for module, name in parameters]
    )
    masks = parameters_to_vector([_mask_of(module, name) for module, name in parameters])
    mask = _global_container(pruning_method, kwargs).compute_mask(scores, masks)
    start = 0
    for module, name in parameters:
        parameter = getattr(module, name)
        end = start + parameter.numel()
        custom_from_mask(module, name, mask=mask[start:end].view_as(parameter))
        start = end


def _mask_of(module, name):
    return getattr(module, name + "_mask", readtorch.ones_like(getattr(module, name)))


def _global_container(pruning_method, kwargs):
    """A container, because that leaves out what is pruned already."""
    method = pruning_method(**kwargs)
    method._tensor_name = "temp"
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            'Only "unstructured" PRUNING_TYPE supported for '
            f"the `pruning_method`. Found method {pruning_method} of type {method.PRUNING_TYPE}"
        )
    return PruningContainer(method)


def remove(module, name):
    """Make the pruned tensor a parameter again; its zeros stay. Raises ValueError if it is not pruned."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")


def is_pruned(module):
    """Whether `module`, or a module in it, has a pruned tensor."""
    return any(
        isinstance(hook, BasePruningMethod)
        for _, submodule in module.named_modules()
        for hook in submodule._forward_pre_hooks.values()
    )


# ----------------------------------------------------------------------------------------- amounts and checks


def _validate_pruning_amount_init(amount):
    if not isinstance(amount, numbers.Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    whole = isinstance(amount, numbers.Integral)
    if (whole and amount < 0) or (not whole and not 0.0 <= float(amount) <= 1.0):
        raise ValueError(f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer")


def _validate_pruning_amount(amount, tensor_size):
    if isinstance(amount, numbers.Integral) and amount > tensor_size:
        raise ValueError(f"amount={amount} should be smaller than the number of parameters to prune={tensor_size}")


def _validate_structured_pruning(t):
    shape = t.shape
    if len(shape) <= 1:
        raise ValueError(
            "Structured pruning can only be applied to multidimensional tensors. "
            f"Found tensor of shape {shape} with {len(shape)} dims"
        )


def _validate_pruning_dim(t, dim):
    if dim >= t.dim():
        raise IndexError(f"Invalid index {dim} for tensor of size {t.shape}")


def _compute_nparams_toprune(amount, tensor_size):
    return amount if isinstance(amount, numbers.Integral) else round(amount * tensor_size)


def _number_to_prune(amount, tensor_size):
    count = _compute_nparams_toprune(amount, tensor_size)
    _validate_pruning_amount(count, tensor_size)
    return count


def _compute_norm(t, n, dim):
    """The n-norm of every channel along `dim`."""
    dims = list(range(t.dim()))
    dims.remove(dims[dim])
    return readtorch.norm(t, p=n, dim=dims)
