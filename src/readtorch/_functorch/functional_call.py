"""Calling a module with other parameters than its own. In PyTorch: `torch/_functorch/functional_call.py`."""

from collections import Counter
from collections.abc import Sequence

import readtorch
from readtorch.nn.utils import stateless


def functional_call(module, parameter_and_buffer_dicts, args=None, kwargs=None, *, tie_weights=True, strict=False):
    """`module(*args, **kwargs)` with the tensors given in the place of the module's own.

    parameter_and_buffer_dicts: name -> tensor, or several such dicts without a common name. What the
    module assigns during the call is found there, not in the module. tie_weights: a tensor with two names is
    replaced under both. strict: raise RuntimeError unless every tensor of the module, and no other, is given.
    Raises ValueError for what are no dicts, for names that come twice, and for different tensors where one is
    tied.
    """
    named_tensors = _merged(parameter_and_buffer_dicts)
    return stateless._functional_call(module, named_tensors, args, kwargs, tie_weights=tie_weights, strict=strict)


def _merged(dicts):
    if isinstance(dicts, dict):
        return dicts
    if not isinstance(dicts, Sequence):
        raise ValueError(
            f"Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got {type(dicts)}"
        )
    if not all(isinstance(d, dict) for d in dicts):
        raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
    repeated = [name for name, count in Counter(name for d in dicts for name in d).items() if count > 1]
    if repeated:
        raise ValueError(f"{repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous")
    return {name: tensor for d in dicts for name, tensor in d.items()}


def stack_module_state(models):
    """(parameters, buffers) of modules of one class: name -> tensor, stacked along a new first dimension.

    The stacked parameters are leaves. Raises RuntimeError if the modules differ in class or mode, or there
    are none.
    """
    if len(models) == 0:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if len({m.training for m in models}) != 1:
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if len({type(m) for m in models}) != 1:
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    return (
        _stacked([dict(model.named_parameters()) for model in models]),
        _stacked([dict(model.named_buffers()) for model in models]),
    )


def _stacked(dicts):
    return {name: _stacked_leaf([d[name] for d in dicts], name) for name in dicts[0]}


def _stacked_leaf(tensors, name):
    if len({t.requires_grad for t in tensors}) != 1:
        raise RuntimeError(f"Expected {name} from each model to have the same .requires_grad")
    result = readtorch.stack(tensors)
    return result.detach().requires_grad_() if tensors[0].requires_grad else result
