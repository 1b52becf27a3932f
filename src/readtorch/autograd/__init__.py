"""Automatic differentiation: `backward`, `grad`, grad modes, custom functions.

In PyTorch: `torch/autograd`. Explained in the chapter "Autograd".
"""
from ..csrc.autograd import variable_type  # noqa: F401  (gives the dispatcher its Autograd kernels)
from ..c10.tensor_impl import TensorImpl, wrap
from ..csrc.autograd import engine
from ..csrc.autograd.variable import gradient_edge, requires_grad
import numpy as np


def backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False, grad_variables=None, inputs=None):
    """Add to `.grad` of the leaves the gradients of `tensors`, weighted by `grad_tensors`.

    In PyTorch: `torch/autograd/__init__.py`, `THPEngine_run_backward` (`torch/csrc/autograd/python_engine.cpp`).
    """
    tensors = (tensors,) if isinstance(tensors, TensorImpl) else tuple(tensors)
    grads = grad_tensors if isinstance(grad_tensors, (tuple, list)) else (grad_tensors,) * len(tensors)
    edges = [_root_edge(t, i) for i, t in enumerate(tensors)]
    engine.execute(edges, [_seed(t, g) for t, g in zip(tensors, grads)],
                   create_graph if retain_graph is None else retain_graph, create_graph,
                   None if inputs is None else [gradient_edge(t) for t in inputs], accumulate_grad=True)


def _root_edge(t, i):
    if not requires_grad(t):
        raise RuntimeError(f"element {i} of tensors does not require grad and does not have a grad_fn")
    return gradient_edge(t)


def _seed(t, grad):
    if grad is not None:
        return grad
    if t._array.size != 1:
        raise RuntimeError("grad can be implicitly created only for scalar outputs")
    return wrap(np.ones_like(t._array))
