"""Pruning: setting weights to zero for good. In PyTorch: `torch/nn/utils/prune.py`.

A function for each way to choose the weights, and the class behind it. `amount`, everywhere: how many, or if
it is a float which fraction. `importance_scores`, of the tensor's shape: what the choice looks at instead of
the tensor.
"""
import numbers
from collections.abc import Iterable

import readtorch
from readtorch.nn.utils._pruning import BasePruningMethod, PruningContainer
from readtorch.nn.utils.convert_parameters import parameters_to_vector

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
        place = [slice(None)] * t.dim()
        place[self.dim] = kept
        mask[tuple(place)] = 1
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
            raise AssertionError(f"default_mask shape {default_mask.shape} must match "
                                 f"self.mask shape {self.mask.shape}")
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
    scores = parameters_to_vector([importance_scores.get((module, name), getattr(module, name))
                                   for module, name in parameters])
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
        raise TypeError('Only "unstructured" PRUNING_TYPE supported for '
                        f"the `pruning_method`. Found method {pruning_method} of type {method.PRUNING_TYPE}")
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
    return any(isinstance(hook, BasePruningMethod)
               for _, submodule in module.named_modules() for hook in submodule._forward_pre_hooks.values())


# ----------------------------------------------------------------------------------------- amounts and checks


def _validate_pruning_amount_init(amount):
    if not isinstance(amount, numbers.Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    whole = isinstance(amount, numbers.Integral)
    if (whole and amount < 0) or (not whole and not 0.0 <= float(amount) <= 1.0):
        raise ValueError(f"amount={amount} should either be a float in the range [0, 1] "
                         "or a non-negative integer")


def _validate_pruning_amount(amount, tensor_size):
    if isinstance(amount, numbers.Integral) and amount > tensor_size:
        raise ValueError(f"amount={amount} should be smaller than the number of parameters "
                         f"to prune={tensor_size}")


def _validate_structured_pruning(t):
    shape = t.shape
    if len(shape) <= 1:
        raise ValueError("Structured pruning can only be applied to multidimensional tensors. "
                         f"Found tensor of shape {shape} with {len(shape)} dims")


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
