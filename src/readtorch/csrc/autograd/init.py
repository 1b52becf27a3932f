"""What `torch._C` has of autograd: its switches, the levels of forward mode, and what is known of a thread's hooks on saved tensors.

In PyTorch: `torch/csrc/autograd/init.cpp`. Explained in the chapter "Autograd".
"""

import enum

from readtorch.aten.torch_function import Public, mode_enabled, overriders
from readtorch.c10.dispatch_key import INFERENCE_TENSOR
from readtorch.c10.local_dispatch_key_set import set_forward_grad_mode, set_grad_mode, tls
from readtorch.c10.tensor_impl import Creation, TensorImpl, detached

from .forward_grad import ForwardADLevel
from .graph_task import get_current_graph_task_keep_graph
from .node import InputMetadata, peek_sequence_nr
from .saved_variable import SavedVariable, default_hooks, pop_default_hooks, push_default_hooks


def _set_grad_enabled(enabled):
    """Record operations from now on, or not; modes of functions are told of it."""
    if overriders and mode_enabled():
        return _PUBLIC.override((enabled,), {})
    set_grad_mode(enabled)


_PUBLIC = Public("_set_grad_enabled", "torch._C")
_PUBLIC.function = _set_grad_enabled


def is_grad_enabled():
    return tls.grad_mode


def _set_fwd_grad_enabled(enabled):
    """Compute tangents from now on, or not."""
    set_forward_grad_mode(enabled)


def _is_fwd_grad_enabled():
    return tls.forward_grad_mode


def _enter_dual_level():
    return ForwardADLevel.enter()


def _exit_dual_level(level):
    if level < 0:
        raise RuntimeError("Dual level must be a positive number.")
    ForwardADLevel.exit(level)


def increment_version(tensors):
    """Count a write to each of these tensors; those of inference mode have no counter. RuntimeError for anything else."""
    try:
        given = iter(tensors)
    except TypeError:
        raise RuntimeError("increment_version expect a Iterable[Tensor] as input") from None
    for t in given:
        if not isinstance(t, TensorImpl):
            raise RuntimeError("increment_version expects each element of the iterable to be a tensor")
        if not t._keys & INFERENCE_TENSOR:
            t._counter[0] += 1


def _unsafe_set_version_counter(tensors, versions):
    """Set the version counter of each tensor."""
    for t, version in zip(tensors, versions, strict=True):
        t._counter[0] = version


class StreamSettings:
    """What the process wants where the streams of a gradient and of its leaf differ."""

    warn_on_accumulate_grad_mismatch = True
    override_stale_capture = False


stream_settings = StreamSettings()


# ------------------------------------------------------------------------------------------- hooks on saved tensors


def _saved_tensors_hooks_is_enabled():
    return default_hooks.disabled_message is None


def _saved_tensors_hooks_disable(message, fail_if_non_empty=True):
    """Refuse hooks from now on with this message: at once, if the thread has some."""
    default_hooks.disabled_message = message
    if fail_if_non_empty and default_hooks.stack:
        raise RuntimeError(message)


def _saved_tensors_hooks_enable():
    default_hooks.disabled_message = None


def _saved_tensors_hooks_get_disabled_error_message():
    return default_hooks.disabled_message


def _top_saved_tensors_default_hooks(ignore_is_tracing=False):
    """The innermost pair of hooks, or None."""
    return default_hooks.stack[-1] if default_hooks.stack else None


# ----------------------------------------------------------------------------------------- what tests and compilers ask


class CreationMeta(enum.Enum):
    """How a view came to be: whether it may be written to in place."""

    DEFAULT = 0
    IN_CUSTOM_FUNCTION = 1
    MULTI_OUTPUT_NODE = 2
    NO_GRAD_MODE = 3
    INFERENCE_MODE = 4

    def __int__(self):
        return self.value


def _get_creation_meta(view):
    """The CreationMeta of a view. RuntimeError for a tensor that is none."""
    check_is_view(view)
    return CreationMeta[view._creation.upper()]


def _set_creation_meta(view, creation):
    check_is_view(view)
    view._creation = getattr(Creation, creation.name)


def check_is_view(t):
    if t._base is None:
        raise RuntimeError(
            "Expected meta != nullptr to be true, but got false.  (Could this error message be improved?  If so, please "
            "report an enhancement request to PyTorch.)"
        )


def _get_data_attr(t):
    """`t.data` as it is without `__torch_function__`."""
    return detached(t)


# What `torch._C._autograd` holds.
methods = {
    "CreationMeta": CreationMeta,
    "SavedTensor": SavedVariable,
    "_InputMetadata": InputMetadata,
    "_get_creation_meta": _get_creation_meta,
    "_set_creation_meta": _set_creation_meta,
    "_get_data_attr": _get_data_attr,
    "_get_current_graph_task_keep_graph": get_current_graph_task_keep_graph,
    "_get_sequence_nr": peek_sequence_nr,
    "_push_saved_tensors_default_hooks": push_default_hooks,
    "_pop_saved_tensors_default_hooks": pop_default_hooks,
    "_top_saved_tensors_default_hooks": _top_saved_tensors_default_hooks,
    "_saved_tensors_hooks_is_enabled": _saved_tensors_hooks_is_enabled,
    "_saved_tensors_hooks_enable": _saved_tensors_hooks_enable,
    "_saved_tensors_hooks_disable": _saved_tensors_hooks_disable,
    "_saved_tensors_hooks_get_disabled_error_message": _saved_tensors_hooks_get_disabled_error_message,
    "_unsafe_set_version_counter": _unsafe_set_version_counter,
}
