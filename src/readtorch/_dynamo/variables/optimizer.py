"""Functions that the optimizers of the library call and that are known without being interpreted.

In PyTorch: `torch/_dynamo/variables/optimizer.py`.
"""

from readtorch._dynamo.exc import unimplemented
from readtorch.autograd import profiler
from readtorch.optim import optimizer

from .tensor import TensorVariable


def call_event_if_observed(tx, *args):
    """Nobody looks: a profiler would have changed the thread's mask, which is guarded."""
    return tx.held(profiler._NOBODY_LOOKS)


def call_show_optimizer(tx, *args):
    return tx.constant(None)


def call_has_sparse(tx, grads):
    for grad in tx.iterate(grads):
        if not isinstance(grad.realize(), TensorVariable):  # of sparse tensors nothing is known
            grad.realize().unknown("a question for its layout")
    return tx.constant(False)


def call_names_of_settings(tx, function, names):
    keys = tuple(key.realize().as_python_constant() for key in tx.iterate(names))
    return tx.constant(optimizer._names_of_settings(function.realize().as_python_constant(), keys))


def call_kernel_serves(tx, *args):
    """It asks for what no guard covers: where tensors lie in memory."""
    unimplemented("Unsupported question for a compiled kernel", "the step is left to Python")


FUNCTIONS = {
    profiler.event_if_observed: call_event_if_observed,
    profiler.show_optimizer: call_show_optimizer,
    optimizer._has_sparse: call_has_sparse,
    optimizer._kernel_serves: call_kernel_serves,
    optimizer._names_of_settings: call_names_of_settings,
}
