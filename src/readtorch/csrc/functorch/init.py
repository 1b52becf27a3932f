"""`torch._C._functorch`: what the Python part of the function transforms calls.

In PyTorch: `torch/csrc/functorch/init.cpp`. Explained in the chapter "Forward mode, vmap and torch.func".
"""

import threading

from readtorch.aten.functions import at
from readtorch.aten.functorch import dynamic_layer
from readtorch.aten.functorch.ad_interpreters import GradInterpreter, JvpInterpreter
from readtorch.aten.functorch.batch_rules_helper import reshape_dim_into, reshape_dim_outof  # noqa: F401
from readtorch.aten.functorch.batched_fallback import is_fallback_enabled as _is_vmap_fallback_enabled  # noqa: F401
from readtorch.aten.functorch.batched_fallback import set_fallback_enabled as _set_vmap_fallback_enabled  # noqa: F401
from readtorch.aten.functorch.batched_fallback import set_warning_enabled as _set_vmap_fallback_warning_enabled  # noqa: F401
from readtorch.aten.functorch.batched_tensor_impl import is_batched as is_batchedtensor
from readtorch.aten.functorch.batched_tensor_impl import make_batched, maybe_batched_at, unwrap_at
from readtorch.aten.functorch.interpreter import MODES, RandomnessType, TransformType  # noqa: F401
from readtorch.aten.functorch.interpreter import Interpreter as DynamicLayer  # noqa: F401
from readtorch.aten.functorch.legacy_batching_registrations import LegacyVmapInterpreter
from readtorch.aten.functorch.tensor_wrapper import is_wrapper as is_gradtrackingtensor
from readtorch.aten.functorch.tensor_wrapper import (
    make_tensor_wrapper,
    unwrap_if_dead,  # noqa: F401
)
from readtorch.aten.functorch.vmap_interpreter import VmapInterpreter
from readtorch.c10.dispatch_key import BATCHED
from readtorch.c10.dispatch_key_set import from_keys
from readtorch.c10.local_dispatch_key_set import tls, update_mask
from readtorch.c10.wrap_dim import wrap_dim

# ------------------------------------------------------------------------------------------------------ levels

_RANDOMNESS = {"error": RandomnessType.Error, "same": RandomnessType.Same, "different": RandomnessType.Different}


def _vmap_increment_nesting(batch_size, randomness):
    """Start a vmap over so many examples; returns its level. randomness: "error", "same" or "different"."""
    if randomness not in _RANDOMNESS:
        raise RuntimeError("randomness argument must be error, same, or different.")
    return dynamic_layer.begin(VmapInterpreter(batch_size, _RANDOMNESS[randomness]))


def _vmapmode_increment_nesting(batch_size):
    """Start the vmap of autograd's own (`torch/_vmap_internals.py`) over so many examples; returns its level.

    In PyTorch it has a kind of batched tensors of its own, and takes no number.
    """
    return dynamic_layer.begin(LegacyVmapInterpreter(batch_size))


def _grad_increment_nesting():
    """Start a differentiation backwards; returns its level."""
    return dynamic_layer.begin(GradInterpreter(tls.grad_mode))


def _jvp_increment_nesting():
    """Start a differentiation forwards; returns its level."""
    return dynamic_layer.begin(JvpInterpreter(tls.forward_grad_mode))


def _decrement_nesting():
    """The innermost transform is over; returns its level."""
    return dynamic_layer.end().level


_vmapmode_decrement_nesting = _vmap_decrement_nesting = _grad_decrement_nesting = _jvp_decrement_nesting = (
    _decrement_nesting
)


def current_level():
    """The level of the innermost transform. AssertionError outside of transforms: in PyTorch an internal assertion fails."""
    layer = dynamic_layer.top()
    assert layer is not None, "maybe_layer.has_value() INTERNAL ASSERT FAILED"
    return layer.level


def maybe_current_level():
    """The level of the innermost transform, or None."""
    layer = dynamic_layer.top()
    return None if layer is None else layer.level


