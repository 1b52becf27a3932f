"""Automatic differentiation: `backward`, `grad`, grad modes, custom functions.

In PyTorch: `torch/autograd/__init__.py`. Explained in the chapter "Autograd".
"""

import math
import warnings
from collections.abc import Mapping

import numpy as np

from readtorch.aten.functions import at
from readtorch.aten.torch_function import overriders
from readtorch.c10.dispatch_key import BACKENDS, CPU
from readtorch.c10.local_dispatch_key_set import threads_with_modes, tls
from readtorch.c10.memory_format import preserve_format
from readtorch.c10.scalar_type import by_numpy
from readtorch.c10.size import Size
from readtorch.c10.tensor_impl import TensorImpl, seen_by_python, wrap
from readtorch.csrc.autograd.node import input_metadata
from readtorch.csrc.autograd.saved_variable import SavedVariable as SavedTensor
from readtorch.csrc.autograd.variable import requires_grad
from readtorch.csrc.utils.disable_torch_function import handle_torch_function, has_torch_function, is_tensor_like
from . import forward_ad, function, functional, graph, profiler
from .anomaly_mode import detect_anomaly, set_detect_anomaly
from .function import Function, NestedIOFunction
from .gradcheck import gradcheck, gradgradcheck
from .grad_mode import (
    _force_original_view_tracking,
    _unsafe_preserve_version_counter,
    enable_grad,
    enforce_grad_layout_policy,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    is_multithreading_enabled,
    is_view_replay_enabled,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)
from .graph import GradientEdge, _engine_run_backward
from .variable import Variable

__all__ = [
    "Variable",
    "Function",
    "backward",
    "grad_mode",
    "NestedIOFunction",
    "detect_anomaly",
    "enable_grad",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "inference_mode",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
    "set_multithreading_enabled",
    "enforce_grad_layout_policy",
    "variable",
]


def backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False, grad_variables=None, inputs=None):
    """Add the gradients of `tensors` to `.grad` of the leaves they were computed from.

    tensors: a tensor or GradientEdge, or several. One with more than one element needs an entry in `grad_tensors`, of its
    shape: the vector of the vector-Jacobian product. With `inputs` (also a dict's values) only those get a gradient.
    Raises RuntimeError for a tensor that requires no grad, TypeError for what is no gradient.
    """
    if threads_with_modes and tls.functorch:
        raise RuntimeError(
            "backward() called inside a functorch transform. This is not supported, please use functorch.grad or functorch.vjp "
            "instead or call backward() outside of functorch transforms."
        )
    if grad_variables is not None:
        grad_tensors = _old_name(grad_tensors, grad_variables)
    targets = None if inputs is None else _inputs_tuple(inputs, "backward")
    roots = _as_tuple(tensors)
    asked = tuple([t for t in (*roots, *(targets or ())) if is_tensor_like(t)]) if overriders else ()
    if asked and has_torch_function(asked):
        return handle_torch_function(
            backward,
            asked,
            roots,
            grad_tensors=grad_tensors,
            retain_graph=retain_graph,
            create_graph=create_graph,
            inputs=targets,
        )
    gradients = _make_grads(roots, _tensor_or_tensors_to_tuple(grad_tensors, len(roots)), False)
    keep_graph = create_graph if retain_graph is None else retain_graph
    _engine_run_backward(roots, gradients, keep_graph, create_graph, targets, True, True)


def _old_name(grad_tensors, grad_variables):
    warnings.warn("`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning, stacklevel=3)
    if grad_tensors is not None:
        raise RuntimeError(
            "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to "
            "`backward()`. Please only use `grad_tensors`."
        )
    return grad_variables


def grad(
    outputs,
    inputs,
    grad_outputs=None,
    retain_graph=None,
    create_graph=False,
    only_inputs=True,
    allow_unused=None,
    is_grads_batched=False,
    materialize_grads=False,
):
    """The gradients of `outputs` with respect to `inputs`, as a tuple (a dict for a dict of inputs).

    Both may hold GradientEdges. An input that `outputs` do not depend on raises RuntimeError, gives None with
    `allow_unused`, zeros with `materialize_grads`. With `is_grads_batched` the first dimension of each of `grad_outputs`
    counts several vectors.
    """
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        )
    allow_unused = materialize_grads if allow_unused is None else allow_unused
    roots, targets = _as_tuple(outputs), _inputs_tuple(inputs, "grad")
    asked = tuple([t for t in (*roots, *targets) if is_tensor_like(t)]) if overriders else ()
    if asked and has_torch_function(asked):
        results = handle_torch_function(
            grad,
            asked,
            roots,
            targets,
            grad_outputs=grad_outputs,
            retain_graph=retain_graph,
            create_graph=create_graph,
            only_inputs=only_inputs,
            allow_unused=allow_unused,
            is_grads_batched=is_grads_batched,
            materialize_grads=materialize_grads,
        )
        return dict(zip(inputs, results, strict=True)) if type(inputs) is dict else results
    if not only_inputs:
        warnings.warn(
            "only_inputs argument is deprecated and is ignored now (defaults to True). To "
            "accumulate gradient for other parts of the graph, please use torch.autograd.backward.",
            FutureWarning,
            stacklevel=2,
        )
    vectors = _make_grads(roots, _tensor_or_tensors_to_tuple(grad_outputs, len(roots)), is_grads_batched)
    keep_graph = create_graph if retain_graph is None else retain_graph
    run = _batched if is_grads_batched else _engine_run_backward
    results = run(roots, vectors, keep_graph, create_graph, targets, allow_unused, accumulate_grad=False)
    if materialize_grads:
        results = _materialized(results, targets, create_graph)
    return dict(zip(inputs, results, strict=True)) if type(inputs) is dict else results


