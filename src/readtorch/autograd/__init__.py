"""Automatic differentiation: `backward`, `grad`, grad modes, custom functions.

In PyTorch: `torch/autograd/__init__.py`. Explained in the chapter "Autograd".
"""

import warnings

import numpy as np

from readtorch.aten.functions import at
from readtorch.aten.torch_function import overriders
from readtorch.c10.dispatch_key import BACKENDS, CPU
from readtorch.c10.memory_format import preserve_format
from readtorch.c10.tensor_impl import NO_EDGE, TensorImpl, wrap, seen_by_python
from readtorch.csrc.autograd import engine
from readtorch.csrc.autograd.node import input_metadata
from readtorch.csrc.autograd.variable import gradient_edge, requires_grad
from readtorch.csrc.utils.disable_torch_function import handle_torch_function, has_torch_function, is_tensor_like
from . import function, functional, graph
from .anomaly_mode import detect_anomaly, set_detect_anomaly
from .function import Function
from .gradcheck import gradcheck, gradgradcheck
from .grad_mode import (
    _unsafe_preserve_version_counter,
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)
from .graph import GradientEdge

__all__ = [
    "backward",
    "grad",
    "Function",
    "no_grad",
    "enable_grad",
    "set_grad_enabled",
    "inference_mode",
    "detect_anomaly",
    "set_detect_anomaly",
    "gradcheck",
    "gradgradcheck",
    "functional",
    "graph",
    "GradientEdge",
]


def backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False, grad_variables=None, inputs=None):
    """Add the gradients of `tensors` to `.grad` of the leaves they were computed from.

    A tensor with more than one element needs an entry in `grad_tensors`, of its shape: the vector of the vector-Jacobian
    product. With `inputs` only those leaves receive a gradient. Raises RuntimeError for a tensor that requires no grad.
    """
    if grad_variables is not None:
        warnings.warn("`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning, stacklevel=2)
        if grad_tensors is not None:
            raise RuntimeError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to "
                "`backward()`. Please only use `grad_tensors`."
            )
        grad_tensors = grad_variables
    inputs = inputs.values() if isinstance(inputs, dict) else inputs
    targets = None if inputs is None else _as_tuple(inputs)
    if targets == ():
        raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
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
    gradients = _make_grads(roots, _grads_tuple(grad_tensors, len(roots)))
    _run(roots, gradients, retain_graph, create_graph, targets, accumulate_grad=True)


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

    An input that `outputs` do not depend on raises RuntimeError, gives None with `allow_unused`, zeros with
    `materialize_grads`. With `is_grads_batched` the first dimension of each of `grad_outputs` counts several vectors.
    """
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        )
    allow_unused = materialize_grads if allow_unused is None else allow_unused
    if not only_inputs:
        warnings.warn(
            "only_inputs argument is deprecated and is ignored now (defaults to True). To "
            "accumulate gradient for other parts of the graph, please use torch.autograd.backward.",
            FutureWarning,
            stacklevel=2,
        )
    settings = dict(
        grad_outputs=grad_outputs,
        retain_graph=retain_graph,
        create_graph=create_graph,
        only_inputs=only_inputs,
        allow_unused=allow_unused,
        is_grads_batched=is_grads_batched,
        materialize_grads=materialize_grads,
    )
    if isinstance(inputs, dict):
        return dict(zip(inputs, grad(outputs, tuple(inputs.values()), **settings)))
    roots, targets = _as_tuple(outputs), _as_tuple(inputs)
    asked = tuple([t for t in (*roots, *targets) if is_tensor_like(t)]) if overriders else ()
    if asked and has_torch_function(asked):
        return handle_torch_function(grad, asked, roots, targets, **settings)
    vectors = _grads_tuple(grad_outputs, len(roots))
    results = _gradients(roots, targets, vectors, retain_graph, create_graph, allow_unused, is_grads_batched)
    if materialize_grads:
        if any(r is None and isinstance(t, GradientEdge) for r, t in zip(results, targets)):
            raise RuntimeError("materialize_grads cannot be used when the given input is a GradientEdge")
        results = [at.zeros_like(t) if r is None else r for r, t in zip(results, targets)]
    return tuple(results)


def _gradients(roots, targets, vectors, retain_graph, create_graph, allow_unused, is_grads_batched):
    if is_grads_batched:
        return _batched(roots, targets, vectors, create_graph, retain_graph, allow_unused)
    gradients = _make_grads(roots, vectors)
    return _run(roots, gradients, retain_graph, create_graph, targets, accumulate_grad=False, allow_unused=allow_unused)


def _batched(roots, targets, vectors, create_graph, retain_graph, allow_unused):
    """One backward for each entry of the leading dimension. In PyTorch: one backward for all, through vmap."""
    count = next(len(v) for v in vectors if v is not None)
    rows = []
    for i in range(count):
        row = [v if v is None else v.select(0, i) for v in vectors]
        keep = True if i < count - 1 else retain_graph
        rows.append(
            _run(roots, _make_grads(roots, row, batched=vectors), keep, create_graph, targets, False, allow_unused)
        )
    return [None if rows[0][k] is None else at.stack([row[k] for row in rows]) for k in range(len(targets))]


def _run(roots, gradients, retain_graph, create_graph, targets, accumulate_grad, allow_unused=True):
    """Check the roots and the inputs, then run the engine (`THPEngine_run_backward`)."""
    edges = [_root_edge(root, i) for i, root in enumerate(roots)]
    ends = None
    if targets is not None:
        ends = [_target_edge(target, i, accumulate_grad) for i, target in enumerate(targets)]
    results = engine.execute(
        edges, gradients, create_graph if retain_graph is None else retain_graph, create_graph, ends, accumulate_grad
    )
    if not accumulate_grad and not allow_unused:
        for i, result in enumerate(results):
            if result is None:
                raise RuntimeError(
                    f"The differentiated Tensor at index {i} appears to not have been used "
                    "in the graph. Set allow_unused=True if this is the desired behavior."
                )
    return results


def _root_edge(root, i):
    edge = tuple(root) if isinstance(root, GradientEdge) else gradient_edge(root)
    if edge[0] is None:
        raise RuntimeError(f"element {i} of tensors does not require grad and does not have a grad_fn")
    return edge[:2]


def _target_edge(target, i, accumulate_grad):
    if isinstance(target, GradientEdge):
        return target[:2]
    if accumulate_grad and target.retains_grad is False and not target.is_leaf:
        target.retain_grad()
    edge = gradient_edge(target)
    if edge is NO_EDGE:
        raise RuntimeError("One of the differentiated Tensors does not require grad")
    return edge


def _as_tuple(value):
    return (value,) if isinstance(value, (TensorImpl, GradientEdge)) else tuple(value)


def _grads_tuple(grads, count):
    if grads is None:
        return (None,) * count
    return (grads,) if isinstance(grads, TensorImpl) else tuple(grads)


def _make_grads(outputs, grads, batched=None):
    """The gradient that each output starts with: the given one, or 1 for a scalar."""
    return [_make_grad(i, out, g, batched) for i, (out, g) in enumerate(zip(outputs, grads))]


def _make_grad(i, output, given, batched):
    if isinstance(output, GradientEdge):
        shape, dtype = input_metadata(output.node, output.output_nr)
    else:
        shape, dtype = output._array.shape, output._array.dtype
    if given is None:
        return _ones_for(output, shape, dtype)
    if not isinstance(given, TensorImpl):
        raise TypeError(f"gradients can be either Tensors or None, but got {type(given).__name__}")
    if given._array.shape != shape:
        given_shape = f"torch.Size({list(given._array.shape)})"
        if batched is not None:
            raise RuntimeError(
                "If `is_grads_batched=True`, we interpret the first dimension of each "
                "grad_output as the batch dimension. The sizes of the remaining dimensions "
                "are expected to match the shape of corresponding output, but a mismatch was "
                f"detected: grad_output[{i}] has a shape of {given_shape} and output[{i}] "
                f"has a shape of torch.Size({list(shape)}). If you only want some tensors in "
                "`grad_output` to be considered batched, consider using vmap."
            )
        raise RuntimeError(
            f"Mismatch in shape: grad_output[{i}] has a shape of {given_shape} and "
            f"output[{i}] has a shape of torch.Size({list(shape)})."
        )
    if (dtype.kind == "c") != given.dtype.is_complex:
        raise RuntimeError(
            "For complex Tensors, both grad_output and output are required to have the same "
            f"dtype. Mismatch in dtype: grad_output[{i}] has a dtype of {given.dtype} and "
            f"output[{i}] has a dtype of {output.dtype}."
        )
    return given


def _ones_for(output, shape, dtype):
    if not isinstance(output, GradientEdge) and not requires_grad(output):
        return None
    if any(n != 1 for n in shape):
        raise RuntimeError("grad can be implicitly created only for scalar outputs")
    if dtype.kind == "c":
        raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {output.dtype}")
    is_edge = isinstance(output, GradientEdge)
    if is_edge or output._keys & BACKENDS == CPU and not seen_by_python(output):
        return wrap(np.ones(shape, dtype))
    return at.ones_like(output, memory_format=preserve_format)


class _Engine:
    """`Variable._execution_engine`, for the callbacks that DistributedDataParallel queues."""

    queue_callback = staticmethod(engine.queue_callback)


class Variable:
    """The old name of a tensor that autograd follows."""

    _execution_engine = _Engine()

    def __new__(cls, data, requires_grad=False):
        return data.detach().requires_grad_(requires_grad)