def are_transforms_active():
    """Whether a transform is under way; autograd's own vmap does not count."""
    return bool(tls.functorch) and not all([layer.legacy for layer in tls.functorch])


def peek_interpreter_stack():
    """A handle of the innermost interpreter, or None."""
    layer = dynamic_layer.top()
    return None if layer is None else CInterpreter(layer)


def get_interpreter_stack():
    """Handles of all interpreters, the innermost last, or None."""
    return [CInterpreter(layer) for layer in tls.functorch] if tls.functorch else None


get_dynamic_layer_stack_depth = lambda: len(tls.functorch or ())  # noqa: E731
pop_dynamic_layer_stack = dynamic_layer.pop


def push_dynamic_layer_stack(layer):
    """Put an interpreter on the stack again; returns its level."""
    dynamic_layer.push(layer)
    return len(tls.functorch)


def pop_dynamic_layer_stack_and_undo_to_depth(depth):
    """End the transforms above a depth, which an error has left."""
    while get_dynamic_layer_stack_depth() > depth:
        dynamic_layer.end()


# ------------------------------------------------------------------------------------------- wrapping, unwrapping


def _add_batch_dim(tensor, batch_dim, level):
    """`tensor` as one example of it sees it: dimension `batch_dim` is hidden."""
    return make_batched(tensor, wrap_dim(batch_dim, tensor._array.ndim), dynamic_layer.at_level(level))


def _remove_batch_dim(tensor, level, batch_size, out_dim):
    """The whole batch, with its dimension at `out_dim`. What this vmap has not batched is the same for all examples: it is expanded."""
    impl = maybe_batched_at(tensor, level)
    if impl is None:
        rank = tensor._array.ndim
        if not -rank - 1 <= out_dim <= rank:
            wrap_dim(out_dim, rank + 1)
        sizes = list(tensor._array.shape)
        sizes.insert(out_dim % (rank + 1), batch_size)
        return at.expand(at.unsqueeze(tensor, out_dim), sizes)
    value = impl.value
    out_dim = wrap_dim(out_dim, value._array.ndim)
    return value if impl.bdim == out_dim else at.movedim(value, impl.bdim, out_dim)


def _unwrap_batched(tensor, level):
    """(the whole batch, its dimension), or (the tensor itself, None)."""
    return unwrap_at(tensor, level)


def _wrap_for_grad(tensor, level):
    """`tensor` as a level of differentiation sees it."""
    return make_tensor_wrapper(tensor, dynamic_layer.at_level(level))


def _unwrap_for_grad(tensor, level):
    """What a wrapper of this level stands for; another tensor as it is."""
    if is_gradtrackingtensor(tensor) and level_of_wrapper(tensor) == level:
        return tensor._storage_impl.value
    return tensor


def level_of_wrapper(tensor):
    layer = tensor._storage_impl.layer
    return layer.level if layer.alive else DEAD


DEAD = -2


def maybe_get_level(tensor):
    """The level of a wrapper, -2 of a dead one, -1 of another tensor."""
    if is_batchedtensor(tensor):
        return tensor._storage_impl.layer.level
    return level_of_wrapper(tensor) if is_gradtrackingtensor(tensor) else -1


def maybe_get_bdim(tensor):
    """The hidden dimension of a batched tensor, -1 of another."""
    return tensor._storage_impl.bdim if is_batchedtensor(tensor) else -1


def dlevel(tensor):
    """The level of a wrapper for differentiation: -1 of a dead one, 0 of another tensor."""
    if not is_gradtrackingtensor(tensor):
        return 0
    level = level_of_wrapper(tensor)
    return -1 if level == DEAD else level


def get_unwrapped(tensor):
    """The tensor in a wrapper. RuntimeError for another tensor."""
    if not is_functorch_wrapped_tensor(tensor):
        raise RuntimeError("No wrappers present!")
    return tensor._storage_impl.value


def is_dead_tensor_wrapper(tensor):
    """Whether a tensor is a wrapper of a differentiation that is over."""
    return is_gradtrackingtensor(tensor) and level_of_wrapper(tensor) == DEAD