def _materialized(results, targets, create_graph):
    """Zeros in the place of None."""
    if any(r is None and not is_tensor_like(t) for r, t in zip(results, targets)):
        raise RuntimeError("materialize_grads cannot be used when the given input is a GradientEdge")
    return tuple([at.zeros_like(t).requires_grad_(create_graph) if r is None else r for r, t in zip(results, targets)])


def _batched(roots, vectors, *settings, accumulate_grad):
    """One backward for all entries of the leading dimension, through vmap."""
    from readtorch._vmap_internals import _vmap

    def vjp(vectors):
        return _engine_run_backward(roots, vectors, *settings, accumulate_grad)

    return _vmap(vjp, 0, 0, allow_none_pass_through=True)(vectors)


def _as_tuple(value):
    if isinstance(value, (TensorImpl, GradientEdge)) or overriders and is_tensor_like(value):
        return (value,)
    return tuple(value)


def _inputs_tuple(inputs, function):
    if isinstance(inputs, (TensorImpl, GradientEdge)):
        return (inputs,)
    if type(inputs) is dict:
        targets = tuple(inputs.values())
    elif type(inputs) not in (tuple, list) and isinstance(inputs, Mapping):
        raise TypeError(
            f"`inputs` argument to `{function}()` must be a dict, not {type(inputs).__name__}. "
            "Other Mapping types are not supported."
        )
    else:
        targets = _as_tuple(inputs)
    if not targets:
        raise RuntimeError(f"`inputs` argument to `{function}()` cannot be empty.")
    return targets


def _tensor_or_tensors_to_tuple(tensors, length):
    if tensors is None:
        return (None,) * length
    return (tensors,) if isinstance(tensors, TensorImpl) else tuple(tensors)


def _make_grads(outputs, grads, is_grads_batched):
    """The gradient that each output starts with: the given one, or 1 for a scalar."""
    made = []
    for output, given in zip(outputs, grads):
        if isinstance(output, TensorImpl):
            shape, dtype = output._array.shape, output._array.dtype
        elif isinstance(output, GradientEdge):
            shape, dtype = input_metadata(output.node, output.output_nr)
        else:
            raise AssertionError("Expected output to be a torch.Tensor")
        if given is None:
            made.append(_ones_for(output, shape, dtype))
        elif isinstance(given, TensorImpl):
            _check_grad(outputs, output, grads, given, shape, dtype, is_grads_batched)
            made.append(given)
        else:
            raise TypeError(f"gradients can be either Tensors or None, but got {type(given).__name__}")
    return tuple(made)


def _check_grad(outputs, output, grads, given, shape, dtype, is_grads_batched):
    """RuntimeError if a gradient has another shape than its output, or only one of them is complex."""
    first = given[0] if is_grads_batched else given
    if first._array.shape != shape:
        said = first.shape[1:] if is_grads_batched else first.shape
        where = (
            f"grad_output[{grads.index(given)}] has a shape of {said} and output[{outputs.index(output)}] has a shape of "
            f"{Size(shape)}."
        )
        if not is_grads_batched:
            raise RuntimeError(f"Mismatch in shape: {where}")
        if isinstance(output, GradientEdge):
            raise RuntimeError("Batched grads are not supported with GradientEdge")
        raise RuntimeError(
            "If `is_grads_batched=True`, we interpret the first dimension of each "
            "grad_output as the batch dimension. The sizes of the remaining dimensions "
            "are expected to match the shape of corresponding output, but a mismatch was "
            f"detected: {where} If you only want some tensors in "
            "`grad_output` to be considered batched, consider using vmap."
        )
    if (dtype.kind == "c") != given.dtype.is_complex:
        raise RuntimeError(
            "For complex Tensors, both grad_output and output are required to have the same "
            f"dtype. Mismatch in dtype: grad_output[{grads.index(given)}] has a dtype of {given.dtype} and "
            f"output[{outputs.index(output)}] has a dtype of {by_numpy[dtype]}."
        )


def _ones_for(output, shape, dtype):
    is_edge = not isinstance(output, TensorImpl)
    if not is_edge and not requires_grad(output):
        return None
    if math.prod(shape) != 1:
        raise RuntimeError("grad can be implicitly created only for scalar outputs")
    if not by_numpy[dtype].is_floating_point:
        raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {by_numpy[dtype]}")
    is_observed = threads_with_modes and tls.around is not None
    if is_edge or output._keys & BACKENDS == CPU and not seen_by_python(output) and not is_observed:
        one = np.empty(shape, dtype)
        one.fill(1)
        return wrap(one)
    return at.ones_like(output, memory_format=preserve_format)


def _is_checkpoint_valid():
    """Whether the backward that runs now runs the whole graph: then a checkpoint may call backward in it."""
    return Variable._execution_engine.is_checkpoint_valid()


def variable(*args, **kwargs):
    """What once made a tensor. Raises RuntimeError."""
    raise RuntimeError("torch.autograd.variable(...) is deprecated, use torch.tensor(...) instead")


variable.Variable = Variable  # the module `variable`, which the function hides, is still reached by this name
