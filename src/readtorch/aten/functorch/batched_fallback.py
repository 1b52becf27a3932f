"""What vmap does with an operator that has no batching rule: it calls the operator once for each example, and says so.

In PyTorch: `aten/src/ATen/functorch/BatchedFallback.cpp`. Explained in the chapter "Forward mode, vmap and torch.func".
"""

import os
import sys
import warnings

from readtorch.aten.functions import at
from readtorch.c10.tensor_impl import TensorImpl

from .gen_vmap_plumbing import plumbed


class _Settings:
    warns = True
    enabled = True


def set_warning_enabled(enabled):
    _Settings.warns = enabled


def set_fallback_enabled(enabled):
    _Settings.enabled = enabled


def is_fallback_enabled():
    return _Settings.enabled


# The operators that went this way: names for tests.
met = set()


def loop_over_examples(operator):
    """The kernel at FuncTorchBatched of an operator without a batching rule."""
    schema = operator.schema
    refusal = _refusal(schema)
    if refusal:

        def refuse(*arguments):
            raise RuntimeError(f"Batching rule not implemented for {operator.name}{refusal}")

        return refuse
    return plumbed(operator, _inplace_loop(operator) if schema.is_inplace else _loop(operator))


def refused(name):
    """The error for a view that has no rule."""
    return RuntimeError(f"Batching rule not implemented for {name}{_NO_VIEWS}")


_NO_VIEWS = "; the fallback path doesn't work on out= or view ops."


def _refusal(schema):
    """Why examples cannot be taken one by one, as the error says it; None if they can."""
    tensors = all(r.type.is_tensor and not r.type.is_list for r in schema.returns)
    if not tensors or any(a.type.is_tensor and a.type.is_list for a in schema.arguments):
        return ". We could not generate a fallback."
    if not schema.is_inplace and (schema.is_out or schema.is_view):
        return _NO_VIEWS
    if not schema.returns:
        return ". The fallback path does not support operations with no returns."
    return None


def warn_of_fallback(operator):
    met.add(operator.name)
    if not _Settings.enabled:
        raise RuntimeError(f"{operator.name} hit the vmap fallback which is currently disabled")
    if _Settings.warns:
        warnings.warn(
            f"There is a performance drop because we have not yet implemented the batching rule for {operator.name}. Please file "
            "us an issue on GitHub so that we can prioritize its implementation.",
            UserWarning,
            stacklevel=_levels_to_caller(),
        )


def _levels_to_caller():
    """How far above `warn_of_fallback` the code stands that called the operator."""
    frame, levels = sys._getframe(1), 1
    while frame.f_back is not None and _is_ours(frame.f_code.co_filename):
        frame, levels = frame.f_back, levels + 1
    return levels


def _is_ours(filename):
    return filename.startswith((_PACKAGE, "<readtorch generated"))


_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(__file__))) + os.sep


def _loop(operator):
    def rule(*flat):
        warn_of_fallback(operator)
        results = [operator.call(*example) for example in examples(operator, flat)]
        if len(operator.schema.returns) == 1:
            return _stacked(results), 0
        return [part for one in zip(*results) for part in (_stacked(one), 0)]

    return rule


def _inplace_loop(operator):
    def rule(*flat):
        warn_of_fallback(operator)
        check_inplace(operator, flat)
        for example in examples(operator, flat):
            operator.call(*example)

    return rule


def check_inplace(operator, flat, name=None):
    """RuntimeError if a tensor of all examples together would be written to with something of each."""
    if flat[1] is None:
        raise RuntimeError(incompatible_inplace(name or operator.schema.qualified_name))


def incompatible_inplace(name):
    return (
        f"vmap: {name}(self, *extra_args) is not possible because there exists a Tensor `other` in extra_args that has more elements "
        "than `self`. This happened due to `other` being vmapped over but `self` not being vmapped over in a vmap. Please try to use "
        f"out-of-place operators instead of {name}. If said operator is being called inside the PyTorch framework, please file a bug "
        "report instead."
    )


def examples(operator, flat):
    """The arguments for each example in turn."""
    batch_size = None
    slots, at_place = [], 0
    for a in operator.schema.arguments:
        value = flat[at_place]
        bdim = None
        at_place += 1
        if a.type.is_tensor:
            bdim = flat[at_place]
            at_place += 1
        if bdim is not None:
            batch_size = value._array.shape[bdim]
        slots.append((value, bdim))
    if batch_size == 0:
        raise RuntimeError(
            f"Batching rule not implemented for {operator.name}. The fallback path does not support vmap over dims of size 0."
        )
    for i in range(batch_size):
        yield [value if bdim is None else at.select(value, bdim, i) for value, bdim in slots]


def _stacked(results):
    if all([r is None for r in results]):
        return None
    if not all([isinstance(r, TensorImpl) for r in results]):
        raise RuntimeError(
            "vmap: slow fallback received a mix of undefined and defined tensors as the result of an operation. This is not "
            "supported, please file us an issue on github."
        )
    return at.stack(list(results))