def is_functorch_wrapped_tensor(tensor):
    return maybe_get_level(tensor) != -1


def is_functionaltensor(tensor):
    return False


def is_legacy_batchedtensor(tensor):
    """Whether a tensor is a batch of autograd's own vmap."""
    return is_batchedtensor(tensor) and tensor._storage_impl.layer.legacy


# ------------------------------------------------------------------------------------------------------ settings


def set_inplace_requires_grad_allowed(allowed):
    """Whether `requires_grad_()` may be called inside a transform: the transforms themselves do."""
    if tls.functorch:
        tls.functorch[-1].inplace_requires_grad_allowed = allowed


def get_inplace_requires_grad_allowed():
    return bool(tls.functorch) and getattr(tls.functorch[-1], "inplace_requires_grad_allowed", False)


def _set_dynamic_layer_keys_included(included):
    """Whether operator calls are brought to the interpreters."""
    tls.included = tls.included | MODES if included else tls.included & ~MODES
    update_mask()


def tls_set_vmap_excluded(excluded):
    """Whether operator calls pass over the kernels for batches."""
    tls.excluded = tls.excluded | BATCHED if excluded else tls.excluded & ~BATCHED
    update_mask()


# ---------------------------------------------------------------------------------------------------- what there is


def dump_tensor(tensor):
    """Print in which wrappers a tensor is."""
    print(described(tensor))
    return True


def described(tensor):
    sizes = list(tensor._array.shape)
    if is_batchedtensor(tensor):
        impl = tensor._storage_impl
        return f"Batched[lvl={impl.layer.level} dim={impl.bdim}, {described(impl.value)}]"
    if is_gradtrackingtensor(tensor):
        level = level_of_wrapper(tensor)
        return f"Wrapper[{'dead' if level == DEAD else f'lvl={level}'}, {described(tensor._storage_impl.value)}]"
    return f"Tensor{sizes}"


def dump_dls():
    """Print the stack of interpreters."""
    layers = "".join([f"{layer.level}:{layer.kind.name} " for layer in tls.functorch or ()])
    print(f"DynamicLayerStack[ {layers}]")


def dump_local_tls():
    """Print the keys that this thread includes and excludes."""
    print(f"[Local Include] {from_keys(tls.included)}\n[Local Exclude] {from_keys(tls.excluded)}")


# ------------------------------------------------------------------------------------- interpreters, as Python has them


class CInterpreter:
    """A handle of an interpreter of the stack. In PyTorch: of the C++ object."""

    def __init__(self, interpreter):
        self._interpreter = interpreter._interpreter if isinstance(interpreter, CInterpreter) else interpreter

    def key(self):
        return self._interpreter.kind

    def level(self):
        return self._interpreter.level


class CVmapInterpreterPtr(CInterpreter):
    def batchSize(self):
        return self._interpreter.batch_size

    def randomness(self):
        return self._interpreter.randomness


class CGradInterpreterPtr(CInterpreter):
    def prevGradMode(self):
        return self._interpreter.prev_grad_mode

    def lift(self, tensor):
        return self._interpreter.lift(tensor)


class CJvpInterpreterPtr(CInterpreter):
    def prevFwdGradMode(self):
        return self._interpreter.prev_fwd_grad_mode

    def lift(self, tensor):
        return self._interpreter.lift(tensor)


# ---------------------------------------------------------------------------------------------- custom functions


class _SingleLevel(threading.local):
    allowed = False


_single_level = _SingleLevel()


def set_single_level_autograd_function_allowed(allowed):
    """Whether a custom Function may be applied at one level alone: the transforms themselves do."""
    _single_level.allowed = allowed


def get_single_level_autograd_function_allowed():
    return _single_level.allowed


class CustomFunctions:
    """call: `torch._functorch.autograd_function.custom_function_call`, which says itself here. It is what `Function.apply` becomes
    under a transform; in PyTorch Python's layers import each other."""

    call = None
